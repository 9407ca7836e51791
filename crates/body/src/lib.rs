//! What changes a body on its way: gzip, gunzip, the check of a gzipped body, and cutting out a range.
//!
//! Machines without I/O, made for pulling: a [`Chain`] is given some input and asked for one step, which does a bounded
//! amount of work and yields a bounded number of bytes; whoever pulls gets rid of those before the next step. Nothing here
//! grows with what goes in, and nothing knows of tasks, logs or the cache. *Invariant:* what a step makes lies in a [`Staging`],
//! whose size is fixed ([`surface::limits::FILTER_STEP_BYTES_MAX`]); there is no way to have a filter put out more at once.
//!
//! Reading order: `chain`, `machine`, `staging`, then `filter`, where the table of filters is, and `filter/`, one a file.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chain;
pub mod filter;
mod machine;
mod staging;

pub use chain::{Chain, Flow, Passed, Step, whole};
pub use filter::gunzip::{Gunzip, JUNK_AFTER_END, TRUNCATED};
pub use filter::gzip::Gzip;
pub use filter::range::RangeCut;
pub use filter::testgunzip::TestGunzip;
pub use filter::{Coding, Effect, FILTERS, FilterRow, Head, Opened, Opening, Side};
pub use machine::{FilterError, GzipTotals, Machine, Progress};
pub use staging::Staging;
