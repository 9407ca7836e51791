//! Clients that verify their answers.

use crate::origin::{body, fragment_path, page_around};
use load::choice::Chance;
use load::client::{Client, Connector};
use load::exchange::{Answer, Ask};
use load::plan::{Plan, Protocol, Target};
use load::results::Times;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which a leaving client closes.
const HASTE: Duration = Duration::from_micros(1_500);
/// The pause after a connection that failed.
const PAUSE: Duration = Duration::from_millis(10);
/// Most messages that are printed.
const SAID_MAX: u64 = 40;
/// Requests at a time on a connection of HTTP/2 or HTTP/3.
const STREAMS: usize = 4;

/// A transport.
pub struct Transport {
    /// Name for readers.
    pub name: &'static str,
    /// The protocol.
    pub protocol: Protocol,
    /// True if it uses TLS.
    pub tls: bool,
}

/// All transports.
pub const TRANSPORTS: [Transport; 5] = [
    Transport { name: "HTTP/1.1", protocol: Protocol::Http1, tls: false },
    Transport { name: "HTTP/1.1 over TLS", protocol: Protocol::Http1, tls: true },
    Transport { name: "HTTP/2", protocol: Protocol::Http2, tls: false },
    Transport { name: "HTTP/2 over TLS", protocol: Protocol::Http2, tls: true },
    Transport { name: "HTTP/3", protocol: Protocol::Http3, tls: true },
];

/// Results so far.
#[derive(Default)]
pub struct Account {
    /// Correct answers.
    pub answers: AtomicU64,
    /// Correct answers from the cache.
    pub hits: AtomicU64,
    /// Answers by transport.
    pub by_transport: [AtomicU64; TRANSPORTS.len()],
    /// Answers 503: the origin failed, or no worker was running.
    pub unavailable: AtomicU64,
    /// Connections and answers that were interrupted.
    pub broken: AtomicU64,
    /// Incorrect answers.
    pub wrong: AtomicU64,
    /// Workers killed.
    pub kills: AtomicU64,
    /// Commands of the operator that were refused.
    pub operation_failures: AtomicU64,
    /// Latency since the last sample.
    pub times: Mutex<Times>,
    /// Requests the end of all clients.
    pub stop: AtomicBool,
    said: AtomicU64,
}

impl Account {
    /// Prints a message, up to a limit.
    pub fn say(&self, text: &str) {
        if self.said.fetch_add(1, Ordering::Relaxed) < SAID_MAX {
            eprintln!("{text}");
        }
    }
}

/// Kind of a request, and the expected answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Get,
    Head,
    /// With a header that VCL passes to the origin.
    Pass,
    /// First and last byte.
    Range(usize, usize),
    /// A page of this many pieces.
    Page(u64),
    /// The origin fails: any complete answer is correct.
    Fault,
    /// Closes before the end.
    Leave,
}

#[derive(Debug)]
struct Wish {
    request_kind: RequestKind,
    path: String,
    size: usize,
}

impl Wish {
    /// A random request: few paths often and many seldom, one in twenty only once; sizes from
    /// nothing to 200 KiB, and films of 200 to 600 KB, most of them in parts.
    fn random(chance: &mut Chance) -> Wish {
        let mut below = |bound: u64| chance.word() % bound;
        let (name, rank) = match below(20) {
            0 => ("once", below(1_000_000_007)),
            1 => ("ttl-2", below(50)),
            2 => ("text", below(100)),
            3 => ("film", below(40)),
            _ => ("item", below(100) * below(100) * below(40) / 100),
        };
        let spread = match name {
            "film" => 400_000,
            _ if rank.is_multiple_of(10) => 200_000,
            _ => 20_000,
        };
        let size = (rank.wrapping_mul(7919) % spread + if name == "film" { 200_000 } else { 0 }) as usize;
        let path = if name == "item" { format!("/item-{rank}/{size}") } else { format!("/{name}/{rank}/{size}") };
        let first = if size > 0 { below(size as u64) as usize } else { 0 };
        let kind = if name == "film" { below(4) } else { below(40) };
        match kind {
            0 => Wish { request_kind: RequestKind::Head, path, size },
            1 => Wish { request_kind: RequestKind::Pass, path, size },
            2 | 3 if size > 0 => {
                let last = first + below((size - first) as u64) as usize;
                Wish { request_kind: RequestKind::Range(first, last), path, size }
            }
            4 => {
                let pieces = 1 + below(9);
                Wish { request_kind: RequestKind::Page(pieces), path: format!("/page-{pieces}/{}", below(20)), size: 0 }
            }
            5 => {
                let fault = ["error", "cut", "reset", "slow-300"][below(4) as usize];
                Wish {
                    request_kind: RequestKind::Fault,
                    path: format!("/{fault}/{}/5000", below(1_000_000)),
                    size: 5000,
                }
            }
            6 => Wish {
                request_kind: RequestKind::Leave,
                path: format!("/slow-20/{}/100000", below(1000)),
                size: 100_000,
            },
            _ => Wish { request_kind: RequestKind::Get, path, size },
        }
    }

    fn method(&self) -> &'static str {
        if self.request_kind == RequestKind::Head { "HEAD" } else { "GET" }
    }

    fn headers(&self) -> Vec<(String, String)> {
        let header = match self.request_kind {
            RequestKind::Pass => ("X-Pass", "yes".to_owned()),
            RequestKind::Range(first, last) => ("Range", format!("bytes={first}-{last}")),
            RequestKind::Get | RequestKind::Head | RequestKind::Page(_) | RequestKind::Fault | RequestKind::Leave => {
                return Vec::new();
            }
        };
        vec![(header.0.to_owned(), header.1)]
    }

    /// True if an answer is the expected one; `None`: the server could not do better.
    fn is_answered(&self, answer: &Answer, received: &[u8]) -> Option<bool> {
        if answer.status == 503 {
            return None;
        }
        let whole = || body(&self.path, self.size);
        Some(match self.request_kind {
            RequestKind::Get | RequestKind::Fault | RequestKind::Leave => answer.status == 200 && received == whole(),
            RequestKind::Head => answer.status == 200 && received.is_empty(),
            RequestKind::Pass => answer.status == 200 && answer.hit != Some(true) && received == whole(),
            // A server may ignore the range; Copal does so while it compresses the object that it
            // stores.
            RequestKind::Range(first, last) => match answer.status {
                206 => received == &whole()[first..=last],
                status => status == 200 && received == whole(),
            },
            RequestKind::Page(pieces) => {
                let page = page_around(pieces, |at| body(&fragment_path(at), 200));
                answer.status == 200 && received == page
            }
        })
    }
}

/// Common settings of all clients of a transport.
#[derive(Clone, Copy)]
pub struct Crowd {
    /// The daemon's port.
    pub port: u16,
    /// Number of clients.
    pub connections: usize,
    /// Minimum time of one client for each request; zero = no pause.
    pub pace: Duration,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Runs clients over one transport until stopped.
pub fn run(transport: &Transport, crowd: Crowd, account: &Account) -> Result<(), String> {
    let Crowd { port, connections, pace, seed } = crowd;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let plan = Plan { protocol: transport.protocol, resume: true, ..Plan::new(Target::local(port, transport.tls)) };
        let way = Rc::new(Connector::new(&plan).map_err(|failure| failure.said)?);
        let place = TRANSPORTS.iter().position(|other| other.name == transport.name).unwrap_or(0);
        let all = (0..connections).map(|number| {
            let chance = Chance::new(seed << 32 | number as u64);
            client(Rc::clone(&way), chance, place, pace, account)
        });
        let mut all: Vec<_> = all.map(Box::pin).collect();
        // All of them on this loop, concurrently.
        std::future::poll_fn(|context| {
            all.retain_mut(|one| one.as_mut().poll(context).is_pending());
            if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        Ok(())
    })
}

async fn client(way: Rc<Connector>, mut chance: Chance, place: usize, pace: Duration, account: &Account) {
    let mut kept: Option<Client> = None;
    let mut next = tokio::time::Instant::now();
    while !account.stop.load(Ordering::Relaxed) {
        // A delayed client does not catch up afterwards.
        tokio::time::sleep_until(next).await;
        next = tokio::time::Instant::now();
        let client = match kept.take().filter(|client| !client.is_over()) {
            Some(client) => client,
            None => match tokio::time::timeout(PATIENCE, way.open()).await {
                Ok(Ok(client)) => client,
                Ok(Err(_)) | Err(_) => {
                    account.broken.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        // A new connection now and then, as from browsers.
        let is_last = chance.word().is_multiple_of(50);
        if let Some(first) = client.share() {
            next += pace * STREAMS as u32;
            let wishes: Vec<Wish> = (0..STREAMS).map(|_| Wish::random(&mut chance)).collect();
            let mut streams = Vec::new();
            for wish in wishes {
                let Some(shared) = first.share() else { continue };
                streams.push(Box::pin(one(shared, wish, place, account)));
            }
            std::future::poll_fn(|context| {
                streams.retain_mut(|stream| stream.as_mut().poll(context).is_pending());
                if streams.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            kept = Some(first).filter(|_| !is_last);
        } else {
            next += pace;
            kept = one(client, Wish::random(&mut chance), place, account).await.filter(|_| !is_last);
        }
    }
}

/// Sends one request; returns the connection if it can be reused.
async fn one(mut client: Client, wish: Wish, place: usize, account: &Account) -> Option<Client> {
    let (headers, mut received) = (wish.headers(), Vec::new());
    let ask = Ask { method: wish.method(), path: &wish.path, authority: "soak", headers: &headers, is_last: false };
    let since = Instant::now();
    let patience = if wish.request_kind == RequestKind::Leave { HASTE } else { PATIENCE };
    let result = tokio::time::timeout(patience, client.ask(&ask, Some(&mut received))).await;
    let answer = match result {
        Ok(Ok(answer)) => answer,
        // A leaving client has no answer, and needs none.
        Err(_) if wish.request_kind == RequestKind::Leave => return None,
        Ok(Err(_)) | Err(_) => {
            // A fault of the origin may interrupt an answer.
            if wish.request_kind != RequestKind::Fault {
                account.broken.fetch_add(1, Ordering::Relaxed);
            }
            return None;
        }
    };
    match wish.is_answered(&answer, &received) {
        Some(true) => {
            account.answers.fetch_add(1, Ordering::Relaxed);
            account.by_transport[place].fetch_add(1, Ordering::Relaxed);
            account.hits.fetch_add(u64::from(answer.hit == Some(true)), Ordering::Relaxed);
            if let Ok(mut times) = account.times.lock() {
                times.add(since.elapsed());
            }
        }
        Some(false) => {
            account.wrong.fetch_add(1, Ordering::Relaxed);
            let text = format!("{}: wrong: {wish:?}: {answer:?}, {} bytes", TRANSPORTS[place].name, received.len());
            account.say(&text);
        }
        None => {
            // A fault of the origin is answered like this.
            let is_expected = wish.request_kind == RequestKind::Fault;
            account.unavailable.fetch_add(u64::from(!is_expected), Ordering::Relaxed);
        }
    }
    Some(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_body_is_right() {
        let wish = |request_kind| Wish { request_kind, path: "/item-1/100".to_owned(), size: 100 };
        let answer = |status| Answer { status, hit: None, body_bytes: 0 };
        let whole = body("/item-1/100", 100);
        let get = wish(RequestKind::Get);
        assert_eq!(get.is_answered(&answer(200), &whole), Some(true));
        assert_eq!(get.is_answered(&answer(200), &whole[1..]), Some(false));
        assert_eq!(get.is_answered(&answer(200), &body("/item-2/100", 100)), Some(false));
        assert_eq!((get.is_answered(&answer(404), &whole), get.is_answered(&answer(503), b"")), (Some(false), None));
        assert_eq!(wish(RequestKind::Range(3, 9)).is_answered(&answer(206), &whole[3..=9]), Some(true));
        assert_eq!(wish(RequestKind::Range(3, 9)).is_answered(&answer(206), &whole), Some(false));
        assert_eq!(wish(RequestKind::Range(3, 9)).is_answered(&answer(200), &whole), Some(true));
        let hit = Answer { hit: Some(true), ..answer(200) };
        assert_eq!(wish(RequestKind::Pass).is_answered(&hit, &whole), Some(false), "a pass is never a hit");
    }

    #[test]
    fn every_kind_of_question_is_asked() {
        let mut chance = Chance::new(1);
        let wishes: Vec<Wish> = (0..5_000).map(|_| Wish::random(&mut chance)).collect();
        let kinds: std::collections::HashSet<_> =
            wishes.iter().map(|wish| std::mem::discriminant(&wish.request_kind)).collect();
        assert_eq!(kinds.len(), 7);
    }
}
