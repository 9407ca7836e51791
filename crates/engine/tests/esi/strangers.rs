//! Pages must not give access to other parties' content: another client's fragments, another host's
//! objects, the client's head.

use super::site::{Site, page};
use crate::support::{OriginRequest, World, run_with};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// Looks everything up, for all clients.
const SHARING: &str = "sub vcl_recv { return (hash); }
    sub vcl_backend_response { if (bereq.url == \"/\") { set beresp.do_esi = true; unset beresp.http.Vary; } }";

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

/// A page for all clients, with a private part whose response has these headers and names the
/// client. Each takes a second.
fn greet(world: &World, headers: &'static str) {
    world.origin(move |mut stream| async move {
        while let Some(request) = OriginRequest::read(&mut stream).await {
            sleep(Duration::from_secs(1)).await;
            let who = request.header("authorization").or(request.header("cookie")).unwrap_or("stranger");
            let (headers, body) = match request.target() {
                "/" => ("Cache-Control: public, max-age=60\r\n", "<p><esi:include src=\"/corner\"/></p>".to_owned()),
                _ => (headers, format!("hello {who}")),
            };
            let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    });
}

/// Each of these clients gets its own part, all of them at the same time and then once more one by
/// one.
async fn expect_own(world: &Rc<World>, field: &str) {
    let mut clients = Vec::new();
    for name in ["ann", "bob", "cay"] {
        let mut client = world.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: example.com\r\n{field}: {name}\r\n\r\n")).await;
        clients.push((name, client));
    }
    for (name, client) in &mut clients {
        assert_eq!(client.response().await.text(), format!("<p>hello {name}</p>"), "{}", world.story());
    }
    for (name, client) in &mut clients {
        let response = client.get("/", &format!("{field}: {name}\r\n")).await;
        assert_eq!(response.text(), format!("<p>hello {name}</p>"), "{}", world.story());
    }
    assert_eq!(world.client().get("/", "").await.text(), "<p>hello stranger</p>");
}

#[test]
fn a_fragment_for_a_login_is_for_that_login_only() {
    run_with(rfc, SHARING, async |world| {
        greet(&world, "Cache-Control: max-age=60\r\n");
        expect_own(&world, "Authorization").await;
    });
}

#[test]
fn a_private_fragment_is_for_its_client_only_however_many_wait_for_it() {
    for change in [rfc, |_: &mut Parameters| {}] {
        for headers in ["Cache-Control: private, max-age=60\r\n", "Cache-Control: max-age=60\r\nVary: Cookie\r\n"] {
            run_with(change, SHARING, async |world| {
                greet(&world, headers);
                expect_own(&world, "Cookie").await;
            });
        }
    }
}

#[test]
fn nothing_of_a_fragment_but_its_body_reaches_the_client() {
    run_with(rfc, SHARING, async |world| {
        world.origin(async move |mut stream| {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                let answer = match request.target() {
                    "/" => "HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n<p><esi:include src=\"/corner\"/></p>",
                    _ => {
                        "HTTP/1.1 103 Early Hints\r\nLink: </secret>\r\n\r\n\
                        HTTP/1.1 404 Secret\r\nSet-Cookie: secret=1\r\nX-Secret: 1\r\nConnection: close\r\n\
                        Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: secret\r\n\r\n"
                    }
                };
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n").await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let all = client.rest().await.to_lowercase();
        assert_eq!(all.matches("http/1.1 200 ok").count(), 2, "the connection goes on: {all}");
        assert!(all.contains("hi") && !all.contains("secret") && !all.contains("http/1.1 103"), "{all}");
    });
}

#[test]
fn address_with_control_characters_is_never_requested() {
    let mut text = b"<p>".to_vec();
    for byte in (1..=0x20).chain([0x7f]) {
        for (before, after) in [("/a", "HTTP/1.1"), ("http://b", ".example/a"), ("b", "")] {
            for (open, close) in [("\"", "\""), ("'", "'")] {
                text.extend([b"<esi:include src=", open.as_bytes(), before.as_bytes(), &[byte]].concat());
                text.extend([after.as_bytes(), close.as_bytes(), b"/>"].concat());
            }
        }
    }
    text.extend_from_slice(b"</p>");
    run_with(
        |_| {},
        SHARING,
        async |world| {
            let site = Site::serve(&world, [("/", page(text))]);
            assert_eq!(world.client().get("/", "").await.text(), "<p></p>");
            assert_eq!((site.targets(), world.count(Main::EsiReq)), (vec!["/".to_owned()], 0));
        },
    );
}

#[test]
fn a_fragment_of_another_host_is_stored_for_that_host() {
    run_with(
        |_| {},
        SHARING,
        async |world| {
            world.origin(async move |mut stream| {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let body = match request.target() {
                        "/" => "<p><esi:include src=\"http://b/x\"/></p>".to_owned(),
                        target => format!("{target} of {}", request.header("host").unwrap()),
                    };
                    let head =
                        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}", body.len());
                    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
                }
            });
            let mut client = world.client();
            for (host, target, expected) in
                [("a", "/", "<p>/x of b</p>"), ("a", "/x", "/x of a"), ("b", "/x", "/x of b")]
            {
                client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
                assert_eq!(client.response().await.text(), expected);
            }
            assert_eq!(world.count(Main::CacheHit), 1, "what the page included is what the host's own clients get");
        },
    );
}

#[test]
fn slow_readers_of_nested_pages_hold_no_more_than_requests_may() {
    const LIMIT_BYTES: u64 = 16 << 20;
    let vcl = "sub vcl_backend_response { set beresp.do_esi = bereq.url !~ \"^/big\"; }";
    let change = |parameters: &mut Parameters| parameters.requests_memory_max = LIMIT_BYTES;
    run_with(change, vcl, async |world| {
        let including = |prefix: &str| {
            let list: String = (0..20).map(|at| format!("<esi:include src=\"/{prefix}{at}\"/>")).collect();
            page(format!("<p>{list}</p>"))
        };
        let mut pages = vec![("/".to_owned(), including("in"))];
        for at in 0..20 {
            pages.push((format!("/in{at}"), including("big")));
            pages.push((format!("/big{at}"), page(vec![b'x'; 100_000])));
        }
        Site::serve(&world, pages);
        let whole = world.client().get("/", "").await;
        assert_eq!((whole.is_whole, whole.body.len()), (true, 7 + 20 * (7 + 20 * 100_000)));
        let mut clients = Vec::new();
        for _ in 0..100 {
            let mut client = world.client_with(1000);
            client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            clients.push(client);
            sleep(Duration::from_millis(10)).await;
            let held = world.count(Main::ReqBytes);
            assert!(held < LIMIT_BYTES + LIMIT_BYTES / 8, "{held} bytes are held for {} clients", clients.len());
        }
        drop(clients);
        sleep(Duration::from_secs(2)).await;
        assert_eq!((world.count(Main::ReqBytes), world.context.in_flight()), (0, 0));
        assert_eq!(world.client().get("/", "").await.body.len(), whole.body.len());
    });
}
