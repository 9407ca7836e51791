//! The stream of a fleet: it is made or verified, asked for its state, and consumed.
//!
//! Nothing rests on it (`docs/decisions/the-stream-is-transport-not-truth.md`): a stream that
//! cannot be changed to what is wanted is used as it is, with a line for the operator.

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use fleet::message::StreamMark;
use futures_util::StreamExt as _;
use std::time::Duration;
use surface::limits::{FLEET_FETCH_MAX, FLEET_MESSAGE_BYTES_MAX, FLEET_STREAM_BYTES_MAX};
use tokio::sync::mpsc::Sender;

/// Time in which a server recognizes a repeated message.
const DUPLICATES: Duration = Duration::from_secs(600);
/// Bytes of headers that a message may have: its identity.
const HEADERS_BYTES: usize = 1024;
/// Time after which a server removes a consumer that nothing reads.
const ABANDONED: Duration = Duration::from_secs(10);
/// Time of one request for messages.
const REQUEST: Duration = Duration::from_secs(10);
/// Time between two signs of life of a consumer without messages.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Pause before a consumer is made again.
const PAUSE: Duration = Duration::from_millis(300);
/// Copies in a cluster.
const REPLICAS: usize = 3;

/// The wanted stream.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub name: String,
    pub subjects: String,
    pub history: Duration,
    /// `None` = as many as the servers allow, up to three.
    pub replicas: Option<usize>,
    pub is_cluster: bool,
}

impl Wanted {
    fn config(&self) -> Config {
        Config {
            name: self.name.clone(),
            subjects: vec![self.subjects.clone()],
            max_age: self.history,
            max_bytes: FLEET_STREAM_BYTES_MAX,
            max_message_size: (FLEET_MESSAGE_BYTES_MAX + HEADERS_BYTES) as i32,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: self.replicas.unwrap_or(if self.is_cluster { REPLICAS } else { 1 }),
            duplicate_window: DUPLICATES.min(self.history),
            deny_delete: true,
            deny_purge: true,
            ..Config::default()
        }
    }

    /// The changes that make a stream as wanted; `None` if there are none.
    fn change(&self, found: &Config) -> Option<Config> {
        let wanted = self.config();
        let changed = Config {
            subjects: wanted.subjects,
            // Nodes may have different settings: the longest holds.
            max_age: if found.max_age.is_zero() { found.max_age } else { found.max_age.max(wanted.max_age) },
            max_bytes: wanted.max_bytes,
            max_message_size: wanted.max_message_size,
            discard: wanted.discard,
            num_replicas: found.num_replicas.max(wanted.num_replicas),
            duplicate_window: found.duplicate_window.max(wanted.duplicate_window),
            deny_delete: wanted.deny_delete,
            deny_purge: wanted.deny_purge,
            ..found.clone()
        };
        (changed != *found).then_some(changed)
    }
}

/// The state of the stream, which is made if it does not exist. Lines for the operator come with
/// it. `is_verified`: it was compared with the wanted one before.
pub(crate) async fn ask(
    jetstream: &Context,
    wanted: &Wanted,
    is_verified: bool,
) -> (Option<StreamMark>, Option<String>) {
    match jetstream.get_stream(&wanted.name).await {
        Ok(stream) => {
            let info = stream.cached_info();
            let line = if is_verified { None } else { verify(jetstream, wanted, info).await };
            (Some(mark(info)), line)
        }
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                create(jetstream, wanted).await
            }
            GetStreamErrorKind::JetStream(error) => (None, Some(format!("stream {}: {error}", wanted.name))),
            _ => (None, None),
        },
    }
}

async fn create(jetstream: &Context, wanted: &Wanted) -> (Option<StreamMark>, Option<String>) {
    let config = wanted.config();
    let replicas = config.num_replicas;
    match jetstream.create_stream(config).await {
        Ok(stream) if replicas == 1 => (Some(mark(stream.cached_info())), Some(single(wanted))),
        Ok(stream) => (Some(mark(stream.cached_info())), None),
        Err(error) => {
            let line = match error.kind() {
                // Another node has just made it.
                CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NAME_EXIST => None,
                CreateStreamErrorKind::JetStream(error) => {
                    Some(format!("stream {} with {replicas} copies cannot be made: {error}", wanted.name))
                }
                _ => None,
            };
            (None, line)
        }
    }
}

async fn verify(jetstream: &Context, wanted: &Wanted, info: &Info) -> Option<String> {
    if let Some(changed) = wanted.change(&info.config) {
        if let Err(error) = jetstream.update_stream(changed).await {
            return Some(format!("stream {} is not as it should be, and cannot be changed: {error}", wanted.name));
        }
    } else if info.config.num_replicas == 1 {
        return Some(single(wanted));
    }
    None
}

fn single(wanted: &Wanted) -> String {
    format!("stream {} has one copy: while its server is away, invalidations take longer", wanted.name)
}

fn mark(info: &Info) -> StreamMark {
    let created = u64::try_from(info.created.unix_timestamp_nanos()).unwrap_or(0);
    StreamMark { created, sequence: info.state.last_sequence }
}

/// A message of the stream.
pub(crate) struct Delivered {
    /// Number of the consumer.
    pub consumer: u64,
    pub sequence: u64,
    pub bytes: Vec<u8>,
}

/// Consumes the stream from a sequence number, until it is aborted.
pub(crate) async fn consume(jetstream: Context, stream: String, from: u64, consumer: u64, to: Sender<Delivered>) {
    let mut next = from.max(1);
    loop {
        if let Some(mut messages) = open(&jetstream, &stream, next).await {
            while let Some(Ok(message)) = messages.next().await {
                let Ok(info) = message.info() else { continue };
                let sequence = info.stream_sequence;
                next = sequence.saturating_add(1);
                let bytes = cut(&message.payload);
                if to.send(Delivered { consumer, sequence, bytes }).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn open(jetstream: &Context, stream: &str, from: u64) -> Option<pull::Stream> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
        ack_policy: AckPolicy::None,
        inactive_threshold: ABANDONED,
        num_replicas: 1,
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = jetstream.create_consumer_on_stream(config, stream).await.ok()?;
    let request = consumer.stream().max_messages_per_batch(FLEET_FETCH_MAX).heartbeat(HEARTBEAT).expires(REQUEST);
    request.messages().await.ok()
}

/// The message; of one that is too long, enough that the machine refuses it for that.
pub(crate) fn cut(payload: &[u8]) -> Vec<u8> {
    payload[..payload.len().min(FLEET_MESSAGE_BYTES_MAX + 1)].to_vec()
}
