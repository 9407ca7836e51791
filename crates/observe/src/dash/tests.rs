//! Tests: a dashboard on loopback, with an operator that writes down its orders.

use super::*;
use crate::listener::Listener;
use crate::server;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;
use surface::limits::{DASH_LOGINS_A_MINUTE, DASH_STREAMS_MAX, TEST_HANG_SECONDS};
use surface::operation::{Operation, Order};

const HANG: Duration = Duration::from_secs(TEST_HANG_SECONDS);
const TOKEN: &str = "0123456789abcdef";

/// Takes one token, and answers everything else with success.
struct Noted(Arc<Mutex<Vec<Order>>>);

impl Operator for Noted {
    fn execute(&mut self, order: &Order) -> (u16, String) {
        self.0.lock().unwrap().push(order.clone());
        match &order.operation {
            Operation::Login(token) if token == TOKEN => (200, String::new()),
            Operation::Login(_) => (300, String::new()),
            Operation::Recall(id) if *id == "a".repeat(64) => (200, "operate token 60 cli".to_owned()),
            Operation::Recall(id) if *id == "b".repeat(64) => (200, "operate token 60 anna".to_owned()),
            Operation::Recall(_) => (300, String::new()),
            Operation::Count(_) => (200, "[ 2, [\"tag.count\"], 1.0, { \"objects\": 7 }]".to_owned()),
            Operation::Tags { .. } => (200, "[ 2, [\"tag.purge\"], 1.0, { \"objects\": 7 }]".to_owned()),
            Operation::Use(name) if name == "missing" => (106, "No VCL named missing".to_owned()),
            _ => (200, "[ 2, [\"x\"], 1.0, {\"name\": \"a\"}]".to_owned()),
        }
    }
}

struct Running {
    port: u16,
    orders: Arc<Mutex<Vec<Order>>>,
    dash: Arc<Dash>,
    parent: Option<UnixStream>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
}

impl Running {
    fn with(settings: Settings) -> Running {
        let listeners = Listener::bind("127.0.0.1:0").unwrap();
        let orders = Arc::<Mutex<Vec<Order>>>::default();
        let (feed, requests) = (Arc::<Feed>::default(), Arc::<Mutex<Requests>>::default());
        feed.note("test", "</script><img src=x onerror=alert(1)>");
        let operator = Box::new(Noted(Arc::clone(&orders)));
        let dash = Arc::new(Dash::new(settings, &feed, &requests, operator));
        let (parent, child) = UnixStream::pair().unwrap();
        let (port, of_thread) = (listeners[0].port().unwrap(), Arc::clone(&dash));
        let thread = thread::spawn(move || server::serve(&listeners, &of_thread, &[child.as_fd()]));
        Running { port, orders, dash, parent: Some(parent), thread: Some(thread) }
    }

    fn new() -> Running {
        Running::with(Settings::default())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream
    }

    fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        // It may answer before everything is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Reply::parse(&answer)
    }

    /// A request with these fields besides `Host`.
    fn get(&self, path: &str, fields: &str) -> Reply {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{fields}\r\n", self.port).as_bytes())
    }

    /// The fields that a page of ours sends.
    fn own(&self) -> String {
        let port = self.port;
        format!("Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n")
    }

    fn post(&self, path: &str, fields: &str, body: &Value) -> Reply {
        let (port, body) = (self.port, body.to_string());
        let length = body.len();
        self.raw(
            format!(
                "POST /api/1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
            )
            .as_bytes(),
        )
    }

    /// Logs in; returns the fields of a request of the session, without and with its token.
    fn login(&self) -> (String, String) {
        let reply = self.post("login", &self.own(), &json!({"token": TOKEN}));
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.field("Set-Cookie").unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict;") && cookie.contains("Path=/;"), "{cookie}");
        let fields = format!("Cookie: other=1; {}\r\n", cookie.split(';').next().unwrap());
        let csrf = reply.json()["csrf"].as_str().unwrap().to_owned();
        (fields.clone(), format!("{}{fields}X-Copal-Csrf: {csrf}\r\n", self.own()))
    }

    fn changes(&self) -> Vec<Operation> {
        let orders = self.orders.lock().unwrap();
        orders.iter().map(|order| order.operation.clone()).filter(Operation::is_change).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.parent.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Reply {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn field(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[test]
fn page_is_given_to_anybody_on_this_host_with_strict_fields() {
    let server = Running::new();
    let page = server.get("/", "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<title>Copal</title>"));
    let policy = page.field("Content-Security-Policy").unwrap();
    for part in
        ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ] {
        assert_eq!(page.field(name).as_deref(), Some(value));
    }
    assert_eq!(page.field("Access-Control-Allow-Origin"), None);
    let tag = page.field("ETag").unwrap();
    assert_eq!(server.get("/", &format!("If-None-Match: {tag}\r\n")).status, 304);
    assert_eq!(server.get("/app.js", "Accept-Encoding: gzip\r\n").field("Content-Encoding").as_deref(), Some("gzip"));
}

#[test]
fn paths_lead_to_nothing_but_the_page() {
    let server = Running::new();
    for path in
        ["/../etc/passwd", "/..%2f..%2fetc/passwd", "/app.js/../index.html", "//etc/passwd", "/assets", "/metrics"]
    {
        assert_eq!(server.get(path, "").status, 404, "{path}");
    }
    let (session, _) = server.login();
    for path in ["/api/1/vcl/..%2f..%2fx*/source", "/api/1/why/../1", "/api/1/", "/api/2/now", "/api/1/tops?by=../x"] {
        assert_eq!(server.get(path, &session).status, 404, "{path}");
    }
}

#[test]
fn other_names_of_the_host_are_misdirected() {
    let server = Running::new();
    for host in ["evil.test", "evil.test:9132", "127.0.0.1.evil.test", "192.0.2.1"] {
        for path in ["/", "/api/1/now", "/app.js"] {
            let reply = server.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
            assert_eq!(reply.status, 421, "{host} {path}");
        }
    }
    let named = Running::with(Settings { hosts: vec!["cache.example.net".to_owned()], ..Settings::default() });
    assert_eq!(named.raw(b"GET / HTTP/1.1\r\nHost: cache.example.net\r\n\r\n").status, 200);
}

#[test]
fn data_are_given_to_sessions_only() {
    let server = Running::new();
    let paths =
        ["session", "now", "history", "reasons", "events", "tops", "requests", "why/1", "vcl", "params", "stream"];
    for path in paths {
        assert_eq!(server.get(&format!("/api/1/{path}"), "").status, 401, "{path}");
        let forged = format!("Cookie: copal_dash_{}={}\r\n", server.port, "0".repeat(64));
        assert_eq!(server.get(&format!("/api/1/{path}"), &forged).status, 401, "{path}");
    }
    let (session, _) = server.login();
    for path in &paths[..7] {
        let reply = server.get(&format!("/api/1/{path}"), &session);
        assert_eq!(reply.status, 200, "{path} {reply:?}");
        assert_eq!(reply.field("Cache-Control").as_deref(), Some("no-store"));
    }
    assert_eq!(server.get("/api/1/vcl", &session).json(), json!([{"name": "a"}]));
    // An image or a script of another site.
    let foreign = format!("{session}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(server.get("/api/1/now", &foreign).status, 403);
    // A WebSocket of another site is an ordinary request without a session of ours.
    assert_eq!(server.get("/api/1/stream", "Upgrade: websocket\r\nConnection: Upgrade\r\n").status, 401);
}

#[test]
fn login_takes_a_token_or_a_password_and_is_limited() {
    let server = Running::new();
    let login = |body: Value| server.post("login", &server.own(), &body).status;
    assert_eq!(login(json!({"token": "wrong"})), 403);
    assert_eq!(login(json!({"user": "anna", "password": "x"})), 403, "there are no users");
    assert_eq!(login(json!({})), 403);
    assert_eq!(login(json!({"token": TOKEN})), 200);
    let answers: Vec<u16> = (0..1000).map(|_| login(json!({"token": "wrong"}))).collect();
    assert_eq!(answers.iter().filter(|status| **status == 403).count(), DASH_LOGINS_A_MINUTE - 4);
    assert!(answers.iter().all(|status| matches!(status, 403 | 429)));
    let orders = server.orders.lock().unwrap();
    let checked = orders.iter().filter(|order| matches!(order.operation, Operation::Login(_))).count();
    assert_eq!(checked, DASH_LOGINS_A_MINUTE - 2, "refused ones are not checked");
}

#[test]
fn sessions_of_an_earlier_process_go_on_and_guesses_are_limited() {
    let server = Running::new();
    let cookie = |id: &str| format!("Cookie: copal_dash_{}={id}\r\n", server.port);
    let session = server.get("/api/1/session", &cookie(&"a".repeat(64)));
    assert_eq!((session.status, session.json()["user"].as_str()), (200, Some("cli")));
    assert_eq!(server.get("/api/1/session", &cookie(&"b".repeat(64))).status, 401, "anna is no user any longer");
    let operate = format!("{}{}X-Copal-Csrf: token\r\n", server.own(), cookie(&"a".repeat(64)));
    assert_eq!(server.post("invalidate", &operate, &json!({"kind": "url", "value": "/a"})).status, 200);
    for number in 0..100 {
        assert_eq!(server.get("/api/1/session", &cookie(&format!("{number:064}"))).status, 401);
    }
    let orders = server.orders.lock().unwrap();
    let asked = orders.iter().filter(|order| matches!(order.operation, Operation::Recall(_))).count();
    assert_eq!(asked, DASH_LOGINS_A_MINUTE);
}

#[test]
fn logout_ends_the_session() {
    let server = Running::new();
    let (session, operate) = server.login();
    assert_eq!(server.post("logout", &operate, &json!({})).status, 200);
    assert_eq!(server.get("/api/1/now", &session).status, 401);
}

#[test]
fn operations_need_origin_session_token_and_role() {
    let server = Running::new();
    let (session, operate) = server.login();
    let ban = json!({"kind": "url", "value": "/a"});
    let own = server.own();
    let with = |name: &str, value: &str| {
        let lines = operate.lines().filter(|line| !line.starts_with(name)).map(|line| format!("{line}\r\n"));
        lines.chain([value.to_owned()]).collect::<String>()
    };
    for (fields, status) in [
        (own.clone(), 401),
        (format!("{own}{session}"), 403),
        (format!("{own}{session}X-Copal-Csrf: {}\r\n", "0".repeat(64)), 403),
        (with("Origin", ""), 403),
        (with("Origin", "Origin: http://evil.test\r\n"), 403),
        (with("Sec-Fetch-Site", "Sec-Fetch-Site: cross-site\r\n"), 403),
        (with("Content-Type", "Content-Type: application/x-www-form-urlencoded\r\n"), 403),
    ] {
        assert_eq!(server.post("invalidate", &fields, &ban).status, status, "{fields}");
    }
    assert_eq!(server.changes(), []);
    let done = server.post("invalidate", &operate, &ban);
    assert_eq!((done.status, done.json()["command"].as_str()), (200, Some("ban req.url == /a")));
    assert_eq!(server.changes().len(), 1);

    let view = Running::with(Settings { is_view_only: true, ..Settings::default() });
    let (session, operate) = view.login();
    assert_eq!(view.get("/api/1/session", &session).json()["role"], "view");
    for (path, body) in
        [("invalidate", ban), ("vcl/use", json!({"name": "a"})), ("backend/a.b", json!({"health": "sick"}))]
    {
        assert_eq!(view.post(path, &operate, &body).status, 403, "{path}");
    }
    assert_eq!(view.changes(), []);
}

#[test]
fn operations_are_the_closed_set() {
    let server = Running::new();
    let (_, operate) = server.login();
    let words = |words: &[&str]| Operation::Ban(words.iter().map(|word| (*word).to_owned()).collect());
    let expected = [
        (
            "invalidate",
            json!({"kind": "prefix", "value": "/a.b*", "host": "h"}),
            Some(words(&["req.url", "~", "^/a\\.b\\*", "&&", "req.http.host", "==", "h"])),
        ),
        (
            "invalidate",
            json!({"kind": "ban", "value": "obj.status == 404 && obj.http.x ~ \"a b\""}),
            Some(words(&["obj.status", "==", "404", "&&", "obj.http.x", "~", "a b"])),
        ),
        (
            "invalidate",
            json!({"kind": "tag", "value": " a  b ", "hard": true}),
            Some(Operation::Tags { is_hard: true, tags: vec!["a".to_owned(), "b".to_owned()] }),
        ),
        (
            "invalidate",
            json!({"kind": "tag", "value": "-j"}),
            Some(Operation::Tags { is_hard: false, tags: vec!["-j".to_owned()] }),
        ),
        ("invalidate", json!({"kind": "url", "value": ""}), None),
        ("invalidate", json!({"kind": "x", "value": "/"}), None),
        ("invalidate", json!({"kind": "url", "value": "/a\n/b"}), None),
        ("invalidate", json!({"kind": "ban", "value": "req.url ~"}), None),
        (
            "backend/boot.a",
            json!({"health": "sick"}),
            Some(Operation::Health("boot.a".to_owned(), surface::operation::Health::Sick)),
        ),
        ("backend/*", json!({"health": "sick"}), None),
        ("backend/%2a", json!({"health": "sick"}), None),
        ("backend/boot.a", json!({"health": "stop"}), None),
        ("vcl/use", json!({"name": "boot"}), Some(Operation::Use("boot".to_owned()))),
        ("vcl/use", json!({"name": "-v"}), None),
        ("param", json!({"name": "vcl_path"}), None),
        ("stop", json!({}), None),
    ];
    for (path, body, operation) in expected {
        let before = server.changes().len();
        let reply = server.post(path, &operate, &body);
        assert_eq!(reply.status == 200, operation.is_some(), "{path} {body} {reply:?}");
        assert_eq!(server.changes().get(before), operation.as_ref(), "{path} {body}");
    }
    let refused = server.post("vcl/use", &operate, &json!({"name": "missing"}));
    assert_eq!((refused.status, refused.json()["error"].as_str()), (422, Some("No VCL named missing")));
}

#[test]
fn preview_counts_and_changes_nothing() {
    let server = Running::new();
    let (_, operate) = server.login();
    server.dash.requests.lock().unwrap().tops.add(tops::By::Requests, "h/a/1", 3);
    let preview = |body: Value| server.post("invalidate/preview", &operate, &body).json();
    assert_eq!(preview(json!({"kind": "tag", "value": "a"}))["objects"], 7);
    let prefix = preview(json!({"kind": "prefix", "value": "/a"}));
    assert_eq!(prefix["rows"], json!([{"text": "h/a/1", "count": 3}]));
    assert!(prefix["note"].as_str().unwrap().contains("cannot"));
    assert_eq!(preview(json!({"kind": "prefix", "value": "/a", "host": "other"}))["rows"], json!([]));
    assert_eq!(server.changes(), []);
}

#[test]
fn bodies_are_limited() {
    let server = Running::new();
    let (_, operate) = server.login();
    let huge = json!({"kind": "ban", "value": "x".repeat(1 << 20)});
    assert_eq!(server.post("invalidate", &operate, &huge).status, 413);
    let long = json!({"kind": "ban", "value": format!("req.url ~ {}", "x".repeat(10_000))});
    assert_eq!(server.post("invalidate", &operate, &long).status, 400);
    let chunked = format!(
        "POST /api/1/logout HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n{operate}\r\n0\r\n\r\n"
    );
    assert_eq!(server.raw(chunked.as_bytes()).status, 411);
    assert_eq!(server.raw(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n").status, 400);
    assert_eq!(server.changes(), []);
}

#[test]
fn text_of_the_network_is_text() {
    let server = Running::new();
    let (session, _) = server.login();
    let reply = server.get("/api/1/events", &session);
    assert_eq!(reply.field("Content-Type").as_deref(), Some("application/json"));
    assert_eq!(reply.json()[0]["text"], "</script><img src=x onerror=alert(1)>");
}

/// Waits for a condition.
fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + HANG;
    while !condition() {
        assert!(Instant::now() < deadline, "did not come about");
        thread::yield_now();
    }
}

#[test]
fn streams_are_limited_and_end_with_their_session() {
    let server = Running::new();
    let (session, operate) = server.login();
    let open = || {
        let mut stream = server.connect();
        let head = format!("GET /api/1/stream HTTP/1.1\r\nHost: localhost:{}\r\n{session}\r\n", server.port);
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let streams = || server.dash.streams.load(std::sync::atomic::Ordering::Acquire);
    let mut readers: Vec<TcpStream> = (0..DASH_STREAMS_MAX).map(|_| open()).collect();
    eventually(|| streams() == DASH_STREAMS_MAX);
    let mut refused = String::new();
    open().read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    // Readers that stop hold up neither the feed nor other requests.
    let folder = tempfile::tempdir().unwrap();
    let mut sampler = sampler::Sampler::new(folder.path());
    let totals = crate::totals::Totals::default();
    for _ in 0..100 {
        server.dash.feed.take(&mut sampler, &server.dash.requests, &totals);
    }
    assert_eq!(server.get("/api/1/now", &session).status, 200);
    let mut text = String::new();
    let mut room = [0; 1024];
    while !text.contains("\ndata: {") {
        let count = readers[0].read(&mut room).unwrap();
        text += &String::from_utf8_lossy(&room[..count]);
    }
    assert!(text.contains("Content-Type: text/event-stream\r\n") && text.contains("\nid: "), "{text}");
    assert_eq!(server.post("logout", &operate, &json!({})).status, 200);
    server.dash.feed.take(&mut sampler, &server.dash.requests, &totals);
    eventually(|| streams() == 0);
}
