//! Unidirectional streams: their types ([`StreamKind`]), and those of QPACK ([`QpackReader`]).
//!
//! Source: RFC 9114 §6.2, RFC 9204 §4.2.

use crate::code::Code;

/// Type of a stream that the client has opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamKind {
    /// The client's control stream.
    Control,
    /// Instructions for its table of fields (QPACK encoder stream).
    Encoder,
    /// Acknowledgements for ours (QPACK decoder stream).
    Decoder,
    /// An unknown type: it is not read.
    Unknown,
}

impl StreamKind {
    /// The type of a stream that begins with this number.
    ///
    /// # Errors
    /// A client must not push.
    pub fn of(number: u64) -> Result<StreamKind, Code> {
        match number {
            0x0 => Ok(StreamKind::Control),
            0x1 => Err(Code::StreamCreationError),
            0x2 => Ok(StreamKind::Encoder),
            0x3 => Ok(StreamKind::Decoder),
            _ => Ok(StreamKind::Unknown),
        }
    }
}

/// Reads a stream of QPACK. Since no table has room, only two instructions are valid: a capacity of
/// 0, and the cancellation of a stream.
#[derive(Debug)]
pub struct QpackReader {
    is_encoder: bool,
    /// Inside the number of a cancelled stream.
    is_within: bool,
}

impl QpackReader {
    /// A reader for the client's encoder, or for its decoder.
    #[must_use]
    pub fn new(is_encoder: bool) -> QpackReader {
        QpackReader { is_encoder, is_within: false }
    }

    /// Takes received bytes.
    ///
    /// # Errors
    /// The error to close the connection with.
    pub fn take(&mut self, input: &[u8]) -> Result<(), Code> {
        for byte in input {
            match (self.is_encoder, self.is_within) {
                (true, _) if *byte == 0x20 => {}
                (true, _) => return Err(Code::EncoderStreamError),
                (false, true) => self.is_within = byte & 0x80 != 0,
                (false, false) if byte & 0xc0 == 0x40 => self.is_within = byte & 0x3f == 0x3f,
                (false, false) => return Err(Code::DecoderStreamError),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_open_everything_but_a_push_stream() {
        assert_eq!(StreamKind::of(1), Err(Code::StreamCreationError));
        assert_eq!(StreamKind::of(0), Ok(StreamKind::Control));
        assert_eq!(StreamKind::of(0x21), Ok(StreamKind::Unknown));
    }

    #[test]
    fn no_table_is_filled_and_no_block_acknowledged() {
        assert_eq!(QpackReader::new(true).take(&[0x20, 0x20]), Ok(()));
        for insert in [0x21, 0x3f, 0x40, 0x80, 0x00] {
            assert_eq!(QpackReader::new(true).take(&[insert]), Err(Code::EncoderStreamError), "{insert}");
        }
        assert_eq!(QpackReader::new(false).take(&[0x41, 0x7f, 0x80, 0x01, 0x44]), Ok(()));
        for other in [0x80, 0x01, 0x00] {
            assert_eq!(QpackReader::new(false).take(&[other]), Err(Code::DecoderStreamError), "{other}");
        }
    }
}
