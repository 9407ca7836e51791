//! VCL of Varnish 0.9 to 1.1: actions are bare words, `obj` is the response in `vcl_fetch`, there
//! is no `vcl_error`.
//!
//! Source: Varnish 1.1.2; `insert_pass` and `resp` in `vcl_fetch` are of 1.0.

use super::super::{Action, Generation, Method, Type, Var};
use super::within::{DELIVER, FETCH, HASH, HIT, MISS, PASS, PIPE, UPTO_FETCH};
use super::{Language, LegacyMethodRow, LegacyVariableRow, Means, both, ends, method, read, special};

const ERROR: super::ReturnRow = ends("error", Action::Synth);

pub(super) static LANGUAGE: Language = Language {
    generation: Generation::V1,
    methods: METHODS,
    ignored_methods: &["vcl_timeout", "vcl_discard"],
    variables: VARIABLES,
};

static METHODS: &[LegacyMethodRow] = &[
    method(
        "vcl_recv",
        Method::Recv,
        &[ERROR, ends("pass", Action::Pass), ends("pipe", Action::Pipe), ends("lookup", Action::Hash)],
    ),
    method("vcl_pipe", Method::Pipe, &[ERROR, ends("pipe", Action::Pipe)]),
    method("vcl_pass", Method::Pass, &[ERROR, ends("pass", Action::Fetch)]),
    method("vcl_hash", Method::Hash, &[ends("hash", Action::Lookup)]),
    method("vcl_miss", Method::Miss, &[ERROR, ends("pass", Action::Pass), ends("fetch", Action::Fetch)]),
    method("vcl_hit", Method::Hit, &[ERROR, ends("pass", Action::Pass), ends("deliver", Action::Deliver)]),
    method(
        "vcl_fetch",
        Method::BackendResponse,
        &[ERROR, ends("pass", Action::Pass), ends("insert_pass", Action::Pass), ends("insert", Action::Deliver)],
    ),
    method("vcl_deliver", Method::Deliver, &[ERROR, ends("deliver", Action::Deliver)]),
];

const ALL: u16 = UPTO_FETCH | DELIVER;
const SENDING: u16 = PIPE | PASS | MISS;

static VARIABLES: &[LegacyVariableRow] = &[
    read("client.ip", Type::Ip, ALL, Var::ClientIp),
    read("server.ip", Type::Ip, ALL, Var::ServerIp),
    both("req.request", Type::String, UPTO_FETCH, Var::ReqMethod),
    both("req.url", Type::String, UPTO_FETCH, Var::ReqUrl),
    both("req.proto", Type::String, UPTO_FETCH, Var::ReqProto),
    both("req.http.*", Type::Header, UPTO_FETCH, Var::ReqHttp),
    special("req.hash", Type::String, 0, HASH, Means::Hash),
    both("req.backend", Type::Backend, UPTO_FETCH, Var::ReqBackendHint),
    both("bereq.request", Type::String, SENDING, Var::BereqMethod),
    both("bereq.url", Type::String, SENDING, Var::BereqUrl),
    both("bereq.proto", Type::String, SENDING, Var::BereqProto),
    both("bereq.http.*", Type::Header, SENDING, Var::BereqHttp),
    read("obj.proto", Type::String, HIT, Var::ObjProto),
    special("obj.proto", Type::String, 0, HIT, Means::Nothing),
    both("obj.proto", Type::String, FETCH, Var::BerespProto),
    both("obj.status", Type::Int, FETCH, Var::BerespStatus),
    both("obj.response", Type::String, FETCH, Var::BerespReason),
    both("obj.http.*", Type::Header, HIT, Var::ObjHttp),
    both("obj.http.*", Type::Header, FETCH, Var::BerespHttp),
    special("obj.valid", Type::Bool, HIT | FETCH, HIT | FETCH, Means::True),
    both("obj.cacheable", Type::Bool, HIT | FETCH, Var::Cacheable),
    both("obj.ttl", Type::Duration, HIT, Var::ObjTtl),
    both("obj.ttl", Type::Duration, FETCH, Var::BerespTtl),
    read("obj.lastuse", Type::Duration, HIT | DELIVER, Var::ObjLastuse),
    special("obj.lastuse", Type::Duration, FETCH, 0, Means::Nothing),
    both("resp.proto", Type::String, DELIVER, Var::RespProto),
    both("resp.status", Type::Int, DELIVER, Var::RespStatus),
    both("resp.response", Type::String, DELIVER, Var::RespReason),
    both("resp.http.*", Type::Header, DELIVER, Var::RespHttp),
    both("resp.http.*", Type::Header, FETCH, Var::BerespHttp),
    read("now", Type::Time, ALL, Var::Now),
];
