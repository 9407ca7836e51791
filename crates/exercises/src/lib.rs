//! What must hold of whatever bytes come from outside: one function for each fuzz target (`fuzz/README.md`).
//!
//! A function takes arbitrary bytes, puts them through a part of the program, and panics where that breaks a promise, which is
//! what a fuzzer looks for. The tests of this crate put the corpus through the same functions, so that a finding that was
//! added to the corpus is a regression test at once.
//!
//! *Invariant:* nothing that is shipped depends on this crate, and the other crates know nothing of it: it reaches them through
//! what they show to everybody. One module for each crate whose parsers it exercises.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod body;
pub mod cache;
pub mod cli_proto;
pub mod http1;
pub mod message;
pub mod proxy_protocol;
pub mod semantics;
pub mod shm;
pub mod store;
pub mod tools;
pub mod vcl;
pub mod vtc;
