//! Values that VCL derives from a client's bytes stay within their line: a CR, LF or NUL in a start
//! line or a header fails the task, and exactly one request is sent to an origin.

use crate::support::{OriginRequest, World, run, serve_each};
use std::cell::RefCell;
use std::rc::Rc;

/// The client's bytes, percent-decoded, which cannot be stored in `req.http.Raw`: each statement
/// reads them where it sets something.
const RAW: &str = r#"blob.transcode(decoding = URL, encoded = regsub(req.http.Q, "^", ""))"#;

/// The same on the origin's side.
const RAW_BEREQ: &str = r#"blob.transcode(decoding = URL, encoded = regsub(bereq.http.Q, "^", ""))"#;

/// Requests that reached the origin, each as received.
type Asked = Rc<RefCell<Vec<String>>>;

fn origin(world: &World) -> Asked {
    let asked = Asked::default();
    let noted = Rc::clone(&asked);
    world.origin(serve_each(move |request: &OriginRequest| {
        noted.borrow_mut().push(request.head.clone());
        b"HTTP/1.1 200 OK\r\nA: 1\r\nA: 2\r\nContent-Length: 0\r\n\r\n".to_vec()
    }));
    asked
}

/// Runs a statement with each of the bytes; the request fails, nothing of them is sent to either
/// side, and the log contains the reason.
#[track_caller]
fn refuses(vcl: &str, what: &str, status: u16) {
    let vcl = vcl.to_owned();
    let what = what.to_owned();
    run(async |world| {
        world.load("test", &vcl);
        let asked = origin(&world);
        for byte in ["%0d%0a", "%0a", "%0d"] {
            let text = format!("GET{byte}Injected:%201{byte}");
            let mut client = world.client();
            let response = client.get("/", &format!("Q: {text}\r\n")).await;
            assert_eq!(response.status(), status, "{what} {byte}\n{}\n{}", response.head, world.story());
            let lines = response.head.split(['\r', '\n', '\0']);
            assert!(lines.clone().all(|line| !line.starts_with("Injected")), "{what}: {}", response.head);
            assert!(!response.head.contains('\0'));
            for head in asked.borrow_mut().drain(..) {
                assert!(
                    head.lines().all(|line| !line.contains("Injected") || line.starts_with("Q: ")),
                    "{what}: {head}"
                );
            }
        }
        world.expect_log(&format!("VCL_Error Bad {what}: "));
    });
}

fn in_sub(sub: &str, statement: &str) -> String {
    let statement = statement.replace("RAW_BEREQ", RAW_BEREQ).replace("RAW", RAW);
    // A protocol can be set only there.
    let of_40 = "vcl 4.0; backend default { .host = \"10.0.0.1\"; .port = \"80\"; } ";
    let version = if statement.contains(".proto") { of_40 } else { "" };
    format!("{version}import blob; import std; import header; sub {sub} {{ {statement} }}")
}

#[test]
fn start_lines_on_the_clients_side() {
    for (sub, statement, what) in [
        ("vcl_recv", "set req.url = RAW;", "req.url"),
        ("vcl_recv", "set req.method = RAW;", "req.method"),
        ("vcl_recv", "set req.proto = RAW;", "req.proto"),
        ("vcl_recv", "return (synth(200, RAW));", "reason"),
        ("vcl_deliver", "set resp.reason = RAW;", "resp.reason"),
        ("vcl_deliver", "set resp.proto = RAW;", "resp.proto"),
        ("vcl_deliver", "return (synth(200, RAW));", "reason"),
        ("vcl_recv", "set req.http.X = RAW;", "header X"),
        ("vcl_deliver", "std.collect(resp.http.A, RAW);", "separator"),
        ("vcl_deliver", "header.append(resp.http.A, RAW);", "header A"),
        (
            "vcl_deliver",
            "header.copy(header.dyn(req, \"Q\"), resp.http.B); header.regsub(resp, \"^B: .*\", \"B: \" + RAW);",
            "header B",
        ),
        ("vcl_deliver", "header.regsub(resp, \"^A: \", RAW + \": \", true);", "header name"),
    ] {
        refuses(&in_sub(sub, statement), what, 503);
    }
}

#[test]
fn start_lines_on_the_origins_side() {
    for (sub, statement, what) in [
        ("vcl_backend_fetch", "set bereq.url = RAW_BEREQ;", "bereq.url"),
        ("vcl_backend_fetch", "set bereq.method = RAW_BEREQ;", "bereq.method"),
        ("vcl_backend_fetch", "set bereq.proto = RAW_BEREQ;", "bereq.proto"),
        ("vcl_backend_fetch", "return (error(200, RAW_BEREQ));", "reason"),
        ("vcl_backend_response", "set beresp.reason = RAW_BEREQ;", "beresp.reason"),
        ("vcl_backend_response", "set beresp.proto = RAW_BEREQ;", "beresp.proto"),
        ("vcl_backend_response", "return (error(200, RAW_BEREQ));", "reason"),
        ("vcl_backend_response", "std.collect(beresp.http.A, RAW_BEREQ);", "separator"),
        ("vcl_backend_response", "set bereq.url = RAW_BEREQ;", "bereq.url"),
    ] {
        refuses(&in_sub(sub, statement), what, 503);
    }
    let made = "sub vcl_backend_fetch { return (error(500)); }";
    refuses(&(in_sub("vcl_backend_error", "set beresp.reason = RAW_BEREQ;") + made), "beresp.reason", 503);
    let piped = "sub vcl_recv { return (pipe); }";
    for (statement, what) in
        [("set bereq.url = RAW_BEREQ;", "bereq.url"), ("set bereq.method = RAW_BEREQ;", "bereq.method")]
    {
        refuses(&(in_sub("vcl_pipe", statement) + piped), what, 503);
    }
}

#[test]
fn a_reason_that_vcl_synth_sets() {
    let synth = in_sub("vcl_synth", "set resp.reason = RAW;");
    run(async |world| {
        world.load("test", &(synth + "sub vcl_recv { return (synth(200)); }"));
        let response = world.client().get("/", "Q: a%0d%0aInjected:%201\r\n").await;
        assert_eq!(response.status(), 500, "{}", response.head);
        assert!(!response.head.contains("Injected"), "{}", response.head);
        world.expect_log("VCL_Error Bad resp.reason: ");
    });
}

#[test]
fn the_old_dialects() {
    let backend = "backend default { .host = \"10.0.0.1\"; .port = \"80\"; } import blob; import header; import std;\n";
    for (sub, statement, what) in [
        ("vcl_recv", "set req.url = RAW;", "req.url"),
        ("vcl_recv", "set req.request = RAW;", "req.method"),
        ("vcl_recv", "error 700 RAW;", "reason"),
        ("vcl_miss", "set bereq.url = RAW;", "bereq.url"),
        ("vcl_pass", "set bereq.request = RAW;", "bereq.method"),
        ("vcl_fetch", "set beresp.response = RAW;", "beresp.reason"),
        ("vcl_fetch", "set req.url = RAW;", "req.url"),
        ("vcl_fetch", "error 700 RAW;", "reason"),
        ("vcl_deliver", "set resp.response = RAW;", "resp.reason"),
    ] {
        let pass = if sub == "vcl_pass" { "sub vcl_recv { return (pass); }" } else { "" };
        // There vcl_deliver is run for the error, too.
        let status = if sub == "vcl_deliver" { 500 } else { 503 };
        refuses(&format!("{backend}{pass} sub {sub} {{ {} }}", statement.replace("RAW", RAW)), what, status);
    }
}

#[test]
fn blanks_that_vcl_makes_do_not_cut_a_request_line() {
    run(async |world| {
        world.load(
            "test",
            &in_sub(
                "vcl_recv",
                "set req.url = RAW; set req.http.Seen = req.url; if (req.url ~ \"pipe\") { return (pipe); }",
            ),
        );
        let asked = origin(&world);
        for (text, line) in [
            ("/a%20HTTP/1.1", "GET /a%20HTTP/1.1 HTTP/1.1"),
            ("/b%09c%20", "GET /b%09c%20 HTTP/1.1"),
            ("/pipe%20x", "GET /pipe%20x HTTP/1.1"),
            ("/d%c3%a4", "GET /d\u{e4} HTTP/1.1"),
        ] {
            world.client().get("/", &format!("Q: {text}\r\n")).await;
            let head = asked.borrow_mut().pop().unwrap();
            let first = head.lines().next().unwrap();
            assert!(first == line || !line.is_ascii() && first.starts_with("GET /d"), "{first}");
        }
        world.expect_log("ReqHeader Seen: /a HTTP/1.1");
        for statement in ["set req.method = \"GET /x HTTP/1.1\";", "set req.proto = \"x HTTP/1.1\";"] {
            world.load("blank", &in_sub("vcl_recv", statement));
            assert_eq!(world.client().get("/", "").await.status(), 503);
        }
        assert!(asked.borrow().is_empty());
    });
}

#[test]
fn a_host_that_is_looked_up() {
    let vcl = format!(
        "import dynamic; import blob; sub vcl_init {{ new d = directors.director(); }} sub vcl_recv {{ set req.backend_hint = d.backend({RAW}); }}"
    )
    .replace("directors.director", "dynamic.director");
    run(async |world| {
        world.load("test", &vcl);
        assert_eq!(world.client().get("/", "Q: a%0d%0aInjected:%201\r\n").await.status(), 503);
        world.expect_log("VCL_Error Bad host for dynamic: ");
    });
}
