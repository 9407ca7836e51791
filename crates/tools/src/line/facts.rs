//! The facts needed for a line, collected from a transaction's records.
//!
//! If the log states a fact more than once, the first or the last statement counts, as in the stock
//! 7.1 tool.

use shm::read::record::Record;
use shm::read::transaction::{Kind, Transaction};
use surface::tag::Tag;

use super::format::Format;
use super::safety::{Safety, is_unsafe};

/// The facts, borrowed from the transaction. `None` means that the log doesn't contain the fact.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    pub is_backend: bool,
    pub vxid: u64,
    pub host: Option<&'a [u8]>,
    pub method: Option<&'a [u8]>,
    pub url: Option<&'a [u8]>,
    pub query: Option<&'a [u8]>,
    pub protocol: Option<&'a [u8]>,
    /// The fourth field of `ReqStart`; `None` in logs of daemons without TLS.
    pub scheme: Option<&'a [u8]>,
    pub status: Option<&'a [u8]>,
    pub start: Option<f64>,
    pub end: Option<f64>,
    pub first_byte: Option<&'a [u8]>,
    pub body_bytes: Option<&'a [u8]>,
    pub bytes_in: Option<&'a [u8]>,
    pub bytes_out: Option<&'a [u8]>,
    pub host_header: Option<&'a [u8]>,
    pub credentials: Option<&'a [u8]>,
    pub hit_miss: Option<&'static str>,
    pub handling: Option<&'static str>,
    pub request_headers: Vec<Option<&'a [u8]>>,
    pub response_headers: Vec<Option<&'a [u8]>>,
    pub log_values: Vec<Option<&'a [u8]>>,
    pub records: Vec<Option<&'a [u8]>>,
}

impl<'a> Facts<'a> {
    /// Reads a transaction; `None` if it gets no line: it was restarted, and its successor gets
    /// one.
    pub fn gather(transaction: &'a Transaction, format: &Format, safety: Safety) -> Option<Facts<'a>> {
        let mut facts = Facts {
            is_backend: transaction.kind == Kind::BackendRequest,
            vxid: transaction.vxid,
            request_headers: vec![None; format.request_headers.len()],
            response_headers: vec![None; format.response_headers.len()],
            log_values: vec![None; format.log_keys.len()],
            records: vec![None; format.records.len()],
            ..Facts::default()
        };
        for record in transaction.records() {
            let Some(tag) = record.tag() else { continue };
            if is_unsafe(tag) && safety == Safety::Text {
                continue;
            }
            let text = record_text(tag, &record);
            let restarted = tag == Tag::VCLReturn && text.eq_ignore_ascii_case(b"restart");
            if restarted || tag == Tag::HttpGarbage {
                return None;
            }
            facts.take(tag, text, format);
            facts.take_records(tag, text, format);
        }
        Some(facts)
    }

    fn take(&mut self, tag: Tag, text: &'a [u8], format: &Format) {
        match tag {
            Tag::ReqMethod | Tag::BereqMethod => keep_first(&mut self.method, Some(trim(text))),
            Tag::ReqURL | Tag::BereqURL => {
                let query_at = text.iter().position(|byte| *byte == b'?').unwrap_or(text.len());
                keep_first(&mut self.url, Some(trim(&text[..query_at])));
                keep_first(&mut self.query, Some(trim(&text[query_at..])));
            }
            Tag::ReqProtocol | Tag::BereqProtocol => keep_first(&mut self.protocol, Some(trim(text))),
            Tag::RespStatus | Tag::BerespStatus => self.status = Some(trim(text)),
            Tag::ReqStart => {
                keep_first(&mut self.host, field(text, 1));
                keep_first(&mut self.scheme, field(text, 4));
            }
            Tag::BackendOpen => keep_last(&mut self.host, field(text, 3)),
            Tag::ReqHeader | Tag::BereqHeader => self.take_request_header(text, format),
            Tag::RespHeader | Tag::BerespHeader => {
                take_headers(&format.response_headers, &mut self.response_headers, text);
            }
            Tag::Timestamp => self.take_timestamp(text),
            Tag::ReqAcct | Tag::BereqAcct => {
                keep_first(&mut self.bytes_in, field(text, 3));
                keep_first(&mut self.body_bytes, field(text, 5));
                keep_first(&mut self.bytes_out, field(text, 6));
            }
            Tag::PipeAcct => {
                keep_first(&mut self.bytes_in, field(text, 3));
                keep_first(&mut self.bytes_out, field(text, 4));
            }
            Tag::VCLCall => self.take_call(text),
            Tag::VCLReturn if text.eq_ignore_ascii_case(b"pipe") => {
                (self.hit_miss, self.handling) = (Some("miss"), Some("pipe"));
            }
            Tag::VCLLog => {
                for (key, value) in format.log_keys.iter().zip(&mut self.log_values) {
                    let rest = text.strip_prefix(key.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
                    keep_first(value, rest.map(trim));
                }
            }
            _ => {}
        }
    }

    fn take_records(&mut self, tag: Tag, text: &'a [u8], format: &Format) {
        for (pattern, value) in format.records.iter().zip(&mut self.records) {
            if pattern.tag != tag || value.is_some() {
                continue;
            }
            let text = match &pattern.prefix {
                Some(prefix) => after_name(text, prefix),
                None => Some(text),
            };
            *value = match pattern.field {
                Some(number) => text.and_then(|text| field(text, number)),
                None => text.map(trim),
            };
        }
    }

    fn take_request_header(&mut self, text: &'a [u8], format: &Format) {
        take_headers(&format.request_headers, &mut self.request_headers, text);
        let basic = after_name(text, "authorization").and_then(|value| after(value, b"basic "));
        match basic {
            Some(credentials) => keep_first(&mut self.credentials, Some(trim(credentials))),
            None => keep_first(&mut self.host_header, after_name(text, "host").map(trim)),
        }
    }

    fn take_timestamp(&mut self, text: &'a [u8]) {
        let first = |name| after_name(text, name).map(|rest| field(rest, 1));
        let second = |name| after_name(text, name).map(|rest| field(rest, 2));
        if let Some(time) = first("start") {
            keep_first_number(&mut self.start, time);
        } else if let Some(time) = first("resp").or_else(|| first("pipesess")).or_else(|| first("berespbody")) {
            keep_first_number(&mut self.end, time);
        } else if let Some(time) = second("process").or_else(|| second("pipe")).or_else(|| second("beresp")) {
            keep_first(&mut self.first_byte, time);
        }
    }

    fn take_call(&mut self, text: &[u8]) {
        let said = match text.to_ascii_lowercase().as_slice() {
            b"recv" => None,
            b"hit" => Some(("hit", "hit")),
            b"miss" => Some(("miss", "miss")),
            b"pass" => Some(("miss", "pass")),
            b"synth" => Some(("miss", "synth")),
            _ => return,
        };
        (self.hit_miss, self.handling) = said.unzip();
    }
}

fn record_text<'a>(tag: Tag, record: &Record<'a>) -> &'a [u8] {
    let mut text = record.payload;
    while !is_unsafe(tag)
        && let [rest @ .., 0] = text
    {
        text = rest;
    }
    text
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(*byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

/// The `number`th (from 1) of the blank-separated fields.
fn field(text: &[u8], number: usize) -> Option<&[u8]> {
    text.split(|byte| is_space(*byte)).filter(|field| !field.is_empty()).nth(number.checked_sub(1)?)
}

/// The text after `prefix`, compared ignoring case, and after blanks.
fn after<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    if !start.eq_ignore_ascii_case(prefix) {
        return None;
    }
    Some(&rest[rest.iter().take_while(|byte| **byte == b' ').count()..])
}

/// The text after `name` and its colon.
fn after_name<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    if text.get(name.len()) != Some(&b':') {
        return None;
    }
    after(text, name.as_bytes()).and_then(|_| after(&text[name.len()..], b":"))
}

fn take_headers<'a>(names: &[String], values: &mut [Option<&'a [u8]>], text: &'a [u8]) {
    for (name, value) in names.iter().zip(values) {
        keep_last(value, after_name(text, name).map(trim));
    }
}

fn keep_first<'a>(slot: &mut Option<&'a [u8]>, value: Option<&'a [u8]>) {
    if slot.is_none() {
        *slot = value;
    }
}

fn keep_last<'a>(slot: &mut Option<&'a [u8]>, value: Option<&'a [u8]>) {
    if value.is_some() {
        *slot = value;
    }
}

fn keep_first_number(slot: &mut Option<f64>, value: Option<&[u8]>) {
    if slot.is_none() {
        let number: Option<f64> =
            value.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse().ok());
        *slot = number.filter(|number| number.is_finite());
    }
}
