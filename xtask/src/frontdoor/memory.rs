//! `frontdoor --memory`: bytes resident for each connection that a front door holds: idle over TLS, idle over HTTP/2 and HTTP/3,
//! and over HTTP/2 with ten requests that wait for a slow origin, for one page or for a page each.
//!
//! Sizes are proportional set sizes of the whole process tree, before and after the connections are there.

use super::clients::{self, address, config, localhost};
use super::servers::{Certificates, Door, Peer};
use crate::process::memory_bytes;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

/// Connections of a kind.
const CONNECTIONS: usize = 500;
/// Connections of HTTP/2 with waiting requests: fewer, since a peer may ask the origin for each of them.
const WAITING: usize = 100;
/// Requests waiting on each connection of HTTP/2.
const STREAMS: usize = 10;

/// What is held.
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
            if held == Held::Http3 && *peer != Peer::Copal {
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
    runtime.block_on(async {
        // What the first connections cost once is not counted.
        let _first = hold(door, held, 20).await?;
        let before = settled(door).await;
        let _rest = hold(door, held, count).await?;
        Ok((settled(door).await - before) / count as f64)
    })
}

/// Opens connections and returns what keeps them open.
async fn hold(door: &Door, held: Held, count: usize) -> Result<Vec<Box<dyn std::any::Any>>, String> {
    let mut all: Vec<Box<dyn std::any::Any>> = Vec::new();
    let said = |error: &dyn std::fmt::Display| error.to_string();
    for number in 0..count {
        if held == Held::Http3 {
            all.push(clients::hold_http3(door.ecdsa).await?);
            continue;
        }
        let port = if held == Held::Clear { door.clear } else { door.ecdsa };
        let mut stream = tokio::net::TcpStream::connect(address(port)).await.map_err(|e| said(&e))?;
        let request = b"GET /b1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut buffer = vec![0; 8 << 10];
        if held == Held::Clear {
            stream.write_all(request).await.map_err(|e| said(&e))?;
            let _ = stream.read(&mut buffer).await.map_err(|e| said(&e))?;
            all.push(Box::new(stream));
            continue;
        }
        let protocols: &[&[u8]] = if held == Held::Tls { &[b"http/1.1"] } else { &[b"h2"] };
        let connector = TlsConnector::from(Arc::new(config(protocols, false)?));
        let mut stream = connector.connect(localhost()?, stream).await.map_err(|e| said(&e))?;
        if held == Held::Tls {
            stream.write_all(request).await.map_err(|e| said(&e))?;
            let _ = stream.read(&mut buffer).await.map_err(|e| said(&e))?;
            all.push(Box::new(stream));
            continue;
        }
        let (requests, connection) = h2::client::handshake(stream).await.map_err(|e| said(&e))?;
        all.push(Box::new(tokio::spawn(connection)));
        let mut requests = requests.ready().await.map_err(|e| said(&e))?;
        for stream in 0..if held == Held::Http2 { 1 } else { STREAMS } {
            let path = match held {
                Held::Http2 => "b1".to_owned(),
                // Of the first connections and of the rest.
                Held::Http2Fetching => format!("slow/{count}/{number}/{stream}"),
                _ => "slow".to_owned(),
            };
            let request = http::Request::get(format!("https://localhost/{path}")).body(()).map_err(|e| said(&e))?;
            requests = requests.ready().await.map_err(|e| said(&e))?;
            let (response, _) = requests.send_request(request, true).map_err(|e| said(&e))?;
            if held == Held::Http2 {
                let mut body = response.await.map_err(|e| said(&e))?.into_body();
                while body.data().await.is_some() {}
            } else {
                all.push(Box::new(response));
            }
        }
        all.push(Box::new(requests));
    }
    Ok(all)
}

/// An origin in this process: what begins with `/slow` is never answered, everything else has a small body that may be kept.
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
