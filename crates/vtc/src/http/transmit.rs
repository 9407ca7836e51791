//! Sending side: requests, responses and chunks, assembled from the words of a command.

use super::Http;
use crate::payload::{self, GENERATED_BYTES_MAX, synthetic_body};
use crate::specification::Arguments;
use crate::test::Outcome;

/// Bytes of a patterned chunk that are sent at a time; a multiple of the pattern.
const PATTERN_STEP_BYTES: usize = 16 << 10;

/// A message under construction.
struct Draft {
    bytes: Vec<u8>,
    body: Option<Vec<u8>>,
    has_own_body: bool,
    has_length: bool,
    has_host: bool,
}

impl Http {
    pub(super) fn send_request(&mut self, arguments: &mut Arguments) -> Outcome {
        let (mut method, mut url, mut protocol) = (b"GET".to_vec(), b"/".to_vec(), b"HTTP/1.1".to_vec());
        let mut upgrade = None;
        self.head_was_asked_for = false;
        while let Some(option) = arguments.peek() {
            match option.text().as_str() {
                "-url" => url = value(arguments)?,
                "-proto" => protocol = value(arguments)?,
                "-method" | "-req" => {
                    method = value(arguments)?;
                    self.head_was_asked_for = method == b"HEAD";
                }
                "-up" => upgrade = Some(value(arguments)?),
                _ => break,
            }
        }
        let mut first = [&method[..], b" ", &url, b" ", &protocol, b"\r\n"].concat();
        if let Some(settings) = &upgrade {
            first.extend_from_slice(b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: ");
            first.extend_from_slice(settings);
            first.extend_from_slice(b"\r\n");
        }
        let adds_host = protocol == b"HTTP/1.1";
        let draft = Draft { bytes: first, body: None, has_own_body: false, has_length: true, has_host: !adds_host };
        self.send_message("txreq", draft, arguments)?;
        upgrade.map_or(Ok(()), |settings| self.upgraded(&settings))
    }

    pub(super) fn send_response(&mut self, arguments: &mut Arguments) -> Outcome {
        let (mut protocol, mut status, mut reason) = (b"HTTP/1.1".to_vec(), b"200".to_vec(), b"OK".to_vec());
        while let Some(option) = arguments.peek() {
            match option.text().as_str() {
                "-proto" => protocol = value(arguments)?,
                "-status" => status = value(arguments)?,
                "-reason" => reason = value(arguments)?,
                _ => break,
            }
        }
        let first = [&protocol[..], b" ", &status, b" ", &reason, b"\r\n"].concat();
        // Sends `Content-Length: 0` by default.
        let body = Some(Vec::new());
        let draft = Draft { bytes: first, body, has_own_body: false, has_length: true, has_host: true };
        self.send_message("txresp", draft, arguments)
    }

    fn send_message(&mut self, name: &str, mut draft: Draft, arguments: &mut Arguments) -> Outcome {
        self.add_headers(&mut draft, arguments)?;
        self.add_body(&mut draft, arguments)?;
        if let Some(word) = arguments.next() {
            return Err(self.journal.fail(format!("Unknown http {name} spec: {}", word.text())));
        }
        let mut bytes = draft.bytes;
        if !draft.has_host {
            bytes.extend_from_slice(b"Host: ");
            bytes.extend(self.journal.test.macros.get("localhost").unwrap_or_else(|| b"127.0.0.1".to_vec()));
            bytes.extend_from_slice(b"\r\n");
        }
        if let Some(body) = draft.body.as_ref().filter(|_| draft.has_length) {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend(draft.body.unwrap_or_default());
        self.journal.dump(4, name, &bytes);
        self.send(&bytes)
    }

    fn add_headers(&mut self, draft: &mut Draft, arguments: &mut Arguments) -> Outcome {
        while let Some(option) = arguments.peek() {
            match option.text().as_str() {
                "-nolen" => {
                    arguments.next();
                    draft.has_length = false;
                }
                "-nohost" => {
                    arguments.next();
                    draft.has_host = true;
                }
                "-hdr" => {
                    let line = value(arguments)?;
                    draft.has_host |= line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"Host:"));
                    draft.bytes.extend(line);
                    draft.bytes.extend_from_slice(b"\r\n");
                }
                "-hdrlen" => {
                    draft.bytes.extend(value(arguments)?);
                    draft.bytes.extend_from_slice(b": ");
                    let length = self.length(arguments)?;
                    draft.bytes.extend((0..length).rev().map(|left| b'0' + (left % 10) as u8));
                    draft.bytes.extend_from_slice(b"\r\n");
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn add_body(&mut self, draft: &mut Draft, arguments: &mut Arguments) -> Outcome {
        while let Some(option) = arguments.peek() {
            let option = option.text();
            let body = match option.as_str() {
                "-gzipresidual" => {
                    arguments.next();
                    let residual = arguments.number("the residual")?;
                    if residual > 7 {
                        return Err(self.journal.fail(format!("-gzipresidual is 0 to 7, not {residual}")));
                    }
                    self.gzip_residual = usize::try_from(residual).ok();
                    continue;
                }
                "-gziplevel" => {
                    arguments.next();
                    self.gzip_level = u32::try_from(arguments.number("the level")?).unwrap_or(9).min(9);
                    continue;
                }
                "-body" => with_nuls(&value(arguments)?),
                "-bodyfrom" => {
                    let path = String::from_utf8_lossy(&value(arguments)?).into_owned();
                    std::fs::read(&path)
                        .map_err(|error| self.journal.fail(format!("-bodyfrom: cannot read {path}: {error}")))?
                }
                "-bodylen" => {
                    arguments.next();
                    synthetic_body(self.length_above_zero(arguments)?, None)
                }
                "-gziplen" => {
                    arguments.next();
                    let plain = synthetic_body(self.length_above_zero(arguments)?, Some(&mut rand::rng()));
                    self.gzip(draft, &plain)?
                }
                "-gzipbody" => {
                    let plain = value(arguments)?;
                    self.gzip(draft, &plain)?
                }
                _ => break,
            };
            if std::mem::replace(&mut draft.has_own_body, true) {
                return Err(self.journal.fail(format!("{option}: the message has a body already")));
            }
            draft.body = Some(body);
        }
        Ok(())
    }

    fn length(&self, arguments: &mut Arguments) -> Outcome<usize> {
        let length = arguments.number("the length")?;
        if length > GENERATED_BYTES_MAX {
            return Err(self.journal.fail(format!("a length of more than {GENERATED_BYTES_MAX} bytes: {length}")));
        }
        Ok(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn length_above_zero(&self, arguments: &mut Arguments) -> Outcome<usize> {
        let length = self.length(arguments)?;
        if length == 0 { Err(self.journal.fail("the length must be more than 0")) } else { Ok(length) }
    }

    fn gzip(&mut self, draft: &mut Draft, plain: &[u8]) -> Outcome<Vec<u8>> {
        draft.bytes.extend_from_slice(b"Content-Encoding: gzip\r\n");
        let packed = payload::gzip(&self.journal, plain, self.gzip_level, self.gzip_residual)?;
        self.body_length = packed.len().to_string();
        self.journal.log(3, format!("new bodylen {}", packed.len()));
        self.journal.dump(4, "body", &packed);
        Ok(packed)
    }

    pub(super) fn send_chunk(&mut self, bytes: &[u8]) -> Outcome {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.journal.dump(4, "chunked", &chunk);
        self.send(&chunk)
    }

    /// A chunk of `01234567…`; with length 0, the last chunk.
    pub(super) fn send_patterned_chunk(&mut self, length: u64) -> Outcome {
        if length == 0 {
            self.journal.dump(4, "chunked", b"0\r\n\r\n");
            return self.send(b"0\r\n\r\n");
        }
        let pattern: Vec<u8> = (0..PATTERN_STEP_BYTES).map(|index| b'0' + (index % 8) as u8).collect();
        let head = format!("{length:x}\r\n").into_bytes();
        self.journal.dump(4, "chunked", &head);
        if length < PATTERN_STEP_BYTES as u64 {
            return self.send(&[&head, &pattern[..length as usize], b"\r\n"].concat());
        }
        self.send(&head)?;
        let mut left = length;
        while left > 0 {
            let step = left.min(PATTERN_STEP_BYTES as u64);
            self.send(&pattern[..step as usize])?;
            left -= step;
        }
        self.send(b"\r\n")
    }
}

/// The word after an option.
fn value(arguments: &mut Arguments) -> Outcome<Vec<u8>> {
    let option = arguments.next().map(|word| word.text()).unwrap_or_default();
    arguments.need(&format!("what follows {option}")).map(|word| word.bytes)
}

/// `\0` in a body means a NUL: no other notation for it can be used here.
fn with_nuls(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().peekable();
    while let Some(byte) = rest.next() {
        let is_nul = *byte == b'\\' && rest.next_if_eq(&&b'0').is_some();
        bytes.push(if is_nul { 0 } else { *byte });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_written_with_a_backslash() {
        assert_eq!(with_nuls(b"a\\0b\\1\\"), b"a\0b\\1\\");
    }
}
