//! What VCL and VMODs can remove from the cache: bans, and purges by tag.

use cache::{BanSpecification, Cache, Purge, TagPurge};
use surface::limits::VCL_BAN_BYTES_MAX;
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

/// Purges by tag: returns the value of the call, or what to wait for when there are too many objects for one go.
pub(super) fn purge_tags(cache: &Cache, list: &[u8], kind: PurgeKind, now: f64) -> Result<Value, Pending> {
    let mut purge = cache.purge_tags(list, purge_of(kind), now);
    if purge.step(TAG_PURGE_OBJECTS) {
        return Ok(count(&purge));
    }
    Err(Box::pin(async move {
        while !purge.step(TAG_PURGE_OBJECTS) {
            tokio::task::yield_now().await;
        }
        let finish: Finish = Box::new(move |_, _| Ok(count(&purge)));
        finish
    }))
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
