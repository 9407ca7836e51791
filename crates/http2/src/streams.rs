//! Streams of a connection: those whose work is not over ([`Streams`]), and the latest of those
//! that are closed ([`Closed`]).

use crate::head::RequestHead;
use crate::priority::Priority;
use crate::windows::Window;
use bytes::BytesMut;
use field_coding::FieldList;
use std::collections::VecDeque;
use std::time::Duration;
use surface::limits::H2_CLOSED_STREAMS_KEPT;

/// Progress of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outgoing {
    /// The final head was not sent.
    Head,
    /// The body, or its trailers.
    Body,
    /// END_STREAM was written.
    Ended,
}

/// A stream with a request on it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    /// Time of its beginning, from that of the connection.
    pub(crate) began: Duration,
    pub(crate) priority: Priority,
    /// The request, until it is taken.
    pub(crate) head: Option<RequestHead>,
    /// The request has ended.
    pub(crate) has_request_ended: bool,
    /// Bytes of the request's body that were not read.
    pub(crate) body: BytesMut,
    pub(crate) trailers: Option<FieldList>,
    /// Bytes of the body that are still to come, if the head announced its length.
    pub(crate) length_left: Option<u64>,
    /// For the client's bytes.
    pub(crate) window: Window,
    /// Bytes of the body that were received and not used.
    pub(crate) unused_bytes: usize,
    pub(crate) outgoing: Outgoing,
    /// Number of bytes that may be sent.
    pub(crate) send_window: i64,
    /// The response waits for the client's window.
    pub(crate) awaits_window: bool,
    /// One side has reset the stream, or the connection is over.
    pub(crate) is_gone: bool,
}

impl Stream {
    /// True if the stream does not count for the protocol any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_gone || (self.has_request_ended && self.outgoing == Outgoing::Ended)
    }

    /// Bytes held for the head and the trailers.
    pub(crate) fn head_bytes(&self) -> usize {
        self.head.as_ref().map_or(0, RequestHead::memory_bytes)
            + self.trailers.as_ref().map_or(0, FieldList::memory_bytes)
    }
}

/// Streams whose work is not over, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    all: VecDeque<Stream>,
}

impl Streams {
    /// Adds a stream with a number higher than all others.
    pub(crate) fn add(&mut self, stream: Stream) {
        self.all.push_back(stream);
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.all.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Stream> {
        self.place(id).map(|place| &self.all[place])
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.place(id).map(|place| &mut self.all[place])
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        self.place(id).and_then(|place| self.all.remove(place))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.all.iter_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.all.iter()
    }
}

/// The way in which a stream was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closing {
    /// Both sides have ended it, or the client has reset it: nothing more may come.
    Client,
    /// It was reset by this side: the client's frames may be on their way.
    Here,
}

/// The latest closed streams.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    latest: VecDeque<(u32, Closing)>,
}

impl Closed {
    pub(crate) fn add(&mut self, id: u32, closing: Closing) {
        if self.latest.len() >= H2_CLOSED_STREAMS_KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back((id, closing));
    }

    pub(crate) fn get(&self, id: u32) -> Option<Closing> {
        self.latest.iter().rev().find(|(closed, _)| *closed == id).map(|(_, closing)| *closing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_closed_streams_are_remembered() {
        let mut closed = Closed::default();
        let last = H2_CLOSED_STREAMS_KEPT as u32;
        (0..=last).for_each(|id| closed.add(id, Closing::Client));
        closed.add(7, Closing::Here);
        assert_eq!((closed.get(0), closed.get(1)), (None, None));
        assert_eq!((closed.get(last), closed.get(7)), (Some(Closing::Client), Some(Closing::Here)));
        assert_eq!(closed.latest.len(), H2_CLOSED_STREAMS_KEPT);
    }
}
