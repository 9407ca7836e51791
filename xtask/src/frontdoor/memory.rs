//! `cargo xtask frontdoor`: resident bytes for each connection of a front door: idle over TLS, idle
//! over HTTP/2 and HTTP/3, and over HTTP/2 with ten requests that wait for a slow origin, for one
//! page or for a page each.
//!
//! Sizes are proportional set sizes of the whole process tree, before and after opening the
//! connections.

use super::servers::{Certificates, Door, Peer};
use crate::process::memory_bytes;
use load::client::Connector;
use load::exchange::Ask;
use load::plan::{Plan, Protocol, Target};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Number of connections of a kind.
const CONNECTIONS: usize = 500;
/// Number of HTTP/2 connections with waiting requests: fewer, since a peer may forward each of them
/// to the origin.
const WAITING: usize = 100;
/// Requests waiting on each connection of HTTP/2.
const STREAMS: usize = 10;

/// Kind of held connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Clear,
    Tls,
    Http2,
    Http2Waiting,
    Http2Fetching,
    Http3,
}

const KINDS: [(Held, &str); 6] = [
    (Held::Clear, "idle, HTTP/1.1 in clear"),
    (Held::Tls, "idle, HTTP/1.1 over TLS"),
    (Held::Http2, "idle, HTTP/2 over TLS"),
    (Held::Http2Waiting, "HTTP/2 over TLS, ten requests waiting for one page"),
    (Held::Http2Fetching, "HTTP/2 over TLS, ten requests waiting for a page each"),
    (Held::Http3, "idle, HTTP/3"),
];

/// Measures all peers that are installed; returns Markdown.
pub fn measure(folder: &Path, certificates: &Certificates, peers: &[Peer]) -> Result<String, String> {
    let origin = slow_origin()?;
    let mut text = String::from("\nBytes resident for each connection\n\n| held |");
    for peer in peers {
        let _ = write!(text, " {} |", peer.name());
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(peers.len()));
    for (held, title) in KINDS {
        let _ = write!(text, "\n| {title} |");
        for peer in peers {
            if held == Held::Http3 && !peer.is_ours() {
                text.push_str(" – |");
                continue;
            }
            let folder = folder.join(format!("memory-{}", held as u8));
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let door = Door::open(*peer, origin, &folder, certificates, 0)?;
            let bytes = one(&door, held).map_err(|error| format!("{}, {title}: {error}", peer.name()))?;
            let _ = write!(text, " {bytes:.0} |");
        }
    }
    text.push('\n');
    Ok(text)
}

async fn settled(door: &Door) -> f64 {
    tokio::time::sleep(Duration::from_millis(1500)).await;
    memory_bytes(&door.pids()) as f64
}

fn one(door: &Door, held: Held) -> Result<f64, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let count = if matches!(held, Held::Http2Waiting | Held::Http2Fetching) { WAITING } else { CONNECTIONS };
    tokio::task::LocalSet::new().block_on(&runtime, async {
        // The one-time cost of the first connections is not counted.
        let _first = hold(door, held, 20).await?;
        let before = settled(door).await;
        let _rest = hold(door, held, count).await?;
        Ok((settled(door).await - before) / count as f64)
    })
}

/// Opens connections and returns the handles that keep them open.
async fn hold(door: &Door, held: Held, count: usize) -> Result<Vec<Box<dyn std::any::Any>>, String> {
    let is_clear = held == Held::Clear;
    let port = if is_clear { door.clear } else { door.ecdsa };
    let protocol = match held {
        Held::Clear | Held::Tls => Protocol::Http1,
        Held::Http2 | Held::Http2Waiting | Held::Http2Fetching => Protocol::Http2,
        Held::Http3 => Protocol::Http3,
    };
    let plan = Plan { protocol, ..Plan::new(Target::local(port, !is_clear)) };
    let mut all: Vec<Box<dyn std::any::Any>> = Vec::new();
    for number in 0..count {
        // Each has its own socket: no QUIC socket is shared.
        let way = Connector::new(&plan).map_err(|failure| failure.said)?;
        let mut client = way.open().await.map_err(|failure| failure.said)?;
        all.push(Box::new(way));
        if matches!(held, Held::Http2Waiting | Held::Http2Fetching) {
            for stream in 0..STREAMS {
                let path = match held {
                    // Paths of the first connections and of the rest.
                    Held::Http2Fetching => format!("/slow/{count}/{number}/{stream}"),
                    _ => "/slow".to_owned(),
                };
                let mut waiting = client.share().ok_or("HTTP/2 shares its connections")?;
                all.push(Box::new(tokio::task::spawn_local(async move { waiting.ask(&get(&path), None).await })));
            }
        } else {
            client.ask(&get("/b1"), None).await.map_err(|failure| failure.said)?;
        }
        all.push(Box::new(client));
    }
    Ok(all)
}

fn get(path: &str) -> Ask<'_> {
    Ask { method: "GET", path, authority: "localhost", headers: &[], is_last: false }
}

/// An origin in this process: paths that begin with `/slow` are never answered, all others have a
/// small storable body.
fn slow_origin() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(port)
}

fn answer(mut stream: TcpStream) {
    let mut buffer = [0; 8 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if buffer[..count].starts_with(b"GET /slow") {
            std::thread::sleep(Duration::from_secs(120));
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=3600\r\n\r\nok";
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}
