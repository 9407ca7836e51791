//! An object on its way to a client.

use crate::bodies::disk_tier::{are_there, held_bytes};
use message::Message;
use std::sync::Arc;
use store::{BodyReader, BodyState, Object};

/// First bytes of a body that describe its coding: the header of a Zstandard frame.
const START_BYTES: usize = 18;

/// An object that this request delivers completely. Dropping one whose body is only passed on
/// notifies its fetch that this reader is gone.
#[derive(Debug)]
pub struct Delivered {
    object: Arc<Object>,
    /// For a body that is still being written: keeps the unread part in case the body turns out too
    /// large for the cache. For a body in a file: the bytes read so far.
    reader: Option<Box<BodyReader>>,
    /// The copy in memory that is sent instead, if the body is in a file.
    in_memory: Option<Arc<Object>>,
    /// Ends of a body in a file that filters need before they begin.
    ends: Option<Box<Ends>>,
    /// Fields of the response that only this client may get: they are not in the object.
    unshared: Option<Box<Message>>,
    /// Status of the origin's response to the fetch of this request.
    origin_status: Option<u16>,
}

/// The first and the last bytes of a body.
#[derive(Debug)]
struct Ends {
    start: Vec<u8>,
    tail: Option<[u8; 4]>,
}

impl Delivered {
    /// `None` when the beginning of the body may already be gone; the object has then left the
    /// index, too.
    pub(crate) fn new(object: Arc<Object>) -> Option<Delivered> {
        let needs_none = object.is_passing() || (object.is_whole() && !object.is_on_disk());
        let reader = if needs_none { None } else { Some(Box::new(object.reader()?)) };
        Some(Delivered { object, reader, in_memory: None, ends: None, unshared: None, origin_status: None })
    }

    /// Adds the results that only the client whose request led to the fetch may get: unshared
    /// fields (their status means nothing), and the status of the origin, if it answered.
    pub(crate) fn for_orderer(mut self, unshared: Option<Box<Message>>, origin_status: Option<u16>) -> Delivered {
        self.unshared = unshared;
        self.origin_status = origin_status;
        self
    }

    pub(crate) fn origin_status(&self) -> Option<u16> {
        self.origin_status
    }

    pub(crate) fn unshared(&self) -> Option<&Message> {
        self.unshared.as_deref()
    }

    pub(crate) fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The reader to begin with, if reading does not simply start in the arena. Returned only once.
    pub(crate) fn take_reader(&mut self) -> Option<BodyReader> {
        self.reader.take().map(|reader| *reader)
    }

    /// The most memory that reading the body takes, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        if self.in_memory.is_some() { 0 } else { held_bytes(&self.object) }
    }

    /// Sets a copy in memory of a body that is stored in a file. They differ in nothing else.
    pub(crate) fn promote(&mut self, copy: Arc<Object>) {
        self.in_memory = Some(copy);
    }

    /// The copy in memory, if there is one.
    pub(crate) fn take_promoted(&mut self) -> Option<Delivered> {
        Delivered::new(self.in_memory.take()?)
    }

    /// Waits for the first bytes of a body that is stored in a file. False if they cannot be read.
    pub(crate) async fn wait_for_start(&mut self) -> bool {
        let Some(reader) = self.reader.as_deref_mut().filter(|reader| reader.object().is_on_disk()) else {
            return true;
        };
        are_there(reader, 0).await || !reader.has_failed()
    }

    /// Waits for the ends that decoding filters need of a body in a file, before any of it is sent.
    pub(crate) async fn wait_for_ends(&mut self) {
        let end = self.object.available_bytes();
        let is_complete = self.object.is_on_disk() && self.object.state() == BodyState::Complete;
        let Some(reader) = self.reader.as_deref_mut().filter(|_| is_complete) else { return };
        let mut ends = Ends { start: Vec::new(), tail: None };
        if let Some(begin) = end.checked_sub(4) {
            let mut tail = [0; 4];
            for (index, byte) in (begin..end).zip(&mut tail) {
                if !are_there(reader, index).await {
                    return;
                }
                *byte = reader.chunk_at(index).and_then(<[u8]>::first).copied().unwrap_or_default();
            }
            ends.tail = Some(tail);
        }
        // Last, since sending begins there.
        if are_there(reader, 0).await {
            let start = reader.chunk_at(0).unwrap_or_default();
            ends.start.extend_from_slice(&start[..start.len().min(START_BYTES)]);
        }
        self.ends = Some(Box::new(ends));
    }

    /// The last four bytes of the body; `None` unless it is complete, and they are known without
    /// waiting.
    pub(crate) fn tail(&self) -> Option<[u8; 4]> {
        if let Some(ends) = &self.ends {
            return ends.tail;
        }
        if self.is_passing() || self.state() != BodyState::Complete {
            return None;
        }
        let begin = self.available_bytes().checked_sub(4)?;
        let mut tail = [0; 4];
        for (index, byte) in tail.iter_mut().enumerate() {
            *byte = *self.chunk_at(begin + index as u64)?.first()?;
        }
        Some(tail)
    }

    /// The first bytes of the body, as many as are in one piece; empty unless it is complete, and
    /// they are known without waiting.
    pub(crate) fn start(&self) -> &[u8] {
        match &self.ends {
            Some(ends) => &ends.start,
            None if self.is_passing() => &[],
            None => self.chunk_at(0).unwrap_or_default(),
        }
    }
}

impl std::ops::Deref for Delivered {
    type Target = Arc<Object>;
    fn deref(&self) -> &Arc<Object> {
        &self.object
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        if self.object.is_passing() {
            self.object.abandon();
        }
    }
}
