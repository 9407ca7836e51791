//! HTTP dates: written as IMF-fixdate, read in the three forms of RFC 9110 §5.6.7 and in ISO 8601.
//!
//! Compat: as observed of Varnish 7.1.1, names are read in their proper case only, the weekday must
//! match the date, nothing may follow, a leap second is the second before it, and
//! `YYYY-MM-DDTHH:MM:SS` is a date too. With the feature `http_date_postel`, the day of an
//! IMF-fixdate may have one digit; Varnish tolerates nothing else. Under the policy `rfc` names are
//! read in any case, the weekday may be wrong, and ISO 8601 is not a date.

use crate::calendar::WEEKDAYS;
use message::date::{civil_from_days, days_from_civil, imf_fixdate};
use surface::parameter::feature;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

const SECONDS_PER_DAY: i64 = 86_400;
/// 9999-12-31T23:59:59, the last second that can be written.
const LAST_SECOND: i64 = 253_402_300_799;
/// 0000-01-01T00:00:00, the first.
const FIRST_SECOND: i64 = -62_167_219_200;
/// Two-digit years from here on belong to the last century. With the fifty-year rule of the RFC the
/// meaning of a date would depend on when it is read.
const CENTURY_PIVOT: i64 = 70;

/// Writes the IMF-fixdate of a time, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`. A time out of range is
/// written as the nearest date in range; fractions of a second are dropped.
pub fn format(now: f64, out: &mut [u8; 29]) {
    // `as` saturates, and turns NaN into 0.
    let seconds = (now.floor() as i64).clamp(FIRST_SECOND, LAST_SECOND);
    *out = imf_fixdate(seconds);
}

/// [`format`] as a text of its own.
#[must_use]
pub fn text(now: f64) -> String {
    let mut out = [0; 29];
    format(now, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The time in the form used in logs, to the millisecond: `1994-11-06T08:49:37.000Z` (RFC 3339).
#[must_use]
pub fn rfc3339(now: f64) -> String {
    let milliseconds = ((now * 1000.0) as i64).clamp(FIRST_SECOND * 1000, LAST_SECOND * 1000);
    let seconds = milliseconds.div_euclid(1000);
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = milliseconds.rem_euclid(1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Strictness with which dates are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateForms {
    /// Only as in the standard.
    #[default]
    Exact,
    /// The feature `http_date_postel`: `Sun, 6 Nov 1994 08:49:37 GMT` as well.
    Tolerant,
    /// The three forms of RFC 9110 §5.6.7 only, with names in any case, and whatever the day of the
    /// week.
    Rfc,
}

impl DateForms {
    /// The forms that the bits of the parameter `feature` ask for.
    #[must_use]
    pub fn of_features(bits: u64) -> DateForms {
        if bits & feature::HTTP_DATE_POSTEL == 0 { DateForms::Exact } else { DateForms::Tolerant }
    }
}

/// Reads a date, in seconds since 1970; `None` if it is not one. The caller removes blanks around
/// it.
#[must_use]
pub fn parse(bytes: &[u8], forms: DateForms) -> Option<f64> {
    let mut reader = Reader { rest: bytes, forms };
    let date = match bytes {
        [b'0'..=b'9', ..] if forms != DateForms::Rfc => reader.iso()?,
        [_, _, _, b',', ..] => reader.imf()?,
        [_, _, _, b' ', ..] => reader.asctime()?,
        _ => reader.rfc850()?,
    };
    if !reader.rest.is_empty() {
        return None;
    }
    date.seconds(forms).map(|seconds| seconds as f64)
}

#[derive(Default)]
struct Date {
    /// Day of the week, 0 = Sunday; `None` when the form has none.
    weekday: Option<i64>,
    year: i64,
    month: i64,
    day: i64,
    second_of_day: i64,
}

impl Date {
    fn seconds(&self, forms: DateForms) -> Option<i64> {
        let is_leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let days_of_month = match self.month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if self.year < 1900 || !(1..=days_of_month).contains(&self.day) {
            return None;
        }
        let days = days_from_civil(self.year, self.month, self.day);
        let is_wrong = |weekday: i64| forms != DateForms::Rfc && weekday != (days + 4).rem_euclid(7);
        if self.weekday.is_some_and(is_wrong) {
            return None;
        }
        Some(days * SECONDS_PER_DAY + self.second_of_day)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    forms: DateForms,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    fn text(&mut self, text: &str) -> Option<()> {
        let taken = self.take(text.len())?;
        self.is_same(taken, text.as_bytes()).then_some(())
    }

    fn is_same(&self, given: &[u8], text: &[u8]) -> bool {
        if self.forms == DateForms::Rfc { given.eq_ignore_ascii_case(text) } else { given == text }
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        self.take(digits)?
            .iter()
            .try_fold(0, |sum, &digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
    }

    fn weekday(&mut self, is_long: bool) -> Option<i64> {
        let index = WEEKDAYS.iter().position(|name| {
            let name = if is_long { name } else { &name[..3] };
            self.rest.get(..name.len()).is_some_and(|given| self.is_same(given, name.as_bytes()))
        })?;
        self.take(if is_long { WEEKDAYS[index].len() } else { 3 })?;
        Some(index as i64)
    }

    fn month(&mut self) -> Option<i64> {
        let name = self.take(3)?;
        MONTHS.iter().position(|it| self.is_same(name, &it[..])).map(|index| index as i64 + 1)
    }

    fn second_of_day(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.text(":")?;
        let minute = self.number(2)?;
        self.text(":")?;
        let second = self.number(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second.min(59))
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    fn imf(&mut self) -> Option<Date> {
        let weekday = Some(self.weekday(false)?);
        self.text(", ")?;
        let is_short = self.forms == DateForms::Tolerant && matches!(self.rest, [b'1'..=b'9', b' ', ..]);
        let day = self.number(if is_short { 1 } else { 2 })?;
        self.text(" ")?;
        let month = self.month()?;
        self.text(" ")?;
        let year = self.number(4)?;
        self.text(" ")?;
        let second_of_day = self.second_of_day()?;
        self.text(" GMT")?;
        Some(Date { weekday, year, month, day, second_of_day })
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    fn rfc850(&mut self) -> Option<Date> {
        let weekday = Some(self.weekday(true)?);
        self.text(", ")?;
        let day = self.number(2)?;
        self.text("-")?;
        let month = self.month()?;
        self.text("-")?;
        let year = self.number(2)?;
        let year = year + if year < CENTURY_PIVOT { 2000 } else { 1900 };
        self.text(" ")?;
        let second_of_day = self.second_of_day()?;
        self.text(" GMT")?;
        Some(Date { weekday, year, month, day, second_of_day })
    }

    /// `Sun Nov  6 08:49:37 1994`
    fn asctime(&mut self) -> Option<Date> {
        let weekday = Some(self.weekday(false)?);
        self.text(" ")?;
        let month = self.month()?;
        self.text(" ")?;
        let day = if self.text_if(" ") { self.number(1)? } else { self.number(2)? };
        self.text(" ")?;
        let second_of_day = self.second_of_day()?;
        self.text(" ")?;
        let year = self.number(4)?;
        Some(Date { weekday, year, month, day, second_of_day })
    }

    /// `1994-11-06T08:49:37`
    fn iso(&mut self) -> Option<Date> {
        let year = self.number(4)?;
        self.text("-")?;
        let month = self.number(2)?;
        self.text("-")?;
        let day = self.number(2)?;
        self.text("T")?;
        let second_of_day = self.second_of_day()?;
        (1..=12).contains(&month).then_some(Date { weekday: None, year, month, day, second_of_day })
    }

    fn text_if(&mut self, text: &str) -> bool {
        let found = self.rest.starts_with(text.as_bytes());
        if found {
            self.rest = &self.rest[text.len()..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_logs_have_milliseconds() {
        assert_eq!(rfc3339(784_111_777.25), "1994-11-06T08:49:37.250Z");
        assert_eq!(rfc3339(951_782_400.0), "2000-02-29T00:00:00.000Z");
        for odd in [f64::NAN, f64::INFINITY, -1.0, -1e300, 1e300] {
            assert_eq!(rfc3339(odd).len(), 24, "{odd}");
        }
    }

    #[test]
    fn every_day_is_read_back_as_it_was_written() {
        for day in (-25_000..200_000).step_by(7).chain(18_000..18_800) {
            let time = (day * SECONDS_PER_DAY + day.rem_euclid(SECONDS_PER_DAY)) as f64;
            assert_eq!(parse(text(time).as_bytes(), DateForms::Exact), Some(time), "{}", text(time));
        }
    }

    #[test]
    fn known_times_have_known_texts() {
        assert_eq!(text(784_111_777.9), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(0.0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(-0.5), "Wed, 31 Dec 1969 23:59:59 GMT");
        assert_eq!(text(951_782_400.0), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(text(f64::INFINITY), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(text(-1e300), "Sat, 01 Jan 0000 00:00:00 GMT");
        assert_eq!(text(f64::NEG_INFINITY), "Sat, 01 Jan 0000 00:00:00 GMT");
        assert_eq!(text(f64::NAN), text(0.0));
    }

    #[test]
    fn dates_are_read_in_their_exact_forms_only() {
        let good = [
            ("Wed, 09 Nov 2033 23:12:40 GMT", 2_015_190_760.0),
            ("Wednesday, 09-Nov-33 23:12:40 GMT", 2_015_190_760.0),
            ("Wed Nov  9 23:12:40 2033", 2_015_190_760.0),
            ("2033-11-09T23:12:40", 2_015_190_760.0),
            ("Wed, 09 Nov 2033 23:12:60 GMT", 2_015_190_779.0),
            ("Tuesday, 09-Nov-99 23:12:40 GMT", 942_189_160.0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1.0),
            ("Sat, 20 Nov 2286 17:46:40 GMT", 1e10),
        ];
        for (date, expect) in good {
            assert_eq!(parse(date.as_bytes(), DateForms::Exact), Some(expect), "{date}");
            assert_eq!(parse(date.as_bytes(), DateForms::Tolerant), Some(expect), "{date}");
        }
        let bad = [
            "",
            "0",
            "-1",
            "foo",
            "2015190760",
            "wed, 09 nov 2033 23:12:40 gmt",
            "Wed, 09 Nov 2033 23:12:40 UTC",
            "Wed, 09 Nov 2033 23:12:40 +0000",
            "Wed, 09 Nov 2033 23:12:40",
            "Mon, 09 Nov 2033 23:12:40 GMT",
            "Wed 09 Nov 2033 23:12:40 GMT",
            "Wed, 9 Nov 2033 23:12:40 GMT",
            "Wed, 09 Nov 2033 3:12:40 GMT",
            "Wed, 09 Nov 33 23:12:40 GMT",
            "Wed,  09 Nov 2033 23:12:40 GMT",
            "Wed, 09 Nov 2033 24:12:40 GMT",
            "Wed, 09 Nov 2033 23:60:40 GMT",
            "Wed, 09 Nov 2033 23:12:61 GMT",
            "Wed, 00 Nov 2033 23:12:40 GMT",
            "Tue, 29 Feb 2033 23:12:40 GMT",
            "Wed, 30 Feb 2033 23:12:40 GMT",
            "Wed, 09 Nov 2033 23:12:40 GMT x",
            "Wed, 31 Dec 1899 23:59:59 GMT",
            "Wed, 09-Nov-33 23:12:40 GMT",
            "Wednesday, 09-Nov-2033 23:12:40 GMT",
            "2033-13-09T23:12:40",
            "2033-11-09T23:12:40Z",
            "Wed\u{e9}, 09 Nov 2033",
        ];
        for date in bad {
            assert_eq!(parse(date.as_bytes(), DateForms::Exact), None, "{date}");
            let expect = (date == "Wed, 9 Nov 2033 23:12:40 GMT").then_some(2_015_190_760.0);
            assert_eq!(parse(date.as_bytes(), DateForms::Tolerant), expect, "{date}");
            let is_fine = ["wed, 09 nov 2033 23:12:40 gmt", "Mon, 09 Nov 2033 23:12:40 GMT"].contains(&date);
            let expect = is_fine.then_some(2_015_190_760.0);
            assert_eq!(parse(date.as_bytes(), DateForms::Rfc), expect, "{date}");
        }
    }

    #[test]
    fn the_rfc_knows_three_forms_and_names_in_any_case() {
        let time = Some(2_015_190_760.0);
        for date in ["Wed, 09 Nov 2033 23:12:40 GMT", "wednesday, 09-NOV-33 23:12:40 gMt", "WED NOV  9 23:12:40 2033"] {
            assert_eq!(parse(date.as_bytes(), DateForms::Rfc), time, "{date}");
        }
        assert_eq!(parse(b"2033-11-09T23:12:40", DateForms::Rfc), None);
    }
}
