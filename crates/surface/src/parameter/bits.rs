//! The bits of the parameters that are sets: `debug`, `feature`, `experimental`, `vcc_feature`.
//!
//! A bit's value is `1 <<` its position in its table. A bit without meaning in this design is
//! accepted and marked, like such a parameter; the test
//! `every_bit_acts_in_the_listed_file_or_is_marked` (crate `copal`) connects each to the file
//! that reads it. Source: observed `param.show` of Varnish 7.1.1.

/// One bit.
#[derive(Debug)]
pub struct BitRow {
    /// Name, as typed after the sign.
    pub name: &'static str,
    /// Description in one line.
    pub text: &'static str,
    /// Accepted for compatibility; without effect in this design.
    pub is_accepted_only: bool,
}

/// A bit with an effect.
const fn acts(name: &'static str, text: &'static str) -> BitRow {
    BitRow { name, text, is_accepted_only: false }
}

/// A bit that is accepted without effect.
const fn idle(name: &'static str, text: &'static str) -> BitRow {
    BitRow { name, text, is_accepted_only: true }
}

/// The `debug` bits, bit 0 first.
pub static DEBUG_BITS: &[BitRow] = &[
    acts("req_state", "Log the steps of requests (Debug)"),
    idle("workspace", "Log workspaces: there are none"),
    acts("waitinglist", "Log who joins a waiting list (Debug)"),
    acts("syncvsl", "Flush the log after each record"),
    idle("hashedge", "Provoke races of the index: it has none"),
    acts("vclrel", "Let go of unused VCLs at once"),
    acts("lurker", "Log the ban lurker, longer ban.list"),
    acts("esi_chop", "Feed the ESI parser in small pieces"),
    acts("flush_head", "Send the head before the body"),
    acts("vtc_mode", "Run under a test script"),
    idle("witness", "Log the order of locks"),
    acts("vsm_keep", "Keep the segments over a restart"),
    acts("slow_acceptor", "Accept the first client after 2 s"),
    idle("h2_nocheck", "Skip some checks of HTTP/2"),
    idle("vmod_so_keep", "Keep copies of VMODs: none are made"),
    acts("processors", "Log the filters of responses (Debug)"),
    idle("protocol", "Log the frames of HTTP/2"),
    idle("vcl_keep", "Keep compiled VCL: it is never a file"),
    idle("lck", "Count contended locks: always counted"),
];

/// The `feature` bits, bit 0 first.
pub static FEATURE_BITS: &[BitRow] = &[
    acts("http2", "HTTP/2 for clients; new connections"),
    acts("short_panic", "Panic texts without a backtrace"),
    acts("no_coredump", "No core dumps; felt by the next worker"),
    idle("https_scheme", "Hosts of https URIs: always so"),
    acts("http_date_postel", "Read dates with a one-digit day"),
    acts("esi_ignore_https", "Include https:// as http://"),
    acts("esi_disable_xml_check", "ESI in what is not XML"),
    acts("esi_ignore_other_elements", "Pass over broken XML in ESI"),
    acts("esi_remove_bom", "Pass over an ESI body's BOM"),
    acts("esi_include_onerror", "Heed onerror of <esi:include>"),
    idle("wait_silo", "Wait for recovery: always so"),
    acts("validate_headers", "VCL may set well-formed headers only"),
    idle("busy_stats_rate", "Obey thread_stats_rate"),
    idle("vcl_req_reset", "End VCL of reset streams"),
];

/// The `experimental` bits, bit 0 first.
pub static EXPERIMENTAL_BITS: &[BitRow] = &[idle("drop_pools", "Thread pools may go: there are none")];

/// The bits of `vcc_feature`, bit 0 first. Each is also a parameter of its own.
pub static COMPILER_BITS: &[BitRow] = &[
    acts("err_unref", "Unused symbols of VCL are errors"),
    idle("allow_inline_c", "Inline C: there is no C compiler"),
    acts("unsafe_path", "Allow / in include/vmod paths"),
];

/// Values of the bits of the `debug` parameter.
#[allow(missing_docs)]
pub mod debug {
    pub const REQ_STATE: u64 = 1 << 0;
    pub const WORKSPACE: u64 = 1 << 1;
    pub const WAITINGLIST: u64 = 1 << 2;
    pub const SYNCVSL: u64 = 1 << 3;
    pub const HASHEDGE: u64 = 1 << 4;
    pub const VCLREL: u64 = 1 << 5;
    pub const LURKER: u64 = 1 << 6;
    pub const ESI_CHOP: u64 = 1 << 7;
    pub const FLUSH_HEAD: u64 = 1 << 8;
    pub const VTC_MODE: u64 = 1 << 9;
    pub const WITNESS: u64 = 1 << 10;
    pub const VSM_KEEP: u64 = 1 << 11;
    pub const SLOW_ACCEPTOR: u64 = 1 << 12;
    pub const H2_NOCHECK: u64 = 1 << 13;
    pub const VMOD_SO_KEEP: u64 = 1 << 14;
    pub const PROCESSORS: u64 = 1 << 15;
    pub const PROTOCOL: u64 = 1 << 16;
    pub const VCL_KEEP: u64 = 1 << 17;
    pub const LCK: u64 = 1 << 18;
}

/// Values of the bits of the `feature` parameter.
#[allow(missing_docs)]
pub mod feature {
    pub const HTTP2: u64 = 1 << 0;
    pub const SHORT_PANIC: u64 = 1 << 1;
    pub const NO_COREDUMP: u64 = 1 << 2;
    pub const HTTPS_SCHEME: u64 = 1 << 3;
    pub const HTTP_DATE_POSTEL: u64 = 1 << 4;
    pub const ESI_IGNORE_HTTPS: u64 = 1 << 5;
    pub const ESI_DISABLE_XML_CHECK: u64 = 1 << 6;
    pub const ESI_IGNORE_OTHER_ELEMENTS: u64 = 1 << 7;
    pub const ESI_REMOVE_BOM: u64 = 1 << 8;
    pub const ESI_INCLUDE_ONERROR: u64 = 1 << 9;
    pub const WAIT_SILO: u64 = 1 << 10;
    pub const VALIDATE_HEADERS: u64 = 1 << 11;
    pub const BUSY_STATS_RATE: u64 = 1 << 12;
    pub const VCL_REQ_RESET: u64 = 1 << 13;
}

/// Values of the bits of the `vcc_feature` parameter.
#[allow(missing_docs)]
pub mod compiler {
    pub const ERR_UNREF: u64 = 1 << 0;
    pub const ALLOW_INLINE_C: u64 = 1 << 1;
    pub const UNSAFE_PATH: u64 = 1 << 2;
}

/// Values of the bits of the `experimental` parameter.
#[allow(missing_docs)]
pub mod experimental {
    pub const DROP_POOLS: u64 = 1 << 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_where_its_value_says() {
        let place = |rows: &[BitRow], name: &str| 1u64 << rows.iter().position(|row| row.name == name).unwrap();
        assert_eq!(place(DEBUG_BITS, "req_state"), debug::REQ_STATE);
        assert_eq!(place(DEBUG_BITS, "vtc_mode"), debug::VTC_MODE);
        assert_eq!(place(DEBUG_BITS, "lck"), debug::LCK);
        assert_eq!(place(FEATURE_BITS, "http2"), feature::HTTP2);
        assert_eq!(place(FEATURE_BITS, "busy_stats_rate"), feature::BUSY_STATS_RATE);
        assert_eq!(place(EXPERIMENTAL_BITS, "drop_pools"), experimental::DROP_POOLS);
        assert_eq!(place(COMPILER_BITS, "allow_inline_c"), compiler::ALLOW_INLINE_C);
        assert_eq!(place(COMPILER_BITS, "unsafe_path"), compiler::UNSAFE_PATH);
    }
}
