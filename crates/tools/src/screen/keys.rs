//! Decoder from the bytes of a keyboard to keys.
//!
//! This recognises the keys that the tools use, in the forms of xterm and its many descendants:
//! `ESC [` or `ESC O` and a letter, or `ESC [ number ~`, optionally with modifiers. Any other
//! sequence is a single unknown key.

use std::collections::VecDeque;

/// Longest incomplete sequence that is waited for, in bytes.
const SEQUENCE_BYTES_MAX: usize = 32;
const ESCAPE: u8 = 0x1b;

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Char(char),
    /// A letter with Ctrl, in lower case.
    Control(char),
    /// Any other key.
    Unknown,
}

/// Turns bytes into keys, over any number of reads.
#[derive(Default)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
    keys: VecDeque<Key>,
}

impl Decoder {
    /// Takes in bytes; keys beyond `keys_max` are dropped.
    pub fn push(&mut self, bytes: &[u8], keys_max: usize) {
        self.bytes.extend_from_slice(bytes);
        while let Some((key, used)) = decode(&self.bytes) {
            self.bytes.drain(..used);
            if self.keys.len() < keys_max {
                self.keys.push_back(key);
            }
        }
    }

    /// No byte arrived for a while: an apparent start of a sequence is complete.
    pub fn pause(&mut self) {
        match self.bytes.as_slice() {
            [] => return,
            [ESCAPE] => self.keys.push_back(Key::Escape),
            _ => self.keys.push_back(Key::Unknown),
        }
        self.bytes.clear();
    }

    /// The next key.
    pub fn next(&mut self) -> Option<Key> {
        self.keys.pop_front()
    }

    /// True if there is a next key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }
}

/// The first key and its length in bytes; `None` if its end is still to come.
fn decode(bytes: &[u8]) -> Option<(Key, usize)> {
    let key = match *bytes.first()? {
        ESCAPE => return decode_sequence(bytes),
        b'\r' | b'\n' => Key::Enter,
        0x08 | 0x7f => Key::Backspace,
        byte @ 1..=26 => Key::Control(char::from(b'a' + byte - 1)),
        byte if byte < b' ' => Key::Unknown,
        byte if byte.is_ascii() => Key::Char(char::from(byte)),
        byte => return decode_wide(byte, bytes),
    };
    Some((key, 1))
}

fn decode_sequence(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes.get(1)? {
        b'[' => {}
        b'O' => return Some((letter(*bytes.get(2)?), 3)),
        // A key with Alt, or Escape and another key: in both cases Escape means nothing here.
        _ => return Some((Key::Escape, 1)),
    }
    let Some(length) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (bytes.len() > SEQUENCE_BYTES_MAX).then_some((Key::Unknown, bytes.len()));
    };
    let (parameters, last) = (&bytes[2..2 + length], bytes[2 + length]);
    let key = match (last, parameters.split(|byte| *byte == b';').next()) {
        (b'~', Some(b"1" | b"7")) => Key::Home,
        (b'~', Some(b"4" | b"8")) => Key::End,
        (b'~', Some(b"5")) => Key::PageUp,
        (b'~', Some(b"6")) => Key::PageDown,
        (b'~', _) => Key::Unknown,
        _ => letter(last),
    };
    Some((key, 3 + length))
}

fn letter(byte: u8) -> Key {
    match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => Key::Unknown,
    }
}

/// A character of several bytes in UTF-8.
fn decode_wide(first: u8, bytes: &[u8]) -> Option<(Key, usize)> {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((Key::Unknown, 1)),
    };
    let whole = bytes.get(..length)?;
    match std::str::from_utf8(whole).ok().and_then(|text| text.chars().next()) {
        Some(character) => Some((Key::Char(character), length)),
        None => Some((Key::Unknown, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(reads: &[&[u8]]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        for read in reads {
            decoder.push(read, 100);
        }
        decoder.pause();
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn keys_come_out_however_their_bytes_were_read() {
        let wanted = [Key::Up, Key::PageDown, Key::Char('é'), Key::Control('t'), Key::Home, Key::End, Key::Enter];
        let bytes = b"\x1b[A\x1b[6;5~\xc3\xa9\x14\x1bOH\x1b[4~\r";
        assert_eq!(keys(&[bytes]), wanted);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(keys(&single), wanted);
    }

    #[test]
    fn an_escape_by_itself_is_the_escape_key() {
        assert_eq!(keys(&[b"\x1b"]), [Key::Escape]);
        assert_eq!(keys(&[b"\x1bq"]), [Key::Escape, Key::Char('q')]);
        assert_eq!(keys(&[b"\x7f"]), [Key::Backspace]);
    }

    #[test]
    fn bytes_that_are_not_keys_are_unknown() {
        assert_eq!(keys(&[b"\x1b[200~"]), [Key::Unknown]);
        assert_eq!(keys(&[b"\xff\xc3("]), [Key::Unknown, Key::Unknown, Key::Char('(')]);
        assert_eq!(keys(&[b"\x1b[", &[b'0'; 100], b"q"]), [Key::Unknown, Key::Char('q')]);
        assert_eq!(keys(&[b"\0\x1e"]), [Key::Unknown, Key::Unknown]);
        let mut decoder = Decoder::default();
        decoder.push(&[b'j'; 10_000], 7);
        assert_eq!(std::iter::from_fn(|| decoder.next()).count(), 7);
    }
}
