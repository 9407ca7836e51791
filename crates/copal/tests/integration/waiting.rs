//! Clients that disconnect while their request waits for another's fetch, over real sockets.

use crate::daemon::{Daemon, Origin, eventually, ok};
use nix::sys::socket::{setsockopt, sockopt::Linger};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};

#[test]
fn a_waiting_request_whose_client_resets_the_connection_ends_at_once() {
    const CLIENTS: usize = 100;
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = Arc::clone(&gate);
    let origin = Origin::start(move |_| {
        let (open, changed) = &*held;
        drop(changed.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
        ok("Cache-Control: max-age=600\r\n", "a page\n")
    });
    let daemon = Daemon::in_front_of(origin.port, &["-p", "first_byte_timeout=300"]);
    let over = || daemon.counter("MAIN.sess_closed") + daemon.counter("MAIN.sess_closed_err");
    let ask = || {
        let mut client = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
        client.write_all(b"GET /slow HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").unwrap();
        client
    };
    let first = ask();
    eventually("the origin is asked", || (origin.count() == 1).then_some(()));
    let waiting: Vec<TcpStream> = (0..CLIENTS).map(|_| ask()).collect();
    eventually("all wait", || (daemon.counter("MAIN.busy_sleep") == CLIENTS as u64).then_some(()));
    let before = over();
    for client in waiting {
        // Makes closing send a reset.
        setsockopt(&client, Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 }).unwrap();
    }
    eventually("all that reset are over", || (over() - before == CLIENTS as u64).then_some(()));
    assert_eq!(origin.count(), 1, "nobody else fetches");

    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    let answer = std::io::read_to_string(first).unwrap();
    assert!(answer.ends_with("a page\n"), "{answer}");
    assert!(daemon.get("/slow").is_hit());
}
