//! The shared memory of a running server: its log, its counters, and the index of both.
//!
//! Written and read here, byte for byte in the layout that the stock Varnish 7.1 tools expect, so that those tools can
//! attach to us, and ours to a stock server.
//!
//! | module | what |
//! | --- | --- |
//! | [`vsm`] | the index (`_.index`) and the segments it names, writer side |
//! | [`log`] | the log ring (VSL): direct records, and batches collected per transaction |
//! | [`counters`] | counters in process memory, before they are summed into a segment |
//! | [`locks`] | locks that count how often they are taken |
//! | [`vsc`] | counter sections with their JSON documents, writer side |
//! | [`read`] | the readers of all that: index, ring, transactions, queries, counters |
//!
//! *Invariant:* nothing in shared memory is trusted: every offset and length is checked, and nothing in [`read`] panics
//! or loops for ever on hostile bytes. All raw memory accesses are in [`region`] (and in the signal handler of
//! [`read::cut_off`]).

#![warn(missing_docs)]

pub mod counters;
pub mod locks;
pub mod log;
pub mod own_line;
pub mod place;
pub mod read;
pub mod region;
pub mod vsc;
pub mod vsm;
