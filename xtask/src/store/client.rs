//! Clients that send requests ahead of their answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Requests that are sent before their answers are read.
const AHEAD: usize = 64;
/// Connections that fill a storage: an answer that waits for the origin keeps those behind it
/// waiting.
const FILLING: u64 = 8;

/// A connection that sends requests ahead.
pub struct Client {
    port: u16,
    connection: BufReader<TcpStream>,
    line: String,
}

/// An answer.
#[derive(Clone, Copy)]
pub struct Answer {
    pub status: u16,
    /// Its `X-Varnish` has two numbers.
    pub is_hit: bool,
}

impl Client {
    pub fn new(port: u16) -> Result<Client, String> {
        let connection = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        let _ = connection.set_nodelay(true);
        let _ = connection.set_read_timeout(Some(Duration::from_secs(60)));
        Ok(Client { port, connection: BufReader::with_capacity(64 << 10, connection), line: String::new() })
    }

    /// Requests all of these; returns the number of hits.
    pub fn ask_all(&mut self, paths: impl Iterator<Item = String>) -> Result<u64, String> {
        let mut hits = 0;
        self.send_all("GET", "", paths, |answer| hits += u64::from(answer.is_hit))?;
        Ok(hits)
    }

    /// Requests one of them; returns its time in microseconds.
    pub fn time(&mut self, path: String) -> Result<f64, String> {
        let begin = Instant::now();
        self.ask_all(std::iter::once(path))?;
        Ok(begin.elapsed().as_secs_f64() * 1e6)
    }

    /// Sends such requests, with additional header lines, and passes on each answer.
    pub fn send_all(
        &mut self,
        method: &str,
        lines: &str,
        mut paths: impl Iterator<Item = String>,
        mut take: impl FnMut(Answer),
    ) -> Result<(), String> {
        let (mut requests, mut asked) = (Vec::new(), Vec::new());
        loop {
            asked.clear();
            asked.extend(paths.by_ref().take(AHEAD));
            if asked.is_empty() {
                return Ok(());
            }
            requests.clear();
            for path in &asked {
                let _ = write!(requests, "{method} {path} HTTP/1.1\r\nHost: bench\r\n{lines}\r\n");
            }
            self.connection.get_mut().write_all(&requests).map_err(|error| error.to_string())?;
            for path in &asked {
                take(self.answer().map_err(|error| format!("port {}: {path}: {error}", self.port))?);
            }
        }
    }

    /// Reads an answer to its end.
    fn answer(&mut self) -> std::io::Result<Answer> {
        let mut length = 0;
        let mut answer = Answer { status: 0, is_hit: false };
        loop {
            self.line.clear();
            if self.connection.read_line(&mut self.line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = self.line.split_once(':') else {
                if self.line == "\r\n" {
                    break;
                }
                answer.status = self.line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            } else if name.eq_ignore_ascii_case("x-varnish") {
                answer.is_hit = value.split_whitespace().count() == 2;
            }
        }
        std::io::copy(&mut (&mut self.connection).take(length), &mut std::io::sink())?;
        Ok(answer)
    }
}

/// Requests each of these over several connections.
pub fn fill(port: u16, numbers: Range<u64>, path: impl Fn(u64) -> String + Sync) -> Result<(), String> {
    let path = &path;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..FILLING)
            .map(|first| {
                let numbers = numbers.clone().skip(first as usize).step_by(FILLING as usize);
                scope.spawn(move || Client::new(port)?.ask_all(numbers.map(path)))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a client panicked")?.map(drop))
    })
}

/// Numbers below `bound`, scattered, always the same.
pub fn scattered(bound: u64) -> impl Iterator<Item = u64> {
    (1u64..).map(move |n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % bound.max(1))
}

pub fn per_second(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}
