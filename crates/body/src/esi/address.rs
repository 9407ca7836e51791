//! The address of a fragment, derived from `src`.

use super::syntax::{before_nul, push_decoded};
use surface::limits::ESI_SRC_BYTES_MAX;

/// The address of a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    /// Another host than that of the page.
    pub(crate) host: Option<Vec<u8>>,
    /// The target of the request.
    pub(crate) target: Vec<u8>,
    /// It was `https://`; the fragment will be requested without TLS.
    pub(crate) was_https: bool,
}

/// The reason why there is no address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoAddress {
    /// There is no path after the host.
    Invalid {
        /// It was `https://`, which would have been ignored.
        was_https: bool,
    },
    /// It is `https://`, which is not to be included.
    Https,
    /// It would be too long.
    TooLong,
}

/// The address in `src`, relative to the folder of the page. Compat: Varnish 7.1.1. Neither `.` nor
/// `..` is resolved, names of schemes are in small letters, entities are decoded in the target
/// only.
pub(crate) fn resolve(src: &[u8], page: &[u8], with_https: bool) -> Result<Address, NoAddress> {
    let length = src.len();
    let src = before_nul(src);
    let mut target = Vec::new();
    let mut was_https = false;
    let (host, path) = if let Some(rest) = src.strip_prefix(b"http://").filter(|_| length > 7) {
        split_host(rest, was_https)?
    } else if let Some(rest) = src.strip_prefix(b"https://").filter(|_| length > 8) {
        if !with_https {
            return Err(NoAddress::Https);
        }
        was_https = true;
        split_host(rest, was_https)?
    } else {
        if src.first() != Some(&b'/') {
            target.extend_from_slice(folder(page));
            target.push(b'/');
        }
        (None, src)
    };
    if target.len() > ESI_SRC_BYTES_MAX {
        return Err(NoAddress::TooLong);
    }
    push_decoded(path, &mut target);
    Ok(Address { host, target, was_https })
}

fn split_host(rest: &[u8], was_https: bool) -> Result<(Option<Vec<u8>>, &[u8]), NoAddress> {
    let slash = rest.iter().position(|byte| *byte == b'/').ok_or(NoAddress::Invalid { was_https })?;
    Ok((Some(rest[..slash].to_vec()), &rest[slash..]))
}

/// The page's target before the last slash of its path. Compat: without any slash all of it, with
/// the question mark.
fn folder(page: &[u8]) -> &[u8] {
    let path = page.split(|byte| *byte == b'?').next().unwrap_or_default();
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &page[..slash],
        None => &page[..page.len().min(path.len() + 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_to_the_folder_of_the_page() {
        let cases: &[(&str, &str, Option<&str>, &str)] = &[
            ("/x", "/a/b?c", None, "/x"),
            ("x", "/a/b?c/d", None, "/a/x"),
            ("x", "/a/b/", None, "/a/b/x"),
            ("../x?y#z", "/a/b", None, "/a/../x?y#z"),
            ("", "/a/b", None, "/a/"),
            ("x", "*", None, "*/x"),
            ("x", "a?b", None, "a?/x"),
            ("?x", "/", None, "/?x"),
            ("http://h:8/x", "/a", Some("h:8"), "/x"),
            ("http:///x", "/a", Some(""), "/x"),
            ("HTTP://h/x", "/a/b", None, "/a/HTTP://h/x"),
            ("http://", "/a", None, "/http://"),
            ("//h/x", "/a", None, "//h/x"),
            ("https://h&amp;/x", "/a", Some("h&amp;"), "/x"),
            ("/&lt;&gt;&quot;&apos;&amp;amp;&#65;&am&", "/", None, "/<>\"'&amp;&#65;&am&"),
            ("/x\0y", "/", None, "/x"),
        ];
        for (src, page, host, target) in cases {
            let address = resolve(src.as_bytes(), page.as_bytes(), true).unwrap();
            assert_eq!(address.host.as_deref(), host.map(str::as_bytes), "{src}");
            assert_eq!(String::from_utf8(address.target).unwrap(), *target, "{src} in {page}");
            assert_eq!(address.was_https, src.starts_with("https:"));
        }
    }

    #[test]
    fn addresses_without_a_path_or_of_a_forbidden_scheme_are_refused() {
        assert_eq!(resolve(b"http://h", b"/", true), Err(NoAddress::Invalid { was_https: false }));
        assert_eq!(
            resolve(b"https://h?/", b"/", true),
            Ok(Address { host: Some(b"h?".to_vec()), target: b"/".to_vec(), was_https: true })
        );
        assert_eq!(resolve(b"https://h", b"/", true), Err(NoAddress::Invalid { was_https: true }));
        assert_eq!(resolve(b"https://h/x", b"/", false), Err(NoAddress::Https));
        let long = [b"/".repeat(ESI_SRC_BYTES_MAX + 1), b"x".to_vec()].concat();
        assert_eq!(resolve(b"x", &long, false), Err(NoAddress::TooLong));
    }
}
