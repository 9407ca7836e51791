//! `copal status` and `copal stop`: a server as a whole, by its work directory.
//!
//! The server is found by the lock on `_.pid`, which only a live server holds.
//! So a number left behind by a killed server is never mistaken for a process. Details for `status`
//! come from shared memory, and from the CLI where there is one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shm::read::counters::CounterReader;
use shm::read::vsm::{Vsm, work_directory};
use surface::legible;
use surface::quantity::hit_percent;

use crate::Streams;
use crate::administration;
use crate::attach_timeout::{AttachTimeout, not_running, unreadable};
use crate::options;

/// Exit status if no server runs there.
const NO_SERVER: i32 = 2;
/// Exit status of `status` if the user may not see more.
const UNREADABLE: i32 = 1;
/// Time to wait for the end of a server, in seconds, unless given.
const STOP_SECONDS: f64 = 60.0;
/// Time in which a process that has closed its files is gone, and its lock too.
const GONE: Duration = Duration::from_secs(1);
/// Interval between two looks at a server that ends.
const RETRY: Duration = Duration::from_millis(20);

/// A running manager.
struct Server {
    directory: PathBuf,
    /// Its `_.pid`, which it holds locked.
    file: File,
    process: i32,
}

impl Server {
    /// The server with that name; `None` if no process holds the lock.
    fn find(name: Option<&OsStr>) -> io::Result<Option<Server>> {
        let directory = work_directory(name);
        // A FIFO of that name must not block.
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut file = match options.open(directory.join("_.pid")) {
            Ok(file) if file.metadata()?.is_file() => file,
            Ok(_) => return Err(io::Error::other("_.pid is not a file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !is_locked(&file)? {
            return Ok(None);
        }
        let mut text = String::new();
        (&mut file).take(32).read_to_string(&mut text)?;
        let process = text.trim().parse().ok().filter(|process| *process > 1);
        Ok(process.map(|process| Server { directory, file, process }))
    }

    /// True if the process has `_.pid` open, as its server has. The number in the file alone proves
    /// nothing: another user may have written it, or it counts in a container's PID namespace.
    fn holds_its_file(&self) -> io::Result<bool> {
        let wanted = self.file.metadata()?;
        let open = match std::fs::read_dir(format!("/proc/{}/fd", self.process)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            open => open?,
        };
        let files = open.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
        Ok(files.into_iter().any(|file| (file.dev(), file.ino()) == (wanted.dev(), wanted.ino())))
    }

    /// Waits until it has ended. Returns false if it still runs after that time.
    fn wait(&self, limit: Option<Duration>) -> io::Result<bool> {
        let started = Instant::now();
        while is_locked(&self.file)? {
            if limit.is_some_and(|limit| started.elapsed() >= limit) {
                return Ok(false);
            }
            std::thread::sleep(RETRY);
        }
        Ok(true)
    }
}

/// True if another process holds the lock of an open file.
fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock =
        libc::flock { l_type: libc::F_WRLCK as i16, l_whence: libc::SEEK_SET as i16, l_start: 0, l_len: 0, l_pid: 0 };
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)).map_err(io::Error::from)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

/// Shows a server; returns the exit status.
pub(crate) fn status(args: &[std::ffi::OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("status", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let name = given.last('n');
    let server = match find(name, streams) {
        Ok(server) => server,
        Err(status) => return status,
    };
    if let Some(text) = unreadable(&server.directory) {
        let _ = writeln!(streams.error, "Copal runs: process {}. {text}", server.process);
        return UNREADABLE;
    }
    let mut vsm = Vsm::new(&server.directory);
    let serves = vsm.poll().worker_running;
    let values = CounterReader::new().read(&vsm);
    let counter = |wanted: &str| values.iter().find(|found| found.name == wanted).map(|found| found.value);
    let since = counter("MGT.uptime").map(|seconds| format!(", for {}", duration(seconds))).unwrap_or_default();
    let state = if serves { "serves" } else { "does not serve" };
    let mut lines = vec![format!("Copal {state}: process {}{since}", server.process)];
    if let Some(facts) = administration::facts(name) {
        lines.extend(facts);
    }
    if let Some(requests) = counter("MAIN.client_req") {
        let [hits, misses] = ["MAIN.cache_hit", "MAIN.cache_miss"].map(|name| counter(name).unwrap_or(0));
        let share = hit_percent(hits, misses).unwrap_or(0.0);
        lines.push(format!("  requests    {requests}, {share:.1} % hits"));
    }
    lines.push(format!("  directory   {}", server.directory.display()));
    for line in lines {
        let _ = writeln!(streams.output, "{}", legible::line(line.as_bytes()));
    }
    i32::from(!serves)
}

/// Stops a server and waits for its end; returns the exit status.
pub(crate) fn stop(args: &[std::ffi::OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("stop", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let limit = match given.last('t') {
        None => Some(STOP_SECONDS),
        Some(text) => match AttachTimeout::parse(text) {
            Some(AttachTimeout(limit)) => limit,
            None => {
                let what = format!("-t takes seconds or off, not '{}'", text.to_string_lossy());
                return options::wrong(surface::program::program("stop"), &what, streams);
            }
        },
    };
    let server = match find(given.last('n'), streams) {
        Ok(server) => server,
        Err(status) => return status,
    };
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let (process, directory) = (server.process, server.directory.display().to_string());
    let ended = match server.holds_its_file() {
        Ok(true) => match kill(Pid::from_raw(process), Signal::SIGTERM) {
            // It has ended since.
            Ok(()) | Err(Errno::ESRCH) => server.wait(limit),
            Err(error) => Err(error.into()),
        },
        Ok(false) if matches!(server.wait(Some(GONE)), Ok(true)) => Ok(true),
        Ok(false) => {
            let text = format!(
                "Not stopped: the server in {directory} is not process {process} of this system. \
                 Stop it where it was started, for instance in its container."
            );
            let _ = writeln!(streams.error, "{}", legible::line(text.as_bytes()));
            return 1;
        }
        Err(error) => Err(error),
    };
    match ended {
        Ok(true) => {
            let text = format!("Stopped: process {process}, which served in {directory}");
            let _ = writeln!(streams.output, "{}", legible::line(text.as_bytes()));
            0
        }
        Ok(false) => {
            let _ =
                writeln!(streams.error, "Process {process} still completes requests; a second copal stop cuts them.");
            1
        }
        Err(error) => {
            let _ = writeln!(streams.error, "Process {process} cannot be stopped: {}", crate::follow::reason(&error));
            1
        }
    }
}

/// The server, or the exit status after a message that there is none.
fn find(name: Option<&OsStr>, streams: &mut Streams) -> Result<Server, i32> {
    match Server::find(name) {
        Ok(Some(server)) => return Ok(server),
        Ok(None) => {
            let _ = writeln!(streams.error, "{}", not_running(name, streams.called));
        }
        Err(error) => {
            let directory = work_directory(name);
            let shown = legible::line(Path::new(&directory).as_os_str().as_encoded_bytes()).into_owned();
            let _ = writeln!(streams.error, "{shown}: {}", crate::follow::reason(&error));
        }
    }
    Err(NO_SERVER)
}

/// A time in its two largest units.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::program::Called;

    fn run(part: fn(&[std::ffi::OsString], &mut Streams) -> i32, args: &[&str]) -> (i32, String) {
        let args: Vec<std::ffi::OsString> = args.iter().map(Into::into).collect();
        let (mut output, mut error) = (Vec::new(), Vec::new());
        let status = part(
            &args,
            &mut Streams {
                input: &mut io::empty(),
                output: &mut output,
                error: &mut error,
                program: false,
                called: Called::Copal,
            },
        );
        (status, String::from_utf8(output).unwrap() + &String::from_utf8(error).unwrap())
    }

    #[test]
    fn directory_without_a_server_is_named_with_the_command_that_starts_one() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().display().to_string();
        // A killed server leaves its number behind: it may be that of any process now.
        for content in [None, Some(std::process::id().to_string()), Some(String::new())] {
            if let Some(content) = content {
                std::fs::write(folder.path().join("_.pid"), content).unwrap();
            }
            for part in [status, stop] {
                let (status, said) = run(part, &["-n", &name]);
                assert_eq!(status, NO_SERVER);
                assert_eq!(
                    said,
                    format!(
                        "No server runs in {name}. To start one: copal daemon -n {name} -a :6080 -b 127.0.0.1:8080\n"
                    )
                );
            }
        }
        assert_eq!(run(stop, &["-t", "soon"]).0, 2);
    }

    #[test]
    fn process_that_does_not_hold_the_pid_file_gets_no_signal() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().display().to_string();
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        // As another user may prepare it, and as it looks from outside of a container.
        let path = folder.path().join("_.pid");
        std::fs::write(&path, other.id().to_string()).unwrap();
        let holder = File::options().read(true).write(true).open(path).unwrap();
        let lock = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        fcntl(&holder, FcntlArg::F_OFD_SETLK(&lock)).unwrap();
        let (status, said) = run(stop, &["-n", &name]);
        let is_alive = other.try_wait().unwrap().is_none();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(status == 1 && said.contains("is not process"), "{status}: {said}");
        assert!(is_alive);
    }

    #[test]
    fn pid_file_that_is_a_fifo_is_an_error_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("_.pid"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for part in [status, stop] {
            let (status, said) = run(part, &["-n", folder.path().to_str().unwrap()]);
            assert!(status == NO_SERVER && said.contains("_.pid is not a file"), "{status}: {said}");
        }
    }

    #[test]
    fn times_are_shown_in_two_units() {
        for (seconds, shown) in [(59, "59 s"), (61, "1 min 1 s"), (7_260, "2 h 1 min"), (90_000, "1 d 1 h")] {
            assert_eq!(duration(seconds), shown);
        }
    }
}
