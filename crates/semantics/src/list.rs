//! Comma-separated header values: members, and directives with a value. Source: RFC 9110 §5.6.1.

/// The members of a list, without surrounding blanks. Empty members are left out; commas in quotes
/// do not separate.
pub fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (member, tail) = split_unquoted(rest, b',');
            rest = tail;
            let member = member.trim_ascii();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    })
}

/// The value of the first directive with this name in a list, `name` or `name=value`, ignoring
/// case. The inner `None` if it has no `=`; a value keeps its quotes.
#[must_use]
pub fn directive<'a>(value: &'a [u8], name: &str) -> Option<Option<&'a [u8]>> {
    members(value).find_map(|member| {
        let (head, value) = match member.iter().position(|&byte| byte == b'=') {
            Some(at) => (&member[..at], Some(member[at + 1..].trim_ascii_start())),
            None => (member, None),
        };
        head.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()).then_some(value)
    })
}

/// The parts before and after the first separator that is not in a quoted string.
pub(crate) fn split_unquoted(value: &[u8], separator: u8) -> (&[u8], &[u8]) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in value.iter().enumerate() {
        if escaped {
            escaped = false;
        } else if quoted && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            quoted = !quoted;
        } else if byte == separator && !quoted {
            return (&value[..at], &value[at + 1..]);
        }
    }
    (value, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_separated_by_unquoted_commas() {
        let list = |value: &'static str| {
            members(value.as_bytes()).map(|member| str::from_utf8(member).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(list("a, b ,c"), ["a", "b", "c"]);
        assert_eq!(list(" , ,a,,"), ["a"]);
        assert_eq!(list(r#"a="x, \", y", b"#), [r#"a="x, \", y""#, "b"]);
        assert_eq!(list(r#"a, "b, c"#), ["a", r#""b, c"#]);
        assert!(list("").is_empty());
    }

    #[test]
    fn directives_are_found_whole_and_outside_quotes() {
        let find = |value: &'static str| directive(value.as_bytes(), "max-age").map(|it| it.map(|it| it.to_vec()));
        assert_eq!(find("public, Max-Age=10"), Some(Some(b"10".to_vec())));
        assert_eq!(find("max-age = 10"), Some(Some(b"10".to_vec())));
        assert_eq!(find("max-age"), Some(None));
        assert_eq!(find("max-age="), Some(Some(Vec::new())));
        assert_eq!(find(r#"x="max-age=1", max-age=2"#), Some(Some(b"2".to_vec())));
        assert_eq!(find("xmax-age=10, max-agex=3, public max-age=4"), None);
    }
}
