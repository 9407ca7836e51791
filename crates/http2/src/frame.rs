//! The head of a frame, and the numbers of RFC 9113.

/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = 9;

/// Connection preface of a client. Source: RFC 9113 §3.4.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames. Source: RFC 9113 §6, RFC 9218 §7.1.
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
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames.
#[allow(missing_docs)]
pub mod flag {
    /// Of SETTINGS and PING.
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    /// Of HEADERS.
    pub const PRIORITY: u8 = 32;
}

/// The name of a type of frame of RFC 9113.
#[must_use]
pub fn kind_name(kind: u8) -> Option<&'static str> {
    const NAMES: [&str; 10] = [
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
    NAMES.get(usize::from(kind)).copied()
}

/// The name of a setting as the log spells it. Source: RFC 9113 §6.5.2.
#[must_use]
pub fn setting_name(identifier: u16) -> Option<&'static str> {
    const NAMES: [&str; 6] = [
        "header_table_size",
        "enable_push",
        "max_concurrent_streams",
        "initial_window_size",
        "max_frame_size",
        "max_header_list_size",
    ];
    usize::from(identifier).checked_sub(1).and_then(|index| NAMES.get(index)).copied()
}

/// The nine bytes before each frame's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHead {
    /// Bytes of payload, below 2^24.
    pub payload_bytes: u32,
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// 0 for the connection; the reserved bit is cleared.
    pub stream: u32,
}

impl FrameHead {
    /// Reads a head.
    #[must_use]
    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> FrameHead {
        FrameHead {
            payload_bytes: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5] & 0x7f, bytes[6], bytes[7], bytes[8]]),
        }
    }

    /// Writes the head.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEAD_BYTES] {
        let length = self.payload_bytes.to_be_bytes();
        let stream = self.stream.to_be_bytes();
        [length[1], length[2], length[3], self.kind, self.flags, stream[0], stream[1], stream[2], stream[3]]
    }

    /// True if a flag is set.
    #[must_use]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Error code of a stream or a connection. Source: RFC 9113 §7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum ErrorCode {
    NoError = 0,
    ProtocolError = 1,
    InternalError = 2,
    FlowControlError = 3,
    SettingsTimeout = 4,
    StreamClosed = 5,
    FrameSizeError = 6,
    RefusedStream = 7,
    Cancel = 8,
    CompressionError = 9,
    ConnectError = 10,
    EnhanceYourCalm = 11,
    InadequateSecurity = 12,
    Http11Required = 13,
}

impl ErrorCode {
    /// All of them, in the order of their numbers.
    pub const ALL: [ErrorCode; 14] = [
        ErrorCode::NoError,
        ErrorCode::ProtocolError,
        ErrorCode::InternalError,
        ErrorCode::FlowControlError,
        ErrorCode::SettingsTimeout,
        ErrorCode::StreamClosed,
        ErrorCode::FrameSizeError,
        ErrorCode::RefusedStream,
        ErrorCode::Cancel,
        ErrorCode::CompressionError,
        ErrorCode::ConnectError,
        ErrorCode::EnhanceYourCalm,
        ErrorCode::InadequateSecurity,
        ErrorCode::Http11Required,
    ];

    /// The code with this number; `None` for unknown numbers.
    #[must_use]
    pub fn of(number: u32) -> Option<ErrorCode> {
        ErrorCode::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The name in the RFC and in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
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
        NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_as_it_was_written() {
        let head = FrameHead { payload_bytes: 0x01_02_03, kind: kind::PING, flags: flag::ACK, stream: 0x7fff_fffe };
        assert_eq!(head.to_bytes(), [1, 2, 3, 6, 1, 0x7f, 0xff, 0xff, 0xfe]);
        assert_eq!(FrameHead::parse(&head.to_bytes()), head);
        let mut reserved = head.to_bytes();
        reserved[5] |= 0x80;
        assert_eq!(FrameHead::parse(&reserved), head, "the reserved bit means nothing");
    }

    #[test]
    fn codes_have_the_numbers_of_their_places() {
        for (number, code) in (0..).zip(ErrorCode::ALL) {
            assert_eq!((code as u32, ErrorCode::of(number)), (number, Some(code)));
        }
        assert_eq!((ErrorCode::of(14), ErrorCode::EnhanceYourCalm.name()), (None, "ENHANCE_YOUR_CALM"));
        assert_eq!((kind_name(9), kind_name(10)), (Some("CONTINUATION"), None));
        assert_eq!((setting_name(0), setting_name(4), setting_name(7)), (None, Some("initial_window_size"), None));
    }
}
