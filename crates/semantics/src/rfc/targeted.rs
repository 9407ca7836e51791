//! Fields for certain caches only, which replace Cache-Control and Expires for them.
//!
//! `CDN-Cache-Control` and the operator's own names are Dictionaries of Structured Fields: one that
//! cannot be parsed, or is empty, is ignored. `Surrogate-Control`, which is older, has a syntax of
//! its own, and concerns storing only with `no-store` or `max-age`. Source: RFC 9213 §2; RFC 9651
//! §3.2; W3C Edge Architecture §2.

use super::directives::{Directives, delta_seconds};
use crate::list::members;
use message::Message;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The directives of the first of these fields that is valid; `None` if Cache-Control counts.
pub(super) fn directives(response: &Message, targets: &str) -> Option<Directives> {
    let names = targets.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.filter(|name| response.has(name)).find_map(|name| {
        if name.eq_ignore_ascii_case("Surrogate-Control") {
            of_surrogate_control(response, name)
        } else {
            of_dictionary(response, name)
        }
    })
}

fn of_dictionary(response: &Message, name: &str) -> Option<Directives> {
    let value = response.get_all(name).collect::<Vec<_>>().join(b", ".as_slice());
    let dictionary: Dictionary = Parser::new(&value).parse().ok()?;
    if dictionary.is_empty() {
        return None;
    }
    let mut directives = Directives::default();
    for (name, entry) in &dictionary {
        let name = name.as_str().as_bytes();
        let item = match entry {
            ListEntry::Item(item) => Some(&item.bare_item),
            ListEntry::InnerList(_) => None,
        };
        match item {
            Some(BareItem::Boolean(false)) => {}
            Some(BareItem::Integer(number)) => directives.add(name, Some(i64::from(*number).to_string().as_bytes())),
            // Field names are a String; for a number of seconds that is the wrong type.
            Some(BareItem::String(text)) if is_scoped(name) => directives.add(name, Some(text.as_str().as_bytes())),
            _ => directives.add(name, None),
        }
    }
    Some(directives)
}

fn is_scoped(name: &[u8]) -> bool {
    name == b"no-cache" || name == b"private"
}

/// `no-store`, `max-age=fresh` or `max-age=fresh+stale`; a directive for another surrogate
/// (`;name`) is ignored.
fn of_surrogate_control(response: &Message, name: &str) -> Option<Directives> {
    let mut directives = Directives::default();
    for member in response.get_all(name).flat_map(members) {
        let member = member.to_ascii_lowercase();
        if member.contains(&b';') {
            continue;
        }
        if member == b"no-store" {
            directives.no_store = true;
        } else if let Some(value) = member.strip_prefix(b"max-age=")
            && directives.max_age.is_none()
        {
            let (fresh, stale) = match value.iter().position(|&byte| byte == b'+') {
                Some(at) => (&value[..at], delta_seconds(&value[at + 1..])),
                None => (value, None),
            };
            directives.max_age = Some(delta_seconds(fresh));
            directives.stale_while_revalidate = stale;
        }
    }
    (directives.no_store || directives.max_age.is_some()).then_some(directives)
}

#[cfg(test)]
mod tests {
    use super::super::directives::Scope;
    use super::*;

    fn of(lines: &[(&str, &str)]) -> Option<Directives> {
        let mut response = Message::new();
        for (name, value) in lines {
            response.append(name.as_bytes(), value.as_bytes());
        }
        directives(&response, "My-Cache-Control, CDN-Cache-Control,Surrogate-Control")
    }

    fn cdn(value: &str) -> Option<Directives> {
        of(&[("CDN-Cache-Control", value)])
    }

    #[test]
    fn field_that_is_not_a_dictionary_or_empty_is_ignored() {
        for value in
            ["", "  ", "max-age=10000, &&&&&", "max-age =100", "max-age= 100", "MaX-aGe=3600", "max-age=", "no-store,"]
        {
            assert_eq!(cdn(value), None, "{value}");
        }
        assert_eq!(cdn("foo"), Some(Directives::default()), "it is valid, and replaces Cache-Control");
        assert_eq!(of(&[("Other-Cache-Control", "max-age=1")]), None);
    }

    #[test]
    fn values_must_have_their_type() {
        let max_age = |value: &str| cdn(value).unwrap().max_age;
        assert_eq!(max_age("foobar, max-age=3600"), Some(Some(3600)));
        assert_eq!(max_age("max-age=99999999999"), Some(Some(1 << 31)));
        assert_eq!(max_age("max-age=1, max-age=2"), Some(Some(2)), "in a dictionary the last one counts");
        for wrong in ["max-age=\"10000\"", "max-age=1.5", "max-age=token", "max-age=-1", "max-age", "max-age=(1 2)"] {
            assert_eq!(max_age(wrong), Some(None), "{wrong}");
        }
        let all = cdn("no-store, private=\"a, b\", no-cache, must-revalidate=?1, public=?0").unwrap();
        assert!(all.no_store && all.must_revalidate && !all.public);
        assert!(all.unshares(b"B") && all.no_cache == Scope::Whole);
    }

    #[test]
    fn the_first_name_that_says_something_counts() {
        let both = [("CDN-Cache-Control", "max-age=2"), ("my-cache-control", "max-age=1")];
        assert_eq!(of(&both).unwrap().max_age, Some(Some(1)));
        let broken = [("CDN-Cache-Control", "max-age=2"), ("my-cache-control", "&")];
        assert_eq!(of(&broken).unwrap().max_age, Some(Some(2)));
        let lines = [("CDN-Cache-Control", "max-age=2"), ("cdn-cache-control", "no-store")];
        assert!(of(&lines).unwrap().no_store, "several lines are one dictionary");
    }

    #[test]
    fn surrogate_control_counts_where_it_speaks_of_storing() {
        let surrogate = |value: &str| of(&[("Surrogate-Control", value)]);
        assert_eq!(surrogate("content=\"ESI/1.0\""), None);
        assert_eq!(surrogate("max-age=60;other"), None);
        assert!(surrogate("No-Store, content=\"ESI/1.0\"").unwrap().no_store);
        let both = surrogate("content=\"ESI/1.0\", max-age=60+30").unwrap();
        assert_eq!((both.max_age, both.stale_while_revalidate), (Some(Some(60)), Some(30)));
        assert_eq!(surrogate("max-age=x").unwrap().max_age, Some(None));
    }
}
