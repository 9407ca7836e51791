//! A Copal for one test: started on ports chosen by the system, stopped by process id, its folder
//! deleted afterwards.

#[path = "../../../shm/tests/support/varnish_7_7.rs"]
mod varnish_7_7;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use surface::limits::TEST_HANG_SECONDS;
use varnish_7_7::program_of_7_7;

/// Time limit of every wait.
pub const HANG: Duration = Duration::from_secs(TEST_HANG_SECONDS);

/// The program under test.
pub fn copal() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_copal"))
}

/// Path of an installed program; prints a skip note if it is missing.
pub fn needs(name: &str) -> Option<PathBuf> {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin:/usr/local/sbin";
    let found = folders.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    if found.is_none() {
        println!("skipped: needs {name}");
    }
    found
}

/// Versions of the stock programs, each with its word for `-o vsl` and the path of this program;
/// prints a note for each that is missing. `.ci/varnish-7.7` fetches the later one.
pub fn needs_each(name: &str) -> Vec<(&'static str, PathBuf)> {
    [("vsl=7.1", needs(name)), ("vsl=7.3", program_of_7_7(name))]
        .into_iter()
        .filter_map(|(layout, path)| Some((layout, path?)))
        .collect()
}

/// A port without a listener, now and later: the system assigns it to no program.
pub const CLOSED_PORT: u16 = 1;

/// A port for this test alone: below those that the system assigns, and given to one test only.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent test runs begin at different ports.
    let offset = (std::process::id() * 61 % u32::from(FREE_PORTS)) as u16;
    (0..FREE_PORTS)
        .map(|_| FIRST_FREE_PORT + offset.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % FREE_PORTS)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

const FIRST_FREE_PORT: u16 = 20_000;
const FREE_PORTS: u16 = 12_000;

/// Waits until a condition holds; panics with `what` if it does not happen.
pub fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    eventually_or(condition, || format!("did not come about: {what}"))
}

/// Like [`eventually`], with a message that is made at the end.
fn eventually_or<T>(mut condition: impl FnMut() -> Option<T>, message: impl Fn() -> String) -> T {
    let deadline = Instant::now() + HANG;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "{}", message());
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// The messages that a daemon sends to systemd. A thread reads them from the start: the socket's
/// queue holds ten, and the daemon waits where it is full.
pub struct Notifications {
    messages: Receiver<String>,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Notifications {
    pub fn new() -> Notifications {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut room = [0; 4096];
            while let Ok(count) = socket.recv(&mut room) {
                if sender.send(String::from_utf8_lossy(&room[..count]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Notifications { messages, path, _folder: folder }
    }

    /// Adds the environment of a unit with `WatchdogSec=`.
    pub fn set(&self, command: &mut Command, watchdog_microseconds: u32) {
        command.env("NOTIFY_SOCKET", &self.path).env("WATCHDOG_USEC", watchdog_microseconds.to_string());
    }

    /// Waits for a message that contains this line, and returns it.
    pub fn wait_for(&self, line: &str) -> String {
        let mut others = Vec::new();
        loop {
            let message = self.messages.recv_timeout(HANG);
            let message = message.unwrap_or_else(|error| panic!("{line}: {error}; received: {others:?}"));
            if message.lines().any(|one| one == line) {
                return message;
            }
            others.push(message);
        }
    }
}

/// A child process that is killed when dropped.
pub struct Process(pub Child);

impl Process {
    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal);
    }

    /// Waits for the end and returns the exit status.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        eventually("the process ends", || self.0.try_wait().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Output of a daemon whose worker serves.
const SERVES: &str = "Child launched OK";

/// A running Copal.
pub struct Daemon {
    pub process: Process,
    pub folder: tempfile::TempDir,
    pub port: u16,
}

impl Daemon {
    /// Starts with `-F`, its own port and these additional arguments; waits until a worker serves.
    pub fn start(arguments: &[&str]) -> Daemon {
        Daemon::start_with(arguments, |_| {})
    }

    /// Like [`Daemon::start`], with changes to the command, such as its environment.
    pub fn start_with(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Daemon {
        let mut command = Command::new(copal());
        command.arg0("varnishd");
        Daemon::start_program(command, arguments, SERVES, change, || {})
    }

    /// Like [`Daemon::start`], using a command to which the daemon's command line is appended.
    pub fn start_by(command: Command, arguments: &[&str]) -> Daemon {
        Daemon::start_program(command, arguments, SERVES, |_| {}, || {})
    }

    /// Like [`Daemon::start_by`], and calls `meanwhile` repeatedly until a worker serves.
    pub fn start_while(command: Command, arguments: &[&str], meanwhile: impl FnMut()) -> Daemon {
        Daemon::start_program(command, arguments, SERVES, |_| {}, meanwhile)
    }

    /// Like [`Daemon::start`], but with a stock varnishd.
    pub fn start_stock(varnishd: &Path, arguments: &[&str]) -> Daemon {
        Daemon::start_program(Command::new(varnishd), arguments, "said Child starts", |_| {}, || {})
    }

    /// The sockets are open before a worker runs. An action of a test on the worker in between,
    /// such as killing it, would affect the start, so this waits for `sign` in the output.
    fn start_program(
        command: Command,
        arguments: &[&str],
        sign: &str,
        change: impl FnOnce(&mut Command),
        mut meanwhile: impl FnMut(),
    ) -> Daemon {
        let mut daemon = Daemon::launch(tempfile::tempdir().unwrap(), free_port(), command, arguments, change);
        let log = daemon.folder.path().join("log");
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let process = &mut daemon.process.0;
        let is_serving = || {
            meanwhile();
            if let Some(status) = process.try_wait().unwrap() {
                panic!("the daemon ended with {status}: {}", said());
            }
            said().contains(sign).then_some(())
        };
        eventually_or(is_serving, || format!("the daemon does not start: {}", said()));
        daemon
    }

    fn launch(
        folder: tempfile::TempDir,
        port: u16,
        mut command: Command,
        arguments: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Daemon {
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        command
            .args(["-F", "-j", "none", "-n"])
            .arg(folder.path().join("run"))
            .args(["-a", &format!("127.0.0.1:{port}"), "-P"])
            .arg(folder.path().join("pid"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        change(&mut command);
        let child = command.spawn().unwrap();
        Daemon { process: Process(child), folder, port }
    }

    /// With one backend and without a VCL.
    pub fn in_front_of(port: u16, arguments: &[&str]) -> Daemon {
        let backend = format!("127.0.0.1:{port}");
        let mut all = vec!["-b", backend.as_str()];
        all.extend_from_slice(arguments);
        Daemon::start(&all)
    }

    /// With this VCL, in which `@PORT@` is replaced with the backend's port.
    pub fn with_vcl(vcl: &str, port: u16, arguments: &[&str]) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        // With a jail it is read by the jail's user.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = folder.path().join("test.vcl");
        std::fs::write(&path, vcl.replace("@PORT@", &port.to_string())).unwrap();
        let mut all = vec!["-f", path.to_str().unwrap()];
        all.extend_from_slice(arguments);
        Daemon::start(&all)
    }

    /// Everything it wrote on standard output and error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The work directory, for `-n`.
    pub fn run(&self) -> String {
        self.folder.path().join("run").display().to_string()
    }

    /// Runs one of our own applets against it.
    pub fn applet(&self, applet: &str, arguments: &[&str]) -> Output {
        Command::new(copal()).arg(applet).args(["-n", &self.run()]).args(arguments).output().unwrap()
    }

    /// Runs one CLI command with our varnishadm; returns its text for any status.
    pub fn cli(&self, words: &[&str]) -> (bool, String) {
        let limit = TEST_HANG_SECONDS.to_string();
        let output = self.applet("adm", &[&["-t", &limit], words].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    /// A counter by name.
    pub fn counter(&self, name: &str) -> u64 {
        let output = self.applet("stat", &["-1", "-f", name]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace()
            .nth(1)
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("{name}: {text}"))
    }

    /// Waits until a counter, which is published from time to time, has reached `least`; returns
    /// its value then.
    pub fn counter_reaching(&self, name: &str, least: u64) -> u64 {
        eventually(&format!("{name} is at least {least}"), || Some(self.counter(name)).filter(|value| *value >= least))
    }

    /// The process id of the worker that serves. Waits for one that is starting.
    pub fn worker(&self) -> i32 {
        let serving = || {
            if !self.cli(&["status"]).1.contains("Child in state running") {
                return None;
            }
            let (_, text) = self.cli(&["pid"]);
            text.lines().find_map(|line| line.strip_prefix("Worker:")).and_then(|pid| pid.trim().parse().ok())
        };
        eventually_or(serving, || format!("no worker serves: {}", self.said()))
    }

    /// A GET on a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"))
    }

    /// Sends bytes on a connection of its own and reads to its end.
    pub fn request(&self, text: &str) -> Answer {
        Answer::parse(&exchange(self.port, text.as_bytes()))
    }
}

/// Sends bytes to a port on loopback and reads until the other side closes.
pub fn exchange(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut received = Vec::new();
    // A reset after the response counts as an end, too.
    let _ = stream.read_to_end(&mut received);
    received
}

/// An HTTP response read to the end of its connection, chunked coding removed.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Answer {
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in: {}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.get(9..12).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no status: {head}"));
        let mut answer = Answer { status, head, body: bytes[end + 4..].to_vec() };
        if answer.header("transfer-encoding").is_some_and(|value| value == "chunked") {
            answer.body = dechunk(&answer.body);
        }
        answer
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Two ids in X-Varnish: served from the cache.
    pub fn is_hit(&self) -> bool {
        self.header("x-varnish").is_some_and(|value| value.contains(' '))
    }
}

fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a chunk header");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
}

/// Barrier at which a VCL waits with `vtc.barrier_sync()`: for a worker that hangs.
pub struct Barrier(std::os::unix::net::UnixListener);

impl Barrier {
    pub fn at(path: &Path) -> Barrier {
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Barrier(listener)
    }

    /// Waits until a worker waits here; it does so until the returned stream is dropped.
    pub fn held(&self) -> std::os::unix::net::UnixStream {
        eventually("the worker waits", || self.0.accept().ok()).0
    }
}

/// An origin inside the test: a function from the request head to the bytes of the response; counts
/// its requests.
pub struct Origin {
    pub port: u16,
    pub requests: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Origin {
    pub fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (answer, seen) = (std::sync::Arc::new(answer), std::sync::Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen) = (std::sync::Arc::clone(&answer), std::sync::Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &*answer, &seen));
            }
        });
        Origin { port, requests }
    }

    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> Vec<u8>, seen: &std::sync::Mutex<Vec<String>>) {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            received.drain(..end + 4);
            seen.lock().unwrap().push(head.clone());
            let bytes = answer(&head);
            if stream.write_all(&bytes).is_err()
                || !bytes.windows(15).any(|w| w.eq_ignore_ascii_case(b"content-length:"))
            {
                return;
            }
            continue;
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => received.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

/// A response with a length.
pub fn ok(headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
