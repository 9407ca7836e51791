//! The load: a closed loop over a fixed number of connections, for a fixed time, on one thread.
//!
//! Every connection sends its next request when the previous response has arrived completely. Prints one JSON object:
//! requests, requests per second, latency (microseconds) and the CPU time per request of the named processes.

use crate::process;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv, send};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// What to request, how, and for how long.
pub struct Load {
    /// Port on loopback.
    pub port: u16,
    /// Path.
    pub path: String,
    /// Connections.
    pub connections: usize,
    /// Measured time; before that, a fifth of it (at least 0.2 s) is spent as warm-up.
    pub seconds: f64,
    /// One request per connection.
    pub close: bool,
    /// Processes whose CPU time is measured.
    pub pids: Vec<u32>,
}

/// The result.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// Responses received completely in the measured time.
    pub requests: u64,
    /// Broken connections and responses other than 200.
    pub errors: u64,
    /// Responses per second.
    pub per_second: f64,
    /// Median latency, microseconds.
    pub p50: f64,
    /// 99th percentile of latency, microseconds.
    pub p99: f64,
    /// CPU microseconds of the processes per request.
    pub cpu: f64,
    /// The share of it in user mode.
    pub user: f64,
}

struct Connection {
    socket: Socket,
    since: Instant,
    /// Bytes of the response still to come; `None` while its head is incomplete.
    missing: Option<usize>,
    head: Vec<u8>,
}

/// `load --port P …`
pub fn main(arguments: &[String]) -> Result<(), String> {
    let pids = crate::numbers(arguments, "--pids", &[])?.into_iter().map(|pid| pid as u32).collect();
    let outcome = Load {
        port: crate::number(arguments, "--port", 0)?,
        path: crate::option(arguments, "--path").unwrap_or("/b1").to_owned(),
        connections: crate::number(arguments, "--connections", 50)?,
        seconds: crate::number(arguments, "--seconds", 2.0)?,
        close: arguments.iter().any(|a| a == "--close"),
        pids,
    }
    .run()
    .map_err(|error| error.to_string())?;
    println!(
        "{}",
        serde_json::json!({ "requests": outcome.requests, "errors": outcome.errors, "per_second": outcome.per_second,
            "p50_us": outcome.p50, "p99_us": outcome.p99, "cpu_us": outcome.cpu, "user_us": outcome.user })
    );
    Ok(())
}

impl Load {
    /// Runs to the end of the time.
    pub fn run(&self) -> std::io::Result<Outcome> {
        let close = if self.close { "Connection: close\r\n" } else { "" };
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) load/1.0\r\n\
             Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n{close}\r\n",
            self.path, self.port
        )
        .into_bytes();
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        let mut connections = Vec::with_capacity(self.connections);
        for slot in 0..self.connections {
            connections.push(self.connect(&epoll, slot as u64, &request, slot)?);
        }
        let mut events = vec![EpollEvent::empty(); 512];
        let mut buffer = vec![0; 64 << 10];
        let mut latencies: Vec<u32> = Vec::with_capacity(1 << 20);
        let mut errors = 0;
        let mut opened = self.connections;
        let warm = Instant::now() + Duration::from_secs_f64((self.seconds / 5.0).max(0.2));
        let mut measured: Option<(Instant, (f64, f64))> = None;
        loop {
            let now = Instant::now();
            match measured {
                None if now >= warm => {
                    latencies.clear();
                    errors = 0;
                    measured = Some((now, process::cpu_microseconds(&self.pids)));
                }
                Some((start, before)) if start.elapsed().as_secs_f64() >= self.seconds => {
                    let after = process::cpu_microseconds(&self.pids);
                    let elapsed = start.elapsed().as_secs_f64();
                    return Ok(outcome(latencies, errors, elapsed, (after.0 - before.0, after.1 - before.1)));
                }
                None | Some(_) => {}
            }
            let ready = match epoll.wait(&mut events, EpollTimeout::from(100u8)) {
                Err(Errno::EINTR) => continue,
                other => other?,
            };
            for event in &events[..ready] {
                let slot = event.data() as usize;
                let connection = &mut connections[slot];
                match read_answer(connection, &mut buffer) {
                    Answer::Partial => {}
                    Answer::Whole(good) => {
                        latencies.push(u32::try_from(connection.since.elapsed().as_micros()).unwrap_or(u32::MAX));
                        errors += u64::from(!good);
                        if self.close {
                            opened += 1;
                            connections[slot] = self.connect(&epoll, slot as u64, &request, opened)?;
                        } else {
                            connection.since = Instant::now();
                            let _ = send(connection.socket.as_raw_fd(), &request, MsgFlags::MSG_NOSIGNAL);
                        }
                    }
                    Answer::Broken => {
                        errors += 1;
                        opened += 1;
                        connections[slot] = self.connect(&epoll, slot as u64, &request, opened)?;
                    }
                }
            }
        }
    }

    fn connect(&self, epoll: &Epoll, slot: u64, request: &[u8], number: usize) -> std::io::Result<Connection> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_tcp_nodelay(true)?;
        if self.close {
            // Many source addresses, so that closed connections don't exhaust the ports.
            let source = Ipv4Addr::new(127, 0, 0, 2 + (number % 64) as u8);
            socket.bind(&SocketAddr::V4(SocketAddrV4::new(source, 0)).into())?;
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            match socket.connect(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port)).into()) {
                Ok(()) => break,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        socket.set_nonblocking(true)?;
        epoll.add(socket.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, slot))?;
        let connection = Connection { socket, since: Instant::now(), missing: None, head: Vec::new() };
        send(connection.socket.as_raw_fd(), request, MsgFlags::MSG_NOSIGNAL)?;
        Ok(connection)
    }
}

enum Answer {
    Partial,
    Whole(bool),
    Broken,
}

fn read_answer(connection: &mut Connection, buffer: &mut [u8]) -> Answer {
    let fd = connection.socket.as_raw_fd();
    loop {
        if let Some(missing) = connection.missing {
            // The rest of the body is not needed: the kernel may drop it without copying.
            let room = missing.min(buffer.len());
            match recv(fd, &mut buffer[..room], MsgFlags::MSG_TRUNC) {
                Ok(0) => return Answer::Broken,
                Ok(bytes) if bytes >= missing => {
                    connection.missing = None;
                    return Answer::Whole(true);
                }
                Ok(bytes) => connection.missing = Some(missing - bytes),
                Err(Errno::EAGAIN) => return Answer::Partial,
                Err(_) => return Answer::Broken,
            }
            continue;
        }
        match recv(fd, buffer, MsgFlags::empty()) {
            Ok(0) => return Answer::Broken,
            Ok(bytes) => connection.head.extend_from_slice(&buffer[..bytes]),
            Err(Errno::EAGAIN) => return Answer::Partial,
            Err(_) => return Answer::Broken,
        }
        let Some(end) = memchr::memmem::find(&connection.head, b"\r\n\r\n") else {
            if connection.head.len() > 64 << 10 {
                return Answer::Broken;
            }
            continue;
        };
        let Some(length) = content_length(&connection.head[..end]) else { return Answer::Broken };
        let good = connection.head.get(9..12) == Some(b"200");
        let have = connection.head.len() - end - 4;
        connection.head.clear();
        if have >= length {
            return Answer::Whole(good);
        }
        if !good {
            return Answer::Broken;
        }
        connection.missing = Some(length - have);
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(head).ok()?;
    text.split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
}

fn outcome(mut latencies: Vec<u32>, errors: u64, elapsed: f64, cpu: (f64, f64)) -> Outcome {
    latencies.sort_unstable();
    let requests = latencies.len() as u64;
    let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).copied().unwrap_or(0).into();
    let per = |microseconds: f64| if requests == 0 { 0.0 } else { microseconds / requests as f64 };
    Outcome {
        requests,
        errors,
        per_second: requests as f64 / elapsed,
        p50: at(0.5),
        p99: at(0.99),
        cpu: per(cpu.0),
        user: per(cpu.1),
    }
}
