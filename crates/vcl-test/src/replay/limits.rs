//! `--limit`: the differences that are accepted.

use super::summary::Summary;
use surface::nearest::did_you_mean;
use surface::replay::DifferenceClass;

/// The limit of a change of the hit ratio.
const HIT_RATIO: &str = "hit-ratio";
/// The limit of a change of the number of requests to the origin.
const ORIGIN: &str = "origin";

/// A limit.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    /// Most requests with differences of a class.
    Count(DifferenceClass, u64),
    /// The same, as a percentage of the requests.
    Share(DifferenceClass, f64),
    /// Least change of the hit ratio, in percentage points.
    HitRatio(f64),
    /// Largest change of the number of requests to the origin, in percent.
    Origin(f64),
}

/// All limits. Without others, no leak and no `Set-Cookie` from the cache is accepted.
#[derive(Clone, Debug)]
pub(super) struct Limits(Vec<Limit>);

impl Default for Limits {
    fn default() -> Limits {
        Limits([DifferenceClass::Leak, DifferenceClass::SetCookie].map(|class| Limit::Count(class, 0)).to_vec())
    }
}

impl Limits {
    /// Adds `name=value[,…]`; a later limit of a name replaces an earlier one.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        for one in text.split(',') {
            let (name, value) = one.split_once('=').ok_or_else(|| format!("--limit takes name=value, not '{one}'"))?;
            let percent = value.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
            let percent = percent.filter(|percent| percent.is_finite());
            let wrong = |what: &str| format!("--limit: {name} takes {what}, not '{value}'");
            let limit = match (name, DifferenceClass::from_word(name)) {
                (HIT_RATIO, _) => Limit::HitRatio(percent.ok_or_else(|| wrong("a percentage such as -1%"))?),
                (ORIGIN, _) => Limit::Origin(percent.ok_or_else(|| wrong("a percentage such as +5%"))?),
                (_, Some(class)) => match (percent.filter(|percent| *percent >= 0.0), value.parse()) {
                    (Some(percent), _) => Limit::Share(class, percent),
                    (None, Ok(count)) => Limit::Count(class, count),
                    (None, Err(_)) => return Err(wrong("a number, or a percentage such as 0.1%")),
                },
                (_, None) => {
                    let words = DifferenceClass::ALL.iter().map(|class| class.word()).chain([HIT_RATIO, ORIGIN]);
                    return Err(format!("--limit: nothing is called {name}{}", did_you_mean(name, "", words)));
                }
            };
            self.0.retain(|other| other.name() != limit.name());
            self.0.push(limit);
        }
        Ok(())
    }

    /// The limits that a summary passes, in words.
    pub(super) fn passed(&self, summary: &Summary) -> Vec<String> {
        self.0.iter().filter_map(|limit| limit.passed(summary)).collect()
    }
}

impl Limit {
    fn name(&self) -> &'static str {
        match self {
            Limit::Count(class, _) | Limit::Share(class, _) => class.word(),
            Limit::HitRatio(_) => HIT_RATIO,
            Limit::Origin(_) => ORIGIN,
        }
    }

    fn passed(&self, summary: &Summary) -> Option<String> {
        let name = self.name();
        match *self {
            Limit::Count(class, most) => {
                let count = summary.count(class);
                (count > most).then(|| format!("{name}: {count} requests, at most {most} are accepted"))
            }
            Limit::Share(class, most) => {
                let share = summary.share(class);
                (share > most).then(|| format!("{name}: {share:.2} % of the requests, at most {most} % are accepted"))
            }
            Limit::HitRatio(least) => {
                let change = summary.after.hit_percent() - summary.before.hit_percent();
                (change < least)
                    .then(|| format!("{name}: {change:+.2} percentage points, at least {least:+} are accepted"))
            }
            Limit::Origin(most) => {
                let (before, after) = (summary.before.fetches as f64, summary.after.fetches as f64);
                let change = 100.0 * (after - before) / before.max(1.0);
                (change > most).then(|| format!("{name}: {change:+.1} % requests, at most {most:+} % are accepted"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_judged() {
        let mut limits = Limits::default();
        limits.add("status=0.1%,handling=3,hit-ratio=-1%,origin=+5%,leak=1").unwrap();
        let mut summary = Summary::default();
        summary.compared = 1000;
        summary.add(DifferenceClass::Leak);
        (summary.before.requests, summary.before.hits, summary.before.fetches) = (100, 80, 20);
        summary.after = summary.before;
        assert_eq!(limits.passed(&summary), [""; 0]);
        summary.add(DifferenceClass::Leak);
        summary.add(DifferenceClass::Status);
        summary.add(DifferenceClass::Status);
        (summary.after.hits, summary.after.fetches) = (78, 22);
        let passed = limits.passed(&summary);
        assert_eq!(passed.len(), 4, "{passed:?}");
        for text in ["x", "status", "status=x", "status=-1", "leek=0", "hit-ratio=5", "origin=x%", "status=nan%"] {
            assert!(Limits::default().add(text).is_err(), "{text}");
        }
        let error = Limits::default().add("handlng=0").unwrap_err();
        assert!(error.contains("handling"), "{error}");
    }

    #[test]
    fn leaks_are_not_accepted_by_default() {
        let mut summary = Summary::default();
        summary.compared = 1000;
        summary.add(DifferenceClass::Response);
        assert_eq!(Limits::default().passed(&summary), [""; 0]);
        summary.add(DifferenceClass::SetCookie);
        assert_eq!(Limits::default().passed(&summary).len(), 1);
    }
}
