//! The absolute form of a request target. Source: RFC 9112 §3.2.2.

use crate::authority::{is_authority, is_user};

/// A target in absolute form, split into its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbsoluteForm<'a> {
    /// Value that replaces `Host`, regardless of the client's: host and port, without a user.
    pub host: &'a [u8],
    /// Path and query; either may be missing.
    rest: &'a [u8],
}

impl AbsoluteForm<'_> {
    /// The target to request from an origin. Source: RFC 9112 §3.2.1, and §3.2.4 for OPTIONS.
    #[must_use]
    pub fn origin_form(&self, method: &[u8]) -> Vec<u8> {
        match self.rest {
            [] if method == b"OPTIONS" => b"*".to_vec(),
            [b'/', ..] => self.rest.to_vec(),
            rest => [b"/", rest].concat(),
        }
    }
}

/// A target that begins like an http or https URI but is not a valid one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedTarget;

/// Splits an http or https URI; the case of the scheme does not matter. `None` if the target has
/// another form. Compat: Varnish splits only a URI that has a path, https only with the feature
/// `https_scheme`, and leaves the user in the host.
///
/// # Errors
/// [`MalformedTarget`]: no host, an invalid host or port, a fragment instead of the path, or
/// CONNECT.
pub fn split_absolute_form<'a>(method: &[u8], target: &'a [u8]) -> Result<Option<AbsoluteForm<'a>>, MalformedTarget> {
    if target.first() == Some(&b'/') {
        return Ok(None);
    }
    let after = |scheme: &str| {
        let (head, rest) = target.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    };
    let Some(rest) = after("http:").or_else(|| after("https:")) else { return Ok(None) };
    let rest = match (method, rest) {
        // A host may be called `http` or `https`, with a port after it.
        (b"CONNECT", [b'0'..=b'9', ..]) => return Ok(None),
        (b"CONNECT", _) => return Err(MalformedTarget),
        (_, [b'/', b'/', rest @ ..]) => rest,
        _ => return Err(MalformedTarget),
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host = match authority.iter().position(|&byte| byte == b'@') {
        Some(at) if is_user(&authority[..at]) => &authority[at + 1..],
        Some(_) => return Err(MalformedTarget),
        None => authority,
    };
    if rest.first() == Some(&b'#') || !is_authority(host) {
        return Err(MalformedTarget);
    }
    Ok(Some(AbsoluteForm { host, rest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(method: &str, target: &str) -> String {
        match split_absolute_form(method.as_bytes(), target.as_bytes()) {
            Err(MalformedTarget) => "malformed".to_owned(),
            Ok(None) => "as it is".to_owned(),
            Ok(Some(form)) => {
                let path = form.origin_form(method.as_bytes());
                format!("{} {}", String::from_utf8_lossy(form.host), String::from_utf8_lossy(&path))
            }
        }
    }

    #[test]
    fn uris_are_taken_apart_and_other_forms_left_alone() {
        for (target, expect) in [
            ("http://other/x?y", "other /x?y"),
            ("HTTP://other:80/", "other:80 /"),
            ("https://other/x", "other /x"),
            ("HTTPS://other", "other /"),
            ("http://u@other/x", "other /x"),
            ("http://u:p@other:80?x", "other:80 /?x"),
            ("http://@other/", "other /"),
            ("http://other", "other /"),
            ("http://other?x", "other /?x"),
            ("http://other?x/y@z", "other /?x/y@z"),
            ("http://other/x@y", "other /x@y"),
            ("http://[::1]:8/x", "[::1]:8 /x"),
            ("http://", "malformed"),
            ("http:///x", "malformed"),
            ("http://?x", "malformed"),
            ("http://:80/x", "malformed"),
            ("http://u@/x", "malformed"),
            ("http://other#f", "malformed"),
            ("http://other:x/", "malformed"),
            ("http://other\\x/", "malformed"),
            ("http://a@b@other/", "malformed"),
            ("http://a/b@other/", "a /b@other/"),
            ("http://a\\@other/", "malformed"),
            ("http:/other/x", "malformed"),
            ("http:other", "malformed"),
            ("ftp://other/x", "as it is"),
            ("/http://other/x", "as it is"),
            ("*", "as it is"),
            ("", "as it is"),
            ("other:443", "as it is"),
        ] {
            assert_eq!(split("GET", target), expect, "{target}");
        }
    }

    #[test]
    fn some_methods_have_forms_of_their_own() {
        for (method, target, expect) in [
            ("OPTIONS", "http://other", "other *"),
            ("OPTIONS", "http://other/", "other /"),
            ("OPTIONS", "http://other?x", "other /?x"),
            ("CONNECT", "other:443", "as it is"),
            ("CONNECT", "http:443", "as it is"),
            ("CONNECT", "http://other:443", "malformed"),
        ] {
            assert_eq!(split(method, target), expect, "{method} {target}");
        }
    }
}
