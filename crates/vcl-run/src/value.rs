//! Values of the language, and the scratch arena that strings live in.
//!
//! A [`Value`] is `Copy`: text is a handle ([`Text`]) into the running request's [`Scratch`] or the program's constants, so
//! that evaluating common statements allocates nothing. A handle is valid until [`Scratch::clear`].
//! Source: types and string forms as observed in Varnish 7.1.1.

use std::net::IpAddr;
use std::sync::Arc;

/// A handle to a byte string, or to "unset" (which reads as empty but is false in a test).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    start: u32,
    len: u32,
}

const UNSET: u32 = u32::MAX;
const CONSTANT: u32 = 1 << 31;

impl Text {
    /// The unset string.
    pub const UNSET: Text = Text { start: UNSET, len: 0 };
    /// The empty string.
    pub const EMPTY: Text = Text { start: 0, len: 0 };

    /// A piece of the program's constants.
    #[must_use]
    pub const fn constant(start: u32, len: u32) -> Text {
        Text { start: start | CONSTANT, len }
    }

    /// Whether the string is set (even if empty).
    #[must_use]
    pub fn is_set(self) -> bool {
        self.start != UNSET
    }

    /// Length in bytes; 0 when unset.
    #[must_use]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether it is unset or has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The bytes behind [`Text`] handles: one growing buffer a request, plus the constants of the program being run.
#[derive(Debug, Default)]
pub struct Scratch {
    bytes: Vec<u8>,
    constants: Option<Arc<[u8]>>,
    limit_bytes: usize,
    overflowed: bool,
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
        }
    }

    /// Forgets all strings; the room is kept (up to 64 KiB of it).
    pub fn clear(&mut self, limit_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(64 << 10);
        self.limit_bytes = limit_bytes.min((CONSTANT - 1) as usize);
        self.overflowed = false;
    }

    /// Names the program whose constants the handles refer to.
    pub fn set_constants(&mut self, constants: &Arc<[u8]>) {
        if !self.constants.as_ref().is_some_and(|held| Arc::ptr_eq(held, constants)) {
            self.constants = Some(Arc::clone(constants));
        }
    }

    /// The bytes of a handle; empty when unset.
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

    /// Stores a copy of a string with each byte changed; an unset one stays unset.
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

    /// Adds bytes to the string begun last.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > self.limit_bytes {
            self.overflowed = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Adds the bytes of another string to the string begun last.
    pub fn extend_text(&mut self, text: Text) {
        if text.start == UNSET || text.len == 0 {
            return;
        }
        if text.start & CONSTANT == 0 {
            let start = text.start as usize;
            if self.bytes.len() + text.len() > self.limit_bytes {
                self.overflowed = true;
            } else if start + text.len() <= self.bytes.len() {
                self.bytes.extend_from_within(start..start + text.len());
            }
        } else if let Some(constants) = &self.constants {
            let start = (text.start & !CONSTANT) as usize;
            let bytes = constants.get(start..start + text.len()).unwrap_or(b"");
            if self.bytes.len() + bytes.len() > self.limit_bytes {
                self.overflowed = true;
            } else {
                self.bytes.extend_from_slice(bytes);
            }
        }
    }

    /// Adds formatted text to the string begun last.
    pub fn extend_fmt(&mut self, arguments: std::fmt::Arguments<'_>) {
        let _ = std::fmt::Write::write_fmt(&mut Writer(self), arguments);
    }

    /// Ends the string that began at `start`.
    #[must_use]
    pub fn end(&mut self, start: usize) -> Text {
        Text { start: start as u32, len: (self.bytes.len() - start) as u32 }
    }

    /// Whether a string did not fit; the request then fails with a reason.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        self.overflowed
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

/// A director or backend: an index into the loaded VCL's directors. The program's static backends come first, in the
/// order of [`crate::program::Program::backends`]; directors made by `new` in vcl_init follow.
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
    /// BACKEND; `None` is no backend.
    Backend(Option<DirectorId>),
    /// ACL: index into the program's table; `None` is the null ACL.
    Acl(Option<u32>),
    /// PROBE: index into the program's table.
    Probe(Option<u32>),
    /// STEVEDORE: index into the list of storages of this process; `None` is none.
    Stevedore(Option<u32>),
    /// SUB: index into the program's table.
    Sub(u32),
    /// REGEX: index into the program's table.
    Regex(u32),
    /// HTTP.
    Http(surface::vcl::HttpObject),
    /// HEADER as a place (an argument of that type): the headers and an index into the program's header names.
    Header(surface::vcl::HttpObject, u32),
    /// An optional argument that was not given.
    Absent,
}
