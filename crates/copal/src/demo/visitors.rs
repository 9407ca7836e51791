//! The demo's visitors: a fixed number of connections that request pages of the blog as readers do.
//!
//! Most read the front page, posts and images; some are logged in and must see their own name in
//! every response, which is checked. The same visitors go to the blog directly and through Copal,
//! so that the two can be compared.

use super::origin::{IMAGES, POSTS};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Results of the visitors.
#[derive(Default, Debug)]
pub struct Seen {
    /// Latency of every answer.
    pub latencies: Vec<Duration>,
    /// Answers that came from the cache.
    pub hits: u64,
    /// Answers with a status of 500 and above.
    pub failures: u64,
    /// Answers to logged-in visitors.
    pub personal: u64,
    /// Of these, pages with the visitor's own name in the corner …
    pub corners: u64,
    /// … that came from the cache except for that corner.
    pub corners_around_hits: u64,
    /// Personal answers that came from the cache or were made for another visitor: must be 0.
    pub leaked: u64,
    /// Connections that broke.
    pub broken: u64,
}

impl Seen {
    /// The latency that this share (0 to 1) of all responses does not exceed.
    pub fn latency(&mut self, part: f64) -> Duration {
        self.latencies.sort_unstable();
        let at = (self.latencies.len() as f64 * part) as usize;
        self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// Runs `count` visitors for a time; `tick` is called ten times a second with the share of the time
/// that has passed.
pub async fn visit(address: SocketAddr, count: u64, time: Duration, mut tick: impl FnMut(f64) + 'static) -> Seen {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let start = Instant::now();
    let all = tokio::task::LocalSet::new();
    for number in 0..count {
        let seen = Rc::clone(&seen);
        all.spawn_local(async move {
            let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            while start.elapsed() < time {
                if one_connection(address, number, start, time, &mut random, &seen).await.is_err() {
                    seen.borrow_mut().broken += 1;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
    }
    all.spawn_local(async move {
        while start.elapsed() < time {
            tokio::time::sleep(Duration::from_millis(100)).await;
            tick((start.elapsed().as_secs_f64() / time.as_secs_f64()).min(1.0));
        }
    });
    // A slow response may still be under way at the end; the demo does not wait for it.
    let _ = tokio::time::timeout(time + Duration::from_secs(3), all).await;
    Rc::try_unwrap(seen).map(RefCell::into_inner).unwrap_or_else(|shared| std::mem::take(&mut *shared.borrow_mut()))
}

async fn one_connection(
    address: SocketAddr,
    number: u64,
    start: Instant,
    time: Duration,
    random: &mut u64,
    seen: &RefCell<Seen>,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    while start.elapsed() < time {
        let mut next = || {
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            *random
        };
        // One visitor in ten is logged in and looks at the account now and then.
        let personal = number.is_multiple_of(10) && next().is_multiple_of(4);
        let path = match next() % 10 {
            0..=4 if personal => "/desk".to_owned(),
            _ if personal => "/account".to_owned(),
            0..=2 => "/".to_owned(),
            3..=6 => format!("/post/{}", 1 + (next() % POSTS) * (next() % POSTS) / POSTS),
            7 => "/desk".to_owned(),
            8 => format!("/image/{}.png", 1 + next() % IMAGES),
            _ => "/flaky".to_owned(),
        };
        let cookie = if personal { format!("Cookie: login=user{number}\r\n") } else { "Cookie: seen=yes\r\n".into() };
        let request = format!("GET {path} HTTP/1.1\r\nHost: blog.example\r\n{cookie}\r\n");
        let since = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        let answer = read_answer(&mut stream, &mut received).await?;
        let mut seen = seen.borrow_mut();
        seen.latencies.push(since.elapsed());
        seen.hits += u64::from(answer.hit);
        seen.failures += u64::from(answer.status >= 500);
        let says = |text: &str| answer.body.windows(text.len()).any(|window| window == text.as_bytes());
        if personal && answer.status == 200 {
            seen.personal += 1;
            let is_own = says(&format!("Hello user{number}<"));
            // The page around the corner may come from the cache.
            let is_around = path == "/desk";
            seen.leaked += u64::from((answer.hit && !is_around) || !is_own);
            seen.corners += u64::from(is_own && is_around);
            seen.corners_around_hits += u64::from(is_own && is_around && answer.hit);
        }
        seen.leaked += u64::from(!personal && says("Hello user"));
    }
    Ok(())
}

struct Answer {
    status: u16,
    hit: bool,
    body: Vec<u8>,
}

async fn read_answer(stream: &mut TcpStream, received: &mut Vec<u8>) -> std::io::Result<Answer> {
    let broken = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let end = loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(received).await? == 0 {
            return Err(broken());
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let header = |wanted: &str| {
        head.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let status = head.get(9..12).and_then(|text| text.parse().ok()).ok_or_else(broken)?;
    let length = header("content-length").and_then(|(_, n)| n.trim().parse().ok());
    let is_chunked = header("transfer-encoding").is_some();
    let hit = header("x-cache").is_some_and(|(_, value)| value.trim() == "hit");
    received.drain(..end + 4);
    let body = match length {
        Some(length) => take(stream, received, length).await?,
        None if is_chunked => take_chunks(stream, received).await?,
        None => return Err(broken()),
    };
    Ok(Answer { status, hit, body })
}

/// The next `count` bytes.
async fn take(stream: &mut TcpStream, received: &mut Vec<u8>, count: usize) -> std::io::Result<Vec<u8>> {
    while received.len() < count {
        if stream.read_buf(received).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(received.drain(..count).collect())
}

/// A chunked body: that of an assembled page.
async fn take_chunks(stream: &mut TcpStream, received: &mut Vec<u8>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(take(stream, received, 1).await?);
        }
        let size = std::str::from_utf8(&line).ok().and_then(|line| usize::from_str_radix(line.trim(), 16).ok());
        let size = size.ok_or(std::io::ErrorKind::InvalidData)?;
        let mut chunk = take(stream, received, size + 2).await?;
        if size == 0 {
            return Ok(body);
        }
        chunk.truncate(size);
        body.append(&mut chunk);
    }
}
