//! Error codes of HTTP/3 connections and streams: [`Code`].

use std::fmt;

macro_rules! codes {
    ($($name:ident = $number:literal, $word:literal;)*) => {
        /// An error code. Source: RFC 9114 §8.1, RFC 9204 §6.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u64)]
        pub enum Code {
            $(#[doc = $word] $name = $number,)*
        }

        impl fmt::Display for Code {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Code::$name => $word,)*
                })
            }
        }
    };
}

codes! {
    NoError = 0x100, "H3_NO_ERROR";
    InternalError = 0x102, "H3_INTERNAL_ERROR";
    StreamCreationError = 0x103, "H3_STREAM_CREATION_ERROR";
    ClosedCriticalStream = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    FrameUnexpected = 0x105, "H3_FRAME_UNEXPECTED";
    FrameError = 0x106, "H3_FRAME_ERROR";
    ExcessiveLoad = 0x107, "H3_EXCESSIVE_LOAD";
    IdError = 0x108, "H3_ID_ERROR";
    SettingsError = 0x109, "H3_SETTINGS_ERROR";
    MissingSettings = 0x10a, "H3_MISSING_SETTINGS";
    RequestRejected = 0x10b, "H3_REQUEST_REJECTED";
    RequestCancelled = 0x10c, "H3_REQUEST_CANCELLED";
    RequestIncomplete = 0x10d, "H3_REQUEST_INCOMPLETE";
    MessageError = 0x10e, "H3_MESSAGE_ERROR";
    DecompressionFailed = 0x200, "QPACK_DECOMPRESSION_FAILED";
    EncoderStreamError = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    DecoderStreamError = 0x202, "QPACK_DECODER_STREAM_ERROR";
}

impl Code {
    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u64 {
        self as u64
    }
}
