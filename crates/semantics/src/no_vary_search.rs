//! `No-Vary-Search`: the parts of a query that a response does not depend on.
//!
//! A field that is absent, malformed, too long or equal to the default makes no [`Rule`]. Two
//! targets are the same under a rule if their normalised forms are the same bytes. Queries are read
//! as `application/x-www-form-urlencoded`; the meaning of their bytes beyond that (UTF-8) is
//! ignored, which at worst makes equal targets differ. Source: draft-ietf-httpbis-no-vary-search §2
//! to §5.

use message::Message;
use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};
use surface::limits::{NO_VARY_SEARCH_BYTES_MAX, NO_VARY_SEARCH_NAMES_MAX, NO_VARY_SEARCH_QUERY_BYTES_MAX};

/// The name of the field.
pub const NAME: &str = "No-Vary-Search";

/// The significant parts of a query. Two rules are equal if they have the same meaning, in any
/// spelling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Decoded names of parameters, sorted, each once.
    names: Vec<Vec<u8>>,
    /// True if only these names count, rather than all but these.
    counts_named_only: bool,
    /// True if the order of different names does not matter.
    any_order: bool,
}

impl Rule {
    /// The rule in a response; `None` if all of the query counts.
    #[must_use]
    pub fn of(response: &Message) -> Option<Rule> {
        if !response.has(NAME) {
            return None;
        }
        let value = response.get_all(NAME).collect::<Vec<_>>().join(b", ".as_slice());
        if value.len() > NO_VARY_SEARCH_BYTES_MAX {
            return None;
        }
        let dictionary: Dictionary = Parser::new(&value).parse().ok()?;
        let mut rule = Rule { names: Vec::new(), counts_named_only: false, any_order: false };
        let mut except = None;
        for (key, entry) in &dictionary {
            match (key.as_str(), entry) {
                ("key-order", entry) => rule.any_order = boolean(entry)?,
                ("params", ListEntry::InnerList(list)) => rule.names = names(list)?,
                ("params", entry) => rule.counts_named_only = boolean(entry)?,
                ("except", ListEntry::InnerList(list)) => except = Some(names(list)?),
                ("except", ListEntry::Item(_)) => return None,
                _ => {}
            }
        }
        if let Some(except) = except {
            if !rule.counts_named_only {
                return None;
            }
            rule.names = except;
        }
        let says_something = rule.any_order || rule.counts_named_only || !rule.names.is_empty();
        says_something.then_some(rule)
    }

    /// The normal form of a request target, common to all targets that are the same under this
    /// rule. `None` if the query is longer than [`NO_VARY_SEARCH_QUERY_BYTES_MAX`], or the target
    /// has a fragment: such a target is the same as itself only.
    #[must_use]
    pub fn normalised(&self, target: &[u8]) -> Option<Vec<u8>> {
        let path = path_of(target);
        let query = target[path.len()..].strip_prefix(b"?").unwrap_or_default();
        if query.len() > NO_VARY_SEARCH_QUERY_BYTES_MAX || target.contains(&b'#') {
            return None;
        }
        let pairs = query.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_at(pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len()));
            (decoded(name), decoded(value.strip_prefix(b"=").unwrap_or_default()))
        });
        let mut pairs: Vec<_> = pairs.filter(|(name, _)| self.counts(name)).collect();
        if self.any_order {
            // Stable: the order of the values of one name matters.
            pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        let mut normalised = path.to_vec();
        for (number, (name, value)) in pairs.iter().enumerate() {
            normalised.push(if number == 0 { b'?' } else { b'&' });
            encode(name, &mut normalised);
            normalised.push(b'=');
            encode(value, &mut normalised);
        }
        Some(normalised)
    }

    /// The rule as unique bytes, for use in a key.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let mut key = vec![u8::from(self.counts_named_only), u8::from(self.any_order)];
        for name in &self.names {
            key.extend_from_slice(&(name.len() as u32).to_le_bytes());
            key.extend_from_slice(name);
        }
        key
    }

    fn counts(&self, name: &[u8]) -> bool {
        self.names.binary_search_by(|known| known.as_slice().cmp(name)).is_ok() == self.counts_named_only
    }
}

/// The part of a request target before its query.
#[must_use]
pub fn path_of(target: &[u8]) -> &[u8] {
    &target[..target.iter().position(|&byte| byte == b'?').unwrap_or(target.len())]
}

fn boolean(entry: &ListEntry) -> Option<bool> {
    match entry {
        ListEntry::Item(item) => match item.bare_item {
            BareItem::Boolean(value) => Some(value),
            _ => None,
        },
        ListEntry::InnerList(_) => None,
    }
}

/// The names in a list; `None` when there is something else in it, or too many.
fn names(list: &InnerList) -> Option<Vec<Vec<u8>>> {
    if list.items.len() > NO_VARY_SEARCH_NAMES_MAX {
        return None;
    }
    let name = |item: &sfv::Item| match &item.bare_item {
        BareItem::String(text) => Some(decoded(text.as_str().as_bytes())),
        _ => None,
    };
    let mut names = list.items.iter().map(name).collect::<Option<Vec<_>>>()?;
    names.sort_unstable();
    names.dedup();
    Some(names)
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let byte = match (first, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) if let (Some(high), Some(low)) = (digit(*high), digit(*low)) => {
                rest = after;
                high << 4 | low
            }
            _ => *first,
        };
        decoded.push(byte);
    }
    decoded
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn encode(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'-' | b'.' | b'_') {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(lines: &[&str]) -> Option<Rule> {
        let mut response = Message::new();
        lines.iter().for_each(|line| response.append(NAME.as_bytes(), line.as_bytes()));
        Rule::of(&response)
    }

    #[test]
    fn targets_are_the_same_if_they_differ_in_what_does_not_matter() {
        let cases = [
            ("params", "/a?x=1&y=2", "/a", true),
            ("params", "/a?x=1", "/b?x=1", false),
            ("params=?1", "/a?x=1", "/a?y=1", true),
            ("params=(\"x\")", "/a?x=1&y=2", "/a?y=2", true),
            ("params=(\"x\")", "/a?x=1", "/a", true),
            ("params=(\"x\")", "/a?y=1", "/a?y=2", false),
            ("params=(\"x\")", "/a?X=1", "/a", false),
            ("params=(\"x\")", "/a?%78=1&x&x=&y", "/a?y=", true),
            ("params=(\"a b\" \"c+d\" \"%C3%A9\")", "/a?a+b=1&c%20d=2&%c3%a9=3", "/a", true),
            ("params, except=(\"id\")", "/a?id=1&x=1", "/a?y=3&id=1", true),
            ("params, except=(\"id\")", "/a?id=1", "/a?id=2", false),
            ("params, except=(\"id\")", "/a?id=1&id=2", "/a?id=2&id=1", false),
            ("params, except=()", "/a?id=1", "/a", true),
            ("key-order", "/a?x=1&y=2", "/a?y=2&x=1", true),
            ("key-order", "/a?x=1&x=2", "/a?x=2&x=1", false),
            ("key-order", "/a?x=1&y=2", "/a?x=1", false),
            ("key-order, params=(\"z\")", "/a?z=0&x=1&y=2", "/a?y=2&x=1&z=1", true),
            ("params=(\"z\")", "/a?x=1&y=2", "/a?y=2&x=1", false),
            ("params=(\"z\")", "/a?x=a+b", "/a?&x=%61%20b&", true),
            ("params=(\"z\")", "/a?x=1=2", "/a?x=1%3D2", true),
            ("params=(\"z\")", "/a?x=%zz%4", "/a?x=%25zz%254", true),
            ("params=(\"z\")", "/a?x=1%26y=2", "/a?x=1&y=2", false),
            ("params;q=1, other=5", "/a?x", "/a", true),
        ];
        for (value, one, other, is_same) in cases {
            let rule = rule(&[value]).unwrap_or_else(|| panic!("{value}"));
            let (one_form, other_form) = (rule.normalised(one.as_bytes()), rule.normalised(other.as_bytes()));
            assert!(one_form.is_some() && other_form.is_some());
            assert_eq!(one_form == other_form, is_same, "{value}: {one} {other}");
        }
    }

    #[test]
    fn malformed_or_empty_field_makes_no_rule() {
        let cases = [
            "",
            "params=()",
            "params=?0",
            "key-order=?0",
            "params=x",
            "params=\"x\"",
            "params=1",
            "params=(x)",
            "params=(\"x\" 1)",
            "params=(\"x\"",
            "key-order=1, params",
            "key-order=(\"x\")",
            "except=(\"x\")",
            "params=?0, except=(\"x\")",
            "params=(\"y\"), except=(\"x\")",
            "params, except",
            "params, except=\"x\"",
            "params, except=(1)",
            "other",
            "Params",
        ];
        for value in cases {
            assert_eq!(rule(&[value]), None, "{value}");
        }
        assert_eq!(rule(&[]), None);
        assert_eq!(rule(&["params=(\"a\")", "key-order"]), rule(&["key-order, params=(\"%61\" \"a\")"]));
        assert_eq!(rule(&["params=(\"a\")", "params"]), rule(&["params"]), "the last of a key counts");
    }

    #[test]
    fn rules_and_queries_without_measure_are_left_alone() {
        let list = |count: usize| format!("params=({})", (0..count).map(|n| format!("\"{n}\" ")).collect::<String>());
        assert!(rule(&[&list(NO_VARY_SEARCH_NAMES_MAX)]).is_some());
        assert_eq!(rule(&[&list(NO_VARY_SEARCH_NAMES_MAX + 1)]), None);
        let long = "x".repeat(NO_VARY_SEARCH_BYTES_MAX);
        assert_eq!(rule(&[&format!("params=(\"{long}\")")]), None);
        let all = rule(&["params"]).unwrap();
        let query = "&".repeat(NO_VARY_SEARCH_QUERY_BYTES_MAX);
        assert_eq!(all.normalised(format!("/a?{query}").as_bytes()).as_deref(), Some(b"/a".as_slice()));
        assert_eq!(all.normalised(format!("/a?{query}&").as_bytes()), None);
        assert_eq!(all.normalised(b"/a?x#y"), None);
    }

    #[test]
    fn different_rules_have_different_keys() {
        let values = [
            "params",
            "key-order",
            "params, key-order",
            "params=(\"a\")",
            "params, except=(\"a\")",
            "params=(\"a\" \"b\")",
        ];
        let keys: Vec<_> = values.iter().map(|value| rule(&[value]).unwrap().key()).collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{}", values[at]);
        }
    }
}
