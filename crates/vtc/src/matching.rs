//! Comparisons that several commands share: regular expressions and the operators of `expect`.

use pcre2::bytes::{Regex, RegexBuilder};

use crate::arguments::parse_number;
use crate::journal::Journal;
use crate::test::Outcome;

/// Replaces a missing header or field in a comparison.
pub const UNDEFINED: &[u8] = b"<undef>";

/// Compiles a regular expression, or fails the test.
///
/// # Errors
/// It is not a regular expression.
pub fn regex(journal: &Journal, text: &[u8]) -> Outcome<Regex> {
    let text = String::from_utf8_lossy(text);
    RegexBuilder::new().jit_if_available(true).build(&text).map_err(|error| {
        journal.fail(format!("Illegal regular expression \"{text}\": {}", shm::read::query::regex_error(&error)))
    })
}

/// True if a regular expression matches anywhere in a text; one that takes too long does not.
#[must_use]
pub fn occurs(regex: &Regex, text: &[u8]) -> bool {
    regex.is_match(text).unwrap_or(false)
}

/// One side of a comparison: as written in the script, and its value.
pub struct Side {
    /// Text in the script.
    pub written: Vec<u8>,
    /// The value; `None` for a missing header or field.
    pub value: Option<Vec<u8>>,
}

/// Executes `expect LEFT OPERATOR RIGHT`.
///
/// # Errors
/// It does not hold, or can't be evaluated: the test fails.
pub fn expect(journal: &Journal, left: &Side, operator: &str, right: &Side) -> Outcome {
    let left_value = left.value.as_deref().map_or(UNDEFINED, until_nul);
    let right_value = right.value.as_deref().map_or(UNDEFINED, until_nul);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let holds = match operator {
        "~" | "!~" => Some(occurs(&regex(journal, right_value)?, left_value) == (operator == "~")),
        "<" | "<=" | ">" | ">=" if left.value.is_none() || right.value.is_none() => Some(false),
        _ => holds(left_value, operator, right_value),
    };
    let text = format!("EXPECT {} ({}) {operator} \"{}\"", shown(&left.written), shown(left_value), shown(right_value));
    match holds {
        Some(true) => {
            journal.log(4, format!("{text} match"));
            Ok(())
        }
        Some(false) => Err(journal.fail(format!("{text} failed"))),
        None => Err(journal.fail(format!("{text}: there is no such operator"))),
    }
}

fn holds(left: &[u8], operator: &str, right: &[u8]) -> Option<bool> {
    let whole = || (leading_number(left), leading_number(right));
    let real = || Some((real_number(left)?, real_number(right)?));
    Some(match operator {
        "==" => left == right,
        "!=" => left != right,
        "-lt" => whole().0 < whole().1,
        "-le" => whole().0 <= whole().1,
        "-eq" => whole().0 == whole().1,
        "-ne" => whole().0 != whole().1,
        "-ge" => whole().0 >= whole().1,
        "-gt" => whole().0 > whole().1,
        // A text that is not a number is neither less nor greater than anything.
        "<" => real().is_some_and(|(left, right)| left < right),
        "<=" => real().is_some_and(|(left, right)| left <= right),
        ">" => real().is_some_and(|(left, right)| left > right),
        ">=" => real().is_some_and(|(left, right)| left >= right),
        _ => return None,
    })
}

/// A text in C ends at its first NUL, and scripts rely on that.
fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

/// The whole number at the start of a text; 0 if there is none.
fn leading_number(text: &[u8]) -> u64 {
    // No 64-bit number is longer.
    let text = String::from_utf8_lossy(&text[..text.len().min(64)]);
    let text = text.trim_start();
    let end = (0..=text.len()).rev().find(|end| text.is_char_boundary(*end) && parse_number(&text[..*end]).is_some());
    end.and_then(|end| parse_number(&text[..end])).unwrap_or(0)
}

fn real_number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Excludes forms that Rust would also parse: infinities and exponents.
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn operators_compare_texts_and_numbers() {
        let check = |left: &str, operator: &str, right: &str| holds(left.as_bytes(), operator, right.as_bytes());
        assert_eq!(check("200", "==", "200"), Some(true));
        assert_eq!(check("200", "==", "0200"), Some(false));
        assert_eq!(check("a", "!=", "b"), Some(true));
        assert_eq!(check("9", "<", "10.5"), Some(true));
        assert_eq!(check("9", ">=", "9.0"), Some(true));
        assert_eq!(check("x", "<", "10"), Some(false));
        assert_eq!(check("x", ">=", "10"), Some(false));
        assert_eq!(check("12ab", "-eq", "12"), Some(true));
        assert_eq!(check("0x10", "-gt", "15"), Some(true));
        assert_eq!(check("", "-eq", "0"), Some(true));
        assert_eq!(check("1", "=", "1"), None);
    }
}
