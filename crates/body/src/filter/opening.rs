//! The interface of a filter: its context when it is opened, and its effect.
//!
//! Next files: `range.rs` and the other filters.

use crate::machine::Machine;
use message::Message;
use semantics::ranges::RangeRules;
use surface::counter::Main;
use surface::encoding::Encoding;
use surface::parameter::Parameters;

/// The section of the proxy that a body passes; named after the variable that lists the filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// `req.filters`: from the client, before the body is read.
    Req,
    /// `bereq.filters`: to the origin.
    Bereq,
    /// `beresp.filters`: from the origin, before the body is stored.
    Beresp,
    /// `resp.filters`: to the client.
    Resp,
}

/// The head of the message whose body a filter is opened for. The implementation also logs the
/// changes.
pub trait Head {
    /// The message in its present state.
    fn message(&self) -> &Message;

    /// The request that a response to a client answers; `None` on all other sides.
    fn request(&self) -> Option<&Message>;

    /// The target of the request to the origin that the message answers: addresses in a page are
    /// relative to it.
    fn target(&self) -> &[u8] {
        b"/"
    }

    /// The last four bytes of the filter's input; `None` unless the whole input is already there.
    fn body_tail(&self) -> Option<[u8; 4]>;

    /// The first bytes of the filter's input, as many as are contiguous; empty unless the whole
    /// input is already there.
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

    /// Logs a debug message.
    fn debug(&mut self, text: &str);

    /// Logs an error.
    fn error(&mut self, text: &str);
}

/// The context that a filter can read and change when it is opened.
pub struct Opening<'a> {
    /// The section of the proxy.
    pub side: Side,
    /// The head of its message.
    pub head: &'a mut dyn Head,
    /// Length of the filter's input in bytes; `None` if it is not known.
    pub length: Option<u64>,
    /// Another filter produces that input.
    pub is_filtered: bool,
    /// The current parameters.
    pub parameters: &'a Parameters,
    /// The rules by which `range` reads the request.
    pub ranges: RangeRules,
}

/// A filter that has work.
pub struct Opened {
    /// Its machine.
    pub machine: Box<dyn Machine>,
    /// The effect on the body.
    pub effect: Effect,
}

/// The effect of a filter on a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Length of the output in bytes; `None` if it is not known.
    pub length: Option<u64>,
    /// The coding of the output.
    pub coding: Coding,
    /// The counter of such bodies.
    pub counter: Option<Main>,
}

impl Effect {
    /// The effect of a filter that changes the length to this, and leaves the coding.
    #[must_use]
    pub fn of_length(length: Option<u64>) -> Effect {
        Effect { length, coding: Coding::Untold, counter: None }
    }

    /// The effect of a filter that compresses a body with that coding, which is not gzip.
    pub(super) fn of_packed(encoding: Encoding) -> Effect {
        Effect { length: None, coding: Coding::Coded(encoding), counter: None }
    }
}

/// The coding of a filter's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Unspecified: the coding is that of the input.
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
    /// True if the message declares its body as gzip and nothing else.
    pub(crate) fn is_gzipped(&self) -> bool {
        self.head.message().get("Content-Encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"gzip"))
    }

    /// Changes the head of a body without coding for one that gets a coding; returns false, and
    /// changes nothing, if it has one.
    pub(super) fn pack(&mut self, encoding: Encoding) -> bool {
        if self.head.message().has("Content-Encoding") {
            return false;
        }
        self.head.unset("Content-Length");
        self.weaken_etag();
        self.head.append("Content-Encoding", encoding.name().as_bytes());
        self.vary_on_encoding();
        true
    }

    /// Changes the head of a body that loses its coding. Returns `None`, and changes nothing, if it
    /// does not have that coding; on the client's side VCL decides, as for `gunzip`.
    pub(super) fn unpack(&mut self, encoding: Encoding) -> Option<Effect> {
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

    /// Makes an object vary on Accept-Encoding: not every client can use the stored body.
    pub(crate) fn vary_on_encoding(&mut self) {
        if self.side == Side::Beresp {
            vary_on_encoding(self.head);
        }
    }

    /// Makes the strong ETag of an object weak: the stored body is not byte for byte the one that
    /// the ETag names.
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
