//! The loop: events of the link, the disk, the session and time go to the machine, and its orders
//! are carried out in their order.

use crate::disk::{self, Done, Work};
use crate::lines::{self, Lines};
use crate::link;
use crate::queue::{Gone, Queue};
use crate::session::{Happened, Incoming, Names, channels};
use crate::start::Start;
use crate::stream::Delivered;
use crate::transport::Transport;
use crate::trust::Trust;
use fleet::exchange::{ApplyId, Channel, RequestId, message_id};
use fleet::folder::DiskFolder;
use fleet::link::{Command, Reply, Settings, State, ToAgent, ToManager};
use fleet::record::{CacheMark, Entry};
use fleet::{Answer, Config, FleetId, Input, Invalidation, Keeper, Keys, Node, Now, Output, Serving};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use surface::limits::{
    FLEET_OUTBOX_BYTES_MAX, FLEET_OUTBOX_ENTRIES_MAX, FLEET_PENDING_MAX, FLEET_WAITS_MAX, FLEET_WINDOW_MAX,
};
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two ticks of the machine.
const TICK: Duration = Duration::from_millis(100);
/// Number of received entries that wait for the cache, above which the stream is not read.
const BACKLOG_MAX: usize = FLEET_WINDOW_MAX / 4;
/// Entries that are read from the outbox at once: at most 2 MiB.
const READ_AT_ONCE: u64 = 32;

/// Runs until the manager is gone.
///
/// # Errors
/// The agent cannot go on, with the reason.
pub(crate) async fn run(start: Start, trust: Trust, socket: UnixStream) -> Result<(), String> {
    let (manager, mut messages) = link::begin(socket).map_err(|error| format!("no threads: {error}"))?;
    let Some(first) = First::receive(&mut messages).await? else { return Ok(()) };
    let folder = start.folder.display();
    let (keeper, kept) =
        Keeper::open(DiskFolder::new(start.folder.clone())).map_err(|error| format!("{folder}: {error}"))?;
    let (disk, done) = disk::begin(keeper).map_err(|error| format!("no threads: {error}"))?;
    let Settings { lost_after_ms, when_lost, join_timeout_ms, history_ms, .. } = first.settings;
    let config = Config {
        fleet: FleetId::of_name(&start.fleet),
        node: start.node.clone(),
        zone: start.zone,
        address: start.address,
        lost_after_ms,
        when_lost,
        join_timeout_ms,
        history_ms,
        outbox_entries_max: FLEET_OUTBOX_ENTRIES_MAX,
        outbox_bytes_max: FLEET_OUTBOX_BYTES_MAX,
    };
    let machine_start = fleet::Start { random: rand::random(), cache: first.cache, is_continued: first.is_continued };
    let names = Names { fleet: start.fleet, node: start.node.to_string() };
    let (ends, incoming) = channels();
    let mut agent = Agent {
        node: Node::new(config, first.keys, kept, machine_start, now()),
        name: start.node,
        disk,
        manager,
        transport: Transport::new(start.servers, trust, names, ends),
        replicas: start.replicas,
        history: Duration::from_millis(history_ms),
        applying: BTreeMap::new(),
        cache: first.cache,
        has_cache: true,
        serving: None,
        inputs: VecDeque::new(),
        lines: Lines::default(),
        stream_last: 0,
    };
    for command in first.commands {
        agent.obey_manager(command)?;
    }
    agent.carry_out();
    agent.live(messages, done, incoming).await
}

/// The messages that come before the machine can be made.
struct First {
    settings: Settings,
    keys: Keys,
    cache: CacheMark,
    is_continued: bool,
    /// Commands that came earlier.
    commands: Vec<ToAgent>,
}

impl First {
    /// `None` if the manager has gone.
    async fn receive(messages: &mut Receiver<ToAgent>) -> Result<Option<First>, String> {
        let mut settings: Option<Settings> = None;
        let mut keys: Option<Keys> = None;
        let mut commands = Vec::new();
        while let Some(message) = messages.recv().await {
            match message {
                ToAgent::Settings(new) => {
                    if keys.is_none() {
                        keys = Some(match &new.keys[..] {
                            [signing] => Keys::new(&signing.0, None),
                            [signing, other] => Keys::new(&signing.0, Some(&other.0)),
                            _ => return Err("there are neither one nor two keys".to_owned()),
                        });
                    }
                    settings = Some(new);
                }
                ToAgent::Cache { mark: Some(cache), is_continued } => {
                    let (Some(settings), Some(keys)) = (settings, keys) else {
                        return Err("there were no settings".to_owned());
                    };
                    return Ok(Some(First { settings, keys, cache, is_continued, commands }));
                }
                ToAgent::Command { .. } if commands.len() < FLEET_WAITS_MAX => commands.push(message),
                ToAgent::Command { .. }
                | ToAgent::Cache { mark: None, .. }
                | ToAgent::Applied { .. }
                | ToAgent::NotApplied { .. } => {}
            }
        }
        Ok(None)
    }
}

struct Agent {
    node: Node,
    name: fleet::NodeId,
    disk: Queue<Work>,
    manager: Queue<ToManager>,
    transport: Transport,
    replicas: Option<usize>,
    history: Duration,
    /// Applications without an answer, for the next worker.
    applying: BTreeMap<ApplyId, Invalidation>,
    /// The cache of the worker, as far as known.
    cache: CacheMark,
    has_cache: bool,
    serving: Option<Serving>,
    /// Events that follow from orders.
    inputs: VecDeque<Input>,
    lines: Lines,
    /// The last sequence number of the stream, as a server reported it.
    stream_last: u64,
}

impl Agent {
    async fn live(
        &mut self,
        mut messages: Receiver<ToAgent>,
        mut done: Receiver<Done>,
        mut incoming: Incoming,
    ) -> Result<(), String> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let gone = |_: Gone| "a thread has ended".to_owned();
        loop {
            let is_slow = self.disk.waiting().max(self.manager.waiting()) > FLEET_PENDING_MAX;
            let reads_stream = !is_slow && self.node.backlog() < BACKLOG_MAX;
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    let dropped = incoming.dropped.swap(0, Ordering::Relaxed);
                    self.tick(dropped);
                }
                result = self.disk.advance() => result.map_err(gone)?,
                // The manager is gone.
                result = self.manager.advance() => match result {
                    Ok(()) => {}
                    Err(Gone) => return Ok(()),
                },
                message = messages.recv() => match message {
                    Some(message) => self.obey_manager(message)?,
                    None => return Ok(()),
                },
                result = done.recv() => self.disk_done(result.ok_or("the thread of the disk has ended")?),
                () = self.transport.connected() => self.connected(),
                event = incoming.happened.recv() => {
                    if let Some((session, event)) = event {
                        self.happened(session, event);
                    }
                }
                bytes = incoming.received.recv(), if !is_slow => {
                    if let Some(bytes) = bytes {
                        self.handle(Input::Message { bytes, sequence: None });
                    }
                }
                message = incoming.delivered.recv(), if reads_stream => {
                    if let Some(message) = message {
                        self.delivered(message);
                    }
                }
            }
            self.carry_out();
        }
    }

    fn handle(&mut self, input: Input) {
        self.node.handle(now(), input);
    }

    fn tick(&mut self, dropped: u64) {
        if dropped > 0 {
            self.say(true, "messages were dropped, since they came faster than they can be read or sent");
        }
        let overdue = self.transport.session.as_mut().map(|session| session.overdue(Instant::now()));
        for counter in overdue.into_iter().flatten() {
            self.handle(Input::NotPublished { counter });
        }
        self.handle(Input::Tick);
    }

    fn disk_done(&mut self, done: Done) {
        match done {
            Done::Inputs(inputs) => inputs.into_iter().for_each(|input| self.handle(input)),
            Done::Entries { entries, is_stored } => entries.iter().for_each(|entry| self.resend(entry, is_stored)),
        }
    }

    fn resend(&mut self, entry: &Entry, is_stored: bool) {
        // Only an entry of another version of the program can be too long.
        let Some(bytes) = self.node.seal_entry(entry) else { return self.inputs.push_back(Input::OutboxLost) };
        if is_stored {
            self.publish(entry.position, bytes);
        } else if let Some(session) = &self.transport.session {
            session.send(Channel::Control, bytes);
        }
    }

    fn publish(&mut self, position: fleet::Position, bytes: Vec<u8>) {
        let identity = message_id(&self.name, position);
        let session = self.transport.session.as_mut();
        let is_sent = session.is_some_and(|session| session.publish(position.counter, identity, bytes));
        if !is_sent {
            self.inputs.push_back(Input::NotPublished { counter: position.counter });
        }
    }

    fn connected(&mut self) {
        let Some(session) = &self.transport.session else { return };
        let line = format!("connected to {}, nats-server {}", session.server, session.version);
        self.say(false, &line);
        self.handle(Input::Connected);
    }

    fn happened(&mut self, of: u64, event: Happened) {
        if let Happened::Say(line) = event {
            return self.say(true, &line);
        }
        let Some(session) = self.transport.session.as_mut().filter(|session| session.number == of) else { return };
        match event {
            Happened::Say(_) => {}
            Happened::Ended => {
                let line = format!("the connection to {} has ended", session.server);
                self.say(true, &line);
                self.transport.connect();
                self.handle(Input::Disconnected);
            }
            Happened::Stream(mark) => {
                self.stream_last = mark.sequence;
                self.handle(Input::Stream { mark });
            }
            Happened::Answered(counter, is_stored) => {
                if session.answered(counter) {
                    let input = if is_stored { Input::Published { counter } } else { Input::NotPublished { counter } };
                    self.handle(input);
                }
            }
        }
    }

    /// A message of a consumer that was replaced is ignored: its number may be of another stream.
    fn delivered(&mut self, message: Delivered) {
        let Delivered { consumer, sequence, bytes } = message;
        if self.transport.session.as_ref().is_some_and(|session| session.is_consumer(consumer)) {
            self.handle(Input::Message { bytes, sequence: Some(sequence) });
        }
    }

    fn obey_manager(&mut self, message: ToAgent) -> Result<(), String> {
        match message {
            ToAgent::Settings(settings) => {
                let Settings { lost_after_ms, when_lost, join_timeout_ms, history_ms, .. } = settings;
                self.history = Duration::from_millis(history_ms);
                self.node.set_parameters(lost_after_ms, when_lost, join_timeout_ms, history_ms);
            }
            ToAgent::Cache { mark, .. } => self.set_cache(mark)?,
            ToAgent::Applied { id, objects, cache } => {
                if self.applying.remove(&id).is_some() {
                    self.cache = cache;
                    self.handle(Input::Applied { id, objects, cache });
                }
            }
            ToAgent::NotApplied { id, error } => {
                if self.applying.remove(&id).is_some() {
                    self.handle(Input::NotApplied { id, error });
                }
            }
            ToAgent::Command { request, command, wait_ms } => self.command(request, command, wait_ms),
        }
        Ok(())
    }

    /// Another worker: it gets the orders that the one before it has not confirmed.
    fn set_cache(&mut self, mark: Option<CacheMark>) -> Result<(), String> {
        self.has_cache = mark.is_some();
        let Some(mark) = mark else { return Ok(()) };
        if mark.identity != self.cache.identity || mark.sequence < self.cache.sequence {
            return Err("the cache is another one; the agent begins anew with it".to_owned());
        }
        self.cache = mark;
        if let Some(serving) = self.serving {
            self.manager.push(ToManager::Serve(serving));
        }
        for (id, invalidation) in &self.applying {
            self.manager.push(ToManager::Apply { id: *id, invalidation: invalidation.clone() });
        }
        Ok(())
    }

    fn command(&mut self, request: RequestId, command: Command, wait_ms: Option<u64>) {
        match command {
            Command::Invalidate(invalidation) => self.handle(Input::Invalidate { request, invalidation, wait_ms }),
            Command::Forget(node) => self.handle(Input::Forget { request, node, wait_ms }),
            Command::Leave => self.handle(Input::Leave { request, wait_ms }),
            Command::Drain(is_draining) => {
                self.handle(Input::Drain(is_draining));
                self.manager.push(ToManager::Answer { request, reply: Reply::Done });
            }
            Command::Status => {
                let reply = Reply::Status(Box::new(self.state()));
                self.manager.push(ToManager::Answer { request, reply });
            }
        }
    }

    fn state(&self) -> State {
        let session = self.transport.session.as_ref();
        let status = self.node.status();
        State {
            node: self.name.clone(),
            lag: self.stream_last.saturating_sub(status.stream.sequence),
            status,
            counters: self.node.counters().clone(),
            server: session.map(|session| session.server.clone()),
            server_version: session.map(|session| session.version.clone()).unwrap_or_default(),
        }
    }

    /// Carries out all orders.
    fn carry_out(&mut self) {
        loop {
            while let Some(output) = self.node.next_output() {
                self.obey(output);
            }
            let Some(input) = self.inputs.pop_front() else { return };
            self.handle(input);
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Write(ticket, record) => self.disk.push(Work::Write(ticket, record)),
            Output::Apply(id, invalidation) => {
                if self.has_cache {
                    self.manager.push(ToManager::Apply { id, invalidation: invalidation.clone() });
                }
                self.applying.insert(id, invalidation);
            }
            Output::Publish { position, bytes } => self.publish(position, bytes),
            Output::Resend { counters, is_stored } => self.read(counters, is_stored),
            Output::Send(channel, bytes) => {
                if let Some(session) = &self.transport.session {
                    session.send(channel, bytes);
                }
            }
            Output::AskStream => {
                if let Some(session) = &mut self.transport.session {
                    session.ask(self.history, self.replicas);
                }
            }
            Output::Consume { from } => {
                if let Some(session) = &mut self.transport.session {
                    session.consume(from);
                }
            }
            Output::Reconnect => {
                self.say(true, "the server or its stream does not answer; another server is tried");
                self.transport.connect();
                self.inputs.push_back(Input::Disconnected);
            }
            Output::Serve(serving) => {
                self.serving = Some(serving);
                self.manager.push(ToManager::Serve(serving));
            }
            Output::Answer(request, answer) => self.answer(request, answer),
            Output::Report(report) => {
                let (is_warning, text) = lines::of(&report);
                self.say(is_warning, &text);
            }
        }
    }

    fn answer(&mut self, request: RequestId, answer: Answer) {
        self.manager.push(ToManager::Answer { request, reply: Reply::Invalidation(answer) });
    }

    fn read(&mut self, counters: RangeInclusive<u64>, is_stored: bool) {
        let (mut first, last) = counters.into_inner();
        while first <= last {
            let end = last.min(first.saturating_add(READ_AT_ONCE - 1));
            self.disk.push(Work::Read { counters: first..=end, is_stored });
            let Some(next) = end.checked_add(1) else { return };
            first = next;
        }
    }

    fn say(&mut self, is_warning: bool, text: &str) {
        if let Some(text) = self.lines.pass(text, Instant::now()) {
            self.manager.push(ToManager::Say { is_warning, text });
        }
    }
}

fn now() -> Now {
    let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let monotone_ms = boot.tv_sec as u64 * 1000 + boot.tv_nsec as u64 / 1_000_000;
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { monotone_ms, wall_ms: wall.as_millis() as u64 }
}
