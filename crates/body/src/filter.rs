//! The filters that VCL can name: one table, one file for each filter.
//!
//! A filter is opened for a body: it looks at the head of the message, decides whether it has anything to do, changes the
//! head accordingly, and returns a [`Machine`] and a description of the result ([`Effect`]). All that it knows of its
//! surroundings is [`Opening`] and [`Head`]. To add a filter, add a file in `filter/` with its machine and its `open`, and a
//! row here.
//!
//! Compat: names, header changes and texts of Varnish 7.1.1. Reading order: `range`, `byteranges`, `gzip`, `gunzip`, `testgunzip`,
//! `brotli`, `unbrotli`, `zstd`, `unzstd`, `esi`, `rot13`.

pub(crate) mod brotli;
pub(crate) mod byteranges;
mod esi;
pub(crate) mod gunzip;
pub(crate) mod gzip;
pub(crate) mod range;
mod rot13;
pub(crate) mod testgunzip;
pub(crate) mod unbrotli;
pub(crate) mod unzstd;
pub(crate) mod zstd;

use crate::machine::Machine;
use message::Message;
use semantics::ranges::RangeRules;
use surface::counter::Main;
use surface::encoding::Encoding;
use surface::parameter::Parameters;

/// Where a body is on its way through the proxy; named after the variable that lists the filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// `req.filters`: from the client, before anything reads the body.
    Req,
    /// `bereq.filters`: to the origin.
    Bereq,
    /// `beresp.filters`: from the origin, before the body is stored.
    Beresp,
    /// `resp.filters`: to the client.
    Resp,
}

/// A filter as VCL knows it.
#[derive(Debug)]
pub struct FilterRow {
    /// Its name in VCL's lists of filters.
    pub name: &'static str,
    /// The sides on which it may be used.
    pub sides: &'static [Side],
    /// The VMOD that brings it: only a VCL that imports that one knows it. `None`: every VCL does.
    pub vmod: Option<&'static str>,
    /// It needs so much memory that it is not set up for a client while requests use too much memory.
    pub is_heavy: bool,
    /// Sets it up for a body and changes the head accordingly; returns `None`, and changes nothing, when it has nothing to do.
    pub open: fn(&mut Opening<'_>) -> Option<Opened>,
}

use Side::{Bereq, Beresp, Req, Resp};

/// All filters.
#[rustfmt::skip]
pub static FILTERS: &[FilterRow] = &[
    FilterRow { name: "range", sides: &[Resp], vmod: None, is_heavy: false, open: range::open },
    FilterRow { name: "gzip", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: gzip::open },
    FilterRow { name: "gunzip", sides: &[Req, Bereq, Beresp, Resp], vmod: None, is_heavy: true, open: gunzip::open },
    FilterRow { name: "testgunzip", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: testgunzip::open },
    FilterRow { name: "brotli", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: brotli::open },
    FilterRow { name: "unbrotli", sides: &[Req, Bereq, Beresp, Resp], vmod: None, is_heavy: true, open: unbrotli::open },
    FilterRow { name: "zstd", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: zstd::open },
    FilterRow { name: "unzstd", sides: &[Req, Bereq, Beresp, Resp], vmod: None, is_heavy: true, open: unzstd::open },
    FilterRow { name: "esi", sides: &[Req, Beresp, Resp], vmod: None, is_heavy: false, open: esi::open },
    // Two of the VMOD debug. The second checks Varnish's own calls, and passes everything.
    FilterRow { name: "rot13", sides: &[Beresp, Resp], vmod: Some("debug"), is_heavy: false, open: rot13::open },
    FilterRow { name: "debug.pedantic", sides: &[Resp], vmod: Some("debug"), is_heavy: false, open: |_| None },
    FilterRow { name: "esi_gzip", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: esi::open_gzip },
];

/// The filter of that name, if it may be used on that side.
#[must_use]
pub fn find(name: &[u8], side: Side) -> Option<&'static FilterRow> {
    FILTERS.iter().find(|row| row.name.as_bytes() == name && row.sides.contains(&side))
}

/// The names in a list of filters as VCL writes it.
pub fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty())
}

/// The filter of this list that cannot be opened for a partial response (206), and why; `None` if all leave it alone.
#[must_use]
pub fn refusal_of_part(list: &[u8]) -> Option<(&'static str, &'static str)> {
    const PAGES: [&str; 2] = ["esi", "esi_gzip"];
    let page = |name: &[u8]| PAGES.into_iter().find(|page| page.as_bytes() == name);
    names(list).find_map(page).map(|name| (name, "Attempted ESI on partial (206) response"))
}

/// The head of the message whose body a filter is opened for. The implementation also logs the changes.
pub trait Head {
    /// The message in its present state.
    fn message(&self) -> &Message;

    /// The request that a response to a client answers; `None` on all other sides.
    fn request(&self) -> Option<&Message>;

    /// The target of the request to the origin that the message answers: what addresses in a page are relative to.
    fn target(&self) -> &[u8] {
        b"/"
    }

    /// The last four bytes of the filter's input; `None` unless the whole input is already there.
    fn body_tail(&self) -> Option<[u8; 4]>;

    /// The first bytes of the filter's input, as many as lie in one piece; empty unless the whole input is already there.
    fn body_start(&self) -> &[u8] {
        &[]
    }

    /// Adds a header at the end.
    fn append(&mut self, name: &str, value: &[u8]);

    /// Replaces all headers of that name by one at the end.
    fn set(&mut self, name: &str, value: &[u8]);

    /// Removes all headers of that name.
    fn unset(&mut self, name: &str);

    /// Sets the status, and the reason that belongs to it.
    fn set_status(&mut self, status: u16);

    /// Logs something that helps with debugging.
    fn debug(&mut self, text: &str);

    /// Logs an error.
    fn error(&mut self, text: &str);
}

/// What a filter can see and change when it is opened.
pub struct Opening<'a> {
    /// Where the body is on its way.
    pub side: Side,
    /// The head of its message.
    pub head: &'a mut dyn Head,
    /// Length of the filter's input in bytes; `None` when it is not known.
    pub length: Option<u64>,
    /// The current parameters.
    pub parameters: &'a Parameters,
    /// How `range` reads the request.
    pub ranges: RangeRules,
}

/// A filter that has something to do.
pub struct Opened {
    /// The machine that does it.
    pub machine: Box<dyn Machine>,
    /// The effect on the body.
    pub effect: Effect,
}

/// The effect of a filter on a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Length of the output in bytes; `None` when it is not known.
    pub length: Option<u64>,
    /// The coding of the output.
    pub coding: Coding,
    /// The counter of such bodies.
    pub counter: Option<Main>,
}

impl Effect {
    /// The effect of a filter that changes the length to this, and nothing that is known of the coding.
    #[must_use]
    pub fn of_length(length: Option<u64>) -> Effect {
        Effect { length, coding: Coding::Untold, counter: None }
    }

    /// The effect of a filter that packs a body with that coding, which is not gzip.
    fn of_packed(encoding: Encoding) -> Effect {
        Effect { length: None, coding: Coding::Coded(encoding), counter: None }
    }
}

/// What a filter knows of the coding of its output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Nothing: the coding is that of the input.
    Untold,
    /// The body was gzip, and still is.
    StillGzip,
    /// It has become gzip.
    Packed,
    /// It was gzip, or another coding.
    Unpacked,
    /// It has become this, which is not gzip.
    Coded(Encoding),
}

impl Opening<'_> {
    /// Whether the message says that its body is gzip and nothing else.
    pub(crate) fn is_gzipped(&self) -> bool {
        self.head.message().get("Content-Encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"gzip"))
    }

    /// Changes the head of a body without coding for one that gets a coding; false, and no change, if it has one.
    fn pack(&mut self, encoding: Encoding) -> bool {
        if self.head.message().has("Content-Encoding") {
            return false;
        }
        self.head.unset("Content-Length");
        self.weaken_etag();
        self.head.append("Content-Encoding", encoding.name().as_bytes());
        self.vary_on_encoding();
        true
    }

    /// Changes the head of a body that loses its coding. `None`, and no change, if it does not have that coding; on the
    /// client's side VCL decides, as for `gunzip`.
    fn unpack(&mut self, encoding: Encoding) -> Option<Effect> {
        let is_delivery = self.side == Side::Resp;
        let is_it = |value: &[u8]| value.eq_ignore_ascii_case(encoding.name().as_bytes());
        if !is_delivery && !self.head.message().get("Content-Encoding").is_some_and(is_it) {
            return None;
        }
        self.head.unset("Content-Encoding");
        if !is_delivery {
            self.head.unset("Content-Length");
            self.weaken_etag();
        }
        Some(Effect { length: None, coding: Coding::Unpacked, counter: None })
    }

    /// Makes an object vary on Accept-Encoding: not every client can use what is stored.
    pub(crate) fn vary_on_encoding(&mut self) {
        if self.side == Side::Beresp {
            vary_on_encoding(self.head);
        }
    }

    /// Makes the strong ETag of an object weak: the stored body is not byte for byte the one that the ETag names.
    pub(crate) fn weaken_etag(&mut self) {
        if self.side == Side::Beresp {
            weaken_etag(self.head);
        }
    }
}

/// Makes a message vary on Accept-Encoding, unless it does.
pub fn vary_on_encoding(head: &mut dyn Head) {
    match head.message().get("Vary") {
        None => head.append("Vary", b"Accept-Encoding"),
        Some(value) => {
            let is_there = semantics::list::members(value)
                .any(|name| name.eq_ignore_ascii_case(b"Accept-Encoding") || name == b"*");
            if !is_there {
                let longer = [value, b", Accept-Encoding"].concat();
                head.set("Vary", &longer);
            }
        }
    }
}

/// Makes a strong ETag weak.
pub fn weaken_etag(head: &mut dyn Head) {
    let Some(tag) = head.message().get("ETag") else { return };
    if tag.starts_with(b"W/") {
        return;
    }
    let weak = [b"W/", tag].concat();
    head.set("ETag", &weak);
}
