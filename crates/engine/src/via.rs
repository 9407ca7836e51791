//! `Via` towards origins, and the loop that it shows: a backend that leads to the daemon itself.
//!
//! The name is a random one for each worker, so that two daemons in a chain do not count as a loop.
//! Source: RFC 9110 §7.6.3; the status, RFC 5842 §7.2.
//!
//! *Invariant:* under `rfc` every request to an origin names its worker in `Via`, and one that
//! returns is answered with 508.

use crate::logged::{self, MessageTags};
use message::Message;
use shm::log::LogBuffer;

const NAME: &str = "Via";

/// The name for a random number.
#[must_use]
pub fn pseudonym(random: u64) -> String {
    format!("copal-{random:016x}")
}

/// Adds the hop to a request for an origin. The protocol is that of the request as it was received.
pub(crate) fn add(log: &mut LogBuffer, tags: MessageTags, request: &mut Message, pseudonym: &str) {
    let mut version = [0; 8];
    let received = request.protocol().strip_prefix(b"HTTP/").unwrap_or(b"1.1");
    let len = received.len().min(version.len());
    version[..len].copy_from_slice(&received[..len]);
    logged::append(log, tags, request, NAME, &[&version[..len], b" ", pseudonym.as_bytes()]);
}

/// True if a request has passed through the worker of that name.
pub(crate) fn names(request: &Message, pseudonym: &str) -> bool {
    let members = request.get_all(NAME).flat_map(|value| value.split(|&byte| byte == b','));
    members.map(<[u8]>::trim_ascii).any(|member| {
        let mut words = member.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(1) == Some(pseudonym.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_name_in_its_place_is_a_loop() {
        let own = pseudonym(7);
        for (value, is_loop) in [
            (format!("1.1 {own}"), true),
            (format!("1.0 fred, 2.0  {own} (comment) ,1.1 nginx"), true),
            (format!("1.1 {}", pseudonym(8)), false),
            (format!("1.1 {own}x"), false),
            (format!("1.1 fred ({own})"), false),
            ("1.1 varnish (Varnish/7.1)".to_owned(), false),
            (String::new(), false),
        ] {
            let mut request = Message::new();
            request.append(b"Via", b"1.1 other");
            request.append(b"Via", value.as_bytes());
            assert_eq!(names(&request, &own), is_loop, "{value}");
        }
        assert!(!names(&Message::new(), &own));
    }
}
