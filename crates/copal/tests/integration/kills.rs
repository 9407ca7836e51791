//! The worker, or the manager and the worker, are killed at random moments under load, with
//! storages in memory and in files.
//!
//! Every body is checked by its content, and every removal by later responses: the origin
//! increments the version of each path before it is removed, so a request after the answer to the
//! removal must get that version or a newer one. Each path belongs to one client, which does one
//! thing after the other, so no fetch is under way when it is removed; other clients request only
//! stored objects and fetch nothing. `COPAL_KILLS` is the number of kills (`cargo xtask store
//! --kills N`).

use crate::daemon::{Daemon, HANG, Origin, Process, copal, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Number of kills of a storage by default.
const KILLS: u64 = 6;
/// Correct answers between two kills, so that there is load.
const ANSWERS_BETWEEN: u64 = 60;
/// Number of clients that own paths, and of paths of each.
const OWNERS: u64 = 4;
const PATHS_EACH: u64 = 40;
/// Lengths of bodies: the stored amount may be large, most of it in long bodies.
const LENGTHS: [usize; 8] = [0, 1, 700, 4096, 20_000, 65_537, 150_000, 400_000];

const VCL: &str = r#"vcl 4.1;
    import std;
    import xkey;
    backend default { .host = "127.0.0.1"; .port = "@PORT@"; }
    sub vcl_recv {
        if (req.method == "PURGE") { return (purge); }
        if (req.method == "BAN") {
            if (std.ban("req.url == " + req.url)) { return (synth(200)); }
            return (synth(500));
        }
        if (req.method == "BANOBJ") {
            if (std.ban("obj.http.X-Path == " + req.url)) { return (synth(200)); }
            return (synth(500));
        }
        if (req.method == "TAG") { return (synth(200, "" + xkey.purge(req.http.X-Tag))); }
    }
    sub vcl_miss { if (req.http.X-Stored) { return (synth(404)); } }
    sub vcl_backend_response { set beresp.grace = 0s; }
"#;

/// Expected state of a path.
#[derive(Default)]
struct Page {
    /// The version at the origin.
    version: AtomicU64,
    /// The oldest version that may be delivered.
    oldest: AtomicU64,
}

struct World {
    pages: Vec<Page>,
    /// Port of the daemon; 0 = there is none.
    port: AtomicU16,
    stop: AtomicBool,
    answers: AtomicU64,
    hits: AtomicU64,
    removals: AtomicU64,
    broken: AtomicU64,
    wrong: AtomicU64,
}

fn path_of(number: u64) -> String {
    format!("/page/{number}")
}

/// Including redirects and answers without content.
fn status_of(number: u64) -> u16 {
    match number % 16 {
        3 => 301,
        8 => 204,
        _ => 200,
    }
}

fn body_of(number: u64, version: u64) -> String {
    let length = if status_of(number) == 200 { LENGTHS[number as usize % LENGTHS.len()] } else { 0 };
    let mut text = String::with_capacity(length + 60);
    for line in 0.. {
        if text.len() >= length {
            break;
        }
        let _ = writeln!(text, "line {line} of version {version} of {}", path_of(number));
    }
    text.truncate(length);
    text
}

fn response(number: u64, version: u64) -> Vec<u8> {
    let (status, body) = (status_of(number), body_of(number, version));
    let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let path = path_of(number);
    let fields =
        format!("X-Version: {version}\r\nX-Path: {path}\r\nxkey: tag-{number}\r\nLocation: /new/{version}\r\n");
    format!("HTTP/1.1 {status} Said\r\nCache-Control: max-age=9000\r\n{fields}{length}\r\n{body}").into_bytes()
}

/// A complete answer.
struct Whole {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Whole {
    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Source of small random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

impl World {
    fn new() -> Arc<World> {
        let pages = (0..OWNERS * PATHS_EACH).map(|_| Page::default()).collect();
        let number = || AtomicU64::new(0);
        let (port, stop) = (AtomicU16::new(0), AtomicBool::new(false));
        let (answers, hits, removals, broken, wrong) = (number(), number(), number(), number(), number());
        Arc::new(World { pages, port, stop, answers, hits, removals, broken, wrong })
    }

    /// `None` if there is no daemon, or the answer breaks off.
    fn ask(&self, method: &str, number: u64, fields: &str) -> Option<Whole> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port.load(SeqCst))).ok()?;
        let answer = self.ask_on(&mut stream, method, number, fields);
        self.broken.fetch_add(u64::from(answer.is_none()), SeqCst);
        answer
    }

    fn ask_on(&self, stream: &mut TcpStream, method: &str, number: u64, fields: &str) -> Option<Whole> {
        stream.set_read_timeout(Some(HANG)).ok()?;
        let path = path_of(number);
        let request = format!("{method} {path} HTTP/1.1\r\nHost: kills\r\nConnection: close\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.get(9..12)?.parse().ok()?;
        let whole = Whole { status, body: bytes.split_off(end + 4), head };
        let length = whole.field("content-length").map_or(Some(0), |length| length.parse().ok());
        (status == 204 || length == Some(whole.body.len())).then_some(whole)
    }

    fn say(&self, what: &str) {
        self.wrong.fetch_add(1, SeqCst);
        println!("{what}");
    }

    /// Requests a page, and checks the response. False if there was none.
    fn get(&self, number: u64, fields: &str) -> bool {
        let page = &self.pages[number as usize];
        let oldest = page.oldest.load(SeqCst);
        let Some(answer) = self.ask("GET", number, fields) else { return false };
        if answer.status == 503 || answer.status == 404 {
            return true;
        }
        let version = answer.field("x-version").and_then(|version| version.parse::<u64>().ok());
        let expected = version.map(|version| body_of(number, version).into_bytes());
        let location = version.map(|version| format!("/new/{version}"));
        if answer.status != status_of(number)
            || expected.as_ref() != Some(&answer.body)
            || answer.field("location") != location.as_deref()
        {
            self.say(&format!("{number}: not what was stored: {} {} bytes", answer.head, answer.body.len()));
        }
        if version.is_none_or(|version| version < oldest || version > page.version.load(SeqCst)) {
            self.say(&format!("{number}: version {version:?} came back, {oldest} was the oldest: {}", answer.head));
        }
        self.answers.fetch_add(1, SeqCst);
        let is_hit = answer.field("x-varnish").is_some_and(|ids| ids.contains(' '));
        self.hits.fetch_add(u64::from(is_hit), SeqCst);
        true
    }

    /// Removes a page, of which the origin has a newer version from now on.
    fn remove(&self, number: u64, how: &str) {
        let page = &self.pages[number as usize];
        let version = page.version.fetch_add(1, SeqCst) + 1;
        let is_removed = self.ask(how, number, &format!("X-Tag: tag-{number}\r\n"));
        if is_removed.is_some_and(|answer| answer.status == 200) {
            page.oldest.fetch_max(version, SeqCst);
            self.removals.fetch_add(1, SeqCst);
        }
    }

    fn own(&self, owner: u64) {
        let mut chance = Chance((owner + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        while !self.stop.load(SeqCst) {
            let number = owner * PATHS_EACH + chance.below(PATHS_EACH);
            match chance.below(20) {
                0 => self.remove(number, "PURGE"),
                1 => self.remove(number, "BAN"),
                2 => self.remove(number, "BANOBJ"),
                3 => self.remove(number, "TAG"),
                _ if self.get(number, "") => {}
                _ => std::thread::park_timeout(Duration::from_millis(5)),
            }
        }
    }

    /// Requests stored objects of any owner.
    fn look(&self, seed: u64) {
        let mut chance = Chance(seed);
        while !self.stop.load(SeqCst) {
            if !self.get(chance.below(OWNERS * PATHS_EACH), "X-Stored: yes\r\n") {
                std::thread::park_timeout(Duration::from_millis(5));
            }
        }
    }
}

/// Process to kill.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Worker,
    /// Twice, the second time while it starts.
    WorkerAgain,
    Everything,
    /// The manager; the worker ends by itself.
    Manager,
    /// Everything, and then a daemon that has barely started.
    EverythingAgain,
}

const VICTIMS: [Victim; 5] =
    [Victim::Worker, Victim::Everything, Victim::WorkerAgain, Victim::EverythingAgain, Victim::Manager];

struct Scene {
    world: Arc<World>,
    origin: Origin,
    vcl: tempfile::NamedTempFile,
    storage: String,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new(is_file: bool) -> Scene {
        let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
        let of_origin = Arc::clone(&world);
        let origin = Origin::start(move |head| {
            let number: u64 = head.split(' ').nth(1).and_then(|path| path.rsplit('/').next()?.parse().ok()).unwrap();
            response(number, of_origin.pages[number as usize].version.load(SeqCst))
        });
        let mut vcl = tempfile::NamedTempFile::new().unwrap();
        vcl.write_all(VCL.replace("@PORT@", &origin.port.to_string()).as_bytes()).unwrap();
        // The storage is too small for all pages, so objects are evicted all the time.
        let path = folder.path().join("bodies");
        let storage = if is_file { format!("file,{},12m,meta=2m", path.display()) } else { "malloc,10m".to_owned() };
        Scene { world, origin, vcl, storage, _folder: folder }
    }

    fn arguments(&self) -> [&str; 6] {
        ["-f", self.vcl.path().to_str().unwrap(), "-s", &self.storage, "-l", "2m"]
    }

    fn start(&self) -> Daemon {
        let daemon = Daemon::start(&self.arguments());
        self.world.port.store(daemon.port, SeqCst);
        daemon
    }

    /// Starts a daemon that is killed before it is ready, or soon after.
    fn begin_and_kill(&self, after: Duration) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(copal());
        command.args(["daemon", "-F", "-j", "none", "-a", "127.0.0.1:0", "-n"]).arg(folder.path());
        command.args(self.arguments()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().unwrap());
        std::thread::park_timeout(after);
        let workers = children(process.pid());
        drop(process);
        workers.into_iter().for_each(end);
    }

    /// The daemon that runs afterwards.
    fn kill(&self, daemon: Daemon, victim: Victim, chance: &mut Chance) -> Daemon {
        let workers = children(daemon.process.pid());
        match victim {
            Victim::Worker | Victim::WorkerAgain => {
                workers.iter().for_each(|pid| end(*pid));
                if victim == Victim::WorkerAgain {
                    std::thread::park_timeout(Duration::from_millis(chance.below(40)));
                    children(daemon.process.pid()).into_iter().for_each(end);
                }
                daemon
            }
            Victim::Everything | Victim::EverythingAgain | Victim::Manager => {
                self.world.port.store(0, SeqCst);
                daemon.process.signal(Signal::SIGKILL);
                if victim != Victim::Manager {
                    workers.iter().for_each(|pid| end(*pid));
                }
                drop(daemon);
                for pid in workers {
                    eventually("the worker is gone", || {
                        std::fs::metadata(format!("/proc/{pid}")).is_err().then_some(())
                    });
                }
                if victim == Victim::EverythingAgain {
                    self.begin_and_kill(Duration::from_millis(chance.below(150)));
                }
                self.start()
            }
        }
    }
}

fn end(pid: i32) {
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}

fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn kills() -> u64 {
    std::env::var("COPAL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// Waits for `count` more correct answers.
fn await_answers(world: &World, count: u64) {
    let wanted = world.answers.load(SeqCst) + count;
    eventually("there are answers", || (world.answers.load(SeqCst) >= wanted).then_some(()));
}

fn kill_at_random(is_file: bool) {
    let scene = Scene::new(is_file);
    let world = &scene.world;
    let mut daemon = scene.start();
    let clients: Vec<_> = (0..OWNERS + 2)
        .map(|number| {
            let world = Arc::clone(world);
            std::thread::spawn(move || if number < OWNERS { world.own(number) } else { world.look(number + 99) })
        })
        .collect();
    let mut chance = Chance(u64::from(std::process::id()) << 8 | 1);
    for number in 0..kills() {
        await_answers(world, ANSWERS_BETWEEN);
        std::thread::park_timeout(Duration::from_millis(chance.below(250)));
        let victim = VICTIMS[number as usize % VICTIMS.len()];
        daemon = scene.kill(daemon, victim, &mut chance);
        assert_eq!(world.wrong.load(SeqCst), 0, "after {victim:?}, kill {number}: {}", daemon.said());
    }
    await_answers(world, ANSWERS_BETWEEN);
    world.stop.store(true, SeqCst);
    clients.into_iter().for_each(|client| client.join().unwrap());
    // Everything once more, and the stored objects after another start.
    let look = |fields: &str| (0..OWNERS * PATHS_EACH).filter(|number| world.get(*number, fields)).count() as u64;
    assert_eq!(look(""), OWNERS * PATHS_EACH);
    let answers = world.answers.load(SeqCst);
    let (is_settled, text) = daemon.cli(&["tag.purge", "nothing-has-this-tag"]);
    assert!(is_settled, "{text}");
    let daemon = scene.kill(daemon, if is_file { Victim::Everything } else { Victim::Worker }, &mut chance);
    eventually("it is back", || world.get(0, "").then_some(()));
    look("X-Stored: yes\r\n");
    let kept = world.answers.load(SeqCst) - answers;
    let of = |count: &AtomicU64| count.load(SeqCst);
    println!(
        "{} kills, {}: {} right answers, {} hits, {} removals, {} broken off, {} wrong, {kept} pages after the last kill, {} fetches",
        kills(),
        if is_file { "file" } else { "memory" },
        of(&world.answers),
        of(&world.hits),
        of(&world.removals),
        of(&world.broken),
        of(&world.wrong),
        scene.origin.count(),
    );
    assert_eq!(of(&world.wrong), 0, "{}", daemon.said());
    assert!(kept > PATHS_EACH && of(&world.hits) > 0 && of(&world.removals) > 0, "{kept}: {}", daemon.said());
}

#[test]
fn kills_at_random_bring_nothing_wrong_and_nothing_back_from_memory() {
    kill_at_random(false);
}

#[test]
fn kills_at_random_bring_nothing_wrong_and_nothing_back_from_a_file() {
    kill_at_random(true);
}
