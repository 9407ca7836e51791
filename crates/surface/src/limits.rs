//! Named maxima: every queue, retry, table and recursion that is not a parameter.

/// Deepest nesting of blocks, parentheses and includes that the VCL compiler follows.
pub const VCL_NESTING_MAX: usize = 200;
/// Largest VCL source, all includes together, in bytes.
pub const VCL_SOURCE_BYTES_MAX: usize = 128 << 20;
/// Deepest chain of `call` at run time.
pub const VCL_CALL_DEPTH_MAX: usize = 64;
/// Deepest chain of directors followed to find a backend.
pub const DIRECTOR_DEPTH_MAX: usize = 16;
/// How often a fetch of an old dialect may go on to another member of a director when one yields no connection.
pub const DIRECTOR_TRIES_MAX: usize = 100;
/// Most requests (by digest) for which one backend counts as sick at once (saint mode).
pub const BACKEND_TROUBLES_MAX: usize = 1000;
/// If a backend is in trouble for this many digests at once it counts as sick for all (saint mode of the old dialects).
pub const SAINTMODE_THRESHOLD: usize = 10;
/// Into how many parts the window of `.fail_ratio` is cut: it moves by one of them at a time.
pub const FAIL_WINDOW_SLOTS: usize = 10;
/// How many fetches from a backend with a `.retry_budget` may be repeated at once.
pub const RETRY_RESERVE: u64 = 10;
/// Smallest share of its load that a backend gets when its `.slow_start` begins.
pub const SLOW_START_SHARE_MIN: f64 = 0.1;
/// Most points on the ring of a shard director (8 bytes each).
pub const SHARD_POINTS_MAX: usize = 4 << 20;
/// Longest command line before authentication, in bytes.
pub const CLI_UNAUTHENTICATED_LINE_BYTES_MAX: usize = 80;
/// Longest description that a manager hands to its successor, in bytes: all VCL texts are in it.
pub const HANDOVER_BYTES_MAX: usize = 512 << 20;
/// Most descriptors that a manager hands to its successor.
pub const HANDOVER_DESCRIPTORS_MAX: usize = 16 << 10;
/// Most files that are removed of a worker's shared memory; a directory with more is set aside as it is.
pub const SHARED_FILES_MAX: usize = 128 << 10;
/// Most CLI connections at once.
pub const CLI_CONNECTIONS_MAX: usize = 256;
/// How long a CLI client may take to show that it knows the secret, in seconds.
pub const CLI_UNAUTHENTICATED_SECONDS_MAX: u64 = 60;
/// How long a CLI client may take to read a reply, in seconds.
pub const CLI_WRITE_SECONDS_MAX: u64 = 60;
/// Most lines of the history of varnishadm.
pub const CLI_HISTORY_LINES_MAX: usize = 1000;
/// Longest command of the CLI, in bytes, except one that carries a VCL ([`crate::cli::CARRYING_VCL`]).
pub const CLI_LINE_BYTES_MAX: usize = 1 << 20;
/// Longest command that carries a VCL, in bytes: the largest VCL, quoted or as a here-document. Also bounds the
/// incomplete commands of all CLI connections together.
pub const CLI_COMMAND_BYTES_MAX: usize = 160 << 20;
/// How much of a command is shown (in the log of the CLI's traffic, or when the `-I` file is run), in bytes.
pub const CLI_SHOWN_BYTES_MAX: usize = 4096;
/// Bytes of a body that may be under way between an origin and a client when nothing is stored.
pub const PASS_IN_FLIGHT_BYTES_MAX: usize = 256 << 10;
/// The same while requests hold nearly as much as all of them together may (parameter `requests_memory_max`).
pub const PASS_IN_FLIGHT_BYTES_SHORT: usize = 16 << 10;
/// What each request and each fetch under way counts for at least: its buffers, heads, log and connection, in bytes.
pub const REQUEST_BASE_BYTES: usize = 32 << 10;
/// How much an event loop takes at a time from the memory that all requests may hold, in bytes.
pub const REQUEST_GRANT_BYTES: usize = 64 << 10;
/// Most bytes that one step of a body filter takes in or puts out, whatever its input: two windows of gzip.
pub const FILTER_STEP_BYTES_MAX: usize = 64 << 10;
/// Smallest buffer of a body filter, in bytes, however short its output is announced to be.
pub const FILTER_STEP_BYTES_MIN: usize = 4 << 10;
/// Most steps of body filters for one body before other tasks of the event loop get their turn.
pub const FILTER_STEPS_AT_ONCE_MAX: usize = 16;
/// Highest level of the filter `brotli`, which works on the event loop: the next one takes ten times as long. Copies have no such bound.
pub const BROTLI_FILTER_LEVEL_MAX: u64 = 9;
/// Highest level of the filter `zstd`, likewise.
pub const ZSTD_FILTER_LEVEL_MAX: u64 = 12;
/// Most filters of one body.
pub const FILTERS_MAX: usize = 8;
/// Most fragments that one page includes; the rest of the page is then sent as it stands.
pub const ESI_INCLUDES_MAX: usize = 10_000;
/// Longest plan of one page, in bytes; the rest of the page is then sent as it stands.
pub const ESI_PLAN_BYTES_MAX: usize = 1 << 20;
/// Longest address of a fragment (`src`) in a page, in bytes; a longer one is not included.
pub const ESI_SRC_BYTES_MAX: usize = 8 << 10;
/// What the compressor of a page with ESI may have made and not passed on, in bytes.
pub const ESI_GZIP_QUEUE_BYTES: usize = 128 << 10;
/// Bytes of a fragment that may wait until the page that includes it has come that far.
pub const FRAGMENT_IN_FLIGHT_BYTES_MAX: usize = 64 << 10;
/// The same while requests hold nearly as much as all of them together may (parameter `requests_memory_max`).
pub const FRAGMENT_IN_FLIGHT_BYTES_SHORT: usize = 4 << 10;
/// In pieces of at most this many bytes.
pub const FRAGMENT_PIECE_BYTES_MAX: usize = 16 << 10;
/// Most languages in one `Accept-Language` that are compared without regard to their order, or searched for the preferred one.
pub const COMPARED_LANGUAGES_MAX: usize = 32;
/// Longest body of a QUERY whose response is stored, in bytes.
pub const QUERY_BYTES_MAX: u64 = 64 << 10;
/// How long, in seconds, a stale object is at least served at once after the origin failed, while one request asks again.
pub const STALE_ON_ERROR_SECONDS_MIN: f64 = 10.0;
/// Most groups that one `Cache-Groups` or `Cache-Group-Invalidation` names; more are ignored.
pub const CACHE_GROUPS_MAX: usize = 32;
/// Longest name of a cache group, in characters; a longer one is ignored.
pub const CACHE_GROUP_CHARACTERS_MAX: usize = 32;
/// Most variants of one key under `http_policy=rfc`; another one replaces the oldest.
pub const VARIANTS_MAX: usize = 1000;
/// Memory of one decompressor besides its output, in bytes: its window and its tables.
pub const GUNZIP_STATE_BYTES: usize = 48 << 10;
/// Memory of one compressor besides its output, in bytes.
pub const GZIP_STATE_BYTES: usize = 384 << 10;
/// Largest window of brotli that is unpacked, in bytes: all that RFC 7932 has. What goes beyond ("large window") is
/// refused.
pub const UNBROTLI_WINDOW_BYTES_MAX: usize = 16 << 20;
/// Memory of one decompressor of brotli besides its window and its output, in bytes.
pub const UNBROTLI_STATE_BYTES: usize = 512 << 10;
/// Largest window of Zstandard that is unpacked, in bytes: RFC 9659 allows no more for a content coding.
pub const UNZSTD_WINDOW_BYTES_MAX: usize = 8 << 20;
/// Memory of one decompressor of Zstandard besides its window and its output, in bytes.
pub const UNZSTD_STATE_BYTES: usize = 512 << 10;
/// Most memory of one compressor of brotli besides its output, in bytes, its window included: that of level 9.
pub const BROTLI_STATE_BYTES_MAX: usize = 40 << 20;
/// Window of what is packed with brotli, as a power of two: half a megabyte, so that a phone can unpack it.
pub const BROTLI_WINDOW_BITS: u32 = 19;
/// Most memory of one compressor of Zstandard besides its output, in bytes, its window included: that of level 19.
pub const ZSTD_STATE_BYTES_MAX: usize = 96 << 20;
/// Window of what is packed with Zstandard, as a power of two.
pub const ZSTD_WINDOW_BITS: u32 = 20;
/// Most bytes of a stored body that a reader holds if they lie in a file.
pub const FILED_PIECE_BYTES: usize = 64 << 10;
/// Shortest body that a compressed copy is made of, in bytes: a shorter one fits into a packet anyway.
pub const COPIED_BYTES_MIN: u64 = 1 << 10;
/// Longest body that a compressed copy is made of, in bytes, and the longest that it may unpack to.
pub const COPIED_BYTES_MAX: u64 = 16 << 20;
/// A compressed copy that is not shorter than the original by this part of it is not kept.
pub const COPY_GAIN_PART: u64 = 20;

const _: () = assert!(FILTER_STEP_BYTES_MAX <= PASS_IN_FLIGHT_BYTES_MAX, "what a filter puts out fits on its way");
const _: () = assert!(FILTER_STEP_BYTES_MAX >= 32 << 10, "a step is no smaller than the window of gzip");
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
/// Most interim responses that wait for one client, in bytes of memory. Further ones are not passed on.
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
/// Most tokens (words, numbers, strings and signs) of one VCL; a token and what is made from it take up to 160 bytes.
pub const VCL_TOKENS_MAX: usize = 16 << 20;
/// After this many things that are not tokens the compiler stops reading.
pub const VCL_NO_TOKENS_MAX: usize = 100_000;
/// Most messages kept of one VCL compilation; the others are counted.
pub const VCL_MESSAGES_MAX: usize = 1_000;
/// Most memory for the global variables of the VMOD `var`, in bytes.
pub const VAR_GLOBAL_BYTES_MAX: usize = 64 << 20;
/// Longest file that `std.fileread()` and `std.blobread()` read, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most memory for the files that they keep for one VCL, in bytes; others are read each time.
pub const KEPT_FILES_BYTES_MAX: usize = 64 << 20;
/// Most token buckets that the VMOD `vsthrottle` keeps; each takes about 100 bytes.
pub const THROTTLE_BUCKETS_MAX: usize = 1 << 20;
/// For how many keys the cache remembers how their objects left; 32 bytes each, plus the texts of bans.
pub const DEPARTED_KEYS_MAX: usize = 1 << 14;
/// Longest text (of a ban, names of cookies, a request line) in one record of a reason, in bytes.
pub const WHY_TEXT_BYTES_MAX: usize = 200;
/// Most cookies of a request that its reason names.
pub const WHY_COOKIES_MAX: usize = 64;
/// Most fields that `private` and `no-cache` of one response can name; with more they apply to all of it.
pub const UNSHARED_FIELDS_MAX: usize = 64;
/// For how many paths `copal why` remembers what was in the cache according to the log.
pub const WHY_PATHS_MAX: usize = 10_000;
/// Most addresses of one such path.
pub const WHY_NEIGHBOURS_MAX: usize = 32;
/// Most choices of one rule of the VMOD `accept`.
pub const ACCEPT_CHOICES_MAX: usize = 10_000;
/// Most criteria of one filter of the VMOD `querystring`.
pub const QUERYSTRING_CRITERIA_MAX: usize = 10_000;
/// Most names that the dynamic directors of one VCL resolve; the least recently used one makes room.
pub const DYNAMIC_DOMAINS_MAX: usize = 10_000;
/// Most addresses (or targets of a service) that are used from one answer.
pub const DYNAMIC_ADDRESSES_MAX: usize = 256;
/// Longest time for which an answer to the name of a backend is good, whatever its time to live says, in seconds.
pub const FOLLOWED_TTL_SECONDS_MAX: f64 = 3600.0;
/// Shortest such time, in seconds.
pub const FOLLOWED_TTL_SECONDS_MIN: f64 = 1.0;
/// How long a lookup of such a name may take, in seconds.
pub const FOLLOWED_LOOKUP_SECONDS_MAX: u64 = 30;
/// Longest host, port or service name that dynamic directors resolve, in bytes.
pub const DYNAMIC_NAME_BYTES_MAX: usize = 255;
/// Most names that one worker resolves at once; others wait for their turn.
pub const DYNAMIC_LOOKUPS_MAX: usize = 32;
/// Most names that one worker looks up at once for `std.ip()` and `unix`;
pub const VMOD_LOOKUPS_MAX: usize = 32;
/// most that wait for their turn,
pub const VMOD_LOOKUPS_WAITING_MAX: usize = 256;
/// and how long one may take, its wait included, in seconds.
pub const VMOD_LOOKUP_SECONDS_MAX: u64 = 10;
/// One of so many descriptors of a worker is kept back from clients: for connections to origins, probes, files and VCL.
pub const DESCRIPTORS_RESERVED_PART: u64 = 8;
/// Most descriptors that are kept back.
pub const DESCRIPTORS_RESERVED_MAX: u64 = 1024;
/// Where descriptors are short, one of so many idle client connections of an event loop is closed at a time, or one at least;
pub const DISMISSED_PART: usize = 8;
/// at most so many,
pub const DISMISSED_AT_ONCE_MAX: usize = 32;
/// and only those that have been idle for so long, in seconds. So it is with TLS handshakes that take so long.
pub const DISMISSED_IDLE_SECONDS_MIN: u64 = 1;
/// A worker that runs out of file descriptors reports this at most once in this many seconds.
pub const DESCRIPTOR_WARNING_SECONDS: u64 = 60;
/// Most steps that a worker may report while the manager waits for one reply; each gives it more time.
pub const WORKER_STEPS_MAX: usize = 2 * STORAGES_MAX;
/// How many consecutive times a worker may fail to take over a storage, or the journal of bans, before that starts
/// empty.
pub const RECOVERY_FAILURES_MAX: u32 = 3;
/// A request buffer that has grown beyond this is not kept for the next request, in bytes.
pub const KEPT_BUFFER_BYTES_MAX: usize = 64 << 10;
/// Longest PROXY header of version 1 that is waited for, CR LF included, in bytes (specification §2.1).
pub const PROXY_HEADER_1_BYTES_MAX: usize = 107;
/// Longest PROXY header of version 2 that is waited for, its sixteen fixed bytes included. Compat: what Varnish 7.1 reads.
pub const PROXY_HEADER_2_BYTES_MAX: usize = 1024;
/// This many workers that die of SIGKILL within [`SIGKILLS_SECONDS`] are taken as a sign that memory runs out.
pub const SIGKILLS_MAX: usize = 3;
/// See [`SIGKILLS_MAX`].
pub const SIGKILLS_SECONDS: u64 = 60;
/// Longest text that VCL gives for a failure (`return (fail("…"))`), in bytes; the log cuts it to `vsl_reclen`.
pub const FAILURE_BYTES_MAX: usize = 4 << 10;
/// Longest regular expression that VCL builds at run time, in bytes: the most that PCRE2 could compile.
pub const DYNAMIC_REGEX_BYTES_MAX: usize = 64 << 10;
/// Longest ban expression that VCL builds, in bytes.
pub const VCL_BAN_BYTES_MAX: usize = 64 << 10;
/// Most texts of one ban's expression that are told apart (`(^|,)(a|b|c)(,|$)` has three); with more the ban is tested like
/// any other.
pub const BAN_PATTERN_LITERALS_MAX: usize = 1024;
/// Most bytes of these texts together.
pub const BAN_PATTERN_BYTES_MAX: usize = 64 << 10;
/// By so many bytes the index of bans goes of the beginning of a value.
pub const BAN_PREFIX_BYTES_MAX: usize = 64;
/// Most fields (`obj.http.x-url`, `req.url`) whose bans are indexed; bans on others are tested one by one.
pub const BAN_INDEX_FIELDS_MAX: usize = 32;
/// Most kinds of lists (by their separators) that one field is taken apart as for the index of bans.
pub const BAN_INDEX_LISTS_MAX: usize = 4;
/// If an object has not been tested against at most this many bans, they are tested one by one rather than looked up.
pub const BAN_WALK_MAX: usize = 16;
/// Most bans that are dropped, completed or looked at by the lurker while the list is locked once.
pub const BAN_LIST_STEP_MAX: usize = 1024;
/// Most ranges of one request that are heeded; a request for more gets the whole.
pub const RANGES_MAX: usize = 64;
/// Most parts of one response (one key and variant) that are kept beside one another.
pub const PARTS_MAX: usize = 64;
/// A stored part is copied into a larger one only if it has at most this many times the bytes that were received for that.
pub const PART_JOIN_RATIO_MAX: u64 = 16;
/// Longest `No-Vary-Search` that is heeded, in bytes, all its lines together.
pub const NO_VARY_SEARCH_BYTES_MAX: usize = 1024;
/// Most names in one of its lists.
pub const NO_VARY_SEARCH_NAMES_MAX: usize = 64;
/// Longest query that such a rule is applied to, in bytes.
pub const NO_VARY_SEARCH_QUERY_BYTES_MAX: usize = 4 << 10;
/// Most resources whose rules are remembered; the one learnt first makes room.
pub const NO_VARY_SEARCH_RULES_MAX: usize = 1024;
/// Most certificates in one PEM file: the server's, and the chain to its authority.
pub const CERTIFICATE_CHAIN_MAX: usize = 16;
/// Most names of one certificate that clients can ask for.
pub const CERTIFICATE_NAMES_MAX: usize = 1000;
/// Longest subject or issuer of a certificate that is shown, in bytes.
pub const CERTIFICATE_NAME_BYTES_MAX: usize = 1024;
/// How long a client is told to keep a session ticket, in seconds. It is good for as long as its key is.
pub const TLS_TICKET_SECONDS: u32 = 12 * 60 * 60;
/// Most TLS sessions remembered for a listener with early data, whose clients cannot be given tickets.
pub const TLS_SESSIONS_MAX: usize = 10_000;
/// Most bytes that a client may send before its handshake is complete, where early data is accepted.
pub const TLS_EARLY_DATA_BYTES_MAX: u32 = 16 << 10;
/// Most certificates that are served, and as many challenges.
pub const CERTIFICATES_MAX: usize = 4096;
/// Longest file with a certificate, a key, authorities or a response of OCSP, and longest `-A` file, in bytes.
pub const TLS_FILE_BYTES_MAX: u64 = 2 << 20;
/// How deep the blocks of an `-A` file are nested.
pub const TLS_FILE_DEPTH_MAX: usize = 4;
/// How many keys of session tickets are accepted, the one with which tickets are made among them.
pub const TLS_TICKET_KEYS_MAX: usize = 3;
/// Most bytes of bodies that are copied and wait to be written to one connection of HTTP/2, for all its streams together.
pub const H2_QUEUED_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a body that a stream of HTTP/2 sends before others have their turn: the usual largest frame.
pub const H2_SLICE_BYTES_MAX: usize = 16 << 10;
/// Most streams of a connection of HTTP/2 that a client has reset before anybody looked at them.
pub const H2_RESETS_WAITING_MAX: usize = 100;
/// Longest block of header fields of HTTP/2, as it is sent (compressed), as a multiple of `http_req_size`.
pub const H2_HEADER_BLOCK_PART: usize = 4;
/// Most CONTINUATION frames of one block that do not end it.
pub const H2_CONTINUATIONS_MAX: usize = 8;
/// How many frames that carry nothing (PING, SETTINGS, PRIORITY, empty DATA, unknown ones …) a client of HTTP/2 may send at once; the
/// same holds for the control stream of HTTP/3, and streams of which nothing is known.
pub const H2_EMPTY_FRAMES_MAX: u32 = 2000;
/// How many more it may send each second.
pub const H2_EMPTY_FRAMES_PER_SECOND: u32 = 50;
/// And with each request, and each DATA frame that it is sent: it answers those with WINDOW_UPDATE.
pub const H2_EMPTY_FRAMES_EARNED: u32 = 4;
/// And with each KiB that it is sent.
pub const H2_EMPTY_FRAMES_EARNED_PER_KIB: u32 = 1;
/// A SETTINGS frame counts as this many: it may change the window of every stream.
pub const H2_SETTINGS_COST: u32 = 10;
/// A frame of DATA that a client's window makes smaller than this, in bytes, earns it no frames without content: otherwise a window that
/// is opened byte by byte would pay for itself.
pub const H2_DRIBBLE_BYTES: usize = 256;
/// Heads and trailers of a connection that nobody has taken, in bytes, with which it is ended when memory for requests runs short.
pub const H2_HEADS_HELD_BYTES: usize = 128 << 10;
/// Of this many open streams of a connection it is known when they began; of more, the oldest are forgotten.
pub const H2_WATCHED_STREAMS_MAX: usize = 1000;
/// Longest value of a PRIORITY_UPDATE frame that is heeded, in bytes.
pub const PRIORITY_BYTES_MAX: usize = 64;
/// Most of them that wait until the streams are looked after; of more, the oldest are forgotten.
pub const PRIORITIES_WAITING_MAX: usize = 100;
/// Frames of DATA that a client may send on streams whose requests have ended, each at the cost of its stream; the next one ends
/// the connection.
pub const H2_LATE_DATA_MAX: u32 = 16;
/// How long the rest of what a client sends is still read, and thrown away, once all was sent to it and the connection is over, in
/// seconds: closing it at once could cost the client the end of its answer. Over HTTP/1 that is done only after a request that was
/// answered before it was read to its end; over HTTP/2 it is read again so long as long as the system delivers more of what was sent. After a
/// TLS handshake that failed it is done within the time of the handshake.
pub const FAREWELL_SECONDS: u64 = 1;
/// Most bytes that are read then.
pub const FAREWELL_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a frame that are shown in the log, whatever `vsl_reclen` is.
pub const H2_LOGGED_FRAME_BYTES_MAX: usize = 4 << 10;
/// Most options beside `close` and `keep-alive` that the Connection lines of a head may name: each is looked for among its fields.
pub const CONNECTION_OPTIONS_MAX: usize = 64;
/// Most TLS handshakes in progress on one event loop. Beyond it the oldest one is given up, since those that last are the ones that
/// never end.
pub const TLS_HANDSHAKES_MAX: usize = 1024;
/// Most bytes of a client's first message (ClientHello), with what surrounds it.
pub const TLS_HELLO_BYTES_MAX: usize = 32 << 10;
/// Most bytes of the names of authorities that clients are told they may have their certificates from; beyond that they are told none. A
/// list in a handshake can have no more than 64 KiB.
pub const TLS_AUTHORITY_NAMES_BYTES_MAX: usize = 16 << 10;
/// How long after the authorities of the system could not all be read they are read again, in seconds, when a handshake needs them.
pub const AUTHORITIES_RETRY_SECONDS: u64 = 5;
/// Bytes that a TLS connection encrypts ahead of what its client takes.
pub const TLS_SEND_AHEAD_BYTES: usize = 64 << 10;
/// The same while requests hold nearly as much as all of them together may (parameter `requests_memory_max`): one record.
pub const TLS_SEND_AHEAD_BYTES_SHORT: usize = 16 << 10;
/// Most requests under way on one connection of HTTP/3. One that its client has reset counts until its work is over.
pub const HTTP3_STREAMS_MAX: usize = 100;
/// Most streams that a client may have open beside its requests: its control stream, those of QPACK, and what nobody knows.
pub const HTTP3_STREAMS_BESIDE_MAX: u32 = 16;
/// Most frames of a request's stream that carry nothing (unknown ones, empty DATA).
pub const HTTP3_IDLE_FRAMES_MAX: u64 = 1000;
/// A head is decoded up to this many times what is announced as its limit, so that one beyond it is answered with 431; with
/// more it is not a request.
pub const HTTP3_FIELD_BYTES_FACTOR: usize = 4;
/// What a stream counts for that has not brought its head, in bytes: its task, and what QUIC keeps of it.
pub const HTTP3_STREAM_BYTES: usize = 4 << 10;
/// How long a connection that takes no more requests is kept after its client has its last response, in milliseconds: until then
/// the client should close it.
pub const HTTP3_LEAVE_MILLISECONDS_MAX: u64 = 500;
/// How long a worker that stops is kept after a connection was closed, in milliseconds, so that its client is told.
pub const HTTP3_GOODBYE_MILLISECONDS: u64 = 20;
/// Most QUIC handshakes under way on one event loop. Further clients are ignored, and try again.
pub const QUIC_HANDSHAKES_MAX: usize = 512;
/// With so many, further clients have to show first that they are where they say (Retry).
pub const QUIC_HANDSHAKES_TRUSTED_MAX: usize = 64;
/// Most QUIC connections of one event loop. Further clients are refused.
pub const QUIC_CONNECTIONS_MAX: usize = 50_000;
/// Most bytes kept of what a client sends before it is decided whether it is served, and of all of them together.
pub const QUIC_WAITING_BYTES_MAX: u64 = 16 << 10;
/// See [`QUIC_WAITING_BYTES_MAX`].
pub const QUIC_WAITING_BYTES_SUM_MAX: u64 = 4 << 20;
/// Most bytes of a request's body that wait in one stream, in bytes.
pub const QUIC_STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// The same for all streams of a connection.
pub const QUIC_CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of responses that a connection holds until the client has acknowledged them: this many at first,
pub const QUIC_SEND_BYTES_MIN: u64 = 64 << 10;
/// and as the client's path turns out to carry more, at most this many.
pub const QUIC_SEND_BYTES_MAX: u64 = 4 << 20;
/// What all connections of a listener on one event loop may hold so beyond the first of these, in bytes.
pub const QUIC_SEND_BYTES_SUM_MAX: u64 = 128 << 20;
/// A QUIC connection from which nothing was heard for so long is gone, in seconds, whatever its requests wait for.
pub const QUIC_SILENCE_SECONDS_MAX: u64 = 120;
/// Most datagrams that wait for an event loop because they came to another one. Further ones are lost.
pub const QUIC_HANDED_DATAGRAMS_MAX: usize = 1024;
/// Datagrams of connections that are unknown are answered with a stateless reset at most once in so many microseconds.
pub const QUIC_RESET_MICROSECONDS_MIN: u64 = 1000;
/// Most ways of speaking TLS with origins whose configurations and sessions are kept by one worker; the one that was not used
/// for the longest time makes room.
pub const ORIGIN_TLS_TERMS_MAX: usize = 1024;
/// Most TLS sessions kept for each of them.
pub const ORIGIN_TLS_SESSIONS_MAX: usize = 8;
/// Smallest slice of a resource, in bytes.
pub const SLICE_BYTES_MIN: u64 = 64 << 10;
/// Largest slice of a resource, in bytes.
pub const SLICE_BYTES_MAX: u64 = 1 << 30;
/// Of how many resources an event loop remembers that they cannot be had in slices.
pub const SLICE_REFUSALS_MAX: usize = 1024;
/// How many resources may wait until the slices that they left behind are removed; those of others stay until they are evicted.
pub const SLICE_ORPHANS_MAX: usize = 1024;
/// Most names of a certificate that are told when it is not for the host that was wanted.
pub const TLS_FAILURE_NAMES_MAX: usize = 8;
/// Most bytes that a TLS connection to an origin holds because the origin does not take them.
pub const ORIGIN_TLS_BUFFER_BYTES_MAX: usize = 32 << 10;
/// Most certificates that are ordered from an authority.
pub const ACME_CERTIFICATES_MAX: usize = 100;
/// Most names of one of them: as many as Let's Encrypt takes.
pub const ACME_NAMES_MAX: usize = 100;
/// Longest response of an authority that is read, in bytes.
pub const ACME_RESPONSE_BYTES_MAX: usize = 256 << 10;
/// How long an authority may take for one response, in seconds.
pub const ACME_RESPONSE_SECONDS: u64 = 30;
/// How long an order may take as a whole, in seconds.
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
/// Most authorities in one file, of those that issue certificates of clients or origins.
pub const AUTHORITIES_MAX: usize = 1000;
/// Most requests at a time on one HTTP/2 connection to an origin; it may allow fewer. Further ones get a further connection.
pub const HTTP2_ORIGIN_STREAMS_MAX: usize = 100;
/// Bytes of a body that an origin may send over HTTP/2 ahead of whoever takes them: the window of a stream.
pub const HTTP2_ORIGIN_WINDOW_BYTES: usize = 256 << 10;
/// Bytes of requests' bodies that wait to be written to one HTTP/2 connection, for each stream.
pub const HTTP2_ORIGIN_SEND_BYTES_MAX: usize = 64 << 10;
/// Frames without use (PING, SETTINGS, empty DATA and the like) that an origin may send at once over HTTP/2.
pub const HTTP2_LIGHT_FRAMES_MAX: u64 = 2000;
/// How many more it may send a second, if nothing else goes on there.
pub const HTTP2_LIGHT_FRAMES_A_SECOND: u64 = 200;
/// How long an HTTP/2 connection to an origin that is no longer needed may take to end, in seconds.
pub const HTTP2_ORIGIN_CLOSE_SECONDS_MAX: u64 = 5;
/// Largest file that `copal preflight` reads, besides VCL, in bytes.
pub const PREFLIGHT_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most files that complete one unit (drop-ins).
pub const PREFLIGHT_DROP_INS_MAX: usize = 256;
/// Most words of a command line, after variables were put in their places.
pub const PREFLIGHT_WORDS_MAX: usize = 4096;
/// Longest word of a command line, in bytes, after variables were put in their places.
pub const PREFLIGHT_WORD_BYTES_MAX: usize = 128 << 10;
