//! A root directory for packages: dpkg works in it without root's rights, and a service of it runs
//! with its paths below that directory.

use crate::daemon::{Answer, Process, copal, eventually, exchange, free_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder that represents `/`.
pub(super) struct Root {
    folder: tempfile::TempDir,
}

impl Root {
    pub(super) fn new() -> Root {
        let folder = tempfile::tempdir().unwrap();
        for part in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(folder.path().join("var/lib/dpkg").join(part)).unwrap();
        }
        std::fs::write(folder.path().join("var/lib/dpkg/status"), "").unwrap();
        Root { folder }
    }

    pub(super) fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.folder.path().display())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        Path::new(&self.path(path)).exists()
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = PathBuf::from(self.path(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn mode(&self, path: &str) -> u32 {
        std::fs::metadata(self.path(path)).unwrap().permissions().mode() & 0o777
    }

    /// Runs dpkg in it, which has to succeed; returns its output.
    pub(super) fn dpkg(&self, arguments: &[&str]) -> String {
        let output = Command::new("dpkg")
            .arg(format!("--root={}", self.folder.path().display()))
            // The libraries are those of the machine, and the scripts run outside of the root,
            // which they get in DPKG_ROOT.
            .args(["--force-depends", "--force-script-chrootless", "--force-not-root", "--force-confold"])
            .arg("--log=/dev/null")
            .args(arguments)
            .env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        said
    }

    pub(super) fn install(&self, packages: &[PathBuf]) -> String {
        let packages = packages.iter().map(|package| package.to_str().unwrap());
        self.dpkg(&["--install"].into_iter().chain(packages).collect::<Vec<_>>())
    }

    /// The remaining files, except for those of dpkg.
    pub(super) fn left_over(&self) -> Vec<String> {
        let (mut folders, mut found) = (vec![self.folder.path().to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(self.folder.path()).unwrap().display().to_string();
                if name == "var/lib/dpkg" {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() { folders.push(path) } else { found.push(name) }
            }
        }
        found.sort_unstable();
        found
    }
}

/// A server that runs out of a root.
pub(super) struct Service<'a> {
    root: &'a Root,
    port: u16,
    /// The first manager; after an upgrade it is another process.
    _process: Process,
}

impl Service<'_> {
    /// Starts the service of the unit of the package copal, with its options.
    pub(super) fn start(root: &Root) -> Service<'_> {
        let unit = root.read("lib/systemd/system/copal.service");
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let options = root.read("etc/default/copal");
        let options = options.lines().find_map(|line| line.strip_prefix("COPAL_OPTS=")).unwrap().trim_matches('"');
        let line = line.replace("$COPAL_OPTS", options);
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Service::of(root, Path::new(&root.path(words[0].trim_start_matches('/'))), &words[1..])
    }

    /// Starts a command line with its paths below the root, on a port of its own, and without a
    /// jail, whose users do not exist here.
    pub(super) fn of<'a>(root: &'a Root, program: &Path, words: &[String]) -> Service<'a> {
        let port = free_port();
        let mut arguments: Vec<String> = Vec::new();
        for word in words {
            arguments.push(match word.as_str() {
                ":6080" => format!("127.0.0.1:{port}"),
                path if path.starts_with('/') => root.path(path.trim_start_matches('/')),
                _ if arguments.last().is_some_and(|last| last == "-j") => "none".to_owned(),
                other => other.to_owned(),
            });
        }
        assert!(arguments.iter().any(|word| word.ends_with(&port.to_string())), "{arguments:?}");
        let log = std::fs::File::create(root.path("var/log.txt")).unwrap();
        let process = Command::new(program)
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let service = Service { root, port, _process: Process(process) };
        eventually("the service accepts", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        service
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
        Answer::parse(&exchange(self.port, request.as_bytes()))
    }

    fn run(&self, program: &mut Command, arguments: &[&str]) -> (bool, String) {
        let output = program.args(["-n", &self.root.path("var/lib/copal/server")]).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    pub(super) fn adm(&self, words: &[&str]) -> (bool, String) {
        self.run(Command::new(copal()).arg("adm"), words)
    }

    /// Runs the package's script for reloads.
    pub(super) fn reload(&self, arguments: &[&str]) -> (bool, String) {
        let program = self.root.path("usr/bin/copal");
        self.run(Command::new(self.root.path("usr/bin/copal-reload")).env("COPAL", program), arguments)
    }

    /// The process number of the manager.
    pub(super) fn manager(&self) -> i32 {
        let (_, text) = self.adm(&["pid"]);
        let line = text.lines().find_map(|line| line.strip_prefix("Master:"));
        line.and_then(|pid| pid.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.root.read("var/log.txt"));
            let (_, text) = self.adm(&["pid"]);
            let pid = text.lines().find_map(|line| line.strip_prefix("Master:")?.trim().parse().ok());
            if let Some(pid) = pid {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            return;
        }
        let manager = self.manager();
        let _ = kill(Pid::from_raw(manager), Signal::SIGTERM);
        eventually("the service ends", || {
            let status = std::fs::read_to_string(format!("/proc/{manager}/status")).unwrap_or_default();
            (!status.contains("State:") || status.contains("State:\tZ")).then_some(())
        });
        let _ = std::fs::remove_file(self.root.path("var/log.txt"));
    }
}
