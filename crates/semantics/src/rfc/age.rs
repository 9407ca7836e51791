//! The age of a response on arrival. Source: RFC 9111 §4.2.3, §5.1.

use super::directives::delta_seconds;

/// Times of a fetch, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The request was sent.
    pub requested: f64,
    /// The response arrived.
    pub received: f64,
}

/// The Age field in seconds; 0 when it is absent or not a number. The first member of the first
/// line counts.
pub(super) fn of_field(value: Option<&[u8]>) -> f64 {
    let first = value.and_then(|value| value.split(|&byte| byte == b',').next());
    first.and_then(|first| delta_seconds(first.trim_ascii())).unwrap_or(0) as f64
}

/// Time at which the response was made or last validated, by the local clock. A `date` in the
/// future gives no age, and reduces no Age.
///
/// Date has whole seconds, so a response may be almost a second younger than the difference of the
/// clocks; that second is granted, else a response made just before the second turned would be one
/// second old on arrival.
pub(super) fn origin(age_seconds: f64, date: Option<f64>, times: Times) -> f64 {
    let delay = (times.received - times.requested).max(0.0);
    let apparent = date.map_or(0.0, |date| times.received - date - 1.0);
    times.received - (age_seconds + delay).max(apparent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_member_of_age_counts_and_what_is_no_number_does_not() {
        let cases: [(&str, f64); 12] = [
            ("30", 30.0),
            ("7200, 0", 7200.0),
            ("0, 7200", 0.0),
            (" 7 ,8", 7.0),
            ("abc", 0.0),
            ("-7200", 0.0),
            ("7200.0", 0.0),
            ("", 0.0),
            ("2147483647", 2_147_483_648.0),
            ("2147483649", 2_147_483_648.0),
            ("99999999999999999999999999", 2_147_483_648.0),
            ("0030", 30.0),
        ];
        for (value, expect) in cases {
            let got = of_field(Some(value.as_bytes()));
            assert!((got - expect).abs() < 2.0, "{value}: {got}");
        }
        assert_eq!(of_field(None), 0.0);
    }

    #[test]
    fn the_greater_of_age_and_date_counts_and_the_delay_is_part_of_it() {
        let times = Times { requested: 1_000.0, received: 1_002.5 };
        assert_eq!(origin(0.0, None, times), 1_000.0, "the delay");
        assert_eq!(origin(10.0, None, times), 990.0);
        assert_eq!(origin(10.0, Some(2_000.0), times), 990.0, "a Date in the future does not make it younger");
        assert_eq!(origin(10.0, Some(900.0), times), 901.0, "a Date in the past makes it older");
        assert_eq!(origin(0.0, Some(1_002.0), times), 1_000.0, "within the second of Date");
        let slow_clock = Times { requested: 1_002.0, received: 1_000.0 };
        assert_eq!(origin(0.0, None, slow_clock), 1_000.0);
    }
}
