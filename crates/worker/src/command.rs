//! CLI commands that the worker answers: bans, tags, backends, debug.

use crate::configure::Worker;
use crate::control::Reply;
use crate::{backend_list, ban_list};
use cache::{BanSpecification, Purge};
use cli_proto::json::JsonReply;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// CLI status: bad parameter.
const PARAMETER: u16 = 106;
/// CLI status: unknown command.
const UNKNOWN: u16 = 101;
/// CLI status: cannot be done now.
const CANNOT: u16 = 300;

/// How many objects a purge by tag examines before other tasks of this thread get a turn.
const TAG_PURGE_OBJECTS: usize = 1000;

/// Runs one command; the manager has checked the number of arguments.
pub async fn run(worker: &Rc<Worker>, words: &[String], json: bool) -> Reply {
    let arguments = words.get(1..).unwrap_or(&[]);
    match words.first().map_or("", String::as_str) {
        "ban" => ban(worker, arguments).await,
        "tag.purge" => purge_tags(worker, words, Purge::Hard, json).await,
        "tag.softpurge" => purge_tags(worker, words, Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 }, json).await,
        "ban.list" if json => ban_list_json(worker, words),
        "ban.list" => Reply::ok(ban_list::text(&worker.engine.cache.list_bans())),
        "backend.list" => backend_list(worker, arguments, json),
        "backend.set_health" => set_health(worker, arguments),
        "debug.listen_address" => Reply::ok(listen_addresses(worker)),
        "debug.xid" => xid(worker, arguments),
        "debug.srandom" => match number(arguments, 0) {
            Ok(seed) => {
                worker.engine.random.seed(seed.unwrap_or(backend::random::DEFAULT_SEED));
                Reply::ok("")
            }
            Err(reply) => reply,
        },
        "debug.fragfetch" => match number(arguments, 0) {
            Ok(bytes) => {
                worker.engine.fragment_fetch_bytes.store(bytes.unwrap_or(0), Ordering::Relaxed);
                Reply::ok("")
            }
            Err(reply) => reply,
        },
        "debug.shutdown.delay" => match number::<f64>(arguments, 0) {
            Ok(seconds) => {
                worker.shutdown_delay.set(seconds.unwrap_or(0.0));
                Reply::ok("")
            }
            Err(reply) => reply,
        },
        "debug.vmod" => Reply::ok(vmods(worker)),
        "debug.panic.worker" => panic_on_request(),
        "debug.reqpool.fail" => Reply::status(CANNOT, "This design has no pool of requests that could fail"),
        "debug.persistent" => Reply::status(CANNOT, "This build has no persistent storage"),
        other => Reply::status(UNKNOWN, format!("Unknown request.\nType 'help' for more info. ({other})")),
    }
}

/// `debug.panic.worker`: ends the process as an uncontained internal error would.
fn panic_on_request() -> Reply {
    // The hook writes the text. The abort follows, since the event loop would contain a panic on this thread.
    let _ = std::panic::catch_unwind(|| panic!("You asked for it"));
    std::process::abort()
}

fn number<T: std::str::FromStr>(arguments: &[String], at: usize) -> Result<Option<T>, Reply> {
    match arguments.get(at) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| Reply::status(PARAMETER, format!("Not a number: '{text}'"))),
    }
}

/// `ban`. The answer comes when the ban is durable.
async fn ban(worker: &Worker, arguments: &[String]) -> Reply {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // A whole expression given as one word, as from scripts that quote too much.
    let parsed = match words.as_slice() {
        [text] => BanSpecification::parse_text(text),
        words => BanSpecification::parse(words),
    };
    if let Err(text) = parsed.and_then(|specification| worker.engine.cache.ban(specification, worker.own.clock.now())) {
        return Reply::status(PARAMETER, text);
    }
    let engine = Arc::clone(&worker.engine);
    match tokio::task::spawn_blocking(move || engine.cache.sync_bans()).await {
        Ok(Ok(())) => Reply::ok(""),
        Ok(Err(error)) => Reply::status(CANNOT, format!("The ban holds, but the disk has not got it: {error}")),
        Err(error) => Reply::status(CANNOT, error.to_string()),
    }
}

fn ban_list_json(worker: &Worker, words: &[String]) -> Reply {
    let mut command = vec!["ban.list".to_owned(), "-j".to_owned()];
    command.extend(words.iter().skip(1).cloned());
    let mut reply = JsonReply::new(2, &command, worker.own.clock.now());
    let elements = ban_list::json(&worker.engine.cache.list_bans());
    if !elements.is_empty() {
        reply.push("\n", &elements);
    }
    Reply::ok(reply.finish())
}

/// `tag.purge`, `tag.softpurge`. The answer comes when everything is durable.
async fn purge_tags(worker: &Worker, words: &[String], purge: Purge, json: bool) -> Reply {
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
            return Reply::status(
                CANNOT,
                format!("{objects} objects are gone, but the file of {name} could not be written"),
            );
        }
    }
    if !json {
        return Reply::ok(format!("{objects} object{}", if objects == 1 { "" } else { "s" }));
    }
    let mut command = vec![words[0].clone(), "-j".to_owned()];
    command.extend(words.iter().skip(1).cloned());
    let mut reply = JsonReply::new(2, &command, now);
    reply.push("\n", &format!("  {{ \"objects\": {objects} }}"));
    Reply::ok(reply.finish())
}

fn backend_list(worker: &Worker, arguments: &[String], json: bool) -> Reply {
    let table = worker.engine.vcl.load_full();
    let directors: Vec<_> = table.loaded.values().map(|vcl| &vcl.directors).collect();
    let active = table.active.as_ref().map(|vcl| vcl.name.as_str());
    match backend_list::backend_list(arguments, json, &directors, active, worker.own.clock.now()) {
        Ok(text) => Reply::ok(text),
        Err(text) => Reply::status(PARAMETER, text),
    }
}

fn set_health(worker: &Worker, arguments: &[String]) -> Reply {
    let [pattern, state] = arguments else {
        return Reply::status(PARAMETER, "A pattern and a state are needed");
    };
    let table = worker.engine.vcl.load_full();
    let directors: Vec<_> = table.loaded.values().map(|vcl| &vcl.directors).collect();
    let active = table.active.as_ref().map(|vcl| vcl.name.as_str());
    match backend_list::set_health(pattern, state, &directors, active, worker.own.clock.now()) {
        Ok(()) => Reply::ok(""),
        Err(text) => Reply::status(PARAMETER, text),
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

fn xid(worker: &Worker, arguments: &[String]) -> Reply {
    match (number::<u32>(arguments, 0), number::<u32>(arguments, 1)) {
        (Ok(base), Ok(chunk)) => {
            let vxids = &worker.engine.vxids;
            if let Some(base) = base {
                vxids.set_last(base, chunk.unwrap_or(1));
            }
            Reply::ok(format!("XID is {} chunk {}", vxids.last(), vxids.block()))
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
