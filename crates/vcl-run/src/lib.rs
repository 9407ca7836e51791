//! The compiled form of VCL and the machine that runs it.
//!
//! [`program`] is the output of the compiler, which the manager sends to the worker: flat, typed,
//! immutable. [`value`] is the result of an expression, [`host`] is the interface to the
//! environment. This crate does not depend on sockets, caches or requests: the engine implements
//! [`host::Host`]. [`link`] verifies a program and prepares it, [`eval`] runs it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod acl;
pub mod eval;
pub mod failure;
pub mod host;
pub mod line;
pub mod link;
pub mod place;
pub mod program;
pub mod regex;
pub mod tls;
pub mod value;
