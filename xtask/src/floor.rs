//! The floor: a bare epoll loop that finds the end of a request and sends a canned response.
//!
//! It does nothing that a real server does; its CPU time per request is the cost of the kernel and
//! the wire. It is also the origin behind the measured caches, since its responses may be stored
//! for an hour. Their `Date` is the time of its start: under the rules of HTTP an old date is an
//! old response, and every hit of it would be a miss (RFC 9111 §4.2.3).

use crate::place::since_1970;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv, send};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd};

/// Body sizes of `/b0` … `/b4`, in bytes.
pub const BODIES: [usize; 5] = [1, 1 << 10, 10 << 10, 100 << 10, 1 << 20];

struct Connection {
    socket: Socket,
    received: Vec<u8>,
    /// Response in progress: closing, body index, bytes sent.
    sending: Option<(bool, usize, usize)>,
}

/// `floor PORT THREADS`
pub fn main(arguments: &[String]) -> Result<(), String> {
    let usage = "usage: floor PORT THREADS";
    let port: u16 = arguments.first().and_then(|a| a.parse().ok()).ok_or(usage)?;
    let threads: usize = arguments.get(1).and_then(|a| a.parse().ok()).ok_or(usage)?;
    let date = now();
    let answers: &'static [[Vec<u8>; 5]; 2] =
        Box::leak(Box::new([false, true].map(|close| BODIES.map(|n| answer(n, close, &date)))));
    let others: Vec<_> =
        (1..threads).map(|_| std::thread::spawn(move || run(port, answers).map_err(|e| e.to_string()))).collect();
    run(port, answers).map_err(|error| error.to_string())?;
    for other in others {
        other.join().map_err(|_| "a loop panicked")??;
    }
    Ok(())
}

/// The current time, in the format of `Date`.
fn now() -> String {
    let mut date = [0; 29];
    semantics::date::format(since_1970().as_secs_f64(), &mut date);
    String::from_utf8_lossy(&date).into_owned()
}

fn answer(body_bytes: usize, close: bool, date: &str) -> Vec<u8> {
    let connection = if close { "close" } else { "keep-alive" };
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: {date}\r\nContent-Type: text/html\r\n\
         Content-Length: {body_bytes}\r\nLast-Modified: Thu, 20 Nov 2025 16:00:00 GMT\r\nETag: \"691f4a3c-{body_bytes:x}\"\r\n\
         Cache-Control: max-age=3600\r\nConnection: {connection}\r\n\r\n"
    )
    .into_bytes();
    bytes.resize(bytes.len() + body_bytes, b'x');
    bytes
}

fn run(port: u16, answers: &'static [[Vec<u8>; 5]; 2]) -> std::io::Result<()> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    listener.set_reuse_port(true)?;
    listener.set_reuse_address(true)?;
    listener.set_tcp_nodelay(true)?;
    listener.bind(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).into())?;
    listener.listen(4096)?;
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    epoll.add(listener.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, u64::MAX))?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut events = vec![EpollEvent::empty(); 512];
    let mut buffer = vec![0; 16 << 10];
    loop {
        let ready = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        for event in &events[..ready] {
            if event.data() == u64::MAX {
                while let Ok((socket, _)) = listener.accept() {
                    socket.set_nonblocking(true)?;
                    let slot = free.pop().unwrap_or_else(|| {
                        connections.push(None);
                        connections.len() - 1
                    });
                    epoll.add(socket.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, slot as u64))?;
                    connections[slot] = Some(Connection { socket, received: Vec::new(), sending: None });
                }
                continue;
            }
            let slot = event.data() as usize;
            let Some(connection) = connections[slot].as_mut() else { continue };
            if !serve(connection, &epoll, slot as u64, answers, &mut buffer) {
                connections[slot] = None;
                free.push(slot);
            }
        }
    }
}

/// Reads and responds as far as possible; false if the connection is done.
fn serve(c: &mut Connection, epoll: &Epoll, slot: u64, answers: &[[Vec<u8>; 5]; 2], buffer: &mut [u8]) -> bool {
    let fd = c.socket.as_raw_fd();
    if let Some((close, body, sent)) = c.sending {
        match push(fd, &answers[usize::from(close)][body], sent) {
            Some(done) if done == answers[usize::from(close)][body].len() => {
                c.sending = None;
                if close {
                    return false;
                }
                let mut event = EpollEvent::new(EpollFlags::EPOLLIN, slot);
                if epoll.modify(c.socket.as_fd(), &mut event).is_err() {
                    return false;
                }
            }
            Some(done) => {
                c.sending = Some((close, body, done));
                return true;
            }
            None => return false,
        }
    }
    match recv(fd, buffer, MsgFlags::empty()) {
        Ok(0) => return false,
        Ok(bytes) => c.received.extend_from_slice(&buffer[..bytes]),
        Err(Errno::EAGAIN) => return true,
        Err(_) => return false,
    }
    let Some(end) = memchr::memmem::find(&c.received, b"\r\n\r\n") else { return true };
    let head = &c.received[..end];
    // "GET /bN": the body is chosen by the seventh byte.
    let body = usize::from(head.get(6).copied().unwrap_or(b'1').wrapping_sub(b'0')).min(4);
    let close = memchr::memmem::find(head, b"Connection: close").is_some();
    c.received.drain(..end + 4);
    let answer = &answers[usize::from(close)][body];
    match push(fd, answer, 0) {
        Some(done) if done == answer.len() => !close,
        Some(done) => {
            c.sending = Some((close, body, done));
            let mut event = EpollEvent::new(EpollFlags::EPOLLOUT, slot);
            epoll.modify(c.socket.as_fd(), &mut event).is_ok()
        }
        None => false,
    }
}

/// Sends from an offset; returns the offset reached, or `None` when the peer has gone.
fn push(fd: i32, bytes: &[u8], mut sent: usize) -> Option<usize> {
    while sent < bytes.len() {
        match send(fd, &bytes[sent..], MsgFlags::MSG_NOSIGNAL) {
            Ok(count) => sent += count,
            Err(Errno::EAGAIN) => return Some(sent),
            Err(_) => return None,
        }
    }
    Some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use semantics::date::DateForms;

    #[test]
    fn answer_is_as_old_as_the_floor_and_as_long_as_asked_for() {
        let text = String::from_utf8(answer(BODIES[1], false, &now())).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body.len(), BODIES[1]);
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(field("Content-Length: "), "1024");
        let dated = semantics::date::parse(field("Date: ").as_bytes(), DateForms::Rfc).unwrap();
        let age = since_1970().as_secs_f64() - dated;
        assert!((0.0..60.0).contains(&age), "what is old is no hit: {head}");
    }
}
