//! std: `std.strftime()`, as the C library formats a UTC time in its C locale.

use crate::arguments::Arguments;
use std::fmt::Write;
use vcl_run::value::{Scratch, Value};

/// Longest width that a conversion may ask for.
const WIDTH_MAX: usize = 1024;
/// More bytes than any conversion that is made of others has.
const NESTED_BYTES_MAX: usize = 256;
/// Times beyond are cut; the years then have nine digits.
const SECONDS_MAX: f64 = 1e15;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `std.strftime()`
pub(crate) fn strftime(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let format = arguments.text(1);
    if !format.is_set() {
        return Value::Text(format);
    }
    let text = format_time(arguments.real(0), scratch.get(format), scratch.left_bytes());
    Value::Text(scratch.put(&text))
}

/// A moment, taken apart.
struct Moment {
    seconds: i64,
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// From 0, Sunday.
    weekday: i64,
    /// From 0.
    day_of_year: i64,
}

impl Moment {
    fn new(seconds: f64) -> Moment {
        let seconds = seconds.clamp(-SECONDS_MAX, SECONDS_MAX).floor() as i64;
        let days = seconds.div_euclid(86_400);
        let of_day = seconds.rem_euclid(86_400);
        let (year, month, day) = date_of(days);
        Moment {
            seconds,
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - days_to(year),
        }
    }

    /// Year and week of ISO 8601: weeks begin on Monday, the first one holds January 4.
    fn iso_week(&self) -> (i64, i64) {
        let monday_based = (self.weekday + 6) % 7;
        let thursday = self.seconds.div_euclid(86_400) - monday_based + 3;
        let (year, _, _) = date_of(thursday);
        (year, (thursday - days_to(year)) / 7 + 1)
    }

    fn hour_of_12(&self) -> i64 {
        (self.hour + 11) % 12 + 1
    }
}

/// Days from 1970-01-01 to January 1 of a year.
fn days_to(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + (before.div_euclid(4) - 492) - (before.div_euclid(100) - 19) + (before.div_euclid(400) - 4)
}

/// Year, month and day of a day counted from 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    while days_to(year + 1) <= days {
        year += ((days - days_to(year)) / 366).max(1);
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut rest = days - days_to(year);
    for (month, length) in lengths.iter().enumerate() {
        if rest < *length {
            return (year, month as i64 + 1, rest + 1);
        }
        rest -= length;
    }
    (year, 12, 31)
}

/// How a conversion is to be written.
#[derive(Clone, Copy, Default)]
struct Style {
    /// `-`, `_` or `0`.
    padding: Option<u8>,
    /// `^`
    upper: bool,
    /// `#`
    swap: bool,
    width: Option<usize>,
}

/// What is written, or the start of it that is just longer than so many bytes.
fn format_time(seconds: f64, format: &[u8], limit_bytes: usize) -> Vec<u8> {
    let moment = Moment::new(seconds);
    let mut out = Vec::new();
    let mut rest = format;
    while out.len() <= limit_bytes
        && let Some(percent) = rest.iter().position(|byte| *byte == b'%')
    {
        out.extend_from_slice(&rest[..percent]);
        rest = &rest[percent..];
        let used = conversion(&moment, rest, &mut out);
        rest = &rest[used..];
    }
    out.extend_from_slice(rest);
    out
}

/// Writes the conversion at the start of `spec`; returns its length. What is none is written as it stands.
fn conversion(moment: &Moment, spec: &[u8], out: &mut Vec<u8>) -> usize {
    let mut style = Style::default();
    let mut at = 1;
    while let Some(flag) = spec.get(at) {
        match flag {
            b'-' | b'_' | b'0' => style.padding = Some(*flag),
            b'^' => style.upper = true,
            b'#' => style.swap = true,
            _ => break,
        }
        at += 1;
    }
    while let Some(digit) = spec.get(at).filter(|byte| byte.is_ascii_digit()) {
        style.width = Some((style.width.unwrap_or(0) * 10 + usize::from(digit - b'0')).min(WIDTH_MAX));
        at += 1;
    }
    if matches!(spec.get(at), Some(b'E' | b'O')) {
        at += 1;
    }
    let written = spec.get(at).is_some_and(|letter| write_conversion(moment, *letter, style, out));
    if written {
        return at + 1;
    }
    let used = (at + 1).min(spec.len());
    // An unknown letter may be the start of the next conversion.
    let used = if spec.get(at) == Some(&b'%') || at >= spec.len() { at } else { used };
    out.extend_from_slice(&spec[..used]);
    used
}

fn write_conversion(moment: &Moment, letter: u8, style: Style, out: &mut Vec<u8>) -> bool {
    let (iso_year, iso_week) = moment.iso_week();
    match letter {
        b'a' => name(&WEEKDAYS[moment.weekday as usize][..3], style, out),
        b'A' => name(WEEKDAYS[moment.weekday as usize], style, out),
        b'b' | b'h' => name(&MONTHS[moment.month as usize - 1][..3], style, out),
        b'B' => name(MONTHS[moment.month as usize - 1], style, out),
        b'c' => nested(moment, "%a %b %e %H:%M:%S %Y", style, out),
        b'C' => number(moment.year.div_euclid(100), 2, b'0', style, out),
        b'd' => number(moment.day, 2, b'0', style, out),
        b'D' | b'x' => nested(moment, "%m/%d/%y", style, out),
        b'e' => number(moment.day, 2, b'_', style, out),
        b'F' => nested(moment, "%Y-%m-%d", style, out),
        b'g' => number(iso_year.rem_euclid(100), 2, b'0', style, out),
        b'G' => number(iso_year, 1, b'0', style, out),
        b'H' => number(moment.hour, 2, b'0', style, out),
        b'I' => number(moment.hour_of_12(), 2, b'0', style, out),
        b'j' => number(moment.day_of_year + 1, 3, b'0', style, out),
        b'k' => number(moment.hour, 2, b'_', style, out),
        b'l' => number(moment.hour_of_12(), 2, b'_', style, out),
        b'm' => number(moment.month, 2, b'0', style, out),
        b'M' => number(moment.minute, 2, b'0', style, out),
        b'n' => out.push(b'\n'),
        b'p' if style.swap => name(if moment.hour < 12 { "am" } else { "pm" }, Style { swap: false, ..style }, out),
        b'p' => name(if moment.hour < 12 { "AM" } else { "PM" }, style, out),
        b'P' => name(if moment.hour < 12 { "am" } else { "pm" }, style, out),
        b'r' => nested(moment, "%I:%M:%S %p", style, out),
        b'R' => nested(moment, "%H:%M", style, out),
        b's' => number(moment.seconds, 1, b'0', style, out),
        b'S' => number(moment.second, 2, b'0', style, out),
        b't' => out.push(b'\t'),
        b'T' | b'X' => nested(moment, "%H:%M:%S", style, out),
        b'u' => number((moment.weekday + 6) % 7 + 1, 1, b'0', style, out),
        b'U' => number((moment.day_of_year + 7 - moment.weekday) / 7, 2, b'0', style, out),
        b'V' => number(iso_week, 2, b'0', style, out),
        b'w' => number(moment.weekday, 1, b'0', style, out),
        b'W' => number((moment.day_of_year + 7 - (moment.weekday + 6) % 7) / 7, 2, b'0', style, out),
        b'y' => number(moment.year.rem_euclid(100), 2, b'0', style, out),
        b'Y' => number(moment.year, 1, b'0', style, out),
        b'z' => padded("+0000", style, b'0', out),
        b'Z' if style.swap => name("gmt", Style { swap: false, ..style }, out),
        b'Z' => name("GMT", style, out),
        b'%' => out.push(b'%'),
        _ => return false,
    }
    true
}

fn nested(moment: &Moment, format: &str, style: Style, out: &mut Vec<u8>) {
    let text = format_time(moment.seconds as f64, format.as_bytes(), NESTED_BYTES_MAX);
    name(&String::from_utf8_lossy(&text), style, out);
}

fn name(text: &str, style: Style, out: &mut Vec<u8>) {
    if style.upper || style.swap {
        padded(&text.to_ascii_uppercase(), style, b'_', out);
    } else {
        padded(text, style, b'_', out);
    }
}

fn number(value: i64, digits: usize, padding: u8, style: Style, out: &mut Vec<u8>) {
    let padding = style.padding.unwrap_or(padding);
    let width = style.width.unwrap_or(digits);
    let mut text = String::new();
    let _ = match padding {
        b'-' => write!(text, "{value}"),
        b'_' => write!(text, "{value:width$}"),
        _ => write!(text, "{value:0width$}"),
    };
    out.extend_from_slice(text.as_bytes());
}

fn padded(text: &str, style: Style, padding: u8, out: &mut Vec<u8>) {
    let fill = if style.padding.unwrap_or(padding) == b'0' { b'0' } else { b' ' };
    let missing = style.width.unwrap_or(0).saturating_sub(text.len());
    out.extend(std::iter::repeat_n(fill, missing));
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: f64, format: &str, expected: &str) {
        assert_eq!(String::from_utf8(format_time(seconds, format.as_bytes(), 1000)).unwrap(), expected, "{format}");
    }

    #[test]
    fn every_conversion_is_that_of_the_c_library() {
        check(
            784_111_777.5,
            "%Y%m%dT%H%M%SZ %a %A %b %B %j %e %p %I %y %C %u %w %U %V %G %g %% %s %Z %z %c|%x|%X|%D|%F|%R|%T|%r|%h|%k|%l|%E|%Q",
            "19941106T084937Z Sun Sunday Nov November 310  6 AM 08 94 19 7 0 45 44 1994 94 % 784111777 GMT +0000 \
             Sun Nov  6 08:49:37 1994|11/06/94|08:49:37|11/06/94|1994-11-06|08:49|08:49:37|08:49:37 AM|Nov| 8| 8|%E|%Q",
        );
    }

    #[test]
    fn flags_and_widths_change_the_padding() {
        check(784_111_777.0, "%-d %_d %05d %^a %#Z %8Y %-m/%-e %_5H", "6  6 00006 SUN gmt 00001994 11/6     8");
        check(0.0, "%", "%");
        check(0.0, "", "");
        check(0.0, "100%", "100%");
        check(0.0, "%-", "%-");
    }

    #[test]
    fn dates_hold_over_leap_years_and_before_the_epoch() {
        check(951_782_400.0, "%F %j %a", "2000-02-29 060 Tue");
        check(4_107_542_400.0, "%F %j %a", "2100-03-01 060 Mon");
        check(-1.0, "%F %T %s", "1969-12-31 23:59:59 -1");
        check(-2_208_988_800.0, "%F %a", "1900-01-01 Mon");
        check(1_609_459_200.0, "%G-W%V-%u %F", "2020-W53-5 2021-01-01");
        check(1_704_067_200.0, "%G-W%V-%u %F", "2024-W01-1 2024-01-01");
        check(253_402_300_799.0, "%F", "9999-12-31");
    }

    #[test]
    fn a_long_format_is_given_up_when_it_has_made_enough() {
        let long = format_time(0.0, &b"%1000Y".repeat(1000), 5000);
        assert!((5001..5001 + WIDTH_MAX + 6000).contains(&long.len()), "{}", long.len());
    }

    #[test]
    fn no_time_is_too_far_off() {
        for seconds in [f64::MAX, f64::MIN, f64::INFINITY, f64::NAN, -1e14] {
            assert!(!format_time(seconds, b"%c %G %V", 1000).is_empty());
        }
    }
}
