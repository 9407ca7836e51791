//! When the open streams of a connection began.

use std::collections::VecDeque;
use std::time::Duration;
use surface::limits::H2_WATCHED_STREAMS_MAX;

/// Open streams, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    open: VecDeque<(u32, Duration)>,
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
        self.open.push_back((stream, now));
        true
    }

    /// Forgets a stream; when it began, if it was open.
    pub(crate) fn end(&mut self, stream: u32) -> Option<Duration> {
        let index = self.open.binary_search_by_key(&stream, |(number, _)| *number).ok()?;
        self.open.remove(index).map(|(_, began)| began)
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
        assert_eq!((streams.end(5), streams.end(5), streams.end(3)), (Some(at(2)), None, None));
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
