//! Seconds with six decimals, and whole numbers, written without the formatting machinery: the log's timestamps are
//! made on the path of a hit.

const PAIRS: &[u8; 200] = b"\
00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960\
616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// Longest text that [`seconds`] writes.
pub const SECONDS_BYTES_MAX: usize = 28;
/// Longest text that [`integer`] writes.
pub const INTEGER_BYTES_MAX: usize = 20;

/// Writes `value` seconds as `%.6f` does, rounded to whole microseconds, to the start of `out`; returns the length.
/// Values beyond about 290,000 years are cut, a NaN is 0.
#[inline]
pub fn seconds(value: f64, out: &mut [u8; SECONDS_BYTES_MAX]) -> usize {
    let mut length = 0;
    let micros = (value.abs() * 1e6).round_ties_even();
    let micros = micros as u64;
    if value < 0.0 && micros != 0 {
        out[0] = b'-';
        length = 1;
    }
    let mut digits = [0; INTEGER_BYTES_MAX];
    let start = integer_backwards(micros / 1_000_000, &mut digits);
    let count = INTEGER_BYTES_MAX - start;
    out[length..length + count].copy_from_slice(&digits[start..]);
    length += count;
    out[length] = b'.';
    let fraction = (micros % 1_000_000) as u32;
    for (index, pair) in [fraction / 10_000, fraction / 100 % 100, fraction % 100].into_iter().enumerate() {
        let from = pair as usize * 2;
        out[length + 1 + 2 * index] = PAIRS[from];
        out[length + 2 + 2 * index] = PAIRS[from + 1];
    }
    length + 7
}

/// Writes `value` in decimal to the start of `out`; returns the length.
#[inline]
pub fn integer(value: u64, out: &mut [u8; INTEGER_BYTES_MAX]) -> usize {
    let mut digits = [0; INTEGER_BYTES_MAX];
    let start = integer_backwards(value, &mut digits);
    let count = INTEGER_BYTES_MAX - start;
    out[..count].copy_from_slice(&digits[start..]);
    count
}

#[inline]
fn integer_backwards(mut value: u64, digits: &mut [u8; INTEGER_BYTES_MAX]) -> usize {
    let mut at = INTEGER_BYTES_MAX;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        digits[at] = PAIRS[pair];
        digits[at + 1] = PAIRS[pair + 1];
    }
    if value >= 10 {
        at -= 2;
        digits[at] = PAIRS[value as usize * 2];
        digits[at + 1] = PAIRS[value as usize * 2 + 1];
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_read_as_percent_point_six_f() {
        let cases =
            [0.0, 0.0000004, 0.000001, 1.5, 9.999999, 10.0, 99.0, 100.25, 1_700_000_000.123456, -0.25, -1e-9, 1e12];
        for value in cases {
            let mut out = [0; SECONDS_BYTES_MAX];
            let length = seconds(value, &mut out);
            let expected = format!("{value:.6}");
            let expected = if expected == "-0.000000" { "0.000000" } else { &expected };
            assert_eq!(std::str::from_utf8(&out[..length]).unwrap(), expected);
        }
    }

    #[test]
    fn absurd_seconds_still_fit() {
        for value in [f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut out = [0; SECONDS_BYTES_MAX];
            assert!(seconds(value, &mut out) <= SECONDS_BYTES_MAX);
        }
    }

    #[test]
    fn integers_of_every_length_are_written_whole() {
        for value in [0, 9, 10, 99, 100, 12_345, u64::MAX] {
            let mut out = [0; INTEGER_BYTES_MAX];
            let length = integer(value, &mut out);
            assert_eq!(std::str::from_utf8(&out[..length]).unwrap(), value.to_string());
        }
    }
}
