//! The CLI with clients that are slow, silent, garbled or numerous: each gets one clear answer or
//! is dropped, and the others are not affected. Also its sockets: several addresses, paths, and
//! outgoing connections.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::daemon::{Barrier, Daemon, HANG, copal, eventually};

const VCL: &str = "vcl 4.1; backend origin none;";

/// The daemon's first CLI address.
fn address(daemon: &Daemon) -> String {
    let listed = daemon.folder.path().join("run/_.vsm_mgt");
    std::fs::read_dir(listed)
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.unwrap().path()).ok())
        .find_map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.lines().next()?.strip_prefix("127.0.0.1 ").map(|port| format!("127.0.0.1:{port}"))
        })
        .unwrap()
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream
}

/// One framed reply: status and body.
fn reply(stream: &mut impl std::io::Read) -> (u16, String) {
    let mut head = [0; 13];
    stream.read_exact(&mut head).unwrap();
    let head = String::from_utf8(head.to_vec()).unwrap();
    let length: usize = head[4..12].trim().parse().unwrap();
    let mut body = vec![0; length + 1];
    stream.read_exact(&mut body).unwrap();
    body.truncate(length);
    (head[..3].trim().parse().unwrap(), String::from_utf8_lossy(&body).into_owned())
}

fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn invalid_cli_input_gets_one_answer_and_closes_the_connection() {
    let daemon = Daemon::with_vcl(VCL, 1, &[]);
    let address = address(&daemon);
    let long = vec![b'x'; 200_000];
    for (garbage, status) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], 101),
        (b"stop\n", 101),
        (b"auth 0000\n", 500),
        (b"auth\n", 104),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 101),
        (b"\"unfinished\n", 100),
        (b"-\n", 100),
        (&long, 101),
    ] {
        let mut client = connect(&address);
        assert_eq!(reply(&mut client).0, 107);
        // Refused input may not have been read to its end.
        let _ = client.write_all(garbage);
        assert_eq!(reply(&mut client).0, status, "{:?}", String::from_utf8_lossy(&garbage[..garbage.len().min(20)]));
        assert!(is_closed(&mut client));
    }
    let (ok, text) = daemon.cli(&["status"]);
    assert!(ok, "{text}");
}

#[test]
fn unauthenticated_connections_do_not_block_authenticated_ones() {
    let daemon = Daemon::with_vcl(VCL, 1, &[]);
    let address = address(&daemon);
    let mut strangers: Vec<TcpStream> = Vec::new();
    for _ in 0..surface::limits::CLI_CONNECTIONS_MAX + 20 {
        let mut stranger = connect(&address);
        assert_eq!(reply(&mut stranger).0, 107);
        strangers.push(stranger);
    }
    assert!(is_closed(&mut strangers[0]), "the oldest gave way");
    let (ok, text) = daemon.cli(&["ping"]);
    assert!(ok && text.starts_with("PONG"), "{text}");
    // The last client is still served.
    let last = strangers.last_mut().unwrap();
    last.write_all(b"ping\n").unwrap();
    assert_eq!(reply(last).0, 200);
}

#[test]
fn strangers_don_t_end_a_command_that_came_together_with_the_secret() {
    let daemon = Daemon::with_vcl(VCL, 1, &[]);
    let address = address(&daemon);
    let (file, place) = (daemon.folder.path().join("slow.vcl"), daemon.folder.path().join("barrier"));
    let wait = format!("import vtc; sub vcl_init {{ vtc.barrier_sync(\"{}\"); }}", place.display());
    std::fs::write(&file, format!("{VCL} {wait}")).unwrap();
    let barrier = Barrier::at(&place);
    let mut client = connect(&address);
    let (status, greeting) = reply(&mut client);
    assert_eq!(status, 107);
    let secret = std::fs::read(daemon.folder.path().join("run/_.secret")).unwrap();
    let answer = cli_proto::auth::answer(greeting.as_bytes().first_chunk().unwrap(), &secret);
    client.write_all(format!("auth {answer}\nvcl.load slow {}\n", file.display()).as_bytes()).unwrap();
    assert_eq!(reply(&mut client).0, 200);
    let slow = barrier.held();
    let strangers: Vec<TcpStream> = (0..surface::limits::CLI_CONNECTIONS_MAX)
        .map(|_| {
            let mut stranger = connect(&address);
            assert_eq!(reply(&mut stranger).0, 107);
            stranger
        })
        .collect();
    drop(slow);
    assert_eq!(reply(&mut client).0, 200);
    drop(strangers);
}

#[test]
fn unread_replies_harm_no_other_client_and_long_replies_are_cut() {
    let daemon = Daemon::with_vcl(VCL, 1, &["-S", "none"]);
    let address = address(&daemon);
    let mut deaf = connect(&address);
    deaf.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Commands whose replies are not read, until the server stops reading.
    let commands = b"param.show -l\n".repeat(2000);
    while deaf.write_all(&commands).is_ok() {}
    for _ in 0..5 {
        let (ok, text) = daemon.cli(&["ping"]);
        assert!(ok, "{text}");
    }
    let mut client = connect(&address);
    assert_eq!(reply(&mut client).0, 200);
    client.write_all(b"param.set cli_limit 128b\nhelp -a\nnonsense\nping\n").unwrap();
    assert_eq!(reply(&mut client).0, 200);
    let (status, body) = reply(&mut client);
    assert!(status == 201 && body.len() == 127, "{status} {}", body.len());
    assert_eq!(reply(&mut client).0, 101);
    assert_eq!(reply(&mut client).0, 200);
    // Commands that arrive in pieces work too, and those of one connection stay in order.
    for piece in ["pi", "ng\nsta", "tus\n"] {
        client.write_all(piece.as_bytes()).unwrap();
    }
    assert!(reply(&mut client).1.starts_with("PONG"));
    assert_eq!(reply(&mut client).1, "Child in state running");
    client.write_all(b"quit\n").unwrap();
    assert_eq!(reply(&mut client), (500, "Closing CLI connection".to_owned()));
    assert!(is_closed(&mut client));
}

#[test]
fn a_worker_that_does_not_answer_in_time_costs_one_clear_reply() {
    // Long enough for a new worker to start on a busy machine.
    let daemon = Daemon::with_vcl(VCL, 1, &["-p", "cli_timeout=10"]);
    let worker = nix::unistd::Pid::from_raw(daemon.worker());
    nix::sys::signal::kill(worker, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let (ok, text) = daemon.cli(&["backend.list"]);
    assert!(!ok && text.contains("400"), "{text}");
    // The manager answers commands of its own, and a hanging worker is replaced.
    let (ok, text) = daemon.cli(&["param.show", "cli_timeout"]);
    assert!(ok, "{text}");
    let _ = nix::sys::signal::kill(worker, nix::sys::signal::Signal::SIGCONT);
    eventually("commands are done again", || {
        let (ok, _) = daemon.cli(&["backend.list"]);
        ok.then_some(())
    });
}

#[test]
fn several_addresses_and_a_path_are_listened_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cli");
    let socket = path.to_str().unwrap();
    let left_over = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // An unanswered socket is replaced.
    drop(left_over);
    let daemon = Daemon::with_vcl(VCL, 1, &["-T", socket, "-T", "127.0.0.1:0", "-T", "127.0.0.1:0"]);
    let secret = format!("{}/_.secret", daemon.run());
    let adm = |target: &str| {
        let output = std::process::Command::new(copal()).args(["adm", "-T", target, "-S", &secret, "ping"]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(adm(socket).starts_with("PONG"));
    assert!(adm(&address(&daemon)).starts_with("PONG"));
    let mut stranger = UnixStream::connect(&path).unwrap();
    assert_eq!(reply(&mut stranger).0, 107);
    stranger.write_all(b"stop\n").unwrap();
    assert_eq!(reply(&mut stranger).0, 101);
    let (ok, _) = daemon.cli(&["ping"]);
    assert!(ok);
    let run = daemon.run();
    let mut daemon = daemon;
    daemon.process.signal(nix::sys::signal::Signal::SIGTERM);
    daemon.process.wait();
    assert!(!path.exists(), "the socket goes with its daemon");
    // If the CLI has only a path, our varnishadm finds it by the server's name.
    let only = Daemon::with_vcl(VCL, 1, &["-T", socket]);
    let (ok, text) = only.cli(&["ping"]);
    assert!(ok && text.starts_with("PONG"), "{text} {run}");
}

#[test]
fn a_master_that_hangs_up_is_called_again() {
    let master = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = master.local_addr().unwrap().to_string();
    let daemon = Daemon::with_vcl(VCL, 1, &["-M", &target, "-S", "none"]);
    for round in 0..3 {
        let (mut call, _) = master.accept().unwrap();
        call.set_read_timeout(Some(HANG)).unwrap();
        assert_eq!(reply(&mut call).0, 200);
        call.write_all(b"ping\n").unwrap();
        assert!(reply(&mut call).1.starts_with("PONG"), "round {round}");
    }
    drop(daemon);
}
