//! Parsing of numbers, durations and sizes in texts for VCL functions.
//!
//! Compat: limits and oddities as observed in Varnish 7.1.1: at most 15 digits in a whole number,
//! and 12 before the point in a REAL; decimals after the third are ignored; blanks around the
//! number are allowed, a plus sign is not.

/// The most digits of a whole number.
const DIGITS_MAX: usize = 15;
/// The most digits of a REAL before the point.
const REAL_DIGITS_MAX: usize = 12;
/// Sizes from here on are refused, in bytes: below it, a double is exact.
const BYTES_LIMIT: u64 = 1 << 53;

/// Reason why a text is not a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberError {
    /// The text does not begin with a number.
    Invalid,
    /// The number has too many digits.
    TooManyDigits,
    /// Something follows the number, or it is not the expected kind of number.
    Other,
}

impl NumberError {
    /// The text to add to `conversion failed`.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            NumberError::Invalid => ": Invalid number",
            NumberError::TooManyDigits => ": Too many digits",
            NumberError::Other => "",
        }
    }
}

/// A number as written: whole part and thousandths.
struct Number {
    negative: bool,
    whole: u64,
    thousandths: u64,
    whole_digits: usize,
}

impl Number {
    fn real(&self) -> f64 {
        let value = match self.thousandths {
            0 => self.whole as f64,
            // At most 15 digits, so this is exact before the division.
            thousandths => (self.whole * 1000 + thousandths) as f64 / 1000.0,
        };
        if self.negative { -value } else { value }
    }
}

/// Reads the number at the start; also returns the text after it, without blanks.
fn read(bytes: &[u8]) -> Result<(Number, &[u8]), NumberError> {
    let bytes = bytes.trim_ascii();
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    let whole_digits = digits(bytes);
    let (whole_text, mut rest) = bytes.split_at(whole_digits);
    let mut thousandths = 0;
    let mut decimals = 0;
    if let [b'.', after @ ..] = rest {
        decimals = digits(after);
        thousandths = thousandths_of(&after[..decimals]);
        rest = &after[decimals..];
    }
    if whole_digits == 0 && decimals == 0 {
        return Err(NumberError::Invalid);
    }
    let has_point = rest.len() < bytes.len() - whole_digits;
    if whole_digits > DIGITS_MAX || has_point && whole_digits > REAL_DIGITS_MAX {
        return Err(NumberError::TooManyDigits);
    }
    let whole = whole_text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Ok((Number { negative, whole, thousandths, whole_digits }, rest.trim_ascii_start()))
}

/// The first three decimals as a whole number.
fn thousandths_of(decimals: &[u8]) -> u64 {
    decimals.iter().chain(b"000").take(3).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// A whole number; decimals must be zero.
///
/// # Errors
/// See [`NumberError`].
pub fn integer(bytes: &[u8]) -> Result<i64, NumberError> {
    let (number, rest) = read(bytes)?;
    if !rest.is_empty() || number.thousandths != 0 {
        return Err(NumberError::Other);
    }
    let value = number.whole as i64;
    Ok(if number.negative { -value } else { value })
}

/// A real number.
///
/// # Errors
/// See [`NumberError`].
pub fn real(bytes: &[u8]) -> Result<f64, NumberError> {
    let (number, rest) = read(bytes)?;
    if number.whole_digits > REAL_DIGITS_MAX {
        return Err(NumberError::TooManyDigits);
    }
    if rest.is_empty() { Ok(number.real()) } else { Err(NumberError::Other) }
}

/// A number with a unit of time, in seconds.
#[must_use]
pub fn duration(bytes: &[u8]) -> Option<f64> {
    let (number, unit) = read(bytes).ok()?;
    if number.whole_digits > REAL_DIGITS_MAX {
        return None;
    }
    let seconds = match unit {
        b"ms" => return Some(number.real() / 1000.0),
        b"s" => 1.0,
        b"m" => 60.0,
        b"h" => 3600.0,
        b"d" => 86_400.0,
        b"w" => 7.0 * 86_400.0,
        b"y" => 365.0 * 86_400.0,
        _ => return None,
    };
    Some(number.real() * seconds)
}

/// A size with or without a unit, in bytes. Negative sizes are refused; `-0` is zero.
#[must_use]
pub fn bytes(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let is_negative = text.starts_with(b"-");
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole_digits = digits(text);
    let (whole, mut rest) = text.split_at(whole_digits);
    if whole.is_empty() || whole_digits > DIGITS_MAX {
        return None;
    }
    let whole = whole.iter().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
    let mut thousandths = 0;
    if let [b'.', after @ ..] = rest {
        let decimals = digits(after);
        if !(1..=3).contains(&decimals) {
            return None;
        }
        thousandths = thousandths_of(&after[..decimals]);
        rest = &after[decimals..];
    }
    let shift = match rest.trim_ascii_start().to_ascii_lowercase().as_slice() {
        b"" | b"b" => 0,
        b"k" | b"kb" => 10,
        b"m" | b"mb" => 20,
        b"g" | b"gb" => 30,
        b"t" | b"tb" => 40,
        b"p" | b"pb" => 50,
        _ => return None,
    };
    if shift == 0 && thousandths != 0 {
        return None;
    }
    let value = ((u128::from(whole) * 1000 + u128::from(thousandths)) << shift) / 1000;
    i64::try_from(value).ok().filter(|value| (*value as u64) < BYTES_LIMIT && (*value == 0 || !is_negative))
}

/// A REAL as a whole number, rounded toward zero; `None` if an INT can't hold it.
#[must_use]
pub fn truncate(real: f64) -> Option<i64> {
    let whole = real.trunc();
    (whole.abs() < 1e15).then_some(whole as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        for (text, expected) in [
            ("10", Ok(10)),
            ("-10", Ok(-10)),
            (" 10", Ok(10)),
            ("10\t", Ok(10)),
            ("00012", Ok(12)),
            ("-0", Ok(0)),
            ("1.0", Ok(1)),
            ("999999999999999", Ok(999_999_999_999_999)),
            ("1000000000000000", Err(NumberError::TooManyDigits)),
            ("0000000000000000000000012", Err(NumberError::TooManyDigits)),
            ("1.5", Err(NumberError::Other)),
            ("10x", Err(NumberError::Other)),
            ("1e3", Err(NumberError::Other)),
            ("0x10", Err(NumberError::Other)),
            ("1 2", Err(NumberError::Other)),
            ("+10", Err(NumberError::Invalid)),
            ("- 1", Err(NumberError::Invalid)),
            ("-", Err(NumberError::Invalid)),
            ("", Err(NumberError::Invalid)),
            ("x", Err(NumberError::Invalid)),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn real_numbers() {
        for (text, expected) in [
            ("1.5", Ok(1.5)),
            ("1.5555555555555", Ok(1.555)),
            ("1.", Ok(1.0)),
            (".5", Ok(0.5)),
            ("-.5", Ok(-0.5)),
            (" 1.5 ", Ok(1.5)),
            ("999999999999.999", Ok(999_999_999_999.999)),
            ("9999999999999.999", Err(NumberError::TooManyDigits)),
            ("1234567890123", Err(NumberError::TooManyDigits)),
            (".", Err(NumberError::Invalid)),
            ("nan", Err(NumberError::Invalid)),
            ("--5", Err(NumberError::Invalid)),
            ("1e3", Err(NumberError::Other)),
            ("1_0", Err(NumberError::Other)),
        ] {
            assert_eq!(real(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        for (text, expected) in [
            ("10s", Some(10.0)),
            (" 10 s ", Some(10.0)),
            ("1.5m", Some(90.0)),
            ("-10s", Some(-10.0)),
            (".5s", Some(0.5)),
            ("1ms", Some(0.001)),
            ("1w", Some(604_800.0)),
            ("1y", Some(31_536_000.0)),
            ("10", None),
            ("1S", None),
            ("10sx", None),
            ("1m s", None),
            ("+5s", None),
            ("1234567890123s", None),
            ("", None),
        ] {
            assert_eq!(duration(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn sizes_take_units_in_any_case() {
        for (text, expected) in [
            ("10", Some(10)),
            ("10b", Some(10)),
            ("10K", Some(10_240)),
            ("10kB", Some(10_240)),
            ("1 k", Some(1024)),
            ("1.5k", Some(1536)),
            ("1.3k", Some(1331)),
            ("1.999k", Some(2046)),
            ("1.0", Some(1)),
            ("999999999999999", Some(999_999_999_999_999)),
            ("7.9P", Some(8_894_609_264_056_729)),
            ("8P", None),
            ("8191P", None),
            ("1.5", None),
            ("1.", None),
            (".5k", None),
            ("1.0001k", None),
            ("10kk", None),
            ("10 k b", None),
            ("-1", None),
            ("-0", Some(0)),
            ("-1k", None),
            ("--0", None),
            ("+5", None),
            ("2Z", None),
            ("", None),
        ] {
            assert_eq!(bytes(text.as_bytes()), expected, "{text}");
        }
    }
}
