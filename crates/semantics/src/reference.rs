//! The resource of the same origin that a `Location` or `Content-Location` refers to, if any.
//!
//! Only the part of RFC 3986 §5 needed to find the other resources that a successful request has
//! changed (RFC 9111 §4.4). The scheme that clients use is not known here, so both http and https
//! count as the same origin, each with its default port.

/// Longest reference that is read, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 8 << 10;

/// The request target that a reference denotes, without its fragment, for a request to `host` (the
/// `Host` field) with the target `base`. `None` if it is of another origin, or does not refer to a
/// resource.
#[must_use]
pub fn target(reference: &[u8], host: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let reference = reference.trim_ascii();
    let is_odd = |byte: &u8| byte.is_ascii_control() || *byte == b' ';
    if reference.len() > REFERENCE_BYTES_MAX || base.len() > REFERENCE_BYTES_MAX || reference.iter().any(is_odd) {
        return None;
    }
    let reference = before(reference, b"#");
    let base = without_origin(before(base, b"#"));
    if let Some((scheme, rest)) = scheme_of(reference) {
        let port = default_port(scheme)?;
        return of_authority(rest.strip_prefix(b"//")?, host, &[port]);
    }
    if let Some(rest) = reference.strip_prefix(b"//") {
        return of_authority(rest, host, &[b"80", b"443"]);
    }
    let base_path = before(base, b"?");
    let mut joined = Vec::new();
    match reference {
        [] => return Some(base.to_vec()),
        [b'?', ..] => joined.extend_from_slice(base_path),
        [b'/', ..] => {}
        _ => {
            let end = base_path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            joined.extend_from_slice(if end == 0 { b"/" } else { &base_path[..end] });
        }
    }
    joined.extend_from_slice(reference);
    Some(straightened(&joined))
}

/// The text before the first of these bytes.
fn before<'a>(text: &'a [u8], stops: &[u8]) -> &'a [u8] {
    &text[..text.iter().position(|byte| stops.contains(byte)).unwrap_or(text.len())]
}

/// The scheme, and the text after its colon.
fn scheme_of(reference: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'))?;
    let (scheme, rest) = reference.split_at(at);
    let is_name = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    (is_name && rest.starts_with(b":")).then(|| (scheme, &rest[1..]))
}

fn default_port(scheme: &[u8]) -> Option<&'static [u8]> {
    [(b"http".as_slice(), b"80".as_slice()), (b"https", b"443")]
        .into_iter()
        .find(|(name, _)| scheme.eq_ignore_ascii_case(name))
        .map(|(_, port)| port)
}

/// The path and query of a target in absolute form.
fn without_origin(target: &[u8]) -> &[u8] {
    match scheme_of(target).and_then(|(_, rest)| rest.strip_prefix(b"//")) {
        Some(rest) => &rest[before(rest, b"/?").len()..],
        None => target,
    }
}

/// The target in `authority/path?query` if the authority is this host.
fn of_authority(rest: &[u8], host: &[u8], ports: &[&[u8]]) -> Option<Vec<u8>> {
    let authority = before(rest, b"/?");
    if !is_same(authority, host, ports) {
        return None;
    }
    let path = &rest[authority.len()..];
    let mut target = Vec::new();
    if !path.starts_with(b"/") {
        target.push(b'/');
    }
    target.extend_from_slice(path);
    Some(straightened(&target))
}

fn is_same(authority: &[u8], host: &[u8], ports: &[&[u8]]) -> bool {
    let split = |text: &'_ [u8]| -> (Vec<u8>, Vec<u8>) {
        // The colons of an IPv6 address are in brackets.
        let colon = text.iter().rposition(|byte| *byte == b':').filter(|at| !text[*at..].contains(&b']'));
        let (name, port) = colon.map_or((text, &[][..]), |at| (&text[..at], &text[at + 1..]));
        (name.to_ascii_lowercase(), port.to_vec())
    };
    let ((one, one_port), (other, other_port)) = (split(authority), split(host));
    let is_default = |port: &[u8]| port.is_empty() || ports.contains(&port);
    let is_same_port = one_port == other_port || (is_default(&one_port) && is_default(&other_port));
    !one.is_empty() && !one.contains(&b'@') && one == other && is_same_port
}

/// Without dot segments. Source: RFC 3986 §5.2.4.
fn straightened(target: &[u8]) -> Vec<u8> {
    let path = before(target, b"?");
    let query = &target[path.len()..];
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_in_slash = false;
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        ends_in_slash = matches!(segment, b"." | b".." | b"");
        match segment {
            b"." => {}
            b".." => _ = segments.pop(),
            segment => segments.push(segment),
        }
    }
    if ends_in_slash && segments.last().is_some_and(|last| last.is_empty()) {
        segments.pop();
    }
    let mut straight = Vec::with_capacity(target.len() + 1);
    for segment in &segments {
        straight.push(b'/');
        straight.extend_from_slice(segment);
    }
    if ends_in_slash || segments.is_empty() {
        straight.push(b'/');
    }
    straight.extend_from_slice(query);
    straight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(reference: &str, host: &str, base: &str) -> Option<String> {
        target(reference.as_bytes(), host.as_bytes(), base.as_bytes()).map(|it| String::from_utf8(it).unwrap())
    }

    #[test]
    fn references_are_resolved_against_the_target() {
        let cases = [
            ("b", "/d/a?q", "/d/b"),
            ("b?x=1", "/d/a", "/d/b?x=1"),
            ("/b", "/d/a", "/b"),
            ("?y", "/d/a?x", "/d/a?y"),
            ("", "/d/a?x", "/d/a?x"),
            ("#top", "/d/a?x", "/d/a?x"),
            ("../b", "/d/e/a", "/d/b"),
            ("../../../b", "/d/a", "/b"),
            (".", "/d/a", "/d/"),
            ("./", "/d/a", "/d/"),
            ("..", "/d/e/a", "/d/"),
            ("/a//b/", "/", "/a//b/"),
            ("/a?../b", "/", "/a?../b"),
            ("b", "http://example.com/d/a", "/d/b"),
            ("b", "*", "/b"),
        ];
        for (reference, base, expected) in cases {
            assert_eq!(meant(reference, "example.com", base).as_deref(), Some(expected), "{reference} {base}");
        }
    }

    #[test]
    fn absolute_references_count_only_for_this_origin() {
        let cases = [
            ("http://example.com/a", "example.com", Some("/a")),
            ("HTTPS://EXAMPLE.com:443/a#b", "example.com", Some("/a")),
            ("http://example.com:80", "example.com", Some("/")),
            ("http://example.com?x", "example.com:80", Some("/?x")),
            ("http://example.com:443/a", "example.com", None),
            ("//example.com/a", "example.com", Some("/a")),
            ("http://127.0.0.1:8001/a", "127.0.0.1:8001", Some("/a")),
            ("http://127.0.0.1:8002/a", "127.0.0.1:8001", None),
            ("http://[::1]:8001/a", "[::1]:8001", Some("/a")),
            ("http://[::1]/a", "[::1]", Some("/a")),
            ("http://example.org/a", "example.com", None),
            ("http://x@example.com/a", "example.com", None),
            ("//example.org/a", "example.com", None),
            ("ftp://example.com/a", "example.com", None),
            ("mailto:a@example.com", "example.com", None),
            ("http:/a", "example.com", None),
            ("http:///a", "", None),
            ("/a b", "example.com", None),
            ("/a\r\nb", "example.com", None),
        ];
        for (reference, host, expected) in cases {
            assert_eq!(meant(reference, host, "/x").as_deref(), expected, "{reference} {host}");
        }
        assert_eq!(meant(&"x".repeat(REFERENCE_BYTES_MAX + 1), "example.com", "/"), None);
    }
}
