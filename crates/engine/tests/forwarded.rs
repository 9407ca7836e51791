//! The scheme of a client's request: for the origin, for VCL and in the key; listeners that
//! redirect to https; requests that return to the daemon.

use crate::support::{Client, OriginRequest, World, always, run_with, serve_each};
use engine::peer::{Listener, Peer};
use std::cell::RefCell;
use std::rc::Rc;
use surface::counter::Main;
use surface::parameter::Parameters;
use vcl_run::tls::TlsFacts;

/// The requests that the origin received.
type Asked = Rc<RefCell<Vec<OriginRequest>>>;

fn run_rfc<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Rc<World>) -> F,
) {
    let change = |parameters: &mut Parameters| {
        parameters.http_policy = "rfc".into();
        change(parameters);
    };
    run_with(change, vcl, story);
}

/// An application such as WordPress: clients that do not use https, according to the front, are
/// redirected to it.
fn application(world: &World) -> Asked {
    let asked = Asked::default();
    let seen = Rc::clone(&asked);
    world.origin(serve_each(move |request| {
        seen.borrow_mut().push(request.clone());
        let answer = match request.header("x-forwarded-proto") {
            Some("https") => "200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\npage",
            _ => "301 Moved Permanently\r\nCache-Control: max-age=60\r\nLocation: https://a/\r\nContent-Length: 0\r\n\r\n",
        };
        format!("HTTP/1.1 {answer}").into_bytes()
    }));
    asked
}

fn with_tls(world: &World) -> Peer {
    Peer { tls: Some(Rc::new(TlsFacts::default())), ..world.peer() }
}

fn with_listener(world: &World, change: impl FnOnce(&mut Listener)) -> Peer {
    let mut peer = world.peer();
    let mut listener = (*peer.listener).clone();
    change(&mut listener);
    peer.listener = Rc::new(listener);
    peer
}

fn behind_proxy(world: &World, elements: Option<&[u8]>) -> Peer {
    let peer = with_listener(world, |listener| listener.proxy = true);
    Peer { proxy_elements: elements.map(Rc::from), ..peer }
}

#[test]
fn https_before_an_application_that_redirects_to_https_does_not_loop() {
    run_rfc(
        |_| {},
        "",
        async |world| {
            let asked = application(&world);
            for _ in 0..2 {
                let answer = world.client().get("/", "").await;
                assert_eq!((answer.status(), answer.header("location")), (301, Some("https://a/")));
                assert_eq!(world.client_from(with_tls(&world)).get("/", "").await.text(), "page");
            }
            assert_eq!(asked.borrow().len(), 2, "each scheme has an object of its own");
            world.expect_log("ReqHeader X-Forwarded-Proto: https");
        },
    );
}

/// The scheme that the origin receives for such a client, which sends these headers.
async fn scheme_told(world: &World, peer: Peer, headers: &str) -> String {
    let answer = world.client_from(peer).get("/", headers).await;
    format!("{} {}", answer.header("x-scheme").unwrap_or("-"), answer.header("x-forwarded").unwrap_or("-"))
}

/// Makes the origin answer with the header it received.
fn telling_origin(world: &World) {
    world.origin(serve_each(|request| {
        let lines: Vec<_> =
            request.head.lines().filter(|line| line.to_lowercase().starts_with("x-forwarded-proto:")).collect();
        let scheme = if lines.len() > 1 { "several" } else { request.header("x-forwarded-proto").unwrap_or("-") };
        let forwarded = request.header("forwarded").unwrap_or("-");
        format!("HTTP/1.1 200 OK\r\nX-Scheme: {scheme}\r\nX-Forwarded: {forwarded}\r\nContent-Length: 0\r\n\r\n")
            .into_bytes()
    }));
}

#[test]
fn only_a_trusted_front_sets_the_scheme() {
    run_rfc(
        |parameters| parameters.trusted_fronts = "198.51.100.0/24 2001:db8::/32".into(),
        "sub vcl_recv { return (pass); }",
        async |world| {
            telling_origin(&world);
            let lies = [
                "X-Forwarded-Proto: https\r\n",
                "X-Forwarded-Proto: https\r\nx-forwarded-proto: http\r\n",
                "X-Forwarded-Proto: https\r\nConnection: x-forwarded-proto\r\n",
                "Forwarded: for=evil;proto=https\r\n",
            ];
            for lie in lies {
                assert_eq!(scheme_told(&world, world.peer(), lie).await, "http -", "{lie}");
                let lie = lie.replace("https", "http");
                assert_eq!(scheme_told(&world, with_tls(&world), &lie).await, "https -", "{lie}");
            }
            let front = || Peer { client: "198.51.100.7:1".parse().unwrap(), ..world.peer() };
            for (said, told) in [
                ("", "http -"),
                ("X-Forwarded-Proto: https\r\n", "https -"),
                ("X-Forwarded-Proto: HTTPS\r\n", "https -"),
                ("X-Forwarded-Proto: http, https\r\n", "https -"),
                ("X-Forwarded-Proto: http\r\nX-Forwarded-Proto: https\r\n", "https -"),
                ("X-Forwarded-Proto: gopher\r\n", "http -"),
                ("X-Forwarded-Proto: \r\nForwarded: for=one\r\n", "http for=one"),
                ("X-Forwarded-Proto: https\r\nConnection: x-forwarded-proto\r\n", "https -"),
            ] {
                assert_eq!(scheme_told(&world, front(), said).await, told, "{said}");
            }
            let front = Peer { client: "[2001:db8::1]:1".parse().unwrap(), ..with_tls(&world) };
            assert_eq!(scheme_told(&world, front, "X-Forwarded-Proto: http\r\n").await, "http -");
            let socket = with_listener(&world, |listener| listener.path = Some("/s".into()));
            assert_eq!(scheme_told(&world, socket, "X-Forwarded-Proto: https\r\n").await, "https -");
        },
    );
}

#[test]
fn proxy_header_sets_the_scheme() {
    run_rfc(
        |_| {},
        "sub vcl_recv { return (pass); }",
        async |world| {
            telling_origin(&world);
            let https = "X-Forwarded-Proto: https\r\n";
            let http = "X-Forwarded-Proto: http\r\n";
            let over_tls: &[u8] = &[0x20, 0, 5, 1, 0, 0, 0, 0];
            let in_clear: &[u8] = &[0x20, 0, 5, 0, 0, 0, 0, 0];
            assert_eq!(scheme_told(&world, behind_proxy(&world, Some(over_tls)), http).await, "https -");
            assert_eq!(scheme_told(&world, behind_proxy(&world, Some(in_clear)), https).await, "http -");
            // Without the element its sender is a front like any other.
            assert_eq!(scheme_told(&world, behind_proxy(&world, None), "").await, "http -");
            assert_eq!(scheme_told(&world, behind_proxy(&world, None), https).await, "https -");
            let on_443 = Peer { server: "192.0.2.1:443".parse().unwrap(), ..behind_proxy(&world, None) };
            assert_eq!(scheme_told(&world, on_443, "").await, "https -");
            // It cannot have written a request received within TLS.
            let encrypted = Peer { tls: Some(Rc::new(TlsFacts::default())), ..behind_proxy(&world, None) };
            assert_eq!(scheme_told(&world, encrypted, http).await, "https -");
        },
    );
}

#[test]
fn the_standard_header_is_sent_where_it_is_asked_for() {
    run_rfc(
        |parameters| {
            parameters.http_forwarded = true;
            parameters.trusted_fronts = "198.51.100.7".into();
        },
        "sub vcl_recv { return (pass); }",
        async |world| {
            telling_origin(&world);
            let lie = "Forwarded: for=evil;proto=https\r\n";
            assert_eq!(scheme_told(&world, world.peer(), lie).await, "http for=192.0.2.7;proto=http");
            let peer = Peer { client: "[2001:db8::7]:5".parse().unwrap(), ..with_tls(&world) };
            assert_eq!(scheme_told(&world, peer, lie).await, "https for=\"[2001:db8::7]\";proto=https");
            let front = Peer { client: "198.51.100.7:1".parse().unwrap(), ..world.peer() };
            let told = scheme_told(&world, front, "Forwarded: for=one\r\nForwarded: for=two\r\n").await;
            assert_eq!(told, "http for=one, for=two, for=198.51.100.7;proto=http");
        },
    );
}

#[test]
fn vcl_sees_the_scheme_and_may_change_it() {
    let vcl =
        "sub vcl_recv { if (req.http.X-Forwarded-Proto == \"http\") { set req.http.X-Forwarded-Proto = \"https\"; } }";
    run_rfc(
        |_| {},
        vcl,
        async |world| {
            let asked = application(&world);
            assert_eq!(world.client().get("/", "").await.text(), "page");
            assert_eq!(world.client_from(with_tls(&world)).get("/", "").await.text(), "page");
            assert_eq!((asked.borrow().len(), world.count(Main::CacheHit)), (1, 1), "one key for both");
        },
    );
}

#[test]
fn under_the_policy_varnish_a_clients_word_passes_and_no_scheme_is_in_the_key() {
    run_with(
        |_| {},
        "sub vcl_backend_response { set beresp.ttl = 1m; }",
        async |world| {
            telling_origin(&world);
            assert_eq!(scheme_told(&world, world.peer(), "X-Forwarded-Proto: gopher\r\n").await, "gopher -");
            assert_eq!(scheme_told(&world, with_tls(&world), "").await, "gopher -");
            assert_eq!(world.count(Main::CacheHit), 1);
            assert!(!world.log().iter().any(|line| line.contains("BereqHeader Via")));
        },
    );
}

/// Requests a page by both schemes, and returns the number of origin requests so far.
async fn get_both(world: &World, asked: &Asked) -> usize {
    world.client().get("/", "").await;
    world.client_from(with_tls(world)).get("/", "").await;
    asked.borrow().len()
}

#[test]
fn purges_and_bans_remove_a_url_under_both_schemes() {
    let vcl = "sub vcl_recv {
            if (req.method == \"PURGE\") { return (purge); }
            if (req.method == \"BAN\") { ban(\"req.url == /\"); return (synth(200)); }
        }";
    run_rfc(
        |_| {},
        vcl,
        async |world| {
            let asked = application(&world);
            assert_eq!(get_both(&world, &asked).await, 2);
            for (at, method) in ["PURGE", "BAN"].into_iter().enumerate() {
                assert_eq!(get_both(&world, &asked).await, 2 + 2 * at);
                let mut client = world.client();
                client.send(format!("{method} / HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
                assert_eq!(client.response().await.status(), 200);
                assert_eq!(get_both(&world, &asked).await, 4 + 2 * at, "{method}");
            }
            let mut client = world.client_from(with_tls(&world));
            client.send("POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 200);
            assert_eq!(get_both(&world, &asked).await, 9, "POST");
        },
    );
}

async fn redirected(client: &mut Client, request: &str) -> (u16, Option<String>) {
    client.send(request).await;
    let answer = client.response().await;
    (answer.status(), answer.header("location").map(str::to_owned))
}

#[test]
fn listener_redirects_plain_http_to_https() {
    for policy in ["rfc", "varnish"] {
        let change = |parameters: &mut Parameters| parameters.http_policy = policy.into();
        run_with(change, "sub vcl_recv { return (synth(418)); }", async |world| {
            let peer = || with_listener(&world, |listener| listener.redirect_port = Some(443));
            let to = |location: &str| Some(location.to_owned());
            for (line, status, location) in [
                ("GET /a?b HTTP/1.1\r\nHost: a.example:80\r\n", 301, to("https://a.example/a?b")),
                ("HEAD / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n", 301, to("https://a.example/")),
                ("GET http://b.example/x HTTP/1.1\r\nHost: a.example\r\n", 301, to("https://b.example/x")),
                ("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n", 308, to("https://a/x")),
                ("GET //evil.example HTTP/1.1\r\nHost: a\r\n", 301, to("https://a//evil.example")),
                ("GET /x HTTP/1.0\r\n", 400, None),
                ("GET / HTTP/1.1\r\nHost: a%2eexample\r\n", 400, None),
                ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400, None),
                ("GET / HTTP/1.1\r\nHost: a.example@evil.example\r\n", 400, None),
                ("GET @evil.example/ HTTP/1.1\r\nHost: a\r\n", 400, None),
            ] {
                let mut client = world.client_from(peer());
                client.send(format!("{line}\r\n")).await;
                let answer = match line.starts_with("HEAD") {
                    true => client.response_to_head().await,
                    false => client.response().await,
                };
                let found = answer.header("location").map(str::to_owned);
                assert_eq!((answer.status(), found), (status, location), "{policy}: {line}");
            }
            // The connection remains usable after a body that was not read.
            let mut client = world.client_from(peer());
            let post = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
            for _ in 0..2 {
                assert_eq!(redirected(&mut client, post).await, (308, to("https://a/x")), "{policy}");
            }
            let other = with_listener(&world, |listener| listener.redirect_port = Some(8443));
            let mut client = world.client_from(other);
            let get = "GET / HTTP/1.1\r\nHost: a:8080\r\n\r\n";
            assert_eq!(redirected(&mut client, get).await, (301, to("https://a:8443/")), "{policy}");
            world.expect_log("Witness why redirect-https");
            world.engine.challenges.set([("token", "token.thumbprint")].into_iter());
            let answer = world.client_from(peer()).get("/.well-known/acme-challenge/token", "").await;
            assert_eq!((answer.status(), answer.text().as_str()), (200, "token.thumbprint"));
            // A request that came over TLS to a front is served.
            let front = Peer {
                proxy_elements: Some(Rc::from(&[0x20, 0, 5, 1, 0, 0, 0, 0][..])),
                ..with_listener(&world, |listener| {
                    listener.proxy = true;
                    listener.redirect_port = Some(443);
                })
            };
            assert_eq!(redirected(&mut world.client_from(front), get).await, (418, None), "{policy}");
            assert_eq!(world.dialled(), 0);
        });
    }
}

#[test]
fn a_request_that_comes_back_is_508_under_rfc() {
    run_rfc(
        |_| {},
        "sub vcl_recv { if (req.url == \"/piped\") { return (pipe); } return (pass); }",
        async |world| {
            let asked = Asked::default();
            let seen = Rc::clone(&asked);
            world.origin(serve_each(move |request| {
                seen.borrow_mut().push(request.clone());
                b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
            }));
            let mut client = world.client();
            client.send("GET / HTTP/1.0\r\nHost: a\r\nVia: 1.1 other\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 200);
            let via: Vec<_> =
                asked.borrow()[0].head.lines().filter(|line| line.starts_with("Via")).map(str::to_owned).collect();
            assert_eq!(via, ["Via: 1.1 other", "Via: 1.0 copal-0000000000000001"]);
            let answer = world.client().get("/", "Via: 1.1 other, 1.1 copal-0000000000000001\r\n").await;
            assert_eq!(answer.status(), 508);
            world.expect_log("Error Loop: this request has passed through here already");
            world.expect_log("Witness why request-loop");
            assert_eq!(asked.borrow().len(), 1);
            let answer =
                world.client().get("/", "Via: 1.1 copal-0000000000000002, 1.1 varnish (Varnish/7.1)\r\n").await;
            assert_eq!(answer.status(), 200, "another daemon in front is no loop");
            let mut client = world.client();
            client.send("GET /piped HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 200);
            assert!(
                asked.borrow()[2].head.contains("\r\nVia: 1.1 copal-0000000000000001\r\n"),
                "{}",
                asked.borrow()[2].head
            );
        },
    );
}

#[test]
fn under_the_policy_varnish_via_means_nothing() {
    run_with(
        |_| {},
        "",
        async |world| {
            world.origin(always("", "x"));
            let answer = world.client().get("/", "Via: 1.1 copal-0000000000000001\r\n").await;
            assert_eq!(answer.status(), 200);
        },
    );
}

#[test]
fn an_encoded_host_and_a_fragment_are_refused_under_rfc_and_no_origin_sees_a_fragment() {
    let requests = [
        ("GET / HTTP/1.1\r\nHost: a%2eexample\r\n\r\n", "/"),
        ("GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", "/"),
        ("GET http://a%2eexample/ HTTP/1.1\r\nHost: a\r\n\r\n", "/"),
        ("GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", "/x"),
        ("GET http://a/x?z#y HTTP/1.1\r\nHost: a\r\n\r\n", "/x?z"),
    ];
    for (policy, expected) in [("rfc", 400), ("varnish", 200)] {
        run_with(
            |parameters| parameters.http_policy = policy.into(),
            "sub vcl_recv { return (pass); }",
            async |world| {
                world.origin(serve_each(|request| {
                    let target = request.target();
                    format!("HTTP/1.1 200 OK\r\nX-Target: {target}\r\nContent-Length: 0\r\n\r\n").into_bytes()
                }));
                for (request, target) in requests {
                    let mut client = world.client();
                    client.send(request).await;
                    let answer = client.response().await;
                    assert_eq!(answer.status(), expected, "{policy}: {request}");
                    if expected == 200 {
                        assert_eq!(answer.header("x-target"), Some(target), "{request}");
                    }
                }
            },
        );
    }
    // VCL cannot send one either.
    run_rfc(
        |_| {},
        "sub vcl_recv { return (pass); } sub vcl_backend_fetch { set bereq.url = \"/x#y\"; }",
        async |world| {
            world.origin(serve_each(|request| {
                let target = request.target();
                format!("HTTP/1.1 200 OK\r\nX-Target: {target}\r\nContent-Length: 0\r\n\r\n").into_bytes()
            }));
            assert_eq!(world.client().get("/", "").await.header("x-target"), Some("/x"));
            world.expect_log("BereqURL /x");
        },
    );
}
