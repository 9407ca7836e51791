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
/// Most points on the ring of a shard director (8 bytes each).
pub const SHARD_POINTS_MAX: usize = 4 << 20;
/// Longest command line before authentication, in bytes.
pub const CLI_UNAUTHENTICATED_LINE_BYTES_MAX: usize = 80;
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
/// Longest host, port or service name that dynamic directors resolve, in bytes.
pub const DYNAMIC_NAME_BYTES_MAX: usize = 255;
/// Most names that one worker resolves at once; others wait for their turn.
pub const DYNAMIC_LOOKUPS_MAX: usize = 32;
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
