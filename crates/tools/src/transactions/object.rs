//! `--json`: transactions and raw records as JSON, one object per line, UTF-8 whatever the log
//! holds.
//!
//! | grouping | a line is |
//! | --- | --- |
//! | `raw` | a record: `type` (`record`), `vxid`, `tag`, `value`, `side` |
//! | `vxid` | a transaction |
//! | `request`, `session` | `{"type":"group","vxid":…,"transactions":[…]}`, with the number of the first one |
//!
//! A transaction has `type` (`sess`, `req`, `bereq`, `unknown`), `vxid`, `level`, `parent`, the
//! `reason` of its Begin, the [`Summary`] as far as the shown records contain it, and `records`:
//! objects with `tag`, `value` and `side` (`c`, `b`, `-`). A payload that is not UTF-8 is shown
//! with U+FFFD in `value`, and completely in `hex`.

use serde_json::{Map, Value};
use shm::read::query::nth_field;
use shm::read::record::Record;
use shm::read::transaction::{Kind, Transaction};
use surface::legible;
use surface::tag::Tag;

/// True for records that are shown.
pub(super) type Shows<'a> = dyn Fn(&Transaction, &Record) -> bool + 'a;

/// Appends the line of a transaction or of a raw record.
pub(super) fn line(transaction: &Transaction, shows: &Shows, out: &mut Vec<u8>) {
    let length = out.len();
    if transaction.kind == Kind::Raw {
        for record in transaction.records().filter(|record| shows(transaction, record)) {
            let Some(tag) = record.tag() else { continue };
            out.extend_from_slice(format!("{{\"type\":\"record\",\"vxid\":{},", record.id.vxid()).as_bytes());
            members_of(tag, &record, out);
            out.push(b'}');
        }
    } else {
        transaction_object(transaction, shows, out);
    }
    if out.len() > length {
        out.push(b'\n');
    }
}

/// Appends the line of a group, if any part of it is shown.
pub(super) fn group(transactions: &[&Transaction], shows: &Shows, out: &mut Vec<u8>) {
    let Some(first) = transactions.first() else { return };
    out.extend_from_slice(format!("{{\"type\":\"group\",\"vxid\":{},\"transactions\":[", first.vxid).as_bytes());
    for (index, transaction) in transactions.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        transaction_object(transaction, shows, out);
    }
    out.extend_from_slice(b"]}\n");
}

fn transaction_object(transaction: &Transaction, shows: &Shows, out: &mut Vec<u8>) {
    let kind = match transaction.kind {
        Kind::Session => "sess",
        Kind::Request => "req",
        Kind::BackendRequest => "bereq",
        Kind::Unknown | Kind::Raw => "unknown",
    };
    let (vxid, level) = (transaction.vxid, transaction.level);
    out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"vxid\":{vxid},\"level\":{level}").as_bytes());
    let begin = transaction.records().find(|record| record.tag() == Some(Tag::Begin));
    let word = |number| begin.and_then(|record| nth_field(record.text(), number)).map(lossy);
    member("parent", &word(2).and_then(|text| text.parse::<u64>().ok()).map_or(Value::from(0), Value::from), out);
    member("reason", &Value::from(word(3)), out);
    let mut summary = Summary::default();
    for record in transaction.records().filter(|record| shows(transaction, record)) {
        if let Some(tag) = record.tag() {
            summary.take(tag, record.text());
        }
    }
    for (name, value) in summary.members() {
        member(name, &value, out);
    }
    out.extend_from_slice(b",\"records\":[");
    let mut first = true;
    for record in transaction.records().filter(|record| shows(transaction, record)) {
        let Some(tag) = record.tag() else { continue };
        out.extend_from_slice(if first { b"{" } else { b",{" });
        members_of(tag, &record, out);
        out.push(b'}');
        first = false;
    }
    out.extend_from_slice(b"]}");
}

fn member(name: &str, value: &Value, out: &mut Vec<u8>) {
    let value = value.to_string();
    out.extend_from_slice(format!(",\"{name}\":{}", legible::json(&value)).as_bytes());
}

fn members_of(tag: Tag, record: &Record, out: &mut Vec<u8>) {
    let side = match (record.id.is_client(), record.id.is_backend()) {
        (true, _) => 'c',
        (false, true) => 'b',
        (false, false) => '-',
    };
    let bytes = match (tag.row().binary, tag) {
        (true, _) => record.payload,
        (false, Tag::Debug | Tag::HttpGarbage | Tag::Hash) => record.data(),
        (false, _) => record.text(),
    };
    let value = Value::from(lossy(bytes)).to_string();
    let value = legible::json(&value);
    out.extend_from_slice(format!("\"tag\":\"{}\",\"value\":{value},\"side\":\"{side}\"", tag.name()).as_bytes());
    if tag.row().binary || std::str::from_utf8(bytes).is_err() {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        out.extend_from_slice(format!(",\"hex\":\"{hex}\"").as_bytes());
    }
}

/// The main facts about a transaction. If a fact occurs twice, the first one about the request and
/// the last one about the response counts, as in access logs.
#[derive(Default)]
struct Summary {
    client: Option<String>,
    backend: Option<String>,
    method: Option<String>,
    url: Option<String>,
    host: Option<String>,
    status: Option<u16>,
    handling: Option<&'static str>,
    error: Option<String>,
    start: Option<f64>,
    /// Seconds since the start, by label of the timestamp.
    times: Map<String, Value>,
    /// Bytes received and sent.
    bytes: Option<(u64, u64)>,
}

impl Summary {
    fn take(&mut self, tag: Tag, text: &[u8]) {
        let first = |slot: &mut Option<String>, value: Option<&[u8]>| {
            if slot.is_none() {
                *slot = value.map(lossy);
            }
        };
        match tag {
            Tag::SessOpen | Tag::ReqStart => first(&mut self.client, nth_field(text, 1)),
            Tag::BackendOpen => self.backend = nth_field(text, 2).map(lossy),
            Tag::ReqMethod | Tag::BereqMethod => first(&mut self.method, Some(text)),
            Tag::ReqURL | Tag::BereqURL => first(&mut self.url, Some(text)),
            Tag::ReqHeader | Tag::BereqHeader => first(&mut self.host, shm::read::query::strip_prefix(text, b"host")),
            Tag::RespStatus | Tag::BerespStatus => self.status = lossy(text).parse().ok(),
            Tag::FetchError => first(&mut self.error, Some(text)),
            Tag::Timestamp => self.take_time(text),
            Tag::ReqAcct => self.bytes = number(text, 3).zip(number(text, 6)),
            // For a backend request the bytes sent come first.
            Tag::BereqAcct => self.bytes = number(text, 6).zip(number(text, 3)),
            Tag::PipeAcct => self.bytes = number(text, 3).zip(number(text, 4)),
            Tag::VCLCall => match text {
                b"HIT" => self.handling = Some("hit"),
                b"MISS" => self.handling = Some("miss"),
                b"PASS" => self.handling = Some("pass"),
                b"SYNTH" => self.handling = Some("synth"),
                _ => {}
            },
            Tag::VCLReturn if text == b"pipe" => self.handling = Some("pipe"),
            _ => {}
        }
    }

    fn take_time(&mut self, text: &[u8]) {
        let Some(at) = text.iter().position(|byte| *byte == b':') else { return };
        let seconds = |number| nth_field(&text[at + 1..], number).and_then(|text| lossy(text).parse::<f64>().ok());
        if self.start.is_none() && &text[..at] == b"Start" {
            self.start = seconds(1);
        }
        if let Some(since_start) = seconds(2).and_then(serde_json::Number::from_f64) {
            self.times.insert(lossy(&text[..at]), Value::Number(since_start));
        }
    }

    fn members(self) -> impl Iterator<Item = (&'static str, Value)> {
        let (received, sent) = self.bytes.unzip();
        let times = (!self.times.is_empty()).then_some(Value::Object(self.times));
        let members = [
            ("client", self.client.map(Value::from)),
            ("backend", self.backend.map(Value::from)),
            ("method", self.method.map(Value::from)),
            ("host", self.host.map(Value::from)),
            ("url", self.url.map(Value::from)),
            ("status", self.status.map(Value::from)),
            ("handling", self.handling.map(Value::from)),
            ("error", self.error.map(Value::from)),
            ("start", self.start.filter(|start| start.is_finite()).map(Value::from)),
            ("times", times),
            ("received_bytes", received.map(Value::from)),
            ("sent_bytes", sent.map(Value::from)),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(text: &[u8], field: usize) -> Option<u64> {
    nth_field(text, field).and_then(|text| lossy(text).parse().ok())
}
