//! The days of the Gregorian calendar, and the one form in which HTTP dates are written.
//!
//! Reading all forms that there are is the business of `semantics`. Source: RFC 9110 §5.6.7.

/// Length of a date, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_BYTES: usize = 29;

const SECONDS_PER_DAY: i64 = 86_400;
const WEEKDAYS: [[u8; 3]; 7] = [*b"Sun", *b"Mon", *b"Tue", *b"Wed", *b"Thu", *b"Fri", *b"Sat"];
const MONTHS: [[u8; 3]; 12] =
    [*b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct", *b"Nov", *b"Dec"];

/// Days since 1970 of a date. Years are counted from March, so that the leap day comes last, in eras of 400 years or 146,097
/// days.
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

/// The seconds since 1970 of a date that [`imf_fixdate`] writes in exactly these bytes, and that fit; `None` for all others.
pub(crate) fn packed(text: &[u8]) -> Option<u32> {
    let text: &[u8; DATE_BYTES] = text.try_into().ok()?;
    let number = |at: usize| i64::from(text[at].wrapping_sub(b'0')) * 10 + i64::from(text[at + 1].wrapping_sub(b'0'));
    let month = MONTHS.iter().position(|name| text[8..11] == *name)? as i64 + 1;
    let days = days_from_civil(number(12) * 100 + number(14), month, number(5));
    let seconds = days * SECONDS_PER_DAY + number(17) * 3600 + number(20) * 60 + number(23);
    u32::try_from(seconds).ok().filter(|seconds| imf_fixdate(i64::from(*seconds)) == *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_packed_only_where_the_same_bytes_come_out() {
        assert_eq!(packed(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(imf_fixdate(784_111_777), *b"Sun, 06 Nov 1994 08:49:37 GMT");
        for seconds in [0, 1, 86_399, 951_782_400, 1_709_210_096, u32::MAX - 1, u32::MAX] {
            assert_eq!(packed(&imf_fixdate(i64::from(seconds))), Some(seconds));
        }
        for other in [
            &b"Mon, 06 Nov 1994 08:49:37 GMT"[..],
            b"Sun, 31 Feb 1994 08:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:60 GMT",
            b"sun, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:37 UTC",
            b"Sun, 06 Nov 1994 08:49:3\xff GMT",
            b"Sun, 06 Nov 1954 08:49:37 GMT",
            b"Fri, 31 Dec 9999 23:59:59 GMT",
            b"",
            b"0",
        ] {
            assert_eq!(packed(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
