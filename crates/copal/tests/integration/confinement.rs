//! Rights of each part: VCL is read as the jail's user, and a compromised worker can do no more
//! than a worker may. Most of this needs root, and is skipped with a note otherwise.

use crate::daemon::{Daemon, Origin, Process, copal, eventually, ok};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\n", "a page\n")
}

fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        println!("skipped: needs root");
    }
    is_root
}

/// A folder that all users may enter.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    folder
}

fn write(path: PathBuf, mode: u32, content: &str) -> PathBuf {
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

const VCL: &str = "vcl 4.1; backend default none;\n";

#[test]
fn vcl_is_read_with_the_rights_of_the_jails_user() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let place = |name: &str| folder.path().join(name);
    let secret = "root:$6$of-root-alone";
    let private = write(place("shadow"), 0o600, &format!("{secret}\n"));
    fs::create_dir(place("closed")).unwrap();
    write(place("closed/a.vcl"), 0o644, VCL);
    let _socket = UnixListener::bind(place("closed/socket")).unwrap();
    fs::set_permissions(place("closed"), Permissions::from_mode(0o700)).unwrap();
    symlink(&private, place("link.vcl")).unwrap();
    let public = write(place("public.vcl"), 0o644, VCL);

    let daemon = Daemon::start(&["-j", "unix", "-b", "none"]);
    let load = |file: &Path| daemon.cli(&["vcl.load", "v", file.to_str().unwrap()]);
    let denied = |said: (bool, String), file: &Path| {
        assert!(!said.0, "{}", said.1);
        assert!(said.1.contains("(Permission denied)"), "{}: {}", file.display(), said.1);
        assert!(!said.1.contains(secret), "{}", said.1);
    };
    // In a closed directory, existing and missing files look the same.
    for file in ["shadow", "link.vcl", "closed/a.vcl", "closed/no-such-file.vcl"].map(place) {
        denied(load(&file), &file);
        let including = write(place("including.vcl"), 0o644, &format!("{VCL}include \"{}\";\n", file.display()));
        denied(load(&including), &file);
    }
    // A link is followed only with the rights of its reader.
    let pattern =
        write(place("pattern.vcl"), 0o644, &format!("{VCL}include +glob \"{}/clos*/*.vcl\";\n", place("").display()));
    let (done, said) = load(&pattern);
    assert!(!done && said.contains("glob pattern matched no files"), "{said}");
    let links =
        write(place("links.vcl"), 0o644, &format!("{VCL}include +glob \"{}/lin*.vcl\";\n", place("").display()));
    denied(load(&links), &links);
    // Sockets are checked with the same rights: one that is not visible gives a warning, as in
    // Varnish.
    for name in ["closed/socket", "closed/a.vcl", "closed/nothing"] {
        let text = format!("vcl 4.1; backend default {{ .path = \"{}\"; }}", place(name).display());
        let file = write(place("socket.vcl"), 0o644, &text);
        let (done, said) = daemon.cli(&["vcl.load", &name.replace(['/', '.'], "_"), file.to_str().unwrap()]);
        assert!(done && said.contains("Cannot stat: Permission denied"), "{said}");
    }
    assert!(load(&public).0);

    // At the start too.
    let run = tempfile::tempdir().unwrap();
    for mode in ["-C", "-F"] {
        let mut command = Command::new(copal());
        command.args(["daemon", mode, "-j", "unix", "-a", "127.0.0.1:0", "-n"]).arg(run.path());
        let output = command.arg("-f").arg(&private).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("Cannot read -f file") && said.contains("(Permission denied)"), "{said}");
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn worker_with_the_rights_of_root_is_refused_before_anything_starts() {
    if !is_root() {
        return;
    }
    let run = tempfile::tempdir().unwrap();
    let directory = run.path().join("run");
    for users in ["user=nobody,workuser=root", "user=root,workuser=root", "workuser=root"] {
        let mut command = Command::new(copal());
        command.args(["daemon", "-F", "-a", "127.0.0.1:0", "-b", "none", "-j", &format!("unix,{users}"), "-n"]);
        let log = run.path().join("log");
        command.arg(&directory).stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
        let mut process = Process(command.spawn().unwrap());
        let status = eventually("it is refused", || process.0.try_wait().unwrap());
        let said = fs::read_to_string(&log).unwrap();
        assert_eq!(status.code(), Some(2), "{users}: {said}");
        assert!(said.starts_with("Error: Unix jail: "), "{said}");
        assert!(!directory.exists());
    }
}

/// The test below uses this to inform the process that acts as a compromised worker.
const RUN: &str = "COPAL_TEST_RUN";
const MANAGER: &str = "COPAL_TEST_MANAGER";
const WORKER: &str = "COPAL_TEST_WORKER";
const IDS: &str = "COPAL_TEST_IDS";
const CLI: &str = "COPAL_TEST_CLI";

/// Tries everything, in a separate process that drops its rights as a worker does.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn inside_a_worker_that_was_taken_over() {
    let told = |name: &str| std::env::var(name).unwrap();
    let (run, manager, worker) = (PathBuf::from(told(RUN)), told(MANAGER), told(WORKER));
    let ids: Vec<u32> = told(IDS).split(' ').map(|id| id.parse().unwrap()).collect();
    let sandbox = sandbox::confine(&run, Some((ids[0], ids[1])), true, sandbox::Access::Serve).unwrap();
    let refused = |what: &str, result: std::io::Result<()>| {
        let kind = result.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::PermissionDenied), "{what}; {sandbox:?}");
    };

    // The secret, and the other contents of the work directory.
    let secret = run.join("_.secret");
    refused("reading the secret", fs::read(&secret).map(drop));
    refused("overwriting the secret", fs::write(&secret, "mine"));
    refused("removing the secret", fs::remove_file(&secret));
    refused("replacing the secret", fs::rename(run.join("_.vsm_child/_.index"), &secret));
    refused("making a file beside it", fs::write(run.join("new"), "mine"));
    refused("the pid file", OpenOptions::new().write(true).open(run.join("_.pid")).map(drop));
    refused("moving the manager's log away", fs::rename(run.join("_.vsm_mgt"), run.join("_.vsm_child/m")));
    for entry in fs::read_dir(run.join("_.vsm_mgt")).unwrap() {
        let path = entry.unwrap().path();
        assert!(fs::read(&path).is_ok(), "the worker's group reads the counters");
        refused("writing the manager's counters", OpenOptions::new().write(true).open(&path).map(drop));
    }

    // The manager and the other worker as processes.
    for process in [&manager, &worker] {
        for file in ["mem", "environ", "maps", "exe", "cwd", "root", "fd/0", "fd/3", "fd/5", "task"] {
            let path = format!("/proc/{process}/{file}");
            if file == "task" {
                // The threads are visible, but their memory is not.
                refused("a thread's memory", fs::read(format!("/proc/{process}/task/{process}/mem")).map(drop));
            } else {
                refused(&path, fs::File::open(&path).map(drop));
            }
        }
    }
    let of_manager = Pid::from_raw(manager.parse().unwrap());
    refused("a signal", kill(of_manager, None).map_err(Into::into));

    // The CLI: its socket is inaccessible, its port requires the secret.
    refused("the socket of the CLI", UnixStream::connect(run.with_file_name("cli")).map(drop));
    let mut cli = TcpStream::connect(told(CLI)).unwrap();
    let mut greeting = [0; 3];
    cli.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"107");

    // Becoming another user.
    refused("becoming root", nix::unistd::setuid(nix::unistd::Uid::from_raw(0)).map_err(Into::into));
    refused("another program", Command::new("/bin/true").status().map(drop));
    refused("a process that outlives it", nix::unistd::daemon(true, true).map_err(Into::into));
    std::thread::spawn(|| {}).join().unwrap();
    // Its directory contains no others.
    refused("a directory", fs::create_dir(run.join("_.vsm_child/d")));
    if sandbox.has_landlock {
        refused("a link", symlink("/", run.join("_.vsm_child/l")));
        refused("a socket", UnixListener::bind(run.join("_.vsm_child/s")).map(drop));
    }
    fs::write(run.join("_.vsm_child/f"), "mine").unwrap();
    println!("tried everything");
}

#[test]
fn worker_that_was_taken_over_reaches_neither_the_secret_nor_the_manager() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let run = folder.path().join("run");
    let socket = folder.path().join("cli").display().to_string();
    let origin = Origin::start(page);
    let vcl = format!(
        "vcl 4.1; import std; backend b {{ .host = \"127.0.0.1\"; .port = \"@PORT@\"; }}
         sub vcl_deliver {{ set resp.http.X-File = \"<\" + std.fileread(\"{}\") + \">\"; }}",
        run.join("_.secret").display()
    );
    let further = ["-j", "unix", "-n", run.to_str().unwrap(), "-T", &socket, "-T", "127.0.0.1:0"];
    let daemon = Daemon::with_vcl(&vcl, origin.port, &further);
    let manager = daemon.process.pid();
    let worker: i32 = eventually("a worker runs", || {
        // Threads of any origin.
        let threads = fs::read_dir(format!("/proc/{manager}/task")).unwrap().flatten();
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok()?.trim().parse().ok()).next()
    });
    // From VCL.
    let answer = daemon.get("/");
    assert_ne!(answer.header("x-file").map(str::len), Some(258), "{}", answer.head);

    let secret = fs::metadata(run.join("_.secret")).unwrap();
    assert_eq!((secret.uid(), secret.gid(), secret.mode() & 0o777), (0, 0, 0o640));
    // Its open descriptors: memory shared with us, its log, and the sockets that it was given.
    for entry in fs::read_dir(format!("/proc/{worker}/fd")).unwrap() {
        let entry = entry.unwrap().path();
        let Ok(target) = fs::read_link(&entry) else { continue };
        let target = target.to_str().unwrap().to_owned();
        let own = run.join("_.vsm_child").display().to_string();
        let expected = ["/memfd:copal-", "socket:[", "pipe:[", "anon_inode:[", &own, "/dev/null"];
        assert!(expected.iter().any(|known| target.starts_with(known)), "{}: {target}", entry.display());
    }
    // None of those sockets belongs to the CLI.
    let listed = |pid: i32| -> Vec<String> {
        let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        links.filter_map(|link| fs::read_link(link.path()).ok()?.to_str().map(str::to_owned)).collect()
    };
    let (ours, theirs) = (listed(manager), listed(worker));
    let shared = theirs.iter().filter(|one| one.starts_with("socket:[") && ours.contains(one)).count();
    let event_loops = std::thread::available_parallelism().unwrap().get();
    assert_eq!(shared, event_loops, "only the listening sockets for clients: {theirs:?}");

    let line = |name: &str| {
        let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "confinement::inside_a_worker_that_was_taken_over"])
        .env(RUN, &run)
        .env(MANAGER, manager.to_string())
        .env(WORKER, worker.to_string())
        .env(IDS, format!("{} {}", line("Uid:"), line("Gid:")))
        .env(CLI, cli_address(&run))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("tried everything"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn leftovers_of_a_worker_do_not_prevent_the_next_from_serving() {
    let origin = Origin::start(page);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]).arg(copal()).arg("daemon");
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_by(command, &["-b", &backend]);
    let run = PathBuf::from(daemon.run());
    let worker = daemon.worker();
    // Deeper than the manager could have folders open.
    fs::create_dir_all(run.join("_.vsm_child").join("d/".repeat(400))).unwrap();
    kill(Pid::from_raw(worker), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("the next one", || (daemon.worker() != worker).then_some(()));
    assert_eq!(daemon.get("/").status, 200);
    let said = daemon.said();
    let aside = said.lines().find_map(|line| line.split_once("it is set aside as ")?.1.strip_suffix(", remove it"));
    assert!(Path::new(aside.unwrap_or_else(|| panic!("{said}"))).join("d/d").is_dir(), "{said}");
}

/// The TCP address of the CLI, from the manager's shared memory.
fn cli_address(run: &Path) -> String {
    let files = fs::read_dir(run.join("_.vsm_mgt")).unwrap().flatten();
    let texts: String = files
        .filter_map(|file| fs::read(file.path()).ok())
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect();
    let at = texts.find("127.0.0.1 ").unwrap_or_else(|| panic!("no address of the CLI in {texts}"));
    let port: String = texts[at + 10..].chars().take_while(char::is_ascii_digit).collect();
    format!("127.0.0.1:{port}")
}
