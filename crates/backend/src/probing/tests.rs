//! The probe's run loop, in memory and with a paused clock.

use super::*;
use crate::dial::DialTarget;
use crate::finding::Finding;
use crate::memory::{Answer, MemoryDial, definition, probe};
use crate::probe::{DURATION_MAX, DURATION_MIN};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, LocalSet};
use vcl_run::program::{BackendDefinition, Endpoint, FollowedName, ProbeDefinition, ViaDefinition};

/// A running probe.
struct Scene {
    backend: Arc<Backend>,
    dial: Rc<MemoryDial>,
    ring: LogRing,
}

impl Scene {
    fn new(script: impl IntoIterator<Item = Answer>) -> Scene {
        Scene::with(definition("b"), probe(2, 4, 3), script)
    }

    fn with(definition: BackendDefinition, probe: ProbeDefinition, script: impl IntoIterator<Item = Answer>) -> Scene {
        let backend = Backend::new("vcl1", definition, Some(&probe), 1.0);
        Scene { backend, dial: Rc::new(MemoryDial::new(script)), ring: LogRing::in_memory(1 << 16) }
    }

    fn start(&self) -> JoinHandle<()> {
        let start = Instant::now();
        let clock = move || 1000.0 + start.elapsed().as_secs_f64();
        let dial: Rc<dyn Dial> = Rc::clone(&self.dial) as Rc<dyn Dial>;
        let run = run_probe(Arc::clone(&self.backend), dial, &Findings::default(), clock, || false, self.ring.clone());
        tokio::task::spawn_local(run)
    }

    /// The origin's end of the next connection, once the probe opens it.
    async fn accept(&self) -> DuplexStream {
        loop {
            if let Some(origin) = self.dial.accept() {
                return origin;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Answers the next check; returns its request.
    async fn answer(&self, response: &[u8]) -> String {
        let mut origin = self.accept().await;
        let mut request = vec![0; 4096];
        let length = origin.read(&mut request).await.unwrap();
        origin.write_all(response).await.unwrap();
        drop(origin);
        tokio::time::sleep(Duration::from_millis(10)).await;
        String::from_utf8_lossy(&request[..length]).into_owned()
    }

    /// The records, without the two times in each.
    fn records(&self) -> Vec<String> {
        let shorten = |payload: &[u8]| {
            let text = String::from_utf8_lossy(payload).into_owned();
            let (head, quoted) = text.split_once('"').unwrap();
            let words: Vec<&str> = head.split_whitespace().collect();
            assert!(words[words.len() - 2..].iter().all(|word| word.split_once('.').unwrap().1.len() == 6), "{text}");
            format!("{} \"{quoted}", words[..words.len() - 2].join(" "))
        };
        self.ring
            .records()
            .into_iter()
            .filter(|record| record.tag == Tag::BackendHealth)
            .inspect(|record| assert_eq!(record.id, LogId::NONE))
            .map(|record| shorten(&record.payload))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn inherited_results_count_before_the_task_of_the_probe_runs() {
    LocalSet::new()
        .run_until(async {
            let mut definition_of_probe = probe(2, 4, 3);
            definition_of_probe.initial = 0;
            let scene = Scene::with(definition("b"), definition_of_probe, []);
            let key = scene.backend.check_key().unwrap();
            let known = Findings::from([(key, Finding { happy: u64::MAX, average_seconds: 0.1 })]);
            let dial: Rc<dyn Dial> = Rc::clone(&scene.dial) as Rc<dyn Dial>;
            let run = run_probe(Arc::clone(&scene.backend), dial, &known, || 1000.0, || false, scene.ring.clone());
            assert!(scene.backend.health().probed());
            drop(run);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_backend_becomes_healthy_and_sick_with_its_answers() {
    LocalSet::new()
        .run_until(async {
            let scene = Scene::new([]);
            assert!(!scene.backend.is_healthy());
            scene.start();
            let request = scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
            assert_eq!(request, "GET / HTTP/1.1\r\nHost: origin.example\r\nConnection: close\r\n\r\n");
            assert!(scene.backend.is_healthy());
            let changed = scene.backend.health().changed();
            assert!((1000.0..1000.1).contains(&changed), "{changed}");
            scene.answer(b"HTTP/1.1 503 Down\r\n\r\n").await;
            assert!(scene.backend.is_healthy(), "three of four");
            scene.answer(b"").await;
            assert!(!scene.backend.is_healthy());
            assert_eq!(
                scene.records(),
                [
                    "b Went sick -------H 2 3 4 \"\"",
                    "b Still sick -------H 2 3 4 \"\"",
                    "b Went healthy 4---X-RH 3 3 4 \"HTTP/1.1 200 OK\"",
                    "b Still healthy 4---X-R- 3 3 4 \"HTTP/1.1 503 Down\"",
                    "b Went sick 4---X--- 2 3 4 \"Empty response\"",
                ]
            );
            assert_eq!(scene.backend.counters().get(Vbe::Happy as usize), 0b11100);
            assert!(scene.backend.health().changed() > 1009.0);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_rested_begins_anew() {
    LocalSet::new()
        .run_until(async {
            let scene = Scene::with(definition("b"), probe(2, 4, 2), []);
            let running = scene.start();
            for _ in 0..3 {
                scene.answer(b"HTTP/1.1 503 Down\r\n\r\n").await;
            }
            assert!(!scene.backend.is_healthy());
            running.abort();
            rest_probe(&scene.backend, 2000.0, &scene.ring);
            assert_eq!((scene.backend.is_healthy(), scene.backend.health().changed()), (true, 2000.0));
            scene.start();
            scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
            assert_eq!(
                scene.records(),
                [
                    "b Still healthy -------H 2 2 4 \"\"",
                    "b Still healthy -------H 2 2 4 \"\"",
                    "b Still healthy 4---X-R- 2 2 4 \"HTTP/1.1 503 Down\"",
                    "b Still healthy 4---X-R- 2 2 4 \"HTTP/1.1 503 Down\"",
                    "b Went sick 4---X-R- 1 2 4 \"HTTP/1.1 503 Down\"",
                    "b Went healthy -------H 2 2 4 \"\"",
                    "b Still healthy -------H 2 2 4 \"\"",
                    "b Still healthy 4---X-RH 3 2 4 \"HTTP/1.1 200 OK\"",
                ]
            );
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_pretends_nothing_leaves_the_health_to_its_next_check() {
    LocalSet::new()
        .run_until(async {
            let scene = Scene::with(definition("b"), probe(0, 4, 1), []);
            let running = scene.start();
            scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
            running.abort();
            rest_probe(&scene.backend, 2000.0, &scene.ring);
            assert!(scene.backend.is_healthy());
            assert_eq!(scene.backend.probe().unwrap().window().good(), 0);
            scene.start();
            scene.answer(b"HTTP/1.1 503 Down\r\n\r\n").await;
            assert!(!scene.backend.is_healthy());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn checks_start_one_interval_apart_however_long_they_take() {
    LocalSet::new()
        .run_until(async {
            let scene = Scene::new([]);
            scene.start();
            let start = Instant::now();
            let mut starts = Vec::new();
            for _ in 0..3 {
                let origin = scene.accept().await;
                starts.push(start.elapsed().as_secs_f64());
                tokio::time::sleep(Duration::from_secs(1)).await;
                drop(origin);
            }
            for (number, at) in starts.iter().enumerate() {
                assert!((at - 5.0 * number as f64).abs() < 0.1, "{starts:?}");
            }
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn failures_say_where_they_happened() {
    LocalSet::new()
        .run_until(async {
            let scene = Scene::new([Answer::Fail(ErrorKind::ConnectionRefused), Answer::Hang, Answer::Accept]);
            scene.start();
            let origin = scene.accept().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            drop(origin);
            assert_eq!(
                scene.records()[2..],
                [
                    "b Still sick -------- 2 3 4 \"Open error 111 (Connection refused)\"",
                    "b Still sick -------- 2 3 4 \"Open error 110 (Connection timed out)\"",
                    "b Still sick 4---Xr-- 1 3 4 \"Poll error 110 (Connection timed out)\"",
                ]
            );
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn probe_without_expect_close_is_judged_by_the_response_at_the_timeout() {
    for (expect_close, said) in
        [(true, "4---Xr-- 2 3 4 \"Poll error 110 (Connection timed out)\""), (false, "4---X-RH")]
    {
        LocalSet::new()
            .run_until(async {
                let definition_of_probe = ProbeDefinition { expect_close, ..probe(2, 4, 3) };
                let scene = Scene::with(definition("b"), definition_of_probe, []);
                scene.start();
                let mut origin = scene.accept().await;
                origin.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                tokio::time::sleep(Duration::from_secs(3)).await;
                drop(origin);
                let last = scene.records().pop().unwrap();
                assert!(last.contains(said), "{last}");
                assert_eq!(scene.backend.is_healthy(), !expect_close);
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_finds_the_address_of_a_name_that_can_be_reached() {
    for first in [Answer::Fail(ErrorKind::ConnectionRefused), Answer::Hang] {
        LocalSet::new()
            .run_until(async {
                let follows = Some(FollowedName { host: "origin.example".to_owned(), port: 80 });
                let scene = Scene::with(BackendDefinition { follows, ..definition("b") }, probe(2, 4, 3), [first]);
                scene.backend.set_addresses(&["192.0.2.1:80", "[2001:db8::1]:80"].map(|text| text.parse().unwrap()));
                scene.start();
                scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
                assert!(scene.backend.is_healthy(), "{:?}", scene.records());
                assert_eq!(scene.backend.probe().unwrap().window().newest_flags(), "-6--X-RH");
                scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let is_v6 = |target: &DialTarget| matches!(target, DialTarget::Ip { v4: None, .. });
                let targets: Vec<bool> = scene.dial.targets.borrow().iter().map(is_v6).collect();
                assert_eq!(targets, [false, true, true], "fetches and checks pass over it for a while");
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_goes_through_the_proxy_of_its_backend() {
    LocalSet::new()
        .run_until(async {
            let endpoint = Endpoint::Ip { v4: Some(([198, 51, 100, 1], 443).into()), v6: None };
            let via = ViaDefinition { name: "proxy".to_owned(), endpoint, authority: "origin.example".to_owned() };
            let scene = Scene::with(BackendDefinition { via: Some(via), ..definition("b") }, probe(2, 4, 3), []);
            assert_eq!(
                scene.backend.routes(false)[0].target,
                DialTarget::Ip { v4: Some(([198, 51, 100, 1], 443).into()), v6: None, prefer_v6: false }
            );
            scene.start();
            let request = scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
            let (header, request) = request.split_once("origin.example").unwrap();
            assert!(header.starts_with("\r\n\r\n\0\r\nQUIT\n"), "{header:?}");
            assert!(request.starts_with("GET / HTTP/1.1\r\n"), "{request:?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_ended_without_a_word_begins_anew_too() {
    let scene = Scene::new([]);
    let first = LocalSet::new();
    first
        .run_until(async {
            scene.start();
            scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
        })
        .await;
    drop(first);
    let second = LocalSet::new();
    second
        .run_until(async {
            scene.start();
            scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await;
        })
        .await;
    assert_eq!(
        scene.records()[3..],
        ["b Went sick -------H 2 3 4 \"\"", "b Went healthy 4---X-RH 3 3 4 \"HTTP/1.1 200 OK\""]
    );
}

#[tokio::test(start_paused = true)]
async fn own_requests_and_proxy_headers_are_sent_as_defined() {
    LocalSet::new()
        .run_until(async {
            let mut proxied = definition("b");
            proxied.proxy_header = 1;
            let mut own = probe(0, 4, 3);
            own.request = "HEAD /x HTTP/1.1\r\nHost: y\r\n\r\n".to_owned();
            own.expected_response = 204;
            let scene = Scene::with(proxied, own, []);
            scene.start();
            let request = scene.answer(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            assert_eq!(request, "PROXY TCP4 192.0.2.1 192.0.2.1 40000 40000\r\nHEAD /x HTTP/1.1\r\nHost: y\r\n\r\n");
            assert_eq!(scene.backend.probe().unwrap().window().good(), 1);

            let mut unix = definition("u");
            unix.endpoint = Endpoint::Unix("/s".into());
            unix.proxy_header = 1;
            let scene = Scene::with(unix, probe(0, 4, 3), []);
            scene.start();
            assert!(scene.answer(b"HTTP/1.1 200 OK\r\n\r\n").await.starts_with("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n"));
            assert_eq!(*scene.dial.targets.borrow(), [DialTarget::Unix("/s".into())]);
            assert_eq!(scene.backend.probe().unwrap().window().newest_flags(), "--U-X-RH");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_is_read_to_its_end_but_only_its_start_is_looked_at() {
    LocalSet::new()
        .run_until(async {
            let scene = Scene::new([]);
            scene.start();
            let long = [&b"HTTP/1.1 200 "[..], &[b'x'; 300], b"\r\n\r\n", &[b'y'; 30_000]].concat();
            scene.answer(&long).await;
            let expected = format!("b Went healthy 4---X-RH 3 3 4 \"HTTP/1.1 200 {}\"", "x".repeat(127 - 13));
            assert_eq!(scene.records().last().unwrap(), &expected);
        })
        .await;
}

#[test]
fn no_definition_stops_the_clock_or_races_it() {
    for seconds in [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0, 1e300] {
        let duration = bounded(seconds);
        assert!((DURATION_MIN..=DURATION_MAX).contains(&duration), "{seconds}");
    }
    assert_eq!(bounded(0.25), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_speaks_only_http2_is_checked_over_http2() {
    LocalSet::new()
        .run_until(async {
            let definition = BackendDefinition { http2: true, host_header: "a".to_owned(), ..definition("b") };
            let scene = Scene::with(definition, probe(2, 4, 3), [Answer::Accept, Answer::Accept]);
            scene.start();
            for (status, text) in [(200, "HTTP/2.0 200"), (503, "HTTP/2.0 503")] {
                let handshake =
                    h2::server::Builder::new().handshake::<_, std::io::Cursor<Vec<u8>>>(scene.accept().await);
                let mut connection = handshake.await.unwrap();
                let (request, mut respond) = connection.accept().await.unwrap().unwrap();
                assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("GET", "http://a/"));
                let head = http::Response::builder().status(status).body(()).unwrap();
                let mut body = respond.send_response(head, false).unwrap();
                body.send_data(std::io::Cursor::new(vec![7; 100]), true).unwrap();
                while connection.accept().await.is_some() {}
                tokio::time::sleep(Duration::from_millis(10)).await;
                let records = scene.records();
                assert!(records.last().unwrap().contains(text), "{records:?}");
            }
        })
        .await;
}
