//! Processes under measurement: starts them pinned to a core, finds their whole tree, and measures
//! its CPU time and memory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the end of a dropped server.
const PATIENCE: Duration = Duration::from_secs(3);

/// A started server; it and everything it started is killed when this is dropped.
pub struct Server {
    child: Child,
}

impl Server {
    /// Starts a command pinned to the cores named (by `taskset`), output discarded unless it fails
    /// at once.
    pub fn start(cores: &str, program: &Path, arguments: &[String], log: &Path) -> Result<Server, String> {
        Server::spawn(bound_to_us("taskset").arg("-c").arg(cores).arg(program).args(arguments), program, log)
    }

    /// Starts a command in a folder, with more variables in its environment.
    pub fn start_in(
        folder: &Path,
        program: &Path,
        arguments: &[String],
        environment: &[(&str, String)],
        log: &Path,
    ) -> Result<Server, String> {
        let variables = environment.iter().map(|(name, value)| (*name, value));
        Server::spawn(bound_to_us(program).current_dir(folder).args(arguments).envs(variables), program, log)
    }

    fn spawn(command: &mut Command, program: &Path, log: &Path) -> Result<Server, String> {
        let output = std::fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        // Apache ends its whole process group on SIGTERM.
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(Server { child })
    }

    /// Process ids of the tree, the root first.
    pub fn tree(&self) -> Vec<u32> {
        tree(self.child.id())
    }

    /// Waits until a server listens on the port, or returns the reason why not.
    pub fn wait_for_port(&mut self, port: u16, log: &Path) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                return Err(format!("ended with {status}: {said}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("nothing listens on port {port} after 20 s"))
    }
}

impl Server {
    /// Terminates it, and kills the remaining processes after a time.
    pub fn end(&mut self, patience: Duration) {
        use nix::sys::signal::{Signal, kill};
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let pids = self.tree();
        let _ = kill(nix::unistd::Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        for pid in pids {
            let _ = kill(nix::unistd::Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(PATIENCE);
    }
}

/// A command whose process is terminated when this one ends, for any reason: signals of the
/// terminal do not reach it.
fn bound_to_us(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command
}

/// All descendants of a process, itself first.
pub fn tree(root: u32) -> Vec<u32> {
    let mut parents: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(fields) = stat(pid) {
            parents.entry(fields.parent).or_default().push(pid);
        }
    }
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        all.extend(parents.get(&all[at]).into_iter().flatten());
        at += 1;
    }
    all
}

struct Stat {
    parent: u32,
    ticks: u64,
    user_ticks: u64,
    /// Ticks of children that have ended and were reaped.
    ended_ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &text[text.rfind(')')? + 2..];
    let fields: Vec<&str> = rest.split(' ').collect();
    let user: u64 = fields.get(11)?.parse().ok()?;
    let system: u64 = fields.get(12)?.parse().ok()?;
    let ended = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks: user + system, user_ticks: user, ended_ticks: ended })
}

/// CPU time used so far by the processes, in microseconds: total, and in user mode.
///
/// Taken from `schedstat` of every thread (nanoseconds) if the kernel has it, since clock ticks are
/// too coarse for short rounds; the user share comes from the ticks, and so does the time of
/// children that have ended, such as CGI programs.
pub fn cpu_microseconds(pids: &[u32]) -> (f64, f64) {
    let mut all = 0.0;
    let mut ticks = 0;
    let mut user_ticks = 0;
    let mut ended_ticks = 0;
    for pid in pids {
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            all += text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1000.0;
        }
        if let Some(fields) = stat(*pid) {
            ticks += fields.ticks;
            user_ticks += fields.user_ticks;
            ended_ticks += fields.ended_ticks;
        }
    }
    if all == 0.0 {
        all = ticks as f64 * 10_000.0;
    }
    all += ended_ticks as f64 * 10_000.0;
    let share = if ticks == 0 { 0.0 } else { user_ticks as f64 / ticks as f64 };
    (all, all * share)
}

/// Resident and proportional memory of the processes, in bytes. Shared pages are counted once
/// (proportionally).
pub fn memory_bytes(pids: &[u32]) -> u64 {
    pids.iter()
        .map(|pid| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            text.lines()
                .find_map(|line| line.strip_prefix("Pss:"))
                .and_then(|rest| rest.trim().strip_suffix("kB"))
                .and_then(|n| n.trim().parse::<u64>().ok())
                .unwrap_or(0)
                * 1024
        })
        .sum()
}
