//! The run-time parameters: name, type, default, bounds, unit, flags and text, one row each.
//!
//! The rows feed `param.show`, `param.set`, `-p`, `-r` and the reference page; the rest of the
//! program reads the typed [`Parameters`]. A parameter that belongs to a design we don't share is
//! accepted and marked [`ACCEPTED_ONLY`]. The bits of those that are sets: `parameter/bits.rs`;
//! parsing and printing of values: `parameter/value.rs`. Source: observed `param.show` of Varnish
//! 7.1.1.

pub mod bits;
pub mod former;
pub mod value;

pub use bits::{
    BitRow, COMPILER_BITS, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, compiler, debug, experimental, feature,
};

use crate::encoding::Encodings;
use crate::fleet::WhenLost;
use serde::{Deserialize, Serialize};

/// Format and bounds of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// Seconds, printed with three decimals.
    Seconds,
    /// A number, printed as `%g`.
    Double,
    /// `on` or `off`.
    Bool,
    /// A whole number.
    Unsigned,
    /// A size in bytes, with unit letters.
    Bytes,
    /// `min,max,age` of a memory pool.
    Pool,
    /// The `debug` bits, see [`DEBUG_BITS`].
    DebugBits,
    /// The `feature` bits, see [`FEATURE_BITS`].
    FeatureBits,
    /// The `experimental` bits, see [`EXPERIMENTAL_BITS`].
    ExperimentalBits,
    /// The bits of `vcc_feature`, see [`COMPILER_BITS`].
    CompilerBits,
    /// The set of suppressed log tags.
    LogMask,
    /// Content codings, the preferred one first, see [`crate::encoding::Encodings`].
    Encodings,
    /// One of [`HTTP_POLICIES`].
    Policy,
    /// One of [`crate::eviction::POLICIES`].
    EvictionPolicy,
    /// One of [`NAME_SOURCES`].
    NameSource,
    /// One of [`PLACEMENTS`].
    Placement,
    /// One of [`LEAK_GUARDS`].
    LeakGuard,
    /// One of [`WHEN_LOST`].
    WhenLost,
    /// Addresses and networks, see [`crate::front`].
    Addresses,
    /// Free text.
    Text,
}

/// The values of the parameter `http_policy`.
pub const HTTP_POLICIES: &[&str] = &["varnish", "rfc"];

/// The values of the parameter `backend_follow_dns`.
pub const NAME_SOURCES: &[&str] = &[NAMES_FIXED, "system", NAMES_BY_DNS];

/// The value with which names are looked up only when a VCL is loaded.
pub const NAMES_FIXED: &str = "off";

/// The value with which names are resolved by direct DNS queries.
pub const NAMES_BY_DNS: &str = "dns";

/// The values of the parameter `storage_placement`.
pub const PLACEMENTS: &[&str] = &["turns", "tiers"];

/// The values of the parameter `leak_guard`.
pub const LEAK_GUARDS: &[&str] = &["auto", "off", "log", "refuse"];

/// The values of the parameter `fleet_when_lost`: the words of [`crate::fleet::WhenLost`].
pub const WHEN_LOST: &[&str] = &[WhenLost::Serve.word(), WhenLost::StaleLimit.word(), WhenLost::Refuse.word()];

/// Action on a response for one client that VCL has stored for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeakGuard {
    /// Nothing is checked.
    Off,
    /// It is recorded and counted.
    Log,
    /// It is not stored either.
    Refuse,
}

/// The parameter takes effect on new threads or connections only.
pub const DELAYED: u16 = 1;
/// The worker must be restarted before a change takes effect.
pub const MUST_RESTART: u16 = 2;
/// VCL must be reloaded before a change takes effect.
pub const MUST_RELOAD: u16 = 4;
/// New objects only.
pub const OBJ_STICKY: u16 = 8;
/// Text note only.
pub const EXPERIMENTAL: u16 = 16;
/// Text note only.
pub const WIZARD: u16 = 32;
/// Accepted for compatibility; without effect in this design.
pub const ACCEPTED_ONLY: u16 = 64;
/// Copal's own, unknown to Varnish.
pub const COPAL: u16 = 128;
/// The default was chosen when the program was built; a word in JSON only.
pub const BUILD_OPTIONS: u16 = 256;

/// Meaning of the flags: for each its word in JSON, and a sentence.
pub static FLAGS: &[(u16, &str, &str)] = &[
    (
        OBJ_STICKY,
        "obj_sticky",
        "Only objects that are stored from now on feel a change; ban or restart for the others.",
    ),
    (DELAYED, "delayed_effect", "A change may take a while to be felt."),
    (EXPERIMENTAL, "experimental", "True if it is wise to change this is not known yet."),
    (MUST_RELOAD, "must_reload", "A change is felt when the VCL is loaded again."),
    (MUST_RESTART, "must_restart", "A change is felt when the worker process is started again."),
    (WIZARD, "wizard", "Better left alone."),
    (ACCEPTED_ONLY, "accepted_only", "Accepted for compatibility, and without effect here."),
    (COPAL, "copal", "Varnish 7.1 does not have this parameter."),
    (BUILD_OPTIONS, "build_options", "The default was chosen when the program was built."),
];

/// One parameter.
#[derive(Debug)]
pub struct ParameterRow {
    /// Name, as typed.
    pub name: &'static str,
    /// Type.
    pub kind: ParameterKind,
    /// Default value as `param.show` prints it.
    pub default: &'static str,
    /// Smallest value, or the name of another parameter and an offset in words; `None` = unbounded.
    pub min: Option<&'static str>,
    /// Largest value; `None` = unbounded.
    pub max: Option<&'static str>,
    /// Unit as printed; empty for none.
    pub unit: &'static str,
    /// Flag bits.
    pub flags: u16,
    /// Description.
    pub text: &'static str,
}

/// A borrowed, typed value of a [`Parameters`] field.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum ValueMut<'a> {
    Float(&'a mut f64),
    Bool(&'a mut bool),
    Number(&'a mut u64),
    Mask(&'a mut [u8; 32]),
    Text(&'a mut String),
}

/// A borrowed, typed value of a [`Parameters`] field, for reading.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ValueRef<'a> {
    Float(&'a f64),
    Bool(&'a bool),
    Number(&'a u64),
    Mask(&'a [u8; 32]),
    Text(&'a String),
}

macro_rules! parameters {
    ($($name:ident : $type:ty = $value:expr, $variant:ident, $kind:ident, $default:literal, $min:expr, $max:expr, $unit:literal, $flags:expr, $text:literal;)*) => {
        /// The value of every parameter, typed. Seconds are `f64`, sizes are bytes.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct Parameters {
            $(#[doc = $text] pub $name: $type,)*
        }

        impl Default for Parameters {
            fn default() -> Self {
                Parameters { $($name: $value,)* }
            }
        }

        impl Parameters {
            /// Mutable field with this name, for parsing and printing; `None` if there is no such
            /// parameter.
            pub fn value_mut(&mut self, name: &str) -> Option<ValueMut<'_>> {
                match name {
                    $(stringify!($name) => Some(ValueMut::$variant(&mut self.$name)),)*
                    _ => None,
                }
            }

            /// Field with this name, for printing; `None` if there is no such parameter.
            #[must_use]
            pub fn value(&self, name: &str) -> Option<ValueRef<'_>> {
                match name {
                    $(stringify!($name) => Some(ValueRef::$variant(&self.$name)),)*
                    _ => None,
                }
            }
        }

        /// Every parameter in alphabetical order.
        pub static PARAMETERS: &[ParameterRow] = &[
            $(ParameterRow {
                name: stringify!($name), kind: ParameterKind::$kind, default: $default, min: $min, max: $max,
                unit: $unit, flags: $flags, text: $text,
            },)*
        ];
    };
}

parameters! {
    accept_filter: bool = false, Bool, Bool, "off", None, None, "bool", ACCEPTED_ONLY | MUST_RESTART, "Kernel accept filters, which Linux does not have: any change is refused.";
    acceptor_sleep_decay: f64 = 0.9, Float, Double, "0.9", Some("0"), Some("1"), "", EXPERIMENTAL, "Factor by which the accept pause shrinks after each good accept.";
    acceptor_sleep_incr: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), Some("1.000"), "seconds", EXPERIMENTAL, "Growth of the accept pause per failure.";
    acceptor_sleep_max: f64 = 0.05, Float, Seconds, "0.050", Some("0.000"), Some("10.000"), "seconds", EXPERIMENTAL, "Upper bound of the accept pause.";
    alt_svc_max_age: f64 = 86400.0, Float, Seconds, "86400.000", Some("0.000"), None, "seconds", COPAL, "Lifetime of the Alt-Svc header that announces HTTP/3 to clients over TLS; 0 = no header.";
    alt_svc_port: u64 = 0, Number, Unsigned, "0", Some("0"), Some("65535"), "", COPAL, "UDP port of HTTP/3 in Alt-Svc, for instance that of a load balancer; 0 = that of the listener.";
    auto_restart: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Restart the worker when it dies.";
    backend_close_notify: bool = true, Bool, Bool, "on", None, None, "bool", COPAL, "A response over TLS whose end is that of the connection is complete only if the origin says that this is the end (close_notify): otherwise it may have been truncated. Off: any end will do, as in Varnish 9.";
    backend_dns_ttl: f64 = 30.0, Float, Seconds, "30.000", Some("1.000"), None, "seconds", COPAL, "Under backend_follow_dns: lifetime of an answer without a TTL, and time to wait after a failed lookup.";
    backend_error_reasons: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "When a fetch fails, beresp.reason in vcl_backend_error says how (Backend first byte timeout, Backend connection refused …); on is the default of copal daemon. Off: Backend fetch failed, as in Varnish.";
    backend_follow_dns: String = "off".to_owned(), Text, NameSource, "off", None, None, "", COPAL | MUST_RELOAD, "Repeated lookup of backend names (.host): off (once, when the VCL is loaded, as in Varnish), system (as other programs do, every backend_dns_ttl seconds; the default of copal daemon) or dns (DNS itself is asked, as often as its times to live say). All addresses are used, new ones as they appear. A VCL follows the names that it has if this was not off when it was loaded.";
    backend_idle_timeout: f64 = 60.0, Float, Seconds, "60.000", Some("1.000"), None, "seconds", 0, "Close pooled backend connections idle this long.";
    backend_local_error_holddown: f64 = 10.0, Float, Seconds, "10.000", Some("0.000"), None, "seconds", EXPERIMENTAL, "After local connect errors (EADDRNOTAVAIL, EACCES, EPERM) skip new connects this long.";
    backend_remote_error_holddown: f64 = 0.25, Float, Seconds, "0.250", Some("0.000"), None, "seconds", EXPERIMENTAL, "After remote connect errors (ECONNREFUSED, ENETUNREACH) skip new connects this long.";
    backend_wait_limit: u64 = 0, Number, Unsigned, "0", Some("0"), None, "transactions", COPAL, "Fetches that may wait for a connection to a backend whose max_connections are in use; 0 none (Varnish 7.6).";
    backend_wait_timeout: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), None, "seconds", COPAL, "Time that a fetch waits for a connection to such a backend (Varnish 7.6).";
    ban_any_variant: u64 = 10000, Number, Unsigned, "10000", Some("0"), None, "variants", COPAL, "Objects of other variants that a lookup tests against bans, at most; 0 tests those that match the request only (Varnish 7.5).";
    ban_cutoff: u64 = 0, Number, Unsigned, "0", Some("0"), None, "bans", EXPERIMENTAL, "Lurker kills everything older than the Nth ban; 0 off.";
    ban_dups: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Drop older bans identical to a new one.";
    ban_lurker_age: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", 0, "Lurker ignores bans younger than this.";
    ban_lurker_batch: u64 = 1000, Number, Unsigned, "1000", Some("1"), None, "", 0, "Objects examined between lurker sleeps.";
    ban_lurker_holdoff: f64 = 0.01, Float, Seconds, "0.010", Some("0.000"), None, "seconds", EXPERIMENTAL, "Lurker pause when lookups contend.";
    ban_lurker_sleep: f64 = 0.01, Float, Seconds, "0.010", Some("0.000"), None, "seconds", 0, "Lurker pause between batches; 0 disables it.";
    between_bytes_timeout: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", 0, "Max gap between backend bytes.";
    brotli_level: u64 = 6, Number, Unsigned, "6", Some("0"), Some("11"), "", COPAL, "Brotli level, of compressed copies and of the filter brotli; the filter shares the event loop and is limited to level 9.";
    cache_control_targets: String = "CDN-Cache-Control, Surrogate-Control".to_owned(), Text, Text, "CDN-Cache-Control, Surrogate-Control", None, None, "", COPAL, "Under http_policy=rfc: the fields that replace Cache-Control and Expires where they say something, the most important first (RFC 9213). Put a name of your own in front, or leave it empty for none.";
    cache_status: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Add a Cache-Status header (RFC 9211) to responses under http_policy=varnish, too; under http_policy=rfc they have it anyway, unless cache_status_name is empty.";
    cache_status_name: String = "copal".to_owned(), Text, Text, "copal", None, None, "", COPAL, "The name of this cache in Cache-Status (RFC 9211): a host name distinguishes several caches. Empty: no such header.";
    cc_command: String = "exec false".to_owned(), Text, Text, "exec false", None, None, "", MUST_RELOAD | BUILD_OPTIONS | ACCEPTED_ONLY, "C compiler command (irrelevant without C).";
    cc_warnings: String = "".to_owned(), Text, Text, "", None, None, "", MUST_RELOAD | BUILD_OPTIONS | ACCEPTED_ONLY, "C compiler warnings (irrelevant).";
    cli_limit: u64 = 65536, Number, Bytes, "64k", Some("128b"), Some("99999999b"), "bytes", 0, "Largest CLI reply. (48k in Varnish, which has fewer parameters to list.)";
    cli_timeout: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", 0, "Time that the manager waits for a CLI reply of the worker.";
    client_half_close: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "A client over HTTP/1 that closes its end of the connection before any of the response was sent is gone, like one that breaks it. A client that leaves cannot be distinguished from one that only has no more to send: with off, the habit of Varnish, both get their answer; on is the default of copal daemon.";
    clock_skew: u64 = 10, Number, Unsigned, "10", Some("0"), None, "seconds", 0, "Tolerated backend clock difference in TTL computation.";
    clock_step: f64 = 1.0, Float, Seconds, "1.000", Some("0.000"), None, "seconds", ACCEPTED_ONLY, "Clock jump that triggers a panic.";
    compress_after: u64 = 3, Number, Unsigned, "3", Some("0"), None, "hits", COPAL, "Number of hits before a copy in a better coding (http_encodings) is made of it.";
    compress_cpu: u64 = 25, Number, Unsigned, "25", Some("0"), Some("100"), "percent of a core", COPAL, "Share of one core for making compressed copies of objects in the background; 0 = no copies.";
    connect_timeout: f64 = 3.5, Float, Seconds, "3.500", Some("0.000"), None, "seconds", 0, "Backend connect time limit.";
    critbit_cooloff: f64 = 180.0, Float, Seconds, "180.000", Some("60.000"), Some("254.000"), "seconds", WIZARD | ACCEPTED_ONLY, "Delay before freeing hash heads.";
    debug: u64 = 0, Number, DebugBits, "none", None, None, "", 0, "Debug bits; none clears all of them.";
    default_grace: f64 = 10.0, Float, Seconds, "10.000", Some("0.000"), None, "seconds", OBJ_STICKY, "Grace if nothing else sets it.";
    default_keep: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), None, "seconds", OBJ_STICKY, "Keep if nothing else sets it.";
    default_ttl: f64 = 120.0, Float, Seconds, "120.000", Some("0.000"), None, "seconds", OBJ_STICKY, "Ttl if nothing else sets it.";
    drain_timeout: f64 = 5.0, Float, Seconds, "5.000", Some("0.000"), Some("86400.000"), "seconds", COPAL, "Time that a stopping worker waits for requests in flight before it ends them; a second SIGTERM ends them at once.";
    esi_fragments_max: u64 = 10_000, Number, Unsigned, "10000", Some("0"), None, "fragments", COPAL, "Most fragments of one client request in all, those of nested pages included; more are left out, as below max_esi_depth. The default is as many as one page may name: a request with more is for a page that includes itself.";
    esi_parallel: u64 = 16, Number, Unsigned, "16", Some("1"), Some("1000"), "fragments", COPAL, "Number of fragments of a page that may be fetched at once, those of the pages in it included; 1 = one after the other, as in Varnish.";
    event_loops: u64 = 0, Number, Unsigned, "0", Some("0"), Some("256"), "loops", MUST_RESTART | COPAL, "Number of event loops, one thread each; 0 means one for every core the worker may use.";
    eviction_policy: String = "lru".to_owned(), Text, EvictionPolicy, "lru", None, None, "", COPAL, "Which objects go when a storage is full: lru (the least recently used; the default of varnishd), s3fifo (what is asked for once passes through a small part of the storage; the default of copal daemon), sieve (what was not used since the last round, the oldest first) or tinylfu (what is new stays only if it is asked for more often than what would go). A storage can have its own: -s malloc,8G,policy=sieve. What each would do for a site, copal policy says from its access log.";
    expect_continue_timeout: f64 = 1.0, Float, Seconds, "1.000", Some("0.000"), None, "seconds", COPAL, "Under http_policy=rfc, how long to wait for an origin to answer a request that expects 100-continue before its body is sent anyway.";
    experimental: u64 = 0, Number, ExperimentalBits, "none", None, None, "", ACCEPTED_ONLY, "Experiments, bit by bit; none takes all bits away.";
    feature: u64 = feature::VALIDATE_HEADERS, Number, FeatureBits, "+validate_headers", None, None, "", 0, "Minor features, bit by bit; default gives the default ones, none takes all away.";
    fetch_chunksize: u64 = 16384, Number, Bytes, "16k", Some("4k"), None, "bytes", EXPERIMENTAL | ACCEPTED_ONLY, "Storage chunk for fetches of unknown length: here blocks grow with the body.";
    fetch_maxchunksize: u64 = 268435456, Number, Bytes, "0.25G", Some("64k"), None, "bytes", EXPERIMENTAL | ACCEPTED_ONLY, "Largest storage chunk.";
    first_byte_timeout: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", 0, "Wait for the first response byte.";
    fleet_history: f64 = 604_800.0, Float, Seconds, "604800.000", Some("60.000"), Some("31536000.000"), "seconds", COPAL, "Time that invalidations are kept for nodes of the fleet that have not confirmed them. A node that was away for longer removes everything that it stored before.";
    fleet_join_timeout: f64 = 30.0, Float, Seconds, "30.000", Some("1.000"), Some("3600.000"), "seconds", COPAL, "Time that a node waits at its start for members of the fleet and for invalidations that it has missed; until then it passes.";
    fleet_lost_after: f64 = 10.0, Float, Seconds, "10.000", Some("1.000"), Some("3600.000"), "seconds", COPAL, "Time without a message from the fleet, or without the fleet's agent, after which a node is out of contact (see fleet_when_lost).";
    fleet_lost_ttl: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", COPAL, "Under fleet_when_lost=stale-limit: age beyond which stored responses are fetched again while the node is out of contact.";
    fleet_when_lost: String = "serve".to_owned(), Text, WhenLost, "serve", None, None, "", COPAL, "A node that is out of contact with its fleet goes on (serve), serves nothing older than fleet_lost_ttl from the cache (stale-limit), or nothing at all (refuse): then all requests are passed.";
    gzip_buffer: u64 = 32768, Number, Bytes, "32k", Some("2k"), None, "bytes", EXPERIMENTAL | ACCEPTED_ONLY, "Buffer for (de)compression.";
    gzip_level: u64 = 6, Number, Unsigned, "6", Some("0"), Some("9"), "", 0, "Zlib level.";
    gzip_memlevel: u64 = 8, Number, Unsigned, "8", Some("1"), Some("9"), "", ACCEPTED_ONLY, "Zlib memory level.";
    h2_extended_connect: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Offer WebSockets on streams of HTTP/2 (extended CONNECT, RFC 8441): VCL sees a GET with Upgrade, which it can pipe. New connections only.";
    h2_header_table_size: u64 = 4096, Number, Bytes, "4k", Some("0b"), None, "bytes", 0, "HPACK decoding table size announced.";
    h2_initial_window_size: u64 = 65535, Number, Bytes, "65535b", Some("65535b"), Some("2147483647b"), "bytes", 0, "SETTINGS initial window.";
    h2_max_concurrent_streams: u64 = 100, Number, Unsigned, "100", Some("0"), None, "streams", 0, "SETTINGS stream limit.";
    h2_max_frame_size: u64 = 16384, Number, Bytes, "16k", Some("16k"), Some("16777215b"), "bytes", 0, "SETTINGS frame size.";
    h2_max_header_list_size: u64 = 2147483647, Number, Bytes, "2147483647b", Some("0b"), None, "bytes", 0, "SETTINGS header list limit.";
    h2_rapid_reset: f64 = 1.0, Float, Seconds, "1.000", Some("0.000"), None, "seconds", COPAL, "A stream of HTTP/2 that its client resets this soon after its start counts for h2_rapid_reset_limit (Varnish 7.5). New connections only.";
    h2_rapid_reset_limit: u64 = 100, Number, Unsigned, "100", Some("0"), None, "resets", COPAL, "Number of streams that an HTTP/2 client may reset that soon, or cause to be reset, in h2_rapid_reset_period before its connection is closed, and of requests that a client of HTTP/3 may give up; 0 = no limit (Varnish 7.5). New connections only.";
    h2_rapid_reset_period: f64 = 60.0, Float, Seconds, "60.000", Some("1.000"), None, "seconds", COPAL, "The time for which h2_rapid_reset_limit is meant (Varnish 7.5). New connections only.";
    h2_rx_window_increment: u64 = 1048576, Number, Bytes, "1M", Some("1M"), Some("1G"), "bytes", WIZARD, "Credit per WINDOW_UPDATE.";
    h2_rx_window_low_water: u64 = 10485760, Number, Bytes, "10M", Some("65535b"), Some("1G"), "bytes", WIZARD, "Send credit when window is below.";
    h2_rxbuf_storage: String = "Transient".to_owned(), Text, Text, "Transient", None, None, "", MUST_RESTART | ACCEPTED_ONLY, "Storage name for H2 receive buffers.";
    h2_window_timeout: f64 = 5.0, Float, Seconds, "5.000", Some("0.000"), None, "seconds", COPAL, "Time that a response on an HTTP/2 stream may wait for window from its client (Varnish 7.5). New connections only.";
    http1_iovs: u64 = 64, Number, Unsigned, "64", Some("5"), Some("1024"), "struct iovec (=16 bytes)", WIZARD | ACCEPTED_ONLY, "Io vectors for HTTP/1 output.";
    http_encodings: u64 = Encodings::GZIP.parameter(), Number, Encodings, "gzip", None, None, "", COPAL, "Content codings that clients and origins are offered, the preferred one first: gzip, br, zstd.";
    http_forwarded: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Under http_policy=rfc, requests to origins carry Forwarded (RFC 7239) with the address and scheme of the client. New connections only.";
    http_gzip_support: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Master switch for gzip handling.";
    http_max_hdr: u64 = 64, Number, Unsigned, "64", Some("32"), Some("65535"), "header lines", 0, "Header slots per message.";
    http_policy: String = "varnish".to_owned(), Text, Policy, "varnish", None, None, "", COPAL | MUST_RELOAD, "Which rules decide what may be stored, for how long, and what for: varnish (the habits of Varnish 7.1; the default of varnishd) or rfc (RFC 9111 in full; the default of copal daemon). A VCL follows the rules under which it was loaded, and has their built-in VCL.";
    http_range_support: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Answer Range requests.";
    http_request_directives: bool = true, Bool, Bool, "on", None, None, "bool", COPAL, "Under http_policy=rfc, whether clients may ask for fresher or staler responses (Cache-Control and Pragma of requests); off protects origins from reloads.";
    http_req_hdr_len: u64 = 8192, Number, Bytes, "8k", Some("40b"), None, "bytes", 0, "Longest request header line.";
    http_req_size: u64 = 32768, Number, Bytes, "32k", Some("0.25k"), None, "bytes", 0, "Largest request head.";
    http_resp_hdr_len: u64 = 8192, Number, Bytes, "8k", Some("40b"), None, "bytes", 0, "Longest response header line.";
    http_resp_size: u64 = 32768, Number, Bytes, "32k", Some("0.25k"), None, "bytes", 0, "Largest response head.";
    idle_send_timeout: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", DELAYED, "Per-write send timeout to clients.";
    last_byte_timeout: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), None, "seconds", COPAL, "Time limit of a fetch, from the start of sending its request to the last byte of its response, against origins that trickle; 0 = no limit. Backends (.last_byte_timeout) and fetches (bereq.last_byte_timeout) can have their own.";
    leak_guard: String = "auto".to_owned(), Text, LeakGuard, "auto", None, None, "", COPAL, "Check for responses of one client that VCL has stored for all: off, log (they are recorded for copal why, and counted) or refuse (they are not stored either). Found are responses to requests with Cookie or Authorization that came with Set-Cookie, private or no-store, and keys under which other credentials get other bodies within seconds. auto: log under http_policy=rfc, off under varnish.";
    listen_depth: u64 = 1024, Number, Unsigned, "1024", Some("0"), None, "connections", MUST_RESTART, "Listen backlog.";
    lru_interval: f64 = 2.0, Float, Seconds, "2.000", Some("0.000"), None, "seconds", EXPERIMENTAL, "Minimum time between LRU moves of an object.";
    max_esi_depth: u64 = 5, Number, Unsigned, "5", Some("0"), None, "levels", 0, "ESI nesting limit.";
    max_restarts: u64 = 4, Number, Unsigned, "4", Some("0"), None, "restarts", 0, "Restart limit.";
    max_retries: u64 = 4, Number, Unsigned, "4", Some("0"), None, "retries", 0, "Retry limit.";
    max_vcl: u64 = 100, Number, Unsigned, "100", Some("0"), None, "", 0, "Number of VCLs that triggers max_vcl_handling.";
    max_vcl_handling: u64 = 1, Number, Unsigned, "1", Some("0"), Some("2"), "", 0, "0 ignore, 1 warn, 2 refuse.";
    no_vary_search: bool = true, Bool, Bool, "on", None, None, "bool", COPAL, "Under http_policy=rfc, whether responses may say which parts of the query do not matter (No-Vary-Search): requests that differ in those alone then share a stored response.";
    nuke_limit: u64 = 50, Number, Unsigned, "50", Some("0"), None, "allocations", EXPERIMENTAL | ACCEPTED_ONLY, "Max objects evicted for one allocation.";
    partial_leniency: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Under http_policy=rfc: believe parts (206) that are shorter than their Content-Range says or hold another range than the one asked for, and ask for the rest of a part even if its version is unknown (no strong validator).";
    pcre2_depth_limit: u64 = 20, Number, Unsigned, "20", Some("1"), None, "", 0, "Regex depth limit.";
    pcre2_jit_compilation: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Use regex JIT.";
    pcre2_match_limit: u64 = 10000, Number, Unsigned, "10000", Some("1"), None, "", 0, "Regex match limit.";
    ping_interval: u64 = 3, Number, Unsigned, "3", Some("0"), None, "seconds", MUST_RESTART, "Master→worker ping; 0 off.";
    pipe_sess_max: u64 = 0, Number, Unsigned, "0", Some("0"), None, "connections", 0, "Limit of concurrent pipes; 0 none.";
    pipe_task_deadline: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), None, "seconds", COPAL, "Time limit of a pipe; 0 = no limit (Varnish 7.5).";
    pipe_timeout: f64 = 60.0, Float, Seconds, "60.000", Some("0.000"), None, "seconds", 0, "Idle timeout of pipes.";
    pool_req: String = "10,100,10".to_owned(), Text, Pool, "10,100,10", None, None, "", 0, "Memory pool triple min,max,age (request).";
    pool_sess: String = "10,100,10".to_owned(), Text, Pool, "10,100,10", None, None, "", ACCEPTED_ONLY, "Memory pool triple (session).";
    pool_vbo: String = "10,100,10".to_owned(), Text, Pool, "10,100,10", None, None, "", ACCEPTED_ONLY, "Memory pool triple (backend fetch).";
    prefer_ipv6: bool = false, Bool, Bool, "off", None, None, "bool", 0, "Prefer v6 for dual-stack backends.";
    request_memory_max: u64 = 4194304, Number, Bytes, "4M", Some("64k"), None, "bytes", COPAL, "Most memory that the headers, strings and scratch data of one request may take; past it that request alone fails with a 503.";
    requests_memory_max: u64 = 1073741824, Number, Bytes, "1G", Some("8M"), None, "bytes", COPAL, "Most memory that all requests and fetches in progress may hold together, outside the storages; past it new ones get a 503 while those in progress finish.";
    rush_exponent: u64 = 3, Number, Unsigned, "3", Some("2"), None, "requests per request", EXPERIMENTAL, "Waiting requests woken per completed one.";
    send_timeout: f64 = 600.0, Float, Seconds, "600.000", Some("0.000"), None, "seconds", DELAYED, "Total send time limit of a response, counted from the start of its delivery.";
    shortlived: f64 = 10.0, Float, Seconds, "10.000", Some("0.000"), None, "seconds", 0, "Lifetime below which objects go to Transient.";
    sigsegv_handler: bool = true, Bool, Bool, "on", None, None, "bool", MUST_RESTART | ACCEPTED_ONLY, "Panic on SEGV/BUS/ABRT.";
    slice_bytes: u64 = 0, Number, Bytes, "0b", Some("0b"), None, "bytes", COPAL, "Size of the slices in which a resource is fetched and stored when a client asks for a range of it and nothing of it is stored; whole KiB, and at least 64k. 0 = not in slices. See req.slice_bytes.";
    ssl_buffer: u64 = 16384, Number, Bytes, "16k", Some("1k"), None, "bytes", ACCEPTED_ONLY | COPAL, "Buffer of a TLS connection (Varnish 9).";
    sslbuf_pool: String = "10,100,10".to_owned(), Text, Pool, "10,100,10", None, None, "", ACCEPTED_ONLY | COPAL, "Memory pool triple min,max,age (TLS buffers; Varnish 9).";
    storage_demote: bool = true, Bool, Bool, "on", None, None, "bool", COPAL, "Under storage_placement=tiers: what memory has no more room for is moved to a file instead of being dropped. What VCL has put into memory stays there until it is dropped.";
    storage_placement: String = "turns".to_owned(), Text, Placement, "turns", None, None, "", COPAL, "Storage of a response for which VCL chooses none: turns (each storage in turn; the default of varnishd) or tiers (with storages in memory and in files: memory for bodies known to be small, see storage_small_bytes, and files for all others; the default of copal daemon).";
    storage_promote_bytes: u64 = 1048576, Number, Bytes, "1M", Some("0b"), Some("16M"), "bytes", COPAL, "Under storage_placement=tiers: the longest body that is copied from a file to memory.";
    storage_promote_hits: u64 = 2, Number, Unsigned, "2", Some("0"), None, "hits", COPAL, "Under storage_placement=tiers: number of hits after which the body of an object in a file is copied to memory and sent from there; 0 = never. A body that VCL has put into a file stays there.";
    storage_small_bytes: u64 = 65536, Number, Bytes, "64k", Some("0b"), None, "bytes", COPAL, "Under storage_placement=tiers: the longest body that is stored in memory at first.";
    store_set_cookie: bool = true, Bool, Bool, "on", None, None, "bool", COPAL, "Under http_policy=rfc: store responses that set a cookie, and send that cookie to everybody who gets them (RFC 9111 section 7.3). Off: such a response is for the client that asked.";
    syslog_cli_traffic: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Log CLI dialogue to syslog.";
    tcp_fastopen: bool = false, Bool, Bool, "off", None, None, "bool", MUST_RESTART, "TCP fast open.";
    tcp_keepalive_intvl: f64 = 75.0, Float, Seconds, "75.000", Some("1.000"), Some("100.000"), "seconds", EXPERIMENTAL, "Keepalive probe interval.";
    tcp_keepalive_probes: u64 = 9, Number, Unsigned, "9", Some("1"), Some("100"), "probes", EXPERIMENTAL, "Keepalive probe count.";
    tcp_keepalive_time: f64 = 7200.0, Float, Seconds, "7200.000", Some("1.000"), Some("7200.000"), "seconds", EXPERIMENTAL, "Keepalive idle time.";
    thread_pool_add_delay: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), None, "seconds", EXPERIMENTAL | ACCEPTED_ONLY, "Pause after creating a thread.";
    thread_pool_destroy_delay: f64 = 1.0, Float, Seconds, "1.000", Some("0.010"), None, "seconds", DELAYED | EXPERIMENTAL | ACCEPTED_ONLY, "Pause after ending a thread.";
    thread_pool_fail_delay: f64 = 0.2, Float, Seconds, "0.200", Some("0.010"), None, "seconds", EXPERIMENTAL | ACCEPTED_ONLY, "Pause after a failed thread creation.";
    thread_pool_max: u64 = 5000, Number, Unsigned, "5000", Some("thread_pool_min"), None, "threads", DELAYED | ACCEPTED_ONLY, "Threads per pool, upper.";
    thread_pool_min: u64 = 100, Number, Unsigned, "100", Some("5"), Some("thread_pool_max"), "threads", DELAYED | ACCEPTED_ONLY, "Threads per pool, lower.";
    thread_pool_reserve: u64 = 0, Number, Unsigned, "0", None, Some("95% of thread_pool_min"), "threads", DELAYED | ACCEPTED_ONLY, "Threads kept for vital tasks; 0 = auto 5 % of min.";
    thread_pool_stack: u64 = 81920, Number, Bytes, "80k", Some("16k"), None, "bytes", DELAYED | ACCEPTED_ONLY, "Thread stack size.";
    thread_pool_timeout: f64 = 300.0, Float, Seconds, "300.000", Some("10.000"), None, "seconds", DELAYED | EXPERIMENTAL | ACCEPTED_ONLY, "Idle time before a surplus thread ends.";
    thread_pool_watchdog: f64 = 60.0, Float, Seconds, "60.000", Some("0.100"), None, "seconds", EXPERIMENTAL | ACCEPTED_ONLY, "Panic if a queue is stuck this long.";
    thread_pools: u64 = 2, Number, Unsigned, "2", Some("1"), Some("32"), "pools", DELAYED | EXPERIMENTAL | ACCEPTED_ONLY, "Number of pools.";
    thread_queue_limit: u64 = 20, Number, Unsigned, "20", Some("0"), None, "requests", EXPERIMENTAL | ACCEPTED_ONLY, "Queue length per pool.";
    thread_stats_rate: u64 = 10, Number, Unsigned, "10", Some("0"), None, "requests", EXPERIMENTAL | ACCEPTED_ONLY, "Jobs before statistics must be merged.";
    timeout_idle: f64 = 5.0, Float, Seconds, "5.000", Some("0.000"), None, "seconds", 0, "Client idle timeout.";
    timeout_linger: f64 = 0.05, Float, Seconds, "0.050", Some("0.000"), None, "seconds", EXPERIMENTAL, "Wait on keep-alive before handing session to waiter.";
    tls_cleanup_batch: u64 = 64, Number, Unsigned, "64", Some("0"), None, "", ACCEPTED_ONLY | COPAL, "Discarded certificates freed at a time (Varnish 9).";
    tls_handshake_timeout: f64 = 8.0, Float, Seconds, "8.000", Some("0.000"), None, "seconds", COPAL, "Time limit of a client's TLS handshake, from the moment it is connected (Varnish 9).";
    tls_ja3: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Compute the JA3 fingerprint of clients, for tls.ja3() in VCL (Varnish 9).";
    tls_err_dup_servername: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Refuse a certificate for a host that another one of the same frontend, with the same kind of key, is for already. Off: the first one is served (Varnish 9).";
    tls_file_poll: f64 = 5.0, Float, Seconds, "5.000", Some("0.000"), None, "seconds", COPAL, "Interval between checks of the certificate files; a replaced file is loaded once it was unchanged in two checks; 0 = no checks.";
    transit_buffer: u64 = 0, Number, Bytes, "0b", Some("0b"), None, "bytes", COPAL, "Bytes that the fetch of an uncacheable response may run ahead of its client; 0 = the daemon's own limit (Varnish 7.3).";
    trusted_fronts: String = "".to_owned(), Text, Addresses, "", None, None, "", COPAL, "Addresses and networks (10.0.0.0/8 2001:db8::7) of proxies in front whose X-Forwarded-Proto and Forwarded are trusted, under http_policy=rfc and for listeners with redirect=https; from any other client they are replaced. A PROXY header before requests in clear and a Unix-domain socket need no entry. New connections only.";
    uncacheable_ttl: f64 = 120.0, Float, Seconds, "120.000", Some("0.000"), None, "seconds", COPAL, "Lifetime of the hit-for-miss marker that the built-in VCL makes of an uncacheable response (Varnish 8.0).";
    unknown_transfer_encoding: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Accept a response with an unknown Transfer-Encoding: its body is taken as it is, up to the end of the connection. Off: such a response is an error, since the meaning of its body is unknown.";
    unsized_body_share: u64 = 25, Number, Unsigned, "25", Some("1"), Some("100"), "percent of the storage", COPAL, "Share of a storage that a response of unknown length (chunked, or gzipped by Copal) may take before it is passed on to its clients instead of being kept; concurrent ones share it.";
    vary_language_order: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Under http_policy=rfc, the order of languages in Accept-Language does not make another variant.";
    trace_context: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Continue W3C trace context (traceparent) to origins: each request and each fetch is a span of its own. If off, the header passes unchanged.";
    vary_language_select: bool = false, Bool, Bool, "off", None, None, "bool", COPAL, "Under http_policy=rfc, a stored response whose Content-Language is the one the client likes best answers requests with another Accept-Language, too.";
    vary_notice: u64 = 10, Number, Unsigned, "10", Some("1"), None, "variants", 0, "Variants looked at before a Notice is logged.";
    vcc_allow_inline_c: bool = false, Bool, Bool, "off", None, None, "bool", ACCEPTED_ONLY, "Allow inline C: Copal has no C compiler and refuses C{.";
    vcc_err_unref: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Unreferenced VCL symbols are errors (else warnings).";
    vcc_feature: u64 = compiler::ERR_UNREF | compiler::UNSAFE_PATH, Number, CompilerBits, "+err_unref,+unsafe_path", None, None, "", COPAL, "The parameters vcc_err_unref, vcc_allow_inline_c and vcc_unsafe_path, bit by bit (Varnish 7.2): each of them changes with its bit, and the other way round.";
    vcc_unsafe_path: bool = true, Bool, Bool, "on", None, None, "bool", 0, "Allow / in include/vmod paths.";
    vcl_cooldown: f64 = 600.0, Float, Seconds, "600.000", Some("1.000"), None, "seconds", 0, "Time before an unused VCL becomes cold.";
    vcl_path: String = "/etc/varnish:/usr/share/varnish/vcl".to_owned(), Text, Text, "/etc/varnish:/usr/share/varnish/vcl", None, None, "", BUILD_OPTIONS, "Search path for VCL.";
    vmod_path: String = "/usr/lib/x86_64-linux-gnu/varnish/vmods".to_owned(), Text, Text, "/usr/lib/x86_64-linux-gnu/varnish/vmods", None, None, "", BUILD_OPTIONS | ACCEPTED_ONLY, "Search path for VMODs: here VMODs are built in.";
    vsl_buffer: u64 = 16384, Number, Bytes, "16k", Some("vsl_reclen + 12 bytes"), None, "bytes", 0, "Log buffer per transaction.";
    vsl_mask: [u8; 32] = default_log_mask(), Mask, LogMask, "-Debug,-ObjProtocol,-ObjStatus,-ObjReason,-ObjHeader,-VCL_trace,-ExpKill,-WorkThread,-Hash,-VfpAcct,-H2RxHdr,-H2RxBody,-H2TxHdr,-H2TxBody,-VdpAcct", None, None, "", 0, "Tag suppression.";
    vsl_reasons: bool = true, Bool, Bool, "on", None, None, "bool", COPAL, "Record why each request was a miss, a pass or an error, for `copal why` (Witness records).";
    vsl_reclen: u64 = 255, Number, Bytes, "255b", Some("16b"), Some("vsl_buffer - 12 bytes"), "bytes", 0, "Longest log record.";
    vsl_space: u64 = 83886080, Number, Bytes, "80M", Some("1M"), Some("4G"), "bytes", MUST_RESTART, "Log ring size.";
    vsm_free_cooldown: f64 = 60.0, Float, Seconds, "60.000", Some("10.000"), Some("600.000"), "seconds", ACCEPTED_ONLY, "Delay before freed VSM memory is released: here readers keep what they have mapped.";
    waiting_requests_max: u64 = 100000, Number, Unsigned, "100000", Some("0"), None, "requests", COPAL, "Requests that may wait for an object that another request is fetching; 0 no limit. One more is answered at once, with a stale object if http_policy=rfc allows that, else with 503.";
    waiting_timeout: f64 = 0.0, Float, Seconds, "0.000", Some("0.000"), None, "seconds", COPAL, "Time that a request waits for an object that another request is fetching before it is answered like one that may not wait; 0 = no limit (the default of varnishd; that of copal daemon is 300).";
    workspace_backend: u64 = 98304, Number, Bytes, "96k", Some("1k"), None, "bytes", DELAYED | ACCEPTED_ONLY, "Backend workspace: here memory of a request grows as needed, up to request_memory_max.";
    workspace_client: u64 = 98304, Number, Bytes, "96k", Some("9k"), None, "bytes", DELAYED | ACCEPTED_ONLY, "Client workspace: here memory of a request grows as needed, up to request_memory_max.";
    workspace_session: u64 = 768, Number, Bytes, "0.75k", Some("384b"), None, "bytes", DELAYED | ACCEPTED_ONLY, "Session workspace.";
    workspace_thread: u64 = 2048, Number, Bytes, "2k", Some("0.25k"), Some("8k"), "bytes", DELAYED | ACCEPTED_ONLY, "Thread workspace.";
    zstd_level: u64 = 9, Number, Unsigned, "9", Some("1"), Some("19"), "", COPAL, "Zstandard level, of compressed copies and of the filter zstd; the filter shares the event loop and is limited to level 12.";
}

impl Parameters {
    /// Number of fragments of a page that may be fetched at once: `esi_parallel`. Test scripts,
    /// which serve one origin connection in order, get one at a time unless they set it.
    #[must_use]
    pub fn esi_fragments_at_once(&self) -> usize {
        let is_default = self.esi_parallel == Parameters::default().esi_parallel;
        if is_default && self.debug & debug::VTC_MODE != 0 {
            return 1;
        }
        usize::try_from(self.esi_parallel).unwrap_or(usize::MAX)
    }

    /// The parameter `leak_guard`, for a VCL that was loaded under `http_policy=rfc` or not.
    #[must_use]
    pub fn leak_guard(&self, follows_rfc: bool) -> LeakGuard {
        match self.leak_guard.as_str() {
            "log" => LeakGuard::Log,
            "refuse" => LeakGuard::Refuse,
            "auto" if follows_rfc => LeakGuard::Log,
            _ => LeakGuard::Off,
        }
    }

    /// True if the reasons of decisions are recorded: `vsl_reasons`, except for test scripts, which
    /// count records.
    #[must_use]
    pub fn tells_reasons(&self) -> bool {
        self.vsl_reasons && self.debug & debug::VTC_MODE == 0
    }
}

/// The default `vsl_mask`: byte `tag >> 3`, bit `0x80 >> (tag & 7)`, a set bit suppresses the tag.
#[must_use]
pub fn default_log_mask() -> [u8; 32] {
    let mut mask = [0; 32];
    for row in &crate::tag::TAGS {
        if row.masked_by_default {
            let number = row.tag as usize;
            mask[number >> 3] |= 0x80 >> (number & 7);
        }
    }
    mask
}
