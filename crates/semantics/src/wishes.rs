//! What a client asks of the cache: the directives in the `Cache-Control` of its request.
//!
//! Unknown directives and unreadable numbers are ignored, of several with one name the first counts. `Pragma: no-cache` counts when
//! there is no `Cache-Control`. Source: RFC 9111 §5.2.1, §5.4; RFC 5861 §4.

use crate::list;
use message::Message;

/// Longest time that a directive can name, in seconds. Source: RFC 9111 §1.2.2.
const SECONDS_MAX: f64 = 2_147_483_648.0;

/// A client's wishes; by default none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wishes {
    /// `max-age`: oldest response that is welcome, in seconds.
    pub max_age: Option<f64>,
    /// `max-stale`: for how long a response may have been stale, in seconds; infinite when the directive has no value.
    pub max_stale: Option<f64>,
    /// `min-fresh`: for how long a response must still be fresh, in seconds.
    pub min_fresh: Option<f64>,
    /// `stale-if-error`: for how long a response may have been stale when the origin fails, in seconds.
    pub stale_if_error: Option<f64>,
    /// `no-cache`: what is stored must be validated first.
    pub no_cache: bool,
    /// `no-store`: the response must not be stored.
    pub no_store: bool,
    /// `only-if-cached`: the origin must not be asked.
    pub only_if_cached: bool,
}

impl Wishes {
    /// The wishes in a request.
    #[must_use]
    pub fn of(request: &Message) -> Wishes {
        let mut wishes = Wishes::default();
        if !request.has("Cache-Control") {
            let asks = |value| list::members(value).any(|member| member.eq_ignore_ascii_case(b"no-cache"));
            wishes.no_cache = request.has("Pragma") && request.get_all("Pragma").any(asks);
            return wishes;
        }
        for member in request.get_all("Cache-Control").flat_map(list::members) {
            wishes.hear(member);
        }
        wishes
    }

    fn hear(&mut self, member: &[u8]) {
        let (name, value) = match member.iter().position(|byte| *byte == b'=') {
            Some(at) => (member[..at].trim_ascii_end(), Some(&member[at + 1..])),
            None => (member, None),
        };
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        let number = value.and_then(seconds);
        if is("max-age") {
            self.max_age = self.max_age.or(number);
        } else if is("max-stale") {
            let most = if value.is_none() { Some(f64::INFINITY) } else { number };
            self.max_stale = self.max_stale.or(most);
        } else if is("min-fresh") {
            self.min_fresh = self.min_fresh.or(number);
        } else if is("stale-if-error") {
            self.stale_if_error = self.stale_if_error.or(number);
        } else if is("no-cache") {
            self.no_cache = true;
        } else if is("no-store") {
            self.no_store = true;
        } else if is("only-if-cached") {
            self.only_if_cached = true;
        }
    }

    /// Oldest response that needs no validation, in seconds: 0 for `no-cache`.
    #[must_use]
    pub fn age_cap(&self) -> Option<f64> {
        if self.no_cache { Some(0.0) } else { self.max_age }
    }
}

/// A number of seconds: digits, perhaps in quotes. Very large numbers are [`SECONDS_MAX`].
pub(crate) fn seconds(value: &[u8]) -> Option<f64> {
    let value = value.trim_ascii();
    let value = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let sum =
        value.iter().fold(0.0, |sum: f64, digit| (sum * 10.0 + f64::from(digit.wrapping_sub(b'0'))).min(SECONDS_MAX));
    is_number.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(lines: &[(&str, &str)]) -> Wishes {
        let mut request = Message::new();
        for (name, value) in lines {
            request.append(name.as_bytes(), value.as_bytes());
        }
        Wishes::of(&request)
    }

    fn control(value: &str) -> Wishes {
        wishes(&[("Cache-Control", value)])
    }

    #[test]
    fn each_directive_is_heard() {
        let none = Wishes::default;
        let cases = [
            ("max-age=5", Wishes { max_age: Some(5.0), ..none() }),
            ("MAX-AGE = \"5\"", Wishes { max_age: Some(5.0), ..none() }),
            ("max-age=0005, max-age=9", Wishes { max_age: Some(5.0), ..none() }),
            ("max-stale", Wishes { max_stale: Some(f64::INFINITY), ..none() }),
            ("max-stale=7", Wishes { max_stale: Some(7.0), ..none() }),
            ("max-stale=x", none()),
            ("min-fresh=7", Wishes { min_fresh: Some(7.0), ..none() }),
            ("stale-if-error=7", Wishes { stale_if_error: Some(7.0), ..none() }),
            ("no-cache", Wishes { no_cache: true, ..none() }),
            ("no-store,only-if-cached", Wishes { no_store: true, only_if_cached: true, ..none() }),
            ("max-age=99999999999999999999", Wishes { max_age: Some(SECONDS_MAX), ..none() }),
        ];
        for (value, expected) in cases {
            assert_eq!(control(value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_unknown_or_unreadable_is_no_wish() {
        for value in [
            "nothing-to-see-here",
            "",
            "max-age",
            "max-age=-1",
            "max-age=1.5",
            "max-age='1'",
            "x=\"no-cache\"",
            "no-caches",
        ] {
            assert_eq!(control(value), Wishes::default(), "{value}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let both = wishes(&[("Cache-Control", "max-age=1"), ("cache-control", "no-store")]);
        assert_eq!(both, Wishes { max_age: Some(1.0), no_store: true, ..Wishes::default() });
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert!(wishes(&[("Pragma", "foo, no-cache")]).no_cache);
        assert!(!wishes(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=1")]).no_cache);
        assert!(!wishes(&[("Pragma", "foo")]).no_cache);
    }

    #[test]
    fn no_cache_wants_no_response_however_young() {
        assert_eq!(control("no-cache, max-age=9").age_cap(), Some(0.0));
        assert_eq!(control("max-age=9").age_cap(), Some(9.0));
        assert_eq!(control("").age_cap(), None);
    }
}
