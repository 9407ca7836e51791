//! CLI commands that the worker answers: bans, tags, backends, debug.

use crate::configure::Worker;
use crate::{backend_list, ban_list};
use cache::{BanSpecification, Purge};
use cli_proto::json::JsonReply;
use cli_proto::response::Response;
use cli_proto::response::status::{CANNOT, PARAMETER, UNKNOWN};
use cli_proto::server::UNKNOWN_REQUEST;
use shm::layout::Layout;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use surface::cli::{Executor, WorkerCommand};

/// Number of objects that a purge by tag examines before other tasks of this thread get a turn.
const TAG_PURGE_OBJECTS: usize = 1000;

/// Runs one command; the manager has checked the number of arguments.
pub async fn run(worker: &Rc<Worker>, words: &[String], json: bool) -> Response {
    let arguments = words.get(1..).unwrap_or(&[]);
    let verb = words.first().map_or("", String::as_str);
    let Some(Executor::Worker(command)) = surface::cli::command(verb).map(|row| row.executor) else {
        return Response::new(UNKNOWN, format!("{UNKNOWN_REQUEST} ({verb})"));
    };
    match command {
        WorkerCommand::Ban => ban(worker, arguments).await,
        WorkerCommand::TagCount => count_tags(worker, words, json).await,
        WorkerCommand::TagPurge => purge_tags(worker, words, Purge::Hard, json).await,
        WorkerCommand::TagSoftpurge => {
            purge_tags(worker, words, Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 }, json).await
        }
        WorkerCommand::BanList if json => ban_list_json(worker, words),
        WorkerCommand::BanList => Response::ok(ban_list::text(&worker.engine.cache.list_bans())),
        WorkerCommand::BackendList => backend_list(worker, arguments, json),
        WorkerCommand::BackendSetHealth => set_health(worker, arguments),
        WorkerCommand::DebugListenAddress => Response::ok(listen_addresses(worker)),
        WorkerCommand::DebugXid => xid(worker, arguments),
        WorkerCommand::DebugSrandom => match number(arguments, 0) {
            Ok(seed) => {
                worker.engine.random.seed(seed.unwrap_or(backend::random::DEFAULT_SEED));
                Response::ok("")
            }
            Err(reply) => reply,
        },
        WorkerCommand::DebugFragfetch => match number(arguments, 0) {
            Ok(bytes) => {
                worker.engine.fragment_fetch_bytes.store(bytes.unwrap_or(0), Ordering::Relaxed);
                Response::ok("")
            }
            Err(reply) => reply,
        },
        WorkerCommand::DebugShutdownDelay => match number::<f64>(arguments, 0) {
            Ok(seconds) => {
                worker.shutdown_delay.set(seconds.unwrap_or(0.0));
                Response::ok("")
            }
            Err(reply) => reply,
        },
        WorkerCommand::DebugVmod => Response::ok(vmods(worker)),
        WorkerCommand::DebugPanicWorker => panic_on_request(),
        WorkerCommand::DebugReqpoolFail => Response::new(CANNOT, "This design has no pool of requests that could fail"),
    }
}

/// `debug.panic.worker`: ends the process as an uncontained internal error would.
fn panic_on_request() -> Response {
    // The hook writes the text. The abort follows, since the event loop would contain a panic on
    // this thread.
    let _ = std::panic::catch_unwind(|| panic!("You asked for it"));
    std::process::abort()
}

fn number<T: std::str::FromStr>(arguments: &[String], at: usize) -> Result<Option<T>, Response> {
    match arguments.get(at) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| Response::new(PARAMETER, format!("Not a number: '{text}'"))),
    }
}

/// `ban`. The reply is sent once the ban is durable.
async fn ban(worker: &Worker, arguments: &[String]) -> Response {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // A whole expression given as one word, as from scripts that quote too much.
    let parsed = match words.as_slice() {
        [text] => BanSpecification::parse_text(text),
        words => BanSpecification::parse(words),
    };
    if let Err(text) = parsed.and_then(|specification| worker.engine.cache.ban(specification, worker.own.clock.now())) {
        return Response::new(PARAMETER, text);
    }
    let engine = Arc::clone(&worker.engine);
    match tokio::task::spawn_blocking(move || engine.cache.sync_bans()).await {
        Ok(Ok(())) => Response::ok(""),
        Ok(Err(error)) => Response::new(CANNOT, format!("Ban active, but could not be persisted: {error}")),
        Err(error) => Response::new(CANNOT, error.to_string()),
    }
}

fn ban_list_json(worker: &Worker, words: &[String]) -> Response {
    let mut command = vec!["ban.list".to_owned(), "-j".to_owned()];
    command.extend(words.iter().skip(1).cloned());
    let mut reply = JsonReply::new(2, &command, worker.own.clock.now());
    let elements = ban_list::json(&worker.engine.cache.list_bans());
    if !elements.is_empty() {
        reply.push("\n", &elements);
    }
    Response::ok(reply.finish())
}

/// `tag.purge`, `tag.softpurge`. The reply is sent once everything is durable.
async fn purge_tags(worker: &Worker, words: &[String], purge: Purge, json: bool) -> Response {
    let tags = words.get(1..).unwrap_or(&[]).join(" ");
    let now = worker.own.clock.now();
    let mut purge = worker.engine.cache.purge_tags(tags.as_bytes(), purge, now);
    while !purge.step(TAG_PURGE_OBJECTS) {
        tokio::task::yield_now().await;
    }
    let objects = purge.objects();
    for store in worker.engine.cache.stores() {
        if !store.settle().await {
            let name = store.name();
            return Response::new(
                CANNOT,
                format!("{objects} objects are gone, but the file of {name} could not be written"),
            );
        }
    }
    number_of_objects(objects, words, json, now)
}

/// `tag.count`. Tags may change while objects are counted.
async fn count_tags(worker: &Worker, words: &[String], json: bool) -> Response {
    let tags = words.get(1..).unwrap_or(&[]).join(" ");
    let mut count = worker.engine.cache.count_tags(tags.as_bytes());
    while !count.step(TAG_PURGE_OBJECTS) {
        tokio::task::yield_now().await;
    }
    number_of_objects(count.objects(), words, json, worker.own.clock.now())
}

fn number_of_objects(objects: usize, words: &[String], json: bool, now: f64) -> Response {
    if !json {
        return Response::ok(format!("{objects} object{}", if objects == 1 { "" } else { "s" }));
    }
    let mut command = vec![words[0].clone(), "-j".to_owned()];
    command.extend(words.iter().skip(1).cloned());
    let mut reply = JsonReply::new(2, &command, now);
    reply.push("\n", &format!("  {{ \"objects\": {objects} }}"));
    Response::ok(reply.finish())
}

fn backend_list(worker: &Worker, arguments: &[String], json: bool) -> Response {
    let table = worker.engine.vcl.load_full();
    let directors: Vec<_> = table.loaded.values().map(|vcl| &vcl.directors).collect();
    let active = table.active.as_ref().map(|vcl| vcl.name.as_str());
    match backend_list::backend_list(arguments, json, &directors, active, worker.own.clock.now()) {
        Ok(text) => Response::ok(text),
        Err(text) => Response::new(PARAMETER, text),
    }
}

fn set_health(worker: &Worker, arguments: &[String]) -> Response {
    let [pattern, state] = arguments else {
        return Response::new(PARAMETER, "A pattern and a state are needed");
    };
    let table = worker.engine.vcl.load_full();
    let directors: Vec<_> = table.loaded.values().map(|vcl| &vcl.directors).collect();
    let active = table.active.as_ref().map(|vcl| vcl.name.as_str());
    match backend_list::set_health(pattern, state, &directors, active, worker.own.clock.now()) {
        Ok(()) => Response::ok(""),
        Err(text) => Response::new(PARAMETER, text),
    }
}

fn listen_addresses(worker: &Worker) -> String {
    let mut text = String::new();
    for (listener, address) in worker.listeners.iter().zip(&worker.addresses) {
        let _ = match (&listener.path, address) {
            (Some(path), _) => writeln!(text, "{} {} -", listener.name, path.display()),
            (None, Some(address)) => writeln!(text, "{} {} {}", listener.name, address.ip(), address.port()),
            (None, None) => writeln!(text, "{} {} -", listener.name, listener.endpoint),
        };
    }
    text
}

fn xid(worker: &Worker, arguments: &[String]) -> Response {
    match (number::<u64>(arguments, 0), number::<u64>(arguments, 1)) {
        (Ok(base), Ok(chunk)) => {
            let vxids = &worker.engine.vxids;
            // Compat: the number is the last one in 7.1, and the next one in 7.3.
            let next = match worker.engine.ring.layout() {
                Layout::V71 => 0,
                Layout::V73 => 1,
            };
            if let Some(base) = base {
                vxids.set_last(base.saturating_sub(next), chunk.unwrap_or(1));
            }
            Response::ok(format!("XID is {} chunk {}", vxids.last() + next, vxids.block()))
        }
        (Err(reply), _) | (_, Err(reply)) => reply,
    }
}

fn vmods(worker: &Worker) -> String {
    let table = worker.engine.vcl.load_full();
    let mut text = String::new();
    for row in surface::vmod::VMODS {
        let users =
            table.loaded.values().filter(|vcl| vcl.program.program().vmods.iter().any(|name| name == row.name)).count();
        if users > 0 {
            let _ = writeln!(text, "{users:5} {} (native)", row.name);
        }
    }
    text
}
