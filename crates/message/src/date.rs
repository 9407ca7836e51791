//! Days of the Gregorian calendar, and the one format in which HTTP dates are written.
//!
//! Parsing all formats is in `semantics`. Source: RFC 9110 §5.6.7.

/// Length of a date, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_BYTES: usize = 29;

const SECONDS_PER_DAY: i64 = 86_400;
const WEEKDAYS: [[u8; 3]; 7] = [*b"Sun", *b"Mon", *b"Tue", *b"Wed", *b"Thu", *b"Fri", *b"Sat"];
const MONTHS: [[u8; 3]; 12] =
    [*b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct", *b"Nov", *b"Dec"];

/// Days since 1970 of a date. Years are counted from March, so that the leap day comes last, in
/// eras of 400 years or 146,097 days.
#[must_use]
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse: year, month from 1, day from 1.
#[must_use]
#[inline]
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// The IMF-fixdate of a time in seconds since 1970, of the years 0 to 9999.
#[must_use]
pub fn imf_fixdate(seconds: i64) -> [u8; DATE_BYTES] {
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY) as u32;
    let (year, month, day) = civil_from_days(days);
    let year = year as u32;
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[..3].copy_from_slice(&WEEKDAYS[(days + 4).rem_euclid(7) as usize]);
    out[8..11].copy_from_slice(&MONTHS[month as usize - 1]);
    for (at, value) in [
        (5, day),
        (12, year / 100 % 100),
        (14, year % 100),
        (17, of_day / 3600),
        (20, of_day / 60 % 60),
        (23, of_day % 60),
    ] {
        out[at] = b'0' + (value / 10) as u8;
        out[at + 1] = b'0' + (value % 10) as u8;
    }
    out
}

/// Bytes of a packed date.
pub(crate) const PACKED_BYTES: usize = 5;
/// The first year that is packed; there are 128.
const FIRST_YEAR: u64 = 1970;

/// A date in its parts, so that it is written out without a division: second (6), minute (6), hour
/// (5), day (5), month (4), year since 1970 (7), day of the week (3). `None` for a text that
/// [`unpacked`] would not reproduce exactly.
pub(crate) fn packed(text: &[u8]) -> Option<[u8; PACKED_BYTES]> {
    let text: &[u8; DATE_BYTES] = text.try_into().ok()?;
    let number = |at: usize| u64::from(text[at].wrapping_sub(b'0')) * 10 + u64::from(text[at + 1].wrapping_sub(b'0'));
    let month = MONTHS.iter().position(|name| text[8..11] == *name)? as u64;
    let weekday = WEEKDAYS.iter().position(|name| text[..3] == *name)? as u64;
    let year = (number(12) * 100 + number(14)).checked_sub(FIRST_YEAR)?;
    let parts =
        [(number(23), 6), (number(20), 6), (number(17), 5), (number(5), 5), (month, 4), (year, 7), (weekday, 3)];
    let (mut word, mut shift) = (0, 0);
    for (part, bits) in parts {
        if part >> bits != 0 {
            return None;
        }
        word |= part << shift;
        shift += bits;
    }
    let [packed @ .., _, _, _] = word.to_le_bytes();
    (unpacked(packed) == Some(*text)).then_some(packed)
}

/// The date that [`packed`] packed; `None` if the month or the day of the week is invalid.
#[inline]
pub(crate) fn unpacked([a, b, c, d, e]: [u8; PACKED_BYTES]) -> Option<[u8; DATE_BYTES]> {
    let word = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]);
    let part = |shift: u32, bits: u32| (word >> shift & ((1 << bits) - 1)) as usize;
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[..3].copy_from_slice(WEEKDAYS.get(part(33, 3))?);
    out[8..11].copy_from_slice(MONTHS.get(part(22, 4))?);
    let year = part(26, 7);
    out[12..14].copy_from_slice(&PAIRS[if year < 30 { 19 } else { 20 }]);
    out[14..16].copy_from_slice(&PAIRS[if year < 30 { year + 70 } else { year - 30 }]);
    out[5..7].copy_from_slice(&PAIRS[part(17, 5)]);
    out[17..19].copy_from_slice(&PAIRS[part(12, 5)]);
    out[20..22].copy_from_slice(&PAIRS[part(6, 6)]);
    out[23..25].copy_from_slice(&PAIRS[part(0, 6)]);
    Some(out)
}

/// The numbers below 128, of which the last ones are never written, with two digits each.
static PAIRS: [[u8; 2]; 128] = {
    let mut all = [[b'0'; 2]; 128];
    let mut number = 0;
    while number < 100 {
        all[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_packed_only_where_the_same_bytes_come_out() {
        assert_eq!(imf_fixdate(784_111_777), *b"Sun, 06 Nov 1994 08:49:37 GMT");
        for seconds in [0, 1, 86_399, 784_111_777, 946_684_799, 951_782_400, 1_709_210_096, 4_039_372_799] {
            let text = imf_fixdate(seconds);
            assert_eq!(packed(&text).and_then(unpacked), Some(text), "{seconds}");
        }
        // A wrong day of the week comes back as it was.
        let wrong = *b"Mon, 31 Feb 1994 29:49:63 GMT";
        assert_eq!(packed(&wrong).and_then(unpacked), Some(wrong));
        for other in [
            &b"sun, 06 Nov 1994 08:49:37 GMT"[..],
            b"Sun, 06 Nov 1994 08:49:64 GMT",
            b"Sun, 06 Nov 1994 08:49:37 UTC",
            b"Sun, 06 Nov 1994 08:49:3\xff GMT",
            b"Sun, 06 Nov 1994 08:49:2: GMT",
            b"Sun, 06 Nov 1969 08:49:37 GMT",
            b"Sun, 06 Nov 2098 08:49:37 GMT",
            b"Fri, 31 Dec 9999 23:59:59 GMT",
            b"",
            b"0",
        ] {
            assert_eq!(packed(other), None, "{}", String::from_utf8_lossy(other));
        }
        assert_eq!(unpacked([0xff; 5]), None);
        (0..=255).for_each(|byte| _ = unpacked([byte; 5]));
    }
}
