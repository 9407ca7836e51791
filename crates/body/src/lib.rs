//! Filters that change a body while it is stored or sent: gzip, brotli and Zstandard in both
//! directions, the check of a gzipped body, ranges, and pages that include fragments (ESI).
//!
//! Machines without I/O, driven by pulling: the caller gives a [`Chain`] some input and asks for
//! one step, which does a bounded amount of work and returns a bounded number of bytes; the caller
//! uses those before it asks for the next step. Memory use does not depend on the input (except for
//! the plan of a page with ESI, which has a limit), and nothing here depends on tasks, logs or the
//! cache. *Invariant:* the output of a step is in a [`Staging`], whose size is fixed
//! ([`surface::limits::FILTER_STEP_BYTES_MAX`]), so no filter can output more at once.
//!
//! Reading order: `chain`, `machine`, `staging`, then `filter`, which has the table of filters, and
//! `filter/`, with a file for each; `esi` for pages and for joining gzip streams.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chain;
pub mod esi;
pub mod filter;
mod machine;
mod staging;

pub use chain::{Chain, Flow, Passed, Step, whole};
pub use filter::brotli::Brotli;
pub use filter::byteranges::ByteRanges;
pub use filter::gunzip::{Gunzip, JUNK_AFTER_END, TRUNCATED};
pub use filter::gzip::Gzip;
pub use filter::range::RangeCut;
pub use filter::testgunzip::TestGunzip;
pub use filter::unbrotli::Unbrotli;
pub use filter::unzstd::Unzstd;
pub use filter::zstd::Zstd;
pub use filter::{Coding, Effect, FILTERS, FilterRow, Head, Opened, Opening, Side};
pub use machine::{FilterError, GzipTotals, Machine, Progress};
pub use staging::Staging;
