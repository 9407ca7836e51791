//! Times as text: in the local time zone, the only use of chrono here, or in UTC.

use chrono::{DateTime, Local, NaiveDate, Offset, Utc};
use semantics::calendar::{Zone, strftime};

/// The local time of `seconds` since 1970 in the format of strftime(3); `None` if it is beyond the
/// calendar. Known difference: `%Z` is the offset from UTC, since the name of the time zone is not
/// available here; it is `UTC` if the offset is zero.
pub(crate) fn local(seconds: f64, format: &str) -> Option<String> {
    let offset_seconds = moment(seconds)?.with_timezone(&Local).offset().fix().local_minus_utc();
    let offset = text(seconds, Zone { offset_seconds, name: "" }, "%z");
    let name = if offset_seconds == 0 { "UTC" } else { &offset };
    Some(text(seconds, Zone { offset_seconds, name }, format))
}

/// The time in UTC, in the same format.
pub(crate) fn utc(seconds: f64, format: &str) -> Option<String> {
    moment(seconds).map(|_| text(seconds, Zone::UTC, format))
}

/// A moment at which all numbers of the local time but the year begin with a zero: 2021-02-03
/// 04:05:06, in seconds since 1970. `None` if the clocks were changed then.
pub(crate) fn with_zeros() -> Option<f64> {
    let time = NaiveDate::from_ymd_opt(2021, 2, 3)?.and_hms_opt(4, 5, 6)?;
    Some(time.and_local_timezone(Local).earliest()?.timestamp() as f64)
}

fn moment(seconds: f64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds.floor() as i64, 0)
}

fn text(seconds: f64, zone: Zone<'_>, format: &str) -> String {
    String::from_utf8_lossy(&strftime(seconds, zone, format.as_bytes(), usize::MAX)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_are_those_that_chrono_writes() {
        for seconds in (0..4_000_000_000_u32).step_by(77_777_777) {
            let time = moment(f64::from(seconds)).unwrap().with_timezone(&Local);
            for letter in "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYz".chars() {
                let conversion = format!("%{letter}");
                let shown = local(f64::from(seconds), &conversion).unwrap();
                assert_eq!(shown, time.format(&conversion).to_string(), "{conversion} of {seconds}");
            }
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_has_no_text() {
        assert_eq!(local(1e17, "%Y"), None);
        assert_eq!(utc(f64::NEG_INFINITY, "%Y"), None);
        assert_eq!(utc(1_700_000_000.9, "%FT%TZ").unwrap(), "2023-11-14T22:13:20Z");
    }
}
