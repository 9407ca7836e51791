//! S3-FIFO: a small queue for new objects, a main queue for objects proven by uses, and a memory of
//! keys that were evicted unproven.
//!
//! ```text
//! new ─▶ small (a tenth at first) ─ used more than once ─▶ main ─ used ─▶ main again, a use less
//!          └─ else ─▶ evicted, remembered            └─ else ─▶ evicted
//! new and remembered ──────────────────────────▶ main
//! ```
//!
//! Objects requested once pass through the small queue and displace nothing. Source: Yang et al.,
//! "FIFO Queues are All You Need for Cache Eviction", SOSP 2023. Copal adds two things. The share
//! of the small queue grows by an object when one comes back that left it just before, and shrinks
//! by one when one comes back that just left the main queue: where mostly new objects are
//! requested, a tenth is too little (`docs/internals/measurements.md`). And an object of the main
//! queue that expires or is purged is remembered: its successor need not prove itself again.

use crate::entry::{NONE, Queues};
use crate::ghost::{Ghost, Memory, SPAN_UNITS};
use crate::{Arrival, Objects, Policy, Pressure, STEPS_MAX};

const SMALL: usize = 0;
const MAIN: usize = 1;
/// Ways of leaving, for the memory: evicted from either queue, or lost by the main one otherwise.
const EXPIRED: usize = 2;
/// The whole of which the small queue has a share.
const WHOLE: u32 = 100_000;
/// The share of the small queue, at first and at least.
const SMALL_SHARE: u32 = WHOLE / 10;
const SMALL_SHARE_MAX: u32 = WHOLE / 10 * 9;
/// If a key comes back before this part of the stored number of keys has left, it would still be
/// stored had its queue been a little larger.
const NEAR: u32 = SPAN_UNITS / 8;
/// With this many uses in the small queue an object moves to the main queue.
const PROVEN_USES: u32 = 2;
/// More uses than this since the last examination count as this many.
const USES_MAX: u32 = 3;

/// The policy; see the module header.
#[derive(Clone, Debug, Default)]
pub struct S3Fifo {
    queues: Queues,
    ghost: Ghost,
    /// The share of the small queue beyond [`SMALL_SHARE`].
    learnt: u32,
    /// The victim that was named last: when it leaves, it is remembered only if it came from the
    /// small queue.
    named: Option<u32>,
}

impl S3Fifo {
    /// True if the small queue gives the next object.
    fn is_small_full(&self) -> bool {
        let small = self.queues.queue(SMALL);
        let share = u128::from(SMALL_SHARE + self.learnt);
        let is_full = u128::from(small.bytes) * u128::from(WHOLE) >= u128::from(self.queues.bytes()) * share;
        small.oldest != NONE && (is_full || self.queues.queue(MAIN).oldest == NONE)
    }

    /// Examines the oldest object of the small queue.
    fn try_small(&mut self, objects: &impl Objects) -> Option<u32> {
        let slot = self.queues.queue(SMALL).oldest;
        let uses = objects.uses(slot);
        if self.queues.uses_since(slot, uses) >= PROVEN_USES {
            self.queues.note(slot, uses);
            self.queues.renew(MAIN, slot);
        } else if objects.is_free(slot) {
            return Some(slot);
        } else {
            self.queues.renew(SMALL, slot);
        }
        None
    }

    /// Examines the oldest object of the main queue.
    fn try_main(&mut self, objects: &impl Objects) -> Option<u32> {
        let slot = self.queues.queue(MAIN).oldest;
        let uses = objects.uses(slot);
        let since = self.queues.uses_since(slot, uses).min(USES_MAX);
        if since == 0 && objects.is_free(slot) {
            return Some(slot);
        }
        self.queues.note(slot, uses.wrapping_sub(since.saturating_sub(1)));
        self.queues.renew(MAIN, slot);
        None
    }
}

impl Policy for S3Fifo {
    fn inserted(&mut self, arrival: Arrival) {
        let memory = self.ghost.recall(arrival.hash);
        if let Some(Memory { kind, age: ..=NEAR }) = memory {
            let step = WHOLE / self.queues.count().max(1);
            self.learnt = match kind {
                SMALL => (self.learnt + step).min(SMALL_SHARE_MAX - SMALL_SHARE),
                MAIN => self.learnt.saturating_sub(step),
                _ => self.learnt,
            };
        }
        let is_proven = memory.is_some_and(|memory| memory.kind != MAIN);
        let queue = if is_proven { MAIN } else { SMALL };
        self.queues.enter(queue, arrival.slot, arrival.bytes, arrival.uses);
    }

    fn resized(&mut self, slot: u32, bytes: u64) {
        self.queues.resize(slot, bytes);
    }

    fn removed(&mut self, slot: u32, objects: &impl Objects) {
        let Some(queue) = self.queues.queue_of(slot) else { return };
        let was_named = self.named.take_if(|named| *named == slot).is_some();
        let kind = match queue {
            _ if was_named => Some(queue),
            MAIN => Some(EXPIRED),
            _ => None,
        };
        if let Some(kind) = kind {
            self.ghost.remember(objects.hash(slot), kind, self.queues.count() as usize);
        }
        self.queues.leave(slot);
    }

    fn victim(&mut self, objects: &impl Objects) -> Option<u32> {
        for _ in 0..STEPS_MAX {
            let found = if self.is_small_full() {
                self.try_small(objects)
            } else if self.queues.queue(MAIN).oldest != NONE {
                self.try_main(objects)
            } else {
                return None;
            };
            if found.is_some() {
                self.named = found;
                return found;
            }
        }
        None
    }

    fn pressure(&self) -> Pressure {
        let is_beyond_share = self.is_small_full();
        let bytes = if is_beyond_share { self.queues.queue(SMALL).bytes } else { self.queues.bytes() };
        Pressure { is_beyond_share, bytes }
    }

    fn memory_bytes(&self) -> usize {
        self.queues.memory_bytes() + self.ghost.memory_bytes()
    }
}
