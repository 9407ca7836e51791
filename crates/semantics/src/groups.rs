//! Groups of stored responses: the groups that a response belongs to, and those that the response
//! to an unsafe request invalidates.
//!
//! Both fields are Lists of Strings; a field with other members is ignored as a whole, parameters
//! are ignored. A group belongs to an origin: the same name at another host is another group. The
//! scheme that clients use is not known here, so a host without a port is the same as with either
//! default port. Source: RFC 9875 §2, §3; RFC 9651 §3.1.

use message::Message;
use sfv::{BareItem, List, ListEntry, Parser};
use surface::limits::{CACHE_GROUP_CHARACTERS_MAX, CACHE_GROUPS_MAX};

/// The field that puts a response into groups.
pub const CACHE_GROUPS: &str = "Cache-Groups";
/// The field that invalidates groups.
pub const CACHE_GROUP_INVALIDATION: &str = "Cache-Group-Invalidation";

/// The groups that a field of a response names: the first [`CACHE_GROUPS_MAX`] that are no longer
/// than [`CACHE_GROUP_CHARACTERS_MAX`]. Case-sensitive.
#[must_use]
pub fn named(response: &Message, field: &str) -> Vec<String> {
    if !response.has(field) {
        return Vec::new();
    }
    let value = response.get_all(field).collect::<Vec<_>>().join(b", ".as_slice());
    let Ok(list) = Parser::new(&value).parse::<List>() else { return Vec::new() };
    let name = |entry: &ListEntry| match entry {
        ListEntry::Item(item) => match &item.bare_item {
            BareItem::String(name) => Some(name.as_str().to_owned()),
            _ => None,
        },
        ListEntry::InnerList(_) => None,
    };
    let Some(names) = list.iter().map(name).collect::<Option<Vec<_>>>() else { return Vec::new() };
    names.into_iter().filter(|name| name.len() <= CACHE_GROUP_CHARACTERS_MAX).take(CACHE_GROUPS_MAX).collect()
}

/// The origin of a `Host` field, normalised so that equal origins compare equal. `None` if the
/// field names no host.
#[must_use]
pub fn origin(host: &[u8]) -> Option<Vec<u8>> {
    let host = host.trim_ascii().to_ascii_lowercase();
    let is_odd = |byte: &u8| byte.is_ascii_control() || matches!(byte, b' ' | b'@' | b'/' | b',');
    // The colons of an IPv6 address are in brackets.
    let colon = host.iter().rposition(|byte| *byte == b':').filter(|at| !host[*at..].contains(&b']'));
    let name = match colon {
        Some(at) if matches!(&host[at + 1..], b"" | b"80" | b"443") => &host[..at],
        Some(_) | None => &host[..],
    };
    (!name.is_empty() && !name.starts_with(b":") && !name.iter().any(is_odd)).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Vec<String> {
        let mut response = Message::new();
        lines.iter().for_each(|value| response.append(b"cache-groups", value.as_bytes()));
        named(&response, CACHE_GROUPS)
    }

    #[test]
    fn groups_are_a_list_of_strings() {
        let cases: [(&[&str], &[&str]); 9] = [
            (&[r#""a""#], &["a"]),
            (&[r#""a", "b""#], &["a", "b"]),
            (&[r#""a""#, r#""b""#], &["a", "b"]),
            (&[r#""a" , "A";x=1;y"#], &["a", "A"]),
            (&[r#""""#], &[""]),
            (&[r#""a b,c""#], &["a b,c"]),
            (&[r#""a\"b\\c""#], &[r#"a"b\c"#]),
            (&[""], &[]),
            (&[], &[]),
        ];
        for (lines, expected) in cases {
            assert_eq!(of(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn invalid_group_lists_are_ignored_as_a_whole() {
        for value in [
            "a",
            "\"a\", b",
            "\"a\", 1",
            "\"a\", (\"b\")",
            "\"a\",",
            "\"a\" \"b\"",
            "\"a",
            "\"a\\x\"",
            "\"a\tb\"",
            "\"a\0\"",
            "\"\u{fc}\"",
            "'a'",
            "?1",
            ":YQ==:",
        ] {
            assert_eq!(of(&["\"good\"", value]), [""; 0], "{value:?}");
        }
    }

    #[test]
    fn groups_beyond_the_limits_are_ignored_and_the_others_count() {
        let (longest, longer) = ("x".repeat(CACHE_GROUP_CHARACTERS_MAX), "x".repeat(CACHE_GROUP_CHARACTERS_MAX + 1));
        assert_eq!(of(&[&format!("\"{longer}\", \"{longest}\"")]), [longest]);
        let many: Vec<String> = (0..5000).map(|number| format!("\"{number}\"")).collect();
        let named = of(&[&many.join(", ")]);
        assert_eq!((named.len(), named.last().unwrap().as_str()), (CACHE_GROUPS_MAX, "31"));
    }

    #[test]
    fn an_origin_is_a_host_and_a_port() {
        for same in ["example.com", "EXAMPLE.com", "example.com:80", "example.com:443", "example.com:", " example.com "]
        {
            assert_eq!(origin(same.as_bytes()).unwrap(), b"example.com", "{same}");
        }
        assert_eq!(origin(b"example.com:8080").unwrap(), b"example.com:8080");
        assert_eq!(origin(b"[::1]:80").unwrap(), b"[::1]");
        assert_eq!(origin(b"[::80]").unwrap(), b"[::80]");
        for nothing in ["", " ", ":80", ":81", "a b", "me@example.com", "a\0", "a/b", "a,b"] {
            assert_eq!(origin(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
