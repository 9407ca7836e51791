//! h2spec, all of it, over TLS and without.

use super::*;
use crate::daemon::{Origin, ok};

/// Tests that may fail without TLS, as `section/number`. A port that serves HTTP/1 too answers an
/// invalid preface in HTTP/1, with 400, and closes; h2spec accepts no end other than one without an
/// answer.
const FAILS_IN_CLEAR: &[&str] = &["3.5. HTTP/2 Connection Preface/2: Sends invalid connection preface"];

/// The program, from the variable COPAL_H2SPEC, the path or Go's folder.
fn h2spec() -> Option<PathBuf> {
    let named = std::env::var_os("COPAL_H2SPEC").map(PathBuf::from);
    let path = std::env::var("PATH").unwrap_or_default();
    let home = std::env::var("HOME").unwrap_or_default() + "/go/bin";
    let places = path.split(':').chain([home.as_str()]).map(|folder| Path::new(folder).join("h2spec"));
    let found = named.into_iter().chain(places).find(|place| place.is_file());
    if found.is_none() {
        println!("skipped: needs h2spec");
    }
    found
}

/// The titles of the failed tests, each after that of its section, and the number of all tests.
fn failures(port: u16, more: &[&str]) -> Option<(Vec<String>, usize)> {
    let mut command = Command::new(h2spec()?);
    // Its timeout is the time limit for an error to become visible, and test machines are busy.
    command.args(["-h", "127.0.0.1", "-o", "60", "-p", &port.to_string()]).args(more);
    let mut limited = Command::new("timeout");
    limited.args(["-k", "1", &TEST_HANG_SECONDS.to_string()]).arg(command.get_program()).args(command.get_args());
    let output = limited.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().rev().find(|line| line.contains(" tests, ")).unwrap_or_else(|| panic!("no sum: {text}"));
    let tests = last.split(' ').next().unwrap().parse().unwrap();
    let (mut failed, mut section) = (Vec::new(), "");
    for line in text.split("Failures:").nth(1).unwrap_or_default().lines().map(str::trim) {
        match line.strip_prefix("× ") {
            Some(title) => failed.push(format!("{section}/{title}")),
            None if line.starts_with(|first: char| first.is_ascii_digit()) => section = line,
            None => {}
        }
    }
    Some((failed, tests))
}

fn door() -> Door {
    // More than a window: some tests need a stream that is still open when their next frame
    // arrives.
    let body = "0123456789".repeat(10_000);
    let origin = Origin::start(move |_| ok("Cache-Control: max-age=600\r\n", &body));
    // Under Varnish's policy priorities are not checked.
    Door::open(origin.port, &["-p", "http_policy=rfc"])
}

#[test]
fn h2spec_finds_nothing_over_tls() {
    let door = door();
    let Some((failed, tests)) = failures(door.port, &["-t", "-k"]) else { return };
    assert_eq!(failed, [""; 0]);
    assert!(tests >= 145, "{tests}");
}

#[test]
fn h2spec_finds_in_clear_only_what_comes_of_a_port_for_both() {
    let door = door();
    let Some((failed, tests)) = failures(door.daemon.port, &[]) else { return };
    assert_eq!(failed, FAILS_IN_CLEAR);
    assert!(tests >= 145, "{tests}");
}
