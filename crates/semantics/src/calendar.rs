//! The Gregorian calendar, and times as text in the formats of strftime(3).
//!
//! Names are those of the C locale; flags, widths and invalid conversions behave as in the GNU C
//! library. HTTP's own dates are in `date.rs`.

use message::date::{civil_from_days, days_from_civil};
use std::fmt::Write;

/// Longest width that a conversion may ask for.
const WIDTH_MAX: usize = 1024;
/// More bytes than any conversion that consists of others can produce.
const NESTED_BYTES_MAX: usize = 256;
/// Times beyond this are clamped; the years then have nine digits.
const SECONDS_MAX: f64 = 1e15;

/// Names of the days, from 0, Sunday.
pub(crate) const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
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

/// A time zone: its offset from UTC, and its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone<'a> {
    /// Seconds east of UTC.
    pub offset_seconds: i32,
    /// The text for `%Z`.
    pub name: &'a str,
}

impl Zone<'_> {
    /// UTC, by the name that the C library gives it.
    pub const UTC: Zone<'static> = Zone { offset_seconds: 0, name: "GMT" };
}

/// Formats the time of `seconds` since 1970 as strftime(3) does. A text longer than `limit_bytes`
/// may be cut short somewhere beyond that length. An unknown conversion is copied unchanged.
#[must_use]
pub fn strftime(seconds: f64, zone: Zone<'_>, format: &[u8], limit_bytes: usize) -> Vec<u8> {
    Moment::new(seconds, zone).text(format, limit_bytes)
}

/// A moment, split into its parts.
struct Moment<'a> {
    zone: Zone<'a>,
    /// Since 1970, in UTC; all other fields are in the zone.
    seconds: i64,
    days: i64,
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

impl<'a> Moment<'a> {
    fn new(seconds: f64, zone: Zone<'a>) -> Moment<'a> {
        let seconds = seconds.clamp(-SECONDS_MAX, SECONDS_MAX).floor() as i64;
        let shown = seconds + i64::from(zone.offset_seconds);
        let (days, of_day) = (shown.div_euclid(86_400), shown.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        Moment {
            zone,
            seconds,
            days,
            year,
            month: i64::from(month),
            day: i64::from(day),
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - days_from_civil(year, 1, 1),
        }
    }

    /// Year and week of ISO 8601: weeks begin on Monday, the first one holds January 4.
    fn iso_week(&self) -> (i64, i64) {
        let monday_based = (self.weekday + 6) % 7;
        let thursday = self.days - monday_based + 3;
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }

    fn hour_of_12(&self) -> i64 {
        (self.hour + 11) % 12 + 1
    }

    /// The formatted time; may be cut short beyond `limit_bytes`.
    fn text(&self, format: &[u8], limit_bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = format;
        while out.len() <= limit_bytes
            && let Some(percent) = rest.iter().position(|byte| *byte == b'%')
        {
            out.extend_from_slice(&rest[..percent]);
            rest = &rest[percent..];
            let used = conversion(self, rest, &mut out);
            rest = &rest[used..];
        }
        out.extend_from_slice(rest);
        out
    }
}

/// The flags and width of a conversion.
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

/// Writes the conversion at the start of `spec` and returns its length. An invalid one is copied
/// unchanged.
fn conversion(moment: &Moment<'_>, spec: &[u8], out: &mut Vec<u8>) -> usize {
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

fn write_conversion(moment: &Moment<'_>, letter: u8, style: Style, out: &mut Vec<u8>) -> bool {
    let (zone, (iso_year, iso_week)) = (moment.zone, moment.iso_week());
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
        b'z' => {
            let (sign, minutes) = if zone.offset_seconds < 0 {
                ('-', -zone.offset_seconds / 60)
            } else {
                ('+', zone.offset_seconds / 60)
            };
            padded(&format!("{sign}{:02}{:02}", minutes / 60, minutes % 60), style, b'0', out);
        }
        b'Z' if style.swap => name(&zone.name.to_ascii_lowercase(), Style { swap: false, ..style }, out),
        b'Z' => name(zone.name, style, out),
        b'%' => out.push(b'%'),
        _ => return false,
    }
    true
}

fn nested(moment: &Moment<'_>, format: &str, style: Style, out: &mut Vec<u8>) {
    let text = moment.text(format.as_bytes(), NESTED_BYTES_MAX);
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
        assert_eq!(
            String::from_utf8(strftime(seconds, Zone::UTC, format.as_bytes(), 1000)).unwrap(),
            expected,
            "{format}"
        );
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
        check(-31_556_200.0, "%F %j", "1968-12-31 366");
        check(-2_208_988_800.0, "%F %a", "1900-01-01 Mon");
        check(1_609_459_200.0, "%G-W%V-%u %F", "2020-W53-5 2021-01-01");
        check(1_704_067_200.0, "%G-W%V-%u %F", "2024-W01-1 2024-01-01");
        check(253_402_300_799.0, "%F", "9999-12-31");
    }

    #[test]
    fn a_long_format_is_given_up_when_it_has_made_enough() {
        let long = strftime(0.0, Zone::UTC, &b"%1000Y".repeat(1000), 5000);
        assert!((5001..5001 + WIDTH_MAX + 6000).contains(&long.len()), "{}", long.len());
    }

    #[test]
    fn no_time_is_too_far_off() {
        for seconds in [f64::MAX, f64::MIN, f64::INFINITY, f64::NAN, -1e14] {
            assert!(!strftime(seconds, Zone::UTC, b"%c %G %V", 1000).is_empty());
        }
    }

    #[test]
    fn a_zone_shifts_all_but_the_seconds_since_1970() {
        let shown = |offset_seconds, name| {
            let text = strftime(784_111_777.0, Zone { offset_seconds, name }, b"%F %T %a %j %s %z %Z %#Z", 1000);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(shown(-34_200, "MART"), "1994-11-05 23:19:37 Sat 309 784111777 -0930 MART mart");
        assert_eq!(shown(50_400, "LINT"), "1994-11-06 22:49:37 Sun 310 784111777 +1400 LINT lint");
    }
}
