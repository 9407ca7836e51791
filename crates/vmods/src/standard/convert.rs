//! std: conversions between types. Each takes exactly one source, by name or position, and a
//! fallback for failures.

use crate::arguments::Arguments;
use crate::call::done;
use crate::number::{self, NumberError};
use semantics::date::DateForms;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// The position of the one source among `places`.
///
/// # Errors
/// None or several were given.
fn source(name: &str, arguments: Arguments<'_>, places: &[usize]) -> Result<usize, Failure> {
    let mut given = places.iter().copied().filter(|place| arguments.is_given(*place));
    match (given.next(), given.next()) {
        (Some(place), None) => Ok(place),
        (None, _) => Err(Failure(format!("std.{name}: not enough arguments"))),
        (Some(_), Some(_)) => Err(Failure(format!("std.{name}: too many arguments"))),
    }
}

/// The converted value, else the fallback (the second argument), else a failure.
fn settle(name: &str, arguments: Arguments<'_>, converted: Result<Value, NumberError>) -> Result<Called, Failure> {
    match converted {
        Ok(value) => done(value),
        Err(_) if arguments.is_given(1) => done(arguments.value(1)),
        Err(error) => Err(Failure(format!("std.{name}: conversion failed{}", error.suffix()))),
    }
}

/// The text of the source, if it is set.
fn source_text<'a>(arguments: Arguments<'_>, scratch: &'a Scratch) -> Result<&'a [u8], NumberError> {
    let text = arguments.text(0);
    if text.is_set() { Ok(scratch.get(text)) } else { Err(NumberError::Other) }
}

/// `std.duration()`
pub(crate) fn duration(arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let converted = match source("duration", arguments, &[0, 2, 3])? {
        0 => source_text(arguments, scratch)
            .and_then(|text| number::duration(text).map(Value::Duration).ok_or(NumberError::Other)),
        2 => Ok(Value::Duration(arguments.real(2))),
        _ => Ok(Value::Duration(arguments.int(3) as f64)),
    };
    settle("duration", arguments, converted)
}

/// `std.bytes()`
pub(crate) fn bytes(arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let size = match source("bytes", arguments, &[0, 2, 3])? {
        0 => source_text(arguments, scratch).ok().and_then(number::bytes),
        // The largest double below 2^63; anything above is not a size.
        2 => Some(arguments.real(2).trunc()).filter(|real| (0.0..9.2e18).contains(real)).map(|real| real as i64),
        _ => Some(arguments.int(3)),
    };
    let converted = size.filter(|size| *size >= 0).map(Value::Bytes).ok_or(NumberError::Other);
    settle("bytes", arguments, converted)
}

/// `std.integer()`
pub(crate) fn integer(arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let place = source("integer", arguments, &[0, 2, 3, 4, 5, 6])?;
    let converted = match place {
        0 => source_text(arguments, scratch).and_then(number::integer),
        2 => Ok(i64::from(arguments.bool(2))),
        3 => Ok(arguments.int(3)),
        _ => number::truncate(arguments.real(place)).ok_or(NumberError::Other),
    };
    settle("integer", arguments, converted.map(Value::Int))
}

/// `std.real()`
pub(crate) fn real(arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let place = source("real", arguments, &[0, 2, 3, 4, 5, 6])?;
    let converted = match place {
        0 => source_text(arguments, scratch).and_then(number::real),
        2 | 4 => Ok(arguments.int(place) as f64),
        3 => Ok(f64::from(u8::from(arguments.bool(3)))),
        _ => Ok(arguments.real(place)),
    };
    settle("real", arguments, converted.map(Value::Real))
}

/// `std.time()`
pub(crate) fn time(dates: DateForms, arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let converted = match source("time", arguments, &[0, 2, 3])? {
        0 => source_text(arguments, scratch).and_then(|text| parse_time(text, dates).ok_or(NumberError::Other)),
        2 => Ok(arguments.real(2)),
        _ => Ok(arguments.int(3) as f64),
    };
    settle("time", arguments, converted.map(Value::Time))
}

/// A date, perhaps with blanks before it and spaces after it, or seconds since 1970; zero and
/// negative numbers are not a time.
fn parse_time(text: &[u8], forms: DateForms) -> Option<f64> {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    let date = semantics::date::parse(text[..end].trim_ascii_start(), forms);
    let seconds =
        date.or_else(|| number::real(text).ok()).or_else(|| number::integer(text).ok().map(|whole| whole as f64));
    seconds.filter(|seconds| *seconds > 0.0)
}

/// `std.real2integer()`
pub(crate) fn real2integer(arguments: Arguments<'_>) -> Value {
    number::truncate(arguments.real(0).round()).map_or(arguments.value(1), Value::Int)
}

/// `std.real2time()`: keeps the fraction.
pub(crate) fn real2time(arguments: Arguments<'_>) -> Value {
    let real = arguments.real(0);
    if real.is_finite() { Value::Time(real) } else { arguments.value(1) }
}

/// `std.time2integer()`
pub(crate) fn time2integer(arguments: Arguments<'_>) -> Value {
    number::truncate(arguments.real(0).round()).map_or(arguments.value(1), Value::Int)
}

/// `std.time2real()`
pub(crate) fn time2real(arguments: Arguments<'_>) -> Value {
    let time = arguments.real(0);
    if time.is_finite() { Value::Real(time) } else { arguments.value(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::Absent;

    fn time(arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
        super::time(DateForms::Exact, arguments, scratch)
    }

    fn check(
        function: fn(Arguments<'_>, &Scratch) -> Result<Called, Failure>,
        values: &[Value],
        expected: Result<Value, &str>,
    ) {
        let result = function(Arguments::new(values), &Scratch::new(0));
        let expected = expected.map(Called::Value).map_err(|text| Failure(text.to_owned()));
        assert_eq!(result, expected, "{values:?}");
    }

    fn with_text(
        text: &str,
        function: fn(Arguments<'_>, &Scratch) -> Result<Called, Failure>,
    ) -> Result<Called, Failure> {
        let mut scratch = Scratch::new(1 << 10);
        let text = scratch.put(text.as_bytes());
        function(Arguments::new(&[Value::Text(text)]), &scratch)
    }

    #[test]
    fn exactly_one_source_is_taken() {
        let (one, two) = (Value::Int(1), Value::Real(2.0));
        check(duration, &[Absent, Absent, Absent, one], Ok(Value::Duration(1.0)));
        check(duration, &[Absent, Absent, two, one], Err("std.duration: too many arguments"));
        check(duration, &[Absent, Value::Duration(3.0)], Err("std.duration: not enough arguments"));
        check(integer, &[Absent, one], Err("std.integer: not enough arguments"));
        check(time, &[Absent, Absent, two, one], Err("std.time: too many arguments"));
    }

    #[test]
    fn the_fallback_is_for_failures_only() {
        let unset = Value::Text(vcl_run::value::Text::UNSET);
        check(integer, &[unset, Value::Int(4)], Ok(Value::Int(4)));
        check(integer, &[unset], Err("std.integer: conversion failed"));
        check(bytes, &[Absent, Value::Bytes(5), Value::Real(-1.9)], Ok(Value::Bytes(5)));
        check(bytes, &[Absent, Absent, Value::Real(1e22)], Err("std.bytes: conversion failed"));
        check(
            integer,
            &[Absent, Absent, Absent, Absent, Absent, Value::Real(1e19)],
            Err("std.integer: conversion failed"),
        );
        assert_eq!(with_text("x", integer), Err(Failure("std.integer: conversion failed: Invalid number".into())));
        assert_eq!(with_text("x", bytes), Err(Failure("std.bytes: conversion failed".into())));
    }

    #[test]
    fn numbers_are_cut_toward_zero() {
        check(integer, &[Absent, Absent, Absent, Absent, Value::Duration(-1.9)], Ok(Value::Int(-1)));
        check(bytes, &[Absent, Absent, Value::Real(1.9)], Ok(Value::Bytes(1)));
        check(real, &[Absent, Absent, Absent, Value::Bool(true)], Ok(Value::Real(1.0)));
        check(real, &[Absent, Absent, Absent, Absent, Value::Bytes(5120)], Ok(Value::Real(5120.0)));
    }

    #[test]
    fn times_are_dates_or_seconds_but_not_zero() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", " 784111777", "784111777 ", "1994-11-06T08:49:37"] {
            assert_eq!(with_text(text, time), Ok(Called::Value(Value::Time(784_111_777.0))), "{text}");
        }
        assert_eq!(with_text("784111777.9", time), Ok(Called::Value(Value::Time(784_111_777.9))));
        for text in ["", "x", "0", "-5", "784111777.00x", "Thu, 01 Jan 1970 00:00:00 GMT"] {
            assert_eq!(with_text(text, time), Err(Failure("std.time: conversion failed".into())), "{text}");
        }
        check(time, &[Absent, Absent, Value::Real(-1.5)], Ok(Value::Time(-1.5)));
    }
}
