//! What must be true whatever bytes come from outside: one function for each fuzz target (`fuzz/README.md`).
//!
//! A function takes arbitrary bytes, runs them through a part of the program, and panics where that breaks a promise; this
//! is what a fuzzer looks for. The tests of this crate run the corpus through the same functions, so a finding that is added
//! to the corpus becomes a regression test at once.
//!
//! *Invariant:* nothing that is shipped depends on this crate, and no other crate knows about it: it uses only their public
//! items. There is one module for each crate whose parsers it exercises.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod body;
pub mod cache;
pub mod cli_proto;
pub mod http1;
pub mod http2;
pub mod http3;
pub mod judgement;
pub mod load;
pub mod message;
pub mod preflight;
pub mod proxy_protocol;
pub mod semantics;
pub mod shm;
pub mod store;
pub mod tls;
pub mod tls_file;
pub mod tools;
pub mod vcl;
pub mod vtc;
