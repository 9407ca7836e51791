//! Values of the language, and the scratch arena that holds strings.
//!
//! A [`Value`] is `Copy`: text is a handle ([`Text`]) into the running request's [`Scratch`] or the
//! program's constants, so that evaluating common statements allocates nothing. A handle is valid
//! until [`Scratch::clear`]. Source: types and string forms as observed in Varnish 7.1.1.

use crate::failure::Failure;
use std::net::IpAddr;
use std::sync::Arc;
use surface::limits::KEPT_BUFFER_BYTES_MAX;

/// A handle to a byte string, or to "unset" (which reads as empty but is false in a condition).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    start: u32,
    len: u32,
}

const UNSET: u32 = u32::MAX;
const CONSTANT: u32 = 1 << 31;

/// Capacity for the first strings, in bytes.
const FIRST_ROOM_BYTES: usize = 256;

impl Text {
    /// The unset string.
    pub const UNSET: Text = Text { start: UNSET, len: 0 };
    /// The empty string.
    pub const EMPTY: Text = Text { start: 0, len: 0 };

    /// A part of the program's constants.
    #[must_use]
    pub const fn constant(start: u32, len: u32) -> Text {
        Text { start: start | CONSTANT, len }
    }

    /// True if the string is set (even if empty).
    #[must_use]
    pub fn is_set(self) -> bool {
        self.start != UNSET
    }

    /// Length in bytes; 0 if unset.
    #[must_use]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// True if it is unset or empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// A part of a set string, without a copy; `None` if the string is too short.
    #[must_use]
    pub fn part(self, offset: usize, len: usize) -> Option<Text> {
        let fits = self.is_set() && offset.checked_add(len).is_some_and(|end| end <= self.len());
        fits.then(|| Text { start: self.start + offset as u32, len: len as u32 })
    }
}

/// The bytes of [`Text`] handles: one growing buffer per request, plus the constants of the
/// running program.
#[derive(Debug, Default)]
pub struct Scratch {
    bytes: Vec<u8>,
    constants: Option<Arc<[u8]>>,
    limit_bytes: usize,
    overflowed: bool,
    /// Number of times it was cleared: distinguishes handles of one method from those of the next.
    generation: u64,
    /// Start of the last concatenated string, and the length of its first piece.
    joined: (u32, u32),
}

impl Scratch {
    /// An arena that may grow to `limit_bytes` (parameter `request_memory_max`).
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Scratch {
            bytes: Vec::new(),
            constants: None,
            limit_bytes: limit_bytes.min((CONSTANT - 1) as usize),
            overflowed: false,
            generation: 0,
            joined: (UNSET, 0),
        }
    }

    /// Drops all strings but keeps up to [`KEPT_BUFFER_BYTES_MAX`] of the memory. The constants
    /// stay set for the next run of the same program: taking a new reference to them would write to
    /// memory that all threads share.
    pub fn clear(&mut self, limit_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BUFFER_BYTES_MAX);
        self.limit_bytes = limit_bytes.min((CONSTANT - 1) as usize);
        self.overflowed = false;
        self.generation += 1;
        self.joined = (UNSET, 0);
    }

    /// Drops all strings and frees the memory, since the next method may come much later.
    pub fn free(&mut self) {
        self.clear(self.limit_bytes);
        self.bytes = Vec::new();
    }

    /// Number of times it was cleared. A handle is valid as long as this does not change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Records the length of the first piece of a string that has just been concatenated.
    pub(crate) fn note_joined(&mut self, whole: Text, first_bytes: usize) {
        self.joined = (whole.start, first_bytes as u32);
    }

    /// The first piece of a concatenated string, if it was the last one concatenated; else the
    /// whole string.
    #[must_use]
    pub fn first_piece(&self, text: Text) -> Text {
        match self.joined {
            (start, len) if start == text.start && start != UNSET && len <= text.len => Text { start, len },
            _ => text,
        }
    }

    /// Sets the program constants that handles refer to.
    pub fn set_constants(&mut self, constants: &Arc<[u8]>) {
        if !self.constants.as_ref().is_some_and(|held| Arc::ptr_eq(held, constants)) {
            self.constants = Some(Arc::clone(constants));
        }
    }

    /// The bytes of a handle; empty if unset.
    #[must_use]
    pub fn get(&self, text: Text) -> &[u8] {
        if text.start == UNSET {
            return b"";
        }
        let (from, start) = if text.start & CONSTANT != 0 {
            (self.constants.as_deref().unwrap_or(b""), (text.start & !CONSTANT) as usize)
        } else {
            (self.bytes.as_slice(), text.start as usize)
        };
        from.get(start..start + text.len as usize).unwrap_or(b"")
    }

    /// Stores a string.
    pub fn put(&mut self, bytes: &[u8]) -> Text {
        let start = self.begin();
        self.extend(bytes);
        self.end(start)
    }

    /// Stores a copy of a string with each byte changed; an unset string stays unset.
    pub fn put_changed(&mut self, text: Text, change: impl Fn(&mut u8)) -> Text {
        if text.is_empty() {
            return text;
        }
        let start = self.begin();
        self.extend_text(text);
        self.bytes[start..].iter_mut().for_each(change);
        self.end(start)
    }

    /// Starts a string that is written in pieces; finish it with [`Scratch::end`].
    #[must_use]
    pub fn begin(&self) -> usize {
        self.bytes.len()
    }

    /// Makes room for `count` more bytes; if that exceeds the limit, returns `false` and marks the
    /// scratch as overflowed.
    #[inline]
    fn make_room(&mut self, count: usize) -> bool {
        let needed = self.bytes.len() + count;
        if needed > self.limit_bytes {
            self.overflowed = true;
            return false;
        }
        if needed > self.bytes.capacity() {
            self.grow(needed);
        }
        true
    }

    /// Doubles the capacity, but not beyond the limit.
    #[cold]
    fn grow(&mut self, needed_bytes: usize) {
        let room = (2 * self.bytes.capacity()).max(needed_bytes).max(FIRST_ROOM_BYTES).min(self.limit_bytes);
        self.bytes.reserve_exact(room - self.bytes.len());
    }

    /// Appends bytes to the string begun last.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.make_room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Appends the bytes of another string to the string begun last.
    pub fn extend_text(&mut self, text: Text) {
        if text.start == UNSET || text.len == 0 {
            return;
        }
        if text.start & CONSTANT == 0 {
            let start = text.start as usize;
            if self.make_room(text.len()) && start + text.len() <= self.bytes.len() {
                self.bytes.extend_from_within(start..start + text.len());
            }
        } else if self.constants.is_some() && self.make_room(text.len()) {
            let start = (text.start & !CONSTANT) as usize;
            let bytes = self.constants.as_deref().and_then(|constants| constants.get(start..start + text.len()));
            self.bytes.extend_from_slice(bytes.unwrap_or(b""));
        }
    }

    /// Appends formatted text to the string begun last.
    pub fn extend_fmt(&mut self, arguments: std::fmt::Arguments<'_>) {
        let _ = std::fmt::Write::write_fmt(&mut Writer(self), arguments);
    }

    /// Ends the string that began at `start`.
    #[must_use]
    pub fn end(&mut self, start: usize) -> Text {
        Text { start: start as u32, len: (self.bytes.len() - start) as u32 }
    }

    /// Changes the limit from now on, as if other strings used the same memory.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes.min((CONSTANT - 1) as usize);
    }

    /// Behaves from now on as if a string did not fit.
    pub fn mark_overflowed(&mut self) {
        self.overflowed = true;
    }

    /// The bytes of all strings so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if a string did not fit; the request then fails with a reason.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// The limit in bytes: the memory of one request, including data that VMODs keep for it.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Number of further bytes that strings may use.
    #[must_use]
    pub fn left_bytes(&self) -> usize {
        self.limit_bytes.saturating_sub(self.bytes.len())
    }

    /// Checks that `bytes` more are allowed, for a string that is built or processed elsewhere.
    ///
    /// # Errors
    /// `Out of request memory …` if they are not.
    pub fn check_room(&self, bytes: usize) -> Result<(), Failure> {
        if bytes > self.left_bytes() { Err(Failure::out_of_memory()) } else { Ok(()) }
    }

    /// Bytes allocated, used or not.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.bytes.len()
    }
}

struct Writer<'a>(&'a mut Scratch);

impl std::fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend(text.as_bytes());
        Ok(())
    }
}

/// A director or backend: an index into the loaded VCL's directors. The program's static backends
/// come first, in the order of [`crate::program::Program::backends`]; directors created by `new` in
/// vcl_init follow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DirectorId(pub u32);

/// A value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// Nothing.
    Void,
    /// BOOL.
    Bool(bool),
    /// INT.
    Int(i64),
    /// REAL.
    Real(f64),
    /// DURATION, seconds.
    Duration(f64),
    /// TIME, seconds since 1970.
    Time(f64),
    /// BYTES.
    Bytes(i64),
    /// STRING, HEADER, STRANDS (joined), BODY, ENUM.
    Text(Text),
    /// BLOB.
    Blob(Text),
    /// IP with port; `None` is the null address.
    Ip(Option<(IpAddr, u16)>),
    /// BACKEND; `None` for no backend.
    Backend(Option<DirectorId>),
    /// ACL: index into the program's table; `None` is the null ACL.
    Acl(Option<u32>),
    /// PROBE: index into the program's table.
    Probe(Option<u32>),
    /// STEVEDORE: index into the list of storages of this process; `None` for no storage.
    Stevedore(Option<u32>),
    /// SUB: index into the program's table.
    Sub(u32),
    /// REGEX: index into the program's table.
    Regex(u32),
    /// HTTP.
    Http(surface::vcl::HttpObject),
    /// HEADER as a reference (an argument of that type): the message and an index into the
    /// program's header names.
    Header(surface::vcl::HttpObject, u32),
    /// HEADER as a reference with a name built at run time (`header.dyn`).
    NamedHeader(surface::vcl::HttpObject, Text),
    /// An optional argument that was not given.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_piece_is_known_of_the_string_joined_last() {
        let mut scratch = Scratch::new(1000);
        let plain = scratch.put(b"plain");
        assert_eq!(scratch.first_piece(plain), plain);
        let whole = scratch.put(b"onetwo");
        scratch.note_joined(whole, 3);
        assert_eq!(scratch.get(scratch.first_piece(whole)), b"one");
        assert_eq!(scratch.first_piece(plain), plain);
        scratch.clear(1000);
        let next = scratch.put(b"later");
        assert_eq!(scratch.first_piece(next), next);
        assert_eq!(scratch.first_piece(Text::UNSET), Text::UNSET);
    }

    #[test]
    fn strings_never_take_more_room_than_they_may() {
        let mut scratch = Scratch::new(3000);
        for _ in 0..100 {
            let text = scratch.put(&[b'x'; 99]);
            let _ = scratch.put_changed(text, u8::make_ascii_uppercase);
        }
        assert!(scratch.overflowed() && scratch.used_bytes() <= 3000 && scratch.room_bytes() <= 3000);
        assert!(scratch.check_room(scratch.left_bytes()).is_ok());
        assert_eq!(scratch.check_room(scratch.left_bytes() + 1), Err(Failure::out_of_memory()));
    }

    #[test]
    fn parts_stay_within_their_string() {
        let mut scratch = Scratch::new(1000);
        let text = scratch.put(b"foobar");
        assert_eq!(scratch.get(text.part(3, 3).unwrap()), b"bar");
        assert_eq!(text.part(3, 4), None);
        assert_eq!(text.part(usize::MAX, 1), None);
        assert_eq!(Text::UNSET.part(0, 0), None);
        let constant = Text::constant(7, 3);
        assert_eq!(constant.part(1, 2), Some(Text::constant(8, 2)));
    }
}
