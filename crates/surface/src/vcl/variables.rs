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
            "Key for the client director; defaults to client.ip text";
    }
    variable ClientIp {
        "client.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Client address (PROXY aware)";
    }
    variable ServerHostname {
        "server.hostname": String, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Gethostname";
    }
    variable ServerIdentity {
        "server.identity": String, read at::ALL, write 0, unset 0, syntax 40..=41,
            "-i argument or host name";
    }
    variable ServerIp {
        "server.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Address the client connected to (PROXY aware)";
    }
    variable RemoteIp {
        "remote.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Peer of the TCP connection; 0.0.0.0:0 for UDS";
    }
    variable LocalEndpoint {
        "local.endpoint": String, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "Address part of the -a argument";
    }
    variable LocalIp {
        "local.ip": Ip, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Our side of the TCP connection; 0.0.0.0:0 for UDS";
    }
    variable LocalSocket {
        "local.socket": String, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "Name of the -a socket";
    }
    variable Req {
        "req": Http, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Whole request, for VMOD arguments";
    }
    variable ReqBackendHint {
        "req.backend_hint": Backend, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Backend/director to use; reading resolves it if it can";
    }
    variable ReqCanGzip {
        "req.can_gzip": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Client accepts gzip/x-gzip";
    }
    variable ReqEsi {
        "req.esi": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=40,
            "ESI processing allowed; default true";
    }
    variable ReqEsiLevel {
        "req.esi_level": Int, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "ESI nesting level";
    }
    variable ReqFilters {
        "req.filters": String, read at::RECV, write at::RECV, unset 0, syntax 40..=41,
            "Filters that the request body is pulled through (since 7.7)";
    }
    variable ReqGrace {
        "req.grace": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Cap on object grace at lookup; unset = no cap";
    }
    variable ReqHash {
        "req.hash": Blob, read at::HIT | at::MISS | at::PASS | at::PURGE | at::DELIVER | at::SYNTH | at::PIPE, write 0, unset 0, syntax 40..=41,
            "Digest; see note";
    }
    variable ReqHashAlwaysMiss {
        "req.hash_always_miss": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Force miss";
    }
    variable ReqHashIgnoreBusy {
        "req.hash_ignore_busy": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Do not wait for busy objects";
    }
    variable ReqHashIgnoreVary {
        "req.hash_ignore_vary": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "First variant wins";
    }
    variable ReqHttp {
        "req.http.*": Header, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Headers; names may be quoted: req.http.\"name\"";
    }
    variable ReqIsHitmiss {
        "req.is_hitmiss": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Lookup gave hit-for-miss";
    }
    variable ReqIsHitpass {
        "req.is_hitpass": Bool, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Lookup gave hit-for-pass";
    }
    variable ReqMethod {
        "req.method": String, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Method";
    }
    variable ReqProto {
        "req.proto": String, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=40,
            "Protocol text";
        "req.proto": String, read at::CLIENT, write 0, unset 0, syntax 41..=41,
            "Protocol text";
    }
    variable ReqRestarts {
        "req.restarts": Int, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Restart count";
    }
    variable ReqSliceBytes {
        "req.slice_bytes": Bytes, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Size of the slices in which the resource is fetched and stored; 0 = not in slices";
    }
    variable ReqStorage {
        "req.storage": Stevedore, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Storage for cached request body";
    }
    variable ReqTime {
        "req.time": Time, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Time of full reception, constant over restarts";
    }
    variable ReqTrace {
        "req.trace": Bool, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "Whether VCL_trace records are written (since 7.4)";
    }
    variable ReqTransport {
        "req.transport": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Transport name (HTTP/1, H2 …)";
    }
    variable ReqTtl {
        "req.ttl": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Cap on object age for hits";
    }
    variable ReqUrl {
        "req.url": String, read at::CLIENT, write at::CLIENT, unset 0, syntax 40..=41,
            "URL";
    }
    variable ReqXid {
        "req.xid": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Vxid as text";
    }
    variable ReqTopHttp {
        "req_top.http.*": Header, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Headers of the outermost request";
    }
    variable ReqTopMethod {
        "req_top.method": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Method of the outermost request";
    }
    variable ReqTopProto {
        "req_top.proto": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Protocol of the outermost request";
    }
    variable ReqTopTime {
        "req_top.time": Time, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "Time of the outermost request";
    }
    variable ReqTopUrl {
        "req_top.url": String, read at::CLIENT, write 0, unset 0, syntax 40..=41,
            "URL of the outermost request";
    }
    variable Bereq {
        "bereq": Http, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Whole backend request";
    }
    variable BereqBackend {
        "bereq.backend": Backend, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "Backend/director to fetch from";
    }
    variable BereqBetweenBytesTimeout {
        "bereq.between_bytes_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "Fetch timeout";
    }
    variable BereqBody {
        "bereq.body": Body, read 0, write 0, unset at::BACKEND_FETCH, syntax 40..=41,
            "Request body; unset also drops Content-Length";
    }
    variable BereqConnectTimeout {
        "bereq.connect_timeout": Duration, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset at::PIPE | at::BACKEND, syntax 40..=41,
            "Fetch timeout";
    }
    variable BereqFilters {
        "bereq.filters": String, read at::BACKEND_FETCH, write at::BACKEND_FETCH, unset 0, syntax 40..=41,
            "Filters that the request body is pushed through on its way to the origin (since 7.7)";
    }
    variable BereqFirstByteTimeout {
        "bereq.first_byte_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "Fetch timeout";
    }
    variable BereqHash {
        "bereq.hash": Blob, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Copy of req.hash";
    }
    variable BereqHttp {
        "bereq.http.*": Header, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset at::PIPE | at::BACKEND, syntax 40..=41,
            "Headers";
    }
    variable BereqIsBgfetch {
        "bereq.is_bgfetch": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Background fetch";
    }
    variable BereqIsHitmiss {
        "bereq.is_hitmiss": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Caused by hit-for-miss";
    }
    variable BereqIsHitpass {
        "bereq.is_hitpass": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Caused by hit-for-pass";
    }
    variable BereqLastByteTimeout {
        "bereq.last_byte_timeout": Duration, read at::BACKEND, write at::BACKEND, unset at::BACKEND, syntax 40..=41,
            "How long the fetch may take to the last byte of its response; 0: as the backend or the parameter says (Copal's own)";
    }
    variable BereqMethod {
        "bereq.method": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "Method; GET for cache fetches";
    }
    variable BereqProto {
        "bereq.proto": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=40,
            "Protocol";
        "bereq.proto": String, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "Protocol";
    }
    variable BereqRetries {
        "bereq.retries": Int, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Retry count";
    }
    variable BereqTaskDeadline {
        "bereq.task_deadline": Duration, read at::PIPE, write at::PIPE, unset at::PIPE, syntax 40..=41,
            "How long a pipe may last in all (since 7.5)";
    }
    variable BereqTime {
        "bereq.time": Time, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Start of first backend request";
    }
    variable BereqTrace {
        "bereq.trace": Bool, read at::BACKEND, write at::BACKEND, unset 0, syntax 40..=41,
            "Whether VCL_trace records are written (since 7.4)";
    }
    variable BereqUncacheable {
        "bereq.uncacheable": Bool, read at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Pass or hit-for-pass";
    }
    variable BereqUrl {
        "bereq.url": String, read at::PIPE | at::BACKEND, write at::PIPE | at::BACKEND, unset 0, syntax 40..=41,
            "URL";
    }
    variable BereqXid {
        "bereq.xid": String, read at::PIPE | at::BACKEND, write 0, unset 0, syntax 40..=41,
            "Vxid as text";
    }
    variable Beresp {
        "beresp": Http, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "Whole backend response";
    }
    variable BerespAge {
        "beresp.age": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "From Age header or 0";
    }
    variable BerespBackend {
        "beresp.backend": Backend, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "Backend really used";
    }
    variable BerespBackendIp {
        "beresp.backend.ip": Ip, read at::BACKEND_RESPONSE, write 0, unset 0, syntax 40..=40,
            "Its address";
    }
    variable BerespBackendName {
        "beresp.backend.name": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "Its name";
    }
    variable BerespBody {
        "beresp.body": Body, read 0, write at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Synthetic body";
    }
    variable BerespDoEsi {
        "beresp.do_esi": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Parse ESI; error after filters set";
    }
    variable BerespDoGunzip {
        "beresp.do_gunzip": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Decompress; error after filters set";
    }
    variable BerespDoGzip {
        "beresp.do_gzip": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Compress; error after filters set";
    }
    variable BerespDoStream {
        "beresp.do_stream": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Stream while fetching; default true";
    }
    variable BerespFilters {
        "beresp.filters": String, read at::BACKEND_RESPONSE, write at::BACKEND_RESPONSE, unset 0, syntax 40..=41,
            "Fetch filter list";
    }
    variable BerespGrace {
        "beresp.grace": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Grace";
    }
    variable BerespHttp {
        "beresp.http.*": Header, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, syntax 40..=41,
            "Headers";
    }
    variable BerespKeep {
        "beresp.keep": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Keep";
    }
    variable BerespProto {
        "beresp.proto": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=40,
            "Protocol";
        "beresp.proto": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 41..=41,
            "Protocol";
    }
    variable BerespReason {
        "beresp.reason": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Reason";
    }
    variable BerespStatus {
        "beresp.status": Int, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Status";
    }
    variable BerespStorage {
        "beresp.storage": Stevedore, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Storage to use";
    }
    variable BerespStorageHint {
        "beresp.storage_hint": String, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=40,
            "Storage by name";
    }
    variable BerespTime {
        "beresp.time": Time, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "When headers were complete";
    }
    variable BerespTransitBuffer {
        "beresp.transit_buffer": Bytes, read at::BACKEND_RESPONSE, write at::BACKEND_RESPONSE, unset 0, syntax 40..=41,
            "How far the fetch of an uncacheable response may run ahead of its client; 0 = as far as it likes (since 7.3)";
    }
    variable BerespTtl {
        "beresp.ttl": Duration, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Ttl";
    }
    variable BerespUncacheable {
        "beresp.uncacheable": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, unset 0, syntax 40..=41,
            "Set-only latch";
    }
    variable BerespWas304 {
        "beresp.was_304": Bool, read at::BACKEND_REFRESH | at::BACKEND_RESPONSE | at::BACKEND_ERROR, write 0, unset 0, syntax 40..=41,
            "Response is a revalidated object";
    }
    variable ObjAge {
        "obj.age": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Object age";
    }
    variable ObjCanEsi {
        "obj.can_esi": Bool, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Object has ESI data";
    }
    variable ObjGrace {
        "obj.grace": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Grace";
    }
    variable ObjHits {
        "obj.hits": Int, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Hit count; 0 in deliver = miss";
    }
    variable ObjHttp {
        "obj.http.*": Header, read at::HIT, write 0, unset 0, syntax 40..=41,
            "Stored headers";
    }
    variable ObjKeep {
        "obj.keep": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Keep";
    }
    variable ObjProto {
        "obj.proto": String, read at::HIT, write 0, unset 0, syntax 40..=41,
            "Stored protocol";
    }
    variable ObjReason {
        "obj.reason": String, read at::HIT, write 0, unset 0, syntax 40..=41,
            "Stored reason";
    }
    variable ObjStatus {
        "obj.status": Int, read at::HIT, write 0, unset 0, syntax 40..=41,
            "Stored status";
    }
    variable ObjStorage {
        "obj.storage": Stevedore, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Storage holding it";
    }
    variable ObjTime {
        "obj.time": Time, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Origin time";
    }
    variable ObjTtl {
        "obj.ttl": Duration, read at::HIT | at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Remaining ttl";
    }
    variable ObjUncacheable {
        "obj.uncacheable": Bool, read at::DELIVER, write 0, unset 0, syntax 40..=41,
            "Pass/hfp/hfm object";
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
            "Whole response";
    }
    variable RespBody {
        "resp.body": Body, read 0, write at::SYNTH, unset 0, syntax 40..=41,
            "Synthetic body";
    }
    variable RespDoEsi {
        "resp.do_esi": Bool, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 41..=41,
            "Do ESI on delivery; default obj.can_esi; error after filters set";
    }
    variable RespFilters {
        "resp.filters": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "Delivery filter list";
    }
    variable RespHttp {
        "resp.http.*": Header, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset at::DELIVER | at::SYNTH, syntax 40..=41,
            "Headers";
    }
    variable RespIsStreaming {
        "resp.is_streaming": Bool, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 40..=41,
            "Object still being fetched";
    }
    variable RespProto {
        "resp.proto": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=40,
            "Protocol";
        "resp.proto": String, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 41..=41,
            "Protocol";
    }
    variable RespReason {
        "resp.reason": String, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "Reason";
    }
    variable RespStatus {
        "resp.status": Int, read at::DELIVER | at::SYNTH, write at::DELIVER | at::SYNTH, unset 0, syntax 40..=41,
            "Status";
    }
    variable RespTime {
        "resp.time": Time, read at::DELIVER | at::SYNTH, write 0, unset 0, syntax 40..=41,
            "When response preparation started";
    }
    variable Now {
        "now": Time, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Current time, constant within one sub";
    }
    variable SessIdleSendTimeout {
        "sess.idle_send_timeout": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Per-write timeout";
    }
    variable SessSendTimeout {
        "sess.send_timeout": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Total send timeout";
    }
    variable SessTimeoutIdle {
        "sess.timeout_idle": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Idle timeout";
    }
    variable SessTimeoutLinger {
        "sess.timeout_linger": Duration, read at::CLIENT, write at::CLIENT, unset at::CLIENT, syntax 40..=41,
            "Linger timeout";
    }
    variable SessXid {
        "sess.xid": String, read at::CLIENT | at::BACKEND, write 0, unset 0, syntax 41..=41,
            "Session vxid";
    }
    variable StorageFreeSpace {
        "storage.*.free_space": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Free bytes";
    }
    variable StorageHappy {
        "storage.*.happy": Bool, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Health";
    }
    variable StorageUsedSpace {
        "storage.*.used_space": Bytes, read at::ALL, write 0, unset 0, syntax 40..=41,
            "Used bytes";
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
