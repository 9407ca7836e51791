//! The marks by which an origin says that a response is one client's.

use super::directives::{Directives, Scope};
use super::targeted;
use message::Message;

/// A mark of a response for one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateMark {
    /// `no-store`.
    NoStore,
    /// `private`, for the whole response.
    Private,
    /// It sets a cookie, and no directive reserves that header for the requesting client.
    SetCookie,
    /// The same, but the rest of the response may be shared: `public` or `s-maxage`.
    SetCookieOnly,
}

impl PrivateMark {
    /// The mark of a response as the origin sent it; `None` if it has none. `targets`: the fields
    /// that replace Cache-Control, as in [`super::Settings::targets`]; empty = none do.
    #[must_use]
    pub fn of(response: &Message, targets: &str) -> Option<PrivateMark> {
        let sets_cookie = response.has("Set-Cookie");
        let says_something = response.has("Cache-Control") || !targets.is_empty();
        if !sets_cookie && !says_something {
            return None;
        }
        let directives =
            targeted::directives(response, targets).unwrap_or_else(|| Directives::of_cache_control(response));
        if directives.no_store && !directives.must_understand {
            Some(PrivateMark::NoStore)
        } else if directives.private == Scope::Whole {
            Some(PrivateMark::Private)
        } else if !sets_cookie || directives.unshares(b"Set-Cookie") {
            None
        } else if directives.public || directives.s_maxage.is_some() {
            Some(PrivateMark::SetCookieOnly)
        } else {
            Some(PrivateMark::SetCookie)
        }
    }

    /// The mark as it is written in a response.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PrivateMark::NoStore => "no-store",
            PrivateMark::Private => "private",
            PrivateMark::SetCookie | PrivateMark::SetCookieOnly => "Set-Cookie",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_what_the_origin_said_for_shared_caches() {
        let of = |lines: &[(&str, &str)]| {
            let mut response = Message::new();
            lines.iter().for_each(|(name, value)| response.append(name.as_bytes(), value.as_bytes()));
            PrivateMark::of(&response, "CDN-Cache-Control")
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("Cache-Control", "public, max-age=9")]), None);
        assert_eq!(of(&[("Cache-Control", "no-cache")]), None);
        assert_eq!(of(&[("Cache-Control", "no-store, must-understand")]), None);
        assert_eq!(of(&[("Cache-Control", "Private, max-age=9")]), Some(PrivateMark::Private));
        assert_eq!(of(&[("Cache-Control", "private, no-store")]), Some(PrivateMark::NoStore));
        assert_eq!(of(&[("Set-Cookie", "a=b")]), Some(PrivateMark::SetCookie));
        for open in ["public, max-age=9", "s-maxage=9"] {
            assert_eq!(of(&[("Set-Cookie", "a=b"), ("Cache-Control", open)]), Some(PrivateMark::SetCookieOnly));
        }
        assert_eq!(of(&[("Set-Cookie", "a=b"), ("Cache-Control", "max-age=9")]), Some(PrivateMark::SetCookie));
        assert_eq!(of(&[("Set-Cookie", "a=b"), ("Cache-Control", "private=\"set-cookie\"")]), None);
        assert_eq!(of(&[("Set-Cookie", "a=b"), ("Cache-Control", "private=\"x\"")]), Some(PrivateMark::SetCookie));
        assert_eq!(of(&[("CDN-Cache-Control", "max-age=9"), ("Cache-Control", "private")]), None);
        assert_eq!(of(&[("CDN-Cache-Control", "no-store")]), Some(PrivateMark::NoStore));
    }
}
