//! SIEVE: one queue in order of arrival, and a hand that moves from old to new and takes an object
//! that was not used since it last passed.
//!
//! Used objects keep their position, so new objects are separated from proven ones without a second
//! queue. Source: Zhang et al., "SIEVE is Simpler than LRU", NSDI 2024.

use crate::entry::{NONE, Queues};
use crate::{Arrival, Objects, Policy, Pressure, STEPS_MAX};

/// The policy; see the module header.
#[derive(Clone, Debug)]
pub struct Sieve {
    queues: Queues,
    /// The position of the hand; [`NONE`] = at the oldest.
    hand: u32,
}

impl Default for Sieve {
    fn default() -> Self {
        Sieve { queues: Queues::default(), hand: NONE }
    }
}

impl Policy for Sieve {
    fn inserted(&mut self, arrival: Arrival) {
        self.queues.enter(0, arrival.slot, arrival.bytes, arrival.uses);
    }

    fn resized(&mut self, slot: u32, bytes: u64) {
        self.queues.resize(slot, bytes);
    }

    fn removed(&mut self, slot: u32, _: &impl Objects) {
        if self.hand == slot {
            self.hand = self.queues.newer(slot);
        }
        self.queues.leave(slot);
    }

    fn victim(&mut self, objects: &impl Objects) -> Option<u32> {
        for _ in 0..STEPS_MAX {
            let at = if self.hand == NONE { self.queues.queue(0).oldest } else { self.hand };
            if at == NONE {
                return None;
            }
            let uses = objects.uses(at);
            let is_used = self.queues.uses_since(at, uses) > 0;
            if !is_used && objects.is_free(at) {
                self.hand = at;
                return Some(at);
            }
            self.queues.note(at, uses);
            self.hand = self.queues.newer(at);
        }
        None
    }

    fn pressure(&self) -> Pressure {
        Pressure { is_beyond_share: false, bytes: self.queues.bytes() }
    }

    fn memory_bytes(&self) -> usize {
        self.queues.memory_bytes()
    }
}
