//! W-TinyLFU: a window for new objects, and admission: an object that leaves it stays only if it is
//! requested more often than the objects that would have to be evicted for it.
//!
//! ```text
//! new ─▶ window ─▶ candidates ─ more frequent than the victims in main ─▶ main; first victim out
//!                      └─ else ─▶ evicted
//! ```
//!
//! Frequencies come from a sketch that also counts keys that are not stored. Uses of stored objects
//! are added to it when the policy examines them, so a hit writes nothing. The main queue gives
//! objects that were used another round. *Size*: a candidate is compared with the sum of as many
//! victims as would make room for it. While nothing has to be evicted, candidates beyond their
//! share are admitted freely. *The window's share* grows by an object when one comes back that was
//! not admitted just before, and shrinks by one when one comes back that just left the main queue
//! (Caffeine uses hill climbing for the same purpose).
//!
//! Source: Einziger, Friedman, Manes, "TinyLFU", 2017, and Einziger, Eytan, Friedman, Manes,
//! "Lightweight Robust Size Aware Cache Management", 2022 (aggregated victims).

use crate::entry::{NONE, Queues};
use crate::ghost::{Ghost, Memory, SPAN_UNITS};
use crate::sketch::{FREQUENCY_MAX, Sketch};
use crate::{Arrival, Objects, Policy, Pressure, STEPS_MAX};

const WINDOW: usize = 0;
const CANDIDATES: usize = 1;
const MAIN: usize = 2;
/// The whole of which the window has a share.
const WHOLE: u32 = 100_000;
/// The share of the window, at first and at least, and always of the candidates.
const WINDOW_SHARE: u32 = WHOLE / 50;
const WINDOW_SHARE_MAX: u32 = WHOLE / 10 * 8;
/// If a key comes back before this part of the stored number of keys has left, it would still be
/// stored had its queue been a little larger.
const NEAR: u32 = SPAN_UNITS / 8;
/// An object requested no more often than this evicts nothing, even where counts have been halved
/// to zero.
const ONCE: u32 = 1;
/// There is room as long as one byte in this many is free.
const ROOMY_PART: u64 = 16;
/// Maximum number of victims that a large candidate is compared with.
const OPPONENTS_MAX: usize = 8;

/// The policy; see the module header.
#[derive(Clone, Debug, Default)]
pub struct TinyLfu {
    queues: Queues,
    sketch: Sketch,
    /// Victims of the main queue, and candidates that were not admitted.
    ghost: Ghost,
    /// The share of the window beyond [`WINDOW_SHARE`].
    learnt: u32,
    /// The victim that was named last.
    named: Option<u32>,
    /// Bytes stored when a victim was last sought; 0 = never. Below that there is room.
    full_bytes: u64,
}

impl TinyLfu {
    /// Adds the uses of an object to the sketch.
    fn count(&mut self, slot: u32, objects: &impl Objects) -> u32 {
        let uses = objects.uses(slot);
        let since = self.queues.uses_since(slot, uses).min(FREQUENCY_MAX);
        self.sketch.add(objects.hash(slot), since);
        self.queues.note(slot, uses);
        since
    }

    fn is_beyond_share(&self, queue: usize) -> bool {
        let share = WINDOW_SHARE + if queue == WINDOW { self.learnt } else { 0 };
        let queue = self.queues.queue(queue);
        queue.count > 1
            && u128::from(queue.bytes) * u128::from(WHOLE) > u128::from(self.queues.bytes()) * u128::from(share)
    }

    /// The oldest object of the main queue that may be evicted, of those that `steps` allow to
    /// examine.
    fn main_victim(&mut self, objects: &impl Objects, steps: &mut usize) -> Option<u32> {
        while *steps > 0 {
            let slot = self.queues.queue(MAIN).oldest;
            if slot == NONE {
                return None;
            }
            *steps -= 1;
            if self.count(slot, objects) == 0 && objects.is_free(slot) {
                return Some(slot);
            }
            self.queues.renew(MAIN, slot);
        }
        None
    }

    /// True if a candidate is requested more often than the objects that would be evicted for it,
    /// beginning with `first`.
    fn wins(&self, candidate: u32, first: u32, objects: &impl Objects) -> bool {
        let frequency = self.sketch.frequency(objects.hash(candidate));
        let (mut room, mut against, mut at) = (0, 0, first);
        for _ in 0..OPPONENTS_MAX {
            if at == NONE || room >= self.queues.size(candidate) || against >= frequency {
                break;
            }
            room += self.queues.size(at);
            against += self.sketch.frequency(objects.hash(at));
            at = self.queues.newer(at);
        }
        frequency > against.max(ONCE)
    }

    /// Compares candidates with the objects that would be evicted for them, until an object has to
    /// be evicted.
    fn contest(&mut self, objects: &impl Objects) -> Option<u32> {
        let mut steps = STEPS_MAX;
        self.full_bytes = self.queues.bytes();
        while steps > 0 {
            let oldest = |queue: usize| Some(self.queues.queue(queue).oldest).filter(|slot| *slot != NONE);
            let Some(candidate) = oldest(CANDIDATES) else {
                // Everything is in the window or the main queue: the one beyond its share gives.
                if self.is_beyond_share(WINDOW) || oldest(MAIN).is_none() {
                    let slot = oldest(WINDOW)?;
                    self.queues.renew(CANDIDATES, slot);
                    steps -= 1;
                    continue;
                }
                return self.main_victim(objects, &mut steps);
            };
            steps -= 1;
            self.count(candidate, objects);
            let Some(victim) = self.main_victim(objects, &mut steps) else {
                if objects.is_free(candidate) {
                    return Some(candidate);
                }
                self.queues.renew(MAIN, candidate);
                continue;
            };
            if self.wins(candidate, victim, objects) || !objects.is_free(candidate) {
                self.queues.renew(MAIN, candidate);
                return Some(victim);
            }
            return Some(candidate);
        }
        None
    }
}

impl Policy for TinyLfu {
    fn inserted(&mut self, arrival: Arrival) {
        self.sketch.fit(self.queues.count() as usize);
        self.sketch.add(arrival.hash, 1);
        if let Some(Memory { kind, age: ..=NEAR }) = self.ghost.recall(arrival.hash) {
            let step = WHOLE / self.queues.count().max(1);
            self.learnt = match kind {
                MAIN => self.learnt.saturating_sub(step),
                _ => (self.learnt + step).min(WINDOW_SHARE_MAX - WINDOW_SHARE),
            };
        }
        self.queues.enter(WINDOW, arrival.slot, arrival.bytes, arrival.uses);
        let is_roomy = self.full_bytes == 0 || self.queues.bytes() < self.full_bytes / ROOMY_PART * (ROOMY_PART - 1);
        for (from, to) in [(WINDOW, CANDIDATES), (CANDIDATES, MAIN)] {
            // Two at a time: the queues shrink to their share while objects of different sizes
            // arrive.
            for _ in 0..2 {
                if self.is_beyond_share(from) && (to == CANDIDATES || is_roomy) {
                    self.queues.renew(to, self.queues.queue(from).oldest);
                }
            }
        }
    }

    fn resized(&mut self, slot: u32, bytes: u64) {
        self.queues.resize(slot, bytes);
    }

    fn removed(&mut self, slot: u32, objects: &impl Objects) {
        let Some(queue) = self.queues.queue_of(slot) else { return };
        self.count(slot, objects);
        if self.named.take_if(|named| *named == slot).is_some() {
            self.ghost.remember(objects.hash(slot), queue, self.queues.count() as usize);
        }
        self.queues.leave(slot);
    }

    fn victim(&mut self, objects: &impl Objects) -> Option<u32> {
        self.named = self.contest(objects);
        self.named
    }

    fn pressure(&self) -> Pressure {
        let new = self.queues.queue(WINDOW).bytes + self.queues.queue(CANDIDATES).bytes;
        let is_beyond_share = self.queues.queue(CANDIDATES).count > 0 || self.is_beyond_share(WINDOW);
        Pressure { is_beyond_share, bytes: if is_beyond_share { new } else { self.queues.bytes() } }
    }

    fn memory_bytes(&self) -> usize {
        self.queues.memory_bytes() + self.sketch.memory_bytes() + self.ghost.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    /// Unused objects that are free.
    struct Idle;

    impl Objects for Idle {
        fn uses(&self, _: u32) -> u32 {
            0
        }

        fn is_free(&self, _: u32) -> bool {
            true
        }

        fn hash(&self, slot: u32) -> u64 {
            mix(slot.into())
        }
    }

    /// Twenty objects in the main queue, requested twice, and a candidate.
    fn contest(candidate_bytes: u64, frequency: u32) -> Option<u32> {
        let mut policy = TinyLfu::default();
        policy.sketch.fit(1000);
        for slot in 0..20 {
            policy.queues.enter(MAIN, slot, 100, 0);
            policy.sketch.add(mix(slot.into()), 2);
        }
        policy.queues.enter(CANDIDATES, 99, candidate_bytes, 0);
        policy.sketch.add(mix(99), frequency);
        policy.victim(&Idle)
    }

    #[test]
    fn frequent_objects_are_admitted_and_large_ones_need_a_higher_frequency() {
        assert_eq!(contest(100, 2), Some(99), "no more frequent than what would go");
        assert_eq!(contest(100, 3), Some(0));
        assert_eq!(contest(300, 6), Some(99), "three others would go for it");
        assert_eq!(contest(300, 7), Some(0));
    }

    #[test]
    fn object_requested_once_evicts_no_other() {
        let mut policy = TinyLfu::default();
        policy.sketch.fit(100);
        policy.queues.enter(MAIN, 1, 100, 0);
        policy.queues.enter(CANDIDATES, 2, 100, 0);
        policy.sketch.add(mix(2), 1);
        assert_eq!(policy.victim(&Idle), Some(2), "the other has been forgotten by the sketch");
    }
}
