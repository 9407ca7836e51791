//! Every variable of VCL, a row each. The enum [`Var`] and the table [`VARIABLES`] are made of the rows.
//!
//! A row says what VCL calls the variable, its type, in which methods it can be read, set and unset ([`at`]; 0 = in none), which
//! versions of the language have it (40 or 41; up to 41 means "and later"), and what it is. A variable whose access differs between
//! 4.0 and 4.1 has two. What it does stands in one file of the engine's `world`, that of the object it belongs to.

use super::{Type, at};
use serde::{Deserialize, Serialize};

/// One variable, or one of two rows when its access differs between VCL 4.0 and 4.1.
#[derive(Clone, Copy, Debug)]
pub struct VariableRow {
    /// The variable.
    pub var: Var,
    /// Name in VCL; `.*` at the end stands for any header, `storage.*.` for any storage.
    pub name: &'static str,
    /// Type.
    pub kind: Type,
    /// Methods in which it can be read ([`at`]).
    pub read: u16,
    /// Methods in which it can be set.
    pub write: u16,
    /// Methods in which it can be unset.
    pub unset: u16,
    /// First language version that has the row (40 or 41).
    pub syntax_min: u8,
    /// Last language version that has the row (40 or 41, read as "and later").
    pub syntax_max: u8,
    /// What it is.
    pub text: &'static str,
}

macro_rules! variables {
    (
        $(variable $var:ident {
            $($name:literal: $kind:ident, read $read:expr, write $write:expr, unset $unset:expr,
                syntax $min:literal..=$max:literal, $text:literal;)+
        })*
        of_old {
            $($(#[$doc:meta])* $old:ident: $old_kind:ident;)*
        }
    ) => {
        /// A variable. The `*Http` members stand for the header families (`req.http.*`).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Var {
            $($var,)*
            $($(#[$doc])* $old,)*
        }

        /// How many variables there are.
        pub(super) const COUNT: usize = [$(Var::$var,)* $(Var::$old,)*].len();

        /// Every variable.
        pub static VARIABLES: &[VariableRow] = &[
            $($(VariableRow {
                var: Var::$var,
                name: $name,
                kind: Type::$kind,
                read: $read,
                write: $write,
                unset: $unset,
                syntax_min: $min,
                syntax_max: $max,
                text: $text,
            },)+)*
        ];

        /// Variables that the old dialects have alone, with their types. What they are called is in [`super::legacy`].
        pub static LEGACY_VARIABLES: &[(Var, Type)] = &[$((Var::$old, Type::$old_kind),)*];
    };
}

variables! {
    variable ClientIdentity {
        "client.identity": String, read at::CLIENT | at::BACKEND, write at::CLIENT, unset 0, syntax 40..=41,
            "What the client director picks a backend by; the text of client.ip unless it was set";
    }
    variable ClientIp {
        "client.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The client's address: what the PROXY header says, or else the peer of the connection";
    }
    variable ServerHostname {
        "server.hostname": String, read at::ALL, write 0, unset 0, syntax 40..=41,
            "The host's name, as gethostname(2) has it";
    }
    variable ServerIdentity {
        "server.identity": String, read at::ALL, write 0, unset 0, syntax 40..=41,
            "What -i says, or else the host's name";
    }
    variable ServerIp {
        "server.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The address that the client connected to: what the PROXY header says, or else our end of the connection";
    }
    variable RemoteIp {
        "remote.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The peer of the connection, whatever a PROXY header says; 0.0.0.0 on a Unix-domain socket";
    }
    variable LocalEndpoint {
        "local.endpoint": String, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "The address of the -a that accepted the connection, as written";
    }
    variable LocalIp {
        "local.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Our end of the connection, whatever a PROXY header says; 0.0.0.0 on a Unix-domain socket";
    }
    variable LocalSocket {
        "local.socket": String, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "The name of the -a that accepted the connection (a0, a1 … unless it has one)";
    }
    variable Req {
        "req": Http, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "The whole request, as an argument for VMODs";
    }
    variable ReqBackendHint {
        "req.backend_hint": Backend, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "The backend or director that a fetch for this request goes to; reading a director shows the backend that it would choose";
    }
    variable ReqCanGzip {
        "req.can_gzip": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Whether the client's Accept-Encoding takes gzip";
    }
    variable ReqEsi {
        "req.esi": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=40,
            "Whether ESI is processed in the response; true unless it was set";
    }
    variable ReqEsiLevel {
        "req.esi_level": Int, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "How deep in ESI includes this request is; 0 is the page itself";
    }
    variable ReqFilters {
        "req.filters": String, read at::RECV, write at::RECV, unset 0, syntax 40..=41,
            "Filters that the request body is pulled through (since 7.7)";
    }
    variable ReqGrace {
        "req.grace": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "The longest grace that this request takes a stale object in; without it, that of the object counts";
    }
    variable ReqHash {
        "req.hash": Blob, read at::HIT | at::MISS | at::PASS | at::PURGE | at::DELIVER | at::SYNTH | at::PIPE, write 0, unset 0, syntax 40..=41,
            "The key under which the cache is searched, a SHA-256 digest; known from vcl_hash's end on";
    }
    variable ReqHashAlwaysMiss {
        "req.hash_always_miss": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Whether a fresh object is fetched whatever the cache has; it replaces the old one once it has come";
    }
    variable ReqHashIgnoreBusy {
        "req.hash_ignore_busy": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Whether the request does not wait for what another one is fetching; two caches that ask each other need it";
    }
    variable ReqHashIgnoreVary {
        "req.hash_ignore_vary": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Whether the first object under the key is taken, whatever its Vary says";
    }
    variable ReqHttp {
        "req.http.*": Header, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "A header of the request; a name with other characters is quoted: req.http.\"name\"";
    }
    variable ReqIsHitmiss {
        "req.is_hitmiss": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Whether the lookup found a marker of hit-for-miss";
    }
    variable ReqIsHitpass {
        "req.is_hitpass": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Whether the lookup found a marker of hit-for-pass";
    }
    variable ReqMethod {
        "req.method": String, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "The method, such as GET";
    }
    variable ReqProto {
        "req.proto": String, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=40,
            "The protocol with its version, such as HTTP/1.1";
        "req.proto": String, read at::CLIENT, write 0, unset 0, syntax 41..=41,
            "The protocol with its version, such as HTTP/1.1";
    }
    variable ReqRestarts {
        "req.restarts": Int, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "How often the request was restarted";
    }
    variable ReqSliceBytes {
        "req.slice_bytes": Bytes, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Size of the slices in which the resource is fetched and stored; 0 = not in slices";
    }
    variable ReqStorage {
        "req.storage": Stevedore, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "The storage that std.cache_req_body() keeps the request's body in";
    }
    variable ReqTime {
        "req.time": Time, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "When the request's head had been read; the same after a restart";
    }
    variable ReqTrace {
        "req.trace": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Whether VCL_trace records are written (since 7.4)";
    }
    variable ReqTransport {
        "req.transport": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "What the client speaks: HTTP/1, H2 …";
    }
    variable ReqTtl {
        "req.ttl": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "The greatest age that this request takes an object at; without it, any";
    }
    variable ReqUrl {
        "req.url": String, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "The URL as the client sent it, without scheme and host";
    }
    variable ReqXid {
        "req.xid": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "The request's number in the log (VXID)";
    }
    variable ReqTopHttp {
        "req_top.http.*": Header, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "A header of the request for the page, for a request that ESI made; of the request itself otherwise";
    }
    variable ReqTopMethod {
        "req_top.method": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "The method of the request for the page, for a request that ESI made";
    }
    variable ReqTopProto {
        "req_top.proto": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "The protocol of the request for the page, for a request that ESI made";
    }
    variable ReqTopTime {
        "req_top.time": Time, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "When the request for the page had been read, for a request that ESI made";
    }
    variable ReqTopUrl {
        "req_top.url": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "The URL of the page, for a request that ESI made";
    }
    variable Bereq {
        "bereq": Http, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The whole request to the origin, as an argument for VMODs";
    }
    variable BereqBackend {
        "bereq.backend": Backend, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "The backend or director that the fetch goes to";
    }
    variable BereqBetweenBytesTimeout {
        "bereq.between_bytes_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "How long each further piece of the response may take; the backend's or the parameter's unless it was set";
    }
    variable BereqBody {
        "bereq.body": Body, read 0, write 0, unset at::BACKEND_FETCH, syntax 40..=41,
            "The request's body; it can only be unset, which removes Content-Length as well";
    }
    variable BereqConnectTimeout {
        "bereq.connect_timeout": Duration, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset at::PIPE | at::BACKEND, syntax 40..=41,
            "How long the connection to the origin may take; the backend's or the parameter's unless it was set";
    }
    variable BereqFilters {
        "bereq.filters": String, read at::BACKEND_FETCH, write at::BACKEND_FETCH, unset 0, syntax 40..=41,
            "Filters that the request body is pushed through on its way to the origin (since 7.7)";
    }
    variable BereqFirstByteTimeout {
        "bereq.first_byte_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "How long the origin may take to begin its response; the backend's or the parameter's unless it was set";
    }
    variable BereqHash {
        "bereq.hash": Blob, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The key of the object, as in req.hash";
    }
    variable BereqHttp {
        "bereq.http.*": Header, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset at::PIPE | at::BACKEND, syntax 40..=41,
            "A header of the request to the origin";
    }
    variable BereqIsBgfetch {
        "bereq.is_bgfetch": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Whether this fetch renews an object in the background, while its stale copy is served";
    }
    variable BereqIsHitmiss {
        "bereq.is_hitmiss": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Whether this fetch is due to a marker of hit-for-miss";
    }
    variable BereqIsHitpass {
        "bereq.is_hitpass": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Whether this fetch is due to a marker of hit-for-pass";
    }
    variable BereqLastByteTimeout {
        "bereq.last_byte_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "How long the fetch may take to the last byte of its response; 0: as the backend or the parameter says (Copal's own)";
    }
    variable BereqMethod {
        "bereq.method": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "The method; GET for what may be cached, whatever the client's was";
    }
    variable BereqProto {
        "bereq.proto": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=40,
            "The protocol with its version";
        "bereq.proto": String, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "The protocol with its version";
    }
    variable BereqRetries {
        "bereq.retries": Int, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "How often this fetch was repeated by return (retry)";
    }
    variable BereqTaskDeadline {
        "bereq.task_deadline": Duration, read at::PIPE, write at::PIPE, unset at::PIPE, syntax 40..=41,
            "How long a pipe may last in all (since 7.5)";
    }
    variable BereqTime {
        "bereq.time": Time, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "When the fetch began; the same after a retry";
    }
    variable BereqTrace {
        "bereq.trace": Bool, read at::BACKEND, write at::BACKEND, unset 0, syntax 40..=41,
            "Whether VCL_trace records are written (since 7.4)";
    }
    variable BereqUncacheable {
        "bereq.uncacheable": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Whether the response will not be cached: a pass, or a marker of one was found";
    }
    variable BereqUrl {
        "bereq.url": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "The URL that the origin is asked for";
    }
    variable BereqXid {
        "bereq.xid": String, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The fetch's number in the log (VXID)";
    }
    variable Beresp {
        "beresp": Http, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "The whole response of the origin, as an argument for VMODs";
    }
    variable BerespAge {
        "beresp.age": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "How old the response was when it came: its Age header, or 0";
    }
    variable BerespBackend {
        "beresp.backend": Backend, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "The backend that the response came from, after all directors";
    }
    variable BerespBackendIp {
        "beresp.backend.ip": Ip, read at::BACKEND_RESPONSE, write 0, unset 0, syntax 40..=40,
            "The address that the response came from";
    }
    variable BerespBackendName {
        "beresp.backend.name": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "The name of the backend that the response came from";
    }
    variable BerespBody {
        "beresp.body": Body, read 0, write at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "The body of a response that is made in vcl_backend_error";
    }
    variable BerespDoEsi {
        "beresp.do_esi": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Whether the body is processed as ESI; not to be set once beresp.filters was";
    }
    variable BerespDoGunzip {
        "beresp.do_gunzip": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Whether the body is unpacked before it is stored; not to be set once beresp.filters was";
    }
    variable BerespDoGzip {
        "beresp.do_gzip": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Whether the body is packed before it is stored; not to be set once beresp.filters was";
    }
    variable BerespDoStream {
        "beresp.do_stream": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Whether clients get the body while it is still coming in; true unless it was set";
    }
    variable BerespFilters {
        "beresp.filters": String, read at::BACKEND_RESPONSE, write at::BACKEND_RESPONSE, unset 0, syntax 40..=41,
            "The filters that the body goes through before it is stored, separated by blanks; made of the do_… switches unless it was set";
    }
    variable BerespGrace {
        "beresp.grace": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "How long past its TTL the object may be served while a fresh one is fetched";
    }
    variable BerespHttp {
        "beresp.http.*": Header, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, syntax 40..=41,
            "A header of the response";
    }
    variable BerespKeep {
        "beresp.keep": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "How long past TTL and grace the object is kept, to ask the origin whether it has changed (If-None-Match, If-Modified-Since)";
    }
    variable BerespProto {
        "beresp.proto": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=40,
            "The protocol with its version, as stored";
        "beresp.proto": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 41..=41,
            "The protocol with its version, as stored";
    }
    variable BerespReason {
        "beresp.reason": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "The reason phrase of the status line";
    }
    variable BerespStatus {
        "beresp.status": Int, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "The status; 1000 and more are sent as the last three digits";
    }
    variable BerespStorage {
        "beresp.storage": Stevedore, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "The storage that the object goes to, as storage.NAME";
    }
    variable BerespStorageHint {
        "beresp.storage_hint": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=40,
            "The storage that the object goes to, by its name; one that does not exist changes nothing";
    }
    variable BerespTime {
        "beresp.time": Time, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "When the response's head had come";
    }
    variable BerespTransitBuffer {
        "beresp.transit_buffer": Bytes, read at::BACKEND_RESPONSE, write at::BACKEND_RESPONSE, unset 0, syntax 40..=41,
            "How far the fetch of an uncacheable response may run ahead of its client; 0 = as far as it likes (since 7.3)";
    }
    variable BerespTtl {
        "beresp.ttl": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "How long the object is fresh, from now on: from the response's headers, or the parameter default_ttl";
    }
    variable BerespUncacheable {
        "beresp.uncacheable": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Whether the response is not cached; once true it stays so, and a marker is kept for beresp.ttl";
    }
    variable BerespWas304 {
        "beresp.was_304": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "Whether the origin answered 304: the body is that of the stale object";
    }
    variable ObjAge {
        "obj.age": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "How old the object is, in seconds since the origin made it";
    }
    variable ObjCanEsi {
        "obj.can_esi": Bool, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Whether the object has been prepared for ESI";
    }
    variable ObjGrace {
        "obj.grace": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "How long past its TTL the object may be served";
    }
    variable ObjHits {
        "obj.hits": Int, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "How often the object was served from the cache; 0 in vcl_deliver means a miss";
    }
    variable ObjHttp {
        "obj.http.*": Header, read at::HIT, write 0, unset 0, syntax 40..=41,
            "A header of the object";
    }
    variable ObjKeep {
        "obj.keep": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "How long past TTL and grace the object is kept for conditional requests";
    }
    variable ObjProto {
        "obj.proto": String, read at::HIT, write 0, unset 0, syntax 40..=41,
            "The protocol with its version, as stored";
    }
    variable ObjReason {
        "obj.reason": String, read at::HIT, write 0, unset 0, syntax 40..=41,
            "The reason phrase, as stored";
    }
    variable ObjStatus {
        "obj.status": Int, read at::HIT, write 0, unset 0, syntax 40..=41,
            "The status, as stored";
    }
    variable ObjStorage {
        "obj.storage": Stevedore, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "The storage that the object lies in";
    }
    variable ObjTime {
        "obj.time": Time, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "When the object was made, in the origin's view: when it came, less the age that it had";
    }
    variable ObjTtl {
        "obj.ttl": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "How long the object is still fresh; negative once it is stale";
    }
    variable ObjUncacheable {
        "obj.uncacheable": Bool, read at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Whether this is a marker of hit-for-miss or hit-for-pass";
    }
    variable ObjStaleAge {
        "obj_stale.age": Duration, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: age (since 8.0)";
    }
    variable ObjStaleCanEsi {
        "obj_stale.can_esi": Bool, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: whether it can be ESI-processed (since 8.0)";
    }
    variable ObjStaleGrace {
        "obj_stale.grace": Duration, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: grace (since 8.0)";
    }
    variable ObjStaleHits {
        "obj_stale.hits": Int, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: how often it was delivered from the cache (since 8.0)";
    }
    variable ObjStaleHttp {
        "obj_stale.http.*": Header, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: headers (since 8.0)";
    }
    variable ObjStaleIsValid {
        "obj_stale.is_valid": Bool, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: whether it is still in the cache, neither purged nor banned (since 8.0)";
    }
    variable ObjStaleKeep {
        "obj_stale.keep": Duration, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: keep (since 8.0)";
    }
    variable ObjStaleProto {
        "obj_stale.proto": String, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: protocol version (since 8.0)";
    }
    variable ObjStaleReason {
        "obj_stale.reason": String, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: reason phrase (since 8.0)";
    }
    variable ObjStaleStatus {
        "obj_stale.status": Int, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: status (since 8.0)";
    }
    variable ObjStaleStorage {
        "obj_stale.storage": Stevedore, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: where it is stored (since 8.0)";
    }
    variable ObjStaleTime {
        "obj_stale.time": Time, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: when it was made, from the view of the server that made it (since 8.0)";
    }
    variable ObjStaleTtl {
        "obj_stale.ttl": Duration, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: seconds left to live, negative once it is stale (since 8.0)";
    }
    variable ObjStaleUncacheable {
        "obj_stale.uncacheable": Bool, read at::BACKEND_REFRESH, write 0, unset 0, syntax 40..=41,
            "The stale object that a 304 is about: whether it is a marker of what is not to be cached (since 8.0)";
    }
    variable Resp {
        "resp": Http, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 40..=41,
            "The whole response to the client, as an argument for VMODs";
    }
    variable RespBody {
        "resp.body": Body, read 0, write at::SYNTH, unset 0, syntax 40..=41,
            "The body of a response that is made in vcl_synth";
    }
    variable RespDoEsi {
        "resp.do_esi": Bool, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 41..=41,
            "Whether ESI is processed for this client; obj.can_esi unless it was set, and not to be set once resp.filters was";
    }
    variable RespFilters {
        "resp.filters": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "The filters that the body goes through on its way to the client, separated by blanks";
    }
    variable RespHttp {
        "resp.http.*": Header, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset at::DELIVER | at::SYNTH, syntax 40..=41,
            "A header of the response";
    }
    variable RespIsStreaming {
        "resp.is_streaming": Bool, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 40..=41,
            "Whether the object is still being fetched while it is sent";
    }
    variable RespProto {
        "resp.proto": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=40,
            "The protocol with its version";
        "resp.proto": String, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 41..=41,
            "The protocol with its version";
    }
    variable RespReason {
        "resp.reason": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "The reason phrase of the status line";
    }
    variable RespStatus {
        "resp.status": Int, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "The status; 1000 and more are sent as the last three digits";
    }
    variable RespTime {
        "resp.time": Time, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 40..=41,
            "When the response began to be made";
    }
    variable Now {
        "now": Time, read at::ALL, write 0, unset 0, syntax 40..=41,
            "The time; it stands still while a subroutine of the language runs";
    }
    variable SessIdleSendTimeout {
        "sess.idle_send_timeout": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "How long a single write to this client may take; the parameter's unless it was set";
    }
    variable SessSendTimeout {
        "sess.send_timeout": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "How long all of a response may take to be sent to this client; the parameter's unless it was set";
    }
    variable SessTimeoutIdle {
        "sess.timeout_idle": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "How long this client may be idle between requests; the parameter's unless it was set";
    }
    variable SessTimeoutLinger {
        "sess.timeout_linger": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "After how long without a request this client counts in MAIN.sess_herd; the parameter's unless it was set";
    }
    variable SessXid {
        "sess.xid": String, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "The session's number in the log (VXID)";
    }
    variable StorageFreeSpace {
        "storage.*.free_space": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How many bytes the storage has left";
    }
    variable StorageHappy {
        "storage.*.happy": Bool, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Whether the storage works";
    }
    variable StorageUsedSpace {
        "storage.*.used_space": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How many bytes of the storage are used";
    }
    variable ParamBackendIdleTimeout {
        "param.backend_idle_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long idle connections to origins are kept: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamBackendWaitLimit {
        "param.backend_wait_limit": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How many fetches may wait for a connection to a backend: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamBackendWaitTimeout {
        "param.backend_wait_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long a fetch may wait for a connection to a backend: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamBetweenBytesTimeout {
        "param.between_bytes_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Longest gap between bytes of an origin: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamConnectTimeout {
        "param.connect_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long connecting to an origin may take: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamDefaultGrace {
        "param.default_grace": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Grace of objects where nothing else says it: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamDefaultKeep {
        "param.default_keep": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Keep of objects where nothing else says it: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamDefaultTtl {
        "param.default_ttl": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Ttl of objects where nothing else says it: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamFirstByteTimeout {
        "param.first_byte_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long an origin may take to begin its answer: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamIdleSendTimeout {
        "param.idle_send_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long a write to a client may take: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamMaxEsiDepth {
        "param.max_esi_depth": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How deep ESI includes may nest: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamMaxRestarts {
        "param.max_restarts": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How often a request may restart: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamMaxRetries {
        "param.max_retries": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How often a fetch may be tried again: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamPipeTaskDeadline {
        "param.pipe_task_deadline": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long a pipe may last in all: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamPipeTimeout {
        "param.pipe_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long a pipe may be idle: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamSendTimeout {
        "param.send_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long sending an answer may take: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamShortlived {
        "param.shortlived": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "The lifetime below which objects go to Transient: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamTimeoutIdle {
        "param.timeout_idle": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long a client may be idle: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamTransitBuffer {
        "param.transit_buffer": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How far the fetch of an uncacheable response may run ahead of its client: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamUncacheableTtl {
        "param.uncacheable_ttl": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "How long the built-in VCL remembers that a response is not to be cached: the parameter of that name, as Varnish has it since 8.0";
    }
    of_old {
        /// Whether the response may be kept.
        Cacheable: Bool;
        /// For how long its backend counts as sick for what was asked.
        Saintmode: Duration;
        /// How long ago the object was last delivered.
        ObjLastuse: Duration;
        /// The digest the object is filed under, in hexadecimal.
        ObjHash: String;
    }
}

impl Var {
    /// Whether the host is told where a program sets it: what is set decides what becomes of a response, and somebody
    /// will ask why; or it decides what is told of the program's run.
    #[must_use]
    pub fn is_noted(self) -> bool {
        matches!(
            self,
            Var::BerespUncacheable
                | Var::BerespTtl
                | Var::Cacheable
                | Var::ReqHashAlwaysMiss
                | Var::ReqTrace
                | Var::BereqTrace
        )
    }
}
