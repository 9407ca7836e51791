//! Frames: their nine bytes in front, and the fields of their payloads.
//!
//! Values that a script may want to inspect are not checked here. Source: RFC 9113 §4.1 and §6.

/// Bytes in front of a payload.
pub const HEAD_BYTES: usize = 9;

/// A SETTINGS or PING frame that acknowledges one.
pub const ACK: u8 = 0x1;
/// The last frame of this side's message.
pub const END_STREAM: u8 = 0x1;
/// The last frame of a header block.
pub const END_HEADERS: u8 = 0x4;
/// The payload is padded.
pub const PADDED: u8 = 0x8;
/// A priority is in front of the header block.
pub const PRIORITY: u8 = 0x20;

/// The kinds of frames, by number.
pub const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

/// The numbers of the kinds.
#[allow(missing_docs)]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// The error codes, by number.
pub const ERRORS: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// The settings, by number.
pub const SETTINGS: [&str; 7] = [
    "unknown",
    "HEADER_TABLE_SIZE",
    "ENABLE_PUSH",
    "MAX_CONCURRENT_STREAMS",
    "INITIAL_WINDOW_SIZE",
    "MAX_FRAME_SIZE",
    "MAX_HEADER_LIST_SIZE",
];

/// The setting for the maximum size of the sender's header table.
pub const HEADER_TABLE_SIZE: u16 = 1;

/// The name of a number in one of these lists.
#[must_use]
pub fn name(list: &[&'static str], number: u32) -> &'static str {
    list.get(number as usize).copied().unwrap_or("unknown")
}

/// A frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The kind, see [`kind`].
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// The stream, with the reserved bit.
    pub stream: u32,
    /// The bytes after the nine bytes.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame without a payload.
    #[must_use]
    pub fn new(kind: u8, flags: u8, stream: u32) -> Frame {
        Frame { kind, flags, stream, payload: Vec::new() }
    }

    /// The frame that starts with these bytes, still without its payload, and the payload's length.
    #[must_use]
    pub fn of_head(head: [u8; HEAD_BYTES]) -> (Frame, usize) {
        let [a, b, c, kind, flags, rest @ ..] = head;
        (Frame::new(kind, flags, u32::from_be_bytes(rest)), u32::from_be_bytes([0, a, b, c]) as usize)
    }

    /// The frame as sent. A payload too long for its field is sent with the lower bits of its
    /// length.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.payload.len());
        bytes.extend_from_slice(&(self.payload.len() as u32).to_be_bytes()[1..]);
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// The frame's kind in words.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        KINDS.get(usize::from(self.kind)).copied().unwrap_or("?")
    }

    /// True if a flag is set.
    #[must_use]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Four bytes of the payload as a number; 0 where there are none.
    #[must_use]
    pub fn number(&self, at: usize) -> u32 {
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }

    /// The last value of a setting in a SETTINGS frame.
    #[must_use]
    pub fn setting(&self, number: u16) -> Option<u32> {
        self.settings().filter(|(own, _)| *own == number).map(|(_, value)| value).last()
    }

    /// The settings in a SETTINGS frame.
    pub fn settings(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.payload
            .chunks_exact(6)
            .map(|row| (u16::from_be_bytes([row[0], row[1]]), u32::from_be_bytes([row[2], row[3], row[4], row[5]])))
    }

    /// True if this kind of frame can be padded.
    #[must_use]
    pub fn can_be_padded(&self) -> bool {
        matches!(self.kind, kind::DATA | kind::HEADERS | kind::PUSH_PROMISE)
    }

    /// Bytes of padding; 0 if there is none or it is longer than the payload.
    #[must_use]
    pub fn padding(&self) -> usize {
        let padding = self.payload.first().map_or(0, |length| usize::from(*length));
        if self.can_be_padded() && self.has(PADDED) && padding < self.payload.len() { padding } else { 0 }
    }

    /// The payload without its padding; `None` if the padding is longer than the payload.
    #[must_use]
    pub fn unpadded(&self) -> Option<&[u8]> {
        if !(self.can_be_padded() && self.has(PADDED)) {
            return Some(&self.payload);
        }
        let (length, rest) = self.payload.split_first()?;
        rest.get(..rest.len().checked_sub(usize::from(*length))?)
    }

    /// The flags in words.
    #[must_use]
    pub fn flag_names(&self) -> Vec<String> {
        use kind::{CONTINUATION, DATA, HEADERS, PING, PUSH_PROMISE, SETTINGS};
        let known: &[(u8, &str)] = match self.kind {
            DATA => &[(END_STREAM, "END_STREAM"), (PADDED, "PADDED")],
            HEADERS => {
                &[(END_STREAM, "END_STREAM"), (END_HEADERS, "END_HEADERS"), (PADDED, "PADDED"), (PRIORITY, "PRIORITY")]
            }
            PUSH_PROMISE => &[(END_HEADERS, "END_HEADERS"), (PADDED, "PADDED")],
            CONTINUATION => &[(END_HEADERS, "END_HEADERS")],
            SETTINGS | PING => &[(ACK, "ACK")],
            _ => &[],
        };
        let mut names: Vec<String> =
            known.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| (*name).to_owned()).collect();
        let unknown = known.iter().fold(self.flags, |left, (flag, _)| left & !flag);
        if unknown != 0 {
            names.push(format!("unknown 0x{unknown:02x}"));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let frame = Frame { kind: kind::PING, flags: ACK, stream: 7, payload: b"12345678".to_vec() };
        let bytes = frame.bytes();
        assert_eq!(bytes[..9], [0, 0, 8, 6, 1, 0, 0, 0, 7]);
        let (head, length) = Frame::of_head(bytes[..9].try_into().unwrap());
        assert_eq!((head.kind, head.flags, head.stream, length), (kind::PING, ACK, 7, 8));
    }

    #[test]
    fn padding_is_taken_off_or_found_wrong() {
        let frame = |payload: &[u8]| Frame { flags: PADDED, payload: payload.to_vec(), ..Frame::default() };
        assert_eq!(frame(b"\x02ab__").unpadded(), Some(&b"ab"[..]));
        assert_eq!(frame(b"\x02ab__").padding(), 2);
        assert_eq!(frame(b"\x02__").unpadded(), Some(&b""[..]));
        assert_eq!(frame(b"\x03__").unpadded(), None);
        assert_eq!(frame(b"").unpadded(), None);
    }
}
