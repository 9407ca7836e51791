//! Debian's stock Varnish programs, 7.1 and 7.7, attached to our daemon: they must show the events
//! in their own terms.

use crate::daemon::{Daemon, Origin, copal, eventually, needs, needs_each, ok};
use crate::scripts::scripts;
use std::path::Path;
use std::process::Command;
use surface::limits::TEST_HANG_SECONDS;

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
    for (layout, varnishlog) in needs_each("varnishlog") {
        varnishlog_shows_a_miss_and_a_hit(layout, &varnishlog);
    }
}

fn varnishlog_shows_a_miss_and_a_hit(layout: &str, varnishlog: &Path) {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-o", layout]);
    daemon.get("/logged");
    daemon.get("/logged");
    let text = eventually("both requests are in the log", || {
        let text = run(varnishlog, &["-n", &daemon.run(), "-d", "-g", "request"]);
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
        varnishlog,
        &["-n", &daemon.run(), "-d", "-q", "ReqURL eq '/logged' and VCL_call eq 'HIT'", "-i", "ReqURL"],
    );
    assert_eq!(query.matches("/logged").count(), 1, "{query}");
}

#[test]
fn varnishncsa_and_varnishstat_tell_the_same_as_ours() {
    for ((layout, ncsa), (_, stat)) in needs_each("varnishncsa").into_iter().zip(needs_each("varnishstat")) {
        tell_the_same_as_ours(layout, &ncsa, &stat);
    }
}

fn tell_the_same_as_ours(layout: &str, ncsa: &Path, stat: &Path) {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-o", layout]);
    for _ in 0..7 {
        daemon.get("/counted?a=1");
    }
    let format = "%m %U%q %s %b %{Varnish:hitmiss}x %{X-Varnish}o";
    let stock = eventually("seven lines", || {
        let text = run(ncsa, &["-n", &daemon.run(), "-d", "-F", format]);
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
    let stock = run(stat, &["-n", &daemon.run(), "-1"]);
    let ours = String::from_utf8_lossy(&daemon.applet("stat", &["-1"]).stdout).into_owned();
    for name in
        ["MAIN.cache_hit", "MAIN.cache_miss", "MAIN.s_fetch", "MAIN.n_object", "MGT.child_start", "SMA.s0.g_alloc"]
    {
        assert_eq!(value(&stock, name), value(&ours, name), "{name}");
    }
    assert_eq!((value(&stock, "MAIN.cache_hit"), value(&stock, "MAIN.client_req")), ("6".into(), "7".into()));
    let json = run(stat, &["-n", &daemon.run(), "-j"]);
    assert!(json.contains("\"VBE.boot.default.req\""), "{json}");
}

#[test]
fn varnishadm_of_both_kinds_speaks_with_the_daemon() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for program in needs_each("varnishadm").into_iter().map(|(_, stock)| stock).chain([copal()]) {
        let run_one = |words: &[&str]| {
            let mut command = Command::new(&program);
            if program == copal() {
                command.arg("adm");
            }
            let limit = TEST_HANG_SECONDS.to_string();
            let output = command.args(["-t", &limit, "-n", &daemon.run()]).args(words).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.success(), text)
        };
        assert!(run_one(&["ping"]).1.starts_with("PONG "));
        assert!(run_one(&["status"]).1.contains("Child in state running"));
        assert!(run_one(&["vcl.list"]).1.contains("boot"));
        assert!(run_one(&["backend.list"]).1.contains("boot.default"));
        assert!(run_one(&["param.set", "default_grace", "7"]).0);
        assert!(run_one(&["param.show", "default_grace"]).1.contains("Value is: 7.000 [seconds]"));
        assert!(run_one(&["ban", "req.url ~ ^/nothing"]).0);
        assert!(run_one(&["ban.list"]).1.contains("req.url ~ ^/nothing"));
        assert!(!run_one(&["no.such.command"]).0);
    }
}

#[test]
fn varnishtop_counts_what_varnishlog_shows() {
    for (layout, varnishtop) in needs_each("varnishtop") {
        let origin = Origin::start(page);
        let daemon = Daemon::in_front_of(origin.port, &["-o", layout]);
        daemon.get("/often");
        daemon.get("/often");
        let text = eventually("both requests are counted", || {
            let text = run(&varnishtop, &["-n", &daemon.run(), "-1", "-i", "ReqURL"]);
            text.contains("2.00").then_some(text)
        });
        assert!(text.contains("ReqURL /often"), "{text}");
        let ours = daemon.applet("top", &["-1", "-i", "ReqURL"]);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&String::from_utf8_lossy(&ours.stdout)), words(&text));
    }
}

/// 7.7 hides a fragment, unless `-E` is given, by the depth that its log states.
#[test]
fn fragments_are_shown_on_request_by_tools_of_either_version() {
    for (layout, varnishlog) in needs_each("varnishlog") {
        let origin = Origin::start(|head| {
            let is_page = head.starts_with("GET /page");
            ok("Cache-Control: max-age=600\r\n", if is_page { "<esi:include src=\"/part\"/>" } else { "part" })
        });
        let folder = tempfile::tempdir().unwrap();
        let vcl = folder.path().join("esi.vcl");
        let port = origin.port;
        let text = format!(
            "vcl 4.1; backend b {{ .host = \"127.0.0.1\"; .port = \"{port}\"; }} \
             sub vcl_backend_response {{ set beresp.do_esi = true; }}"
        );
        std::fs::write(&vcl, text).unwrap();
        let daemon = Daemon::start(&["-f", vcl.to_str().unwrap(), "-o", layout]);
        assert!(String::from_utf8_lossy(&daemon.get("/page").body).contains("part"));
        let shown = |more: &[&str]| {
            let text = run(&varnishlog, &[&["-n", &daemon.run(), "-d", "-i", "ReqURL"], more].concat());
            let ours = daemon.applet("log", &[&["-d", "-i", "ReqURL"], more].concat());
            assert_eq!(String::from_utf8_lossy(&ours.stdout), text, "{layout} {more:?}");
            (text.contains("/page"), text.contains("/part"))
        };
        eventually("the page is in the log", || shown(&["-c"]).0.then_some(()));
        assert_eq!((shown(&["-c"]), shown(&["-E"])), ((true, false), (true, true)), "{layout}");
    }
}

/// Runs our own scripts with the stock runner, to make sure that they mean the same with the stock
/// daemon.
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
            .args(["-t", &TEST_HANG_SECONDS.to_string()])
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
