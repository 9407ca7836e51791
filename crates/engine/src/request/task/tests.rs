//! A request that returns to the pool keeps no data. Each structure is filled and checked without
//! `..`, so that a new field does not compile until its treatment is stated here.

use super::*;
use crate::bodies::filters::Filters;
use crate::bodies::fragment::Fragment;
use crate::bodies::page::Budget;
use crate::canary::{Canary, Group, Member};
use crate::fetch::out_of_band::OutOfBand;
use crate::fetch::{FetchMode, FetchTicket};
use crate::peer::EarlyPhase;
use crate::request::inclusion::Top;
use crate::request::{Buffers, RequestPool, RequestSlot};
use crate::slicing::Slicing;
use crate::world::decision::Noted;
use cache::{Cache, Lookup, LookupRequest};
use semantics::RequestDirectives;
use shm::counters::MainCounters;
use std::rc::Rc;
use store::ObjectAttributes;
use surface::limits::KEPT_BUFFER_BYTES_MAX;
use surface::vcl::Generation;
use vcl_run::value::Value;

fn message(text: &[u8]) -> Message {
    let mut message = Message::new();
    message.set_target(text);
    message.append(b"Foreign", text);
    message
}

/// The result of a lookup with that key, and an object that is not in the index.
fn of_cache(cache: &Cache, request: &Message) -> (Busy, Arc<Object>) {
    let lookup_request = LookupRequest {
        key: &[7; 32],
        now: 1.0,
        request,
        ttl_cap: None,
        grace_cap: None,
        always_miss: true,
        ignore_busy: true,
        ignore_vary: false,
        gzip_support: true,
        parts: false,
        sameness: semantics::vary::Sameness::Bytes,
        conditions: None,
        vary_notice: 10,
        unused_seconds: None,
    };
    let Lookup::Miss { busy, .. } = cache.lookup(&lookup_request, &MainCounters::new(), &mut |_, _| {}) else {
        panic!("hash_always_miss must miss");
    };
    let object = cache.stores()[0].create(&ObjectAttributes::default(), b"").unwrap();
    (busy, object)
}

fn foreign_life() -> Life {
    Life {
        vxid: 7,
        protocol: "foreign",
        started: 7.0,
        received_at: 7.0,
        previous: 7.0,
        responded_at: 7.0,
        is_under_label: true,
        late_continue: true,
        body: ClientBody::Taken,
        is_length_unsaid: true,
        is_head: true,
        restarts: 7,
        digest: [7; 32],
        after_hash: Step::Pipe,
        objection: Some("foreign".into()),
        reason: Some(Reason::VclFailed),
        received_pieces: 7,
        error_status: 777,
        sent_status: 777,
        close: Some(CloseReason::RxJunk),
        is_answered: true,
        held: Held::foreign(),
        account: Account { request_head: 7, request_body: 7 },
        pipe_account: Some(PipeAccount { client_head: 7, backend_head: 7, from_client: 7, to_client: 7 }),
        vmod_wait: Some(VmodWait::Value(Value::Int(7))),
        is_left: true,
        inclusion: Some(Box::new(Inclusion {
            level: 1,
            top: Rc::new(Top { request: Message::new(), received_at: 1.0, vcl: None, budget: Budget::new(1, 1) }),
            fragment: Fragment::new(None),
        })),
        early: Some(EarlyPhase::begun()),
        vcl_before_label: None,
    }
}

fn foreign_choices() -> Choices {
    Choices {
        director: Some(DirectorId(7)),
        client_identity: Some(b"foreign".to_vec()),
        storage: Some(7),
        slice_bytes: Some(7),
        ttl_cap: Some(7.0),
        grace_cap: Some(7.0),
        request_directives: RequestDirectives { no_cache: true, ..RequestDirectives::default() },
        always_miss: true,
        always_miss_by: Some(Noted::default()),
        ignore_busy: true,
        ignore_vary: true,
        is_esi_forbidden: true,
        trace: Some(true),
        body_filters: Some(b"foreign".to_vec()),
        body_stages: Some(Filters::default()),
        is_body_filtered: true,
    }
}

fn foreign_found(cache: &Cache, ring: &LogRing) -> Found {
    let bereq = message(b"/foreign");
    let (busy, object) = of_cache(cache, &bereq);
    let prepared = PreparedRequest::new(7, FetchMode::Pass, &bereq, Generation::V3, false, b"");
    Found {
        unused_seconds: 7.0,
        is_hit: true,
        is_forced: true,
        has_waited: true,
        is_grace_hit: true,
        is_hitmiss: true,
        is_hitpass: true,
        is_passed: true,
        object: Delivered::new(Arc::clone(&object)),
        slices: Some(Box::new(Slices {
            slicing: Slicing::begin(7, 7, &[7; 32], 7, 7.0),
            request: message(b"/foreign"),
            has_heard: true,
        })),
        copy: Delivered::new(Arc::clone(&object)),
        object_head: ObjectHead::Changed,
        query_rule: crate::query_rules::KnownRule::foreign().map(Arc::new),
        busy: Some(busy),
        stale: Some(Arc::clone(&object)),
        part: Some(object),
        out_of_band: Some(OutOfBand::default()),
        ticket: Some(FetchTicket { ready: tokio::sync::oneshot::channel().1 }),
        feed: Some(crate::bodies::request::feed(None).0),
        fed: Some(Box::default()),
        interest: Some(Interest::default()),
        duplex: Some(Box::default()),
        pipe: Some(Box::new(PipeRequest {
            vxid: 7,
            log: LogBuffer::new(ring),
            bereq,
            director: None,
            connect_timeout: None,
            task_deadline: None,
            started: 7.0,
            proxy_header_bytes: 0,
        })),
        prepared: Some(Box::new(prepared)),
    }
}

fn assert_life_is_new(life: Life) {
    let Life {
        vxid,
        protocol,
        started,
        received_at,
        previous,
        responded_at,
        is_under_label,
        late_continue,
        body,
        is_length_unsaid,
        is_head,
        restarts,
        digest,
        after_hash,
        objection,
        reason,
        received_pieces,
        error_status,
        sent_status,
        close,
        is_answered,
        held,
        account,
        pipe_account,
        vmod_wait,
        is_left,
        inclusion,
        early,
        vcl_before_label,
    } = life;
    assert!(inclusion.is_none() && early.is_none() && vcl_before_label.is_none());
    assert_eq!((vxid, restarts, received_pieces, error_status, sent_status), (0, 0, 0, 0, 0));
    assert_eq!(protocol, "");
    assert_eq!([started, received_at, previous, responded_at], [0.0; 4]);
    assert_eq!([is_under_label, late_continue, is_length_unsaid, is_head, is_answered, is_left], [false; 6]);
    assert!(matches!(body, ClientBody::None) && vmod_wait.is_none());
    assert_eq!((digest, after_hash, objection), ([0; 32], Step::Accept, None));
    assert_eq!((reason, close, account, pipe_account), (None, None, Account::default(), None));
    assert_eq!(held.bytes(), 0);
}

fn assert_choices_are_new(choices: Choices) {
    let Choices {
        director,
        client_identity,
        storage,
        slice_bytes,
        ttl_cap,
        grace_cap,
        request_directives,
        always_miss,
        always_miss_by,
        ignore_busy,
        ignore_vary,
        is_esi_forbidden,
        trace,
        body_filters,
        body_stages,
        is_body_filtered,
    } = choices;
    assert_eq!((director, client_identity, storage, trace, body_filters), (None, None, None, None, None));
    assert_eq!(slice_bytes, None);
    assert_eq!(([ttl_cap, grace_cap], request_directives), ([None; 2], RequestDirectives::default()));
    assert_eq!([always_miss, ignore_busy, ignore_vary, is_esi_forbidden, is_body_filtered], [false; 5]);
    assert!(always_miss_by.is_none() && body_stages.is_none());
}

fn assert_found_is_new(found: Found) {
    let Found {
        unused_seconds,
        is_hit,
        is_forced,
        has_waited,
        is_grace_hit,
        is_hitmiss,
        is_hitpass,
        is_passed,
        object,
        slices,
        copy,
        object_head,
        query_rule,
        busy,
        stale,
        part,
        ticket,
        out_of_band,
        feed,
        fed,
        interest,
        duplex,
        pipe,
        prepared,
    } = found;
    assert_eq!((unused_seconds, object_head), (0.0, ObjectHead::Unread));
    assert_eq!([is_hit, is_forced, has_waited, is_grace_hit, is_hitmiss, is_hitpass, is_passed], [false; 7]);
    assert!(fed.is_none());
    assert!(object.is_none() && copy.is_none() && busy.is_none() && stale.is_none() && part.is_none());
    assert!(
        slices.is_none() && ticket.is_none() && out_of_band.is_none() && query_rule.is_none() && interest.is_none()
    );
    assert!(feed.is_none() && duplex.is_none() && pipe.is_none() && prepared.is_none());
}

fn assert_task_is_new(task: Task) {
    let Task {
        settings,
        life,
        choices,
        found,
        answer,
        request,
        original,
        response,
        object_head,
        error_reason,
        synthetic,
        hasher,
        vmod_state,
    } = task;
    assert_eq!(format!("{settings:?}"), format!("{:?}", Settings::default()));
    assert_life_is_new(life);
    assert_choices_are_new(choices);
    assert_found_is_new(found);
    let Answer { is_synthetic, filters, ignores_range, do_esi, is_page } = answer;
    assert_eq!((is_synthetic, filters, ignores_range, do_esi, is_page), (false, None, false, None, false));
    for message in [request, original, response, object_head] {
        assert_eq!((message.memory_bytes(), message.target(), message.header_count()), (0, &b""[..], 0));
    }
    assert!(error_reason.is_empty() && synthetic.is_empty());
    let (mut hasher, mut new) = (hasher, KeyHasher::default());
    assert_eq!(hasher.finish(), new.finish());
    assert_eq!(format!("{vmod_state:?}"), format!("{:?}", vmods::TaskState::new()));
}

#[test]
fn a_request_that_went_through_the_pool_has_nothing_of_the_last() {
    let ring = LogRing::in_memory(1 << 16);
    let cache = Cache::in_memory(4 << 20, 1.0).unwrap();
    let pool = RequestPool::default();
    let mut slot = pool.take(&ring);
    let RequestSlot { buffers, request } = &mut *slot;
    *buffers = Buffers { received: b"foreign bytes".to_vec(), consumed: 3, head: b"foreign".to_vec() };
    request.log.record(surface::tag::Tag::Error, b"foreign");
    request.scratch.set_limit(7);
    request.scratch.mark_overflowed();
    let stick = surface::canary::Stick::Ip;
    let canary = Canary { share: 7, stick, secret: [7; 2], salts: None, counts: Default::default() };
    request.member = Some(Member { canary: Arc::new(canary), group: Group::Canary });
    let mut hasher = KeyHasher::default();
    hasher.update(b"foreign");
    let settings = Settings { request_memory_max: 7, feature: 7, ..Settings::default() };
    request.task = Task {
        settings,
        life: foreign_life(),
        choices: foreign_choices(),
        found: foreign_found(&cache, &ring),
        answer: Answer {
            is_synthetic: true,
            filters: Some(b"foreign".to_vec()),
            ignores_range: true,
            do_esi: Some(true),
            is_page: true,
        },
        request: message(b"/foreign"),
        original: message(b"/foreign"),
        response: message(b"/foreign"),
        object_head: message(b"/foreign"),
        error_reason: b"foreign".to_vec(),
        synthetic: b"foreign".to_vec(),
        hasher,
        vmod_state: vmods::TaskState::new(),
    };
    pool.put(slot);
    let RequestSlot { buffers, request } = *pool.take(&ring);
    let Buffers { received, consumed, head } = buffers;
    let Request { log: _, machine, scratch, vcl, member, task } = request;
    assert_eq!(pool.len(), 0, "it was the same one");
    assert_eq!((received.len(), consumed, head.len()), (0, 0, 0));
    assert_eq!(ring.records().len(), 1, "a record that was left goes out under its own transaction");
    assert!(vcl.is_none() && member.is_none() && machine.method().is_none());
    assert_eq!((scratch.used_bytes(), scratch.overflowed()), (0, false));
    assert_task_is_new(task);
}

#[test]
fn room_beyond_what_is_kept_is_given_back() {
    let ring = LogRing::in_memory(1 << 16);
    let pool = RequestPool::default();
    let mut slot = pool.take(&ring);
    let RequestSlot { buffers, request } = &mut *slot;
    let large = vec![b'x'; 4 * KEPT_BUFFER_BYTES_MAX];
    let task = &mut request.task;
    for buffer in [&mut buffers.received, &mut buffers.head, &mut task.error_reason, &mut task.synthetic] {
        buffer.extend_from_slice(&large);
    }
    for message in [&mut task.request, &mut task.original, &mut task.response, &mut task.object_head] {
        message.set_target(&large);
    }
    let _ = request.scratch.put(&large);
    pool.put(slot);
    let slot = pool.take(&ring);
    let RequestSlot { buffers, request } = &*slot;
    let task = &request.task;
    let rooms = [&buffers.received, &buffers.head, &task.error_reason, &task.synthetic];
    assert!(rooms.iter().all(|buffer| buffer.capacity() <= KEPT_BUFFER_BYTES_MAX));
    let messages = [&task.request, &task.original, &task.response, &task.object_head];
    assert!(messages.iter().all(|message| message.room_bytes() <= 2 * KEPT_BUFFER_BYTES_MAX));
    let rooms: [usize; 2] = [request.scratch.room_bytes(), request.machine.room_bytes()];
    assert!(rooms.iter().all(|bytes| *bytes <= 2 * KEPT_BUFFER_BYTES_MAX), "{rooms:?}");
}
