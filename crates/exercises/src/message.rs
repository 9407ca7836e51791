//! Arbitrary bytes as a stored message.

use message::{Message, stored_headers, stored_notes};

/// Reads `bytes` as the store does.
///
/// # Panics
/// When an accepted message is written differently from how it was read.
pub fn stored(bytes: &[u8]) {
    let mut message = Message::new();
    let listed = stored_headers(bytes).count();
    if message.decode(bytes).is_none() {
        return;
    }
    assert_eq!(listed, message.header_count());
    for header in message.headers() {
        assert!(header.name().len() + header.value().len() < header.line().len());
        assert!(message.has(&String::from_utf8_lossy(header.name())) || !header.name().is_ascii());
    }
    let mut written = Vec::new();
    message.encode(&mut written);
    stored_notes(bytes).for_each(|note| written.extend_from_slice(note));
    assert_eq!(written, bytes);
}
