//! Log tools that run for a long time: a log that vanishes and comes back, that overtakes them or
//! is truncated; rotation, daemons and their pid files.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::Signal;
use shm::layout::Layout;
use shm::log::{LogBuffer, LogId, LogRing};
use shm::vsm::{MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY, recreate_directory, remove_directory};
use surface::tag::Tag;

use crate::daemon::{HANG, Process, copal, eventually};

/// Published files of a server, without a server.
struct Published {
    folder: tempfile::TempDir,
    _manager: VsmWriter,
}

impl Published {
    fn new() -> Published {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MANAGER_DIRECTORY);
        recreate_directory(&path, 0o755).unwrap();
        let manager = VsmWriter::create(&path).unwrap();
        Published { folder, _manager: manager }
    }

    fn worker(&self, ring_bytes: usize) -> (VsmWriter, LogRing) {
        let path = self.folder.path().join(WORKER_DIRECTORY);
        recreate_directory(&path, 0o755).unwrap();
        let writer = VsmWriter::create(&path).unwrap();
        let ring = LogRing::publish(&writer, ring_bytes, Layout::V71).unwrap();
        (writer, ring)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn write_request(ring: &LogRing, vxid: u64, url: &str) {
    let mut log = LogBuffer::new(ring);
    log.start(LogId::client(vxid), 1_700_000_000.0);
    log.record_fmt(Tag::Begin, format_args!("req 1 rxreq"));
    log.timestamp("Start", 1_700_000_000.0);
    log.record(Tag::ReqMethod, b"GET");
    log.record(Tag::ReqURL, url.as_bytes());
    log.record(Tag::RespStatus, b"200");
    log.end();
}

/// A running tool, and the lines it writes.
struct Tool {
    process: Process,
    output: Receiver<String>,
    error: Receiver<String>,
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Tool {
    fn start(applet: &str, directory: &Path, arguments: &[&str]) -> Tool {
        let mut command = Command::new(copal());
        command.arg(applet).arg("-n").arg(directory).args(arguments).stdin(Stdio::null());
        let mut child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        let error = lines(child.stderr.take().unwrap());
        Tool { process: Process(child), output, error }
    }

    fn says(&self, wanted: &str) {
        let line = self.error.recv_timeout(HANG).unwrap_or_else(|_| panic!("does not say {wanted}"));
        assert_eq!(line, wanted);
    }

    /// Skips output up to a line that contains this; `write` makes it appear.
    fn prints(&self, wanted: &str, mut write: impl FnMut()) {
        eventually(&format!("prints {wanted}"), || {
            write();
            self.output.try_iter().any(|line| line.contains(wanted)).then_some(())
        });
    }
}

#[test]
fn a_log_that_vanishes_and_comes_back_is_read_on() {
    let published = Published::new();
    let (_worker, ring) = published.worker(1 << 16);
    let tool = Tool::start("log", published.path(), &["-i", "ReqURL"]);
    let mut vxid = 1;
    tool.prints("/first", || {
        vxid += 1;
        write_request(&ring, vxid, "/first");
    });
    // A transaction under way is reported up to its present state.
    ring.write(Tag::Begin, LogId::client(5000), b"req 1 rxreq");
    ring.write(Tag::ReqURL, LogId::client(5000), b"/unfinished");
    remove_directory(&published.path().join(WORKER_DIRECTORY)).unwrap();
    tool.says("Log abandoned (vsl)");
    tool.prints("/unfinished", || {});
    let (_worker, ring) = published.worker(1 << 16);
    write_request(&ring, 6000, "/at once");
    tool.says("Log reacquired");
    tool.prints("/at once", || {});
}

#[test]
fn overtaken_reader_reports_it_and_continues() {
    let published = Published::new();
    let (_worker, ring) = published.worker(1 << 14);
    let tool = Tool::start("ncsa", published.path(), &["-F", "%U"]);
    let mut vxid = 1;
    tool.prints("/before", || {
        vxid += 1;
        write_request(&ring, vxid, "/before");
    });
    tool.process.signal(Signal::SIGSTOP);
    let stat = format!("/proc/{}/stat", tool.process.pid());
    eventually("it stops", || std::fs::read_to_string(&stat).unwrap().contains(") T ").then_some(()));
    for vxid in 10_000..10_400 {
        write_request(&ring, vxid, "/lost");
    }
    tool.process.signal(Signal::SIGCONT);
    tool.says("Log overrun");
    tool.says("Log reacquired");
    tool.prints("/after", || {
        vxid += 1;
        write_request(&ring, 20_000 + vxid, "/after");
    });
}

#[test]
fn a_segment_that_is_cut_off_or_nonsense_ends_in_one_line() {
    let published = Published::new();
    let (_worker, ring) = published.worker(1 << 16);
    let segment = std::fs::read_dir(published.path().join(WORKER_DIRECTORY))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("Log")))
        .unwrap();
    let mut tool = Tool::start("log", published.path(), &["-g", "raw"]);
    tool.prints("ping", || ring.write(Tag::CLI, LogId::NONE, b"Rd ping"));
    // The writer here does not use its memory any more.
    drop(ring);
    std::fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(0).unwrap();
    tool.says("The server's shared memory was cut off while it was read");
    assert_eq!(tool.process.wait().code(), Some(1));

    let (_worker, ring) = published.worker(1 << 16);
    let segment = std::fs::read_dir(published.path().join(WORKER_DIRECTORY))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("Log")))
        .unwrap();
    let tool = Tool::start("log", published.path(), &["-g", "raw"]);
    tool.prints("ping", || ring.write(Tag::CLI, LogId::NONE, b"Rd ping"));
    let length = std::fs::metadata(&segment).unwrap().len() as usize;
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0; length - 88], 88).unwrap();
    tool.says("Log damaged");
    tool.says("Log reacquired");
    tool.says("Log damaged");
    tool.says("Log abandoned (damaged)");
    drop(ring);
    // The next worker's log is read.
    let (_worker, ring) = published.worker(1 << 16);
    tool.says("Log reacquired");
    tool.prints("status", || ring.write(Tag::CLI, LogId::NONE, b"Rd status"));
}

#[test]
fn daemons_write_their_pid_rotate_on_hup_and_are_not_started_twice() {
    for (applet, arguments) in [("log", &["-A", "-i", "ReqURL"][..]), ("ncsa", &["-F", "%U"]), ("ncsa", &["--json"])] {
        let published = Published::new();
        let (_worker, ring) = published.worker(1 << 16);
        let file = |name: &str| published.path().join(name);
        let (pid_file, output) = (file("pid"), file("output"));
        let mut all = vec!["-D", "-u", "-P", pid_file.to_str().unwrap(), "-w", output.to_str().unwrap()];
        if applet == "ncsa" {
            all.retain(|argument| *argument != "-u");
        }
        all.extend(arguments);
        let start = || {
            let mut command = Command::new(copal());
            command.arg(applet).arg("-n").arg(published.path()).args(&all);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap()
        };
        let started = start();
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        let pid: i32 = eventually("there is a pid", || std::fs::read_to_string(&pid_file).ok()?.parse().ok());
        let process = nix::unistd::Pid::from_raw(pid);
        let again = start();
        assert_eq!(again.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&again.stderr).ends_with("Already running\n"));
        let mut vxid = 1;
        let mut written_to = |path: &Path, url: &str| {
            eventually(&format!("{url} is in {}", path.display()), || {
                vxid += 1;
                write_request(&ring, vxid, url);
                std::fs::read_to_string(path).unwrap_or_default().contains(url).then_some(())
            });
        };
        written_to(&output, "/one");
        let rotated = file("output.1");
        std::fs::rename(&output, &rotated).unwrap();
        nix::sys::signal::kill(process, Signal::SIGHUP).unwrap();
        // Records that are written before the signal is taken may still go to the old file.
        eventually("the file is there again", || output.exists().then_some(()));
        written_to(&output, "/two");
        assert!(!std::fs::read_to_string(&rotated).unwrap().contains("/two") || applet == "ncsa");
        // A signal without a rename loses nothing.
        nix::sys::signal::kill(process, Signal::SIGHUP).unwrap();
        written_to(&output, "/three");
        assert!(std::fs::read_to_string(&output).unwrap().contains("/two"));
        nix::sys::signal::kill(process, Signal::SIGTERM).unwrap();
        eventually("the pid file goes", || (!pid_file.exists()).then_some(()));
    }
}
