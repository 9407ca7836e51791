//! What a filter is once it runs: a machine that is given some of a body and puts out what comes of it, step by step.
//!
//! Most of it has a default. A machine that changes every byte in its place, in full:
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
//! Machines do no I/O and wait for nothing but input: one that has taken all in and puts nothing out lets the chain say
//! [`crate::Flow::Hungry`]. Next file: `staging.rs`.

use crate::staging::Staging;

/// A filter at work.
pub trait Machine {
    /// Takes some of the input in, or learns that there will be no more (`None`), and puts out what comes of it: into `out`,
    /// which is empty, as far as there is room, or as a part of the input ([`Progress::passed`]). Called again until it
    /// has said [`Progress::has_ended`], with what it has not taken first.
    ///
    /// # Errors
    /// The body is not what it was taken for, or ended too early. There is no further step then.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError>;

    /// Bytes of the output, when that is known before the first step: a short one needs less room.
    fn output_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes of memory that it takes at most, its output aside.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Whether all that it puts out are parts of its input. At the end of a chain they stay where they lie, and need no room; it
    /// is given all that there is then, and sees to it itself that the work of a step is bounded.
    fn passes_parts(&self) -> bool {
        false
    }

    /// Whether nothing will come out, whatever goes in: asked before the first step.
    fn is_done(&self) -> bool {
        false
    }

    /// Bytes that were promised and have not come out yet.
    fn missing_bytes(&self) -> u64 {
        0
    }

    /// What went through gzip, for one that packs, unpacks or checks it.
    fn totals(&self) -> Option<GzipTotals> {
        None
    }
}

/// What one step of a machine came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Bytes of the input that were taken in.
    pub taken: usize,
    /// More may come out without more going in.
    pub is_pending: bool,
    /// All is out that there will ever be: the input has ended, or the rest of it does not matter.
    pub has_ended: bool,
    /// Where the part of the input begins and ends that passes as it is; `None` when what comes out was put into the staging.
    pub passed: Option<(usize, usize)>,
}

/// Why a filter refused a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterError {
    text: &'static str,
    fetch_detail: Option<&'static str>,
    delivery_detail: Option<&'static str>,
}

impl FilterError {
    /// With the text that the log gives as the reason.
    #[must_use]
    pub const fn new(text: &'static str) -> FilterError {
        FilterError { text, fetch_detail: None, delivery_detail: None }
    }

    /// With a `Gzip` record that stands before the reason when the body comes from an origin.
    #[must_use]
    pub const fn with_fetch_detail(self, record: &'static str) -> FilterError {
        FilterError { fetch_detail: Some(record), ..self }
    }

    /// With a `Gzip` record that stands instead of the reason when the body goes to a client.
    #[must_use]
    pub const fn with_delivery_detail(self, record: &'static str) -> FilterError {
        FilterError { delivery_detail: Some(record), ..self }
    }

    /// The reason.
    #[must_use]
    pub fn text(self) -> &'static str {
        self.text
    }

    /// The payload of the `Gzip` record that comes before the reason on the origin's side; `None` when there is none.
    #[must_use]
    pub fn fetch_detail(self) -> Option<&'static str> {
        self.fetch_detail
    }

    /// The payload of the `Gzip` record that stands instead of the reason on the client's side; `None` when there is none.
    #[must_use]
    pub fn delivery_detail(self) -> Option<&'static str> {
        self.delivery_detail
    }
}

/// What went in and out, for the `Gzip` record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GzipTotals {
    /// What was done, as the record says it: `G` packed, `U` unpacked, `u` checked.
    pub work: char,
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
    /// Bit where the first deflate block starts; 0 when not known.
    pub start_bit: u64,
    /// Bit where the last deflate block starts; 0 when not known.
    pub last_bit: u64,
    /// Bit behind the last deflate block; 0 when not known.
    pub stop_bit: u64,
}

impl GzipTotals {
    /// Of a machine that does not know where deflate blocks lie.
    pub(crate) fn of_bytes(work: char, input_bytes: u64, output_bytes: u64) -> GzipTotals {
        GzipTotals { work, input_bytes, output_bytes, start_bit: 0, last_bit: 0, stop_bit: 0 }
    }
}
