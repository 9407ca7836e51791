//! Heads of requests, and trailers, from blocks of fields: [`RequestHead`], [`read_request`] and
//! [`read_trailers`].
//!
//! Checked is what makes a head malformed: names and values that no field can have, fields of the
//! connection, pseudo headers that are missing, unknown, repeated or misplaced. *Invariants:* every
//! block is decoded to its end, whatever is wrong with the head, so that the table stays the same
//! on both sides; of a head that is too large no more than the limit is kept. The meaning of fields
//! is checked elsewhere. Source: RFC 9113 §8.2, §8.3; RFC 8441 §4.

use crate::hpack::Decoder;
use field_coding::list::{FieldList, Fields, is_name, is_value};
use field_coding::{FIELD_EXTRA_BYTES, Undecodable};
use std::cell::RefCell;
use surface::limits::{CHUNK_TRAILER_BYTES_MAX, H2_LIST_FACTOR, TRAILER_FIELDS_MAX};

/// The head of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestHead {
    pseudo: [Option<Place>; PSEUDO.len()],
    /// Values of the pseudo headers.
    text: Vec<u8>,
    fields: FieldList,
    length: Option<u64>,
}

/// Position of a value.
type Place = (u32, u32);

const METHOD: usize = 0;
const SCHEME: usize = 1;
const AUTHORITY: usize = 2;
const PATH: usize = 3;
const PROTOCOL: usize = 4;
const PSEUDO: [&[u8]; 5] = [b":method", b":scheme", b":authority", b":path", b":protocol"];

impl RequestHead {
    fn get(&self, index: usize) -> Option<&[u8]> {
        let (start, bytes) = self.pseudo[index]?;
        self.text.get(start as usize..(start + bytes) as usize)
    }

    /// `:method`; every head has one.
    #[must_use]
    pub fn method(&self) -> &[u8] {
        self.get(METHOD).unwrap_or_default()
    }

    /// `:scheme`.
    #[must_use]
    pub fn scheme(&self) -> Option<&[u8]> {
        self.get(SCHEME)
    }

    /// `:authority`.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        self.get(AUTHORITY)
    }

    /// `:path`.
    #[must_use]
    pub fn path(&self) -> Option<&[u8]> {
        self.get(PATH)
    }

    /// `:protocol` of an extended CONNECT.
    #[must_use]
    pub fn protocol(&self) -> Option<&[u8]> {
        self.get(PROTOCOL)
    }

    /// The other fields, in order, names in lower case.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        self.fields.iter()
    }

    /// The value of `content-length`.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.text.len() + self.fields.memory_bytes()
    }

    pub(crate) fn clear(&mut self) {
        self.pseudo = Default::default();
        self.text.clear();
        self.fields.clear();
        self.length = None;
    }
}

/// Most heads that are kept in a pool.
const POOL_HEADS_MAX: usize = 64;
/// The largest head that is kept in a pool, in bytes.
const POOL_HEAD_BYTES_MAX: usize = 2048;

/// Empty heads, whose memory is used again by the connections of an event loop.
#[derive(Debug, Default)]
pub struct HeadPool(RefCell<Vec<RequestHead>>);

impl HeadPool {
    pub(crate) fn take(&self) -> RequestHead {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a head back that is no longer needed.
    pub fn put(&self, mut head: RequestHead) {
        let mut pool = self.0.borrow_mut();
        if pool.len() < POOL_HEADS_MAX && head.memory_bytes() <= POOL_HEAD_BYTES_MAX {
            head.clear();
            pool.push(head);
        }
    }
}

/// Rules for the heads of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadRules {
    /// The largest list of fields, in bytes as RFC 9113 §6.5.2 counts them.
    pub list_bytes_max: usize,
    /// Pseudo headers may follow other fields. Compat: Varnish does not check their order, and its
    /// `varnishtest` writes `txreq -hdr` so.
    pub is_lenient: bool,
    /// Extended CONNECT was offered.
    pub offers_connect: bool,
}

/// Why a block gives no head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadFault {
    /// The block cannot be decoded: the connection must end.
    Undecodable,
    /// The list is [`H2_LIST_FACTOR`] times as large as allowed: the rest was not decoded, and the
    /// connection must end.
    FarTooLarge,
    /// The list is too large.
    TooLarge,
    /// The head is malformed.
    Malformed,
}

impl From<Undecodable> for HeadFault {
    fn from(_: Undecodable) -> HeadFault {
        HeadFault::Undecodable
    }
}

/// Counts the size of a list.
struct Size {
    bytes: usize,
    bytes_max: usize,
}

impl Size {
    fn of(rules: &HeadRules) -> Size {
        Size { bytes: 0, bytes_max: rules.list_bytes_max }
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.bytes = self.bytes.saturating_add(name.len() + value.len() + FIELD_EXTRA_BYTES);
    }

    fn is_too_large(&self) -> bool {
        self.bytes > self.bytes_max
    }

    fn is_far_too_large(&self) -> bool {
        self.bytes > self.bytes_max.saturating_mul(H2_LIST_FACTOR)
    }
}

/// Decodes the block of a request into `head`, which is empty. `is_last` if the request ends with
/// it.
///
/// # Errors
/// See [`HeadFault`].
pub fn read_request(
    decoder: &mut Decoder,
    block: &[u8],
    rules: &HeadRules,
    is_last: bool,
    head: &mut RequestHead,
) -> Result<(), HeadFault> {
    let mut size = Size::of(rules);
    let mut is_sound = true;
    let is_whole = decoder.decode(block, |name, value| {
        size.add(name, value);
        if is_sound && !size.is_too_large() {
            is_sound = head.take(name, value, rules);
        }
        !size.is_far_too_large()
    })?;
    match () {
        () if !is_whole => Err(HeadFault::FarTooLarge),
        () if size.is_too_large() => Err(HeadFault::TooLarge),
        () if is_sound && head.is_complete(is_last) => Ok(()),
        () => Err(HeadFault::Malformed),
    }
}

/// Decodes the block of trailers. `None` if they are larger than trailers may be: then they are
/// dropped, as in HTTP/1.
///
/// # Errors
/// See [`HeadFault`].
pub fn read_trailers(decoder: &mut Decoder, block: &[u8], rules: &HeadRules) -> Result<Option<FieldList>, HeadFault> {
    let mut size = Size::of(rules);
    let mut is_sound = true;
    let mut fields = FieldList::new();
    let is_whole = decoder.decode(block, |name, value| {
        size.add(name, value);
        is_sound &= is_name(name) && is_value(value) && !is_of_connection(name, value);
        if size.bytes <= CHUNK_TRAILER_BYTES_MAX {
            fields.push(name, value);
        }
        !size.is_far_too_large()
    })?;
    let is_kept = size.bytes <= CHUNK_TRAILER_BYTES_MAX && fields.len() <= TRAILER_FIELDS_MAX;
    match () {
        () if !is_whole => Err(HeadFault::FarTooLarge),
        () if !is_sound => Err(HeadFault::Malformed),
        () => Ok(is_kept.then_some(fields)),
    }
}

impl RequestHead {
    /// Takes a field. Returns false if it makes the head malformed.
    fn take(&mut self, name: &[u8], value: &[u8], rules: &HeadRules) -> bool {
        if name.first() == Some(&b':') {
            return (rules.is_lenient || self.fields.is_empty()) && self.take_pseudo(name, value, rules);
        }
        if !is_name(name) || !is_value(value) || is_of_connection(name, value) {
            return false;
        }
        if name == b"content-length" {
            let Some(length) = length(value.trim_ascii()) else { return false };
            if self.length.is_some_and(|other| other != length) {
                return false;
            }
            self.length = Some(length);
        }
        self.fields.push(name, value);
        true
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8], rules: &HeadRules) -> bool {
        let Some(index) = PSEUDO.iter().position(|known| *known == name) else { return false };
        let is_valid = match index {
            METHOD => is_token(value),
            SCHEME => is_scheme(value),
            AUTHORITY => is_authority(value),
            PATH => is_path(value),
            _ => rules.offers_connect && is_token(value),
        };
        if !is_valid || self.pseudo[index].is_some() {
            return false;
        }
        self.pseudo[index] = Some((self.text.len() as u32, value.len() as u32));
        self.text.extend_from_slice(value);
        true
    }

    /// Checks that the pseudo headers are those that the method needs, and the length. A head with
    /// neither a path nor an authority is left to the engine, which answers it.
    fn is_complete(&self, is_last: bool) -> bool {
        let has = |index: usize| self.pseudo[index].is_some();
        let has_target = match (self.method() == b"CONNECT", has(PROTOCOL)) {
            (true, true) => has(SCHEME) && has(PATH) && has(AUTHORITY),
            (true, false) => !has(SCHEME) && !has(PATH),
            (false, true) => false,
            (false, false) => has(SCHEME) && (has(PATH) || !has(AUTHORITY)),
        };
        has(METHOD) && has_target && !(is_last && self.length.is_some_and(|length| length > 0))
    }
}

fn is_token(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| field_coding::list::is_name_byte(byte.to_ascii_lowercase()))
}

/// Source: RFC 3986 §3.1.
fn is_scheme(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// A coarse check: the engine knows what a host is.
fn is_authority(value: &[u8]) -> bool {
    !value.is_empty() && !value.iter().any(|byte| *byte <= b' ' || *byte == 0x7f || b"/\\?#".contains(byte))
}

/// A coarse check; a query alone and `*` are left to the engine, which answers them. A fragment
/// would silently be cut off.
fn is_path(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'/' | b'*' | b'?'))
        && !value.iter().any(|byte| *byte <= b' ' || *byte == 0x7f || *byte == b'#')
}

/// True for a field that only HTTP/1 has. Source: RFC 9113 §8.2.2.
fn is_of_connection(name: &[u8], value: &[u8]) -> bool {
    match name.len() {
        2 => name == b"te" && !value.trim_ascii().eq_ignore_ascii_case(b"trailers"),
        7 => name == b"upgrade",
        10 => name == b"connection" || name == b"keep-alive",
        16 => name == b"proxy-connection",
        17 => name == b"transfer-encoding",
        _ => false,
    }
}

/// Less than 2^63, as in HTTP/1.
fn length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok().filter(|length| *length <= i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: HeadRules = HeadRules { list_bytes_max: 1000, is_lenient: false, offers_connect: false };
    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/b?c")];

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.push(0);
            for text in [name, value] {
                field_coding::integer::write(text.len() as u64, 7, 0, &mut block);
                block.extend_from_slice(text.as_bytes());
            }
        }
        block
    }

    fn read_by(rules: &HeadRules, fields: &[(&str, &str)], is_last: bool) -> Result<RequestHead, HeadFault> {
        let mut head = RequestHead::default();
        read_request(&mut Decoder::new(4096), &block(fields), rules, is_last, &mut head).map(|()| head)
    }

    fn read(fields: &[(&str, &str)]) -> Result<RequestHead, HeadFault> {
        read_by(&RULES, fields, true)
    }

    #[test]
    fn request_has_its_parts() {
        let head = read(&[&GET[..], &[("cookie", "a=1"), ("x-a", " b "), ("cookie", "b=2")]].concat()).unwrap();
        assert_eq!((head.method(), head.scheme()), (&b"GET"[..], Some(&b"https"[..])));
        assert_eq!((head.authority(), head.path()), (Some(&b"a.example"[..]), Some(&b"/b?c"[..])));
        let fields: Vec<_> = head.fields().collect();
        assert_eq!(fields, [(&b"cookie"[..], &b"a=1"[..]), (b"x-a", b" b "), (b"cookie", b"b=2")]);
    }

    #[test]
    fn malformed_heads_are_refused() {
        let and = |more: &[(&'static str, &'static str)]| [&GET[..], more].concat();
        for fields in [
            and(&[(":path", "/c")]),
            and(&[(":method", "GET")]),
            and(&[(":status", "200")]),
            and(&[(":protocol", "websocket")]),
            and(&[(":other", "1")]),
            and(&[(":", "1")]),
            and(&[("X-Upper", "1")]),
            and(&[("", "1")]),
            and(&[("a b", "1")]),
            and(&[("a", "1\r\nb: 2")]),
            and(&[("a", "1\0")]),
            and(&[("te", "gzip")]),
            and(&[("connection", "close")]),
            and(&[("keep-alive", "1")]),
            and(&[("upgrade", "h2c")]),
            and(&[("proxy-connection", "close")]),
            and(&[("transfer-encoding", "chunked")]),
            and(&[("content-length", "1")]),
            and(&[("content-length", "+0")]),
            and(&[("content-length", "")]),
            and(&[("content-length", "0"), ("content-length", "1")]),
            and(&[("content-length", "9999999999999999999")]),
            vec![("a", "1"), GET[0], GET[1], GET[2], GET[3]],
            vec![GET[0], GET[1], GET[2]],
            vec![GET[0], GET[2], GET[3]],
            vec![GET[1], GET[2], GET[3]],
            vec![GET[0], ("", ""), GET[2], GET[3]],
            vec![GET[0], (":scheme", ""), GET[2], GET[3]],
            vec![GET[0], (":scheme", "ht tp"), GET[2], GET[3]],
            vec![GET[0], GET[1], GET[2], (":path", "")],
            vec![GET[0], GET[1], GET[2], (":path", "b")],
            vec![GET[0], GET[1], GET[2], (":path", "/a#b")],
            vec![GET[0], GET[1], GET[2], (":path", "/a b")],
            vec![GET[0], GET[1], (":authority", ""), GET[3]],
            vec![GET[0], GET[1], (":authority", "a b"), GET[3]],
            vec![GET[0], GET[1], (":authority", "a/b"), GET[3]],
            vec![(":method", "G T"), GET[1], GET[2], GET[3]],
            vec![(":method", ""), GET[1], GET[2], GET[3]],
            vec![(":method", "CONNECT"), GET[1], GET[2], GET[3]],
            vec![],
        ] {
            assert_eq!(read(&fields).map(drop), Err(HeadFault::Malformed), "{fields:?}");
        }
        assert!(read(&and(&[("te", "trailers"), ("content-length", "0"), ("content-length", "00")])).is_ok());
        assert_eq!(read_by(&RULES, &and(&[("content-length", "7")]), false).unwrap().length(), Some(7));
    }

    #[test]
    fn pseudo_headers_may_come_late_if_that_is_forgiven() {
        let lenient = HeadRules { is_lenient: true, ..RULES };
        let fields = [("a", "1"), GET[0], GET[1], GET[2], GET[3]];
        assert_eq!(read_by(&lenient, &fields, true).unwrap().path(), Some(&b"/b?c"[..]));
        assert!(read_by(&lenient, &[&fields[..], &[GET[0]]].concat(), true).is_err());
    }

    #[test]
    fn extended_connect_is_taken_if_it_was_offered() {
        let offering = HeadRules { offers_connect: true, ..RULES };
        let fields = [(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], GET[3]];
        assert_eq!(read_by(&offering, &fields, false).unwrap().protocol(), Some(&b"websocket"[..]));
        assert!(read_by(&RULES, &fields, false).is_err());
        assert!(read_by(&offering, &fields[..4], false).is_err());
        assert!(read_by(&offering, &[&GET[..], &[fields[1]]].concat(), false).is_err());
    }

    #[test]
    fn decoded_size_counts_and_the_table_stays_in_step() {
        let mut decoder = Decoder::new(4096);
        let mut head = RequestHead::default();
        // A field of 900 bytes is entered, and repeated.
        let mut bomb = block(&GET);
        bomb.extend([0x40, 1, b'x', 0x7f]);
        field_coding::integer::write(900 - 127, 8, 0, &mut Vec::new());
        bomb.extend([0x85, 0x06]);
        bomb.extend([b'a'; 900]);
        let once = [&bomb[..], &[0xbe]].concat();
        let mut read = |block: &[u8]| {
            head.clear();
            let result = read_request(&mut decoder, block, &RULES, true, &mut head);
            (result, head.memory_bytes() <= 1200)
        };
        assert_eq!(read(&once), (Err(HeadFault::TooLarge), true));
        let [get, rest] = [block(&GET), vec![0xbe; 5]];
        assert_eq!(read(&[&get[..], &[0xbe]].concat()).0, Err(HeadFault::TooLarge), "it is known");
        assert_eq!(read(&[&get[..], &rest].concat()), (Err(HeadFault::FarTooLarge), true));
        assert_eq!(read(&[0x80]).0, Err(HeadFault::Undecodable));
    }

    #[test]
    fn trailers_have_no_pseudo_headers() {
        let read = |fields: &[(&str, &str)]| read_trailers(&mut Decoder::new(4096), &block(fields), &RULES);
        assert_eq!(read(&[("x-sum", "1")]).unwrap().unwrap().get(b"x-sum"), Some(&b"1"[..]));
        for wrong in [(":status", "200"), (":path", "/"), ("connection", "x"), ("X", "1"), ("a", "\n")] {
            assert_eq!(read(&[("x-sum", "1"), wrong]), Err(HeadFault::Malformed), "{wrong:?}");
        }
        assert_eq!(read(&[("x", "1"); TRAILER_FIELDS_MAX + 1]), Ok(None));
    }
}
