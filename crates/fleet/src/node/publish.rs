//! Own entries: written, published, confirmed, sent again.

use super::ledger::Place;
use super::{Command, Fresh, Node, Pending};
use crate::exchange::{Answer, Loss, Output, Receipt, Report, RequestId, Ticket};
use crate::identity::{COUNTER_MAX, Incarnation, NodeId, Position};
use crate::invalidation::Invalidation;
use crate::record::{Entry, EntryMark, Record};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use surface::limits::{FLEET_PUBLISHING_MAX, FLEET_RESEND_MAX, FLEET_WAITS_MAX, FLEET_WINDOW_MAX};

/// Time for which a member's place may stay the same before entries are sent again, in
/// milliseconds.
const STALL_MS: u64 = 500;
/// Longest time between two attempts, in milliseconds.
const PATIENCE_MS_MAX: u64 = 4000;
/// Time until the stream is tried again, in milliseconds.
const PUBLISH_RETRY_MS: u64 = 250;
/// Time between two records of the floor, in milliseconds.
const FLOOR_MS: u64 = 1000;
/// Bytes of an entry in the outbox besides the invalidation, about.
const ENTRY_BYTES: usize = 48;

impl Node {
    pub(super) fn invalidate(&mut self, request: RequestId, invalidation: Invalidation, wait_ms: Option<u64>) {
        let refusal = match &invalidation {
            Invalidation::Leave | Invalidation::Forget { .. } => Some("this is a command of its own"),
            _ if self.has_left => Some("this node has left its fleet"),
            _ if self.commands.len() + self.fresh.len() >= FLEET_WAITS_MAX + FLEET_WINDOW_MAX => {
                Some("too many commands wait for the fleet")
            }
            _ if wait_ms.is_some() && self.waits() >= FLEET_WAITS_MAX => Some("too many commands wait for the fleet"),
            _ => None,
        };
        match refusal {
            Some(why) => self.answer(request, Answer::Refused(why.to_owned())),
            None => self.append(invalidation, Some((request, wait_ms))),
        }
    }

    fn waits(&self) -> usize {
        self.commands.values().filter(|command| command.until_ms.is_some()).count()
    }

    pub(super) fn forget(&mut self, request: RequestId, node: &NodeId, wait_ms: Option<u64>) {
        let refusal = match self.roster.get(node) {
            _ if *node == self.config.node => "a node does not forget itself: let it leave".to_owned(),
            _ if self.has_left => "this node has left its fleet".to_owned(),
            None => format!("no member is named {node}"),
            Some(member) => {
                let incarnation = member.incarnation;
                let invalidation = Invalidation::Forget { node: node.clone(), incarnation };
                return self.append(invalidation, Some((request, wait_ms)));
            }
        };
        self.answer(request, Answer::Refused(refusal));
    }

    pub(super) fn leave(&mut self, request: RequestId, wait_ms: Option<u64>) {
        if self.has_left {
            return self.answer(request, Answer::Refused("this node has left its fleet".to_owned()));
        }
        // Durable before the last entry: after a restart this is a new member.
        (self.has_left, self.is_established, self.is_draining) = (true, false, true);
        self.write_own();
        self.append(Invalidation::Leave, Some((request, wait_ms)));
    }

    fn answer(&mut self, request: RequestId, answer: Answer) {
        self.outputs.push_back(Output::Answer(request, answer));
    }

    /// Writes an entry. Its effects follow when it is durable.
    fn append(&mut self, invalidation: Invalidation, command: Option<(RequestId, Option<u64>)>) {
        let last = self.ledger.last();
        let position = Position { counter: last.counter + 1, incarnation: self.incarnation };
        let entry =
            Entry { position, after: last.incarnation, wall_ms: self.now.wall_ms, invalidation: invalidation.encode() };
        if last.counter >= COUNTER_MAX || self.seal_entry(&entry).is_none() {
            if let Some((request, _)) = command {
                let why =
                    if last.counter >= COUNTER_MAX { "no number is left" } else { "it is too long for a message" };
                self.answer(request, Answer::Refused(why.to_owned()));
            }
            return;
        }
        self.ledger.push(EntryMark {
            incarnation: position.incarnation,
            wall_ms: entry.wall_ms,
            bytes: (entry.invalidation.len() + ENTRY_BYTES) as u32,
            replaces: invalidation == Invalidation::Everything,
        });
        let began_ms = self.now.monotone_ms;
        let command = command.map(|(request, wait_ms)| Command {
            request,
            began_ms,
            until_ms: wait_ms.map(|wait| began_ms.saturating_add(wait)),
            position,
            objects: None,
            receipts: BTreeMap::new(),
        });
        let ticket = self.write(Record::Entry(entry.clone()), Pending::Entry);
        self.fresh.push_back(Fresh { ticket, entry, invalidation, command });
    }

    /// Entries are lost, here or as others have seen: the next entry replaces all before it. `seen`
    /// is the highest number that was ever given.
    pub(super) fn begin_anew(&mut self, seen: u64) {
        let counter = self.ledger.last().counter.max(seen);
        if counter >= COUNTER_MAX {
            return;
        }
        // Orders that are not durable yet are replaced too.
        for fresh in std::mem::take(&mut self.fresh) {
            if let Some(command) = fresh.command {
                self.answer(command.request, Answer::Refused("the outbox is begun anew".to_owned()));
            }
        }
        self.counters.unconfirmed_dropped += self.ledger.len() as u64;
        self.counters.drops += 1;
        self.report(Report::Dropping(Loss::Outbox, self.config.node.clone()));
        self.ledger.skip_to(counter);
        (self.unpublished, self.in_flight) = Default::default();
        self.append(Invalidation::Everything, None);
        self.write(Record::Floor(self.ledger.floor()), Pending::Other);
    }

    /// Applies entries of the last run that the cache may not have.
    pub(super) fn take_up(&mut self, entries: Vec<Entry>) {
        let applied = self.own.applied().counter;
        let last = self.ledger.last();
        let is_whole = entries.first().map_or(applied >= last.counter, |entry| entry.position.counter == applied + 1)
            && entries.len() < FLEET_WINDOW_MAX;
        if !is_whole {
            return self.drop_everything(vec![(None, last)], Loss::Outbox);
        }
        for entry in entries {
            _ = self.own.arrive(entry.position.counter);
            let invalidation = Invalidation::decode(&entry.invalidation);
            self.apply_entry(None, entry.position, entry.after, invalidation);
        }
    }

    pub(super) fn entry_is_durable(&mut self, ticket: Ticket) {
        if self.fresh.front().is_none_or(|fresh| fresh.ticket != ticket) {
            return;
        }
        let Some(fresh) = self.fresh.pop_front() else { return };
        let Fresh { entry, invalidation, command, .. } = fresh;
        let position = entry.position;
        self.ledger.set_durable(position.counter);
        if let Some(command) = command {
            self.commands.insert(position.counter, command);
        }
        self.publish(&entry);
        if invalidation == Invalidation::Everything && self.ledger.floor().counter + 1 == position.counter {
            // It replaces entries that this node may have lost too.
            self.apply(invalidation, super::Application::Jump { publisher: None, position });
        } else {
            _ = self.own.arrive(position.counter);
            self.apply_entry(None, position, entry.after, Some(invalidation));
        }
    }

    pub(super) fn entry_not_written(&mut self, ticket: Ticket, error: &str) {
        let Some(index) = self.fresh.iter().position(|fresh| fresh.ticket == ticket) else { return };
        // Those after it cannot be written without it.
        for fresh in self.fresh.split_off(index).into_iter().rev() {
            self.ledger.roll_back(fresh.entry.position.counter);
            self.has_left &= fresh.invalidation != Invalidation::Leave;
            if let Some(command) = fresh.command {
                self.answer(command.request, Answer::Refused(format!("it could not be written: {error}")));
            }
        }
    }

    /// This node's cache has applied an own entry.
    pub(super) fn applied_here(&mut self, counter: u64, objects: u64) {
        let Some(command) = self.commands.get_mut(&counter) else { return };
        command.objects = Some(objects);
        if command.until_ms.is_none() {
            let Some(command) = self.commands.remove(&counter) else { return };
            self.answer(command.request, Answer::Kept { position: command.position, objects });
        } else {
            let after_ms = self.now.monotone_ms.saturating_sub(command.began_ms);
            command.receipts.insert(self.config.node.clone(), (Some(after_ms), Some(objects)));
            self.confirmations_changed();
        }
    }

    /// A member reports its place among the own entries. `is_closed`: it knows no member that is
    /// unknown here.
    pub(super) fn confirmed(&mut self, node: &NodeId, reported: Position, is_closed: bool) {
        let place = self.ledger.place(reported);
        if place == Place::Foreign {
            return self.begin_anew(reported.counter);
        }
        let now_ms = self.now.monotone_ms;
        let durable = self.ledger.durable().counter;
        let Some(member) = self.roster.get_mut(node) else { return };
        let has_moved = member.confirmed.is_none_or(|before| before != reported);
        member.confirmed = Some(reported);
        if reported.counter >= durable {
            (member.stalled_since_ms, member.sent_through, member.patience_ms) = (None, 0, 0);
        } else if has_moved || member.stalled_since_ms.is_none() {
            member.stalled_since_ms = Some(now_ms);
            member.patience_ms = 0;
        }
        let is_on_chain = place == Place::OnChain;
        if !is_on_chain || reported.counter < member.confirmed_closed {
            member.confirmed_closed = if is_on_chain { reported.counter } else { 0 };
        } else if is_closed {
            member.confirmed_closed = reported.counter;
        }
        // In the middle of a repair, the next part follows at once.
        let goes_on = member.sent_through > 0 && reported.counter + FLEET_RESEND_MAX / 2 >= member.sent_through;
        if has_moved && goes_on && reported.counter < durable {
            self.resend(&node.clone());
        }
        if has_moved || is_closed {
            self.confirmations_changed();
        }
    }

    /// Completes waits, after the roster or a confirmation has changed.
    pub(super) fn confirmations_changed(&mut self) {
        let now_ms = self.now.monotone_ms;
        let mut complete = Vec::new();
        for (counter, command) in self.commands.iter_mut().filter(|(_, command)| command.until_ms.is_some()) {
            let mut is_complete = command.objects.is_some() && self.is_joined;
            for (node, member) in self.roster.iter().filter(|(_, member)| !member.has_left) {
                if member.confirmed_closed < *counter {
                    is_complete = false;
                } else {
                    let after_ms = now_ms.saturating_sub(command.began_ms);
                    command.receipts.entry(node.clone()).or_default().0.get_or_insert(after_ms);
                }
            }
            if is_complete {
                complete.push(*counter);
            }
        }
        for counter in complete {
            self.end_wait(counter, true);
        }
    }

    /// Ends waits whose time is over.
    pub(super) fn end_waits(&mut self) {
        let now_ms = self.now.monotone_ms;
        let is_over = |command: &Command| command.until_ms.is_some_and(|until| until <= now_ms);
        let over: Vec<u64> =
            self.commands.iter().filter(|(_, command)| is_over(command)).map(|(counter, _)| *counter).collect();
        over.into_iter().for_each(|counter| self.end_wait(counter, false));
    }

    fn end_wait(&mut self, counter: u64, is_complete: bool) {
        let Some(command) = self.commands.remove(&counter) else { return };
        let members = self.roster.iter().filter(|(_, member)| !member.has_left).map(|(node, _)| node);
        let receipts: Vec<Receipt> = [&self.config.node]
            .into_iter()
            .chain(members)
            .map(|node| {
                let (applied_after_ms, objects) = command.receipts.get(node).copied().unwrap_or_default();
                Receipt { node: node.clone(), applied_after_ms, objects }
            })
            .collect();
        let is_missing = receipts.iter().any(|receipt| receipt.applied_after_ms.is_none());
        let why = match (is_complete, is_missing) {
            (true, _) | (false, true) => None,
            (false, false) if !self.is_joined => Some("this node has not joined its fleet yet"),
            (false, false) => Some("a member has not confirmed the list of members"),
        };
        let why = why.map(str::to_owned);
        let answer = Answer::Waited { position: command.position, receipts, is_complete, why };
        self.answer(command.request, answer);
    }

    /// Removes entries from the outbox: those that all members have confirmed, and those that are
    /// too many or too old.
    pub(super) fn trim(&mut self) {
        let own = self.own.durable().counter;
        let members = self.roster.values().filter(|member| !member.has_left);
        let places = members.map(|member| match member.confirmed {
            Some(confirmed) if self.ledger.place(confirmed) == Place::OnChain => confirmed.counter,
            Some(_) | None => 0,
        });
        let confirmed = places.fold(own, u64::min);
        let since_ms = self.now.wall_ms.saturating_sub(self.config.history_ms);
        let surplus = self.ledger.surplus(self.config.outbox_entries_max, self.config.outbox_bytes_max, since_ms);
        let before = self.ledger.floor().counter;
        if surplus > confirmed.max(before) {
            // A part at once, since each time everything is removed somewhere.
            let through = surplus + (self.ledger.len() / 64) as u64;
            if self.ledger.raise_floor(through) {
                let through = self.ledger.floor().counter;
                self.counters.unconfirmed_dropped += through - confirmed.max(before);
                self.report(Report::Dropping(Loss::History, self.config.node.clone()));
                self.write_floor();
            }
            return;
        }
        let since_written = self.now.monotone_ms.saturating_sub(self.floor_written_ms);
        let is_worth_it = since_written >= FLOOR_MS || confirmed.saturating_sub(before) >= FLEET_RESEND_MAX;
        if is_worth_it && self.ledger.raise_floor(confirmed) {
            self.write_floor();
        }
    }

    fn write_floor(&mut self) {
        self.floor_written_ms = self.now.monotone_ms;
        self.write(Record::Floor(self.ledger.floor()), Pending::Other);
    }

    /// Publishes an entry that has just become durable.
    fn publish(&mut self, entry: &Entry) {
        let position = entry.position;
        let has_room = self.in_flight.len() < FLEET_PUBLISHING_MAX as usize;
        if !(self.watchdog.is_connected() && has_room && self.unpublished.is_empty()) {
            return self.push_unpublished(position.counter..=position.counter);
        }
        if let Some(bytes) = self.seal_entry(entry) {
            self.in_flight.insert(position.counter);
            self.outputs.push_back(Output::Publish { position, bytes });
        }
    }

    fn push_unpublished(&mut self, counters: RangeInclusive<u64>) {
        match self.unpublished.back_mut() {
            Some(last) if last.end() + 1 == *counters.start() => *last = *last.start()..=*counters.end(),
            Some(_) | None => self.unpublished.push_back(counters),
        }
    }

    pub(super) fn unpublish(&mut self, counter: u64) {
        if self.in_flight.remove(&counter) {
            self.publish_retry_ms = self.now.monotone_ms + PUBLISH_RETRY_MS;
            self.push_unpublished(counter..=counter);
        }
    }

    /// The connection is lost: entries on their way may not have arrived.
    pub(super) fn unpublish_all(&mut self) {
        for counter in std::mem::take(&mut self.in_flight) {
            self.push_unpublished(counter..=counter);
        }
    }

    /// Publishes entries that are waiting for the stream.
    pub(super) fn pump(&mut self) {
        if !self.watchdog.is_connected() || self.now.monotone_ms < self.publish_retry_ms {
            return;
        }
        let floor = self.ledger.floor().counter;
        while let Some(range) = self.unpublished.front_mut() {
            let room = FLEET_PUBLISHING_MAX.saturating_sub(self.in_flight.len() as u64);
            let (first, end) = (*range.start().max(&(floor + 1)), *range.end());
            if first > end {
                self.unpublished.pop_front();
                continue;
            }
            if room == 0 {
                break;
            }
            let last = end.min(first + room - 1);
            if last == end {
                self.unpublished.pop_front();
            } else {
                *range = last + 1..=end;
            }
            self.in_flight.extend(first..=last);
            self.outputs.push_back(Output::Resend { counters: first..=last, is_stored: true });
        }
    }

    pub(super) fn resend_to_all(&mut self) {
        let now_ms = self.now.monotone_ms;
        let is_due = |since: u64, patience: u64| now_ms.saturating_sub(since) >= STALL_MS.max(patience);
        let due: Vec<NodeId> = self
            .roster
            .iter()
            .filter(|(_, member)| {
                let is_stalled = member.stalled_since_ms.is_some_and(|since| is_due(since, member.patience_ms));
                is_stalled && member.is_heard(now_ms, self.config.lost_after_ms)
            })
            .map(|(node, _)| node.clone())
            .collect();
        due.iter().for_each(|node| self.resend(node));
    }

    /// Sends entries again that a member misses, past the stream.
    fn resend(&mut self, node: &NodeId) {
        if !self.watchdog.is_connected() {
            return;
        }
        let now_ms = self.now.monotone_ms;
        let (floor, durable) = (self.ledger.floor(), self.ledger.durable().counter);
        let Some(member) = self.roster.get_mut(node) else { return };
        let Some(confirmed) = member.confirmed else { return };
        member.stalled_since_ms = Some(now_ms);
        member.patience_ms = (member.patience_ms * 2).clamp(STALL_MS, PATIENCE_MS_MAX);
        let first = confirmed.counter.max(floor.counter) + 1;
        let last = durable.min(first + FLEET_RESEND_MAX - 1);
        member.sent_through = last;
        if confirmed.counter < floor.counter && !self.ledger.begins_anew() {
            self.send_floor(floor);
        }
        let (sent_first, sent_last, sent_ms) = self.last_resend;
        let is_repeated = sent_first <= first && last <= sent_last && now_ms.saturating_sub(sent_ms) < STALL_MS;
        if first <= last && !is_repeated {
            self.last_resend = (first, last, now_ms);
            self.counters.resent += last - first + 1;
            self.outputs.push_back(Output::Resend { counters: first..=last, is_stored: false });
        }
    }

    /// Entries up to the floor are gone: everything has to be removed instead.
    fn send_floor(&mut self, floor: Position) {
        let entry = Entry {
            position: floor,
            after: Incarnation::default(),
            wall_ms: self.now.wall_ms,
            invalidation: Invalidation::Everything.encode(),
        };
        if let Some(bytes) = self.seal_entry(&entry) {
            self.outputs.push_back(Output::Send(crate::exchange::Channel::Control, bytes));
        }
    }
}
