//! systemd's file descriptor store over a restart of the unit, with its own protocol: messages with
//! descriptors on `NOTIFY_SOCKET`, and `LISTEN_FDS`.

use crate::daemon::{Daemon, Origin, copal, eventually, ok};
use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::Signal;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    ok("Cache-Control: max-age=600\r\n", &format!("this is {path}\n"))
}

/// Imitates systemd with `FileDescriptorStoreMax=`.
struct Systemd {
    socket: UnixDatagram,
    path: PathBuf,
    store: Vec<(String, OwnedFd)>,
    is_ready: bool,
    /// Number of requests for more time.
    extensions: usize,
    _folder: tempfile::TempDir,
}

impl Systemd {
    fn new() -> Systemd {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        Systemd { socket, path, store: Vec::new(), is_ready: false, extensions: 0, _folder: folder }
    }

    /// Takes all waiting messages.
    fn listen(&mut self) {
        loop {
            let mut text = [0; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut room = [IoSliceMut::new(&mut text)];
            let Ok(received) = recvmsg(&self.socket, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC) else { return };
            let descriptors = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            });
            let descriptors: Vec<OwnedFd> = descriptors.flatten().collect();
            let text = String::from_utf8_lossy(&text[..received.bytes]).into_owned();
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            let name = value("FDNAME").unwrap_or("stored").to_owned();
            if value("FDSTOREREMOVE") == Some("1") {
                self.store.retain(|(known, _)| *known != name);
            }
            if value("FDSTORE") == Some("1") {
                assert_eq!(descriptors.len(), 1);
                self.store.extend(descriptors.into_iter().map(|descriptor| (name.clone(), descriptor)));
            }
            self.extensions += usize::from(value("EXTEND_TIMEOUT_USEC").is_some());
            self.is_ready |= value("READY") == Some("1");
        }
    }

    /// Starts the service with the content of the store, and a socket if there is one.
    fn start(&mut self, origin: &Origin, arguments: &[&str], socket: Option<&TcpListener>) -> Daemon {
        self.is_ready = false;
        let mut passed: Vec<(String, OwnedFd)> =
            socket.map(|socket| ("web".to_owned(), socket.try_clone().unwrap().into())).into_iter().collect();
        passed.extend(self.store.iter().map(|(name, kept)| (name.clone(), kept.try_clone().unwrap())));
        let mut command = Command::new("sh");
        command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"]).arg(copal()).arg("daemon");
        command.env("NOTIFY_SOCKET", &self.path).env("LISTEN_FDS", passed.len().to_string());
        command.env("LISTEN_FDNAMES", passed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(":"));
        let mapping = |(child_fd, (_, parent_fd))| FdMapping { parent_fd, child_fd };
        command.fd_mappings((3..).zip(passed).map(mapping).collect()).unwrap();
        let backend = format!("127.0.0.1:{}", origin.port);
        let mut all = vec!["-b", backend.as_str()];
        let address = socket.map(|socket| socket.local_addr().unwrap().to_string());
        if let Some(address) = &address {
            all.extend(["-a", address.as_str()]);
        }
        all.extend_from_slice(arguments);
        // A full socket would block the start.
        let daemon = Daemon::start_while(command, &all, || self.listen());
        eventually("it is ready", || {
            self.listen();
            self.is_ready.then_some(())
        });
        daemon
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.store.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

fn end(mut daemon: Daemon, signal: Signal) {
    let worker = daemon.worker();
    daemon.process.signal(signal);
    daemon.process.wait();
    eventually("the worker is gone", || (!std::path::Path::new(&format!("/proc/{worker}/fd")).exists()).then_some(()));
}

fn is_hit(daemon: &Daemon, path: &str) -> bool {
    let answer = daemon.get(path);
    assert_eq!((answer.status, answer.text()), (200, format!("this is {path}\n")), "{}", answer.head);
    answer.is_hit()
}

const TWO: &[&str] = &["-s", "malloc,64m", "-s", "large=malloc,64m"];

#[test]
fn hits_and_bans_survive_a_restart_of_the_unit() {
    let origin = Origin::start(page);
    let mut systemd = Systemd::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let daemon = systemd.start(&origin, TWO, Some(&socket));
    let names = ["copal-arena-large", "copal-arena-s0", "copal-journal", "copal-panic", "copal-seat"];
    assert_eq!(systemd.names(), names);
    for number in 0..20 {
        assert!(!is_hit(&daemon, &format!("/{number}")));
    }
    assert!(daemon.cli(&["ban", "req.url", "==", "/7"]).0);
    end(daemon, Signal::SIGTERM);
    let daemon = systemd.start(&origin, TWO, Some(&socket));
    assert!(daemon.said().contains("systemd kept 2 storages, which are taken over"), "{}", daemon.said());
    let all =
        |daemon: &Daemon| (0..20).filter(|number| *number != 7).all(|number| is_hit(daemon, &format!("/{number}")));
    assert!(all(&daemon));
    assert!(!is_hit(&daemon, "/7"));
    assert_eq!(origin.count(), 21);
    assert_eq!(systemd.names(), names, "nothing is kept twice");
    // A crash of the whole service has the same effect.
    end(daemon, Signal::SIGKILL);
    let daemon = systemd.start(&origin, TWO, Some(&socket));
    assert!(all(&daemon) && is_hit(&daemon, "/7"));
    assert_eq!(origin.count(), 21);
}

#[test]
fn storages_that_are_no_longer_wanted_are_forgotten_and_the_others_stay() {
    let origin = Origin::start(page);
    let mut systemd = Systemd::new();
    let daemon = systemd.start(&origin, &["-s", "a=malloc,64m"], None);
    assert!(!is_hit(&daemon, "/x"));
    end(daemon, Signal::SIGTERM);
    let daemon = systemd.start(&origin, &["-s", "a=malloc,64m", "-s", "b=malloc,64m"], None);
    assert!(is_hit(&daemon, "/x"));
    assert_eq!(systemd.names(), ["copal-arena-a", "copal-arena-b", "copal-journal", "copal-panic", "copal-seat"]);
    end(daemon, Signal::SIGTERM);
    let daemon = systemd.start(&origin, &["-s", "b=malloc,1g"], None);
    assert!(!is_hit(&daemon, "/x") && is_hit(&daemon, "/x"));
    let said = daemon.said();
    assert!(said.contains("What systemd kept as copal-arena-a is not used: no -s has that name"), "{said}");
    assert!(
        said.contains("What systemd kept as copal-arena-b is not used: it was made for a smaller storage"),
        "{said}"
    );
    assert_eq!(systemd.names(), ["copal-arena-b", "copal-journal", "copal-panic", "copal-seat"]);
    end(daemon, Signal::SIGTERM);
    let daemon = systemd.start(&origin, &["-s", "b=malloc,1g"], None);
    assert!(is_hit(&daemon, "/x"), "the new one is kept");
}

#[test]
fn a_file_is_kept_with_its_lock_and_comes_back_with_its_memory() {
    let origin = Origin::start(page);
    let mut systemd = Systemd::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bodies");
    let disk = format!("disk=file,{},64m", path.display());
    let arguments = ["-s", disk.as_str()];
    let daemon = systemd.start(&origin, &arguments, None);
    let names = ["copal-arena-disk", "copal-file-disk", "copal-journal", "copal-panic", "copal-seat"];
    assert_eq!(systemd.names(), names);
    assert!(!is_hit(&daemon, "/x") && !is_hit(&daemon, "/banned"));
    assert!(daemon.cli(&["ban", "req.url", "==", "/banned"]).0);
    daemon.counter_reaching("SMF.disk.stored_bytes", 27);
    // Bans and objects that are not in the file's log yet are in memory.
    end(daemon, Signal::SIGKILL);
    let daemon = systemd.start(&origin, &arguments, None);
    assert!(daemon.said().contains("systemd kept 1 storages, which are taken over"), "{}", daemon.said());
    assert!(is_hit(&daemon, "/x") && !is_hit(&daemon, "/banned"), "{}", daemon.said());
    assert_eq!(systemd.names(), names);
    end(daemon, Signal::SIGTERM);
    // Another file at its path, and another journal.
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(folder.path().join("bodies.bans")).unwrap();
    let daemon = systemd.start(&origin, &arguments, None);
    assert!(
        daemon.said().contains("What systemd kept as copal-file-disk is not used: it is not the file"),
        "{}",
        daemon.said()
    );
    assert!(!is_hit(&daemon, "/x") && is_hit(&daemon, "/x"));
    assert_eq!(systemd.names(), names, "the new ones are kept");
    end(daemon, Signal::SIGTERM);
    let daemon = systemd.start(&origin, &arguments, None);
    assert!(is_hit(&daemon, "/x"), "{}", daemon.said());
}

#[test]
fn foreign_or_damaged_stored_descriptors_do_not_prevent_a_start() {
    let origin = Origin::start(page);
    let mut systemd = Systemd::new();
    let daemon = systemd.start(&origin, TWO, None);
    assert!(!is_hit(&daemon, "/x"));
    end(daemon, Signal::SIGTERM);
    // A file of another kind under the journal's name, and an arena of random bytes.
    for (name, kept) in &mut systemd.store {
        match name.as_str() {
            "copal-journal" => *kept = std::fs::File::open("/dev/null").unwrap().into(),
            _ => std::fs::File::from(kept.try_clone().unwrap()).write_all_at(b"nonsense", 0).unwrap(),
        }
    }
    let daemon = systemd.start(&origin, TWO, None);
    let said = daemon.said();
    assert!(
        said.contains("What systemd kept as copal-journal is not used: /dev/null is not the memory file"),
        "{said}"
    );
    assert!(said.contains("copal-arena-large is not used: there is no journal of bans with it"), "{said}");
    assert!(!is_hit(&daemon, "/x") && is_hit(&daemon, "/x"));
    end(daemon, Signal::SIGTERM);
    for (_, kept) in systemd.store.iter().filter(|(name, _)| name.starts_with("copal-arena")) {
        std::fs::File::from(kept.try_clone().unwrap()).write_all_at(b"nonsense", 0).unwrap();
    }
    let daemon = systemd.start(&origin, TWO, None);
    eventually("it says so", || {
        daemon.said().contains("could not be taken over 3 times: it begins empty").then_some(())
    });
    assert!(!is_hit(&daemon, "/x") && is_hit(&daemon, "/x"));
    systemd.listen();
    end(daemon, Signal::SIGTERM);
    let daemon = systemd.start(&origin, TWO, None);
    assert!(is_hit(&daemon, "/x"), "what took their place is kept: {}", daemon.said());
}

#[test]
fn slow_start_is_awaited_until_it_is_ready() {
    let origin = Origin::start(page);
    let mut systemd = Systemd::new();
    let daemon = systemd.start(&origin, TWO, None);
    let asked = systemd.extensions;
    assert!(asked > 2, "for each storage that is taken over: {asked}");
    let worker = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("the next one", || (daemon.worker() != worker && !is_hit(&daemon, "/x")).then_some(()));
    systemd.listen();
    assert_eq!(systemd.extensions, asked, "systemd does not wait for this one");
}
