//! Named maxima: every queue, retry, table and recursion that is not a parameter.

/// Deepest nesting of blocks, parentheses and includes that the VCL compiler follows.
pub const VCL_NESTING_MAX: usize = 200;
/// Largest VCL source, all includes together, in bytes.
pub const VCL_SOURCE_BYTES_MAX: usize = 128 << 20;
/// Deepest chain of `call` at run time.
pub const VCL_CALL_DEPTH_MAX: usize = 64;
/// Deepest chain of directors followed to find a backend.
pub const DIRECTOR_DEPTH_MAX: usize = 16;
/// Most times that a fetch of an old dialect tries another member of a director after one without a
/// connection.
pub const DIRECTOR_TRIES_MAX: usize = 100;
/// Most requests (by digest) for which one backend counts as sick at once (saint mode).
pub const BACKEND_TROUBLES_MAX: usize = 1000;
/// Number of digests at which a backend in trouble counts as sick for all requests (saint mode of
/// the old dialects).
pub const SAINTMODE_THRESHOLD: usize = 10;
/// Number of slots in the window of `.fail_ratio`: the window moves by one slot at a time.
pub const FAIL_WINDOW_SLOTS: usize = 10;
/// Number of fetches from a backend with a `.retry_budget` that may be repeated at once.
pub const RETRY_RESERVE: u64 = 10;
/// Smallest share of its load that a backend gets when its `.slow_start` begins.
pub const SLOW_START_SHARE_MIN: f64 = 0.1;
/// Most points on the ring of a shard director (8 bytes each).
pub const SHARD_POINTS_MAX: usize = 4 << 20;
/// Longest command line before authentication, in bytes; a longer one is executed in pieces.
pub const CLI_UNAUTHENTICATED_LINE_BYTES_MAX: usize = 80;
/// Longest description that a manager hands to its successor, in bytes: it includes all VCL texts.
pub const HANDOVER_BYTES_MAX: usize = 512 << 20;
/// Most descriptors that a manager hands to its successor.
pub const HANDOVER_DESCRIPTORS_MAX: usize = 16 << 10;
/// Most changes of the active VCL that `vcl.history` keeps.
pub const VCL_HISTORY_CHANGES_MAX: usize = 16;
/// Longest text of one of them, in bytes.
pub const VCL_HISTORY_TEXT_BYTES_MAX: usize = 256;
/// Most files of a worker's shared memory that are removed; a directory with more is renamed as a
/// whole.
pub const SHARED_FILES_MAX: usize = 128 << 10;
/// Most CLI connections at once.
pub const CLI_CONNECTIONS_MAX: usize = 256;
/// Time limit for the authentication of a CLI client, in seconds.
pub const CLI_UNAUTHENTICATED_SECONDS_MAX: u64 = 60;
/// Time limit for a CLI client to read a reply, in seconds.
pub const CLI_WRITE_SECONDS_MAX: u64 = 60;
/// Most lines of the history of varnishadm.
pub const CLI_HISTORY_LINES_MAX: usize = 1000;
/// Longest CLI command, in bytes, except one that carries a VCL ([`crate::cli::CARRYING_VCL`]).
pub const CLI_LINE_BYTES_MAX: usize = 1 << 20;
/// Longest command that carries a VCL, in bytes: the largest VCL, quoted or as a here-document.
/// Also bounds the incomplete commands of all CLI connections together.
pub const CLI_COMMAND_BYTES_MAX: usize = 160 << 20;
/// Part of a command that is shown (in the log of CLI traffic, or when the `-I` file is run), in
/// bytes.
pub const CLI_SHOWN_BYTES_MAX: usize = 4096;
/// Time for which an origin that has begun to answer may stop reading the request's body before its
/// answer is passed on without the rest being sent, in seconds. After an error or a redirect there
/// is no such wait.
pub const EARLY_ANSWER_STALL_SECONDS: u64 = 1;
/// Time limit for an answer on an origin connection that no longer accepts data, in seconds.
pub const BROKEN_ANSWER_SECONDS: u64 = 1;
/// Longest request body whose failed transfer counts against the origin, in bytes: a longer one may
/// exceed the origin's limit. Also the most bytes of a body that are kept until its answer begins.
pub const UPLOAD_KEPT_BYTES_MAX: usize = 64 << 10;
/// Bytes of an unread request body that are read and discarded so that a client connection can be
/// reused after an early answer.
pub const UPLOAD_REST_BYTES_MAX: usize = 64 << 10;
/// Bytes of a body in flight between an origin and a client when nothing is stored.
pub const PASS_IN_FLIGHT_BYTES_MAX: usize = 256 << 10;
/// Like [`PASS_IN_FLIGHT_BYTES_MAX`], while request memory is nearly exhausted (parameter
/// `requests_memory_max`).
pub const PASS_IN_FLIGHT_BYTES_SHORT: usize = 16 << 10;
/// Minimum memory accounted for each request and each active fetch: its buffers, heads, log and
/// connection, in bytes.
pub const REQUEST_BASE_BYTES: usize = 32 << 10;
/// Step in which an event loop reserves memory from the limit for all requests, in bytes.
pub const REQUEST_GRANT_BYTES: usize = 64 << 10;
/// Most bytes of the grant that an event loop keeps unused while memory is not short.
pub const REQUEST_SLACK_BYTES_MAX: usize = 1 << 20;
/// Most bytes that one step of a body filter consumes or produces, whatever its input: two windows
/// of gzip.
pub const FILTER_STEP_BYTES_MAX: usize = 64 << 10;
/// Time without data from the origin, in the middle of a body, after which an encoder is flushed,
/// in milliseconds. Pieces that follow one another faster are compressed together.
pub const FLUSH_PAUSE_MILLISECONDS: u64 = 20;
/// Smallest buffer of a body filter, in bytes, however short its announced output is.
pub const FILTER_STEP_BYTES_MIN: usize = 4 << 10;
/// Most steps of body filters for one body before the task yields to other tasks of the event loop.
pub const FILTER_STEPS_AT_ONCE_MAX: usize = 16;
/// Highest level of the filter `brotli`, which works on the event loop: the next level takes ten
/// times as long. Compressed copies have no such bound.
pub const BROTLI_FILTER_LEVEL_MAX: u64 = 9;
/// Highest level of the filter `zstd`, for the same reason.
pub const ZSTD_FILTER_LEVEL_MAX: u64 = 12;
/// Most filters of one body.
pub const FILTERS_MAX: usize = 8;
/// Most fragments that one page includes; the rest of the page is then sent unchanged.
pub const ESI_INCLUDES_MAX: usize = 10_000;
/// Longest plan of one page, in bytes; the rest of the page is then sent unchanged.
pub const ESI_PLAN_BYTES_MAX: usize = 1 << 20;
/// Longest address of a fragment (`src`) in a page, in bytes; a longer one is not included.
pub const ESI_SRC_BYTES_MAX: usize = 8 << 10;
/// Most bytes of output that the compressor of a page with ESI may queue.
pub const ESI_GZIP_QUEUE_BYTES: usize = 128 << 10;
/// Bytes of a fragment that may wait until delivery of the including page reaches its position.
pub const FRAGMENT_IN_FLIGHT_BYTES_MAX: usize = 64 << 10;
/// Like [`FRAGMENT_IN_FLIGHT_BYTES_MAX`], while request memory is nearly exhausted (parameter
/// `requests_memory_max`).
pub const FRAGMENT_IN_FLIGHT_BYTES_SHORT: usize = 4 << 10;
/// Largest piece in which a waiting fragment is passed on, in bytes.
pub const FRAGMENT_PIECE_BYTES_MAX: usize = 16 << 10;
/// Most languages in one `Accept-Language` that are compared without regard to their order, or
/// searched for the preferred one.
pub const COMPARED_LANGUAGES_MAX: usize = 32;
/// Most bytes of header lines in a request whose error response may be stored for other requests:
/// the error to a longer one may be caused by its length.
pub const ERROR_CAUSE_BYTES_MAX: usize = 4 << 10;
/// Longest body of a QUERY whose response is stored, in bytes.
pub const QUERY_BYTES_MAX: u64 = 64 << 10;
/// Minimum time in seconds for which a stale object is served immediately after the origin failed,
/// while one request retries.
pub const STALE_ON_ERROR_SECONDS_MIN: f64 = 10.0;
/// Most groups that one `Cache-Groups` or `Cache-Group-Invalidation` names; more are ignored.
pub const CACHE_GROUPS_MAX: usize = 32;
/// Longest name of a cache group, in characters; a longer one is ignored.
pub const CACHE_GROUP_CHARACTERS_MAX: usize = 32;
/// Most variants of one key under `http_policy=rfc`; another one replaces the oldest.
pub const VARIANTS_MAX: usize = 1000;
/// Longest head of a marker of hit-for-miss or hit-for-pass, in bytes: the status and the fields
/// that bans examine. Fields that do not fit are dropped, tags last.
pub const MARKER_HEAD_BYTES_MAX: usize = 8 << 10;
/// Markers get at most one part in this many of the first storage, unless Transient has a limit of
/// its own. That limit then bounds them, and they displace other transient objects only while they
/// have less than one part in this many of it.
pub const MARKERS_SHARE: u64 = 8;
/// Least bytes that markers get in a small storage.
pub const MARKERS_BYTES_MIN: u64 = 64 << 10;
/// One part in this many of the first storage is kept free for markers: a full storage has room for
/// new ones without an eviction of objects.
pub const MARKERS_RESERVE_SHARE: u64 = 64;
/// If Transient has a limit of its own, at most one part in this many of the first storage is kept
/// free for it.
pub const TRANSIENT_RESERVE_SHARE: u64 = 8;
/// Most objects that the records `ExpKill` are ordered by, those that expire next; about 50 bytes
/// each, while the tag is unmasked.
pub const EXPIRY_LOG_OBJECTS_MAX: usize = 64 << 10;
/// Memory of one decompressor besides its output, in bytes: its window and its tables.
pub const GUNZIP_STATE_BYTES: usize = 48 << 10;
/// Memory of one compressor besides its output, in bytes.
pub const GZIP_STATE_BYTES: usize = 384 << 10;
/// Most bytes of a body that brotli and Zstandard gather to compress them in one step.
pub const GATHERED_BYTES_MAX: usize = 64 << 10;
/// Largest window of a body whose decompression begins while memory for requests is short, in
/// bytes.
pub const SHORT_MEMORY_WINDOW_BYTES_MAX: usize = 256 << 10;
/// Largest window of brotli that is decompressed, in bytes: the maximum of RFC 7932. A larger one
/// ("large window") is refused.
pub const UNBROTLI_WINDOW_BYTES_MAX: usize = 16 << 20;
/// Memory of one brotli decompressor besides its window and its output, in bytes.
pub const UNBROTLI_STATE_BYTES: usize = 512 << 10;
/// Largest window of Zstandard that is decompressed, in bytes: the maximum of RFC 9659 for a
/// content coding.
pub const UNZSTD_WINDOW_BYTES_MAX: usize = 8 << 20;
/// Memory of one Zstandard decompressor besides its window and its output, in bytes.
pub const UNZSTD_STATE_BYTES: usize = 512 << 10;
/// Most memory of one brotli compressor besides its output, in bytes, its window included: that of
/// level 9.
pub const BROTLI_STATE_BYTES_MAX: usize = 40 << 20;
/// Window of brotli compression, as a power of two: half a megabyte, so that a phone can decompress
/// it.
pub const BROTLI_WINDOW_BITS: u32 = 19;
/// Smallest window of brotli compression, as a power of two.
pub const BROTLI_WINDOW_BITS_MIN: u32 = 17;
/// Most memory of one Zstandard compressor besides its output, in bytes, its window included: that
/// of level 19.
pub const ZSTD_STATE_BYTES_MAX: usize = 96 << 20;
/// Window of Zstandard compression, as a power of two.
pub const ZSTD_WINDOW_BITS: u32 = 20;
/// Most bytes of a stored body that a reader holds if the body is in a file.
pub const DISK_PIECE_BYTES: usize = 64 << 10;
/// Shortest body of which a compressed copy is made, in bytes: a shorter one fits into a packet
/// anyway.
pub const COPIED_BYTES_MIN: u64 = 1 << 10;
/// Longest body of which a compressed copy is made, in bytes, and the longest that it may
/// decompress to.
pub const COPIED_BYTES_MAX: u64 = 16 << 20;
/// Minimum gain of a compressed copy, as a part of the original's length (one of this many);
/// otherwise it is not kept.
pub const COPY_GAIN_PART: u64 = 20;

const _: () = assert!(FILTER_STEP_BYTES_MAX <= PASS_IN_FLIGHT_BYTES_MAX, "what a filter puts out fits on its way");
const _: () = assert!(FILTER_STEP_BYTES_MAX >= 32 << 10, "a step must hold a gzip window");
const _: () =
    assert!(REQUEST_GRANT_BYTES >= REQUEST_BASE_BYTES && PASS_IN_FLIGHT_BYTES_SHORT < PASS_IN_FLIGHT_BYTES_MAX);
const _: () = assert!(FILTER_STEP_BYTES_MIN <= FILTER_STEP_BYTES_MAX);
/// The `free_space` of a storage without a given limit, in bytes. Compat: Varnish 7.1.1.
pub const UNLIMITED_FREE_SPACE_BYTES: u64 = 999_999_999_999_999;
/// Most storages (`-s`) besides Transient.
pub const STORAGES_MAX: usize = 64;
/// Longest chunk-size line with its extensions, in bytes.
pub const CHUNK_HEADER_BYTES_MAX: usize = 256;
/// Most interim responses (1xx) to one request before the origin counts as broken.
pub const INTERIM_MAX: usize = 16;
/// Most memory for interim responses that wait for one client, in bytes. Further ones are not
/// passed on.
pub const INTERIM_WAITING_BYTES_MAX: usize = 64 << 10;
/// Longest trailer section of a chunked body, in bytes.
pub const CHUNK_TRAILER_BYTES_MAX: usize = 8 << 10;
/// Most trailer fields of a request that are passed on.
pub const TRAILER_FIELDS_MAX: usize = 64;
/// Most idle connections kept to one backend by one event loop.
pub const IDLE_BACKEND_CONNECTIONS_MAX: usize = 256;
/// Most source texts of one VCL, each `include` counted.
pub const VCL_SOURCES_MAX: usize = 10_000;
/// Most directory entries looked at for one `include +glob`.
pub const VCL_GLOB_ENTRIES_MAX: usize = 1_000_000;
/// Longest pattern of an `include +glob`, in bytes: the longest path that Linux accepts.
pub const VCL_GLOB_PATTERN_BYTES_MAX: usize = 4096;
/// Most tokens (words, numbers, strings and signs) of one VCL; a token and the data derived from it
/// take up to 160 bytes.
pub const VCL_TOKENS_MAX: usize = 16 << 20;
/// Most invalid tokens before the compiler stops reading.
pub const VCL_NO_TOKENS_MAX: usize = 100_000;
/// Most statements that one walk of the linter through a method follows, calls included.
pub const VCL_LINT_STEPS_MAX: usize = 1_000_000;
/// Real time that a case of `copal vcl test` may take, in seconds.
pub const VCL_TEST_CASE_SECONDS_MAX: u64 = 10;
/// Cases of `copal vcl test` that may exceed it; after that nothing further is run.
pub const VCL_TEST_STUCK_MAX: usize = 3;
/// Largest file of cases of `copal vcl test`, in bytes.
pub const VCL_TEST_FILE_BYTES_MAX: usize = 16 << 20;
/// Largest head, and largest body, of a message that a case reads, in bytes.
pub const VCL_TEST_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Most messages kept of one VCL compilation; the others are counted.
pub const VCL_MESSAGES_MAX: usize = 1_000;
/// Longest message that `copal lsp` reads, in bytes.
pub const LSP_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Most documents that are open in `copal lsp`.
pub const LSP_DOCUMENTS_MAX: usize = 256;
/// Most text of the documents that are open in `copal lsp`, in bytes.
pub const LSP_DOCUMENTS_BYTES_MAX: usize = 64 << 20;
/// Most memory for the global variables of the VMOD `var`, in bytes.
pub const VAR_GLOBAL_BYTES_MAX: usize = 64 << 20;
/// Longest file that `std.fileread()` and `std.blobread()` read, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most memory for the cached files of one VCL, in bytes; others are read each time.
pub const KEPT_FILES_BYTES_MAX: usize = 64 << 20;
/// Most token buckets that the VMOD `vsthrottle` keeps; each takes about 100 bytes.
pub const THROTTLE_BUCKETS_MAX: usize = 1 << 20;
/// Number of keys in the removal history of the cache; 32 bytes each, plus the texts of bans.
pub const REMOVED_KEYS_MAX: usize = 1 << 14;
/// Longest text (of a ban, names of cookies, a request line) in one record of a reason, in bytes.
pub const WHY_TEXT_BYTES_MAX: usize = 200;
/// Most cookies of a request that its reason names.
pub const WHY_COOKIES_MAX: usize = 64;
/// Most fields that `private` and `no-cache` of one response can name; with more they apply to the
/// whole response.
pub const UNSHARED_FIELDS_MAX: usize = 64;
/// Number of paths for which `copal why` remembers the contents of the cache according to the log.
pub const WHY_PATHS_MAX: usize = 10_000;
/// Number of causes whose advice `copal why` has printed and does not repeat.
pub const WHY_CAUSES_MAX: usize = 1000;
/// Most addresses of one such path.
pub const WHY_NEIGHBOURS_MAX: usize = 32;
/// Most choices of one rule of the VMOD `accept`.
pub const ACCEPT_CHOICES_MAX: usize = 10_000;
/// Most criteria of one filter of the VMOD `querystring`.
pub const QUERYSTRING_CRITERIA_MAX: usize = 10_000;
/// Most names that the dynamic directors of one VCL resolve; beyond it the least recently used one
/// is dropped.
pub const DYNAMIC_DOMAINS_MAX: usize = 10_000;
/// Most addresses (or targets of a service) that are used from one answer.
pub const DYNAMIC_ADDRESSES_MAX: usize = 256;
/// Longest time for which a DNS answer for a backend name is valid, whatever its TTL, in seconds.
pub const FOLLOWED_TTL_SECONDS_MAX: f64 = 3600.0;
/// Shortest such time, in seconds.
pub const FOLLOWED_TTL_SECONDS_MIN: f64 = 1.0;
/// Time limit for the lookup of such a name, in seconds.
pub const FOLLOWED_LOOKUP_SECONDS_MAX: u64 = 30;
/// Longest host, port or service name that dynamic directors resolve, in bytes.
pub const DYNAMIC_NAME_BYTES_MAX: usize = 255;
/// Most names that one worker resolves at once; others wait for their turn.
pub const DYNAMIC_LOOKUPS_MAX: usize = 32;
/// Most names that one worker looks up at once for `std.ip()` and `unix`.
pub const VMOD_LOOKUPS_MAX: usize = 32;
/// Most lookups of VMODs that wait for their turn.
pub const VMOD_LOOKUPS_WAITING_MAX: usize = 256;
/// Time limit for one lookup of a VMOD, including its wait, in seconds.
pub const VMOD_LOOKUP_SECONDS_MAX: u64 = 10;
/// Most files that one kind of VMOD keeps in memory and rereads when they are replaced (passwords,
/// keys, databases of addresses); beyond it the least recently used one is dropped.
pub const WATCHED_FILES_MAX: usize = 64;
/// Time between two checks of such a file for a replacement, in seconds.
pub const WATCHED_FILE_CHECK_SECONDS: f64 = 1.0;
/// Most checks and reads of such files at once; others wait for their turn.
pub const WATCHED_FILE_READS_MAX: usize = 4;
/// Largest password file of the VMOD `basicauth`, in bytes.
pub const PASSWORD_FILE_BYTES_MAX: u64 = 16 << 20;
/// Longest password that `basicauth` verifies, in bytes; the cost of SHA-crypt grows with it.
pub const PASSWORD_BYTES_MAX: usize = 512;
/// Highest cost of a bcrypt hash that `basicauth` verifies: one takes about a second of CPU time.
pub const BCRYPT_COST_MAX: u32 = 14;
/// Most rounds of a SHA-crypt hash that `basicauth` verifies: they take about half a second.
pub const SHA_CRYPT_ROUNDS_MAX: u32 = 500_000;
/// Most passwords that one worker verifies at once, off its event loops.
pub const PASSWORD_CHECKS_MAX: usize = 4;
/// Most passwords that wait for their turn.
pub const PASSWORD_CHECKS_WAITING_MAX: usize = 256;
/// Most of these of one client: of one IPv4 address or one IPv6 /64 prefix.
pub const PASSWORD_CHECKS_OF_CLIENT_MAX: usize = 8;
/// Most verified passwords that one worker remembers; each takes about 50 bytes.
pub const PASSWORDS_VERIFIED_MAX: usize = 10_000;
/// Largest database of addresses (`geoip2`, `maxminddb`, `geoip`), in bytes; it is held in memory.
pub const GEO_FILE_BYTES_MAX: u64 = 1 << 30;
/// Longest text that the VMODs `json` and `jq` read, in bytes: each call takes up to a millisecond.
pub const JSON_BYTES_MAX: usize = 256 << 10;
/// Most memory of one object of the VMOD `kvstore`, in bytes.
pub const KVSTORE_BYTES_MAX: usize = 64 << 20;
/// Longest token that the VMOD `jwt` reads, in bytes.
pub const JWT_BYTES_MAX: usize = 16 << 10;
/// Longest key or set of keys that it reads, in bytes.
pub const JWT_KEY_BYTES_MAX: usize = 256 << 10;
/// Most keys of one set.
pub const JWT_KEYS_MAX: usize = 100;
/// Divisor for the part of a worker's descriptors that is reserved for connections to origins,
/// probes, files and VCL.
pub const DESCRIPTORS_RESERVED_PART: u64 = 8;
/// Most descriptors that are reserved.
pub const DESCRIPTORS_RESERVED_MAX: u64 = 1024;
/// Divisor for the part of an event loop's idle client connections that is closed at once when
/// descriptors are scarce; at least one.
pub const DISMISSED_PART: usize = 8;
/// Most idle connections that are closed at once.
pub const DISMISSED_AT_ONCE_MAX: usize = 32;
/// Minimum idle time before such a connection is closed, in seconds; also the minimum age of a TLS
/// handshake that is dropped.
pub const DISMISSED_IDLE_SECONDS_MIN: u64 = 1;
/// Minimum time between two reports of a worker about exhausted file descriptors, in seconds.
pub const DESCRIPTOR_WARNING_SECONDS: u64 = 60;
/// Most progress reports of a worker while the manager waits for one reply; each extends the
/// timeout.
pub const WORKER_STEPS_MAX: usize = 2 * STORAGES_MAX;
/// Number of consecutive failures of a worker to take over a storage, or the ban journal, before
/// that starts empty.
pub const RECOVERY_FAILURES_MAX: u32 = 3;
/// Largest grown request buffer that is kept for the next request, in bytes.
pub const KEPT_BUFFER_BYTES_MAX: usize = 64 << 10;
/// Longest accepted PROXY header of version 1, CR LF included, in bytes (specification §2.1).
pub const PROXY_HEADER_1_BYTES_MAX: usize = 107;
/// Longest accepted PROXY header of version 2, its sixteen fixed bytes included. Compat: the limit
/// of Varnish 7.1.
pub const PROXY_HEADER_2_BYTES_MAX: usize = 1024;
/// Number of workers that die of SIGKILL within [`SIGKILLS_SECONDS`] at which memory is assumed to
/// be exhausted.
pub const SIGKILLS_MAX: usize = 3;
/// Time window for [`SIGKILLS_MAX`].
pub const SIGKILLS_SECONDS: u64 = 60;
/// Longest text that VCL gives for a failure (`return (fail("…"))`), in bytes; the log cuts it to
/// `vsl_reclen`.
pub const FAILURE_BYTES_MAX: usize = 4 << 10;
/// Longest regular expression that VCL builds at run time, in bytes: the limit of PCRE2.
pub const DYNAMIC_REGEX_BYTES_MAX: usize = 64 << 10;
/// Longest ban expression that VCL builds, in bytes.
pub const VCL_BAN_BYTES_MAX: usize = 64 << 10;
/// Most literals of one ban's expression that are indexed separately (`(^|,)(a|b|c)(,|$)` has
/// three); with more the ban is tested like any other.
pub const BAN_PATTERN_LITERALS_MAX: usize = 1024;
/// Most bytes of these literals together.
pub const BAN_PATTERN_BYTES_MAX: usize = 64 << 10;
/// Longest prefix of a value that the index of bans uses, in bytes.
pub const BAN_PREFIX_BYTES_MAX: usize = 64;
/// Most fields (`obj.http.x-url`, `req.url`) whose bans are indexed; bans on others are tested one
/// by one.
pub const BAN_INDEX_FIELDS_MAX: usize = 32;
/// Most kinds of lists (by their separators) into which one field is split for the index of bans.
pub const BAN_INDEX_LISTS_MAX: usize = 4;
/// Number of untested bans of an object up to which they are tested one by one rather than looked
/// up.
pub const BAN_WALK_MAX: usize = 16;
/// Most bans that are dropped, completed or inspected by the lurker under one lock of the list.
pub const BAN_LIST_STEP_MAX: usize = 1024;
/// Most ranges of one request that are honoured; a request with more gets the whole response.
pub const RANGES_MAX: usize = 64;
/// Most parts of one response (one key and variant) that are stored at once.
pub const PARTS_MAX: usize = 64;
/// Most bytes of a stored part that is copied into a larger one, as a multiple of the bytes
/// received for that.
pub const PART_JOIN_RATIO_MAX: u64 = 16;
/// Longest `No-Vary-Search` that is honoured, in bytes, all its lines together.
pub const NO_VARY_SEARCH_BYTES_MAX: usize = 1024;
/// Most names in one of its lists.
pub const NO_VARY_SEARCH_NAMES_MAX: usize = 64;
/// Longest query that such a rule is applied to, in bytes.
pub const NO_VARY_SEARCH_QUERY_BYTES_MAX: usize = 4 << 10;
/// Most resources whose rules are remembered; beyond it the oldest rule is dropped.
pub const NO_VARY_SEARCH_RULES_MAX: usize = 1024;
/// Keys that `leak_guard` compares at a time; further ones are not compared.
pub const LEAK_GUARD_KEYS_MAX: usize = 8192;
/// Bytes at the start of a body that `leak_guard` compares, besides its length.
pub const LEAK_GUARD_BODY_BYTES_MAX: usize = 256 << 10;
/// Time between two responses that `leak_guard` compares, in seconds.
pub const LEAK_GUARD_SECONDS: f64 = 10.0;
/// Time for which a key is not stored after their bodies differed, in seconds.
pub const LEAK_GUARD_REFUSAL_SECONDS: f64 = 60.0;
/// Most certificates in one PEM file: the server's, and the chain to its authority.
pub const CERTIFICATE_CHAIN_MAX: usize = 16;
/// Most names of one certificate that clients can request.
pub const CERTIFICATE_NAMES_MAX: usize = 1000;
/// Longest subject or issuer of a certificate that is shown, in bytes.
pub const CERTIFICATE_NAME_BYTES_MAX: usize = 1024;
/// Lifetime of a session ticket as announced to clients, in seconds. A ticket is valid as long as
/// its key.
pub const TLS_TICKET_SECONDS: u32 = 12 * 60 * 60;
/// Most TLS sessions stored for a listener with early data, whose clients cannot be given tickets.
pub const TLS_SESSIONS_MAX: usize = 10_000;
/// Most bytes that a client may send before its handshake is complete, where early data is
/// accepted.
pub const TLS_EARLY_DATA_BYTES_MAX: u32 = 16 << 10;
/// Most certificates that are served, and most challenges.
pub const CERTIFICATES_MAX: usize = 4096;
/// Longest file with a certificate, a key, authorities or an OCSP response, and longest `-A` file,
/// in bytes.
pub const TLS_FILE_BYTES_MAX: u64 = 2 << 20;
/// Deepest nesting of blocks in an `-A` file.
pub const TLS_FILE_DEPTH_MAX: usize = 4;
/// Number of session ticket keys that are accepted, including the one that issues tickets.
pub const TLS_TICKET_KEYS_MAX: usize = 3;
/// Most bytes that wait to be sent on an HTTP/2 connection when another slice of a body is added,
/// for all its streams together.
pub const H2_QUEUED_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a body that an HTTP/2 stream sends before other streams get their turn: the usual
/// largest frame.
pub const H2_SLICE_BYTES_MAX: usize = 16 << 10;
/// Longest compressed header block of HTTP/2, as a multiple of `http_req_size`.
pub const H2_HEADER_BLOCK_PART: usize = 4;
/// Size of a list of header fields, as a multiple of the permitted size, at which an HTTP/2
/// connection is closed: a larger one than permitted is decoded to its end, so that the compression
/// table is right for the next request, but not one that is far too large.
pub const H2_LIST_FACTOR: usize = 4;
/// Most CONTINUATION frames of one block that do not end it.
pub const H2_CONTINUATIONS_MAX: usize = 8;
/// Number of frames without content (PING, SETTINGS, PRIORITY, empty DATA, unknown ones …) that an
/// HTTP/2 client may send at once; also applies to the control stream and to unknown streams of
/// HTTP/3.
pub const H2_EMPTY_FRAMES_MAX: u32 = 2000;
/// Number of further such frames permitted each second.
pub const H2_EMPTY_FRAMES_PER_SECOND: u32 = 50;
/// Number of further such frames permitted for each request, and for each DATA frame sent to the
/// client, since it answers those with WINDOW_UPDATE, and for each piece of a body from the client.
pub const H2_EMPTY_FRAMES_EARNED: u32 = 4;
/// Number of further such frames permitted for each KiB sent to the client.
pub const H2_EMPTY_FRAMES_EARNED_PER_KIB: u32 = 1;
/// Number of frames as which a SETTINGS frame counts: it may change the window of every stream.
pub const H2_SETTINGS_COST: u32 = 10;
/// Longest payload of a SETTINGS frame of a client, in bytes.
pub const H2_SETTINGS_FRAME_BYTES_MAX: usize = 16 << 10;
/// Smallest DATA frame for which a client earns frames without content, in bytes, if its window
/// limits the frame: otherwise a window that is opened byte by byte would pay for itself.
pub const H2_DRIBBLE_BYTES: usize = 256;
/// Bytes of unread heads and trailers at which a connection is closed when request memory runs
/// short.
pub const H2_HEADS_HELD_BYTES: usize = 128 << 10;
/// Number of closed streams of an HTTP/2 connection that are remembered: frames that were on their
/// way when a stream was reset are told from faults.
pub const H2_CLOSED_STREAMS_KEPT: usize = 128;
/// Longest value of a PRIORITY_UPDATE frame that is honoured, in bytes.
pub const PRIORITY_BYTES_MAX: usize = 64;
/// Most PRIORITY_UPDATE frames that wait to be processed; beyond it the oldest are dropped.
pub const PRIORITIES_WAITING_MAX: usize = 100;
/// Number of DATA frames that a client may send on streams whose requests have ended, each at the
/// cost of its stream; the next one closes the connection.
pub const H2_LATE_DATA_MAX: u32 = 16;
/// Time for which the rest of a client's data is read and discarded once everything was sent and
/// the connection is over, in seconds: closing immediately could cost the client the end of its
/// answer. Over HTTP/1 this is done only after a request that was answered before it was read
/// completely; over HTTP/2 the time begins anew as long as the system delivers more of the sent
/// data. After a failed TLS handshake it is limited by the handshake's timeout.
pub const GRACEFUL_CLOSE_SECONDS: u64 = 1;
/// Most bytes that are read and discarded then.
pub const GRACEFUL_CLOSE_BYTES_MAX: usize = 1 << 20;
/// Smallest log in a work directory that has no space for `vsl_space`, in bytes.
pub const LOG_BYTES_MIN: u64 = 768 << 10;
/// Most bytes that a log smaller than `vsl_space` leaves free in the work directory: a quarter of
/// the free space, up to this limit. They are for counters, other files and the log of a successor.
pub const LOG_SPARED_BYTES_MAX: u64 = 8 << 20;
/// Most bytes of a frame that are shown in the log, regardless of `vsl_reclen`.
pub const H2_LOGGED_FRAME_BYTES_MAX: usize = 4 << 10;
/// Most options besides `close` and `keep-alive` that the Connection lines of a head may name: each
/// is looked up among its fields.
pub const CONNECTION_OPTIONS_MAX: usize = 64;
/// Most TLS handshakes in progress on one event loop. Beyond it the oldest one is dropped, since
/// the longest-running handshakes are the least likely to complete.
pub const TLS_HANDSHAKES_MAX: usize = 1024;
/// Most bytes of a client's first message (ClientHello), including its framing.
pub const TLS_HELLO_BYTES_MAX: usize = 32 << 10;
/// Most bytes of authority names sent to clients whose certificates are requested; beyond it none
/// are sent. A list in a handshake is limited to 64 KiB.
pub const TLS_AUTHORITY_NAMES_BYTES_MAX: usize = 16 << 10;
/// Minimum time before the system's authorities are read again after an incomplete read, in
/// seconds; triggered by a handshake that needs them.
pub const AUTHORITIES_RETRY_SECONDS: u64 = 5;
/// Bytes that a TLS connection encrypts ahead of the data accepted by its client.
pub const TLS_SEND_AHEAD_BYTES: usize = 64 << 10;
/// Like [`TLS_SEND_AHEAD_BYTES`], while request memory is nearly exhausted (parameter
/// `requests_memory_max`): one record.
pub const TLS_SEND_AHEAD_BYTES_SHORT: usize = 16 << 10;
/// Most active requests on one HTTP/3 connection. A request that its client has reset counts until
/// its work is over.
pub const HTTP3_STREAMS_MAX: usize = 100;
/// Most open streams of a client besides its requests: its control stream, the QPACK streams, and
/// unknown ones.
pub const HTTP3_STREAMS_BESIDE_MAX: u32 = 16;
/// Most frames without content (unknown ones, empty DATA) on a request's stream.
pub const HTTP3_IDLE_FRAMES_MAX: u64 = 1000;
/// Multiple of the announced head limit up to which a head is decoded, so that a head beyond the
/// limit is answered with 431; a larger one is not treated as a request.
pub const HTTP3_FIELD_BYTES_FACTOR: usize = 4;
/// Memory accounted for a stream before its head arrives, in bytes: its task, and its QUIC state.
pub const HTTP3_STREAM_BYTES: usize = 4 << 10;
/// Time for which a connection that accepts no more requests is kept after the last response was
/// acknowledged, in milliseconds: the client should close it in this time.
pub const HTTP3_LEAVE_MILLISECONDS_MAX: u64 = 500;
/// Time for which a stopping worker is kept after a connection was closed, in milliseconds, so that
/// the client receives the close.
pub const HTTP3_GOODBYE_MILLISECONDS: u64 = 20;
/// Most QUIC handshakes in progress on one event loop. Further clients are ignored, and retry.
pub const QUIC_HANDSHAKES_MAX: usize = 512;
/// Number of handshakes in progress above which further clients have to validate their address
/// first (Retry).
pub const QUIC_HANDSHAKES_TRUSTED_MAX: usize = 64;
/// Most QUIC connections of one event loop. Further clients are refused.
pub const QUIC_CONNECTIONS_MAX: usize = 50_000;
/// Most bytes stored of a client's data before it is accepted.
pub const QUIC_WAITING_BYTES_MAX: u64 = 16 << 10;
/// Limit of the stored bytes of all clients that are not yet accepted; see
/// [`QUIC_WAITING_BYTES_MAX`].
pub const QUIC_WAITING_BYTES_SUM_MAX: u64 = 4 << 20;
/// Most bytes of a request's body that wait in one stream.
pub const QUIC_STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// Most bytes of request bodies that wait in all streams of a connection.
pub const QUIC_CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Initial limit of response bytes that a connection holds until the client has acknowledged them.
pub const QUIC_SEND_BYTES_MIN: u64 = 64 << 10;
/// Largest limit of such bytes, reached as the client's path proves to carry more.
pub const QUIC_SEND_BYTES_MAX: u64 = 4 << 20;
/// Limit of such bytes for all connections of a listener on one event loop, beyond the first
/// [`QUIC_SEND_BYTES_MIN`] of each.
pub const QUIC_SEND_BYTES_SUM_MAX: u64 = 128 << 20;
/// QUIC idle timeout, in seconds, whatever the requests of the connection wait for.
pub const QUIC_SILENCE_SECONDS_MAX: u64 = 120;
/// Most datagrams that wait for an event loop after they arrived at another one. Further ones are
/// lost.
pub const QUIC_HANDED_DATAGRAMS_MAX: usize = 1024;
/// Minimum time between two stateless resets in answer to datagrams of unknown connections, in
/// microseconds.
pub const QUIC_RESET_MICROSECONDS_MIN: u64 = 1000;
/// Most TLS settings for origins whose configurations and sessions are kept by one worker; beyond
/// it the least recently used one is dropped.
pub const ORIGIN_TLS_SETTINGS_MAX: usize = 1024;
/// Most TLS sessions stored for each of them.
pub const ORIGIN_TLS_SESSIONS_MAX: usize = 8;
/// Smallest slice of a resource, in bytes.
pub const SLICE_BYTES_MIN: u64 = 64 << 10;
/// Largest slice of a resource, in bytes.
pub const SLICE_BYTES_MAX: u64 = 1 << 30;
/// Number of resources for which an event loop remembers that they cannot be fetched in slices.
pub const SLICE_REFUSALS_MAX: usize = 1024;
/// Number of resources whose obsolete slices may wait for removal; those of other resources stay
/// until they are evicted.
pub const SLICE_ORPHANS_MAX: usize = 1024;
/// Most names of a certificate that are listed in the error when it does not match the requested
/// host.
pub const TLS_FAILURE_NAMES_MAX: usize = 8;
/// Most bytes that a TLS connection to an origin buffers while the origin does not read.
pub const ORIGIN_TLS_BUFFER_BYTES_MAX: usize = 32 << 10;
/// Most certificates that are ordered from an authority.
pub const ACME_CERTIFICATES_MAX: usize = 100;
/// Most names of one such certificate: the limit of Let's Encrypt.
pub const ACME_NAMES_MAX: usize = 100;
/// Longest response of an authority that is read, in bytes.
pub const ACME_RESPONSE_BYTES_MAX: usize = 256 << 10;
/// Time limit for one response of an authority, in seconds.
pub const ACME_RESPONSE_SECONDS: u64 = 30;
/// Time limit for an order as a whole, in seconds.
pub const ACME_ORDER_SECONDS: u64 = 300;
/// Longest text of an authority that is shown, in bytes.
pub const ACME_TEXT_BYTES_MAX: usize = 1000;
/// Largest file in the folder of account and certificates that is read, in bytes.
pub const ACME_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most challenges that are answered at a time.
pub const ACME_CHALLENGES_MAX: usize = 2 * ACME_NAMES_MAX;
/// Longest pause between two orders that fail, in seconds, unless the authority asks for more.
pub const ACME_PAUSE_SECONDS_MAX: f64 = 28_800.0;
/// Longest pause that an authority may ask for, in seconds.
pub const ACME_RETRY_AFTER_SECONDS_MAX: f64 = 604_800.0;
/// Largest file of certificates or of a key that a backend in VCL names, in bytes.
pub const ORIGIN_PEM_BYTES_MAX: usize = 2 << 20;
/// Most authorities in one file of authorities for client or origin certificates.
pub const AUTHORITIES_MAX: usize = 1000;
/// Most concurrent requests on one HTTP/2 connection to an origin, which may allow fewer. Further
/// requests use another connection.
pub const HTTP2_ORIGIN_STREAMS_MAX: usize = 100;
/// Bytes of a body that an origin may send over HTTP/2 ahead of the reader: the window of a stream.
pub const HTTP2_ORIGIN_WINDOW_BYTES: usize = 256 << 10;
/// Bytes of request bodies queued for one HTTP/2 connection, for each stream.
pub const HTTP2_ORIGIN_SEND_BYTES_MAX: usize = 64 << 10;
/// Number of frames without use (PING, SETTINGS, empty DATA and the like) that an origin may send
/// at once over HTTP/2.
pub const HTTP2_LIGHT_FRAMES_MAX: u64 = 2000;
/// Number of further such frames permitted each second, if the connection is otherwise idle.
pub const HTTP2_LIGHT_FRAMES_A_SECOND: u64 = 200;
/// Time limit for closing an HTTP/2 connection to an origin that is no longer needed, in seconds.
pub const HTTP2_ORIGIN_CLOSE_SECONDS_MAX: u64 = 5;
/// Largest file that `copal preflight` reads, besides VCL, in bytes.
pub const PREFLIGHT_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most files that complete one unit (drop-ins).
pub const PREFLIGHT_DROP_INS_MAX: usize = 256;
/// Most words of a command line, after substitution of variables.
pub const PREFLIGHT_WORDS_MAX: usize = 4096;
/// Longest word of a command line, in bytes, after substitution of variables.
pub const PREFLIGHT_WORD_BYTES_MAX: usize = 128 << 10;
/// Most connections to `copal observe` at once.
pub const OBSERVE_CONNECTIONS_MAX: usize = 16;
/// Most scrapes that `copal observe` answers at once.
pub const OBSERVE_SCRAPES_MAX: usize = 8;
/// Time limit of a connection to `copal observe`, in seconds: request, response, close.
pub const OBSERVE_SECONDS_MAX: u64 = 10;
/// Most listening sockets of a `copal observe` that a manager starts.
pub const OBSERVE_SOCKETS_MAX: usize = 16;
/// Largest request head that `copal observe` reads, in bytes.
pub const OBSERVE_HEAD_BYTES_MAX: usize = 64 << 10;
/// Most series that a scrape returns.
pub const OBSERVE_SERIES_MAX: usize = 10_000;
/// Most of these series that belong to histograms.
pub const OBSERVE_HISTOGRAM_SERIES_MAX: usize = 5_000;
/// Most names of metrics in a request.
pub const OBSERVE_NAMES_MAX: usize = 256;
/// Longest value of a label, in bytes; longer ones are cut.
pub const OBSERVE_LABEL_BYTES_MAX: usize = 256;
/// Age of the last change of its counters, in seconds, at which a process counts as down.
pub const OBSERVE_STALE_SECONDS: u64 = 10;
/// Most connections to the dashboard at once, streams included.
pub const DASH_CONNECTIONS_MAX: usize = 96;
/// Most event streams of the dashboard at once.
pub const DASH_STREAMS_MAX: usize = 32;
/// Time limit of one write to an event stream, in seconds. A reader that stops is cut then.
pub const DASH_STREAM_WRITE_SECONDS_MAX: u64 = 15;
/// Largest request body that the dashboard reads, in bytes.
pub const DASH_BODY_BYTES_MAX: usize = 16 << 10;
/// Most sessions of the dashboard; the one unused for longest gives way.
pub const DASH_SESSIONS_MAX: usize = 256;
/// Life of a session, in seconds.
pub const DASH_SESSION_SECONDS_MAX: u64 = 12 * 3600;
/// Time after which a session without operations may only look, in seconds.
pub const DASH_OPERATE_IDLE_SECONDS_MAX: u64 = 30 * 60;
/// Most logins that one address may try in a minute.
pub const DASH_LOGINS_A_MINUTE: usize = 5;
/// Most logins from all addresses in a minute: each may cost the hash of a password.
pub const DASH_ALL_LOGINS_A_MINUTE: usize = 60;
/// Most addresses whose logins are remembered.
pub const DASH_LOGIN_ADDRESSES_MAX: usize = 1024;
/// Life of a token for one login, in seconds.
pub const DASH_TOKEN_SECONDS_MAX: u64 = 60;
/// Most tokens that are valid at once; the oldest gives way.
pub const DASH_TOKENS_MAX: usize = 16;
/// Largest file of users of the dashboard, in bytes.
pub const DASH_USERS_BYTES_MAX: u64 = 256 << 10;
/// Longest name (of a VCL, a backend) or tag in an operation of the dashboard, in bytes.
pub const DASH_NAME_BYTES_MAX: usize = 1024;
/// Longest ban of the dashboard, in bytes.
pub const DASH_BAN_BYTES_MAX: usize = 8 << 10;
/// Most words of a ban of the dashboard.
pub const DASH_BAN_WORDS_MAX: usize = 255;
/// Most tags in an operation of the dashboard.
pub const DASH_TAGS_MAX: usize = 128;
/// Largest order of the dashboard to the manager, in bytes.
pub const DASH_ORDER_BYTES_MAX: usize = 256 << 10;
/// Largest answer of the manager that the dashboard reads, in bytes.
pub const DASH_ANSWER_BYTES_MAX: usize = 4 << 20;
/// Entries of each ranking of the dashboard.
pub const DASH_TOPS_ENTRIES_MAX: usize = 1000;
/// Longest text of an entry of the dashboard (URL, host), in bytes; longer ones are cut.
pub const DASH_TEXT_BYTES_MAX: usize = 256;
/// Failed and slow requests that the dashboard keeps.
pub const DASH_REQUESTS_MAX: usize = 500;
/// Other requests that the dashboard keeps.
pub const DASH_SAMPLES_MAX: usize = 100;
/// Most requests in a second that the dashboard explains.
pub const DASH_REQUESTS_A_SECOND: usize = 20;
/// Longest explanation of a request that the dashboard keeps, in bytes.
pub const DASH_WHY_BYTES_MAX: usize = 4096;
/// Duration from which a request counts as slow in the dashboard, in milliseconds.
pub const DASH_SLOW_MILLISECONDS: u64 = 1000;
/// Requests in a second beyond which the dashboard ranks a share of them only.
pub const DASH_RANKED_A_SECOND: u64 = 5000;
/// Events that the dashboard keeps.
pub const DASH_EVENTS_MAX: usize = 256;
/// Backends that the dashboard shows; further ones are counted.
pub const DASH_BACKENDS_MAX: usize = 200;
/// Most access logs of a `copal observe`.
pub const ACCESS_LOGS_MAX: usize = 16;
/// Most bytes of lines that wait for the writer of an access log.
pub const ACCESS_LOG_QUEUE_BYTES_MAX: usize = 8 << 20;
/// Most transactions that `copal observe` holds until they are complete.
pub const OBSERVE_TRANSACTIONS_MAX: usize = 10_000;
/// Longest time for which `copal observe` holds a transaction, in seconds.
pub const OBSERVE_TRANSACTION_SECONDS_MAX: u64 = 120;
/// Most spans that wait for the collector; the oldest give way.
pub const TRACE_QUEUE_SPANS_MAX: usize = 8192;
/// Most spans that are sent at once.
pub const TRACE_BATCH_SPANS_MAX: usize = 512;
/// Most spans of one trace.
pub const TRACE_SPANS_MAX: usize = 1000;
/// Most reasons of one span.
pub const TRACE_REASONS_MAX: usize = 16;
/// Longest text of an attribute of a span, in bytes.
pub const TRACE_TEXT_BYTES_MAX: usize = 512;
/// Most requests that `copal keys` reads.
pub const KEYS_SAMPLE_MAX: usize = 1_000_000;
/// Most different names (arguments, cookies, hosts, …) that `copal keys` tells apart.
pub const KEYS_NAMES_MAX: usize = 256;
/// Longest such name, in bytes.
pub const KEYS_NAME_BYTES_MAX: usize = 128;
/// Most listeners with histograms of their own; the last one takes the requests of all others.
pub const HISTOGRAM_LISTENERS_MAX: usize = 12;
/// Most backends whose histograms are published.
pub const HISTOGRAM_BACKENDS_MAX: usize = 250;
/// Most nodes of a fleet.
pub const FLEET_NODES_MAX: usize = 64;
/// Longest message between nodes of a fleet, with its signature, in bytes.
pub const FLEET_MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Longest message between the manager and the fleet's agent, in bytes.
pub const FLEET_LINK_BYTES_MAX: usize = 1 << 20;
/// Longest name of a node of a fleet, in bytes.
pub const FLEET_NODE_NAME_BYTES_MAX: usize = 64;
/// Most invalidations that a node keeps for members that have not confirmed them. Beyond, the
/// oldest become one that removes everything.
pub const FLEET_OUTBOX_ENTRIES_MAX: usize = 1 << 20;
/// Like [`FLEET_OUTBOX_ENTRIES_MAX`], in bytes.
pub const FLEET_OUTBOX_BYTES_MAX: u64 = 256 << 20;
/// Size at which a file of the outbox is followed by the next one, in bytes.
pub const FLEET_OUTBOX_SEGMENT_BYTES: u64 = 4 << 20;
/// Size at which the file with a node's state is written anew, in bytes.
pub const FLEET_STATE_BYTES_MAX: u64 = 1 << 20;
/// Most invalidations of one publisher that a node accepts ahead of a missing one.
pub const FLEET_WINDOW_MAX: usize = 16 << 10;
/// Most invalidations that are sent again at once to a member that misses them.
pub const FLEET_RESEND_MAX: u64 = 1024;
/// Most invalidations on their way to the stream that it has not confirmed.
pub const FLEET_PUBLISHING_MAX: u64 = 4096;
/// Most commands that wait for the members of a fleet at once.
pub const FLEET_WAITS_MAX: usize = 1024;
/// Most invalidations that one confirmation reports with their numbers of objects.
pub const FLEET_RECEIPTS_MAX: usize = 2048;
/// Most invalidations of the fleet's agent that wait for the worker; the agent waits beyond.
pub const FLEET_APPLIES_MAX: usize = 1024;
/// Most invalidations that the worker gets at once.
pub const FLEET_ORDERS_MAX: usize = 128;
/// Most tags of an invalidation by tags.
pub const FLEET_TAGS_MAX: usize = 256;
/// Most lines of the fleet's agent that are reported in ten seconds.
pub const FLEET_LINES_MAX: u32 = 20;
/// Longest such line, in bytes.
pub const FLEET_LINE_BYTES_MAX: usize = 1024;
/// Longest time that a command waits for the members of a fleet, in seconds.
pub const FLEET_WAIT_SECONDS_MAX: f64 = 3600.0;
/// Most invalidations by tags that are kept for fetches under way; beyond, all these are hit.
pub const FLEET_ARRIVALS_MAX: usize = 4096;
/// Most removed nodes whose late messages are recognized.
pub const FLEET_FORGOTTEN_MAX: usize = 64;
/// Most servers of a fleet.
pub const FLEET_SERVERS_MAX: usize = 16;
/// Longest file of credentials for the servers of a fleet, in bytes.
pub const FLEET_CREDENTIALS_BYTES_MAX: u64 = 64 << 10;
/// Most messages of other nodes, not stored, that wait for the machine of a fleet's agent. Beyond,
/// they are dropped: `fleet` repairs that.
pub const FLEET_RECEIVED_MAX: usize = 1024;
/// Most messages on their way from a fleet's agent to its server that the socket has not taken.
pub const FLEET_SENDING_MAX: usize = 8192;
/// Number of writes and messages that wait for the disk or the manager, above which a fleet's agent
/// reads nothing more from the stream.
pub const FLEET_PENDING_MAX: usize = 4096;
/// Most writes of a fleet's agent that are made durable at once.
pub const FLEET_BATCH_MAX: usize = 1024;
/// Most messages that a fleet's agent asks the stream for at once.
pub const FLEET_FETCH_MAX: usize = 256;
/// Size of the stream of a fleet, in bytes.
pub const FLEET_STREAM_BYTES_MAX: i64 = 1 << 30;
/// Time limit of every wait in a test, in seconds. A busy machine must not reach it, only a hang.
pub const TEST_HANG_SECONDS: u64 = 300;
/// Longest frame of a recording, packed and unpacked, in bytes.
pub const RECORDING_FRAME_BYTES_MAX: usize = 1 << 20;
/// Longest request in a recording, with everything that it caused, in bytes. A longer one is kept
/// without its fields, and not replayed.
pub const RECORDING_EXCHANGE_BYTES_MAX: usize = 512 << 10;
/// Most reasons of one request in a recording.
pub const RECORDING_REASONS_MAX: usize = 16;
/// Most memory for the recorded responses of origins in a replay, in bytes.
pub const REPLAY_ANSWERS_BYTES_MAX: usize = 256 << 20;
/// Longest body that a replay makes, in bytes; longer ones are cut to it.
pub const REPLAY_BODY_BYTES_MAX: u64 = 1 << 20;
/// Most requests that a replay holds, to play them in the order of their starts.
pub const REPLAY_WINDOW_MAX: usize = 4096;
/// Share of the requests that the old VCL may handle in another way than was recorded, in percent.
pub const REPLAY_NOISE_PERCENT_MAX: f64 = 5.0;
/// Examples of each class of differences in a report.
pub const REPLAY_EXAMPLES_MAX: usize = 3;
/// CPU time of a replay that `vcl.use --compare` starts, in seconds.
pub const REPLAY_GATE_SECONDS_MAX: u64 = 60;
/// Address space of such a replay, in bytes.
pub const REPLAY_GATE_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Size of each of its two caches, in bytes.
pub const REPLAY_GATE_CACHE_BYTES: u64 = 64 << 20;
/// Longest report of it that is shown, in bytes.
pub const REPLAY_REPORT_BYTES_MAX: usize = 32 << 10;
/// Longest compiled VCLs and parameters for it, in bytes.
pub const REPLAY_PROGRAMS_BYTES_MAX: usize = 64 << 20;
