//! An object on its way to a client.

use crate::bodies::filed::{are_there, held_bytes};
use message::Message;
use std::sync::Arc;
use store::{BodyReader, BodyState, Object};

/// First bytes of a body that say how it is packed: the header of a frame of Zstandard.
const START_BYTES: usize = 18;

/// An object that this request delivers completely. Dropping one whose body only passes by tells its fetch that nobody reads it
/// any more.
#[derive(Debug)]
pub struct Delivered {
    object: Arc<Object>,
    /// For a body that is still being written: keeps the unread part in case the body turns out too large for the cache. For one
    /// that lies in a file: what was read of it.
    reader: Option<Box<BodyReader>>,
    /// What is sent in its place, if its body lies in a file and has a copy in memory.
    in_memory: Option<Arc<Object>>,
    /// Of a body that lies in a file, what filters want to know before they begin.
    ends: Option<Box<Ends>>,
    /// Fields of the response that only this client may get: they are not in the object.
    unshared: Option<Box<Message>>,
    /// The status with which the origin answered the request that this one led to.
    origin_status: Option<u16>,
}

/// The first and the last bytes of a body.
#[derive(Debug)]
struct Ends {
    start: Vec<u8>,
    tail: Option<[u8; 4]>,
}

impl Delivered {
    /// `None` when the beginning of the body may already be gone; the object has then left the index, too.
    pub(crate) fn new(object: Arc<Object>) -> Option<Delivered> {
        let needs_none = object.is_passing() || (object.is_whole() && !object.is_filed());
        let reader = if needs_none { None } else { Some(Box::new(object.reader()?)) };
        Some(Delivered { object, reader, in_memory: None, ends: None, unshared: None, origin_status: None })
    }

    /// With what only the client whose request led to the fetch is told: fields that nobody else may get (their status means
    /// nothing), and the status with which the origin answered, if it did.
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

    /// Notes a copy in memory of a body that lies in a file. They differ in nothing else.
    pub(crate) fn promote(&mut self, copy: Arc<Object>) {
        self.in_memory = Some(copy);
    }

    /// This copy, if there is one.
    pub(crate) fn take_promoted(&mut self) -> Option<Delivered> {
        Delivered::new(self.in_memory.take()?)
    }

    /// Waits for the first bytes of a body that lies in a file. False when they cannot be read.
    pub(crate) async fn wait_for_start(&mut self) -> bool {
        let Some(reader) = self.reader.as_deref_mut().filter(|reader| reader.object().is_filed()) else { return true };
        are_there(reader, 0).await || !reader.has_failed()
    }

    /// Waits for what filters that unpack want to know of a body that lies in a file, before any of it is sent.
    pub(crate) async fn wait_for_ends(&mut self) {
        let end = self.object.available_bytes();
        let is_complete = self.object.is_filed() && self.object.state() == BodyState::Complete;
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

    /// The last four bytes of the body; `None` unless it is complete, and they are known without waiting.
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

    /// The first bytes of the body, as many as lie in one piece; empty unless it is complete, and they are known without waiting.
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
