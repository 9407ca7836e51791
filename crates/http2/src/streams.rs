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
}

/// Open streams, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    open: VecDeque<OpenStream>,
    highest: u32,
}

impl OpenStreams {
    /// A client's HEADERS came; true if they open a stream.
    pub(crate) fn begin(&mut self, stream: u32, now: Duration) -> bool {
        if stream <= self.highest || stream.is_multiple_of(2) {
            return false;
        }
        self.highest = stream;
        if self.open.len() >= H2_WATCHED_STREAMS_MAX {
            self.open.pop_front();
        }
        self.open.push_back(OpenStream { number: stream, began: now, is_taken: false });
        true
    }

    /// The request on a stream was handed over.
    pub(crate) fn take(&mut self, stream: u32) {
        if let Some(index) = self.find(stream) {
            self.open[index].is_taken = true;
        }
    }

    /// Forgets a stream; what was known of it, if it was open.
    pub(crate) fn end(&mut self, stream: u32) -> Option<OpenStream> {
        self.find(stream).and_then(|index| self.open.remove(index))
    }

    fn find(&self, stream: u32) -> Option<usize> {
        self.open.binary_search_by_key(&stream, |open| open.number).ok()
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
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
        assert_eq!(streams.end(5), Some(OpenStream { number: 5, began: at(2), is_taken: true }));
        assert_eq!((streams.end(5), streams.end(3)), (None, None));
        assert!(!streams.begin(5, at(5)), "an old number opens nothing");
        assert_eq!(streams.len(), 2);
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
