//! Times in the formats of strftime(3), as C has them in its own locale.
//!
//! What C does not know stays as it was written, and the modifiers of other locales change nothing. Known difference: `%Z`
//! is the offset from UTC, since the name of the time zone is not to be had here; it is `UTC` where the offset is none.

use std::fmt::Write as _;

use chrono::{DateTime, Local, Offset};

/// Conversions that mean the same here and in C.
const COMMON: &str = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYz";

/// The local time of `seconds` since 1970; `None` when it is beyond the calendar.
pub(super) fn format(seconds: f64, format: &str) -> Option<String> {
    let time = DateTime::from_timestamp(seconds.floor() as i64, 0)?.with_timezone(&Local);
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let conversion = &rest[at..];
        let modified = conversion[1..].starts_with(['E', 'O']);
        let letter_at = if modified { 2 } else { 1 };
        let Some(letter) = conversion.get(letter_at..).and_then(|after| after.chars().next()) else {
            rest = conversion;
            break;
        };
        let end = letter_at + letter.len_utf8();
        match letter {
            '%' if !modified => text.push('%'),
            'Z' if time.offset().fix().local_minus_utc() == 0 => text.push_str("UTC"),
            'Z' => write!(text, "{}", time.format("%z")).ok()?,
            letter if COMMON.contains(letter) => write!(text, "{}", time.format(&format!("%{letter}"))).ok()?,
            _ => text.push_str(&conversion[..end]),
        }
        rest = &conversion[end..];
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_c_does_not_know_stays() {
        let shown = |format| super::format(1_700_000_000.9, format).unwrap();
        for text in ["%", "a%", "%E", "%Q", "%f|%.3f|%+|%v", "%é", "100"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("%Ey%%%n%s"), "23%\n1700000000");
    }
}
