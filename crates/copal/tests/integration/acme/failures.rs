//! Authorities that refuse, and servers that are not authorities.

use super::*;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// An https server that answers every request with the same bytes.
struct Fake {
    identity: Identity,
    folder: tempfile::TempDir,
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Fake {
    fn start(answer: impl Fn(&str, u16) -> Vec<u8> + Send + Sync + 'static) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::make(folder.path());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = rustls::pki_types::PrivateKeyDer::try_from(identity.key.clone()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.chain.clone().into()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, counter) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                let (config, seen, answer) = (Arc::clone(&config), Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let connection = ServerConnection::new(config).unwrap();
                    let mut stream = StreamOwned::new(connection, socket);
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") {
                        if stream.read_exact(&mut byte).is_err() {
                            return;
                        }
                        head.push(byte[0]);
                    }
                    seen.fetch_add(1, Ordering::Relaxed);
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let _ = stream.write_all(&answer(&head, port));
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                });
            }
        });
        Fake { identity, folder, port, requests }
    }

    fn daemon(&self) -> Daemon {
        let options = options(self.port, &self.identity, &self.folder.path().join("state"));
        start(&options, &["-a", &format!("127.0.0.1:{},https,acme=a.example", free_port())])
    }
}

fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

/// A directory whose account resource does not exist.
fn directory(port: u16) -> Vec<u8> {
    let at = |path: &str| format!("https://localhost:{port}/{path}");
    let body = serde_json::json!({"newNonce": at("nonce"), "newAccount": at("account"), "newOrder": at("order")});
    response("200 OK", "Content-Type: application/json\r\n", &body.to_string())
}

#[test]
fn retry_after_of_a_failing_authority_is_obeyed() {
    let fake = Fake::start(|_, _| response("503 Service Unavailable", "Retry-After: 7200\r\n", "<h1>down</h1>"));
    let daemon = fake.daemon();
    let row = failure_of(&daemon, 1);
    assert_eq!(row["error"], "the authority answered 503 Service Unavailable", "{row}");
    assert!((7100.0..=7210.0).contains(&seconds_until_next(&row)), "{row}");
    let said = daemon.said();
    assert_eq!(times(&said, "ACME: no certificate for a.example from localhost"), 1, "{said}");
    // A start alone does not cause another order.
    let asked = fake.requests.load(Ordering::Relaxed);
    drop(daemon);
    let daemon = fake.daemon();
    let row = failure_of(&daemon, 1);
    assert_eq!((row["failures"].as_u64(), fake.requests.load(Ordering::Relaxed)), (Some(1), asked));
    // An operator's command does.
    assert!(daemon.cli(&["acme.renew", "a.example"]).0);
    failure_of(&daemon, 2);
    assert!(fake.requests.load(Ordering::Relaxed) > asked);
    // HTTP is served regardless of the failures.
    assert_eq!(daemon.get("/").status, 503);
}

#[test]
fn removed_folder_starts_a_new_account_at_once() {
    let down = "the authority answered 503 Service Unavailable";
    let fake = Fake::start(|_, _| response("503 Service Unavailable", "", "<h1>down</h1>"));
    let daemon = fake.daemon();
    assert_eq!(failure_of(&daemon, 1)["error"], down);
    let asked = fake.requests.load(Ordering::Relaxed);
    std::fs::remove_dir_all(fake.folder.path().join("state")).unwrap();
    assert!(daemon.cli(&["acme.renew"]).0);
    eventually("it is asked again", || (fake.requests.load(Ordering::Relaxed) > asked).then_some(()));
    assert_eq!(failure_of(&daemon, 1)["error"], down);
    assert!(!daemon.said().contains("No such file"), "{}", daemon.said());
}

#[test]
fn rate_limit_is_reported_verbatim_without_control_characters() {
    let fake = Fake::start(|head, port| {
        if head.starts_with("GET /dir ") {
            return directory(port);
        }
        if head.starts_with("HEAD /nonce ") {
            return response("200 OK", "Replay-Nonce: abcdefgh\r\n", "");
        }
        let problem =
            r#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many \u001b[31m new\nInfo: orders"}"#;
        response("429 Too Many Requests", "Content-Type: application/problem+json\r\n", problem)
    });
    let daemon = fake.daemon();
    let row = failure_of(&daemon, 1);
    assert_eq!(row["error"], "rateLimited: too many %1b[31m new%0aInfo: orders", "{row}");
    assert!((3500.0..=3970.0).contains(&seconds_until_next(&row)), "{row}");
    assert!(!daemon.said().contains('\u{1b}'));
    let (_, list) = daemon.cli(&["acme.list"]);
    assert!(list.starts_with("a.example\tmissing\t-\t2") && list.contains("\trateLimited: too many"), "{list}");
}

#[test]
fn more_than_an_authority_should_say_is_not_read() {
    let fake = Fake::start(|_, _| response("200 OK", "Content-Type: application/json\r\n", &" ".repeat(2 << 20)));
    let daemon = fake.daemon();
    let row = failure_of(&daemon, 1);
    assert!(row["error"].as_str().unwrap().contains("length limit exceeded"), "{row}");
}

#[test]
fn an_authority_that_cannot_be_trusted_is_not_spoken_with() {
    let fake = Fake::start(|_, port| directory(port));
    let other = tempfile::tempdir().unwrap();
    let stranger = Identity::make(other.path());
    let options = options(fake.port, &stranger, &other.path().join("state"));
    let daemon = start(&options, &["-a", &format!("127.0.0.1:{},https,acme=a.example", free_port())]);
    let row = failure_of(&daemon, 1);
    assert!(row["error"].as_str().unwrap().contains("invalid peer certificate"), "{row}");
    assert_eq!(fake.requests.load(Ordering::Relaxed), 0);
}

#[test]
fn an_address_with_a_line_end_is_a_failed_order_and_no_panic() {
    let fake = Fake::start(|head, port| {
        if head.starts_with("HEAD /nonce ") {
            return response("200 OK", "Replay-Nonce: abcdefgh\r\n", "");
        }
        let at = |path: &str| format!("https://localhost:{port}/{path}");
        let nonce = at("nonce\r\nX-Forged: yes");
        let body = serde_json::json!({"newNonce": nonce, "newAccount": at("account"), "newOrder": at("order")});
        response("200 OK", "Content-Type: application/json\r\n", &body.to_string())
    });
    let daemon = fake.daemon();
    let row = failure_of(&daemon, 1);
    assert!(row["error"].as_str().unwrap().contains("the directory's newNonce is not an address"), "{row}");
    assert!(!daemon.said().contains("panicked"), "{}", daemon.said());
}
