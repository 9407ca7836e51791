//! Slots of the event loop's pool: a request, and buffers for the transport that carries it. They
//! are separate fields because the transport uses the buffers while the machine works on the
//! request.

use super::task::{Request, clear_buffer};
use shm::log::LogRing;
use surface::limits::KEPT_BUFFER_BYTES_MAX;

/// Room for the first read of an HTTP/1 connection, in bytes. Streams read into other buffers, and
/// have none.
pub(crate) const FIRST_READ_BYTES: usize = 4 << 10;

/// Bytes on their way between a connection and a request.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// Received bytes of this request and of the following ones.
    pub(crate) received: Vec<u8>,
    /// Number of them that have been used.
    pub(crate) consumed: usize,
    /// Bytes that are sent before the next piece of body.
    pub(crate) head: Vec<u8>,
}

impl Buffers {
    /// Received bytes that have not been used yet.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.received[self.consumed..]
    }

    /// Marks bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.consumed = (self.consumed + count).min(self.received.len());
    }

    /// Makes room at the end by moving the unread bytes to the front.
    pub(crate) fn compact(&mut self) {
        if self.consumed == self.received.len() {
            self.received.clear();
        } else {
            self.received.drain(..self.consumed);
        }
        self.consumed = 0;
    }
}

/// A request and the buffers of its transport.
pub struct RequestSlot {
    pub(crate) buffers: Buffers,
    /// The request.
    pub request: Request,
}

impl AsMut<Vec<u8>> for Box<RequestSlot> {
    fn as_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffers.received
    }
}

impl RequestSlot {
    pub(crate) fn new(ring: &LogRing) -> Box<RequestSlot> {
        Box::new(RequestSlot {
            buffers: Buffers { received: Vec::new(), consumed: 0, head: Vec::new() },
            request: Request::new(ring),
        })
    }

    /// Clears everything of the finished request except received bytes that were not used, since
    /// they belong to the next request on the connection. Buffer space beyond
    /// [`KEPT_BUFFER_BYTES_MAX`] is freed.
    pub(crate) fn clear(&mut self) {
        self.clear_to(KEPT_BUFFER_BYTES_MAX);
    }

    /// As [`RequestSlot::clear`], and also discards the received bytes.
    pub(crate) fn retire(&mut self) {
        self.retire_to(KEPT_BUFFER_BYTES_MAX);
    }

    /// As [`RequestSlot::retire`], but each buffer keeps at most `bytes`.
    pub(crate) fn retire_to(&mut self, bytes: usize) {
        self.buffers.consumed = self.buffers.received.len();
        self.clear_to(bytes);
    }

    fn clear_to(&mut self, bytes: usize) {
        self.buffers.compact();
        let RequestSlot { buffers: Buffers { received, consumed: _, head }, request } = self;
        request.clear(bytes);
        clear_buffer(head, bytes);
        if received.is_empty() {
            clear_buffer(received, bytes);
        }
    }
}
