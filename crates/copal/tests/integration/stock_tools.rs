//! Debian's stock Varnish 7.1 programs attached to our daemon: they must see what happened, in their own terms.

use crate::daemon::{Daemon, Origin, copal, eventually, needs, ok};
use crate::scripts::scripts;
use std::path::Path;
use std::process::Command;

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    ok("Cache-Control: max-age=600\r\n", &format!("this is {path}\n"))
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn varnishlog_shows_a_miss_and_a_hit_in_the_stock_order() {
    let Some(varnishlog) = needs("varnishlog") else { return };
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    daemon.get("/logged");
    daemon.get("/logged");
    let text = eventually("both requests are in the log", || {
        let text = run(&varnishlog, &["-n", &daemon.run(), "-d", "-g", "request"]);
        text.contains("VCL_call       HIT").then_some(text)
    });
    let tags: Vec<&str> =
        text.lines().filter_map(|line| line.trim_start_matches(['-', ' ']).split_whitespace().next()).collect();
    let mut rest = tags.iter();
    for wanted in [
        "Begin",
        "Timestamp",
        "Timestamp",
        "ReqStart",
        "ReqMethod",
        "ReqURL",
        "ReqProtocol",
        "ReqHeader",
        "VCL_call",
        "VCL_return",
        "VCL_call",
        "VCL_return",
        "VCL_call",
        "VCL_return",
        "Link",
        "Timestamp",
        "RespProtocol",
        "RespStatus",
        "RespReason",
        "RespHeader",
        "VCL_call",
        "VCL_return",
        "Timestamp",
        "Timestamp",
        "ReqAcct",
        "End",
    ] {
        assert!(rest.any(|tag| *tag == wanted), "no {wanted} in its place:\n{text}");
    }
    for wanted in ["BereqURL", "BackendOpen", "BerespStatus", "TTL", "Storage", "Fetch_Body", "BereqAcct", "Hit"] {
        assert!(tags.contains(&wanted), "no {wanted}:\n{text}");
    }
    assert!(!tags.contains(&"VSL"), "the library had to make records up:\n{text}");
    let query = run(
        &varnishlog,
        &["-n", &daemon.run(), "-d", "-q", "ReqURL eq '/logged' and VCL_call eq 'HIT'", "-i", "ReqURL"],
    );
    assert_eq!(query.matches("/logged").count(), 1, "{query}");
}

#[test]
fn varnishncsa_and_varnishstat_tell_the_same_as_ours() {
    let (Some(ncsa), Some(stat)) = (needs("varnishncsa"), needs("varnishstat")) else { return };
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for _ in 0..7 {
        daemon.get("/counted?a=1");
    }
    let format = "%m %U%q %s %b %{Varnish:hitmiss}x %{X-Varnish}o";
    let stock = eventually("seven lines", || {
        let text = run(&ncsa, &["-n", &daemon.run(), "-d", "-F", format]);
        (text.lines().count() == 7).then_some(text)
    });
    let ours = daemon.applet("ncsa", &["-d", "-F", format]);
    assert_eq!(String::from_utf8_lossy(&ours.stdout), stock);
    assert_eq!(stock.lines().filter(|line| line.contains(" hit ")).count(), 6, "{stock}");
    eventually("the counters are summed", || (daemon.counter("MAIN.client_req") >= 7).then_some(()));
    let value = |text: &str, name: &str| {
        text.lines()
            .find(|line| line.split_whitespace().next() == Some(name))
            .and_then(|line| line.split_whitespace().nth(1).map(str::to_owned))
            .unwrap_or_else(|| panic!("no {name} in:\n{text}"))
    };
    let stock = run(&stat, &["-n", &daemon.run(), "-1"]);
    let ours = String::from_utf8_lossy(&daemon.applet("stat", &["-1"]).stdout).into_owned();
    for name in
        ["MAIN.cache_hit", "MAIN.cache_miss", "MAIN.s_fetch", "MAIN.n_object", "MGT.child_start", "SMA.s0.g_alloc"]
    {
        assert_eq!(value(&stock, name), value(&ours, name), "{name}");
    }
    assert_eq!((value(&stock, "MAIN.cache_hit"), value(&stock, "MAIN.client_req")), ("6".into(), "7".into()));
    let json = run(&stat, &["-n", &daemon.run(), "-j"]);
    assert!(json.contains("\"VBE.boot.default.req\""), "{json}");
}

#[test]
fn varnishadm_of_both_kinds_speaks_with_the_daemon() {
    let Some(stock) = needs("varnishadm") else { return };
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for program in [stock.clone(), copal()] {
        let run_one = |words: &[&str]| {
            let mut command = Command::new(&program);
            if program == copal() {
                command.arg("adm");
            }
            let output = command.args(["-n", &daemon.run()]).args(words).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.success(), text)
        };
        assert!(run_one(&["ping"]).1.starts_with("PONG "));
        // The sockets are open before the worker runs: connections wait.
        eventually("the worker runs", || run_one(&["status"]).1.contains("Child in state running").then_some(()));
        assert!(run_one(&["vcl.list"]).1.contains("boot"));
        assert!(run_one(&["backend.list"]).1.contains("boot.default"));
        assert!(run_one(&["param.set", "default_grace", "7"]).0);
        assert!(run_one(&["param.show", "default_grace"]).1.contains("Value is: 7.000 [seconds]"));
        assert!(run_one(&["ban", "req.url ~ ^/nothing"]).0);
        assert!(run_one(&["ban.list"]).1.contains("req.url ~ ^/nothing"));
        assert!(!run_one(&["no.such.command"]).0);
    }
}

/// Runs our own scripts with the stock runner, to make sure that they mean the same with the stock daemon.
#[test]
fn our_scripts_pass_with_the_stock_varnishtest() {
    let Some(varnishtest) = needs("varnishtest") else { return };
    let bin = tempfile::tempdir().unwrap();
    for name in ["varnishd", "varnishadm", "varnishlog", "varnishncsa", "varnishstat"] {
        std::os::unix::fs::symlink(copal(), bin.path().join(name)).unwrap();
    }
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut failed = Vec::new();
    for script in scripts() {
        let temporary = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(temporary.path(), mode).unwrap();
        let output = Command::new(&varnishtest)
            .args(["-t", "30"])
            .arg(&script)
            .env("PATH", &path)
            .env("TMPDIR", temporary.path())
            .output()
            .unwrap();
        // 77: a feature that the machine lacks.
        if !matches!(output.status.code(), Some(0 | 77)) {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let end: String =
                text.lines().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
            failed.push(format!("{}:\n{end}", script.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
