//! What changes a body on its way: gzip, gunzip, the check of a gzipped body, and cutting out a range.
//!
//! Machines without I/O: bytes are pushed in, what comes out is appended to a caller's buffer. Nothing blocks; who pushes
//! much at once decides where that runs.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod exercise;
mod gzip;
mod range;

pub use gzip::{Gunzip, Gzip, GzipError, GzipTotals, TestGunzip};
pub use range::RangeCut;
