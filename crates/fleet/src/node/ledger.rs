//! The index of a node's own entries: numbers, runs and sizes, from the oldest that is not
//! confirmed by all members to the newest.

use crate::identity::{Incarnation, Position};
use crate::record::EntryMark;
use std::collections::VecDeque;

/// The run of a floor below which entries are lost: no run is so.
const LOST: Incarnation = Incarnation(u64::MAX);

/// The index of the outbox.
pub(crate) struct Ledger {
    /// Entries up to here are gone, or confirmed by all.
    floor: Position,
    /// The entries after it, without gaps.
    marks: VecDeque<EntryMark>,
    bytes: u64,
    /// The last durable entry.
    durable: u64,
}

/// A member's place in the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// The member has the entries up to here.
    OnChain,
    /// Entries after its place are gone.
    BelowFloor,
    /// It has entries that this ledger lost.
    Foreign,
}

impl Ledger {
    /// The ledger of the entries found at a start: `first` is the number of the first one.
    pub(crate) fn new(mut floor: Position, first: u64, marks: VecDeque<EntryMark>) -> Ledger {
        if !marks.is_empty() && first > floor.counter + 1 {
            // Entries between are replaced by the first one, or lost; no run wrote them here.
            floor = Position { counter: first - 1, incarnation: LOST };
        }
        let bytes = marks.iter().map(|mark| u64::from(mark.bytes)).sum();
        let durable = floor.counter + marks.len() as u64;
        Ledger { floor, marks, bytes, durable }
    }

    /// The newest entry, durable or not.
    pub(crate) fn last(&self) -> Position {
        match self.marks.back() {
            Some(mark) => Position { counter: self.last_counter(), incarnation: mark.incarnation },
            None => self.floor,
        }
    }

    /// The latest run that wrote an entry.
    pub(crate) fn last_run(&self) -> Incarnation {
        let runs = self.marks.iter().map(|mark| mark.incarnation).chain([self.floor.incarnation]);
        runs.filter(|run| *run != LOST).max().unwrap_or_default()
    }

    fn last_counter(&self) -> u64 {
        self.floor.counter + self.marks.len() as u64
    }

    /// The newest durable entry.
    pub(crate) fn durable(&self) -> Position {
        self.at(self.durable).unwrap_or(self.floor)
    }

    /// The floor.
    pub(crate) fn floor(&self) -> Position {
        self.floor
    }

    /// The entry with this number; `None` if it is not in the ledger. The floor is.
    pub(crate) fn at(&self, counter: u64) -> Option<Position> {
        let index = counter.checked_sub(self.floor.counter)?;
        let Some(index) = index.checked_sub(1) else { return Some(self.floor) };
        let mark = self.marks.get(usize::try_from(index).ok()?)?;
        Some(Position { counter, incarnation: mark.incarnation })
    }

    /// True if the first entry stands for all earlier ones.
    pub(crate) fn begins_anew(&self) -> bool {
        self.marks.front().is_some_and(|mark| mark.replaces)
    }

    /// The place of a member that reports to have this entry.
    pub(crate) fn place(&self, reported: Position) -> Place {
        match self.at(reported.counter) {
            Some(own) if own == reported => Place::OnChain,
            _ if reported.counter < self.floor.counter => Place::BelowFloor,
            // The first entry stands for this one too.
            _ if reported.counter == self.floor.counter && self.begins_anew() => Place::BelowFloor,
            Some(_) | None => Place::Foreign,
        }
    }

    /// Adds an entry with the next number.
    pub(crate) fn push(&mut self, mark: EntryMark) {
        self.bytes += u64::from(mark.bytes);
        self.marks.push_back(mark);
    }

    /// Drops all entries, and goes on with the number after `counter`.
    pub(crate) fn skip_to(&mut self, counter: u64) {
        self.marks.clear();
        self.bytes = 0;
        self.floor = Position { counter, incarnation: LOST };
        self.durable = counter;
    }

    /// The entries up to this number are durable.
    pub(crate) fn set_durable(&mut self, counter: u64) {
        self.durable = self.durable.max(counter.min(self.last_counter()));
    }

    /// Removes the entries from this number on, which are not durable.
    pub(crate) fn roll_back(&mut self, counter: u64) {
        while self.last_counter() >= counter && self.last_counter() > self.durable {
            let Some(mark) = self.marks.pop_back() else { return };
            self.bytes -= u64::from(mark.bytes);
        }
    }

    /// Removes durable entries up to this number. True if there were some.
    pub(crate) fn raise_floor(&mut self, counter: u64) -> bool {
        let Some(floor) = self.at(counter.min(self.durable)).filter(|floor| floor.counter > self.floor.counter) else {
            return false;
        };
        while self.floor.counter < floor.counter {
            let Some(mark) = self.marks.pop_front() else { break };
            self.bytes -= u64::from(mark.bytes);
            self.floor.counter += 1;
        }
        self.floor = floor;
        true
    }

    /// The number up to which entries must go so that `entries` and `bytes` are kept at most, and
    /// none that was written before `wall_ms`; the floor if none must.
    pub(crate) fn surplus(&self, entries: usize, bytes: u64, wall_ms: u64) -> u64 {
        let (mut left, mut left_bytes, mut through) = (self.marks.len(), self.bytes, self.floor.counter);
        for mark in &self.marks {
            if left <= entries && left_bytes <= bytes && mark.wall_ms >= wall_ms {
                break;
            }
            left -= 1;
            left_bytes -= u64::from(mark.bytes);
            through += 1;
        }
        through
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Size of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
