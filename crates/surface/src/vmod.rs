//! VMOD signatures: one row per function, for the type checker and the reference page.
//!
//! `vmods` implements the rows: [`functions`] names those of each VMOD, and the VMOD's `match` has
//! no arm for "other", so a row without an implementation does not compile. A function's number is
//! its index in [`FUNCTIONS`]. Hidden arguments in Varnish's own tables are not listed: users never
//! write them. Source: the VMOD manual pages of Varnish 7.1.1 and their behaviour. Next file:
//! `reference/vmods.rs`.

pub mod examples;
pub mod foreign;

use crate::vcl::{Type, at};

/// One argument of a VMOD function.
#[derive(Debug)]
pub struct ArgumentRow {
    /// Name for `name = value`; empty if only positional.
    pub name: &'static str,
    /// Type. STRANDS takes any number of strings joined by `+`.
    pub kind: Type,
    /// Default, as a VCL literal of that type (`true`, `", "`, `-1s`; the bare word for an ENUM);
    /// `None` if there is none.
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

/// Methods in which the VMOD tls may be used.
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
const CRYPTO_DIGESTS: &[&str] =
    &["md_null", "md4", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "ripemd160", "rmd160", "whirlpool"];
const AUTHORS: &[&str] = &["phk", "des", "kristian", "mithrandir"];
const WORKSPACES: &[&str] = &["client", "backend", "session", "thread"];
const SHARD_KEYS: &[&str] = &["HASH", "URL", "KEY", "BLOB"];
const SHARD_HEALTH: &[&str] = &["CHOSEN", "IGNORE", "ALL"];

/// Declares the VMODs and their functions from one list. A VMOD has its name as a module and as a
/// variant, its name in VCL, a line of explanation, the classes whose objects are directors, and
/// its functions: `Name: class, name, result, arguments, methods, text;`.
macro_rules! vmods {
    ($(
        $module:ident $vmod:ident $vmod_name:literal $about:literal directors $directors:tt {
            $(
                $function:ident: $class:literal, $name:literal, $returns:ident,
                [$($argument:expr),* $(,)?], $at:expr, $text:literal;
            )*
        }
    )*) => {
        /// Every VMOD.
        pub static VMODS: &[VmodRow] =
            &[$(VmodRow { name: $vmod_name, text: $about, directors: &$directors },)*];

        /// A function by name; the discriminant is its index in [`FUNCTIONS`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum Function {
            $($($function,)*)*
        }

        impl Function {
            /// Every function in the order of its number.
            pub const ALL: &'static [Function] = &[$($(Function::$function,)*)*];

            /// The function as one of its VMOD.
            #[must_use]
            pub fn of_vmod(self) -> VmodFunction {
                match self {
                    $($(Function::$function =>
                        VmodFunction::$vmod(functions::$module::Function::$function),)*)*
                }
            }
        }

        /// The VMOD of a function, and the function.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum VmodFunction {
            $(#[doc = concat!("Of the VMOD ", $vmod_name, ".")] $vmod(functions::$module::Function),)*
        }

        /// The functions of each VMOD.
        pub mod functions {
            $(
                #[doc = concat!("The functions of the VMOD ", $vmod_name, ".")]
                pub mod $module {
                    /// A function by name.
                    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
                    #[allow(missing_docs)]
                    pub enum Function {
                        $($function,)*
                    }

                    impl Function {
                        /// Its name in VCL.
                        #[must_use]
                        pub fn name(self) -> &'static str {
                            match self {
                                $(Function::$function => $name,)*
                            }
                        }
                    }
                }
            )*
        }

        /// Every function.
        pub static FUNCTIONS: &[FunctionRow] = &[
            $($(FunctionRow {
                vmod: $vmod_name,
                class: $class,
                name: $name,
                returns: Type::$returns,
                arguments: &[$($argument,)*],
                at: $at,
                text: $text,
            },)*)*
        ];
    };
}

impl Function {
    /// Function with this number; `None` if there is none.
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

vmods! {
    std Std "std" "Text, conversions, files, logging and control of the running task." directors [] {
        StdRandom: "", "random", Real, [needed("lo", Type::Real), needed("hi", Type::Real)], at::ALL,
            "A random number between lo and hi, from the generator that debug.srandom seeds.";
        StdRound: "", "round", Real, [needed("r", Type::Real)], at::ALL,
            "The nearest whole number, halves away from zero.";
        StdCollect: "", "collect", Void, [needed("hdr", Type::Header), with_default("sep", Type::String, "\", \"")], at::ALL,
            "Joins all headers of that name into one, values separated by sep.";
        StdQuerysort: "", "querysort", String, [needed("", Type::String)], at::ALL,
            "The URL with its query parameters sorted and empty ones dropped.";
        StdToupper: "", "toupper", String, [needed("s", Type::Strands)], at::ALL, "The text in upper case.";
        StdTolower: "", "tolower", String, [needed("s", Type::Strands)], at::ALL, "The text in lower case.";
        StdStrstr: "", "strstr", String, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
            "The part of s1 from the first s2 on; unset if s2 does not occur.";
        StdFnmatch: "", "fnmatch", Bool, [
                needed("pattern", Type::String), needed("subject", Type::String), with_default("pathname", Type::Bool, "true"),
                with_default("noescape", Type::Bool, "false"), with_default("period", Type::Bool, "false"),
            ], at::ALL,
            "True if the subject matches the shell pattern.";
        StdFileread: "", "fileread", String, [needed("", Type::String)], at::ALL,
            "The content of a file, read once and kept while the VCL is loaded.";
        StdBlobread: "", "blobread", Blob, [needed("", Type::String)], at::ALL,
            "The content of a file as a blob, read once and kept while the VCL is loaded.";
        StdFileExists: "", "file_exists", Bool, [needed("path", Type::String)], at::ALL, "True if a file of that name exists.";
        StdHealthy: "", "healthy", Bool, [needed("be", Type::Backend)], at::ALL, "True if the backend or director is healthy.";
        StdPort: "", "port", Int, [needed("ip", Type::Ip)], at::ALL, "The port of an address; 0 for a Unix-domain socket.";
        StdDuration: "", "duration", Duration, [
                optional("s", Type::String), optional("fallback", Type::Duration), optional("real", Type::Real),
                optional("integer", Type::Int),
            ], at::ALL,
            "Converts text with a unit, or a number of seconds.";
        StdBytes: "", "bytes", Bytes, [
                optional("s", Type::String), optional("fallback", Type::Bytes), optional("real", Type::Real),
                optional("integer", Type::Int),
            ], at::ALL,
            "Converts text with or without a unit letter, or a number of bytes.";
        StdInteger: "", "integer", Int, [
                optional("s", Type::String), optional("fallback", Type::Int), optional("bool", Type::Bool),
                optional("bytes", Type::Bytes), optional("duration", Type::Duration), optional("real", Type::Real),
                optional("time", Type::Time),
            ], at::ALL,
            "Converts to a whole number, rounding toward zero.";
        StdIp: "", "ip", Ip, [
                needed("s", Type::String), optional("fallback", Type::Ip), with_default("resolve", Type::Bool, "true"),
                optional("p", Type::String),
            ], at::ALL,
            "Converts text to an address with port, with the resolver if resolve is true.";
        StdReal: "", "real", Real, [
                optional("s", Type::String), optional("fallback", Type::Real), optional("integer", Type::Int),
                optional("bool", Type::Bool), optional("bytes", Type::Bytes), optional("duration", Type::Duration),
                optional("time", Type::Time),
            ], at::ALL,
            "Converts to a real number.";
        StdTime: "", "time", Time, [
                optional("s", Type::String), optional("fallback", Type::Time), optional("real", Type::Real),
                optional("integer", Type::Int),
            ], at::ALL,
            "Converts a date or a number of seconds since 1970.";
        StdStrftime: "", "strftime", String, [needed("time", Type::Time), needed("format", Type::String)], at::ALL,
            "The time formatted as by strftime(3), in UTC.";
        StdLog: "", "log", Void, [needed("s", Type::Strands)], at::ALL, "Writes a VCL_Log record.";
        StdSyslog: "", "syslog", Void, [needed("priority", Type::Int), needed("s", Type::Strands)], at::ALL,
            "Sends a message to syslog; priority is facility and level combined.";
        StdTimestamp: "", "timestamp", Void, [needed("s", Type::String)], at::ALL,
            "Writes a Timestamp record with that label.";
        StdNow: "", "now", Time, [], at::ALL, "The time of the call; now is that of the method's start.";
        StdTimedCall: "", "timed_call", Duration, [needed("", Type::Sub)], at::ALL,
            "Runs a subroutine and says how long that took.";
        StdSyntax: "", "syntax", Bool, [needed("", Type::Real)], at::ALL, "True if the VCL version is at least the argument.";
        StdGetenv: "", "getenv", String, [needed("name", Type::String)], at::ALL, "The value of an environment variable.";
        StdCacheReqBody: "", "cache_req_body", Bool, [needed("size", Type::Bytes)], at::ALL,
            "Reads and buffers the request body, if it is at most size bytes.";
        StdLate100Continue: "", "late_100_continue", Void, [needed("late", Type::Bool)], at::ALL,
            "True if to wait with the 100 answer until the body is needed.";
        StdSetIpTos: "", "set_ip_tos", Void, [needed("tos", Type::Int)], at::ALL,
            "Sets the type of service of the client connection.";
        StdRollback: "", "rollback", Void, [needed("h", Type::Http)], at::ALL, "Restores req or bereq as it was at first.";
        StdBan: "", "ban", Bool, [needed("", Type::String)], at::ALL, "Adds a ban; false when the expression is wrong.";
        StdBanError: "", "ban_error", String, [], at::ALL, "Why the last std.ban() of this task failed; empty if it did not.";
        StdReal2integer: "", "real2integer", Int, [needed("r", Type::Real), needed("fallback", Type::Int)], at::ALL,
            "Deprecated: rounds to a whole number.";
        StdReal2time: "", "real2time", Time, [needed("r", Type::Real), needed("fallback", Type::Time)], at::ALL,
            "Deprecated: rounds to seconds since 1970.";
        StdTime2integer: "", "time2integer", Int, [needed("t", Type::Time), needed("fallback", Type::Int)], at::ALL,
            "Deprecated: whole seconds since 1970.";
        StdTime2real: "", "time2real", Real, [needed("t", Type::Time), needed("fallback", Type::Real)], at::ALL,
            "Deprecated: seconds since 1970.";
    }
    directors Directors "directors" "Sets of backends that choose one for each fetch." directors ["round_robin", "fallback", "random", "hash", "shard", "least_conn"] {
        RoundRobin: "round_robin", "", Instance, [], at::INIT, "A director that takes the healthy members in turn.";
        RoundRobinAddBackend: "round_robin", "add_backend", Void, [needed("", Type::Backend)], at::ALL,
            "Adds a member.";
        RoundRobinRemoveBackend: "round_robin", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
            "Removes a member.";
        RoundRobinBackend: "round_robin", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
        Fallback: "fallback", "", Instance, [with_default("sticky", Type::Bool, "false")], at::INIT,
            "A director that takes the first healthy member.";
        FallbackAddBackend: "fallback", "add_backend", Void, [needed("", Type::Backend)], at::ALL,
            "Adds a member; the order counts.";
        FallbackRemoveBackend: "fallback", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
            "Removes a member.";
        FallbackBackend: "fallback", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
        Random: "random", "", Instance, [], at::INIT, "A director that takes a healthy member by chance and weight.";
        RandomAddBackend: "random", "add_backend", Void, [needed("", Type::Backend), needed("", Type::Real)], at::ALL,
            "Adds a member with its weight.";
        RandomRemoveBackend: "random", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
            "Removes a member.";
        RandomBackend: "random", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
        Hash: "hash", "", Instance, [], at::INIT, "A director that takes a healthy member by the hash of a text.";
        HashAddBackend: "hash", "add_backend", Void,
            [needed("", Type::Backend), with_default("weight", Type::Real, "1.0")], at::ALL,
            "Adds a member with its weight.";
        HashRemoveBackend: "hash", "remove_backend", Void, [needed("", Type::Backend)], at::ALL, "Removes a member.";
        HashBackend: "hash", "backend", Backend, [needed("", Type::Strands)], at::ALL,
            "The member that the text falls to.";
        Shard: "shard", "", Instance, [], at::INIT, "A director that takes a member by consistent hashing.";
        ShardSetWarmup: "shard", "set_warmup", Void, [with_default("probability", Type::Real, "0.0")], at::ALL,
            "Probability, from 0 to below 1, that the next member is used to keep it warm.";
        ShardSetRampup: "shard", "set_rampup", Void, [with_default("duration", Type::Duration, "0s")], at::ALL,
            "For how long a member that became healthy gets fewer requests.";
        ShardAssociate: "shard", "associate", Void, [optional("param", Type::Blob)], at::ALL,
            "The parameter set (its use()) that counts where a call says nothing; without one, the defaults.";
        ShardAddBackend: "shard", "add_backend", Bool, [
                needed("backend", Type::Backend), optional("ident", Type::String), optional("rampup", Type::Duration),
                optional("weight", Type::Real),
            ], at::ALL,
            "Adds a member at the next reconfigure(). Its place follows from ident, or else from its name; weight from 1 on.";
        ShardRemoveBackend: "shard", "remove_backend", Bool,
            [optional("backend", Type::Backend), optional("ident", Type::String)], at::ALL,
            "Removes the member of that ident, or all entries of that backend, at the next reconfigure().";
        ShardClear: "shard", "clear", Bool, [], at::ALL, "Removes all members at the next reconfigure().";
        ShardReconfigure: "shard", "reconfigure", Bool, [with_default("replicas", Type::Int, "67")], at::ALL,
            "Makes the changes, each member with that many points for a weight of 1; at the latest the end of the task does.";
        ShardKey: "shard", "key", Int, [needed("", Type::Strands)], at::ALL, "The key that a text makes.";
        ShardBackend: "shard", "backend", Backend, [
                word("by", SHARD_KEYS, None, true), optional("key", Type::Int), optional("key_blob", Type::Blob),
                optional("alt", Type::Int), optional("warmup", Type::Real), optional("rampup", Type::Bool),
                word("healthy", SHARD_HEALTH, None, true), optional("param", Type::Blob),
                word("resolve", &["NOW", "LAZY"], None, true),
            ], at::ALL,
            "The member for a key, or with resolve=LAZY the director, which chooses when it is used.";
        ShardDebug: "shard", "debug", Void, [needed("", Type::Int)], at::ALL,
            "Writes Debug records: 1 lookups, 2 the ring, 4 ramp-up and warm-up.";
        ShardParam: "shard_param", "", Instance, [], at::INIT, "A set of parameters for shard directors.";
        ShardParamClear: "shard_param", "clear", Void, [], at::ALL,
            "Back to the defaults; in a backend task for that task.";
        ShardParamSet: "shard_param", "set", Void, [
                word("by", SHARD_KEYS, None, true), optional("key", Type::Int), optional("key_blob", Type::Blob),
                optional("alt", Type::Int), optional("warmup", Type::Real), optional("rampup", Type::Bool),
                word("healthy", SHARD_HEALTH, None, true),
            ], at::ALL,
            "Sets these parameters, the others to their defaults; in a backend task for that task.";
        ShardParamGetBy: "shard_param", "get_by", String, [], at::ALL, "Where the key comes from.";
        ShardParamGetKey: "shard_param", "get_key", Int, [], at::ALL, "The key, for this task.";
        ShardParamGetAlt: "shard_param", "get_alt", Int, [], at::ALL, "Number of members that are skipped.";
        ShardParamGetWarmup: "shard_param", "get_warmup", Real, [], at::ALL,
            "Number of times the next member is used; -1 = as the director says.";
        ShardParamGetRampup: "shard_param", "get_rampup", Bool, [], at::ALL, "True if members ramp up.";
        ShardParamGetHealthy: "shard_param", "get_healthy", String, [], at::ALL, "Which members count.";
        ShardParamUse: "shard_param", "use", Blob, [], at::ALL,
            "The set, for .associate() and the argument param of .backend().";
        LeastConn: "least_conn", "", Instance, [], at::INIT,
            "A director that takes the healthy member with the fewest connections in use for its weight.";
        LeastConnAddBackend: "least_conn", "add_backend", Void,
            [needed("", Type::Backend), with_default("weight", Type::Real, "1.0")], at::ALL,
            "Adds a member with its weight.";
        LeastConnRemoveBackend: "least_conn", "remove_backend", Void, [needed("", Type::Backend)], at::ALL,
            "Removes a member.";
        LeastConnBackend: "least_conn", "backend", Backend, [], at::ALL,
            "The director, resolved when it is used.";
        DirectorsLookup: "", "lookup", Backend, [needed("", Type::String)], at::ALL,
            "The backend or director of that VCL name; only in vcl_init and vcl_fini.";
    }
    blob Blob "blob" "Binary data to text and back." directors [] {
        BlobDecode: "", "decode", Blob, [
                word("decoding", ENCODINGS, Some("IDENTITY"), false), with_default("length", Type::Int, "0"),
                needed("encoded", Type::Strands),
            ], at::ALL,
            "The bytes that a text encodes; length above 0 limits the part that is read.";
        BlobEncode: "", "encode", String, [
                word("encoding", ENCODINGS, Some("IDENTITY"), false), word("case", CASES, Some("DEFAULT"), false),
                needed("blob", Type::Blob),
            ], at::ALL,
            "The bytes written as text; case is for HEX and URL.";
        BlobTranscode: "", "transcode", String, [
                word("decoding", ENCODINGS, Some("IDENTITY"), false), word("encoding", ENCODINGS, Some("IDENTITY"), false),
                word("case", CASES, Some("DEFAULT"), false), with_default("length", Type::Int, "0"),
                needed("encoded", Type::Strands),
            ], at::ALL,
            "The text in another encoding.";
        BlobSame: "", "same", Bool, [needed("", Type::Blob), needed("", Type::Blob)], at::ALL,
            "True if both are the same bytes at the same place.";
        BlobEqual: "", "equal", Bool, [needed("", Type::Blob), needed("", Type::Blob)], at::ALL,
            "True if both have the same bytes.";
        BlobLength: "", "length", Int, [needed("", Type::Blob)], at::ALL, "Number of bytes.";
        BlobSub: "", "sub", Blob,
            [needed("", Type::Blob), needed("length", Type::Bytes), with_default("offset", Type::Bytes, "0B")], at::ALL,
            "A piece of the bytes.";
        Blob: "blob", "", Instance,
            [word("decoding", ENCODINGS, Some("IDENTITY"), false), needed("encoded", Type::Strands)], at::INIT,
            "An object that holds decoded bytes.";
        BlobGet: "blob", "get", Blob, [], at::ALL, "The bytes.";
        BlobEncodeObject: "blob", "encode", String,
            [word("encoding", ENCODINGS, Some("IDENTITY"), false), word("case", CASES, Some("DEFAULT"), false)], at::ALL,
            "The bytes written as text.";
    }
    cookie Cookie "cookie" "Cookies of a request, one by one." directors [] {
        CookieClean: "", "clean", Void, [], at::ALL, "Removes all cookies.";
        CookieDelete: "", "delete", Void, [needed("cookiename", Type::String)], at::ALL, "Removes a cookie.";
        CookieFilter: "", "filter", Void, [needed("filterstring", Type::String)], at::ALL,
            "Removes the cookies in the comma-separated list.";
        CookieFilterRe: "", "filter_re", Void, [needed("expression", Type::Regex)], at::ALL,
            "Removes the cookies whose names match.";
        CookieKeep: "", "keep", Void, [needed("filterstring", Type::String)], at::ALL,
            "Removes the cookies that are not in the comma-separated list.";
        CookieKeepRe: "", "keep_re", Void, [needed("expression", Type::Regex)], at::ALL,
            "Removes the cookies whose names don't match.";
        CookieFormatDate: "", "format_date", String, [needed("now", Type::Time), needed("timedelta", Type::Duration)],
            at::ALL, "The HTTP date of a time plus a duration.";
        CookieFormatRfc1123: "", "format_rfc1123", String,
            [needed("now", Type::Time), needed("timedelta", Type::Duration)], at::ALL, "Deprecated name of format_date.";
        CookieGet: "", "get", String, [needed("cookiename", Type::String)], at::ALL, "The value of a cookie, or unset.";
        CookieGetRe: "", "get_re", String, [needed("expression", Type::Regex)], at::ALL,
            "The value of the first cookie whose name matches, or unset.";
        CookieGetString: "", "get_string", String, [], at::ALL, "The cookies as a Cookie header has them.";
        CookieIsset: "", "isset", Bool, [needed("cookiename", Type::String)], at::ALL, "True if there is such a cookie.";
        CookieParse: "", "parse", Void, [needed("cookieheader", Type::String)], at::ALL,
            "Parses a Cookie header and replaces the cookies parsed before.";
        CookieSet: "", "set", Void, [needed("cookiename", Type::String), needed("value", Type::String)], at::ALL,
            "Adds or replaces a cookie.";
    }
    purge Purge "purge" "Purging with control over what becomes of the objects." directors [] {
        PurgeHard: "", "hard", Int, [], at::ALL, "Removes all variants of the object; returns how many there were.";
        PurgeSoft: "", "soft", Int, [
                with_default("ttl", Type::Duration, "0s"), with_default("grace", Type::Duration, "-1s"),
                with_default("keep", Type::Duration, "-1s"),
            ], at::ALL,
            "Sets how long all variants are fresh from now on, and their grace and keep; a negative grace or keep leaves that time alone. Returns how many there were.";
    }
    vtc Vtc "vtc" "Helpers of test cases." directors [] {
        VtcBarrierSync: "", "barrier_sync", Void,
            [needed("addr", Type::String), with_default("timeout", Type::Duration, "0s")], at::ALL,
            "Connects to a barrier and waits until it opens.";
        VtcNoBackend: "", "no_backend", Backend, [], at::ALL, "The null BACKEND.";
        VtcNoStevedore: "", "no_stevedore", Stevedore, [], at::ALL, "The null STEVEDORE.";
        VtcNoIp: "", "no_ip", Ip, [], at::ALL, "The null IP.";
        VtcPanic: "", "panic", Void, [needed("", Type::Strands)], at::ALL, "Ends the worker as an internal error would, with that text for panic.show. The cache survives.";
        VtcSleep: "", "sleep", Void, [needed("", Type::Duration)], at::ALL, "Waits that long.";
        VtcTypesize: "", "typesize", Int, [needed("", Type::String)], at::ALL,
            "The size in C of a structure whose members are given by letters.";
        VtcProxyHeader: "", "proxy_header", Blob, [
                word("version", &["v1", "v2"], None, false), needed("client", Type::Ip), needed("server", Type::Ip),
                optional("authority", Type::String),
            ], at::ALL,
            "A PROXY protocol header.";
        VtcWorkspaceAlloc: "", "workspace_alloc", Void,
            [word("", WORKSPACES, None, false), needed("size", Type::Int)], at::ALL,
            "Takes that much of the task's memory; a negative size leaves that much. The four are one memory here.";
        VtcWorkspaceReserve: "", "workspace_reserve", Bytes,
            [word("", WORKSPACES, None, false), needed("size", Type::Int)], at::ALL,
            "Number of bytes that could be allocated, 0 if the size does not fit.";
        VtcWorkspaceFree: "", "workspace_free", Int, [word("", WORKSPACES, None, false)], at::ALL,
            "Free bytes of the task's memory.";
        VtcWorkspaceSnapshot: "", "workspace_snapshot", Void, [word("", WORKSPACES, None, false)], at::ALL,
            "Remembers how much is taken.";
        VtcWorkspaceReset: "", "workspace_reset", Void, [word("", WORKSPACES, None, false)], at::ALL,
            "Gives back what was taken since the snapshot.";
        VtcWorkspaceOverflowed: "", "workspace_overflowed", Bool, [word("", WORKSPACES, None, false)], at::ALL,
            "True if something did not fit.";
        VtcWorkspaceOverflow: "", "workspace_overflow", Void, [word("", WORKSPACES, None, false)], at::ALL,
            "As if something did not fit: the task fails.";
        VtcWorkspaceDump: "", "workspace_dump", Blob, [
                word("", WORKSPACES, None, false), word("", &["s", "f", "r"], None, false),
                with_default("off", Type::Bytes, "0B"), with_default("len", Type::Bytes, "64B"),
            ], at::ALL,
            "Bytes of the strings of the task so far, at most 1 KB; there is nothing behind them (f and r).";
        VtcVsl: "", "vsl", Void, [
                needed("vxid", Type::Int), needed("tag", Type::String), word("side", &["c", "b"], None, false),
                needed("s", Type::Strands),
            ], at::ALL,
            "Writes a log record of any transaction.";
        VtcVslReplay: "", "vsl_replay", Void, [needed("s", Type::Strands)], at::ALL,
            "Writes the log records that lines of varnishlog -g raw or of varnishtest show; other lines are skipped.";
    }
    accept Accept "accept" "The best choice for an Accept header." directors [] {
        AcceptRule: "rule", "", Instance, [needed("string", Type::String)], at::INIT,
            "A rule with its fallback.";
        AcceptRuleAdd: "rule", "add", Void, [needed("string", Type::String)], at::ALL, "Adds a choice.";
        AcceptRuleRemove: "rule", "remove", Void, [needed("string", Type::String)], at::ALL, "Removes a choice.";
        AcceptRuleFilter: "rule", "filter", String, [needed("string", Type::String)], at::ALL,
            "The choice that the header wants most, or the fallback when it names none or cannot be read.";
    }
    basicauth Basicauth "basicauth" "Passwords of HTTP basic authentication." directors [] {
        BasicauthMatch: "", "match", Bool, [needed("file", Type::String), needed("authorization", Type::String)], at::ALL,
            "True if the value of an Authorization header has a user and password of the file, as htpasswd writes it (bcrypt, SHA-crypt, MD5, {SHA}; not DES crypt, not plain text). The file is read again when it was replaced. Slow hashes do not hold up other requests.";
    }
    bodyaccess Bodyaccess "bodyaccess" "The client's request body, once it is held whole." directors [] {
        BodyaccessRematchReqBody: "", "rematch_req_body", Int, [needed("re", Type::Regex)], at::ALL,
            "1 when the request body matches, 0 when it does not, -1 when it is not held or this is not vcl_recv.";
        BodyaccessHashReqBody: "", "hash_req_body", Void, [], at::ALL,
            "Adds the request body to the hash; only in vcl_hash.";
        BodyaccessLenReqBody: "", "len_req_body", Int, [], at::ALL,
            "Bytes of the request body, -1 when it is not held or this is not vcl_recv.";
        BodyaccessLogReqBody: "", "log_req_body", Void,
            [with_default("prefix", Type::String, "\"\""), with_default("length", Type::Int, "200")], at::ALL,
            "Writes the request body as Debug records of that many bytes, each behind the prefix.";
    }
    brotli Brotli "brotli" "Other names of the built-in filters: br for brotli, unbr for unbrotli, in lists of filters." directors [] {
        BrotliVersion: "", "version", String, [], at::ALL, "A fixed text.";
    }
    crypto Crypto "crypto" "Hashes, keyed hashes, comparison in constant time, signatures with RSA." directors [] {
        CryptoHashMd5: "", "hash_md5", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: MD5.";
        CryptoHashSha1: "", "hash_sha1", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-1.";
        CryptoHashSha224: "", "hash_sha224", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-224.";
        CryptoHashSha256: "", "hash_sha256", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-256.";
        CryptoHashSha384: "", "hash_sha384", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-384.";
        CryptoHashSha512: "", "hash_sha512", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-512.";
        CryptoHmacMd5: "", "hmac_md5", String, [needed("key", Type::String), needed("message", Type::String)], at::ALL,
            "The HMAC with MD5 in hexadecimal digits after 0x; unset without a key.";
        CryptoHmacSha1: "", "hmac_sha1", String, [needed("key", Type::String), needed("message", Type::String)], at::ALL,
            "The HMAC with SHA-1 in hexadecimal digits after 0x; unset without a key.";
        CryptoHmacSha224: "", "hmac_sha224", String, [needed("key", Type::String), needed("message", Type::String)], at::ALL,
            "The HMAC with SHA-224 in hexadecimal digits after 0x; unset without a key.";
        CryptoHmacSha256: "", "hmac_sha256", String, [needed("key", Type::String), needed("message", Type::String)], at::ALL,
            "The HMAC with SHA-256 in hexadecimal digits after 0x; unset without a key.";
        CryptoHmacSha384: "", "hmac_sha384", String, [needed("key", Type::String), needed("message", Type::String)], at::ALL,
            "The HMAC with SHA-384 in hexadecimal digits after 0x; unset without a key.";
        CryptoHmacSha512: "", "hmac_sha512", String, [needed("key", Type::String), needed("message", Type::String)], at::ALL,
            "The HMAC with SHA-512 in hexadecimal digits after 0x; unset without a key.";
        CryptoHash: "", "hash", Blob,
            [word("algorithm", &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"], None, false), needed("value", Type::String)], at::ALL,
            "The bytes of a hash.";
        CryptoHexEncode: "", "hex_encode", String, [needed("value", Type::Blob)], at::ALL, "The bytes as hexadecimal digits.";
        CryptoEqual: "", "equal", Bool, [needed("a", Type::String), needed("b", Type::String)], at::ALL,
            "True if both texts are set and the same. The time depends on their lengths only, so it tells nothing about a secret.";
        CryptoKey: "key", "", Instance, [], at::INIT, "A public key of RSA, which a method of the object sets.";
        CryptoKeyUse: "key", "use", Blob, [], at::ALL, "The key as an argument of verifier().";
        CryptoKeyPemPubkey: "key", "pem_pubkey", Void, [needed("pem", Type::String)], at::INIT, "Takes the key from PEM.";
        CryptoKeyRsa: "key", "rsa", Void, [needed("n", Type::Blob), needed("e", Type::Blob)], at::INIT,
            "Takes the key from its modulus and exponent.";
        CryptoVerifier: "verifier", "", Instance, [
                word("digest", CRYPTO_DIGESTS, None, false), optional("pem", Type::String), optional("key", Type::Blob),
            ], at::INIT,
            "Verifies signatures (RSA, PKCS 1) with a key in PEM or the use() of a key; sha1, sha256, sha384 and sha512 are supported.";
        CryptoVerifierUpdate: "verifier", "update", Bool, [needed("", Type::Strands)], at::ALL,
            "Adds text to the data of this task.";
        CryptoVerifierUpdateBlob: "verifier", "update_blob", Bool, [needed("", Type::Blob)], at::ALL,
            "Adds bytes to the data of this task.";
        CryptoVerifierReset: "verifier", "reset", Bool, [], at::ALL, "Drops the data of this task.";
        CryptoVerifierValid: "verifier", "valid", Bool, [needed("signature", Type::Blob)], at::ALL,
            "True if that is a signature of the data.";
    }
    debug Debug "debug" "Support for Varnish's own test cases: values passed through, failures on demand, temporary backends." directors ["dyn", "dyn_uds", "director"] {
        DebugAuthor: "", "author", String, [
                word("person", AUTHORS, Some("phk"), false), word("someone", &["phk", "slink", "geoff"], Some("phk"), false),
            ], at::ALL,
            "The first name of one of Varnish's authors.";
        DebugTestPrivCall: "", "test_priv_call", Void, [], at::ALL, "Nothing; state of a call has no effect that shows.";
        DebugTestPrivVcl: "", "test_priv_vcl", Void, [], at::ALL, "Nothing; state of a VCL has no effect that shows.";
        DebugTestPrivTaskGet: "", "test_priv_task_get", Void, [], at::ALL, "Nothing.";
        DebugTestPrivTask: "", "test_priv_task", String, [with_default("s", Type::String, "\"\"")], at::ALL,
            "Adds a text to those that the task keeps, and returns all of them.";
        DebugTestPrivTop: "", "test_priv_top", String, [needed("", Type::String)], at::ALL,
            "The first text that was given so during the client request.";
        DebugObj: "obj", "", Instance, [
                with_default("string", Type::String, "\"default\""), word("number", &["one", "two", "three"], Some("one"), false),
            ], at::INIT,
            "An object that keeps its arguments.";
        DebugObjEnum: "obj", "enum", Void,
            [word("", &["phk", "des", "kristian", "mithrandir", "martin"], None, false)], at::ALL, "Takes an ENUM.";
        DebugObjObj: "obj", "obj", Void, [], at::ALL, "Nothing.";
        DebugObjString: "obj", "string", String, [], at::ALL, "The argument string.";
        DebugObjNumber: "obj", "number", String, [], at::ALL, "The argument number.";
        DebugObjFoo: "obj", "foo", String, [needed("why", Type::String)], at::ALL, "A fixed text.";
        DebugObjBar: "obj", "bar", String, [needed("why", Type::String)], at::ALL, "Another name of foo.";
        DebugObjDate: "obj", "date", Time, [], at::ALL, "A fixed time.";
        DebugObjTestPrivCall: "obj", "test_priv_call", Void, [], at::ALL, "Nothing.";
        DebugObjTestPrivVcl: "obj", "test_priv_vcl", Void, [], at::ALL, "Nothing.";
        DebugObjTestPrivTask: "obj", "test_priv_task", String, [with_default("s", Type::String, "\"\"")], at::ALL,
            "Keeps a text for the task; without one, returns what is kept.";
        DebugObjTestPrivTop: "obj", "test_priv_top", String, [with_default("s", Type::String, "\"\"")], at::CLIENT,
            "Keeps a text for the client request; without one, returns what is kept.";
        DebugObjOpt: "obj_opt", "", Instance, [optional("s", Type::String), optional("b", Type::Bool)], at::INIT,
            "An object that need not be made.";
        DebugObjOptMethOpt: "obj_opt", "meth_opt", String, [optional("s", Type::String), optional("b", Type::Bool)],
            at::ALL, "The arguments of the constructor and of the call.";
        DebugRot52: "", "rot52", Void, [needed("hdr", Type::Http)], at::ALL, "Adds the header Encrypted: ROT52.";
        DebugArgtest: "", "argtest", String, [
                needed("one", Type::String), with_default("two", Type::Real, "2"), with_default("three", Type::String, "\"3\""),
                with_default("comma", Type::String, "\",\""), with_default("four", Type::Int, "4"), optional("opt", Type::String),
            ], at::ALL,
            "The arguments, one after the other.";
        DebugVreLimit: "", "vre_limit", Int, [], at::ALL, "The parameter pcre2_match_limit.";
        DebugVscNew: "", "vsc_new", Void, [], at::ALL, "Shows the counter DEBUG.count.";
        DebugVscCount: "", "vsc_count", Void, [with_default("val", Type::Int, "1")], at::ALL, "Adds to that counter.";
        DebugVscDestroy: "", "vsc_destroy", Void, [], at::ALL, "Takes the counter away.";
        DebugVclDiscardDelay: "", "vcl_discard_delay", Void, [needed("", Type::Duration)], at::ALL,
            "Keeps a cold VCL for this time.";
        DebugVclPreventCold: "", "vcl_prevent_cold", Void, [], at::ALL, "Keeps the VCL from going cold.";
        DebugVclAllowCold: "", "vcl_allow_cold", Void, [], at::ALL, "Lets it go cold again.";
        DebugFailTaskFini: "", "fail_task_fini", Void, [], at::ALL, "Has the task fail at its end.";
        DebugOkTaskFini: "", "ok_task_fini", Void, [], at::ALL, "Takes that back.";
        DebugFail: "", "fail", Void, [], at::ALL, "Fails the task.";
        DebugFail2: "", "fail2", Bool, [], at::ALL, "Fails the task.";
        DebugDyn: "dyn", "", Instance,
            [needed("addr", Type::String), needed("port", Type::String), optional("probe", Type::Probe)], at::INIT,
            "A backend that can be replaced at run time.";
        DebugDynBackend: "dyn", "backend", Backend, [], at::ALL, "The present backend.";
        DebugDynRefresh: "dyn", "refresh", Void,
            [needed("addr", Type::String), needed("port", Type::String), optional("probe", Type::Probe)], at::ALL,
            "Puts another backend in its place.";
        DebugDynUds: "dyn_uds", "", Instance, [needed("path", Type::String)], at::INIT,
            "The same behind a Unix-domain socket.";
        DebugDynUdsBackend: "dyn_uds", "backend", Backend, [], at::ALL, "The present backend.";
        DebugDynUdsRefresh: "dyn_uds", "refresh", Void, [needed("path", Type::String)], at::ALL,
            "Puts another backend in its place.";
        DebugNullAcl: "", "null_acl", Acl, [], at::ALL, "The null ACL.";
        DebugAcl: "", "acl", Acl, [needed("acl", Type::Acl)], at::ALL, "The argument.";
        DebugMatchAcl: "", "match_acl", Bool, [needed("acl", Type::Acl), needed("ip", Type::Ip)], at::ALL,
            "True if the ACL matches.";
        DebugSweepAcl: "", "sweep_acl", Blob, [
                needed("acl", Type::Acl), needed("ip0", Type::Ip), needed("ip1", Type::Ip), with_default("step", Type::Int, "1"),
            ], at::ALL,
            "Which addresses of a range match, as Debug records; returns the digest of these.";
        DebugTimeAcl: "", "time_acl", Duration, [
                needed("acl", Type::Acl), needed("ip0", Type::Ip), needed("ip1", Type::Ip), with_default("step", Type::Int, "1"),
                with_default("rounds", Type::Int, "1000"),
            ], at::ALL,
            "Time of a match, in nanoseconds.";
        DebugAclobj: "aclobj", "", Instance, [needed("", Type::Acl)], at::INIT, "An object that keeps an ACL.";
        DebugAclobjGet: "aclobj", "get", Acl, [], at::ALL, "The ACL.";
        DebugTestProbe: "", "test_probe", Void, [needed("probe", Type::Probe), optional("same", Type::Probe)], at::ALL,
            "Fails unless both are the same.";
        DebugConcat: "concat", "", Instance, [needed("", Type::Strands)], at::INIT, "An object that keeps a text.";
        DebugConcatGet: "concat", "get", String, [], at::ALL, "The text.";
        DebugConcatenate: "", "concatenate", String, [needed("", Type::Strands)], at::ALL, "The pieces joined.";
        DebugCollect: "", "collect", String, [needed("", Type::Strands)], at::ALL, "The pieces joined.";
        DebugSethdr: "", "sethdr", Void, [needed("", Type::Header), needed("", Type::Strands)], at::ALL,
            "Sets a header.";
        DebugReturnStrands: "", "return_strands", Strands, [needed("strand", Type::Strands)], at::ALL,
            "The argument, which it logs.";
        DebugStk: "", "stk", Bytes, [], at::ALL, "Stack used by VCL: 0 bytes.";
        DebugSndbuf: "", "sndbuf", Void, [needed("sndbuf", Type::Bytes)], at::CLIENT,
            "Sets the send buffer of the client's connection.";
        DebugStoreIp: "", "store_ip", Void, [needed("", Type::Ip)], at::ALL, "Keeps an address for the task.";
        DebugGetIp: "", "get_ip", Ip, [], at::ALL, "The address kept.";
        DebugDirector: "director", "", Instance, [], at::INIT, "A director that always fails.";
        DebugDirectorFail: "director", "fail", Backend, [], at::ALL, "That director.";
        DebugClientIp: "", "client_ip", String, [], at::ALL, "The client's address.";
        DebugClientPort: "", "client_port", String, [], at::ALL, "The client's port.";
        DebugReQuote: "", "re_quote", String, [needed("", Type::String)], at::ALL,
            "A pattern that matches that text alone.";
        DebugPrivTaskWithOption: "", "priv_task_with_option", String, [optional("opt", Type::String)], at::ALL,
            "The first text that was given so during the task.";
        DebugValidhdr: "", "validhdr", Bool, [needed("", Type::Strands)], at::ALL,
            "True if a header may have that value.";
        DebugJustReturnRegex: "", "just_return_regex", Regex, [needed("", Type::Regex)], at::ALL, "The argument.";
        DebugCheckCall: "", "check_call", String, [needed("", Type::Sub)], at::ALL,
            "Why the subroutine cannot be called here; unset when it can.";
        DebugCall: "", "call", Void, [needed("", Type::Sub)], at::ALL, "Calls the subroutine.";
        DebugCaller: "caller", "", Instance, [needed("", Type::Sub)], at::INIT, "An object that keeps a subroutine.";
        DebugCallerCall: "caller", "call", Void, [], at::ALL, "Calls it.";
        DebugCallerXsub: "caller", "xsub", Sub, [], at::ALL, "The subroutine.";
    }
    digest Digest "digest" "Hashes, keyed hashes and base64." directors [] {
        DigestHmacSha256: "", "hmac_sha256", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The HMAC with SHA-256 of the second under the key that is the first, in hexadecimal digits after 0x; unset without a key.";
        DigestHmacSha1: "", "hmac_sha1", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The HMAC with SHA-1 of the second under the key that is the first, in hexadecimal digits after 0x; unset without a key.";
        DigestHmacMd5: "", "hmac_md5", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The HMAC with MD5 of the second under the key that is the first, in hexadecimal digits after 0x; unset without a key.";
        DigestBase64: "", "base64", String, [needed("", Type::String)], at::ALL, "The text in base64.";
        DigestBase64Hex: "", "base64_hex", String, [needed("", Type::String)], at::ALL,
            "The bytes of hexadecimal digits, 0x in front or not, in base64.";
        DigestBase64Decode: "", "base64_decode", String, [needed("", Type::String)], at::ALL,
            "The text that is given in base64; empty when it is not.";
        DigestBase64url: "", "base64url", String, [needed("", Type::String)], at::ALL, "The text in base64 for URLs.";
        DigestBase64urlHex: "", "base64url_hex", String, [needed("", Type::String)], at::ALL,
            "The bytes of hexadecimal digits, 0x in front or not, in base64 for URLs.";
        DigestBase64urlDecode: "", "base64url_decode", String, [needed("", Type::String)], at::ALL,
            "The text that is given in base64 for URLs; empty when it is not.";
        DigestBase64urlNopad: "", "base64url_nopad", String, [needed("", Type::String)], at::ALL, "The text in base64 for URLs without padding.";
        DigestBase64urlNopadHex: "", "base64url_nopad_hex", String, [needed("", Type::String)], at::ALL,
            "The bytes of hexadecimal digits, 0x in front or not, in base64 for URLs without padding.";
        DigestBase64urlNopadDecode: "", "base64url_nopad_decode", String, [needed("", Type::String)], at::ALL,
            "The text that is given in base64 for URLs without padding; empty when it is not.";
        DigestHashSha1: "", "hash_sha1", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-1.";
        DigestHashSha224: "", "hash_sha224", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-224.";
        DigestHashSha256: "", "hash_sha256", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-256.";
        DigestHashSha384: "", "hash_sha384", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-384.";
        DigestHashSha512: "", "hash_sha512", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: SHA-512.";
        DigestHashMd5: "", "hash_md5", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: MD5.";
        DigestHashCrc32: "", "hash_crc32", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: CRC-32 as bzip2 has it, lowest byte first.";
        DigestHashCrc32b: "", "hash_crc32b", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: CRC-32 as zip has it, lowest byte first.";
        DigestHashAdler32: "", "hash_adler32", String, [needed("", Type::String)], at::ALL, "The hash in hexadecimal digits: Adler-32, lowest byte first.";
        DigestVersion: "", "version", String, [], at::ALL, "The version of the VMOD that this one behaves like.";
    }
    dynamic Dynamic "dynamic" "Backends by name: hosts that are looked up again and again while they are used." directors [] {
        DynamicDirector: "director", "", Instance, [
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
        DynamicDirectorBackend: "director", "backend", Backend, [
                with_default("host", Type::String, "\"\""), with_default("port", Type::String, "\"\""),
                optional("authority", Type::String),
            ], at::ALL,
            "The backends of a host in turn; without one, of the Host header.";
        DynamicDirectorService: "director", "service", Backend, [needed("service", Type::String)], at::ALL,
            "A target of the SRV records of a name, by priority and weight; only with a resolver.";
        DynamicDirectorDebug: "director", "debug", Void, [needed("", Type::Bool)], at::ALL,
            "True if to log what becomes of backends.";
        DynamicResolver: "resolver", "", Instance,
            [with_default("set_from_os", Type::Bool, "true"), with_default("parallel", Type::Int, "16")], at::INIT,
            "Asks DNS itself, for times to live and SRV records. Servers are those of resolv.conf.";
        DynamicResolverUse: "resolver", "use", Blob, [], at::ALL, "The resolver as an argument of director().";
        DynamicResolverResolutionType: "resolver", "set_resolution_type", Bool,
            [word("", &["RECURSING", "STUB"], None, false)], at::INIT,
            "Whose work it is to look further; only STUB, that of the servers, can be had.";
        DynamicResolverClearNamespaces: "resolver", "clear_namespaces", Bool, [], at::INIT,
            "Begins a list of namespaces.";
        DynamicResolverAddNamespace: "resolver", "add_namespace", Bool,
            [word("", &["DNS", "LOCALNAMES", "NETBIOS", "MDNS", "NIS"], None, false)], at::INIT,
            "Adds a namespace to the list: DNS or LOCALNAMES (the hosts file), both of which are asked in any case.";
        DynamicResolverSetNamespaces: "resolver", "set_namespaces", Bool, [], at::INIT,
            "Ends the list of namespaces.";
        DynamicResolverClearTransports: "resolver", "clear_transports", Bool, [], at::INIT,
            "Begins a list of transports.";
        DynamicResolverAddTransport: "resolver", "add_transport", Bool,
            [word("", &["UDP", "TCP", "TLS"], None, false)], at::INIT,
            "Adds a transport to the list: UDP, and TCP for what is too long for it.";
        DynamicResolverSetTransports: "resolver", "set_transports", Bool, [], at::INIT,
            "Ends the list of transports, in which UDP must be.";
        DynamicResolverIdleTimeout: "resolver", "set_idle_timeout", Bool, [needed("", Type::Duration)], at::INIT,
            "For how long connections are kept: without effect, none is.";
        DynamicResolverOutstanding: "resolver", "set_limit_outstanding_queries", Bool, [needed("", Type::Int)],
            at::INIT, "Number of lookups that run at once, if fewer than parallel; 0 = parallel.";
        DynamicResolverTimeout: "resolver", "set_timeout", Bool, [needed("", Type::Duration)], at::INIT,
            "Time limit of a lookup.";
        DynamicResolverFollowRedirects: "resolver", "set_follow_redirects", Bool,
            [word("", &["REDIRECTS_FOLLOW", "REDIRECTS_DO_NOT_FOLLOW"], None, false)], at::INIT,
            "True if aliases are followed; only REDIRECTS_FOLLOW can be had.";
    }
    geoip Geoip "geoip" "The country of an address, from /usr/share/GeoIP/GeoLite2-Country.mmdb." directors [] {
        GeoipCountryCode: "", "country_code", String, [needed("ip", Type::String)], at::ALL, "The code of the country, or Unknown.";
        GeoipCountryName: "", "country_name", String, [needed("ip", Type::String)], at::ALL,
            "The English name of the country, or Unknown.";
    }
    geoip2 Geoip2 "geoip2" "Values for addresses from databases in the MaxMind DB format." directors [] {
        Geoip2: "geoip2", "", Instance, [needed("filename", Type::String)], at::INIT,
            "A database. It is read again when it was replaced; a damaged one leaves the last one in use.";
        Geoip2Lookup: "geoip2", "lookup", String,
            [needed("path", Type::String), needed("ip", Type::Ip), with_default("json", Type::Bool, "false")], at::ALL,
            "The value at a path like country/names/en or subdivisions/0/iso_code; empty if there is none. With json, texts are JSON.";
    }
    h2 H2 "h2" "Limits of HTTP/2 rapid resets, per connection." directors [] {
        H2Is: "", "is", Bool, [], at::CLIENT, "True if the client speaks HTTP/2.";
        H2RapidReset: "", "rapid_reset", Duration, [optional("threshold", Type::Duration)], at::CLIENT,
            "Sets the time after its start within which a reset of a stream counts as rapid; returns the old value, -1 outside HTTP/2.";
        H2RapidResetLimit: "", "rapid_reset_limit", Int, [optional("number", Type::Int)], at::CLIENT,
            "Sets the number of rapid resets that are allowed in a period; returns the old value, -1 outside HTTP/2.";
        H2RapidResetPeriod: "", "rapid_reset_period", Duration, [optional("duration", Type::Duration)], at::CLIENT,
            "The period in which they are counted, before this call sets it; -1 outside HTTP/2.";
        H2RapidResetBudget: "", "rapid_reset_budget", Real, [], at::CLIENT,
            "Number of rapid resets left to the client; -1 outside HTTP/2.";
    }
    header Header "header" "Headers that occur more than once, line by line." directors [] {
        HeaderAppend: "", "append", Void, [needed("", Type::Header), needed("", Type::Strands)], at::ALL,
            "Adds another line of that header.";
        HeaderCopy: "", "copy", Void, [needed("", Type::Header), needed("", Type::Header)], at::ALL,
            "Adds all lines of the first header under the name of the second.";
        HeaderGet: "", "get", String, [needed("header", Type::Header), needed("regex", Type::Regex)], at::ALL,
            "The first value of the header that matches; unset when none does.";
        HeaderRemove: "", "remove", Void, [needed("header", Type::Header), needed("regex", Type::Regex)], at::ALL,
            "Removes the lines of the header whose values match.";
        HeaderRegsub: "", "regsub", Void, [
                needed("", Type::Http), needed("regex", Type::Regex), needed("sub", Type::String),
                with_default("all", Type::Bool, "false"),
            ], at::ALL,
            "Replaces the first match, or all, in every whole header line, name included, as regsub() does.";
        HeaderDyn: "", "dyn", Header, [needed("", Type::Http), needed("", Type::String)], at::ALL,
            "The header of a name that is made at run time, for the other functions; a colon ends the name.";
    }
    jq Jq "jq" "Values of a JSON text by paths, as in the language of jq." directors [] {
        JqParse: "", "parse", Bool, [word("", &["request", "string"], None, false), with_default("input", Type::String, "\"\"")], at::ALL,
            "Reads the request body, after std.cache_req_body(), or a text; false if that is not JSON.";
        JqGet: "", "get", String, [
                needed("filter", Type::String), needed("error", Type::String), with_default("ascii", Type::Bool, "false"),
                with_default("raw", Type::Bool, "false"),
            ], at::ALL,
            "The value at a path (.a.b[0]) as JSON, or with raw a string without its quotes; otherwise the text error. Other filters are not supported.";
        JqIsA: "", "is_a", Bool,
            [word("", &["invalid", "null", "false", "true", "number", "string", "array", "object"], None, false)], at::ALL,
            "True if the whole text is of that kind.";
        JqLength: "", "length", Int, [], at::ALL, "Number of members, elements or characters; -1 for other values.";
    }
    json Json "json" "Values of a JSON text." directors [] {
        JsonParse: "", "parse", Void, [needed("json", Type::String)], at::ALL, "Reads a text, for the other functions in this task.";
        JsonParseReqBody: "", "parse_req_body", Void, [], at::ALL,
            "Reads the request body, after std.cache_req_body(); only in vcl_recv.";
        JsonGet: "", "get", String,
            [needed("search", Type::String), optional("error", Type::String), with_default("json_string", Type::Bool, "false")], at::ALL,
            "The value at a path like a.b[0], otherwise the text error. With json_string, strings keep their quotes.";
        JsonContains: "", "contains", Bool, [needed("element", Type::String)], at::ALL, "True if there is a value at the path.";
        JsonLength: "", "length", Int, [], at::ALL, "Number of members or elements; 0 for other values.";
        JsonIsValid: "", "is_valid", Bool, [], at::ALL, "True if a text was read and is JSON.";
        JsonIsObject: "", "is_object", Bool, [], at::ALL, "True if the text is an object.";
        JsonIsArray: "", "is_array", Bool, [], at::ALL, "True if the text is an array.";
        JsonIsString: "", "is_string", Bool, [], at::ALL, "True if the text is a string.";
        JsonIsNumber: "", "is_number", Bool, [], at::ALL, "True if the text is a number.";
        JsonIsBoolean: "", "is_boolean", Bool, [], at::ALL, "True if the text is true or false.";
        JsonIsNull: "", "is_null", Bool, [], at::ALL, "True if the text is null.";
    }
    jwt Jwt "jwt" "Signed tokens (JSON Web Tokens)." directors [] {
        JwtReader: "reader", "", Instance, [], at::INIT, "Reads and verifies tokens; each task has its own.";
        JwtReaderParse: "reader", "parse", Bool, [needed("token", Type::String)], at::ALL,
            "Reads a token, with or without Bearer in front. True says nothing about its signature.";
        JwtReaderSetKey: "reader", "set_key", Bool, [needed("key", Type::String)], at::ALL,
            "Sets a shared secret, or a public key in PEM; in vcl_init for all tasks. False if that is not a key.";
        JwtReaderSetJwk: "reader", "set_jwk", Bool, [needed("jwk", Type::String)], at::ALL,
            "Sets a JSON Web Key or a set of them; in vcl_init for all tasks.";
        JwtReaderSetJwkFile: "reader", "set_jwk_file", Bool, [needed("file", Type::String)], at::ALL,
            "Sets the keys of a file, which is read again when it was replaced.";
        JwtReaderVerify: "reader", "verify", Bool,
            [needed("algorithm", Type::String), with_default("skew", Type::Duration, "0s")], at::ALL,
            "True if the token has this algorithm (HS256, RS256, PS256, ES256 and those with 384 and 512, EdDSA) and a right signature, and is valid now, with a tolerance for clocks. The log says why it is not.";
        JwtReaderIsJwt: "reader", "is_jwt", Bool, [], at::ALL, "True if the token has claims.";
        JwtReaderGetAlg: "reader", "get_alg", String, [], at::ALL, "The algorithm of the header; unset without a token, as all texts here.";
        JwtReaderGetTyp: "reader", "get_typ", String, [], at::ALL, "The type of the header.";
        JwtReaderGetKid: "reader", "get_kid", String, [], at::ALL, "The name of the key of the header.";
        JwtReaderGetAud: "reader", "get_aud", String, [], at::ALL, "The audience; JSON if there are several.";
        JwtReaderGetIss: "reader", "get_iss", String, [], at::ALL, "The issuer.";
        JwtReaderGetJti: "reader", "get_jti", String, [], at::ALL, "The identifier of the token.";
        JwtReaderGetSub: "reader", "get_sub", String, [], at::ALL, "The subject.";
        JwtReaderGetClaim: "reader", "get_claim", String, [needed("name", Type::String)], at::ALL,
            "A claim by name; JSON if it is not a string.";
        JwtReaderHasExp: "reader", "has_exp", Bool, [], at::ALL, "True if the token has an end.";
        JwtReaderHasNbf: "reader", "has_nbf", Bool, [], at::ALL, "True if the token has a start.";
        JwtReaderHasIat: "reader", "has_iat", Bool, [], at::ALL, "True if the token has a time of issue.";
        JwtReaderGetExp: "reader", "get_exp", Time, [], at::ALL, "The end of the token; 1970 without one.";
        JwtReaderGetNbf: "reader", "get_nbf", Time, [], at::ALL, "The start of the token; 1970 without one.";
        JwtReaderGetIat: "reader", "get_iat", Time, [], at::ALL, "When the token was issued; 1970 if it does not say.";
        JwtReaderGetHeader: "reader", "get_header", String, [], at::ALL, "The header as JSON.";
        JwtReaderGetHeaderEncoded: "reader", "get_header_encoded", String, [], at::ALL, "The header in base64.";
        JwtReaderGetPayload: "reader", "get_payload", String, [], at::ALL, "The payload, for the VMOD json.";
        JwtReaderGetPayloadEncoded: "reader", "get_payload_encoded", String, [], at::ALL, "The payload in base64.";
        JwtReaderGetSignature: "reader", "get_signature", String, [], at::ALL, "The signature in base64.";
        JwtReaderToString: "reader", "to_string", String, [], at::ALL, "The token.";
        JwtWriter: "writer", "", Instance, [], at::INIT, "Makes tokens with a shared secret; each task has its own.";
        JwtWriterSetAlg: "writer", "set_alg", Void, [needed("", Type::String)], at::ALL, "Sets the algorithm: HS256, HS384 or HS512.";
        JwtWriterSetTyp: "writer", "set_typ", Void, [needed("", Type::String)], at::ALL, "Sets the type; otherwise JWT.";
        JwtWriterSetKid: "writer", "set_kid", Void, [needed("", Type::String)], at::ALL, "Sets the name of the key.";
        JwtWriterSetSub: "writer", "set_sub", Void, [needed("", Type::Strands)], at::ALL, "Sets the subject.";
        JwtWriterSetIss: "writer", "set_iss", Void, [needed("", Type::String)], at::ALL, "Sets the issuer.";
        JwtWriterSetAud: "writer", "set_aud", Void, [needed("", Type::String)], at::ALL, "Sets the audience.";
        JwtWriterSetJti: "writer", "set_jti", Void, [needed("", Type::String)], at::ALL, "Sets the identifier.";
        JwtWriterSetExp: "writer", "set_exp", Void, [needed("", Type::Time)], at::ALL, "Sets the end.";
        JwtWriterSetNbf: "writer", "set_nbf", Void, [needed("", Type::Time)], at::ALL, "Sets the start.";
        JwtWriterSetIat: "writer", "set_iat", Void, [needed("", Type::Time)], at::ALL, "Sets the time of issue.";
        JwtWriterFromString: "writer", "from_string", Void, [needed("token", Type::String)], at::ALL,
            "Begins with header and claims of a token, without verifying it.";
        JwtWriterGenerate: "writer", "generate", String, [needed("key", Type::String)], at::ALL,
            "The token, signed with the shared secret; unset if that is not possible.";
        JwtWriterError: "writer", "error", String, [], at::ALL, "Why there is no token; unset if nothing is wrong.";
    }
    kvstore Kvstore "kvstore" "Values that are kept between requests." directors [] {
        Kvstore: "init", "", Instance, [], at::INIT, "A store for this VCL, at most 64 MiB.";
        KvstoreGet: "init", "get", String, [needed("key", Type::String), optional("default", Type::String)], at::ALL,
            "The value of a key, otherwise the default.";
        KvstoreSet: "init", "set", Void,
            [needed("key", Type::String), needed("value", Type::String), with_default("ttl", Type::Duration, "0s")], at::ALL,
            "Stores a value, for a time if ttl is above 0.";
        KvstoreDelete: "init", "delete", Void, [needed("key", Type::String)], at::ALL, "Removes a key.";
        KvstoreCounter: "init", "counter", Int,
            [needed("key", Type::String), needed("increment", Type::Int), with_default("ttl", Type::Duration, "0s")], at::ALL,
            "Adds to the number of a key, which begins with 0 and then has the ttl; returns the sum.";
    }
    maxminddb Maxminddb "maxminddb" "Places of addresses, from a database in the MaxMind DB format." directors [] {
        MaxminddbInitDb: "", "init_db", Void, [needed("filename", Type::String)], at::ALL,
            "Names the database. It is read again when it was replaced.";
        MaxminddbQueryContinent: "", "query_continent", String, [needed("ip", Type::Ip)], at::ALL, "The code of the continent, or -.";
        MaxminddbQueryCountry: "", "query_country", String, [needed("ip", Type::Ip)], at::ALL, "The code of the country, or -.";
        MaxminddbQueryState: "", "query_state", String, [needed("ip", Type::Ip)], at::ALL, "The code of the first subdivision, or -.";
        MaxminddbQueryCity: "", "query_city", String, [needed("ip", Type::Ip)], at::ALL, "The English name of the city, or -.";
        MaxminddbQueryPostalcode: "", "query_postalcode", String, [needed("ip", Type::Ip)], at::ALL, "The postal code, or -.";
        MaxminddbQueryLatitude: "", "query_latitude", String, [needed("ip", Type::Ip)], at::ALL, "The latitude with four decimals, or 0.";
        MaxminddbQueryLongitude: "", "query_longitude", String, [needed("ip", Type::Ip)], at::ALL, "The longitude with four decimals, or 0.";
    }
    proxy Proxy "proxy" "TLVs of a PROXY protocol header of version 2." directors [] {
        ProxyAlpn: "", "alpn", String, [], at::ALL, "The protocol chosen by ALPN, or unset.";
        ProxyAuthority: "", "authority", String, [], at::ALL, "The host name the client asked for (SNI), or unset.";
        ProxyIsSsl: "", "is_ssl", Bool, [], at::ALL, "True if the client connected over TLS.";
        ProxyClientHasCertSess: "", "client_has_cert_sess", Bool, [], at::ALL,
            "True if the client showed a certificate at least once in the TLS session.";
        ProxyClientHasCertConn: "", "client_has_cert_conn", Bool, [], at::ALL,
            "True if the client showed a certificate on this connection.";
        ProxySslVerifyResult: "", "ssl_verify_result", Int, [], at::ALL,
            "Result of verifying the client's certificate; 0 = valid, or none.";
        ProxySslVersion: "", "ssl_version", String, [], at::ALL, "The version of TLS, or unset.";
        ProxyClientCertCn: "", "client_cert_cn", String, [], at::ALL,
            "The common name of the client's certificate, or unset.";
        ProxySslCipher: "", "ssl_cipher", String, [], at::ALL, "The cipher, or unset.";
        ProxyCertSign: "", "cert_sign", String, [], at::ALL,
            "The algorithm that signed the certificate shown to the client, or unset.";
        ProxyCertKey: "", "cert_key", String, [], at::ALL,
            "The algorithm of the key of the certificate shown to the client, or unset.";
    }
    querystring Querystring "querystring" "Parameters of a URL cleaned, sorted and filtered." directors [] {
        QuerystringClean: "", "clean", String, [optional("url", Type::String)], at::ALL,
            "The URL (unless given, that of the request) without empty parameters.";
        QuerystringSort: "", "sort", String, [optional("url", Type::String), with_default("uniq", Type::Bool, "false")],
            at::ALL, "The URL with its parameters sorted, repeated ones dropped if so wanted.";
        QuerystringRemove: "", "remove", String, [optional("url", Type::String)], at::ALL, "The URL without its query string.";
        QuerystringFilter: "filter", "", Instance, [
                with_default("sort", Type::Bool, "false"), with_default("uniq", Type::Bool, "false"),
                word("match", &["name", "param"], Some("name"), false),
            ], at::INIT,
            "A filter: what it compares are names or whole parameters.";
        QuerystringAddString: "filter", "add_string", Void, [needed("", Type::String)], at::ALL,
            "Adds an exact text to compare with.";
        QuerystringAddGlob: "filter", "add_glob", Void, [needed("", Type::String)], at::ALL,
            "Adds a shell pattern.";
        QuerystringAddRegex: "filter", "add_regex", Void, [needed("", Type::Regex)], at::ALL,
            "Adds a regular expression.";
        QuerystringApply: "filter", "apply", String,
            [optional("url", Type::String), word("mode", &["keep", "drop"], Some("drop"), false)], at::ALL,
            "The URL without the parameters that match, or with only those.";
        QuerystringExtract: "filter", "extract", String,
            [optional("url", Type::String), word("mode", &["keep", "drop"], Some("drop"), false)], at::ALL,
            "The query string of what apply would give; unset when the URL has none.";
        QuerystringFiltersep: "", "filtersep", String, [], at::ALL,
            "Separator of the names given to filter and filter_except.";
        QuerystringFilterNames: "", "filter", String, [needed("", Type::String), needed("", Type::Strands)], at::ALL,
            "The URL without the parameters named.";
        QuerystringFilterExcept: "", "filter_except", String, [needed("", Type::String), needed("", Type::Strands)], at::ALL,
            "The URL with only the parameters named.";
        QuerystringRegfilter: "", "regfilter", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The URL without the parameters whose names match the regular expression.";
        QuerystringRegfilterExcept: "", "regfilter_except", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The URL with only the parameters whose names match the regular expression.";
        QuerystringGlobfilter: "", "globfilter", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The URL without the parameters whose names match the shell pattern.";
        QuerystringGlobfilterExcept: "", "globfilter_except", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The URL with only the parameters whose names match the shell pattern.";
    }
    re Re "re" "Regular expressions whose groups can be asked for after a match." directors [] {
        ReRegex: "regex", "", Instance, [needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::INIT,
            "An expression, and the limits of its matches where they differ from the parameters'.";
        ReFailed: "regex", "failed", Bool, [], at::ALL, "True if the expression did not compile; such an object matches nothing.";
        ReError: "regex", "error", String, [], at::ALL, "Why the expression did not compile; empty when it did.";
        ReMatch: "regex", "match", Bool, [needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::ALL,
            "True if the text matches; the groups can be asked for in the same task.";
        ReMatchDyn: "regex", "match_dyn", Bool, [needed("", Type::String), needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::ALL,
            "True if the second text matches the expression that is the first, compiled for this call.";
        ReBackref: "regex", "backref", String, [needed("", Type::Int), with_default("fallback", Type::String, "\"**BACKREF METHOD FAILED**\"")], at::ALL,
            "Group 0 (all) to 10 of the object's last match in this task, else the fallback.";
        ReNamedref: "regex", "namedref", String, [needed("", Type::String), with_default("fallback", Type::String, "\"**NAMEDREF METHOD FAILED**\"")], at::ALL,
            "The group of that name of the object's last match in this task, else the fallback.";
        ReFunctionMatchDyn: "", "match_dyn", Bool, [needed("", Type::String), needed("", Type::String), optional("limit", Type::Int), optional("limit_recursion", Type::Int)], at::ALL,
            "True if the second text matches the expression that is the first, without an object.";
        ReFunctionBackref: "", "backref", String, [needed("", Type::Int), with_default("fallback", Type::String, "\"**BACKREF METHOD FAILED**\"")], at::ALL,
            "Group 0 (all) to 10 of the last re.match_dyn() of this task, else the fallback.";
        ReFunctionNamedref: "", "namedref", String, [needed("", Type::String), with_default("fallback", Type::String, "\"**NAMEDREF METHOD FAILED**\"")], at::ALL,
            "The group of that name of the last re.match_dyn() of this task, else the fallback.";
        ReVersion: "", "version", String, [], at::ALL, "The version of the VMOD that this one behaves like.";
    }
    saintmode Saintmode "saintmode" "Backends that are sick for single objects for a while." directors ["saintmode"] {
        SaintmodeBlacklist: "", "blacklist", Void, [needed("expires", Type::Duration)], at::ALL,
            "Marks the backend of this response as sick for this object for the given time; only in vcl_backend_response.";
        SaintmodeDenylist: "", "denylist", Void, [needed("expires", Type::Duration)], at::ALL,
            "Another name of blacklist().";
        SaintmodeStatus: "", "status", String, [], at::ALL, "The saintmode objects of the VCL as JSON.";
        Saintmode: "saintmode", "", Instance, [needed("backend", Type::Backend), needed("threshold", Type::Int)],
            at::INIT,
            "A director before a backend, which is sick for all once it is for that many objects; 0 turns the list off.";
        SaintmodeBackend: "saintmode", "backend", Backend, [], at::ALL, "The director, resolved when it is used.";
        SaintmodeBlacklistCount: "saintmode", "blacklist_count", Int, [], at::ALL,
            "For how many objects the backend is sick now.";
        SaintmodeDenylistCount: "saintmode", "denylist_count", Int, [], at::ALL,
            "Another name of blacklist_count().";
        SaintmodeIsHealthy: "saintmode", "is_healthy", Bool, [], at::ALL,
            "True if the list has nothing against the object of this request; on the backend side, whether the backend is well.";
    }
    softpurge Softpurge "softpurge" "Purging that leaves grace." directors [] {
        Softpurge: "", "softpurge", Int, [], at::ALL,
            "Ends the freshness of all variants of the object, leaving grace and keep; returns how many there were. Only in vcl_hit and vcl_miss.";
    }
    str Str "str" "Pieces of strings." directors [] {
        StrCount: "", "count", Int, [needed("s", Type::String)], at::ALL, "Length of s in bytes; -1 if it is unset.";
        StrStartswith: "", "startswith", Bool, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
            "True if s1 starts with s2.";
        StrEndswith: "", "endswith", Bool, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
            "True if s1 ends with s2.";
        StrContains: "", "contains", Bool, [needed("s1", Type::String), needed("s2", Type::String)], at::ALL,
            "True if s2 occurs in s1.";
        StrTake: "", "take", String,
            [needed("s", Type::String), needed("n", Type::Int), with_default("offset", Type::Int, "0")], at::ALL,
            "The n bytes from offset on; a negative offset counts from the end, a negative n to the left.";
        StrReverse: "", "reverse", String, [needed("s", Type::String)], at::ALL, "The bytes of s backwards.";
        StrSplit: "", "split", String,
            [needed("S", Type::String), needed("n", Type::Int), with_default("sep", Type::String, "\" \t\"")], at::ALL,
            "The n-th piece between characters of sep, from the end when n is negative; unset when there is none.";
        StrTokenIntersect: "", "token_intersect", Bool,
            [needed("str1", Type::String), needed("str2", Type::String), optional("separators", Type::String)], at::ALL,
            "True if both have a piece in common; separators are space and comma unless given.";
    }
    tcp Tcp "tcp" "The client's TCP connection: what is known of it, and its pace." directors [] {
        TcpCongestionAlgorithm: "", "congestion_algorithm", Int, [needed("algorithm", Type::String)], at::ALL,
            "Sets the congestion control algorithm of the client's connection; 0, or -1 when that fails.";
        TcpDumpInfo: "", "dump_info", Void, [], at::ALL, "Logs the kernel's TCP_INFO of the client's connection as VCL_Log.";
        TcpGetEstimatedRtt: "", "get_estimated_rtt", Real, [], at::ALL,
            "The estimated round trip time to the client, in milliseconds.";
        TcpSetSocketPace: "", "set_socket_pace", Void, [needed("", Type::Int)], at::ALL,
            "Sets how fast to send to the client, in KB a second.";
    }
    tls Tls "tls" "Properties of a TLS connection, of the client or of the origin." directors [] {
        TlsIsTls: "", "is_tls", Bool, [], ON_TLS, "True if the connection is encrypted.";
        TlsVersion: "", "version", String, [], ON_TLS, "The version: TLSv1.2 or TLSv1.3; unset in clear, as all texts here.";
        TlsCipher: "", "cipher", String, [], ON_TLS, "The cipher suite, as OpenSSL calls it.";
        TlsAuthority: "", "authority", String, [], ON_TLS, "The host name asked for in the handshake (SNI).";
        TlsAlpn: "", "alpn", String, [], ON_TLS, "The protocol chosen by ALPN.";
        TlsCertSign: "", "cert_sign", String, [], ON_TLS, "The algorithm that signed the certificate shown, e.g. RSA-SHA256.";
        TlsCertKey: "", "cert_key", String, [], ON_TLS, "The kind of key of the certificate shown, e.g. RSA2048 or EC256.";
        TlsJa3: "", "ja3", String, [], ON_TLS, "The JA3 fingerprint of the client, if the parameter tls_ja3 is on.";
        TlsIsResumed: "", "is_resumed", Bool, [], ON_TLS, "True if an earlier session was resumed.";
        TlsIsEarly: "", "is_early", Bool, [], ON_TLS, "True if the client's handshake is not complete yet (early data).";
        TlsClientCertSubject: "", "client_cert_subject", String, [], ON_TLS,
            "The subject of the client's certificate, as RFC 4514 writes it; unset without one.";
        TlsClientCertIssuer: "", "client_cert_issuer", String, [], ON_TLS, "The issuer of the client's certificate.";
        TlsClientCertSerial: "", "client_cert_serial", String, [], ON_TLS,
            "The serial number of the client's certificate, hexadecimal.";
        TlsClientCertFingerprint: "", "client_cert_fingerprint", String, [], ON_TLS,
            "SHA-256 of the client's certificate, hexadecimal.";
    }
    unix Unix "unix" "Credentials of the peer of a Unix-domain socket." directors [] {
        UnixUser: "", "user", String, [], at::ALL, "The name of the peer's user, or unset.";
        UnixGroup: "", "group", String, [], at::ALL, "The name of the peer's group, or unset.";
        UnixUid: "", "uid", Int, [], at::ALL, "The number of the peer's user; -1 when it is not known.";
        UnixGid: "", "gid", Int, [], at::ALL, "The number of the peer's group; -1 when it is not known.";
    }
    uuid Uuid "uuid" "Universally unique identifiers." directors [] {
        Uuid: "", "uuid", String, [], at::ALL, "Same as uuid_v1.";
        UuidV1: "", "uuid_v1", String, [], at::ALL, "An identifier made of the time and a random node.";
        UuidV3: "", "uuid_v3", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The identifier of a name in a namespace (nil, ns:DNS, ns:URL, ns:OID, ns:X500 or a UUID), by MD5; unset in no namespace.";
        UuidV4: "", "uuid_v4", String, [], at::ALL, "A random identifier.";
        UuidV5: "", "uuid_v5", String, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "The identifier of a name in a namespace, by SHA-1; else as uuid_v3.";
    }
    var Var "var" "Variables of a task, and global ones." directors [] {
        VarSet: "", "set", Void, [needed("key", Type::String), needed("value", Type::String)], at::ALL,
            "Sets a STRING variable of the task.";
        VarGet: "", "get", String, [needed("", Type::String)], at::ALL, "A STRING variable; unset when there is none.";
        VarGlobalSet: "", "global_set", Void, [needed("", Type::String), needed("", Type::String)], at::ALL,
            "Sets a variable that all tasks and VCLs share.";
        VarGlobalGet: "", "global_get", String, [needed("", Type::String)], at::ALL,
            "A variable that all tasks and VCLs share; unset when there is none.";
        VarSetInt: "", "set_int", Void, [needed("key", Type::String), needed("value", Type::Int)], at::ALL,
            "Sets an INT variable of the task.";
        VarGetInt: "", "get_int", Int, [needed("key", Type::String)], at::ALL, "An INT variable; 0 when there is none.";
        VarSetString: "", "set_string", Void, [needed("key", Type::String), needed("value", Type::String)], at::ALL,
            "The same as set.";
        VarGetString: "", "get_string", String, [needed("key", Type::String)], at::ALL, "Same as get.";
        VarSetReal: "", "set_real", Void, [needed("key", Type::String), needed("value", Type::Real)], at::ALL,
            "Sets a REAL variable of the task.";
        VarGetReal: "", "get_real", Real, [needed("key", Type::String)], at::ALL,
            "A REAL variable; 0 when there is none.";
        VarSetDuration: "", "set_duration", Void, [needed("key", Type::String), needed("value", Type::Duration)], at::ALL,
            "Sets a DURATION variable of the task.";
        VarGetDuration: "", "get_duration", Duration, [needed("key", Type::String)], at::ALL,
            "A DURATION variable; 0s when there is none.";
        VarSetIp: "", "set_ip", Void, [needed("key", Type::String), needed("value", Type::Ip)], at::ALL,
            "Sets an IP variable of the task.";
        VarGetIp: "", "get_ip", Ip, [needed("key", Type::String)], at::ALL,
            "An IP variable; the null IP when there is none.";
        VarSetBackend: "", "set_backend", Void, [needed("key", Type::String), needed("value", Type::Backend)], at::ALL,
            "Sets a BACKEND variable of the task.";
        VarGetBackend: "", "get_backend", Backend, [needed("key", Type::String)], at::ALL,
            "A BACKEND variable; no backend when there is none.";
        VarClear: "", "clear", Void, [], at::ALL, "Removes all variables of the task.";
    }
    vsthrottle Vsthrottle "vsthrottle" "Limits on how often something may happen, by key." directors [] {
        ThrottleIsDenied: "", "is_denied", Bool, [
                needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
                with_default("block", Type::Duration, "0s"),
            ], at::ALL,
            "Takes a token of the bucket; true when there was none, and then for the time of block.";
        ThrottleReturnToken: "", "return_token", Void, [
                needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
                with_default("block", Type::Duration, "0s"),
            ], at::ALL,
            "Puts a token back into the bucket.";
        ThrottleRemaining: "", "remaining", Int, [
                needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
                with_default("block", Type::Duration, "0s"),
            ], at::ALL,
            "Number of tokens in the bucket.";
        ThrottleBlocked: "", "blocked", Duration, [
                needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
                needed("block", Type::Duration),
            ], at::ALL,
            "Time for which the bucket is still blocked.";
        ThrottleRemoveBucket: "", "remove_bucket", Void, [
                needed("key", Type::String), needed("limit", Type::Int), needed("period", Type::Duration),
                with_default("block", Type::Duration, "0s"),
            ], at::ALL,
            "Removes the bucket.";
    }
    xkey Xkey "xkey" "Purging by the tags that responses carry in xkey, Surrogate-Key or Cache-Tag." directors [] {
        XkeyPurge: "", "purge", Int, [needed("keys", Type::String)], at::ALL,
            "Removes the objects with any of the tags, which blanks or commas separate; returns how many there were.";
        XkeySoftpurge: "", "softpurge", Int, [needed("keys", Type::String)], at::ALL,
            "Ends the freshness of the objects with any of the tags, leaving grace and keep; returns how many were fresh.";
    }
    ykey Ykey "ykey" "Purging by tags that VCL gives to responses; those of xkey are the same." directors [] {
        YkeyAddKey: "", "add_key", Void, [needed("key", Type::String)], at::ALL,
            "Adds a tag to the response of the fetch, as a line of the header xkey.";
        YkeyAddHeader: "", "add_header", Void, [needed("header", Type::Header), with_default("sep", Type::String, "\" \"")], at::ALL,
            "Adds the tags in a header, which any character of sep separates.";
        YkeyPurge: "", "purge", Int, [needed("keys", Type::String), with_default("soft", Type::Bool, "false")], at::ALL,
            "Removes the objects with any of the tags, or with soft ends their freshness; returns how many there were.";
        YkeyPurgeKeys: "", "purge_keys", Int, [needed("keys", Type::String), with_default("soft", Type::Bool, "false")], at::ALL,
            "The same as purge.";
        YkeyPurgeHeader: "", "purge_header", Int, [
                needed("header", Type::Header), with_default("sep", Type::String, "\" \""), with_default("soft", Type::Bool, "false"),
            ], at::ALL,
            "Like purge, with the tags in a header, which any character of sep separates.";
    }
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
