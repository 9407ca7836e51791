//! Promotion: copies in memory of bodies in a file, made once an object has been hit a few times,
//! and sent instead of it.
//!
//! Such a copy is found as a compressed one is (`copies.rs`): under a key derived from the
//! original, so only a lookup of the original leads to it, and it never yields an outdated body. It
//! has the body as it is stored, and the plan of a page; when memory is short it is evicted like
//! others, and made again. One is made at a time in each event loop, piece by piece between other
//! tasks. An order that arrives during that is dropped: an object that is worth it is soon
//! requested again. Next file: `request/disk_tier.rs`.

use crate::bodies::disk_tier::{are_there, held_bytes};
use crate::context::Loop;
use crate::copies;
use crate::memory::Held;
use cache::is_pinned;
use message::Message;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{Object, ObjectAttributes, ObjectFlags};
use surface::counter::Main;
use surface::parameter::Parameters;

/// Name from which a copy's key is derived.
const IN_MEMORY: &str = "in memory";

/// Objects of these kinds have no copies.
const WITHOUT_COPY: [ObjectFlags; 4] =
    [ObjectFlags::PRIVATE, ObjectFlags::PARTIAL, ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS];

/// The copy in memory of an object that was found. If there is none, one may be made for later
/// requests.
pub(crate) fn copy(context: &Rc<Loop>, original: &Arc<Object>, now: f64) -> Option<Arc<Object>> {
    let engine = &context.engine;
    let parameters = engine.parameters.load();
    if !engine.storages.promote(&parameters) || !is_fit(original, &parameters) {
        return None;
    }
    let copy = engine.cache.copy(&key(original), now);
    if copy.is_none() && u64::from(original.hits()) >= parameters.storage_promote_hits && !is_pinned(original) {
        order(context, original);
    }
    copy.filter(|copy| copy.available_bytes() == original.available_bytes())
}

fn is_fit(object: &Object, parameters: &Parameters) -> bool {
    object.is_whole()
        && (1..=parameters.storage_promote_bytes).contains(&object.available_bytes())
        && !WITHOUT_COPY.iter().any(|kind| object.flags().has(*kind))
}

fn key(original: &Object) -> [u8; 32] {
    copies::derived_key(original, IN_MEMORY)
}

/// Has a copy made, unless another one is being made or memory is short.
fn order(context: &Rc<Loop>, original: &Arc<Object>) {
    if context.memory.is_short() || context.engine.draining.load(Relaxed) || context.is_promoting.replace(true) {
        return;
    }
    let turn = Turn(Rc::clone(context));
    let original = Arc::clone(original);
    tokio::task::spawn_local(async move {
        let mut held = Held::default();
        held.set(&turn.0.memory, held_bytes(&original));
        let made = make(&turn.0, &original).await;
        if let Some(copy) = made.filter(|_| !original.is_removed()) {
            turn.0.engine.cache.keep_copy(&copy);
            turn.0.count(Main::Promoted);
        }
    });
}

/// The right to make a copy.
struct Turn(Rc<Loop>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.is_promoting.set(false);
    }
}

/// Makes a copy. `None` if there is no room for it, or the body cannot be read.
async fn make(context: &Loop, original: &Arc<Object>) -> Option<Arc<Object>> {
    let body_bytes = original.available_bytes();
    let attributes = ObjectAttributes {
        key: key(original),
        xid: original.vxid(),
        origin: original.origin(),
        ttl: original.ttl() + original.grace(),
        flags: original.flags(),
        body_bytes: Some(body_bytes),
        transient: original.flags().has(ObjectFlags::TRANSIENT),
        ..ObjectAttributes::default()
    };
    let mut head = Message::new();
    head.set_protocol(b"HTTP/1.1");
    head.set_status(200);
    let mut encoded = Vec::new();
    head.encode(&mut encoded);
    let copy = context.engine.storages.next_in_memory().create(&attributes, &encoded).ok()?;
    let mut reader = original.reader()?;
    let mut offset = 0;
    while offset < body_bytes {
        if !are_there(&mut reader, offset).await {
            copy.fail();
            return None;
        }
        let piece = reader.chunk_at(offset)?;
        if copy.append(piece).await.is_err() {
            copy.fail();
            return None;
        }
        offset += piece.len() as u64;
        tokio::task::yield_now().await;
    }
    copy.finish_with(&original.annex().unwrap_or_default()).ok()?;
    Some(copy)
}
