//! The compiled form of VCL and the machine that runs it.
//!
//! [`program`] is what the compiler produces and the manager sends to the worker: flat, typed, immutable. [`value`] is
//! the result of an expression, [`host`] is what a running program may touch. This crate knows nothing of sockets,
//! caches or requests: the engine implements [`host::Host`]. [`link`] verifies a program and prepares it, [`eval`] runs
//! it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod acl;
pub mod eval;
pub mod host;
pub mod line;
pub mod link;
pub mod program;
pub mod regex;
pub mod tls;
pub mod value;
