//! The metrics that `copal observe` serves, derived from the counters.
//!
//! A row names a metric, its scope and help, and the counters from which its samples are computed.
//! Samples of one metric with different labels never overlap: adding them up counts nothing twice.
//! A counter that is part of another one (`cache_hit_grace` of `cache_hit`) has a metric of its
//! own. Every counter without a row is served as `copal_varnish_<section>_<counter>`, with its line
//! as help. Next file: `reference/metrics.rs`.

/// Semantics of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only grows until the process that counts is replaced. The name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Values by bucket, with their number and sum.
    Histogram,
    /// Always 1; the labels are the information. The name ends with `_info`.
    Info,
}

/// A group of metrics that can be requested alone, `?scope=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The processes, and the exporter itself.
    Process,
    /// Clients: connections, requests, responses.
    Listener,
    /// Lookups, objects, invalidation.
    Cache,
    /// Memory and files of the cache.
    Storage,
    /// Origins.
    Backend,
    /// VCL.
    Vcl,
    /// TLS with clients and with origins.
    Tls,
    /// The log in shared memory.
    Log,
    /// Counters without a row here.
    Varnish,
}

impl Scope {
    /// All scopes, in the order in which they are served.
    pub const ALL: [Scope; 9] = [
        Scope::Process,
        Scope::Listener,
        Scope::Cache,
        Scope::Storage,
        Scope::Backend,
        Scope::Vcl,
        Scope::Tls,
        Scope::Log,
        Scope::Varnish,
    ];

    /// The word in `?scope=`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Process => "process",
            Scope::Listener => "listener",
            Scope::Cache => "cache",
            Scope::Storage => "storage",
            Scope::Backend => "backend",
            Scope::Vcl => "vcl",
            Scope::Tls => "tls",
            Scope::Log => "log",
            Scope::Varnish => "varnish",
        }
    }
}

/// Calculation of a sample from its counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Their sum.
    Sum,
    /// Their sum less one, at least 0: the first event is the start.
    SumAfterFirst,
    /// Number of flags set in a bitmap.
    Flags,
}

/// Source of one sample, or of one sample for each segment of a section (storage, backend).
#[derive(Debug)]
pub struct SampleRow {
    /// First part of the names of the counters: `MAIN`, `VBE`.
    pub section: &'static str,
    /// Last parts of these names.
    pub counters: &'static [&'static str],
    /// Calculation.
    pub reading: Reading,
    /// Label in addition to those of the section ([`instance_labels`]).
    pub label: Option<(&'static str, &'static str)>,
}

/// One metric.
#[derive(Debug)]
pub struct MetricRow {
    /// Name; base unit last, then `_total` for a counter.
    pub name: &'static str,
    /// Counter, gauge or info.
    pub kind: MetricKind,
    /// Scope.
    pub scope: Scope,
    /// One line of explanation.
    pub help: &'static str,
    /// Samples; empty for a metric that is not computed from counters.
    pub samples: &'static [SampleRow],
}

impl MetricRow {
    /// `bytes` or `seconds`, by the name.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        unit(self.name)
    }
}

/// The base unit that a metric's name ends with, before `_total`.
#[must_use]
pub fn unit(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix("_total").unwrap_or(name);
    ["bytes", "seconds"].into_iter().find(|unit| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
}

/// Labels whose values are the parts of a segment's name after its section. The last one takes all
/// that is left. Empty: the section has one segment only.
#[must_use]
pub fn instance_labels(section: &str) -> &'static [&'static str] {
    match section {
        "MAIN" | "MGT" | "XKEY" | "DEBUG" | "WHY" | "LOAD" => &[],
        "VBE" => &["vcl", "backend"],
        "VCL" => &["vcl"],
        "CERT" => &["name"],
        "SMA" | "SMF" | "SMU" | "MSE" => &["storage"],
        "LCK" => &["lock"],
        "MEMPOOL" => &["pool"],
        _ => &["instance"],
    }
}

/// Prefix of metrics of counters without a row.
pub const OTHERS_PREFIX: &str = "copal_varnish_";
/// Value of the labels of a section whose segments are added up, because there are too many series.
pub const OTHER_INSTANCES: &str = "_other";

/// Name of the metric with version and compatible version.
pub const BUILD_INFO: &str = "copal_build_info";
/// Name of the metric that is 1 while the manager runs.
pub const MANAGER_UP: &str = "copal_manager_up";
/// Name of the metric that is 1 while a worker runs.
pub const WORKER_UP: &str = "copal_worker_up";
/// Name of the metric that is 1 if segments were added up.
pub const TRUNCATED: &str = "copal_metrics_truncated";
/// Name of the metric that counts scrapes.
pub const SCRAPES: &str = "copal_metrics_scrapes_total";
/// Name of the metric that counts connections that were refused or cut.
pub const ABORTS: &str = "copal_metrics_aborted_connections_total";

/// A reason of [`ABORTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abort {
    /// Too many connections or scrapes at once.
    Busy,
    /// The request did not arrive, or the response was not read, in time.
    Timeout,
    /// The request is not HTTP, or too large.
    Request,
}

impl Abort {
    /// All reasons.
    pub const ALL: [Abort; 3] = [Abort::Busy, Abort::Timeout, Abort::Request];

    /// The value of the label `why`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Abort::Busy => "busy",
            Abort::Timeout => "timeout",
            Abort::Request => "request",
        }
    }
}

/// Name of the metric that counts the times that the log reader has lost its place.
pub const LOG_OVERRUNS: &str = "copal_log_overruns_total";
/// Name of the metric that counts the requests that were not found in the log.
pub const LOST_REQUESTS: &str = "copal_log_lost_requests_total";
/// Name of the metric that counts lines of access logs.
pub const ACCESS_LOG_LINES: &str = "copal_access_log_lines_total";
/// Name of the metric that counts transactions without a line.
pub const ACCESS_LOG_SKIPPED: &str = "copal_access_log_skipped_total";
/// Name of the metric that counts lines that were not written.
pub const ACCESS_LOG_DROPPED: &str = "copal_access_log_dropped_total";

/// A reason of [`ACCESS_LOG_DROPPED`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineDrop {
    /// The queue of the writer was full.
    Queue,
    /// The destination did not take it.
    Write,
}

impl LineDrop {
    /// All reasons.
    pub const ALL: [LineDrop; 2] = [LineDrop::Queue, LineDrop::Write];

    /// The value of the label `why`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LineDrop::Queue => "queue",
            LineDrop::Write => "write",
        }
    }
}

/// Name of the metric that counts spans that the collector has taken.
pub const SPANS: &str = "copal_otlp_spans_total";
/// Name of the metric that counts spans that were not sent.
pub const SPANS_DROPPED: &str = "copal_otlp_dropped_total";

/// A reason of [`SPANS_DROPPED`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanDrop {
    /// The queue was full.
    Queue,
    /// The collector did not take it.
    Refused,
    /// The collector could not be reached in several attempts.
    Unreachable,
    /// The trace had too many spans.
    Large,
}

impl SpanDrop {
    /// All reasons.
    pub const ALL: [SpanDrop; 4] = [SpanDrop::Queue, SpanDrop::Refused, SpanDrop::Unreachable, SpanDrop::Large];

    /// The value of the label `why`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SpanDrop::Queue => "queue",
            SpanDrop::Refused => "refused",
            SpanDrop::Unreachable => "unreachable",
            SpanDrop::Large => "large",
        }
    }
}

/// The value of the label `why` for lines of requests that the log reader has lost.
pub const LINE_DROP_OVERRUN: &str = "overrun";

/// Name of the histogram of the durations of requests.
pub const REQUEST_DURATION: &str = "copal_http_request_duration_seconds";
/// Name of the histogram of the sizes of responses.
pub const RESPONSE_SIZE: &str = "copal_http_response_size_bytes";
/// Name of the histogram of the times until an origin's response.
pub const FIRST_BYTE: &str = "copal_backend_first_byte_seconds";

const fn counter(name: &'static str, scope: Scope, help: &'static str, samples: &'static [SampleRow]) -> MetricRow {
    MetricRow { name, kind: MetricKind::Counter, scope, help, samples }
}

const fn gauge(name: &'static str, scope: Scope, help: &'static str, samples: &'static [SampleRow]) -> MetricRow {
    MetricRow { name, kind: MetricKind::Gauge, scope, help, samples }
}

const fn histogram(name: &'static str, scope: Scope, help: &'static str) -> MetricRow {
    MetricRow { name, kind: MetricKind::Histogram, scope, help, samples: &[] }
}

/// A sample without a label of its own.
const fn of(section: &'static str, counters: &'static [&'static str]) -> SampleRow {
    SampleRow { section, counters, reading: Reading::Sum, label: None }
}

/// A sample with a label.
const fn with(
    section: &'static str,
    counters: &'static [&'static str],
    name: &'static str,
    value: &'static str,
) -> SampleRow {
    SampleRow { section, counters, reading: Reading::Sum, label: Some((name, value)) }
}

const fn read(reading: Reading, section: &'static str, counters: &'static [&'static str]) -> SampleRow {
    SampleRow { section, counters, reading, label: None }
}

/// A sample for each reason.
static REASON_SAMPLES: [SampleRow; REASONS.len()] = {
    let mut samples = [const { of("WHY", &[]) }; REASONS.len()];
    let mut place = 0;
    while place < samples.len() {
        samples[place] = SampleRow {
            section: "WHY",
            counters: std::slice::from_ref(&WHY.counters[place].name),
            reading: Reading::Sum,
            label: Some(("reason", REASONS[place].word)),
        };
        place += 1;
    }
    samples
};

use crate::reason::{REASONS, WHY};
use Scope::{Backend, Cache, Listener, Log, Process, Storage, Tls, Vcl};

/// Every metric, those of a scope together, in the order in which they are served.
pub static METRICS: &[MetricRow] = &[
    MetricRow {
        name: BUILD_INFO,
        kind: MetricKind::Info,
        scope: Process,
        help: "Version of Copal, and of Varnish with which it is compatible",
        samples: &[],
    },
    gauge(MANAGER_UP, Process, "1 while the manager runs", &[]),
    gauge(WORKER_UP, Process, "1 while a worker runs and publishes its counters", &[]),
    gauge("copal_manager_uptime_seconds", Process, "Age of the manager", &[of("MGT", &["uptime"])]),
    gauge("copal_worker_uptime_seconds", Process, "Age of the worker", &[of("MAIN", &["uptime"])]),
    counter(
        "copal_worker_restarts_total",
        Process,
        "Starts of a worker after the first",
        &[read(Reading::SumAfterFirst, "MGT", &["child_start"])],
    ),
    counter(
        "copal_worker_exits_total",
        Process,
        "Ends of workers: clean, with an error status, by a signal",
        &[
            with("MGT", &["child_exit"], "how", "clean"),
            with("MGT", &["child_stop"], "how", "error"),
            with("MGT", &["child_died"], "how", "signal"),
        ],
    ),
    counter("copal_worker_panics_total", Process, "Workers that ended with a panic", &[of("MGT", &["child_panic"])]),
    gauge(TRUNCATED, Process, "1 if there are too many series, so that a section is added up as _other", &[]),
    counter(SCRAPES, Process, "Scrapes answered by this process", &[]),
    counter(ABORTS, Process, "Connections to this process that were refused or cut", &[]),
    counter("copal_http_connections_total", Listener, "Client connections accepted", &[of("MAIN", &["sess_conn"])]),
    counter(
        "copal_http_accept_failures_total",
        Listener,
        "Connections that could not be accepted, by error",
        &[
            with("MAIN", &["sess_fail_econnaborted"], "error", "ECONNABORTED"),
            with("MAIN", &["sess_fail_eintr"], "error", "EINTR"),
            with("MAIN", &["sess_fail_emfile"], "error", "EMFILE"),
            with("MAIN", &["sess_fail_ebadf"], "error", "EBADF"),
            with("MAIN", &["sess_fail_enomem"], "error", "ENOMEM"),
            with("MAIN", &["sess_fail_other"], "error", "other"),
        ],
    ),
    counter("copal_http_sessions_total", Listener, "Sessions with clients begun", &[of("MAIN", &["s_sess"])]),
    counter(
        "copal_http_session_closes_total",
        Listener,
        "Sessions closed, by the reason in the log record SessClose",
        &[
            with("MAIN", &["sc_rem_close"], "reason", "REM_CLOSE"),
            with("MAIN", &["sc_req_close"], "reason", "REQ_CLOSE"),
            with("MAIN", &["sc_req_http10"], "reason", "REQ_HTTP10"),
            with("MAIN", &["sc_rx_bad"], "reason", "RX_BAD"),
            with("MAIN", &["sc_rx_body"], "reason", "RX_BODY"),
            with("MAIN", &["sc_rx_junk"], "reason", "RX_JUNK"),
            with("MAIN", &["sc_rx_overflow"], "reason", "RX_OVERFLOW"),
            with("MAIN", &["sc_rx_timeout"], "reason", "RX_TIMEOUT"),
            with("MAIN", &["sc_rx_close_idle"], "reason", "RX_CLOSE_IDLE"),
            with("MAIN", &["sc_tx_pipe"], "reason", "TX_PIPE"),
            with("MAIN", &["sc_tx_error"], "reason", "TX_ERROR"),
            with("MAIN", &["sc_tx_eof"], "reason", "TX_EOF"),
            with("MAIN", &["sc_resp_close"], "reason", "RESP_CLOSE"),
            with("MAIN", &["sc_overload"], "reason", "OVERLOAD"),
            with("MAIN", &["sc_pipe_overflow"], "reason", "PIPE_OVERFLOW"),
            with("MAIN", &["sc_range_short"], "reason", "RANGE_SHORT"),
            with("MAIN", &["sc_req_http20"], "reason", "REQ_HTTP20"),
            with("MAIN", &["sc_vcl_failure"], "reason", "VCL_FAILURE"),
            with("MAIN", &["sc_rapid_reset"], "reason", "RAPID_RESET"),
        ],
    ),
    counter("copal_http_requests_total", Listener, "Well-formed client requests", &[of("MAIN", &["client_req"])]),
    counter(
        "copal_http_request_errors_total",
        Listener,
        "Requests answered with this status because of their form",
        &[with("MAIN", &["client_req_400"], "status", "400"), with("MAIN", &["client_req_417"], "status", "417")],
    ),
    counter(
        "copal_http_requests_refused_total",
        Listener,
        "Requests refused because a limit was reached",
        &[
            with("MAIN", &["req_refused"], "why", "memory"),
            with("MAIN", &["req_dropped"], "why", "streams"),
            with("MAIN", &["waiting_refused"], "why", "waiting_list"),
            with("MAIN", &["waiting_timeout"], "why", "waiting_timeout"),
        ],
    ),
    counter(
        "copal_http_request_bytes_total",
        Listener,
        "Bytes of client requests",
        &[with("MAIN", &["s_req_hdrbytes"], "part", "head"), with("MAIN", &["s_req_bodybytes"], "part", "body")],
    ),
    counter(
        "copal_http_response_bytes_total",
        Listener,
        "Bytes of responses sent to clients",
        &[with("MAIN", &["s_resp_hdrbytes"], "part", "head"), with("MAIN", &["s_resp_bodybytes"], "part", "body")],
    ),
    histogram(
        REQUEST_DURATION,
        Listener,
        "Time from the first byte of a request to the last byte of its response, malformed requests included",
    ),
    histogram(RESPONSE_SIZE, Listener, "Bytes of response bodies sent to clients, one for each request"),
    counter(
        "copal_http_reasons_total",
        Listener,
        "Reasons for hits, misses, passes and errors; a request can have several",
        &REASON_SAMPLES,
    ),
    counter("copal_http_passes_total", Listener, "Requests passed to an origin", &[of("MAIN", &["s_pass"])]),
    counter("copal_http_pipes_total", Listener, "Requests piped to an origin", &[of("MAIN", &["s_pipe"])]),
    counter(
        "copal_http_pipe_bytes_total",
        Listener,
        "Bytes of pipes: heads of piped requests, from clients, to clients",
        &[
            with("MAIN", &["s_pipe_hdrbytes"], "part", "head"),
            with("MAIN", &["s_pipe_in"], "part", "in"),
            with("MAIN", &["s_pipe_out"], "part", "out"),
        ],
    ),
    counter("copal_http_synthetic_responses_total", Listener, "Synthetic responses", &[of("MAIN", &["s_synth"])]),
    counter("copal_http_esi_fragments_total", Listener, "ESI fragments requested", &[of("MAIN", &["esi_req"])]),
    gauge(
        "copal_http_waiting_requests",
        Listener,
        "Requests that wait for the fetch of another request",
        &[of("MAIN", &["n_waiting"])],
    ),
    gauge(
        "copal_http_request_memory_bytes",
        Listener,
        "Memory held by requests and fetches in progress",
        &[of("MAIN", &["req_bytes"])],
    ),
    counter(
        "copal_cache_lookups_total",
        Cache,
        "Lookups in the cache, by result; requests that skip the lookup are not counted",
        &[
            with("MAIN", &["cache_hit"], "result", "hit"),
            with("MAIN", &["cache_miss"], "result", "miss"),
            with("MAIN", &["cache_hitpass"], "result", "hitpass"),
        ],
    ),
    counter(
        "copal_cache_grace_hits_total",
        Cache,
        "Hits on expired objects within their grace, part of the hits",
        &[of("MAIN", &["cache_hit_grace"])],
    ),
    counter(
        "copal_cache_hitmiss_lookups_total",
        Cache,
        "Lookups that found a hit-for-miss marker, most of them part of the misses",
        &[of("MAIN", &["cache_hitmiss"])],
    ),
    counter(
        "copal_cache_uncacheable_responses_total",
        Cache,
        "Origin responses that were not cacheable",
        &[of("MAIN", &["beresp_uncacheable"])],
    ),
    gauge("copal_cache_objects", Cache, "Objects in the cache", &[of("MAIN", &["n_object"])]),
    counter(
        "copal_cache_evictions_total",
        Cache,
        "Objects evicted before they expired",
        &[with("MAIN", &["n_lru_nuked"], "why", "space")],
    ),
    counter("copal_cache_expired_objects_total", Cache, "Objects removed by age", &[of("MAIN", &["n_expired"])]),
    gauge("copal_bans", Cache, "Bans on the list", &[of("MAIN", &["bans"])]),
    counter("copal_bans_added_total", Cache, "Bans added", &[of("MAIN", &["bans_added"])]),
    counter("copal_purges_total", Cache, "Purge operations", &[of("MAIN", &["n_purges"])]),
    counter(
        "copal_invalidated_objects_total",
        Cache,
        "Objects removed by bans and purges",
        &[
            with(
                "MAIN",
                &["bans_obj_killed", "bans_lurker_obj_killed", "bans_lurker_obj_killed_cutoff"],
                "kind",
                "ban",
            ),
            with("MAIN", &["n_obj_purged"], "kind", "purge"),
        ],
    ),
    gauge(
        "copal_cache_bytes",
        Storage,
        "Bytes in use of a storage",
        &[of("SMA", &["g_bytes"]), of("SMF", &["g_bytes"]), of("SMU", &["g_bytes"])],
    ),
    gauge(
        "copal_cache_limit_bytes",
        Storage,
        "Size of a storage; without a limit equal to the bytes in use",
        &[of("SMA", &["g_bytes", "g_space"]), of("SMF", &["g_bytes", "g_space"]), of("SMU", &["g_bytes", "g_space"])],
    ),
    counter(
        "copal_cache_allocation_failures_total",
        Storage,
        "Allocations that a storage refused",
        &[of("SMA", &["c_fail"]), of("SMF", &["c_fail"]), of("SMU", &["c_fail"])],
    ),
    counter(
        "copal_cache_file_reads_total",
        Storage,
        "Pieces of bodies read from a file: warm from the page cache, cold from the disk",
        &[with("SMF", &["warm_reads"], "from", "warm"), with("SMF", &["cold_reads"], "from", "cold")],
    ),
    counter(
        "copal_cache_file_errors_total",
        Storage,
        "Reads and writes of a file that failed, and pieces with a wrong checksum",
        &[with("SMF", &["read_errors"], "operation", "read"), with("SMF", &["write_errors"], "operation", "write")],
    ),
    gauge("copal_backend_up", Backend, "1 if fetches may use the backend", &[of("VBE", &["healthy"])]),
    gauge(
        "copal_backend_probe_successes",
        Backend,
        "Successful ones of the last 64 probes; 0 without a probe",
        &[read(Reading::Flags, "VBE", &["happy"])],
    ),
    counter("copal_backend_requests_total", Backend, "Requests sent to a backend", &[of("VBE", &["req"])]),
    gauge("copal_backend_connections", Backend, "Connections to a backend in use", &[of("VBE", &["conn"])]),
    counter(
        "copal_backend_failures_total",
        Backend,
        "Fetches that got no connection to a backend, by cause",
        &[
            with("VBE", &["fail_eacces"], "kind", "EACCES"),
            with("VBE", &["fail_eaddrnotavail"], "kind", "EADDRNOTAVAIL"),
            with("VBE", &["fail_econnrefused"], "kind", "ECONNREFUSED"),
            with("VBE", &["fail_enetunreach"], "kind", "ENETUNREACH"),
            with("VBE", &["fail_etimedout"], "kind", "ETIMEDOUT"),
            with("VBE", &["fail_other"], "kind", "other"),
            with("VBE", &["helddown"], "kind", "held_down"),
            with("VBE", &["unhealthy"], "kind", "sick"),
            with("VBE", &["busy"], "kind", "max_connections"),
            with("VBE", &["aside_refused"], "kind", "circuit_breaker"),
            with("VBE", &["queue_full"], "kind", "wait_limit"),
            with("VBE", &["wait_timeout"], "kind", "wait_timeout"),
        ],
    ),
    counter(
        "copal_backend_sent_bytes_total",
        Backend,
        "Bytes of requests sent to a backend",
        &[with("VBE", &["bereq_hdrbytes"], "part", "head"), with("VBE", &["bereq_bodybytes"], "part", "body")],
    ),
    counter(
        "copal_backend_received_bytes_total",
        Backend,
        "Bytes of responses received from a backend",
        &[with("VBE", &["beresp_hdrbytes"], "part", "head"), with("VBE", &["beresp_bodybytes"], "part", "body")],
    ),
    histogram(FIRST_BYTE, Backend, "Time from the attempt to reach a backend to the head of its response"),
    counter(
        "copal_backend_fetches_total",
        Backend,
        "Fetches started, of all backends, background fetches included",
        &[of("MAIN", &["s_fetch"])],
    ),
    counter(
        "copal_backend_background_fetches_total",
        Backend,
        "Background fetches started, part of the fetches",
        &[of("MAIN", &["s_bgfetch"])],
    ),
    counter("copal_backend_fetch_failures_total", Backend, "Failed fetches", &[of("MAIN", &["fetch_failed"])]),
    counter(
        "copal_backend_fetch_failure_causes_total",
        Backend,
        "Failed fetches by cause, for the causes that are told apart",
        &[
            with("MAIN", &["fail_no_backend"], "cause", "no_backend"),
            with("MAIN", &["fail_not_sent"], "cause", "not_sent"),
            with("MAIN", &["fail_unsayable"], "cause", "unsayable"),
            with("MAIN", &["fail_closed"], "cause", "closed"),
            with("MAIN", &["fail_reset"], "cause", "reset"),
            with("MAIN", &["fail_first_byte_timeout"], "cause", "first_byte_timeout"),
            with("MAIN", &["fail_between_bytes_timeout"], "cause", "between_bytes_timeout"),
            with("MAIN", &["fail_last_byte_timeout"], "cause", "last_byte_timeout"),
            with("MAIN", &["fail_head_too_large"], "cause", "head_too_large"),
            with("MAIN", &["fail_garbled"], "cause", "garbled"),
            with("MAIN", &["fail_body_cut"], "cause", "body_cut"),
            with("MAIN", &["fail_body_broken"], "cause", "body_broken"),
            with("MAIN", &["fail_body_unprocessed"], "cause", "body_unprocessed"),
            with("MAIN", &["fail_no_storage"], "cause", "no_storage"),
            with("MAIN", &["fail_client_body"], "cause", "client_body"),
            with("MAIN", &["fail_given_up"], "cause", "given_up"),
        ],
    ),
    counter(
        "copal_backend_connections_opened_total",
        Backend,
        "Connections to all backends opened",
        &[of("MAIN", &["backend_conn"])],
    ),
    counter(
        "copal_backend_connections_reused_total",
        Backend,
        "Idle connections to all backends used again",
        &[of("MAIN", &["backend_reuse"])],
    ),
    gauge("copal_vcl_loaded", Vcl, "VCLs loaded", &[of("MAIN", &["n_vcl"])]),
    gauge("copal_vcl_active", Vcl, "1 for the VCL that new requests use, 0 for the others", &[of("VCL", &["active"])]),
    gauge("copal_vcl_canary", Vcl, "1 for the VCL that is a canary, 0 for the others", &[of("VCL", &["canary"])]),
    counter(
        "copal_vcl_loads_total",
        Vcl,
        "VCLs that were loaded, or refused by the compiler or the worker, since the start of the manager",
        &[with("LOAD", &["vcl_ok"], "result", "ok"), with("LOAD", &["vcl_failed"], "result", "failed")],
    ),
    gauge(
        "copal_vcl_last_load_success",
        Vcl,
        "1 if the last VCL could be loaded; 0 if not, or if none was",
        &[of("LOAD", &["vcl_last_ok"])],
    ),
    gauge(
        "copal_vcl_last_load_timestamp_seconds",
        Vcl,
        "Time of the last VCL that was loaded, seconds since 1970",
        &[of("LOAD", &["vcl_last_time"])],
    ),
    counter("copal_vcl_failures_total", Vcl, "Requests and fetches that VCL failed", &[of("MAIN", &["vcl_fail"])]),
    gauge(
        "copal_tls_certificate_not_after_seconds",
        Tls,
        "End of the validity of each certificate for clients, seconds since 1970",
        &[of("CERT", &["not_after"])],
    ),
    counter("copal_tls_handshakes_total", Tls, "TLS handshakes with clients", &[of("MAIN", &["tls_handshakes"])]),
    counter(
        "copal_tls_resumed_handshakes_total",
        Tls,
        "Handshakes that resumed a session, part of the handshakes",
        &[of("MAIN", &["tls_resumed"])],
    ),
    counter(
        "copal_tls_handshake_failures_total",
        Tls,
        "TLS handshakes with clients that failed, or were given up because too many were in progress",
        &[with("MAIN", &["tls_failed"], "why", "failed"), with("MAIN", &["tls_refused"], "why", "busy")],
    ),
    counter(
        LOG_OVERRUNS,
        Log,
        "Times that the reader of copal observe has lost its place in the log, since its start",
        &[],
    ),
    counter(
        LOST_REQUESTS,
        Log,
        "Requests that the server has counted and the reader of copal observe has not found in the log",
        &[],
    ),
    counter(ACCESS_LOG_LINES, Log, "Lines written to an access log", &[]),
    counter(
        ACCESS_LOG_SKIPPED,
        Log,
        "Transactions without a line in an access log: not wanted by its query, or without what its format needs",
        &[],
    ),
    counter(ACCESS_LOG_DROPPED, Log, "Lines that were not written to an access log, by cause", &[]),
    counter(SPANS, Log, "Spans that the collector of traces has taken", &[]),
    counter(SPANS_DROPPED, Log, "Spans that were not sent to the collector of traces, by cause", &[]),
    counter("copal_log_records_total", Log, "Records written to the log", &[of("MAIN", &["shm_records"])]),
    counter(
        "copal_log_cycles_total",
        Log,
        "Times that the log has begun anew at the start of its memory",
        &[of("MAIN", &["shm_cycles"])],
    ),
];

/// The row of a metric.
#[must_use]
pub fn row(name: &str) -> Option<&'static MetricRow> {
    METRICS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close_reason::CloseReason;
    use crate::counter::{CERT, CounterKind, CounterRow, LOAD, MAIN, MGT, SMA, SMF, SMU, VBE, VCL};
    use std::collections::BTreeSet;

    fn counter_row(section: &str, name: &str) -> &'static CounterRow {
        let section = match section {
            "MAIN" => &MAIN,
            "MGT" => &MGT,
            "SMA" => &SMA,
            "SMF" => &SMF,
            "SMU" => &SMU,
            "VBE" => &VBE,
            "WHY" => &crate::reason::WHY,
            "VCL" => &VCL,
            "CERT" => &CERT,
            "LOAD" => &LOAD,
            other => panic!("{other}"),
        };
        let row = section.counters.iter().find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("no counter {name} in {}", section.name))
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let mut names = BTreeSet::new();
        for row in METRICS {
            let name = row.name;
            assert!(names.insert(name), "{name} twice");
            assert!(name.starts_with("copal_") && !name.starts_with(OTHERS_PREFIX), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), row.kind == MetricKind::Counter, "{name}");
            assert_eq!(name.ends_with("_info"), row.kind == MetricKind::Info, "{name}");
            assert!(row.help.contains(' ') && !row.help.ends_with('.'), "{name}: {}", row.help);
        }
    }

    #[test]
    fn metrics_of_a_scope_are_together() {
        let mut scopes: Vec<&str> = METRICS.iter().map(|row| row.scope.name()).collect();
        scopes.dedup();
        let all = Scope::ALL.iter().filter(|scope| **scope != Scope::Varnish).map(|scope| scope.name());
        assert_eq!(scopes, all.collect::<Vec<_>>());
    }

    #[test]
    fn sources_exist_and_a_counter_only_counts_once() {
        let mut used = BTreeSet::new();
        for row in METRICS {
            for sample in row.samples {
                for name in sample.counters {
                    let counter = counter_row(sample.section, name);
                    let is_gauge = counter.kind != CounterKind::Counter || *name == "uptime";
                    assert_eq!(is_gauge, row.kind == MetricKind::Gauge, "{} {name}", row.name);
                    // Bytes in use are also a part of a storage's size.
                    let is_first = used.insert((sample.section, *name));
                    assert!(is_first || *name == "g_bytes", "{} {name} counts twice", sample.section);
                }
            }
        }
    }

    #[test]
    fn samples_of_a_metric_have_the_same_labels() {
        for row in METRICS.iter().filter(|row| !row.samples.is_empty()) {
            let labels = |sample: &SampleRow| (instance_labels(sample.section), sample.label.map(|(name, _)| name));
            let first = labels(&row.samples[0]);
            let values: BTreeSet<_> = row.samples.iter().map(|sample| (sample.section, sample.label)).collect();
            assert!(row.samples.iter().all(|sample| labels(sample) == first), "{}", row.name);
            assert_eq!(values.len(), row.samples.len(), "{}", row.name);
        }
    }

    #[test]
    fn every_counter_of_a_close_reason_is_a_sample() {
        let row = row("copal_http_session_closes_total").unwrap();
        let reasons = [
            CloseReason::RemClose,
            CloseReason::ReqClose,
            CloseReason::ReqHttp10,
            CloseReason::RxBad,
            CloseReason::RxBody,
            CloseReason::RxJunk,
            CloseReason::RxOverflow,
            CloseReason::RxTimeout,
            CloseReason::RxCloseIdle,
            CloseReason::TxPipe,
            CloseReason::TxError,
            CloseReason::TxEof,
            CloseReason::RespClose,
            CloseReason::Overload,
            CloseReason::PipeOverflow,
            CloseReason::RangeShort,
            CloseReason::ReqHttp20,
            CloseReason::VclFailure,
            CloseReason::RapidReset,
        ];
        let of_reasons = reasons.map(|reason| (MAIN.counters[reason.counter() as usize].name, reason.name()));
        let of_row = row.samples.iter().map(|sample| (sample.counters[0], sample.label.unwrap().1));
        assert_eq!(of_row.collect::<Vec<_>>(), of_reasons);
    }

    #[test]
    fn units_are_read_from_names() {
        assert_eq!(unit("copal_cache_bytes"), Some("bytes"));
        assert_eq!(unit("copal_http_response_bytes_total"), Some("bytes"));
        assert_eq!(unit("copal_worker_uptime_seconds"), Some("seconds"));
        assert_eq!((unit("copal_bans"), unit("bytes"), unit("copal_kilobytes")), (None, None, None));
    }
}
