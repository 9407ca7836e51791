//! Arbitrary bytes as a stored message.

use message::{Message, stored_headers, stored_notes, visit_stored_names};

/// Reads `bytes` like the store.
///
/// # Panics
/// When an accepted message differs after it was written and read again.
pub fn stored(bytes: &[u8]) {
    let mut message = Message::new();
    let listed = stored_headers(bytes).count();
    let mut names = Vec::new();
    let _ = visit_stored_names(bytes, |name| names.push(name));
    assert!(names.iter().copied().eq(stored_headers(bytes).map(|header| header.name())));
    if message.decode(bytes).is_none() {
        return;
    }
    assert_eq!(listed, message.header_count());
    for header in message.headers() {
        assert!(header.name().len() + header.value().len() < header.line().len());
        assert!(message.has(&String::from_utf8_lossy(header.name())) || !header.name().is_ascii());
    }
    for (header, stored) in message.headers().zip(stored_headers(bytes)) {
        assert_eq!((header.name(), header.value()), (stored.name(), &*stored.value()));
    }
    let (mut written, mut again) = (Vec::new(), Message::new());
    message.encode(&mut written);
    // There is more than one way to write a head.
    let mut longer = Vec::new();
    message.encode_as_it_is(&mut longer);
    assert!(again.decode(&longer).is_some() && again.headers().eq(message.headers()));
    assert_eq!((again.status(), again.protocol()), (message.status(), message.protocol()));
    stored_notes(bytes).for_each(|note| written.extend_from_slice(note));
    assert!(again.decode(&written).is_some());
    assert_eq!(
        (again.status(), again.protocol(), again.reason()),
        (message.status(), message.protocol(), message.reason())
    );
    assert!(again.headers().eq(message.headers()));
    assert!(stored_notes(&written).eq(stored_notes(bytes)));
}
