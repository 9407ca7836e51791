//! Clients: send requests, abort now and then, and check every byte they get.

use super::Stage;
use super::book::Removal;
use super::resource::{Resource, Sharing};
use crate::support::{Client, Response, StreamClient};
use flate2::read::GzDecoder;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

/// Decisions about a fetch that VCL may be asked for.
const RULINGS: [&str; 6] = ["abandon early", "error early", "abandon", "fail", "error", "retry"];

/// A client's request.
struct Ask {
    variant: &'static str,
    client: String,
    /// Bytes wanted, both ends inclusive.
    range: Option<(usize, usize)>,
    accepts_gzip: bool,
    is_head: bool,
    is_refused: bool,
    /// VCL's decision about the fetch; empty = nothing special.
    ruling: &'static str,
    /// Bytes of a request body, which makes it a POST.
    body_bytes: Option<usize>,
    /// Milliseconds since the run began.
    at: u64,
}

/// The transport of a client.
enum Way {
    Own(Client),
    Stream(Rc<StreamClient>),
}

/// Runs a client to the end of its requests.
///
/// It has a connection of its own, or its requests are streams of one that it shares.
pub async fn run(stage: Rc<Stage>, index: usize, seed: u64, shared: Option<Rc<StreamClient>>) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut connection = match shared {
        Some(streams) => Way::Stream(streams),
        None => Way::Own(stage.world.client()),
    };
    for number in 0..rng.random_range(5..40) {
        if rng.random_bool(0.7) {
            tokio::time::sleep(Duration::from_millis(rng.random_range(0..3_000))).await;
        }
        let resource = &stage.resources[rng.random_range(0..stage.resources.len())];
        match rng.random_range(0..40) {
            0 => remove(&stage, resource, "PURGE").await,
            1 => remove(&stage, resource, "BAN").await,
            2 => {
                break_off(&stage, &connection, resource, &mut rng).await;
            }
            _ => {
                let ask = Ask {
                    variant: ["red", "blue"][rng.random_range(0..2)],
                    client: format!("c{index}n{number}"),
                    range: rng.random_bool(0.1).then(|| {
                        let first = rng.random_range(0..if stage.has_slices { 180_000 } else { 100 });
                        (first, first + rng.random_range(0..1000))
                    }),
                    accepts_gzip: rng.random_bool(0.5),
                    is_head: rng.random_bool(0.05),
                    is_refused: rng.random_ratio(resource.trouble, 300),
                    ruling: if rng.random_ratio(resource.trouble, 300) {
                        RULINGS[rng.random_range(0..RULINGS.len())]
                    } else {
                        ""
                    },
                    body_bytes: rng.random_bool(0.05).then(|| rng.random_range(0..100_000)),
                    at: stage.now(),
                };
                match &mut connection {
                    Way::Own(own) => {
                        if !get(&stage, own, resource, &ask).await {
                            connection = Way::Own(stage.world.client());
                        }
                    }
                    Way::Stream(streams) => get_on_stream(&stage, streams, resource, &ask).await,
                }
            }
        }
    }
}

fn request(method: &str, resource: &Resource, ask: &Ask) -> String {
    let mut request = format!(
        "{method} {} HTTP/1.1\r\nHost: sim\r\nX-Variant: {}\r\nX-Client: {}\r\n",
        resource.url, ask.variant, ask.client
    );
    if let Some((first, last)) = ask.range {
        request.push_str(&format!("Range: bytes={first}-{last}\r\n"));
    }
    if ask.accepts_gzip {
        request.push_str("Accept-Encoding: gzip\r\n");
    }
    if ask.is_refused {
        request.push_str("X-Refuse: yes\r\n");
    }
    if !ask.ruling.is_empty() {
        request.push_str(&format!("X-Ruling: {}\r\n", ask.ruling));
    }
    if let Some(length) = ask.body_bytes {
        request.push_str(&format!("Content-Length: {length}\r\n"));
    }
    request.push_str("\r\n");
    request
}

/// The body that a client posts.
pub fn posted(client: &str, length: usize) -> Vec<u8> {
    client.bytes().cycle().take(length).collect()
}

/// Sends a request and checks the response; returns false when the connection is over.
async fn get(stage: &Stage, connection: &mut Client, resource: &Resource, ask: &Ask) -> bool {
    let response = if let Some(length) = ask.body_bytes {
        connection.post(request("POST", resource, ask), posted(&ask.client, length)).await
    } else if ask.is_head {
        connection.send(request("HEAD", resource, ask)).await;
        connection.response_to_head().await
    } else {
        connection.send(request("GET", resource, ask)).await;
        connection.response().await
    };
    check(stage, resource, ask, &response);
    // The engine may treat the rest of an unread body in either way.
    let is_open = ask.body_bytes.is_none() && response.is_whole && response.header("connection") == Some("keep-alive");
    if !is_open && ask.body_bytes.is_none() {
        assert_eq!(connection.rest().await, "", "bytes after the end of {}", response.head);
    }
    is_open
}

/// The same on a stream.
async fn get_on_stream(stage: &Stage, streams: &StreamClient, resource: &Resource, ask: &Ask) {
    let (method, body) = match ask.body_bytes {
        Some(length) => ("POST", posted(&ask.client, length)),
        None if ask.is_head => ("HEAD", Vec::new()),
        None => ("GET", Vec::new()),
    };
    let response = streams.ask(&request(method, resource, ask), &body).await;
    check(stage, resource, ask, &response);
}

/// Sends a request and leaves before the complete response has arrived.
async fn break_off(stage: &Stage, way: &Way, resource: &Resource, rng: &mut SmallRng) {
    let room_bytes = 1 << rng.random_range(6..16);
    let request = format!("GET {} HTTP/1.1\r\nHost: sim\r\nX-Variant: red\r\nX-Client: gone\r\n\r\n", resource.url);
    match way {
        Way::Own(_) => {
            let mut connection = stage.world.client_with(room_bytes);
            connection.send(request).await;
            tokio::time::sleep(Duration::from_millis(rng.random_range(0..200))).await;
        }
        Way::Stream(streams) => streams.break_off(&request, Duration::from_millis(rng.random_range(0..200))).await,
    }
}

async fn remove(stage: &Stage, resource: &Resource, method: &str) {
    let from = stage.now();
    let mut connection = stage.world.client();
    connection.send(format!("{method} {} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n", resource.url)).await;
    let response = connection.response().await;
    assert_eq!(response.status(), 200, "{method} {}: {}", resource.url, response.head);
    stage.book.removed(&resource.url, Removal { from, until: stage.now() });
}

fn check(stage: &Stage, resource: &Resource, ask: &Ask, response: &Response) {
    let say =
        |what: &str| format!("{what}: {} for {}, asked at {}:\n{}", resource.url, ask.client, ask.at, response.head);
    match response.status() {
        200 | 206 => {}
        416 => return assert!(ask.range.is_some(), "{}", say("416 without a range")),
        500 | 503 => return,
        // The connection broke before a head: the origin's did too.
        0 => return assert_eq!(response.head, "", "{}", say("half a head")),
        _ => panic!("{}", say("unexpected status")),
    }
    let field = |name: &str| response.header(name).unwrap_or_else(|| panic!("{}", say(name)));
    let version: u64 = field("x-version").parse().unwrap();
    let born: u64 = field("x-born").parse().unwrap();
    let variant = if resource.sharing == Sharing::Variants { ask.variant } else { "any" };
    let owner = if resource.is_private() { ask.client.as_str() } else { "any" };
    assert_eq!(field("x-url"), resource.url, "{}", say("another resource"));
    assert_eq!(field("x-variant"), variant, "{}", say("another variant"));
    assert_eq!(field("x-owner"), owner, "{}", say("somebody else's response"));
    assert!(ask.at <= born + resource.life_millis() + 5, "{}", say("older than ttl and grace together"));
    if let Some(removal) = stage.book.last_removal(&resource.url, ask.at) {
        let is_new = born >= removal.from;
        let excuse = stage.book.was_under_way(&resource.url, removal);
        assert!(is_new || excuse, "{}\nremoved at {removal:?}", say("purged or banned, and back"));
    }
    stage.book.answered();
    if !ask.is_head || ask.body_bytes.is_some() {
        check_body(&resource.body(version, variant, owner), ask, response, &say);
    }
}

fn check_body(expected: &[u8], ask: &Ask, response: &Response, say: &dyn Fn(&str) -> String) {
    let mut body = response.body.clone();
    if response.header("content-encoding") == Some("gzip") {
        assert!(ask.accepts_gzip, "{}", say("gzip for a client that cannot read it"));
        body.clear();
        let result = GzDecoder::new(response.body.as_slice()).read_to_end(&mut body);
        assert!(result.is_ok() || !response.is_whole || response.status() == 206, "{}", say("broken gzip"));
        if response.status() == 206 {
            return;
        }
    }
    let expected = match (response.status(), ask.range) {
        (206, Some((first, last))) => {
            expected.get(first..=last.min(expected.len().saturating_sub(1))).unwrap_or_default()
        }
        (206, None) => panic!("{}", say("a part that nobody asked for")),
        _ => expected,
    };
    if response.is_whole {
        assert!(body == expected, "{}\n{} bytes instead of {}", say("another body"), body.len(), expected.len());
    } else {
        assert!(expected.starts_with(&body), "{}\n{} bytes", say("another beginning"), body.len());
    }
}
