//! Nodes, a stream with faults, an origin and clients, in virtual time from one seed.

use crate::cache::{Cache, Fetch, KEYS, keys_of};
use fleet::exchange::{Answer, Loss, Receipt, Report};
use fleet::folder::Folder;
use fleet::memory_folder::MemoryFolder;
use fleet::message::StreamMark;
use fleet::{Config, FleetId, Input, Invalidation, Keeper, Keys, Node, NodeId, Now, Output, Serving, Start};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use surface::fleet::WhenLost;

/// A folder that outlives the process.
#[derive(Clone, Default)]
pub struct Shared(pub Rc<RefCell<MemoryFolder>>);

impl Folder for Shared {
    fn names(&self) -> io::Result<Vec<String>> {
        self.0.borrow().names()
    }

    fn read(&self, name: &str, at: u64, length: usize) -> io::Result<Vec<u8>> {
        self.0.borrow().read(name, at, length)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().append(name, bytes)
    }

    fn cut(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.0.borrow_mut().cut(name, length)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.0.borrow_mut().sync(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.0.borrow_mut().rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.borrow_mut().remove(name)
    }
}

/// An event that is due at a time.
enum Event {
    Deliver { to: usize, run: u64, bytes: Vec<u8>, sequence: Option<u64> },
    Sync { to: usize, run: u64 },
    Apply { to: usize, run: u64, id: u64, invalidation: Invalidation },
    Input { to: usize, run: u64, input: Input },
    Store { to: usize, fetch: Fetch },
}

/// A node and all that belongs to it.
pub struct Machine {
    pub id: NodeId,
    pub files: Shared,
    pub process: Option<(Node, Keeper<Shared>)>,
    /// Number of starts: events for earlier ones are void.
    pub run: u64,
    pub cache: Cache,
    pub serving: Serving,
    /// It reaches the servers; 0 = no, otherwise the part of the servers.
    pub side: u8,
    /// It knows that it does not.
    is_connected: bool,
    /// Next number that its consumer delivers; `None` = it delivers nothing.
    consumer: Option<u64>,
    is_syncing: bool,
    pub skew_ms: i64,
    /// Since when it is up and reaches the servers of side 1.
    pub reachable_since: Option<u64>,
    pub reports: Vec<Report>,
    /// It was removed by an operator, and may serve anything until it is a member again.
    pub is_expelled: bool,
    /// It has not been started yet: it is not part of the fleet.
    pub is_absent: bool,
    /// An older copy of its files and its cache.
    copy: Option<(MemoryFolder, Cache)>,
    /// It was restored from an older copy, and has not been in contact since. It cannot know that.
    is_restored: bool,
}

/// The odds of faults of single messages, in percent.
#[derive(Clone, Copy, Default)]
pub struct Odds {
    pub lost: u32,
    pub doubled: u32,
    pub late: u32,
    pub forged: u32,
}

/// An acknowledged order.
struct Promise {
    key: usize,
    version: u64,
    publisher: usize,
    at_ms: u64,
}

pub struct World {
    pub seed: u64,
    pub random: StdRng,
    pub now_ms: u64,
    events: BTreeMap<(u64, u64), Event>,
    events_made: u64,
    pub machines: Vec<Machine>,
    keys: Keys,
    pub odds: Odds,
    /// The stream: its identity, and messages with numbers from 1.
    pub stream: (u64, Vec<Vec<u8>>),
    /// The stream has no leader: nothing is accepted.
    pub has_leader: bool,
    captured: Vec<Vec<u8>>,
    origin: [u64; KEYS],
    /// Versions below these are never served again.
    forbidden: [u64; KEYS],
    promises: Vec<Promise>,
    /// Orders on their way: keys with versions, and the publisher.
    orders: BTreeMap<u64, (Vec<(usize, u64)>, usize)>,
    next_request: u64,
    pub answers: BTreeMap<u64, Answer>,
    pub served: u64,
    pub completed: u64,
    pub config: fn(&mut Config),
    /// Some starts are killed in the middle.
    pub kills_starts: bool,
}

fn config(id: &NodeId) -> Config {
    Config {
        fleet: FleetId::of_name("shop"),
        node: id.clone(),
        zone: String::new(),
        address: String::new(),
        lost_after_ms: 10_000,
        when_lost: WhenLost::Serve,
        join_timeout_ms: 30_000,
        history_ms: 7 * 86_400_000,
        outbox_entries_max: 1 << 20,
        outbox_bytes_max: 256 << 20,
    }
}

impl World {
    pub fn new(seed: u64, nodes: usize) -> World {
        let machine = |index: usize| Machine {
            id: NodeId::new(&format!("node-{index}")).unwrap(),
            files: Shared::default(),
            process: None,
            run: 0,
            cache: Cache::new(index as u64 + 1),
            serving: Serving::Joining,
            side: 1,
            is_connected: false,
            consumer: None,
            is_syncing: false,
            skew_ms: 0,
            reachable_since: None,
            reports: Vec::new(),
            is_expelled: false,
            is_absent: false,
            copy: None,
            is_restored: false,
        };
        World {
            seed,
            random: StdRng::seed_from_u64(seed),
            now_ms: 1_000_000,
            events: BTreeMap::new(),
            events_made: 0,
            machines: (0..nodes).map(machine).collect(),
            keys: Keys::new(&[1; 32], None),
            odds: Odds::default(),
            stream: (1, Vec::new()),
            has_leader: true,
            captured: Vec::new(),
            origin: [1; KEYS],
            forbidden: [0; KEYS],
            promises: Vec::new(),
            orders: BTreeMap::new(),
            next_request: 0,
            answers: BTreeMap::new(),
            served: 0,
            completed: 0,
            config: |_| {},
            kills_starts: false,
        }
    }

    fn now(&self, of: usize) -> Now {
        let wall_ms = (1_800_000_000_000 + self.now_ms as i64 + self.machines[of].skew_ms) as u64;
        Now { monotone_ms: self.now_ms, wall_ms }
    }

    fn later(&mut self, delay_ms: u64, event: Event) {
        self.events_made += 1;
        self.events.insert((self.now_ms + delay_ms, self.events_made), event);
    }

    /// Starts a node; false if it was killed in the middle of that.
    pub fn start(&mut self, of: usize) -> bool {
        self.machines[of].is_absent = false;
        if self.machines[of].process.is_some() {
            return true;
        }
        let now = self.now(of);
        let random = self.random.random();
        let machine = &mut self.machines[of];
        machine.run += 1;
        machine.files.0.borrow_mut().restart();
        if self.kills_starts && self.random.random_ratio(1, 10) {
            machine.files.0.borrow_mut().kill_after(self.random.random_range(1..6));
        }
        let Ok((keeper, kept)) = Keeper::open(machine.files.clone()) else { return false };
        let start = Start { random, cache: machine.cache.mark, is_continued: false };
        let mut config = config(&machine.id);
        (self.config)(&mut config);
        let node = Node::new(config, self.keys.clone(), kept, start, now);
        machine.process = Some((node, keeper));
        machine.serving = Serving::Joining;
        machine.consumer = None;
        machine.is_connected = false;
        machine.is_syncing = false;
        self.obey(of);
        self.note_reach(of);
        self.machines[of].process.is_some()
    }

    /// Kills the process of a node. Its cache stays.
    pub fn kill(&mut self, of: usize) {
        let machine = &mut self.machines[of];
        machine.process = None;
        machine.reachable_since = None;
        machine.run += 1;
    }

    /// As above, and what was not durable is lost.
    pub fn lose_power(&mut self, of: usize) {
        self.kill(of);
        let random = &mut self.random;
        let mut folder = self.machines[of].files.0.borrow_mut();
        folder.lose_power(|bytes| random.random_range(0..=bytes));
    }

    pub fn set_side(&mut self, of: usize, side: u8) {
        self.machines[of].side = side;
        self.note_reach(of);
    }

    fn note_reach(&mut self, of: usize) {
        let now_ms = self.now_ms;
        let machine = &mut self.machines[of];
        let is_reachable = machine.process.is_some() && machine.side == 1;
        match (is_reachable, machine.reachable_since) {
            (true, None) => machine.reachable_since = Some(now_ms),
            (false, _) => machine.reachable_since = None,
            (true, Some(_)) => {}
        }
    }

    /// Runs one input of a node.
    fn input(&mut self, to: usize, input: Input) {
        let now = self.now(to);
        if let Some((node, _)) = &mut self.machines[to].process {
            node.handle(now, input);
            self.obey(to);
        }
    }

    /// An operator's command. Its number is the key of its answer.
    pub fn command(&mut self, to: usize, invalidation: Invalidation, wait_ms: Option<u64>) -> u64 {
        self.next_request += 1;
        let request = self.next_request;
        let mut versions = Vec::new();
        for key in keys_of(&invalidation) {
            self.origin[key] += 1;
            versions.push((key, self.origin[key]));
        }
        self.orders.insert(request, (versions, to));
        self.input(to, Input::Invalidate { request, invalidation, wait_ms });
        request
    }

    pub fn forget(&mut self, at: usize, forgotten: usize, wait_ms: Option<u64>) -> u64 {
        self.next_request += 1;
        let request = self.next_request;
        let node = self.machines[forgotten].id.clone();
        self.input(at, Input::Forget { request, node, wait_ms });
        request
    }

    pub fn leave(&mut self, of: usize, wait_ms: Option<u64>) -> u64 {
        self.next_request += 1;
        let request = self.next_request;
        self.input(of, Input::Leave { request, wait_ms });
        request
    }

    fn delay(&mut self) -> u64 {
        let is_late = self.random.random_range(0..100) < self.odds.late;
        self.random.random_range(1..if is_late { 3000 } else { 8 })
    }

    /// Sends bytes to one node, with the faults of single messages.
    fn deliver(&mut self, to: usize, bytes: &[u8], sequence: Option<u64>) {
        let dice = self.random.random_range(0..100);
        let copies = match dice {
            _ if dice < self.odds.lost => 0,
            _ if dice < self.odds.lost + self.odds.doubled => 3,
            _ => 1,
        };
        let run = self.machines[to].run;
        for _ in 0..copies {
            let delay = self.delay();
            self.later(delay, Event::Deliver { to, run, bytes: bytes.to_vec(), sequence });
        }
        if self.random.random_range(0..100) < self.odds.forged {
            let forged = self.forged(bytes);
            let delay = self.delay();
            self.later(delay, Event::Deliver { to, run, bytes: forged, sequence: None });
        }
    }

    /// A message of an attacker who has no key.
    fn forged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let captured = self.captured.len();
        match self.random.random_range(0..6) {
            0 => vec![1; self.random.random_range(0..100)],
            1 => vec![1; (64 << 10) + 1],
            2 => bytes[..self.random.random_range(0..bytes.len())].to_vec(),
            3 => {
                let mut altered = bytes.to_vec();
                let at = self.random.random_range(0..bytes.len());
                altered[at] ^= 1 << self.random.random_range(0..8);
                altered
            }
            4 => {
                let content = &bytes[..bytes.len() - 32];
                fleet::envelope::signed(content, &Keys::new(&[2; 32], None))
            }
            // Yesterday's capture.
            _ if captured > 0 => self.captured[self.random.random_range(0..captured)].clone(),
            _ => Vec::new(),
        }
    }

    /// To all nodes that reach the same servers; the sender too.
    fn broadcast(&mut self, from: usize, bytes: &[u8]) {
        if self.random.random_ratio(1, 20) {
            self.captured.push(bytes.to_vec());
        }
        let side = self.machines[from].side;
        if side == 0 {
            return;
        }
        for to in 0..self.machines.len() {
            if self.machines[to].side == side {
                self.deliver(to, bytes, None);
            }
        }
    }

    /// Carries out the orders of a node.
    fn obey(&mut self, of: usize) {
        loop {
            let machine = &mut self.machines[of];
            let Some((node, keeper)) = &mut machine.process else { return };
            let Some(output) = node.next_output() else { break };
            let (run, side) = (machine.run, machine.side);
            match output {
                Output::Write(ticket, record) => {
                    keeper.write(ticket, &record);
                    if machine.files.0.borrow().is_killed() {
                        return self.kill(of);
                    }
                    if !std::mem::replace(&mut machine.is_syncing, true) {
                        let delay = self.random.random_range(1..6);
                        self.later(delay, Event::Sync { to: of, run });
                    }
                }
                Output::Apply(id, invalidation) => {
                    let delay = self.random.random_range(1..10);
                    self.later(delay, Event::Apply { to: of, run, id, invalidation });
                }
                Output::Publish { position, bytes } => self.publish(of, position.counter, bytes),
                Output::Resend { counters, is_stored } => {
                    let entries: Vec<_> = counters.map(|counter| (counter, keeper.read(counter))).collect();
                    let mut is_lost = false;
                    let mut messages = Vec::new();
                    for (counter, entry) in entries {
                        match entry {
                            Ok(entry) => messages.push((counter, node.seal_entry(&entry).unwrap())),
                            Err(_) => is_lost = true,
                        }
                    }
                    for (counter, bytes) in messages {
                        if is_stored {
                            self.publish(of, counter, bytes);
                        } else {
                            self.broadcast(of, &bytes);
                        }
                    }
                    assert!(!is_lost, "seed {}: an entry cannot be read", self.seed);
                }
                Output::Send(_, bytes) => self.broadcast(of, &bytes),
                Output::AskStream => {
                    // Side 2 is cut off from the leader.
                    if side == 1 && self.has_leader {
                        let mark = StreamMark { created: self.stream.0, sequence: self.stream.1.len() as u64 };
                        self.later(2, Event::Input { to: of, run, input: Input::Stream { mark } });
                    }
                }
                Output::Consume { from } => {
                    machine.consumer = Some(from);
                    self.consume(of);
                }
                Output::Reconnect => {
                    machine.is_connected = false;
                    machine.consumer = None;
                }
                Output::Serve(serving) => {
                    machine.serving = serving;
                    machine.is_restored &= serving != Serving::InStep;
                }
                Output::Answer(request, answer) => self.answered(request, answer),
                Output::Report(report) => machine.reports.push(report),
            }
        }
    }

    fn publish(&mut self, of: usize, counter: u64, bytes: Vec<u8>) {
        let run = self.machines[of].run;
        let is_accepted = self.machines[of].side == 1 && self.has_leader && !self.is_unlucky();
        let input = if is_accepted { Input::Published { counter } } else { Input::NotPublished { counter } };
        if is_accepted || self.is_unlucky() {
            self.stream.1.push(bytes);
            for to in 0..self.machines.len() {
                self.consume(to);
            }
        }
        let delay = self.delay();
        self.later(delay, Event::Input { to: of, run, input });
    }

    fn is_unlucky(&mut self) -> bool {
        self.odds.lost > 0 && self.random.random_ratio(1, 20)
    }

    /// Delivers the messages of the stream that a consumer has not had.
    fn consume(&mut self, to: usize) {
        let (Some(from), 1) = (self.machines[to].consumer, self.machines[to].side) else { return };
        let messages: Vec<_> = self.stream.1.iter().skip(from as usize - 1).cloned().collect();
        for (index, bytes) in messages.iter().enumerate() {
            self.deliver(to, bytes, Some(from + index as u64));
        }
        self.machines[to].consumer = Some(from + messages.len() as u64);
    }

    /// The consumer of a node delivers nothing more, without an error.
    pub fn silence(&mut self, of: usize) {
        self.machines[of].consumer = None;
    }

    /// The stream is deleted and created again; consumers wait for numbers that do not come.
    pub fn recreate_stream(&mut self) {
        self.stream = (self.stream.0 + 1, Vec::new());
    }

    /// The servers have lost the last messages, though they had confirmed them.
    pub fn roll_stream_back(&mut self) {
        let left = self.random.random_range(0..=self.stream.1.len());
        self.stream.1.truncate(left);
    }

    fn answered(&mut self, request: u64, answer: Answer) {
        let is_complete = matches!(answer, Answer::Waited { is_complete: true, .. });
        let is_kept = !matches!(answer, Answer::Refused(_));
        self.answers.insert(request, answer);
        let Some((versions, publisher)) = self.orders.remove(&request) else { return };
        self.completed += u64::from(is_complete);
        for (key, version) in versions {
            if is_complete {
                self.forbidden[key] = self.forbidden[key].max(version);
            }
            if is_kept {
                self.promises.push(Promise { key, version, publisher, at_ms: self.now_ms });
            }
        }
    }

    /// Keeps a copy of a node.
    pub fn copy(&mut self, of: usize) {
        let machine = &mut self.machines[of];
        machine.copy = Some((machine.files.0.borrow().clone(), machine.cache.clone()));
    }

    /// Restores a copy of a node's cache, or of all of it.
    pub fn restore(&mut self, of: usize, is_all: bool) {
        let Some((files, cache)) = self.machines[of].copy.clone() else { return };
        self.kill(of);
        let machine = &mut self.machines[of];
        let restarts = machine.cache.restarts + 1;
        (machine.cache, machine.serving) = (cache, Serving::Joining);
        machine.cache.restarts = restarts;
        if is_all {
            *machine.files.0.borrow_mut() = files;
            machine.is_restored = true;
            self.void_promises(of);
        }
    }

    /// The plain acknowledgements of a publisher whose disk has lost confirmed data are void.
    pub fn void_promises(&mut self, of: usize) {
        self.promises.retain(|promise| promise.publisher != of);
    }

    fn request(&mut self, to: usize) {
        let key = self.random.random_range(0..KEYS);
        let machine = &self.machines[to];
        let body = machine.cache.get(key);
        match body {
            Some(version) if machine.serving.may_serve() => {
                self.served += 1;
                self.check(to, key, version);
            }
            // Passes store nothing.
            Some(_) | None if !machine.serving.may_serve() => {}
            Some(_) | None => {
                let fetch = machine.cache.fetch(key, self.origin[key]);
                let delay = self.random.random_range(1..2000);
                self.later(delay, Event::Store { to, fetch });
            }
        }
    }

    fn check(&self, of: usize, key: usize, version: u64) {
        let machine = &self.machines[of];
        if machine.is_expelled || machine.is_restored {
            return;
        }
        let describe = || format!("seed {}, at {} ms, {} {:?}", self.seed, self.now_ms, machine.id, machine.serving);
        let forbidden = self.forbidden[key];
        assert!(version >= forbidden, "{}: /{key} is {version} after a wait for {forbidden}", describe());
        let Some(since) = machine.reachable_since else { return };
        for promise in self.promises.iter().filter(|promise| promise.key == key && promise.version > version) {
            let Some(publisher_since) = self.machines[promise.publisher].reachable_since else { continue };
            let contact_ms = since.max(publisher_since).max(promise.at_ms);
            let late_ms = self.now_ms - contact_ms;
            assert!(
                late_ms < 15_000,
                "{}: /{key} is {version}, not {}, {late_ms} ms late",
                describe(),
                promise.version
            );
        }
    }

    /// Runs the world for a time.
    pub fn run(&mut self, duration_ms: u64) {
        let end_ms = self.now_ms + duration_ms;
        while self.now_ms < end_ms {
            let next_tick_ms = self.now_ms / 100 * 100 + 100;
            while let Some(entry) = self.events.first_entry() {
                if entry.key().0 > next_tick_ms {
                    break;
                }
                let ((at_ms, _), event) = entry.remove_entry();
                self.now_ms = self.now_ms.max(at_ms);
                self.happen(event);
            }
            self.now_ms = next_tick_ms;
            for of in 0..self.machines.len() {
                self.tick(of);
            }
        }
    }

    fn tick(&mut self, of: usize) {
        self.request(of);
        let machine = &mut self.machines[of];
        if machine.process.is_none() {
            return;
        }
        let is_reachable = machine.side != 0;
        if is_reachable && !machine.is_connected {
            machine.is_connected = true;
            self.input(of, Input::Connected);
        } else if !is_reachable && machine.is_connected && self.random.random_ratio(1, 20) {
            // Half-open for a while.
            self.machines[of].is_connected = false;
            self.input(of, Input::Disconnected);
        }
        self.input(of, Input::Tick);
    }

    fn is_running(&self, of: usize, run: u64) -> bool {
        self.machines[of].run == run && self.machines[of].process.is_some()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver { to, run, bytes, sequence } => {
                if self.is_running(to, run) && self.machines[to].side != 0 {
                    self.input(to, Input::Message { bytes, sequence });
                }
            }
            Event::Sync { to, run } if self.is_running(to, run) => {
                let machine = &mut self.machines[to];
                machine.is_syncing = false;
                let Some((_, keeper)) = &mut machine.process else { return };
                let inputs = keeper.sync();
                if machine.files.0.borrow().is_killed() {
                    return self.kill(to);
                }
                inputs.into_iter().for_each(|input| self.input(to, input));
            }
            Event::Apply { to, run, id, invalidation } => {
                // A node in three cannot compile some bans.
                let is_refused =
                    to % 3 == 2 && matches!(&invalidation, Invalidation::Ban { expression } if expression.len() > 5);
                if is_refused {
                    let input = Input::NotApplied { id, error: "no such field".to_owned() };
                    return if self.is_running(to, run) {
                        self.input(to, input)
                    };
                }
                // The cache goes on when the agent is killed.
                let objects = self.machines[to].cache.apply(&invalidation);
                let cache = self.machines[to].cache.mark;
                if self.is_running(to, run) {
                    self.input(to, Input::Applied { id, objects, cache });
                }
            }
            Event::Input { to, run, input } if self.is_running(to, run) => {
                if self.machines[to].side != 0 {
                    self.input(to, input);
                } else if let Input::Published { counter } = input {
                    self.input(to, Input::NotPublished { counter });
                }
            }
            Event::Store { to, fetch } => self.machines[to].cache.store(fetch),
            Event::Sync { .. } | Event::Input { .. } => {}
        }
    }

    /// Number of nodes that are part of the fleet.
    pub fn present(&self) -> usize {
        self.machines.iter().filter(|machine| !machine.is_absent).count()
    }

    /// True if all of them reach one another.
    pub fn is_whole(&self) -> bool {
        let mut present = self.machines.iter().filter(|machine| !machine.is_absent);
        present.all(|machine| machine.reachable_since.is_some() && machine.serving == Serving::InStep)
    }

    pub fn node(&self, of: usize) -> &Node {
        &self.machines[of].process.as_ref().unwrap().0
    }

    /// All nodes run, reach each other, and are in step after at most `duration_ms`.
    pub fn heal(&mut self, duration_ms: u64) {
        self.odds = Odds::default();
        self.has_leader = true;
        let end_ms = self.now_ms + duration_ms;
        loop {
            for of in 0..self.machines.len() {
                self.set_side(of, 1);
                self.machines[of].files.0.borrow_mut().restart();
                if self.machines[of].process.is_none() && !self.machines[of].is_absent {
                    self.start(of);
                    self.machines[of].files.0.borrow_mut().restart();
                }
            }
            self.run(1000);
            let present = self.machines.iter().filter(|machine| !machine.is_absent);
            let states: Vec<_> = present.map(|machine| machine.serving).collect();
            if states.iter().all(|serving| *serving == Serving::InStep) {
                return;
            }
            assert!(self.now_ms < end_ms, "seed {}: not in step: {states:?}", self.seed);
        }
    }

    pub fn dropped(&self, of: usize, loss: Loss) -> bool {
        self.machines[of].reports.iter().any(|report| matches!(report, Report::Dropping(why, _) if *why == loss))
    }

    /// The receipts of a command that waited, and whether it was complete.
    pub fn receipts(&self, request: u64) -> (bool, &[Receipt]) {
        match &self.answers[&request] {
            Answer::Waited { is_complete, receipts, .. } => (*is_complete, receipts),
            other => panic!("{other:?}"),
        }
    }
}
