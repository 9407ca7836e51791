//! What VCL and VMODs can remove from the cache: bans, and purges by tag.

use crate::storages::files::{NOT_SETTLED, settle};
use cache::{BanSpecification, Cache, Purge, TagPurge};
use shm::log::{LogId, LogRing};
use store::Store;
use surface::limits::VCL_BAN_BYTES_MAX;
use surface::tag::Tag;
use vcl_run::value::Value;
use vmods::{Finish, Pending, PurgeKind};

use super::value::int;

/// How many objects a purge by tag examines before other tasks of the event loop get a turn.
const TAG_PURGE_OBJECTS: usize = 1000;

/// Adds a ban.
///
/// # Errors
/// The text for `std.ban_error()` and for the log.
pub(super) fn add_ban(cache: &Cache, expression: &[u8], now: f64) -> Result<(), String> {
    if expression.len() > VCL_BAN_BYTES_MAX {
        return Err(format!("Ban expression of more than {VCL_BAN_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(expression).map_err(|_| "Ban expression is not text".to_owned())?;
    cache.ban(BanSpecification::parse_text(text)?, now)
}

/// Makes bans durable, on a thread that may wait.
pub(super) fn sync_bans(cache: &Cache, ring: &LogRing) {
    if let Err(error) = cache.sync_bans() {
        let text = format_args!("the disk has not got the bans, which hold until it loses power: {error}");
        ring.write_fmt(Tag::Error, LogId::NONE, text);
    }
}

/// Purges by tag: returns the value of the call, or what to wait for when there are too many objects for one go, or storages whose
/// disks have to know of it.
pub(super) fn purge_tags(
    cache: &Cache,
    list: &[u8],
    kind: PurgeKind,
    now: f64,
    filed: Vec<Store>,
) -> Result<Value, Pending> {
    let mut purge = cache.purge_tags(list, purge_of(kind), now);
    let is_done = purge.step(TAG_PURGE_OBJECTS);
    if is_done && filed.is_empty() {
        return Ok(count(&purge));
    }
    Err(Box::pin(async move {
        while !purge.step(TAG_PURGE_OBJECTS) {
            tokio::task::yield_now().await;
        }
        settled(filed, count(&purge)).await
    }))
}

/// Waits until what was removed from these storages stays away, then makes the value of the call.
pub(super) fn settled(filed: Vec<Store>, value: Value) -> Pending {
    Box::pin(async move {
        let is_settled = settle(filed).await;
        let finish: Finish = Box::new(move |context, _| {
            if !is_settled {
                context.log(Tag::Error, NOT_SETTLED.as_bytes());
            }
            Ok(value)
        });
        finish
    })
}

/// As [`purge_tags`], where nothing can wait.
pub(super) fn purge_tags_at_once(cache: &Cache, list: &[u8], kind: PurgeKind, now: f64) -> Value {
    let mut purge = cache.purge_tags(list, purge_of(kind), now);
    purge.step(usize::MAX);
    count(&purge)
}

fn count(purge: &TagPurge) -> Value {
    int(purge.count() as u64)
}

/// The cache's term for what a VMOD asks for.
pub(super) fn purge_of(kind: PurgeKind) -> Purge {
    match kind {
        PurgeKind::Hard => Purge::Hard,
        PurgeKind::Soft { ttl, grace, keep } => Purge::Soft { ttl, grace, keep },
    }
}
