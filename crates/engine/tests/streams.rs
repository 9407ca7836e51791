//! Parallel exchanges on one connection, over a transport that is not HTTP/1
//! (`support/streams.rs`).

use super::support::{always, run, run_with, serve_each};
use std::time::Duration;
use surface::counter::Main;

/// The origin's body for `/<number>`.
fn body_of(number: usize) -> Vec<u8> {
    format!("<{number}>").bytes().cycle().take(3_000 + 211 * number).collect()
}

#[test]
fn a_hundred_exchanges_of_one_connection_interleave_and_each_gets_its_own() {
    run_with(
        |_| {},
        HUNDRED_VCL,
        async |world| {
            world.origin(serve_each(|request| {
                let number: usize = request.target().trim_start_matches('/').parse().unwrap();
                let body = String::from_utf8(body_of(number)).unwrap();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
            }));
            let client = world.stream_client();
            for round in ["miss", "hit"] {
                let asks = (0..100).map(|number| {
                    let client = &client;
                    async move {
                        let head = format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
                        (number, client.ask(&head, b"").await)
                    }
                });
                for (number, response) in join_all(asks).await {
                    assert_eq!(response.status(), 200, "{}", response.head);
                    assert!(response.is_whole && response.body == body_of(number), "{round} {number}");
                    // VCL's settings of the session apply to that exchange alone.
                    let seconds = if number == 7 { "7.000" } else { "600.000" };
                    assert_eq!(response.header("x-send-timeout"), Some(seconds), "{number}");
                    assert_eq!(response.header("x-transport"), Some("STREAMS"));
                    assert_eq!(response.header("connection"), None, "that is HTTP/1's");
                }
            }
            assert_eq!(client.open_peak(), 100);
            assert!(client.switches() > 1000, "only {} switches", client.switches());
            assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (100, 100));
            assert_eq!((world.count(Main::SSess), world.count(Main::ClientReq)), (1, 200));
            drop(client);
            world.expect_log("SessClose REM_CLOSE");
        },
    );
}

const HUNDRED_VCL: &str = r#"
sub vcl_recv { if (req.url == "/7") { set sess.send_timeout = 7s; } }
sub vcl_deliver {
    set resp.http.X-Send-Timeout = sess.send_timeout;
    set resp.http.X-Transport = req.transport;
}
"#;

/// All of them at once, in the order of their ends.
async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        pending.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[test]
fn a_stream_has_no_wire_to_pipe_so_the_request_is_passed() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pipe); }",
        async |world| {
            world.origin(always("", "from the origin"));
            let client = world.stream_client();
            let response = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"").await;
            assert_eq!((response.status(), response.text().as_str()), (200, "from the origin"));
            world.expect_log("VCL_Error vcl_recv{} returns pipe for STREAMS request.  Doing pass.");
            assert_eq!((world.count(Main::SPipe), world.count(Main::SPass)), (0, 1));
        },
    );
}

#[test]
fn body_on_a_stream_reaches_the_origin_and_an_unneeded_one_is_skipped() {
    run(async |world| {
        world.origin(serve_each(|request| {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
        }));
        let client = world.stream_client();
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n";
        let response = client.ask(head, &[b'x'; 5000]).await;
        assert_eq!((response.status(), response.body.len()), (200, 5000));
        let purge = "FROB / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n";
        world.load("refusing", "sub vcl_recv { return (synth(405)); }");
        assert_eq!(client.ask(purge, &[b'x'; 5000]).await.status(), 405);
    });
}

#[test]
fn a_stream_that_is_given_up_ends_alone() {
    run(async |world| {
        world.origin(always("", &"x".repeat(200_000)));
        let client = world.stream_client();
        let head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let (kept, ()) = tokio::join!(client.ask(head, b""), client.break_off(head, Duration::from_micros(300)));
        assert_eq!((kept.status(), kept.body.len(), kept.is_whole), (200, 200_000, true));
        assert_eq!(client.ask(head, b"").await.body.len(), 200_000);
        assert_eq!(world.context.in_flight(), 0);
    });
}
