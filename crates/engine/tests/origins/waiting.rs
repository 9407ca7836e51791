//! Requests that wait for another's fetch, or for a connection: their maximum number, their maximum
//! time, and the responses of the others.

use super::{reasons, vbe};
use crate::support::{OriginRequest, Response, World, run_with};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::{Main, Vbe};
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// An origin that takes this long for each answer.
fn slow(world: &World, seconds: u64, headers: &'static str) {
    world.origin(move |mut stream| async move {
        while OriginRequest::read(&mut stream).await.is_some() {
            sleep(Duration::from_secs(seconds)).await;
            let head = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok");
            let _ = stream.write_all(head.as_bytes()).await;
        }
    });
}

/// `count` clients request the same page at once; returns each one's response, and its time in
/// seconds.
async fn crowd(world: &Rc<World>, target: &'static str, count: usize) -> Vec<(Response, u64)> {
    let ask = || {
        let world = Rc::clone(world);
        tokio::task::spawn_local(async move {
            let began = world.context.clock.now();
            let response = world.client().get(target, "").await;
            (response, (world.context.clock.now() - began).round() as u64)
        })
    };
    let asking: Vec<_> = (0..count).map(|_| ask()).collect();
    let mut answers = Vec::new();
    for task in asking {
        answers.push(task.await.unwrap());
    }
    answers
}

fn limited(most: u64, seconds: f64) -> impl FnOnce(&mut Parameters) {
    move |parameters| {
        parameters.waiting_requests_max = most;
        parameters.waiting_timeout = seconds;
    }
}

#[test]
fn only_so_many_requests_wait_for_another_and_the_rest_is_answered_at_once() {
    run_with(limited(3, 0.0), "", async |world| {
        slow(&world, 10, "Cache-Control: max-age=60\r\n");
        let answers = crowd(&world, "/", 10).await;
        let served = answers.iter().filter(|(response, seconds)| response.status() == 200 && *seconds == 10).count();
        let refused = answers.iter().filter(|(response, seconds)| response.status() == 503 && *seconds == 0).count();
        assert_eq!((served, refused), (4, 6), "{}", world.story());
        assert_eq!((world.count(Main::WaitingRefused), world.count(Main::NWaiting)), (6, 0));
        assert_eq!(reasons(&world).iter().filter(|word| *word == "waiting-full").count(), 6);
        assert_eq!(crowd(&world, "/", 10).await.len(), 10, "hits do not wait");
        assert_eq!(world.count(Main::WaitingRefused), 6);
    });
}

#[test]
fn request_waits_for_another_within_the_limit_of_the_parameter() {
    run_with(limited(0, 4.0), "", async |world| {
        slow(&world, 10, "Cache-Control: max-age=60\r\n");
        let answers = crowd(&world, "/", 3).await;
        let mut seconds: Vec<_> = answers.iter().map(|(response, seconds)| (response.status(), *seconds)).collect();
        seconds.sort_unstable();
        assert_eq!(seconds, [(200, 10), (503, 4), (503, 4)], "{}", world.story());
        assert_eq!((world.count(Main::WaitingTimeout), world.count(Main::NWaiting)), (2, 0));
        assert!(reasons(&world).contains(&"waiting-timeout".to_owned()));
    });
}

#[test]
fn requests_that_must_not_wait_get_a_stale_response_if_allowed() {
    for (headers, statuses) in [
        ("Cache-Control: max-age=5\r\nETag: \"a\"\r\n", [200, 200, 200, 200]),
        ("Cache-Control: max-age=5, must-revalidate\r\nETag: \"a\"\r\n", [200, 200, 503, 503]),
    ] {
        run_with(
            |parameters| {
                limited(1, 0.0)(parameters);
                parameters.http_policy = "rfc".to_owned();
                parameters.default_grace = 0.0;
                parameters.default_keep = 3600.0;
            },
            "",
            async |world| {
                slow(&world, 10, headers);
                assert_eq!(world.client().get("/", "").await.status(), 200);
                sleep(Duration::from_secs(20)).await;
                let answers = crowd(&world, "/", 4).await;
                let mut seen: Vec<_> = answers.iter().map(|(response, _)| response.status()).collect();
                seen.sort_unstable();
                assert_eq!(seen, statuses, "{headers} {}", world.story());
                assert_eq!(answers.iter().filter(|(_, seconds)| *seconds == 0).count(), 2);
                assert_eq!(world.count(Main::WaitingRefused), 2);
            },
        );
    }
}

#[test]
fn a_full_queue_for_connections_answers_at_once_and_one_that_is_too_slow_in_time() {
    let vcl = "vcl 4.1;
        backend default { .host = \"10.0.0.1\"; .max_connections = 1; .wait_limit = 1; .wait_timeout = 5s; }
        sub vcl_recv { return (pass); } sub vcl_backend_error { set beresp.http.said = beresp.reason; }";
    run_with(
        |parameters| parameters.backend_error_reasons = true,
        vcl,
        async |world| {
            slow(&world, 10, "");
            let answers = crowd(&world, "/", 4).await;
            let mut seen: Vec<_> =
                answers.iter().map(|(response, seconds)| (*seconds, response.header("said").unwrap_or("ok"))).collect();
            seen.sort_unstable();
            let full = (0, "Backend queue full");
            assert_eq!(seen, [full, full, (5, "Backend queue timeout"), (10, "ok")], "{}", world.story());
            assert_eq!((world.count(Main::BackendQueueFull), world.count(Main::BackendWaitTimeout)), (2, 1));
            assert_eq!((vbe(&world, "default", Vbe::Busy), vbe(&world, "default", Vbe::Waiting)), (3, 0));
            let words = reasons(&world);
            assert!(
                words.contains(&"backend-queue-full".to_owned()) && words.contains(&"backend-wait-timeout".to_owned())
            );
        },
    );
}

#[test]
fn a_full_queue_for_connections_leaves_stale_responses_to_answer() {
    let vcl = "vcl 4.1; backend default { .host = \"10.0.0.1\"; .max_connections = 1; }";
    run_with(
        |parameters| {
            parameters.http_policy = "rfc".to_owned();
            parameters.default_grace = 0.0;
            parameters.default_keep = 3600.0;
        },
        vcl,
        async |world| {
            slow(&world, 10, "Cache-Control: max-age=15\r\n");
            assert_eq!(world.client().get("/a", "").await.status(), 200);
            sleep(Duration::from_secs(20)).await;
            let occupied = Rc::new(Cell::new(0));
            let (own, status) = (Rc::clone(&world), Rc::clone(&occupied));
            let other = tokio::task::spawn_local(async move { status.set(own.client().get("/b", "").await.status()) });
            sleep(Duration::from_secs(1)).await;
            let answers = crowd(&world, "/a", 1).await;
            assert_eq!((answers[0].0.status(), answers[0].1), (200, 0), "{}", world.story());
            assert!(reasons(&world).contains(&"backend-busy".to_owned()));
            other.await.unwrap();
            assert_eq!(occupied.get(), 200);
        },
    );
}

#[test]
fn requests_that_wait_count_for_the_memory_that_all_may_hold() {
    run_with(
        |parameters| parameters.requests_memory_max = 8 << 20,
        "",
        async |world| {
            slow(&world, 10, "Cache-Control: max-age=60\r\n");
            let answers = crowd(&world, "/", 3000).await;
            let served = answers.iter().filter(|(response, _)| response.status() == 200).count();
            let refused =
                answers.iter().filter(|(response, seconds)| response.status() == 503 && *seconds == 0).count();
            assert_eq!(served + refused, 3000);
            assert!(served > 0 && refused > 0, "{served} {refused}");
            assert_eq!(world.count(Main::ReqRefused), refused as u64);
        },
    );
}
