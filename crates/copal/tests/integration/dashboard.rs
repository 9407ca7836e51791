//! The dashboard of a real daemon: in a browser, and as an attacker sees it.

use crate::daemon::{Answer, Daemon, Origin, copal, eventually, exchange, free_port, needs, ok};
use crate::metrics::observer;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VCL: &str = r#"vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "@PORT@"; }
backend shaky {
    .host = "127.0.0.1"; .port = "@SHAKY@";
    .probe = { .url = "/"; .interval = 0.3s; .timeout = 1s; .window = 3; .threshold = 2; .initial = 3; }
}
sub vcl_recv {
    set req.backend_hint = origin;
    if (req.url ~ "^/shaky") { set req.backend_hint = shaky; }
    unset req.http.Cookie;
}
sub vcl_deliver {
    if (obj.hits > 0) { set resp.http.X-Cache = "hit"; } else { set resp.http.X-Cache = "miss"; }
}"#;

fn origin() -> Origin {
    Origin::start(|head| match head.split(' ').nth(1).unwrap_or_default() {
        "/fail" => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/slow" => {
            // It is to be slow.
            std::thread::sleep(std::time::Duration::from_millis(1100));
            ok("Cache-Control: max-age=60\r\n", "slow")
        }
        path if path.starts_with("/tagged/") => ok("xkey: news\r\nCache-Control: max-age=600\r\n", "tagged"),
        _ => ok("Cache-Control: max-age=600\r\n", "page"),
    })
}

/// The port and the token of `dash.login`.
fn login(daemon: &Daemon) -> (u16, String) {
    let (done, text) = daemon.cli(&["dash.login"]);
    assert!(done, "{text}");
    let line = text.lines().next().unwrap();
    let (port, token) = line.strip_prefix("http://127.0.0.1:").unwrap().split_once("/#t=").unwrap();
    (port.parse().unwrap(), token.to_owned())
}

fn ask(port: u16, request: &str) -> Answer {
    Answer::parse(&exchange(port, request.as_bytes()))
}

fn post(port: u16, path: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    ask(
        port,
        &format!(
            "POST /api/1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
        ),
    )
}

/// Fields of a session's requests.
fn session(port: u16, token: &str) -> String {
    let answer = post(port, "login", "", &format!("{{\"token\": \"{token}\"}}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookie = answer.header("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    let text = answer.text();
    let csrf = text.split("\"csrf\":\"").nth(1).unwrap().split('"').next().unwrap();
    format!("Cookie: {cookie}\r\nX-Copal-Csrf: {csrf}\r\n")
}

/// Folder of playwright-core and axe-core, which `.ci/run` installs.
fn modules() -> Option<PathBuf> {
    let folder = std::env::var_os("COPAL_NODE_MODULES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/outside/browser/node_modules"),
        PathBuf::from,
    );
    let is_there = folder.join("playwright-core").exists() && folder.join("axe-core").exists();
    if !is_there {
        println!("skipped: needs playwright-core and axe-core");
    }
    is_there.then_some(folder)
}

#[test]
fn page_shows_known_figures_and_operates_in_a_browser() {
    let (Some(node), Some(chromium), Some(htpasswd)) = (needs("node"), needs("chromium"), needs("htpasswd")) else {
        return;
    };
    let Some(modules) = modules() else { return };
    let (origin, shaky) = (origin(), free_port().to_string());
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    let made = Command::new(htpasswd).args(["-nbB", "-C", "4", "eve", "look"]).output().unwrap();
    std::fs::write(&users, format!("{}:view\n", String::from_utf8(made.stdout).unwrap().trim())).unwrap();
    let users = format!("dash_users={}", users.display());
    let vcl = VCL.replace("@SHAKY@", &shaky);
    let daemon = Daemon::with_vcl(&vcl, origin.port, &["-o", "dash=127.0.0.1:0", "-o", &users]);
    let second =
        vcl.replace("@PORT@", &origin.port.to_string()) + "\nsub vcl_deliver { set resp.http.X-Second = \"1\"; }";
    assert!(daemon.cli(&["vcl.inline", "second", &second]).0);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/dashboard.mjs");
    let output = Command::new(node)
        .arg(script)
        .env("MODULES", modules)
        .env("CHROMIUM", chromium)
        .env("COPAL", copal())
        .env("DIRECTORY", daemon.run())
        .env("SERVER", daemon.port.to_string())
        .env("SHAKY", shaky)
        .env("DAEMON", daemon.process.pid().to_string())
        .env("SHOTS", std::env::var_os("DASH_SHOTS").unwrap_or_default())
        .output()
        .unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}\n{}", said(&output.stdout), said(&output.stderr), daemon.said());
    println!("{}", said(&output.stdout));
}

#[test]
fn operations_reach_the_server_leave_a_message_and_can_be_forbidden() {
    let origin = origin();
    let vcl = VCL.replace("@SHAKY@", "1");
    let daemon = Daemon::with_vcl(&vcl, origin.port, &["-o", "dash=127.0.0.1:0"]);
    let (port, token) = login(&daemon);
    let fields = session(port, &token);
    assert_eq!(post(port, "login", "", &format!("{{\"token\": \"{token}\"}}")).status, 403, "it is used");
    daemon.get("/tagged/1");
    let tag = r#"{"kind": "tag", "value": "news", "hard": true}"#;
    let preview = post(port, "invalidate/preview", &fields, tag).text();
    assert!(preview.contains("\"objects\":1"), "{preview}");
    let receipt = post(port, "invalidate", &fields, tag);
    assert!(receipt.text().contains("\"objects\":1"), "{receipt:?}");
    eventually("message", || {
        daemon.said().contains("Dashboard: cli from 127.0.0.1: tag.purge -j news (done)").then_some(())
    });
    let wrong = post(port, "vcl/use", &fields, r#"{"name": "missing"}"#);
    assert_eq!(wrong.status, 422, "{wrong:?}");
    eventually("message", || daemon.said().contains("vcl.use missing (refused: ").then_some(()));

    let daemon = Daemon::with_vcl(&vcl, origin.port, &["-o", "dash=127.0.0.1:0", "-o", "dash_operate=off"]);
    let (port, token) = login(&daemon);
    let fields = session(port, &token);
    assert_eq!(post(port, "invalidate", &fields, tag).status, 403);
}

#[test]
fn dashboard_without_a_server_s_own_uses_the_secret() {
    let origin = origin();
    let daemon = Daemon::with_vcl(&VCL.replace("@SHAKY@", "1"), origin.port, &[]);
    let mut command = Command::new(copal());
    let mut child = crate::daemon::Process(
        command.args(["dash", "-n", &daemon.run()]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap(),
    );
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let (port, token) = line.trim().strip_prefix("http://127.0.0.1:").unwrap().split_once("/#t=").unwrap();
    let port: u16 = port.parse().unwrap();
    let fields = session(port, token);
    let vcls = ask(
        port,
        &format!(
            "GET /api/1/vcl HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
            fields.replace("copal_dash_", &format!("copal_dash_{port}=x; copal_dash_"))
        ),
    );
    assert_eq!(vcls.status, 401, "a name without the port has another cookie");
    let vcls = ask(port, &format!("GET /api/1/vcl HTTP/1.1\r\nHost: localhost:{port}\r\n{fields}\r\n"));
    assert!(vcls.text().contains("\"name\":\"boot\""), "{vcls:?}");
    let banned = post(port, "invalidate", &fields, r#"{"kind": "ban", "value": "obj.status == 404"}"#);
    assert_eq!(banned.status, 200, "{banned:?}");
    assert!(daemon.cli(&["ban.list"]).1.contains("obj.status == 404"));
    // Without the secret there is no dashboard.
    let other = tempfile::tempdir().unwrap();
    let status = Command::new(copal()).args(["dash", "-n"]).arg(other.path()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn killed_observer_comes_back_with_the_same_address_and_harms_no_request() {
    let origin = origin();
    let daemon = Daemon::with_vcl(&VCL.replace("@SHAKY@", "1"), origin.port, &["-o", "dash=127.0.0.1:0"]);
    let (port, token) = login(&daemon);
    let fields = session(port, &token);
    let first = observer(&daemon, 0);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_eq!(daemon.get("/page").status, 200);
    observer(&daemon, first);
    let answer = eventually("page", || {
        let answer = ask(port, &format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"));
        (answer.status == 200).then_some(answer)
    });
    assert!(answer.text().contains("<title>Copal</title>"));
    let now = ask(port, &format!("GET /api/1/now HTTP/1.1\r\nHost: localhost:{port}\r\n{fields}\r\n"));
    assert_eq!(now.status, 200, "the session goes on");
    assert_eq!(post(port, "logout", &fields, "{}").status, 200);
    let now = ask(port, &format!("GET /api/1/now HTTP/1.1\r\nHost: localhost:{port}\r\n{fields}\r\n"));
    assert_eq!(now.status, 401);
}
