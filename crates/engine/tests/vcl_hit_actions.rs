//! `return (miss)` and `return (fetch)` in `vcl_hit`, of the first releases of VCL 4.

use crate::support::{OriginRequest, OriginStream, World, always, run_with};
use std::cell::Cell;
use std::rc::Rc;
use tokio::io::AsyncWriteExt;
use tokio::time::{Duration, sleep};

/// Serves bodies with rising numbers, each for ten seconds and with a long grace.
async fn numbered(mut stream: OriginStream, count: Rc<Cell<u32>>) {
    while let Some(request) = OriginRequest::read(&mut stream).await {
        let number = count.get() + 1;
        count.set(number);
        let status = if request.header("if-none-match").is_some() { "304 Not Modified" } else { "200 OK" };
        let body = if status.starts_with("304") { String::new() } else { number.to_string() };
        let head = format!(
            "HTTP/1.1 {status}\r\nCache-Control: max-age=10\r\nETag: \"e\"\r\nFetch: {number}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        sleep(Duration::from_millis(100)).await;
        if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
            return;
        }
    }
}

const GRACE: &str = "sub vcl_backend_response { set beresp.grace = 1h; }";

#[test]
fn stale_object_is_refreshed_in_the_foreground_with_validation() {
    for action in ["miss", "fetch"] {
        let vcl = format!("{GRACE} sub vcl_hit {{ if (obj.ttl < 0s) {{ return ({action}); }} }}");
        run_with(
            |_| {},
            &vcl,
            async |world| {
                let count = Rc::new(Cell::new(0));
                let served = Rc::clone(&count);
                world.origin(move |stream| numbered(stream, Rc::clone(&served)));
                assert_eq!(world.client().get("/", "").await.text(), "1");
                sleep(Duration::from_secs(12)).await;
                let refreshed = world.client().get("/", "").await;
                assert_eq!(
                    (refreshed.header("fetch"), refreshed.text().as_str()),
                    (Some("2"), "1"),
                    "{}",
                    world.story()
                );
                // The refreshed object is fresh for the next one.
                assert_eq!(world.client().get("/", "").await.header("fetch"), Some("2"));
                assert_eq!(count.get(), 2);
                assert!(world.story().contains(&format!("VCL_return {action}")), "{}", world.story());
            },
        );
    }
}

#[test]
fn fresh_object_is_replaced_and_serves_others_until_then() {
    let vcl =
        format!("{GRACE} sub renew {{ if (req.http.Renew) {{ return (fetch); }} }} sub vcl_hit {{ call renew; }}");
    run_with(
        |_| {},
        &vcl,
        async |world| {
            let count = Rc::new(Cell::new(0));
            let served = Rc::clone(&count);
            world.origin(move |stream| numbered(stream, Rc::clone(&served)));
            assert_eq!(world.client().get("/", "").await.text(), "1");
            let (mut renewing, mut other) = (world.client(), world.client());
            let (renewed, others) = tokio::join!(renewing.get("/", "Renew: 1\r\n"), async {
                sleep(Duration::from_millis(50)).await;
                other.get("/", "").await
            });
            assert_eq!((renewed.text().as_str(), others.text().as_str()), ("2", "1"), "{}", world.story());
            assert_eq!(world.client().get("/", "").await.text(), "2", "the response was stored");
            assert_eq!(count.get(), 2);
        },
    );
}

#[test]
fn stale_object_serves_others_while_it_is_replaced() {
    let vcl = format!("{GRACE} sub vcl_hit {{ if (req.http.Renew && obj.ttl < 0s) {{ return (miss); }} }}");
    run_with(
        |_| {},
        &vcl,
        async |world| {
            let count = Rc::new(Cell::new(0));
            let served = Rc::clone(&count);
            world.origin(move |stream| numbered(stream, Rc::clone(&served)));
            assert_eq!(world.client().get("/", "").await.header("fetch"), Some("1"));
            sleep(Duration::from_secs(12)).await;
            let (mut renewing, mut other) = (world.client(), world.client());
            let (renewed, others) = tokio::join!(renewing.get("/", "Renew: 1\r\n"), async {
                sleep(Duration::from_millis(50)).await;
                other.get("/", "").await
            });
            assert_eq!((renewed.header("fetch"), others.header("fetch")), (Some("2"), Some("1")), "{}", world.story());
            assert_eq!(count.get(), 2, "the other request starts no fetch of its own");
        },
    );
}

#[test]
fn fragment_of_esi_is_replaced_on_its_level() {
    let vcl = "sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }
        sub vcl_hit { if (req.esi_level > 0 && req.http.Renew) { return (miss); } }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("Cache-Control: max-age=60\r\n", "<esi:include src=\"/part\"/>"));
            let text = world.client().get("/", "").await.text();
            let fetches = |world: &World| world.story().matches("BereqURL").count();
            let before = fetches(&world);
            assert_eq!(world.client().get("/", "Renew: 1\r\n").await.text(), text);
            assert_eq!(fetches(&world), before + 1, "{}", world.story());
        },
    );
}
