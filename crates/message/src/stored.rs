//! Stored form of a response head in an arena: short, and quick to be expanded into lines.
//!
//! ```text
//! start    status (12) | HTTP/1.1 (1) | reason "OK" (1) | status follows (1) | one (1)
//!          [status (16)] if it is longer, [length, protocol] unless it is HTTP/1.1,
//!          [length, reason] unless it is OK, number of fields
//! field    0     length of the name, name, value           a name that the vocabulary lacks
//!          1     length, name's length, value's start, line  one that is not written `Name: value`
//!          2 + n value                                      name n of the vocabulary
//! value    0 to 127: that many bytes follow | 128 + n: the value with index n of the
//!          vocabulary | 253: a date in five bytes (`date.rs`) | 254: length (16), bytes
//!          | 255: length (32), bytes
//! length   0 to 253 | 254: length (16) | 255: length (32)
//! notes    17 bytes each, the first one a blank
//! ```
//!
//! All numbers are little-endian. Releases before 0.2 wrote the plain form, which is still read:
//! status (16, below 32,768), number of fields (16), protocol, reason (length (16), bytes each),
//! and of each field length (32), name's length, value's start (16 each), line. *Invariants:*
//! reading returns the written bytes exactly; the content of shared memory is untrusted. Next file:
//! `vocabulary.rs`.

use crate::date::{DATE_BYTES, PACKED_BYTES, packed, unpacked};
use crate::vocabulary::{LINE_BYTES, OPENINGS, VALUE_BYTES, VALUES, place_of_name, place_of_value};
use crate::{HeaderLine, Message, Span, is_same_name, name_bit_number};
use std::borrow::Cow;

/// Flag in the start: compact form.
const COMPACT: u16 = 1 << 15;
const IS_HTTP_1_1: u16 = 1 << 12;
const IS_OK: u16 = 1 << 13;
const STATUS_FOLLOWS: u16 = 1 << 14;
const STATUS_MAX: u16 = (1 << 12) - 1;
/// Protocol and reason at the beginning of a message with the usual ones.
const USUAL: &[u8; 10] = b"HTTP/1.1OK";
const PROTOCOL_BYTES: usize = 8;

const OTHER_NAME: u8 = 0;
const AS_IT_IS: u8 = 1;
/// The byte of the first name.
const FIRST_NAME: usize = 2;
const FIRST_NAME_BYTE: u8 = FIRST_NAME as u8;

const SHORT_MAX: usize = 127;
/// The byte of the first value.
const FIRST_VALUE: usize = SHORT_MAX + 1;
const DATE: u8 = 253;
const IN_16_BITS: u8 = 254;
const IN_32_BITS: u8 = 255;
const _: () = assert!(FIRST_NAME + OPENINGS.len() <= 256 && FIRST_VALUE + VALUES.len() <= DATE as usize);

/// Texts up to this length are copied as if they had it.
const COPIED_BYTES: usize = 16;

/// Names whose values are dates.
const DATES: [&str; 3] = ["Date", "Expires", "Last-Modified"];

/// The value of a stored header line.
#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a [u8]),
    Date([u8; DATE_BYTES]),
}

/// A field as it is stored.
enum StoredField<'a> {
    /// Name and value, with `: ` between them.
    Apart(&'a [u8], Value<'a>),
    AsItIs(HeaderLine<'a>),
}

/// A header line of a stored head, which is not contiguous there.
#[derive(Clone, Copy)]
pub struct StoredHeader<'a> {
    name: &'a [u8],
    value: Value<'a>,
}

impl<'a> StoredHeader<'a> {
    /// The name, in the case in which it was received or set.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// True if this header has that name, ignoring case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        is_same_name(self.name, name.as_bytes())
    }

    /// The value without surrounding blanks.
    #[must_use]
    pub fn value(&self) -> Cow<'a, [u8]> {
        match self.value {
            Value::Text(text) => Cow::Borrowed(text),
            Value::Date(date) => Cow::Owned(date.to_vec()),
        }
    }

    /// The value in place; `None` only for the dates in `Date`, `Expires` and `Last-Modified`.
    #[must_use]
    pub fn text(&self) -> Option<&'a [u8]> {
        match self.value {
            Value::Text(text) => Some(text),
            Value::Date(_) => None,
        }
    }
}

impl Message {
    /// Writes the message in the form in which objects are stored: see [`Message::decode`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_start(out);
        for field in &self.fields {
            self.borrow(*field).encode(out);
        }
    }

    /// Writes the message without a search for known names and values: longer, but faster. For a
    /// head that is soon read and not kept.
    pub fn encode_as_it_is(&self, out: &mut Vec<u8>) {
        self.encode_start(out);
        for field in &self.fields {
            self.borrow(*field).encode_as_it_is(out);
        }
    }

    /// Everything before the fields.
    fn encode_start(&self, out: &mut Vec<u8>) {
        let (is_1_1, is_ok) = (self.protocol() == &USUAL[..PROTOCOL_BYTES], self.reason() == &USUAL[PROTOCOL_BYTES..]);
        let is_long = self.status > STATUS_MAX;
        let start = COMPACT
            | if is_1_1 { IS_HTTP_1_1 } else { 0 }
            | if is_ok { IS_OK } else { 0 }
            | if is_long { STATUS_FOLLOWS } else { self.status };
        out.extend_from_slice(&start.to_le_bytes());
        if is_long {
            out.extend_from_slice(&self.status.to_le_bytes());
        }
        for (text, is_left_out) in [(self.protocol(), is_1_1), (self.reason(), is_ok)] {
            if !is_left_out {
                put_length(out, text.len());
                out.extend_from_slice(text);
            }
        }
        put_length(out, self.fields.len());
    }

    /// Reads into this message a response that [`Message::encode`] wrote. `None` if the bytes are
    /// not such a message: they come from shared memory and must not be trusted. Notes after it are
    /// left out.
    #[must_use]
    pub fn decode(&mut self, bytes: &[u8]) -> Option<()> {
        self.clear();
        let found = self.decode_whole(bytes);
        if found.is_none() {
            self.clear();
        }
        found
    }

    fn decode_whole(&mut self, bytes: &[u8]) -> Option<()> {
        let mut rest = bytes;
        let start = take_u16(&mut rest)?;
        if start & COMPACT == 0 {
            return self.decode_plain(bytes);
        }
        self.status = start & STATUS_MAX;
        self.buffer.put(USUAL);
        self.protocol = Span { start: 0, len: PROTOCOL_BYTES as u32 };
        self.reason = Span { start: PROTOCOL_BYTES as u32, len: (USUAL.len() - PROTOCOL_BYTES) as u32 };
        if start & (IS_HTTP_1_1 | IS_OK | STATUS_FOLLOWS) != IS_HTTP_1_1 | IS_OK {
            self.decode_start(start, &mut rest)?;
        }
        let count = take_length(&mut rest)?;
        rest = self.decode_fields(count, rest)?;
        are_notes(rest).then_some(())
    }

    /// Reads the unusual parts of the first line.
    #[cold]
    fn decode_start(&mut self, start: u16, rest: &mut &[u8]) -> Option<()> {
        if start & STATUS_FOLLOWS != 0 {
            self.status = take_u16(rest)?;
        }
        if start & IS_HTTP_1_1 == 0 {
            let len = take_length(rest)?;
            self.protocol = self.push(take(rest, len)?);
        }
        if start & IS_OK == 0 {
            let len = take_length(rest)?;
            self.reason = self.push(take(rest, len)?);
        }
        Some(())
    }

    /// Reads the fields; returns the bytes after them. This is the path of a hit: names, values of
    /// the vocabulary and short texts are copied in pieces of fixed length, which need no calls,
    /// and the excess of a piece is overwritten by the next one.
    fn decode_fields<'a>(&mut self, count: usize, mut rest: &'a [u8]) -> Option<&'a [u8]> {
        // A field has at least two bytes.
        if count > rest.len() / 2 {
            return None;
        }
        let mut at = self.buffer.len();
        self.buffer.reserve(count * (LINE_BYTES + VALUE_BYTES) + rest.len());
        self.fields.reserve(count);
        for _ in 0..count {
            let (&[place, first], behind) = rest.split_first_chunk()?;
            let place = usize::from(place);
            if place < FIRST_NAME || first > DATE {
                rest = self.decode_rare(&mut at, rest)?;
                continue;
            }
            let opening = OPENINGS.get(place - FIRST_NAME)?;
            let room = self.buffer.room_mut().get_mut(at..)?;
            *room.first_chunk_mut::<LINE_BYTES>()? = opening.text;
            let name_len = usize::from(opening.name_len);
            let value_start = name_len + 2;
            let room = room.get_mut(value_start..)?;
            let value = usize::from(first);
            let value_len;
            if value <= SHORT_MAX {
                value_len = value;
                let (text, tail) = behind.split_at_checked(value)?;
                rest = tail;
                match (behind.first_chunk::<COPIED_BYTES>(), room.first_chunk_mut::<COPIED_BYTES>()) {
                    (Some(chunk), Some(room)) if value <= COPIED_BYTES => *room = *chunk,
                    _ => room.get_mut(..value)?.copy_from_slice(text),
                }
            } else if first < DATE {
                let known = VALUES.get(value - FIRST_VALUE)?;
                value_len = usize::from(known.len);
                *room.first_chunk_mut::<VALUE_BYTES>()? = known.text;
                rest = behind;
            } else {
                let (date, tail) = behind.split_first_chunk()?;
                value_len = DATE_BYTES;
                *room.first_chunk_mut::<DATE_BYTES>()? = unpacked(*date)?;
                rest = tail;
            }
            let end = at + value_start + value_len;
            self.put_field(Span::at(at..end), opening.bit, (name_len, value_start));
            at = end;
        }
        self.buffer.fill_to(at);
        Some(rest)
    }

    /// Reads a field that is not of the usual kind, to position `at`; returns the bytes after it.
    #[cold]
    fn decode_rare<'a>(&mut self, at: &mut usize, mut rest: &'a [u8]) -> Option<&'a [u8]> {
        let date;
        let (name, parts, value_start) = match take_field(&mut rest)? {
            StoredField::AsItIs(header) => {
                (header.name(), [&header.line[..header.value_start], header.value()], header.value_start)
            }
            StoredField::Apart(name, value) => {
                let value = match value {
                    Value::Text(text) => text,
                    Value::Date(packed) => {
                        date = packed;
                        &date[..]
                    }
                };
                (name, [name, value], name.len() + 2)
            }
        };
        let (from, room) = (*at, self.buffer.room_mut());
        room.get_mut(from..from + parts[0].len())?.copy_from_slice(parts[0]);
        if parts[0].len() == name.len() {
            room.get_mut(from + name.len()..from + value_start)?.copy_from_slice(b": ");
        }
        *at = from + value_start + parts[1].len();
        room.get_mut(from + value_start..*at)?.copy_from_slice(parts[1]);
        self.put_field(Span::at(from..*at), name_bit_number(name), (name.len(), value_start));
        Some(rest)
    }

    fn decode_plain(&mut self, bytes: &[u8]) -> Option<()> {
        // All at once, the lengths between the texts included.
        self.buffer.put(bytes);
        let mut rest = bytes;
        // The text that was taken last.
        let span = |text: &[u8], rest: &[u8]| Span {
            start: (bytes.len() - rest.len() - text.len()) as u32,
            len: text.len() as u32,
        };
        self.status = take_u16(&mut rest)?;
        let count = take_u16(&mut rest)?;
        let len = take_u16(&mut rest)?;
        let protocol = take(&mut rest, usize::from(len))?;
        self.protocol = span(protocol, rest);
        let len = take_u16(&mut rest)?;
        let reason = take(&mut rest, usize::from(len))?;
        self.reason = span(reason, rest);
        for _ in 0..count {
            let header = take_plain(&mut rest)?;
            let bit = name_bit_number(header.name());
            self.put_field(span(header.line, rest), bit, (header.name_len, header.value_start));
        }
        are_notes(rest).then_some(())
    }
}

/// Longest name that is stored apart from its line, in bytes.
const NAME_BYTES_MAX: usize = u16::MAX as usize - 2;

impl HeaderLine<'_> {
    fn encode_as_it_is(&self, out: &mut Vec<u8>) {
        out.push(AS_IT_IS);
        put_length(out, self.line.len());
        out.extend_from_slice(&(self.name_len as u16).to_le_bytes());
        out.extend_from_slice(&(self.value_start as u16).to_le_bytes());
        out.extend_from_slice(self.line);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let (name, value) = (self.name(), self.value());
        let is_usual = self.line[self.name_len..self.value_start] == *b": " && name.len() <= NAME_BYTES_MAX;
        match place_of_name(name) {
            Some(place) if is_usual => out.push((FIRST_NAME + place) as u8),
            None if is_usual => {
                out.push(OTHER_NAME);
                put_length(out, name.len());
                out.extend_from_slice(name);
            }
            _ => return self.encode_as_it_is(out),
        }
        if value.len() == DATE_BYTES
            && DATES.iter().any(|name| self.is(name))
            && let Some(date) = packed(value)
        {
            out.push(DATE);
            out.extend_from_slice(&date);
        } else if let Some(place) = place_of_value(value) {
            out.push((FIRST_VALUE + place) as u8);
        } else {
            if value.len() <= SHORT_MAX {
                out.push(value.len() as u8);
            } else {
                put_long(out, value.len());
            }
            out.extend_from_slice(value);
        }
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < IN_16_BITS => out.push(short),
        _ => put_long(out, length),
    }
}

fn put_long(out: &mut Vec<u8>, length: usize) {
    if let Ok(length) = u16::try_from(length) {
        out.push(IN_16_BITS);
        out.extend_from_slice(&length.to_le_bytes());
    } else {
        out.push(IN_32_BITS);
        // A message's spans have 32 bits.
        out.extend_from_slice(&(length as u32).to_le_bytes());
    }
}

/// Bytes of a note after a stored head, see [`encode_note`].
pub const NOTE_BYTES: usize = 17;
/// First byte of each note. No word in a list of words begins with it, so no such list can be
/// mistaken for a note.
const NOTE_MARK: u8 = b' ';

/// Adds a note after a head in the form of [`Message::encode`]. Notes are for the cache alone: they
/// are not header lines, so no [`Message`] ever contains them, and they can never be sent or shown.
pub fn encode_note(out: &mut Vec<u8>, note: &[u8; NOTE_BYTES - 1]) {
    out.push(NOTE_MARK);
    out.extend_from_slice(note);
}

/// The notes after a stored head, each of [`NOTE_BYTES`] with its mark. None if the bytes are
/// malformed.
pub fn stored_notes(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    visit_stored_names(bytes, |_| {})
}

/// Passes the names of all headers of a message in the form of [`Message::encode`] to `visit`;
/// returns the notes after them. Quicker than [`stored_headers`], which reads values too.
pub fn visit_stored_names<'a, V: FnMut(&'a [u8])>(
    bytes: &'a [u8],
    mut visit: V,
) -> impl Iterator<Item = &'a [u8]> + use<'a, V> {
    let mut headers = Headers::of(bytes);
    while let Some(name) = headers.next_name() {
        visit(name);
    }
    let notes = if !headers.is_broken && are_notes(headers.rest) { headers.rest } else { &[] };
    notes.chunks_exact(NOTE_BYTES)
}

fn are_notes(bytes: &[u8]) -> bool {
    bytes.len().is_multiple_of(NOTE_BYTES) && bytes.chunks_exact(NOTE_BYTES).all(|note| note[0] == NOTE_MARK)
}

/// The header lines of a message in the form of [`Message::encode`], without making a message of
/// it. Stops at malformed bytes.
pub fn stored_headers(bytes: &[u8]) -> impl Iterator<Item = StoredHeader<'_>> {
    Headers::of(bytes)
}

/// See [`stored_headers`].
struct Headers<'a> {
    rest: &'a [u8],
    is_plain: bool,
    left: usize,
    is_broken: bool,
}

impl<'a> Headers<'a> {
    fn of(bytes: &'a [u8]) -> Headers<'a> {
        let mut headers = Headers { rest: bytes, is_plain: false, left: 0, is_broken: false };
        let count = headers.skip_start();
        (headers.left, headers.is_broken) = (count.unwrap_or(0), count.is_none());
        headers
    }

    /// Skips the part before the headers; returns the number of headers.
    fn skip_start(&mut self) -> Option<usize> {
        let rest = &mut self.rest;
        let start = take_u16(rest)?;
        self.is_plain = start & COMPACT == 0;
        if self.is_plain {
            let count = take_u16(rest)?;
            for _ in 0..2 {
                let len = take_u16(rest)?;
                take(rest, usize::from(len))?;
            }
            return Some(usize::from(count));
        }
        if start & STATUS_FOLLOWS != 0 {
            take_u16(rest)?;
        }
        for bit in [IS_HTTP_1_1, IS_OK] {
            if start & bit == 0 {
                let len = take_length(rest)?;
                take(rest, len)?;
            }
        }
        take_length(rest)
    }

    /// The name of the next header; its value is skipped.
    fn next_name(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let found = if self.is_plain {
            take_plain(&mut self.rest).map(|header| header.name())
        } else {
            take_name(&mut self.rest)
        };
        if found.is_none() {
            (self.left, self.is_broken) = (0, true);
        }
        found
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = StoredHeader<'a>;

    fn next(&mut self) -> Option<StoredHeader<'a>> {
        self.left = self.left.checked_sub(1)?;
        let of_line = |header: HeaderLine<'a>| StoredHeader { name: header.name(), value: Value::Text(header.value()) };
        let found = if self.is_plain {
            take_plain(&mut self.rest).map(of_line)
        } else {
            take_field(&mut self.rest).map(|field| match field {
                StoredField::Apart(name, value) => StoredHeader { name, value },
                StoredField::AsItIs(header) => of_line(header),
            })
        };
        if found.is_none() {
            (self.left, self.is_broken) = (0, true);
        }
        found
    }
}

#[inline]
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<StoredField<'a>> {
    match take_u8(rest)? {
        OTHER_NAME => {
            let len = take_length(rest).filter(|len| *len <= NAME_BYTES_MAX)?;
            let name = take(rest, len)?;
            Some(StoredField::Apart(name, take_value(rest)?))
        }
        AS_IT_IS => {
            let len = take_length(rest)?;
            let (name_len, value_start) = (take_u16(rest)?, take_u16(rest)?);
            line_of(take(rest, len)?, name_len, value_start).map(StoredField::AsItIs)
        }
        place => {
            let opening = OPENINGS.get(usize::from(place) - FIRST_NAME)?;
            Some(StoredField::Apart(opening.name(), take_value(rest)?))
        }
    }
}

/// As [`take_field`], without the value.
#[inline]
fn take_name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let name = match rest.first()? {
        0..FIRST_NAME_BYTE => {
            return take_field(rest).map(|field| match field {
                StoredField::Apart(name, _) => name,
                StoredField::AsItIs(header) => header.name(),
            });
        }
        place => OPENINGS.get(usize::from(*place) - FIRST_NAME)?.name(),
    };
    *rest = &rest[1..];
    match *rest.first()? {
        // A length that does not fit in a byte, or damage.
        first if usize::from(first) > SHORT_MAX => drop(take_value(rest)?),
        short => drop(take(rest, 1 + usize::from(short))?),
    }
    Some(name)
}

#[inline]
fn take_value<'a>(rest: &mut &'a [u8]) -> Option<Value<'a>> {
    let first = take_u8(rest)?;
    if usize::from(first) <= SHORT_MAX {
        return take(rest, usize::from(first)).map(Value::Text);
    }
    if first < DATE {
        return VALUES.get(usize::from(first) - FIRST_VALUE).map(|known| Value::Text(known.value()));
    }
    if first == DATE {
        let (date, tail) = rest.split_first_chunk::<PACKED_BYTES>()?;
        *rest = tail;
        return unpacked(*date).map(Value::Date);
    }
    let len = take_long(rest, first)?;
    take(rest, len).map(Value::Text)
}

fn take_plain<'a>(rest: &mut &'a [u8]) -> Option<HeaderLine<'a>> {
    let len = take_long(rest, IN_32_BITS)?;
    let (name_len, value_start) = (take_u16(rest)?, take_u16(rest)?);
    line_of(take(rest, len)?, name_len, value_start)
}

fn line_of(line: &[u8], name_len: u16, value_start: u16) -> Option<HeaderLine<'_>> {
    let (name_len, value_start) = (usize::from(name_len), usize::from(value_start));
    let is_possible = value_start <= line.len() && name_len < value_start;
    is_possible.then_some(HeaderLine { line, name_len, value_start, is_hop: false })
}

#[inline]
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some(head)
}

#[inline]
fn take_u8(rest: &mut &[u8]) -> Option<u8> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    Some(*first)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    let (bytes, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u16::from_le_bytes(*bytes))
}

#[inline]
fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let first = take_u8(rest)?;
    if first < IN_16_BITS { Some(usize::from(first)) } else { take_long(rest, first) }
}

fn take_long(rest: &mut &[u8], kind: u8) -> Option<usize> {
    if kind == IN_16_BITS {
        return take_u16(rest).map(usize::from);
    }
    let (bytes, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_le_bytes(*bytes) as usize)
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
