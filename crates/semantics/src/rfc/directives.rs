//! Response directives of Cache-Control. Source: RFC 9111 §1.2.2, §5.2.2.
//!
//! Names are compared without case, several lines are one list, unknown directives are ignored, and
//! of a repeated directive the first counts. An unterminated quoted string hides nothing: such a
//! value is read as if it had no quotes.

use crate::list::members;
use message::Message;
use surface::limits::UNSHARED_FIELDS_MAX;

/// Seconds beyond which it makes no difference. Source: RFC 9111 §1.2.2.
const SECONDS_MAX: u64 = 1 << 31;

/// The part of the response that a directive applies to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// It was not given.
    #[default]
    Nothing,
    /// To these fields.
    Fields(FieldNames),
    /// To all of it.
    Whole,
}

/// Names of fields, in lower case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldNames(Vec<Box<[u8]>>);

impl FieldNames {
    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if this name is among them, ignoring case.
    #[must_use]
    pub fn contain(&self, name: &[u8]) -> bool {
        self.0.iter().any(|it| it.eq_ignore_ascii_case(name))
    }

    /// The names in a list; `None` if there is none, or more than [`UNSHARED_FIELDS_MAX`].
    #[must_use]
    pub fn of_list(list: &[u8]) -> Option<FieldNames> {
        let names: Vec<Box<[u8]>> = members(list).take(UNSHARED_FIELDS_MAX + 1).map(Box::from).collect();
        (!names.is_empty() && names.len() <= UNSHARED_FIELDS_MAX).then_some(FieldNames(names))
    }
}

/// The directives that matter to a shared cache. For those with seconds the inner `None` means an
/// unreadable number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Directives {
    pub max_age: Option<Option<u64>>,
    pub s_maxage: Option<Option<u64>>,
    pub stale_while_revalidate: Option<u64>,
    pub stale_if_error: Option<u64>,
    pub no_cache: Scope,
    pub private: Scope,
    pub no_store: bool,
    pub public: bool,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
}

impl Directives {
    /// Those of all Cache-Control lines.
    #[must_use]
    pub fn of_cache_control(response: &Message) -> Directives {
        let mut directives = Directives::default();
        for line in response.get_all("Cache-Control") {
            if quotes_are_balanced(line) {
                members(line).for_each(|member| directives.add_member(member));
            } else {
                line.split(|&byte| byte == b',').for_each(|member| directives.add_member(member.trim_ascii()));
            }
        }
        directives
    }

    fn add_member(&mut self, member: &[u8]) {
        match member.iter().position(|&byte| byte == b'=') {
            Some(at) => {
                let (name, value) = (member[..at].trim_ascii_end(), member[at + 1..].trim_ascii_start());
                self.add(name, Some(&unquoted(value)));
            }
            None => self.add(member, None),
        }
    }

    /// Adds a directive with its value, if it has one. A directive that was there already is
    /// unchanged; of two scopes the wider one counts.
    pub(super) fn add(&mut self, name: &[u8], value: Option<&[u8]>) {
        let seconds = || value.and_then(delta_seconds);
        match name.to_ascii_lowercase().as_slice() {
            b"max-age" => _ = self.max_age.get_or_insert_with(seconds),
            b"s-maxage" => _ = self.s_maxage.get_or_insert_with(seconds),
            b"stale-while-revalidate" => self.stale_while_revalidate = self.stale_while_revalidate.or_else(seconds),
            b"stale-if-error" => self.stale_if_error = self.stale_if_error.or_else(seconds),
            b"no-cache" => self.no_cache.add(value),
            b"private" => self.private.add(value),
            b"no-store" => self.no_store = true,
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand = true,
            _ => {}
        }
    }

    /// The effective seconds, for the log; 0 if there are none.
    pub(super) fn max_age_for_log(&self) -> u64 {
        self.s_maxage.or(self.max_age).flatten().unwrap_or(0)
    }

    /// True if this field is for one client only.
    pub(super) fn unshares(&self, name: &[u8]) -> bool {
        [&self.no_cache, &self.private].iter().any(|scope| matches!(scope, Scope::Fields(names) if names.contain(name)))
    }

    /// The names of the fields for one client only.
    pub(super) fn into_names(self) -> FieldNames {
        let mut all = FieldNames::default();
        for scope in [self.no_cache, self.private] {
            if let Scope::Fields(names) = scope {
                all.0.extend(names.0);
            }
        }
        all
    }
}

impl Scope {
    fn add(&mut self, value: Option<&[u8]>) {
        let names = value.and_then(FieldNames::of_list);
        match (&mut *self, names) {
            (Scope::Whole, _) | (_, None) => *self = Scope::Whole,
            (Scope::Nothing, Some(names)) => *self = Scope::Fields(names),
            (Scope::Fields(known), Some(names)) if known.0.len() + names.0.len() <= UNSHARED_FIELDS_MAX => {
                known.0.extend(names.0);
            }
            (Scope::Fields(_), Some(_)) => *self = Scope::Whole,
        }
    }
}

/// A number of seconds: digits only, at most [`SECONDS_MAX`].
pub(super) fn delta_seconds(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |sum: u64, digit| (sum * 10 + u64::from(digit - b'0')).min(SECONDS_MAX)))
}

fn quotes_are_balanced(line: &[u8]) -> bool {
    let (mut is_quoted, mut bytes) = (false, line.iter());
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\\' if is_quoted => _ = bytes.next(),
            _ => {}
        }
    }
    !is_quoted
}

/// The text of a quoted string; any other value unchanged.
fn unquoted(value: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let Some(inner) = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else { return value.into() };
    if !inner.contains(&b'\\') {
        return inner.into();
    }
    let (mut out, mut bytes) = (Vec::with_capacity(inner.len()), inner.iter());
    while let Some(&byte) = bytes.next() {
        out.push(if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte });
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Directives {
        let mut response = Message::new();
        for line in lines {
            response.append(b"cache-control", line.as_bytes());
        }
        Directives::of_cache_control(&response)
    }

    #[test]
    fn seconds_are_digits_and_nothing_else() {
        let cases: &[(&str, Option<Option<u64>>)] = &[
            ("max-age=3600", Some(Some(3600))),
            ("MaX-aGe=3600", Some(Some(3600))),
            ("max-age=003600", Some(Some(3600))),
            ("max-age=\"3600\"", Some(Some(3600))),
            ("max-age=99999999999", Some(Some(SECONDS_MAX))),
            ("max-age=-3600", Some(None)),
            ("max-age=", Some(None)),
            ("max-age", Some(None)),
            ("max-age='3600'", Some(None)),
            ("max-age=3600.0", Some(None)),
            ("max-age=3600a", Some(None)),
            ("max-age=1, max-age=2", Some(Some(1))),
            ("extension=\"max-age=3600\", max-age=1", Some(Some(1))),
            ("extension=\"max-age=3600, max-age=1", Some(Some(1))),
            ("xmax-age=1", None),
            ("", None),
        ];
        for (line, expect) in cases {
            assert_eq!(of(&[line]).max_age, *expect, "{line}");
        }
    }

    #[test]
    fn lines_are_one_list_and_a_quote_without_end_hides_nothing() {
        let both = of(&["max-age=1", "Private, S-MAXAGE=2, no-STORE"]);
        assert_eq!((both.max_age, both.s_maxage, both.no_store), (Some(Some(1)), Some(Some(2)), true));
        assert_eq!(both.private, Scope::Whole);
        assert!(of(&["foo=\"x, no-store"]).no_store);
        assert!(!of(&["foo=\"x, no-store\""]).no_store);
        assert!(of(&["foo=\"\\\", no-store"]).no_store);
    }

    #[test]
    fn names_of_fields_narrow_a_directive_until_it_is_said_without() {
        let named = of(&["no-cache=\"Set-Cookie, X-A\", private=foo"]);
        assert!(named.unshares(b"set-cookie") && named.unshares(b"x-a") && named.unshares(b"Foo"));
        assert!(!named.unshares(b"x-b"));
        let names = named.into_names();
        assert!(names.contain(b"SET-COOKIE") && !names.is_empty());
        for whole in
            ["no-cache=\"a\", no-cache", "no-cache, no-cache=\"a\"", "no-cache=\"\"", "no-cache=", "no-cache=\" , \""]
        {
            assert_eq!(of(&[whole]).no_cache, Scope::Whole, "{whole}");
        }
        let many = format!("private=\"{}\"", "a,".repeat(UNSHARED_FIELDS_MAX + 1));
        assert_eq!(of(&[&many]).private, Scope::Whole);
        let twice = format!("private=\"{0}\", private=\"{0}\"", "a,".repeat(UNSHARED_FIELDS_MAX));
        assert_eq!(of(&[&twice]).private, Scope::Whole);
    }
}
