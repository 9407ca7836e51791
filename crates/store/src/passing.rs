//! A response that is not kept: from one writer to one reader, with a bounded amount under way.
//!
//! It is outside the arena and does not count against it: this is request memory. The writer waits
//! while the permitted number of bytes is under way: those not yet taken, and those that the reader
//! took last, which it holds until it asks for more. *Lock*: one mutex, never across an await.

use crate::attributes::{AppendError, BodyState, ObjectAttributes};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::Notify;

/// Pieces that arrive before the reader asks are joined, up to this many bytes.
const JOINED_BYTES_MAX: usize = 4 << 10;

struct Flow {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes in the chunks, including those that the reader holds.
    queued_bytes: usize,
    /// Bytes in the chunks that the reader holds.
    lent_bytes: usize,
    total_bytes: u64,
    state: BodyState,
    abandoned: bool,
    lifetime: (f64, f64, f64),
}

pub(crate) struct Passing {
    pub(crate) attributes: ObjectAttributes,
    pub(crate) head: Vec<u8>,
    in_flight_bytes: AtomicUsize,
    flow: Mutex<Flow>,
    readable: Notify,
    writable: Notify,
}

impl Passing {
    pub(crate) fn new(attributes: ObjectAttributes, head: Vec<u8>, in_flight_bytes: usize) -> Passing {
        let lifetime = (attributes.ttl, attributes.grace, attributes.keep);
        Passing {
            attributes,
            head,
            in_flight_bytes: AtomicUsize::new(in_flight_bytes),
            flow: Mutex::new(Flow {
                chunks: VecDeque::new(),
                queued_bytes: 0,
                lent_bytes: 0,
                total_bytes: 0,
                state: BodyState::Writing,
                abandoned: false,
                lifetime,
            }),
            readable: Notify::new(),
            writable: Notify::new(),
        }
    }

    pub(crate) fn lifetime(&self) -> (f64, f64, f64) {
        self.flow.lock().lifetime
    }

    pub(crate) fn set_lifetime(&self, ttl: f64, grace: f64, keep: f64) {
        self.flow.lock().lifetime = (ttl, grace, keep);
    }

    /// Changes the permitted number of bytes under way.
    pub(crate) fn limit_in_flight(&self, bytes: usize) {
        self.in_flight_bytes.store(bytes, Relaxed);
    }

    pub(crate) fn under_way_bytes(&self) -> usize {
        self.flow.lock().queued_bytes
    }

    pub(crate) async fn append(&self, mut bytes: &[u8]) -> Result<(), AppendError> {
        loop {
            {
                let mut flow = self.flow.lock();
                if flow.abandoned || flow.state != BodyState::Writing {
                    return Err(AppendError::Abandoned);
                }
                let room = self.in_flight_bytes.load(Relaxed).saturating_sub(flow.queued_bytes);
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                if !now.is_empty() {
                    match flow.chunks.back_mut() {
                        // Stored one by one, single bytes would take many times their memory.
                        Some(last) if last.len() + now.len() <= JOINED_BYTES_MAX => last.extend_from_slice(now),
                        _ => flow.chunks.push_back(now.to_vec()),
                    }
                    flow.queued_bytes += now.len();
                    flow.total_bytes += now.len() as u64;
                    self.readable.notify_waiters();
                }
                bytes = later;
            }
            if bytes.is_empty() {
                return Ok(());
            }
            // There is only one writer, so a permit left by the reader before this await is not
            // lost.
            self.writable.notified().await;
        }
    }

    /// As `append`, without copying; returns the bytes if there is no room for all of them, or
    /// there is no reader.
    pub(crate) fn hand_over(&self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut flow = self.flow.lock();
        let room = self.in_flight_bytes.load(Relaxed).saturating_sub(flow.queued_bytes);
        if flow.abandoned || flow.state != BodyState::Writing || bytes.len() > room {
            return Err(bytes);
        }
        flow.queued_bytes += bytes.len();
        flow.total_bytes += bytes.len() as u64;
        flow.chunks.push_back(bytes);
        self.readable.notify_waiters();
        Ok(())
    }

    pub(crate) fn end(&self, state: BodyState) {
        let mut flow = self.flow.lock();
        if flow.state == BodyState::Writing {
            flow.state = state;
            self.readable.notify_waiters();
        }
    }

    pub(crate) fn state(&self) -> BodyState {
        self.flow.lock().state
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.flow.lock().total_bytes
    }

    pub(crate) fn take_chunks(&self, into: &mut VecDeque<Vec<u8>>, count_max: usize, bytes_max: usize) -> usize {
        let mut flow = self.flow.lock();
        let mut lent_bytes = 0;
        while into.len() < count_max
            && let Some(chunk) = flow.chunks.front()
            && (lent_bytes == 0 || lent_bytes + chunk.len() <= bytes_max)
        {
            lent_bytes += chunk.len();
            into.extend(flow.chunks.pop_front());
        }
        let done_bytes = std::mem::replace(&mut flow.lent_bytes, lent_bytes);
        flow.queued_bytes -= done_bytes;
        if done_bytes > 0 {
            self.writable.notify_one();
        }
        lent_bytes
    }

    pub(crate) fn abandon(&self) {
        let mut flow = self.flow.lock();
        flow.abandoned = true;
        flow.chunks.clear();
        (flow.queued_bytes, flow.lent_bytes) = (0, 0);
        self.writable.notify_one();
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.readable
    }
}
