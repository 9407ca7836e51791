//! Arbitrary bytes as an `-A` file, and their words as lists of ciphers.

use ::tls::cipher_list;
use ::tls::hitch::{Assignment, Value, line_of, parse};
use std::collections::BTreeSet;
use surface::limits::TLS_FILE_DEPTH_MAX;

/// Parses `bytes`; writes the result, parses that again, and takes every word as a list of ciphers.
///
/// # Panics
/// When an error is reported on a line that does not exist, when the second result differs, when
/// blocks are nested beyond the limit, or when a list selects nothing, or an entry twice.
pub fn tls_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let all = match parse(text) {
        Ok(all) => all,
        Err(error) => {
            assert!((1..=text.split('\n').count()).contains(&error.line) && !error.what.is_empty(), "{error}");
            let _ = line_of(text, error.line);
            return;
        }
    };
    let mut written = String::new();
    write(&all, 0, &mut written);
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(without_lines(&again), without_lines(&all), "{written}");
}

fn write(all: &[Assignment], depth: usize, written: &mut String) {
    assert!(depth <= TLS_FILE_DEPTH_MAX);
    for Assignment { key, value, .. } in all {
        written.push_str(key);
        match value {
            Value::Block(block) => {
                written.push_str(" = {\n");
                write(block, depth + 1, written);
                written.push('}');
            }
            Value::Words(words) => {
                written.push('=');
                assert!(!words.is_empty());
                for word in words {
                    check_list(word);
                    written.push_str(&format!(" \"{word}\""));
                }
            }
        }
        written.push('\n');
    }
}

fn check_list(list: &str) {
    for chosen in [cipher_list::tls12(list), cipher_list::tls13(list)].into_iter().flatten() {
        let distinct: BTreeSet<_> = chosen.iter().collect();
        assert!(!chosen.is_empty() && distinct.len() == chosen.len(), "{list}");
    }
}

/// The same assignments, as if all were on one line.
fn without_lines(all: &[Assignment]) -> Vec<Assignment> {
    let value = |value: &Value| match value {
        Value::Block(block) => Value::Block(without_lines(block)),
        Value::Words(words) => Value::Words(words.clone()),
    };
    all.iter().map(|one| Assignment { key: one.key.clone(), value: value(&one.value), line: 1 }).collect()
}
