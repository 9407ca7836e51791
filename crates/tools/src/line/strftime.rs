//! Times in the formats of strftime(3), in C's default locale.
//!
//! Conversions unknown to C stay unchanged, flags and widths too; the modifiers for other locales
//! have no effect.

use crate::clock;

/// Supported conversions.
const CONVERSIONS: &str = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ";

/// The local time of `seconds` since 1970; `None` if it is out of the calendar's range.
pub(super) fn format(seconds: f64, format: &str) -> Option<String> {
    // The same format without conversions unknown to C.
    let mut known = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        known.push_str(&rest[..at]);
        let conversion = &rest[at..];
        let modified = conversion[1..].starts_with(['E', 'O']);
        let letter_at = if modified { 2 } else { 1 };
        let Some(letter) = conversion.get(letter_at..).and_then(|after| after.chars().next()) else {
            rest = conversion;
            break;
        };
        let end = letter_at + letter.len_utf8();
        match letter {
            '%' if !modified => known.push_str("%%"),
            letter if CONVERSIONS.contains(letter) => known.extend(['%', letter]),
            _ => known.push_str(&literal(&conversion[..end])),
        }
        rest = &conversion[end..];
    }
    known.push_str(&literal(rest));
    clock::local(seconds, &known)
}

fn literal(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    #[test]
    fn unknown_conversions_are_copied() {
        let shown = |format| super::format(1_700_000_000.9, format).unwrap();
        for text in ["%", "a%", "%E", "%Q", "%f|%.3f|%+|%v", "%é", "100"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("%Ey%%%n%s"), "23%\n1700000000");
    }
}
