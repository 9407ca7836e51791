//! `--json`: a request as one JSON object on one line, UTF-8 whatever the log holds.
//!
//! All members are always present; facts missing in the log are `null`. A byte that is not UTF-8 is
//! shown as U+FFFD. With a format (`-F`, `-f`) the line is that template instead, which must yield
//! JSON.

use serde_json::Value;
use surface::legible;

use super::facts::Facts;
use super::format::Format;
use super::print::{self, Escapes};
use crate::clock;

/// The format that names the headers of an object.
pub(super) const FORMAT: &str = "%{Referer}i%{User-agent}i";

/// Appends the object, without its newline.
pub(super) fn line(facts: &Facts, out: &mut Vec<u8>) {
    let header = |index: usize| facts.request_headers.get(index).copied().flatten();
    let url = facts.url.map(|url| [url, facts.query.unwrap_or_default()].concat());
    let user = facts.credentials.and_then(print::user);
    let seconds =
        |number: f64| serde_json::Number::from_f64((number * 1e6).round() / 1e6).map_or(Value::Null, Value::from);
    let duration = match (facts.start, facts.end) {
        (Some(start), Some(end)) => seconds(end - start),
        _ => Value::Null,
    };
    let first_byte = facts.first_byte.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let members = [
        ("time", facts.start.map_or(Value::Null, time)),
        ("side", Value::from(if facts.is_backend { "b" } else { "c" })),
        ("vxid", Value::from(facts.vxid)),
        ("remote", text(facts.host)),
        ("user", text(user.as_deref())),
        ("method", text(facts.method)),
        ("host", text(facts.host_header)),
        ("url", text(url.as_deref())),
        ("protocol", text(facts.protocol)),
        ("status", integer(facts.status)),
        ("body_bytes", integer(facts.body_bytes)),
        ("received_bytes", integer(facts.bytes_in)),
        ("sent_bytes", integer(facts.bytes_out)),
        ("duration", duration),
        ("time_firstbyte", first_byte.map_or(Value::Null, seconds)),
        ("hitmiss", Value::from(facts.hit_miss)),
        ("handling", Value::from(facts.handling)),
        ("referer", text(header(0))),
        ("user_agent", text(header(1))),
    ];
    for (index, (name, value)) in members.iter().enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        let value = value.to_string();
        out.extend_from_slice(format!("{before}\"{name}\":{}", legible::json(&value)).as_bytes());
    }
    out.push(b'}');
}

/// Reports the error in a format whose lines would not be JSON. A value that may be text or missing
/// must be in quotes.
pub(super) fn check_template(format: &Format) -> Result<(), String> {
    let (text, number) = (Some(&b"x"[..]), Some(&b"1"[..]));
    let sample = Facts {
        // In JSON 14 is a number and 04 is not.
        start: Some(clock::with_zeros().unwrap_or(0.0)),
        first_byte: number,
        status: number,
        body_bytes: number,
        bytes_in: number,
        bytes_out: number,
        host: text,
        method: text,
        url: text,
        query: text,
        protocol: text,
        host_header: text,
        hit_miss: Some("miss"),
        handling: Some("miss"),
        request_headers: vec![text; format.request_headers.len()],
        response_headers: vec![text; format.response_headers.len()],
        log_values: vec![text; format.log_keys.len()],
        records: vec![text; format.records.len()],
        ..Facts::default()
    };
    let mut line = Vec::new();
    print::line(format, &sample, Escapes::StrictJson, &mut line);
    match serde_json::from_slice::<Value>(&line) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("--json: the lines of this format are no JSON: {error}")),
    }
}

fn text(value: Option<&[u8]>) -> Value {
    value.map_or(Value::Null, |value| Value::from(String::from_utf8_lossy(value)))
}

fn integer(value: Option<&[u8]>) -> Value {
    let number: Option<u64> = value.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    Value::from(number)
}

/// RFC 3339, in UTC, to the microsecond.
fn time(seconds: f64) -> Value {
    let microseconds = (seconds * 1e6).round() as i64;
    let (seconds, fraction) = (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    let text = clock::utc(seconds as f64, "%Y-%m-%dT%H:%M:%S");
    text.map_or(Value::Null, |text| Value::from(format!("{text}.{fraction:06}Z")))
}
