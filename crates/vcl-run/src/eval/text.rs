//! Conversion of values to text.

use crate::host::Host;
use crate::link::LinkedProgram;
use crate::value::{Scratch, Text, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use surface::vcl::HttpObject;

/// The times that a date can express: from the first second of the year 0 up to, but not including,
/// the year 10000.
const FORMATABLE: std::ops::Range<f64> = -62_167_219_200.0..253_402_300_800.0;

/// Largest magnitude of whole numbers, numbers with a fraction and seconds that can be written.
/// Source: RFC 8941 §3.3.
const INTEGER_MAX: u64 = 999_999_999_999_999;
const REAL_MAX: f64 = 999_999_999_999.999;

/// Reason why a value has no string form: a number too large, a time too far away. `None` if it has
/// one. Compat: the messages of Varnish 7.1.
pub(super) fn unformatable(value: Value) -> Option<String> {
    match value {
        Value::Int(value) | Value::Bytes(value) if value.unsigned_abs() > INTEGER_MAX => {
            Some(format!("INT overflow converting to string ({value:X})"))
        }
        Value::Real(value) | Value::Duration(value) if value.is_nan() || value.abs() > REAL_MAX => {
            Some(format!("REAL overflow converting to string ({})", scientific(value)))
        }
        Value::Time(seconds) if !FORMATABLE.contains(&seconds) => Some("Unformatable VCL_TIME".to_owned()),
        _ => None,
    }
}

/// The number in the format of C's `%e`.
fn scientific(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let written = format!("{value:.6e}");
    match written.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => written,
    }
}

/// The string form of a value. Strings stay unchanged, unset ones unset.
pub(super) fn of<H: Host + ?Sized>(value: Value, program: &LinkedProgram, host: &mut H, scratch: &mut Scratch) -> Text {
    match value {
        Value::Text(text) => text,
        Value::Bool(value) => scratch.put(if value { b"true" } else { b"false" }),
        Value::Int(value) | Value::Bytes(value) => scratch.put(itoa::Buffer::new().format(value).as_bytes()),
        Value::Real(value) | Value::Duration(value) => formatted(scratch, format_args!("{value:.3}")),
        Value::Time(seconds) => {
            let mut date = [0; 29];
            semantics::date::format(seconds, &mut date);
            scratch.put(&date)
        }
        Value::Blob(blob) if scratch.check_room(blob.len().div_ceil(3) * 4 + 2).is_err() => {
            scratch.mark_overflowed();
            Text::EMPTY
        }
        Value::Blob(blob) => {
            let encoded = base64(scratch.get(blob));
            scratch.put(encoded.as_bytes())
        }
        // An IPv4-mapped IPv6 address is written as IPv4. Compat: Varnish 7.1.
        Value::Ip(Some((address, _))) => formatted(scratch, format_args!("{}", address.to_canonical())),
        Value::Backend(Some(director)) => scratch.put(host.director_name(director).as_bytes()),
        Value::Stevedore(Some(storage)) => {
            formatted(scratch, format_args!("storage.{}", host.storage_name(Some(storage))))
        }
        Value::Acl(Some(acl)) => named(scratch, program.program().acls.get(acl as usize).map(|acl| acl.name.as_str())),
        Value::Probe(Some(probe)) => {
            named(scratch, program.program().probes.get(probe as usize).map(|probe| probe.name.as_str()))
        }
        Value::Sub(sub) => named(scratch, program.program().subs.get(sub as usize).map(|sub| sub.name.as_str())),
        Value::Regex(regex) => named(scratch, program.program().regexes.get(regex as usize).map(String::as_str)),
        Value::Header(http, name) => of_header(http, program.header_name(name), host, scratch),
        Value::NamedHeader(http, name) => {
            let name = String::from_utf8_lossy(scratch.get(name)).into_owned();
            of_header(http, &name, host, scratch)
        }
        Value::Ip(None)
        | Value::Backend(None)
        | Value::Stevedore(None)
        | Value::Acl(None)
        | Value::Probe(None)
        | Value::Http(_)
        | Value::Void
        | Value::Absent => Text::UNSET,
    }
}

/// The first header with that name; unset if there is none.
#[inline]
pub(super) fn of_header<H: Host + ?Sized>(http: HttpObject, name: &str, host: &mut H, scratch: &mut Scratch) -> Text {
    host.header(http, name).map_or(Text::UNSET, |value| scratch.put(value))
}

fn named(scratch: &mut Scratch, name: Option<&str>) -> Text {
    scratch.put(name.unwrap_or("").as_bytes())
}

fn formatted(scratch: &mut Scratch, arguments: std::fmt::Arguments<'_>) -> Text {
    let start = scratch.begin();
    scratch.extend_fmt(arguments);
    scratch.end(start)
}

/// Concatenates strings; unset if all of them are.
pub(super) fn join(parts: &[Value], scratch: &mut Scratch) -> Text {
    let set = |part: &Value| matches!(part, Value::Text(text) if text.is_set());
    let full = |part: &Value| matches!(part, Value::Text(text) if !text.is_empty());
    let mut filled = parts.iter().filter(|part| full(part));
    match (filled.next(), filled.next()) {
        (None, _) => return if parts.iter().any(set) { Text::EMPTY } else { Text::UNSET },
        (Some(Value::Text(only)), None) => return *only,
        _ => {}
    }
    let start = scratch.begin();
    let mut first_bytes = 0;
    for part in parts {
        if let Value::Text(text) = part {
            if first_bytes == 0 {
                first_bytes = text.len();
            }
            scratch.extend_text(*text);
        }
    }
    let whole = scratch.end(start);
    scratch.note_joined(whole, first_bytes);
    whole
}

/// `:…:`, the form of a BLOB in VCL.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4 + 2);
    out.push(':');
    STANDARD.encode_string(bytes, &mut out);
    out.push(':');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_of_four_digit_years_have_no_text() {
        let has_text = |seconds| unformatable(Value::Time(seconds)).is_none();
        assert!(has_text(253_402_300_799.5) && has_text(-62_167_219_200.0));
        assert!(!has_text(253_402_300_800.0) && !has_text(-62_167_219_201.0));
        assert!(!has_text(f64::INFINITY) && !has_text(f64::NAN));
    }

    #[test]
    fn numbers_of_more_than_fifteen_digits_have_no_text() {
        let why = |value| unformatable(value).unwrap_or_default();
        assert_eq!(why(Value::Int(999_999_999_999_999)), "");
        assert_eq!(why(Value::Int(1_000_000_000_000_000)), "INT overflow converting to string (38D7EA4C68000)");
        assert_eq!(why(Value::Int(-1_000_000_000_000_000)), "INT overflow converting to string (FFFC72815B398000)");
        assert_eq!(why(Value::Bytes(1 << 50)), "INT overflow converting to string (4000000000000)");
        assert_eq!(why(Value::Real(-999_999_999_999.999)), "");
        assert_eq!(why(Value::Real(1e13)), "REAL overflow converting to string (1.000000e+13)");
        assert_eq!(why(Value::Duration(-3.1536e19)), "REAL overflow converting to string (-3.153600e+19)");
        assert_eq!(why(Value::Duration(f64::INFINITY)), "REAL overflow converting to string (inf)");
        assert_eq!(why(Value::Real(f64::NAN)), "REAL overflow converting to string (nan)");
    }

    #[test]
    fn blobs_read_as_written_in_vcl() {
        assert_eq!(base64(b""), "::");
        assert_eq!(base64(b"a"), ":YQ==:");
        assert_eq!(base64(b"ab"), ":YWI=:");
        assert_eq!(base64(b"abc\xff"), ":YWJj/w==:");
    }

    #[test]
    fn joining_copies_only_what_must_be_copied() {
        let mut scratch = Scratch::new(100);
        let a = scratch.put(b"a");
        let used = scratch.used_bytes();
        assert_eq!(join(&[Value::Text(Text::UNSET), Value::Text(a), Value::Text(Text::EMPTY)], &mut scratch), a);
        assert_eq!(scratch.used_bytes(), used);
        assert_eq!(join(&[Value::Text(Text::UNSET)], &mut scratch), Text::UNSET);
        assert_eq!(join(&[Value::Text(Text::UNSET), Value::Text(Text::EMPTY)], &mut scratch), Text::EMPTY);
        let both = join(&[Value::Text(a), Value::Text(a)], &mut scratch);
        assert_eq!(scratch.get(both), b"aa");
    }
}
