//! Environment of all tests of a run: the daemon, the folder, the addresses.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use socket2::{Socket, Type};
use surface::version;

use crate::address;
use crate::options::Options;
use crate::settings::TestSettings;

/// The macro that names the daemon.
const DAEMON_MACRO: &str = "varnishd";
/// Copal's programs, by the names used in scripts.
const PROGRAMS: [&str; 9] = [
    "varnishd",
    "varnishadm",
    "varnishlog",
    "varnishncsa",
    "varnishstat",
    "varnishtop",
    "varnishhist",
    "varnishtest",
    "copal",
];
/// An address that no machine has. Source: RFC 5737.
const BAD_IP: &str = "192.0.2.255";

/// Environment of all tests of a run.
pub(super) struct Surroundings {
    /// Directory in which the tests' folders are made.
    pub temporary: PathBuf,
    /// Search path for programs.
    pub path: OsString,
    working_directory: PathBuf,
    macros: Vec<(String, String)>,
    vmod_path: Option<String>,
    listen_address: String,
    /// Bound but never listening: connections are refused, and no other process gets the port.
    _bad_backend: Socket,
    links: Option<PathBuf>,
}

impl Surroundings {
    /// Determines the environment.
    ///
    /// # Errors
    /// The missing part.
    pub fn find(options: &Options) -> Result<Surroundings, String> {
        let cannot = |what: &str, error: std::io::Error| format!("{what}: {error}");
        let working_directory =
            std::env::current_dir().map_err(|error| cannot("the working directory is not known", error))?;
        let temporary = working_directory.join(std::env::var_os("TMPDIR").unwrap_or_else(|| "/tmp".into()));
        let (bad_backend, bad_address) = bad_backend().map_err(|error| cannot("no address on loopback", error))?;
        let host = bad_address.ip();
        let bracketed = if host.is_ipv6() { format!("[{host}]") } else { host.to_string() };
        let listen_address = format!("{bracketed}:0");
        let branch = version::VARNISH_VERSION.rsplit_once('.').map_or("", |(branch, _)| branch);
        let mut macros: Vec<(String, String)> = [
            ("pwd", working_directory.display().to_string()),
            ("localhost", host.to_string()),
            ("bad_backend", bad_address.to_string()),
            ("bad_ip", BAD_IP.to_owned()),
            ("listen_addr", listen_address.clone()),
            ("version", version::VARNISH_VERSION.to_owned()),
            ("pkg_version", version::VARNISH_VERSION.to_owned()),
            ("pkg_branch", branch.to_owned()),
        ]
        .map(|(name, text)| (name.to_owned(), text))
        .into();
        macros.extend(options.macros.iter().cloned());
        let mut surroundings = Surroundings {
            temporary,
            path: std::env::var_os("PATH").unwrap_or_default(),
            working_directory,
            macros,
            vmod_path: None,
            listen_address,
            _bad_backend: bad_backend,
            links: None,
        };
        if options.in_build_tree {
            surroundings.use_build_tree()?;
        } else {
            surroundings.find_daemon(options)?;
        }
        Ok(surroundings)
    }

    /// The daemon: as given, else next to this program, else in PATH, else this program itself.
    fn find_daemon(&mut self, options: &Options) -> Result<(), String> {
        let given = options.macros.iter().rev().find(|(name, _)| name == DAEMON_MACRO).map(|(_, path)| path);
        if let Some(given) = given {
            let daemon = self.working_directory.join(given);
            if !is_program(&daemon) {
                return Err(format!("-D {DAEMON_MACRO}={given}: there is no such program"));
            }
            if let Some(folder) = daemon.parent() {
                self.put_first(folder);
            }
            return self.link(&[DAEMON_MACRO], &daemon);
        }
        let called = std::env::args_os().next().map(PathBuf::from);
        let called = called.filter(|path| path.components().count() > 1).map(|path| self.working_directory.join(path));
        for program in called.into_iter().chain(std::env::current_exe()) {
            if let Some(folder) = program.parent().filter(|folder| is_program(&folder.join(DAEMON_MACRO))) {
                self.put_first(folder);
                return Ok(());
            }
        }
        if std::env::split_paths(&self.path).any(|folder| is_program(&folder.join(DAEMON_MACRO))) {
            return Ok(());
        }
        let own = std::env::current_exe().map_err(|error| format!("this program does not know its place: {error}"))?;
        self.link(&PROGRAMS, &own)
    }

    /// Creates a folder with links to a program and puts it first in the path.
    fn link(&mut self, names: &[&str], program: &Path) -> Result<(), String> {
        let folder = self.temporary.join(format!("vtc.{}.bin", std::process::id()));
        let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir(&folder).map_err(cannot)?;
        self.links = Some(folder.clone());
        for name in names {
            std::os::unix::fs::symlink(program, folder.join(name)).map_err(cannot)?;
        }
        self.put_first(&folder);
        Ok(())
    }

    fn put_first(&mut self, folder: &Path) {
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(&self.path);
        self.path = path;
    }

    /// Uses the programs and VMODs of the current build tree, in the layout of automake.
    fn use_build_tree(&mut self) -> Result<(), String> {
        let top = match std::fs::read_to_string(self.working_directory.join("Makefile")) {
            Err(_) => {
                eprintln!("No Makefile to search for -i flag.");
                self.working_directory.join("../..")
            }
            Ok(makefile) => {
                let line = makefile.lines().find(|line| line.starts_with("abs_top_builddir"));
                let line = line.ok_or("could not find 'abs_top_builddir' in Makefile")?;
                let start = line.find('/').ok_or("No '/' after 'abs_top_builddir' in Makefile")?;
                PathBuf::from(line[start..].trim())
            }
        };
        let folders = |within: &str, prefix: &str, suffix: &str| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(top.join(within)).into_iter().flatten().flatten();
            let fits = |entry: &std::fs::DirEntry| {
                entry.file_name().to_string_lossy().starts_with(prefix) && entry.path().is_dir()
            };
            entries.filter(fits).map(|entry| entry.path().join(suffix)).collect()
        };
        for folder in folders("bin", "varnish", "") {
            self.put_first(&folder);
        }
        let vmods: Vec<String> = folders("vmod", ".libs", "").iter().map(|path| path.display().to_string()).collect();
        self.vmod_path = Some(vmods.join(":"));
        self.macros.push(("topbuild".to_owned(), top.display().to_string()));
        Ok(())
    }

    /// Start parameters of one test.
    pub fn settings(&self, script: &Path, folder: &Path, options: &Options, keeps_folder: bool) -> TestSettings {
        TestSettings {
            script: script.display().to_string(),
            working_directory: self.working_directory.clone(),
            folder: folder.to_owned(),
            macros: self.macros.clone(),
            parameters: options.parameters.clone(),
            vmod_path: self.vmod_path.clone(),
            seconds_max: options.seconds_max,
            keeps_folder,
            in_build_tree: options.in_build_tree,
            listen_address: self.listen_address.clone(),
        }
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        if let Some(links) = &self.links {
            let _ = std::fs::remove_dir_all(links);
        }
    }
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A socket that is bound but does not listen, on IPv4 or, if that is missing, on IPv6.
fn bad_backend() -> std::io::Result<(Socket, SocketAddr)> {
    let first = TcpListener::bind("127.0.0.1:0").is_ok();
    let any: SocketAddr = if first {
        SocketAddr::from(([127, 0, 0, 1], 0))
    } else {
        "[::1]:0".parse().map_err(|_| std::io::ErrorKind::InvalidInput)?
    };
    let socket = address::bind(any, Type::STREAM)?;
    let address = socket.local_addr()?.as_socket().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    Ok((socket, address))
}
