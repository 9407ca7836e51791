//! A stock varnishd, with Copal's tools attached to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use surface::limits::TEST_HANG_SECONDS;

use super::{compare, run_ours, stock, stock_of};
use shm::layout::Layout;

/// A stock varnishd on loopback, with an origin behind it.
pub struct Varnishd {
    process: Child,
    directory: tempfile::TempDir,
}

impl Varnishd {
    /// Starts that of 7.1; `None` if it is not installed.
    pub fn start() -> Option<Varnishd> {
        Varnishd::start_of(Layout::V71)
    }

    /// Starts the one with this layout of the log; `None` if it is not installed.
    pub fn start_of(layout: Layout) -> Option<Varnishd> {
        let program = stock_of(layout, "varnishd")?;
        let directory = tempfile::tempdir().unwrap();
        let origin = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = origin.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut client in origin.incoming().map_while(Result::ok) {
                let mut bytes = [0; 4096];
                let _ = client.read(&mut bytes);
                let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
            }
        });
        let work = directory.path().join("work");
        let process = Command::new(program)
            .args(["-F", "-a", "127.0.0.1:0", "-T", "127.0.0.1:0", "-j", "none", "-l", "2m", "-s", "malloc,8m"])
            .args(["-b", &format!("127.0.0.1:{port}"), "-n"])
            .arg(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Varnishd { process, directory })
    }

    /// Its `-n`.
    pub fn name(&self) -> String {
        self.directory.path().join("work").to_str().unwrap().to_owned()
    }

    /// Polls until the worker runs.
    pub fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
        while Instant::now() < deadline {
            let ran =
                run_ours(tools::adm_to, &["-n", &self.name(), "-t", &TEST_HANG_SECONDS.to_string(), "status"], b"");
            if ran.output == b"Child in state running\n" {
                return;
            }
            std::thread::yield_now();
        }
        panic!("varnishd does not start");
    }
}

impl Drop for Varnishd {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.process.id() as i32),
            nix::sys::signal::Signal::SIGTERM,
        );
        let _ = self.process.wait();
    }
}

/// Sends three requests, and waits until all of their log is there.
fn serve_three(name: &str) {
    let listening = run_ours(tools::adm_to, &["-n", name, "debug.listen_address"], b"");
    let text = String::from_utf8(listening.output).unwrap();
    let port = text.split_whitespace().nth(2).unwrap();
    for path in ["/a", "/a", "/b?c"] {
        let mut client = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The requests' part of the log is complete once their sessions have ended; that of the CLI
    // continues.
    let sessions = ["-n", name, "-d", "-g", "session", "-i", "End"];
    while run_ours(tools::log_to, &sessions, b"").output.windows(7).filter(|w| w == b"Session").count() < 3 {
        std::thread::yield_now();
    }
}

#[test]
fn our_tools_read_the_log_of_a_server_of_7_7() {
    let Some(server) = Varnishd::start_of(Layout::V73) else { return };
    let Some(varnishlog) = stock_of(Layout::V73, "varnishlog") else { return };
    server.wait();
    let name = server.name();
    serve_three(&name);
    for grouping in ["vxid", "request", "session"] {
        compare(&varnishlog, tools::log_to, &["-n", &name, "-d", "-g", grouping]);
    }
    compare(&varnishlog, tools::log_to, &["-n", &name, "-d", "-g", "raw", "-x", "CLI"]);
    let varnishncsa = stock_of(Layout::V73, "varnishncsa").unwrap();
    compare(&varnishncsa, tools::ncsa_to, &["-n", &name, "-d"]);
    let hits = run_ours(tools::stat_to, &["-n", &name, "-j", "-f", "MAIN.cache_*"], b"");
    let hits: serde_json::Value = serde_json::from_slice(&hits.output).unwrap();
    assert_eq!(hits["counters"]["MAIN.cache_hit"]["value"], 1);
    let varnishstat = stock_of(Layout::V73, "varnishstat").unwrap();
    compare(&varnishstat, tools::stat_to, &["-n", &name, "-1", "-f", "MAIN.cache_*"]);
    let varnishadm = stock_of(Layout::V73, "varnishadm").unwrap();
    for command in [&["status"][..], &["nonsense"], &["param.show", "default_ttl"]] {
        compare(&varnishadm, tools::adm_to, &[&["-n", &name], command].concat());
    }
}

#[test]
fn our_tools_attach_to_a_stock_server() {
    let Some(server) = Varnishd::start() else { return };
    let (Some(varnishlog), Some(varnishadm)) = (stock("varnishlog"), stock("varnishadm")) else { return };
    server.wait();
    let name = server.name();
    serve_three(&name);
    for grouping in ["vxid", "request", "session"] {
        compare(&varnishlog, tools::log_to, &["-n", &name, "-d", "-g", grouping]);
    }
    compare(&varnishlog, tools::log_to, &["-n", &name, "-d", "-g", "raw", "-x", "CLI"]);
    let hits = run_ours(tools::stat_to, &["-n", &name, "-j", "-f", "MAIN.cache_*"], b"");
    let hits: serde_json::Value = serde_json::from_slice(&hits.output).unwrap();
    assert_eq!(hits["counters"]["MAIN.cache_hit"]["flag"], "c");
    for command in [
        &["status"][..],
        &["nonsense"],
        &["param.show", "nosuch"],
        &["param.show", "default_ttl"],
        &["param.set", "default_ttl", "a b"],
        &["ban", "req.url", "~", "\"quoted\\\""],
        &["vcl.list", "too", "many", "words"],
    ] {
        let mut args = vec!["-n", &name];
        args.extend(command);
        compare(&varnishadm, tools::adm_to, &args);
        args.insert(0, "-p");
        compare(&varnishadm, tools::adm_to, &args);
    }
    let ran = run_ours(tools::adm_to, &["-n", &name, ""], b"");
    assert_eq!((ran.status, ran.error.as_str()), (1, "varnishadm: the command is empty\n"));
    let batch = b"status\n\nnonsense\nvcl.inline x << EOT\nvcl 4.1;\nbackend default none;\nEOT\nparam.show nosuch";
    let ran = run_ours(tools::adm_to, &["-n", &name], batch);
    let text = String::from_utf8(ran.output).unwrap();
    assert_eq!(
        text,
        "Child in state running\nUnknown request.\nType 'help' for more info.\n\n\n\
         Unknown parameter \"nosuch\".\n"
    );
    assert_eq!(ran.status, 0);
    let secret = format!("{name}/_.secret");
    let address = std::fs::read_dir(format!("{name}/_.vsm_mgt"))
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .find_map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let line = text.lines().next().unwrap_or_default().to_owned();
            line.strip_prefix("127.0.0.1 ").map(|port| format!("127.0.0.1:{port}"))
        })
        .unwrap();
    let wrong = server.directory.path().join("wrong");
    std::fs::write(&wrong, "x").unwrap();
    for args in [
        &["-T", &address, "-S", &secret, "status"][..],
        &["-T", &address, "status"],
        &["-T", &address, "-S", wrong.to_str().unwrap(), "status"],
        &["-T", &address, "-S", "/nonexistent", "status"],
        &["-T", "127.0.0.1:1", "-S", &secret, "status"],
        &["-n", &name, "-T", &address, "status"],
        &["-n", &name, "quit"],
    ] {
        compare(&varnishadm, tools::adm_to, args);
    }
}
