//! Messages of other nodes.

use super::intake::Arrival;
use super::roster::Member;
use super::{Application, Node, Pending, REFUSED_LINE_MS};
use crate::envelope::Envelope;
use crate::exchange::Report;
use crate::identity::{COUNTER_MAX, Incarnation, NodeId, Position};
use crate::invalidation::Invalidation;
use crate::message::{Acknowledgement, Body, Heartbeat, Listed, Standing};
use crate::record::{KeptForgotten, KeptMember, Record};
use surface::fleet::MessageRefusal;
use surface::limits::{FLEET_FORGOTTEN_MAX, FLEET_NODES_MAX};

impl Node {
    pub(super) fn receive(&mut self, bytes: &[u8], sequence: Option<u64>) {
        let result = match Envelope::open(bytes, self.config.fleet, &self.keys) {
            Ok(envelope) => self.open(envelope),
            Err(refusal) => Err(refusal),
        };
        self.watchdog.heard(sequence, self.now.monotone_ms);
        if let Err(refusal) = result {
            self.refuse(refusal);
        }
    }

    fn refuse(&mut self, refusal: MessageRefusal) {
        let index = refusal as usize;
        self.counters.refused[index] += 1;
        let now_ms = self.now.monotone_ms;
        let is_first = self.counters.refused[index] == 1;
        if is_first || now_ms.saturating_sub(self.refused_ms[index]) >= REFUSED_LINE_MS {
            self.refused_ms[index] = now_ms;
            self.report(Report::Refused(refusal));
        }
    }

    fn open(&mut self, envelope: Envelope) -> Result<(), MessageRefusal> {
        let Envelope { node, incarnation, counter, wall_ms, body, .. } = envelope;
        if counter > COUNTER_MAX {
            return Err(MessageRefusal::Form);
        }
        if node == self.config.node {
            self.open_own(incarnation, counter, &body);
            return Ok(());
        }
        if self.forgotten.iter().any(|other| other.node == node && incarnation <= other.incarnation) {
            return Err(MessageRefusal::Forgotten);
        }
        match body {
            Body::Entry { after, invalidation } => {
                self.entry(&node, Position { counter, incarnation }, after, &invalidation)
            }
            Body::Heartbeat(heartbeat) => {
                let is_valid = heartbeat.last.counter <= COUNTER_MAX
                    && heartbeat.members.iter().all(|listed| listed.applied.counter <= COUNTER_MAX);
                if !is_valid {
                    return Err(MessageRefusal::Form);
                }
                self.fresh_message(&node, incarnation, counter, wall_ms)?;
                self.heartbeat(&node, heartbeat);
                Ok(())
            }
            Body::Acknowledgement(acknowledgement) => {
                self.fresh_message(&node, incarnation, counter, wall_ms)?;
                self.acknowledgement(&node, acknowledgement)
            }
        }
    }

    /// A message with this node's name: an echo, an old entry, or another process with its name.
    fn open_own(&mut self, incarnation: Incarnation, counter: u64, body: &Body) {
        if matches!(body, Body::Entry { .. }) {
            return;
        }
        if incarnation == self.incarnation && counter > self.echo && counter <= self.messages {
            self.echo = counter;
            self.contact();
        }
        if incarnation > self.incarnation {
            if self.rival_ms.is_none() {
                self.report(Report::NameInUse);
            }
            self.rival_ms = Some(self.now.monotone_ms);
        }
    }

    fn contact(&mut self) {
        if self.now.monotone_ms.saturating_sub(self.contact_ms) >= self.config.lost_after_ms {
            self.contact_since_ms = self.now.monotone_ms;
        }
        self.contact_ms = self.now.monotone_ms;
    }

    /// Takes note of a message that is not an entry, and of its sender.
    fn fresh_message(
        &mut self,
        node: &NodeId,
        incarnation: Incarnation,
        counter: u64,
        wall_ms: u64,
    ) -> Result<(), MessageRefusal> {
        if !self.roster.contains_key(node) {
            self.add_member(node, incarnation)?;
        }
        let now_ms = self.now.monotone_ms;
        let skew_ms = wall_ms as i64 - self.now.wall_ms as i64;
        let Some(member) = self.roster.get_mut(node) else { return Err(MessageRefusal::Unknown) };
        if (incarnation, counter) <= (member.incarnation, member.latest) {
            return Err(MessageRefusal::Replay);
        }
        let is_new_run = incarnation != member.incarnation;
        let was_heard = member.heard_ms.is_some() && !is_new_run;
        member.incarnation = incarnation;
        member.latest = counter;
        member.heard_ms = Some(now_ms);
        member.skew_ms = skew_ms;
        if is_new_run {
            (member.has_left, member.is_durable, member.is_mutual) = (false, false, false);
            member.intake.leave = 0;
            self.write_member(node);
        }
        if !was_heard {
            self.is_heartbeat_due = true;
            self.report(Report::Member(node.clone()));
        }
        self.contact();
        Ok(())
    }

    /// Adds a member, unless there are too many.
    fn add_member(&mut self, node: &NodeId, incarnation: Incarnation) -> Result<(), MessageRefusal> {
        if self.roster.len() + 1 >= FLEET_NODES_MAX {
            return Err(MessageRefusal::TooManyNodes);
        }
        // A node that returns goes on where it was when it was removed.
        let index = self.forgotten.iter().position(|other| other.node == *node);
        let former = index.and_then(|index| self.forgotten.remove(index));
        let applied = former.map(|former| former.applied).unwrap_or_default();
        let kept = KeptMember { incarnation, applied, has_left: false };
        self.roster.insert(node.clone(), Member::new(&kept, false));
        self.write_member(node);
        Ok(())
    }

    /// An operator has removed a member.
    pub(super) fn remove_member(&mut self, node: &NodeId, incarnation: Incarnation) {
        if *node == self.config.node {
            if incarnation >= self.incarnation {
                self.expel(incarnation);
            }
            return;
        }
        let member = self.roster.remove(node);
        let of_member = member.as_ref().map(|member| (member.incarnation, member.intake.durable()));
        let (latest, applied) = of_member.unwrap_or_default();
        self.forgotten.retain(|other| other.node != *node);
        let forgotten = KeptForgotten { node: node.clone(), incarnation: latest.max(incarnation), applied };
        self.forgotten.push_back(forgotten.clone());
        if self.forgotten.len() > FLEET_FORGOTTEN_MAX {
            self.forgotten.pop_front();
        }
        self.write(Record::Forgotten(forgotten), Pending::Other);
        self.report(Report::Forgotten(node.clone()));
        self.is_heartbeat_due = true;
        self.confirmations_changed();
    }

    fn entry(
        &mut self,
        node: &NodeId,
        position: Position,
        after: Incarnation,
        encoded: &[u8],
    ) -> Result<(), MessageRefusal> {
        let Some(member) = self.roster.get_mut(node) else { return Err(MessageRefusal::Unknown) };
        if position.counter == 0 {
            return Err(MessageRefusal::Form);
        }
        let publisher = Some(node.clone());
        let invalidation = Invalidation::decode(encoded);
        if invalidation == Some(Invalidation::Everything) {
            if position.counter <= member.intake.applied().counter {
                self.counters.duplicates += 1;
                return Ok(());
            }
            let application = Application::Jump { publisher, position };
            if !self.is_jumping(&application) {
                self.counters.drops += 1;
                self.report(Report::Dropping(crate::exchange::Loss::History, node.clone()));
                self.apply(Invalidation::Everything, application);
            }
            return Ok(());
        }
        match member.intake.arrive(position.counter) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.counters.duplicates += 1;
                return Ok(());
            }
            Arrival::TooFarAhead => return Err(MessageRefusal::TooFarAhead),
        }
        if invalidation == Some(Invalidation::Leave) {
            member.intake.leave = position.counter;
        }
        self.apply_entry(publisher, position, after, invalidation);
        Ok(())
    }

    fn is_jumping(&self, to: &Application) -> bool {
        let Application::Jump { publisher, position } = to else { return false };
        self.applications.values().any(|other| {
            matches!(other, Application::Jump { publisher: by, position: at } if by == publisher && at == position)
        })
    }

    /// Passes an entry to the cache, if it concerns it. `None` = of an unknown kind.
    pub(super) fn apply_entry(
        &mut self,
        publisher: Option<NodeId>,
        position: Position,
        after: Incarnation,
        invalidation: Option<Invalidation>,
    ) {
        let Some(invalidation) = invalidation else {
            // A kind of a later version.
            self.counters.drops += 1;
            let name = publisher.clone().unwrap_or_else(|| self.config.node.clone());
            self.report(Report::Dropping(crate::exchange::Loss::Unknown, name));
            let invalidation = Invalidation::Everything;
            self.apply(Invalidation::Everything, Application::Entry { publisher, position, after, invalidation });
            return;
        };
        let for_cache = match &invalidation {
            Invalidation::Leave => None,
            // The entries of a node that left in order are all applied.
            Invalidation::Forget { node, .. } if self.roster.get(node).is_some_and(|member| member.has_left) => None,
            Invalidation::Forget { node, .. } => {
                self.counters.drops += 1;
                self.report(Report::Dropping(crate::exchange::Loss::Forgotten, node.clone()));
                Some(Invalidation::Everything)
            }
            Invalidation::Url { .. }
            | Invalidation::Key { .. }
            | Invalidation::Prefix { .. }
            | Invalidation::Tags { .. }
            | Invalidation::Ban { .. }
            | Invalidation::Everything => Some(invalidation.clone()),
        };
        match for_cache {
            Some(order) => self.apply(order, Application::Entry { publisher, position, after, invalidation }),
            None => {
                self.counters.applied[invalidation.kind() as usize] += 1;
                self.entry_applied(publisher.as_ref(), position, after, &invalidation, 0);
                self.progress(publisher.as_ref());
            }
        }
    }

    fn heartbeat(&mut self, node: &NodeId, heartbeat: Heartbeat) {
        self.watchdog.suspect(heartbeat.stream);
        // First its members, so that its confirmation counts only together with them.
        let mut is_closed = true;
        for listed in &heartbeat.members {
            is_closed &= self.listed(listed);
        }
        let own = heartbeat.members.iter().find(|listed| listed.node == self.config.node).cloned();
        let mutual =
            own.as_ref().filter(|own| own.incarnation == self.incarnation && own.standing != Standing::Forgotten);
        let is_mutual = mutual.is_some();
        if let Some(member) = self.roster.get_mut(node) {
            member.claim(heartbeat.last);
            member.is_mutual = is_mutual;
            member.seen = Some(heartbeat);
        }
        let Some(own) = own else { return };
        let has_rival = self.has_rival();
        if own.standing == Standing::Forgotten && own.incarnation >= self.incarnation {
            self.expel(own.incarnation);
        } else if own.incarnation > self.incarnation && !has_rival {
            // This node's state is an older copy.
            self.start_anew(own.incarnation);
        } else if own.standing != Standing::Forgotten {
            self.confirmed(node, own.applied, is_closed);
        }
    }

    /// A node in a list. False if it is a member there and cannot be one here.
    fn listed(&mut self, listed: &Listed) -> bool {
        let Listed { node, incarnation, applied, standing } = listed;
        if *node == self.config.node {
            return true;
        }
        if *standing == Standing::Forgotten {
            return true;
        }
        if self.forgotten.iter().any(|other| other.node == *node && *incarnation <= other.incarnation) {
            return true;
        }
        if !self.roster.contains_key(node) && self.add_member(node, *incarnation).is_err() {
            return false;
        }
        if let Some(member) = self.roster.get_mut(node) {
            member.claim(*applied);
        }
        true
    }

    fn acknowledgement(&mut self, node: &NodeId, acknowledgement: Acknowledgement) -> Result<(), MessageRefusal> {
        let Acknowledgement { publisher, applied, objects, roster } = acknowledgement;
        if applied.counter > COUNTER_MAX {
            return Err(MessageRefusal::Form);
        }
        if publisher != self.config.node {
            if let Some(member) = self.roster.get_mut(&publisher) {
                member.claim(applied);
            }
            return Ok(());
        }
        for (counter, objects) in objects {
            if let Some(command) = self.commands.get_mut(&counter) {
                command.receipts.entry(node.clone()).or_default().1 = Some(objects);
            }
        }
        let is_closed = roster == self.roster_digest();
        self.confirmed(node, applied, is_closed);
        Ok(())
    }
}
