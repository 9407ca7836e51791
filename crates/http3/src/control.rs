//! The client's control stream: [`ControlReader`], and the beginning of ours.
//!
//! *Invariant:* the first frame is SETTINGS, and there is only one. Source: RFC 9114 §6.2.1, §7.2.

use crate::code::Code;
use crate::frames::{Frame, FrameFault, FrameReader, Place, write_settings};
use crate::varint;
use bytes::Bytes;
use surface::limits::PRIORITIES_WAITING_MAX;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
/// Settings of HTTP/2 that must not be sent.
const OF_HTTP2: [u64; 4] = [0x2, 0x3, 0x4, 0x5];
/// The type of a control stream.
const CONTROL_STREAM: u64 = 0x0;

/// Reads the client's control stream.
#[derive(Debug)]
pub struct ControlReader {
    frames: FrameReader,
    has_settings: bool,
    /// The push id of the latest GOAWAY.
    goaway: Option<u64>,
    push_id_max: Option<u64>,
    /// Received priority updates of requests, the latest last.
    priorities: Vec<(u64, Bytes)>,
}

impl Default for ControlReader {
    fn default() -> ControlReader {
        let frames = FrameReader::new(Place::Control, 0);
        ControlReader { frames, has_settings: false, goaway: None, push_id_max: None, priorities: Vec::new() }
    }
}

impl ControlReader {
    /// Takes received bytes. Returns true if the client announced its end (GOAWAY).
    ///
    /// # Errors
    /// The error to close the connection with.
    pub fn take(&mut self, mut input: Bytes) -> Result<bool, Code> {
        loop {
            let frame = match self.frames.next(&mut input) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                // The bytes after an unknown first frame do not matter, in the same piece or in a
                // later one.
                Err(_) if self.lacks_settings() => return Err(Code::MissingSettings),
                Err(FrameFault::Broken(code)) => return Err(if self.has_settings { code } else { first(code) }),
                Err(FrameFault::TooLong) => return Err(Code::ExcessiveLoad),
            };
            match frame {
                Frame::Settings(_) if self.has_settings => return Err(Code::FrameUnexpected),
                Frame::Settings(_) if self.lacks_settings() => return Err(Code::MissingSettings),
                Frame::Settings(payload) => {
                    check_settings(&payload)?;
                    self.has_settings = true;
                }
                _ if !self.has_settings => return Err(Code::MissingSettings),
                Frame::Goaway(id) if self.goaway.is_some_and(|before| id > before) => return Err(Code::IdError),
                Frame::Goaway(id) => self.goaway = Some(id),
                Frame::MaxPushId(id) if self.push_id_max.is_some_and(|before| id < before) => {
                    return Err(Code::IdError);
                }
                Frame::MaxPushId(id) => self.push_id_max = Some(id),
                // No push was ever promised.
                Frame::CancelPush(_) => return Err(Code::IdError),
                Frame::PriorityUpdate(stream, _) if !stream.is_multiple_of(4) => return Err(Code::IdError),
                Frame::PriorityUpdate(stream, value) => self.keep_priority(stream, value),
                Frame::Data(_) | Frame::Headers(_) => return Err(Code::FrameUnexpected),
            }
        }
        if self.lacks_settings() {
            return Err(Code::MissingSettings);
        }
        Ok(self.goaway.is_some())
    }

    /// True if the first frame was an unknown one.
    fn lacks_settings(&self) -> bool {
        !self.has_settings && self.frames.idle_frames() > 0
    }

    fn keep_priority(&mut self, stream: u64, value: Bytes) {
        self.priorities.retain(|(other, _)| *other != stream);
        if self.priorities.len() >= PRIORITIES_WAITING_MAX {
            self.priorities.remove(0);
        }
        self.priorities.push((stream, value));
    }

    /// Takes the priority updates since the last call: their streams, and values of `priority`
    /// fields.
    pub fn take_priorities(&mut self) -> Vec<(u64, Bytes)> {
        std::mem::take(&mut self.priorities)
    }

    /// Number of idle frames.
    #[must_use]
    pub fn idle_frames(&self) -> u64 {
        self.frames.idle_frames()
    }
}

/// The error for a first frame that is not SETTINGS.
fn first(code: Code) -> Code {
    if matches!(code, Code::FrameUnexpected | Code::IdError) { Code::MissingSettings } else { code }
}

/// None of the settings affects our output: without a dynamic table of ours there is nothing to
/// set, and a limit for the size of heads is advisory.
fn check_settings(mut payload: &[u8]) -> Result<(), Code> {
    let mut seen: Vec<u64> = Vec::new();
    while !payload.is_empty() {
        let (id, used) = varint::read(payload).ok_or(Code::FrameError)?;
        let (_, more) = varint::read(&payload[used..]).ok_or(Code::FrameError)?;
        payload = &payload[used + more..];
        if OF_HTTP2.contains(&id) || seen.contains(&id) {
            return Err(Code::SettingsError);
        }
        seen.push(id);
    }
    Ok(())
}

/// Beginning of our control stream: its type, and SETTINGS. Heads may have
/// `field_section_bytes_max` bytes, as RFC 9114 §4.2.2 counts them.
#[must_use]
pub fn beginning(field_section_bytes_max: u64) -> Vec<u8> {
    let mut settings = Vec::new();
    let all =
        [(QPACK_MAX_TABLE_CAPACITY, 0), (MAX_FIELD_SECTION_SIZE, field_section_bytes_max), (QPACK_BLOCKED_STREAMS, 0)];
    for (id, value) in all {
        varint::write(id, &mut settings);
        varint::write(value, &mut settings);
    }
    let mut stream = Vec::new();
    varint::write(CONTROL_STREAM, &mut stream);
    write_settings(&settings, &mut stream);
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(bytes: &[u8]) -> Result<bool, Code> {
        ControlReader::default().take(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn settings_come_first_and_once() {
        assert_eq!(take(&[4, 0]), Ok(false));
        assert_eq!(take(&[4, 2, 6, 9, 0x21, 1, 0]), Ok(false));
        assert_eq!(take(&[4, 0, 4, 0]), Err(Code::FrameUnexpected));
        for other in [&[7u8, 1, 0][..], &[0x21, 0], &[0x21, 0, 4, 0], &[0, 0], &[1, 0]] {
            assert_eq!(take(other), Err(Code::MissingSettings), "{other:?}");
        }
        assert_eq!(take(&[4, 0, 0, 0]), Err(Code::FrameUnexpected));
    }

    #[test]
    fn settings_that_contradict_the_protocol_end_the_connection() {
        for settings in [&[2u8, 0][..], &[3, 0], &[4, 0], &[5, 0], &[6, 1, 6, 1]] {
            let frame = [&[4, settings.len() as u8], settings].concat();
            assert_eq!(take(&frame), Err(Code::SettingsError), "{settings:?}");
        }
        assert_eq!(take(&[4, 1, 6]), Err(Code::FrameError));
    }

    #[test]
    fn ids_go_one_way_only() {
        assert_eq!(take(&[4, 0, 7, 1, 8, 7, 1, 4]), Ok(true));
        assert_eq!(take(&[4, 0, 7, 1, 4, 7, 1, 8]), Err(Code::IdError));
        assert_eq!(take(&[4, 0, 0xd, 1, 4, 0xd, 1, 8]), Ok(false));
        assert_eq!(take(&[4, 0, 0xd, 1, 8, 0xd, 1, 4]), Err(Code::IdError));
        assert_eq!(take(&[4, 0, 3, 1, 0]), Err(Code::IdError));
    }

    #[test]
    fn priorities_of_requests_are_kept_and_the_latest_counts() {
        let update =
            |stream: u8, value: &[u8]| [&[0x80, 0x0f, 0x07, 0x00, 1 + value.len() as u8, stream], value].concat();
        let mut reader = ControlReader::default();
        let said = [vec![4, 0], update(4, b"u=1"), update(8, b"u=2"), update(4, b"u=5, i")].concat();
        assert_eq!(reader.take(said.into()), Ok(false));
        assert_eq!(reader.take_priorities(), [(8, Bytes::from("u=2")), (4, Bytes::from("u=5, i"))]);
        assert_eq!((reader.take_priorities(), reader.idle_frames()), (Vec::new(), 3));
        let others = (0..2 * PRIORITIES_WAITING_MAX as u64).flat_map(|_| update(0, b"u=0")).collect::<Vec<u8>>();
        assert_eq!(reader.take(others.into()), Ok(false));
        assert_eq!(reader.take_priorities().len(), 1);
        assert_eq!(take(&[&[4, 0][..], &update(2, b"u=0")].concat()), Err(Code::IdError), "no request");
        assert_eq!(take(&[4, 0, 0x80, 0x0f, 0x07, 0x00, 0]), Err(Code::FrameError), "of nothing");
        assert_eq!(take(&update(0, b"u=0")), Err(Code::MissingSettings));
        let of_a_push = [0x80, 0x0f, 0x07, 0x01, 1, 0];
        assert_eq!(take(&of_a_push), Err(Code::MissingSettings));
        assert_eq!(take(&[&[4, 0][..], &of_a_push].concat()), Err(Code::IdError));
        let long = [&[4, 0, 0x80, 0x0f, 0x07, 0x00, 0x40, 200, 0][..], &[b' '; 199]].concat();
        let mut reader = ControlReader::default();
        assert_eq!((reader.take(long.into()), reader.take_priorities()), (Ok(false), Vec::new()));
    }

    #[test]
    fn our_own_beginning_is_understood() {
        let said = beginning(33_000);
        assert_eq!(said[0], 0);
        assert_eq!(take(&said[1..]), Ok(false));
    }
}
