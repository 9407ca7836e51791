//! Properties that must hold for arbitrary input bytes: one function for each fuzz target
//! (`fuzz/README.md`).
//!
//! A function takes arbitrary bytes, runs them through a part of the program, and panics if a
//! property is violated; a fuzzer searches for such panics. The tests of this crate run the corpus
//! through the same functions, so a finding that is added to the corpus becomes a regression test
//! at once.
//!
//! *Invariant:* nothing that is shipped depends on this crate, nor does any other crate: it uses
//! only their public items. There is one module for each crate whose parsers it exercises.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod body;
pub mod cache;
pub mod cacheability;
pub mod cli_proto;
pub mod fleet;
pub mod http1;
pub mod http2;
pub mod http3;
pub mod load;
pub mod message;
pub mod order;
pub mod preflight;
pub mod proxy_protocol;
pub mod recording;
pub mod semantics;
pub mod shm;
pub mod store;
pub mod tls;
pub mod tls_file;
pub mod tools;
pub mod vcl;
pub mod vcl_cases;
pub mod vtc;
