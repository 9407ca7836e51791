//! The entries of one publisher on their way into this node's cache.
//!
//! ```text
//! missing ──arrives──▶ pending ──cache has applied it──▶ done ──all before it are done──▶ applied
//! ```
//!
//! Entries are applied as they arrive, in any order. The node confirms only those before which none
//! is missing.

use crate::exchange::Ticket;
use crate::identity::{Incarnation, Position};
use std::collections::VecDeque;
use surface::limits::{FLEET_RECEIPTS_MAX, FLEET_WINDOW_MAX};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Missing,
    Pending,
    Done { incarnation: Incarnation, after: Incarnation, objects: u64 },
}

/// The use of an entry that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// To be applied.
    New,
    /// Arrived before.
    Duplicate,
    /// Too many are missing before it.
    TooFarAhead,
}

/// The entries of one publisher. The default is that of a publisher without entries.
#[derive(Default)]
pub(crate) struct Intake {
    /// The last entry before which none is missing.
    applied: Position,
    /// As above, and durable.
    durable: Position,
    /// The entries after `applied`. The last one is not missing.
    slots: VecDeque<Slot>,
    missing: usize,
    /// Numbers and objects of applied entries that are not confirmed yet.
    receipts: Vec<(u64, u64)>,
    /// The write of this position is on its way.
    writing: Option<(Ticket, Position)>,
    /// Number of the publisher's `Leave`, which may not be applied yet; 0 = none.
    pub(crate) leave: u64,
}

impl Intake {
    /// The intake of a publisher whose entries up to `applied` are applied, durably.
    pub(crate) fn new(applied: Position) -> Intake {
        Intake { applied, durable: applied, ..Intake::default() }
    }

    /// The last entry before which none is missing.
    pub(crate) fn applied(&self) -> Position {
        self.applied
    }

    /// As above, and durable.
    pub(crate) fn durable(&self) -> Position {
        self.durable
    }

    /// True if an entry is missing before one that arrived.
    pub(crate) fn has_hole(&self) -> bool {
        self.missing > 0
    }

    /// True if all that arrived is applied, durably.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.applied == self.durable
    }

    /// Number of entries that are not applied yet.
    pub(crate) fn backlog(&self) -> usize {
        self.slots.len() - self.missing
    }

    /// An entry arrives.
    pub(crate) fn arrive(&mut self, counter: u64) -> Arrival {
        let Some(index) = counter.checked_sub(self.applied.counter + 1) else { return Arrival::Duplicate };
        if index >= FLEET_WINDOW_MAX as u64 {
            return Arrival::TooFarAhead;
        }
        let index = index as usize;
        while self.slots.len() <= index {
            self.slots.push_back(Slot::Missing);
            self.missing += 1;
        }
        let slot = &mut self.slots[index];
        if *slot != Slot::Missing {
            return Arrival::Duplicate;
        }
        *slot = Slot::Pending;
        self.missing -= 1;
        Arrival::New
    }

    /// The cache has applied an entry.
    pub(crate) fn finish(&mut self, position: Position, after: Incarnation, objects: u64) {
        let index = position.counter.checked_sub(self.applied.counter + 1);
        let slot = index.and_then(|index| self.slots.get_mut(usize::try_from(index).ok()?));
        if let Some(slot @ Slot::Pending) = slot {
            *slot = Slot::Done { incarnation: position.incarnation, after, objects };
        }
    }

    /// Moves on over entries that are done. Stops before an entry that follows a lost one, and
    /// returns it: everything must be removed before [`Intake::jump`] to it.
    pub(crate) fn advance(&mut self) -> Option<Position> {
        while let Some(Slot::Done { incarnation, after, objects }) = self.slots.front().copied() {
            let counter = self.applied.counter + 1;
            if after != self.applied.incarnation {
                self.slots[0] = Slot::Pending;
                return Some(Position { counter, incarnation });
            }
            self.slots.pop_front();
            self.moved_to(Position { counter, incarnation }, objects);
        }
        None
    }

    /// Everything was removed: all entries up to this one are applied.
    pub(crate) fn jump(&mut self, position: Position, objects: u64) {
        if position.counter < self.applied.counter {
            return;
        }
        for _ in self.applied.counter..position.counter {
            match self.slots.pop_front() {
                None => break,
                Some(Slot::Missing) => self.missing -= 1,
                Some(Slot::Pending | Slot::Done { .. }) => {}
            }
        }
        self.moved_to(position, objects);
    }

    fn moved_to(&mut self, position: Position, objects: u64) {
        self.applied = position;
        if self.receipts.len() < FLEET_RECEIPTS_MAX {
            self.receipts.push((position.counter, objects));
        }
    }

    /// The position to be made durable; `None` if none, or if another write is on its way.
    pub(crate) fn to_write(&self) -> Option<Position> {
        (self.writing.is_none() && self.applied != self.durable).then_some(self.applied)
    }

    /// The write of the position of [`Intake::to_write`] has begun.
    pub(crate) fn write_begins(&mut self, ticket: Ticket) {
        self.writing = Some((ticket, self.applied));
    }

    /// The write has ended. Returns the receipts of the entries that are now durable.
    pub(crate) fn write_ends(&mut self, ticket: Ticket, is_durable: bool) -> Option<Vec<(u64, u64)>> {
        let (_, position) = self.writing.take_if(|writing| writing.0 == ticket)?;
        if !is_durable {
            return None;
        }
        self.durable = position;
        let count = self.receipts.partition_point(|receipt| receipt.0 <= position.counter);
        Some(self.receipts.drain(..count).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Incarnation = Incarnation(1 << 32);

    fn at(counter: u64) -> Position {
        Position { counter, incarnation: RUN }
    }

    fn after(counter: u64) -> Incarnation {
        if counter == 1 { Incarnation::default() } else { RUN }
    }

    #[test]
    fn only_entries_without_a_hole_before_them_are_applied() {
        let mut intake = Intake::default();
        for counter in [3, 1, 2] {
            assert_eq!(intake.arrive(counter), Arrival::New);
            assert_eq!(intake.arrive(counter), Arrival::Duplicate);
        }
        for (counter, applied) in [(3, 0), (2, 0), (1, 3)] {
            intake.finish(at(counter), after(counter), 7);
            assert_eq!(intake.advance(), None);
            assert_eq!(intake.applied().counter, applied);
        }
        assert_eq!(intake.arrive(2), Arrival::Duplicate);
        assert_eq!(intake.arrive(3 + 1 + FLEET_WINDOW_MAX as u64), Arrival::TooFarAhead);
        assert!(!intake.has_hole());
        intake.write_begins(1);
        assert_eq!(intake.write_ends(1, true), Some(vec![(1, 7), (2, 7), (3, 7)]));
        assert!(intake.is_idle());
    }

    #[test]
    fn entry_after_a_lost_one_waits_until_everything_is_removed() {
        let mut intake = Intake::new(at(5));
        let other = Position { counter: 6, incarnation: Incarnation(2 << 32) };
        assert_eq!(intake.arrive(6), Arrival::New);
        intake.finish(other, Incarnation(77), 1);
        assert_eq!(intake.advance(), Some(other));
        assert_eq!(intake.applied(), at(5));
        intake.jump(other, 100);
        assert_eq!(intake.applied(), other);
    }

    #[test]
    fn jump_keeps_what_arrived_after_it() {
        let mut intake = Intake::default();
        for counter in [2, 5, 9] {
            intake.arrive(counter);
        }
        intake.finish(at(5), RUN, 1);
        intake.jump(at(4), 10);
        assert_eq!(intake.advance(), None);
        assert_eq!(intake.applied(), at(5));
        assert_eq!((intake.backlog(), intake.has_hole()), (1, true));
        intake.jump(at(2), 10);
        assert_eq!(intake.applied(), at(5), "never back");
        intake.jump(at(20), 10);
        assert_eq!((intake.applied(), intake.has_hole(), intake.backlog()), (at(20), false, 0));
    }
}
