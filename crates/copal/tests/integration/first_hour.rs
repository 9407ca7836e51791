//! The first hour of a new user: `copal daemon` and the names of Copal's own programs.

use crate::daemon::{Daemon, Origin, copal, eventually, ok};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn page(_: &str) -> Vec<u8> {
    ok("", "a page\n")
}

/// A daemon in the foreground under its own name.
fn start(folder: &Path, arguments: &[&str]) -> Daemon {
    let mut command = Command::new(copal());
    command.arg("daemon").current_dir(folder);
    Daemon::start_by(command, arguments)
}

fn run(folder: &Path, line: &[&str]) -> Output {
    Command::new(copal()).args(line).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The end of a daemon that cannot start.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let run_directory = folder.join("run").display().to_string();
    let line = [&["daemon", "-F", "-j", "none", "-a", "127.0.0.1:0", "-n", &run_directory], arguments].concat();
    let output = run(folder, &line);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    text(&output.stderr)
}

#[test]
fn vcl_without_version_and_backend_is_served_from_the_current_directory_with_the_backend_option() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("site.vcl"), "sub vcl_backend_response { set beresp.ttl = 2m; }").unwrap();
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = start(folder.path(), &["-b", &backend, "-f", "site.vcl"]);
    assert_eq!(daemon.get("/").status, 200, "{}", daemon.said());
    eventually("it is a hit", || daemon.get("/").is_hit().then_some(()));
    // A VCL that is loaded later has that backend too, and the same rules.
    let path = folder.path().join("next.vcl");
    std::fs::write(&path, "sub vcl_deliver { set resp.http.Next = \"yes\"; }").unwrap();
    let (loaded, said) = daemon.cli(&["vcl.load", "next", "next.vcl"]);
    assert!(!loaded && said.contains("(No such file or directory; looked in /etc/varnish:"), "{said}");
    let loaded = run(folder.path(), &["adm", "-n", &daemon.run(), "vcl.load", "next", "next.vcl"]);
    assert!(loaded.status.success() && daemon.cli(&["vcl.use", "next"]).0, "{loaded:?}");
    eventually("the next one is used", || (daemon.get("/").header("next") == Some("yes")).then_some(()));
    std::fs::write(&path, "vcl 4.1; backend own none;").unwrap();
    let (loaded, said) = daemon.cli(&["vcl.load", "own", path.to_str().unwrap()]);
    assert!(!loaded && said.contains("-b names the backend of a VCL that defines none"), "{said}");
}

#[test]
fn backend_option_with_a_vcl_that_defines_backends_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("site.vcl"), "vcl 4.1;\nbackend own none;\n").unwrap();
    let said = refusal(folder.path(), &["-b", "127.0.0.1:1", "-f", "site.vcl"]);
    assert!(said.contains("-b names the backend of a VCL that defines none"), "{said}");
    assert!(said.contains("site.vcl' Line 2 Pos 1"), "{said}");
    let varnishd = Command::new(copal())
        .args(["varnishd", "-F", "-b", "127.0.0.1:1", "-f", "site.vcl"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(text(&varnishd.stderr).contains("Only one of -b or -f can be specified"), "{varnishd:?}");
}

#[test]
fn start_that_fails_says_what_helps_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let said = refusal(folder.path(), &["-f", "site.vcl"]);
    let expected = format!(
        "Error: Cannot read -f file 'site.vcl' (No such file or directory)\n\tlooked in /etc/varnish, \
         /usr/share/varnish/vcl and the current directory {}\n",
        folder.path().canonicalize().unwrap().display()
    );
    assert_eq!(said, expected);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refusal(folder.path(), &["-a", &address, "-b", "none"]);
    assert!(said.contains("Address already in use\n\tby ") && said.contains(&std::process::id().to_string()), "{said}");
    assert!(!said.contains("usage") && !said.contains("--help"), "{said}");
}

/// The report of a start.
fn report(said: &str) -> Vec<&str> {
    let lines = said.lines().skip_while(|line| !line.contains("serves: process"));
    lines.take_while(|line| line.contains("serves: process") || line.starts_with("  ")).collect()
}

#[test]
fn start_reports_what_it_serves_and_stop_by_work_directory_ends_it() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let backend = format!("127.0.0.1:{}", origin.port);
    let run_directory = folder.path().join("run").display().to_string();
    let line = ["daemon", "-j", "none", "-a", "127.0.0.1:0", "-n", &run_directory, "-b", &backend, "-s", "malloc,64m"];
    let started = run(folder.path(), &line);
    assert!(started.status.success(), "{started:?}");
    let said = text(&started.stdout);
    let lines = report(&said);
    assert_eq!((lines.len(), said.lines().count()), (6, 6), "{said}");
    assert_eq!(text(&started.stderr), "", "nothing else is said");
    assert!(lines[0].starts_with(&format!("Copal {} serves: process ", surface::version::COPAL_VERSION)), "{said}");
    assert!(lines[1].starts_with("  listens on  127.0.0.1:"), "{said}");
    let fixed = [
        format!("  backend     {backend}"),
        "  storage     64 MiB in memory".to_owned(),
        format!("  directory   {run_directory}"),
        format!("  to stop it  copal stop -n {run_directory}"),
    ];
    assert_eq!(lines[2..], fixed);
    // A second one reports the first.
    let second = run(folder.path(), &line);
    let said = text(&second.stderr);
    assert!(said.contains("Copal is already running: process ") && said.contains("copal stop -n"), "{said}");
    let status = run(folder.path(), &["status", "-n", &run_directory]);
    let said = text(&status.stdout);
    assert!(status.status.success() && said.starts_with("Copal serves: process "), "{status:?}");
    for line in ["  worker      process ", "  listens on  127.0.0.1:", "  VCL         boot", "  directory   "] {
        assert!(said.contains(line), "{said}");
    }
    // The command of the CLI ends the worker only.
    assert!(run(folder.path(), &["adm", "-n", &run_directory, "stop"]).status.success());
    let status = run(folder.path(), &["status", "-n", &run_directory]);
    assert_eq!(status.status.code(), Some(1), "{status:?}");
    let stopped = run(folder.path(), &["stop", "-n", &run_directory]);
    assert!(stopped.status.success() && text(&stopped.stdout).starts_with("Stopped: process "), "{stopped:?}");
    for part in ["status", "stop"] {
        let again = run(folder.path(), &[part, "-n", &run_directory]);
        assert_eq!(again.status.code(), Some(2), "{again:?}");
        assert!(text(&again.stderr).contains(&format!("No server runs in {run_directory}")), "{again:?}");
    }
}

#[test]
fn start_in_the_foreground_reports_and_its_regular_end_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("site.vcl"), "backend default none;").unwrap();
    let mut daemon = start(folder.path(), &["-f", "site.vcl"]);
    let directory = daemon.run();
    eventually("its report", || (report(&daemon.said()).len() == 6).then_some(()));
    let said = daemon.said();
    assert!(said.contains(&format!("  to stop it  Ctrl-C, or: copal stop -n {directory}")), "{said}");
    assert!(said.contains("  VCL         ") && said.contains("/site.vcl\n"), "{said}");
    let stopped = run(folder.path(), &["stop", "-n", &directory]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(daemon.process.wait().success());
    let said = daemon.said();
    assert!(said.contains("Info: Manager got SIGTERM") && !said.contains("Error"), "{said}");
}

#[test]
fn tools_call_themselves_by_the_name_they_were_called_by() {
    use std::os::unix::process::CommandExt as _;
    let folder = tempfile::tempdir().unwrap();
    for (part, stock) in [("daemon", "varnishd"), ("log", "varnishlog"), ("adm", "varnishadm"), ("test", "varnishtest")]
    {
        let own = text(&run(folder.path(), &[part, "--help"]).stdout);
        assert!(own.starts_with(&format!("Usage: copal {part} ")), "{own}");
        assert!(text(&run(folder.path(), &["help", part]).stdout) == own);
        let stock_help = Command::new(copal()).arg0(stock).arg("--help").output().unwrap();
        assert!(text(&stock_help.stdout).starts_with(&format!("Usage: {stock} ")), "{stock_help:?}");
    }
    let stock = Command::new(copal()).arg0("varnishlog").args(["-n", "/nonexistent", "-t", "0"]).output().unwrap();
    assert_eq!(text(&stock.stderr), "VSM: Could not get hold of varnishd, is it running?\n");
    let own = run(folder.path(), &["log", "-n", "/nonexistent", "-t", "0"]);
    assert!(
        text(&own.stderr).starts_with("No server runs in /nonexistent. To start one: copal daemon -n /nonexistent")
    );
}

#[test]
fn misspelt_word_is_answered_with_the_one_that_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    for (line, meant) in [
        (&["deamon"][..], "did you mean daemon?"),
        (&["log", "--jsno"], "did you mean --json?"),
        (&["bench", "--conections", "1", "http://127.0.0.1:1/"], "did you mean --connections?"),
        (&["preflight", "--problem"], "did you mean --problems?"),
        (&["daemon", "-b", "none", "-o", "acme_idr=/x"], "did you mean acme_dir?"),
        (&["vcl", "chekc"], "did you mean check?"),
        (&["vcl", "check", "-p", "vcl_pat=/", "-"], "Did you mean vcl_path?"),
        (&["daemon", "--memroy", "1g", "-b", "none"], "did you mean --memory?"),
        (&["daemon", "-b", "none", "-p", "default_tll=1"], "did you mean default_ttl?"),
        (&["daemon", "-b", "none", "-r", "default_tll"], "did you mean default_ttl?"),
    ] {
        let output = run(folder.path(), line);
        let said = text(&output.stderr);
        assert!(output.status.code() != Some(0) && said.contains(meant), "{line:?}: {said}");
    }
    let daemon = start(folder.path(), &["-b", "none"]);
    for (words, meant) in [
        (&["vcl.lst"][..], "Did you mean vcl.list?"),
        (&["help", "prama.show"], "Did you mean param.show?"),
        (&["param.set", "default_tll", "1"], "Did you mean default_ttl?"),
        (&["param.show", "default_tll"], "Did you mean default_ttl?"),
    ] {
        let (done, said) = daemon.cli(words);
        assert!(!done && said.contains(meant), "{words:?}: {said}");
    }
    let stock = Daemon::start(&["-b", "none"]);
    for words in [&["vcl.lst"][..], &["param.set", "default_tll", "1"]] {
        let (_, said) = stock.cli(words);
        assert!(!said.to_lowercase().contains("did you mean"), "{said}");
    }
}

#[test]
fn server_calls_itself_copal_in_headers_and_pages() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let vcl = format!(
        "vcl 4.1; backend b {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} backend closed {{ .host = \"127.0.0.1\"; .port = \"1\"; }}
         sub vcl_recv {{
             if (req.method == \"PURGE\") {{ return (purge); }}
             if (req.url == \"/closed\") {{ set req.backend_hint = closed; }}
             if (req.url == \"/no\") {{ return (synth(403)); }}
         }}",
        origin.port
    );
    let path = folder.path().join("site.vcl");
    std::fs::write(&path, vcl).unwrap();
    let file = path.to_str().unwrap();
    let daemon = start(folder.path(), &["-f", file]);
    let version = surface::version::COPAL_VERSION.rsplit_once('.').unwrap().0;
    assert_eq!(daemon.get("/").header("via"), Some(format!("1.1 copal (Copal/{version})").as_str()));
    let purged = daemon.request("PURGE / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
    let body = text(&purged.body);
    assert_eq!((purged.status, purged.header("retry-after")), (200, None), "{}", purged.head);
    assert!(body.contains("<h1>Purged</h1>") && !body.contains("Error"), "{body}");
    for (path, status, reason, retry) in
        [("/no", 403, "Forbidden", None), ("/closed", 503, "Backend connection refused", Some("5"))]
    {
        let answer = daemon.get(path);
        let body = text(&answer.body);
        assert_eq!((answer.status, answer.header("server")), (status, Some("Copal")), "{}", answer.head);
        assert_eq!(answer.header("retry-after"), retry);
        assert!(body.contains(&format!("<title>{status} {reason}</title>")), "{body}");
        assert!(!body.contains("Guru") && !body.contains("Varnish") && body.contains("<p>Copal</p>"), "{body}");
    }
    let stock = Daemon::start(&["-f", file]);
    assert_eq!(stock.get("/").header("via"), Some("1.1 varnish (Varnish/7.1)"));
    let answer = stock.get("/no");
    assert_eq!((answer.header("server"), answer.header("retry-after")), (Some("Varnish"), Some("5")));
    assert!(text(&answer.body).contains("Guru Meditation"));
}

#[test]
fn trial_over_https_needs_no_certificate() {
    let Some(curl) = crate::daemon::needs("curl") else { return };
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let port = crate::daemon::free_port();
    let (address, backend) = (format!("127.0.0.1:{port},https,self-signed"), format!("127.0.0.1:{}", origin.port));
    let daemon = start(folder.path(), &["-a", &address, "-b", &backend]);
    let certificate = format!("{}/self-signed.crt", daemon.run());
    let said = daemon.said();
    assert!(said.contains(&format!("for a trial: no client trusts it without {certificate}")), "{said}");
    for name in ["localhost", "127.0.0.1"] {
        let asked = Command::new(&curl)
            .args(["-s", "--cacert", &certificate, "--resolve", &format!("localhost:{port}:127.0.0.1")])
            .arg(format!("https://{name}:{port}/"))
            .output()
            .unwrap();
        assert_eq!(text(&asked.stdout), "a page\n", "{asked:?}");
    }
    use std::os::unix::fs::PermissionsExt as _;
    let key = std::fs::metadata(format!("{}/self-signed.key", daemon.run())).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}
