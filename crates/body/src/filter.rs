//! The filters that VCL can name: one table, one filter a file.
//!
//! A filter is opened for a body: it looks at the head that describes the body, says whether it has anything to do, changes
//! the head accordingly, and gives a [`Machine`] with what that will make of the body ([`Effect`]). It sees of the world what
//! [`Opening`] and [`Head`] show, no more. To add one: a file in `filter/` with its machine and its `open`, and a row here.
//!
//! Compat: names, header changes and texts of Varnish 7.1.1. Reading order: `range`, `gzip`, `gunzip`, `testgunzip`, `esi`.

mod esi;
pub(crate) mod gunzip;
pub(crate) mod gzip;
pub(crate) mod range;
pub(crate) mod testgunzip;

use crate::machine::Machine;
use message::Message;
use surface::counter::Main;
use surface::parameter::Parameters;

/// On whose way a body is. Called like the variable that lists the filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// `req.filters`: from the client, before anybody sees the body.
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
    /// Its name in the lists of VCL.
    pub name: &'static str,
    /// Where it may stand.
    pub sides: &'static [Side],
    /// It takes so much memory that it is not set up for a client while requests hold too much.
    pub is_heavy: bool,
    /// Sets it up for a body, and changes the head accordingly; `None`, and no trace, when there is nothing to do.
    pub open: fn(&mut Opening<'_>) -> Option<Opened>,
}

use Side::{Bereq, Beresp, Req, Resp};

/// All of them.
#[rustfmt::skip]
pub static FILTERS: &[FilterRow] = &[
    FilterRow { name: "range", sides: &[Resp], is_heavy: false, open: range::open },
    FilterRow { name: "gzip", sides: &[Req, Beresp], is_heavy: true, open: gzip::open },
    FilterRow { name: "gunzip", sides: &[Req, Bereq, Beresp, Resp], is_heavy: true, open: gunzip::open },
    FilterRow { name: "testgunzip", sides: &[Req, Beresp], is_heavy: true, open: testgunzip::open },
    FilterRow { name: "esi", sides: &[Req, Beresp], is_heavy: false, open: esi::open },
    FilterRow { name: "esi_gzip", sides: &[Req, Beresp], is_heavy: false, open: esi::open },
];

/// The filter of that name, if there is one for that side.
#[must_use]
pub fn find(name: &[u8], side: Side) -> Option<&'static FilterRow> {
    FILTERS.iter().find(|row| row.name.as_bytes() == name && row.sides.contains(&side))
}

/// The names of a list as VCL spells it.
pub fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty())
}

/// The head of the message whose body a filter is opened for. Whoever implements it says what happens to it where operators
/// look.
pub trait Head {
    /// The message as it stands.
    fn message(&self) -> &Message;

    /// The request that a response to a client answers; `None` on all other sides.
    fn request(&self) -> Option<&Message>;

    /// The last four bytes of the body as it comes to the filter; `None` unless it lies there whole.
    fn body_tail(&self) -> Option<[u8; 4]>;

    /// Adds a header at the end.
    fn append(&mut self, name: &str, value: &[u8]);

    /// Replaces all headers of that name by one at the end.
    fn set(&mut self, name: &str, value: &[u8]);

    /// Removes all headers of that name.
    fn unset(&mut self, name: &str);

    /// Gives it another status and that one's reason.
    fn set_status(&mut self, status: u16);

    /// Tells those who look for the cause of something.
    fn debug(&mut self, text: &str);

    /// Tells the operator of something that is not as it should be.
    fn error(&mut self, text: &str);
}

/// What a filter may know, and change, when it is opened.
pub struct Opening<'a> {
    /// On whose way the body is.
    pub side: Side,
    /// What describes it.
    pub head: &'a mut dyn Head,
    /// Bytes that will come to the filter; `None` when that is not known.
    pub length: Option<u64>,
    /// What the operator has set.
    pub parameters: &'a Parameters,
}

/// A filter that has something to do.
pub struct Opened {
    /// What does it.
    pub machine: Box<dyn Machine>,
    /// What becomes of the body.
    pub effect: Effect,
}

/// What a filter makes of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Bytes that come out; `None` when that is not known.
    pub length: Option<u64>,
    /// What is known of them.
    pub coding: Coding,
    /// What counts such bodies.
    pub counter: Option<Main>,
}

impl Effect {
    /// No more is known of what comes out than of what goes in, and it becomes so long.
    #[must_use]
    pub fn of_length(length: Option<u64>) -> Effect {
        Effect { length, coding: Coding::Untold, counter: None }
    }
}

/// What a filter knows of the coding of what it puts out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Nothing: it is what it was.
    Untold,
    /// It came as gzip, and still is.
    StillGzip,
    /// It has become gzip.
    Packed,
    /// It was gzip.
    Unpacked,
}

impl Opening<'_> {
    /// Whether the message says that its body is gzip, and nothing else.
    pub(crate) fn is_gzipped(&self) -> bool {
        self.head.message().get("Content-Encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"gzip"))
    }

    /// Has an object vary on Accept-Encoding: what is stored as gzip suits only some clients.
    pub(crate) fn vary_on_encoding(&mut self) {
        if self.side != Side::Beresp {
            return;
        }
        match self.head.message().get("Vary") {
            None => self.head.append("Vary", b"Accept-Encoding"),
            Some(value) => {
                let is_there = semantics::list::members(value)
                    .any(|name| name.eq_ignore_ascii_case(b"Accept-Encoding") || name == b"*");
                if !is_there {
                    let longer = [value, b", Accept-Encoding"].concat();
                    self.head.set("Vary", &longer);
                }
            }
        }
    }

    /// Makes the strong ETag of an object weak: what is stored is not byte for byte what it names.
    pub(crate) fn weaken_etag(&mut self) {
        if self.side == Side::Beresp {
            weaken_etag(self.head);
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
