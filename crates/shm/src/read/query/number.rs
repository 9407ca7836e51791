//! Numbers in the log's fields and in queries.

/// Largest whole part of a number with a decimal point, Source: RFC 8941 §3.3.2.
const DECIMAL_WHOLE_MAX: i64 = 999_999_999_999;
/// Most digits before the point, Source: RFC 8941 §3.3.1.
const WHOLE_DIGITS_MAX: usize = 15;

/// A number as the log's fields hold them.
struct Number {
    negative: bool,
    whole: i64,
    /// Truncated, not rounded. Compat: the stock tools compare no further decimals.
    thousandths: i64,
}

impl Number {
    /// The number at the start of `text`, and the rest after it. Blanks may precede it and surround
    /// its point.
    fn read(text: &[u8]) -> Option<(Number, &[u8])> {
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = skip_blanks(text);
        let (negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, mut rest) = text.split_at(digits(text));
        if whole.len() > WHOLE_DIGITS_MAX {
            return None;
        }
        if !whole.is_empty() {
            rest = skip_blanks(rest);
        }
        let value = |digits: &[u8]| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        let mut number = Number { negative, whole: value(whole), thousandths: 0 };
        let Some(after) = rest.strip_prefix(b".") else {
            return (!whole.is_empty()).then_some((number, rest));
        };
        let (fraction, after) = after.split_at(digits(after));
        if number.whole > DECIMAL_WHOLE_MAX || whole.is_empty() && fraction.is_empty() {
            return None;
        }
        number.thousandths = value(&[fraction, b"000"].concat()[..3]);
        Some((number, skip_blanks(after)))
    }

    fn signed(&self, magnitude: i64) -> i64 {
        if self.negative { -magnitude } else { magnitude }
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..]
}

/// The whole part of the number at the start of `text`.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    Number::read(text).map(|(number, _)| number.signed(number.whole))
}

/// Thousandths of the number at the start of `text`.
pub(super) fn thousandths(text: &[u8]) -> Option<i64> {
    let (number, _) = Number::read(text)?;
    (number.whole <= DECIMAL_WHOLE_MAX).then(|| number.signed(number.whole * 1000 + number.thousandths))
}

/// Thousandths of `text` if it is a number and nothing else.
pub(super) fn whole_thousandths(text: &[u8]) -> Option<i64> {
    let (number, rest) = Number::read(text)?;
    rest.is_empty().then(|| number.signed(number.whole * 1000 + number.thousandths))
}
