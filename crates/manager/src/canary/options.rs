//! The options of `vcl.use` that make it begin a canary: [`Plan`].

use super::judge::{Figure, Limits};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use surface::canary::{CANARY_TIME_MAX, CANARY_TIME_MIN, SHARE_MAX, SHARE_WHOLE, Stick};

/// A canary as the operator wants it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The VCL or label.
    pub name: String,
    /// Share of clients, in parts of [`SHARE_WHOLE`].
    pub share: u32,
    /// Time until the decision.
    pub lasting: Duration,
    /// The property by which clients are told apart.
    pub stick: Stick,
    /// Limits of the judgement.
    pub limits: Limits,
    /// The canary uses the objects of all other requests, and they its objects.
    pub shares_cache: bool,
}

impl Plan {
    /// Reads the words of `vcl.use` after the verb: a name, and options.
    ///
    /// # Errors
    /// The text for the CLI: an option is unknown, incomplete, repeated or out of range, or one is
    /// missing.
    pub fn read(words: &[String]) -> Result<Plan, String> {
        let (name, words) = words.split_first().ok_or("A VCL is missing")?;
        let (mut share, mut lasting, mut stick, mut limits, mut shares_cache) = (None, None, None, None, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word.as_str(), None),
            };
            if option == "--share-cache" && attached.is_none() {
                once(&mut shares_cache, option, true)?;
                continue;
            }
            if !["--percent", "--for", "--stick", "--limit"].contains(&option) {
                return Err(format!(
                    "Unknown option {word}: there are --percent, --for, --stick, --limit and --share-cache"
                ));
            }
            let value = match attached {
                Some(value) => value,
                None => words.next().map(String::as_str).ok_or(format!("{option} needs a value"))?,
            };
            match option {
                "--percent" => once(&mut share, option, read_share(value)?)?,
                "--for" => once(&mut lasting, option, read_time(value)?)?,
                "--stick" => {
                    let text = "--stick is ip, cookie:NAME or header:NAME";
                    once(&mut stick, option, Stick::from_word(value).ok_or(text)?)?;
                }
                _ => once(&mut limits, option, read_limits(value)?)?,
            }
        }
        Ok(Plan {
            name: name.clone(),
            share: share.ok_or("--percent is missing: a canary needs --percent and --for")?,
            lasting: lasting.ok_or("--for is missing: a canary needs --percent and --for")?,
            stick: stick.unwrap_or_default(),
            limits: limits.unwrap_or_default(),
            shares_cache: shares_cache.unwrap_or_default(),
        })
    }
}

fn once<T>(place: &mut Option<T>, option: &str, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{option} is given twice")),
    }
}

/// A number of percent, with or without its sign; not negative.
fn percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    number.parse::<f64>().ok().filter(|_| is_plain)
}

fn read_share(text: &str) -> Result<u32, String> {
    let share = percent(text).map(|percent| (percent / 100.0 * f64::from(SHARE_WHOLE)).round());
    match share {
        Some(share) if (1.0..=f64::from(SHARE_MAX)).contains(&share) => Ok(share as u32),
        Some(_) | None => Err("--percent is 0.01 to 50: the control group has the same size".to_owned()),
    }
}

fn read_time(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let seconds = number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    let time = seconds.map(Duration::from_secs).filter(|time| (CANARY_TIME_MIN..=CANARY_TIME_MAX).contains(time));
    time.ok_or_else(|| "--for is a time from 1s to 7d, such as 10m".to_owned())
}

/// `errors=0.5%,hit-ratio=-5%`: differences, whose sign is given by the figure.
fn read_limits(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',') {
        let wrong = || {
            let words = Figure::ALL.map(Figure::word).join(", ");
            format!("--limit is a list like errors=0.5%,hit-ratio=5%, of {words}: not {part}")
        };
        let (word, value) = part.split_once('=').ok_or_else(wrong)?;
        let value = value.strip_prefix(['+', '-']).unwrap_or(value);
        let value = percent(value).filter(|value| *value <= 1000.0).ok_or_else(wrong)? / 100.0;
        match Figure::ALL.into_iter().find(|figure| figure.word() == word).ok_or_else(wrong)? {
            Figure::Errors => limits.errors = value,
            Figure::Failures => limits.failures = value,
            Figure::HitRatio => limits.hit_ratio = value,
            Figure::P95 => limits.p95 = value,
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, String> {
        Plan::read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let plan = read("new --for 10m --limit errors=+1%,hit-ratio=-2% --percent 5").unwrap();
        assert_eq!((plan.name.as_str(), plan.share, plan.lasting.as_secs()), ("new", 500, 600));
        assert_eq!((plan.stick.clone(), plan.shares_cache), (Stick::Ip, false));
        assert_eq!(plan.limits, Limits { errors: 0.01, hit_ratio: 0.02, ..Limits::default() });
        let other = read("new --percent=0.01% --for=7d --stick=cookie:sid --share-cache").unwrap();
        assert_eq!((other.share, other.lasting, other.shares_cache), (1, CANARY_TIME_MAX, true));
        assert_eq!(other.stick, Stick::Cookie("sid".into()));
    }

    #[test]
    fn wrong_options_are_named() {
        let wrong = |line: &str, part: &str| {
            let text = read(line).unwrap_err();
            assert!(text.contains(part), "{line}: {text}");
        };
        wrong("new --percent 5", "--for is missing");
        wrong("new --for 1m", "--percent is missing");
        wrong("new --percent", "--percent needs a value");
        wrong("new --percent 5 --percent 6", "--percent is given twice");
        wrong("new --percant 5", "Unknown option --percant");
        wrong("new 5", "Unknown option 5");
        for share in ["0", "0.001", "51", "-5", "1e1", "NaN", "inf", "", "5x"] {
            wrong(&format!("new --for 1m --percent {share}"), "0.01 to 50");
        }
        for time in ["0s", "8d", "10", "m", "-1m", "1.5h", "99999999999999999999d", "18446744073709551615d", "1w"] {
            wrong(&format!("new --percent 5 --for {time}"), "1s to 7d");
        }
        for limit in ["x=1%", "errors", "errors=", "errors=x", "errors=--1%", "errors=1%,", "errors=1e9%"] {
            wrong(&format!("new --percent 5 --for 1m --limit {limit}"), "--limit is a list");
        }
        wrong("new --percent 5 --for 1m --stick cookie:", "cookie:NAME");
    }
}
