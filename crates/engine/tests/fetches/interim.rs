//! The handling of interim responses (1xx) of an origin.

use crate::support::{OriginRequest, OriginStream, World, run, run_with};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

const EARLY: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nX-Early: 1\r\n\r\n";
const FINAL: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".into();
}

/// An origin that sends `early` at once and the final response seconds later, once.
async fn hesitant(mut stream: OriginStream, early: String) {
    while OriginRequest::read(&mut stream).await.is_some() {
        stream.write_all(early.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(7)).await;
        stream.write_all(FINAL.as_bytes()).await.unwrap();
    }
}

fn serve_hesitantly(world: &World, early: &str) {
    let early = early.to_owned();
    world.origin(move |stream| hesitant(stream, early.clone()));
}

#[test]
fn interim_responses_reach_the_client_at_once_and_leave_nothing_in_the_final_one() {
    run_with(rfc, "", |world| async move {
        serve_hesitantly(&world, &format!("HTTP/1.1 102 Processing\r\n\r\n{EARLY}"));
        let mut client = world.client();
        let asked = Instant::now();
        assert_eq!(client.get("/a", "").await.head, "HTTP/1.1 102 Processing\r\n\r\n");
        assert_eq!(client.response().await.head, EARLY);
        assert_eq!(asked.elapsed().as_secs(), 0, "without waiting for the final response");
        let response = client.response().await;
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
        assert_eq!(response.header("x-early"), None);
        let hit = client.get("/a", "").await;
        assert_eq!((hit.status(), hit.header("x-early"), world.dialled()), (200, None, 1), "{}", world.story());
        assert_eq!((world.count(Main::CacheHit), world.count(Main::Fetch1xx)), (1, 2));
        world.expect_log("2 RespStatus 103");
        world.expect_log("2 RespHeader Link: </style.css>; rel=preload");
        world.expect_log("3 BerespStatus 103");
        assert_eq!(world.count(Main::ReqBytes), 0, "what they took is given back");
    });
}

#[test]
fn only_the_client_that_asked_the_origin_gets_them() {
    run_with(rfc, "", |world| async move {
        serve_hesitantly(&world, EARLY);
        let (mut first, mut second) = (world.client(), world.client());
        let ask = async {
            let early = first.get("/a", "").await.status();
            (early, first.response().await.status())
        };
        let wait = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            second.get("/a", "").await.status()
        };
        assert_eq!(tokio::join!(ask, wait), ((103, 200), 200));
        assert_eq!((world.dialled(), world.count(Main::BackendReq)), (1, 1));
    });
}

#[test]
fn a_pass_and_another_transport_get_them_too() {
    run_with(rfc, "sub vcl_recv { if (req.url == \"/pass\") { return (pass); } }", |world| async move {
        serve_hesitantly(&world, EARLY);
        let mut client = world.client();
        assert_eq!(client.get("/pass", "").await.status(), 103);
        assert_eq!(client.response().await.status(), 200);
        let response = world.stream_client().ask("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", b"").await;
        assert_eq!((response.status(), response.interim.len()), (200, 1));
        assert!(response.interim[0].contains("Link: </style.css>"), "{:?}", response.interim);
    });
}

#[test]
fn connection_and_body_fields_of_interim_responses_are_removed() {
    run_with(rfc, "", |world| async move {
        let fields = "Connection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 9\r\n\
            Transfer-Encoding: chunked\r\nTrailer: X\r\nX-End: 1\r\n";
        serve_hesitantly(&world, &format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\n"));
        let mut client = world.client();
        assert_eq!(client.get("/a", "").await.head, "HTTP/1.1 103 Early Hints\r\nX-End: 1\r\n\r\n");
        assert_eq!(client.response().await.text(), "hello");
    });
}

/// Asserts that the client gets only the final response.
async fn expect_only_final(world: Rc<World>, version: &str, early: &str) {
    serve_hesitantly(&world, early);
    let mut client = world.client();
    client.send(format!("GET /a HTTP/{version}\r\nHost: a\r\n\r\n")).await;
    assert_eq!(client.response().await.status(), 200, "{}", world.story());
    assert!(world.count(Main::Fetch1xx) > 0);
}

#[test]
fn clients_of_http_1_0_get_none() {
    run_with(rfc, "", |world| expect_only_final(world, "1.0", EARLY));
}

#[test]
fn the_origins_go_ahead_is_not_the_clients() {
    run_with(rfc, "", |world| expect_only_final(world, "1.1", "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n"));
}

#[test]
fn under_the_policy_of_varnish_they_are_skipped() {
    run(|world| expect_only_final(world, "1.1", EARLY));
}

#[test]
fn a_client_that_does_not_read_holds_a_bounded_number_of_them() {
    run_with(rfc, "", |world| async move {
        let early = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(7_000)).repeat(16);
        serve_hesitantly(&world, &early);
        let mut client = world.client_with(100);
        client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.expect_log("Error Interim response not passed on: too many wait for the client");
        let mut interim = 0;
        while client.response().await.status() == 103 {
            interim += 1;
        }
        assert!((5..16).contains(&interim), "{interim}");
        assert_eq!(world.count(Main::ReqBytes), 0);
    });
}

#[test]
fn one_more_than_the_origin_may_send_is_a_503() {
    run_with(rfc, "", |world| async move {
        serve_hesitantly(&world, &EARLY.repeat(surface::limits::INTERIM_MAX + 1));
        let mut client = world.client();
        client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut statuses = Vec::new();
        for _ in 0..=surface::limits::INTERIM_MAX {
            statuses.push(client.response().await.status());
        }
        assert_eq!(statuses.iter().filter(|status| **status == 103).count(), surface::limits::INTERIM_MAX);
        assert_eq!(statuses.last(), Some(&503), "{statuses:?}");
    });
}

#[test]
fn an_early_answer_to_a_body_that_is_still_coming_is_passed_on() {
    run_with(rfc, "", |world| async move {
        world.origin(async |mut stream: OriginStream| {
            let refusal = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            let _ = stream.read(&mut [0; 64]).await;
            stream.write_all(format!("{EARLY}{refusal}").as_bytes()).await.unwrap();
            // The engine is writing by then, and finds the answer instead of room for more.
            tokio::time::sleep(Duration::from_secs(1)).await;
        });
        let mut client = world.client();
        let head = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n".to_owned();
        assert_eq!(client.post(head, vec![b'x'; 1_000_000]).await.status(), 103, "{}", world.story());
        assert_eq!(client.response().await.status(), 413);
    });
}
