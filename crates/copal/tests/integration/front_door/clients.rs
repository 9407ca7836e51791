//! Every client requests the same page, once, and the log shows their protocols and that they all
//! got one object.

use super::*;
use crate::daemon::{Origin, eventually, ok};
use std::collections::BTreeMap;

/// A page that shows its protocol to clients that run scripts.
const PAGE: &str = "<!doctype html><title>page</title><body>came over <script>\
    document.write(performance.getEntriesByType('navigation')[0].nextHopProtocol)</script></body>";

/// Expected log records of a client.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    protocol: &'static str,
    is_tls: bool,
}

/// The clients that were run, by the name that each sends as User-Agent.
type Visits = BTreeMap<String, Seen>;

fn visited(visits: &mut Visits, name: &str, protocol: &'static str, is_tls: bool) {
    visits.insert(name.to_owned(), Seen { protocol, is_tls });
}

#[test]
fn all_clients_get_one_object_and_the_log_has_their_protocol() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=600\r\nContent-Type: text/html\r\n", PAGE));
    let door = Door::open(origin.port, &[]);
    assert_eq!(door.daemon.get("/page").status, 200);
    let mut visits = Visits::new();
    curl(&door, &mut visits);
    nghttp(&door, &mut visits);
    h2load(&door, &mut visits);
    openssl(&door, &mut visits);
    chromium(&door, &mut visits);
    python(&door, &mut visits);
    go(&door, &mut visits);
    for (name, seen) in &visits {
        let expected =
            format!("{name} GET /page {} 200 hit {}", seen.protocol, if seen.is_tls { "https" } else { "http" });
        let format = "%{User-agent}i %m %U %H %s %{Varnish:hitmiss}x %{VSL:ReqStart[4]}x";
        eventually(&expected, || {
            let output = door.daemon.applet("ncsa", &["-d", "-F", format]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines: Vec<&str> =
                text.lines().filter(|line| line.starts_with(&format!("{name} GET /page "))).collect();
            assert!(lines.iter().all(|line| *line == expected), "expected {expected}: {lines:?}");
            (!lines.is_empty()).then_some(())
        });
    }
    assert_eq!(origin.count(), 1);
    let raw = door.daemon.applet("log", &["-d", "-g", "raw", "-i", "Hit,VCL_Error,Error"]);
    let raw = String::from_utf8_lossy(&raw.stdout).into_owned();
    assert!(!["VCL_Error", "Error "].iter().any(|tag| raw.contains(tag)), "{raw}");
    let objects: std::collections::BTreeSet<&str> =
        raw.lines().filter(|line| line.contains(" Hit ")).filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(objects.len(), usize::from(!visits.is_empty()), "{raw}");
}

fn curl(door: &Door, visits: &mut Visits) {
    let Some(program) = needs("curl") else { return };
    let (tls, clear) = (door.url("/page"), door.clear_url("/page"));
    let authority = door.authority.file();
    let resolve = format!("{}:{}:127.0.0.1", NAMES[0], door.port);
    for (name, flags, url, protocol) in [
        ("curl-clear", &["--http1.1"][..], &clear, "HTTP/1.1"),
        ("curl-1.0", &["--http1.0"], &clear, "HTTP/1.0"),
        ("curl-knows", &["--http2-prior-knowledge"], &clear, "HTTP/2.0"),
        ("curl-upgrades", &["--http2"], &clear, "HTTP/2.0"),
        ("curl-tls", &["--http1.1"], &tls, "HTTP/1.1"),
        ("curl-tls-1.2", &["--http1.1", "--tls-max", "1.2"], &tls, "HTTP/1.1"),
        ("curl-alpn", &["--http2"], &tls, "HTTP/2.0"),
        ("curl-alpn-1.2", &["--http2", "--tls-max", "1.2"], &tls, "HTTP/2.0"),
        ("curl-no-alpn", &["--no-alpn"], &tls, "HTTP/1.1"),
    ] {
        let mut command = Command::new(&program);
        command.args(["-sS", "--fail", "-A", name, "--resolve", &resolve, "--cacert"]).arg(&authority);
        assert_eq!(succeeds(command.args(flags).arg(url)), PAGE, "{name}");
        visited(visits, name, protocol, url == &tls);
    }
}

fn nghttp(door: &Door, visits: &mut Visits) {
    let Some(program) = needs("nghttp") else { return };
    let tls = format!("https://127.0.0.1:{}/page", door.port);
    for (name, flags, url) in [
        ("nghttp-tls", &[][..], &tls),
        ("nghttp-clear", &[], &door.clear_url("/page")),
        ("nghttp-upgrades", &["--upgrade"], &door.clear_url("/page")),
        // A window of one byte, and a block of headers with padding.
        ("nghttp-narrow", &["-w", "1", "-W", "1", "-b", "200"], &tls),
    ] {
        let mut command = Command::new(&program);
        command.args(["-t", &TEST_HANG_SECONDS.to_string(), "-H", &format!("user-agent: {name}")]).args(flags).arg(url);
        let text = succeeds(&mut command);
        assert!(text.contains(PAGE), "{name}: {text}");
        visited(visits, name, "HTTP/2.0", url == &tls);
    }
}

fn h2load(door: &Door, visits: &mut Visits) {
    let Some(program) = needs("h2load") else { return };
    let tls = format!("https://127.0.0.1:{}/page", door.port);
    for (name, flags, url, protocol) in [
        ("h2load-clear", &[][..], &door.clear_url("/page"), "HTTP/2.0"),
        ("h2load-tls", &[], &tls, "HTTP/2.0"),
        ("h2load-old", &["--h1"], &tls, "HTTP/1.1"),
    ] {
        let mut command = Command::new(&program);
        command.args(["-n", "400", "-c", "4", "-m", "10", "-H", &format!("user-agent: {name}")]).args(flags).arg(url);
        let text = succeeds(&mut command);
        assert!(text.contains("400 succeeded, 0 failed, 0 errored, 0 timeout"), "{name}: {text}");
        visited(visits, name, protocol, url == &tls);
    }
}

/// Handshakes of either version, a resumed session, and both certificates.
fn openssl(door: &Door, visits: &mut Visits) {
    let Some(program) = needs("openssl") else { return };
    let ticket = door.folder.path().join("ticket");
    let client = |version: &str, host: &str, more: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", &TEST_HANG_SECONDS.to_string()]).arg(&program);
        let connect = format!("127.0.0.1:{}", door.port);
        command.args(["s_client", "-connect", &connect, "-servername", host, version, "-ign_eof", "-CAfile"]);
        command.arg(door.authority.file()).args(["-verify_hostname", host, "-verify_return_error"]).args(more);
        let name = format!("openssl{version}");
        let request = format!("GET /page HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {name}\r\nConnection: close\r\n\r\n");
        let question = door.folder.path().join("question");
        std::fs::write(&question, request).unwrap();
        command.stdin(std::fs::File::open(&question).unwrap());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (name, text)
    };
    for version in ["-tls1_2", "-tls1_3"] {
        for host in NAMES {
            let (name, text) = client(version, host, &["-sess_out", ticket.to_str().unwrap()]);
            assert!(text.contains(PAGE) && text.contains(&format!("CN = {host}")), "{name}: {text}");
            let (_, again) = client(version, host, &["-sess_in", ticket.to_str().unwrap()]);
            assert!(again.contains("Reused, TLSv1") && again.contains(PAGE), "{name}: {again}");
            visited(visits, &name, "HTTP/1.1", true);
        }
    }
    // A client that sends an unknown name gets the last certificate, and may end the connection for
    // that.
    let (_, text) = client("-tls1_3", "c.example", &[]);
    assert!(text.contains("hostname mismatch") && !text.contains(PAGE), "{text}");
}

/// A browser with a flag to trust the key of the certificate.
fn chromium(door: &Door, visits: &mut Visits) {
    let (Some(program), Some(openssl)) = (needs("chromium"), needs("openssl")) else { return };
    let certificate = door.folder.path().join(format!("{}.crt", NAMES[0]));
    let hash = "\"$0\" x509 -in \"$1\" -pubkey -noout | \"$0\" pkey -pubin -outform der | \"$0\" dgst -sha256 -binary | \"$0\" base64";
    let key = succeeds(Command::new("sh").args(["-c", hash]).arg(openssl).arg(certificate));
    let place = format!("{}:{}", NAMES[0], door.port);
    let force = format!("--origin-to-force-quic-on={place}");
    for (name, flags, protocol, said) in [
        ("chromium-tcp", &["--disable-quic"][..], "HTTP/2.0", "h2"),
        ("chromium-quic", &["--enable-quic", &force], "HTTP/3.0", "h3"),
    ] {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(&program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]);
        command.args(["--disable-background-networking", "--no-proxy-server", "--virtual-time-budget=5000"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg(format!("--ignore-certificate-errors-spki-list={}", key.trim()));
        command.arg(format!("--host-resolver-rules=MAP {place} 127.0.0.1:{}", door.port));
        command.arg(format!("--user-agent={name}")).args(flags).args(["--dump-dom", &door.url("/page")]);
        let text = succeeds(&mut command);
        assert!(text.contains(&format!("</script>{said}</body>")), "{name}: {text}");
        visited(visits, name, protocol, true);
    }
}

/// aioquic, and handmade frames of HTTP/2.
fn python(door: &Door, visits: &mut Visits) {
    for (name, code, protocol) in
        [("python-h1", "h1", "HTTP/1.1"), ("python-h2", "h2", "HTTP/2.0"), ("python-h3", "h3", "HTTP/3.0")]
    {
        let request = protocols::Request::get("/page").with("user-agent", name);
        let Some(answers) = protocols::send(door, code, &[request]) else { return };
        assert!(answers[0].error.is_none() && answers[0].interim.is_empty(), "{name}: {:?}", answers[0]);
        assert_eq!(answers[0].header("content-type"), Some("text/html"), "{name}: {:?}", answers[0]);
        assert_eq!((answers[0].status, answers[0].body.as_str()), (200, PAGE), "{name}: {:?}", answers[0]);
        visited(visits, name, protocol, true);
    }
}

/// Go's own clients, and quic-go.
fn go(door: &Door, visits: &mut Visits) {
    let Some(built) = go_program("go", door.folder.path()) else { return };
    for (kind, protocol) in [("h1", "HTTP/1.1"), ("h2", "HTTP/2.0"), ("h2c", "HTTP/2.0"), ("h3", "HTTP/3.0")] {
        let name = format!("go-{kind}");
        let is_tls = kind != "h2c";
        let mut command = Command::new(&built);
        command.args([kind, &if is_tls { door.url("/page") } else { door.clear_url("/page") }, &name]);
        command.arg(format!("127.0.0.1:{}", if is_tls { door.port } else { door.daemon.port }));
        let text = succeeds(command.arg(door.authority.file()));
        assert!(text.ends_with(PAGE), "{name}: {text}");
        visited(visits, &name, protocol, is_tls);
    }
}
