//! VCL of Varnish 3.0: expressions, VMODs, `hit_for_pass`, `vcl_init`.
//!
//! Source: Varnish 3.0.7.

use super::super::{Action, Generation, Method, Type, Var, at};
use super::within::{DELIVER, ERROR, FETCH, HIT, MISS, PASS, PIPE, RECV, REQUEST};
use super::{Language, LegacyMethodRow, LegacyVariableRow, Means, both, ends, method, read, row, special};

const FAIL: super::ReturnRow = ends("error", Action::Synth);
const RESTART: super::ReturnRow = ends("restart", Action::Restart);

pub(super) static LANGUAGE: Language =
    Language { generation: Generation::V3, methods: METHODS, ignored_methods: &[], variables: VARIABLES };

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
        &[FAIL, RESTART, ends("hit_for_pass", Action::Pass), ends("deliver", Action::Deliver)],
    ),
    method("vcl_deliver", Method::Deliver, &[RESTART, ends("deliver", Action::Deliver)]),
    method("vcl_error", Method::Synth, &[RESTART, ends("deliver", Action::Deliver)]),
    method("vcl_init", Method::Init, &[ends("ok", Action::Ok)]),
    method("vcl_fini", Method::Fini, &[ends("ok", Action::Ok)]),
];

const BEREQ: u16 = PIPE | PASS | MISS | FETCH;

static VARIABLES: &[LegacyVariableRow] = &[
    read("client.ip", Type::Ip, REQUEST, Var::ClientIp),
    both("client.identity", Type::String, REQUEST, Var::ClientIdentity),
    read("server.ip", Type::Ip, REQUEST, Var::ServerIp),
    read("server.hostname", Type::String, REQUEST, Var::ServerHostname),
    read("server.identity", Type::String, REQUEST, Var::ServerIdentity),
    special("server.port", Type::Int, REQUEST, 0, Means::Port(Var::ServerIp)),
    both("req.request", Type::String, REQUEST, Var::ReqMethod),
    both("req.url", Type::String, REQUEST, Var::ReqUrl),
    both("req.proto", Type::String, REQUEST, Var::ReqProto),
    both("req.http.*", Type::Header, REQUEST, Var::ReqHttp),
    both("req.backend", Type::Backend, REQUEST, Var::ReqBackendHint),
    special("req.backend.healthy", Type::Bool, REQUEST, 0, Means::Healthy(Var::ReqBackendHint)),
    read("req.restarts", Type::Int, REQUEST, Var::ReqRestarts),
    read("req.esi_level", Type::Int, REQUEST, Var::ReqEsiLevel),
    both("req.ttl", Type::Duration, REQUEST, Var::ReqTtl),
    both("req.grace", Type::Duration, REQUEST, Var::ReqGrace),
    special("req.keep", Type::Duration, REQUEST, REQUEST, Means::Nothing),
    read("req.xid", Type::Int, REQUEST, Var::ReqXid),
    both("req.esi", Type::Bool, RECV | FETCH | DELIVER | ERROR, Var::ReqEsi),
    read("req.can_gzip", Type::Bool, REQUEST, Var::ReqCanGzip),
    both("req.hash_ignore_busy", Type::Bool, RECV, Var::ReqHashIgnoreBusy),
    both("req.hash_always_miss", Type::Bool, RECV, Var::ReqHashAlwaysMiss),
    both("bereq.request", Type::String, BEREQ, Var::BereqMethod),
    both("bereq.url", Type::String, BEREQ, Var::BereqUrl),
    both("bereq.proto", Type::String, BEREQ, Var::BereqProto),
    both("bereq.http.*", Type::Header, BEREQ, Var::BereqHttp),
    both("bereq.connect_timeout", Type::Duration, PIPE | PASS | MISS, Var::BereqConnectTimeout),
    both("bereq.first_byte_timeout", Type::Duration, PASS | MISS, Var::BereqFirstByteTimeout),
    both("bereq.between_bytes_timeout", Type::Duration, PASS | MISS, Var::BereqBetweenBytesTimeout),
    both("beresp.proto", Type::String, FETCH, Var::BerespProto),
    row("beresp.saintmode", Type::Duration, 0, FETCH, Var::Saintmode),
    both("beresp.status", Type::Int, FETCH, Var::BerespStatus),
    both("beresp.response", Type::String, FETCH, Var::BerespReason),
    both("beresp.http.*", Type::Header, FETCH, Var::BerespHttp),
    both("beresp.do_esi", Type::Bool, FETCH, Var::BerespDoEsi),
    both("beresp.do_stream", Type::Bool, FETCH, Var::BerespDoStream),
    both("beresp.do_gzip", Type::Bool, FETCH, Var::BerespDoGzip),
    both("beresp.do_gunzip", Type::Bool, FETCH, Var::BerespDoGunzip),
    both("beresp.ttl", Type::Duration, FETCH, Var::BerespTtl),
    both("beresp.grace", Type::Duration, FETCH, Var::BerespGrace),
    both("beresp.keep", Type::Duration, FETCH, Var::BerespKeep),
    read("beresp.backend.name", Type::String, FETCH, Var::BerespBackendName),
    read("beresp.backend.ip", Type::Ip, FETCH, Var::BerespBackendIp),
    special("beresp.backend.port", Type::Int, FETCH, 0, Means::Port(Var::BerespBackendIp)),
    both("beresp.storage", Type::String, FETCH, Var::BerespStorageHint),
    read("obj.proto", Type::String, HIT, Var::ObjProto),
    special("obj.proto", Type::String, 0, HIT, Means::Nothing),
    both("obj.proto", Type::String, ERROR, Var::RespProto),
    both("obj.status", Type::Int, ERROR, Var::RespStatus),
    both("obj.response", Type::String, ERROR, Var::RespReason),
    read("obj.hits", Type::Int, HIT | DELIVER, Var::ObjHits),
    read("obj.http.*", Type::Header, HIT, Var::ObjHttp),
    both("obj.http.*", Type::Header, ERROR, Var::RespHttp),
    both("obj.ttl", Type::Duration, HIT, Var::ObjTtl),
    special("obj.ttl", Type::Duration, ERROR, ERROR, Means::Nothing),
    both("obj.grace", Type::Duration, HIT, Var::ObjGrace),
    special("obj.grace", Type::Duration, ERROR, ERROR, Means::Nothing),
    both("obj.keep", Type::Duration, HIT, Var::ObjKeep),
    special("obj.keep", Type::Duration, ERROR, ERROR, Means::Nothing),
    read("obj.lastuse", Type::Duration, HIT | DELIVER, Var::ObjLastuse),
    special("obj.lastuse", Type::Duration, ERROR, 0, Means::Nothing),
    both("resp.proto", Type::String, DELIVER, Var::RespProto),
    both("resp.status", Type::Int, DELIVER, Var::RespStatus),
    both("resp.response", Type::String, DELIVER, Var::RespReason),
    both("resp.http.*", Type::Header, DELIVER, Var::RespHttp),
    read("now", Type::Time, at::ALL, Var::Now),
];
