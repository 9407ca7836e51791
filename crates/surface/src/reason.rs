//! Reasons for a hit, a miss, a pass or an error, as a closed list.
//!
//! A reason is recorded where the decision is made (records of [`TAG`] that begin with [`RECORD`]);
//! `copal why` explains it in plain words, `Cache-Status` (RFC 9211) carries the short form.
//! Nothing is inferred from the log afterwards. A record has the form `why <word> [<name>=<value>
//! …]`; values extend to the next ` name=` of [`DETAILS`]. Next file: `tag.rs`.

use crate::counter::{CounterFormat, CounterKind, CounterLevel, CounterRow, SectionRow};
use crate::tag::Tag;

/// Tag of the records: it has a name in the stock 7.1 tools, and is rarely written or queried
/// otherwise.
pub const TAG: Tag = Tag::Witness;

/// The beginning of a record of this list.
pub const RECORD: &str = "why ";

/// The beginning of a record with the trace context of a request: `traceparent` of the request, and
/// the span of its caller or `-`.
pub const TRACE: &str = "trace ";

/// Used instead of a reason's word: the rest belongs to the reason recorded before.
pub const MORE: &str = "more";

/// Names of the details that may follow a word.
pub const DETAILS: &[&str] = &[
    "at", "in", "ttl-at", "marks", "gone", "seconds", "bans", "ban-time", "copies", "groups", "limit", "max", "status",
    "dialect", "headers", "differs", "cookies", "ban", "text",
];

/// Details whose values clients or origins can influence: such a value extends to the end of the
/// record, whatever it contains.
pub const FREE_DETAILS: &[&str] = &["headers", "differs", "cookies", "ban", "text"];

/// Cause of an object's removal from the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovalReason {
    /// VCL or a VMOD purged it.
    Purged,
    /// A ban matched it.
    Banned,
    /// `ban_cutoff` was reached.
    CutOff,
    /// It expired.
    Expired,
    /// It was evicted to make room.
    Evicted,
    /// Its body failed, or another object replaced it.
    Dropped,
    /// A request changed the resource it represented.
    Invalidated,
}

/// For each [`RemovalReason`] the word in records and its meaning. `never` is not a removal: no
/// object existed.
pub static REMOVAL_REASONS: &[(Option<RemovalReason>, &str, &str)] = &[
    (Some(RemovalReason::Purged), "purged", "The last copy was purged"),
    (Some(RemovalReason::Banned), "banned", "The last copy was removed by a ban"),
    (
        Some(RemovalReason::CutOff),
        "cutoff",
        "The last copy was removed by the ban lurker, since it was older than ban_cutoff bans",
    ),
    (Some(RemovalReason::Expired), "expired", "The last copy had outlived its TTL, grace and keep"),
    (Some(RemovalReason::Evicted), "evicted", "The last copy was evicted to make room for others"),
    (Some(RemovalReason::Dropped), "dropped", "The last copy was dropped: its body failed, or another took its place"),
    (
        Some(RemovalReason::Invalidated),
        "invalidated",
        "The last copy was invalidated: a request (POST, PUT, DELETE …) changed what it represented",
    ),
    (None, NEVER, "Not in the cache"),
];

/// The word if no object ever existed.
pub const NEVER: &str = "never";

impl RemovalReason {
    /// The word in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        REMOVAL_REASONS.iter().find(|row| row.0 == Some(self)).map_or(NEVER, |row| row.1)
    }
}

/// Layer that made the decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// The lookup in the cache.
    Lookup,
    /// VCL, on the client's side.
    Vcl,
    /// The handling of the origin's response.
    Store,
    /// The way to the origin, and the origin.
    Origin,
    /// The daemon itself.
    Daemon,
}

/// Handling of a request, in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handling {
    /// A stored response was sent.
    Hit,
    /// A stored response was sent in its grace time.
    HitGrace,
    /// A stored response was sent because the origin failed.
    HitStale,
    /// The response was fetched and could be stored.
    Miss,
    /// The response was fetched for this client alone.
    Pass,
    /// Bytes were relayed to the origin unchanged.
    Pipe,
    /// VCL purged.
    Purge,
    /// Copal generated the response, as configured.
    Synth,
    /// An error occurred.
    Error,
    /// The log does not contain the handling.
    Answer,
}

/// For each [`Handling`] the word in JSON, and the text for the first line of an explanation.
pub static HANDLINGS: &[(Handling, &str, &str)] = &[
    (Handling::Hit, "hit", "hit"),
    (Handling::HitGrace, "hit-grace", "hit (stale, in grace)"),
    (Handling::HitStale, "hit-stale", "hit (stale, since the origin failed)"),
    (Handling::Miss, "miss", "miss"),
    (Handling::Pass, "pass", "pass"),
    (Handling::Pipe, "pipe", "pipe"),
    (Handling::Purge, "purge", "purge"),
    (Handling::Synth, "synth", "answer made here"),
    (Handling::Error, "error", "error"),
    (Handling::Answer, "answer", "answer"),
];

impl Handling {
    /// The word in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        HANDLINGS[self as usize].1
    }

    /// The text for the first line of an explanation.
    #[must_use]
    pub fn text(self) -> &'static str {
        HANDLINGS[self as usize].2
    }
}

/// One reason.
#[derive(Debug)]
pub struct ReasonRow {
    /// The reason.
    pub reason: Reason,
    /// The word in records, and `detail` in `Cache-Status`.
    pub word: &'static str,
    /// Layer that made the decision.
    pub layer: Layer,
    /// Handling of a client request whose last reason this is; `None` if an earlier reason
    /// determines it.
    pub handling: Option<Handling>,
    /// The value in `Cache-Status`: `hit`, or the reason why the request was forwarded. Empty =
    /// none.
    pub cache_status: &'static str,
    /// The explanation in plain words.
    pub sentence: &'static str,
    /// Advice for the operator; empty when nothing is wrong.
    pub advice: &'static str,
}

macro_rules! handling {
    (-) => {
        None
    };
    ($handling:ident) => {
        Some(Handling::$handling)
    };
}

/// The counter of a reason: its word with `_`, since exporters make metric names of counters.
const fn counter_name<const BYTES: usize>(word: &str) -> [u8; BYTES] {
    let mut name = [0; BYTES];
    let mut place = 0;
    while place < BYTES {
        name[place] = if word.as_bytes()[place] == b'-' { b'_' } else { word.as_bytes()[place] };
        place += 1;
    }
    name
}

macro_rules! reasons {
    ($($name:ident, $word:literal, $layer:ident, $handling:tt, $status:literal, $sentence:literal, $advice:literal;)*) => {
        /// Reason for a decision.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $sentence] $name,)*
        }

        /// Every reason, in the order of [`Reason`].
        pub static REASONS: &[ReasonRow] = &[
            $(ReasonRow {
                reason: Reason::$name,
                word: $word,
                layer: Layer::$layer,
                handling: handling!($handling),
                cache_status: $status,
                sentence: $sentence,
                advice: $advice,
            },)*
        ];

        /// Section `WHY`: how often each reason was the cause of a decision.
        pub static WHY: SectionRow = SectionRow {
            name: "why",
            oneliner: "Reasons for hits, misses, passes and errors",
            order: 90,
            counters: &[$(CounterRow {
                name: {
                    const NAME: [u8; $word.len()] = counter_name($word);
                    match std::str::from_utf8(&NAME) {
                        Ok(name) => name,
                        Err(_) => panic!("a word in ASCII"),
                    }
                },
                kind: CounterKind::Counter,
                level: CounterLevel::Diag,
                format: CounterFormat::Integer,
                oneliner: $sentence,
            },)*],
        };
    };
}

reasons! {
    Hit, "hit", Lookup, Hit, "hit", "A fresh copy was in the cache.", "";
    HitGrace, "hit-grace", Lookup, HitGrace, "hit", "The copy was past its TTL but within its grace time, so it was served while one fetch renews it.", "";
    HitStaleWelcome, "hit-stale-welcome", Lookup, Hit, "hit", "The copy was past its TTL, but the client accepts that (max-stale).", "";
    HitCopy, "hit-copy", Lookup, Hit, "hit", "A fresh copy was in the cache, and a compressed copy made of it was sent.", "";
    HitPromoted, "hit-promoted", Lookup, Hit, "hit", "A fresh copy was in the cache. Its body is stored in a file, and was sent from a copy in memory.", "";
    HitForMiss, "hit-for-miss", Lookup, Miss, "fwd=bypass", "An earlier response to this request was not cacheable, and the cache remembers that for a while.",
        "find out why the earlier response was not cacheable: copal why with its XID, or wait until the marker has run out";
    HitForPass, "hit-for-pass", Lookup, Pass, "fwd=bypass", "VCL has said return (pass(duration)) for an earlier response to this request.", "";
    MissAbsent, "miss-absent", Lookup, Miss, "fwd=uri-miss", "Nothing is stored for this URL and host.", "";
    MissVary, "miss-vary", Lookup, Miss, "fwd=vary-miss", "Something is stored for this URL and host, but for other request headers.",
        "send fewer variants to the cache: normalise these headers in vcl_recv, or make the origin vary on less";
    MissExpired, "miss-expired", Lookup, Miss, "fwd=stale", "The stored copy is past its TTL and its grace time.",
        "a longer TTL or grace (beresp.ttl, beresp.grace) would have served it";
    MissMustValidate, "miss-must-validate", Lookup, Miss, "fwd=stale", "The stored copy may not be used without asking the origin first (no-cache).",
        "leave out no-cache at the origin if the copy may be used unasked";
    MissUnwelcome, "miss-unwelcome", Lookup, Miss, "fwd=request", "The stored copy is fresh, but the client wants it validated, or fresher (Cache-Control or Pragma of the request).",
        "parameter http_request_directives off, or unset req.http.Cache-Control in vcl_recv, if clients should not decide that";
    MissPart, "miss-part", Lookup, Miss, "fwd=partial", "Only parts of it are stored (206), and the request wants others, or the whole.", "";
    MissBanned, "miss-banned", Lookup, Miss, "fwd=miss", "The stored copy was removed by a ban.", "ban.list shows the bans";
    MissForced, "miss-forced", Lookup, Miss, "fwd=request", "VCL said req.hash_always_miss: whatever is stored is not looked at.", "";
    MissIgnoredBusy, "miss-ignored-busy", Lookup, Miss, "fwd=request", "Another request is fetching it, and VCL said req.hash_ignore_busy.", "";
    OnlyIfCached, "only-if-cached", Lookup, Miss, "", "Nothing stored could be used, and the client does not want the origin to be asked (only-if-cached): it got a 504.", "";
    PassFleet, "pass-fleet", Lookup, Pass, "fwd=bypass", "This node is not in step with its fleet, so that stored responses may be out of date: the request was passed. fleet.status says more.", "";
    PassNoStore, "pass-no-store", Lookup, Pass, "fwd=request", "Nothing stored could be used, and the client does not want the response to be stored (no-store): it was passed.", "";
    PassLongQuery, "pass-long-query", Lookup, Pass, "fwd=bypass", "The body of the QUERY is too long to be a part of the key, or of unknown length: it was passed.", "";
    PassByVcl, "pass", Vcl, Pass, "fwd=bypass", "VCL said return (pass).", "";
    PipeByVcl, "pipe", Vcl, Pipe, "fwd=bypass", "VCL said return (pipe): bytes go to the origin untouched, and nothing is cached.", "";
    PurgeByVcl, "purge", Vcl, Purge, "", "VCL said return (purge).", "";
    SynthByVcl, "synth", Vcl, Synth, "", "VCL made the answer: return (synth).", "";
    RestartByVcl, "restart", Vcl, -, "", "VCL said return (restart): the request begins anew.", "";
    RetryByVcl, "retry", Vcl, -, "", "VCL said return (retry): the fetch begins anew.", "";
    VclFailed, "vcl-failed", Vcl, Error, "", "VCL failed.", "the VCL_Error record of this request says what failed";
    Stored, "stored", Store, -, "", "The response was stored.", "";
    StaleOnError, "stale-on-error", Origin, HitStale, "hit", "The origin failed, so the stored copy was served although it is stale.",
        "the fetch of this request says how the origin failed";
    StaleForbidden, "stale-forbidden", Origin, Error, "", "The origin failed, and the stored copy may not be served stale (must-revalidate, proxy-revalidate, s-maxage or no-cache): 504.", "";
    NotModifiedOther, "not-modified-other", Origin, -, "", "The origin answered 304 about something else than the stored copy, so it was asked again without conditions.", "mend the origin: its 304 names another ETag";
    StaleRemoved, "stale-removed", Store, -, "", "The stored copy was removed (by a purge, a ban, or to make room) while the origin was asked whether it is still valid, so it was asked again without conditions.", "";
    Invalidated, "invalidated", Store, -, "", "The request may have changed what is stored, so stored copies were removed: of its target, of what its response names, and of the groups that it names (Cache-Group-Invalidation).", "";
    StoredError, "stored-error", Store, -, "", "The answer was made here, in vcl_backend_error, and is kept for those who wait for it.", "";
    NotStoredByVcl, "not-stored-vcl", Store, -, "", "VCL made the response uncacheable.", "";
    NotStoredPass, "not-stored-pass", Store, -, "", "The request was passed, so the response is for this client alone.", "";
    NotStoredDead, "not-stored-ttl", Store, -, "", "The response has no time to live, no grace and no keep.",
        "see the TTL record: which header or default gave that TTL";
    NotStoredVary, "not-stored-vary", Store, -, "", "The response's Vary header cannot be used.", "mend Vary at the origin";
    NotStoredQuery, "not-stored-no-vary-search", Store, -, "", "Earlier responses said which parts of the query do not matter (No-Vary-Search), and this one says something else.",
        "have the origin send the same No-Vary-Search with all responses of a path";
    NotStoredNoStore, "not-stored-no-store", Store, -, "", "The response says that it must not be stored (no-store).",
        "the origin's Cache-Control; or set beresp.uncacheable = false and a ttl in vcl_backend_response";
    NotStoredPrivate, "not-stored-private", Store, -, "", "The response says that it is for one user (private).",
        "the origin's Cache-Control; or set beresp.uncacheable = false and a ttl in vcl_backend_response";
    NotStoredNotUnderstood, "not-stored-must-understand", Store, -, "", "The response may be stored only by a cache that understands its status (must-understand), and this status is not of HTTP's own.", "";
    NotStoredAuthorization, "not-stored-authorization", Store, -, "", "The request had Authorization, and the response does not say that it may be shared, and for how long.",
        "if it is for everybody, have the origin send Cache-Control: public with max-age, or unset req.http.Authorization in vcl_recv";
    NotStoredSetCookie, "not-stored-set-cookie", Store, -, "", "The response sets a cookie, and the parameter store_set_cookie is off.",
        "have the origin set its cookie only where it is needed, or name it: Cache-Control: private=\"set-cookie\"";
    NotStoredResponseCookie, "not-stored-set-cookie-ttl", Store, -, "", "The response sets a cookie and gives no lifetime of its own: a ttl from VCL, or one that was guessed, does not share it.",
        "have the origin set its cookie only where it is needed, or unset beresp.http.Set-Cookie; for everybody as it is: set beresp.uncacheable = false with the ttl";
    NotStoredRequestCookie, "not-stored-cookie", Store, -, "", "The request had a Cookie, and the response gives no lifetime of its own: a ttl from VCL, or one that was guessed, does not share it.",
        "remove cookies that the origin does not need in vcl_recv, or have it send Cache-Control: max-age; for everybody as it is: set beresp.uncacheable = false with the ttl";
    NotStoredNoCache, "not-stored-no-cache", Store, -, "", "The response says that it must be validated before every use (no-cache): a ttl from VCL alone does not change that.",
        "the origin's Cache-Control; or set beresp.uncacheable = false and a ttl in vcl_backend_response";
    NotStoredNoLifetime, "not-stored-no-lifetime", Store, -, "", "The response gives no lifetime, and for this status none may be guessed.",
        "have the origin send Cache-Control: max-age, or set beresp.uncacheable = false and a ttl in vcl_backend_response";
    NotStoredUseless, "not-stored-stale", Store, -, "", "The response has no lifetime: its TTL is 0 or has passed, it cannot be validated, and it may not be served stale.",
        "have the origin send Cache-Control: max-age (or ETag or Last-Modified), or set beresp.ttl in vcl_backend_response";
    NotStoredUnkeyed, "not-stored-unkeyed", Store, -, "", "The answer depends on something of this request that is neither in the key nor in Vary: other requests would have got another one.",
        "docs/guide/caching.md lists such statuses and fields; have the origin name the field in Vary, or remove it in vcl_recv";
    NotStoredNoContent, "not-stored-head", Store, -, "", "VCL had the origin asked with HEAD, so it has no content for requests with GET.",
        "leave bereq.method alone: a GET brings what answers HEAD, too; or return (pass) for HEAD in vcl_recv";
    NotStoredMarked, "not-stored-leak-marked", Store, -, "", "The request had credentials and the response was marked as one client's (Set-Cookie, private or no-store). VCL has it stored for all, and leak_guard=refuse prevented that.",
        "pass such requests in vcl_recv, or leave the response to the built-in VCL; if it is for all, unset bereq.http.Cookie in vcl_backend_fetch, so that it cannot depend on the client";
    NotStoredDiffers, "not-stored-leak-differs", Store, -, "", "Under this key, clients with other credentials got other bodies within seconds, so the response depends on the client. VCL has it stored for all, and leak_guard=refuse prevented that.",
        "pass such requests in vcl_recv, or add what the response depends on to the key (hash_data) or have the origin name it in Vary";
    LeakMarked, "leak-marked", Daemon, -, "", "Possible leak: the request had credentials and the response was marked as one client's (Set-Cookie, private or no-store), but VCL has it stored for all.",
        "pass such requests in vcl_recv, or leave the response to the built-in VCL; parameter leak_guard=refuse prevents that such responses are stored";
    LeakDiffers, "leak-differs", Daemon, -, "", "Possible leak: under this key, clients with other credentials got other bodies within seconds, so the response depends on the client, but VCL has it stored for all.",
        "pass such requests in vcl_recv, or add what the response depends on to the key (hash_data) or have the origin name it in Vary";
    NotStoredFull, "not-stored-full", Store, -, "", "There was no room in the storage, and nothing could be evicted for it.",
        "give the storage more room (-s), or keep large responses out of it";
    NotStoredTooLarge, "not-stored-too-large", Store, -, "", "The body, of unknown length, was too large for its share of the storage: it was passed on to those who read it, and not kept.",
        "give the storage more room (-s) or such a body a larger share (parameter unsized_body_share), or have the origin send Content-Length";
    NotStoredError, "not-stored-error", Store, -, "", "The answer was made here, in vcl_backend_error, and is not kept.", "";
    NoBackend, "no-backend", Origin, Error, "", "There was no backend to ask.", "backend.list, and what VCL sets as backend_hint";
    BackendSick, "backend-sick", Origin, Error, "", "The backend is sick, by its probe or by an operator's word.", "backend.list -p shows the probe's last answers";
    BackendAside, "backend-aside", Origin, Error, "", "The backend was set aside for a while, since its last fetches failed (.fail_limit, .fail_ratio).",
        "backend.list -p shows until when; the fetches before say how they failed";
    BackendQueueFull, "backend-queue-full", Origin, Error, "", "All of the backend's connections were in use, and as many fetches as may waited for one.", "raise .max_connections or .wait_limit, or find out why the origin is slow";
    BackendWaitTimeout, "backend-wait-timeout", Origin, Error, "", "No connection to the backend became free in time.", "raise .max_connections or .wait_timeout, or find out why the origin is slow";
    BackendBusy, "backend-busy", Origin, Error, "", "All of the backend's connections were in use (max_connections).", "raise .max_connections, or find out why the origin is slow";
    BackendHeldDown, "backend-held-down", Origin, Error, "", "A connect to the backend failed a moment ago, so it was not tried again.", "parameters backend_local_error_holddown and backend_remote_error_holddown";
    ConnectRefused, "connect-refused", Origin, Error, "", "The backend's machine refused the connection: nothing listens on that port.", "is the origin's server running, and is host and port of the backend right?";
    ConnectTimeout, "connect-timeout", Origin, Error, "", "The backend did not accept a connection in time.", "is its machine up, and does a firewall drop packets? or connect_timeout is too short (of the backend, of bereq, or the parameter)";
    ConnectFailed, "connect-failed", Origin, Error, "", "No connection to the backend.", "is the origin's server running, and is host and port of the backend right?";
    ConnectLocalError, "connect-local-error", Origin, Error, "", "No connection to the backend could be opened, for a cause on this machine: it had no descriptor or local port for it, or does not allow it.",
        "the number of the error is in the FetchError record; the limit of open files, net.ipv4.ip_local_port_range, the rights of a Unix-domain socket";
    ProxyHeaderFailed, "proxy-header-failed", Origin, Error, "", "The PROXY header could not be sent to the backend.", "does the origin expect the PROXY protocol?";
    TlsFailed, "tls-failed", Origin, Error, "", "The TLS handshake with the backend failed.",
        "the log says which check failed (BackendSSL, FetchError); compare with openssl s_client -connect HOST:PORT -servername NAME";
    RequestNotSent, "request-not-sent", Origin, Error, "", "The origin closed the connection while the request was sent.", "the origin's error log";
    RequestUnsayable, "request-unsayable", Origin, Error, "", "The request has something that cannot be said over HTTP/2, which the backend speaks (.http2): it was not sent.",
        "the FetchError record says what; refuse such requests in VCL, or mend them there";
    ClientBodyLost, "client-body-lost", Origin, Error, "", "The client's body did not arrive whole.", "";
    FirstByteTimeout, "first-byte-timeout", Origin, Error, "", "The origin did not begin to answer in time.", "the origin is slow: its own log; or first_byte_timeout is too short (of the backend, of bereq, or the parameter)";
    BetweenBytesTimeout, "between-bytes-timeout", Origin, Error, "", "The origin stopped in the middle of its answer.", "the origin is slow: its own log; or between_bytes_timeout is too short (of the backend, of bereq, or the parameter)";
    LastByteTimeout, "last-byte-timeout", Origin, Error, "", "The origin took too long for the whole of its answer.", "the origin is slow: its own log; or last_byte_timeout is too short (of the backend, of bereq, or the parameter)";
    OriginClosed, "origin-closed", Origin, Error, "", "The origin closed the connection before the head of its answer was whole.", "the origin's error log: it may have crashed";
    OriginReset, "origin-reset", Origin, Error, "", "The origin reset the connection (or, over HTTP/2, the stream) instead of answering.", "the FetchError record says more; the origin's error log: it may have crashed";
    ResponseTooLarge, "response-head-too-large", Origin, Error, "", "The head of the response is larger than allowed.", "parameters http_resp_size, http_resp_hdr_len and http_max_hdr";
    ResponseGarbled, "response-garbled", Origin, Error, "", "The response is not HTTP that can be understood.", "the HttpGarbage and BogoHeader records show it; is this the right port?";
    SliceOutdated, "slice-outdated", Origin, -, "", "The origin sent a slice of another version than the stored slices: the next request starts with the new version.", "";
    PartOutdated, "part-outdated", Origin, -, "", "A part of it was stored and the rest was asked for, but what came does not belong to that part: the whole was asked for.", "";
    ResponseNotConditional, "response-304-unasked", Origin, Error, "", "The origin answered 304 to a request that was not conditional.", "mend the origin";
    BodyCutShort, "body-cut-short", Origin, Error, "", "The body of the response ended too soon: less came than the origin had announced.", "the origin's error log: it may have crashed, or its Content-Length is wrong";
    BodyBroken, "body-broken", Origin, Error, "", "The body of the response is broken: it is not framed as its head says.", "the origin's error log";
    BodyNotProcessed, "body-not-processed", Origin, Error, "", "The body of the response could not be processed (gzip).", "is the origin's Content-Encoding true?";
    StorageRefused, "storage-refused", Origin, Error, "", "There was no room for the body of the response.", "give the storage more room (-s)";
    ErrorByVcl, "error-by-vcl", Origin, Error, "", "VCL refused the fetch: return (error) or return (abandon).", "";
    RetryBudgetSpent, "retry-budget-spent", Origin, Error, "", "The fetch was not repeated: too many fetches from this backend have been, of late (.retry_budget).", "the fetches before say how they failed";
    FetchGivenUp, "fetch-given-up", Origin, Error, "", "The client of this fetch has gone, and no other request could use it.", "";
    TooManyRetries, "too-many-retries", Origin, Error, "", "The fetch was retried too often.", "parameter max_retries";
    TooManyRestarts, "too-many-restarts", Vcl, Error, "", "The request was restarted too often.", "parameter max_restarts";
    Challenge, "certificate-challenge", Daemon, Synth, "", "A certificate authority asked whether this name is ours, and was answered before VCL.", "";
    BadRequest, "bad-request", Daemon, Error, "", "The request is not HTTP that can be understood.",
        "the HttpGarbage and BogoHeader records show it; is the client speaking HTTP/1, without TLS?";
    RequestTooLarge, "request-head-too-large", Daemon, Error, "", "The head of the request is larger than allowed.",
        "the parameter that it broke, named above; or find out why the client sends so much (cookies?)";
    RequestLoop, "request-loop", Daemon, Error, "", "The request has passed through this daemon already: its Via says so. It was answered with 508.",
        "a backend whose address is that of this daemon: backend.list; or unset bereq.http.Via in vcl_backend_fetch where that is meant";
    RedirectedToHttps, "redirect-https", Daemon, Synth, "", "The listener sends clients without TLS to https, before VCL.", "redirect=https in -a";
    ExpectationUnknown, "expectation-unknown", Daemon, Error, "", "The request expects something (Expect) other than 100-continue.", "";
    ClientGone, "client-gone", Daemon, Error, "", "The client broke the connection while its request waited for its object.", "";
    EsiLimit, "esi-limit", Daemon, -, "", "Fragments of the page were left out: they are nested too deep (max_esi_depth), or the client's request has too many of them in all (esi_fragments_max).",
        "does the page include itself? raise the parameter named in the record if not";
    WaitingFull, "waiting-full", Daemon, Error, "", "Another request was fetching it, and as many requests as may (waiting_requests_max) waited for such fetches already.",
        "is an origin slow? MAIN.n_waiting and the fetches show it; or raise waiting_requests_max";
    WaitingTimeout, "waiting-timeout", Daemon, Error, "", "Another request was fetching it, and that took longer than requests may wait (waiting_timeout).",
        "is an origin slow? its own log; or raise waiting_timeout";
    MemoryShort, "memory-short", Daemon, Error, "", "The requests in progress hold as much memory as all of them may (requests_memory_max).",
        "MAIN.req_bytes shows how much; slow clients hold most of it: send_timeout and idle_send_timeout, or raise requests_memory_max";
    BodyUnreadable, "body-unreadable", Daemon, Error, "", "The stored body could not be read from its file, or was not what had been stored: the response was broken off, and the object is gone.",
        "the disk: the kernel's log (dmesg), and the counters read_errors of the storage (SMF)";
    InternalError, "internal-error", Daemon, Error, "", "The daemon failed; only this request was lost.", "panic.show";
}

impl Reason {
    /// The reason's row.
    #[must_use]
    pub fn row(self) -> &'static ReasonRow {
        &REASONS[self as usize]
    }

    /// Reason with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Reason> {
        REASONS.iter().find(|row| row.word == word).map(|row| row.reason)
    }
}

/// The piece of the built-in VCL whose decision depends on the ttl of a response.
pub const STALE_PIECE: &str = "vcl_beresp_stale";

/// The criteria of the pieces of the built-in VCL, for explanations.
pub static BUILTIN_PIECES: &[(&str, &str)] = &[
    ("vcl_req_host", "the Host header is missing"),
    ("vcl_req_method", "only GET and HEAD are looked up in the cache, and unknown methods are piped"),
    ("vcl_req_authorization", "the request has an Authorization header"),
    ("vcl_req_cookie", "the request has a Cookie header"),
    (STALE_PIECE, "the response has no time to live"),
    ("vcl_beresp_cookie", "the response sets a cookie (Set-Cookie)"),
    ("vcl_beresp_control", "Cache-Control or Surrogate-Control of the response forbids storing it"),
    ("vcl_beresp_vary", "the response varies on everything (Vary: *)"),
    ("vcl_refresh_valid", "the stale object that the 304 is about was removed meanwhile"),
    ("vcl_refresh_conditions", "the request to the origin was not conditional"),
    ("vcl_refresh_status", "the stale object of the 304 does not have status 200"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_found_again() {
        for row in REASONS {
            assert_eq!(Reason::from_word(row.word), Some(row.reason), "{}", row.word);
            assert!(row.word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
            assert!(row.sentence.ends_with('.'), "{}", row.word);
        }
        assert_eq!(Reason::from_word("because"), None);
    }

    #[test]
    fn rows_stand_in_the_order_of_the_enumeration() {
        for row in REASONS {
            assert_eq!(row.reason.row().word, row.word);
        }
    }

    #[test]
    fn handlings_stand_in_the_order_of_the_enumeration() {
        for (handling, word, _) in HANDLINGS {
            assert_eq!(handling.word(), *word);
        }
    }

    #[test]
    fn every_word_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/migrate/records.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rows = REASONS.iter().map(|row| format!("| `{}` | {} |\n", row.word, row.sentence));
        let table: String = rows.collect();
        if std::env::var_os("REFERENCE_UPDATE").is_some() && !page.contains(&table) {
            let head = "| word | what it means |\n| --- | --- |\n";
            let at = page.find(head).unwrap() + head.len();
            std::fs::write(path, format!("{}{table}", &page[..at])).unwrap();
            return;
        }
        assert!(
            page.contains(&table),
            "docs/migrate/records.md is stale, run REFERENCE_UPDATE=1 cargo test -p surface"
        );
        for name in DETAILS.iter().filter(|name| **name != "status") {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
        for (_, word, _) in REMOVAL_REASONS {
            assert!(page.contains(&format!("`{word}`")), "{word}");
        }
    }

    #[test]
    fn each_removal_reason_has_a_unique_word() {
        for (reason, word, _) in REMOVAL_REASONS {
            assert_eq!(reason.map_or(NEVER, RemovalReason::word), *word);
            assert_eq!(REMOVAL_REASONS.iter().filter(|row| row.1 == *word).count(), 1, "{word}");
        }
    }
}
