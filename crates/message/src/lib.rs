//! One HTTP message head over one buffer: start line and header lines in order, case and duplicates
//! kept.
//!
//! A [`Message`] owns a byte buffer and a table of spans into it. Once the buffer has grown,
//! parsing, copying and serialising never allocate; `clear` keeps the capacity, so a connection
//! reuses its messages. The meaning of headers is in `semantics`; receiving the bytes is in
//! `http1`.
//!
//! Invariants: every span lies inside the buffer; a header line is stored as `Name: value`, exactly
//! as it is logged and sent. The form of a head in an arena is in `stored`. Source: RFC 9110 §5
//! (fields), §6 (messages).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod buffer;
pub mod date;
mod stored;
mod vocabulary;

use buffer::Buffer;
use std::ops::Range;
pub use stored::{NOTE_BYTES, StoredHeader, encode_note, stored_headers, stored_notes, visit_stored_names};

/// A piece of a message's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..(self.start + self.len) as usize]
    }

    fn at(range: Range<usize>) -> Span {
        Span { start: range.start as u32, len: (range.end - range.start) as u32 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    line: Span,
    name_len: u16,
    value_start: u16,
    /// The number of the name's [`name_bit`]: names with different bits need not be compared.
    bit: u8,
    is_hop: bool,
}

/// One of 64 bits, chosen by the length and the first and last letters of a header name, ignoring
/// case. Most of the absent names that a hit looks up have a bit of their own.
#[inline]
fn name_bit(name: &[u8]) -> u64 {
    1 << name_bit_number(name)
}

#[inline]
const fn name_bit_number(name: &[u8]) -> u8 {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    let (first, last) = ((*first | 0x20) as usize, (*last | 0x20) as usize);
    ((first ^ (last << 2)).wrapping_add(name.len()) & 63) as u8
}

/// A header line, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderLine<'a> {
    line: &'a [u8],
    name_len: usize,
    value_start: usize,
    is_hop: bool,
}

impl<'a> HeaderLine<'a> {
    /// The whole line, `Name: value`, without the line end, as it is logged and sent.
    #[must_use]
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The name, in the case in which it was received or set.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        &self.line[..self.name_len]
    }

    /// The value without surrounding blanks.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        &self.line[self.value_start..]
    }

    /// True if the header is for one hop only: the message was received with a Connection header
    /// that names it.
    #[must_use]
    pub fn is_hop(&self) -> bool {
        self.is_hop
    }

    /// True if this header has that name, ignoring case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        is_same_name(self.name(), name.as_bytes())
    }
}

/// Compares two header names, ignoring case. Names are short: the standard library's comparison,
/// made for long strings, is not inlined; one that compares byte by byte costs a hit several
/// hundred instructions more.
#[inline]
fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if let (Some(start), Some(other_start)) = (one.first_chunk::<8>(), other.first_chunk::<8>()) {
        let (chunks, _) = one[8..].as_chunks::<8>();
        let (other_chunks, _) = other[8..].as_chunks::<8>();
        let (Some(end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else { return false };
        return are_same_letters(start, other_start)
            && chunks.iter().zip(other_chunks).all(|(one, other)| are_same_letters(one, other))
            && are_same_letters(end, other_end);
    }
    if let (Some(start), Some(other_start), Some(end), Some(other_end)) =
        (one.first_chunk::<4>(), other.first_chunk::<4>(), one.last_chunk::<4>(), other.last_chunk::<4>())
    {
        let both = |start: &[u8; 4], end: &[u8; 4]| {
            (u64::from(u32::from_le_bytes(*start)) | u64::from(u32::from_le_bytes(*end)) << 32).to_le_bytes()
        };
        return are_same_letters(&both(start, end), &both(other_start, other_end));
    }
    one.iter().zip(other).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// Compares eight bytes, ignoring case.
#[inline]
fn are_same_letters(one: &[u8; 8], other: &[u8; 8]) -> bool {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let (one, other) = (u64::from_le_bytes(*one), u64::from_le_bytes(*other));
    let differing = one ^ other;
    if differing & !(EACH * 0x20) != 0 {
        return false;
    }
    // Bytes that differ in the bit of the case must be letters. In each byte: bit 7 of a sum is set
    // if the limit is reached.
    let lower = one | (EACH * 0x20);
    let seven_bits = lower & (EACH * 0x7f);
    let from_a = seven_bits + EACH * u64::from(0x80 - b'a');
    let after_z = seven_bits + EACH * u64::from(0x7f - b'z');
    let letters = from_a & !after_z & !lower & (EACH * 0x80);
    (differing << 2) & !letters == 0
}

/// A request or response head. The start line of a request consists of method, target and protocol;
/// that of a response of protocol, status (a number) and reason.
#[derive(Clone, Debug, Default)]
pub struct Message {
    buffer: Buffer,
    method: Span,
    target: Span,
    protocol: Span,
    reason: Span,
    status: u16,
    /// The [`name_bit`] of every header. Removing a header does not clear its bit.
    names: u64,
    /// Outside of the message: an empty one must be small, and most of those of a waiting request
    /// are empty.
    fields: Vec<Field>,
}

impl Message {
    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes the contents but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.fields.clear();
        self.names = 0;
        self.method = Span::default();
        self.target = Span::default();
        self.protocol = Span::default();
        self.reason = Span::default();
        self.status = 0;
    }

    /// Removes the contents, and frees the memory if it is more than `kept_bytes`.
    pub fn shrink_to(&mut self, kept_bytes: usize) {
        self.clear();
        if self.buffer.room_bytes() > kept_bytes {
            self.buffer = Buffer::default();
        }
        if self.fields.capacity() * size_of::<Field>() > kept_bytes {
            self.fields = Vec::new();
        }
    }

    /// Makes room for later additions, so that they do not allocate.
    pub fn reserve(&mut self, bytes: usize, headers: usize) {
        self.buffer.reserve(bytes);
        self.fields.reserve(headers);
    }

    /// Makes room for the contents of another message and a few headers more.
    pub fn reserve_for(&mut self, other: &Message) {
        const MORE_BYTES: usize = 192;
        const MORE_HEADERS: usize = 6;
        self.reserve(other.buffer.len() + MORE_BYTES, other.fields.len() + MORE_HEADERS);
    }

    /// Makes this message equal to the other, reusing this one's memory.
    pub fn copy_from(&mut self, other: &Message) {
        self.buffer.clear();
        self.buffer.put(&other.buffer);
        self.fields.clear();
        self.fields.extend_from_slice(&other.fields);
        self.names = other.names;
        self.method = other.method;
        self.target = other.target;
        self.protocol = other.protocol;
        self.reason = other.reason;
        self.status = other.status;
    }

    /// Bytes in use, including those of removed headers; `request_memory_max` limits them.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.buffer.len() + self.fields.len() * size_of::<Field>()
    }

    /// Bytes allocated, used or not.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.buffer.room_bytes() + self.fields.capacity() * size_of::<Field>()
    }

    fn push(&mut self, bytes: &[u8]) -> Span {
        let start = self.buffer.len();
        self.buffer.put(bytes);
        Span::at(start..start + bytes.len())
    }

    /// Begins a message whose head was received: all of it is copied at once, and
    /// [`Message::set_request_line`] and [`Message::append_received`] add parts of it.
    pub fn begin_received(&mut self, head: &[u8]) {
        // Most lines are longer; VCL adds some.
        const LINE_BYTES: usize = 24;
        self.clear();
        self.reserve(head.len() + head.len() / 4, head.len() / LINE_BYTES + 4);
        self.buffer.put(head);
    }

    /// Drops the bytes after the first `len` given to [`Message::begin_received`]: they were not
    /// part of the head. Call it before anything other than parts of the head is added.
    pub fn cut_received(&mut self, len: usize) {
        self.buffer.truncate(len);
    }

    /// Names the parts of the start line of a request, as ranges of the bytes given to
    /// [`Message::begin_received`].
    ///
    /// # Panics
    /// A range is outside of the head.
    pub fn set_request_line(&mut self, method: Range<usize>, target: Range<usize>, protocol: Range<usize>) {
        assert!([&method, &target, &protocol].iter().all(|range| self.buffer.get((*range).clone()).is_some()));
        (self.method, self.target, self.protocol) = (Span::at(method), Span::at(target), Span::at(protocol));
    }

    /// Like [`Message::append_raw`], for a line that is a range of the bytes given to
    /// [`Message::begin_received`].
    ///
    /// # Panics
    /// An offset is outside of the head.
    pub fn append_received(&mut self, line: Range<usize>, name_len: usize, value_start: usize) {
        let text = &self.buffer[line.clone()];
        assert!(name_len < text.len() && value_start <= text.len() && value_start > name_len);
        let bit = name_bit_number(&text[..name_len]);
        self.put_field(Span::at(line), bit, (name_len, value_start));
    }

    /// The request method; empty in a response.
    #[must_use]
    pub fn method(&self) -> &[u8] {
        self.method.of(&self.buffer)
    }

    /// The request target; empty in a response.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        self.target.of(&self.buffer)
    }

    /// The protocol, e.g. `HTTP/1.1`.
    #[must_use]
    pub fn protocol(&self) -> &[u8] {
        self.protocol.of(&self.buffer)
    }

    /// The response status in VCL (may be 1000 and above; it is sent modulo 1000); 0 in a request.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase; empty in a request.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.reason.of(&self.buffer)
    }

    /// Sets the request method.
    pub fn set_method(&mut self, value: &[u8]) {
        self.method = self.push(value);
    }

    /// Sets the request target.
    pub fn set_target(&mut self, value: &[u8]) {
        self.target = self.push(value);
    }

    /// Sets the protocol.
    pub fn set_protocol(&mut self, value: &[u8]) {
        self.protocol = self.push(value);
    }

    /// Sets the status; the reason stays.
    pub fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// Sets the reason phrase.
    pub fn set_reason(&mut self, value: &[u8]) {
        self.reason = self.push(value);
    }

    #[inline]
    fn borrow(&self, field: Field) -> HeaderLine<'_> {
        HeaderLine {
            line: field.line.of(&self.buffer),
            name_len: usize::from(field.name_len),
            value_start: usize::from(field.value_start),
            is_hop: field.is_hop,
        }
    }

    /// The header lines in order.
    pub fn headers(&self) -> impl DoubleEndedIterator<Item = HeaderLine<'_>> + ExactSizeIterator {
        self.fields.iter().map(|field| self.borrow(*field))
    }

    /// Number of header lines.
    #[must_use]
    pub fn header_count(&self) -> usize {
        self.fields.len()
    }

    /// The value of the first header of this name; `None` if there is none.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        if self.may_have(name) { self.find(name.as_bytes()) } else { None }
    }

    fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let bit = name_bit_number(name);
        self.fields.iter().find_map(|field| {
            if field.bit != bit || usize::from(field.name_len) != name.len() {
                return None;
            }
            let header = self.borrow(*field);
            is_same_name(header.name(), name).then(|| header.value())
        })
    }

    /// The values of all headers of this name, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let bit = name_bit_number(name.as_bytes());
        let fields = if self.names & 1 << bit != 0 { self.fields.as_slice() } else { &[] };
        fields
            .iter()
            .filter(move |field| field.bit == bit && usize::from(field.name_len) == name.len())
            .map(|field| self.borrow(*field))
            .filter(move |header| header.is(name))
            .map(|header| header.value())
    }

    /// False only if there is no header of this name. Tests one bit, for the many headers that most
    /// messages lack.
    #[inline]
    #[must_use]
    pub fn may_have(&self, name: &str) -> bool {
        self.names & name_bit(name.as_bytes()) != 0
    }

    /// True if a header of this name exists.
    #[inline]
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Adds a header line at the end, written `Name: value`. Leading blanks of the value are sent
    /// and logged, but [`Message::get`] leaves them out, as if the line had been received.
    ///
    /// # Panics
    /// The name is longer than 65,530 bytes; parsers bound names long before.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        self.append_parts(name, &[value]);
    }

    /// Like [`Message::append`], with the value in pieces. Returns the line.
    ///
    /// # Panics
    /// As for `append`.
    pub fn append_parts(&mut self, name: &[u8], value: &[&[u8]]) -> &[u8] {
        let start = self.buffer.len();
        self.buffer.reserve(name.len() + 2 + value.iter().map(|part| part.len()).sum::<usize>());
        self.buffer.put(name);
        self.buffer.put(b": ");
        for part in value {
            self.buffer.put(part);
        }
        let line = &self.buffer[start..];
        let name_len = u16::try_from(name.len()).expect("header names are bounded by the parser");
        let mut value_start = name.len() + 2;
        while matches!(line.get(value_start), Some(b' ' | b'\t')) {
            value_start += 1;
        }
        let value_start = u16::try_from(value_start).unwrap_or(name_len + 2);
        let bit = name_bit_number(name);
        self.names |= 1 << bit;
        let span = Span { start: start as u32, len: line.len() as u32 };
        self.fields.push(Field { line: span, name_len, value_start, bit, is_hop: false });
        line
    }

    /// Adds a line as received (`Name:value` with any blanks after the colon). `name_len` is the
    /// offset of the colon, `value_start` that of the first byte of the value; the line must not
    /// end in blanks.
    ///
    /// # Panics
    /// An offset is outside of the line.
    pub fn append_raw(&mut self, line: &[u8], name_len: usize, value_start: usize) {
        assert!(name_len < line.len() && value_start <= line.len() && value_start > name_len);
        let span = self.push(line);
        self.put_field(span, name_bit_number(&line[..name_len]), (name_len, value_start));
    }

    #[inline]
    fn put_field(&mut self, line: Span, bit: u8, (name_len, value_start): (usize, usize)) {
        self.names |= 1 << bit;
        let (name_len, value_start) = (name_len as u16, value_start as u16);
        self.fields.push(Field { line, name_len, value_start, bit, is_hop: false });
    }

    /// Removes every header of this name and adds one at the end.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        self.unset(name);
        self.append(name.as_bytes(), value);
    }

    /// Removes every header of this name; returns their number.
    pub fn unset(&mut self, name: &str) -> usize {
        if !self.may_have(name) {
            return 0;
        }
        let before = self.fields.len();
        let buffer = &self.buffer;
        self.fields.retain(|field| {
            usize::from(field.name_len) != name.len()
                || !is_same_name(&field.line.of(buffer)[..name.len()], name.as_bytes())
        });
        before - self.fields.len()
    }

    /// Joins all headers of this name into one, at the position of the first, with their values
    /// separated by `, `. Returns true if there was more than one. Source: RFC 9110 §5.3.
    pub fn join(&mut self, name: &str) -> bool {
        if !self.may_have(name) {
            return false;
        }
        let mut indexes = self.fields.iter().enumerate().filter(|(_, field)| self.borrow(**field).is(name));
        let (Some((first, _)), true) = (indexes.next(), indexes.next().is_some()) else { return false };
        let values: Vec<Vec<u8>> = self.get_all(name).map(<[u8]>::to_vec).collect();
        let written = self.borrow(self.fields[first]).name().to_vec();
        self.unset(name);
        self.append(&written, &values.join(&b", "[..]));
        if let Some(joined) = self.fields.pop() {
            self.fields.insert(first, joined);
        }
        true
    }

    /// Replaces the header line at that index, counted from 0.
    ///
    /// # Panics
    /// As for [`Message::append`], and there is no line at that index.
    pub fn replace(&mut self, index: usize, name: &[u8], value: &[u8]) {
        self.append(name, value);
        self.fields.swap_remove(index);
    }

    /// Removes the header line at that index, counted from 0.
    ///
    /// # Panics
    /// There is no line at that index.
    pub fn remove(&mut self, index: usize) {
        self.fields.remove(index);
    }

    /// Keeps only the headers for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(HeaderLine<'_>) -> bool) {
        let buffer = &self.buffer;
        self.fields.retain(|field| {
            keep(HeaderLine {
                line: field.line.of(buffer),
                name_len: usize::from(field.name_len),
                value_start: usize::from(field.value_start),
                is_hop: field.is_hop,
            })
        });
    }

    /// Marks the headers whose names the test accepts as meant for one hop only, see
    /// [`HeaderLine::is_hop`]. Headers added later are not marked, even under the same name.
    pub fn mark_hops(&mut self, mut is_hop: impl FnMut(&[u8]) -> bool) {
        let buffer = &self.buffer;
        for field in &mut self.fields {
            field.is_hop |= is_hop(&field.line.of(buffer)[..usize::from(field.name_len)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Message {
        let mut message = Message::new();
        message.set_protocol(b"HTTP/1.1");
        message.set_status(200);
        message.set_reason(b"OK");
        message.append(b"Content-Type", b"text/plain");
        message.append(b"Set-Cookie", b"a=1");
        message.append(b"set-cookie", b"b=2");
        message
    }

    #[test]
    fn headers_keep_order_case_and_duplicates() {
        let message = sample();
        let lines: Vec<_> = message.headers().map(|h| String::from_utf8_lossy(h.line()).into_owned()).collect();
        assert_eq!(lines, ["Content-Type: text/plain", "Set-Cookie: a=1", "set-cookie: b=2"]);
        assert_eq!(message.get_all("SET-COOKIE").collect::<Vec<_>>(), [b"a=1", b"b=2"]);
    }

    #[test]
    fn headers_are_found_in_any_case_however_they_came_in() {
        let mut message = sample();
        message.append_raw(b"x-RAW:  1", 5, 8);
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let (mut decoded, mut copied) = (Message::new(), Message::new());
        decoded.decode(&bytes).unwrap();
        copied.copy_from(&message);
        for message in [&message, &decoded, &copied] {
            for name in ["content-type", "CONTENT-TYPE", "SET-cookie", "X-Raw"] {
                assert!(message.may_have(name) && message.has(name), "{name}");
            }
            assert!(!message.has("X-Other"));
        }
        copied.clear();
        assert!(!copied.may_have("X-Raw"));
    }

    #[test]
    fn names_are_compared_as_the_standard_library_does() {
        let names: [&[u8]; 11] = [
            b"TE",
            b"Age",
            b"Host",
            b"Range",
            b"Content",
            b"Location",
            b"Connection",
            b"X-Forwarded-For",
            b"Accept-Encoding-",
            b"Strict-Transport-Security",
            b"@[`{ name \xc1\x7f",
        ];
        for name in names {
            for at in 0..name.len() {
                for byte in 0..=255 {
                    let mut other = name.to_vec();
                    other[at] = byte;
                    assert_eq!(is_same_name(name, &other), name.eq_ignore_ascii_case(&other), "{other:?}");
                    assert!(is_same_name(&other.to_ascii_uppercase(), &other.to_ascii_lowercase()));
                }
            }
            assert!(!is_same_name(name, &name[1..]));
        }
    }

    #[test]
    fn set_replaces_all_and_moves_to_the_end() {
        let mut message = sample();
        message.append(b"X", b"y");
        message.set("set-COOKIE", b"c=3");
        assert_eq!(message.headers().next_back().unwrap().line(), b"set-COOKIE: c=3");
        assert_eq!(message.get_all("Set-Cookie").count(), 1);
        assert_eq!(message.unset("set-cookie"), 1);
        assert!(!message.has("Set-Cookie"));
    }

    #[test]
    fn blanks_before_a_value_that_is_set_are_sent_and_not_read() {
        let mut message = sample();
        message.set("X", b" \t y ");
        message.set("Y", b"  ");
        assert_eq!((message.get("x"), message.get("Y")), (Some(&b"y "[..]), Some(&b""[..])));
        let last = message.headers().rev().nth(1).unwrap();
        assert_eq!(last.line(), b"X:  \t y ");
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let mut decoded = Message::new();
        decoded.decode(&bytes).unwrap();
        assert_eq!(decoded.get("X"), Some(&b"y "[..]));
    }

    #[test]
    fn joined_headers_stand_where_the_first_stood() {
        let mut message = sample();
        message.append(b"X", b"y");
        assert!(!message.join("X"));
        assert!(message.join("SET-cookie"));
        let lines: Vec<_> = message.headers().map(|h| String::from_utf8_lossy(h.line()).into_owned()).collect();
        assert_eq!(lines, ["Content-Type: text/plain", "Set-Cookie: a=1, b=2", "X: y"]);
    }
}
