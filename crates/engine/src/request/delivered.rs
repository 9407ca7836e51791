//! An object on its way to a client.

use std::sync::Arc;
use store::{BodyReader, Object};

/// An object that this request delivers, all of it. Letting go of one that only passes by tells its fetch that nobody reads
/// any more.
#[derive(Debug)]
pub struct Delivered {
    object: Arc<Object>,
    /// Of a body that is still being written: keeps what has not been read, should it turn out too large to be kept.
    reader: Option<Box<BodyReader>>,
}

impl Delivered {
    /// `None` when the beginning of its body may be gone: it has left the index, too.
    pub(crate) fn new(object: Arc<Object>) -> Option<Delivered> {
        let reader = if object.is_whole() || object.is_passing() { None } else { Some(Box::new(object.reader()?)) };
        Some(Delivered { object, reader })
    }

    pub(crate) fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Where reading begins, the first time, where that is not simply the arena.
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
