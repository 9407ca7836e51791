//! The log tags: number, name and payload of every record kind of the shared-memory log.
//!
//! The numbers are part of the interface with the stock 7.1 tools and never change.
//! Source: observed VSL tag list of Varnish 7.1.1. Next file: `counter.rs`.

/// One row of the tag table.
pub struct TagRow {
    /// The tag.
    pub tag: Tag,
    /// The name that `varnishlog` prints and queries use.
    pub name: &'static str,
    /// The event that writes it, and the content of its payload.
    pub payload: &'static str,
    /// True when the default `vsl_mask` suppresses the tag.
    pub masked_by_default: bool,
    /// True when the payload is binary (no terminating NUL).
    pub binary: bool,
}

/// Declares the tags and their rows, numbered from 1. One line is one tag: its name in code, its
/// name in the log, whether the default `vsl_mask` suppresses it, the kind of its payload, and that
/// payload in words.
macro_rules! tags {
    ($($tag:ident $name:literal $mask:ident $content:ident $payload:literal;)*) => {
        /// A log tag. The discriminant is the number written into bits 31..24 of a record.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag {
            $(#[doc = $payload] $tag = Position::$tag as u8 + 1,)*
        }

        #[allow(clippy::upper_case_acronyms)]
        enum Position {
            $($tag,)*
        }

        /// Every tag in the order of its number; `TAGS[n - 1]` is number `n`.
        pub const TAGS: [TagRow; [$(Tag::$tag),*].len()] = [$(TagRow {
            tag: Tag::$tag,
            name: $name,
            payload: $payload,
            masked_by_default: tags!(@masked $mask),
            binary: tags!(@binary $content),
        },)*];
    };
    (@masked masked) => { true };
    (@masked shown) => { false };
    (@binary binary) => { true };
    (@binary text) => { false };
}

tags! {
    Debug "Debug" masked text "For developers: text that may contain anything";
    Error "Error" shown text "Something went wrong, in words";
    CLI "CLI" shown text "A command of the CLI (`Rd command`) and the answer to it (`Wr status length text`); they belong to no transaction";
    SessOpen "SessOpen" shown text "A client connected: its address and port, name of the -a, our address and port, time, number of the descriptor. Over a Unix-domain socket addresses are 0.0.0.0 and ports 0";
    SessClose "SessClose" shown text "A connection to a client ended: why, and its duration in seconds. REM_CLOSE is the client's own end, the other words are ours";
    BackendOpen "BackendOpen" shown text "A fetch got a connection: number of the descriptor, backend, its address and port, our address and port, `connect` (new) or `reuse`";
    BackendReuse "BackendReuse" shown text "Never written; BackendOpen says `reuse`";
    BackendClose "BackendClose" shown text "A fetch is done with its connection: number of the descriptor, backend, `recycle` (kept for others) or `close`, and perhaps why";
    HttpGarbage "HttpGarbage" shown text "The bytes of a head that could not be read; they may contain anything";
    Proxy "Proxy" shown text "A PROXY header was read: its version, client's address and port, server's address and port; `local` for each if it speaks of no client";
    ProxyGarbage "ProxyGarbage" shown text "A PROXY header could not be read, and why";
    Backend "Backend" shown text "Never written";
    Length "Length" shown text "Bytes of the fetched body";
    FetchError "FetchError" shown text "Why a fetch failed";
    ReqMethod "ReqMethod" shown text "The client's method";
    ReqURL "ReqURL" shown text "The client's URL, and once more when VCL changed it";
    ReqProtocol "ReqProtocol" shown text "The client's protocol with its version";
    ReqStatus "ReqStatus" shown text "Never written: the number is reserved";
    ReqReason "ReqReason" shown text "Never written: the number is reserved";
    ReqHeader "ReqHeader" shown text "A header of the request: `Name: value`; headers that VCL set follow those that came";
    ReqUnset "ReqUnset" shown text "A header of the request that was removed or is about to be replaced: `Name: value`";
    ReqLost "ReqLost" shown text "A header of the request for which there was no room";
    RespMethod "RespMethod" shown text "Never written: the number is reserved";
    RespURL "RespURL" shown text "Never written: the number is reserved";
    RespProtocol "RespProtocol" shown text "The protocol of the response to the client";
    RespStatus "RespStatus" shown text "The status of the response to the client; it is written again when VCL changes it";
    RespReason "RespReason" shown text "The reason phrase of the response to the client";
    RespHeader "RespHeader" shown text "A header of the response to the client: `Name: value`";
    RespUnset "RespUnset" shown text "A header of the response that was removed or is about to be replaced: `Name: value`";
    RespLost "RespLost" shown text "A header of the response for which there was no room";
    BereqMethod "BereqMethod" shown text "The method that the origin is asked with";
    BereqURL "BereqURL" shown text "The URL that the origin is asked for";
    BereqProtocol "BereqProtocol" shown text "The protocol that the origin is asked with";
    BereqStatus "BereqStatus" shown text "Never written: the number is reserved";
    BereqReason "BereqReason" shown text "Never written: the number is reserved";
    BereqHeader "BereqHeader" shown text "A header of the request to the origin: `Name: value`";
    BereqUnset "BereqUnset" shown text "A header of the request to the origin that was removed or is about to be replaced: `Name: value`";
    BereqLost "BereqLost" shown text "A header of the request to the origin for which there was no room";
    BerespMethod "BerespMethod" shown text "Never written: the number is reserved";
    BerespURL "BerespURL" shown text "Never written: the number is reserved";
    BerespProtocol "BerespProtocol" shown text "The protocol of the origin's response";
    BerespStatus "BerespStatus" shown text "The status of the origin's response";
    BerespReason "BerespReason" shown text "The reason phrase of the origin's response";
    BerespHeader "BerespHeader" shown text "A header of the origin's response: `Name: value`";
    BerespUnset "BerespUnset" shown text "A header of the origin's response that was removed or is about to be replaced: `Name: value`";
    BerespLost "BerespLost" shown text "A header of the origin's response for which there was no room";
    ObjMethod "ObjMethod" shown text "Never written: the number is reserved";
    ObjURL "ObjURL" shown text "Never written: the number is reserved";
    ObjProtocol "ObjProtocol" masked text "The protocol, as stored";
    ObjStatus "ObjStatus" masked text "The status, as stored";
    ObjReason "ObjReason" masked text "The reason phrase, as stored";
    ObjHeader "ObjHeader" masked text "A header, as stored: `Name: value`";
    ObjUnset "ObjUnset" shown text "A header of an object that was removed: `Name: value`";
    ObjLost "ObjLost" shown text "A header of an object for which there was no room";
    BogoHeader "BogoHeader" shown text "A header that breaks the rules: what is wrong, and its first 20 bytes";
    LostHeader "LostHeader" shown text "A header for which there was no room";
    TTL "TTL" shown text "Lifetime of a response. `RFC ttl grace keep now reference date expires max-age` (its headers say so), `VCL ttl grace keep reference` (VCL changed it) or `HFP …` (hit-for-pass), then `cacheable` or `uncacheable`. Durations in seconds, times in seconds since 1970";
    FetchBody "Fetch_Body" shown text "Framing of a response body: a number and its word (0 none, 1 error, 2 chunked, 3 length, 4 eof, 5 taken, 6 cached), and `stream` if clients get it while it comes, else `-`";
    VCLAcl "VCL_acl" shown text "An address was looked for in an ACL: `MATCH acl entry` or `NO_MATCH acl`; only for ACLs with `+log`";
    VCLCall "VCL_call" shown text "A method of VCL begins, such as RECV, or a subroutine that was called";
    VCLTrace "VCL_trace" masked text "A place in VCL was passed: VCL, number of the place, `source.line.position`";
    VCLReturn "VCL_return" shown text "The action that a method of VCL ended with";
    ReqStart "ReqStart" shown text "A request begins: the client's address and port, name of the -a";
    Hit "Hit" shown text "An object was found: its number (VXID), TTL left, grace and keep in seconds; if it is still being fetched, the bytes that are there, and its length if that is known";
    HitPass "HitPass" shown text "A marker of hit-for-pass was found: its number (VXID) and the seconds that it has left";
    ExpBan "ExpBan" shown text "An object was found to be banned: its number (VXID) and who found it";
    ExpKill "ExpKill" masked text "An object leaves the cache: `EXP_Expired x=vxid t=ttl` when its time is over, `LRU x=vxid` to make room, `LRU_Fail` when no room could be made, and other events of expiry";
    WorkThread "WorkThread" masked text "A thread of Varnish started or ended; Copal has event loops";
    ESIXmlerror "ESI_xmlerror" shown text "ESI in a page that is wrong (`ERR`) or looks wrong (`WARN`), with its place";
    Hash "Hash" masked text "A piece of the key under which the cache is searched";
    BackendHealth "Backend_health" shown text "A probe: backend, `Went` or `Still`, `healthy` or `sick`, eight flags (`4` IPv4, `6` IPv6, `U` Unix-domain socket, `x` send failed, `X` sent, `r` receive failed, `R` received, `H` healthy; `-` for what is not so), good ones of the last, threshold, window, response time and average in seconds, what it answered in quotes";
    VCLLog "VCL_Log" shown text "Argument of std.log()";
    VCLError "VCL_Error" shown text "Error of VCL";
    Gzip "Gzip" shown text "Packing or unpacking: `G` packed, `U` unpacked, `u` unpacked as a test; `F` in a fetch or `D` in a delivery; `E` for ESI or `-`; bytes in, bytes out, and where in bits the packed stream begins, its last block begins and it ends";
    Link "Link" shown text "Another transaction belongs to this one: `req` or `bereq`, its number (VXID), why (`rxreq`, `esi`, `fetch`, `pass`, `bgfetch` …)";
    Begin "Begin" shown text "A transaction begins: `sess`, `req` or `bereq`, the number (VXID) of the one that it belongs to, why";
    End "End" shown text "A transaction ends; the record is empty";
    VSL "VSL" shown text "Message of the reading tool about the log itself, such as `store overflow`";
    Storage "Storage" shown text "Where an object is stored: kind and name of the storage";
    Timestamp "Timestamp" shown text "A step is done: its name, the time, seconds since the transaction began, seconds since the step before; six decimals";
    ReqAcct "ReqAcct" shown text "Bytes of a request: received head, body and sum, sent head, body and sum";
    PipeAcct "PipeAcct" shown text "Bytes of a pipe: request head from the client, request head to the origin, from the client, to the client";
    BereqAcct "BereqAcct" shown text "Bytes of a fetch: sent head, body and sum, received head, body and sum";
    VfpAcct "VfpAcct" masked text "Account of a filter in a fetch: name, calls, bytes out";
    Witness "Witness" shown text "Why the request was a miss, a pass or an error, for `copal why`: `why word name=value …`. In Varnish a record for developers";
    BackendStart "BackendStart" shown text "Never written; BackendOpen has the same";
    H2RxHdr "H2RxHdr" masked binary "The head of a frame of HTTP/2 that came, nine bytes";
    H2RxBody "H2RxBody" masked binary "The payload of a frame of HTTP/2 that came";
    H2TxHdr "H2TxHdr" masked binary "The head of a frame of HTTP/2 that was sent, nine bytes";
    H2TxBody "H2TxBody" masked binary "The payload of a frame of HTTP/2 that was sent";
    HitMiss "HitMiss" shown text "A marker of hit-for-miss was found: its number (VXID) and the seconds that it has left";
    Filters "Filters" shown text "The filters of a body, in order";
    SessError "SessError" shown text "A connection could not be accepted: name of the -a, our address and port, number of the listening descriptor, number and words of the error";
    VCLUse "VCL_use" shown text "The VCL that serves the request, and the label that led to it: `name via label`";
    Notice "Notice" shown text "Something that an operator may want to know: `module: text`";
    VdpAcct "VdpAcct" masked text "Account of a filter in a delivery: name, calls, bytes out";
    TLS "TLS" shown text "A handshake with a client: version, cipher, name of the server, protocol agreed on, `full`, `resumed` or `early`, with `-` for what there is not; or `failed: ` and why";
    BackendSSL "BackendSSL" shown text "A handshake with an origin: version, cipher, name of the server, protocol agreed on, `full` or `resumed`, with `-` for what there is not; or `failed: ` and why";
}

/// The last tag of 7.1. Its tools print later tags under the name `(null)`.
pub const LAST_OF_VARNISH: Tag = Tag::VdpAcct;

/// The tags with a binary payload: the bit of their number.
const BINARY: u128 = {
    let (mut bits, mut index) = (0, 0);
    while index < TAGS.len() {
        if TAGS[index].binary {
            bits |= 1 << TAGS[index].tag as u32;
        }
        index += 1;
    }
    bits
};

impl Tag {
    /// The tag with this number; `None` for 0 and for unknown numbers.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Tag> {
        TAGS.get(usize::from(number).checked_sub(1)?).map(|row| row.tag)
    }

    /// The tag's row in [`TAGS`].
    #[must_use]
    pub fn row(self) -> &'static TagRow {
        &TAGS[self as usize - 1]
    }

    /// True when the payload is binary (no terminating NUL). Asked for every record.
    #[inline]
    #[must_use]
    pub fn is_binary(self) -> bool {
        BINARY >> self as u32 & 1 == 1
    }

    /// The name that tools print.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The tag with this name, ignoring case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Tag> {
        TAGS.iter().find(|row| row.name.eq_ignore_ascii_case(name)).map(|row| row.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_is_at_its_own_number() {
        for (index, row) in TAGS.iter().enumerate() {
            assert_eq!(row.tag as usize, index + 1, "{}", row.name);
            assert_eq!(Tag::from_number((index + 1) as u8), Some(row.tag));
        }
        assert_eq!(Tag::from_number(0), None);
        assert_eq!(Tag::from_number(TAGS.len() as u8 + 1), None);
    }
}
