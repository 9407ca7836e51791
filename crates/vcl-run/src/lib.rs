//! The compiled form of VCL and the machine that runs it.
//!
//! [`program`] is what the compiler makes and the manager sends to the worker: flat, typed, immutable. [`value`] is what an
//! expression yields, [`host`] what a running program may touch. It knows nothing of sockets, caches or requests: the
//! engine implements [`host::Host`]. [`link`] verifies a program and makes it ready to run, [`eval`] runs it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod acl;
pub mod eval;
pub mod host;
pub mod line;
pub mod link;
pub mod program;
pub mod regex;
pub mod value;
