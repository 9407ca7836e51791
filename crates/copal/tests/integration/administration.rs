//! varnishadm at a terminal, driven through tmux as a person would; and its exit status and
//! messages in scripts.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::daemon::{Daemon, copal, eventually, needs};

const VCL: &str = "vcl 4.1; backend origin none;";

/// A program in a terminal of its own.
struct Terminal {
    tmux: PathBuf,
    folder: tempfile::TempDir,
}

impl Terminal {
    fn start(tmux: PathBuf, command: &str) -> Terminal {
        let terminal = Terminal { tmux, folder: tempfile::tempdir().unwrap() };
        let home = terminal.folder.path().display();
        terminal.tmux(&[
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "40",
            &format!("HOME={home} {command}; echo ended: $?; cat"),
        ]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.tmux);
        command.arg("-f").arg("/dev/null").arg("-S").arg(self.folder.path().join("socket")).args(arguments);
        let output = command.env("TERM", "xterm").env_remove("TMUX").env_remove("NO_COLOR").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        // Otherwise a semicolon at the end of an argument would end tmux's own command.
        let escape = |key: &&str| key.strip_suffix(';').map_or_else(|| (*key).to_owned(), |key| format!("{key}\\;"));
        let keys: Vec<String> = keys.iter().map(escape).collect();
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys.iter().map(String::as_str));
        self.tmux(&arguments);
    }

    /// Waits until the screen shows a text, and returns the screen.
    fn shows(&self, text: &str) -> String {
        let last = std::cell::RefCell::new(String::new());
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(&format!("the screen shows {text:?}"), || {
                last.replace(self.tmux(&["capture-pane", "-p"]));
                last.borrow().contains(text).then(|| last.borrow().clone())
            })
        }));
        found.unwrap_or_else(|_| panic!("no {text:?} on the screen:\n{}", last.borrow()))
    }

    /// Waits for an empty prompt: input typed while the terminal changes its mode may be lost.
    fn prompts(&self) {
        eventually("there is an empty prompt", || {
            let screen = self.tmux(&["capture-pane", "-p"]);
            screen
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .is_some_and(|line| line.trim() == "varnish>")
                .then_some(())
        });
    }

    /// With its colours.
    fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_conversation_has_completion_history_colours_and_here_documents() {
    let Some(tmux) = needs("tmux") else { return };
    let daemon = Daemon::with_vcl(VCL, 1, &[]);
    let command = format!("{} adm -n {}", copal().display(), daemon.run());
    let terminal = Terminal::start(tmux, &command);
    terminal.shows("Type 'quit' to close CLI session.");
    terminal.prompts();
    // Commands are completed, hints show their arguments, and arguments are completed to names of
    // the server.
    terminal.keys(&["vcl.sh", "Tab"]);
    terminal.shows("vcl.show [-v] [<configname>]");
    terminal.keys(&["b", "Tab"]);
    terminal.shows("varnish> vcl.show boot");
    terminal.keys(&["Enter"]);
    terminal.shows("backend origin none;");
    terminal.prompts();
    // A parameter is set and read.
    terminal.keys(&["param.set default_gr", "Tab", "77", "Enter"]);
    // The prompt of before may still be the last line.
    terminal.shows("param.set default_grace 77\n200");
    terminal.prompts();
    terminal.keys(&["param.show default_gr", "Tab", "Enter"]);
    terminal.shows("Value is: 77.000 [seconds]");
    assert!(terminal.coloured().contains("\u{1b}[32m200"), "{}", terminal.coloured());
    terminal.prompts();
    // Several possibilities are listed, and the line can be abandoned.
    terminal.keys(&["backend.", "Tab", "Tab"]);
    terminal.shows("backend.set_health");
    terminal.keys(&["C-c"]);
    terminal.prompts();
    // A here-document over several lines, and a refusal.
    let document =
        ["vcl.inline second << EOT", "Enter", "vcl 4.1;", "Enter", "backend b none;", "Enter", "EOT", "Enter"];
    terminal.keys(&document);
    terminal.shows("EOT\n200");
    terminal.prompts();
    terminal.keys(&["vcl.use sec", "Tab", "Enter"]);
    terminal.shows("VCL 'second' now active");
    terminal.prompts();
    terminal.keys(&["nonsense", "Enter"]);
    terminal.shows("Unknown request.");
    assert!(terminal.coloured().contains("\u{1b}[31m101"), "{}", terminal.coloured());
    terminal.prompts();
    // The history can be recalled, and is saved.
    terminal.keys(&["Up", "Up"]);
    terminal.shows("varnish> vcl.use second\n");
    terminal.keys(&["C-e", "C-u"]);
    terminal.prompts();
    terminal.keys(&["quit", "Enter"]);
    let screen = terminal.shows("ended: 0");
    assert!(screen.contains("500"), "{screen}");
    let history = std::fs::read_to_string(terminal.folder.path().join(".varnishadm_history")).unwrap();
    for line in ["vcl.show boot", "param.set default_grace 77", "vcl.use second"] {
        assert!(history.contains(line), "{line} is not in:\n{history}");
    }
    let home = terminal.folder.path().display();
    let again = format!("HOME={home} {command}; echo ended: $?; cat");
    terminal.tmux(&["new-window", &again]);
    terminal.prompts();
    terminal.keys(&["C-r", "use"]);
    terminal.shows("vcl.use second");
    terminal.keys(&["Enter"]);
    terminal.prompts();
    // The end of the input ends the program; so does the end of the server.
    terminal.keys(&["C-d"]);
    terminal.shows("ended: 0");
    terminal.tmux(&["new-window", &again]);
    terminal.prompts();
    drop(daemon);
    terminal.keys(&["ping", "Enter"]);
    let screen = terminal.shows("ended: 2");
    assert!(screen.contains("closed by the server") || screen.contains("CLI socket"), "{screen}");
}

fn adm(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(copal());
    command.arg("adm").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // If the tool ended without reading its input, its status decides.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn status_and_lines(output: &Output) -> (i32, usize, String) {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), error.lines().count(), error)
}

#[test]
fn errors_are_reported_by_exit_status_and_one_line() {
    let daemon = Daemon::with_vcl(VCL, 1, &[]);
    let run = daemon.run();
    let secret = format!("{run}/_.secret");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap().to_string();
    let wrong = daemon.folder.path().join("wrong");
    std::fs::write(&wrong, "wrong").unwrap();
    let wrong = wrong.to_str().unwrap();
    let listed = daemon.folder.path().join("run/_.vsm_mgt");
    let address = std::fs::read_dir(listed)
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.unwrap().path()).ok())
        .find_map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.lines().next()?.strip_prefix("127.0.0.1 ").map(|port| format!("127.0.0.1:{port}"))
        })
        .unwrap();
    for (arguments, status, message) in [
        (&["-n", &run, "status"][..], 0, ""),
        (&["-n", &run, "nonsense"], 1, "Command failed with error code 101"),
        (
            &["-n", "/nonexistent", "-t", "0", "status"],
            2,
            "No server runs in /nonexistent. To start one: copal daemon -n /nonexistent -a :6080 -b 127.0.0.1:8080",
        ),
        (&["-T", "127.0.0.1:1", "-S", &secret, "status"], 2, "Connection failed (127.0.0.1:1): Connection refused"),
        (&["-T", &address, "status"], 2, "Authentication required: which file is the secret? (-S)"),
        (
            &["-T", &address, "-S", "/nonexistent", "status"],
            2,
            "Cannot open \"/nonexistent\": No such file or directory",
        ),
        (&["-T", &address, "-S", wrong, "status"], 2, &format!("Rejected 500: the secret in \"{wrong}\" is wrong")),
        (&["-T", &silent_address, "-t", "0.2", "status"], 2, "Read error CLI socket: no answer in time"),
        (&["-n", &run, "-T", &address, "status"], 1, "copal adm: -n is mutually exclusive with -S and -T"),
    ] {
        let output = adm(arguments, "");
        let (found, lines, error) = status_and_lines(&output);
        assert_eq!((found, error.trim_end()), (status, message), "{arguments:?}");
        assert!(lines <= 1, "{error}");
    }
    let output = Command::new(copal()).args(["upgrade", "-n", "/nonexistent"]).output().unwrap();
    let (found, lines, error) = status_and_lines(&output);
    assert!((found, lines) == (2, 2) && error.contains("kill -USR2"), "{error}");
    let batch = "status\n-nonsense\nnonsense\nparam.set default_ttl 5\n";
    let output = adm(&["-n", &run], batch);
    assert_eq!(status_and_lines(&output).0, 0, "as the stock program has it");
    let output = adm(&["-n", &run, "--strict"], batch);
    assert_eq!(status_and_lines(&output).0, 1);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "Command failed with error code 101\n");
    let output = adm(&["-n", &run, "--strict"], "status\n-nonsense\nping\n");
    assert_eq!(status_and_lines(&output).0, 0);
    // A limit below the length of the banner truncates the output, but keeps no client out.
    assert_eq!(status_and_lines(&adm(&["-n", &run, "param.set", "cli_limit", "128"], "")).0, 0);
    let output = adm(&["-n", &run, "help"], "");
    assert_eq!(status_and_lines(&output).0, 0);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\n[response was truncated]\n"), "{output:?}");
    assert_eq!(status_and_lines(&adm(&["-n", &run, "param.reset", "cli_limit"], "")).0, 0);
    drop(silent);
}

#[test]
fn without_a_command_the_server_must_still_answer() {
    let daemon = Daemon::with_vcl(VCL, 1, &[]);
    assert_eq!(status_and_lines(&adm(&["-n", &daemon.run()], "")), (0, 0, String::new()));
    // One server sends a greeting and then wrong answers, the other a greeting and then nothing.
    for (answer, message) in [
        (&b"200 2       \nhi\n"[..], "No pong received from server\n"),
        (b"101 4       \nPONG\n", "No pong received from server\n"),
        (b"", "Read error CLI socket: no answer in time\n"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client.write_all(b"200 2       \nhi\n").unwrap();
            let mut asked = [0; 64];
            let _ = client.read(&mut asked);
            let _ = client.write_all(answer);
            // Until the client gives up.
            let _ = client.read_to_end(&mut Vec::new());
        });
        let output = adm(&["-T", &address, "-t", "0.5"], "");
        assert_eq!(status_and_lines(&output), (2, 1, message.to_owned()));
        server.join().unwrap();
    }
}

#[test]
fn reply_is_awaited_for_the_given_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"200 2       \nhi\n").unwrap();
        let mut asked = Vec::new();
        // Until the client gives up.
        let _ = client.read_to_end(&mut asked);
        asked
    });
    let output = adm(&["-T", &address, "-t", "0.2", "ping"], "");
    assert_eq!(status_and_lines(&output), (2, 1, "Read error CLI socket: no answer in time\n".to_owned()));
    assert_eq!(server.join().unwrap(), b"ping\n");
}
