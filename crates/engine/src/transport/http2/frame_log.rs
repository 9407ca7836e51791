//! The records of frames: H2RxHdr, H2RxBody, H2TxHdr, H2TxBody and the Debug records of 7.1 about
//! frames. All are masked by default, and then no frame is examined.
//!
//! Compat: records of Varnish 7.1.1 with all of these tags unmasked.

use http2::frame::{ErrorCode, FrameHead, flag, kind, kind_name, setting_name};
use http2::{Found, FrameReader, Observer};
use shm::log::{LogId, LogRing};
use std::fmt;
use surface::limits::H2_LOGGED_FRAME_BYTES_MAX;
use surface::tag::Tag;

/// The records of one session.
pub(super) struct FrameLog<'a> {
    ring: &'a LogRing,
    id: LogId,
}

const TAGS: [Tag; 5] = [Tag::H2RxHdr, Tag::H2RxBody, Tag::H2TxHdr, Tag::H2TxBody, Tag::Debug];

impl<'a> FrameLog<'a> {
    /// `None` if all of it is masked.
    pub(super) fn open(ring: &'a LogRing, id: LogId) -> Option<FrameLog<'a>> {
        TAGS.iter().any(|tag| !ring.is_masked(*tag)).then_some(FrameLog { ring, id })
    }

    fn debug(&self, arguments: fmt::Arguments<'_>) {
        self.ring.write_fmt(Tag::Debug, self.id, arguments);
    }

    /// Logs whole frames that are sent to the client.
    pub(super) fn sent(&mut self, mut frames: &[u8]) {
        let mut reader = FrameReader::default();
        while let Some(found) = reader.next(&mut frames) {
            match found {
                Found::Head(_) => reader.keep(H2_LOGGED_FRAME_BYTES_MAX),
                Found::End(head, payload) => {
                    self.ring.write(Tag::H2TxHdr, self.id, &head.to_bytes());
                    if !payload.is_empty() {
                        self.ring.write(Tag::H2TxBody, self.id, payload);
                    }
                }
                // Not requested.
                Found::Piece(..) => {}
            }
        }
    }

    fn settings(&self, payload: &[u8]) {
        for setting in payload.chunks_exact(6) {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            let identifier = u16::from_be_bytes([setting[0], setting[1]]);
            match setting_name(identifier) {
                Some(name) => self.debug(format_args!("H2SETTING {name}=0x{value:08x}")),
                None => {
                    self.debug(format_args!("H2SETTING unknown setting 0x{identifier:04x}=0x{value:08x} (ignored)"))
                }
            }
        }
    }
}

impl Observer for FrameLog<'_> {
    fn wanted_bytes(&self) -> usize {
        H2_LOGGED_FRAME_BYTES_MAX
    }

    fn received(&mut self, head: FrameHead, payload: &[u8]) {
        self.ring.write(Tag::H2RxHdr, self.id, &head.to_bytes());
        if !payload.is_empty() {
            self.ring.write(Tag::H2RxBody, self.id, payload);
        }
        if self.ring.is_masked(Tag::Debug) {
            return;
        }
        self.debug(format_args!("H2RXF {}", Described(head, payload)));
        match head.kind {
            kind::SETTINGS if !head.has(flag::ACK) => self.settings(payload),
            kind::GOAWAY => {
                let code = payload.get(4..8).map_or(0, |code| u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
                let name = ErrorCode::of(code).map_or("Unknown connection error", ErrorCode::name);
                self.debug(format_args!("GOAWAY {name}"));
            }
            _ => {}
        }
    }
}

/// `HEADERS[39] 0x25 0x0000000d 0x0000000b…`.
struct Described<'a>(FrameHead, &'a [u8]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described(head, payload) = self;
        match kind_name(head.kind) {
            Some(name) => out.write_str(name)?,
            None => write!(out, "0x{:02x}", head.kind)?,
        }
        write!(out, "[{}] 0x{:02x} {}", head.payload_bytes, head.flags, Hex(&head.stream.to_be_bytes()))?;
        if !payload.is_empty() {
            write!(out, " {}", Hex(payload))?;
        }
        Ok(())
    }
}

/// Bytes in hexadecimal; more than four zeroes are abridged, as 7.1 does.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("0x")?;
        if self.0.len() > 4 && self.0.iter().all(|byte| *byte == 0) {
            return out.write_str("0...0");
        }
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_described_as_varnish_does() {
        let of = |payload_bytes, kind, flags, stream, payload: &[u8]| {
            Described(FrameHead { payload_bytes, kind, flags, stream }, payload).to_string()
        };
        assert_eq!(of(0, kind::SETTINGS, 1, 0, &[]), "SETTINGS[0] 0x01 0x00000000");
        assert_eq!(of(5, kind::PRIORITY, 0, 7, &[0; 5]), "PRIORITY[5] 0x00 0x00000007 0x0...0");
        assert_eq!(of(4, kind::WINDOW_UPDATE, 0, 7, &[0; 4]), "WINDOW_UPDATE[4] 0x00 0x00000007 0x00000000");
        assert_eq!(of(2, 0xab, 0xff, 1, &[0, 0x1e]), "0xab[2] 0xff 0x00000001 0x001e");
    }
}
