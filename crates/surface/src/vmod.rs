//! VMOD signatures: one row a function, from which the type checker and the reference page come.
//!
//! `vmods` implements the rows: [`Function`] names each one, and its `match` has no arm for "other", so a row without an
//! implementation does not compile. A function's number is its index in [`FUNCTIONS`]. Hidden arguments of Varnish's own
//! tables are not listed: they are no words of a user.
//! Source: the VMOD manual pages of Varnish 7.1.1 and their behaviour. Next file: `cli.rs`.

use crate::vcl::{Type, at};

/// One argument of a VMOD function.
#[derive(Debug)]
pub struct ArgumentRow {
    /// Name for `name = value`; empty for positional only.
    pub name: &'static str,
    /// Type. STRANDS takes any number of strings joined by `+`.
    pub kind: Type,
    /// Default, as a VCL literal of that type (`true`, `", "`, `-1s`; the bare word for an ENUM); `None` when there is none.
    pub default: Option<&'static str>,
    /// The argument may be left out without a default; it then arrives as absent.
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
        directors: &["round_robin", "fallback", "random", "hash"],
    },
    VmodRow { name: "blob", text: "Binary data to text and back.", directors: &[] },
    VmodRow { name: "cookie", text: "Cookies of a request, one by one.", directors: &[] },
    VmodRow { name: "purge", text: "Purging with control over what becomes of the objects.", directors: &[] },
    VmodRow { name: "vtc", text: "Helpers of test cases.", directors: &[] },
];

/// An argument that must be given.
const fn needed(name: &'static str, kind: Type) -> ArgumentRow {
    ArgumentRow { name, kind, default: None, optional: false, values: &[] }
}

/// An argument with a default.
const fn with_default(name: &'static str, kind: Type, default: &'static str) -> ArgumentRow {
    ArgumentRow { name, kind, default: Some(default), optional: false, values: &[] }
}

/// An argument that may be left out.
const fn optional(name: &'static str, kind: Type) -> ArgumentRow {
    ArgumentRow { name, kind, default: None, optional: true, values: &[] }
}

/// An argument that takes one of several words.
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
    /// The function of that number; `None` when there is none.
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
    DirectorsLookup: "directors", "", "lookup", Backend, [needed("", Type::String)], at::ALL,
        "The backend or director of that VCL name; only in vcl_init and vcl_fini.";

    PurgeHard: "purge", "", "hard", Int, [], at::ALL, "Removes all variants of the object; returns how many there were.";
    PurgeSoft: "purge", "", "soft", Int, [
            with_default("ttl", Type::Duration, "0s"), with_default("grace", Type::Duration, "-1s"),
            with_default("keep", Type::Duration, "-1s"),
        ], at::ALL,
        "Shortens the life of all variants; a negative argument leaves that time alone. Returns how many there were.";

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
    VtcPanic: "vtc", "", "panic", Void, [needed("", Type::Strands)], at::ALL, "Panics with that text.";
    VtcSleep: "vtc", "", "sleep", Void, [needed("", Type::Duration)], at::ALL, "Waits that long.";
    VtcTypesize: "vtc", "", "typesize", Int, [needed("", Type::String)], at::ALL,
        "The size in C of a structure whose members are given by letters.";
    VtcProxyHeader: "vtc", "", "proxy_header", Blob, [
            word("version", &["v1", "v2"], None, false), needed("client", Type::Ip), needed("server", Type::Ip),
            optional("authority", Type::String),
        ], at::ALL,
        "A PROXY protocol header.";
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
