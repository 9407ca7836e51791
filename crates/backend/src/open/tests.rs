//! Opening, reuse, limits and hold-down, in memory and with a paused clock.

use super::*;
use crate::health::AdminHealth;
use crate::memory::{Answer, MemoryDial, definition, tls};
use std::cell::Cell;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, DuplexStream};
use vcl_run::program::{BackendDefinition, BreakerDefinition, FollowedName};

/// One event loop with one backend.
struct Scene {
    backend: Arc<Backend>,
    pool: Pool,
    dial: MemoryDial,
    parameters: Parameters,
    counters: MainCounters,
    now: Cell<f64>,
}

impl Scene {
    fn new(script: impl IntoIterator<Item = Answer>) -> Scene {
        Scene::with(definition("b"), script)
    }

    fn with(definition: BackendDefinition, script: impl IntoIterator<Item = Answer>) -> Scene {
        Scene {
            backend: Backend::new("vcl1", definition, None, 0.0),
            pool: Pool::new(),
            dial: MemoryDial::new(script),
            parameters: Parameters::default(),
            counters: MainCounters::new(),
            now: Cell::new(1000.0),
        }
    }

    async fn open_with(
        &self,
        fresh: bool,
        client: Option<(SocketAddr, SocketAddr)>,
        connect_timeout: Option<f64>,
    ) -> Result<BackendConnection, OpenError> {
        self.open_from((fresh, None), client, connect_timeout).await
    }

    async fn open_from(
        &self,
        (fresh, held): (bool, Option<Place>),
        client: Option<(SocketAddr, SocketAddr)>,
        connect_timeout: Option<f64>,
    ) -> Result<BackendConnection, OpenError> {
        let clock = || self.now.get();
        let request = OpenRequest {
            backend: &self.backend,
            pool: &self.pool,
            dial: &self.dial,
            parameters: &self.parameters,
            counters: &self.counters,
            clock: &clock,
            connect_timeout,
            fresh,
            client,
            offers_http2: false,
            held: Cell::new(held),
            trial: Cell::default(),
        };
        open(&request).await
    }

    async fn open(&self) -> Result<BackendConnection, OpenError> {
        self.open_with(false, None, None).await
    }

    async fn error(&self) -> String {
        match self.open().await {
            Ok(_) => panic!("opened"),
            Err(error) => error.text(),
        }
    }

    fn recycle(&self, connection: BackendConnection) -> bool {
        connection.recycle(&self.pool, &self.counters, self.now.get())
    }

    fn vbe(&self, counter: Vbe) -> u64 {
        self.backend.counters().get(counter as usize)
    }
}

async fn received(mut origin: DuplexStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    origin.read_to_end(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test]
async fn a_connection_given_back_is_used_again_and_the_youngest_first() {
    let scene = Scene::new([]);
    let first = scene.open().await.unwrap();
    let second = scene.open().await.unwrap();
    assert_eq!(scene.vbe(Vbe::Conn), 2);
    assert_eq!(first.open_record().to_string(), "7 b 192.0.2.1 80 192.0.2.1 40000 connect");
    let (mut origin_of_first, _origin_of_second) = (scene.dial.accept().unwrap(), scene.dial.accept().unwrap());
    assert!(scene.recycle(second));
    assert!(scene.recycle(first));
    assert_eq!((scene.vbe(Vbe::Conn), scene.pool.len()), (0, 2));

    let mut again = scene.open().await.unwrap();
    assert!(again.reused);
    assert_eq!(again.open_record().to_string(), "7 b 192.0.2.1 80 192.0.2.1 40000 reuse");
    again.stream.write_all(b"hello").await.unwrap();
    let mut bytes = [0; 5];
    origin_of_first.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");

    assert_eq!(scene.dial.connects(), 2);
    for (counter, expected) in [(Main::BackendConn, 2), (Main::BackendReuse, 1), (Main::BackendRecycle, 2)] {
        assert_eq!(scene.counters.get(counter), expected, "{counter:?}");
    }
    assert_eq!(scene.vbe(Vbe::Req), 3);
}

#[tokio::test]
async fn idle_connections_that_were_closed_or_written_to_are_not_handed_out() {
    let scene = Scene::new([]);
    let connections = [scene.open().await.unwrap(), scene.open().await.unwrap(), scene.open().await.unwrap()];
    let alive = scene.dial.accept().unwrap();
    let closed = scene.dial.accept().unwrap();
    let mut chatty = scene.dial.accept().unwrap();
    for connection in connections {
        scene.recycle(connection);
    }
    drop(closed);
    chatty.write_all(b"x").await.unwrap();
    let connection = scene.open().await.unwrap();
    assert!(connection.reused);
    assert!(scene.pool.is_empty(), "both others are gone");
    drop(connection);
    assert_eq!(received(alive).await, b"");
}

#[tokio::test]
async fn idle_connections_expire() {
    let scene = Scene::new([]);
    let (old, young) = (scene.open().await.unwrap(), scene.open().await.unwrap());
    let origins = [scene.dial.accept().unwrap(), scene.dial.accept().unwrap()];
    scene.recycle(old);
    scene.now.set(1030.0);
    scene.recycle(young);
    assert_eq!(scene.pool.close_idle(1060.0, 60.0), 1);
    assert_eq!(scene.pool.len(), 1);
    scene.now.set(1090.0);
    assert!(!scene.open().await.unwrap().reused);
    assert!(scene.pool.is_empty());
    drop(origins);
}

#[tokio::test]
async fn the_pool_is_bounded_and_shared_by_backends_at_one_address() {
    let scene = Scene::new([]);
    let mut open = Vec::new();
    for _ in 0..=surface::limits::IDLE_BACKEND_CONNECTIONS_MAX {
        open.push(scene.open().await.unwrap());
    }
    for connection in open {
        scene.recycle(connection);
    }
    assert_eq!(scene.pool.len(), surface::limits::IDLE_BACKEND_CONNECTIONS_MAX);
    let twin = Backend::new("vcl2", definition("other"), None, 0.0);
    assert!(scene.pool.take(twin.pool_key(), 1000.0, 60.0).is_some());
    let mut elsewhere = definition("b");
    elsewhere.preamble = b"hi".to_vec();
    let elsewhere = Backend::new("vcl1", elsewhere, None, 0.0);
    assert!(scene.pool.take(elsewhere.pool_key(), 1000.0, 60.0).is_none());
}

#[tokio::test]
async fn idle_connections_are_closed_when_the_last_backend_of_their_place_is_gone() {
    let mut own = definition("b");
    own.preamble = b"of this test".to_vec();
    let scene = Scene::with(own, []);
    let connection = scene.open().await.unwrap();
    let _origin = scene.dial.accept().unwrap();
    scene.recycle(connection);
    assert_eq!(scene.pool.close_idle(1000.0, 60.0), 0);
    let Scene { backend, pool, .. } = scene;
    drop(backend);
    assert_eq!(pool.close_idle(1000.0, 60.0), 1);
}

#[tokio::test]
async fn a_fresh_connection_is_dialled_when_asked_for() {
    let scene = Scene::new([]);
    let connection = scene.open().await.unwrap();
    let _origin = scene.dial.accept();
    scene.recycle(connection);
    assert!(!scene.open_with(true, None, None).await.unwrap().reused);
    assert_eq!(scene.pool.len(), 1);
}

#[tokio::test]
async fn a_sick_backend_is_refused_before_anything_else() {
    let scene = Scene::new([]);
    scene.backend.health().set_admin(AdminHealth::Sick, 1.0);
    assert_eq!(scene.error().await, "backend b: unhealthy");
    assert_eq!((scene.vbe(Vbe::Unhealthy), scene.counters.get(Main::BackendUnhealthy)), (1, 1));
    assert_eq!(scene.dial.connects(), 0);
}

#[tokio::test]
async fn max_connections_counts_connections_in_use() {
    let mut limited = definition("b");
    limited.max_connections = 1;
    let scene = Scene::with(limited, []);
    let connection = scene.open().await.unwrap();
    assert_eq!(scene.error().await, "backend b: busy");
    assert_eq!((scene.vbe(Vbe::Busy), scene.counters.get(Main::BackendBusy)), (1, 1));
    drop(connection);
    assert!(scene.open().await.is_ok());
    assert_eq!(scene.vbe(Vbe::Conn), 0, "dropped at once");
}

#[tokio::test(start_paused = true)]
async fn a_refused_connect_is_not_repeated_during_hold_down_even_if_the_clock_is_set_back() {
    let scene = Scene::new([Answer::Fail(ErrorKind::ConnectionRefused)]);
    assert_eq!(scene.error().await, "backend b: fail errno 111 (Connection refused)");
    tokio::time::advance(Duration::from_millis(200)).await;
    assert_eq!(scene.error().await, "backend b: fail errno 0 (Success)");
    assert_eq!(scene.dial.connects(), 1);
    tokio::time::advance(Duration::from_millis(100)).await;
    scene.now.set(-2600.0);
    assert!(scene.open().await.is_ok());
    assert_eq!((scene.vbe(Vbe::FailEconnrefused), scene.vbe(Vbe::Fail), scene.vbe(Vbe::Helddown)), (1, 1, 1));
    assert_eq!(scene.counters.get(Main::BackendFail), 2);
}

#[tokio::test(start_paused = true)]
async fn local_errors_hold_down_longer_and_timeouts_not_at_all() {
    let scene = Scene::new([Answer::Fail(ErrorKind::AddrNotAvailable)]);
    assert_eq!(scene.error().await, "backend b: fail errno 99 (Cannot assign requested address)");
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(scene.error().await, "backend b: fail errno 0 (Success)");
    tokio::time::advance(Duration::from_millis(1500)).await;
    assert!(scene.open().await.is_ok());

    let scene = Scene::new([Answer::Fail(ErrorKind::TimedOut)]);
    assert_eq!(scene.error().await, "backend b: fail errno 110 (Connection timed out)");
    assert!(scene.open().await.is_ok());
    assert_eq!((scene.vbe(Vbe::FailEtimedout), scene.vbe(Vbe::Helddown)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_connect_timeout_is_that_of_bereq_then_backend_then_parameter() {
    for (bereq, backend, expected) in [
        (Some(0.5), Some(1.0), 0.5),
        (None, Some(1.0), 1.0),
        (None, None, 3.5),
        (Some(0.0), Some(1.0), 1.0),
        (Some(0.0), Some(0.0), 3.5),
    ] {
        let mut slow = definition("b");
        slow.connect_timeout = backend;
        let scene = Scene::with(slow, [Answer::Hang]);
        let start = tokio::time::Instant::now();
        assert!(scene.open_with(false, None, bereq).await.is_err());
        assert!((start.elapsed().as_secs_f64() - expected).abs() < 0.002, "{:?}", start.elapsed());
        assert_eq!(scene.vbe(Vbe::FailEtimedout), 1);
    }
}

#[tokio::test]
async fn new_connections_begin_with_preamble_and_proxy_header() {
    let ends: (SocketAddr, SocketAddr) = ("198.51.100.7:1234".parse().unwrap(), "203.0.113.1:80".parse().unwrap());
    let mut told = definition("b");
    told.preamble = b"PRE ".to_vec();
    told.proxy_header = 1;
    let scene = Scene::with(told, []);
    let connection = scene.open_with(false, Some(ends), None).await.unwrap();
    let header = b"PROXY TCP4 198.51.100.7 203.0.113.1 1234 80\r\n";
    assert_eq!(connection.proxy_header_bytes, header.len() as u64);
    assert!(!connection.is_recyclable());
    assert!(!scene.recycle(connection), "its header speaks of one client");
    assert_eq!(received(scene.dial.accept().unwrap()).await, [b"PRE ", &header[..]].concat());

    let mut told = definition("b");
    told.proxy_header = 2;
    let scene = Scene::with(told, []);
    drop(scene.open_with(false, Some(ends), None).await.unwrap());
    let bytes = received(scene.dial.accept().unwrap()).await;
    assert_eq!((bytes.len(), &bytes[..13]), (28, &b"\r\n\r\n\0\r\nQUIT\n\x21"[..]));
}

#[tokio::test]
async fn backend_without_an_address_is_not_usable() {
    let mut none = definition("b");
    none.endpoint = vcl_run::program::Endpoint::None;
    assert_eq!(Scene::with(none, []).error().await, "No backend");
}

#[tokio::test]
async fn unix_domain_sockets_show_bogus_addresses() {
    let mut unix = definition("b");
    unix.endpoint = vcl_run::program::Endpoint::Unix("/run/origin.sock".into());
    let scene = Scene::with(unix, []);
    let connection = scene.open().await.unwrap();
    assert_eq!(connection.open_record().to_string(), "7 b 0.0.0.0 0 0.0.0.0 0 connect");
    assert_eq!(connection.close_record(true, None).to_string(), "7 b recycle");
    assert_eq!(connection.close_record(false, Some("Response error")).to_string(), "7 b close Response error");
    assert_eq!(*scene.dial.targets.borrow(), [crate::DialTarget::Unix("/run/origin.sock".into())]);
}

#[tokio::test(start_paused = true)]
async fn waiters_get_the_freed_connection_or_an_error_if_the_backend_is_sick() {
    let waiting = |limit| BackendDefinition {
        max_connections: 1,
        wait_limit: Some(limit),
        wait_timeout: Some(10.0),
        ..definition("b")
    };
    let scene = Scene::with(waiting(1), []);
    let first = scene.open().await.unwrap();
    let (second, third, ()) = tokio::join!(scene.open(), scene.open(), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop(first);
    });
    assert!(second.is_ok(), "it waited");
    assert_eq!(third.err(), Some(OpenError::QueueFull("b".to_owned())), "one may wait");
    assert_eq!((scene.vbe(Vbe::QueueFull), scene.vbe(Vbe::Busy), scene.vbe(Vbe::Waiting)), (1, 1, 0));
    assert_eq!(scene.backend.connections(), 1);

    let scene = Scene::with(waiting(2), []);
    let _first = scene.open().await.unwrap();
    let start = tokio::time::Instant::now();
    let (second, third, ()) = tokio::join!(scene.open(), scene.open(), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        scene.backend.health().set_admin(AdminHealth::Sick, 1003.0);
    });
    for outcome in [second, third] {
        assert_eq!(outcome.err(), Some(OpenError::Unhealthy("b".to_owned())));
    }
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn handshake_follows_the_preamble_and_a_failed_one_is_logged_counted_and_not_repeated_at_once() {
    let mut secured = definition("b");
    secured.preamble = b"PRE ".to_vec();
    secured.tls = Some(Box::new(tls("a.example")));
    let scene = Scene::with(secured.clone(), []);
    let refusal = TlsFailure { text: "the origin refused".to_owned(), is_refusal: true };
    scene.dial.refusal.replace(Some(refusal));
    let error = scene.open().await.err().unwrap();
    assert!(error.text().starts_with("backend b: TLS: "), "{error}");
    assert!(error.tls_record().is_some_and(|record| record.starts_with("failed: ")));
    assert_eq!(received(scene.dial.accept().unwrap()).await, b"PRE ");
    assert_eq!((scene.vbe(Vbe::Fail), scene.vbe(Vbe::Conn), scene.vbe(Vbe::Req)), (1, 0, 0));
    assert_eq!(scene.counters.get(Main::BackendTlsFailed), 1);
    assert_eq!(scene.error().await, OpenError::Failed("b".into(), 0).text());
    assert_eq!(scene.dial.connects(), 1);
    // A broken connection does not imply that the next one fails.
    let scene = Scene::with(secured, []);
    for connects in 1..=2 {
        let error = scene.open().await.err().unwrap();
        assert_eq!(error.text(), "backend b: TLS: Connection reset by peer");
        assert_eq!((scene.vbe(Vbe::Fail), scene.dial.connects()), (connects as u64, connects));
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_their_order_and_before_those_who_come_later() {
    let one =
        BackendDefinition { max_connections: 1, wait_limit: Some(10), wait_timeout: Some(10.0), ..definition("b") };
    let scene = Scene::with(one, []);
    let order = std::cell::RefCell::new(Vec::new());
    let first = scene.open().await.unwrap();
    let wait = async |name: u32, after: u64| {
        tokio::time::sleep(Duration::from_millis(after)).await;
        let connection = scene.open().await;
        order.borrow_mut().push(name);
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(connection);
        // A fetch that arrives just when a slot becomes free finds others waiting.
        let again = scene.open().await;
        order.borrow_mut().push(name + 10);
        drop(again);
    };
    tokio::join!(wait(1, 10), wait(2, 20), wait(3, 30), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(first);
    });
    assert_eq!(*order.borrow(), [1, 2, 3, 11, 12, 13]);
    assert_eq!((scene.vbe(Vbe::Busy), scene.vbe(Vbe::Waiting)), (0, 0));
    let waited = [Main::BackendWait, Main::BackendWaitFail].map(|counter| scene.counters.get(counter));
    assert!(waited[0] >= 3 && waited[1] == 0, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_sent_once_more_keeps_its_place() {
    let one =
        BackendDefinition { max_connections: 1, wait_limit: Some(1), wait_timeout: Some(10.0), ..definition("b") };
    let scene = Scene::with(one, []);
    let dead = scene.open().await.unwrap();
    let (again, waiter) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let again = scene.open_from((true, Some(dead.into_parts().1)), None, None).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            again.map(drop)
        },
        scene.open()
    );
    assert_eq!((again, waiter.is_ok()), (Ok(()), true), "nobody else may wait, and nobody was before it");
    assert_eq!((scene.vbe(Vbe::QueueFull), scene.vbe(Vbe::Conn)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn wait_timeout_is_reported_and_counted() {
    let one = BackendDefinition { max_connections: 1, wait_limit: Some(1), wait_timeout: Some(2.0), ..definition("b") };
    let scene = Scene::with(one, []);
    let _first = scene.open().await.unwrap();
    let start = tokio::time::Instant::now();
    assert_eq!(scene.open().await.err(), Some(OpenError::WaitTimeout("b".to_owned())));
    assert_eq!(start.elapsed().as_secs(), 2);
    assert_eq!((scene.vbe(Vbe::WaitTimeout), scene.counters.get(Main::BackendWaitTimeout)), (1, 1));
    let waited = [Main::BackendWait, Main::BackendWaitFail].map(|counter| scene.counters.get(counter));
    assert_eq!(waited, [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn open_breaker_refuses_fetches_and_then_permits_one_trial() {
    let breaker = BreakerDefinition { fail_limit: 2, ..BreakerDefinition::default() };
    let scene = Scene::with(BackendDefinition { breaker: Some(Box::new(breaker)), ..definition("b") }, []);
    assert!(scene.backend.note_fault(None, 1000.0).is_none());
    assert!(scene.backend.note_fault(None, 1000.0).is_some());
    assert!(!scene.backend.is_healthy());
    assert_eq!(scene.open().await.err(), Some(OpenError::BreakerOpen("b".to_owned())));
    assert_eq!((scene.dial.connects(), scene.vbe(Vbe::AsideRefused), scene.vbe(Vbe::Unhealthy)), (0, 1, 0));
    scene.backend.health().set_admin(AdminHealth::Healthy, 1001.0);
    assert!(scene.open().await.is_ok(), "the operator knows better");
    scene.backend.health().set_admin(AdminHealth::Auto, 1002.0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let trial = scene.open().await.unwrap();
    assert_eq!(scene.open().await.err(), Some(OpenError::BreakerOpen("b".to_owned())), "one tries");
    drop(trial);
    let trial = scene.open().await.unwrap();
    assert!(scene.backend.note_answer(None, 1010.0).is_none());
    assert!(scene.backend.note_answer(trial.trial(), 1010.0).is_some());
    assert!(scene.open().await.is_ok() && scene.backend.is_healthy());
}

#[tokio::test(start_paused = true)]
async fn after_a_recovery_the_share_of_a_backend_and_its_connections_rise() {
    let breaker = Some(Box::new(BreakerDefinition { fail_limit: 1, ..BreakerDefinition::default() }));
    let slow = BackendDefinition { breaker, slow_start: 20.0, max_connections: 10, ..definition("b") };
    let scene = Scene::with(slow, []);
    let backend = &scene.backend;
    assert!((backend.warmth(1000.0) - 1.0).abs() < 1e-9, "a VCL that is loaded recovers from nothing");
    backend.note_fault(None, 1000.0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    drop(scene.open().await.unwrap());
    let trial = scene.open().await.unwrap();
    assert!(backend.note_answer(trial.trial(), 2000.0).is_some());
    drop(trial);
    assert!((backend.warmth(2000.0) - 0.1).abs() < 1e-9);
    assert!((backend.warmth(2010.0) - 0.5).abs() < 1e-9);
    assert!((backend.warmth(2020.0) - 1.0).abs() < 1e-9);
    assert!((backend.warmth(1900.0) - 1.0).abs() < 1e-9, "a clock that was set back does not make it cold for ever");
    assert_eq!((backend.enter(2001.0), backend.enter(2001.0)), (true, false));
    assert_eq!((0..20).filter(|_| backend.enter(2010.0)).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_cannot_be_reached_costs_one_attempt_and_the_next_is_taken() {
    let follows = Some(FollowedName { host: "origin.example".to_owned(), port: 80 });
    let followed = BackendDefinition { follows, ..definition("b") };
    let scene = Scene::with(followed, [Answer::Hang, Answer::Accept, Answer::Accept]);
    scene.backend.set_addresses(&["192.0.2.1:80".parse().unwrap(), "192.0.2.2:80".parse().unwrap()]);
    let start = tokio::time::Instant::now();
    let first = scene.open().await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 1750, "half of connect_timeout for the first of two");
    let second = scene.open().await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 1750, "the silent one comes last for a while");
    let targets = scene.dial.targets.borrow().clone();
    assert_eq!((targets.len(), &targets[1]), (3, &targets[2]));
    assert_ne!(targets[0], targets[1]);

    // The name changes: a connection in use is used to its end and then closed, an idle one is
    // closed.
    assert!(first.recycle(&scene.pool, &scene.counters, 1000.0));
    assert_eq!(scene.pool.len(), 1);
    scene.backend.set_addresses(&["192.0.2.3:80".parse().unwrap()]);
    assert!(!second.recycle(&scene.pool, &scene.counters, 1000.0));
    assert_eq!((scene.pool.close_idle(1000.0, 60.0), scene.pool.len()), (1, 0));
    drop(scene.open().await.unwrap());
    let target = scene.dial.targets.borrow()[3].clone();
    assert_eq!(target, crate::DialTarget::Ip { v4: Some("192.0.2.3:80".parse().unwrap()), v6: None, prefer_v6: false });
}

#[tokio::test]
async fn a_backend_can_have_an_idle_timeout_of_its_own() {
    for (own, closed) in [(None, 1), (Some(600.0), 0)] {
        let scene = Scene::with(BackendDefinition { idle_timeout: own, ..definition("b") }, []);
        assert!(scene.open().await.unwrap().recycle(&scene.pool, &scene.counters, 1000.0));
        assert_eq!(scene.pool.close_idle(1061.0, 60.0), closed);
    }
}
