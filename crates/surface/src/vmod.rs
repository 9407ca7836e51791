//! VMOD signatures: one row per function, for the type checker and the reference page.
//!
//! `vmods` implements the rows: [`Function`] names each one, and its `match` has no arm for "other", so a row without an
//! implementation does not compile. A function's number is its index in [`FUNCTIONS`]. Hidden arguments in Varnish's own
//! tables are not listed: users never write them. Source: the VMOD manual pages of Varnish 7.1.1 and their behaviour.
//! Next file: `reference/vmods.rs`.

pub mod foreign;

use crate::vcl::{Type, at};

/// One argument of a VMOD function.
#[derive(Debug)]
pub struct ArgumentRow {
    /// Name for `name = value`; empty if only positional.
    pub name: &'static str,
    /// Type. STRANDS takes any number of strings joined by `+`.
    pub kind: Type,
    /// Default, as a VCL literal of that type (`true`, `", "`, `-1s`; the bare word for an ENUM); `None` when there is none.
    pub default: Option<&'static str>,
    /// The argument may be omitted although it has no default; it is then passed as absent.
    pub optional: bool,
    /// The words of an ENUM.
    pub values: &'static [&'static str],
}

/// One VMOD function, method or constructor.
#[derive(Debug)]
pub struct FunctionRow {
    /// VMOD, e.g. `std`.
    pub vmod: &'static str,
    /// Class, e.g. `round_robin`; empty for a plain function.
    pub class: &'static str,
    /// Name; empty for the constructor of the class.
    pub name: &'static str,
    /// Result type.
    pub returns: Type,
    /// Arguments in order.
    pub arguments: &'static [ArgumentRow],
    /// Methods in which it may be called (`crate::vcl::at`).
    pub at: u16,
    /// One line of explanation.
    pub text: &'static str,
}

/// One VMOD.
#[derive(Debug)]
pub struct VmodRow {
    /// Name, as imported.
    pub name: &'static str,
    /// One line of explanation.
    pub text: &'static str,
    /// Classes whose objects are directors.
    pub directors: &'static [&'static str],
}

/// Every VMOD.
pub static VMODS: &[VmodRow] = &[
    VmodRow { name: "std", text: "Text, conversions, files, logging and control of the running task.", directors: &[] },
    VmodRow {
        name: "directors",
        text: "Sets of backends that choose one for each fetch.",
        directors: &["round_robin", "fallback", "random", "hash", "shard", "least_conn"],
    },
    VmodRow { name: "blob", text: "Binary data to text and back.", directors: &[] },
    VmodRow { name: "cookie", text: "Cookies of a request, one by one.", directors: &[] },
    VmodRow { name: "purge", text: "Purging with control over what becomes of the objects.", directors: &[] },
    VmodRow { name: "vtc", text: "Helpers of test cases.", directors: &[] },
    // accept
    VmodRow { name: "accept", text: "The best choice for an Accept header.", directors: &[] },
    // bodyaccess
    VmodRow { name: "bodyaccess", text: "The client's request body, once it is held whole.", directors: &[] },
    VmodRow {
        name: "debug",
        text: "What Varnish's own test cases need: values passed through, failures on demand, backends that come and go.",
        directors: &["dyn", "dyn_uds", "director"],
    },
    // digest
    VmodRow { name: "digest", text: "Hashes, keyed hashes and base64.", directors: &[] },
    // dynamic
    VmodRow {
        name: "dynamic",
        text: "Backends by name: hosts that are looked up again and again while they are used.",
        directors: &[],
    },
    VmodRow {
        name: "h2",
        text: "What HTTP/2 has of its own: how many of its requests a client may take back.",
        directors: &[],
    },
    // header
    VmodRow { name: "header", text: "Headers that occur more than once, line by line.", directors: &[] },
    VmodRow {
        name: "proxy",
        text: "What a PROXY protocol header of version 2 says besides addresses.",
        directors: &[],
    },
    // querystring
    VmodRow { name: "querystring", text: "Parameters of a URL cleaned, sorted and filtered.", directors: &[] },
    // re
    VmodRow { name: "re", text: "Regular expressions whose groups can be asked for after a match.", directors: &[] },
    // saintmode
    VmodRow {
        name: "saintmode",
        text: "Backends that are sick for single objects for a while.",
        directors: &["saintmode"],
    },
    // str
    VmodRow { name: "str", text: "Pieces of strings.", directors: &[] },
    // tcp
    VmodRow { name: "tcp", text: "The client's TCP connection: what is known of it, and its pace.", directors: &[] },
    // tls
    VmodRow {
        name: "tls",
        text: "What was agreed in a TLS handshake, with the client or with the origin.",
        directors: &[],
    },
    VmodRow { name: "unix", text: "Who is at the other end of a Unix-domain socket.", directors: &[] },
    // uuid
    VmodRow { name: "uuid", text: "Universally unique identifiers.", directors: &[] },
    // var
    VmodRow { name: "var", text: "Variables of a task, and global ones.", directors: &[] },
    // vsthrottle
    VmodRow { name: "vsthrottle", text: "Limits on how often something may happen, by key.", directors: &[] },
    // xkey
    VmodRow {
        name: "xkey",
        text: "Purging by the tags that responses carry in xkey, Surrogate-Key or Cache-Tag.",
        directors: &[],
    },
];

/// Where the VMOD tls may be used.
const ON_TLS: u16 = at::CLIENT | at::BACKEND_RESPONSE | at::BACKEND_ERROR;

/// A required argument.
const fn needed(name: &'static str, kind: Type) -> ArgumentRow {
    ArgumentRow { name, kind, default: None, optional: false, values: &[] }
}

/// An argument with a default.
const fn with_default(name: &'static str, kind: Type, default: &'static str) -> ArgumentRow {
    ArgumentRow { name, kind, default: Some(default), optional: false, values: &[] }
}

/// An argument that may be omitted.
const fn optional(name: &'static str, kind: Type) -> ArgumentRow {
    ArgumentRow { name, kind, default: None, optional: true, values: &[] }
}

/// An argument whose value is one of several words.
const fn word(
    name: &'static str,
    values: &'static [&'static str],
    default: Option<&'static str>,
    optional: bool,
) -> ArgumentRow {
    ArgumentRow { name, kind: Type::Enum, default, optional, values }
}

const ENCODINGS: &[&str] = &["IDENTITY", "BASE64", "BASE64URL", "BASE64URLNOPAD", "BASE64CF", "HEX", "URL"];
const CASES: &[&str] = &["LOWER", "UPPER", "DEFAULT"];
const AUTHORS: &[&str] = &["phk", "des", "kristian", "mithrandir"];
const WORKSPACES: &[&str] = &["client", "backend", "session", "thread"];
const SHARD_KEYS: &[&str] = &["HASH", "URL", "KEY", "BLOB"];
const SHARD_HEALTH: &[&str] = &["CHOSEN", "IGNORE", "ALL"];

/// Writes the enum of functions and the table of their rows from one list:
/// `Name: vmod, class, name, result, arguments, methods, text;`.
macro_rules! functions {
    ($($function:ident: $vmod:literal, $class:literal, $name:literal, $returns:ident, [$($argument:expr),* $(,)?], $at:expr, $text:literal;)*) => {
        /// A function by name; the discriminant is its index in [`FUNCTIONS`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum Function {
            $($function,)*
        }

        impl Function {
            /// Every function in the order of its number.
            pub const ALL: &'static [Function] = &[$(Function::$function,)*];
        }

        /// Every function.
        pub static FUNCTIONS: &[FunctionRow] = &[
            $(FunctionRow {
                vmod: $vmod, class: $class, name: $name, returns: Type::$returns, arguments: &[$($argument,)*],
                at: $at, text: $text,
            },)*
        ];
    };
}

impl Function {
    /// The function with that number; `None` when there is none.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Function> {
        Function::ALL.get(number as usize).copied()
    }

    /// The function's row.
    #[must_use]
    pub fn row(self) -> &'static FunctionRow {
        &FUNCTIONS[self as usize]
    }
}

functions! {
    StdRandom: "std", "", "random", Real, [needed("lo", Type::Real), needed("hi", Type::Real)], at::ALL,
        "A random number between lo and hi, from the generator that debug.srandom seeds.";
    StdRound: "std", "", "round", Real, [needed("r", Type::Real)], at::ALL,
        "The nearest whole number, halves away from zero.";
    StdCollect: "std", "", "collect", Void, [needed("hdr", Type::Header), with_default("sep", Type::String, "\", \"")], at::ALL,
        "Joins all headers of that name into one, values separated by sep.";
    StdQuerysort: "std", "", "querysort", String, [needed("", Type::String)], at::ALL,
        "The URL with its query parameters sorted and empty ones dropped.";
    StdToupper: "std", "", "toupper", String, [needed("s", Type::Strands)], at::ALL, "The text in upper case.";
    StdTolower: "std", "", "tolower", String, [needed("s", Type::Strands)], at::ALL, "The text in lower case.";
    StdStrstr: "std", "", "strstr", String, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
        "What is left of s1 from the first s2 on; unset when s2 does not occur.";
    StdFnmatch: "std", "", "fnmatch", Bool, [
            needed("pattern", Type::String), needed("subject", Type::String), with_default("pathname", Type::Bool, "true"),
            with_default("noescape", Type::Bool, "false"), with_default("period", Type::Bool, "false"),
        ], at::ALL,
        "Whether the subject matches the shell pattern.";
    StdFileread: "std", "", "fileread", String, [needed("", Type::String)], at::ALL,
        "The content of a file, read once and kept while the VCL is loaded.";
    StdBlobread: "std", "", "blobread", Blob, [needed("", Type::String)], at::ALL,
        "The content of a file as a blob, read once and kept while the VCL is loaded.";
    StdFileExists: "std", "", "file_exists", Bool, [needed("path", Type::String)], at::ALL, "Whether a file of that name exists.";
    StdHealthy: "std", "", "healthy", Bool, [needed("be", Type::Backend)], at::ALL, "Whether the backend or director is healthy.";
    StdPort: "std", "", "port", Int, [needed("ip", Type::Ip)], at::ALL, "The port of an address; 0 for a Unix-domain socket.";
    StdDuration: "std", "", "duration", Duration, [
            optional("s", Type::String), optional("fallback", Type::Duration), optional("real", Type::Real),
            optional("integer", Type::Int),
        ], at::ALL,
        "Converts text with a unit, or a number of seconds.";
    StdBytes: "std", "", "bytes", Bytes, [
            optional("s", Type::String), optional("fallback", Type::Bytes), optional("real", Type::Real),
            optional("integer", Type::Int),
        ], at::ALL,
        "Converts text with or without a unit letter, or a number of bytes.";
    StdInteger: "std", "", "integer", Int, [
            optional("s", Type::String), optional("fallback", Type::Int), optional("bool", Type::Bool),
            optional("bytes", Type::Bytes), optional("duration", Type::Duration), optional("real", Type::Real),
            optional("time", Type::Time),
        ], at::ALL,
        "Converts to a whole number, rounding toward zero.";
    StdIp: "std", "", "ip", Ip, [
            needed("s", Type::String), optional("fallback", Type::Ip), with_default("resolve", Type::Bool, "true"),
            optional("p", Type::String),
        ], at::ALL,
        "Converts text to an address with port, asking the resolver unless told not to.";
    StdReal: "std", "", "real", Real, [
            optional("s", Type::String), optional("fallback", Type::Real), optional("integer", Type::Int),
            optional("bool", Type::Bool), optional("bytes", Type::Bytes), optional("duration", Type::Duration),
            optional("time", Type::Time),
        ], at::ALL,
        "Converts to a real number.";
    StdTime: "std", "", "time", Time, [
            optional("s", Type::String), optional("fallback", Type::Time), optional("real", Type::Real),
            optional("integer", Type::Int),
        ], at::ALL,
        "Converts a date or a number of seconds since 1970.";
    StdStrftime: "std", "", "strftime", String, [needed("time", Type::Time), needed("format", Type::String)], at::ALL,
        "The time formatted as by strftime(3), in UTC.";
    StdLog: "std", "", "log", Void, [needed("s", Type::Strands)], at::ALL, "Writes a VCL_Log record.";
    StdSyslog: "std", "", "syslog", Void, [needed("priority", Type::Int), needed("s", Type::Strands)], at::ALL,
        "Sends a message to syslog; priority is facility and level combined.";
    StdTimestamp: "std", "", "timestamp", Void, [needed("s", Type::String)], at::ALL,
        "Writes a Timestamp record with that label.";
    StdNow: "std", "", "now", Time, [], at::ALL, "The time of the call; now is that of the method's start.";
    StdTimedCall: "std", "", "timed_call", Duration, [needed("", Type::Sub)], at::ALL,
        "Runs a subroutine and says how long that took.";
    StdSyntax: "std", "", "syntax", Bool, [needed("", Type::Real)], at::ALL, "Whether the VCL version is at least the argument.";
    StdGetenv: "std", "", "getenv", String, [needed("name", Type::String)], at::ALL, "The value of an environment variable.";
    StdCacheReqBody: "std", "", "cache_req_body", Bool, [needed("size", Type::Bytes)], at::ALL,
        "Reads the request body and keeps it, if it is no larger than size.";
    StdLate100Continue: "std", "", "late_100_continue", Void, [needed("late", Type::Bool)], at::ALL,
        "Whether to wait with the 100 answer until the body is needed.";
    StdSetIpTos: "std", "", "set_ip_tos", Void, [needed("tos", Type::Int)], at::ALL,
        "Sets the type of service of the client connection.";
    StdRollback: "std", "", "rollback", Void, [needed("h", Type::Http)], at::ALL, "Restores req or bereq as it was at first.";
    StdBan: "std", "", "ban", Bool, [needed("", Type::String)], at::ALL, "Adds a ban; false when the expression is wrong.";
    StdBanError: "std", "", "ban_error", String, [], at::ALL, "Why the last std.ban() of this task failed; empty if it did not.";
    StdReal2integer: "std", "", "real2integer", Int, [needed("r", Type::Real), needed("fallback", Type::Int)], at::ALL,
        "Deprecated: rounds to a whole number.";
    StdReal2time: "std", "", "real2time", Time, [needed("r", Type::Real), needed("fallback", Type::Time)], at::ALL,
        "Deprecated: rounds to seconds since 1970.";
    StdTime2integer: "std", "", "time2integer", Int, [needed("t", Type::Time), needed("fallback", Type::Int)], at::ALL,
        "Deprecated: whole seconds since 1970.";
    StdTime2real: "std", "", "time2real", Real, [needed("t", Type::Time), needed("fallback", Type::Real)], at::ALL,
        "Deprecated: seconds since 1970.";

    RoundRobin: "directors", "round_robin", "", Instance, [], at::INIT, "A director that takes the healthy members in turn.";
    RoundRobinAddBackend: "directors", "round_robin", "add_backend", Void, [needed("", Type::Backend)], at::ALL,
        "Adds a member.";
    RoundRobinRemoveBackend: "directors", "round_robin", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
        "Removes a member.";
    RoundRobinBackend: "directors", "round_robin", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
    Fallback: "directors", "fallback", "", Instance, [with_default("sticky", Type::Bool, "false")], at::INIT,
        "A director that takes the first healthy member.";
    FallbackAddBackend: "directors", "fallback", "add_backend", Void, [needed("", Type::Backend)], at::ALL,
        "Adds a member; the order counts.";
    FallbackRemoveBackend: "directors", "fallback", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
        "Removes a member.";
    FallbackBackend: "directors", "fallback", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
    Random: "directors", "random", "", Instance, [], at::INIT, "A director that takes a healthy member by chance and weight.";
    RandomAddBackend: "directors", "random", "add_backend", Void, [needed("", Type::Backend), needed("", Type::Real)], at::ALL,
        "Adds a member with its weight.";
    RandomRemoveBackend: "directors", "random", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
        "Removes a member.";
    RandomBackend: "directors", "random", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
    Hash: "directors", "hash", "", Instance, [], at::INIT, "A director that takes a healthy member by the hash of a text.";
    HashAddBackend: "directors", "hash", "add_backend", Void,
        [needed("", Type::Backend), with_default("weight", Type::Real, "1.0")], at::ALL,
        "Adds a member with its weight.";
    HashRemoveBackend: "directors", "hash", "remove_backend", Void, [needed("", Type::Backend)], at::ALL, "Removes a member.";
    HashBackend: "directors", "hash", "backend", Backend, [needed("", Type::Strands)], at::ALL,
        "The member that the text falls to.";
    Shard: "directors", "shard", "", Instance, [], at::INIT, "A director that takes a member by consistent hashing.";
    ShardSetWarmup: "directors", "shard", "set_warmup", Void, [with_default("probability", Type::Real, "0.0")], at::ALL,
        "How often, from 0 to below 1, the next member is used to keep it warm.";
    ShardSetRampup: "directors", "shard", "set_rampup", Void, [with_default("duration", Type::Duration, "0s")], at::ALL,
        "For how long a member that became healthy gets fewer requests.";
    ShardAssociate: "directors", "shard", "associate", Void, [optional("param", Type::Blob)], at::ALL,
        "The parameter set (its use()) that counts where a call says nothing; without one, the defaults.";
    ShardAddBackend: "directors", "shard", "add_backend", Bool, [
            needed("backend", Type::Backend), optional("ident", Type::String), optional("rampup", Type::Duration),
            optional("weight", Type::Real),
        ], at::ALL,
        "Adds a member at the next reconfigure(). Its place follows from ident, or else from its name; weight from 1 on.";
    ShardRemoveBackend: "directors", "shard", "remove_backend", Bool,
        [optional("backend", Type::Backend), optional("ident", Type::String)], at::ALL,
        "Removes the member of that ident, or all entries of that backend, at the next reconfigure().";
    ShardClear: "directors", "shard", "clear", Bool, [], at::ALL, "Removes all members at the next reconfigure().";
    ShardReconfigure: "directors", "shard", "reconfigure", Bool, [with_default("replicas", Type::Int, "67")], at::ALL,
        "Makes the changes, each member with that many points for a weight of 1; at the latest the end of the task does.";
    ShardKey: "directors", "shard", "key", Int, [needed("", Type::Strands)], at::ALL, "The key that a text makes.";
    ShardBackend: "directors", "shard", "backend", Backend, [
            word("by", SHARD_KEYS, None, true), optional("key", Type::Int), optional("key_blob", Type::Blob),
            optional("alt", Type::Int), optional("warmup", Type::Real), optional("rampup", Type::Bool),
            word("healthy", SHARD_HEALTH, None, true), optional("param", Type::Blob),
            word("resolve", &["NOW", "LAZY"], None, true),
        ], at::ALL,
        "The member for a key, or with resolve=LAZY the director, which chooses when it is used.";
    ShardDebug: "directors", "shard", "debug", Void, [needed("", Type::Int)], at::ALL,
        "Writes Debug records: 1 lookups, 2 the ring, 4 ramp-up and warm-up.";
    ShardParam: "directors", "shard_param", "", Instance, [], at::INIT, "A set of parameters for shard directors.";
    ShardParamClear: "directors", "shard_param", "clear", Void, [], at::ALL,
        "Back to the defaults; in a backend task for that task.";
    ShardParamSet: "directors", "shard_param", "set", Void, [
            word("by", SHARD_KEYS, None, true), optional("key", Type::Int), optional("key_blob", Type::Blob),
            optional("alt", Type::Int), optional("warmup", Type::Real), optional("rampup", Type::Bool),
            word("healthy", SHARD_HEALTH, None, true),
        ], at::ALL,
        "Sets these parameters, the others to their defaults; in a backend task for that task.";
    ShardParamGetBy: "directors", "shard_param", "get_by", String, [], at::ALL, "Where the key comes from.";
    ShardParamGetKey: "directors", "shard_param", "get_key", Int, [], at::ALL, "The key, for this task.";
    ShardParamGetAlt: "directors", "shard_param", "get_alt", Int, [], at::ALL, "How many members are passed over.";
    ShardParamGetWarmup: "directors", "shard_param", "get_warmup", Real, [], at::ALL,
        "How often the next member is used; -1 = as the director says.";
    ShardParamGetRampup: "directors", "shard_param", "get_rampup", Bool, [], at::ALL, "Whether members ramp up.";
    ShardParamGetHealthy: "directors", "shard_param", "get_healthy", String, [], at::ALL, "Which members count.";
    ShardParamUse: "directors", "shard_param", "use", Blob, [], at::ALL,
        "The set, for .associate() and the argument param of .backend().";
    LeastConn: "directors", "least_conn", "", Instance, [], at::INIT,
        "A director that takes the healthy member with the fewest connections in use for its weight.";
    LeastConnAddBackend: "directors", "least_conn", "add_backend", Void,
        [needed("", Type::Backend), with_default("weight", Type::Real, "1.0")], at::ALL,
        "Adds a member with its weight.";
    LeastConnRemoveBackend: "directors", "least_conn", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
        "Removes a member.";
    LeastConnBackend: "directors", "least_conn", "backend", Backend, [], at::ALL,
        "The director, resolved when it is used.";
    DirectorsLookup: "directors", "", "lookup", Backend, [needed("", Type::String)], at::ALL,
        "The backend or director of that VCL name; only in vcl_init and vcl_fini.";

    PurgeHard: "purge", "", "hard", Int, [], at::ALL, "Removes all variants of the object; returns how many there were.";
    PurgeSoft: "purge", "", "soft", Int, [
            with_default("ttl", Type::Duration, "0s"), with_default("grace", Type::Duration, "-1s"),
            with_default("keep", Type::Duration, "-1s"),
        ], at::ALL,
        "Sets how long all variants are fresh from now on, and their grace and keep; a negative grace or keep leaves that time alone. Returns how many there were.";

    BlobDecode: "blob", "", "decode", Blob, [
            word("decoding", ENCODINGS, Some("IDENTITY"), false), with_default("length", Type::Int, "0"),
            needed("encoded", Type::Strands),
        ], at::ALL,
        "The bytes that a text stands for; length above 0 says how much of it to read.";
    BlobEncode: "blob", "", "encode", String, [
            word("encoding", ENCODINGS, Some("IDENTITY"), false), word("case", CASES, Some("DEFAULT"), false),
            needed("blob", Type::Blob),
        ], at::ALL,
        "The bytes written as text; case is for HEX and URL.";
    BlobTranscode: "blob", "", "transcode", String, [
            word("decoding", ENCODINGS, Some("IDENTITY"), false), word("encoding", ENCODINGS, Some("IDENTITY"), false),
            word("case", CASES, Some("DEFAULT"), false), with_default("length", Type::Int, "0"),
            needed("encoded", Type::Strands),
        ], at::ALL,
        "The text in another encoding.";
    BlobSame: "blob", "", "same", Bool, [needed("", Type::Blob), needed("", Type::Blob)], at::ALL,
        "Whether both are the same bytes at the same place.";
    BlobEqual: "blob", "", "equal", Bool, [needed("", Type::Blob), needed("", Type::Blob)], at::ALL,
        "Whether both have the same bytes.";
    BlobLength: "blob", "", "length", Int, [needed("", Type::Blob)], at::ALL, "How many bytes there are.";
    BlobSub: "blob", "", "sub", Blob,
        [needed("", Type::Blob), needed("length", Type::Bytes), with_default("offset", Type::Bytes, "0B")], at::ALL,
        "A piece of the bytes.";
    Blob: "blob", "blob", "", Instance,
        [word("decoding", ENCODINGS, Some("IDENTITY"), false), needed("encoded", Type::Strands)], at::INIT,
        "An object that holds decoded bytes.";
    BlobGet: "blob", "blob", "get", Blob, [], at::ALL, "The bytes.";
    BlobEncodeObject: "blob", "blob", "encode", String,
        [word("encoding", ENCODINGS, Some("IDENTITY"), false), word("case", CASES, Some("DEFAULT"), false)], at::ALL,
        "The bytes written as text.";

    CookieClean: "cookie", "", "clean", Void, [], at::ALL, "Forgets the cookies.";
    CookieDelete: "cookie", "", "delete", Void, [needed("cookiename", Type::String)], at::ALL, "Removes a cookie.";
    CookieFilter: "cookie", "", "filter", Void, [needed("filterstring", Type::String)], at::ALL,
        "Removes the cookies in the comma-separated list.";
    CookieFilterRe: "cookie", "", "filter_re", Void, [needed("expression", Type::Regex)], at::ALL,
        "Removes the cookies whose names match.";
    CookieKeep: "cookie", "", "keep", Void, [needed("filterstring", Type::String)], at::ALL,
        "Removes the cookies that are not in the comma-separated list.";
    CookieKeepRe: "cookie", "", "keep_re", Void, [needed("expression", Type::Regex)], at::ALL,
        "Removes the cookies whose names don't match.";
    CookieFormatDate: "cookie", "", "format_date", String, [needed("now", Type::Time), needed("timedelta", Type::Duration)],
        at::ALL, "The HTTP date of a time plus a duration.";
    CookieFormatRfc1123: "cookie", "", "format_rfc1123", String,
        [needed("now", Type::Time), needed("timedelta", Type::Duration)], at::ALL, "Deprecated name of format_date.";
    CookieGet: "cookie", "", "get", String, [needed("cookiename", Type::String)], at::ALL, "The value of a cookie, or unset.";
    CookieGetRe: "cookie", "", "get_re", String, [needed("expression", Type::Regex)], at::ALL,
        "The value of the first cookie whose name matches, or unset.";
    CookieGetString: "cookie", "", "get_string", String, [], at::ALL, "The cookies as a Cookie header has them.";
    CookieIsset: "cookie", "", "isset", Bool, [needed("cookiename", Type::String)], at::ALL, "Whether there is such a cookie.";
    CookieParse: "cookie", "", "parse", Void, [needed("cookieheader", Type::String)], at::ALL,
        "Takes a Cookie header apart, in place of what was there before.";
    CookieSet: "cookie", "", "set", Void, [needed("cookiename", Type::String), needed("value", Type::String)], at::ALL,
        "Adds or replaces a cookie.";

    VtcBarrierSync: "vtc", "", "barrier_sync", Void,
        [needed("addr", Type::String), with_default("timeout", Type::Duration, "0s")], at::ALL,
        "Connects to a barrier and waits until it opens.";
    VtcNoBackend: "vtc", "", "no_backend", Backend, [], at::ALL, "The null BACKEND.";
    VtcNoStevedore: "vtc", "", "no_stevedore", Stevedore, [], at::ALL, "The null STEVEDORE.";
    VtcNoIp: "vtc", "", "no_ip", Ip, [], at::ALL, "The null IP.";
    VtcPanic: "vtc", "", "panic", Void, [needed("", Type::Strands)], at::ALL, "Ends the worker as an internal error would, with that text for panic.show. The cache survives.";
    VtcSleep: "vtc", "", "sleep", Void, [needed("", Type::Duration)], at::ALL, "Waits that long.";
    VtcTypesize: "vtc", "", "typesize", Int, [needed("", Type::String)], at::ALL,
        "The size in C of a structure whose members are given by letters.";
    VtcProxyHeader: "vtc", "", "proxy_header", Blob, [
            word("version", &["v1", "v2"], None, false), needed("client", Type::Ip), needed("server", Type::Ip),
            optional("authority", Type::String),
        ], at::ALL,
        "A PROXY protocol header.";
    VtcWorkspaceAlloc: "vtc", "", "workspace_alloc", Void,
        [word("", WORKSPACES, None, false), needed("size", Type::Int)], at::ALL,
        "Takes that much of the task's memory; a negative size leaves that much. The four are one memory here.";
    VtcWorkspaceReserve: "vtc", "", "workspace_reserve", Bytes,
        [word("", WORKSPACES, None, false), needed("size", Type::Int)], at::ALL,
        "How much could be taken of that size, 0 when it does not fit.";
    VtcWorkspaceFree: "vtc", "", "workspace_free", Int, [word("", WORKSPACES, None, false)], at::ALL,
        "How much of the task's memory is left.";
    VtcWorkspaceSnapshot: "vtc", "", "workspace_snapshot", Void, [word("", WORKSPACES, None, false)], at::ALL,
        "Remembers how much is taken.";
    VtcWorkspaceReset: "vtc", "", "workspace_reset", Void, [word("", WORKSPACES, None, false)], at::ALL,
        "Gives back what was taken since the snapshot.";
    VtcWorkspaceOverflowed: "vtc", "", "workspace_overflowed", Bool, [word("", WORKSPACES, None, false)], at::ALL,
        "Whether something did not fit.";
    VtcWorkspaceOverflow: "vtc", "", "workspace_overflow", Void, [word("", WORKSPACES, None, false)], at::ALL,
        "As if something did not fit: the task fails.";
    VtcWorkspaceDump: "vtc", "", "workspace_dump", Blob, [
            word("", WORKSPACES, None, false), word("", &["s", "f", "r"], None, false),
            with_default("off", Type::Bytes, "0B"), with_default("len", Type::Bytes, "64B"),
        ], at::ALL,
        "Bytes of the strings of the task so far, at most 1 KB; there is nothing behind them (f and r).";
    VtcVsl: "vtc", "", "vsl", Void, [
            needed("vxid", Type::Int), needed("tag", Type::String), word("side", &["c", "b"], None, false),
            needed("s", Type::Strands),
        ], at::ALL,
        "Writes a log record of any transaction.";
    VtcVslReplay: "vtc", "", "vsl_replay", Void, [needed("s", Type::Strands)], at::ALL,
        "Writes the log records that lines of varnishlog -g raw or of varnishtest show; other lines are skipped.";

    // accept
    AcceptRule: "accept", "rule", "", Instance, [needed("string", Type::String)], at::INIT,
        "A rule with its fallback.";
    AcceptRuleAdd: "accept", "rule", "add", Void, [needed("string", Type::String)], at::ALL, "Adds a choice.";
    AcceptRuleRemove: "accept", "rule", "remove", Void, [needed("string", Type::String)], at::ALL, "Removes a choice.";
    AcceptRuleFilter: "accept", "rule", "filter", String, [needed("string", Type::String)], at::ALL,
        "The choice that the header wants most, or the fallback when it names none or cannot be read.";

    // bodyaccess
    BodyaccessRematchReqBody: "bodyaccess", "", "rematch_req_body", Int, [needed("re", Type::Regex)], at::ALL,
        "1 when the request body matches, 0 when it does not, -1 when it is not held or this is not vcl_recv.";
    BodyaccessHashReqBody: "bodyaccess", "", "hash_req_body", Void, [], at::ALL,
        "Adds the request body to the hash; only in vcl_hash.";
    BodyaccessLenReqBody: "bodyaccess", "", "len_req_body", Int, [], at::ALL,
        "Bytes of the request body, -1 when it is not held or this is not vcl_recv.";
    BodyaccessLogReqBody: "bodyaccess", "", "log_req_body", Void,
        [with_default("prefix", Type::String, "\"\""), with_default("length", Type::Int, "200")], at::ALL,
        "Writes the request body as Debug records of that many bytes, each behind the prefix.";

    DebugAuthor: "debug", "", "author", String, [
            word("person", AUTHORS, Some("phk"), false), word("someone", &["phk", "slink", "geoff"], Some("phk"), false),
        ], at::ALL,
        "The first name of one of Varnish's authors.";
    DebugTestPrivCall: "debug", "", "test_priv_call", Void, [], at::ALL, "Nothing; state of a call has no effect that shows.";
    DebugTestPrivVcl: "debug", "", "test_priv_vcl", Void, [], at::ALL, "Nothing; state of a VCL has no effect that shows.";
    DebugTestPrivTaskGet: "debug", "", "test_priv_task_get", Void, [], at::ALL, "Nothing.";
    DebugTestPrivTask: "debug", "", "test_priv_task", String, [with_default("s", Type::String, "\"\"")], at::ALL,
        "Adds a text to those that the task keeps, and returns all of them.";
    DebugTestPrivTop: "debug", "", "test_priv_top", String, [needed("", Type::String)], at::ALL,
        "The first text that was given so during the client request.";
    DebugObj: "debug", "obj", "", Instance, [
            with_default("string", Type::String, "\"default\""), word("number", &["one", "two", "three"], Some("one"), false),
        ], at::INIT,
        "An object that keeps its arguments.";
    DebugObjEnum: "debug", "obj", "enum", Void,
        [word("", &["phk", "des", "kristian", "mithrandir", "martin"], None, false)], at::ALL, "Takes an ENUM.";
    DebugObjObj: "debug", "obj", "obj", Void, [], at::ALL, "Nothing.";
    DebugObjString: "debug", "obj", "string", String, [], at::ALL, "The argument string.";
    DebugObjNumber: "debug", "obj", "number", String, [], at::ALL, "The argument number.";
    DebugObjFoo: "debug", "obj", "foo", String, [needed("why", Type::String)], at::ALL, "A fixed text.";
    DebugObjBar: "debug", "obj", "bar", String, [needed("why", Type::String)], at::ALL, "Another name of foo.";
    DebugObjDate: "debug", "obj", "date", Time, [], at::ALL, "A fixed time.";
    DebugObjTestPrivCall: "debug", "obj", "test_priv_call", Void, [], at::ALL, "Nothing.";
    DebugObjTestPrivVcl: "debug", "obj", "test_priv_vcl", Void, [], at::ALL, "Nothing.";
    DebugObjTestPrivTask: "debug", "obj", "test_priv_task", String, [with_default("s", Type::String, "\"\"")], at::ALL,
        "Keeps a text for the task; without one, returns what is kept.";
    DebugObjTestPrivTop: "debug", "obj", "test_priv_top", String, [with_default("s", Type::String, "\"\"")], at::CLIENT,
        "Keeps a text for the client request; without one, returns what is kept.";
    DebugObjOpt: "debug", "obj_opt", "", Instance, [optional("s", Type::String), optional("b", Type::Bool)], at::INIT,
        "An object that need not be made.";
    DebugObjOptMethOpt: "debug", "obj_opt", "meth_opt", String, [optional("s", Type::String), optional("b", Type::Bool)],
        at::ALL, "The arguments of the constructor and of the call.";
    DebugRot52: "debug", "", "rot52", Void, [needed("hdr", Type::Http)], at::ALL, "Adds the header Encrypted: ROT52.";
    DebugArgtest: "debug", "", "argtest", String, [
            needed("one", Type::String), with_default("two", Type::Real, "2"), with_default("three", Type::String, "\"3\""),
            with_default("comma", Type::String, "\",\""), with_default("four", Type::Int, "4"), optional("opt", Type::String),
        ], at::ALL,
        "The arguments, one after the other.";
    DebugVreLimit: "debug", "", "vre_limit", Int, [], at::ALL, "The parameter pcre2_match_limit.";
    DebugVscNew: "debug", "", "vsc_new", Void, [], at::ALL, "Shows the counter DEBUG.count.";
    DebugVscCount: "debug", "", "vsc_count", Void, [with_default("val", Type::Int, "1")], at::ALL, "Adds to that counter.";
    DebugVscDestroy: "debug", "", "vsc_destroy", Void, [], at::ALL, "Takes the counter away.";
    DebugVclDiscardDelay: "debug", "", "vcl_discard_delay", Void, [needed("", Type::Duration)], at::ALL,
        "Keeps the VCL, once it is cold, for so long.";
    DebugVclPreventCold: "debug", "", "vcl_prevent_cold", Void, [], at::ALL, "Keeps the VCL from going cold.";
    DebugVclAllowCold: "debug", "", "vcl_allow_cold", Void, [], at::ALL, "Lets it go cold again.";
    DebugFailTaskFini: "debug", "", "fail_task_fini", Void, [], at::ALL, "Has the task fail at its end.";
    DebugOkTaskFini: "debug", "", "ok_task_fini", Void, [], at::ALL, "Takes that back.";
    DebugFail: "debug", "", "fail", Void, [], at::ALL, "Fails the task.";
    DebugFail2: "debug", "", "fail2", Bool, [], at::ALL, "Fails the task.";
    DebugDyn: "debug", "dyn", "", Instance,
        [needed("addr", Type::String), needed("port", Type::String), optional("probe", Type::Probe)], at::INIT,
        "A backend that can be replaced at run time.";
    DebugDynBackend: "debug", "dyn", "backend", Backend, [], at::ALL, "The present backend.";
    DebugDynRefresh: "debug", "dyn", "refresh", Void,
        [needed("addr", Type::String), needed("port", Type::String), optional("probe", Type::Probe)], at::ALL,
        "Puts another backend in its place.";
    DebugDynUds: "debug", "dyn_uds", "", Instance, [needed("path", Type::String)], at::INIT,
        "The same behind a Unix-domain socket.";
    DebugDynUdsBackend: "debug", "dyn_uds", "backend", Backend, [], at::ALL, "The present backend.";
    DebugDynUdsRefresh: "debug", "dyn_uds", "refresh", Void, [needed("path", Type::String)], at::ALL,
        "Puts another backend in its place.";
    DebugNullAcl: "debug", "", "null_acl", Acl, [], at::ALL, "The null ACL.";
    DebugAcl: "debug", "", "acl", Acl, [needed("acl", Type::Acl)], at::ALL, "The argument.";
    DebugMatchAcl: "debug", "", "match_acl", Bool, [needed("acl", Type::Acl), needed("ip", Type::Ip)], at::ALL,
        "Whether the ACL matches.";
    DebugSweepAcl: "debug", "", "sweep_acl", Blob, [
            needed("acl", Type::Acl), needed("ip0", Type::Ip), needed("ip1", Type::Ip), with_default("step", Type::Int, "1"),
        ], at::ALL,
        "Which addresses of a range match, as Debug records; returns the digest of these.";
    DebugTimeAcl: "debug", "", "time_acl", Duration, [
            needed("acl", Type::Acl), needed("ip0", Type::Ip), needed("ip1", Type::Ip), with_default("step", Type::Int, "1"),
            with_default("rounds", Type::Int, "1000"),
        ], at::ALL,
        "How long a match takes, in nanoseconds.";
    DebugAclobj: "debug", "aclobj", "", Instance, [needed("", Type::Acl)], at::INIT, "An object that keeps an ACL.";
    DebugAclobjGet: "debug", "aclobj", "get", Acl, [], at::ALL, "The ACL.";
    DebugTestProbe: "debug", "", "test_probe", Void, [needed("probe", Type::Probe), optional("same", Type::Probe)], at::ALL,
        "Fails unless both are the same.";
    DebugConcat: "debug", "concat", "", Instance, [needed("", Type::Strands)], at::INIT, "An object that keeps a text.";
    DebugConcatGet: "debug", "concat", "get", String, [], at::ALL, "The text.";
    DebugConcatenate: "debug", "", "concatenate", String, [needed("", Type::Strands)], at::ALL, "The pieces joined.";
    DebugCollect: "debug", "", "collect", String, [needed("", Type::Strands)], at::ALL, "The pieces joined.";
    DebugSethdr: "debug", "", "sethdr", Void, [needed("", Type::Header), needed("", Type::Strands)], at::ALL,
        "Sets a header.";
    DebugReturnStrands: "debug", "", "return_strands", Strands, [needed("strand", Type::Strands)], at::ALL,
        "The argument, which it logs.";
    DebugStk: "debug", "", "stk", Bytes, [], at::ALL, "How much of the machine's stack VCL takes: none.";
    DebugSndbuf: "debug", "", "sndbuf", Void, [needed("sndbuf", Type::Bytes)], at::CLIENT,
        "Sets the send buffer of the client's connection.";
    DebugStoreIp: "debug", "", "store_ip", Void, [needed("", Type::Ip)], at::ALL, "Keeps an address for the task.";
    DebugGetIp: "debug", "", "get_ip", Ip, [], at::ALL, "The address kept.";
    DebugDirector: "debug", "director", "", Instance, [], at::INIT, "A director that fails whoever asks it.";
    DebugDirectorFail: "debug", "director", "fail", Backend, [], at::ALL, "That director.";
    DebugClientIp: "debug", "", "client_ip", String, [], at::ALL, "The client's address.";
    DebugClientPort: "debug", "", "client_port", String, [], at::ALL, "The client's port.";
    DebugReQuote: "debug", "", "re_quote", String, [needed("", Type::String)], at::ALL,
        "A pattern that matches that text alone.";
    DebugPrivTaskWithOption: "debug", "", "priv_task_with_option", String, [optional("opt", Type::String)], at::ALL,
        "The first text that was given so during the task.";
    DebugValidhdr: "debug", "", "validhdr", Bool, [needed("", Type::Strands)], at::ALL,
        "Whether a header may have that value.";
    DebugJustReturnRegex: "debug", "", "just_return_regex", Regex, [needed("", Type::Regex)], at::ALL, "The argument.";
    DebugCheckCall: "debug", "", "check_call", String, [needed("", Type::Sub)], at::ALL,
        "Why the subroutine cannot be called here; unset when it can.";
    DebugCall: "debug", "", "call", Void, [needed("", Type::Sub)], at::ALL, "Calls the subroutine.";
    DebugCaller: "debug", "caller", "", Instance, [needed("", Type::Sub)], at::INIT, "An object that keeps a subroutine.";
    DebugCallerCall: "debug", "caller", "call", Void, [], at::ALL, "Calls it.";
    DebugCallerXsub: "debug", "caller", "xsub", Sub, [], at::ALL, "The subroutine.";

    // digest
    DigestHmacSha256: "digest", "", "hmac_sha256", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The HMAC with SHA-256 of the second under the key that is the first, in hexadecimal digits after 0x; unset without a key.";
    DigestHmacSha1: "digest", "", "hmac_sha1", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The HMAC with SHA-1 of the second under the key that is the first, in hexadecimal digits after 0x; unset without a key.";
    DigestHmacMd5: "digest", "", "hmac_md5", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The HMAC with MD5 of the second under the key that is the first, in hexadecimal digits after 0x; unset without a key.";
    DigestBase64: "digest", "", "base64", String, [needed("", Type::String)], at::ALL, "The text in base64.";
    DigestBase64Hex: "digest", "", "base64_hex", String, [needed("", Type::String)], at::ALL,
        "The bytes that hexadecimal digits stand for, 0x in front or not, in base64.";
    DigestBase64Decode: "digest", "", "base64_decode", String, [needed("", Type::String)], at::ALL,
        "The text that is given in base64; empty when it is not.";
    DigestBase64url: "digest", "", "base64url", String, [needed("", Type::String)], at::ALL, "The text in base64 for URLs.";
    DigestBase64urlHex: "digest", "", "base64url_hex", String, [needed("", Type::String)], at::ALL,
        "The bytes that hexadecimal digits stand for, 0x in front or not, in base64 for URLs.";
    DigestBase64urlDecode: "digest", "", "base64url_decode", String, [needed("", Type::String)], at::ALL,
        "The text that is given in base64 for URLs; empty when it is not.";
    DigestBase64urlNopad: "digest", "", "base64url_nopad", String, [needed("", Type::String)], at::ALL, "The text in base64 for URLs without padding.";
    DigestBase64urlNopadHex: "digest", "", "base64url_nopad_hex", String, [needed("", Type::String)], at::ALL,
        "The bytes that hexadecimal digits stand for, 0x in front or not, in base64 for URLs without padding.";
    DigestBase64urlNopadDecode: "digest", "", "base64url_nopad_decode", String, [needed("", Type::String)], at::ALL,
        "The text that is given in base64 for URLs without padding; empty when it is not.";
    DigestHashSha1: "digest", "", "hash_sha1", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-1.";
    DigestHashSha224: "digest", "", "hash_sha224", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-224.";
    DigestHashSha256: "digest", "", "hash_sha256", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-256.";
    DigestHashSha384: "digest", "", "hash_sha384", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-384.";
    DigestHashSha512: "digest", "", "hash_sha512", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-512.";
    DigestHashGost: "digest", "", "hash_gost", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: GOST R 34.11-94.";
    DigestHashMd2: "digest", "", "hash_md2", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: MD2.";
    DigestHashMd4: "digest", "", "hash_md4", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: MD4.";
    DigestHashMd5: "digest", "", "hash_md5", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: MD5.";
    DigestHashCrc32: "digest", "", "hash_crc32", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: CRC-32 as bzip2 has it, lowest byte first.";
    DigestHashCrc32b: "digest", "", "hash_crc32b", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: CRC-32 as zip has it, lowest byte first.";
    DigestHashAdler32: "digest", "", "hash_adler32", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Adler-32, lowest byte first.";
    DigestHashHaval128: "digest", "", "hash_haval128", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: HAVAL, 128 bits.";
    DigestHashHaval160: "digest", "", "hash_haval160", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: HAVAL, 160 bits.";
    DigestHashHaval192: "digest", "", "hash_haval192", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: HAVAL, 192 bits.";
    DigestHashHaval224: "digest", "", "hash_haval224", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: HAVAL, 224 bits.";
    DigestHashHaval256: "digest", "", "hash_haval256", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: HAVAL, 256 bits.";
    DigestHashRipemd128: "digest", "", "hash_ripemd128", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: RIPEMD-128.";
    DigestHashRipemd160: "digest", "", "hash_ripemd160", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: RIPEMD-160.";
    DigestHashRipemd256: "digest", "", "hash_ripemd256", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: RIPEMD-256.";
    DigestHashRipemd320: "digest", "", "hash_ripemd320", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: RIPEMD-320.";
    DigestHashSnefru128: "digest", "", "hash_snefru128", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Snefru, 128 bits.";
    DigestHashSnefru256: "digest", "", "hash_snefru256", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Snefru, 256 bits.";
    DigestHashTiger: "digest", "", "hash_tiger", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Tiger.";
    DigestHashTiger128: "digest", "", "hash_tiger128", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Tiger, the first 128 bits.";
    DigestHashTiger160: "digest", "", "hash_tiger160", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Tiger, the first 160 bits.";
    DigestHashWhirlpool: "digest", "", "hash_whirlpool", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Whirlpool.";
    DigestVersion: "digest", "", "version", String, [], at::ALL, "The version of the VMOD that this one behaves like.";

    // dynamic
    DynamicDirector: "dynamic", "director", "", Instance, [
            with_default("port", Type::String, "\"http\""), optional("host_header", Type::String),
            word("share", &["DEFAULT", "DIRECTOR", "HOST"], Some("DEFAULT"), false), optional("probe", Type::Probe),
            optional("whitelist", Type::Acl), with_default("ttl", Type::Duration, "3600s"),
            with_default("connect_timeout", Type::Duration, "-1s"),
            with_default("first_byte_timeout", Type::Duration, "-1s"),
            with_default("between_bytes_timeout", Type::Duration, "-1s"),
            with_default("domain_usage_timeout", Type::Duration, "7200s"),
            with_default("first_lookup_timeout", Type::Duration, "10s"), with_default("max_connections", Type::Int, "0"),
            with_default("proxy_header", Type::Int, "0"), optional("resolver", Type::Blob),
            word("ttl_from", &["cfg", "dns", "min", "max"], Some("cfg"), false),
            with_default("retry_after", Type::Duration, "30s"), optional("via", Type::Backend),
            with_default("keep", Type::Int, "3"), optional("authority", Type::String),
            with_default("wait_timeout", Type::Duration, "-1s"), with_default("wait_limit", Type::Int, "0"),
        ], at::INIT,
        "An object that makes backends of the addresses of hosts, looked up anew every ttl.";
    DynamicDirectorBackend: "dynamic", "director", "backend", Backend, [
            with_default("host", Type::String, "\"\""), with_default("port", Type::String, "\"\""),
            optional("authority", Type::String),
        ], at::ALL,
        "The backends of a host in turn; without one, of the Host header.";
    DynamicDirectorService: "dynamic", "director", "service", Backend, [needed("service", Type::String)], at::ALL,
        "A target of the SRV records of a name, by priority and weight; only with a resolver.";
    DynamicDirectorDebug: "dynamic", "director", "debug", Void, [needed("", Type::Bool)], at::ALL,
        "Whether to log what becomes of backends.";
    DynamicResolver: "dynamic", "resolver", "", Instance,
        [with_default("set_from_os", Type::Bool, "true"), with_default("parallel", Type::Int, "16")], at::INIT,
        "Asks DNS itself, for times to live and SRV records. Servers are those of resolv.conf.";
    DynamicResolverUse: "dynamic", "resolver", "use", Blob, [], at::ALL, "The resolver as an argument of director().";
    DynamicResolverResolutionType: "dynamic", "resolver", "set_resolution_type", Bool,
        [word("", &["RECURSING", "STUB"], None, false)], at::INIT,
        "Whose work it is to look further; only STUB, that of the servers, can be had.";
    DynamicResolverClearNamespaces: "dynamic", "resolver", "clear_namespaces", Bool, [], at::INIT,
        "Begins a list of namespaces.";
    DynamicResolverAddNamespace: "dynamic", "resolver", "add_namespace", Bool,
        [word("", &["DNS", "LOCALNAMES", "NETBIOS", "MDNS", "NIS"], None, false)], at::INIT,
        "Adds a namespace to the list: DNS or LOCALNAMES (the hosts file), both of which are asked in any case.";
    DynamicResolverSetNamespaces: "dynamic", "resolver", "set_namespaces", Bool, [], at::INIT,
        "Ends the list of namespaces.";
    DynamicResolverClearTransports: "dynamic", "resolver", "clear_transports", Bool, [], at::INIT,
        "Begins a list of transports.";
    DynamicResolverAddTransport: "dynamic", "resolver", "add_transport", Bool,
        [word("", &["UDP", "TCP", "TLS"], None, false)], at::INIT,
        "Adds a transport to the list: UDP, and TCP for what is too long for it.";
    DynamicResolverSetTransports: "dynamic", "resolver", "set_transports", Bool, [], at::INIT,
        "Ends the list of transports, in which UDP must be.";
    DynamicResolverIdleTimeout: "dynamic", "resolver", "set_idle_timeout", Bool, [needed("", Type::Duration)], at::INIT,
        "For how long connections are kept: without effect, none is.";
    DynamicResolverOutstanding: "dynamic", "resolver", "set_limit_outstanding_queries", Bool, [needed("", Type::Int)],
        at::INIT, "How many lookups run at once, if fewer than parallel; 0 for as many as that.";
    DynamicResolverTimeout: "dynamic", "resolver", "set_timeout", Bool, [needed("", Type::Duration)], at::INIT,
        "How long a lookup may take.";
    DynamicResolverFollowRedirects: "dynamic", "resolver", "set_follow_redirects", Bool,
        [word("", &["REDIRECTS_FOLLOW", "REDIRECTS_DO_NOT_FOLLOW"], None, false)], at::INIT,
        "Whether aliases are followed; only REDIRECTS_FOLLOW can be had.";

    // header
    HeaderAppend: "header", "", "append", Void, [needed("", Type::Header), needed("", Type::Strands)], at::ALL,
        "Adds another line of that header.";
    HeaderCopy: "header", "", "copy", Void, [needed("", Type::Header), needed("", Type::Header)], at::ALL,
        "Adds all lines of the first header under the name of the second.";
    HeaderGet: "header", "", "get", String, [needed("header", Type::Header), needed("regex", Type::Regex)], at::ALL,
        "The first value of the header that matches; unset when none does.";
    HeaderRemove: "header", "", "remove", Void, [needed("header", Type::Header), needed("regex", Type::Regex)], at::ALL,
        "Removes the lines of the header whose values match.";
    HeaderRegsub: "header", "", "regsub", Void, [
            needed("", Type::Http), needed("regex", Type::Regex), needed("sub", Type::String),
            with_default("all", Type::Bool, "false"),
        ], at::ALL,
        "Replaces the first match, or all, in every whole header line, name included, as regsub() does.";
    HeaderDyn: "header", "", "dyn", Header, [needed("", Type::Http), needed("", Type::String)], at::ALL,
        "The header of a name that is made at run time, for the other functions; a colon ends the name.";

    H2Is: "h2", "", "is", Bool, [], at::CLIENT, "Whether the client speaks HTTP/2.";
    H2RapidReset: "h2", "", "rapid_reset", Duration, [optional("threshold", Type::Duration)], at::CLIENT,
        "How soon after its start a stream that is reset counts as rapid, before this call sets it; -1 outside HTTP/2.";
    H2RapidResetLimit: "h2", "", "rapid_reset_limit", Int, [optional("number", Type::Int)], at::CLIENT,
        "How many rapid resets are allowed in a period, before this call sets it; -1 outside HTTP/2.";
    H2RapidResetPeriod: "h2", "", "rapid_reset_period", Duration, [optional("duration", Type::Duration)], at::CLIENT,
        "The period in which they are counted, before this call sets it; -1 outside HTTP/2.";
    H2RapidResetBudget: "h2", "", "rapid_reset_budget", Real, [], at::CLIENT,
        "How many rapid resets the client may still make; -1 outside HTTP/2.";
    ProxyAlpn: "proxy", "", "alpn", String, [], at::ALL, "The protocol chosen by ALPN, or unset.";
    ProxyAuthority: "proxy", "", "authority", String, [], at::ALL, "The host name the client asked for (SNI), or unset.";
    ProxyIsSsl: "proxy", "", "is_ssl", Bool, [], at::ALL, "Whether the client connected over TLS.";
    ProxyClientHasCertSess: "proxy", "", "client_has_cert_sess", Bool, [], at::ALL,
        "Whether the client showed a certificate at least once in the TLS session.";
    ProxyClientHasCertConn: "proxy", "", "client_has_cert_conn", Bool, [], at::ALL,
        "Whether the client showed a certificate on this connection.";
    ProxySslVerifyResult: "proxy", "", "ssl_verify_result", Int, [], at::ALL,
        "What checking the client's certificate came to; 0 = it is good, or there is none.";
    ProxySslVersion: "proxy", "", "ssl_version", String, [], at::ALL, "The version of TLS, or unset.";
    ProxyClientCertCn: "proxy", "", "client_cert_cn", String, [], at::ALL,
        "The common name of the client's certificate, or unset.";
    ProxySslCipher: "proxy", "", "ssl_cipher", String, [], at::ALL, "The cipher, or unset.";
    ProxyCertSign: "proxy", "", "cert_sign", String, [], at::ALL,
        "The algorithm that signed the certificate shown to the client, or unset.";
    ProxyCertKey: "proxy", "", "cert_key", String, [], at::ALL,
        "The algorithm of the key of the certificate shown to the client, or unset.";

    // querystring
    QuerystringClean: "querystring", "", "clean", String, [optional("url", Type::String)], at::ALL,
        "The URL (unless given, that of the request) without empty parameters.";
    QuerystringSort: "querystring", "", "sort", String, [optional("url", Type::String), with_default("uniq", Type::Bool, "false")],
        at::ALL, "The URL with its parameters sorted, repeated ones dropped if so wanted.";
    QuerystringRemove: "querystring", "", "remove", String, [optional("url", Type::String)], at::ALL, "The URL without its query string.";
    QuerystringFilter: "querystring", "filter", "", Instance, [
            with_default("sort", Type::Bool, "false"), with_default("uniq", Type::Bool, "false"),
            word("match", &["name", "param"], Some("name"), false),
        ], at::INIT,
        "A filter: what it compares are names or whole parameters.";
    QuerystringAddString: "querystring", "filter", "add_string", Void, [needed("", Type::String)], at::ALL,
        "Adds an exact text to compare with.";
    QuerystringAddGlob: "querystring", "filter", "add_glob", Void, [needed("", Type::String)], at::ALL,
        "Adds a shell pattern.";
    QuerystringAddRegex: "querystring", "filter", "add_regex", Void, [needed("", Type::Regex)], at::ALL,
        "Adds a regular expression.";
    QuerystringApply: "querystring", "filter", "apply", String,
        [optional("url", Type::String), word("mode", &["keep", "drop"], Some("drop"), false)], at::ALL,
        "The URL without the parameters that match, or with only those.";
    QuerystringExtract: "querystring", "filter", "extract", String,
        [optional("url", Type::String), word("mode", &["keep", "drop"], Some("drop"), false)], at::ALL,
        "The query string of what apply would give; unset when the URL has none.";
    QuerystringFiltersep: "querystring", "", "filtersep", String, [], at::ALL,
        "What separates the names given to filter and filter_except.";
    QuerystringFilterNames: "querystring", "", "filter", String, [needed("", Type::String), needed("", Type::Strands)], at::ALL,
        "The URL without the parameters named.";
    QuerystringFilterExcept: "querystring", "", "filter_except", String, [needed("", Type::String), needed("", Type::Strands)], at::ALL,
        "The URL with only the parameters named.";
    QuerystringRegfilter: "querystring", "", "regfilter", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The URL without the parameters whose names match the regular expression.";
    QuerystringRegfilterExcept: "querystring", "", "regfilter_except", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The URL with only the parameters whose names match the regular expression.";
    QuerystringGlobfilter: "querystring", "", "globfilter", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The URL without the parameters whose names match the shell pattern.";
    QuerystringGlobfilterExcept: "querystring", "", "globfilter_except", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The URL with only the parameters whose names match the shell pattern.";

    // re
    ReRegex: "re", "regex", "", Instance, [needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::INIT,
        "An expression, and the limits of its matches where they differ from the parameters'.";
    ReFailed: "re", "regex", "failed", Bool, [], at::ALL, "Whether the expression did not compile; such an object matches nothing.";
    ReError: "re", "regex", "error", String, [], at::ALL, "Why the expression did not compile; empty when it did.";
    ReMatch: "re", "regex", "match", Bool, [needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::ALL,
        "Whether the text matches; the groups can be asked for in the same task.";
    ReMatchDyn: "re", "regex", "match_dyn", Bool, [needed("", Type::String), needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::ALL,
        "Whether the second text matches the expression that is the first, compiled for this call.";
    ReBackref: "re", "regex", "backref", String, [needed("", Type::Int), with_default("fallback", Type::String, "\"**BACKREF METHOD FAILED**\"")], at::ALL,
        "Group 0 (all) to 10 of the object's last match in this task, else the fallback.";
    ReNamedref: "re", "regex", "namedref", String, [needed("", Type::String), with_default("fallback", Type::String, "\"**NAMEDREF METHOD FAILED**\"")], at::ALL,
        "The group of that name of the object's last match in this task, else the fallback.";
    ReFunctionMatchDyn: "re", "", "match_dyn", Bool, [needed("", Type::String), needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::ALL,
        "Whether the second text matches the expression that is the first, without an object.";
    ReFunctionBackref: "re", "", "backref", String, [needed("", Type::Int), with_default("fallback", Type::String, "\"**BACKREF METHOD FAILED**\"")], at::ALL,
        "Group 0 (all) to 10 of the last re.match_dyn() of this task, else the fallback.";
    ReFunctionNamedref: "re", "", "namedref", String, [needed("", Type::String), with_default("fallback", Type::String, "\"**NAMEDREF METHOD FAILED**\"")], at::ALL,
        "The group of that name of the last re.match_dyn() of this task, else the fallback.";
    ReVersion: "re", "", "version", String, [], at::ALL, "The version of the VMOD that this one behaves like.";

    // saintmode
    SaintmodeBlacklist: "saintmode", "", "blacklist", Void, [needed("expires", Type::Duration)], at::ALL,
        "Makes the backend that answered sick for this object for so long; only in vcl_backend_response.";
    SaintmodeDenylist: "saintmode", "", "denylist", Void, [needed("expires", Type::Duration)], at::ALL,
        "Another name of blacklist().";
    SaintmodeStatus: "saintmode", "", "status", String, [], at::ALL, "The saintmode objects of the VCL as JSON.";
    Saintmode: "saintmode", "saintmode", "", Instance, [needed("backend", Type::Backend), needed("threshold", Type::Int)],
        at::INIT,
        "A director before a backend, which is sick for all once it is for that many objects; 0 turns the list off.";
    SaintmodeBackend: "saintmode", "saintmode", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
    SaintmodeBlacklistCount: "saintmode", "saintmode", "blacklist_count", Int, [], at::ALL,
        "For how many objects the backend is sick now.";
    SaintmodeDenylistCount: "saintmode", "saintmode", "denylist_count", Int, [], at::ALL,
        "Another name of blacklist_count().";
    SaintmodeIsHealthy: "saintmode", "saintmode", "is_healthy", Bool, [], at::ALL,
        "Whether the list has nothing against the object of this request; on the backend side, whether the backend is well.";

    // str
    StrCount: "str", "", "count", Int, [needed("s", Type::String)], at::ALL, "How many bytes s has; -1 when it is unset.";
    StrStartswith: "str", "", "startswith", Bool, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
        "Whether s1 starts with s2.";
    StrEndswith: "str", "", "endswith", Bool, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
        "Whether s1 ends with s2.";
    StrContains: "str", "", "contains", Bool, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
        "Whether s2 occurs in s1.";
    StrTake: "str", "", "take", String,
        [needed("s", Type::String), needed("n", Type::Int), with_default("offset", Type::Int, "0")], at::ALL,
        "The n bytes from offset on; a negative offset counts from the end, a negative n to the left.";
    StrReverse: "str", "", "reverse", String, [needed("s", Type::String)], at::ALL, "The bytes of s backwards.";
    StrSplit: "str", "", "split", String,
        [needed("S", Type::String), needed("n", Type::Int), with_default("sep", Type::String, "\" \t\"")], at::ALL,
        "The n-th piece between characters of sep, from the end when n is negative; unset when there is none.";
    StrTokenIntersect: "str", "", "token_intersect", Bool,
        [needed("str1", Type::String), needed("str2", Type::String), optional("separators", Type::String)], at::ALL,
        "Whether both have a piece in common; separators are space and comma unless given.";

    // tcp
    TcpCongestionAlgorithm: "tcp", "", "congestion_algorithm", Int, [needed("algorithm", Type::String)], at::ALL,
        "Sets the congestion control algorithm of the client's connection; 0, or -1 when that fails.";
    TcpDumpInfo: "tcp", "", "dump_info", Void, [], at::ALL, "Writes what the system knows of the client's connection as VCL_Log.";
    TcpGetEstimatedRtt: "tcp", "", "get_estimated_rtt", Real, [], at::ALL,
        "The estimated round trip time to the client, in milliseconds.";
    TcpSetSocketPace: "tcp", "", "set_socket_pace", Void, [needed("", Type::Int)], at::ALL,
        "Sets how fast to send to the client, in KB a second.";

    // tls
    TlsIsTls: "tls", "", "is_tls", Bool, [], ON_TLS, "Whether the connection is encrypted.";
    TlsVersion: "tls", "", "version", String, [], ON_TLS, "The version: TLSv1.2 or TLSv1.3; unset in clear, as all texts here.";
    TlsCipher: "tls", "", "cipher", String, [], ON_TLS, "The cipher suite, as OpenSSL calls it.";
    TlsAuthority: "tls", "", "authority", String, [], ON_TLS, "The host name asked for in the handshake (SNI).";
    TlsAlpn: "tls", "", "alpn", String, [], ON_TLS, "The protocol chosen by ALPN.";
    TlsCertSign: "tls", "", "cert_sign", String, [], ON_TLS, "The algorithm that signed the certificate shown, e.g. RSA-SHA256.";
    TlsCertKey: "tls", "", "cert_key", String, [], ON_TLS, "The kind of key of the certificate shown, e.g. RSA2048 or EC256.";
    TlsJa3: "tls", "", "ja3", String, [], ON_TLS, "The JA3 fingerprint of the client, if the parameter tls_ja3 is on.";
    TlsIsResumed: "tls", "", "is_resumed", Bool, [], ON_TLS, "Whether an earlier session was resumed.";
    TlsIsEarly: "tls", "", "is_early", Bool, [], ON_TLS, "Whether the client's handshake is not complete yet (early data).";
    TlsClientCertSubject: "tls", "", "client_cert_subject", String, [], ON_TLS,
        "The subject of the client's certificate, as RFC 4514 writes it; unset without one.";
    TlsClientCertIssuer: "tls", "", "client_cert_issuer", String, [], ON_TLS, "The issuer of the client's certificate.";
    TlsClientCertSerial: "tls", "", "client_cert_serial", String, [], ON_TLS,
        "The serial number of the client's certificate, hexadecimal.";
    TlsClientCertFingerprint: "tls", "", "client_cert_fingerprint", String, [], ON_TLS,
        "SHA-256 of the client's certificate, hexadecimal.";

    UnixUser: "unix", "", "user", String, [], at::ALL, "The name of the peer's user, or unset.";
    UnixGroup: "unix", "", "group", String, [], at::ALL, "The name of the peer's group, or unset.";
    UnixUid: "unix", "", "uid", Int, [], at::ALL, "The number of the peer's user; -1 when it is not known.";
    UnixGid: "unix", "", "gid", Int, [], at::ALL, "The number of the peer's group; -1 when it is not known.";

    // uuid
    Uuid: "uuid", "", "uuid", String, [], at::ALL, "The same as uuid_v1.";
    UuidV1: "uuid", "", "uuid_v1", String, [], at::ALL, "An identifier made of the time and a random node.";
    UuidV3: "uuid", "", "uuid_v3", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The identifier of a name in a namespace (nil, ns:DNS, ns:URL, ns:OID, ns:X500 or a UUID), by MD5; unset in no namespace.";
    UuidV4: "uuid", "", "uuid_v4", String, [], at::ALL, "A random identifier.";
    UuidV5: "uuid", "", "uuid_v5", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "The identifier of a name in a namespace, by SHA-1; else as uuid_v3.";

    // var
    VarSet: "var", "", "set", Void, [needed("key", Type::String), needed("value", Type::String)], at::ALL,
        "Sets a STRING variable of the task.";
    VarGet: "var", "", "get", String, [needed("", Type::String)], at::ALL, "A STRING variable; unset when there is none.";
    VarGlobalSet: "var", "", "global_set", Void, [needed("", Type::String), needed("", Type::String)], at::ALL,
        "Sets a variable that all tasks and VCLs share.";
    VarGlobalGet: "var", "", "global_get", String, [needed("", Type::String)], at::ALL,
        "A variable that all tasks and VCLs share; unset when there is none.";
    VarSetInt: "var", "", "set_int", Void, [needed("key", Type::String), needed("value", Type::Int)], at::ALL,
        "Sets an INT variable of the task.";
    VarGetInt: "var", "", "get_int", Int, [needed("key", Type::String)], at::ALL, "An INT variable; 0 when there is none.";
    VarSetString: "var", "", "set_string", Void, [needed("key", Type::String), needed("value", Type::String)], at::ALL,
        "The same as set.";
    VarGetString: "var", "", "get_string", String, [needed("key", Type::String)], at::ALL, "The same as get.";
    VarSetReal: "var", "", "set_real", Void, [needed("key", Type::String), needed("value", Type::Real)], at::ALL,
        "Sets a REAL variable of the task.";
    VarGetReal: "var", "", "get_real", Real, [needed("key", Type::String)], at::ALL,
        "A REAL variable; 0 when there is none.";
    VarSetDuration: "var", "", "set_duration", Void, [needed("key", Type::String), needed("value", Type::Duration)], at::ALL,
        "Sets a DURATION variable of the task.";
    VarGetDuration: "var", "", "get_duration", Duration, [needed("key", Type::String)], at::ALL,
        "A DURATION variable; 0s when there is none.";
    VarSetIp: "var", "", "set_ip", Void, [needed("key", Type::String), needed("value", Type::Ip)], at::ALL,
        "Sets an IP variable of the task.";
    VarGetIp: "var", "", "get_ip", Ip, [needed("key", Type::String)], at::ALL,
        "An IP variable; the null IP when there is none.";
    VarSetBackend: "var", "", "set_backend", Void, [needed("key", Type::String), needed("value", Type::Backend)], at::ALL,
        "Sets a BACKEND variable of the task.";
    VarGetBackend: "var", "", "get_backend", Backend, [needed("key", Type::String)], at::ALL,
        "A BACKEND variable; no backend when there is none.";
    VarClear: "var", "", "clear", Void, [], at::ALL, "Forgets all variables of the task.";

    // vsthrottle
    ThrottleIsDenied: "vsthrottle", "", "is_denied", Bool, [
            needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
            with_default("block", Type::Duration, "0s"),
        ], at::ALL,
        "Takes a token of the bucket; true when there was none, and then for the time of block.";
    ThrottleReturnToken: "vsthrottle", "", "return_token", Void, [
            needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
            with_default("block", Type::Duration, "0s"),
        ], at::ALL,
        "Puts a token back into the bucket.";
    ThrottleRemaining: "vsthrottle", "", "remaining", Int, [
            needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
            with_default("block", Type::Duration, "0s"),
        ], at::ALL,
        "How many tokens the bucket has.";
    ThrottleBlocked: "vsthrottle", "", "blocked", Duration, [
            needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
            needed("block", Type::Duration),
        ], at::ALL,
        "How long the bucket is still blocked.";
    ThrottleRemoveBucket: "vsthrottle", "", "remove_bucket", Void, [
            needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
            with_default("block", Type::Duration, "0s"),
        ], at::ALL,
        "Forgets the bucket.";

    // xkey
    XkeyPurge: "xkey", "", "purge", Int, [needed("keys", Type::String)], at::ALL,
        "Removes the objects with any of the tags, which blanks or commas separate; returns how many there were.";
    XkeySoftpurge: "xkey", "", "softpurge", Int, [needed("keys", Type::String)], at::ALL,
        "Ends the freshness of the objects with any of the tags, leaving grace and keep; returns how many were fresh.";

}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_belongs_to_a_vmod_and_every_method_to_a_class_with_a_constructor() {
        for row in FUNCTIONS {
            assert!(VMODS.iter().any(|vmod| vmod.name == row.vmod), "{}", row.vmod);
            if !row.class.is_empty() {
                let constructor = FUNCTIONS
                    .iter()
                    .find(|other| other.vmod == row.vmod && other.class == row.class && other.name.is_empty())
                    .unwrap_or_else(|| panic!("{}.{} has no constructor", row.vmod, row.class));
                assert_eq!(constructor.returns, Type::Instance);
                assert_eq!(constructor.at, at::INIT);
            }
        }
        assert_eq!(FUNCTIONS.len(), Function::ALL.len());
    }

    #[test]
    fn names_are_unique_within_a_class() {
        for (index, row) in FUNCTIONS.iter().enumerate() {
            let same = FUNCTIONS
                .iter()
                .position(|other| (other.vmod, other.class, other.name) == (row.vmod, row.class, row.name));
            assert_eq!(same, Some(index), "{}.{}.{}", row.vmod, row.class, row.name);
        }
    }

    #[test]
    fn enumerations_have_words_and_their_default_is_one_of_them() {
        for row in FUNCTIONS {
            for argument in row.arguments {
                assert_eq!(argument.kind == Type::Enum, !argument.values.is_empty(), "{}.{}", row.vmod, row.name);
                if let (Type::Enum, Some(word)) = (argument.kind, argument.default) {
                    assert!(argument.values.contains(&word), "{}.{}: {word}", row.vmod, row.name);
                }
            }
        }
    }
}
