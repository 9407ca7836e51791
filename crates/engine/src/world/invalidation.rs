//! Removal from the cache by VCL and VMODs: bans, and purges by tag.

use crate::storages::files::{NOT_SETTLED, settle};
use cache::{BanSpecification, Cache, TagPurge};
use semantics::Purge;
use shm::log::{LogId, LogRing};
use store::Store;
use surface::limits::VCL_BAN_BYTES_MAX;
use surface::tag::Tag;
use vcl_run::value::Value;
use vmods::{Finish, Pending};

use super::value::int;

/// Number of objects that a purge by tag examines before other tasks of the event loop get a turn.
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

/// Purges by tag: returns the value of the call, or a wait if there are too many objects for one
/// step, or storages whose disks have to record it.
pub(super) fn purge_tags(
    cache: &Cache,
    list: &[u8],
    kind: Purge,
    now: f64,
    on_disk: Vec<Store>,
) -> Result<Value, Pending> {
    let mut purge = cache.purge_tags(list, kind, now);
    let is_done = purge.step(TAG_PURGE_OBJECTS);
    if is_done && on_disk.is_empty() {
        return Ok(count(&purge));
    }
    Err(Box::pin(async move {
        while !purge.step(TAG_PURGE_OBJECTS) {
            tokio::task::yield_now().await;
        }
        settled(on_disk, count(&purge)).await
    }))
}

/// Waits until a removal from these storages is durable, then makes the value of the call.
pub(super) fn settled(on_disk: Vec<Store>, value: Value) -> Pending {
    Box::pin(async move {
        let is_settled = settle(on_disk).await;
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
pub(super) fn purge_tags_at_once(cache: &Cache, list: &[u8], kind: Purge, now: f64) -> Value {
    let mut purge = cache.purge_tags(list, kind, now);
    purge.step(usize::MAX);
    count(&purge)
}

fn count(purge: &TagPurge) -> Value {
    int(purge.count() as u64)
}
