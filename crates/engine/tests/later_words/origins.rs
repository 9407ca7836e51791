//! Backends: through a proxy (7.3), waiting for a connection (7.6), and the distance a fetch may
//! run ahead (7.3).

use crate::support::{OriginRequest, always, run_with};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The destination given to a proxy: address and port as bytes, and the authority.
#[derive(Clone, Default, Debug, PartialEq)]
struct Wanted {
    destination: Vec<u8>,
    authority: String,
}

#[test]
fn a_backend_behind_a_proxy_is_named_to_it() {
    let vcl = "vcl 4.1;
        backend proxy { .host = \"192.0.2.50\"; .port = \"8443\"; }
        backend default { .host = \"198.51.100.7\"; .port = \"8080\"; .host_header = \"example.com:8080\"; .via = proxy; }
        backend named { .host = \"198.51.100.7\"; .via = proxy; .authority = \"other.example\"; }
        backend bare { .host = \"198.51.100.8\"; .via = proxy; .authority = \"\"; }
        sub vcl_recv {
            if (req.url == \"/named\") { set req.backend_hint = named; }
            if (req.url == \"/bare\") { set req.backend_hint = bare; }
        }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let seen = Rc::new(RefCell::new(Vec::new()));
            let saw = Rc::clone(&seen);
            world.origin_at("192.0.2.50:8443", move |mut stream| {
                let saw = Rc::clone(&saw);
                async move {
                    let mut head = [0; 16];
                    stream.read_exact(&mut head).await.unwrap();
                    assert_eq!((&head[..12], head[12], head[13]), (SIGNATURE, 0x21, 0x11));
                    let mut rest = vec![0; usize::from(u16::from_be_bytes([head[14], head[15]]))];
                    stream.read_exact(&mut rest).await.unwrap();
                    assert_eq!(rest[..4], [0, 0, 0, 0]);
                    let destination = [&rest[4..8], &rest[10..12]].concat();
                    let authority = match rest.get(12..) {
                        Some([2, _, _, name @ ..]) => String::from_utf8(name.to_vec()).unwrap(),
                        _ => String::new(),
                    };
                    saw.borrow_mut().push(Wanted { destination, authority });
                    while OriginRequest::read(&mut stream).await.is_some() {
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                    }
                }
            });
            for target in ["/", "/again", "/named", "/bare"] {
                assert_eq!(world.client().get(target, "").await.status(), 200, "{}", world.story());
            }
            let wanted = |destination: [u8; 6], authority: &str| Wanted {
                destination: destination.to_vec(),
                authority: authority.to_owned(),
            };
            // The second request uses the connection of the first; the others have other
            // destinations.
            assert_eq!(
                *seen.borrow(),
                [
                    wanted([198, 51, 100, 7, 0x1f, 0x90], "example.com"),
                    wanted([198, 51, 100, 7, 0, 80], "other.example"),
                    wanted([198, 51, 100, 8, 0, 80], ""),
                ]
            );
        },
    );
}

/// Two requests at once for a backend with one connection, which takes two seconds for an answer.
fn two_at_once(fields: &str) -> Vec<u16> {
    let statuses = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&statuses);
    let vcl = format!(
        "vcl 4.1; backend default {{ .host = \"192.0.2.50\"; .max_connections = 1; {fields} }}
         sub vcl_recv {{ return (pass); }}"
    );
    run_with(
        |_| {},
        &vcl,
        async |world| {
            world.origin_at("192.0.2.50:80", |mut stream| async move {
                while OriginRequest::read(&mut stream).await.is_some() {
                    sleep(Duration::from_secs(2)).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                }
            });
            let (mut first, mut second) = (world.client(), world.client());
            let (first, second) = tokio::join!(first.get("/1", ""), second.get("/2", ""));
            *found.borrow_mut() = vec![first.status(), second.status()];
        },
    );
    statuses.take()
}

#[test]
fn a_fetch_waits_for_a_connection_where_the_backend_allows_it() {
    assert_eq!(two_at_once(""), [200, 503]);
    assert_eq!(two_at_once(".wait_limit = 1; .wait_timeout = 5s;"), [200, 200]);
    assert_eq!(two_at_once(".wait_limit = 1; .wait_timeout = 1s;"), [200, 503]);
    assert_eq!(two_at_once(".wait_limit = 0; .wait_timeout = 5s;"), [200, 503]);
}

#[test]
fn the_parameters_let_every_backend_be_waited_for() {
    run_with(
        |parameters| {
            parameters.backend_wait_limit = 1;
            parameters.backend_wait_timeout = 5.0;
        },
        "vcl 4.1; backend default { .host = \"192.0.2.50\"; .max_connections = 1; }
         sub vcl_recv { set req.http.wait = param.backend_wait_limit + \" \" + param.backend_wait_timeout; return (pass); }
         sub vcl_deliver { set resp.http.wait = req.http.wait; }",
        async |world| {
            world.origin_at("192.0.2.50:80", |mut stream| async move {
                while OriginRequest::read(&mut stream).await.is_some() {
                    sleep(Duration::from_secs(2)).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                }
            });
            let (mut first, mut second) = (world.client(), world.client());
            let (first, second) = tokio::join!(first.get("/1", ""), second.get("/2", ""));
            assert_eq!((first.status(), second.status()), (200, 200), "{}", world.story());
            assert_eq!(second.header("wait"), Some("1 5.000"));
        },
    );
}

#[test]
fn passed_response_is_read_ahead_within_the_limit_of_vcl() {
    let vcl = "sub vcl_recv { return (pass); }
        sub vcl_backend_response {
            set beresp.http.before = beresp.transit_buffer;
            set beresp.transit_buffer = 10KB;
            set beresp.http.after = beresp.transit_buffer;
        }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let sent = Rc::new(RefCell::new(0_usize));
            let counted = Rc::clone(&sent);
            world.origin(move |mut stream| {
                let counted = Rc::clone(&counted);
                async move {
                    OriginRequest::read(&mut stream).await;
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n").await.unwrap();
                    for _ in 0..2000 {
                        if stream.write_all(&[b'x'; 1000]).await.is_err() {
                            return;
                        }
                        *counted.borrow_mut() += 1000;
                    }
                }
            });
            // A client that reads nothing beyond the buffer of its connection.
            let mut client = world.client_with(1000);
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            sleep(Duration::from_secs(5)).await;
            let ahead = *sent.borrow();
            assert!(ahead < 250_000, "{ahead} bytes were fetched for a client that reads nothing");
            let response = client.response().await;
            assert_eq!((response.header("before"), response.header("after")), (Some("0"), Some("10240")));
            assert_eq!(response.text().len(), 2_000_000);
        },
    );
}

#[test]
fn builtin_rule_uses_the_time_of_its_parameter() {
    run_with(
        |parameters| parameters.uncacheable_ttl = 7.0,
        "sub vcl_backend_response { set beresp.http.ttl = param.uncacheable_ttl; }",
        async |world| {
            world.origin(always("Set-Cookie: a=b\r\n", "x"));
            assert_eq!(world.client().get("/", "").await.header("ttl"), Some("7.000"), "{}", world.story());
            world.expect_log("TTL VCL 7 ");
        },
    );
}
