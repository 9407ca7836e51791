//! Decimal formatting of seconds with six decimals, and of whole numbers, without the standard
//! library's formatter: the log's timestamps are made on the path of a hit.

/// The two digits of every number below 100; longer so that a seven-bit index is always in range.
static PAIRS: [[u8; 2]; 128] = {
    let mut pairs = [[b'0'; 2]; 128];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

#[inline]
fn pair(value: u32) -> [u8; 2] {
    PAIRS[(value & 127) as usize]
}

/// Longest text that [`seconds`] writes.
pub const SECONDS_BYTES_MAX: usize = 28;
/// Longest text that [`integer`] writes.
pub const INTEGER_BYTES_MAX: usize = 20;

/// Writes `value` seconds as `%.6f` does, rounded to whole microseconds, to the start of `out`;
/// returns the length. Values beyond about 290,000 years are cut, a NaN is 0.
#[inline]
pub fn seconds(value: f64, out: &mut [u8; SECONDS_BYTES_MAX]) -> usize {
    // Everyday values fit 32 bits, whose arithmetic is several times faster. Casts saturate, and
    // adding a half rounds: `round` would be a call into libm on plain x86-64.
    let whole = value as u32;
    let fraction = ((value - f64::from(whole)) * 1e6 + 0.5) as u32;
    if value < 0.0 || fraction >= 1_000_000 {
        return unusual_seconds(value, out);
    }
    let length = match whole {
        0..10 => {
            out[0] = b'0' + whole as u8;
            1
        }
        // A time of day: ten digits.
        1_000_000_000.. => {
            let (high, low) = (whole / 1_000_000, whole % 1_000_000);
            [out[0], out[1]] = pair(high / 100);
            [out[2], out[3]] = pair(high % 100);
            six(low, out, 4);
            10
        }
        _ => integer(u64::from(whole), out),
    };
    if fraction == 0 {
        // Most lifetimes are whole.
        out[length..length + 7].copy_from_slice(b".000000");
    } else {
        out[length] = b'.';
        six(fraction, out, length + 1);
    }
    length + 7
}

#[inline]
fn six(value: u32, out: &mut [u8], at: usize) {
    let out = &mut out[at..at + 6];
    let (high, low) = (value / 10_000, value % 10_000);
    [out[0], out[1]] = pair(high);
    [out[2], out[3]] = pair(low / 100);
    [out[4], out[5]] = pair(low % 100);
}

/// Like [`seconds`], for values that are negative, too large for 32 bits, or rounded up to the next
/// second.
#[cold]
fn unusual_seconds(value: f64, out: &mut [u8; SECONDS_BYTES_MAX]) -> usize {
    let micros = (value.abs() * 1e6 + 0.5) as u64;
    let sign = usize::from(value < 0.0 && micros != 0);
    out[0] = b'-';
    let length = sign + integer(micros / 1_000_000, &mut out[sign..]);
    out[length] = b'.';
    six((micros % 1_000_000) as u32, out, length + 1);
    length + 7
}

/// Writes `value` in decimal to the start of `out`, which must have room for [`INTEGER_BYTES_MAX`]
/// bytes; returns the length.
///
/// # Panics
/// `out` is too short.
#[inline]
pub fn integer(mut value: u64, out: &mut [u8]) -> usize {
    // Most numbers are short, and need neither a loop nor a division by a variable.
    if value < 100 {
        let digits = pair(value as u32);
        if value < 10 {
            out[0] = digits[1];
            return 1;
        }
        out[..2].copy_from_slice(&digits);
        return 2;
    }
    if value < 10_000 {
        let (high, low) = (pair(value as u32 / 100), pair(value as u32 % 100));
        let from = usize::from(value < 1000);
        let digits = &mut out[..4 - from];
        (digits[0], digits[1 - from]) = (high[from], high[1]);
        [digits[2 - from], digits[3 - from]] = low;
        return 4 - from;
    }
    let count = value.ilog10() as usize + 1;
    // From the end, so that no digit is written twice.
    let digits = &mut out[..count];
    let mut end = count;
    while value >= 100 {
        end -= 2;
        [digits[end], digits[end + 1]] = pair((value % 100) as u32);
        value /= 100;
    }
    if value >= 10 {
        [digits[0], digits[1]] = pair(value as u32);
    } else {
        digits[0] = b'0' + value as u8;
    }
    count
}

/// Writes times of day: the digits of their second are kept, since many times fall into one.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeOfDay {
    second: u32,
    digits: [u8; 10],
}

impl TimeOfDay {
    /// As [`seconds`].
    #[inline]
    pub fn put(&mut self, value: f64, out: &mut [u8; SECONDS_BYTES_MAX]) -> usize {
        let whole = value as u32;
        let fraction = ((value - f64::from(whole)) * 1e6 + 0.5) as u32;
        // No time of day in this century has fewer than ten digits.
        if fraction >= 1_000_000 || whole < 1_000_000_000 {
            return seconds(value, out);
        }
        if whole != self.second {
            self.second = whole;
            integer(u64::from(whole), &mut self.digits);
        }
        let (digits, rest) = out.split_at_mut(10);
        digits.copy_from_slice(&self.digits);
        rest[0] = b'.';
        six(fraction, rest, 1);
        17
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_read_as_percent_point_six_f() {
        let cases = [
            0.0,
            0.0000004,
            0.000001,
            1.5,
            9.999999,
            10.0,
            99.0,
            100.25,
            1_700_000_000.123456,
            -0.25,
            -1e-9,
            1e12,
            0.9999996,
            4294967295.5,
            4294967296.25,
            123456.5,
        ];
        for value in cases {
            let mut out = [0; SECONDS_BYTES_MAX];
            let length = seconds(value, &mut out);
            let expected = format!("{value:.6}");
            let expected = if expected == "-0.000000" { "0.000000" } else { &expected };
            assert_eq!(std::str::from_utf8(&out[..length]).unwrap(), expected);
        }
    }

    #[test]
    fn times_of_day_read_as_seconds_do() {
        let mut day = TimeOfDay::default();
        let start = 1_700_000_000.0;
        let times = [0.0, 0.25, 0.9999991, 0.9999999, 1.0, 59.5, 0.123456, -start, 3e9, -2e9, f64::NAN, -999_999_999.5];
        for value in times.map(|later| start + later) {
            let (mut wanted, mut out) = ([0; SECONDS_BYTES_MAX], [0; SECONDS_BYTES_MAX]);
            let length = seconds(value, &mut wanted);
            assert_eq!(day.put(value, &mut out), length, "{value}");
            assert_eq!(out[..length], wanted[..length], "{value}");
        }
    }

    #[test]
    fn absurd_seconds_still_fit() {
        for value in [f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut out = [0; SECONDS_BYTES_MAX];
            assert!(seconds(value, &mut out) <= SECONDS_BYTES_MAX);
            let mut again = [0; SECONDS_BYTES_MAX];
            TimeOfDay::default().put(value, &mut again);
            assert_eq!(again, out);
            assert!(seconds(value, &mut out) <= SECONDS_BYTES_MAX);
        }
    }

    #[test]
    fn integers_of_every_length_are_written_whole() {
        for value in (0..12_000).chain([12_345, 100_000, u64::MAX]) {
            let mut out = [0; INTEGER_BYTES_MAX];
            let length = integer(value, &mut out);
            assert_eq!(std::str::from_utf8(&out[..length]).unwrap(), value.to_string());
        }
    }
}
