//! Heads and chunks: [`Message`] to bytes.

use message::Message;

/// The chunk that ends a chunked body, with an empty trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends request line, headers and the empty line to `out`. Characters that would split the
/// target (VCL may have put a blank there) are percent-encoded. Source: RFC 9112 §3: no whitespace
/// in a request target; RFC 3986 §2.1.
pub fn write_request_head(message: &Message, out: &mut Vec<u8>) {
    out.reserve(message.memory_bytes() + 16);
    out.extend_from_slice(message.method());
    out.push(b' ');
    write_target(message.target(), out);
    out.push(b' ');
    out.extend_from_slice(message.protocol());
    out.extend_from_slice(b"\r\n");
    write_headers(message, out);
}

fn write_target(target: &[u8], out: &mut Vec<u8>) {
    let cuts = |byte: u8| byte <= b' ' || byte == 0x7f;
    if !target.iter().fold(false, |found, &byte| found | cuts(byte)) {
        return out.extend_from_slice(target);
    }
    for &byte in target {
        if cuts(byte) {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.push(byte);
        }
    }
}

/// Appends status line, headers and the empty line to `out`. The status is written modulo 1000.
pub fn write_response_head(message: &Message, out: &mut Vec<u8>) {
    out.reserve(message.memory_bytes() + 16);
    out.extend_from_slice(message.protocol());
    let status = message.status() % 1000;
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[b' ', digit(status / 100), digit(status / 10), digit(status), b' ']);
    out.extend_from_slice(message.reason());
    out.extend_from_slice(b"\r\n");
    write_headers(message, out);
}

fn write_headers(message: &Message, out: &mut Vec<u8>) {
    for header in message.headers() {
        out.extend_from_slice(header.line());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the chunk that ends a chunked body, with these trailers.
pub fn write_trailers(trailers: &Message, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    write_headers(trailers, out);
}

/// Appends the size line of a chunk of `len` bytes; the caller appends the bytes and `\r\n`. A
/// `len` of 0 would end the body: send [`LAST_CHUNK`] for that.
pub fn chunk_header(len: usize, out: &mut Vec<u8>) {
    debug_assert!(len > 0, "an empty chunk ends the body");
    let digits = (usize::BITS - len.leading_zeros()).div_ceil(4).max(1);
    for position in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(len >> (position * 4)) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}
