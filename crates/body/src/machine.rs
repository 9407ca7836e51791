//! A running filter: a machine that is given parts of a body and outputs the result, step by step.
//!
//! Most methods have a default. A complete machine that changes every byte in place:
//!
//! ```
//! use body::{FilterError, Machine, Progress, Staging};
//!
//! struct Shout;
//!
//! impl Machine for Shout {
//!     fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
//!         let taken = out.copy_from(input.unwrap_or_default());
//!         out.bytes_mut().make_ascii_uppercase();
//!         Ok(Progress { taken, has_ended: input.is_none(), ..Progress::default() })
//!     }
//! }
//! ```
//!
//! Machines do no I/O and wait only for input: when one has taken all of its input and outputs
//! nothing, the chain returns [`crate::Flow::Hungry`]. Next file: `staging.rs`.

use crate::esi::note::Note;
use crate::esi::sum::GzipSum;
use crate::staging::Staging;

/// A running filter.
pub trait Machine {
    /// Takes some of the input (`None` = the input has ended) and outputs the result: into `out`,
    /// which is empty, as far as it fits, or as a part of the input ([`Progress::passed`]). It is
    /// called until it reports [`Progress::has_ended`]; input that it did not take comes first in
    /// the next call.
    ///
    /// # Errors
    /// The body is not of the expected kind, or ended too early. There are no further steps then.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError>;

    /// Outputs what it holds back of its input, as far as there is room in `out`, which is empty:
    /// the source pauses, and readers wait for the bytes received so far. Called between steps
    /// while [`Machine::holds_back`] is true. Output that does not fit comes first in the next
    /// call, so a call that leaves room has completed the flush.
    ///
    /// # Errors
    /// As [`Machine::step`].
    fn flush(&mut self, _out: &mut Staging) -> Result<(), FilterError> {
        Ok(())
    }

    /// True if it has consumed input that [`Machine::flush`] has not output yet.
    fn holds_back(&self) -> bool {
        false
    }

    /// Length of the output, if it is known before the first step: a short output needs less room.
    fn output_bytes(&self) -> Option<u64> {
        None
    }

    /// Maximum memory that it uses, apart from its output, in bytes.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Memory that it holds now or certainly will, apart from its output, in bytes. It may grow to
    /// [`Machine::state_bytes`].
    fn held_bytes(&self) -> usize {
        self.state_bytes()
    }

    /// Notes that memory is short, or no longer: memory that is not yet taken should be less, or
    /// the body is refused.
    fn spare_memory(&mut self, _is_short: bool) {}

    /// True if its output is always a part of its input. At the end of a chain such output is not
    /// copied and needs no room; the machine then gets all of the input at once and must bound the
    /// work of a step itself.
    fn passes_parts(&self) -> bool {
        false
    }

    /// True if there will be no output, for any input; called before the first step.
    fn is_done(&self) -> bool {
        false
    }

    /// Bytes that were announced and have not been output yet.
    fn missing_bytes(&self) -> u64 {
        0
    }

    /// Number of bytes of the following input that are not needed: a caller that can leave them out
    /// does so, and calls [`Machine::skip`]. 0 if that is not known.
    fn unwanted_bytes(&self) -> u64 {
        0
    }

    /// Notes that this many of the unneeded bytes have been left out.
    fn skip(&mut self, _bytes: u64) {}

    /// True if one step may take milliseconds, so that other tasks should run after each.
    fn is_slow(&self) -> bool {
        false
    }

    /// The totals of a machine that compresses, decompresses or checks gzip.
    fn totals(&self) -> Option<GzipTotals> {
        None
    }

    /// The next note about the body; call after each step until there are no more.
    fn note(&mut self) -> Option<Note> {
        None
    }

    /// The annex to be stored with the body, once its input has ended: the plan of a page
    /// ([`crate::esi::Plan`]).
    fn annex(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Checksum and length of the plain bytes, from a machine that makes a part of a joined gzip
    /// stream; valid once it has ended.
    fn gzip_sum(&self) -> Option<GzipSum> {
        None
    }
}

/// The result of one step of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Bytes of the input that were taken.
    pub taken: usize,
    /// There may be more output without more input.
    pub is_pending: bool,
    /// There will be no more output: the input has ended, or the rest of it does not matter.
    pub has_ended: bool,
    /// Start and end of the part of the input that passes unchanged; `None` if the output is in the
    /// staging.
    pub passed: Option<(usize, usize)>,
}

/// The reason why a filter refused a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterError {
    text: &'static str,
    fetch_detail: Option<&'static str>,
    delivery_detail: Option<&'static str>,
}

/// Memory for requests is short, and the body would take much.
pub(crate) const MEMORY_SHORT: FilterError =
    FilterError::new("Out of memory for requests (parameter requests_memory_max)");

impl FilterError {
    /// With the text that the log shows as the reason.
    #[must_use]
    pub const fn new(text: &'static str) -> FilterError {
        FilterError { text, fetch_detail: None, delivery_detail: None }
    }

    /// With a `Gzip` record that comes before the reason when the body comes from an origin.
    #[must_use]
    pub const fn with_fetch_detail(self, record: &'static str) -> FilterError {
        FilterError { fetch_detail: Some(record), ..self }
    }

    /// With a `Gzip` record that replaces the reason when the body is sent to a client.
    #[must_use]
    pub const fn with_delivery_detail(self, record: &'static str) -> FilterError {
        FilterError { delivery_detail: Some(record), ..self }
    }

    /// The reason.
    #[must_use]
    pub fn text(self) -> &'static str {
        self.text
    }

    /// The payload of the `Gzip` record that comes before the reason on the origin's side, if any.
    #[must_use]
    pub fn fetch_detail(self) -> Option<&'static str> {
        self.fetch_detail
    }

    /// The payload of the `Gzip` record that replaces the reason on the client's side, if any.
    #[must_use]
    pub fn delivery_detail(self) -> Option<&'static str> {
        self.delivery_detail
    }
}

/// Counts of input and output, for the `Gzip` record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GzipTotals {
    /// The operation, as in the record: `G` compressed, `U` decompressed, `u` checked.
    pub work: char,
    /// A page with ESI was compressed.
    pub is_esi: bool,
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
    /// Bit where the first deflate block starts; 0 when not known.
    pub start_bit: u64,
    /// Bit where the last deflate block starts; 0 when not known.
    pub last_bit: u64,
    /// Bit after the last deflate block; 0 when not known.
    pub stop_bit: u64,
}

impl GzipTotals {
    /// The totals of a machine that does not have the positions of deflate blocks.
    pub(crate) fn of_bytes(work: char, input_bytes: u64, output_bytes: u64) -> GzipTotals {
        GzipTotals { work, is_esi: false, input_bytes, output_bytes, start_bit: 0, last_bit: 0, stop_bit: 0 }
    }
}
