//! An object on its way to a client.

use message::Message;
use std::sync::Arc;
use store::{BodyReader, Object};

/// An object that this request delivers completely. Dropping one whose body only passes by tells its fetch that nobody reads it
/// any more.
#[derive(Debug)]
pub struct Delivered {
    object: Arc<Object>,
    /// For a body that is still being written: keeps the unread part in case the body turns out too large for the cache.
    reader: Option<Box<BodyReader>>,
    /// Fields of the response that only this client may get: they are not in the object.
    unshared: Option<Box<Message>>,
    /// The status with which the origin answered the request that this one led to.
    origin_status: Option<u16>,
}

impl Delivered {
    /// `None` when the beginning of the body may already be gone; the object has then left the index, too.
    pub(crate) fn new(object: Arc<Object>) -> Option<Delivered> {
        let reader = if object.is_whole() || object.is_passing() { None } else { Some(Box::new(object.reader()?)) };
        Some(Delivered { object, reader, unshared: None, origin_status: None })
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
