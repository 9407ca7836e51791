//! Stored parts (206) at a lookup: the requests that they answer, the part that helps a fetch, and
//! the fetches worth waiting for.
//!
//! Several parts of one response are stored under its key, at most [`PARTS_MAX`] of them. A part
//! that does not contain the requested range is passed over; the most useful of them is given to
//! the fetch, which may complete it or join it with the bytes that it receives. Only requests that
//! [`Want::parts`] allows see parts at all. Source: RFC 9111 §3.3, §3.4. Next file: `lookup.rs`.

use crate::digest::Digest;
use crate::shard::{BusyMark, Shard};
use message::Message;
use semantics::part::{Part, range_to_pass_on};
use std::sync::Arc;
use store::{BodyState, Object, ObjectFlags};
use surface::limits::PARTS_MAX;

/// The properties of a request that are needed to judge parts.
#[derive(Clone, Copy)]
pub(crate) struct Want<'a> {
    /// A part may answer the request, and its fetch may ask for one.
    pub(crate) parts: bool,
    /// The request.
    pub(crate) request: &'a Message,
    /// Its time, seconds since 1970.
    pub(crate) now: f64,
}

/// The parts that a lookup has seen and not used.
#[derive(Default)]
pub(crate) struct PassedOver {
    count: usize,
    best: Option<(u64, Arc<Object>)>,
    head: Message,
}

/// The decision about a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// It contains the requested range.
    Answers,
    /// It does not contain it.
    PassedOver,
    /// It does not contain it, and there are more parts than may be kept.
    Surplus,
}

impl PassedOver {
    /// Judges a stored part; those of a key are shown newest first.
    #[cold]
    pub(crate) fn judge(&mut self, object: &Arc<Object>, request: Want<'_>) -> Use {
        if request.parts
            && self.head.decode(object.head()).is_some()
            && let Some(part) = Part::of_message(&self.head, object.promised_bytes())
        {
            if part.suffices(request.request, &self.head) {
                return Use::Answers;
            }
            let is_ready = object.state() == BodyState::Complete
                && !object.has_overflowed()
                && object.origin() + object.ttl() > request.now
                && !object.flags().has(ObjectFlags::REVALIDATE);
            if let Some(worth) = part.helps(request.request, &self.head).filter(|_| is_ready)
                && self.best.as_ref().is_none_or(|(best, _)| *best < worth)
            {
                self.best = Some((worth, Arc::clone(object)));
            }
        }
        self.count += 1;
        if self.count > PARTS_MAX { Use::Surplus } else { Use::PassedOver }
    }

    /// True if there were any.
    pub(crate) fn are_any(&self) -> bool {
        self.count > 0
    }

    /// The most useful one.
    pub(crate) fn into_best(self) -> Option<Arc<Object>> {
        self.best.map(|(_, object)| object)
    }
}

/// True if a fetch may ask for the part that its request names, given the expired object that its
/// response will replace: a complete object is renewed completely.
#[must_use]
pub fn may_ask_for_part(stale: Option<&Object>) -> bool {
    let may_give_way = [ObjectFlags::PARTIAL, ObjectFlags::HIT_FOR_MISS];
    stale.is_none_or(|stale| may_give_way.iter().any(|flag| stale.flags().has(*flag)))
}

/// The Range that the fetch for this request will send on; empty = none.
fn range_of<'a>(request: Want<'a>, stale: Option<&Object>) -> &'a [u8] {
    if !request.parts || !may_ask_for_part(stale) {
        return b"";
    }
    range_to_pass_on(request.request).unwrap_or_default()
}

/// True if a running fetch will bring the content that this request needs: the whole, or the same
/// part.
pub(crate) fn concerns(mark: &BusyMark, request: Want<'_>, stale: Option<&Object>) -> bool {
    mark.range.is_empty() || *mark.range == *range_of(request, stale)
}

/// Records the part that the newest fetch of a key requests.
pub(crate) fn note_range(shard: &mut Shard, digest: &Digest, request: Want<'_>, stale: Option<&Object>) {
    let range = range_of(request, stale);
    if !range.is_empty()
        && let Some(mark) = shard.existing_head(digest).and_then(|head| head.busy.last_mut())
    {
        mark.range = range.into();
    }
}
