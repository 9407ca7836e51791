//! Windows that are opened as soon as there is a reason: [`Windows`] stands between the library and the client, and sends updates
//! of its own in the place of the library's.
//!
//! The library updates a window when half of it is used. Varnish updates a stream's with every piece of a body that is read, and
//! the connection's, while that grows, with every frame of DATA; scripts for its `varnishtest` wait for that.
//!
//! - A stream: the library believes in a window half as large again as the client is told ([`Windows::library_bytes`]). What
//!   a request has read is told the client at once; when the library tells it too, that is held back. What is told ahead is less
//!   than a third of the library's window, so a client that keeps to its own never exceeds the library's.
//! - The connection: what the library allows is passed on in steps, one for each frame of DATA, until all of it is.
//! - SETTINGS: what is the protocol's default is left out, as Varnish leaves it out. A limit can be kept without being told.
//! - GOAWAY: the last stream and the code are those of Varnish.
//!
//! *Invariants:* the library goes on enforcing both windows, and so the limits on memory: a client that keeps to its window has no more
//! bytes unread than that, one that does not at most half as many more. A client is never allowed more than the library takes. Until
//! the client has acknowledged our SETTINGS the library does not believe in the larger window, and its own updates go out. Source:
//! RFC 9113 §5.2, §6.5.3, §6.9.

use crate::frame::{ErrorCode, FrameHead, HEAD_BYTES, flag, kind};

/// A frame of WINDOW_UPDATE.
const UPDATE_BYTES: usize = HEAD_BYTES + 4;
/// The setting of a stream's window. Source: RFC 9113 §6.5.2.
const INITIAL_WINDOW_SIZE: u16 = 4;
/// The setting of the largest header list.
const MAX_HEADER_LIST_SIZE: u16 = 6;
/// One setting: its identifier and its value.
const SETTING_BYTES: usize = 6;
/// Settings that need not be said, because clients believe this without being told: the size of the header table, of a
/// stream's window and of a frame. Source: RFC 9113 §6.5.2.
const KNOWN: [(u16, u32); 3] = [(1, 4096), (INITIAL_WINDOW_SIZE, 65_535), (5, 16_384)];
/// The largest window of the protocol.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// The connection's first window, and the smallest step: a step is never smaller than what made it necessary.
const STEP_BYTES_MIN: u32 = 65_535;

/// What becomes of bytes that the library wants to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outgoing {
    /// So many may be sent; call [`Windows::sent`] for those that were.
    Pass(usize),
    /// Instead of the first `of` bytes these are sent.
    Instead {
        /// How many bytes of the library's are done with.
        of: usize,
        /// What is sent.
        bytes: Vec<u8>,
    },
    /// So many are not sent.
    HeldBack(usize),
}

/// What a GOAWAY says of what has come from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    /// The last stream that the client has opened, 0 for none.
    pub last_stream: u32,
    /// The last that came was a header block that cannot be decoded.
    pub is_undecodable: bool,
}

#[derive(Clone, Copy, Debug)]
struct StreamWindow {
    id: u32,
    /// Bytes that the client was, or will be, told before the library said so.
    ahead: u32,
    /// Bytes that the client is to be told.
    due: u32,
}

/// The state of a connection.
#[derive(Debug)]
pub struct Windows {
    /// What clients are told that a stream's window is.
    initial_bytes: u32,
    step_bytes: u32,
    tells_list_limit: bool,
    has_begun: bool,
    is_acknowledged: bool,
    streams: Vec<StreamWindow>,
    /// Bytes by which the connection's window grows in steps.
    growth_left: u64,
    heard: Heard,
    /// Bytes that the library has allowed on the connection, and the client was not told.
    held_back: u64,
    steps_due: u32,
    /// Of the frame that is being sent.
    head: Vec<u8>,
    payload_left: usize,
}

impl Windows {
    /// The state at the beginning of a connection. `initial_bytes`: a stream's window; the connection's grows by `growth_bytes`, in
    /// steps of `step_bytes`. `None` if the windows are too large for that.
    #[must_use]
    pub fn new(initial_bytes: u32, growth_bytes: u64, step_bytes: u32) -> Option<Windows> {
        (initial_bytes <= WINDOW_MAX / 2).then(|| Windows {
            initial_bytes,
            step_bytes: step_bytes.max(STEP_BYTES_MIN),
            tells_list_limit: true,
            has_begun: false,
            is_acknowledged: false,
            streams: Vec::new(),
            growth_left: growth_bytes,
            heard: Heard::default(),
            held_back: 0,
            steps_due: 0,
            head: Vec::new(),
            payload_left: 0,
        })
    }

    /// The same, but clients are not told how large a header list may be; the library still refuses larger ones.
    #[must_use]
    pub fn without_list_limit(self) -> Windows {
        Windows { tells_list_limit: false, ..self }
    }

    /// The window of a stream for the library.
    #[must_use]
    pub fn library_bytes(&self) -> u32 {
        self.initial_bytes + self.initial_bytes / 2 + 1
    }

    /// So many frames of DATA have come; `is_acknowledged` says whether our SETTINGS were.
    pub fn received(&mut self, data_frames: u32, is_acknowledged: bool) {
        self.is_acknowledged |= is_acknowledged;
        if self.growth_left > 0 {
            self.steps_due = self.steps_due.saturating_add(data_frames);
        }
    }

    /// A request has read so many bytes of its body, and the library knows.
    pub fn used(&mut self, stream: u32, count: u32) {
        if self.is_acknowledged {
            let window = self.stream(stream);
            window.ahead = window.ahead.saturating_add(count);
            window.due = window.due.saturating_add(count);
        }
    }

    /// What is to be sent now: nothing while a frame of the library's is incomplete. Streams on which nothing more can come, because
    /// the request `has_ended` or the work on it has, need none.
    pub fn take_updates(&mut self, has_ended: impl Fn(u32) -> bool) -> Vec<u8> {
        let mut updates = Vec::new();
        if self.payload_left > 0 || !self.head.is_empty() {
            return updates;
        }
        while self.steps_due > 0 && self.held_back > 0 && self.growth_left > 0 {
            let step = u64::from(self.step_bytes).min(self.held_back).min(self.growth_left);
            self.steps_due -= 1;
            self.growth_left -= step;
            self.held_back -= step;
            push_update(&mut updates, 0, step);
        }
        if self.growth_left == 0 && self.held_back > 0 {
            push_update(&mut updates, 0, std::mem::take(&mut self.held_back));
        }
        self.streams.retain(|window| !has_ended(window.id));
        for window in &mut self.streams {
            let due = std::mem::take(&mut window.due);
            if due > 0 {
                push_update(&mut updates, window.id, u64::from(due));
            }
        }
        updates
    }

    /// What has come from the client, for a GOAWAY that is sent next.
    pub fn hear(&mut self, heard: Heard) {
        self.heard = heard;
    }

    /// What becomes of bytes that the library wants to send. It offers whole frames, or the rest of one.
    pub fn outgoing(&mut self, bytes: &[u8]) -> Outgoing {
        if !self.has_begun {
            self.has_begun = true;
            return self.settings(bytes);
        }
        let mut at = self.frame_left(bytes);
        while let Some(head) = bytes.get(at..).and_then(<[u8]>::first_chunk).map(FrameHead::parse) {
            if head.kind == kind::WINDOW_UPDATE && (head.stream == 0 || self.is_acknowledged) {
                if at > 0 {
                    return Outgoing::Pass(at);
                }
                let Some(increment) = bytes[HEAD_BYTES..].first_chunk().copied().map(u32::from_be_bytes) else { break };
                self.hold_back(head.stream, increment);
                return Outgoing::HeldBack(UPDATE_BYTES);
            }
            let end = at + HEAD_BYTES + head.payload_bytes as usize;
            if head.kind == kind::GOAWAY && bytes.len() >= end {
                if at > 0 {
                    return Outgoing::Pass(at);
                }
                let mut goaway = bytes[..end].to_vec();
                self.correct_goaway(&mut goaway[HEAD_BYTES..]);
                return Outgoing::Instead { of: end, bytes: goaway };
            }
            at = end;
        }
        Outgoing::Pass(bytes.len())
    }

    /// Compat: Varnish names the last stream that was opened, even if its head was never complete, where the library names the last
    /// that it has handed on; and an error of the compression as that, where the library calls it one of the protocol. Source:
    /// RFC 9113 §4.3, §6.8.
    fn correct_goaway(&self, payload: &mut [u8]) {
        const PROTOCOL_ERROR: [u8; 4] = (ErrorCode::ProtocolError as u32).to_be_bytes();
        const COMPRESSION_ERROR: [u8; 4] = (ErrorCode::CompressionError as u32).to_be_bytes();
        if let Some((last_stream, rest)) = payload.split_first_chunk_mut::<4>() {
            let told = u32::from_be_bytes(*last_stream);
            *last_stream = told.max(self.heard.last_stream).to_be_bytes();
            match rest.first_chunk_mut::<4>() {
                Some(code) if self.heard.is_undecodable && *code == PROTOCOL_ERROR => *code = COMPRESSION_ERROR,
                _ => {}
            }
        }
    }

    /// How many of these bytes, or more, belong to the frame that is being sent.
    fn frame_left(&self, bytes: &[u8]) -> usize {
        if self.head.is_empty() {
            return self.payload_left;
        }
        let missing = HEAD_BYTES - self.head.len();
        let whole: Vec<u8> = self.head.iter().chain(bytes).copied().take(HEAD_BYTES).collect();
        whole.first_chunk().map(FrameHead::parse).map_or(missing, |head| missing + head.payload_bytes as usize)
    }

    /// These were sent.
    pub fn sent(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let payload = self.payload_left.min(bytes.len());
            self.payload_left -= payload;
            bytes = &bytes[payload..];
            let missing = (HEAD_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if let Some(head) = self.head.first_chunk().map(FrameHead::parse) {
                self.payload_left = head.payload_bytes as usize;
                self.head.clear();
            }
        }
    }

    /// Our SETTINGS, which come first, tell the client its own window, and nothing that it takes for granted. The library sends the
    /// replaced frame as its own: the client acknowledges one frame, whatever is in it.
    fn settings(&mut self, bytes: &[u8]) -> Outgoing {
        let Some(head) = bytes.first_chunk().map(FrameHead::parse) else { return Outgoing::Pass(bytes.len()) };
        let end = HEAD_BYTES + head.payload_bytes as usize;
        if head.kind != kind::SETTINGS || head.has(flag::ACK) || bytes.len() < end {
            return Outgoing::Pass(bytes.len());
        }
        let mut settings = Vec::with_capacity(end);
        settings.extend_from_slice(&bytes[..HEAD_BYTES]);
        for setting in bytes[HEAD_BYTES..end].as_chunks::<SETTING_BYTES>().0 {
            let [name_high, name_low, value @ ..] = *setting;
            let name = u16::from_be_bytes([name_high, name_low]);
            let value = match name {
                INITIAL_WINDOW_SIZE => self.initial_bytes,
                _ => u32::from_be_bytes(value),
            };
            if KNOWN.contains(&(name, value)) || (name == MAX_HEADER_LIST_SIZE && !self.tells_list_limit) {
                continue;
            }
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        let payload_bytes = u32::try_from(settings.len() - HEAD_BYTES).unwrap_or(u32::MAX);
        settings[..HEAD_BYTES].copy_from_slice(&FrameHead { payload_bytes, ..head }.to_bytes());
        Outgoing::Instead { of: end, bytes: settings }
    }

    /// The library opens a window.
    fn hold_back(&mut self, stream: u32, increment: u32) {
        if stream == 0 {
            self.held_back += u64::from(increment);
            return;
        }
        let window = self.stream(stream);
        let untold = increment.saturating_sub(window.ahead);
        window.ahead = window.ahead.saturating_sub(increment);
        // Padding, which no request reads.
        window.due = window.due.saturating_add(untold);
    }

    fn stream(&mut self, id: u32) -> &mut StreamWindow {
        let place = self.streams.iter().position(|window| window.id == id).unwrap_or_else(|| {
            self.streams.push(StreamWindow { id, ahead: 0, due: 0 });
            self.streams.len() - 1
        });
        &mut self.streams[place]
    }
}

/// Appends WINDOW_UPDATE.
fn push_update(out: &mut Vec<u8>, stream: u32, increment: u64) {
    let increment = u32::try_from(increment).unwrap_or(WINDOW_MAX).min(WINDOW_MAX);
    let head = FrameHead { payload_bytes: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream };
    out.extend_from_slice(&head.to_bytes());
    out.extend_from_slice(&increment.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(stream: u32, increment: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_update(&mut bytes, stream, increment);
        bytes
    }

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
        [&head.to_bytes()[..], payload].concat()
    }

    /// After SETTINGS of both sides.
    fn begun(growth_bytes: u64) -> Windows {
        let mut windows = Windows::new(65_535, growth_bytes, 1 << 20).unwrap();
        let settings = frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0x7f, 0xff]);
        let told = frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]);
        assert_eq!(windows.outgoing(&settings), Outgoing::Instead { of: settings.len(), bytes: told.clone() });
        windows.sent(&told);
        windows.received(0, true);
        windows
    }

    #[test]
    fn what_is_read_is_told_at_once_and_not_twice() {
        let mut windows = begun(0);
        windows.used(1, 100);
        windows.used(1, 50);
        windows.used(3, 7);
        assert_eq!(windows.take_updates(|_| false), [update(1, 150), update(3, 7)].concat());
        windows.used(1, 10);
        assert_eq!(windows.outgoing(&update(1, 160)), Outgoing::HeldBack(UPDATE_BYTES));
        assert_eq!(windows.take_updates(|_| false), update(1, 10));
        // Padding is told when the library tells it.
        windows.used(1, 30);
        assert_eq!(windows.outgoing(&update(1, 35)), Outgoing::HeldBack(UPDATE_BYTES));
        assert_eq!(windows.take_updates(|_| false), update(1, 35));
        windows.used(3, 9);
        assert_eq!(windows.take_updates(|stream| stream == 3), b"");
        windows.take_updates(|_| true);
        assert!(windows.streams.is_empty());
    }

    #[test]
    fn clients_are_told_only_the_settings_that_differ_from_the_protocols() {
        let settings = |entries: &[(u16, u32)]| {
            let payload: Vec<u8> = entries
                .iter()
                .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
                .collect();
            frame(kind::SETTINGS, 0, 0, &payload)
        };
        let library = settings(&[(1, 4096), (3, 100), (4, 98_303), (5, 16_384), (6, 70_000), (8, 1)]);
        let told = |windows: Windows| match { windows }.outgoing(&library) {
            Outgoing::Instead { of, bytes } if of == library.len() => bytes,
            other => panic!("{other:?}"),
        };
        let windows = |initial| Windows::new(initial, 0, 1).unwrap();
        assert_eq!(told(windows(65_535)), settings(&[(3, 100), (6, 70_000), (8, 1)]));
        assert_eq!(told(windows(65_535).without_list_limit()), settings(&[(3, 100), (8, 1)]));
        assert_eq!(told(windows(70_000).without_list_limit()), settings(&[(3, 100), (4, 70_000), (8, 1)]));
        let library = settings(&[(1, 8192), (5, 32_768)]);
        let told = Outgoing::Instead { of: library.len(), bytes: library.clone() };
        assert_eq!(windows(65_535).outgoing(&library), told);
    }

    #[test]
    fn goaway_names_the_last_stream_and_an_error_of_the_compression() {
        let goaway = |last_stream: u32, code: ErrorCode| {
            frame(kind::GOAWAY, 0, 0, &[last_stream.to_be_bytes(), (code as u32).to_be_bytes()].concat())
        };
        let mut windows = begun(0);
        let library = goaway(1, ErrorCode::ProtocolError);
        let told = |bytes| Outgoing::Instead { of: library.len(), bytes };
        assert_eq!(windows.outgoing(&library), told(library.clone()));
        windows.hear(Heard { last_stream: 5, is_undecodable: false });
        assert_eq!(windows.outgoing(&library), told(goaway(5, ErrorCode::ProtocolError)));
        windows.hear(Heard { last_stream: 5, is_undecodable: true });
        assert_eq!(windows.outgoing(&library), told(goaway(5, ErrorCode::CompressionError)));
        assert_eq!(windows.outgoing(&goaway(7, ErrorCode::NoError)), told(goaway(7, ErrorCode::NoError)));
    }

    #[test]
    fn until_settings_are_acknowledged_the_library_opens_the_windows_of_streams() {
        let mut windows = Windows::new(65_535, 0, 1).unwrap();
        windows.outgoing(&frame(kind::SETTINGS, 0, 0, b""));
        windows.used(1, 100);
        assert_eq!(windows.take_updates(|_| false), b"");
        assert_eq!(windows.outgoing(&update(1, 40_000)), Outgoing::Pass(UPDATE_BYTES));
        windows.received(0, true);
        assert_eq!(windows.outgoing(&update(1, 40_000)), Outgoing::HeldBack(UPDATE_BYTES));
        assert_eq!(windows.take_updates(|_| false), update(1, 40_000));
    }

    #[test]
    fn the_connections_window_grows_with_frames_of_data() {
        let mut windows = begun(5 << 19);
        windows.received(2, false);
        assert_eq!(windows.take_updates(|_| false), b"", "the library has allowed nothing");
        assert_eq!(windows.outgoing(&update(0, 5 << 19)), Outgoing::HeldBack(UPDATE_BYTES));
        assert_eq!(windows.take_updates(|_| false), update(0, 1 << 20).repeat(2));
        assert_eq!(windows.take_updates(|_| false), b"");
        windows.received(1, false);
        assert_eq!(windows.take_updates(|_| false), update(0, 1 << 19));
        // It has grown up.
        assert_eq!(windows.outgoing(&update(0, 77)), Outgoing::HeldBack(UPDATE_BYTES));
        assert_eq!(windows.take_updates(|_| false), update(0, 77));
    }

    #[test]
    fn updates_go_between_frames_only() {
        let mut windows = begun(0);
        windows.used(1, 5);
        let headers = frame(kind::HEADERS, flag::END_HEADERS, 1, b"abc");
        let both = [&headers[..], &update(0, 9)].concat();
        assert_eq!(windows.outgoing(&both), Outgoing::Pass(headers.len()));
        for cut in 1..headers.len() {
            windows.sent(&headers[..cut]);
            assert_eq!(windows.take_updates(|_| false), b"", "within a frame, at {cut}");
            assert_eq!(windows.outgoing(&both[cut..]), Outgoing::Pass(headers.len() - cut));
            windows.sent(&headers[cut..]);
        }
        assert_eq!(windows.outgoing(&both[headers.len()..]), Outgoing::HeldBack(UPDATE_BYTES));
        assert_eq!(windows.take_updates(|_| false), [update(0, 9), update(1, 5)].concat());
    }

    #[test]
    fn a_client_that_keeps_to_its_window_never_exceeds_the_librarys() {
        // The library updates when what it has not told is half of what it believes the client may send.
        let mut windows = begun(0);
        let (mut library, mut client) = (i64::from(windows.library_bytes()), 65_535_i64);
        let (mut unread, mut untold) = (0, 0);
        for turn in 0..10_000_i64 {
            let sent = client.min(1 + turn * 7919 % 70_000);
            client -= sent;
            library -= sent;
            unread += sent;
            assert!(library >= 0, "in turn {turn}");
            let read = unread.min(turn * 104_729 % 50_000);
            unread -= read;
            untold += read;
            windows.used(1, read as u32);
            if untold > 0 && untold >= library / 2 {
                library += untold;
                assert_eq!(windows.outgoing(&update(1, untold as u64)), Outgoing::HeldBack(UPDATE_BYTES));
                untold = 0;
            }
            for told in windows.take_updates(|_| false).chunks(UPDATE_BYTES) {
                client += i64::from(u32::from_be_bytes(*told[HEAD_BYTES..].first_chunk().unwrap()));
            }
            assert!(client + unread == 65_535);
        }
    }
}
