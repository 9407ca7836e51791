//! The shared memory of a running server: its log, its counters, and the index of both.
//!
//! Written and read here, byte for byte as the stock tools expect it, so that those tools can
//! attach to us, and ours to a stock server. The log has two layouts: [`layout`].
//!
//! | module | content |
//! | --- | --- |
//! | [`vsm`] | the index (`_.index`) and the segments it names, writer side |
//! | [`log`] | the log ring (VSL): direct records, and batches collected per transaction |
//! | [`layout`] | the layouts of log records: of Varnish 7.1, and of 7.3 and later |
//! | [`counters`] | counters in process memory, before they are summed into a segment |
//! | [`histogram`] | histograms of event loops, and their segments |
//! | [`locks`] | locks that count their use |
//! | [`vsc`] | counter sections with their JSON documents, writer side |
//! | [`read`] | the readers of all that: index, ring, transactions, queries, counters |
//!
//! *Invariant:* nothing in shared memory is trusted: every offset and length is checked, and
//! nothing in [`read`] panics or loops for ever on hostile bytes. All raw memory accesses are in
//! [`region`] (and in the signal handler of [`read::cut_off`]).

#![warn(missing_docs)]

pub mod counters;
pub mod histogram;
pub mod layout;
pub mod locks;
pub mod log;
pub mod own_line;
pub mod place;
pub mod read;
pub mod region;
pub mod vsc;
pub mod vsm;

/// CPU time of the calling thread, which other load on the machine does not change.
#[cfg(test)]
fn thread_cpu_time() -> std::time::Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let of = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        std::time::Duration::from_micros(u64::try_from(micros).unwrap())
    };
    of(usage.user_time()) + of(usage.system_time())
}
