//! The filters of VCL: one table, one file for each filter.
//!
//! A filter is opened for a body: it reads the head of the message, decides if it has any work,
//! changes the head accordingly, and returns a [`Machine`] and a description of the result
//! ([`Effect`]). Its only inputs are [`Opening`] and [`Head`]. To add a filter, add a file in
//! `filter/` with its machine and its `open`, and a row here.
//!
//! Compat: names, header changes and texts of Varnish 7.1.1. Reading order: `range`, `byteranges`,
//! `gzip`, `gunzip`, `testgunzip`, `brotli`, `unbrotli`, `zstd`, `unzstd`, `esi`, `rot13`.

pub(crate) mod brotli;
pub(crate) mod byteranges;
mod esi;
mod gathered;
pub(crate) mod gunzip;
pub(crate) mod gzip;
mod opening;
pub(crate) mod range;
mod rot13;
pub(crate) mod testgunzip;
pub(crate) mod unbrotli;
pub(crate) mod unpacking;
pub(crate) mod unzstd;
pub(crate) mod zstd;

pub use opening::{Coding, Effect, Head, Opened, Opening, Side, vary_on_encoding, weaken_etag};

/// A filter of VCL.
#[derive(Debug)]
pub struct FilterRow {
    /// Its name in VCL's lists of filters.
    pub name: &'static str,
    /// The sides on which it may be used.
    pub sides: &'static [Side],
    /// The VMOD that provides it: it is available only to VCL that imports the VMOD. `None`: to
    /// every VCL.
    pub vmod: Option<&'static str>,
    /// It needs so much memory that it is not set up for a client while requests use too much
    /// memory.
    pub is_heavy: bool,
    /// Sets it up for a body and changes the head accordingly; returns `None`, and changes nothing,
    /// if it has no work.
    pub open: fn(&mut Opening<'_>) -> Option<Opened>,
}

use Side::{Bereq, Beresp, Req, Resp};

/// All filters.
#[rustfmt::skip]
pub static FILTERS: &[FilterRow] = &[
    FilterRow { name: "range", sides: &[Resp], vmod: None, is_heavy: false, open: range::open },
    FilterRow { name: "gzip", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: gzip::open },
    FilterRow { name: "gunzip", sides: &[Req, Bereq, Beresp, Resp], vmod: None, is_heavy: true, open: gunzip::open },
    FilterRow { name: "testgunzip", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: testgunzip::open },
    FilterRow { name: "brotli", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: brotli::open },
    FilterRow { name: "unbrotli", sides: &[Req, Bereq, Beresp, Resp], vmod: None, is_heavy: true, open: unbrotli::open },
    // As the VMOD brotli calls them elsewhere.
    FilterRow { name: "br", sides: &[Req, Beresp], vmod: Some("brotli"), is_heavy: true, open: brotli::open },
    FilterRow {
        name: "unbr",
        sides: &[Req, Bereq, Beresp, Resp],
        vmod: Some("brotli"),
        is_heavy: true,
        open: unbrotli::open,
    },
    FilterRow { name: "zstd", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: zstd::open },
    FilterRow { name: "unzstd", sides: &[Req, Bereq, Beresp, Resp], vmod: None, is_heavy: true, open: unzstd::open },
    FilterRow { name: "esi", sides: &[Req, Beresp, Resp], vmod: None, is_heavy: false, open: esi::open },
    // Two of the VMOD debug. The second checks Varnish's own calls, and passes everything.
    FilterRow { name: "rot13", sides: &[Beresp, Resp], vmod: Some("debug"), is_heavy: false, open: rot13::open },
    FilterRow { name: "debug.pedantic", sides: &[Resp], vmod: Some("debug"), is_heavy: false, open: |_| None },
    FilterRow { name: "esi_gzip", sides: &[Req, Beresp], vmod: None, is_heavy: true, open: esi::open_gzip },
];

/// The filter of that name, if it may be used on that side.
#[must_use]
pub fn find(name: &[u8], side: Side) -> Option<&'static FilterRow> {
    FILTERS.iter().find(|row| row.name.as_bytes() == name && row.sides.contains(&side))
}

/// The names in a list of filters as VCL writes it.
pub fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty())
}

/// The filter of this list that cannot be opened for a partial response (206), and the reason;
/// `None` if all accept it.
#[must_use]
pub fn refusal_of_part(list: &[u8]) -> Option<(&'static str, &'static str)> {
    const PAGES: [&str; 2] = ["esi", "esi_gzip"];
    let page = |name: &[u8]| PAGES.into_iter().find(|page| page.as_bytes() == name);
    names(list).find_map(page).map(|name| (name, "Attempted ESI on partial (206) response"))
}
