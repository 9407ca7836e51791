//! Joining, being out of contact, returning: the conditions under which the cache may serve.

use super::Node;
use super::roster::{Member, standing};
use crate::exchange::{Loss, Output, Serving};
use crate::identity::{Incarnation, NodeId, Position};
use crate::message::Standing;
use surface::fleet::WhenLost;

/// Time in contact without a member in step after which new nodes found a fleet, in milliseconds.
const FOUND_MS: u64 = 5000;

impl Node {
    /// Decides anew about joining and serving.
    pub(super) fn judge(&mut self) {
        let serving = self.judged();
        if serving != self.serving {
            self.serving = serving;
            self.outputs.push_back(Output::Serve(serving));
        }
    }

    fn judged(&mut self) -> Serving {
        let now_ms = self.now.monotone_ms;
        if self.has_left || self.has_rival() {
            return Serving::Joining;
        }
        let is_lost = now_ms.saturating_sub(self.contact_ms) >= self.config.lost_after_ms;
        let in_contact_ms = now_ms.saturating_sub(self.contact_since_ms);
        if !is_lost && !self.is_joined {
            self.try_to_join(in_contact_ms);
        }
        if self.is_dropping() && !self.is_joined {
            return Serving::Joining;
        }
        if self.is_joined {
            let behind_ms = self.await_entries();
            self.adopt_forgotten(behind_ms);
            return match behind_ms {
                _ if is_lost => self.lost(self.contact_ms),
                Some(behind_ms) if behind_ms >= self.config.lost_after_ms => Serving::Behind,
                Some(_) | None => Serving::InStep,
            };
        }
        if !self.is_established {
            return Serving::Joining;
        }
        let since_start_ms = now_ms.saturating_sub(self.started_ms);
        let has_peer = self.roster.values().any(|member| self.is_heard(member) && member.is_mutual);
        if since_start_ms >= self.config.join_timeout_ms && (is_lost || !has_peer) {
            // A member: every wait includes this node.
            return self.lost(self.started_ms);
        }
        if self.is_continued && since_start_ms < self.config.lost_after_ms {
            return Serving::InStep;
        }
        Serving::Joining
    }

    fn lost(&self, since_ms: u64) -> Serving {
        match self.config.when_lost {
            WhenLost::Serve => Serving::LostServe { since_ms },
            WhenLost::StaleLimit => Serving::LostStaleLimit { since_ms },
            WhenLost::Refuse => Serving::LostRefuse { since_ms },
        }
    }

    pub(super) fn has_rival(&self) -> bool {
        let since = self.rival_ms.map(|rival| self.now.monotone_ms.saturating_sub(rival));
        since.is_some_and(|since| since < self.config.lost_after_ms)
    }

    fn is_heard(&self, member: &Member) -> bool {
        member.is_heard(self.now.monotone_ms, self.config.lost_after_ms)
    }

    /// The conditions of the specification, "Joining / returning".
    fn try_to_join(&mut self, in_contact_ms: u64) {
        let is_over = in_contact_ms >= self.config.join_timeout_ms;
        let heard = || self.roster.values().filter(|member| self.is_heard(member));
        let mutual = || heard().filter(|member| member.is_mutual);
        let introduces = |member: &Member| member.seen.as_ref().is_some_and(|seen| seen.is_established);
        let is_listed = mutual().any(introduces) && (is_over || heard().all(|member| member.is_mutual));
        if !is_listed && !self.may_found(in_contact_ms) {
            return;
        }
        let is_known = self.roster.values().all(|member| member.is_durable);
        let is_missed = |node: &NodeId| {
            mutual().count() > 0 && mutual().all(|member| standing(member, node) == Some(Standing::Missing))
        };
        let is_everyone_heard = self
            .roster
            .iter()
            .all(|(node, member)| self.is_heard(member) || member.has_left || is_over || is_missed(node));
        if !is_known || !is_everyone_heard || self.is_dropping() {
            return;
        }
        if !is_listed {
            // The first node of a fleet: whatever it stored before concerns no other node.
            self.is_emptied = true;
        }
        let behind = self.targets(|member| member.is_behind());
        if !self.is_emptied {
            let targets = self.targets(|_| true);
            return self.drop_everything(targets, Loss::New);
        }
        if !behind.is_empty() {
            if is_over {
                self.drop_everything(behind, Loss::Unreachable);
            }
            return;
        }
        self.is_joined = true;
        if !self.is_established {
            self.is_established = true;
            self.write_own();
        }
        self.is_heartbeat_due = true;
        self.confirmations_changed();
    }

    /// The last known entries of members.
    fn targets(&self, is_meant: impl Fn(&Member) -> bool) -> Vec<(Option<NodeId>, Position)> {
        let meant = self.roster.iter().filter(|(_, member)| is_meant(member));
        meant.map(|(node, member)| (Some(node.clone()), member.claimed)).collect()
    }

    /// True if no member is in step anywhere, and it is for this node to begin: a fleet that was
    /// alone before, or the first by name of new nodes that hear one another.
    fn may_found(&self, in_contact_ms: u64) -> bool {
        let is_connected = self.watchdog.is_connected() && self.echo > 0;
        if in_contact_ms < FOUND_MS || !is_connected {
            return false;
        }
        let is_new =
            |member: &Member| self.is_heard(member) && member.seen.as_ref().is_some_and(|seen| !seen.is_established);
        let members = || self.roster.iter().filter(|(_, member)| !member.has_left);
        if self.is_established {
            return members().all(|(_, member)| is_new(member));
        }
        members().all(|(node, member)| is_new(member) && self.config.node < *node)
    }

    /// Follows entries that were told of and do not come: the longest time for which one of them is
    /// awaited, in milliseconds. After the time for joining, everything is removed instead.
    fn await_entries(&mut self) -> Option<u64> {
        let now_ms = self.now.monotone_ms;
        let mut longest = None;
        for member in self.roster.values_mut() {
            let durable = member.intake.durable().counter;
            if member.awaited.is_none_or(|(counter, _)| durable >= counter) {
                member.awaited = member.is_behind().then_some((member.claimed.counter, now_ms));
            }
            let waited_ms = member.awaited.map(|(_, since)| now_ms.saturating_sub(since));
            longest = longest.max(waited_ms);
        }
        if longest.is_some_and(|waited| waited >= self.config.join_timeout_ms) && !self.is_dropping() {
            let behind = self.targets(|member| member.awaited.is_some());
            self.drop_everything(behind, Loss::Unreachable);
        }
        longest
    }

    /// Removes members that all others have removed, although the entry for it was replaced by the
    /// removal of everything here.
    fn adopt_forgotten(&mut self, behind_ms: Option<u64>) {
        if behind_ms.is_some() || self.is_dropping() {
            return;
        }
        let mutual: Vec<&Member> =
            self.roster.values().filter(|member| self.is_heard(member) && member.is_mutual).collect();
        let is_forgotten = |node: &NodeId| {
            !mutual.is_empty() && mutual.iter().all(|member| standing(member, node) == Some(Standing::Forgotten))
        };
        let gone: Vec<(NodeId, Incarnation)> = self
            .roster
            .iter()
            .filter(|(node, member)| !self.is_heard(member) && is_forgotten(node))
            .map(|(node, member)| (node.clone(), member.incarnation))
            .collect();
        for (node, incarnation) in gone {
            self.drop_everything(Vec::new(), Loss::Forgotten);
            self.remove_member(&node, incarnation);
        }
    }

    /// This node was removed from the fleet: it joins again as a new member.
    pub(super) fn expel(&mut self, incarnation: Incarnation) {
        (self.is_established, self.is_emptied) = (false, false);
        self.counters.drops += 1;
        let node = self.config.node.clone();
        self.report(crate::exchange::Report::Dropping(Loss::Expelled, node));
        self.start_anew(incarnation);
    }

    /// Begins a run later than this one, and joins again.
    pub(super) fn start_anew(&mut self, latest: Incarnation) {
        let random = self.random();
        self.incarnation = Incarnation::after(latest.max(self.incarnation), random);
        (self.is_joined, self.is_continued) = (false, false);
        (self.messages, self.echo) = (0, 0);
        (self.started_ms, self.contact_since_ms) = (self.now.monotone_ms, self.now.monotone_ms);
        self.roster.values_mut().for_each(|member| member.is_mutual = false);
        self.is_heartbeat_due = true;
        self.write_own();
        self.judge();
    }
}
