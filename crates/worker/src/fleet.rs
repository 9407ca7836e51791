//! Orders of a fleet, carried out in the cache.
//!
//! *Invariant:* the reply follows when all orders are as durable as what they remove, and no object
//! whose fetch began before an order is served after its reply.

use crate::configure::Worker;
use cache::{BanSpecification, Purge};
use cli_proto::response::Response;
use cli_proto::response::status::{CANNOT, PARAMETER};
use control::fleet::{Applied, FleetOrder, FleetServing};
use engine::fleet::Conditions;
use std::rc::Rc;
use std::sync::Arc;

/// Number of objects that a purge by tag examines before other tasks of this thread get a turn.
const PURGE_OBJECTS: usize = 1000;
/// A soft purge, as `tag.softpurge` does it.
const SOFT: Purge = Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 };

/// The conditions of the engine.
pub fn conditions(serving: FleetServing) -> Conditions {
    match serving {
        FleetServing::Cache => Conditions::Cache,
        FleetServing::StaleLimit => Conditions::StaleLimit,
        FleetServing::Pass => Conditions::Pass,
    }
}

/// Checks an order without effect.
pub fn check(order: &FleetOrder) -> Response {
    match ban_of(order) {
        Some(Err(why)) => Response::new(PARAMETER, why),
        Some(Ok(_)) | None => Response::ok(""),
    }
}

/// The ban of an order that is one.
fn ban_of(order: &FleetOrder) -> Option<Result<BanSpecification, String>> {
    match order {
        FleetOrder::Ban(text) => Some(BanSpecification::parse_text(text)),
        FleetOrder::BanWords(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Some(BanSpecification::parse(&words))
        }
        FleetOrder::Nothing | FleetOrder::Key { .. } | FleetOrder::Tags { .. } | FleetOrder::Everything => None,
    }
}

/// Carries orders out. Anything but 200 means that they must be repeated.
pub async fn apply(worker: &Rc<Worker>, orders: Vec<FleetOrder>) -> Response {
    let mut results = Vec::with_capacity(orders.len());
    let changes_objects = orders.iter().any(|order| matches!(order, FleetOrder::Key { .. } | FleetOrder::Tags { .. }));
    let is_question = orders.iter().all(|order| *order == FleetOrder::Nothing);
    for order in &orders {
        match carry_out(worker, order).await {
            Ok(result) => results.push(result),
            Err(why) => return Response::new(CANNOT, why),
        }
    }
    let engine = Arc::clone(&worker.engine);
    if !is_question {
        match tokio::task::spawn_blocking(move || engine.cache.sync_bans()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Response::new(CANNOT, format!("the ban journal: {error}")),
            Err(error) => return Response::new(CANNOT, error.to_string()),
        }
    }
    if changes_objects {
        for store in worker.engine.cache.stores() {
            if !store.settle().await {
                return Response::new(CANNOT, format!("the file of {} could not be written", store.name()));
            }
        }
    }
    let (identity, sequence) = worker.engine.cache.mark();
    Response::ok(Applied { identity, sequence, orders: results }.text())
}

/// The number of objects, or the reason why the order can never be carried out.
///
/// # Errors
/// The reason why it could not be carried out now.
async fn carry_out(worker: &Rc<Worker>, order: &FleetOrder) -> Result<Result<u64, String>, String> {
    let (cache, now) = (&worker.engine.cache, worker.own.clock.now());
    if let Some(ban) = ban_of(order) {
        return match ban {
            Ok(ban) => cache.ban(ban, now).map(|()| Ok(0)),
            Err(why) => Ok(Err(why)),
        };
    }
    let objects = match order {
        FleetOrder::Key { digest, is_soft } => {
            let purge = if *is_soft { SOFT } else { Purge::Hard };
            cache.purge_with_fetches(digest, purge, now) as u64
        }
        FleetOrder::Tags { tags, is_soft } => {
            let purge = if *is_soft { SOFT } else { Purge::Hard };
            let mut purge = cache.purge_tags_and_fetches(tags.join(" ").as_bytes(), purge, now)?;
            while !purge.step(PURGE_OBJECTS) {
                tokio::task::yield_now().await;
            }
            purge.objects() as u64
        }
        FleetOrder::Everything => cache.ban_everything(now)?,
        FleetOrder::Nothing | FleetOrder::Ban(_) | FleetOrder::BanWords(_) => 0,
    };
    Ok(Ok(objects))
}
