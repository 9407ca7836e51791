//! Logged changes to messages: every header that is set or removed leaves a record, in the form of
//! Varnish.
//!
//! Each kind of message has its set of tags; the functions here change a [`Message`] and write the
//! record.

use message::{HeaderLine, Message};
use shm::log::LogBuffer;
use std::fmt;
use surface::tag::Tag;

/// Seconds with three decimals. Formatting a float is slow, and the reason of each miss and of each
/// stored object has some.
pub(crate) struct Thousandths(pub(crate) f64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Thousandths(seconds) = *self;
        if !(0.0..1e12).contains(&seconds) {
            return write!(f, "{seconds:.3}");
        }
        let thousandths = (seconds * 1000.0).round_ties_even() as u64;
        f.write_str(itoa::Buffer::new().format(thousandths / 1000))?;
        // Four digits, of which the first one gives way to the point.
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(1000 + thousandths % 1000);
        f.write_str(".")?;
        f.write_str(&digits[1..])
    }
}

/// The tags of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageTags {
    /// Method set.
    pub method: Tag,
    /// Target set.
    pub url: Tag,
    /// Protocol set.
    pub protocol: Tag,
    /// Status set.
    pub status: Tag,
    /// Reason set.
    pub reason: Tag,
    /// Header added.
    pub header: Tag,
    /// Header removed.
    pub unset: Tag,
}

macro_rules! tags {
    ($name:ident, $method:ident, $url:ident, $protocol:ident, $status:ident, $reason:ident, $header:ident, $unset:ident, $text:literal) => {
        #[doc = $text]
        pub const $name: MessageTags = MessageTags {
            method: Tag::$method,
            url: Tag::$url,
            protocol: Tag::$protocol,
            status: Tag::$status,
            reason: Tag::$reason,
            header: Tag::$header,
            unset: Tag::$unset,
        };
    };
}

tags!(REQ, ReqMethod, ReqURL, ReqProtocol, ReqStatus, ReqReason, ReqHeader, ReqUnset, "A client's request.");
tags!(
    RESP,
    RespMethod,
    RespURL,
    RespProtocol,
    RespStatus,
    RespReason,
    RespHeader,
    RespUnset,
    "A response to a client."
);
tags!(
    BEREQ,
    BereqMethod,
    BereqURL,
    BereqProtocol,
    BereqStatus,
    BereqReason,
    BereqHeader,
    BereqUnset,
    "A request to an origin."
);
tags!(
    BERESP,
    BerespMethod,
    BerespURL,
    BerespProtocol,
    BerespStatus,
    BerespReason,
    BerespHeader,
    BerespUnset,
    "An origin's response."
);

tags!(OBJ, ObjMethod, ObjURL, ObjProtocol, ObjStatus, ObjReason, ObjHeader, ObjUnset, "A stored response.");

/// Logs a whole request: method, target, protocol, headers.
pub fn log_request(log: &mut LogBuffer, tags: MessageTags, message: &Message) {
    log.record(tags.method, message.method());
    log.record(tags.url, message.target());
    log.record(tags.protocol, message.protocol());
    log_headers(log, tags, message);
}

/// Logs a whole response: protocol, status, reason, headers.
pub fn log_response(log: &mut LogBuffer, tags: MessageTags, message: &Message) {
    log_status_line(log, tags, message);
    log_headers(log, tags, message);
}

/// Logs a response as it is stored. These records are off unless an operator enables them, and then
/// cost nothing.
pub fn log_object(log: &mut LogBuffer, stored: &Message) {
    if !log.is_masked(Tag::ObjProtocol)
        || !log.is_masked(Tag::ObjStatus)
        || !log.is_masked(Tag::ObjReason)
        || !log.is_masked(Tag::ObjHeader)
    {
        log_response(log, OBJ, stored);
    }
}

/// Logs protocol, status (as sent on the wire) and reason of a response.
pub fn log_status_line(log: &mut LogBuffer, tags: MessageTags, message: &Message) {
    log.record(tags.protocol, message.protocol());
    log.record_numbers(tags.status, [u64::from(message.status() % 1000)]);
    log.record(tags.reason, message.reason());
}

/// Logs all headers of a message.
pub fn log_headers(log: &mut LogBuffer, tags: MessageTags, message: &Message) {
    log.record_each(tags.header, message.headers().map(|header| header.line()));
}

/// Gives a message a status line and logs it.
pub fn set_status_line(
    log: &mut LogBuffer,
    tags: MessageTags,
    message: &mut Message,
    protocol: &[u8],
    status: u16,
    reason: &[u8],
) {
    message.set_protocol(protocol);
    message.set_status(status);
    message.set_reason(reason);
    log_status_line(log, tags, message);
}

/// Adds a header at the end.
pub fn append(log: &mut LogBuffer, tags: MessageTags, message: &mut Message, name: &str, value: &[&[u8]]) {
    let line = message.append_parts(name.as_bytes(), value);
    log.record(tags.header, line);
}

/// Drops a fragment from the target, which is never a part of a request. Source: RFC 9110 §7.1.
pub fn drop_fragment(log: &mut LogBuffer, tags: MessageTags, message: &mut Message) {
    let Some(at) = message.target().iter().position(|&byte| byte == b'#') else { return };
    let target = match &message.target()[..at] {
        [] => b"/".to_vec(),
        before => before.to_vec(),
    };
    message.set_target(&target);
    log.record(tags.url, &target);
}

/// Logs the last header.
pub fn log_last(log: &mut LogBuffer, tags: MessageTags, message: &Message) {
    if let Some(header) = message.headers().next_back() {
        log.record(tags.header, header.line());
    }
}

/// Removes all headers of that name.
pub fn unset(log: &mut LogBuffer, tags: MessageTags, message: &mut Message, name: &str) {
    if !message.has(name) {
        return;
    }
    message.retain(|header: HeaderLine<'_>| {
        let keep = !header.is(name);
        if !keep {
            log.record(tags.unset, header.line());
        }
        keep
    });
}

/// Replaces all headers of that name by a single one at the end.
pub fn set(log: &mut LogBuffer, tags: MessageTags, message: &mut Message, name: &str, value: &[u8]) {
    unset(log, tags, message, name);
    append(log, tags, message, name, &[value]);
}

/// As [`set`], but does nothing if the first header of that name already has this value.
pub fn force(log: &mut LogBuffer, tags: MessageTags, message: &mut Message, name: &str, value: &[u8]) {
    if message.get(name) != Some(value) {
        set(log, tags, message, name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::Thousandths;

    #[test]
    fn thousandths_are_written_as_they_are_formatted() {
        let usual = (0..5000).map(|number| f64::from(number) / 16.0);
        for value in usual.chain([0.0004, 0.9996, 1e12, 1e300, -1.5, f64::NAN, f64::INFINITY, 1_700_000_000.25]) {
            assert_eq!(Thousandths(value).to_string(), format!("{value:.3}"));
        }
    }
}
