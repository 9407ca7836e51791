//! Compressed copies of objects: made once, in the background, and kept in the index together with
//! the original.
//!
//! ```text
//! a hit that could be shorter ─order─▶ a thread compresses, slowly ┬▶ kept ─▶ later hits send it
//!                                                                  └▶ no gain: a copy without
//!                                                                     body, not tried again
//! ```
//!
//! One copy is made at a time in the whole worker, by a thread of the pool for blocking work, which
//! sleeps between its steps so that it takes no more of a core than the parameter `compress_cpu`
//! allows. An order that arrives during that is dropped: an object that is requested often is soon
//! requested again. `cache::Cache::copy` explains why a copy never outlives its original;
//! `docs/decisions/compressed-copies.md` why it is an object of its own. Next file:
//! `request/coding.rs`.

use crate::bodies::codings::{coding_of, flag_of};
use crate::bodies::disk_tier::{are_there, held_bytes};
use crate::context::{Engine, Loop};
use crate::memory::Held;
use body::{Brotli, Chain, FilterError, Flow, Gunzip, Gzip, Machine, Unbrotli, Unzstd, Zstd};
use cache::is_pinned;
use message::Message;
use sha2::{Digest, Sha256};
use shm::log::LogId;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::time::{Duration, Instant};
use store::{Object, ObjectAttributes, ObjectFlags};
use surface::counter::Main;
use surface::encoding::Encoding;
use surface::limits::{COPIED_BYTES_MAX, COPY_GAIN_PART, FILTER_STEP_BYTES_MAX};
use surface::parameter::Parameters;
use surface::tag::Tag;

/// Time of work after which the thread pauses.
const WORK_AT_ONCE: Duration = Duration::from_millis(5);

/// Bytes of a key that objects keep.
const KEY_BYTES: usize = 24;

/// The key of the copy of an object in that coding. No request has this key: it is a digest of data
/// that only the original contains.
pub(crate) fn key(original: &Object, encoding: Encoding) -> [u8; 32] {
    derived_key(original, encoding.name())
}

/// The key of a derived object with this name, such as a copy.
pub(crate) fn derived_key(original: &Object, name: &str) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(b"compressed copy\0");
    digest.update(&original.key()[..KEY_BYTES]);
    digest.update(original.xid().to_le_bytes());
    digest.update(original.origin().to_bits().to_le_bytes());
    digest.update(name);
    digest.finalize().into()
}

/// Has a copy made, unless another one is being made, the operator has disabled them, or memory is
/// short.
pub(crate) fn order(context: &Rc<Loop>, original: &Arc<Object>, encoding: Encoding) {
    let engine = &context.engine;
    let parameters = engine.parameters.load();
    let may_start = parameters.compress_cpu > 0 && !context.memory.is_short() && !engine.draining.load(Relaxed);
    if !may_start || engine.is_copying.swap(true, AcqRel) {
        return;
    }
    let turn = Turn(Arc::clone(engine));
    let work = Work::new(engine, original, encoding, &parameters);
    let mut held = Held::default();
    held.set(&context.memory, work.memory_bytes());
    let (context, original) = (Rc::clone(context), Arc::clone(original));
    tokio::task::spawn_local(async move {
        // A panic of a library costs the copy.
        let result = tokio::task::spawn_blocking(move || work.result()).await.unwrap_or(Made::NoGain);
        match result {
            Made::Body(body) => keep(&context, &original, encoding, &body).await,
            Made::NoGain => keep(&context, &original, encoding, &[]).await,
            Made::GivenUp => {}
        }
        drop((held, turn));
    });
}

/// The right to make a copy.
struct Turn(Arc<Engine>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.is_copying.store(false, Release);
    }
}

/// Adds a copy to its original; an empty one means that there is nothing to gain. It expires with
/// the last moment at which the original may be sent.
async fn keep(context: &Loop, original: &Arc<Object>, encoding: Encoding, body: &[u8]) {
    if original.is_removed() {
        return;
    }
    let engine = &context.engine;
    let attributes = ObjectAttributes {
        key: key(original, encoding),
        xid: original.vxid(),
        origin: original.origin(),
        ttl: original.ttl() + original.grace(),
        flags: flag_of(encoding),
        body_bytes: Some(body.len() as u64),
        transient: original.flags().has(ObjectFlags::TRANSIENT),
        ..ObjectAttributes::default()
    };
    let mut head = Message::new();
    head.set_protocol(b"HTTP/1.1");
    head.set_status(200);
    head.append(b"Content-Encoding", encoding.name().as_bytes());
    let mut encoded = Vec::new();
    head.encode(&mut encoded);
    let parameters = engine.parameters.load();
    let is_for_memory = original.is_on_disk() && body.len() as u64 <= parameters.storage_promote_bytes;
    let store = match is_for_memory && engine.storages.promote(&parameters) && !is_pinned(original) {
        true => engine.storages.next_in_memory(),
        false => engine.storages.store(u32::from(original.store_number().unwrap_or(0))),
    };
    let Ok(copy) = store.create(&attributes, &encoded) else { return context.count(Main::NCopiesRefused) };
    if !body.is_empty() && copy.append(body).await.is_err() {
        return context.count(Main::NCopiesRefused);
    }
    copy.finish();
    engine.cache.keep_copy(&copy);
    context.count(if body.is_empty() { Main::NCopiesRefused } else { Main::NCopies });
    let (xid, from, to, name) = (original.vxid(), original.available_bytes(), body.len(), encoding.name());
    let text = match to {
        0 => format!("copies: {xid} stays as it is, {from} bytes: {name} is no shorter"),
        _ => format!("copies: {xid} has a copy in {name}, {to} bytes for {from}"),
    };
    engine.ring.write(Tag::Notice, LogId::NONE, text.as_bytes());
}

/// Result of the work.
enum Made {
    /// A shorter body.
    Body(Vec<u8>),
    /// The copy would be hardly shorter, or the stored body is damaged or too long.
    NoGain,
    /// The worker stops.
    GivenUp,
}

/// State that the thread needs.
struct Work {
    engine: Arc<Engine>,
    original: Arc<Object>,
    from: Option<Encoding>,
    to: Encoding,
    level: u64,
    cpu_percent: u32,
    /// The copy is useful only if it is no longer than this.
    bytes_max: u64,
}

impl Work {
    fn new(engine: &Arc<Engine>, original: &Arc<Object>, to: Encoding, parameters: &Parameters) -> Work {
        let stored_bytes = original.available_bytes();
        let from = coding_of(original.flags());
        Work {
            engine: Arc::clone(engine),
            original: Arc::clone(original),
            from,
            to,
            level: match to {
                Encoding::Gzip => parameters.gzip_level,
                Encoding::Brotli => parameters.brotli_level,
                Encoding::Zstd => parameters.zstd_level,
            },
            cpu_percent: u32::try_from(parameters.compress_cpu).unwrap_or(100).clamp(1, 100),
            bytes_max: match from {
                None | Some(Encoding::Gzip) => stored_bytes - stored_bytes / COPY_GAIN_PART,
                // Clients that request this copy cannot use the stored body: any coding is better
                // than decoding it each time.
                Some(Encoding::Brotli | Encoding::Zstd) => COPIED_BYTES_MAX,
            },
        }
    }

    /// The most memory that the work takes, in bytes.
    fn memory_bytes(&self) -> usize {
        held_bytes(&self.original)
            + self.machines().map(|machine| machine.state_bytes() + FILTER_STEP_BYTES_MAX).sum::<usize>()
            + usize::try_from(self.bytes_max).unwrap_or(usize::MAX)
    }

    fn machines(&self) -> impl Iterator<Item = Box<dyn Machine>> + use<> {
        let unpack: Option<Box<dyn Machine>> = self.from.map(|encoding| -> Box<dyn Machine> {
            match encoding {
                Encoding::Gzip => Box::new(Gunzip::new(None)),
                Encoding::Brotli => Box::new(Unbrotli::default()),
                Encoding::Zstd => Box::new(Unzstd::default()),
            }
        });
        let plain_bytes = self.from.is_none().then(|| self.original.available_bytes());
        let pack: Box<dyn Machine> = match self.to {
            Encoding::Gzip => Box::new(Gzip::new(self.level as u32)),
            Encoding::Brotli => Box::new(Brotli::new(self.level, plain_bytes)),
            Encoding::Zstd => Box::new(Zstd::new(self.level, plain_bytes)),
        };
        unpack.into_iter().chain([pack])
    }

    fn result(&self) -> Made {
        match self.packed() {
            Ok(Some(body)) => Made::Body(body),
            Ok(None) if self.engine.draining.load(Relaxed) || self.original.is_removed() => Made::GivenUp,
            Ok(None) | Err(_) => Made::NoGain,
        }
    }

    /// The compressed body; `None` if it becomes too long or the worker stops.
    fn packed(&self) -> Result<Option<Vec<u8>>, FilterError> {
        let mut chain = Chain::default();
        for machine in self.machines() {
            let _ = chain.push(machine);
        }
        let packer = chain.len() - 1;
        let (mut out, mut offset, mut pace) = (Vec::new(), 0, Pace::new(self.cpu_percent));
        let mut reader = self.original.reader();
        while !chain.has_ended() {
            if let Some(reader) = reader.as_mut().filter(|_| self.original.is_on_disk()) {
                // This is a thread of its own, which may wait.
                tokio::runtime::Handle::current().block_on(are_there(reader, offset));
                if reader.has_failed() {
                    return Ok(None);
                }
            }
            let input = reader.as_mut().and_then(|reader| reader.chunk_at(offset)).filter(|piece| !piece.is_empty());
            let step = chain.step(input.map(|piece| &piece[..piece.len().min(FILTER_STEP_BYTES_MAX)]))?;
            out.extend_from_slice(step.bytes);
            offset += step.taken as u64;
            if input.is_none() && step.flow == Flow::Hungry {
                break;
            }
            let is_too_long = out.len() as u64 > self.bytes_max || chain.passed(packer).0.bytes_in > COPIED_BYTES_MAX;
            if is_too_long || self.engine.draining.load(Relaxed) {
                return Ok(None);
            }
            pace.keep();
        }
        pace.rest();
        Ok(Some(out).filter(|out| !out.is_empty()))
    }
}

/// Sleeps in proportion to the work done.
struct Pace {
    begun: Instant,
    percent: u32,
}

impl Pace {
    fn new(percent: u32) -> Pace {
        Pace { begun: Instant::now(), percent }
    }

    /// Sleeps if enough work was done.
    fn keep(&mut self) {
        if self.begun.elapsed() >= WORK_AT_ONCE {
            self.rest();
        }
    }

    /// Sleeps for the work done since the last time.
    fn rest(&mut self) {
        std::thread::sleep(self.begun.elapsed() * (100 - self.percent) / self.percent);
        self.begun = Instant::now();
    }
}
