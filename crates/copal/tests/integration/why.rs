//! `copal why`: what it says of requests that were made.

use crate::daemon::{Daemon, Origin, eventually, free_port, ok};

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

/// What is said of a URL or XID, once there is something.
fn why(daemon: &Daemon, words: &[&str]) -> String {
    eventually("the request is explained", || {
        let output = daemon.applet("why", words);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    })
}

#[test]
fn why_names_the_line_of_vcl_the_cookie_and_the_layer_that_failed() {
    let origin = Origin::start(page);
    let daemon = Daemon::with_vcl(&VCL.replace("@DEAD@", &free_port().to_string()), origin.port, &[]);
    let miss = daemon.get("/page");
    daemon.get("/page");
    daemon.get("/admin/x");
    daemon.request("GET /cookie HTTP/1.1\r\nHost: example.com\r\nCookie: a=b\r\nConnection: close\r\n\r\n");
    assert_eq!(daemon.get("/dead").status, 503);

    let both = eventually("both requests are in the log", || {
        let said = why(&daemon, &["/page"]);
        (said.matches("GET example.com/page").count() == 2).then_some(said)
    });
    assert!(both.contains(": miss, status 200") && both.contains("Nothing is stored for this URL"), "{both}");
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
    assert!(dead.contains("No connection to the backend.") && dead.contains("Connection refused"), "{dead}");
    assert!(dead.contains("next: "), "{dead}");

    // By the number that a client sees, and as JSON.
    let xid = miss.header("x-varnish").unwrap().to_owned();
    let said = why(&daemon, &["--json", &xid]);
    let start = said.find('{').unwrap();
    assert!(said[start..].contains("\"reason\":\"miss-absent\""), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    let nothing = daemon.applet("why", &["/never-asked-for"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no such request in the log"));
}
