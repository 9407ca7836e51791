//! What changes a body on its way: gzip, gunzip, the check of a gzipped body, and cutting out a range.
//!
//! Machines without I/O, made for pulling: a [`Chain`] is given some input and asked for one step, which does a bounded
//! amount of work and yields a bounded number of bytes; whoever pulls gets rid of those before the next step. Nothing here
//! grows with what goes in. *Invariant:* what a step makes lies in a [`staging::Staging`], whose size is fixed
//! ([`surface::limits::FILTER_STEP_BYTES_MAX`]); there is no way to have a filter put out more at once.
//!
//! Reading order: `chain`, `staging`, `gzip`, `range`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chain;
mod gzip;
mod range;
mod staging;

pub use chain::{Chain, Filter, Flow, Passed, Step, whole};
pub use gzip::{GzipError, GzipTotals};
pub use range::RangeCut;
