//! Grouping of records into transactions, and of transactions into the groups that a tool reports.
//!
//! A transaction runs from its Begin to its End. In the grouping modes `request` and `session` a
//! transaction hangs below the one that started it, as stated by its own Begin or by the parent's
//! Link; a tree is reported when every transaction in it has ended. Contradictory records don't
//! stop anything: a `VSL` record that describes the problem is added after them.
//!
//! *Invariants:* the parents form a forest (a link that would close a circle is refused and noted);
//! at most `limit` transactions are held: beyond that the oldest unfinished one is ended by force,
//! and so is one older than the time limit. Compat: notes, order (breadth first) and silent drops
//! follow the stock 7.1 tools, see the crate's tests.

use std::collections::{BTreeMap, HashMap, VecDeque};

use surface::tag::Tag;

use super::record::{Record, Records, append_text, first_vxid};
use super::select::Sides;
use super::transaction::{Kind, Reason, Transaction};
use crate::log::VXID_BITS;

/// Grouping of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// Every record by itself.
    Raw,
    /// Every transaction by itself.
    Vxid,
    /// A client request with its backend requests, sub-requests and restarts.
    Request,
    /// A session with all its requests.
    Session,
}

/// Most words that one transaction may collect; further records are dropped.
pub const TRANSACTION_WORDS_MAX: usize = 16 << 20;

/// Gathers chunks into groups.
pub struct Grouper {
    grouping: Grouping,
    sides: Option<Sides>,
    limit: usize,
    timeout_seconds: f64,
    nodes: Vec<Node>,
    free: Vec<usize>,
    by_vxid: HashMap<u64, usize>,
    /// Unfinished transactions by age.
    incomplete: BTreeMap<u64, usize>,
    next_serial: u64,
    ready: VecDeque<Vec<Transaction>>,
}

struct Node {
    vxid: u64,
    kind: Kind,
    reason: Reason,
    began: bool,
    ended: bool,
    serial: u64,
    first_seen: f64,
    parent: Option<usize>,
    children: Vec<usize>,
    children_ready: usize,
    /// Complete with everything below it, and counted in its parent's `children_ready`.
    counted: bool,
    words: Vec<u32>,
}

impl Grouper {
    /// A grouper that holds at most `limit` transactions, each for at most `timeout_seconds`.
    #[must_use]
    pub fn new(grouping: Grouping, limit: usize, timeout_seconds: f64) -> Grouper {
        Grouper {
            grouping,
            sides: None,
            limit,
            timeout_seconds,
            nodes: Vec::new(),
            free: Vec::new(),
            by_vxid: HashMap::new(),
            incomplete: BTreeMap::new(),
            next_serial: 0,
            ready: VecDeque::new(),
        }
    }

    /// Restricts the grouper to these transactions; `None` means all.
    #[must_use]
    pub fn only(self, sides: Option<Sides>) -> Grouper {
        Grouper { sides, ..self }
    }

    /// The next complete group.
    pub fn next_ready(&mut self) -> Option<Vec<Transaction>> {
        self.ready.pop_front()
    }

    /// Takes in a chunk: whole records of one transaction. `now` is a monotonic time in seconds.
    pub fn push(&mut self, words: &[u32], now: f64) {
        if self.grouping == Grouping::Raw {
            self.ready.extend(Records::new(words).map(|record| vec![Transaction::raw(&record)]));
            return;
        }
        let vxid = first_vxid(words);
        if vxid != 0 {
            let begins = words[0] >> 24 == Tag::Begin as u32;
            let node = match self.by_vxid.get(&vxid) {
                Some(node) => Some(*node),
                None if begins && self.is_of_interest(words) => Some(self.add(vxid, now)),
                None => None,
            };
            if let Some(node) = node {
                self.append(node, words, now);
            }
        }
        self.tick(now);
    }

    /// Ends by force transactions that are too old or too many.
    pub fn tick(&mut self, now: f64) {
        while let Some((_, node)) = self.incomplete.first_key_value() {
            if now - self.nodes[*node].first_seen < self.timeout_seconds {
                break;
            }
            self.force(*node, "timeout");
        }
        while self.by_vxid.len() > self.limit {
            let Some((_, node)) = self.incomplete.first_key_value() else { break };
            self.force(*node, "store overflow");
        }
    }

    /// Ends all transactions by force.
    pub fn flush(&mut self) {
        while let Some((_, node)) = self.incomplete.first_key_value() {
            self.force(*node, "flush");
        }
    }

    /// Drops everything: the reader has lost its place.
    pub fn reset(&mut self) {
        *self = Grouper::new(self.grouping, self.limit, self.timeout_seconds).only(self.sides);
    }

    /// True if the transaction that these records begin can be part of the report.
    fn is_of_interest(&self, words: &[u32]) -> bool {
        let Some(begin) = Records::new(words).next() else { return false };
        match (self.grouping, self.sides) {
            (Grouping::Raw | Grouping::Session, _) | (Grouping::Vxid, None) => return true,
            (Grouping::Vxid, Some(sides)) => {
                if !sides.backend && !begin.id.is_client() || !sides.client && !begin.id.is_backend() {
                    return false;
                }
            }
            (Grouping::Request, _) => {}
        }
        match parse_link(begin.text()) {
            None | Some((Kind::Unknown | Kind::Session | Kind::Raw, ..)) => false,
            Some((_, _, reason)) => {
                self.grouping == Grouping::Request || reason != Reason::Esi || self.sides.is_some_and(|sides| sides.esi)
            }
        }
    }

    fn add(&mut self, vxid: u64, now: f64) -> usize {
        let serial = self.next_serial;
        self.next_serial += 1;
        let node = Node {
            vxid,
            kind: Kind::Unknown,
            reason: Reason::Unknown,
            began: false,
            ended: false,
            serial,
            first_seen: now,
            parent: None,
            children: Vec::new(),
            children_ready: 0,
            counted: false,
            words: Vec::new(),
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.by_vxid.insert(vxid, index);
        self.incomplete.insert(serial, index);
        index
    }

    fn append(&mut self, node: usize, words: &[u32], now: f64) {
        let records = Records::new(words);
        let mut rest = words;
        for record in records {
            let count = super::record::record_words(rest[0]);
            if self.nodes[node].words.len() + count <= TRANSACTION_WORDS_MAX {
                self.nodes[node].words.extend_from_slice(&rest[..count]);
            }
            rest = &rest[count..];
            if self.nodes[node].ended {
                continue;
            }
            match record.tag() {
                Some(Tag::Begin) => self.begin(node, &record, now),
                Some(Tag::Link) => self.link(node, &record, now),
                Some(Tag::End) => self.end(node),
                _ => {}
            }
        }
        self.report_if_ready(node);
    }

    fn begin(&mut self, node: usize, record: &Record, now: f64) {
        if self.nodes[node].began {
            return self.note(node, "duplicate begin", Some(record));
        }
        self.nodes[node].began = true;
        let Some((kind, parent_vxid, reason)) = parse_link(record.text()) else {
            return self.note(node, "parse error", Some(record));
        };
        if kind == Kind::Unknown {
            self.note(node, "unknown vxid type", Some(record));
        }
        if self.nodes[node].kind != Kind::Unknown && self.nodes[node].kind != kind {
            self.note(node, "type mismatch", Some(record));
        }
        let this = &mut self.nodes[node];
        this.kind = kind;
        this.reason = reason;
        if parent_vxid == 0 {
            return;
        }
        if parent_vxid == this.vxid {
            return self.note(node, "link to self", Some(record));
        }
        let stands_alone = self.grouping == Grouping::Vxid
            || (self.grouping == Grouping::Request && kind == Kind::Request && reason == Reason::Rxreq)
            || kind == Kind::Session && self.grouping == Grouping::Request;
        if stands_alone {
            return;
        }
        match self.nodes[node].parent {
            Some(parent) if self.nodes[parent].vxid == parent_vxid => {}
            Some(_) => self.note(node, "link mismatch", Some(record)),
            None => {
                let parent = self.find_or_add(parent_vxid, now);
                self.attach(parent, node, node, record);
            }
        }
    }

    fn link(&mut self, node: usize, record: &Record, now: f64) {
        let Some((kind, child_vxid, reason)) = parse_link(record.text()) else {
            return self.note(node, "parse error", Some(record));
        };
        if kind == Kind::Unknown {
            self.note(node, "unknown vxid type", Some(record));
        }
        if self.grouping == Grouping::Vxid
            || (self.grouping == Grouping::Request && self.nodes[node].kind == Kind::Session)
        {
            return;
        }
        if child_vxid == 0 {
            return self.note(node, "illegal link vxid", Some(record));
        }
        if child_vxid == self.nodes[node].vxid {
            return self.note(node, "link to self", Some(record));
        }
        let child = self.find_or_add(child_vxid, now);
        match self.nodes[child].parent {
            Some(parent) if parent == node => return,
            Some(_) => return self.note(node, "duplicate link", Some(record)),
            None => {}
        }
        if self.nodes[child].ended {
            return self.note(node, "link too late", Some(record));
        }
        if self.nodes[child].kind == Kind::Unknown {
            self.nodes[child].kind = kind;
            self.nodes[child].reason = reason;
        } else if self.nodes[child].kind != kind {
            self.note(node, "type mismatch", Some(record));
        }
        self.attach(node, child, node, record);
    }

    fn end(&mut self, node: usize) {
        if self.nodes[node].kind == Kind::Unknown {
            self.note(node, "vtx of unknown type marked complete", None);
        }
        self.nodes[node].ended = true;
        self.incomplete.remove(&self.nodes[node].serial);
    }

    fn find_or_add(&mut self, vxid: u64, now: f64) -> usize {
        match self.by_vxid.get(&vxid) {
            Some(node) => *node,
            None => self.add(vxid, now),
        }
    }

    /// Hangs `child` below `parent`, unless that would close a circle or the parent's subtree is
    /// already complete.
    fn attach(&mut self, parent: usize, child: usize, noted_at: usize, record: &Record) {
        if self.nodes[parent].counted {
            return self.note(noted_at, "link too late", Some(record));
        }
        let mut above = Some(parent);
        while let Some(node) = above {
            if node == child {
                return self.note(noted_at, "link to ancestor", Some(record));
            }
            above = self.nodes[node].parent;
        }
        self.nodes[child].parent = Some(parent);
        self.nodes[parent].children.push(child);
    }

    /// Adds a `VSL` record after the last one.
    fn note(&mut self, node: usize, text: &str, about: Option<&Record>) {
        let this = &mut self.nodes[node];
        let mut message = text.as_bytes().to_vec();
        if let Some(record) = about {
            let tag = record.tag().map_or("?", Tag::name);
            message.extend_from_slice(format!(" ({}:{tag} \"", record.id.vxid()).as_bytes());
            message.extend_from_slice(record.text());
            message.extend_from_slice(b"\")");
        }
        append_text(&mut this.words, Tag::VSL, this.kind.id(this.vxid), &message);
    }

    fn force(&mut self, node: usize, why: &str) {
        let this = &mut self.nodes[node];
        let id = this.kind.id(this.vxid);
        if !this.began {
            append_text(&mut this.words, Tag::Begin, id, format!("{} 0 synth", this.kind.word()).as_bytes());
            this.began = true;
        }
        self.note(node, why, None);
        append_text(&mut self.nodes[node].words, Tag::End, id, b"synth");
        self.end(node);
        self.report_if_ready(node);
    }

    /// Counts a finished transaction in its parent, and so on upwards; a finished top is reported
    /// and removed.
    fn report_if_ready(&mut self, mut node: usize) {
        loop {
            let this = &mut self.nodes[node];
            if !this.ended || this.counted || this.children_ready < this.children.len() {
                return;
            }
            this.counted = true;
            let Some(parent) = this.parent else { return self.retire(node) };
            self.nodes[parent].children_ready += 1;
            node = parent;
        }
    }

    fn retire(&mut self, top: usize) {
        let wanted = match self.grouping {
            Grouping::Raw | Grouping::Vxid => true,
            Grouping::Request => self.nodes[top].kind == Kind::Request,
            Grouping::Session => self.nodes[top].kind == Kind::Session,
        };
        let mut group = Vec::new();
        let mut queue = VecDeque::from([(top, 0, 0)]);
        while let Some((index, parent_level, parent)) = queue.pop_front() {
            let node = &mut self.nodes[index];
            // A restart takes its predecessor's place, so it stays on its level.
            let stays = parent_level > 0 && node.reason == Reason::Restart;
            let level = if stays { parent_level } else { parent_level + 1 };
            let (vxid, kind, reason) = (node.vxid, node.kind, node.reason);
            queue.extend(std::mem::take(&mut node.children).into_iter().map(|child| (child, level, vxid)));
            let words = std::mem::take(&mut node.words);
            self.by_vxid.remove(&vxid);
            self.free.push(index);
            group.push(Transaction { level, vxid, parent, kind, reason, words });
        }
        if wanted {
            self.ready.push_back(group);
        }
    }
}

/// Type, vxid and reason in a Begin or Link payload; the rest is ignored.
fn parse_link(text: &[u8]) -> Option<(Kind, u64, Reason)> {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let kind = words.next()?;
    let vxid = std::str::from_utf8(words.next()?).ok()?;
    let digits = vxid.bytes().take_while(u8::is_ascii_digit).count();
    let vxid: u64 = vxid[..digits].parse().ok()?;
    let reason = words.next()?;
    Some((Kind::parse(kind), vxid & VXID_BITS, Reason::parse(reason)))
}

#[cfg(test)]
mod tests;
