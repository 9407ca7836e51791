//! Arbitrary bytes as a test script.

use vtc::http2::frame::{Frame, HEAD_BYTES};
use vtc::http2::hpack::{HEADERS_MAX, LIST_BYTES_MAX};
use vtc::http2::state::{BODY_BYTES_MAX, State};
use vtc::lex::{Script, WORDS_MAX};
use vtc::macros::Macros;

/// Splits a text into commands, and its blocks too; expands the macros in every word. Nothing may
/// panic or run forever, and every word must have the number of a line of the text.
pub fn script(text: &[u8]) {
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
    let macros = Macros::new([("a".to_owned(), "b c".to_owned())]);
    for command in Script::new(text, 1) {
        match command {
            Ok(command) => {
                assert!(!command.words.is_empty() && command.words.len() <= WORDS_MAX);
                assert!(command.line >= 1 && command.line <= lines);
                for word in &command.words {
                    assert!(word.line >= command.line && word.line <= lines);
                    let _ = macros.expand(&word.bytes, true);
                    let _ = macros.expand(&word.bytes, false);
                    // A block is itself a script.
                    for inner in Script::new(&word.bytes, word.line).flatten() {
                        assert!(inner.line >= word.line);
                    }
                }
            }
            Err(error) => assert!(error.line >= 1 && error.line <= lines && !error.message.is_empty()),
        }
    }
}

/// Passes frames to the test runner's end of a connection; the first byte selects the end. Nothing
/// may panic, tables stay within their size, and headers and bodies within their limits.
///
/// # Panics
/// When one of these properties is violated.
pub fn frames(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let mut state = State::new(first % 2 == 1);
    while let Some((head, others)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let (mut frame, length) = Frame::of_head(*head);
        let (payload, others) = others.split_at(length.min(others.len()));
        frame.payload = payload.to_vec();
        rest = others;
        let id = frame.stream;
        state.open(id);
        let (_, taken) = state.take_in(frame);
        assert!(state.decoder.bytes() <= state.decoder.bytes_max());
        assert!(state.encoder.bytes() <= state.encoder.bytes_max());
        let stream = state.stream(id);
        assert!(stream.body.as_ref().is_none_or(|body| body.len() <= BODY_BYTES_MAX));
        for headers in [&stream.request, &stream.response] {
            assert!(headers.len() <= HEADERS_MAX);
            assert!(headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= LIST_BYTES_MAX);
        }
        if taken.is_err_and(|fault| fault.is_always_fatal) {
            return;
        }
    }
}
