//! `copal why`: its explanations of actual requests.

use crate::daemon::{CLOSED_PORT, Daemon, Origin, eventually, ok};

const VCL: &str = "vcl 4.1;
backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
backend dead { .host = \"127.0.0.1\"; .port = \"@DEAD@\"; }
sub vcl_recv {
    if (req.url ~ \"^/admin\") {
        return (pass);
    }
    if (req.url == \"/dead\") { set req.backend_hint = dead; }
}
sub vcl_backend_response {
    if (bereq.url == \"/private\") {
        set beresp.uncacheable = true;
    }
    if (bereq.url == \"/short\") {
        set beresp.ttl = 0s;
    }
}
";

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\n", "a page\n")
}

/// Output for a URL or XID, once there is some; without its line breaks, except for JSON.
fn why(daemon: &Daemon, words: &[&str]) -> String {
    let text = eventually("the request is explained", || {
        let output = daemon.applet("why", words);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    });
    if words.contains(&"--json") { text } else { text.split_whitespace().collect::<Vec<_>>().join(" ") }
}

#[test]
fn why_names_the_line_of_vcl_the_cookie_and_the_layer_that_failed() {
    let origin = Origin::start(page);
    let daemon = Daemon::with_vcl(&VCL.replace("@DEAD@", &CLOSED_PORT.to_string()), origin.port, &[]);
    let miss = daemon.get("/page");
    daemon.get("/page");
    daemon.get("/admin/x");
    daemon.request("GET /cookie HTTP/1.1\r\nHost: example.com\r\nCookie: a=b\r\nConnection: close\r\n\r\n");
    assert_eq!(daemon.get("/dead").status, 503);

    let both = eventually("both requests are in the log", || {
        let said = why(&daemon, &["/page"]);
        (said.matches("GET example.com/page").count() == 2).then_some(said)
    });
    assert!(
        both.contains(": miss, status 200") && both.contains("Not in the cache (removal history reaches back "),
        "{both}"
    );
    assert!(both.contains(": hit, status 200") && both.contains("A fresh copy was in the cache."), "{both}");
    assert!(both.contains("The response was stored.") && both.contains("max-age=600"), "{both}");

    let pass = why(&daemon, &["http://example.com/admin/*"]);
    assert!(pass.contains("test.vcl:6, in vcl_recv"), "{pass}");
    let cookie = why(&daemon, &["/cookie"]);
    assert!(cookie.contains("because the request has a Cookie header"), "{cookie}");

    daemon.get("/private");
    let private = why(&daemon, &["/private"]);
    assert!(private.contains("test.vcl:12, in vcl_backend_response"), "{private}");
    daemon.get("/short");
    let short = why(&daemon, &["/short"]);
    assert!(short.contains("because the response has no time to live"), "{short}");
    assert!(short.contains("its TTL was set at ") && short.contains("test.vcl:15"), "{short}");

    let dead = why(&daemon, &["/dead"]);
    assert!(dead.contains("refused the connection") && dead.contains("Connection refused"), "{dead}");
    assert!(dead.contains("next: "), "{dead}");

    // By the number in the client's X-Varnish, and as JSON.
    let xid = miss.header("x-varnish").unwrap().to_owned();
    let said = why(&daemon, &["--json", &xid]);
    let start = said.find('{').unwrap();
    assert!(said[start..].contains("\"reason\":\"miss-absent\""), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    let nothing = daemon.applet("why", &["/never-asked-for"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no such request in the log"));
}

#[test]
fn why_names_cookies_bans_ways_out_and_who_made_the_answer() {
    let origin = Origin::start(|head| {
        if head.starts_with("GET /broken") {
            return b"HTTP/1.1 503 Too busy here\r\nContent-Length: 0\r\nSet-Cookie: id=hidden; Path=/\r\n\r\n"
                .to_vec();
        }
        if head.starts_with("GET /shared") {
            return ok("Cache-Control: max-age=600\r\nSet-Cookie: id=hidden\r\n", "a page\n");
        }
        page(head)
    });
    let vcl = "vcl 4.1;
backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
sub vcl_recv {
    if (req.method == \"PURGE\") {
        return (purge);
    }
    if (req.http.Cookie ~ \"session\") {
        return (pass);
    }
}
sub vcl_backend_response {
    if (bereq.url == \"/shared\") {
        return (deliver);
    }
}
";
    let daemon = Daemon::with_vcl(vcl, origin.port, &["-p", "http_req_hdr_len=512", "-p", "http_req_size=8k"]);
    let ask = |request: &str| daemon.request(&format!("{request}\r\nConnection: close\r\n\r\n"));
    let said = |words: &[&str], text: &str| {
        let found = eventually(&format!("{text:?} is said of {words:?}"), || {
            let said = why(&daemon, words);
            said.contains(text).then_some(said)
        });
        assert!(!found.contains("hidden"), "a cookie's value is told: {found}");
        found
    };

    ask("GET /cookies HTTP/1.1\r\nHost: example.com\r\nCookie: _ga=hidden; id=hidden");
    let cookies = said(&["/cookies"], "its cookies: _ga, id");
    assert!(cookies.contains("(_ga)=[^;]*") && cookies.contains("it leaves id: "), "{cookies}");
    ask("GET /session HTTP/1.1\r\nHost: example.com\r\nCookie: session=hidden");
    let session = said(&["/session"], "its cookies: session");
    assert!(session.contains("may be a session") && !session.contains("regsuball"), "{session}");

    daemon.get("/purged");
    ask("PURGE /purged HTTP/1.1\r\nHost: example.com");
    daemon.get("/purged");
    said(&["GET", "example.com/purged"], "The last copy was purged, ");
    daemon.get("/banned");
    assert!(daemon.cli(&["ban", "req.url", "~", "^/banned"]).0);
    daemon.get("/banned");
    said(&["/banned"], "the ban: req.url ~ ^/banned, added 2");

    ask("GET /broken HTTP/1.1\r\nHost: example.com");
    said(&["/broken"], "The status 503 is the origin's own: the answer was not made here.");
    said(&["/broken"], "the origin sets cookies: id");

    let long = "x".repeat(600);
    ask(&format!("GET /long HTTP/1.1\r\nHost: example.com\r\nX: {long}"));
    said(&["*"], "it broke the parameter http_req_hdr_len, which is 512");
    let many = format!("X: {}\r\n", "x".repeat(400)).repeat(30);
    crate::daemon::exchange(daemon.port, format!("GET /large HTTP/1.1\r\nHost: a\r\n{many}\r\n").as_bytes());
    said(&["/large"], "it broke the parameter http_req_size, which is 8192");

    ask("GET /shared HTTP/1.1\r\nHost: example.com");
    ask("GET /shared HTTP/1.1\r\nHost: example.com");
    said(&["/shared"], "warning: It was stored with Set-Cookie (id): every client gets that cookie.");
    said(&["/shared"], "warning: The copy has Set-Cookie (id): every client gets that cookie.");

    // Almost the same address; and the daemon's listening address instead of a host.
    daemon.get("/near?a=1&b=2");
    ask("GET /near?a=1&b=2 HTTP/1.1\r\nHost: www.example.com");
    ask("GET /near?b=2&a=1 HTTP/1.1\r\nHost: example.com");
    said(&["http://www.example.com/near*"], "near miss, by the log: the same URL of host example.com was in the cache");
    said(&["http://example.com/near?b=2&a=1"], "only the order differs");
    said(&[&format!("http://127.0.0.1:{}/near?b=2&a=1", daemon.port)], "only the order differs");
}

#[test]
fn why_and_its_json_command_no_terminal() {
    let origin = Origin::start(page);
    let daemon = Daemon::with_vcl(&VCL.replace("@DEAD@", "1"), origin.port, &[]);
    let hostile = b"GET /\xc2\x9b31m\xe2\x80\xae\x9b HTTP/1.1\r\nHost: \xc2\x9b2J\x85\r\nCookie: \xc2\x9bname=x\r\nConnection: close\r\n\r\n";
    crate::daemon::exchange(daemon.port, hostile);
    crate::daemon::exchange(daemon.port, b"GET /\x1b]0;owned\x07 HTTP/1.1\r\nHost: a\r\n\r\n");
    let commands = |text: &str| text.contains(|letter: char| letter != '\n' && surface::legible::is_commanding(letter));
    for (applet, words) in [
        ("why", &["*"][..]),
        ("why", &["--json"]),
        ("log", &["-d"]),
        ("log", &["-d", "--json"]),
        ("ncsa", &["-d"]),
        ("ncsa", &["-d", "--json"]),
        ("top", &["-1"]),
    ] {
        let text = eventually("both requests are shown", || {
            let output = daemon.applet(applet, words);
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            (text.contains("owned") || text.contains("31m")).then_some(text)
        });
        assert!(!commands(&text), "{applet} {words:?}: {text:?}");
    }
    // The daemon's own output, and a test script's report.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evil.vcl");
    std::fs::write(&file, "vcl 4.1;\nbackend \x1b]0;owned\x07\u{9b}31m none;\n").unwrap();
    let output = std::process::Command::new(crate::daemon::copal())
        .args(["daemon", "-C", "-n"])
        .arg(folder.path().join("run"))
        .arg("-f")
        .arg(&file)
        .output()
        .unwrap();
    let script = folder.path().join("evil.vtc");
    std::fs::write(
        &script,
        "varnishtest \"\x1b]0;owned\x07\u{9b}31m\"\nshell {echo '\x1b]0;owned\x07'}\nnonsense\u{9b}31m\n",
    )
    .unwrap();
    let report = std::process::Command::new(crate::daemon::copal()).args(["test", "-v"]).arg(&script).output().unwrap();
    for output in [output, report] {
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("owned") && !commands(&text), "{text:?}");
    }
}

#[test]
fn stock_programs_find_the_notices_they_found_before_and_the_reasons_by_their_tag() {
    let Some(varnishlog) = crate::daemon::needs("varnishlog") else { return };
    let origin = Origin::start(page);
    let daemon = Daemon::with_vcl(&VCL.replace("@DEAD@", "1"), origin.port, &[]);
    daemon.get("/page");
    daemon.get("/admin/x");
    why(&daemon, &["/admin/x"]);
    let stock = |words: &[&str]| {
        let output =
            std::process::Command::new(&varnishlog).args(["-n", &daemon.run(), "-d"]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(stock(&["-q", "Notice"]), "");
    let reasons = stock(&["-i", "Witness"]);
    assert!(reasons.contains("Witness        why miss-absent") && reasons.contains("why pass at="), "{reasons}");
    assert!(!stock(&[]).contains("(null)"));
}

#[test]
fn a_fragment_is_explained_as_a_request_of_its_own() {
    let origin = Origin::start(|request| match request.contains("/corner") {
        true => ok("Cache-Control: private\r\n", "me"),
        false => ok("Cache-Control: max-age=600\r\n", "<p><esi:include src=\"/corner\"/></p>"),
    });
    let vcl = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
        sub vcl_recv { if (req.url == \"/corner\") { return (pass); } }
        sub vcl_backend_response { if (bereq.url == \"/desk\") { set beresp.do_esi = true; } }";
    let daemon = Daemon::with_vcl(vcl, origin.port, &[]);
    for _ in 0..2 {
        assert_eq!(daemon.get("/desk").text(), "<p>me</p>");
    }
    let page = why(&daemon, &["/desk"]);
    assert!(page.contains("/desk: hit") && page.contains("/desk: miss") && !page.contains("corner"), "{page}");
    let corner = why(&daemon, &["/corner"]);
    assert!(corner.contains("/corner: pass") && corner.contains("a fragment of the page with XID"), "{corner}");
    assert!(!corner.contains("asked for as") && !corner.contains("TTL"), "{corner}");
}
