//! One connection to one server: subscriptions, publishing, and the consumer of the stream.
//!
//! All its tasks end with it. Confirmations of the stream come to a subject of their own, so that a
//! stream that never answers leaves nothing behind.

use crate::stream::{self, Delivered, Wanted, cut};
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::response::Response;
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, ServerAddr, Subscriber};
use fleet::exchange::Channel;
use fleet::message::StreamMark;
use futures_util::StreamExt as _;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use surface::limits::{FLEET_RECEIVED_MAX, FLEET_SENDING_MAX};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Oldest server whose streams are not known to lose messages without a fault of the disk.
const SERVER_MIN: (i64, i64, i64) = (2, 12, 3);
/// Time to connect, and to be accepted.
const CONNECT: Duration = Duration::from_secs(5);
/// Time between two signs of life; after three without an answer the connection is given up.
const PING: Duration = Duration::from_secs(2);
/// Time for an answer of the stream.
const ANSWER: Duration = Duration::from_secs(2);
/// Time for the confirmation of an entry.
const CONFIRM: Duration = Duration::from_secs(5);
/// Messages that wait in the client, for each subscription and for the socket.
const CLIENT_MESSAGES: usize = 512;

/// The subjects and the stream of a fleet.
pub(crate) struct Names {
    pub fleet: String,
    pub node: String,
}

impl Names {
    fn subject(&self, kind: &str, node: &str) -> String {
        format!("copal.{}.{kind}.{node}", self.fleet)
    }

    pub(crate) fn stream(&self) -> String {
        format!("copal_{}_inv", self.fleet)
    }

    pub(crate) fn entries(&self) -> String {
        self.subject("inv", "*")
    }
}

/// An event of a session.
pub(crate) enum Happened {
    /// The connection is gone.
    Ended,
    /// The state of the stream.
    Stream(StreamMark),
    /// The stream has answered about an entry; true = it has it.
    Answered(u64, bool),
    /// A warning for the operator.
    Say(String),
}

/// The ends for events, shared by all sessions.
#[derive(Clone)]
pub(crate) struct Ends {
    /// Events, with the number of the session.
    pub happened: Sender<(u64, Happened)>,
    /// Messages that are not stored.
    pub received: Sender<Vec<u8>>,
    /// Messages of the stream.
    pub delivered: Sender<Delivered>,
    /// Messages that were dropped since there were too many.
    pub dropped: Arc<AtomicU64>,
}

struct Outgoing {
    subject: String,
    /// The number of the entry and its identity, if it goes into the stream.
    entry: Option<(u64, String)>,
    bytes: Vec<u8>,
}

/// One connection.
pub(crate) struct Session {
    pub number: u64,
    pub server: String,
    pub version: String,
    pub is_cluster: bool,
    names: Rc<Names>,
    jetstream: Context,
    ends: Ends,
    sending: Sender<Outgoing>,
    /// Entries without a confirmation, by the number of the attempt.
    unconfirmed: HashMap<u64, u64>,
    deadlines: VecDeque<(Instant, u64, u64)>,
    attempts: u64,
    is_asking: Rc<Cell<bool>>,
    is_verified: Rc<Cell<bool>>,
    consumer: Option<AbortHandle>,
    /// The number of the present consumer. Unique among sessions.
    consumers: u64,
    tasks: JoinSet<()>,
}

impl Session {
    /// Connects to a server.
    ///
    /// # Errors
    /// The line for the operator.
    pub(crate) async fn open(
        number: u64,
        server: &ServerAddr,
        options: ConnectOptions,
        names: Rc<Names>,
        ends: Ends,
    ) -> Result<Session, String> {
        let shown = format!("{}:{}", server.host(), server.port());
        let client = connect(number, server, options, &ends).await.map_err(|error| format!("{shown}: {error}"))?;
        let info = client.server_info();
        let (major, minor, patch) = SERVER_MIN;
        if !client.is_server_compatible(major, minor, patch) {
            let found = info.version;
            return Err(format!("{shown}: nats-server {found} is too old: {major}.{minor}.{patch} or later is needed"));
        }
        let jetstream = ContextBuilder::new().timeout(ANSWER).build(client.clone());
        let (sending, outgoing) = channel(FLEET_SENDING_MAX);
        let mut session = Session {
            number,
            server: shown.clone(),
            version: info.version,
            is_cluster: info.cluster.is_some(),
            names,
            jetstream,
            ends,
            sending,
            unconfirmed: HashMap::new(),
            deadlines: VecDeque::new(),
            attempts: 0,
            is_asking: Rc::default(),
            is_verified: Rc::default(),
            consumer: None,
            consumers: number << 32,
            tasks: JoinSet::new(),
        };
        session.subscribe(&client, outgoing).await.map_err(|error| format!("{shown}: {error}"))?;
        Ok(session)
    }

    /// Starts the tasks that receive and send.
    async fn subscribe(
        &mut self,
        client: &Client,
        mut outgoing: tokio::sync::mpsc::Receiver<Outgoing>,
    ) -> Result<(), String> {
        for kind in ["node", "ack", "ctl"] {
            let subscriber = client.subscribe(self.names.subject(kind, "*")).await;
            let subscriber = subscriber.map_err(|error| error.to_string())?;
            self.tasks.spawn_local(receive(subscriber, self.ends.clone()));
        }
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*")).await.map_err(|error| error.to_string())?;
        self.tasks.spawn_local(confirm(answers, self.number, self.ends.happened.clone()));
        let client = client.clone();
        self.tasks.spawn_local(async move {
            while let Some(Outgoing { subject, entry, bytes }) = outgoing.recv().await {
                // An error means that the connection is gone, which is an event of its own.
                let _ = match entry {
                    None => client.publish(subject, bytes.into()).await,
                    Some((counter, identity)) => {
                        let mut headers = HeaderMap::new();
                        headers.insert("Nats-Msg-Id", identity);
                        let reply = format!("{inbox}.{counter}");
                        client.publish_with_reply_and_headers(subject, reply, headers, bytes.into()).await
                    }
                };
            }
        });
        Ok(())
    }

    /// Sends a message that is not stored, to all nodes. It may be lost.
    pub(crate) fn send(&self, channel: Channel, bytes: Vec<u8>) {
        let kind = match channel {
            Channel::Heartbeat => "node",
            Channel::Acknowledgement => "ack",
            Channel::Control => "ctl",
        };
        let subject = self.names.subject(kind, &self.names.node);
        if self.sending.try_send(Outgoing { subject, entry: None, bytes }).is_err() {
            self.ends.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Publishes an entry into the stream. False if there is no room.
    #[must_use]
    pub(crate) fn publish(&mut self, counter: u64, identity: String, bytes: Vec<u8>) -> bool {
        let subject = self.names.subject("inv", &self.names.node);
        let is_sent = self.sending.try_send(Outgoing { subject, entry: Some((counter, identity)), bytes }).is_ok();
        if is_sent {
            self.attempts += 1;
            self.unconfirmed.insert(counter, self.attempts);
            self.deadlines.push_back((Instant::now() + CONFIRM, counter, self.attempts));
        }
        is_sent
    }

    /// An answer of the stream came. False if none was expected.
    #[must_use]
    pub(crate) fn answered(&mut self, counter: u64) -> bool {
        self.unconfirmed.remove(&counter).is_some()
    }

    /// The entries whose time is over.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<u64> {
        let mut overdue = Vec::new();
        while let Some((deadline, counter, attempt)) = self.deadlines.front().copied() {
            let is_answered = self.unconfirmed.get(&counter) != Some(&attempt);
            if deadline > now && !is_answered {
                break;
            }
            self.deadlines.pop_front();
            if !is_answered {
                self.unconfirmed.remove(&counter);
                overdue.push(counter);
            }
        }
        overdue
    }

    /// Asks for the state of the stream, unless that is being done.
    pub(crate) fn ask(&mut self, history: Duration, replicas: Option<usize>) {
        while self.tasks.try_join_next().is_some() {}
        if self.is_asking.replace(true) {
            return;
        }
        let (is_asking, is_verified) = (self.is_asking.clone(), self.is_verified.clone());
        let (number, happened, jetstream) = (self.number, self.ends.happened.clone(), self.jetstream.clone());
        let wanted = Wanted {
            name: self.names.stream(),
            subjects: self.names.entries(),
            history,
            replicas,
            is_cluster: self.is_cluster,
        };
        self.tasks.spawn_local(async move {
            let (mark, line) = stream::ask(&jetstream, &wanted, is_verified.get()).await;
            is_asking.set(false);
            if let Some(line) = line {
                let _ = happened.send((number, Happened::Say(line))).await;
            }
            if let Some(mark) = mark {
                is_verified.set(true);
                let _ = happened.send((number, Happened::Stream(mark))).await;
            }
        });
    }

    /// Consumes the stream from a sequence number, instead of before.
    pub(crate) fn consume(&mut self, from: u64) {
        if let Some(consumer) = self.consumer.take() {
            consumer.abort();
        }
        self.consumers += 1;
        let (jetstream, to) = (self.jetstream.clone(), self.ends.delivered.clone());
        let consumer = stream::consume(jetstream, self.names.stream(), from, self.consumers, to);
        self.consumer = Some(self.tasks.spawn_local(consumer));
    }

    /// True for the number of the present consumer.
    pub(crate) fn is_consumer(&self, number: u64) -> bool {
        self.consumer.is_some() && number == self.consumers
    }
}

async fn connect(number: u64, server: &ServerAddr, options: ConnectOptions, ends: &Ends) -> Result<Client, String> {
    let (happened, dropped) = (ends.happened.clone(), ends.dropped.clone());
    let options = options
        .name("copal fleet-agent")
        .connection_timeout(CONNECT)
        .ping_interval(PING)
        // The next connection is another session.
        .max_reconnects(1)
        .ignore_discovered_servers()
        .subscription_capacity(CLIENT_MESSAGES)
        .client_capacity(CLIENT_MESSAGES)
        .event_callback(move |event| {
            let (happened, dropped) = (happened.clone(), dropped.clone());
            async move {
                let event = match event {
                    Event::Disconnected | Event::Closed => Happened::Ended,
                    Event::ServerError(error) => Happened::Say(format!("the server reports: {error}")),
                    Event::SlowConsumer(_) => {
                        dropped.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    Event::Connected | Event::LameDuckMode | Event::Draining | Event::ClientError(_) => return,
                };
                let _ = happened.send((number, event)).await;
            }
        });
    match timeout(CONNECT, options.connect(server.clone())).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(format!("cannot connect: {error}")),
        Err(_) => Err("cannot connect: no answer".to_owned()),
    }
}

async fn receive(mut subscriber: Subscriber, ends: Ends) {
    while let Some(message) = subscriber.next().await {
        if ends.received.try_send(cut(&message.payload)).is_err() {
            ends.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads the answers of the stream: the last word of the subject is the number of the entry.
async fn confirm(mut answers: Subscriber, number: u64, happened: Sender<(u64, Happened)>) {
    while let Some(message) = answers.next().await {
        let counter = message.subject.rsplit('.').next().and_then(|word| word.parse().ok());
        let Some(counter) = counter else { continue };
        if happened.send((number, Happened::Answered(counter, is_stored(&message)))).await.is_err() {
            return;
        }
    }
}

fn is_stored(message: &Message) -> bool {
    // A status comes from a server that has no such stream.
    let answer = serde_json::from_slice::<Response<async_nats::jetstream::publish::PublishAck>>(&message.payload);
    message.status.is_none() && matches!(answer, Ok(Response::Ok(_)))
}

/// Channels for the events of all sessions, and the other ends.
pub(crate) struct Incoming {
    pub happened: tokio::sync::mpsc::Receiver<(u64, Happened)>,
    pub received: tokio::sync::mpsc::Receiver<Vec<u8>>,
    pub delivered: tokio::sync::mpsc::Receiver<Delivered>,
    pub dropped: Arc<AtomicU64>,
}

/// The channels.
pub(crate) fn channels() -> (Ends, Incoming) {
    let (happened_to, happened) = channel(FLEET_RECEIVED_MAX);
    let (received_to, received) = channel(FLEET_RECEIVED_MAX);
    let (delivered_to, delivered) = channel(16);
    let dropped = Arc::new(AtomicU64::new(0));
    let ends = Ends { happened: happened_to, received: received_to, delivered: delivered_to, dropped: dropped.clone() };
    (ends, Incoming { happened, received, delivered, dropped })
}
