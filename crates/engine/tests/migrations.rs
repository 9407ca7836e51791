//! Old VCL and the result of `copal vcl migrate` have the same effect: both are run with the same
//! requests in the same order, and clients and origins see the same.
//!
//! Intended differences are left out of the comparison: `Date` and `X-Varnish`, the text of `Via`,
//! several addresses in one X-Forwarded-For or in two, and the encodings requested from an origin
//! before 3.0.

mod directors;
mod stories;

use crate::support::{OriginRequest, Response, World, run_with, serve_each};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

/// A backend of 2.0 to 3.0.
const BACKEND: &str = "backend default { .host = \"10.0.0.1\"; .port = \"80\"; }\n";

/// A request, and seconds to wait before it.
type Asked = (u64, &'static str, &'static str, &'static str);

/// The requests for most texts. Ages and misses, private responses, failures, methods of all kinds.
const REQUESTS: &[Asked] = &[
    (0, "GET", "/plain", ""),
    (0, "GET", "/plain", ""),
    (1, "HEAD", "/plain", ""),
    (0, "GET", "/plain", "Cookie: a=b\r\n"),
    (0, "GET", "/plain", "Authorization: x\r\n"),
    (0, "GET", "/plain?2", "X-Forwarded-For: 198.51.100.1\r\n"),
    (0, "POST", "/plain", "Content-Length: 0\r\n"),
    (0, "GET", "/cookie", ""),
    (0, "GET", "/cookie", ""),
    (0, "GET", "/private", ""),
    (0, "GET", "/private", ""),
    (0, "GET", "/vary", "X-Kind: a\r\n"),
    (0, "GET", "/vary", "X-Kind: b\r\n"),
    (0, "GET", "/vary", "X-Kind: a\r\n"),
    (0, "GET", "/vary-all", ""),
    (0, "GET", "/vary-all", ""),
    (0, "GET", "/gone", ""),
    (0, "GET", "/gone", ""),
    (0, "GET", "/oops", ""),
    (0, "GET", "/oops", ""),
    (0, "GET", "/moved", ""),
    (0, "GET", "/moved", ""),
    (0, "GET", "/see-other", ""),
    (0, "GET", "/see-other", ""),
    (0, "GET", "/empty", ""),
    (0, "GET", "/empty", ""),
    (0, "GET", "/aged", ""),
    (30, "GET", "/aged", ""),
    (60, "GET", "/aged", ""),
    (0, "GET", "/short", ""),
    (4, "GET", "/short", ""),
    (3, "GET", "/short", ""),
    (0, "GET", "/zero", ""),
    (0, "GET", "/zero", ""),
    (0, "GET", "/stale", ""),
    (7, "GET", "/stale", ""),
    (0, "GET", "/broken", ""),
    (0, "GET", "/broken", ""),
    (0, "GET", "/secret", ""),
    (0, "PURGE", "/plain", ""),
    (0, "GET", "/plain", ""),
    (0, "PURGE", "/nothing", ""),
    (0, "BAN", "/cookie", ""),
    (0, "GET", "/cookie", ""),
    (130, "GET", "/plain", ""),
    (0, "GET", "/cookie", ""),
    (0, "PATCH", "/plain", "Content-Length: 0\r\n"),
    (0, "GET", "/piped", "Expect: nothing\r\n"),
];

/// The page of a target; its body contains the number of requests for it.
fn answer(request: &OriginRequest, count: usize) -> Vec<u8> {
    let target = request.target().split('?').next().unwrap_or("");
    let (status, headers) = match target {
        "/cookie" => ("200 OK", "Set-Cookie: a=b\r\n"),
        "/private" => ("200 OK", "Cache-Control: private\r\n"),
        "/vary" => ("200 OK", "Vary: X-Kind\r\n"),
        "/vary-all" => ("200 OK", "Vary: *\r\n"),
        "/gone" => ("404 Not Found", ""),
        "/oops" => ("500 Oops", ""),
        "/moved" => ("302 Found", "Location: /plain\r\n"),
        "/see-other" => ("303 See Other", "Location: /plain\r\n"),
        "/empty" => ("204 No Content", ""),
        "/aged" => ("200 OK", "Age: 50\r\n"),
        "/short" => ("200 OK", "Cache-Control: max-age=5\r\n"),
        "/zero" => ("200 OK", "Cache-Control: max-age=0\r\n"),
        "/stale" => ("200 OK", "Cache-Control: max-age=5, stale-while-revalidate=3600\r\n"),
        "/flaky" if count == 2 => ("500 Oops", ""),
        "/flaky" => ("200 OK", "Cache-Control: max-age=5\r\n"),
        "/broken" => return b"nonsense\r\n\r\n".to_vec(),
        _ => ("200 OK", "X-Powered-By: tests\r\nServer: origin\r\n"),
    };
    if status.starts_with("204") {
        return format!("HTTP/1.1 {status}\r\n{headers}\r\n").into_bytes();
    }
    let body = if request.line().starts_with("HEAD") { String::new() } else { format!("{target} {count}") };
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The lines of a head that are compared, in order.
fn lines(head: &str) -> Vec<String> {
    let mut lines: Vec<String> = head.lines().skip(1).map(str::to_ascii_lowercase).collect();
    const APART: &[&str] = &["date:", "x-varnish:"];
    lines.retain(|line| !line.is_empty() && !APART.iter().any(|name| line.starts_with(name)));
    for line in &mut lines {
        if line.starts_with("via:") {
            *line = "via: it".to_owned();
        }
    }
    let forwarded: Vec<String> =
        lines.iter().filter_map(|line| line.strip_prefix("x-forwarded-for: ").map(str::to_owned)).collect();
    lines.retain(|line| !line.starts_with("x-forwarded-for:"));
    if !forwarded.is_empty() {
        lines.push(format!("x-forwarded-for: {}", forwarded.join(", ")));
    }
    lines.sort();
    lines
}

fn shown(response: &Response) -> String {
    let first = response.head.lines().next().unwrap_or("");
    // The page of an error shows the number of its request.
    let body: Vec<String> = response
        .text()
        .lines()
        .map(|line| if line.contains("XID") { "XID".to_owned() } else { line.to_owned() })
        .collect();
    format!("{first} | {} | {}", lines(&response.head).join(" ; "), body.join("\n"))
}

/// The result, request by request: the client's response, and the requests to the origin.
fn story_of(vcl: &str, requests: &[Asked], asks_for_encodings: bool) -> Vec<String> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let result = Rc::clone(&told);
    run_with(
        |_| {},
        vcl,
        |world: Rc<World>| async move {
            let origin_told = Rc::clone(&told);
            let counts: Rc<RefCell<BTreeMap<String, usize>>> = Rc::default();
            world.origin(serve_each(move |request: &OriginRequest| {
                let mut counts = counts.borrow_mut();
                let count = counts.entry(request.target().to_owned()).or_default();
                *count += 1;
                let mut head = lines(&request.head);
                head.retain(|line| asks_for_encodings || !line.starts_with("accept-encoding:"));
                origin_told.borrow_mut().push(format!("  origin: {} | {}", request.line(), head.join(" ; ")));
                answer(request, *count)
            }));
            for (wait, method, target, headers) in requests {
                sleep(Duration::from_secs(*wait)).await;
                let mut client = world.client();
                client.send(format!("{method} {target} HTTP/1.1\r\nHost: example.com\r\n{headers}\r\n")).await;
                let response =
                    if *method == "HEAD" { client.response_to_head().await } else { client.response().await };
                told.borrow_mut().push(format!("{method} {target} {headers:?}: {}", shown(&response)));
                // Background work of the engine is done before the next request.
                sleep(Duration::from_millis(10)).await;
            }
        },
    );
    result.take()
}

/// The migrated text, and the generation of the old one.
#[track_caller]
fn migrated(text: &str) -> (surface::vcl::Generation, String) {
    let storages = ["s0".to_owned(), "Transient".to_owned()];
    let options = vcl::CompileOptions { storages: &storages, ..Default::default() };
    let source = vcl::SourceText { name: "old.vcl", text: text.as_bytes() };
    let migrated = vcl::migrate(&source, &options).unwrap_or_else(|error| panic!("{error}"));
    let new = String::from_utf8(migrated.text).unwrap();
    assert!(migrated.problem.is_none(), "{}\n{new}", migrated.problem.unwrap().text);
    (migrated.generation, new)
}

#[track_caller]
fn check_requests(text: &str, requests: &[Asked]) {
    let (generation, new) = migrated(text);
    let asks_for_encodings = generation == surface::vcl::Generation::V3;
    let was = story_of(text, requests, asks_for_encodings);
    let is = story_of(&new, requests, asks_for_encodings);
    for (number, (was, is)) in was.iter().zip(&is).enumerate() {
        assert_eq!(was, is, "event {number}\n{new}");
    }
    assert_eq!(was.len(), is.len());
}

#[track_caller]
fn check(text: &str) {
    check_requests(&format!("{BACKEND}{text}"), REQUESTS);
}

#[test]
fn a_vcl_that_decides_nothing_is_that_of_its_time() {
    check(
        "sub vcl_recv { if (req.request == \"X\") { error 400; } } sub vcl_fetch { set beresp.http.X-A = \"3.0\" + \"\"; }",
    );
    check("sub vcl_fetch { if (beresp.cacheable) { set beresp.http.X-A = \"2\" \".1\"; } }");
    check("sub vcl_fetch { if (obj.cacheable) { set obj.http.X-A = \"2\" \".0\"; } deliver; }");
}

#[test]
fn a_vcl_of_1_x() {
    let backend = "backend default { set backend.host = \"10.0.0.1\"; set backend.port = \"80\"; }\n";
    let text = r#"
sub vcl_recv {
    if (req.request == "POST") { pass; }
    if (req.request == "GET" && req.http.cookie) { lookup; }
    if (req.url == "/secret") { error 403 "Secret"; }
}
sub vcl_fetch {
    if (obj.ttl < 180s) { set obj.ttl = 180s; }
    if (!obj.cacheable) { pass; }
    insert;
}
sub vcl_deliver { set resp.http.X-Was = "delivered"; deliver; }
"#;
    check_requests(&format!("{backend}{text}"), REQUESTS);
}

#[test]
fn a_vcl_of_2_0() {
    check(
        r#"
acl inside { "192.0.2.0"/24; }
sub vcl_recv {
    if (req.request == "PURGE") { if (!client.ip ~ inside) { error 405 "No"; } lookup; }
    if (req.url ~ "%73ecret") { error 700 "/elsewhere"; }
    if (req.url ~ "COOKIE" || req.http.Cookie) { set req.http.X-Case = "any"; lookup; }
}
sub vcl_hash { set req.hash += req.url; set req.hash += req.http.X-Case; hash; }
sub vcl_hit { if (req.request == "PURGE") { set obj.ttl = 0s; error 200 "Purged."; } }
sub vcl_miss { if (req.request == "PURGE") { error 404 "Not in cache."; } }
sub vcl_fetch {
    if (obj.status == 404) { set obj.ttl = 5s; set obj.grace = 0s; }
    if (obj.http.Set-Cookie) { remove obj.http.Set-Cookie; deliver; }
    if (!obj.cacheable) { pass; }
    set obj.http.X-From = "2" ".0";
}
sub vcl_error {
    if (obj.status == 700) { set obj.http.Location = "http://example.com" obj.response; set obj.status = 302; deliver; }
}
sub vcl_deliver { if (obj.hits > 0) { set resp.http.X-Cache = "HIT"; } else { set resp.http.X-Cache = "MISS"; } }
"#,
    );
}

#[test]
fn a_vcl_of_2_1() {
    check(
        r#"
sub vcl_recv {
    set req.grace = 30s;
    if (req.request == "BAN") { purge("req.url == " req.url); error 200 "Banned"; }
    if (req.request == "PURGE") { purge_url(req.url); error 200 "Purged"; }
    if (req.url ~ "piped") { return (pipe); }
    unset req.http.Cookie;
}
sub vcl_hash { set req.hash += req.url; return (hash); }
sub vcl_fetch {
    set beresp.grace = 30m;
    if (beresp.status >= 500 && req.restarts == 0) { restart; }
    if (!beresp.cacheable) { return (pass); }
    log "fetched " req.url;
    set beresp.http.X-Url = req.url;
    return (deliver);
}
sub vcl_deliver { set resp.http.X-Restarts = req.restarts; }
"#,
    );
}

#[test]
fn a_vcl_of_3_0_with_everything() {
    check(
        r#"
import std;
acl inside { "192.0.2.0"/24; }
sub normalise { if (req.url ~ "\?") { set req.url = regsub(req.url, "\?.*$", ""); } set req.http.X-Path = "p" + req.url; }
sub vcl_recv {
    if (req.restarts == 0 && req.http.X-Forwarded-For) { set req.http.X-First = req.http.X-Forwarded-For; }
    call normalise;
    set req.grace = 1h;
    if (req.request == "PURGE" || req.request == "BAN") {
        if (client.ip !~ inside) { error 405 "Not allowed."; }
        if (req.request == "BAN") { ban("req.url == " + req.url); error 200 "Banned"; }
        return (lookup);
    }
    if (req.url == "/secret") { error 750 "/login"; }
    if (req.url ~ "^/pip") { return (pipe); }
    if (client.ip == "192.0.2.99") { error 403; }
}
sub vcl_pass { set bereq.http.X-Passed = "yes"; }
sub vcl_miss {
    if (req.request == "PURGE") { purge; error 404 "Not in cache."; }
    set bereq.http.X-Missed = "yes";
    set bereq.first_byte_timeout = 10s;
    set req.http.X-Late = "late";
}
sub vcl_hit { if (req.request == "PURGE") { purge; error 200 "Purged."; } }
sub vcl_fetch {
    call normalise;
    if (beresp.status == 500 && req.restarts < 2) { set req.http.X-Tried = req.http.X-Tried + "t"; return (restart); }
    if (beresp.status == 404) { error 404 "Gone: " + req.url; }
    if (req.request == "POST" || beresp.http.Vary == "*") { return (hit_for_pass); }
    set req.http.X-Status = beresp.status;
    if (beresp.status == 303) { set beresp.status = 302; set beresp.ttl = 10; }
    if (req.url == "/cookie") { unset beresp.http.Set-Cookie; set beresp.ttl = 1m; return (deliver); }
    unset beresp.http.Server;
}
sub vcl_deliver {
    if (obj.hits > 0) { set resp.http.X-Cache = "HIT " + obj.hits; } else { set resp.http.X-Cache = "MISS"; }
    set resp.http.X-Seen = "" + req.http.X-Status + req.http.X-Tried + req.http.X-Late;
    remove resp.http.X-Powered-By;
    if (req.http.X-First) { set resp.http.X-First = req.http.X-First; }
}
sub vcl_error {
    if (obj.status == 750) {
        set obj.http.Location = "http://" + req.http.host + obj.response;
        set obj.status = 302;
        return (deliver);
    }
    if (obj.status == 503 && req.restarts < 1) { return (restart); }
    set obj.http.Content-Type = "text/plain; charset=utf-8";
    synthetic "error " + obj.status + " " + obj.response + {"
"};
    return (deliver);
}
"#,
    );
}

#[test]
fn saint_mode_serves_what_is_stale_and_asks_no_more() {
    check_requests(
        &format!(
            "{BACKEND}sub vcl_fetch {{
                if (beresp.status == 500) {{ set beresp.saintmode = 20s; return (restart); }}
                set beresp.grace = 1h;
            }}\n"
        ),
        &[
            (0, "GET", "/flaky", ""),
            (6, "GET", "/flaky", ""),
            (1, "GET", "/flaky", ""),
            (0, "GET", "/plain", ""),
            (30, "GET", "/flaky", ""),
            (0, "GET", "/flaky", ""),
        ],
    );
}

#[test]
fn endless_restarts_from_vcl_fetch_end() {
    check_requests(
        &format!(
            "{BACKEND}sub vcl_fetch {{ return (restart); }}\nsub vcl_error {{ synthetic \"no\"; return (deliver); }}\n"
        ),
        &[(0, "GET", "/plain", ""), (0, "GET", "/broken", ""), (0, "POST", "/plain", "Content-Length: 0\r\n")],
    );
}
