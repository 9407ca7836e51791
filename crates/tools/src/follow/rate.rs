//! `-R limit/duration`: limits the number of groups that a tool reports in that time.

use surface::quantity::seconds_in;

/// A token bucket: it fills as time passes, and every reported group takes one token.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rate {
    limit: f64,
    period_seconds: f64,
    credit: f64,
    last: f64,
}

/// Longest duration, in bytes.
const DURATION_BYTES_MAX: usize = 30;

impl Rate {
    /// `limit` or `limit/duration`, the duration as in VCL (`2m`) or as a bare unit (`m`).
    pub fn parse(text: &str) -> Result<Rate, &'static str> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (limit, duration) = text.split_at(digits);
        let limit: u32 =
            limit.parse().ok().filter(|limit| (1..=i32::MAX as u32).contains(limit)).ok_or("Range error")?;
        let duration = match duration.strip_prefix('/') {
            None if duration.is_empty() => "s",
            None | Some("") => return Err("Syntax error"),
            Some(duration) if duration.len() > DURATION_BYTES_MAX => return Err("Syntax error"),
            Some(duration) => duration,
        };
        let unit_at = duration.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = duration.split_at(unit_at);
        let number: f64 = if number.is_empty() { 1.0 } else { number.parse().unwrap_or(0.0) };
        let unit_seconds = seconds_in(unit).ok_or("Syntax error: Invalid duration")?;
        let period_seconds = number * unit_seconds;
        if period_seconds <= 0.0 || !period_seconds.is_finite() {
            return Err("Syntax error: Invalid duration");
        }
        Ok(Rate { limit: f64::from(limit), period_seconds, credit: 1.0, last: 0.0 })
    }

    /// Takes a token if there is one; `now` is a monotonic time in seconds.
    pub fn allows(&mut self, now: f64) -> bool {
        self.credit += (now - self.last).max(0.0) / self.period_seconds * self.limit;
        self.credit = self.credit.min(self.limit);
        self.last = now;
        let allowed = self.credit >= 1.0;
        if allowed {
            self.credit -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn a_burst_is_cut_to_the_rate() {
        let mut rate = Rate::parse("3/1m").unwrap();
        let allowed: Vec<bool> = [0.0, 0.1, 20.2, 20.3, 200.0, 200.0, 200.0, 200.0].map(|now| rate.allows(now)).into();
        assert_eq!(allowed, [true, false, true, false, true, true, true, false]);
    }

    #[test]
    fn a_rate_that_is_none_is_refused() {
        for text in ["0", "x", "", "-1", "3/0s"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        assert_eq!(Rate::parse("3/q"), Err("Syntax error: Invalid duration"));
        assert_eq!(Rate::parse("5/m"), Rate::parse("5/60s"));
    }
}
