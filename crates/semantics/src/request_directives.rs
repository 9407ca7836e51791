//! Request directives: the `Cache-Control` of a request.
//!
//! Unknown directives and unreadable numbers are ignored, of several with one name the first
//! counts. `Pragma: no-cache` counts when there is no `Cache-Control`. Source: RFC 9111 §5.2.1,
//! §5.4; RFC 5861 §4.

use crate::list;
use message::Message;

/// Longest time that a directive can name, in seconds. Source: RFC 9111 §1.2.2.
const SECONDS_MAX: f64 = 2_147_483_648.0;

/// The directives of a request; by default none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RequestDirectives {
    /// `max-age`: greatest acceptable age of a response, in seconds.
    pub max_age: Option<f64>,
    /// `max-stale`: time for which a response may have been stale, in seconds; infinite if the
    /// directive has no value.
    pub max_stale: Option<f64>,
    /// `min-fresh`: time for which a response must still be fresh, in seconds.
    pub min_fresh: Option<f64>,
    /// `stale-if-error`: time for which a response may have been stale when the origin fails, in
    /// seconds.
    pub stale_if_error: Option<f64>,
    /// `no-cache`: a stored response must be validated first.
    pub no_cache: bool,
    /// `no-store`: the response must not be stored.
    pub no_store: bool,
    /// `only-if-cached`: no request may be sent to the origin.
    pub only_if_cached: bool,
}

impl RequestDirectives {
    /// Reads the directives of a request.
    #[must_use]
    pub fn of(request: &Message) -> RequestDirectives {
        let mut request_directives = RequestDirectives::default();
        if !request.has("Cache-Control") {
            let asks = |value| list::members(value).any(|member| member.eq_ignore_ascii_case(b"no-cache"));
            request_directives.no_cache = request.has("Pragma") && request.get_all("Pragma").any(asks);
            return request_directives;
        }
        for member in request.get_all("Cache-Control").flat_map(list::members) {
            request_directives.add(member);
        }
        request_directives
    }

    fn add(&mut self, member: &[u8]) {
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

    /// Greatest age of a response that needs no validation, in seconds: 0 for `no-cache`.
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

    fn request_directives(lines: &[(&str, &str)]) -> RequestDirectives {
        let mut request = Message::new();
        for (name, value) in lines {
            request.append(name.as_bytes(), value.as_bytes());
        }
        RequestDirectives::of(&request)
    }

    fn control(value: &str) -> RequestDirectives {
        request_directives(&[("Cache-Control", value)])
    }

    #[test]
    fn each_directive_is_parsed() {
        let none = RequestDirectives::default;
        let cases = [
            ("max-age=5", RequestDirectives { max_age: Some(5.0), ..none() }),
            ("MAX-AGE = \"5\"", RequestDirectives { max_age: Some(5.0), ..none() }),
            ("max-age=0005, max-age=9", RequestDirectives { max_age: Some(5.0), ..none() }),
            ("max-stale", RequestDirectives { max_stale: Some(f64::INFINITY), ..none() }),
            ("max-stale=7", RequestDirectives { max_stale: Some(7.0), ..none() }),
            ("max-stale=x", none()),
            ("min-fresh=7", RequestDirectives { min_fresh: Some(7.0), ..none() }),
            ("stale-if-error=7", RequestDirectives { stale_if_error: Some(7.0), ..none() }),
            ("no-cache", RequestDirectives { no_cache: true, ..none() }),
            ("no-store,only-if-cached", RequestDirectives { no_store: true, only_if_cached: true, ..none() }),
            ("max-age=99999999999999999999", RequestDirectives { max_age: Some(SECONDS_MAX), ..none() }),
        ];
        for (value, expected) in cases {
            assert_eq!(control(value), expected, "{value}");
        }
    }

    #[test]
    fn unknown_or_malformed_directives_are_ignored() {
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
            assert_eq!(control(value), RequestDirectives::default(), "{value}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let both = request_directives(&[("Cache-Control", "max-age=1"), ("cache-control", "no-store")]);
        assert_eq!(both, RequestDirectives { max_age: Some(1.0), no_store: true, ..RequestDirectives::default() });
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert!(request_directives(&[("Pragma", "foo, no-cache")]).no_cache);
        assert!(!request_directives(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=1")]).no_cache);
        assert!(!request_directives(&[("Pragma", "foo")]).no_cache);
    }

    #[test]
    fn no_cache_wants_no_response_however_young() {
        assert_eq!(control("no-cache, max-age=9").age_cap(), Some(0.0));
        assert_eq!(control("max-age=9").age_cap(), Some(9.0));
        assert_eq!(control("").age_cap(), None);
    }
}
