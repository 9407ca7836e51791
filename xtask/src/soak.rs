//! `cargo xtask soak`: a mixed load against Copal for a given time. Every body is a function of its path and is checked
//! byte by byte; the worker is killed now and then; memory use is printed regularly.

use crate::bench::{build, folder, free_port};
use crate::memory::sized_origin;
use crate::process::{Server, memory_bytes};
use crate::servers::Kind;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The body that belongs to a path: no two paths share a byte sequence of any length for long.
pub fn body(path: &str, size: usize) -> Vec<u8> {
    let mut state = path
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

#[derive(Default)]
struct Tally {
    answers: AtomicU64,
    hits: AtomicU64,
    broken: AtomicU64,
    wrong: AtomicU64,
}

/// `soak [--seconds S] [--connections N] [--kill-every S]`
pub fn main(arguments: &[String]) -> Result<(), String> {
    build()?;
    let seconds: f64 = crate::number(arguments, "--seconds", 60.0)?;
    let connections: usize = crate::number(arguments, "--connections", 16)?;
    let kill_every: f64 = crate::number(arguments, "--kill-every", 0.0)?;
    let folder = folder()?;
    let origin = sized_origin()?;
    let port = free_port()?;
    let launch = Kind::Copal.launch(port, origin, folder.path(), 64)?;
    let log = folder.path().join("log");
    let mut server = Server::start("0-1", &launch.program, &launch.arguments, &log)?;
    server.wait_for_port(port, &log)?;
    let tally = Arc::new(Tally::default());
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..connections)
        .map(|number| {
            let (tally, stop) = (Arc::clone(&tally), Arc::clone(&stop));
            std::thread::spawn(move || client(port, number as u64, &tally, &stop))
        })
        .collect();
    let start = Instant::now();
    let mut last_kill = start;
    let mut last_answers = (0, 0);
    while start.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(Duration::from_secs_f64((seconds / 20.0).clamp(0.5, 30.0)));
        let (answers, hits) = (tally.answers.load(Ordering::Relaxed), tally.hits.load(Ordering::Relaxed));
        let (new, new_hits) = (answers - last_answers.0, hits - last_answers.1);
        last_answers = (answers, hits);
        println!(
            "{:>6.0} s  {answers:>10} answers  {:>5.1} % hits  {:>6} broken  {} wrong  {:>7.1} MiB",
            start.elapsed().as_secs_f64(),
            100.0 * new_hits as f64 / new.max(1) as f64,
            tally.broken.load(Ordering::Relaxed),
            tally.wrong.load(Ordering::Relaxed),
            memory_bytes(&server.tree()) as f64 / f64::from(1 << 20)
        );
        if kill_every > 0.0 && last_kill.elapsed().as_secs_f64() >= kill_every {
            last_kill = Instant::now();
            if let Some(worker) = server.tree().get(1) {
                println!("killing worker {worker}");
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(*worker as i32),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        let _ = client.join();
    }
    let wrong = tally.wrong.load(Ordering::Relaxed);
    if wrong > 0 {
        return Err(format!("{wrong} answers had the wrong body"));
    }
    println!("every body was right");
    Ok(())
}

fn client(port: u16, seed: u64, tally: &Tally, stop: &AtomicBool) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut stream: Option<BufReader<TcpStream>> = None;
    while !stop.load(Ordering::Relaxed) {
        let ask = Ask::random(&mut random);
        let connection = match stream.take() {
            Some(connection) => connection,
            None => match TcpStream::connect(("127.0.0.1", port)) {
                Ok(fresh) => BufReader::new(fresh),
                Err(_) => {
                    tally.broken.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
            },
        };
        match exchange(connection, &ask) {
            Ok((connection, hit, right)) => {
                tally.answers.fetch_add(1, Ordering::Relaxed);
                tally.hits.fetch_add(u64::from(hit), Ordering::Relaxed);
                if !right {
                    tally.wrong.fetch_add(1, Ordering::Relaxed);
                    eprintln!("wrong answer to {ask:?}");
                }
                // A new connection now and then, as from browsers.
                if !random().is_multiple_of(50) {
                    stream = Some(connection);
                }
            }
            Err(_) => {
                tally.broken.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// One request of the mix.
#[derive(Debug)]
struct Ask {
    kind: Question,
    path: String,
    size: usize,
}

/// How a path is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Get,
    Head,
    /// With a cookie: passed to the origin.
    Pass,
    /// First and last byte.
    Range(usize, usize),
}

impl Ask {
    /// Few paths are requested often and many seldom, one in twenty only once; sizes from nothing to 200 KiB.
    fn random(random: &mut impl FnMut() -> u64) -> Ask {
        let (name, rank) = if random().is_multiple_of(20) {
            ("once", random() % 1_000_000_007)
        } else {
            ("page", (random() % 100) * (random() % 100) * (random() % 40) / 100)
        };
        let size = (rank.wrapping_mul(7919) % if rank.is_multiple_of(10) { 200_000 } else { 20_000 }) as usize;
        let kind = match random() % 20 {
            0 => Question::Head,
            1 => Question::Pass,
            2 | 3 if size > 0 => {
                let first = random() as usize % size;
                Question::Range(first, first + random() as usize % (size - first))
            }
            _ => Question::Get,
        };
        Ask { kind, path: format!("/{name}-{rank}/{size}"), size }
    }

    fn request(&self) -> String {
        let (method, more) = match self.kind {
            Question::Get => ("GET", String::new()),
            Question::Head => ("HEAD", String::new()),
            Question::Pass => ("GET", "Cookie: a=b\r\n".to_owned()),
            Question::Range(first, last) => ("GET", format!("Range: bytes={first}-{last}\r\n")),
        };
        format!("{method} {} HTTP/1.1\r\nHost: soak\r\n{more}\r\n", self.path)
    }

    /// Whether status, announced length and body are correct.
    fn is_answered(&self, status: &str, length: usize, bytes: &[u8], hit: bool) -> bool {
        match self.kind {
            Question::Get => status == "200" && length == self.size && bytes == body(&self.path, self.size),
            Question::Head => status == "200" && length == self.size && bytes.is_empty(),
            Question::Pass => status == "200" && !hit && bytes == body(&self.path, self.size),
            Question::Range(first, last) => {
                status == "206" && length == last - first + 1 && bytes == &body(&self.path, self.size)[first..=last]
            }
        }
    }
}

type Exchanged = (BufReader<TcpStream>, bool, bool);

fn exchange(mut connection: BufReader<TcpStream>, ask: &Ask) -> std::io::Result<Exchanged> {
    connection.get_mut().write_all(ask.request().as_bytes())?;
    let mut line = String::new();
    let mut length = None;
    let mut hit = false;
    let mut status = String::new();
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if status.is_empty() {
            status = text.to_owned();
        } else if let Some((name, value)) = text.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse::<usize>().ok();
            } else if name.eq_ignore_ascii_case("x-varnish") {
                hit = value.trim().contains(' ');
            }
        }
    }
    let length = length.ok_or(std::io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0; if ask.kind == Question::Head { 0 } else { length }];
    connection.read_exact(&mut bytes)?;
    let right = ask.is_answered(status.get(9..12).unwrap_or(""), length, &bytes, hit);
    Ok((connection, hit, right))
}
