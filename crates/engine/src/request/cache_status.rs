//! `Cache-Status`: the handling of the request by this cache, for debugging a chain of caches.
//!
//! It is made before vcl_deliver, so VCL may change or remove it. Members of caches nearer to the
//! origin stay in front of this cache's. Source: RFC 9211.

use super::Run;
use crate::logged::{self, RESP};
use std::borrow::Cow;
use store::ObjectFlags;
use surface::reason::Reason;

impl Run<'_> {
    /// Adds `Cache-Status` if the policy or the operator enables it.
    #[inline]
    pub(super) fn add_cache_status(&mut self) {
        if self.follows_rfc() || self.request.task.settings.cache_status {
            self.append_cache_status();
        }
    }

    #[cold]
    fn append_cache_status(&mut self) {
        let parameters = self.context.engine.parameters.load();
        if parameters.cache_status_name.is_empty() {
            return;
        }
        let request = &mut *self.request;
        let task = &mut request.task;
        let object = task.found.object.as_ref();
        let row = task.life.reason.map(Reason::row);
        let forwarded = row.map(|row| row.cache_status).filter(|status| !matches!(*status, "" | "hit"));
        let (mut number, mut status) = (itoa::Buffer::new(), itoa::Buffer::new());
        let name = item(&parameters.cache_status_name);
        // In pieces, since a hit formats and allocates nothing.
        let outcome: [&str; 5] = match (object, forwarded) {
            (Some(object), None) => {
                let left = (object.origin() + object.ttl() - task.life.received_at).floor() as i64;
                ["; hit; ttl=", number.format(left), "", "", ""]
            }
            (object, Some(forwarded)) => {
                let (said, status) = match object.and_then(|object| object.origin_status()) {
                    Some(code) => ("; fwd-status=", status.format(code)),
                    None => ("", ""),
                };
                let is_stored = object.is_some_and(|it| !it.is_passing() && !it.flags().has(ObjectFlags::PRIVATE));
                ["; ", forwarded, said, status, if is_stored { "; stored" } else { "" }]
            }
            (None, None) => [""; 5],
        };
        let collapsed = if task.found.has_waited { "; collapsed" } else { "" };
        let (detail, word) = row.map_or(("", ""), |row| ("; detail=", row.word));
        let [a, b, c, d, e] = outcome;
        let value = [&name, a, b, c, d, e, collapsed, detail, word].map(str::as_bytes);
        logged::append(&mut request.log, RESP, &mut task.response, "Cache-Status", &value);
    }
}

/// The name as an item of a Structured Field: a Token if it can be one, else a String, without the
/// characters that a String cannot have. Source: RFC 9651 §4.1.
fn item(name: &str) -> Cow<'_, str> {
    let is_token = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '*')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte));
    if is_token {
        return Cow::Borrowed(name);
    }
    let mut text = String::with_capacity(name.len() + 2);
    text.push('"');
    for letter in name.chars().filter(|letter| matches!(letter, ' '..='~')) {
        if matches!(letter, '"' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('"');
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_token_or_a_quoted_string() {
        for token in ["copal", "cache-1.example.com:80", "*"] {
            assert_eq!(item(token), token);
        }
        assert_eq!(item("my cache"), "\"my cache\"");
        assert_eq!(item("1st"), "\"1st\"");
        assert_eq!(item("a\"\\\r\nb\u{e9}"), "\"a\\\"\\\\b\"");
    }
}
