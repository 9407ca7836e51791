//! Replacements in VCL 4.1 for the words of old dialects; their meanings are in other tables
//! (`surface::vcl::legacy`).
//!
//! A variable that is the same in VCL 4.1 needs no row: the variable that the old name means has
//! its new name. Rows are for variables that have moved, because `vcl_fetch` ran for the client and
//! `vcl_backend_response` does not, and for those that no longer exist. The first matching row is
//! used.

use surface::vcl::{Generation, Var, at};

/// Variables, each with the one that replaces it on the backend's side.
pub(super) static BACKEND_SIDE: &[(Var, Var)] = &[
    (Var::ReqMethod, Var::BereqMethod),
    (Var::ReqUrl, Var::BereqUrl),
    (Var::ReqProto, Var::BereqProto),
    (Var::ReqHttp, Var::BereqHttp),
    (Var::ReqBackendHint, Var::BereqBackend),
    (Var::ReqXid, Var::BereqXid),
    (Var::ReqIsHitmiss, Var::BereqIsHitmiss),
    (Var::ReqIsHitpass, Var::BereqIsHitpass),
];

/// The use of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Read,
    Set,
    Unset,
}

/// The treatment of a variable that has no counterpart where it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Treatment {
    /// Read this instead. `{std}` is the name of the std VMOD.
    Value(&'static str),
    /// The statement is removed, since it no longer has an effect.
    Gone,
    /// A change of `bereq` before `bereq` exists: carried to `vcl_backend_fetch` in a header.
    ToBackendFetch,
    /// A change of a cached object's lifetime: `purge.soft()` with this argument; its other
    /// arguments change nothing.
    Age(Times),
    /// A header of a cached object: set for this response only.
    ToDelivery,
    /// `beresp.cacheable`: a header of `bereq` that exists when it is true.
    Cacheable,
    /// `req.esi`: applied in `vcl_deliver`.
    Esi,
    /// `req.restarts` on the backend's side: reaches the fetch in a header, and stays in a variable
    /// of it.
    Restarts,
    /// `beresp.storage` by name.
    Storage,
    /// `beresp.saintmode`: a call of the saintmode VMOD, which then wraps each backend.
    Saint,
}

/// The lifetime of an object that is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Times {
    Ttl,
    Grace,
    Keep,
}

/// A row: the variable, the methods (of VCL 4.1) and uses it applies to, and its treatment.
#[derive(Debug)]
pub(super) struct TreatmentRow {
    pub(super) var: Var,
    pub(super) at: u16,
    pub(super) uses: &'static [Use],
    pub(super) treatment: Treatment,
    /// Note for the author; empty if nothing changes.
    pub(super) note: &'static str,
}

const fn row(var: Var, at: u16, uses: &'static [Use], treatment: Treatment, note: &'static str) -> TreatmentRow {
    TreatmentRow { var, at, uses, treatment, note }
}

const READ: &[Use] = &[Use::Read];
const CHANGE: &[Use] = &[Use::Set, Use::Unset];
const ANY: &[Use] = &[Use::Read, Use::Set, Use::Unset];
const BEFORE_FETCH: u16 = at::MISS | at::PASS;
const PROTO: &str = "the protocol cannot be set in VCL 4.1";
const LATER: &str = "there is no bereq here: it is changed in vcl_backend_fetch";
const CLIENT_ONLY: &str = "the client's side decides this, before the fetch: it has no effect here";
const AGED: &str = "all variants of the object are aged, and lives only become shorter";

pub(super) static FATES: &[TreatmentRow] = &[
    row(Var::BereqHttp, BEFORE_FETCH, ANY, Treatment::ToBackendFetch, ""),
    row(Var::BereqUrl, BEFORE_FETCH, ANY, Treatment::ToBackendFetch, ""),
    row(Var::BereqMethod, BEFORE_FETCH, ANY, Treatment::ToBackendFetch, ""),
    row(Var::BereqProto, at::ALL, CHANGE, Treatment::Gone, PROTO),
    row(Var::BereqProto, BEFORE_FETCH, READ, Treatment::Value("\"HTTP/1.1\""), ""),
    row(Var::BereqConnectTimeout, BEFORE_FETCH, CHANGE, Treatment::ToBackendFetch, ""),
    row(Var::BereqFirstByteTimeout, BEFORE_FETCH, CHANGE, Treatment::ToBackendFetch, ""),
    row(Var::BereqBetweenBytesTimeout, BEFORE_FETCH, CHANGE, Treatment::ToBackendFetch, ""),
    row(Var::BereqConnectTimeout, BEFORE_FETCH, READ, Treatment::Value("0s"), LATER),
    row(Var::BereqFirstByteTimeout, BEFORE_FETCH, READ, Treatment::Value("0s"), LATER),
    row(Var::BereqBetweenBytesTimeout, BEFORE_FETCH, READ, Treatment::Value("0s"), LATER),
    row(Var::ReqProto, at::ALL, CHANGE, Treatment::Gone, PROTO),
    row(Var::BerespProto, at::ALL, CHANGE, Treatment::Gone, PROTO),
    row(Var::RespProto, at::ALL, CHANGE, Treatment::Gone, PROTO),
    row(Var::ObjTtl, at::HIT, CHANGE, Treatment::Age(Times::Ttl), AGED),
    row(Var::ObjGrace, at::HIT, CHANGE, Treatment::Age(Times::Grace), AGED),
    row(Var::ObjKeep, at::HIT, CHANGE, Treatment::Age(Times::Keep), AGED),
    row(
        Var::ObjHttp,
        at::HIT,
        CHANGE,
        Treatment::ToDelivery,
        "the object itself cannot be changed: only this response is",
    ),
    row(Var::ObjHits, at::SYNTH | at::BACKEND_RESPONSE, READ, Treatment::Value("0"), ""),
    row(Var::ObjLastuse, at::ALL, READ, Treatment::Value("0s"), "nothing tells when an object was last used"),
    row(
        Var::ObjHash,
        at::HIT | at::MISS | at::DELIVER,
        READ,
        Treatment::Value("req.hash"),
        "the hash reads otherwise in VCL 4",
    ),
    row(Var::ObjHash, at::BACKEND_RESPONSE, READ, Treatment::Value("bereq.hash"), "the hash reads otherwise in VCL 4"),
    row(Var::ObjHash, at::ALL, READ, Treatment::Value("\"\""), "there is no hash here in VCL 4"),
    row(Var::Cacheable, at::BACKEND_RESPONSE, ANY, Treatment::Cacheable, ""),
    row(Var::Cacheable, at::ALL, READ, Treatment::Value("true"), ""),
    row(Var::Cacheable, at::ALL, CHANGE, Treatment::Gone, "what was found in the cache was cacheable"),
    row(Var::Saintmode, at::ALL, CHANGE, Treatment::Saint, "saint mode is a VMOD now, around each backend"),
    row(Var::ReqEsi, at::ALL, ANY, Treatment::Esi, ""),
    row(Var::ReqRestarts, at::BACKEND, READ, Treatment::Restarts, ""),
    row(Var::ReqGrace, at::BACKEND, CHANGE, Treatment::Gone, CLIENT_ONLY),
    row(Var::ReqTtl, at::BACKEND, CHANGE, Treatment::Gone, CLIENT_ONLY),
    row(Var::ReqHashAlwaysMiss, at::BACKEND, CHANGE, Treatment::Gone, CLIENT_ONLY),
    row(Var::ReqHashIgnoreBusy, at::BACKEND, CHANGE, Treatment::Gone, CLIENT_ONLY),
    row(Var::ClientIdentity, at::BACKEND, CHANGE, Treatment::Gone, CLIENT_ONLY),
    row(Var::ReqGrace, at::BACKEND, READ, Treatment::Value("0s"), "this is known on the client's side only"),
    row(Var::ReqTtl, at::BACKEND, READ, Treatment::Value("0s"), "this is known on the client's side only"),
    row(
        Var::ReqCanGzip,
        at::BACKEND,
        READ,
        Treatment::Value("(bereq.http.Accept-Encoding ~ \"gzip\")"),
        "bereq.http.Accept-Encoding is what the backend was asked for, not what the client said",
    ),
    row(
        Var::ReqEsiLevel,
        at::BACKEND,
        READ,
        Treatment::Value("0"),
        "the depth of includes is known on the client's side only",
    ),
    row(
        Var::BerespBackendIp,
        at::ALL,
        READ,
        Treatment::Value("{std}.ip(\"0.0.0.0\", \"0.0.0.0\")"),
        "the address of a backend is no variable of VCL 4.1; its name is: beresp.backend.name",
    ),
    row(Var::BerespStorageHint, at::ALL, ANY, Treatment::Storage, "the storage must be one of those named with -s"),
];

/// Headers of the request that differ in `bereq`, and the reason.
pub(super) static CHANGED_HEADERS: &[(&str, &str)] = &[
    ("accept-encoding", "bereq.http.Accept-Encoding is what the backend was asked for, not what the client said"),
    ("range", "a fetch for the cache asks for the whole: bereq has no Range"),
    ("if-none-match", "a fetch for the cache has no conditions of the client: bereq has no If-None-Match"),
    ("if-modified-since", "a fetch for the cache has no conditions of the client: bereq has no If-Modified-Since"),
    ("connection", "bereq has no headers of the client's connection"),
    ("keep-alive", "bereq has no headers of the client's connection"),
    ("te", "bereq has no headers of the client's connection"),
    ("upgrade", "bereq has no headers of the client's connection"),
];

/// Attributes of backends and probes that are durations.
pub(super) static DURATION_FIELDS: &[&str] =
    &["connect_timeout", "first_byte_timeout", "between_bytes_timeout", "timeout", "interval"];

/// Defaults of a generation that VCL 4.1 has not.
pub(super) struct Defaults {
    /// The address of the client is appended to X-Forwarded-For by the built-in vcl_recv, if that
    /// is reached; otherwise by the core, when the backend is contacted.
    pub(super) forwards_in_vcl: bool,
    /// Stale objects are not served at all.
    pub(super) no_grace: bool,
    /// `default_grace` applies to a request that sets no grace.
    pub(super) grace_by_default: bool,
    /// Every status gets a time to live.
    pub(super) every_status_lives: bool,
    /// The marker of `pass` in `vcl_fetch` is kept for at least `default_ttl`.
    pub(super) pass_lives: bool,
    /// `deliver` does not store uncacheable responses.
    pub(super) deliver_heeds_cacheable: bool,
    /// `beresp.cacheable` exists.
    pub(super) has_cacheable: bool,
    /// VCL is not called for error pages.
    pub(super) fixed_error_page: bool,
    /// Backend requests accept gzip, whatever a client accepts.
    pub(super) asks_for_gzip: bool,
}

/// The row of a generation.
pub(super) fn defaults(generation: Generation) -> &'static Defaults {
    match generation {
        Generation::V1 => &Defaults {
            forwards_in_vcl: false,
            no_grace: true,
            grace_by_default: false,
            every_status_lives: true,
            pass_lives: false,
            deliver_heeds_cacheable: false,
            has_cacheable: true,
            fixed_error_page: true,
            asks_for_gzip: false,
        },
        Generation::V20 => &Defaults {
            forwards_in_vcl: false,
            no_grace: false,
            grace_by_default: true,
            every_status_lives: true,
            pass_lives: true,
            deliver_heeds_cacheable: false,
            has_cacheable: true,
            fixed_error_page: false,
            asks_for_gzip: false,
        },
        Generation::V21 => &Defaults {
            forwards_in_vcl: true,
            no_grace: false,
            grace_by_default: true,
            every_status_lives: true,
            pass_lives: true,
            deliver_heeds_cacheable: true,
            has_cacheable: true,
            fixed_error_page: false,
            asks_for_gzip: false,
        },
        Generation::V3 | Generation::V4 => &Defaults {
            forwards_in_vcl: true,
            no_grace: false,
            grace_by_default: false,
            every_status_lives: false,
            pass_lives: false,
            deliver_heeds_cacheable: false,
            has_cacheable: false,
            fixed_error_page: false,
            asks_for_gzip: true,
        },
    }
}
