//! The full-screen tools in a real terminal: a tmux whose screen is read back.

use crate::daemon::{Daemon, Origin, Process, copal, eventually, needs, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The shell's output when the tool has ended and the terminal is back in line mode.
const RESTORED: &str = "ended with 0, icanon echo";

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\n", "a page\n")
}

/// A tool in a window of its own tmux.
struct Window {
    tmux: PathBuf,
    folder: tempfile::TempDir,
}

impl Window {
    /// Starts `copal` with these arguments in a window of this size; `None` on a machine without
    /// tmux.
    fn open(columns: u16, lines: u16, arguments: &[&str]) -> Option<Window> {
        let window = Window { tmux: needs("tmux")?, folder: tempfile::tempdir().unwrap() };
        let words: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        // Prints the tool's process id, runs the tool, prints its exit status and the terminal's
        // mode.
        let script = format!(
            "sh -c 'echo $$ > {folder}/pid; exec \"$@\"' sh {copal} {words}; status=$?; \
             echo ended with $status, $(stty -a | tr ' ;' '\\n\\n' | grep -xE 'icanon|echo' | sort -r | xargs); exec cat",
            folder = window.folder.path().display(),
            copal = copal().display(),
            words = words.join(" "),
        );
        let path = window.folder.path().join("script");
        std::fs::write(&path, script).unwrap();
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let run = format!("sh {}", path.display());
        window.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &lines, &run]);
        Some(window)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.tmux)
            .arg("-S")
            .arg(self.folder.path().join("socket"))
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn resize(&self, columns: u16, lines: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Waits until the screen satisfies `wanted`; on failure, panics with the last screen.
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                last = self.screen();
                wanted(&last).then_some(())
            });
        }));
        assert!(seen.is_ok(), "{what}; on the screen was:\n{last}");
        last
    }

    fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    fn pid(&self) -> i32 {
        let path = self.folder.path().join("pid");
        eventually("the tool runs", || std::fs::read_to_string(&path).ok()?.trim().parse().ok())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let socket = self.folder.path().join("socket");
        let _ = Command::new(&self.tmux).arg("-S").arg(socket).arg("kill-server").output();
    }
}

/// The number in a counter's row.
fn current(screen: &str, name: &str) -> Option<u64> {
    let row = screen.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    row.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn stat_opens_on_an_overview_and_its_list_shows_how_counters_change() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for _ in 0..5 {
        daemon.get("/");
    }
    let Some(window) = Window::open(120, 40, &["stat", "-n", &daemon.run()]) else { return };
    let overview = window.wait_for("requests a second");
    for text in ["hit ratio", "since start", "origin failed", "s0", "boot.default", "Press <o> for all counters"] {
        assert!(overview.contains(text), "{text}: {overview}");
    }
    window.press(&["o"]);
    let screen = window.wait("five requests", |screen| current(screen, "MAIN.client_req") == Some(5));
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[0].starts_with("Uptime mgt:      0+00:0") && lines[0].contains("Hitrate n:"), "{screen}");
    assert!(
        lines[3].contains("NAME")
            && lines[3].ends_with("CURRENT        CHANGE       AVERAGE        AVG_10       AVG_100      AVG_1000")
    );
    assert!(screen.contains("  INFO  1-") && !screen.contains("MAIN.sess_fail"), "{screen}");
    daemon.get("/");
    window.wait("another one", |screen| current(screen, "MAIN.client_req") == Some(6));
    window.press(&["d"]);
    window.wait("unseen counters", |screen| screen.contains("UNSEEN  INFO") && screen.contains("MAIN.sess_fail"));
    window.press(&["v"]);
    window.wait_for("UNSEEN  DIAG");
    window.press(&["/"]);
    window.press(&["-l", "vbe.boot.default.conn"]);
    window.wait_for("Search: vbe.boot.default.conn_");
    window.press(&["Enter"]);
    window.wait_for("Concurrent connections used:");
    window.press(&["+"]);
    window.wait_for("Refresh interval set to 1.1 seconds.");
    window.press(&["h"]);
    window.wait_for("Navigate the counter list one line up.");
    window.press(&["h"]);
    window.wait_for("Concurrent connections used:");
    window.resize(60, 12);
    window.wait("a smaller window", |screen| screen.contains("CURRENT") && !screen.contains("AVG_10"));
    window.press(&["q"]);
    window.wait_for(RESTORED);
}

#[test]
fn varnishstat_takes_up_the_next_worker() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for _ in 0..5 {
        daemon.get("/");
    }
    let Some(window) = Window::open(120, 60, &["stat", "-n", &daemon.run()]) else { return };
    window.wait_for("passed a second");
    window.press(&["o"]);
    window.wait("five requests", |screen| current(screen, "MAIN.client_req") == Some(5));
    let worker = daemon.worker();
    kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("another worker runs", || (daemon.worker() != worker).then_some(()));
    daemon.get("/");
    window.wait("its one request", |screen| current(screen, "MAIN.client_req") == Some(1));
    let (_, text) = daemon.cli(&["stop"]);
    window.wait(&format!("stopped: {text}"), |screen| screen.contains("Uptime child:   Not Running"));
    drop(daemon);
    window.wait("gone", |screen| screen.contains("Uptime mgt:     Not Running"));
    window.press(&["C-c"]);
    window.wait_for(RESTORED);
}

#[test]
fn varnishtop_ranks_the_selected_records() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for path in ["/often", "/often", "/often", "/rare"] {
        daemon.get(path);
    }
    let once = eventually("four requests are in the log", || {
        let output = daemon.applet("top", &["-1", "-i", "ReqURL"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text.lines().count() == 2 && text.contains("3.00")).then_some(text)
    });
    assert_eq!(once, "     3.00 ReqURL /often\n     1.00 ReqURL /rare\n");
    let Some(window) = Window::open(80, 24, &["top", "-n", &daemon.run(), "-i", "ReqURL"]) else { return };
    window.wait_for("list length 0");
    daemon.get("/live");
    let screen = window.wait_for("ReqURL         /live");
    assert!(screen.starts_with("list length 1 "), "{screen}");
    window.press(&["h"]);
    window.wait_for("Show or hide this page.");
    window.press(&["q"]);
    window.wait_for(RESTORED);
    let Some(window) = Window::open(80, 24, &["top", "-n", &daemon.run(), "-d"]) else { return };
    let screen = window.wait_for("(EOF)");
    assert!(screen.contains("ReqMethod      GET"), "{screen}");
    window.press(&["C-z"]);
    window.press(&["q"]);
}

#[test]
fn varnishhist_draws_hits_and_misses() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let Some(window) = Window::open(80, 24, &["hist", "-n", &daemon.run(), "-P", "size", "-m", "0"]) else { return };
    let screen = window.wait_for("1:1, n = 0, d = 1  size");
    assert!(screen.contains("|1 B") && screen.contains("|10 MB") && !screen.contains("100 MB"), "{screen}");
    assert!(screen.contains("| hits  # others, one mark for 1 request"), "{screen}");
    for _ in 0..3 {
        daemon.get("/");
    }
    let screen = window.wait_for("n = 3");
    let bar: Vec<char> = screen.lines().map(|line| line.chars().nth(8).unwrap_or(' ')).collect();
    assert_eq!(bar[19..23].iter().collect::<String>(), "||#-", "{screen}");
    window.press(&["3"]);
    window.wait_for("d = 8");
    window.press(&["q"]);
    window.wait_for(RESTORED);
    let printed = daemon.applet("hist", &["-d", "-P", "Besize"]);
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(text.starts_with("1:1, n = 1, d = 1  Besize") && text.lines().count() == 24, "{text}");
}

#[test]
fn signals_end_the_screens_and_the_terminal_is_as_before() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for (tool, first) in [("stat", "Uptime mgt:"), ("top", "list length"), ("hist", "1:1, n =")] {
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
            let Some(window) = Window::open(80, 24, &[tool, "-n", &daemon.run()]) else { return };
            window.wait_for(first);
            window.signal(signal);
            window.wait_for(RESTORED);
        }
    }
}

#[test]
fn tools_end_when_their_terminal_hangs_up() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for (tool, first) in [("stat", "Uptime mgt:"), ("top", "list length"), ("hist", "1:1, n =")] {
        let Some(window) = Window::open(80, 24, &[tool, "-n", &daemon.run()]) else { return };
        window.wait_for(first);
        let pid = Pid::from_raw(window.pid());
        window.tmux(&["kill-server"]);
        eventually("the tool has gone", || kill(pid, None).is_err().then_some(()));
    }
}

#[test]
fn no_window_is_too_small_for_the_tools() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    daemon.get("/");
    for tool in ["stat", "top", "hist"] {
        let Some(window) = Window::open(80, 24, &[tool, "-n", &daemon.run()]) else { return };
        window.wait("something is shown", |screen| !screen.trim().is_empty());
        for (columns, lines) in [(1, 1), (5, 2), (30, 6), (200, 3), (3, 60)] {
            window.resize(columns, lines);
            for keys in [["h", "j"], ["G", "h"], ["C-l", "G"]] {
                window.press(&keys);
            }
        }
        window.resize(80, 24);
        window.press(&["q"]);
        window.wait_for(RESTORED);
    }
}

#[test]
fn lack_of_a_terminal_is_reported_in_one_line() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for tool in ["stat", "top", "hist"] {
        let output = daemon.applet(tool, &[]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{tool}: {text}");
        assert!(text.contains("no terminal"), "{tool}: {text}");
        let help = daemon.applet(tool, &["--help"]);
        assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("-n <dir>"));
    }
}

/// Writes a counter segment with arbitrary claims.
fn write_segment(folder: &Path, name: &str, ready: u32, body: u64, document: u64, rest: &[u8]) -> usize {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&ready.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&body.to_ne_bytes());
    bytes.extend_from_slice(&document.to_ne_bytes());
    bytes.extend_from_slice(rest);
    let length = bytes.len();
    bytes.resize(length.next_multiple_of(4096), 0);
    std::fs::write(folder.join(name), bytes).unwrap();
    length
}

#[test]
fn hostile_segments_are_shown_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    for side in ["_.vsm_mgt", "_.vsm_child"] {
        let directory = folder.path().join(side);
        std::fs::create_dir(&directory).unwrap();
        let document = r#"{"elem": {
            "evil\u001b[2J\u0007": {"type": "counter", "level": "info", "oneliner": "\u001b]0;x", "format": "bytes", "index": 0},
            "far": {"type": "counter", "level": "info", "oneliner": "beyond the end", "format": "integer", "index": 18446744073709551615},
            "odd": {"type": "bitmap", "level": "x", "oneliner": "", "format": "bitmap", "index": 3},
            "none": 7}}"#;
        let mut text = document.as_bytes().to_vec();
        text.push(0);
        let document_bytes = write_segment(&directory, "d", 1, 24, 7, &text);
        let counters = [0xff; 16];
        let good = write_segment(&directory, "s", 1, 24, 7, &counters);
        let bad = write_segment(&directory, "b", 1, u64::MAX, 7, &counters);
        std::fs::write(directory.join("log"), b"VSLHEAD1\xff\xff\xff\xff\xff\xff\xff\x7f").unwrap();
        let index = format!(
            "# 1 1\n+ d 0 {document_bytes} StatDoc x\n+ s 0 {good} Stat A\n+ b 0 {bad} Stat B\n+ log 0 99999999 Log Log\n\
             + s 0 99999999999999999999 Stat C\n- nonsense\n\x1b[2J"
        );
        std::fs::write(directory.join("_.index"), index).unwrap();
    }
    let name = folder.path().to_str().unwrap();
    let Some(window) = Window::open(100, 30, &["stat", "-n", name]) else { return };
    window.wait_for("Press <o>");
    window.press(&["o"]);
    let screen = window.wait_for("A.evil.[2J.");
    assert!(screen.contains("<h> for help"), "{screen}");
    window.press(&["v", "v", "d", "G", "r", "e"]);
    window.wait_for("DEBUG");
    window.press(&["q"]);
    window.wait_for(RESTORED);
    for (tool, first) in [("top", "list length 0"), ("hist", "n = 0")] {
        let window = Window::open(80, 24, &[tool, "-n", name]).unwrap();
        window.wait_for(first);
        window.press(&["q"]);
        window.wait_for(RESTORED);
    }
}

#[test]
fn varnishstat_may_be_started_before_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("run");
    let Some(window) = Window::open(100, 30, &["stat", "-t", "off", "-n", name.to_str().unwrap()]) else { return };
    window.wait_for("Not Running");
    let port = crate::daemon::free_port();
    let child = Command::new(copal())
        .args(["daemon", "-F", "-j", "none", "-b", "none", "-n"])
        .arg(&name)
        .args(["-a", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _daemon = Process(child);
    window.wait_for("passed a second");
    window.press(&["o"]);
    window.wait_for("MAIN.uptime");
}
