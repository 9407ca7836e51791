//! `cargo xtask soak`: a mixed load for minutes or days, over every transport at once, while VCLs
//! are exchanged, bans are added, the origin fails and the worker is killed now and then.
//!
//! Every body is a function of its path and is checked byte by byte (`soak/clients.rs`). Memory,
//! descriptors, threads, latency and the length of the daemon's own messages are sampled
//! (`soak/samples.rs`), drawn into `docs/plots` and judged at the end. The clock of the machine is
//! not changed: clock jumps are tested in the engine's simulation.

mod clients;
mod samples;

use crate::frontdoor::servers::{Certificates, Key};
use crate::origin::sized_origin;
use crate::place::{build, folder, free_port};
use crate::process::Server;
use crate::servers::{Kind, Setting};
use clients::{Account, Crowd, TRANSPORTS, Transport};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use samples::Samples;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// VCL of the daemon besides the built-in one; the number makes each text different.
const VCL: &str = "sub vcl_recv {\n    if (req.url ~ \"^/film/\") { set req.slice_bytes = 64KB; }\n    \
                   if (req.http.X-Pass) { return (pass); }\n}\nsub vcl_backend_response {\n    if (bereq.url ~ \"^/page-\") { set beresp.do_esi = true; }\n    \
                   if (bereq.url ~ \"^/text/\") { set beresp.do_gzip = true; }\n    if (bereq.url ~ \"^/film/|[0-9]{5}$\") { set beresp.storage = storage.disk; }\n    set beresp.grace = 5s;\n}\n";
/// Samples of a run.
const SAMPLES: f64 = 400.0;
/// Pauses between an operator's commands.
const OPERATIONS: Duration = Duration::from_secs(3);
/// The part of a run in which workers are killed.
const KILLING_SHARE: f64 = 0.5;
/// Loops of the daemon.
const LOOPS: usize = 2;
/// Size of the cache: small, so that much is evicted.
const CACHE_MEBIBYTES: u32 = 64;
/// Size of the storage with bodies in a file: bodies longer than 10 kB, and everything requested in
/// slices.
const FILE_MEBIBYTES: u32 = 96;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    if !arguments.iter().any(|argument| argument == "--as-built") {
        build()?;
    }
    let hours: f64 = crate::task::number(arguments, "--hours", 0.0)?;
    let seconds: f64 = crate::task::number(arguments, "--seconds", if hours > 0.0 { hours * 3600.0 } else { 60.0 })?;
    let connections: usize = crate::task::number(arguments, "--connections", 4)?;
    let kill_every: f64 = crate::task::number(arguments, "--kill-every", (seconds / 12.0).max(20.0))?;
    let rate: f64 = crate::task::number(arguments, "--rate", 0.0)?;
    let everybody = (connections * TRANSPORTS.len()) as f64;
    let pace = if rate > 0.0 { Duration::from_secs_f64(everybody / rate) } else { Duration::ZERO };
    let out = PathBuf::from(crate::task::option(arguments, "--out").unwrap_or("docs/plots"));
    let folder = folder()?;
    let disk = tempfile::tempdir().map_err(|error| error.to_string())?;
    let daemon = Daemon::start(Kind::Copal, folder.path(), disk.path())?;
    let account = Arc::new(Account::default());
    let clients = daemon.ask(connections, pace, &account);
    let mut samples = Samples::default();
    let (start, interval) = (Instant::now(), Duration::from_secs_f64((seconds / SAMPLES).max(0.5)));
    let (mut next_sample, mut next_operation) = (start + interval, start + OPERATIONS);
    let mut next_kill = start + Duration::from_secs_f64(kill_every);
    let mut operations = 0;
    let end = start + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        let now = Instant::now();
        if now >= next_sample {
            next_sample += interval;
            samples.take(start.elapsed(), &daemon.server.tree(), &daemon.log, &account);
        }
        if now >= next_operation {
            next_operation += OPERATIONS;
            operations += 1;
            if let Err(error) = daemon.operate(operations) {
                account.operation_failures.fetch_add(1, Ordering::Relaxed);
                account.say(&error);
            }
        }
        // In the second half one worker is not killed, so that growth is visible.
        if now >= next_kill && start.elapsed().as_secs_f64() < seconds * KILLING_SHARE {
            next_kill += Duration::from_secs_f64(kill_every);
            if daemon.kill_worker() {
                account.kills.fetch_add(1, Ordering::Relaxed);
            }
        }
        let next = next_sample.min(next_operation).min(end);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    send_home(clients, &account)?;
    let title = format!("{:.1} hours of mixed load", seconds / 3600.0);
    samples.draw(&title, &out)?;
    println!("{}", samples.table(&account, operations));
    samples.judge(&account)
}

/// A short run without faults other than the origin's: over every transport for some seconds.
/// Returns the number of answers that were checked; the daemon has `patience` to end.
///
/// # Errors
/// An answer was wrong, or a transport had none.
pub fn exercise(kind: Kind, seconds: f64, patience: Duration) -> Result<u64, String> {
    let folder = folder()?;
    let disk = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut daemon = Daemon::start(kind, folder.path(), disk.path())?;
    let account = Arc::new(Account::default());
    let clients = daemon.ask(2, Duration::ZERO, &account);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    daemon.operate(1)?;
    daemon.operate(4)?;
    std::thread::sleep(Duration::from_secs_f64(seconds));
    send_home(clients, &account)?;
    daemon.server.end(patience);
    let (answers, wrong) = (account.answers.load(Ordering::Relaxed), account.wrong.load(Ordering::Relaxed));
    if wrong > 0 {
        return Err(format!("{wrong} of {answers} answers were wrong"));
    }
    let silent = TRANSPORTS.iter().zip(&account.by_transport).find(|(_, count)| count.load(Ordering::Relaxed) == 0);
    silent.map_or(Ok(answers), |(transport, _)| Err(format!("nothing was answered over {}", transport.name)))
}

/// Client threads.
type Asking = Vec<std::thread::JoinHandle<Result<(), String>>>;

fn send_home(clients: Asking, account: &Account) -> Result<(), String> {
    account.stop.store(true, Ordering::Relaxed);
    clients.into_iter().try_for_each(|client| client.join().map_err(|_| "a client panicked")?)
}

/// The daemon under load.
struct Daemon {
    server: Server,
    program: PathBuf,
    log: PathBuf,
    state: PathBuf,
    folder: PathBuf,
    origin: u16,
    clear: u16,
    secured: u16,
}

impl Daemon {
    fn start(kind: Kind, folder: &Path, disk: &Path) -> Result<Daemon, String> {
        let (clear, secured, origin) = (free_port()?, free_port()?, sized_origin()?);
        let certificates = Certificates::make(folder)?;
        let doors = folder.join("tls.conf");
        let pem = certificates.pem(Key::Ecdsa);
        let frontend =
            format!("frontend = {{ host = \"127.0.0.1\" port = \"{secured}\" pem-file = \"{pem}\" h3 = on }}\n");
        std::fs::write(&doors, frontend).map_err(|error| error.to_string())?;
        let vcl = Some(VCL.to_owned());
        let setting = Setting { vcl, loops: LOOPS, cache_mebibytes: CACHE_MEBIBYTES, ..Setting::default() };
        let mut launch = kind.launch_with(clear, origin, folder, &setting)?;
        launch.administered()?;
        // The log's ring is full soon, so that it does not look like growth.
        let file = format!("disk=file,{},{FILE_MEBIBYTES}m", disk.join("bodies").display());
        let doors = doors.display().to_string();
        let more = ["-s", &file, "-A", &doors, "-p", "feature=+http2", "-l", "8m"].map(str::to_owned);
        launch.arguments.extend(more);
        let log = folder.join("messages");
        let mut server = Server::start("0-1", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(clear, &log)?;
        server.wait_for_port(secured, &log)?;
        let (state, folder) = (folder.join(kind.name()), folder.to_owned());
        Ok(Daemon { server, program: launch.program, log, state, folder, origin, clear, secured })
    }

    /// Starts the load of every transport, each on a thread of its own.
    fn ask(&self, connections: usize, pace: Duration, account: &Arc<Account>) -> Asking {
        let transports = TRANSPORTS.iter().zip(1..);
        let one = |(transport, seed): (&'static Transport, u64)| {
            let (account, port) = (Arc::clone(account), if transport.tls { self.secured } else { self.clear });
            let crowd = Crowd { port, connections, pace, seed };
            std::thread::spawn(move || clients::run(transport, crowd, &account))
        };
        transports.map(one).collect()
    }

    /// Commands of an operator, one after the other: another VCL, bans of several kinds.
    fn operate(&self, number: u64) -> Result<(), String> {
        let command = |words: &[&str]| crate::servers::administer_by(&self.program, &self.state, words);
        match number % 4 {
            0 => {
                let path = self.folder.join("next.vcl");
                let text = format!(
                    "vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }}\n{VCL}\
                     sub vcl_deliver {{ set resp.http.X-Generation = \"{number}\"; }}\n",
                    self.origin
                );
                std::fs::write(&path, text).map_err(|error| error.to_string())?;
                let name = format!("soak-{number}");
                command(&["vcl.load", &name, &path.display().to_string()])?;
                command(&["vcl.use", &name])?;
                // The previous one is discarded when it is no longer in use.
                let before = number.checked_sub(4).filter(|before| *before > 0).map(|before| format!("soak-{before}"));
                before.map_or(Ok(()), |before| command(&["vcl.discard", &before]))
            }
            1 => command(&["ban", &format!("req.url ~ ^/item-{}[0-9]/", number % 10)]),
            2 => command(&["ban", &format!("obj.http.Content-Type == text/html && req.url ~ {}/", number % 100)]),
            _ => command(&["ban", &format!("req.url == /item-{number}/{number}")]),
        }
    }

    fn kill_worker(&self) -> bool {
        let worker = self.server.tree().get(1).and_then(|worker| i32::try_from(*worker).ok());
        worker.is_some_and(|worker| kill(Pid::from_raw(worker), Signal::SIGKILL).is_ok())
    }
}
