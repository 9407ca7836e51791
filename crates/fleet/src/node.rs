//! A node of a fleet: the machine that decides when an invalidation is confirmed, sent again or
//! replaced by the removal of everything, and when the cache may serve.
//!
//! ```text
//! own entry     written ──durable──▶ published, applied here ──all members confirm──▶ dropped
//! other's entry received ──cache has applied it──▶ position written ──durable──▶ confirmed
//! serving       joining ──all heard members list this run, all their entries are here──▶ in step
//!               in step ──silence──▶ lost ──contact──▶ in step ──entries do not come──▶ behind
//! ```
//!
//! *Invariants*: nothing is published or confirmed before it is durable. A position is confirmed
//! only if no entry before it is missing. A node serves as a member only after a member that is in
//! step has listed it, durably: from then on every wait, of any publisher, waits for it too, since
//! each confirmation that counts names no member that the publisher does not know.
//!
//! Next: `intake` (others' entries), `ledger` (own ones), `roster`, `watchdog`; then the parts of
//! the machine: `receive`, `publish`, `join`.

mod intake;
mod ledger;
mod roster;
mod watchdog;

mod join;
mod publish;
mod receive;

use crate::counters::{Counters, MemberStatus, Status};
use crate::envelope::{Envelope, Keys};
use crate::exchange::{ApplyId, Channel, Config, Input, Loss, Output, Report, RequestId, Serving, Start, Ticket};
use crate::identity::{Incarnation, NodeId, Now, Position};
use crate::invalidation::Invalidation;
use crate::message::{Acknowledgement, Body, Heartbeat, Listed, Standing, roster_digest};
use crate::record::{CacheMark, Entry, Kept, KeptForgotten, Record};
use intake::Intake;
use ledger::Ledger;
use roster::{Member, Roster};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use surface::fleet::{MessageRefusal, WhenLost};
use watchdog::{Order, Watchdog};

/// Time between two heartbeats, in milliseconds.
const HEARTBEAT_MS: u64 = 1000;
/// Shortest time between two heartbeats, in milliseconds.
const HEARTBEAT_MIN_MS: u64 = 100;
/// Time for which an entry may be missing before others are asked for it, in milliseconds.
const HOLE_MS: u64 = 200;
/// Time between two attempts to write what could not be written, in milliseconds.
const RETRY_MS: u64 = 1000;
/// Time between two lines about refused messages of one cause, in milliseconds.
const REFUSED_LINE_MS: u64 = 10_000;

/// An application that the cache has not confirmed.
enum Application {
    /// An entry of a publisher (`None` = this node).
    Entry { publisher: Option<NodeId>, position: Position, after: Incarnation, invalidation: Invalidation },
    /// Removal of everything that stands for all entries of a publisher up to this one.
    Jump { publisher: Option<NodeId>, position: Position },
    /// Removal of everything that stands for entries of several publishers, or for none.
    Drop { jumps: Vec<(Option<NodeId>, Position)>, is_for_joining: bool },
}

/// The effect of a write that becomes durable.
enum Pending {
    Entry,
    Applied(Option<NodeId>),
    Member(NodeId),
    Own { is_established: bool },
    Other,
}

/// An own entry that is not durable.
struct Fresh {
    ticket: Ticket,
    entry: Entry,
    invalidation: Invalidation,
    command: Option<Command>,
}

/// A command that waits for its answer.
struct Command {
    request: RequestId,
    began_ms: u64,
    /// End of the wait; `None` = it is answered as soon as it is applied here.
    until_ms: Option<u64>,
    position: Position,
    /// Objects removed here, when applied.
    objects: Option<u64>,
    /// Milliseconds and objects, by member.
    receipts: BTreeMap<NodeId, (Option<u64>, Option<u64>)>,
}

/// A node of a fleet.
pub struct Node {
    config: Config,
    keys: Keys,
    now: Now,
    started_ms: u64,
    random: u64,
    is_continued: bool,
    incarnation: Incarnation,
    /// Number of the last message of this run that is not an entry.
    messages: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
    /// Writes that are not durable yet.
    writes: VecDeque<(Ticket, Pending)>,
    last_ticket: Ticket,
    retry_ms: u64,
    applications: BTreeMap<ApplyId, Application>,
    last_application: ApplyId,
    cache: CacheMark,
    ledger: Ledger,
    own: Intake,
    fresh: VecDeque<Fresh>,
    /// Commands by the number of their entry.
    commands: BTreeMap<u64, Command>,
    in_flight: BTreeSet<u64>,
    unpublished: VecDeque<RangeInclusive<u64>>,
    publish_retry_ms: u64,
    floor_written_ms: u64,
    /// The last entries sent past the stream, and when.
    last_resend: (u64, u64, u64),
    roster: Roster,
    forgotten: VecDeque<KeptForgotten>,
    watchdog: Watchdog,
    stream_written_ms: u64,
    heartbeat_ms: u64,
    is_heartbeat_due: bool,
    refused_ms: [u64; MessageRefusal::ALL.len()],
    /// Last contact with the fleet: a new message of a member, or an own one that came back.
    contact_ms: u64,
    /// Begin of the present contact.
    contact_since_ms: u64,
    echo: u64,
    /// Another process with this name was heard.
    rival_ms: Option<u64>,
    is_established: bool,
    /// `is_established` as it is on the disk.
    is_established_durably: bool,
    is_joined: bool,
    /// Everything was removed to join as a new member.
    is_emptied: bool,
    is_draining: bool,
    has_left: bool,
    serving: Serving,
}

impl Node {
    /// A node with the files that [`crate::Keeper::open`] found. Its first outputs are ready.
    #[must_use]
    pub fn new(config: Config, keys: Keys, kept: Kept, start: Start, now: Now) -> Node {
        let state = kept.state;
        let ledger = Ledger::new(state.floor, kept.first, kept.entries);
        let last_run = state.incarnation.max(ledger.last_run());
        let members = state.members.iter().filter(|(node, _)| **node != config.node);
        let mut node = Node {
            now,
            started_ms: now.monotone_ms,
            random: start.random,
            is_continued: start.is_continued,
            incarnation: Incarnation::after(last_run, start.random),
            messages: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            writes: VecDeque::new(),
            last_ticket: 0,
            retry_ms: 0,
            applications: BTreeMap::new(),
            last_application: 0,
            cache: start.cache,
            ledger,
            own: Intake::new(state.applied),
            fresh: VecDeque::new(),
            commands: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            unpublished: VecDeque::new(),
            publish_retry_ms: 0,
            floor_written_ms: 0,
            last_resend: (0, 0, 0),
            roster: members.map(|(node, kept)| (node.clone(), Member::new(kept, true))).collect(),
            forgotten: state.forgotten,
            watchdog: Watchdog::new(state.stream),
            stream_written_ms: now.monotone_ms,
            heartbeat_ms: 0,
            is_heartbeat_due: true,
            refused_ms: [0; MessageRefusal::ALL.len()],
            contact_ms: now.monotone_ms,
            contact_since_ms: now.monotone_ms,
            echo: 0,
            rival_ms: None,
            is_established: state.is_established,
            is_established_durably: state.is_established,
            is_joined: false,
            is_emptied: state.is_established,
            is_draining: false,
            has_left: false,
            serving: Serving::Joining,
            config,
            keys,
        };
        node.write_own();
        let is_older = start.cache.identity != state.cache.identity || start.cache.sequence < state.cache.sequence;
        if state.cache != CacheMark::default() && is_older {
            node.drop_everything(Vec::new(), Loss::Cache);
        }
        if kept.is_outbox_damaged || kept.is_state_damaged {
            node.report(Report::Damaged);
        }
        let last = node.ledger.last();
        let applied = node.own.applied();
        let is_forked = applied.counter > last.counter
            || node.ledger.at(applied.counter).is_some_and(|at| at != applied && !node.ledger.begins_anew());
        if kept.is_outbox_damaged || is_forked {
            node.begin_anew(applied.counter);
        } else {
            node.take_up(kept.unapplied);
        }
        node
    }

    /// Other parameters, from now on: `fleet_lost_after`, `fleet_when_lost`, `fleet_join_timeout`
    /// and `fleet_history`.
    pub fn set_parameters(&mut self, lost_after_ms: u64, when_lost: WhenLost, join_timeout_ms: u64, history_ms: u64) {
        let config = &mut self.config;
        (config.lost_after_ms, config.when_lost) = (lost_after_ms, when_lost);
        (config.join_timeout_ms, config.history_ms) = (join_timeout_ms, history_ms);
    }

    /// An event at a time. The orders that follow from it are taken with [`Node::next_output`].
    pub fn handle(&mut self, now: Now, input: Input) {
        self.now = now;
        match input {
            Input::Tick => self.tick(),
            Input::Message { bytes, sequence } => self.receive(&bytes, sequence),
            Input::Invalidate { request, invalidation, wait_ms } => self.invalidate(request, invalidation, wait_ms),
            Input::Forget { request, node, wait_ms } => self.forget(request, &node, wait_ms),
            Input::Leave { request, wait_ms } => self.leave(request, wait_ms),
            Input::Drain(is_draining) => {
                self.is_draining = is_draining;
                self.is_heartbeat_due = true;
            }
            Input::Written { through } => self.written(through),
            Input::NotWritten { ticket, error } => self.not_written(ticket, error),
            Input::Applied { id, objects, cache } => self.cache_applied(id, objects, cache),
            Input::NotApplied { id, error } => self.not_applied(id, error),
            Input::Connected => {
                let order = self.watchdog.connected(now.monotone_ms);
                self.obey(order);
                self.is_heartbeat_due = true;
                self.pump();
            }
            Input::Disconnected => {
                self.watchdog.disconnected();
                self.unpublish_all();
            }
            Input::Stream { mark } => {
                let needs_history = self.is_established;
                if let Some(order) = self.watchdog.answered(mark, needs_history, now.monotone_ms) {
                    self.obey(order);
                }
            }
            Input::Published { counter } => {
                self.in_flight.remove(&counter);
                self.pump();
            }
            Input::NotPublished { counter } => self.unpublish(counter),
            Input::OutboxLost => self.begin_anew(0),
        }
    }

    /// The next order, in the order in which they have to be carried out.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The message for an entry that was read from the outbox; `None` if it is too long, which
    /// those that this node wrote are not.
    #[must_use]
    pub fn seal_entry(&self, entry: &Entry) -> Option<Vec<u8>> {
        let envelope = Envelope {
            fleet: self.config.fleet,
            node: self.config.node.clone(),
            incarnation: entry.position.incarnation,
            counter: entry.position.counter,
            wall_ms: entry.wall_ms,
            body: Body::Entry { after: entry.after, invalidation: entry.invalidation.clone() },
        };
        envelope.seal(&self.keys)
    }

    /// The counts.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The conditions under which the cache serves.
    #[must_use]
    pub fn serving(&self) -> Serving {
        self.serving
    }

    /// Received entries that the cache has not applied yet. While there are thousands, the owner
    /// should not read more from the stream: entries too far ahead are refused.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.roster.values().map(|member| member.intake.backlog()).sum::<usize>() + self.own.backlog()
    }

    /// The state, for operators.
    #[must_use]
    pub fn status(&self) -> Status {
        let members = self.roster.iter().map(|(node, member)| {
            let seen = member.seen.as_ref();
            MemberStatus {
                node: node.clone(),
                standing: self.standing(member),
                has_left: member.has_left,
                is_draining: seen.is_some_and(|seen| seen.is_draining),
                is_established: seen.is_some_and(|seen| seen.is_established),
                zone: seen.map(|seen| seen.zone.clone()).unwrap_or_default(),
                address: seen.map(|seen| seen.address.clone()).unwrap_or_default(),
                skew_ms: member.skew_ms,
                missing_here: member.claimed.counter.saturating_sub(member.intake.durable().counter),
                unconfirmed: member.confirmed.map(|at| self.ledger.durable().counter.saturating_sub(at.counter)),
            }
        });
        Status {
            serving: self.serving,
            is_joined: self.is_joined,
            is_draining: self.is_draining,
            incarnation: self.incarnation,
            silent_ms: self.now.monotone_ms.saturating_sub(self.contact_ms),
            outbox_entries: self.ledger.len(),
            outbox_bytes: self.ledger.bytes(),
            backlog: self.backlog(),
            stream: self.watchdog.mark(),
            members: members.collect(),
        }
    }

    fn tick(&mut self) {
        let now_ms = self.now.monotone_ms;
        if let Some(order) = self.watchdog.tick(now_ms) {
            self.obey(order);
        }
        let mut has_hole = false;
        for member in self.roster.values_mut() {
            if !member.intake.has_hole() {
                member.hole_since_ms = None;
            } else if now_ms.saturating_sub(*member.hole_since_ms.get_or_insert(now_ms)) >= HOLE_MS {
                member.hole_since_ms = Some(now_ms);
                self.counters.holes += 1;
                has_hole = true;
            }
        }
        self.is_heartbeat_due |= has_hole;
        if now_ms.saturating_sub(self.retry_ms) >= RETRY_MS {
            self.retry_ms = now_ms;
            self.retry_writes();
        }
        self.pump();
        self.resend_to_all();
        self.trim();
        self.end_waits();
        self.judge();
        self.write_stream();
        let since = now_ms.saturating_sub(self.heartbeat_ms);
        if since >= HEARTBEAT_MS || self.is_heartbeat_due && since >= HEARTBEAT_MIN_MS {
            self.send_heartbeat();
        }
    }

    /// Carries out an order of the watchdog.
    fn obey(&mut self, order: Order) {
        let output = match order {
            Order::Ask => Output::AskStream,
            Order::Consume(from) => Output::Consume { from },
            Order::ConsumeAnew(from) => {
                self.counters.consumers += 1;
                self.report(Report::ConsumerStuck);
                Output::Consume { from }
            }
            Order::Epoch => {
                self.counters.epochs += 1;
                self.report(Report::Epoch);
                self.is_heartbeat_due = true;
                Output::Consume { from: 1 }
            }
            Order::Reconnect => {
                self.counters.reconnects += 1;
                self.unpublish_all();
                Output::Reconnect
            }
        };
        self.outputs.push_back(output);
    }

    fn report(&mut self, report: Report) {
        self.outputs.push_back(Output::Report(report));
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::ring::mix(self.random)
    }

    fn write(&mut self, record: Record, pending: Pending) -> Ticket {
        self.last_ticket += 1;
        self.writes.push_back((self.last_ticket, pending));
        self.outputs.push_back(Output::Write(self.last_ticket, record));
        self.last_ticket
    }

    fn write_own(&mut self) {
        let (incarnation, is_established) = (self.incarnation, self.is_established);
        self.write(Record::Own { incarnation, is_established }, Pending::Own { is_established });
    }

    fn write_member(&mut self, node: &NodeId) {
        let Some(member) = self.roster.get(node) else { return };
        let record = Record::Member { node: node.clone(), member: member.kept() };
        let ticket = self.write(record, Pending::Member(node.clone()));
        if let Some(member) = self.roster.get_mut(node) {
            member.writing = Some(ticket);
        }
    }

    fn write_stream(&mut self) {
        let now_ms = self.now.monotone_ms;
        let is_idle = self.roster.values().all(|member| member.intake.is_idle());
        if is_idle && now_ms.saturating_sub(self.stream_written_ms) >= RETRY_MS * 10 {
            self.stream_written_ms = now_ms;
            self.write(Record::Stream(self.watchdog.mark()), Pending::Other);
        }
    }

    fn written(&mut self, through: Ticket) {
        while let Some((ticket, _)) = self.writes.front() {
            if *ticket > through {
                break;
            }
            let Some((ticket, pending)) = self.writes.pop_front() else { break };
            match pending {
                Pending::Entry => self.entry_is_durable(ticket),
                Pending::Applied(publisher) => self.position_written(publisher.as_ref(), ticket, true),
                Pending::Member(node) => {
                    let member = self.roster.get_mut(&node);
                    if let Some(member) = member.filter(|member| member.writing == Some(ticket)) {
                        (member.is_durable, member.writing) = (true, None);
                        self.is_heartbeat_due = true;
                    }
                }
                Pending::Own { is_established } => self.is_established_durably = is_established,
                Pending::Other => {}
            }
        }
    }

    fn not_written(&mut self, ticket: Ticket, error: String) {
        let Ok(index) = self.writes.binary_search_by_key(&ticket, |write| write.0) else { return };
        let Some((_, pending)) = self.writes.remove(index) else { return };
        match pending {
            Pending::Entry => self.entry_not_written(ticket, &error),
            Pending::Applied(publisher) => self.position_written(publisher.as_ref(), ticket, false),
            Pending::Member(node) => {
                if let Some(member) = self.roster.get_mut(&node) {
                    member.writing = None;
                }
            }
            Pending::Own { .. } | Pending::Other => {}
        }
        self.report(Report::NotWritten(error));
    }

    /// Writes again what could not be written.
    fn retry_writes(&mut self) {
        let is_waiting = |node: &Member| !node.is_durable && node.writing.is_none();
        let members: Vec<NodeId> =
            self.roster.iter().filter(|(_, member)| is_waiting(member)).map(|(node, _)| node.clone()).collect();
        members.iter().for_each(|node| self.write_member(node));
        let publishers: Vec<NodeId> = self.roster.keys().cloned().collect();
        publishers.iter().for_each(|node| self.write_position(Some(node)));
        self.write_position(None);
        let is_writing = self.writes.iter().any(|(_, pending)| matches!(pending, Pending::Own { .. }));
        if self.is_established != self.is_established_durably && !is_writing {
            self.write_own();
        }
    }

    fn intake(&mut self, publisher: Option<&NodeId>) -> Option<&mut Intake> {
        match publisher {
            None => Some(&mut self.own),
            Some(node) => self.roster.get_mut(node).map(|member| &mut member.intake),
        }
    }

    fn apply(&mut self, invalidation: Invalidation, application: Application) {
        self.last_application += 1;
        self.applications.insert(self.last_application, application);
        self.outputs.push_back(Output::Apply(self.last_application, invalidation));
    }

    /// Removes everything, instead of applying entries that are gone.
    fn drop_everything(&mut self, jumps: Vec<(Option<NodeId>, Position)>, loss: Loss) {
        self.counters.drops += 1;
        let node = jumps.first().and_then(|jump| jump.0.clone()).unwrap_or_else(|| self.config.node.clone());
        self.report(Report::Dropping(loss, node));
        let is_for_joining = loss == Loss::New;
        self.apply(Invalidation::Everything, Application::Drop { jumps, is_for_joining });
    }

    fn is_dropping(&self) -> bool {
        self.applications.values().any(|application| matches!(application, Application::Drop { .. }))
    }

    fn cache_applied(&mut self, id: ApplyId, objects: u64, cache: CacheMark) {
        let Some(application) = self.applications.remove(&id) else { return };
        self.cache = cache;
        let mut moved = Vec::new();
        match application {
            Application::Entry { publisher, position, after, invalidation } => {
                self.counters.applied[invalidation.kind() as usize] += 1;
                self.entry_applied(publisher.as_ref(), position, after, &invalidation, objects);
                moved.push(publisher);
            }
            Application::Jump { publisher, position } => {
                self.dropped(objects);
                if let Some(intake) = self.intake(publisher.as_ref()) {
                    intake.jump(position, objects);
                }
                moved.push(publisher);
            }
            Application::Drop { jumps, is_for_joining } => {
                self.dropped(objects);
                for (publisher, position) in jumps {
                    if let Some(intake) = self.intake(publisher.as_ref()) {
                        intake.jump(position, objects);
                    }
                    moved.push(publisher);
                }
                self.is_emptied |= is_for_joining;
            }
        }
        moved.iter().for_each(|publisher| self.progress(publisher.as_ref()));
    }

    fn dropped(&mut self, objects: u64) {
        self.counters.rejoin_dropped_objects += objects;
        self.report(Report::Dropped(objects));
    }

    fn not_applied(&mut self, id: ApplyId, error: String) {
        if let Some(application) = self.applications.remove(&id) {
            self.report(Report::NotApplied(error));
            self.counters.drops += 1;
            self.apply(Invalidation::Everything, application);
        }
    }

    /// The cache has applied an entry: its other effects.
    fn entry_applied(
        &mut self,
        publisher: Option<&NodeId>,
        position: Position,
        after: Incarnation,
        invalidation: &Invalidation,
        objects: u64,
    ) {
        match invalidation {
            Invalidation::Forget { node, incarnation } => self.remove_member(node, *incarnation),
            Invalidation::Leave
            | Invalidation::Everything
            | Invalidation::Url { .. }
            | Invalidation::Key { .. }
            | Invalidation::Prefix { .. }
            | Invalidation::Tags { .. }
            | Invalidation::Ban { .. } => {}
        }
        if publisher.is_none() {
            self.applied_here(position.counter, objects);
        }
        if let Some(intake) = self.intake(publisher) {
            intake.finish(position, after, objects);
        }
    }

    /// Entries of a publisher may have become applied in sequence.
    fn progress(&mut self, publisher: Option<&NodeId>) {
        let Some(intake) = self.intake(publisher) else { return };
        let broken = intake.advance();
        if let Some(position) = broken {
            let name = publisher.unwrap_or(&self.config.node).clone();
            self.counters.drops += 1;
            self.report(Report::Dropping(Loss::Outbox, name));
            self.apply(Invalidation::Everything, Application::Jump { publisher: publisher.cloned(), position });
        }
        if let Some((node, member)) = publisher.and_then(|node| Some((node, self.roster.get_mut(node)?))) {
            let leave = member.intake.leave;
            if leave != 0 && member.intake.applied().counter >= leave && !member.has_left {
                member.has_left = true;
                self.write_member(node);
            }
        }
        self.write_position(publisher);
    }

    fn write_position(&mut self, publisher: Option<&NodeId>) {
        let Some(applied) = self.intake(publisher).and_then(|intake| intake.to_write()) else { return };
        let record = Record::Applied { node: publisher.cloned(), applied, cache: self.cache };
        let ticket = self.write(record, Pending::Applied(publisher.cloned()));
        if let Some(intake) = self.intake(publisher) {
            intake.write_begins(ticket);
        }
    }

    /// A position is durable, or could not be written.
    fn position_written(&mut self, publisher: Option<&NodeId>, ticket: Ticket, is_durable: bool) {
        let Some(intake) = self.intake(publisher) else { return };
        let Some(objects) = intake.write_ends(ticket, is_durable) else { return };
        let applied = intake.durable();
        match publisher {
            Some(node) => {
                let roster = self.roster_digest();
                let publisher = node.clone();
                let acknowledgement = Acknowledgement { publisher, applied, objects, roster };
                self.send(Channel::Acknowledgement, Body::Acknowledgement(acknowledgement));
            }
            None => self.trim(),
        }
        self.write_position(publisher);
    }

    fn roster_digest(&self) -> u64 {
        roster_digest(self.roster.keys().chain([&self.config.node]))
    }

    fn send(&mut self, channel: Channel, body: Body) {
        self.messages += 1;
        let envelope = Envelope {
            fleet: self.config.fleet,
            node: self.config.node.clone(),
            incarnation: self.incarnation,
            counter: self.messages,
            wall_ms: self.now.wall_ms,
            body,
        };
        if let Some(bytes) = envelope.seal(&self.keys) {
            self.outputs.push_back(Output::Send(channel, bytes));
        }
    }

    fn standing(&self, member: &Member) -> Standing {
        let now_ms = self.now.monotone_ms;
        let is_recent = now_ms.saturating_sub(member.heard_ms.unwrap_or(self.started_ms)) < self.config.lost_after_ms;
        if is_recent { Standing::Present } else { Standing::Missing }
    }

    fn send_heartbeat(&mut self) {
        self.heartbeat_ms = self.now.monotone_ms;
        self.is_heartbeat_due = false;
        let durable = self.roster.iter().filter(|(_, member)| member.is_durable);
        let members = durable.map(|(node, member)| Listed {
            node: node.clone(),
            incarnation: member.incarnation,
            applied: member.intake.durable(),
            standing: self.standing(member),
        });
        let forgotten = self.forgotten.iter().map(|forgotten| Listed {
            node: forgotten.node.clone(),
            incarnation: forgotten.incarnation,
            applied: forgotten.applied,
            standing: Standing::Forgotten,
        });
        let heartbeat = Heartbeat {
            stream: self.watchdog.mark(),
            last: self.ledger.durable(),
            is_established: self.is_established && self.is_established_durably,
            is_draining: self.is_draining,
            zone: self.config.zone.clone(),
            address: self.config.address.clone(),
            members: members.chain(forgotten).collect(),
        };
        self.send(Channel::Heartbeat, Body::Heartbeat(heartbeat));
    }
}
