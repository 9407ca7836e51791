//! Canaries in real processes: the decision, kills of worker and manager at random moments, and
//! their leftovers. `COPAL_KILLS` is the number of kills.

use crate::daemon::{Answer, Daemon, HANG, Origin, eventually, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Number of kills by default.
const KILLS: u64 = 6;
/// Number of users, of whom each is in a group.
const USERS: usize = 24;

fn page(head: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\n", &format!("this is {}\n", head.split(' ').nth(1).unwrap_or("/")))
}

/// VCL whose responses have its name.
fn named(name: &str, more: &str) -> String {
    format!(
        "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"@PORT@\"; }} \
         sub vcl_recv {{ {more} }} sub vcl_deliver {{ set resp.http.X-VCL = \"{name}\"; }} \
         sub vcl_synth {{ set resp.http.X-VCL = \"{name}\"; }}"
    )
}

fn start(origin: &Origin) -> Daemon {
    Daemon::with_vcl(&named("boot", ""), origin.port, &["-s", "malloc,32m"])
}

#[track_caller]
fn cli(daemon: &Daemon, words: &[&str]) -> String {
    let (done, text) = daemon.cli(words);
    assert!(done, "{words:?}: {text}\n{}", daemon.said());
    text
}

fn load(daemon: &Daemon, origin: &Origin, name: &str, more: &str) {
    let text = named(name, more).replace("@PORT@", &origin.port.to_string()).replace('"', "\\\"");
    cli(daemon, &["vcl.inline", name, &format!("\"{text}\"")]);
}

/// `vcl.use` that puts `new` on trial for half of the users, the other half is the control group.
fn begin(daemon: &Daemon) -> String {
    cli(daemon, &["vcl.use", "new", "--percent", "50", "--for", "1h", "--stick", "header:X-User"])
}

/// The answer to a request; incomplete if the worker dies meanwhile.
fn ask(daemon: &Daemon, fields: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    let head = format!("GET /p HTTP/1.1\r\nHost: example.com\r\n{fields}Connection: close\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.read_to_end(&mut answer).map(drop));
    answer
}

/// The VCL that serves a user. While a worker dies, the client asks again.
fn vcl_of(daemon: &Daemon, user: usize) -> String {
    eventually("a user is served", || {
        let answer = ask(daemon, &format!("X-User: {user}\r\n"));
        let is_whole = answer.windows(4).any(|end| end == b"\r\n\r\n");
        is_whole.then(|| Answer::parse(&answer).header("x-vcl").map(str::to_owned))?
    })
}

fn choice(daemon: &Daemon) -> Vec<String> {
    (0..USERS).map(|user| vcl_of(daemon, user)).collect()
}

fn are_all_on(daemon: &Daemon, name: &str) -> bool {
    choice(daemon).iter().all(|served| served == name)
}

#[test]
fn a_vcl_that_fails_goes_back_by_itself_and_holds_its_vcl_until_then() {
    let origin = Origin::start(page);
    let daemon = start(&origin);
    load(&daemon, &origin, "new", "if (req.http.Fail) { return (synth(500)); }");
    assert!(begin(&daemon).contains("VCL 'new' is a canary for 50 % of clients (header:X-User) for 1 h"));
    let served: BTreeSet<String> = choice(&daemon).into_iter().collect();
    assert_eq!(served.into_iter().collect::<Vec<_>>(), ["boot", "new"]);
    assert_eq!(daemon.get("/p").header("x-vcl"), Some("boot"), "no user, no group");
    for (words, part) in [
        (&["vcl.discard", "new"][..], "Cannot discard the canary new: vcl.promote or vcl.rollback ends it"),
        (&["vcl.state", "new", "cold"], "Cannot set a canary cold"),
        (&["vcl.use", "new", "--percent", "5", "--for", "1m"], "VCL 'new' is a canary already"),
        (&["vcl.rollback", "2"], "vcl.rollback without a number ends it"),
    ] {
        let (done, text) = daemon.cli(words);
        assert!(!done && text.contains(part), "{words:?}: {text}");
    }
    assert!(cli(&daemon, &["vcl.list"]).contains("canary"));
    let shown = cli(&daemon, &["vcl.canary"]);
    assert!(shown.contains("requests") && shown.contains("hit-ratio") && shown.contains("control"), "{shown}");
    let user = AtomicU64::new(0);
    eventually("it has gone back", || {
        for _ in 0..20 {
            let user = user.fetch_add(1, SeqCst);
            ask(&daemon, &format!("X-User: {user}\r\nFail: 1\r\n"));
        }
        daemon.said().contains("went back after").then_some(())
    });
    assert!(are_all_on(&daemon, "boot"));
    let said = daemon.said();
    let line = said.lines().find(|line| line.contains("went back after")).unwrap();
    assert!(line.contains("errors ") && line.contains(", control 0.00 % of "), "{line}");
    assert!(cli(&daemon, &["vcl.canary"]).contains("No canary runs\nThe last one: VCL 'new', canary for 50 %"));
    cli(&daemon, &["vcl.discard", "new"]);
}

#[test]
fn a_canary_is_promoted_or_rolled_back_at_once_and_the_history_says_so() {
    let origin = Origin::start(page);
    let daemon = start(&origin);
    load(&daemon, &origin, "new", "");
    begin(&daemon);
    assert_eq!(cli(&daemon, &["vcl.rollback"]).trim(), "The canary of VCL 'new' has ended");
    assert!(are_all_on(&daemon, "boot"));
    begin(&daemon);
    assert_eq!(cli(&daemon, &["vcl.promote"]).trim(), "VCL 'new' now active");
    assert!(are_all_on(&daemon, "new"));
    let (done, text) = daemon.cli(&["vcl.promote"]);
    assert!(!done && text.contains("No canary runs"), "{text}");
    assert_eq!(cli(&daemon, &["vcl.rollback"]).trim(), "VCL 'boot' now active");
    assert!(are_all_on(&daemon, "boot"));
    // An operator's own choice ends a canary, also if it is the active VCL.
    begin(&daemon);
    cli(&daemon, &["vcl.use", "boot"]);
    assert!(are_all_on(&daemon, "boot") && cli(&daemon, &["vcl.canary"]).contains("No canary runs"));
    begin(&daemon);
    cli(&daemon, &["vcl.label", "way", "new"]);
    cli(&daemon, &["vcl.use", "way"]);
    assert!(are_all_on(&daemon, "new"));
    let history = cli(&daemon, &["vcl.history"]);
    let lines: Vec<&str> = history.lines().filter(|line| line.contains("->")).collect();
    assert_eq!(lines.len(), 4, "{history}");
    for (line, parts) in lines.iter().zip([
        ["boot", "way(new)", "vcl.use", "telnet"],
        ["new", "boot", "vcl.rollback", "telnet"],
        ["boot", "new", "vcl.promote", "telnet"],
        ["-", "boot", "command line", "start"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {history}");
    }
    // A label on trial, without enough traffic until the end.
    cli(&daemon, &["vcl.use", "boot"]);
    cli(&daemon, &["vcl.use", "way", "--percent", "50", "--for", "1s", "--stick", "header:X-User", "--share-cache"]);
    eventually("it has ended", || daemon.said().contains("not enough traffic: ").then_some(()));
    assert!(are_all_on(&daemon, "boot"));
}

#[test]
fn many_canaries_in_a_row_leave_nothing_behind() {
    let origin = Origin::start(page);
    let daemon = start(&origin);
    assert_eq!(daemon.get("/p").header("x-vcl"), Some("boot"));
    for round in 0..12 {
        load(&daemon, &origin, "new", "");
        begin(&daemon);
        for user in 0..6 {
            vcl_of(&daemon, user);
        }
        if round % 2 == 0 {
            cli(&daemon, &["vcl.rollback"]);
        } else {
            cli(&daemon, &["vcl.promote"]);
            cli(&daemon, &["vcl.use", "boot"]);
        }
        cli(&daemon, &["vcl.discard", "new"]);
    }
    eventually("only the object of all others is left", || (daemon.counter("MAIN.n_object") == 1).then_some(()));
    eventually("no VCL is left", || {
        let list = cli(&daemon, &["vcl.list"]);
        (list.lines().filter(|line| !line.trim().is_empty()).count() == 1).then_some(())
    });
}

/// A number from a fixed sequence.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn kills_at_random_moments_leave_one_active_vcl_and_no_client_half_moved() {
    let kills = std::env::var("COPAL_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(KILLS);
    let origin = Origin::start(page);
    let daemon = start(&origin);
    cli(&daemon, &["param.set", "auto_restart", "on"]);
    load(&daemon, &origin, "new", "");
    let (stop, answers, strange) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut state = 7;
    std::thread::scope(|scope| {
        // Requests that are in no group never see the canary.
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                let bytes = ask(&daemon, "");
                if bytes.windows(11).any(|part| part == b"X-VCL: boot") {
                    answers.fetch_add(1, SeqCst);
                } else if bytes.windows(10).any(|part| part == b"X-VCL: new") {
                    strange.fetch_add(1, SeqCst);
                }
            }
        });
        let mut running: Option<Vec<String>> = None;
        for _ in 0..kills {
            // The moment is a number of answers, and a command may be under way.
            let (worker, until) = (daemon.worker(), answers.load(SeqCst) + random(&mut state) % 20);
            let killer = scope.spawn({
                let answers = &answers;
                move || {
                    eventually("the moment has come", || (answers.load(SeqCst) >= until).then_some(()));
                    let _ = kill(Pid::from_raw(worker), Signal::SIGKILL);
                }
            });
            // A command that a dying worker does not answer counts for the manager anyway, or not.
            let _ = match running {
                None => daemon.cli(&["vcl.use", "new", "--percent", "50", "--for", "1h", "--stick", "header:X-User"]),
                Some(_) if random(&mut state).is_multiple_of(2) => daemon.cli(&["vcl.rollback"]),
                Some(_) => (true, String::new()),
            };
            killer.join().unwrap();
            let _ = daemon.worker();
            let is_on = !cli(&daemon, &["vcl.canary"]).contains("No canary runs");
            let served = choice(&daemon);
            let list = cli(&daemon, &["vcl.list"]);
            assert_eq!(list.lines().filter(|line| line.starts_with("active")).count(), 1, "{list}");
            if is_on {
                let kinds: BTreeSet<&String> = served.iter().collect();
                assert_eq!(kinds.len(), 2, "{served:?}");
                if let Some(before) = &running {
                    assert_eq!(&served, before, "the same canary has moved a client");
                }
            } else {
                assert!(served.iter().all(|name| name == "boot"), "{served:?}");
            }
            running = is_on.then_some(served);
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(strange.into_inner(), 0);
    // The manager's death ends its canary: the next one starts with the VCL of its command line.
    if cli(&daemon, &["vcl.canary"]).contains("No canary runs") {
        begin(&daemon);
    }
    let worker = daemon.worker();
    daemon.process.signal(Signal::SIGKILL);
    eventually("the worker ends with its manager", || {
        let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap_or_default();
        (!status.contains("State:") || status.contains("State:\tZ")).then_some(())
    });
    let again = start(&origin);
    assert!(are_all_on(&again, "boot"));
}
