//! Parser of a byte stream into commands: lines, here-documents, limits.
//!
//! A command is one line. White space before it is skipped, so empty lines are ignored. One leading
//! `-` is dropped (in files of commands it marks those that may fail). If the last word but one is
//! `<<`, the lines up to one that equals the last word become the command's last argument, each
//! with its newline.
//!
//! States: *line* → (`<< token`) → *document* → *line*.

use crate::command_line::{self, SyntaxError};
use surface::cli::CARRYING_VCL;
use surface::limits::{CLI_LINE_BYTES_MAX, CLI_SHOWN_BYTES_MAX, KEPT_BUFFER_BYTES_MAX};

/// The verb must end within this many bytes of a line.
const VERB_BYTES_MAX: usize = 64;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The words, the verb first; never empty.
    pub words: Vec<String>,
    /// The words that are not UTF-8, as received, each with its index: VCL need not be UTF-8.
    pub octets: Vec<(usize, Vec<u8>)>,
    /// The line began with `-`: the sender accepts a failure.
    pub may_fail: bool,
    /// The beginning of the line as received, for the log; at most [`CLI_SHOWN_BYTES_MAX`].
    pub line: String,
}

/// Item of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A command.
    Command(Command),
    /// A line with a `-` but no word.
    Empty,
    /// A line that is not a command; the stream continues with the next line.
    Malformed(SyntaxError),
    /// A command longer than the limit; the stream cannot be used any more.
    TooLong,
}

#[derive(Debug)]
struct Document {
    command: Command,
    token: String,
    text: Vec<u8>,
}

/// Extracts commands from the bytes received.
#[derive(Debug)]
pub struct RequestReader {
    buffer: Vec<u8>,
    /// Start of the first line that has not been taken.
    start: usize,
    /// Part of the buffer that was searched for the end of that line, in bytes.
    searched: usize,
    document: Option<Document>,
    limit_bytes: usize,
    /// A longer line is cut, and here-documents are not recognized.
    is_cutting: bool,
    broken: bool,
}

impl RequestReader {
    /// A reader that accepts commands of up to `limit_bytes`, here-document included.
    #[must_use]
    pub fn new(limit_bytes: usize) -> RequestReader {
        RequestReader {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            document: None,
            limit_bytes,
            is_cutting: false,
            broken: false,
        }
    }

    /// A reader for a sender that has not authenticated: each line is one command, and a line of
    /// more than `limit_bytes` is cut after the first byte beyond the limit. Compat: Varnish 7.1
    /// runs such lines in pieces.
    #[must_use]
    pub fn cutting(limit_bytes: usize) -> RequestReader {
        RequestReader { is_cutting: true, ..RequestReader::new(limit_bytes) }
    }

    /// Accepts whole commands of up to `limit_bytes` from now on: the sender has authenticated.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
        self.is_cutting = false;
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken {
            return;
        }
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Number of bytes of an incomplete request that are held.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.start + self.document.as_ref().map_or(0, |document| document.text.len())
    }

    /// Gives up: the next request is [`Request::TooLong`].
    pub fn refuse(&mut self) {
        self.limit_bytes = 0;
    }

    /// Maximum length of the command at the start of the buffer, or of the one that the
    /// here-document belongs to. All commands except those that carry a VCL are short, and are
    /// refused before more of them is buffered.
    fn command_bytes_max(&self) -> usize {
        let carries_vcl = match &self.document {
            Some(document) => CARRYING_VCL.contains(&document.command.words[0].as_str()),
            None => {
                let line = &self.buffer[self.start..];
                // No verb is longer; this avoids searching a word of megabytes again with each
                // piece received.
                let line = &line[..line.len().min(VERB_BYTES_MAX)];
                let line = line.strip_prefix(b"-").unwrap_or(line).trim_ascii_start();
                let end = line.iter().position(|byte| command_line::is_space(*byte)).unwrap_or(line.len());
                CARRYING_VCL.iter().any(|verb| verb.as_bytes() == &line[..end])
            }
        };
        if carries_vcl { self.limit_bytes } else { self.limit_bytes.min(CLI_LINE_BYTES_MAX) }
    }

    /// The next request, `None` when more bytes are needed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Request> {
        loop {
            if self.broken {
                return None;
            }
            if self.document.is_none() {
                self.start +=
                    self.buffer[self.start..].iter().take_while(|byte| command_line::is_space(**byte)).count();
                self.searched = self.searched.max(self.start);
            }
            let bytes_max = self.command_bytes_max();
            let line = if self.is_cutting { self.take_piece() } else { self.take_line() };
            let Some(line) = line else {
                let pending = self.pending_bytes();
                if pending > bytes_max || pending > 0 && self.limit_bytes == 0 {
                    return self.too_long();
                }
                return None;
            };
            let request = match self.document.take() {
                Some(document) => self.document_line(document, line, bytes_max),
                None => self.command_line(line, bytes_max),
            };
            if request.is_some() {
                return request;
            }
        }
    }

    /// True if the sender stopped in the middle of a command.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.document.is_some() || self.start < self.buffer.len()
    }

    fn too_long(&mut self) -> Option<Request> {
        self.broken = true;
        self.buffer = Vec::new();
        (self.start, self.searched) = (0, 0);
        self.document = None;
        Some(Request::TooLong)
    }

    /// Takes the first line of the buffer, without its end. A carriage return also ends a command
    /// line.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        let in_document = self.document.is_some();
        let ends = |byte: &u8| *byte == b'\n' || (*byte == b'\r' && !in_document);
        let Some(end) = self.buffer[self.searched..].iter().position(ends) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + end;
        if self.start == 0 && end + 1 == self.buffer.len() {
            // Possibly megabytes, so not copied.
            self.searched = 0;
            let mut line = std::mem::take(&mut self.buffer);
            line.pop();
            return Some(line);
        }
        let line = self.buffer[self.start..end].to_vec();
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }

    /// Takes the first line of the buffer, or the beginning of one that is too long.
    fn take_piece(&mut self) -> Option<Vec<u8>> {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let piece = match self.buffer[self.start..].get(..self.limit_bytes.saturating_add(1)) {
            Some(piece) if self.limit_bytes > 0 && !piece.iter().any(is_end) => piece.to_vec(),
            _ => return self.take_line(),
        };
        self.start += piece.len();
        self.searched = self.start;
        Some(piece)
    }

    fn command_line(&mut self, line: Vec<u8>, bytes_max: usize) -> Option<Request> {
        if line.len() > bytes_max && !self.is_cutting {
            return self.too_long();
        }
        let (may_fail, text) = match line.split_first() {
            Some((b'-', rest)) => (true, rest),
            _ => (false, &line[..]),
        };
        let received = match command_line::split_octets(text) {
            Ok(words) => words,
            Err(error) => return Some(Request::Malformed(error)),
        };
        let mut octets = Vec::new();
        let mut words = Vec::with_capacity(received.len());
        for word in received {
            push_word(word, &mut words, &mut octets);
        }
        if words.is_empty() {
            return Some(Request::Empty);
        }
        let line = String::from_utf8_lossy(&text[..text.len().min(CLI_SHOWN_BYTES_MAX)]).trim().to_owned();
        if words.len() >= 3 && words[words.len() - 2] == "<<" && !self.is_cutting {
            let token = words.pop().unwrap_or_default();
            words.pop();
            octets.retain(|(place, _)| *place < words.len());
            let command = Command { words, octets, may_fail, line };
            self.document = Some(Document { command, token, text: Vec::new() });
            return None;
        }
        Some(Request::Command(Command { words, octets, may_fail, line }))
    }

    fn document_line(&mut self, mut document: Document, line: Vec<u8>, bytes_max: usize) -> Option<Request> {
        // Checked before looking for the token: the result must not depend on how much of the line
        // has arrived.
        if document.text.len().saturating_add(line.len()) > bytes_max {
            return self.too_long();
        }
        if line == document.token.as_bytes() {
            push_word(document.text, &mut document.command.words, &mut document.command.octets);
            return Some(Request::Command(document.command));
        }
        document.text.extend_from_slice(&line);
        document.text.push(b'\n');
        self.document = Some(document);
        None
    }
}

fn push_word(word: Vec<u8>, words: &mut Vec<String>, octets: &mut Vec<(usize, Vec<u8>)>) {
    match String::from_utf8(word) {
        Ok(text) => words.push(text),
        Err(error) => {
            let word = error.into_bytes();
            words.push(String::from_utf8_lossy(&word).into_owned());
            octets.push((words.len() - 1, word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], piece: usize, limit_bytes: usize) -> Vec<Request> {
        let mut reader = RequestReader::new(limit_bytes);
        let mut out = Vec::new();
        for part in input.chunks(piece) {
            reader.push(part);
            while let Some(request) = reader.next() {
                out.push(request);
            }
        }
        out
    }

    fn words(request: &Request) -> Vec<&str> {
        match request {
            Request::Command(command) => command.words.iter().map(String::as_str).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_come_out_whatever_the_pieces_they_arrive_in() {
        let input = b"\n\n ping\r\nvcl.inline v1 << %XJ|)Xs\nvcl 4.1;\n\n  sub x {}\r\n%XJ|)Xs\n-quit\n";
        for piece in 1..input.len() {
            let out = read(input, piece, 1000);
            assert_eq!(out.len(), 3, "pieces of {piece}");
            assert_eq!(words(&out[0]), ["ping"]);
            assert_eq!(words(&out[1]), ["vcl.inline", "v1", "vcl 4.1;\n\n  sub x {}\r\n"]);
            assert_eq!(words(&out[2]), ["quit"]);
        }
    }

    #[test]
    fn a_line_that_is_no_command_does_not_end_the_stream() {
        let out = read(b"ping \"x\n-\nping\n", 100, 1000);
        assert_eq!(out[0], Request::Malformed(SyntaxError::MissingQuote));
        assert_eq!(out[1], Request::Empty);
        assert_eq!(words(&out[2]), ["ping"]);
    }

    #[test]
    fn words_that_are_not_utf_8_are_kept_unchanged() {
        let out = read(b"a \xe9 \\xe9 b\nvcl.inline v << E\n\xe9\nE\n", 3, 100);
        let octets = |request: &Request| match request {
            Request::Command(command) => command.octets.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(words(&out[0]), ["a", "\u{fffd}", "\u{fffd}", "b"]);
        assert_eq!(octets(&out[0]), [(1, b"\xe9".to_vec()), (2, b"\xe9".to_vec())]);
        assert_eq!(octets(&out[1]), [(2, b"\xe9\n".to_vec())]);
    }

    #[test]
    fn only_commands_that_carry_a_vcl_may_be_long() {
        let long = vec![b'x'; CLI_LINE_BYTES_MAX];
        let limit = 4 * CLI_LINE_BYTES_MAX;
        for start in ["ban ", "vcl.inlined ", "vcl.load x ", "", " - ban "] {
            let mut reader = RequestReader::new(limit);
            let mut held = 0;
            let refused = [start.as_bytes(), &long, b" "].concat().chunks(1 << 10).any(|piece| {
                reader.push(piece);
                held = held.max(reader.pending_bytes());
                reader.next() == Some(Request::TooLong)
            });
            assert!(refused && held <= CLI_LINE_BYTES_MAX + (1 << 10), "{start} {held}");
            assert_eq!(reader.pending_bytes(), 0);
        }
        for (command, count) in [
            ([b"vcl.inline a ".to_vec(), long.clone(), b"\n".to_vec()].concat(), 3),
            ([b"\n -vcl.inline a \"".to_vec(), long.clone(), b"\"\n".to_vec()].concat(), 3),
            ([b"vcl.inline a << E\n".to_vec(), long.clone(), b"\nE\n".to_vec()].concat(), 3),
        ] {
            let out = read(&command, 1 << 16, limit);
            assert_eq!((out.len(), words(&out[0]).len()), (1, count));
            let Request::Command(command) = &out[0] else { panic!("{out:?}") };
            assert!(command.line.len() <= CLI_SHOWN_BYTES_MAX);
        }
        assert_eq!(read(&[b"ban a << E\n".to_vec(), long, b"x".to_vec()].concat(), 1 << 16, limit), [Request::TooLong]);
    }

    #[test]
    fn room_for_a_long_command_is_given_back() {
        let mut reader = RequestReader::new(1 << 24);
        reader.push(&[b"vcl.inline a ".to_vec(), vec![b'x'; 1 << 20]].concat());
        assert_eq!(reader.next(), None);
        reader.push(b"\nping");
        assert!(matches!(reader.next(), Some(Request::Command(_))));
        assert_eq!(reader.next(), None);
        reader.push(b"\n");
        assert!(matches!(reader.next(), Some(Request::Command(_))));
        reader.push(b"p");
        assert!(reader.buffer.capacity() <= KEPT_BUFFER_BYTES_MAX, "{}", reader.buffer.capacity());
        reader.refuse();
        assert_eq!(reader.next(), Some(Request::TooLong));
    }

    #[test]
    fn a_command_past_the_limit_ends_the_stream() {
        let mut endless = vec![b'x'; 200];
        assert_eq!(read(&endless, 7, 80), [Request::TooLong]);
        endless.push(b'\n');
        assert_eq!(read(&endless, 300, 80), [Request::TooLong]);
        let document = [b"a b << E\n".to_vec(), b"0123456789\n".repeat(20)].concat();
        assert_eq!(read(&document, 5, 80), [Request::TooLong]);
        for piece in [1, 100] {
            assert_eq!(read(b"a << LONG\n01234\nLONG\n", piece, 9), [Request::TooLong], "in pieces of {piece}");
        }
    }
}
