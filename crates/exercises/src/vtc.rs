//! Arbitrary bytes as a test script.

use vtc::lex::{Script, WORDS_MAX};
use vtc::macros::Macros;

/// Splits a text into commands, and its blocks too; expands the macros in every word. Nothing may panic or run for ever, and
/// every word must name a line of the text.
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
