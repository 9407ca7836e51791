//! Requests that are over, kept for the next ones on the same event loop: an idle connection holds none.

use super::task::{FIRST_READ_BYTES, Request};
use shm::log::LogRing;
use std::cell::RefCell;

/// Most requests kept.
const KEPT_MAX: usize = 64;
/// A buffer that grew beyond this is not kept, in bytes.
const KEPT_BUFFER_BYTES_MAX: usize = 64 << 10;

/// The requests kept by one event loop.
#[allow(clippy::vec_box, reason = "requests move between the pool and sessions, and are large")]
#[derive(Default)]
pub struct RequestPool(RefCell<Vec<Box<Request>>>);

impl RequestPool {
    /// A request with clean, empty buffers and room for a first read.
    pub(crate) fn take(&self, ring: &LogRing) -> Box<Request> {
        self.0.borrow_mut().pop().unwrap_or_else(|| Request::new(ring))
    }

    /// Takes back a request that nobody used since it was taken.
    pub(crate) fn put_unused(&self, request: Box<Request>) {
        self.0.borrow_mut().push(request);
    }

    /// Takes back a request that is over.
    pub(crate) fn put(&self, mut request: Box<Request>) {
        if self.0.borrow().len() >= KEPT_MAX {
            return;
        }
        request.received.clear();
        request.consumed = 0;
        request.vcl = None;
        request.task.clear();
        for buffer in [&mut request.received, &mut request.head, &mut request.staging, &mut request.task.synthetic] {
            buffer.clear();
            if buffer.capacity() > KEPT_BUFFER_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        request.received.reserve(FIRST_READ_BYTES);
        let messages = [
            &mut request.task.request,
            &mut request.task.original,
            &mut request.task.response,
            &mut request.task.object_head,
        ];
        for message in messages {
            message.shrink_to(KEPT_BUFFER_BYTES_MAX);
        }
        self.0.borrow_mut().push(request);
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
