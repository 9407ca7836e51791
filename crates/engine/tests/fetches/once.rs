//! Number of times that an origin receives one request of a client: once, unless a repetition is
//! harmless.
//!
//! Each case counts, at the origin, the requests for `/order`. See
//! `docs/decisions/a-request-is-placed-once.md`.

use crate::support::{OriginRequest, World, run_with};
use std::cell::Cell;
use std::rc::Rc;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::Duration;

const VCL: &str = "import std;
    sub vcl_recv { if (req.http.Keep-Body) { std.cache_req_body(1KB); } return (pass); }
    # The built-in one takes the body of a GET away.
    sub vcl_backend_fetch { return (fetch); }";

/// The body of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    None,
    Empty,
    Streamed,
    Chunked,
    Kept,
}

/// The origin's reaction to `/order`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The connection ends without a byte.
    Close,
    /// It ends after the first byte of an answer.
    CloseAfterByte,
    /// It ends after an interim response.
    CloseAfterInterim,
    /// It is reset without a byte.
    Reset,
    /// Nothing comes.
    Silence,
}

const METHODS: [&str; 8] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PATCH", "ORDER"];
const BODIES: [Body; 5] = [Body::None, Body::Empty, Body::Streamed, Body::Chunked, Body::Kept];
const FAULTS: [Fault; 5] =
    [Fault::Close, Fault::CloseAfterByte, Fault::CloseAfterInterim, Fault::Reset, Fault::Silence];

/// An origin that answers everything but `/order`, and counts that.
fn serve_orders(world: &Rc<World>, fault: Fault) -> Rc<Cell<u32>> {
    let orders = Rc::new(Cell::new(0));
    let (count, breaker) = (Rc::clone(&orders), Rc::clone(world));
    world.origin(move |mut stream| {
        let (count, breaker) = (Rc::clone(&count), Rc::clone(&breaker));
        async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                if request.target() != "/order" {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                    continue;
                }
                count.set(count.get() + 1);
                match fault {
                    Fault::Close => {}
                    Fault::CloseAfterByte => stream.write_all(b"H").await.unwrap(),
                    Fault::CloseAfterInterim => {
                        stream.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").await.unwrap();
                    }
                    Fault::Reset => breaker.ends_are_resets(true),
                    Fault::Silence => tokio::time::sleep(Duration::from_secs(1000)).await,
                }
                return;
            }
        }
    });
    orders
}

/// The client's request for `/order`.
fn order(method: &str, body: Body) -> String {
    let (headers, bytes) = match body {
        Body::None => ("", ""),
        Body::Empty => ("Content-Length: 0\r\n", ""),
        Body::Streamed => ("Content-Length: 3\r\n", "abc"),
        Body::Chunked => ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        Body::Kept => ("Keep-Body: 1\r\nContent-Length: 3\r\n", "abc"),
    };
    format!("{method} /order HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n{bytes}")
}

/// Number of times that the origin receives it. All connections have ended before and after.
async fn heard(world: &World, orders: &Cell<u32>, method: &str, body: Body, is_reused: bool) -> u32 {
    world.ends_are_resets(false);
    let (before, retries) = (orders.get(), world.count(Main::BackendRetry));
    if is_reused {
        assert_eq!(world.client().get("/first", "").await.text(), "ok");
    }
    let mut client = world.client();
    client.send(order(method, body)).await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}\n{}", world.story());
    let heard = orders.get() - before;
    assert_eq!(world.count(Main::BackendRetry) - retries, u64::from(heard) - 1);
    heard
}

async fn check_all(world: Rc<World>, fault: Fault) {
    let orders = serve_orders(&world, fault);
    for (method, body) in METHODS.iter().flat_map(|method| BODIES.map(|body| (*method, body))) {
        // A HEAD with a body is refused.
        if method == "HEAD" && !matches!(body, Body::None | Body::Empty) {
            continue;
        }
        for is_reused in [false, true] {
            let is_lost = matches!(body, Body::Streamed | Body::Chunked);
            let may_repeat = matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS");
            let is_silent_end = matches!(fault, Fault::Close | Fault::Reset);
            let expected = 1 + u32::from(is_reused && is_silent_end && may_repeat && !is_lost);
            let heard = heard(&world, &orders, method, body, is_reused).await;
            assert_eq!(heard, expected, "{method}, body {body:?}, reused {is_reused}, {fault:?}\n{}", world.story());
        }
    }
}

#[test]
fn only_what_may_be_repeated_is_sent_again_and_only_on_a_reused_connection_without_an_answer() {
    for fault in FAULTS {
        run_with(|parameters| parameters.first_byte_timeout = 7.0, VCL, async |world| check_all(world, fault).await);
    }
}

#[test]
fn the_method_that_the_origin_sees_decides() {
    let vcl = "sub vcl_recv { return (pass); }
        sub vcl_backend_fetch { set bereq.method = bereq.http.As; }";
    for (client_says, origin_hears, expected) in [("GET", "POST", 1), ("POST", "GET", 2), ("GET", "get", 1)] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let orders = serve_orders(&world, Fault::Close);
                world.client().get("/first", "As: GET\r\n").await;
                let mut client = world.client();
                client.send(format!("{client_says} /order HTTP/1.1\r\nHost: h\r\nAs: {origin_hears}\r\n\r\n")).await;
                assert_eq!(client.response().await.status(), 503);
                assert_eq!(orders.get(), expected, "{client_says} as {origin_hears}\n{}", world.story());
            },
        );
    }
}

#[test]
fn retries_happen_only_as_vcl_orders() {
    let vcl = "sub vcl_recv { return (pass); }
        sub vcl_backend_error { if (bereq.retries < 2) { return (retry); } }";
    for is_reused in [false, true] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let orders = serve_orders(&world, Fault::Close);
                if is_reused {
                    world.client().get("/first", "").await;
                }
                let mut client = world.client();
                client.send("POST /order HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await;
                assert_eq!(client.response().await.status(), 503);
                assert_eq!(orders.get(), 3, "the first, and two that VCL wanted\n{}", world.story());
                assert_eq!(world.count(Main::BackendRetry), 0);
            },
        );
    }
}

#[test]
fn a_dead_connection_that_took_no_byte_of_an_order_is_replaced() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            let orders = serve_orders(&world, Fault::Silence);
            world.client().get("/first", "").await;
            world.refuse_next_write();
            let mut client = world.client();
            client.send("POST /order HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!((orders.get(), world.dialled()), (1, 2), "{}", world.story());
            assert_eq!(world.count(Main::BackendRetry), 1);
        },
    );
}

#[test]
fn members_of_a_director_of_old_are_not_asked_one_after_the_other() {
    let members = "backend one { .host = \"10.0.0.1\"; .port = \"80\"; }
backend two { .host = \"10.0.0.2\"; .port = \"80\"; }";
    for kind in ["round-robin", "fallback", "random", "hash", "client"] {
        let weight = if matches!(kind, "random" | "hash" | "client") { " .weight = 1;" } else { "" };
        let vcl = format!(
            "{members}\ndirector default {kind} {{ {{ .backend = one;{weight} }} {{ .backend = two;{weight} }} }}
             sub vcl_recv {{ return (pass); }}
             sub vcl_fetch {{ return (hit_for_pass); }}"
        );
        run_with(
            |_| {},
            &vcl,
            async |world| {
                let orders = Rc::new(Cell::new(0));
                for address in ["10.0.0.1:80", "10.0.0.2:80"] {
                    let count = Rc::clone(&orders);
                    world.origin_at(address, move |mut stream| {
                        let count = Rc::clone(&count);
                        async move {
                            OriginRequest::read(&mut stream).await.unwrap();
                            count.set(count.get() + 1);
                        }
                    });
                }
                let mut client = world.client();
                client.send("POST /order HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await;
                assert_eq!(client.response().await.status(), 503);
                assert_eq!(orders.get(), 1, "{kind}\n{}", world.story());
            },
        );
    }
}
