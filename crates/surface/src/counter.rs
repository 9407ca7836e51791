//! The counters: every section of the statistics segment, its elements and their texts.
//!
//! A counter's byte offset in its section is eight times its index, as the stock 7.1 tools read it
//! from the section's JSON document (which `shm` derives from these rows). Source: observed VSC
//! documents of Varnish 7.1.1. Next file: `parameter.rs`.

use crate::closed_set::closed_set;

/// Semantics of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// 64 flags, the newest in bit 0.
    Bitmap,
}

/// Audience of a counter.
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

/// Declares a section: the enum of the indices of its counters, and its row. One line is one
/// counter: index, name, kind, level, unit and text.
macro_rules! section {
    (
        $(#[$about:meta])* $index:ident $section:ident $name:literal $order:literal $oneliner:literal
        $($counter:ident $counter_name:literal $kind:ident $level:ident $format:ident $text:literal;)*
    ) => {
        #[doc = concat!("Index of each counter of section [`", stringify!($section), "`].")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum $index {
            $(#[doc = $text] $counter,)*
        }

        $(#[$about])*
        pub static $section: SectionRow = SectionRow {
            name: $name,
            oneliner: $oneliner,
            order: $order,
            counters: &[$(CounterRow {
                name: $counter_name,
                kind: CounterKind::$kind,
                level: CounterLevel::$level,
                format: CounterFormat::$format,
                oneliner: $text,
            },)*],
        };
    };
}

section! {
    /// Section `MAIN`: main counters.
    Main MAIN "main" 10 "Main counters"
    Summs "summs" Counter Debug Integer "Merges of per-thread statistics";
    Uptime "uptime" Counter Info Duration "Worker process age, seconds";
    SessConn "sess_conn" Counter Info Integer "Client connections accepted";
    SessFail "sess_fail" Counter Info Integer "Accept failures, sum of the sess_fail_*";
    SessFailEconnaborted "sess_fail_econnaborted" Counter Info Integer "Accept failed, ECONNABORTED";
    SessFailEintr "sess_fail_eintr" Counter Info Integer "Accept failed, EINTR";
    SessFailEmfile "sess_fail_emfile" Counter Info Integer "Accept failed, EMFILE";
    SessFailEbadf "sess_fail_ebadf" Counter Info Integer "Accept failed, EBADF";
    SessFailEnomem "sess_fail_enomem" Counter Info Integer "Accept failed, ENOMEM/ENOBUFS";
    SessFailOther "sess_fail_other" Counter Info Integer "Accept failed, anything else";
    ClientReq400 "client_req_400" Counter Info Integer "Requests answered 400 because unparsable";
    ClientReq417 "client_req_417" Counter Info Integer "Requests answered 417 because of Expect";
    ClientReq "client_req" Counter Info Integer "Well-formed client requests";
    EsiReq "esi_req" Counter Info Integer "ESI sub-requests";
    CacheHit "cache_hit" Counter Info Integer "Hits (grace hits included)";
    CacheHitGrace "cache_hit_grace" Counter Info Integer "Hits on expired objects within grace";
    CacheHitpass "cache_hitpass" Counter Info Integer "Hit-for-pass lookups";
    CacheHitmiss "cache_hitmiss" Counter Info Integer "Hit-for-miss lookups";
    CacheMiss "cache_miss" Counter Info Integer "Misses";
    BerespUncacheable "beresp_uncacheable" Counter Info Integer "Backend responses not cacheable";
    BerespShortlived "beresp_shortlived" Counter Info Integer "Objects whose lifetime is below parameter shortlived";
    BackendConn "backend_conn" Counter Info Integer "Backend connections opened";
    BackendUnhealthy "backend_unhealthy" Counter Info Integer "Fetches refused, backend sick";
    BackendBusy "backend_busy" Counter Info Integer "Fetches refused, max_connections";
    BackendFail "backend_fail" Counter Info Integer "Backend connects failed";
    BackendReuse "backend_reuse" Counter Info Integer "Pooled connections taken";
    BackendRecycle "backend_recycle" Counter Info Integer "Connections put back in pool";
    BackendRetry "backend_retry" Counter Info Integer "Request re-sent since a pooled connection was dead";
    FetchHead "fetch_head" Counter Info Integer "Fetches without body, HEAD";
    FetchLength "fetch_length" Counter Info Integer "Fetches with Content-Length";
    FetchChunked "fetch_chunked" Counter Info Integer "Fetches with chunked coding";
    FetchEof "fetch_eof" Counter Info Integer "Fetches read until close";
    FetchBad "fetch_bad" Counter Info Integer "Fetches with undeterminable body length";
    FetchNone "fetch_none" Counter Info Integer "Fetches with empty body";
    Fetch1xx "fetch_1xx" Counter Info Integer "Fetches without body, status 1xx";
    Fetch204 "fetch_204" Counter Info Integer "Fetches without body, 204";
    Fetch304 "fetch_304" Counter Info Integer "Fetches without body, 304";
    FetchFailed "fetch_failed" Counter Info Integer "Failed fetches";
    FetchNoThread "fetch_no_thread" Counter Info Integer "Fetches failed for lack of a thread";
    Pools "pools" Gauge Info Integer "Thread pools";
    Threads "threads" Gauge Info Integer "Worker threads";
    ThreadsLimited "threads_limited" Counter Info Integer "Thread wanted but thread_pool_max reached";
    ThreadsCreated "threads_created" Counter Info Integer "Threads created";
    ThreadsDestroyed "threads_destroyed" Counter Info Integer "Threads ended";
    ThreadsFailed "threads_failed" Counter Info Integer "Thread creation errors";
    ThreadQueueLen "thread_queue_len" Gauge Info Integer "Queued tasks, refreshed each second";
    BusySleep "busy_sleep" Counter Info Integer "Requests parked on a waiting list";
    BusyWakeup "busy_wakeup" Counter Info Integer "Requests woken from a waiting list";
    BusyKilled "busy_killed" Counter Info Integer "Parked requests killed for lack of resources";
    SessQueued "sess_queued" Counter Info Integer "Sessions queued for a thread";
    SessDropped "sess_dropped" Counter Info Integer "HTTP/1 sessions dropped, queue full";
    ReqDropped "req_dropped" Counter Info Integer "HTTP/2 streams refused: too many, or no room for more";
    NObject "n_object" Gauge Info Integer "Objects in cache";
    NVampireobject "n_vampireobject" Gauge Diag Integer "Persisted objects not yet resurrected";
    NObjectcore "n_objectcore" Gauge Info Integer "Object metadata entries";
    NObjecthead "n_objecthead" Gauge Info Integer "Hash entries";
    NBackend "n_backend" Gauge Info Integer "Backends known";
    NExpired "n_expired" Counter Info Integer "Objects expired by age";
    NLruNuked "n_lru_nuked" Counter Info Integer "Objects evicted for space";
    NLruMoved "n_lru_moved" Counter Diag Integer "LRU moves";
    NLruLimited "n_lru_limited" Counter Info Integer "Nuke_limit reached";
    Losthdr "losthdr" Counter Info Integer "Header table overflows";
    SSess "s_sess" Counter Info Integer "Sessions seen";
    NPipe "n_pipe" Gauge Info Integer "Pipes in progress";
    PipeLimited "pipe_limited" Counter Info Integer "Pipes refused by pipe_sess_max";
    SPipe "s_pipe" Counter Info Integer "Pipes seen";
    SPass "s_pass" Counter Info Integer "Passes seen";
    SFetch "s_fetch" Counter Info Integer "Fetches started, background included";
    SBgfetch "s_bgfetch" Counter Info Integer "Background fetches started";
    SSynth "s_synth" Counter Info Integer "Synthetic responses";
    SReqHdrbytes "s_req_hdrbytes" Counter Info Bytes "Client request header bytes";
    SReqBodybytes "s_req_bodybytes" Counter Info Bytes "Client request body bytes";
    SRespHdrbytes "s_resp_hdrbytes" Counter Info Bytes "Response header bytes sent";
    SRespBodybytes "s_resp_bodybytes" Counter Info Bytes "Response body bytes sent";
    SPipeHdrbytes "s_pipe_hdrbytes" Counter Info Bytes "Header bytes of piped requests";
    SPipeIn "s_pipe_in" Counter Info Bytes "Pipe bytes from clients";
    SPipeOut "s_pipe_out" Counter Info Bytes "Pipe bytes to clients";
    SessClosed "sess_closed" Counter Info Integer "Sessions closed";
    SessClosedErr "sess_closed_err" Counter Info Integer "Sessions closed with an error reason";
    SessReadahead "sess_readahead" Counter Info Integer "Pipelined bytes found after a request";
    SessHerd "sess_herd" Counter Diag Integer "Sessions handed to the waiter after timeout_linger";
    ScRemClose "sc_rem_close" Counter Diag Integer "Closes: client closed";
    ScReqClose "sc_req_close" Counter Diag Integer "Closes: client asked for close";
    ScReqHttp10 "sc_req_http10" Counter Diag Integer "Closes: HTTP/1.0 client";
    ScRxBad "sc_rx_bad" Counter Diag Integer "Closes: bad request";
    ScRxBody "sc_rx_body" Counter Diag Integer "Closes: request body failure";
    ScRxJunk "sc_rx_junk" Counter Diag Integer "Closes: junk received";
    ScRxOverflow "sc_rx_overflow" Counter Diag Integer "Closes: receive buffer overflow";
    ScRxTimeout "sc_rx_timeout" Counter Diag Integer "Closes: receive timeout";
    ScRxCloseIdle "sc_rx_close_idle" Counter Diag Integer "Closes: idle timeout";
    ScTxPipe "sc_tx_pipe" Counter Diag Integer "Closes: pipe ended";
    ScTxError "sc_tx_error" Counter Diag Integer "Closes: transmit error";
    ScTxEof "sc_tx_eof" Counter Diag Integer "Closes: body delimited by close";
    ScRespClose "sc_resp_close" Counter Diag Integer "Closes: response said close";
    ScOverload "sc_overload" Counter Diag Integer "Closes: resources exhausted";
    ScPipeOverflow "sc_pipe_overflow" Counter Diag Integer "Closes: too many pipes";
    ScRangeShort "sc_range_short" Counter Diag Integer "Closes: range could not be filled";
    ScReqHttp20 "sc_req_http20" Counter Diag Integer "Closes: HTTP/2 not accepted";
    ScVclFailure "sc_vcl_failure" Counter Diag Integer "Closes: VCL failure";
    ScRapidReset "sc_rapid_reset" Counter Diag Integer "Closes: too many HTTP/2 streams reset";
    ClientResp500 "client_resp_500" Counter Diag Integer "Deliveries failed for lack of workspace";
    WsBackendOverflow "ws_backend_overflow" Counter Diag Integer "Backend workspace overflows";
    WsClientOverflow "ws_client_overflow" Counter Diag Integer "Client workspace overflows";
    WsThreadOverflow "ws_thread_overflow" Counter Diag Integer "Thread workspace overflows";
    WsSessionOverflow "ws_session_overflow" Counter Diag Integer "Session workspace overflows";
    ShmRecords "shm_records" Counter Diag Integer "Log records";
    ShmWrites "shm_writes" Counter Diag Integer "Log reservations";
    ShmFlushes "shm_flushes" Counter Diag Integer "Log flushes caused by full buffer";
    ShmCont "shm_cont" Counter Diag Integer "Log lock contention";
    ShmCycles "shm_cycles" Counter Diag Integer "Log ring wraps";
    ShmBytes "shm_bytes" Counter Diag Bytes "Bytes of log written";
    BackendReq "backend_req" Counter Info Integer "Backend requests made";
    NVcl "n_vcl" Gauge Info Integer "VCLs loaded";
    NVclAvail "n_vcl_avail" Gauge Diag Integer "VCLs not discarded";
    NVclDiscard "n_vcl_discard" Gauge Diag Integer "VCLs discarded but still referenced";
    VclFail "vcl_fail" Counter Info Integer "VCL failures";
    Bans "bans" Gauge Info Integer "Bans on the list";
    BansCompleted "bans_completed" Gauge Diag Integer "Bans marked complete";
    BansObj "bans_obj" Gauge Diag Integer "Bans with obj.* tests";
    BansReq "bans_req" Gauge Diag Integer "Bans with req.* tests";
    BansAdded "bans_added" Counter Diag Integer "Bans added";
    BansDeleted "bans_deleted" Counter Diag Integer "Bans removed";
    BansTested "bans_tested" Counter Diag Integer "Ban/object checks at lookup";
    BansObjKilled "bans_obj_killed" Counter Diag Integer "Objects killed by bans at lookup";
    BansLurkerTested "bans_lurker_tested" Counter Diag Integer "Ban/object checks by the lurker";
    BansTestsTested "bans_tests_tested" Counter Diag Integer "Single tests evaluated at lookup";
    BansLurkerTestsTested "bans_lurker_tests_tested" Counter Diag Integer "Single tests evaluated by the lurker";
    BansLurkerObjKilled "bans_lurker_obj_killed" Counter Diag Integer "Objects killed by the lurker";
    BansLurkerObjKilledCutoff "bans_lurker_obj_killed_cutoff" Counter Diag Integer "Objects killed by the lurker because of ban_cutoff";
    BansDups "bans_dups" Counter Diag Integer "Bans made redundant by a newer equal one";
    BansLurkerContention "bans_lurker_contention" Counter Diag Integer "Times the lurker backed off";
    BansPersistedBytes "bans_persisted_bytes" Gauge Diag Bytes "Size of persisted ban lists";
    BansPersistedFragmentation "bans_persisted_fragmentation" Gauge Diag Bytes "Waste in persisted ban lists";
    NPurges "n_purges" Counter Info Integer "Purge operations";
    NObjPurged "n_obj_purged" Counter Info Integer "Objects purged";
    ExpMailed "exp_mailed" Counter Diag Integer "Objects posted to the expiry thread";
    ExpReceived "exp_received" Counter Diag Integer "Objects taken by the expiry thread";
    HcbNolock "hcb_nolock" Counter Debug Integer "Critbit lookups without lock";
    HcbLock "hcb_lock" Counter Debug Integer "Critbit lookups with lock";
    HcbInsert "hcb_insert" Counter Debug Integer "Critbit inserts";
    EsiErrors "esi_errors" Counter Diag Integer "ESI parse errors";
    EsiWarnings "esi_warnings" Counter Diag Integer "ESI parse warnings";
    EsiLeftOut "esi_left_out" Counter Info Integer "ESI fragments left out by max_esi_depth or esi_fragments_max";
    Vmods "vmods" Gauge Info Integer "VMODs loaded";
    NGzip "n_gzip" Counter Info Integer "Gzip runs";
    NGunzip "n_gunzip" Counter Info Integer "Gunzip runs";
    NTestGunzip "n_test_gunzip" Counter Info Integer "Gzip validation runs";
    ReqBytes "req_bytes" Gauge Info Bytes "Bytes held by requests and fetches in progress";
    ReqRefused "req_refused" Counter Info Integer "Requests refused by requests_memory_max";
    LeaksFound "leaks_found" Counter Info Integer "Responses of one client that VCL had stored for all (leak_guard)";
    LeaksRefused "leaks_refused" Counter Info Integer "Responses that were not stored for this reason (leak_guard=refuse)";
    LeakKeysDropped "leak_keys_dropped" Counter Diag Integer "Keys that leak_guard could not compare, since it watched too many";
    NCopies "n_copies" Counter Info Integer "Compressed copies made of objects";
    NCopiesRefused "n_copies_refused" Counter Info Integer "Compressed copies given up: no gain, or no room";
    CopiesSent "copies_sent" Counter Info Integer "Responses sent from compressed copies";
    CopiesSavedBytes "copies_saved_bytes" Counter Info Bytes "Bytes by which those were shorter than the stored bodies";
    Promoted "promoted" Counter Info Integer "Bodies copied from a file to memory";
    PromotedSent "promoted_sent" Counter Info Integer "Responses sent from such copies";
    Demoted "demoted" Counter Info Integer "Objects moved from memory to a file, to make room in memory";
    ReqReset "req_reset" Counter Info Integer "HTTP/2 and HTTP/3 requests that their clients gave up before they were answered";
    ReqEarly "req_early" Counter Info Integer "Requests from early data, run before the handshake was complete";
    ReqEarlyHeld "req_early_held" Counter Info Integer "Requests from early data that waited for the end of the handshake";
    ReqEarlyAgain "req_early_again" Counter Info Integer "Requests sent again when it was complete: the origin had said 425";
    H2Sess "h2_sess" Counter Info Integer "HTTP/2 sessions begun";
    H2Streams "h2_streams" Counter Info Integer "Requests on their streams";
    H2AbuseResets "h2_abuse_resets" Counter Info Integer "HTTP/2 connections ended: too many streams reset";
    H2AbuseHeaders "h2_abuse_headers" Counter Info Integer "HTTP/2 connections ended: endless or exploding header block";
    H2AbuseFrames "h2_abuse_frames" Counter Info Integer "HTTP/2 connections ended: too many frames that carry nothing";
    TlsHandshakes "tls_handshakes" Counter Info Integer "TLS handshakes with clients";
    TlsResumed "tls_resumed" Counter Info Integer "Those that resumed a session";
    TlsFailed "tls_failed" Counter Info Integer "TLS handshakes with clients that failed";
    TlsRefused "tls_refused" Counter Info Integer "Those given up because too many were in progress";
    H3Sess "h3_sess" Counter Info Integer "HTTP/3 sessions begun";
    H3Handshakes "h3_handshakes" Counter Info Integer "QUIC handshakes completed";
    H3HandshakesFailed "h3_handshakes_failed" Counter Info Integer "QUIC handshakes failed";
    H3HandshakesIgnored "h3_handshakes_ignored" Counter Info Integer "QUIC clients not served: too many of them";
    H3Retries "h3_retries" Counter Info Integer "QUIC clients asked to prove their address (Retry)";
    H3Former "h3_former" Counter Info Integer "Datagrams for connections of a former worker (answered with resets)";
    H3HandedOver "h3_handed_over" Counter Info Integer "Datagrams handed to the event loop of their connection";
    H3HandedLost "h3_handed_lost" Counter Info Integer "Datagrams lost on the way to another event loop: too many";
    H3Refused "h3_refused" Counter Info Integer "HTTP/3 requests refused: too many, or after GOAWAY";
    H3Errors "h3_errors" Counter Info Integer "HTTP/3 connections ended: the client broke the protocol";
    H3Abuse "h3_abuse" Counter Info Integer "HTTP/3 connections ended: too many requests given up, or too much that carries nothing";
    BackendTls "backend_tls" Counter Info Integer "TLS handshakes with origins";
    BackendTlsResumed "backend_tls_resumed" Counter Info Integer "Those that resumed a session";
    BackendTlsFailed "backend_tls_failed" Counter Info Integer "TLS handshakes with origins that failed";
    BackendAside "backend_aside" Counter Info Integer "Fetches refused, backend set aside for its failures";
    BackendQueueFull "backend_queue_full" Counter Info Integer "Fetches refused, too many waited for a connection";
    BackendWait "backend_wait" Counter Info Integer "Fetches that waited for a connection";
    BackendWaitFail "backend_wait_fail" Counter Info Integer "Those that got none: too long, or the backend became sick";
    BackendWaitTimeout "backend_wait_timeout" Counter Info Integer "Fetches refused, waited too long for a connection";
    BackendRetryRefused "backend_retry_refused" Counter Info Integer "Fetches not repeated, retry_budget spent";
    // Exporters sum all counters whose names begin with `fetch_`. Subdivisions of
    // `fetch_failed` must not match.
    FailNoBackend "fail_no_backend" Counter Info Integer "Fetches failed, no backend to ask";
    FailNotSent "fail_not_sent" Counter Info Integer "Fetches failed, origin did not take the request";
    FailClosed "fail_closed" Counter Info Integer "Fetches failed, origin closed before a whole head";
    FailReset "fail_reset" Counter Info Integer "Fetches failed, origin reset connection or stream";
    FailFirstByteTimeout "fail_first_byte_timeout" Counter Info Integer "Fetches failed, first_byte_timeout";
    FailBetweenBytesTimeout "fail_between_bytes_timeout" Counter Info Integer "Fetches failed, between_bytes_timeout";
    FailLastByteTimeout "fail_last_byte_timeout" Counter Info Integer "Fetches failed, last_byte_timeout";
    FailHeadTooLarge "fail_head_too_large" Counter Info Integer "Fetches failed, response head too large";
    FailGarbled "fail_garbled" Counter Info Integer "Fetches failed, response is not HTTP";
    FailBodyCut "fail_body_cut" Counter Info Integer "Fetches failed, body ended too soon";
    FailBodyBroken "fail_body_broken" Counter Info Integer "Fetches failed, body framed wrongly";
    FailBodyUnprocessed "fail_body_unprocessed" Counter Info Integer "Fetches failed, a filter rejected the body";
    FailNoStorage "fail_no_storage" Counter Info Integer "Fetches failed, no room for the response";
    FailClientBody "fail_client_body" Counter Info Integer "Fetches failed, client's body did not arrive whole";
    FailGivenUp "fail_given_up" Counter Info Integer "Fetches given up, the only client had gone";
    NWaiting "n_waiting" Gauge Info Integer "Requests that wait for another's fetch";
    WaitingRefused "waiting_refused" Counter Info Integer "Requests that found waiting_requests_max of those";
    WaitingTimeout "waiting_timeout" Counter Info Integer "Requests that waited for waiting_timeout";
    FailUnsayable "fail_unsayable" Counter Info Integer "Fetches failed, request cannot be said over HTTP/2";
}

section! {
    /// Section `MGT`: management process counters.
    Mgt MGT "mgt" 20 "Management process counters"
    Uptime "uptime" Counter Info Duration "Master process age, seconds";
    ChildStart "child_start" Counter Diag Integer "Worker starts";
    ChildExit "child_exit" Counter Diag Integer "Clean worker ends";
    ChildStop "child_stop" Counter Diag Integer "Worker ends with non-zero exit status";
    ChildDied "child_died" Counter Diag Integer "Worker ended by a signal";
    ChildDump "child_dump" Counter Diag Integer "Worker ends that left a core";
    ChildPanic "child_panic" Counter Diag Integer "Panics caught by the master";
}

section! {
    /// Section `MEMPOOL`: memory pool counters.
    Mempool MEMPOOL "mempool" 30 "Memory pool counters"
    Live "live" Gauge Debug Integer "Items in use";
    Pool "pool" Gauge Debug Integer "Items idle in pool";
    SzWanted "sz_wanted" Gauge Debug Bytes "Item size asked for";
    SzActual "sz_actual" Gauge Debug Bytes "Item size allocated";
    Allocs "allocs" Counter Debug Integer "Allocations";
    Frees "frees" Counter Debug Integer "Frees";
    Recycle "recycle" Counter Debug Integer "Taken from pool";
    Timeout "timeout" Counter Debug Integer "Dropped from pool by age";
    Toosmall "toosmall" Counter Debug Integer "Dropped because size parameter grew";
    Surplus "surplus" Counter Debug Integer "Dropped because pool is full";
    Randry "randry" Counter Debug Integer "Pool found empty";
}

section! {
    /// Section `SMA`: malloc stevedore counters.
    Sma SMA "sma" 40 "Malloc stevedore counters"
    CReq "c_req" Counter Info Integer "Allocation requests";
    CFail "c_fail" Counter Info Integer "Allocations refused";
    CBytes "c_bytes" Counter Info Bytes "Cumulative bytes handed out";
    CFreed "c_freed" Counter Info Bytes "Cumulative bytes returned";
    GAlloc "g_alloc" Gauge Info Integer "Live allocations";
    GBytes "g_bytes" Gauge Info Bytes "Bytes in use";
    GSpace "g_space" Gauge Info Bytes "Bytes still free (0 for unlimited)";
}

section! {
    /// Section `SMF`: file stevedore counters. Those after `g_smf_large` are Copal's own.
    Smf SMF "smf" 50 "File stevedore counters"
    CReq "c_req" Counter Info Integer "Allocation requests";
    CFail "c_fail" Counter Info Integer "Allocations refused";
    CBytes "c_bytes" Counter Info Bytes "Cumulative bytes handed out";
    CFreed "c_freed" Counter Info Bytes "Cumulative bytes returned";
    GAlloc "g_alloc" Gauge Info Integer "Live allocations";
    GBytes "g_bytes" Gauge Info Bytes "Bytes in use";
    GSpace "g_space" Gauge Info Bytes "Bytes still free (0 for unlimited)";
    GSmf "g_smf" Gauge Info Integer "Number of internal file extents";
    GSmfFrag "g_smf_frag" Gauge Info Integer "Small free extents";
    GSmfLarge "g_smf_large" Gauge Info Integer "Large free extents";
    WrittenBytes "written_bytes" Counter Info Bytes "Bytes written to the file, with padding and log";
    StoredBytes "stored_bytes" Counter Info Bytes "Bytes of bodies among them";
    WarmReads "warm_reads" Counter Info Integer "Pieces of bodies read from the page cache";
    ColdReads "cold_reads" Counter Info Integer "Pieces of bodies that had to be waited for";
    ReadErrors "read_errors" Counter Info Integer "Reads that failed, and pieces with a wrong checksum";
    WriteErrors "write_errors" Counter Info Integer "Writes that failed";
    GMetaBytes "g_meta_bytes" Gauge Info Bytes "Memory for what is not a body";
    GMetaSpace "g_meta_space" Gauge Info Bytes "Bytes free below its limit";
}

section! {
    /// Section `SMU`: umem stevedore counters.
    Smu SMU "smu" 40 "Umem stevedore counters"
    CReq "c_req" Counter Info Integer "Allocation requests";
    CFail "c_fail" Counter Info Integer "Allocations refused";
    CBytes "c_bytes" Counter Info Bytes "Cumulative bytes handed out";
    CFreed "c_freed" Counter Info Bytes "Cumulative bytes returned";
    GAlloc "g_alloc" Gauge Info Integer "Live allocations";
    GBytes "g_bytes" Gauge Info Bytes "Bytes in use";
    GSpace "g_space" Gauge Info Bytes "Bytes still free (0 for unlimited)";
}

section! {
    /// Section `VBE`: backend counters.
    Vbe VBE "vbe" 60 "Backend counters"
    Happy "happy" Bitmap Info Bitmap "Last 64 probe outcomes, newest in bit 0";
    BereqHdrbytes "bereq_hdrbytes" Counter Info Bytes "Request header bytes sent";
    BereqBodybytes "bereq_bodybytes" Counter Info Bytes "Request body bytes sent";
    BerespHdrbytes "beresp_hdrbytes" Counter Info Bytes "Response header bytes received";
    BerespBodybytes "beresp_bodybytes" Counter Info Bytes "Response body bytes received";
    PipeHdrbytes "pipe_hdrbytes" Counter Info Bytes "Request header bytes sent in pipe mode";
    PipeOut "pipe_out" Counter Info Bytes "Pipe bytes to backend";
    PipeIn "pipe_in" Counter Info Bytes "Pipe bytes from backend";
    Conn "conn" Gauge Info Integer "Concurrent connections used";
    Req "req" Counter Info Integer "Requests sent";
    Unhealthy "unhealthy" Counter Info Integer "Fetches refused since the backend was sick";
    Busy "busy" Counter Info Integer "Fetches refused since max_connections was reached";
    Fail "fail" Counter Info Integer "Failed connects, sum of the fail_* ones";
    FailEacces "fail_eacces" Counter Diag Integer "Connects failed, EACCES/EPERM";
    FailEaddrnotavail "fail_eaddrnotavail" Counter Diag Integer "Connects failed, EADDRNOTAVAIL";
    FailEconnrefused "fail_econnrefused" Counter Diag Integer "Connects failed, ECONNREFUSED";
    FailEnetunreach "fail_enetunreach" Counter Diag Integer "Connects failed, ENETUNREACH";
    FailEtimedout "fail_etimedout" Counter Diag Integer "Connects failed, ETIMEDOUT";
    FailOther "fail_other" Counter Diag Integer "Connects failed, any other cause";
    Helddown "helddown" Counter Diag Integer "Connects skipped during hold-down period";
    Aside "aside" Counter Info Integer "Times it was set aside for its failures";
    AsideRefused "aside_refused" Counter Info Integer "Fetches refused since it was set aside";
    Waiting "waiting" Gauge Info Integer "Fetches that wait for a connection";
    QueueFull "queue_full" Counter Info Integer "Fetches refused since wait_limit was reached";
    WaitTimeout "wait_timeout" Counter Info Integer "Fetches refused since wait_timeout was over";
    RetryRefused "retry_refused" Counter Info Integer "Fetches not repeated since retry_budget was spent";
    Addresses "addresses" Gauge Info Integer "Addresses in use, if its name is followed";
    LocalError "local_error" Counter Diag Integer "Failed connects with a cause on this machine";
    Healthy "healthy" Gauge Info Integer "1 if fetches may use it";
}

section! {
    /// Section `VCL`: one loaded VCL.
    Vcl VCL "vcl" 80 "Loaded VCL"
    Active "active" Gauge Diag Integer "1 if new requests use it";
    Canary "canary" Gauge Diag Integer "1 if it is a canary";
}

section! {
    /// Section `CERT`: one certificate for clients.
    Cert CERT "cert" 81 "Certificate for clients"
    NotAfter "not_after" Gauge Diag Integer "Valid until, seconds since 1970";
}

section! {
    /// Section `LOAD`: results of loading VCLs.
    Load LOAD "load" 82 "Results of loading VCLs"
    VclOk "vcl_ok" Counter Diag Integer "VCLs loaded";
    VclFailed "vcl_failed" Counter Diag Integer "VCLs refused by the compiler or the worker";
    VclLastOk "vcl_last_ok" Gauge Diag Integer "1 if the last VCL could be loaded";
    VclLastTime "vcl_last_time" Gauge Diag Integer "Time of the last VCL that was loaded, seconds since 1970";
}

section! {
    /// Section `DEBUG`: the counter of the VMOD debug. Present while VCL enables it.
    DebugVmod DEBUG_VMOD "debug" 70 "Counter of the VMOD debug"
    Count "count" Counter Debug Integer "Sum added by debug.vsc_count()";
}

section! {
    /// Section `XKEY`: tags of objects. Present once a VCL imports xkey.
    Xkey XKEY "xkey" 70 "xkey Counters"
    GKeys "g_keys" Gauge Info Integer "Tags in use";
    GHashheadBytes "g_hashhead_bytes" Gauge Debug Bytes "Bytes for the tags themselves (none: they are in the objects)";
    GOcheadBytes "g_ochead_bytes" Gauge Debug Bytes "Bytes for objects with tags (none: they are in the index)";
    GOcBytes "g_oc_bytes" Gauge Debug Bytes "Bytes for pairs of tag and object";
    GBytes "g_bytes" Gauge Info Bytes "Bytes for tags, all in all";
}

closed_set! {
    /// A class of locks; its section is `LCK.` plus its word. These are the classes of Varnish
    /// whose locks have a counterpart here; `docs/migrate/records.md` explains why the others have
    /// none.
    LockClass {
        /// The list of bans.
        Ban "ban",
        /// The state that a running fetch publishes.
        Busyobj "busyobj",
        /// The table of pools of idle connections to origins. Counts the creation and destruction
        /// of pools, one for each address of a backend.
        ConnPool "conn_pool",
        /// The state of a director: members, configuration.
        Director "director",
        /// The parts of the index.
        Hcb "hcb",
        /// The results of a probe.
        Probe "probe",
        /// The heap of the storage.
        Sma "sma",
        /// The state of a VCL.
        Vcl "vcl",
    }
}

section! {
    /// Section `LCK`: lock counters.
    Lck LCK "lck" 70 "Lock counters"
    Creat "creat" Counter Debug Integer "Locks created";
    Destroy "destroy" Counter Debug Integer "Locks destroyed";
    Locks "locks" Counter Debug Integer "Lock operations";
    DbgBusy "dbg_busy" Counter Debug Integer "Locks held by another thread";
    DbgTryFail "dbg_try_fail" Counter Debug Integer "Attempts given up because another thread held the lock";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefixes whose counters the Prometheus exporters of Varnish add up as one metric.
    const SUMMED: [&str; 3] = ["fetch_", "sess_", "n_wrk_"];

    #[test]
    fn exporters_add_up_the_same_counters_as_with_varnish() {
        let first_of_ours = Main::ReqBytes as usize;
        assert_eq!(MAIN.counters[first_of_ours].name, "req_bytes");
        for row in &MAIN.counters[first_of_ours..] {
            let summed = SUMMED.iter().find(|prefix| row.name.starts_with(**prefix));
            assert_eq!(summed, None, "{} would be added to the sum of another counter", row.name);
        }
    }
}
