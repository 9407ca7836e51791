//! Positions: of the protocol (lines, and columns in UTF-16 code units) and of texts (bytes); and
//! paths as URIs. Positions outside a text mean its nearest byte.

use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

/// The lines of a text.
pub(super) struct Lines<'a> {
    text: &'a [u8],
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a [u8]) -> Lines<'a> {
        let ends = text.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
        Lines { text, starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The position of a byte.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        (line, units(&self.text[self.starts[line]..offset]))
    }

    /// A range of bytes as JSON.
    pub(super) fn range(&self, start: usize, end: usize) -> Value {
        let shown = |(line, character)| json!({ "line": line, "character": character });
        json!({ "start": shown(self.position(start)), "end": shown(self.position(end)) })
    }

    /// The byte at a position in JSON; `None` if it is not a position.
    pub(super) fn offset(&self, position: &Value) -> Option<usize> {
        let line = usize::try_from(position["line"].as_u64()?).unwrap_or(usize::MAX);
        let wanted = usize::try_from(position["character"].as_u64()?).unwrap_or(usize::MAX);
        let Some(&start) = self.starts.get(line) else { return Some(self.text.len()) };
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let bytes = &self.text[start..end];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let Ok(text) = std::str::from_utf8(bytes) else { return Some(start + wanted.min(bytes.len())) };
        let mut column = 0;
        for (at, character) in text.char_indices() {
            if column >= wanted {
                return Some(start + at);
            }
            column += character.len_utf16();
        }
        Some(start + bytes.len())
    }
}

/// Length in UTF-16 code units.
pub(super) fn units(bytes: &[u8]) -> usize {
    String::from_utf8_lossy(bytes).chars().map(char::len_utf16).sum()
}

/// The path of a URI: that of a file, or else the URI itself as a name.
pub(super) fn path_of(uri: &str) -> PathBuf {
    let Some(encoded) = uri.strip_prefix("file://") else { return PathBuf::from(uri) };
    let bytes = encoded.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    plain(Path::new(&*String::from_utf8_lossy(&decoded)))
}

/// The URI of a path.
pub(super) fn uri_of(path: &Path) -> String {
    let text = path.to_string_lossy();
    if !text.starts_with('/') {
        return text.into_owned();
    }
    let mut uri = "file://".to_owned();
    for byte in text.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// A path without `.` and `..`, so that paths can be compared.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_utf16_code_units() {
        let text = "a\r\né😀x\n".as_bytes();
        let lines = Lines::of(text);
        let x = text.iter().position(|&byte| byte == b'x').unwrap();
        assert_eq!(lines.position(x), (1, 3));
        let offset = |line, character| lines.offset(&json!({ "line": line, "character": character }));
        assert_eq!((offset(1, 3), offset(0, 99), offset(99, 0)), (Some(x), Some(1), Some(text.len())));
        assert_eq!(lines.offset(&json!({ "line": -1, "character": 0 })), None);
    }

    #[test]
    fn paths_and_uris_are_converted_both_ways() {
        let path = PathBuf::from("/a b/é%.vcl");
        assert_eq!(uri_of(&path), "file:///a%20b/%C3%A9%25.vcl");
        assert_eq!(path_of(&uri_of(&path)), path);
        assert_eq!(path_of("file:///a/./b/../%zz%"), PathBuf::from("/a/%zz%"));
        assert_eq!(uri_of(&path_of("untitled:x")), "untitled:x");
    }
}
