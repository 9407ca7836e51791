//! Conversion between values of the language and their stored form, and checks of the values that
//! VCL sets.

use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

/// Bytes as a VCL string.
pub(super) fn text(bytes: &[u8], scratch: &mut Scratch) -> Value {
    Value::Text(scratch.put(bytes))
}

/// Formatted text as a VCL string.
pub(super) fn formatted(text: std::fmt::Arguments<'_>, scratch: &mut Scratch) -> Value {
    let start = scratch.begin();
    scratch.extend_fmt(text);
    Value::Text(scratch.end(start))
}

/// Bytes in hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8], scratch: &mut Scratch) -> Value {
    let start = scratch.begin();
    for byte in bytes {
        scratch.extend_fmt(format_args!("{byte:02x}"));
    }
    Value::Text(scratch.end(start))
}

/// A count as an INT.
pub(super) fn int(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A count as BYTES.
pub(super) fn size(bytes: u64) -> Value {
    Value::Bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// The bytes of a text or blob; empty for anything else.
pub(super) fn bytes_of(value: Value, scratch: &Scratch) -> &[u8] {
    match value {
        Value::Text(text) | Value::Blob(text) => scratch.get(text),
        _ => b"",
    }
}

/// The value of a BOOL.
pub(super) fn bool_of(value: Value) -> bool {
    value == Value::Bool(true)
}

/// Seconds of a DURATION (or TIME); 0 for anything else.
pub(super) fn seconds_of(value: Value) -> f64 {
    match value {
        Value::Duration(seconds) | Value::Time(seconds) | Value::Real(seconds) => seconds,
        _ => 0.0,
    }
}

/// Seconds of a time limit, which is never negative.
pub(super) fn limit_of(value: Value) -> f64 {
    seconds_of(value).max(0.0)
}

/// Checks a status number from VCL; `what` is the variable, e.g. `beresp.status`.
///
/// # Errors
/// When the number is negative, larger than 65535, or its last three digits are below 100.
pub(super) fn status_of(what: &str, value: Value) -> Result<u16, Failure> {
    let Value::Int(status) = value else { return Err(Failure(format!("{what} is not a number"))) };
    if status < 0 {
        return Err(Failure(format!("{what} ({status}) is negative")));
    }
    let Ok(short) = u16::try_from(status) else { return Err(Failure(format!("{what} ({status}) > 65535"))) };
    if short % 1000 < 100 {
        return Err(Failure(format!("illegal {what} ({status}) (..0##)")));
    }
    Ok(short)
}
