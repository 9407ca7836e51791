//! Transactions of a request to spans.
//!
//! The client's request is a server span; each restart and each fragment is an internal span below
//! the one that caused it; each attempt of a fetch is a client span below its request. Times are
//! those of the `Timestamp` records. Names of attributes are OpenTelemetry's semantic conventions
//! for HTTP, and `copal.…`. *Invariant:* no header but `Host` becomes an attribute; values of query
//! arguments are masked unless they are to be kept; text is cut.

use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, status::StatusCode};
use semantics::trace_context::TraceParent;
use shm::read::transaction::{Kind, Reason as Origin, Transaction};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use surface::limits::{TRACE_REASONS_MAX, TRACE_SPANS_MAX, TRACE_TEXT_BYTES_MAX};
use surface::reason::{self, DETAILS, Handling, Reason};
use surface::tag::Tag;

/// A request with everything below it.
pub(super) struct Trace {
    /// The spans, that of the request first.
    pub spans: Vec<Span>,
    /// Spans beyond the limit.
    pub cut: u64,
    /// The trace.
    pub id: u128,
    /// The caller has recorded the trace.
    pub is_sampled: bool,
    /// A response is an error, or a fetch has failed.
    pub has_error: bool,
    /// Duration of the request, in nanoseconds.
    pub nanoseconds: u64,
    /// Words of all reasons and handlings.
    pub words: Vec<&'static str>,
}

/// The facts of one transaction.
#[derive(Default)]
struct Facts<'a> {
    start: f64,
    end: f64,
    method: Option<&'a [u8]>,
    url: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
    status: Option<u16>,
    host: Option<&'a [u8]>,
    vcl: Option<&'a [u8]>,
    backend: Option<&'a [u8]>,
    ttl: Option<f64>,
    age: Option<f64>,
    reasons: Vec<Reason>,
    vcl_line: Option<&'a [u8]>,
    failure: Option<&'a [u8]>,
    is_hit: bool,
    /// The last `traceparent`.
    context: Option<TraceParent>,
    /// Trace context of the request itself, and its caller.
    own: Option<(TraceParent, Option<u64>)>,
}

impl<'a> Facts<'a> {
    fn gather(transaction: &'a Transaction) -> Facts<'a> {
        let mut facts = Facts::default();
        for record in transaction.records() {
            if let Some(tag) = record.tag() {
                facts.take(tag, record.text());
            }
        }
        facts
    }

    fn take(&mut self, tag: Tag, text: &'a [u8]) {
        match tag {
            Tag::Timestamp => {
                if let Some(time) = field(text, 1).and_then(number).filter(|time| *time > 0.0) {
                    self.start = if self.start == 0.0 { time } else { self.start };
                    self.end = self.end.max(time);
                }
            }
            Tag::ReqMethod | Tag::BereqMethod => _ = self.method.get_or_insert(text),
            Tag::ReqURL | Tag::BereqURL => _ = self.url.get_or_insert(text),
            Tag::ReqProtocol | Tag::BereqProtocol => self.protocol = Some(text),
            Tag::RespStatus | Tag::BerespStatus => {
                self.status = std::str::from_utf8(text).ok().and_then(|it| it.parse().ok())
            }
            Tag::ReqHeader | Tag::BereqHeader => match header(text) {
                Some((name, value)) if name.eq_ignore_ascii_case(b"host") => _ = self.host.get_or_insert(value),
                Some((name, value)) if name.eq_ignore_ascii_case(b"traceparent") => {
                    self.context = TraceParent::parse(value)
                }
                _ => {}
            },
            Tag::RespHeader => {
                if let Some((_, value)) = header(text).filter(|(name, _)| name.eq_ignore_ascii_case(b"age")) {
                    self.age = number(value);
                }
            }
            Tag::VCLUse => self.vcl = field(text, 0),
            Tag::BackendOpen => self.backend = field(text, 1),
            Tag::Hit => (self.is_hit, self.ttl) = (true, field(text, 1).and_then(number)),
            Tag::TTL => self.ttl = field(text, 1).and_then(number).or(self.ttl),
            Tag::FetchError => self.failure = Some(text),
            Tag::Witness => self.take_reason(text),
            _ => {}
        }
    }

    fn take_reason(&mut self, text: &'a [u8]) {
        if let Some(text) = text.strip_prefix(reason::TRACE.as_bytes()) {
            let own = field(text, 0).and_then(TraceParent::parse);
            let caller = field(text, 1).and_then(|text| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok());
            self.own = own.map(|own| (own, caller));
        } else if let Some(text) = text.strip_prefix(reason::RECORD.as_bytes()) {
            let word = field(text, 0).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default();
            if let Some(found) = Reason::from_word(word).filter(|_| self.reasons.len() < TRACE_REASONS_MAX) {
                self.reasons.push(found);
                self.vcl_line = detail(text, "at").or(self.vcl_line);
            }
        }
    }

    fn handling(&self) -> Handling {
        let last = self.reasons.iter().rev().find_map(|reason| reason.row().handling);
        last.unwrap_or(if self.is_hit { Handling::Hit } else { Handling::Answer })
    }

    fn is_error(&self) -> bool {
        self.status.is_some_and(|status| status >= 500) || self.failure.is_some()
    }
}

impl Trace {
    /// The spans of a group; `None` if it has no transaction that becomes one.
    pub fn of(group: &[Transaction], keeps_query: bool) -> Option<Trace> {
        let first = group.first()?;
        let facts = Facts::gather(first);
        let (id, caller, flags) = match (&facts.own, facts.context) {
            (Some((own, caller)), _) => (own.trace, *caller, own.flags),
            (None, Some(context)) => (context.trace, Some(context.parent), context.flags),
            (None, None) => (made_up_trace(first, &facts), None, 0),
        };
        let nanoseconds = nanoseconds(facts.end).saturating_sub(nanoseconds(facts.start));
        let mut trace = Trace {
            spans: Vec::new(),
            cut: 0,
            id,
            is_sampled: flags & semantics::trace_context::SAMPLED != 0,
            has_error: false,
            nanoseconds,
            words: Vec::new(),
        };
        let mut ids: HashMap<u64, u64> = HashMap::new();
        for transaction in group.iter().filter(|one| matches!(one.kind, Kind::Request | Kind::BackendRequest)) {
            let facts = Facts::gather(transaction);
            trace.has_error |= facts.is_error();
            trace.words.extend(facts.reasons.iter().map(|reason| reason.row().word));
            trace.words.push(facts.handling().word());
            if trace.spans.len() == TRACE_SPANS_MAX {
                trace.cut += 1;
                continue;
            }
            let parent = ids.get(&transaction.parent).copied().or(if trace.spans.is_empty() { caller } else { None });
            let span = span_id(transaction, &facts);
            ids.insert(transaction.vxid, span);
            trace.spans.push(made(transaction, &facts, (id, span, parent), keeps_query));
        }
        (!trace.spans.is_empty()).then_some(trace)
    }
}

/// The id of a span: that in the header that the origin gets, or that of the request's own record.
fn span_id(transaction: &Transaction, facts: &Facts<'_>) -> u64 {
    match (transaction.kind, &facts.own, facts.context) {
        (Kind::Request, Some((own, _)), _) => own.parent,
        (Kind::BackendRequest, _, Some(context)) => context.parent,
        _ => RandomState::new().hash_one((transaction.vxid, facts.start.to_bits())).max(1),
    }
}

/// A trace of its own.
fn made_up_trace(transaction: &Transaction, facts: &Facts<'_>) -> u128 {
    let half = || u128::from(RandomState::new().hash_one((transaction.vxid, facts.start.to_bits())));
    (half() << 64 | half()).max(1)
}

fn made(
    transaction: &Transaction,
    facts: &Facts<'_>,
    (trace, span, parent): (u128, u64, Option<u64>),
    keeps_query: bool,
) -> Span {
    let kind = match (transaction.kind, transaction.reason) {
        (Kind::BackendRequest, _) => SpanKind::Client,
        (_, Origin::Esi | Origin::Restart) => SpanKind::Internal,
        _ => SpanKind::Server,
    };
    let method = facts.method.map(known_method);
    let status = facts
        .is_error()
        .then(|| Status { code: StatusCode::Error as i32, message: facts.failure.map(shown).unwrap_or_default() });
    Span {
        trace_id: trace.to_be_bytes().to_vec(),
        span_id: span.to_be_bytes().to_vec(),
        parent_span_id: parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        name: method.unwrap_or("HTTP").to_owned(),
        kind: kind as i32,
        start_time_unix_nano: nanoseconds(facts.start),
        end_time_unix_nano: nanoseconds(facts.end),
        attributes: attributes(transaction, facts, method, keeps_query),
        status,
        ..Span::default()
    }
}

fn attributes(transaction: &Transaction, facts: &Facts<'_>, method: Option<&str>, keeps_query: bool) -> Vec<KeyValue> {
    let mut all = Vec::new();
    let mut add = |key: &str, value: Option<Value>| {
        let value = value.map(|value| AnyValue { value: Some(value) });
        all.extend(value.map(|value| KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }));
    };
    let text = |text: &str| Some(Value::StringValue(text.to_owned()));
    let bytes = |bytes: Option<&[u8]>| bytes.map(|bytes| Value::StringValue(shown(bytes)));
    add("http.request.method", method.and_then(text));
    if let Some(url) = facts.url {
        let end = url.iter().position(|byte| *byte == b'?').unwrap_or(url.len());
        add("url.path", bytes(Some(&url[..end])));
        let query = url.get(end + 1..).filter(|query| !query.is_empty());
        let query = query.map(|query| if keeps_query { shown(query) } else { masked(query) });
        add("url.query", query.map(Value::StringValue));
    }
    add("server.address", bytes(facts.host));
    let version = facts.protocol.and_then(|protocol| protocol.strip_prefix(b"HTTP/"));
    add(
        "network.protocol.version",
        bytes(version.map(|version| version.strip_suffix(b".0").filter(|it| *it != b"1").unwrap_or(version))),
    );
    add("http.response.status_code", facts.status.map(|status| Value::IntValue(i64::from(status))));
    add("copal.vxid", Some(Value::IntValue(i64::try_from(transaction.vxid).unwrap_or(i64::MAX))));
    add("copal.vcl", bytes(facts.vcl));
    add("copal.backend", bytes(facts.backend));
    if transaction.kind == Kind::Request {
        add("copal.cache.result", text(facts.handling().word()));
    }
    add("copal.cache.ttl", facts.ttl.map(Value::DoubleValue));
    add("copal.cache.age", facts.age.map(Value::DoubleValue));
    if !facts.reasons.is_empty() {
        let words = facts.reasons.iter().map(|reason| AnyValue { value: text(reason.row().word) });
        add("copal.why.reason", Some(Value::ArrayValue(ArrayValue { values: words.collect() })));
    }
    add("copal.why.vcl_line", bytes(facts.vcl_line));
    all
}

/// A method that HTTP defines, or `_OTHER`. Source: OpenTelemetry, semantic conventions for HTTP.
fn known_method(method: &[u8]) -> &'static str {
    const KNOWN: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];
    KNOWN.into_iter().find(|known| known.as_bytes() == method).unwrap_or("_OTHER")
}

/// The names of query arguments, with their values masked.
fn masked(query: &[u8]) -> String {
    let pairs = query[..query.len().min(TRACE_TEXT_BYTES_MAX)].split(|byte| *byte == b'&');
    let names = pairs.map(|pair| match pair.iter().position(|byte| *byte == b'=') {
        Some(end) => format!("{}=*", shown(&pair[..end])),
        // A word without a value can be anything, such as a token.
        None => "*".to_owned(),
    });
    names.collect::<Vec<_>>().join("&")
}

/// Text as an attribute has it.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(TRACE_TEXT_BYTES_MAX)]).into_owned()
}

fn nanoseconds(seconds: f64) -> u64 {
    // In two steps, as a float has no room for both.
    let whole = seconds.trunc();
    (whole as u64).saturating_mul(1_000_000_000).saturating_add(((seconds - whole) * 1e9) as u64)
}

fn field(text: &[u8], place: usize) -> Option<&[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(place)
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn header(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().position(|byte| *byte == b':')?;
    Some((&text[..colon], text[colon + 1..].trim_ascii()))
}

/// The value of a detail of a reason: it extends to the next detail.
fn detail<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let find = |text: &[u8], name: &str| {
        let wanted = format!(" {name}=").into_bytes();
        text.windows(wanted.len()).position(|found| found == wanted)
    };
    let rest = &text[find(text, name)? + name.len() + 2..];
    let end = DETAILS.iter().filter_map(|next| find(rest, next)).min().unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_query_arguments_are_masked() {
        assert_eq!(masked(b"token=secret&a=1&secret"), "token=*&a=*&*");
        assert!(!masked(&[b'x'; 1 << 20]).contains('x'));
    }

    #[test]
    fn details_extend_to_the_next_one() {
        assert_eq!(detail(b"pass at=boot.vcl:12 in=vcl_recv", "at"), Some(&b"boot.vcl:12"[..]));
        assert_eq!(detail(b"pass at=a b:1", "at"), Some(&b"a b:1"[..]));
        assert_eq!(detail(b"pass in=x", "at"), None);
    }

    #[test]
    fn times_keep_their_microseconds() {
        assert_eq!(nanoseconds(1_700_000_000.25), 1_700_000_000_250_000_000);
        assert_eq!(nanoseconds(-1.0), 0);
    }

    #[test]
    fn unknown_methods_are_one_value() {
        assert_eq!([&b"GET"[..], b"get", b"<b>"].map(known_method), ["GET", "_OTHER", "_OTHER"]);
    }
}
