//! What a line needs to know, gathered from a transaction's records.
//!
//! Of a fact that the log states more than once, the first or the last statement counts, as the stock 7.1 tool has it.

use shm::read::group::{Kind, Transaction};
use shm::read::query::{nth_field, strip_prefix};
use shm::read::record::Record;
use surface::tag::Tag;

use super::format::Format;

/// The facts, borrowed from the transaction. `None` means that the log doesn't say.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    pub is_backend: bool,
    /// The peer sent something that is no request.
    pub is_garbage: bool,
    pub vxid: u32,
    pub host: Option<&'a [u8]>,
    pub method: Option<&'a [u8]>,
    pub url: Option<&'a [u8]>,
    pub query: Option<&'a [u8]>,
    pub protocol: Option<&'a [u8]>,
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
    /// Reads a transaction; `None` when it was restarted, since its successor gets the line.
    pub fn gather(transaction: &'a Transaction, format: &Format) -> Option<Facts<'a>> {
        let mut facts = Facts {
            is_backend: transaction.kind == Kind::BackendRequest,
            vxid: transaction.vxid,
            request_headers: vec![None; format.request_headers.len()],
            response_headers: vec![None; format.response_headers.len()],
            log_values: vec![None; format.log_keys.len()],
            records: vec![None; format.records.len()],
            ..Facts::default()
        };
        let mut restarted = false;
        for record in transaction.records() {
            if let Some(tag) = record.tag() {
                facts.take(tag, &record, format, &mut restarted);
            }
        }
        (!restarted).then_some(facts)
    }

    fn take(&mut self, tag: Tag, record: &Record<'a>, format: &Format, restarted: &mut bool) {
        let text = record.text();
        match (tag, self.is_backend) {
            (Tag::ReqMethod, false) | (Tag::BereqMethod, true) => keep_first(&mut self.method, Some(text)),
            (Tag::ReqURL, false) | (Tag::BereqURL, true) => self.take_url(text),
            (Tag::ReqProtocol, false) | (Tag::BereqProtocol, true) => keep_first(&mut self.protocol, Some(text)),
            (Tag::RespStatus, false) | (Tag::BerespStatus, true) => self.status = Some(text),
            (Tag::ReqStart, false) => keep_first(&mut self.host, nth_field(text, 1)),
            (Tag::BackendOpen, true) => keep_last(&mut self.host, nth_field(text, 3)),
            (Tag::ReqHeader, false) | (Tag::BereqHeader, true) => self.take_request_header(text, format),
            (Tag::RespHeader, false) | (Tag::BerespHeader, true) => {
                for (name, value) in format.response_headers.iter().zip(&mut self.response_headers) {
                    keep_last(value, strip_prefix(text, name.as_bytes()));
                }
            }
            (Tag::Timestamp, _) => self.take_timestamp(text),
            (Tag::ReqAcct, false) | (Tag::BereqAcct, true) => {
                keep_first(&mut self.bytes_in, nth_field(text, 3));
                keep_first(&mut self.body_bytes, nth_field(text, 5));
                keep_first(&mut self.bytes_out, nth_field(text, 6));
            }
            (Tag::PipeAcct, false) => {
                keep_first(&mut self.bytes_in, nth_field(text, 3));
                keep_first(&mut self.bytes_out, nth_field(text, 4));
            }
            (Tag::HttpGarbage, _) => self.is_garbage = true,
            (Tag::VCLCall, _) => self.take_call(text),
            (Tag::VCLReturn, _) => match text {
                b"restart" => *restarted = true,
                b"pipe" => (self.hit_miss, self.handling) = (Some("miss"), Some("pipe")),
                _ => {}
            },
            (Tag::VCLLog, _) => {
                for (key, value) in format.log_keys.iter().zip(&mut self.log_values) {
                    keep_first(value, strip_prefix(text, key.as_bytes()));
                }
            }
            _ => {}
        }
        for (pattern, value) in format.records.iter().zip(&mut self.records) {
            if pattern.tag == tag && value.is_none() {
                let text = match &pattern.prefix {
                    Some(prefix) => strip_prefix(text, prefix.as_bytes()),
                    None => Some(text),
                };
                *value = match pattern.field {
                    Some(field) => text.and_then(|text| nth_field(text, field)),
                    None => text,
                };
            }
        }
    }

    fn take_url(&mut self, text: &'a [u8]) {
        if self.url.is_some() {
            return;
        }
        let end = text.iter().position(|byte| *byte == b'?').unwrap_or(text.len());
        self.url = Some(&text[..end]);
        self.query = Some(&text[end..]).filter(|query| !query.is_empty());
    }

    fn take_request_header(&mut self, text: &'a [u8], format: &Format) {
        for (name, value) in format.request_headers.iter().zip(&mut self.request_headers) {
            keep_last(value, strip_prefix(text, name.as_bytes()));
        }
        keep_first(&mut self.host_header, strip_prefix(text, b"host"));
        if let Some(value) = strip_prefix(text, b"authorization") {
            let basic = nth_field(value, 1).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"basic"));
            if basic {
                keep_first(&mut self.credentials, nth_field(value, 2));
            }
        }
    }

    fn take_timestamp(&mut self, text: &'a [u8]) {
        let Some((label, rest)) = text.iter().position(|byte| *byte == b':').map(|at| text.split_at(at)) else {
            return;
        };
        let rest = &rest[1..];
        match (label, self.is_backend) {
            (b"Start", _) => keep_first_number(&mut self.start, nth_field(rest, 1)),
            (b"Resp" | b"PipeSess", false) | (b"BerespBody", true) => {
                keep_first_number(&mut self.end, nth_field(rest, 1));
            }
            (b"Process", _) | (b"Beresp", true) => keep_first(&mut self.first_byte, nth_field(rest, 2)),
            _ => {}
        }
    }

    fn take_call(&mut self, text: &[u8]) {
        let said = match text {
            b"HIT" => ("hit", "hit"),
            b"MISS" => ("miss", "miss"),
            b"PASS" => ("miss", "pass"),
            b"SYNTH" => ("miss", "synth"),
            _ => return,
        };
        (self.hit_miss, self.handling) = (Some(said.0), Some(said.1));
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
        *slot = value.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse().ok());
    }
}
