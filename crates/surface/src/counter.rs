//! The counters: every section of the statistics segment, its elements and their texts.
//!
//! A counter's byte offset in its section is eight times its index, as the stock 7.1 tools read it from the
//! section's JSON document (which `shm` derives from these rows).
//! Source: observed VSC documents of Varnish 7.1.1. Next file: `parameter.rs`.

/// What a value means to the tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// 64 flags, the newest in bit 0.
    Bitmap,
}

/// How much an operator is expected to care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterLevel {
    /// Shown by default.
    Info,
    /// For diagnosis.
    Diag,
    /// For developers.
    Debug,
}

/// The unit of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterFormat {
    /// A plain number.
    Integer,
    /// Bytes.
    Bytes,
    /// A bit field.
    Bitmap,
    /// Seconds.
    Duration,
}

/// One counter.
#[derive(Debug)]
pub struct CounterRow {
    /// The element's name, e.g. `cache_hit`.
    pub name: &'static str,
    /// Counter, gauge or bitmap.
    pub kind: CounterKind,
    /// Verbosity level.
    pub level: CounterLevel,
    /// Unit.
    pub format: CounterFormat,
    /// One line of explanation.
    pub oneliner: &'static str,
}

/// One section: the layout of all `Stat` segments of a kind.
#[derive(Debug)]
pub struct SectionRow {
    /// The section's lower-case name, e.g. `main`.
    pub name: &'static str,
    /// One line of explanation.
    pub oneliner: &'static str,
    /// Display order.
    pub order: u32,
    /// The counters in the order of their offsets.
    pub counters: &'static [CounterRow],
}

use CounterFormat::{Bitmap as BITMAP, Bytes as BYTES, Duration as DURATION, Integer as INTEGER};
use CounterKind::{Bitmap, Counter, Gauge};
use CounterLevel::{Debug as DEBUG, Diag as DIAG, Info as INFO};

const fn row(
    name: &'static str,
    kind: CounterKind,
    level: CounterLevel,
    format: CounterFormat,
    oneliner: &'static str,
) -> CounterRow {
    CounterRow { name, kind, level, format, oneliner }
}

/// Index of each counter of section `MAIN`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Main {
    Summs,
    Uptime,
    SessConn,
    SessFail,
    SessFailEconnaborted,
    SessFailEintr,
    SessFailEmfile,
    SessFailEbadf,
    SessFailEnomem,
    SessFailOther,
    ClientReq400,
    ClientReq417,
    ClientReq,
    EsiReq,
    CacheHit,
    CacheHitGrace,
    CacheHitpass,
    CacheHitmiss,
    CacheMiss,
    BerespUncacheable,
    BerespShortlived,
    BackendConn,
    BackendUnhealthy,
    BackendBusy,
    BackendFail,
    BackendReuse,
    BackendRecycle,
    BackendRetry,
    FetchHead,
    FetchLength,
    FetchChunked,
    FetchEof,
    FetchBad,
    FetchNone,
    Fetch1xx,
    Fetch204,
    Fetch304,
    FetchFailed,
    FetchNoThread,
    Pools,
    Threads,
    ThreadsLimited,
    ThreadsCreated,
    ThreadsDestroyed,
    ThreadsFailed,
    ThreadQueueLen,
    BusySleep,
    BusyWakeup,
    BusyKilled,
    SessQueued,
    SessDropped,
    ReqDropped,
    NObject,
    NVampireobject,
    NObjectcore,
    NObjecthead,
    NBackend,
    NExpired,
    NLruNuked,
    NLruMoved,
    NLruLimited,
    Losthdr,
    SSess,
    NPipe,
    PipeLimited,
    SPipe,
    SPass,
    SFetch,
    SBgfetch,
    SSynth,
    SReqHdrbytes,
    SReqBodybytes,
    SRespHdrbytes,
    SRespBodybytes,
    SPipeHdrbytes,
    SPipeIn,
    SPipeOut,
    SessClosed,
    SessClosedErr,
    SessReadahead,
    SessHerd,
    ScRemClose,
    ScReqClose,
    ScReqHttp10,
    ScRxBad,
    ScRxBody,
    ScRxJunk,
    ScRxOverflow,
    ScRxTimeout,
    ScRxCloseIdle,
    ScTxPipe,
    ScTxError,
    ScTxEof,
    ScRespClose,
    ScOverload,
    ScPipeOverflow,
    ScRangeShort,
    ScReqHttp20,
    ScVclFailure,
    ClientResp500,
    WsBackendOverflow,
    WsClientOverflow,
    WsThreadOverflow,
    WsSessionOverflow,
    ShmRecords,
    ShmWrites,
    ShmFlushes,
    ShmCont,
    ShmCycles,
    BackendReq,
    NVcl,
    NVclAvail,
    NVclDiscard,
    VclFail,
    Bans,
    BansCompleted,
    BansObj,
    BansReq,
    BansAdded,
    BansDeleted,
    BansTested,
    BansObjKilled,
    BansLurkerTested,
    BansTestsTested,
    BansLurkerTestsTested,
    BansLurkerObjKilled,
    BansLurkerObjKilledCutoff,
    BansDups,
    BansLurkerContention,
    BansPersistedBytes,
    BansPersistedFragmentation,
    NPurges,
    NObjPurged,
    ExpMailed,
    ExpReceived,
    HcbNolock,
    HcbLock,
    HcbInsert,
    EsiErrors,
    EsiWarnings,
    Vmods,
    NGzip,
    NGunzip,
    NTestGunzip,
    ReqBytes,
    ReqRefused,
    NCopies,
    NCopiesRefused,
    CopiesSent,
    CopiesSavedBytes,
    Promoted,
    PromotedSent,
    Demoted,
    ReqReset,
    ReqEarly,
    ReqEarlyHeld,
    ReqEarlyAgain,
    H2Sess,
    H2Streams,
    H2AbuseResets,
    H2AbuseHeaders,
    H2AbuseFrames,
    TlsHandshakes,
    TlsResumed,
    TlsFailed,
    TlsRefused,
    H3Sess,
    H3Handshakes,
    H3HandshakesFailed,
    H3HandshakesIgnored,
    H3Retries,
    H3Former,
    H3HandedOver,
    H3HandedLost,
    H3Refused,
    H3Errors,
    H3Abuse,
    BackendTls,
    BackendTlsResumed,
    BackendTlsFailed,
    BackendAside,
    BackendQueueFull,
    BackendWaitTimeout,
    BackendRetryRefused,
    FetchNoBackend,
    FetchNotSent,
    FetchClosed,
    FetchReset,
    FetchFirstByteTimeout,
    FetchBetweenBytesTimeout,
    FetchLastByteTimeout,
    FetchHeadTooLarge,
    FetchGarbled,
    FetchBodyCut,
    FetchBodyBroken,
    FetchBodyUnprocessed,
    FetchNoStorage,
    FetchClientBody,
    FetchGivenUp,
    NWaiting,
    WaitingRefused,
    WaitingTimeout,
    FetchUnsayable,
}

/// Section `MAIN`: main counters.
pub static MAIN: SectionRow = SectionRow {
    name: "main",
    oneliner: "Main counters",
    order: 10,
    counters: &[
        row("summs", Counter, DEBUG, INTEGER, "Merges of per-thread statistics"),
        row("uptime", Counter, INFO, DURATION, "Worker process age, seconds"),
        row("sess_conn", Counter, INFO, INTEGER, "Client connections accepted"),
        row("sess_fail", Counter, INFO, INTEGER, "Accept failures, sum of the sess_fail_*"),
        row("sess_fail_econnaborted", Counter, INFO, INTEGER, "Accept failed, ECONNABORTED"),
        row("sess_fail_eintr", Counter, INFO, INTEGER, "Accept failed, EINTR"),
        row("sess_fail_emfile", Counter, INFO, INTEGER, "Accept failed, EMFILE"),
        row("sess_fail_ebadf", Counter, INFO, INTEGER, "Accept failed, EBADF"),
        row("sess_fail_enomem", Counter, INFO, INTEGER, "Accept failed, ENOMEM/ENOBUFS"),
        row("sess_fail_other", Counter, INFO, INTEGER, "Accept failed, anything else"),
        row("client_req_400", Counter, INFO, INTEGER, "Requests answered 400 because unparsable"),
        row("client_req_417", Counter, INFO, INTEGER, "Requests answered 417 because of Expect"),
        row("client_req", Counter, INFO, INTEGER, "Well-formed client requests"),
        row("esi_req", Counter, INFO, INTEGER, "ESI sub-requests"),
        row("cache_hit", Counter, INFO, INTEGER, "Hits (grace hits included)"),
        row("cache_hit_grace", Counter, INFO, INTEGER, "Hits on expired objects within grace"),
        row("cache_hitpass", Counter, INFO, INTEGER, "Hit-for-pass lookups"),
        row("cache_hitmiss", Counter, INFO, INTEGER, "Hit-for-miss lookups"),
        row("cache_miss", Counter, INFO, INTEGER, "Misses"),
        row("beresp_uncacheable", Counter, INFO, INTEGER, "Backend responses not cacheable"),
        row("beresp_shortlived", Counter, INFO, INTEGER, "Objects whose lifetime is below parameter shortlived"),
        row("backend_conn", Counter, INFO, INTEGER, "Backend connections opened"),
        row("backend_unhealthy", Counter, INFO, INTEGER, "Fetches refused, backend sick"),
        row("backend_busy", Counter, INFO, INTEGER, "Fetches refused, max_connections"),
        row("backend_fail", Counter, INFO, INTEGER, "Backend connects failed"),
        row("backend_reuse", Counter, INFO, INTEGER, "Pooled connections taken"),
        row("backend_recycle", Counter, INFO, INTEGER, "Connections put back in pool"),
        row("backend_retry", Counter, INFO, INTEGER, "Request re-sent since a pooled connection was dead"),
        row("fetch_head", Counter, INFO, INTEGER, "Fetches without body, HEAD"),
        row("fetch_length", Counter, INFO, INTEGER, "Fetches with Content-Length"),
        row("fetch_chunked", Counter, INFO, INTEGER, "Fetches with chunked coding"),
        row("fetch_eof", Counter, INFO, INTEGER, "Fetches read until close"),
        row("fetch_bad", Counter, INFO, INTEGER, "Fetches with undeterminable body length"),
        row("fetch_none", Counter, INFO, INTEGER, "Fetches with empty body"),
        row("fetch_1xx", Counter, INFO, INTEGER, "Fetches without body, status 1xx"),
        row("fetch_204", Counter, INFO, INTEGER, "Fetches without body, 204"),
        row("fetch_304", Counter, INFO, INTEGER, "Fetches without body, 304"),
        row("fetch_failed", Counter, INFO, INTEGER, "Failed fetches"),
        row("fetch_no_thread", Counter, INFO, INTEGER, "Fetches failed for want of a thread"),
        row("pools", Gauge, INFO, INTEGER, "Thread pools"),
        row("threads", Gauge, INFO, INTEGER, "Worker threads"),
        row("threads_limited", Counter, INFO, INTEGER, "Thread wanted but thread_pool_max reached"),
        row("threads_created", Counter, INFO, INTEGER, "Threads created"),
        row("threads_destroyed", Counter, INFO, INTEGER, "Threads ended"),
        row("threads_failed", Counter, INFO, INTEGER, "Thread creation errors"),
        row("thread_queue_len", Gauge, INFO, INTEGER, "Queued tasks, refreshed each second"),
        row("busy_sleep", Counter, INFO, INTEGER, "Requests parked on a waiting list"),
        row("busy_wakeup", Counter, INFO, INTEGER, "Requests woken from a waiting list"),
        row("busy_killed", Counter, INFO, INTEGER, "Parked requests killed for lack of resources"),
        row("sess_queued", Counter, INFO, INTEGER, "Sessions queued for a thread"),
        row("sess_dropped", Counter, INFO, INTEGER, "HTTP/1 sessions dropped, queue full"),
        row("req_dropped", Counter, INFO, INTEGER, "HTTP/2 streams refused: too many, or no room for more"),
        row("n_object", Gauge, INFO, INTEGER, "Objects in cache"),
        row("n_vampireobject", Gauge, DIAG, INTEGER, "Persisted objects not yet resurrected"),
        row("n_objectcore", Gauge, INFO, INTEGER, "Object metadata entries"),
        row("n_objecthead", Gauge, INFO, INTEGER, "Hash entries"),
        row("n_backend", Gauge, INFO, INTEGER, "Backends known"),
        row("n_expired", Counter, INFO, INTEGER, "Objects expired by age"),
        row("n_lru_nuked", Counter, INFO, INTEGER, "Objects evicted for space"),
        row("n_lru_moved", Counter, DIAG, INTEGER, "LRU moves"),
        row("n_lru_limited", Counter, INFO, INTEGER, "Nuke_limit reached"),
        row("losthdr", Counter, INFO, INTEGER, "Header table overflows"),
        row("s_sess", Counter, INFO, INTEGER, "Sessions seen"),
        row("n_pipe", Gauge, INFO, INTEGER, "Pipes in progress"),
        row("pipe_limited", Counter, INFO, INTEGER, "Pipes refused by pipe_sess_max"),
        row("s_pipe", Counter, INFO, INTEGER, "Pipes seen"),
        row("s_pass", Counter, INFO, INTEGER, "Passes seen"),
        row("s_fetch", Counter, INFO, INTEGER, "Fetches started, background included"),
        row("s_bgfetch", Counter, INFO, INTEGER, "Background fetches started"),
        row("s_synth", Counter, INFO, INTEGER, "Synthetic responses"),
        row("s_req_hdrbytes", Counter, INFO, BYTES, "Client request header bytes"),
        row("s_req_bodybytes", Counter, INFO, BYTES, "Client request body bytes"),
        row("s_resp_hdrbytes", Counter, INFO, BYTES, "Response header bytes sent"),
        row("s_resp_bodybytes", Counter, INFO, BYTES, "Response body bytes sent"),
        row("s_pipe_hdrbytes", Counter, INFO, BYTES, "Header bytes of piped requests"),
        row("s_pipe_in", Counter, INFO, BYTES, "Pipe bytes from clients"),
        row("s_pipe_out", Counter, INFO, BYTES, "Pipe bytes to clients"),
        row("sess_closed", Counter, INFO, INTEGER, "Sessions closed"),
        row("sess_closed_err", Counter, INFO, INTEGER, "Sessions closed with an error reason"),
        row("sess_readahead", Counter, INFO, INTEGER, "Pipelined bytes found after a request"),
        row("sess_herd", Counter, DIAG, INTEGER, "Sessions handed to the waiter after timeout_linger"),
        row("sc_rem_close", Counter, DIAG, INTEGER, "Closes: client closed"),
        row("sc_req_close", Counter, DIAG, INTEGER, "Closes: client asked for close"),
        row("sc_req_http10", Counter, DIAG, INTEGER, "Closes: HTTP/1.0 client"),
        row("sc_rx_bad", Counter, DIAG, INTEGER, "Closes: bad request"),
        row("sc_rx_body", Counter, DIAG, INTEGER, "Closes: request body failure"),
        row("sc_rx_junk", Counter, DIAG, INTEGER, "Closes: junk received"),
        row("sc_rx_overflow", Counter, DIAG, INTEGER, "Closes: receive buffer overflow"),
        row("sc_rx_timeout", Counter, DIAG, INTEGER, "Closes: receive timeout"),
        row("sc_rx_close_idle", Counter, DIAG, INTEGER, "Closes: idle timeout"),
        row("sc_tx_pipe", Counter, DIAG, INTEGER, "Closes: pipe ended"),
        row("sc_tx_error", Counter, DIAG, INTEGER, "Closes: transmit error"),
        row("sc_tx_eof", Counter, DIAG, INTEGER, "Closes: body delimited by close"),
        row("sc_resp_close", Counter, DIAG, INTEGER, "Closes: response said close"),
        row("sc_overload", Counter, DIAG, INTEGER, "Closes: resources exhausted"),
        row("sc_pipe_overflow", Counter, DIAG, INTEGER, "Closes: too many pipes"),
        row("sc_range_short", Counter, DIAG, INTEGER, "Closes: range could not be filled"),
        row("sc_req_http20", Counter, DIAG, INTEGER, "Closes: HTTP/2 not accepted"),
        row("sc_vcl_failure", Counter, DIAG, INTEGER, "Closes: VCL failure"),
        row("client_resp_500", Counter, DIAG, INTEGER, "Deliveries failed for lack of workspace"),
        row("ws_backend_overflow", Counter, DIAG, INTEGER, "Backend workspace overflows"),
        row("ws_client_overflow", Counter, DIAG, INTEGER, "Client workspace overflows"),
        row("ws_thread_overflow", Counter, DIAG, INTEGER, "Thread workspace overflows"),
        row("ws_session_overflow", Counter, DIAG, INTEGER, "Session workspace overflows"),
        row("shm_records", Counter, DIAG, INTEGER, "Log records"),
        row("shm_writes", Counter, DIAG, INTEGER, "Log reservations"),
        row("shm_flushes", Counter, DIAG, INTEGER, "Log flushes caused by full buffer"),
        row("shm_cont", Counter, DIAG, INTEGER, "Log lock contention"),
        row("shm_cycles", Counter, DIAG, INTEGER, "Log ring wraps"),
        row("backend_req", Counter, INFO, INTEGER, "Backend requests made"),
        row("n_vcl", Gauge, INFO, INTEGER, "VCLs loaded"),
        row("n_vcl_avail", Gauge, DIAG, INTEGER, "VCLs not discarded"),
        row("n_vcl_discard", Gauge, DIAG, INTEGER, "VCLs discarded but still referenced"),
        row("vcl_fail", Counter, INFO, INTEGER, "VCL failures"),
        row("bans", Gauge, INFO, INTEGER, "Bans on the list"),
        row("bans_completed", Gauge, DIAG, INTEGER, "Bans marked complete"),
        row("bans_obj", Gauge, DIAG, INTEGER, "Bans with obj.* tests"),
        row("bans_req", Gauge, DIAG, INTEGER, "Bans with req.* tests"),
        row("bans_added", Counter, DIAG, INTEGER, "Bans added"),
        row("bans_deleted", Counter, DIAG, INTEGER, "Bans removed"),
        row("bans_tested", Counter, DIAG, INTEGER, "Ban/object checks at lookup"),
        row("bans_obj_killed", Counter, DIAG, INTEGER, "Objects killed by bans at lookup"),
        row("bans_lurker_tested", Counter, DIAG, INTEGER, "Ban/object checks by the lurker"),
        row("bans_tests_tested", Counter, DIAG, INTEGER, "Single tests evaluated at lookup"),
        row("bans_lurker_tests_tested", Counter, DIAG, INTEGER, "Single tests evaluated by the lurker"),
        row("bans_lurker_obj_killed", Counter, DIAG, INTEGER, "Objects killed by the lurker"),
        row(
            "bans_lurker_obj_killed_cutoff",
            Counter,
            DIAG,
            INTEGER,
            "Objects killed by the lurker because of ban_cutoff",
        ),
        row("bans_dups", Counter, DIAG, INTEGER, "Bans made redundant by a newer equal one"),
        row("bans_lurker_contention", Counter, DIAG, INTEGER, "Times the lurker backed off"),
        row("bans_persisted_bytes", Gauge, DIAG, BYTES, "Size of persisted ban lists"),
        row("bans_persisted_fragmentation", Gauge, DIAG, BYTES, "Waste in persisted ban lists"),
        row("n_purges", Counter, INFO, INTEGER, "Purge operations"),
        row("n_obj_purged", Counter, INFO, INTEGER, "Objects purged"),
        row("exp_mailed", Counter, DIAG, INTEGER, "Objects posted to the expiry thread"),
        row("exp_received", Counter, DIAG, INTEGER, "Objects taken by the expiry thread"),
        row("hcb_nolock", Counter, DEBUG, INTEGER, "Critbit lookups without lock"),
        row("hcb_lock", Counter, DEBUG, INTEGER, "Critbit lookups with lock"),
        row("hcb_insert", Counter, DEBUG, INTEGER, "Critbit inserts"),
        row("esi_errors", Counter, DIAG, INTEGER, "ESI parse errors"),
        row("esi_warnings", Counter, DIAG, INTEGER, "ESI parse warnings"),
        row("vmods", Gauge, INFO, INTEGER, "VMODs loaded"),
        row("n_gzip", Counter, INFO, INTEGER, "Gzip runs"),
        row("n_gunzip", Counter, INFO, INTEGER, "Gunzip runs"),
        row("n_test_gunzip", Counter, INFO, INTEGER, "Gzip validation runs"),
        row("req_bytes", Gauge, INFO, BYTES, "Bytes held by requests and fetches in progress"),
        row("req_refused", Counter, INFO, INTEGER, "Requests refused by requests_memory_max"),
        row("n_copies", Counter, INFO, INTEGER, "Compressed copies made of objects"),
        row("n_copies_refused", Counter, INFO, INTEGER, "Compressed copies given up: no gain, or no room"),
        row("copies_sent", Counter, INFO, INTEGER, "Responses sent from compressed copies"),
        row("copies_saved_bytes", Counter, INFO, BYTES, "Bytes by which those were shorter than the stored bodies"),
        row("promoted", Counter, INFO, INTEGER, "Bodies copied from a file to memory"),
        row("promoted_sent", Counter, INFO, INTEGER, "Responses sent from such copies"),
        row("demoted", Counter, INFO, INTEGER, "Objects moved from memory to a file, to make room in memory"),
        row(
            "req_reset",
            Counter,
            INFO,
            INTEGER,
            "HTTP/2 and HTTP/3 requests that their clients gave up before they were answered",
        ),
        row("req_early", Counter, INFO, INTEGER, "Requests from early data, run before the handshake was complete"),
        row(
            "req_early_held",
            Counter,
            INFO,
            INTEGER,
            "Requests from early data that waited for the end of the handshake",
        ),
        row(
            "req_early_again",
            Counter,
            INFO,
            INTEGER,
            "Requests sent again when it was complete: the origin had said 425",
        ),
        row("h2_sess", Counter, INFO, INTEGER, "HTTP/2 sessions begun"),
        row("h2_streams", Counter, INFO, INTEGER, "Requests on their streams"),
        row("h2_abuse_resets", Counter, INFO, INTEGER, "HTTP/2 connections ended: too many streams reset"),
        row("h2_abuse_headers", Counter, INFO, INTEGER, "HTTP/2 connections ended: endless or exploding header block"),
        row("h2_abuse_frames", Counter, INFO, INTEGER, "HTTP/2 connections ended: too many frames that carry nothing"),
        row("tls_handshakes", Counter, INFO, INTEGER, "TLS handshakes with clients"),
        row("tls_resumed", Counter, INFO, INTEGER, "Those that resumed a session"),
        row("tls_failed", Counter, INFO, INTEGER, "TLS handshakes with clients that failed"),
        row("tls_refused", Counter, INFO, INTEGER, "Those given up because too many were in progress"),
        row("h3_sess", Counter, INFO, INTEGER, "HTTP/3 sessions begun"),
        row("h3_handshakes", Counter, INFO, INTEGER, "QUIC handshakes completed"),
        row("h3_handshakes_failed", Counter, INFO, INTEGER, "QUIC handshakes failed"),
        row("h3_handshakes_ignored", Counter, INFO, INTEGER, "QUIC clients not served: too many of them"),
        row("h3_retries", Counter, INFO, INTEGER, "QUIC clients asked to prove their address (Retry)"),
        row("h3_former", Counter, INFO, INTEGER, "Datagrams for connections of a former worker (answered with resets)"),
        row("h3_handed_over", Counter, INFO, INTEGER, "Datagrams handed to the event loop of their connection"),
        row("h3_handed_lost", Counter, INFO, INTEGER, "Datagrams lost on the way to another event loop: too many"),
        row("h3_refused", Counter, INFO, INTEGER, "HTTP/3 requests refused: too many, or after GOAWAY"),
        row("h3_errors", Counter, INFO, INTEGER, "HTTP/3 connections ended: the client broke the protocol"),
        row(
            "h3_abuse",
            Counter,
            INFO,
            INTEGER,
            "HTTP/3 connections ended: too many requests given up, or too much that carries nothing",
        ),
        row("backend_tls", Counter, INFO, INTEGER, "TLS handshakes with origins"),
        row("backend_tls_resumed", Counter, INFO, INTEGER, "Those that resumed a session"),
        row("backend_tls_failed", Counter, INFO, INTEGER, "TLS handshakes with origins that failed"),
        row("backend_aside", Counter, INFO, INTEGER, "Fetches refused, backend set aside for its failures"),
        row("backend_queue_full", Counter, INFO, INTEGER, "Fetches refused, too many waited for a connection"),
        row("backend_wait_timeout", Counter, INFO, INTEGER, "Fetches refused, waited too long for a connection"),
        row("backend_retry_refused", Counter, INFO, INTEGER, "Fetches not repeated, retry_budget spent"),
        row("fetch_no_backend", Counter, INFO, INTEGER, "Fetches failed, no backend to ask"),
        row("fetch_not_sent", Counter, INFO, INTEGER, "Fetches failed, origin did not take the request"),
        row("fetch_closed", Counter, INFO, INTEGER, "Fetches failed, origin closed before a whole head"),
        row("fetch_reset", Counter, INFO, INTEGER, "Fetches failed, origin reset connection or stream"),
        row("fetch_first_byte_timeout", Counter, INFO, INTEGER, "Fetches failed, first_byte_timeout"),
        row("fetch_between_bytes_timeout", Counter, INFO, INTEGER, "Fetches failed, between_bytes_timeout"),
        row("fetch_last_byte_timeout", Counter, INFO, INTEGER, "Fetches failed, last_byte_timeout"),
        row("fetch_head_too_large", Counter, INFO, INTEGER, "Fetches failed, response head too large"),
        row("fetch_garbled", Counter, INFO, INTEGER, "Fetches failed, response is not HTTP"),
        row("fetch_body_cut", Counter, INFO, INTEGER, "Fetches failed, body ended too soon"),
        row("fetch_body_broken", Counter, INFO, INTEGER, "Fetches failed, body framed wrongly"),
        row("fetch_body_unprocessed", Counter, INFO, INTEGER, "Fetches failed, a filter rejected the body"),
        row("fetch_no_storage", Counter, INFO, INTEGER, "Fetches failed, no room for the response"),
        row("fetch_client_body", Counter, INFO, INTEGER, "Fetches failed, client's body did not arrive whole"),
        row("fetch_given_up", Counter, INFO, INTEGER, "Fetches given up, the only client had gone"),
        row("n_waiting", Gauge, INFO, INTEGER, "Requests that wait for another's fetch"),
        row("waiting_refused", Counter, INFO, INTEGER, "Requests that found waiting_requests_max of those"),
        row("waiting_timeout", Counter, INFO, INTEGER, "Requests that waited for waiting_timeout"),
        row("fetch_unsayable", Counter, INFO, INTEGER, "Fetches failed, request cannot be said over HTTP/2"),
    ],
};

/// Index of each counter of section `MGT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Mgt {
    Uptime,
    ChildStart,
    ChildExit,
    ChildStop,
    ChildDied,
    ChildDump,
    ChildPanic,
}

/// Section `MGT`: management process counters.
pub static MGT: SectionRow = SectionRow {
    name: "mgt",
    oneliner: "Management process counters",
    order: 20,
    counters: &[
        row("uptime", Counter, INFO, DURATION, "Master process age, seconds"),
        row("child_start", Counter, DIAG, INTEGER, "Worker starts"),
        row("child_exit", Counter, DIAG, INTEGER, "Clean worker ends"),
        row("child_stop", Counter, DIAG, INTEGER, "Worker ends with non-zero exit status"),
        row("child_died", Counter, DIAG, INTEGER, "Worker ended by a signal"),
        row("child_dump", Counter, DIAG, INTEGER, "Worker ends that left a core"),
        row("child_panic", Counter, DIAG, INTEGER, "Panics caught by the master"),
    ],
};

/// Index of each counter of section `MEMPOOL`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Mempool {
    Live,
    Pool,
    SzWanted,
    SzActual,
    Allocs,
    Frees,
    Recycle,
    Timeout,
    Toosmall,
    Surplus,
    Randry,
}

/// Section `MEMPOOL`: memory pool counters.
pub static MEMPOOL: SectionRow = SectionRow {
    name: "mempool",
    oneliner: "Memory pool counters",
    order: 30,
    counters: &[
        row("live", Gauge, DEBUG, INTEGER, "Items in use"),
        row("pool", Gauge, DEBUG, INTEGER, "Items idle in pool"),
        row("sz_wanted", Gauge, DEBUG, BYTES, "Item size asked for"),
        row("sz_actual", Gauge, DEBUG, BYTES, "Item size allocated"),
        row("allocs", Counter, DEBUG, INTEGER, "Allocations"),
        row("frees", Counter, DEBUG, INTEGER, "Frees"),
        row("recycle", Counter, DEBUG, INTEGER, "Taken from pool"),
        row("timeout", Counter, DEBUG, INTEGER, "Dropped from pool by age"),
        row("toosmall", Counter, DEBUG, INTEGER, "Dropped because size parameter grew"),
        row("surplus", Counter, DEBUG, INTEGER, "Dropped because pool is full"),
        row("randry", Counter, DEBUG, INTEGER, "Pool found empty"),
    ],
};

/// Index of each counter of section `SMA`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Sma {
    CReq,
    CFail,
    CBytes,
    CFreed,
    GAlloc,
    GBytes,
    GSpace,
}

/// Section `SMA`: malloc stevedore counters.
pub static SMA: SectionRow = SectionRow {
    name: "sma",
    oneliner: "Malloc stevedore counters",
    order: 40,
    counters: &[
        row("c_req", Counter, INFO, INTEGER, "Allocation requests"),
        row("c_fail", Counter, INFO, INTEGER, "Allocations refused"),
        row("c_bytes", Counter, INFO, BYTES, "Cumulative bytes handed out"),
        row("c_freed", Counter, INFO, BYTES, "Cumulative bytes returned"),
        row("g_alloc", Gauge, INFO, INTEGER, "Live allocations"),
        row("g_bytes", Gauge, INFO, BYTES, "Bytes in use"),
        row("g_space", Gauge, INFO, BYTES, "Bytes still free (0 for unlimited)"),
    ],
};

/// Index of each counter of section `SMF`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Smf {
    CReq,
    CFail,
    CBytes,
    CFreed,
    GAlloc,
    GBytes,
    GSpace,
    GSmf,
    GSmfFrag,
    GSmfLarge,
    WrittenBytes,
    StoredBytes,
    WarmReads,
    ColdReads,
    ReadErrors,
    WriteErrors,
    GMetaBytes,
    GMetaSpace,
}

/// Section `SMF`: file stevedore counters. Those behind `g_smf_large` are ours.
pub static SMF: SectionRow = SectionRow {
    name: "smf",
    oneliner: "File stevedore counters",
    order: 50,
    counters: &[
        row("c_req", Counter, INFO, INTEGER, "Allocation requests"),
        row("c_fail", Counter, INFO, INTEGER, "Allocations refused"),
        row("c_bytes", Counter, INFO, BYTES, "Cumulative bytes handed out"),
        row("c_freed", Counter, INFO, BYTES, "Cumulative bytes returned"),
        row("g_alloc", Gauge, INFO, INTEGER, "Live allocations"),
        row("g_bytes", Gauge, INFO, BYTES, "Bytes in use"),
        row("g_space", Gauge, INFO, BYTES, "Bytes still free (0 for unlimited)"),
        row("g_smf", Gauge, INFO, INTEGER, "Number of internal file extents"),
        row("g_smf_frag", Gauge, INFO, INTEGER, "Small free extents"),
        row("g_smf_large", Gauge, INFO, INTEGER, "Large free extents"),
        row("written_bytes", Counter, INFO, BYTES, "Bytes written to the file, with padding and log"),
        row("stored_bytes", Counter, INFO, BYTES, "Bytes of bodies among them"),
        row("warm_reads", Counter, INFO, INTEGER, "Pieces of bodies read from the page cache"),
        row("cold_reads", Counter, INFO, INTEGER, "Pieces of bodies that had to be waited for"),
        row("read_errors", Counter, INFO, INTEGER, "Reads that failed, and pieces with a wrong checksum"),
        row("write_errors", Counter, INFO, INTEGER, "Writes that failed"),
        row("g_meta_bytes", Gauge, INFO, BYTES, "Memory for what is not a body"),
        row("g_meta_space", Gauge, INFO, BYTES, "What is left of its limit"),
    ],
};

/// Index of each counter of section `SMU`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Smu {
    CReq,
    CFail,
    CBytes,
    CFreed,
    GAlloc,
    GBytes,
    GSpace,
}

/// Section `SMU`: umem stevedore counters.
pub static SMU: SectionRow = SectionRow {
    name: "smu",
    oneliner: "Umem stevedore counters",
    order: 40,
    counters: &[
        row("c_req", Counter, INFO, INTEGER, "Allocation requests"),
        row("c_fail", Counter, INFO, INTEGER, "Allocations refused"),
        row("c_bytes", Counter, INFO, BYTES, "Cumulative bytes handed out"),
        row("c_freed", Counter, INFO, BYTES, "Cumulative bytes returned"),
        row("g_alloc", Gauge, INFO, INTEGER, "Live allocations"),
        row("g_bytes", Gauge, INFO, BYTES, "Bytes in use"),
        row("g_space", Gauge, INFO, BYTES, "Bytes still free (0 for unlimited)"),
    ],
};

/// Index of each counter of section `VBE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Vbe {
    Happy,
    BereqHdrbytes,
    BereqBodybytes,
    BerespHdrbytes,
    BerespBodybytes,
    PipeHdrbytes,
    PipeOut,
    PipeIn,
    Conn,
    Req,
    Unhealthy,
    Busy,
    Fail,
    FailEacces,
    FailEaddrnotavail,
    FailEconnrefused,
    FailEnetunreach,
    FailEtimedout,
    FailOther,
    Helddown,
    Aside,
    AsideRefused,
    Waiting,
    QueueFull,
    WaitTimeout,
    RetryRefused,
    Addresses,
    LocalError,
}

/// Section `VBE`: backend counters.
pub static VBE: SectionRow = SectionRow {
    name: "vbe",
    oneliner: "Backend counters",
    order: 60,
    counters: &[
        row("happy", Bitmap, INFO, BITMAP, "Last 64 probe outcomes, newest in bit 0"),
        row("bereq_hdrbytes", Counter, INFO, BYTES, "Request header bytes sent"),
        row("bereq_bodybytes", Counter, INFO, BYTES, "Request body bytes sent"),
        row("beresp_hdrbytes", Counter, INFO, BYTES, "Response header bytes received"),
        row("beresp_bodybytes", Counter, INFO, BYTES, "Response body bytes received"),
        row("pipe_hdrbytes", Counter, INFO, BYTES, "Request header bytes sent in pipe mode"),
        row("pipe_out", Counter, INFO, BYTES, "Pipe bytes to backend"),
        row("pipe_in", Counter, INFO, BYTES, "Pipe bytes from backend"),
        row("conn", Gauge, INFO, INTEGER, "Concurrent connections used"),
        row("req", Counter, INFO, INTEGER, "Requests sent"),
        row("unhealthy", Counter, INFO, INTEGER, "Fetches refused since the backend was sick"),
        row("busy", Counter, INFO, INTEGER, "Fetches refused since max_connections was reached"),
        row("fail", Counter, INFO, INTEGER, "Failed connects, sum of the fail_* ones"),
        row("fail_eacces", Counter, DIAG, INTEGER, "Connects failed, EACCES/EPERM"),
        row("fail_eaddrnotavail", Counter, DIAG, INTEGER, "Connects failed, EADDRNOTAVAIL"),
        row("fail_econnrefused", Counter, DIAG, INTEGER, "Connects failed, ECONNREFUSED"),
        row("fail_enetunreach", Counter, DIAG, INTEGER, "Connects failed, ENETUNREACH"),
        row("fail_etimedout", Counter, DIAG, INTEGER, "Connects failed, ETIMEDOUT"),
        row("fail_other", Counter, DIAG, INTEGER, "Connects failed, any other cause"),
        row("helddown", Counter, DIAG, INTEGER, "Connects skipped during hold-down period"),
        row("aside", Counter, INFO, INTEGER, "Times it was set aside for its failures"),
        row("aside_refused", Counter, INFO, INTEGER, "Fetches refused since it was set aside"),
        row("waiting", Gauge, INFO, INTEGER, "Fetches that wait for a connection"),
        row("queue_full", Counter, INFO, INTEGER, "Fetches refused since wait_limit was reached"),
        row("wait_timeout", Counter, INFO, INTEGER, "Fetches refused since wait_timeout was over"),
        row("retry_refused", Counter, INFO, INTEGER, "Fetches not repeated since retry_budget was spent"),
        row("addresses", Gauge, INFO, INTEGER, "Addresses in use, if its name is followed"),
        row("local_error", Counter, DIAG, INTEGER, "Failed connects with a cause on this machine"),
    ],
};

/// Section `DEBUG`: the counter of the VMOD debug. Shown while VCL says so.
pub static DEBUG_VMOD: SectionRow = SectionRow {
    name: "debug",
    oneliner: "Counter of the VMOD debug",
    order: 70,
    counters: &[row("count", Counter, DEBUG, INTEGER, "What debug.vsc_count() has added")],
};

/// Index of each counter of section `XKEY`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Xkey {
    GKeys,
    GHashheadBytes,
    GOcheadBytes,
    GOcBytes,
    GBytes,
}

/// Section `XKEY`: tags of objects. Shown once a VCL imports xkey.
pub static XKEY: SectionRow = SectionRow {
    name: "xkey",
    oneliner: "xkey Counters",
    order: 70,
    counters: &[
        row("g_keys", Gauge, INFO, INTEGER, "Tags in use"),
        row("g_hashhead_bytes", Gauge, DEBUG, BYTES, "Bytes for the tags themselves (none: they are in the objects)"),
        row("g_ochead_bytes", Gauge, DEBUG, BYTES, "Bytes for objects with tags (none: they are in the index)"),
        row("g_oc_bytes", Gauge, DEBUG, BYTES, "Bytes for pairs of tag and object"),
        row("g_bytes", Gauge, INFO, BYTES, "Bytes for tags, all in all"),
    ],
};

/// Index of each counter of section `LCK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Lck {
    Creat,
    Destroy,
    Locks,
    DbgBusy,
    DbgTryFail,
}

/// A class of locks: its section is `LCK.` and its name. These are the classes of Varnish whose locks have a counterpart
/// here; `docs/varnish-records.md` explains why the others have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockClass {
    /// The list of bans.
    Ban,
    /// What a running fetch publishes.
    Busyobj,
    /// The table of pools of idle connections to origins. It counts the creation and destruction of pools, one for each
    /// place that a backend leads to.
    ConnPool,
    /// What a director knows: members, configuration.
    Director,
    /// The parts of the index.
    Hcb,
    /// The results of a probe.
    Probe,
    /// The heap of the storage.
    Sma,
    /// The state of a VCL.
    Vcl,
}

impl LockClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [LockClass; 8] = [
        LockClass::Ban,
        LockClass::Busyobj,
        LockClass::ConnPool,
        LockClass::Director,
        LockClass::Hcb,
        LockClass::Probe,
        LockClass::Sma,
        LockClass::Vcl,
    ];

    /// The name that counters show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LockClass::Ban => "ban",
            LockClass::Busyobj => "busyobj",
            LockClass::ConnPool => "conn_pool",
            LockClass::Director => "director",
            LockClass::Hcb => "hcb",
            LockClass::Probe => "probe",
            LockClass::Sma => "sma",
            LockClass::Vcl => "vcl",
        }
    }
}

/// Section `LCK`: lock counters.
pub static LCK: SectionRow = SectionRow {
    name: "lck",
    oneliner: "Lock counters",
    order: 70,
    counters: &[
        row("creat", Counter, DEBUG, INTEGER, "Locks created"),
        row("destroy", Counter, DEBUG, INTEGER, "Locks destroyed"),
        row("locks", Counter, DEBUG, INTEGER, "Lock operations"),
        row("dbg_busy", Counter, DEBUG, INTEGER, "Locks that somebody else held"),
        row("dbg_try_fail", Counter, DEBUG, INTEGER, "Attempts given up because somebody else held the lock"),
    ],
};
