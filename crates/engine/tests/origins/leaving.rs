//! Clients that leave before they are answered: a fetch without other waiters is cancelled, a
//! storable response is fetched to its end.

use super::{backend, reasons};
use crate::support::{OriginRequest, World, run, run_with};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

/// The origin's observations.
#[derive(Default)]
struct Seen {
    asked: Cell<usize>,
    /// Connections that were closed before they were answered.
    dropped: Cell<usize>,
}

/// An origin that takes ten seconds for an answer, and notices when its connection is closed before
/// that.
fn slow(world: &World, says_before: &'static str) -> Rc<Seen> {
    let seen = Rc::new(Seen::default());
    let noted = Rc::clone(&seen);
    world.origin(move |mut stream| {
        let seen = Rc::clone(&noted);
        async move {
            while OriginRequest::read(&mut stream).await.is_some() {
                seen.asked.set(seen.asked.get() + 1);
                let _ = stream.write_all(says_before.as_bytes()).await;
                tokio::select! {
                    _ = stream.read_u8() => {
                        seen.dropped.set(seen.dropped.get() + 1);
                        return;
                    }
                    () = sleep(Duration::from_secs(10)) => {}
                }
                let answer: &[u8] = match says_before {
                    "" => b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok",
                    _ => b"ok",
                };
                let _ = stream.write_all(answer).await;
            }
        }
    });
    seen
}

fn noticing(parameters: &mut Parameters) {
    parameters.client_half_close = true;
}

const PASS: &str = "sub vcl_recv { return (pass); }";

/// A client sends a request, and leaves after a second. Returns the number of connections that the
/// origin saw closed.
fn leaving(change: fn(&mut Parameters), vcl: &str, head: &'static str) -> usize {
    let mut dropped = 0;
    run_with(change, vcl, async |world| {
        let seen = slow(&world, "");
        let mut client = world.client();
        client.send(head).await;
        sleep(Duration::from_secs(1)).await;
        drop(client);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(seen.asked.get(), 1, "{}", world.story());
        dropped = seen.dropped.get();
        let given_up = world.count(Main::FailGivenUp);
        assert_eq!((given_up, world.context.in_flight() == 0), (dropped as u64, dropped == 1), "{}", world.story());
        assert_eq!(reasons(&world).contains(&"fetch-given-up".to_owned()), dropped == 1);
        sleep(Duration::from_secs(20)).await;
        assert_eq!((world.context.in_flight(), backend(&world, "default").connections()), (0, 0));
        assert_eq!(world.count(Main::FetchFailed), 0, "{}", world.story());
    });
    dropped
}

#[test]
fn pass_is_cancelled_when_its_client_leaves_if_enabled() {
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(leaving(noticing, PASS, get), 1);
    assert_eq!(leaving(|_| {}, PASS, get), 0, "a client that closes its end may still want its answer");
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(leaving(noticing, PASS, post), 0, "what changes something is not cut short");
}

#[test]
fn cacheable_fetch_completes_without_its_client() {
    run_with(noticing, "", async |world| {
        let seen = slow(&world, "");
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        drop(client);
        sleep(Duration::from_secs(1)).await;
        assert!(reasons(&world).contains(&"client-gone".to_owned()), "{}", world.story());
        assert_eq!(world.context.in_flight(), 1, "the fetch, without its request");
        sleep(Duration::from_secs(20)).await;
        assert_eq!((seen.asked.get(), seen.dropped.get()), (1, 0));
        assert_eq!(world.client().get("/", "").await.text(), "ok");
        assert_eq!((seen.asked.get(), world.count(Main::CacheHit)), (1, 1), "{}", world.story());
    });
}

#[test]
fn fetch_continues_for_other_waiters_when_a_client_leaves() {
    run_with(noticing, "", async |world| {
        let seen = slow(&world, "");
        let mut first = world.client();
        first.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        let own = Rc::clone(&world);
        let second = tokio::task::spawn_local(async move { own.client().get("/", "").await.text() });
        sleep(Duration::from_secs(1)).await;
        drop(first);
        assert_eq!(second.await.unwrap(), "ok", "{}", world.story());
        assert_eq!((seen.asked.get(), seen.dropped.get()), (1, 0));
    });
}

#[test]
fn half_closed_client_gets_its_answer_unless_disabled() {
    for (change, expected) in [((|_| {}) as fn(&mut Parameters), 200), (noticing, 0)] {
        run_with(change, PASS, async |world| {
            slow(&world, "");
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            client.end().await;
            assert_eq!(client.response().await.status(), expected, "{}", world.story());
        });
    }
}

#[test]
fn once_some_of_the_answer_was_sent_the_end_of_the_clients_side_means_nothing() {
    run_with(noticing, PASS, async |world| {
        slow(&world, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        client.end().await;
        let response = client.response().await;
        assert!(response.is_whole && response.text() == "ok", "{}", world.story());
    });
}

#[test]
fn a_stream_that_is_given_up_ends_its_pass_and_counts_until_what_may_be_stored_has_come() {
    for (vcl, dropped, in_flight) in [(PASS, 1, 0), ("", 0, 2)] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let seen = slow(&world, "");
                let client = world.stream_client();
                client.break_off("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", Duration::from_secs(1)).await;
                sleep(Duration::from_secs(2)).await;
                assert_eq!((seen.asked.get(), seen.dropped.get()), (1, dropped), "{}", world.story());
                assert_eq!(world.context.in_flight(), in_flight, "{}", world.story());
                sleep(Duration::from_secs(20)).await;
                assert_eq!(world.context.in_flight(), 0);
            },
        );
    }
}

#[test]
fn a_pass_that_waits_for_a_connection_is_given_up_with_its_client() {
    let vcl =
        "vcl 4.1; backend default { .host = \"10.0.0.1\"; .max_connections = 1; .wait_limit = 5; .wait_timeout = 60s; }
        sub vcl_recv { return (pass); }";
    run_with(noticing, vcl, async |world| {
        let seen = slow(&world, "");
        let own = Rc::clone(&world);
        let first = tokio::task::spawn_local(async move { own.client().get("/1", "").await.status() });
        sleep(Duration::from_secs(1)).await;
        let mut second = world.client();
        second.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        drop(second);
        assert_eq!(first.await.unwrap(), 200);
        sleep(Duration::from_secs(1)).await;
        assert_eq!((seen.asked.get(), world.count(Main::FailGivenUp)), (1, 1), "{}", world.story());
    });
}

#[test]
fn a_client_that_sends_ahead_is_served_in_order() {
    run(async |world| {
        slow(&world, "");
        let mut client = world.client();
        client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.response().await.text(), "ok");
        assert_eq!(client.response().await.text(), "ok", "{}", world.story());
    });
}
