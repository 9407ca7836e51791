//! The absolute form of a request target. Source: RFC 9112 §3.2.2.

use memchr::memchr;

/// A target in absolute form, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbsoluteForm<'a> {
    /// Whether the scheme is https. Compat: Varnish takes these apart only with the feature `https_scheme`.
    pub https: bool,
    /// What belongs into `Host`: host and port; may be empty.
    pub host: &'a [u8],
    /// The path and query, starting with `/`.
    pub path: &'a [u8],
}

/// Takes `http://host/path` (and `https://`) apart, the scheme in any case. `None` when the target has another form, a URI
/// without a path among them. Compat: Varnish leaves `http://host` and `http://host?query` as they are.
#[must_use]
pub fn split_absolute_form(target: &[u8]) -> Option<AbsoluteForm<'_>> {
    if target.first() == Some(&b'/') {
        return None;
    }
    let after = |scheme: &str| {
        let (head, rest) = target.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    };
    let (https, rest) =
        after("http://").map(|rest| (false, rest)).or_else(|| after("https://").map(|rest| (true, rest)))?;
    let slash = memchr(b'/', rest)?;
    let (host, path) = rest.split_at(slash);
    (!host.contains(&b'?')).then_some(AbsoluteForm { https, host, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uris_with_a_path_are_taken_apart() {
        let split = |target: &str| match split_absolute_form(target.as_bytes()) {
            None => "as it is".to_owned(),
            Some(AbsoluteForm { https, host, path }) => {
                let scheme = if https { "https" } else { "http" };
                format!("{scheme} {} {}", String::from_utf8_lossy(host), String::from_utf8_lossy(path))
            }
        };
        let cases = [
            ("http://other/x?y", "http other /x?y"),
            ("HTTP://other:80/", "http other:80 /"),
            ("https://other/x", "https other /x"),
            ("http:///x", "http  /x"),
            ("http://u:p@other/x", "http u:p@other /x"),
            ("http://other", "as it is"),
            ("http://other?x", "as it is"),
            ("http://other?x/y", "as it is"),
            ("http:/other/x", "as it is"),
            ("ftp://other/x", "as it is"),
            ("/http://other/x", "as it is"),
            ("*", "as it is"),
            ("", "as it is"),
            ("other:443", "as it is"),
        ];
        for (target, expect) in cases {
            assert_eq!(split(target), expect, "{target}");
        }
    }
}
