//! Variables of VCL, one row each. The enum [`Var`] and the table [`VARIABLES`] are generated from
//! the rows.
//!
//! A row has the VCL name of the variable, its type, the methods in which it can be read, set and
//! unset ([`at`]; 0 = none), the versions of the language that have it (40 or 41; up to 41 means
//! "and later"), and a description. A variable whose access differs between 4.0 and 4.1 has two
//! rows. Its implementation is in the engine's `world`, in the file of its object.

use super::{Type, at};
use serde::{Deserialize, Serialize};

/// One variable, or one of two rows when its access differs between VCL 4.0 and 4.1.
#[derive(Clone, Copy, Debug)]
pub struct VariableRow {
    /// The variable.
    pub var: Var,
    /// Name in VCL; `.*` at the end represents any header, `storage.*.` for any storage.
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
    /// Description.
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
        /// A variable. The `*Http` members represent the header families (`req.http.*`).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Var {
            $($var,)*
            $($(#[$doc])* $old,)*
        }

        /// Number of variables.
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

        /// Variables that only the old dialects have, with their types. Their names are in
        /// [`super::legacy`].
        pub static LEGACY_VARIABLES: &[(Var, Type)] = &[$((Var::$old, Type::$old_kind),)*];
    };
}

variables! {
    variable ClientIdentity {
        "client.identity": String, read at::CLIENT | at::BACKEND, write at::CLIENT, unset 0, syntax 40..=41,
            "Identity by which the client director picks a backend; default client.ip";
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
            "The identity of -i, or else the host name";
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
            "The backend or director of a fetch for this request; reading a director shows the backend that it would choose";
    }
    variable ReqCanGzip {
        "req.can_gzip": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "True if the client's Accept-Encoding takes gzip";
    }
    variable ReqEsi {
        "req.esi": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=40,
            "True if ESI is processed in the response; true unless it was set";
    }
    variable ReqEsiLevel {
        "req.esi_level": Int, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Depth of this request in ESI includes; 0 is the page itself";
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
            "True if a fresh object is fetched whatever the cache has; it replaces the old one once it has come";
    }
    variable ReqHashIgnoreBusy {
        "req.hash_ignore_busy": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "True if the request does not wait for what another one is fetching; two caches that ask each other need it";
    }
    variable ReqHashIgnoreVary {
        "req.hash_ignore_vary": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "True if the first object under the key is taken, whatever its Vary says";
    }
    variable ReqHttp {
        "req.http.*": Header, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "A header of the request; a name with other characters is quoted: req.http.\"name\"";
    }
    variable ReqIsHitmiss {
        "req.is_hitmiss": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "True if the lookup found a marker of hit-for-miss";
    }
    variable ReqIsHitpass {
        "req.is_hitpass": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "True if the lookup found a marker of hit-for-pass";
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
            "Number of times the request was restarted";
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
            "True if VCL_trace records are written (since 7.4)";
    }
    variable ReqTransport {
        "req.transport": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Protocol of the client: HTTP/1, H2 …";
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
        "req.xid": Int, read at::CLIENT, write 0, unset 0, syntax 40..=41,
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
            "The backend or director of the fetch";
    }
    variable BereqBetweenBytesTimeout {
        "bereq.between_bytes_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "Time limit between two pieces of the response; the backend's or the parameter's unless it was set";
    }
    variable BereqBody {
        "bereq.body": Body, read 0, write 0, unset at::BACKEND_FETCH, syntax 40..=41,
            "The request's body; it can only be unset, which removes Content-Length as well";
    }
    variable BereqConnectTimeout {
        "bereq.connect_timeout": Duration, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset at::PIPE | at::BACKEND, syntax 40..=41,
            "Time limit of the connection to the origin; the backend's or the parameter's unless it was set";
    }
    variable BereqFilters {
        "bereq.filters": String, read at::BACKEND_FETCH, write at::BACKEND_FETCH, unset 0, syntax 40..=41,
            "Filters that the request body is pushed through on its way to the origin (since 7.7)";
    }
    variable BereqFirstByteTimeout {
        "bereq.first_byte_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "Time limit for the first byte of the response; the backend's or the parameter's unless it was set";
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
            "True if this fetch renews an object in the background, while its stale copy is served";
    }
    variable BereqIsHitmiss {
        "bereq.is_hitmiss": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "True if this fetch is due to a marker of hit-for-miss";
    }
    variable BereqIsHitpass {
        "bereq.is_hitpass": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "True if this fetch is due to a marker of hit-for-pass";
    }
    variable BereqLastByteTimeout {
        "bereq.last_byte_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "Time limit for the last byte of the response; 0: as the backend or the parameter says (Copal's own)";
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
            "Number of times this fetch was repeated by return (retry)";
    }
    variable BereqTaskDeadline {
        "bereq.task_deadline": Duration, read at::PIPE, write at::PIPE, unset at::PIPE, syntax 40..=41,
            "Time limit of a pipe (since 7.5)";
    }
    variable BereqTime {
        "bereq.time": Time, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "When the fetch began; the same after a retry";
    }
    variable BereqTrace {
        "bereq.trace": Bool, read at::BACKEND, write at::BACKEND, unset 0, syntax 40..=41,
            "True if VCL_trace records are written (since 7.4)";
    }
    variable BereqUncacheable {
        "bereq.uncacheable": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "True if the response will not be cached: a pass, or a marker of one was found";
    }
    variable BereqUrl {
        "bereq.url": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "The URL that the origin is asked for";
    }
    variable BereqXid {
        "bereq.xid": Int, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "The fetch's number in the log (VXID)";
    }
    variable Beresp {
        "beresp": Http, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "The whole response of the origin, as an argument for VMODs";
    }
    variable BerespAge {
        "beresp.age": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "Age of the response on arrival: its Age header, or 0";
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
            "True if the body is processed as ESI; not to be set once beresp.filters was";
    }
    variable BerespDoGunzip {
        "beresp.do_gunzip": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "True if the body is unpacked before it is stored; not to be set once beresp.filters was";
    }
    variable BerespDoGzip {
        "beresp.do_gzip": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "True if the body is packed before it is stored; not to be set once beresp.filters was";
    }
    variable BerespDoStream {
        "beresp.do_stream": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "True if clients get the body while it is still coming in; true unless it was set";
    }
    variable BerespFilters {
        "beresp.filters": String, read at::BACKEND_RESPONSE, write at::BACKEND_RESPONSE, unset 0, syntax 40..=41,
            "The filters applied to the body before it is stored, separated by blanks; made of the do_… switches unless it was set";
    }
    variable BerespGrace {
        "beresp.grace": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Time past its TTL during which the object may be served while a fresh one is fetched";
    }
    variable BerespHttp {
        "beresp.http.*": Header, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, syntax 40..=41,
            "A header of the response";
    }
    variable BerespKeep {
        "beresp.keep": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Time past TTL and grace for which the object is kept, to ask the origin whether it has changed (If-None-Match, If-Modified-Since)";
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
            "The storage of the object, as storage.NAME";
    }
    variable BerespStorageHint {
        "beresp.storage_hint": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=40,
            "The storage of the object, by its name; one that does not exist changes nothing";
    }
    variable BerespTime {
        "beresp.time": Time, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "When the response's head had come";
    }
    variable BerespTransitBuffer {
        "beresp.transit_buffer": Bytes, read at::BACKEND_RESPONSE, write at::BACKEND_RESPONSE, unset 0, syntax 40..=41,
            "Bytes that the fetch of an uncacheable response may run ahead of its client; 0 = no limit (since 7.3)";
    }
    variable BerespTtl {
        "beresp.ttl": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Remaining time of freshness: from the response's headers, or the parameter default_ttl";
    }
    variable BerespUncacheable {
        "beresp.uncacheable": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "True if the response is not cached; once true it stays so, and a marker is kept for beresp.ttl";
    }
    variable BerespWas304 {
        "beresp.was_304": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "True if the origin answered 304: the body is that of the stale object";
    }
    variable ObjAge {
        "obj.age": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Age of the object, in seconds since the origin made it";
    }
    variable ObjCanEsi {
        "obj.can_esi": Bool, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "True if the object has been prepared for ESI";
    }
    variable ObjGrace {
        "obj.grace": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Time past its TTL during which the object may be served";
    }
    variable ObjHits {
        "obj.hits": Int, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Number of times the object was served from the cache; 0 in vcl_deliver means a miss";
    }
    variable ObjHttp {
        "obj.http.*": Header, read at::HIT, write 0, unset 0, syntax 40..=41,
            "A header of the object";
    }
    variable ObjKeep {
        "obj.keep": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Time past TTL and grace for which the object is kept for conditional requests";
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
            "The storage of the object";
    }
    variable ObjTime {
        "obj.time": Time, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "When the object was made, in the origin's view: when it came, less the age that it had";
    }
    variable ObjTtl {
        "obj.ttl": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Remaining time of freshness; negative once the object is stale";
    }
    variable ObjUncacheable {
        "obj.uncacheable": Bool, read at::DELIVER, write 0, unset 0, syntax 40..=41,
            "True if this is a marker of hit-for-miss or hit-for-pass";
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
            "True if ESI is processed for this client; obj.can_esi unless it was set, and not to be set once resp.filters was";
    }
    variable RespFilters {
        "resp.filters": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "The filters applied to the body on its way to the client, separated by blanks";
    }
    variable RespHttp {
        "resp.http.*": Header, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset at::DELIVER | at::SYNTH, syntax 40..=41,
            "A header of the response";
    }
    variable RespIsStreaming {
        "resp.is_streaming": Bool, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 40..=41,
            "True if the object is still being fetched while it is sent";
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
            "The time; constant while a subroutine runs";
    }
    variable SessIdleSendTimeout {
        "sess.idle_send_timeout": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Time limit of a single write to this client; the parameter's unless it was set";
    }
    variable SessSendTimeout {
        "sess.send_timeout": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Time limit for sending a whole response to this client; the parameter's unless it was set";
    }
    variable SessTimeoutIdle {
        "sess.timeout_idle": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Time this client may be idle between requests; the parameter's unless it was set";
    }
    variable SessTimeoutLinger {
        "sess.timeout_linger": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "After how long without a request this client counts in MAIN.sess_herd; the parameter's unless it was set";
    }
    variable SessXid {
        "sess.xid": Int, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "The session's number in the log (VXID)";
    }
    variable StorageFreeSpace {
        "storage.*.free_space": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Free bytes of the storage";
    }
    variable StorageHappy {
        "storage.*.happy": Bool, read at::ALL, write 0, unset 0, syntax 40..=41,
            "True if the storage works";
    }
    variable StorageUsedSpace {
        "storage.*.used_space": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Used bytes of the storage";
    }
    variable ParamBackendIdleTimeout {
        "param.backend_idle_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Time for which idle connections to origins are kept: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamBackendWaitLimit {
        "param.backend_wait_limit": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Number of fetches that may wait for a connection to a backend: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamBackendWaitTimeout {
        "param.backend_wait_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Time a fetch may wait for a connection to a backend: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamBetweenBytesTimeout {
        "param.between_bytes_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Longest gap between bytes of an origin: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamConnectTimeout {
        "param.connect_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Time limit of connecting to an origin: the parameter of that name, as Varnish has it since 8.0";
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
            "Time limit for the first byte of a response: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamIdleSendTimeout {
        "param.idle_send_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Time limit of a write to a client: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamMaxEsiDepth {
        "param.max_esi_depth": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Maximum depth of ESI includes: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamMaxRestarts {
        "param.max_restarts": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Maximum number of restarts of a request: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamMaxRetries {
        "param.max_retries": Int, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Maximum number of retries of a fetch: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamPipeTaskDeadline {
        "param.pipe_task_deadline": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Time limit of a pipe: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamPipeTimeout {
        "param.pipe_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Idle time limit of a pipe: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamSendTimeout {
        "param.send_timeout": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Time limit for sending a response: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamShortlived {
        "param.shortlived": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "The lifetime below which objects go to Transient: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamTimeoutIdle {
        "param.timeout_idle": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Idle time limit of a client: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamTransitBuffer {
        "param.transit_buffer": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Bytes that the fetch of an uncacheable response may run ahead of its client: the parameter of that name, as Varnish has it since 8.0";
    }
    variable ParamUncacheableTtl {
        "param.uncacheable_ttl": Duration, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Lifetime of the built-in VCL's hit-for-miss markers: the parameter of that name, as Varnish has it since 8.0";
    }
    of_old {
        /// True if the response may be stored.
        Cacheable: Bool;
        /// Time for which its backend counts as sick for the request.
        Saintmode: Duration;
        /// Time since the last delivery of the object.
        ObjLastuse: Duration;
        /// The digest under which the object is stored, in hexadecimal.
        ObjHash: String;
    }
}

impl Var {
    /// True if the host is notified when a program sets the variable: its value determines the
    /// handling of a response and is explained to operators, or it controls what the program's run
    /// reports.
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
