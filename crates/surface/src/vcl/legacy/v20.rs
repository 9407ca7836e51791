//! VCL of Varnish 2.0: `obj` is the response in `vcl_fetch`, and the page in `vcl_error`; accepts
//! both `pass;` and `return (pass);`.
//!
//! Source: Varnish 2.0.6.

use super::super::{Action, Generation, Method, Type, Var};
use super::within::{DELIVER, ERROR, FETCH, HASH, HIT, MISS, PASS, PIPE, RECV, REQUEST, UPTO_FETCH};
use super::{Language, LegacyMethodRow, LegacyVariableRow, Means, both, ends, method, read, special};

const FAIL: super::ReturnRow = ends("error", Action::Synth);
const RESTART: super::ReturnRow = ends("restart", Action::Restart);

pub(super) static LANGUAGE: Language = Language {
    generation: Generation::V20,
    methods: METHODS,
    ignored_methods: &["vcl_prefetch", "vcl_timeout", "vcl_discard"],
    variables: VARIABLES,
};

static METHODS: &[LegacyMethodRow] = &[
    method(
        "vcl_recv",
        Method::Recv,
        &[FAIL, ends("pass", Action::Pass), ends("pipe", Action::Pipe), ends("lookup", Action::Hash)],
    ),
    method("vcl_pipe", Method::Pipe, &[FAIL, ends("pipe", Action::Pipe)]),
    method("vcl_pass", Method::Pass, &[FAIL, RESTART, ends("pass", Action::Fetch)]),
    method("vcl_hash", Method::Hash, &[ends("hash", Action::Lookup)]),
    method("vcl_miss", Method::Miss, &[FAIL, RESTART, ends("pass", Action::Pass), ends("fetch", Action::Fetch)]),
    method("vcl_hit", Method::Hit, &[FAIL, RESTART, ends("pass", Action::Pass), ends("deliver", Action::Deliver)]),
    method(
        "vcl_fetch",
        Method::BackendResponse,
        &[FAIL, RESTART, ends("pass", Action::Pass), ends("deliver", Action::Deliver)],
    ),
    method("vcl_deliver", Method::Deliver, &[RESTART, ends("deliver", Action::Deliver)]),
    method("vcl_error", Method::Synth, &[RESTART, ends("deliver", Action::Deliver)]),
];

const REQ: u16 = UPTO_FETCH | ERROR;
const BEREQ: u16 = PIPE | PASS | MISS | FETCH;

static VARIABLES: &[LegacyVariableRow] = &[
    read("client.ip", Type::Ip, REQUEST, Var::ClientIp),
    read("server.ip", Type::Ip, REQUEST, Var::ServerIp),
    read("server.hostname", Type::String, REQUEST, Var::ServerHostname),
    read("server.identity", Type::String, REQUEST, Var::ServerIdentity),
    special("server.port", Type::Int, REQUEST, 0, Means::Port(Var::ServerIp)),
    both("req.request", Type::String, REQ, Var::ReqMethod),
    both("req.url", Type::String, REQ, Var::ReqUrl),
    both("req.proto", Type::String, REQ, Var::ReqProto),
    both("req.http.*", Type::Header, REQ, Var::ReqHttp),
    special("req.hash", Type::String, 0, HASH | ERROR, Means::Hash),
    both("req.backend", Type::Backend, REQ, Var::ReqBackendHint),
    special("req.backend.healthy", Type::Bool, REQUEST, 0, Means::Healthy(Var::ReqBackendHint)),
    read("req.restarts", Type::Int, REQUEST, Var::ReqRestarts),
    both("req.grace", Type::Duration, REQUEST, Var::ReqGrace),
    read("req.xid", Type::Int, REQUEST, Var::ReqXid),
    both("req.esi", Type::Bool, RECV | FETCH | DELIVER | ERROR, Var::ReqEsi),
    both("bereq.request", Type::String, BEREQ, Var::BereqMethod),
    both("bereq.url", Type::String, BEREQ, Var::BereqUrl),
    both("bereq.proto", Type::String, BEREQ, Var::BereqProto),
    both("bereq.http.*", Type::Header, BEREQ, Var::BereqHttp),
    both("bereq.connect_timeout", Type::Duration, PASS | MISS, Var::BereqConnectTimeout),
    both("bereq.first_byte_timeout", Type::Duration, PASS | MISS, Var::BereqFirstByteTimeout),
    both("bereq.between_bytes_timeout", Type::Duration, PASS | MISS, Var::BereqBetweenBytesTimeout),
    read("obj.proto", Type::String, HIT, Var::ObjProto),
    special("obj.proto", Type::String, 0, HIT, Means::Nothing),
    both("obj.proto", Type::String, FETCH, Var::BerespProto),
    both("obj.proto", Type::String, ERROR, Var::RespProto),
    both("obj.status", Type::Int, FETCH, Var::BerespStatus),
    both("obj.status", Type::Int, ERROR, Var::RespStatus),
    both("obj.response", Type::String, FETCH, Var::BerespReason),
    both("obj.response", Type::String, ERROR, Var::RespReason),
    read("obj.hits", Type::Int, HIT | DELIVER, Var::ObjHits),
    special("obj.hits", Type::Int, FETCH, 0, Means::Nothing),
    both("obj.http.*", Type::Header, HIT, Var::ObjHttp),
    both("obj.http.*", Type::Header, FETCH, Var::BerespHttp),
    both("obj.http.*", Type::Header, ERROR, Var::RespHttp),
    both("obj.cacheable", Type::Bool, HIT | FETCH, Var::Cacheable),
    special("obj.cacheable", Type::Bool, ERROR, ERROR, Means::Nothing),
    both("obj.ttl", Type::Duration, HIT, Var::ObjTtl),
    both("obj.ttl", Type::Duration, FETCH, Var::BerespTtl),
    special("obj.ttl", Type::Duration, ERROR, ERROR, Means::Nothing),
    both("obj.grace", Type::Duration, HIT, Var::ObjGrace),
    both("obj.grace", Type::Duration, FETCH, Var::BerespGrace),
    special("obj.grace", Type::Duration, ERROR, ERROR, Means::Nothing),
    special("obj.prefetch", Type::Duration, FETCH, FETCH, Means::Nothing),
    read("obj.lastuse", Type::Duration, HIT | DELIVER, Var::ObjLastuse),
    special("obj.lastuse", Type::Duration, FETCH | ERROR, 0, Means::Nothing),
    read("obj.hash", Type::String, MISS | HIT | FETCH | DELIVER | ERROR, Var::ObjHash),
    both("resp.proto", Type::String, DELIVER, Var::RespProto),
    both("resp.status", Type::Int, DELIVER, Var::RespStatus),
    both("resp.response", Type::String, DELIVER, Var::RespReason),
    both("resp.http.*", Type::Header, DELIVER, Var::RespHttp),
    read("now", Type::Time, REQUEST, Var::Now),
];
