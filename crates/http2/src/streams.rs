//! When the open streams of a connection began.

use std::collections::VecDeque;
use std::time::Duration;
use surface::limits::H2_WATCHED_STREAMS_MAX;

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenStream {
    number: u32,
    /// Since the connection began.
    pub(crate) began: Duration,
    /// Its request was handed to whoever answers it.
    pub(crate) is_taken: bool,
    /// What the library keeps of its head until it is taken, in bytes.
    head_bytes: usize,
    /// What it keeps of its trailers until the work is over.
    trailer_bytes: usize,
    /// The client has reset it; only what is held is still there.
    is_over: bool,
}

impl OpenStream {
    fn held_bytes(&self) -> usize {
        self.head_bytes + self.trailer_bytes
    }
}

/// Open streams, in the order of their numbers, and those that are over and of which the library still holds something.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    open: VecDeque<OpenStream>,
    highest: u32,
    held_bytes: usize,
}

impl OpenStreams {
    /// A client's HEADERS came; true if they open a stream.
    pub(crate) fn begin(&mut self, stream: u32, now: Duration) -> bool {
        if stream <= self.highest || stream.is_multiple_of(2) {
            return false;
        }
        self.highest = stream;
        if self.open.len() >= H2_WATCHED_STREAMS_MAX {
            self.remove(0);
        }
        self.open.push_back(OpenStream {
            number: stream,
            began: now,
            is_taken: false,
            head_bytes: 0,
            trailer_bytes: 0,
            is_over: false,
        });
        true
    }

    /// The head of that stream, or trailers, have come whole: the library holds so many bytes of them.
    pub(crate) fn hold(&mut self, stream: u32, bytes: usize) {
        let Some(index) = self.find(stream) else { return };
        let open = &mut self.open[index];
        if open.is_taken || open.head_bytes > 0 {
            open.trailer_bytes += bytes;
        } else {
            open.head_bytes = bytes;
        }
        self.held_bytes += bytes;
    }

    /// The request on a stream was handed over, with its head.
    pub(crate) fn take(&mut self, stream: u32) {
        let Some(index) = self.find(stream) else { return };
        let open = &mut self.open[index];
        self.held_bytes -= std::mem::take(&mut open.head_bytes);
        open.is_taken = true;
        if open.is_over && open.trailer_bytes == 0 {
            self.open.remove(index);
        }
    }

    /// The client has reset a stream. Returns what was known of it, if it was open. Its heads stay until it is taken, or forgotten.
    pub(crate) fn reset(&mut self, stream: u32) -> Option<OpenStream> {
        let index = self.find(stream)?;
        let open = self.open[index];
        if open.is_over {
            return None;
        }
        if open.held_bytes() == 0 {
            self.remove(index);
        } else {
            self.open[index].is_over = true;
        }
        Some(open)
    }

    /// We have ended or reset a stream. Returns what was known of it, if it was open.
    pub(crate) fn end(&mut self, stream: u32) -> Option<OpenStream> {
        let index = self.find(stream)?;
        let open = self.open[index];
        if open.is_taken && open.held_bytes() > 0 {
            self.open[index].is_over = true;
        } else {
            self.remove(index);
        }
        (!open.is_over).then_some(open)
    }

    /// The work on a stream is over: nothing of it is held.
    pub(crate) fn forget(&mut self, stream: u32) {
        let Some(index) = self.find(stream) else { return };
        if self.open[index].is_over {
            self.remove(index);
        } else {
            self.held_bytes -= std::mem::take(&mut self.open[index].trailer_bytes);
        }
    }

    fn remove(&mut self, index: usize) {
        if let Some(gone) = self.open.remove(index) {
            self.held_bytes -= gone.held_bytes();
        }
    }

    fn find(&self, stream: u32) -> Option<usize> {
        self.open.binary_search_by_key(&stream, |open| open.number).ok()
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// What the library holds of heads that nobody has taken, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_remembered_until_they_end_and_open_once() {
        let mut streams = OpenStreams::default();
        let at = Duration::from_secs;
        assert!(streams.begin(1, at(1)) && streams.begin(5, at(2)) && streams.begin(7, at(3)));
        assert!(!streams.begin(3, at(4)) && !streams.begin(7, at(4)) && !streams.begin(8, at(4)));
        streams.take(5);
        let known =
            OpenStream { number: 5, began: at(2), is_taken: true, head_bytes: 0, trailer_bytes: 0, is_over: false };
        assert_eq!(streams.end(5), Some(known));
        assert_eq!((streams.end(5), streams.end(3)), (None, None));
        assert!(!streams.begin(5, at(5)), "an old number opens nothing");
        assert_eq!(streams.len(), 2);
    }

    #[test]
    fn what_is_held_is_counted_until_it_is_taken_or_the_work_is_over() {
        let mut streams = OpenStreams::default();
        for stream in [1, 3, 5, 7, 9] {
            assert!(streams.begin(stream, Duration::ZERO));
            streams.hold(stream, 100);
        }
        streams.take(1);
        assert_eq!(streams.held_bytes(), 400);
        streams.hold(1, 50);
        assert!(streams.end(1).is_some(), "its response is complete, its trailers lie there");
        assert_eq!((streams.held_bytes(), streams.end(1)), (450, None));
        streams.forget(1);
        assert_eq!(streams.held_bytes(), 400);
        assert!(streams.reset(3).is_some() && streams.reset(3).is_none());
        assert_eq!(streams.held_bytes(), 400, "the library hands a stream over that was reset");
        streams.take(3);
        assert!(streams.end(5).is_some(), "the library has refused it");
        streams.hold(7, 10);
        streams.take(7);
        assert_eq!(streams.held_bytes(), 110, "trailers that came with their head stay");
        streams.forget(7);
        assert_eq!((streams.held_bytes(), streams.len()), (100, 2));
        for number in 10..2 * H2_WATCHED_STREAMS_MAX as u32 {
            streams.begin(2 * number + 1, Duration::ZERO);
        }
        assert_eq!(streams.held_bytes(), 0, "what is forgotten is not counted for ever");
    }

    #[test]
    fn no_more_are_remembered_than_the_limit() {
        let mut streams = OpenStreams::default();
        for number in 0..2 * H2_WATCHED_STREAMS_MAX as u32 {
            streams.begin(2 * number + 1, Duration::ZERO);
        }
        assert_eq!((streams.len(), streams.end(1)), (H2_WATCHED_STREAMS_MAX, None));
    }
}
