//! A retry keeps nothing of the last attempt, but everything else. Each structure is filled and
//! checked without `..`, so that a new field does not compile until its treatment is stated here.

use super::*;
use crate::clock::Clock;
use crate::context::Engine;
use crate::exchange::BodyAnnounced;
use crate::fetch::{Fetch, Step};
use crate::loaded_vcl::VclTable;
use crate::memory::RequestMemory;
use crate::origin::Carriage;
use crate::panics::PanicHook;
use crate::peer::Peer;
use crate::query_rules::QueryRules;
use crate::storages::Storages;
use crate::vcl_life;
use crate::vxid::VxidSource;
use arc_swap::ArcSwap;
use backend::{Dial, DialTarget, Dialling, Ends, Stream, TestableRandom};
use cache::Cache;
use semantics::rfc::{FieldNames, Refusal, Sharing};
use shm::counters::MainCounters;
use shm::log::LogRing;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use store::{BodyState, ObjectAttributes};
use surface::closed_set::VclState;
use surface::counter::Main;
use surface::encoding::Encoding;
use surface::parameter::Parameters;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const FOREIGN: Carriage = Carriage { counter: Main::FetchChunked, fetch_body: "foreign", account: "foreign" };

/// An origin that accepts everything and sends no answer.
struct Silent;

impl Stream for Silent {
    fn ends(&self) -> Ends {
        Ends { remote: Some("10.0.0.1:80".parse().unwrap()), local: None, fd: -1 }
    }
}

impl AsyncRead for Silent {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Silent {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct DialSilent;

impl Dial for DialSilent {
    fn dial<'a>(&'a self, _: &'a DialTarget, _: Duration) -> Dialling<'a> {
        Box::pin(async { Ok(Box::new(Silent) as Box<dyn Stream>) })
    }
}

pub(crate) fn event_loop() -> Rc<Loop> {
    let cache = Cache::in_memory(4 << 20, 1.0).unwrap();
    let engine = Arc::new(Engine {
        storages: Storages::of(cache.stores()),
        cache,
        parameters: ArcSwap::from_pointee(Parameters::default()),
        ring: LogRing::in_memory(1 << 16),
        vcl: ArcSwap::from_pointee(VclTable::default()),
        vxids: VxidSource::new(30),
        identity: String::new(),
        hostname: String::new(),
        pseudonym: String::new(),
        name: surface::program::Called::Stock,
        pipes: 0.into(),
        draining: false.into(),
        fragment_fetch_bytes: 0.into(),
        random: TestableRandom::new(1),
        vmod_state: vmods::SharedState::new(),
        panics: PanicHook::default(),
        is_copying: false.into(),
        query_rules: QueryRules::default(),
        leaks: crate::leak_guard::LeakGuard::default(),
        fleet: Default::default(),
        challenges: crate::challenges::Challenges::default(),
        memory: RequestMemory::default(),
        waiting: std::sync::atomic::AtomicU32::new(0),
    });
    let counters = Arc::new(MainCounters::new());
    Rc::new(Loop::new(engine, counters, Rc::new(DialSilent), Clock::starting_at(1.0)))
}

pub(crate) fn message(text: &[u8]) -> Message {
    let mut message = Message::new();
    message.set_target(text);
    message.append(b"Foreign", text);
    message
}

pub(crate) fn order(context: &Loop) -> FetchOrder<'static> {
    let text = b"vcl 4.1; backend default { .host = \"10.0.0.1\"; }";
    let program = vcl::compile(&vcl::SourceText { name: "<test>", text }, &vcl::CompileOptions::default()).unwrap();
    let vcl = vcl_life::load(&context.engine, "boot", program.program, VclState::Auto, 1.0).unwrap();
    let address: SocketAddr = "192.0.2.7:4711".parse().unwrap();
    let peer = Peer::direct(Rc::default(), address, address, -1);
    let director = vcl.directors.default_director();
    let parameters = context.engine.parameters.load_full();
    FetchOrder {
        order: Ordered {
            is_hit_for_miss: true,
            is_hit_for_pass: true,
            ..Ordered::new(parameters, FetchMode::Pass, [7; 32], vcl, peer, [1, 3])
        },
        request: Box::leak(Box::new(message(b"/ordered"))),
        prepared: None,
        client: None,
        vxid: 2,
        busy: None,
        stale: None,
        part: None,
        asks_for_part: false,
        slice: None,
        director,
        body: RequestBody::None,
        early: None,
        client_identity: Some(b"somebody".to_vec()),
        trace: Some(true),
        out_of_band: None,
    }
}

fn foreign_part() -> PartTaken {
    let part = semantics::part::Part { span: semantics::ranges::Span { first: 7, last: 8 }, total: None };
    let joint = semantics::part::Joint { part, before_bytes: 1, after_offset: Some(1) };
    PartTaken { received: Some(part), joint: Some(joint) }
}

fn foreign_verdict() -> Verdict {
    Verdict {
        do_esi: true,
        do_gzip: true,
        do_gunzip: true,
        do_stream: true,
        filters: Some(b"foreign".to_vec()),
        storage_hint: Some(7),
        origin: 7.0,
        ttl: 7.0,
        grace: 7.0,
        keep: 7.0,
        was_304: true,
        is_hit_for_pass: true,
        is_cacheable: true,
        is_unremembered: true,
        transit_buffer: Some(7),
        ttl_by: [Some(Noted::default()), Some(Noted::default())],
        is_ttl_set: true,
        refusal: Some(Refusal::NoStore),
        must_validate: true,
        never_stale: true,
        unshared: FieldNames::of_list(b"foreign").unwrap(),
        sharing: Some(Sharing::default()),
        is_vouched_for: true,
    }
}

fn foreign_watched() -> Watched {
    let guard = crate::leak_guard::LeakGuard::default();
    Watched { key: guard.key(&[7; 32], b""), credentials: 7, body: guard.body(), is_held: true }
}

fn foreign_attempt(exchange: OriginExchange, object: Arc<Object>) -> Attempt {
    Attempt {
        exchange: Some(exchange),
        wants_fresh: true,
        held_place: None,
        sent_body: SentBody::All(7),
        interims: 7,
        trial: Some(7),
        last_byte_by: Some(Instant::now()),
        failure: Some(Reason::OriginClosed),
        is_faulty: true,
        body_stages: Some(Filters::default()),
        unpacked: Some(Encoding::Zstd),
        beresp: message(b"/foreign"),
        requested: 7.0,
        responded: 7.0,
        body: ResponseBody { size: BodyAnnounced::Unknown, carriage: Some(&FOREIGN) },
        part: foreign_part(),
        slice: foreign_part().received,
        verdict: foreign_verdict(),
        evidence: Evidence {
            mark: Some(semantics::rfc::PrivateMark::Private),
            has_cookie: true,
            has_authorization: true,
            changed_by: Some(Noted::default()),
        },
        watched: Some(Box::new(foreign_watched())),
        storage: Some(7),
        is_storage_chosen: true,
        stale_head: message(b"/foreign"),
        received_pieces: 7,
        kept: Kept { object: Some(object), is_stored: true, is_marked: true, body_bytes: 7 },
        is_synthetic: true,
        error_status: 777,
        error_reason: b"foreign".to_vec(),
        synthetic: b"foreign".to_vec(),
    }
}

fn assert_verdict_is_new(verdict: &Verdict) {
    let Verdict {
        do_esi,
        do_gzip,
        do_gunzip,
        do_stream,
        filters,
        storage_hint,
        origin,
        ttl,
        grace,
        keep,
        was_304,
        is_hit_for_pass,
        is_cacheable,
        is_unremembered,
        transit_buffer,
        ttl_by,
        is_ttl_set,
        refusal,
        must_validate,
        never_stale,
        unshared,
        sharing,
        is_vouched_for,
    } = verdict;
    assert!(refusal.is_none() && unshared.is_empty() && sharing.is_none() && !is_vouched_for);
    assert_eq!([*is_ttl_set, *must_validate, *never_stale], [false; 3]);
    assert_eq!([*do_esi, *do_gzip, *do_gunzip, *do_stream], [false; 4]);
    assert_eq!([*was_304, *is_hit_for_pass, *is_cacheable, *is_unremembered], [false; 4]);
    assert_eq!([*origin, *ttl, *grace, *keep], [0.0; 4]);
    assert_eq!((filters, storage_hint, transit_buffer), (&None, &None, &None));
    assert!(ttl_by.iter().all(Option::is_none));
}

fn assert_attempt_is_new(attempt: &Attempt) {
    let Attempt {
        exchange,
        wants_fresh,
        held_place,
        trial,
        last_byte_by,
        failure,
        is_faulty,
        sent_body,
        interims,
        body_stages,
        unpacked,
        beresp,
        requested,
        responded,
        body,
        part,
        slice,
        verdict,
        evidence,
        watched,
        storage,
        is_storage_chosen,
        stale_head,
        received_pieces,
        kept,
        is_synthetic,
        error_status,
        error_reason,
        synthetic,
    } = attempt;
    assert!(exchange.is_none() && body_stages.is_none() && held_place.is_none() && trial.is_none());
    assert_eq!([*wants_fresh, *is_storage_chosen, *is_synthetic, *is_faulty], [false; 4]);
    let Evidence { mark, has_cookie, has_authorization, changed_by } = evidence;
    assert_eq!((*mark, *has_cookie, *has_authorization), (None, false, false));
    assert!(changed_by.is_none() && watched.is_none());
    assert_eq!((*last_byte_by, *failure), (None, None));
    assert_eq!((*sent_body, *interims), (SentBody::None, 0));
    assert_eq!(*unpacked, None);
    for message in [beresp, stale_head] {
        assert_eq!((message.memory_bytes(), message.target(), message.header_count()), (0, &b""[..], 0));
    }
    assert_eq!((*requested, *responded, *body, *storage), (0.0, 0.0, ResponseBody::default(), None));
    assert_eq!((*part, *slice), (PartTaken::default(), None));
    assert_verdict_is_new(verdict);
    let Kept { object, is_stored, is_marked, body_bytes } = kept;
    assert!(object.is_none() && !is_stored && !is_marked);
    assert_eq!((*body_bytes, *received_pieces, *error_status), (0, 0, 0));
    assert!(error_reason.is_empty() && synthetic.is_empty());
}

/// Values of everything else that VCL sees, before and after a retry.
fn assert_rest_stays(task: &FetchTask) {
    let Choices {
        director,
        client_identity,
        trace,
        connect_timeout,
        first_byte_timeout,
        between_bytes_timeout,
        last_byte_timeout,
        body_filters,
    } = &task.choices;
    assert!(director.is_some() && client_identity.is_some() && body_filters.is_some());
    assert_eq!((*trace, *connect_timeout), (Some(true), Some(5.0)));
    let limits = [*first_byte_timeout, *between_bytes_timeout, *last_byte_timeout];
    assert_eq!(limits, [Some(6.0), Some(7.0), Some(8.0)]);
    let Route { backend, trail: _, has_backend_host: _, attempts: _, address } = &task.route;
    assert!(backend.is_some() && address.is_some());
    let Life { uncacheable, uncacheable_by, is_vary_unusable, account, .. } = &task.life;
    assert!(*uncacheable && uncacheable_by.is_some() && *is_vary_unusable);
    assert!(account.request_head > 0);
    assert!(task.bereq.has("Foreign") && task.bereq_original.has("Foreign"));
}

#[tokio::test]
async fn a_retry_has_nothing_of_the_last_attempt_and_all_the_rest() {
    let context = event_loop();
    let mut fetch = Fetch::new(&context, order(&context), oneshot::channel().0);
    assert_eq!(fetch.prepare().await, Step::Send);
    assert_eq!(fetch.send().await, Step::Response);
    let object = context.engine.storages.store(0).create(&ObjectAttributes::default(), b"").unwrap();
    let exchange = fetch.task.attempt.exchange.take().unwrap();
    fetch.task.attempt = foreign_attempt(exchange, Arc::clone(&object));
    let choices = &mut fetch.task.choices;
    (choices.connect_timeout, choices.first_byte_timeout, choices.between_bytes_timeout) =
        (Some(5.0), Some(6.0), Some(7.0));
    choices.last_byte_timeout = Some(8.0);
    choices.body_filters = Some(b"gunzip".to_vec());
    fetch.task.life.uncacheable_by = Some(Noted::default());
    fetch.task.life.is_vary_unusable = true;
    assert_rest_stays(&fetch.task);
    assert_eq!(fetch.retry(), Step::Prepare);
    assert_attempt_is_new(&fetch.task.attempt);
    assert_rest_stays(&fetch.task);
    assert_eq!((fetch.task.life.retries, fetch.task.life.vxid), (1, 1));
    assert_eq!(object.state(), BodyState::Failed, "nobody waits for what was given up");
}
