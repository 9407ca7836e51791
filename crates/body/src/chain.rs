//! A pull-based chain of filters: the code that sends or stores a body asks for one step at a time.
//!
//! ```text
//! input ─▶ stage 0 ─held─▶ stage 1 ─held─▶ … ─▶ last stage ─▶ bytes of the step
//! ```
//!
//! A step runs one stage once: the last one that has both work and room for its output. So the work
//! of a step is bounded, and so is the memory of a chain: it depends on the stages alone, not on
//! the body. The caller handles the bytes of a step (which may take long if the client is slow),
//! then asks for the next step. `range` and `testgunzip` yield a slice of their own input, so at
//! the end of a chain they copy nothing.
//!
//! *Invariant:* the output of a stage is held until the next stage has taken all of it; only then
//! does the stage run again.

use crate::esi::note::Note;
use crate::esi::sum::GzipSum;
use crate::filter::gunzip::TRUNCATED;
use crate::machine::{FilterError, GzipTotals, Machine};
use crate::staging::Staging;
use surface::limits::{FILTER_STEP_BYTES_MAX, FILTERS_MAX};

/// Counts of a filter's input and output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// Pieces of input.
    pub pieces_in: u64,
    /// Bytes of input.
    pub bytes_in: u64,
    /// Bytes of output.
    pub bytes_out: u64,
}

/// The caller's next action after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The input so far may yield more: call again, with the rest of the input.
    More,
    /// The input so far yields nothing more: call again with new input.
    Hungry,
    /// No more output will ever come.
    Ended,
}

/// The result of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step<'a> {
    /// Bytes of the input that were taken; pass the rest to the next step.
    pub taken: usize,
    /// The output: at most [`FILTER_STEP_BYTES_MAX`] bytes, unless it is a slice of the input.
    pub bytes: &'a [u8],
    /// The next action.
    pub flow: Flow,
}

impl<'a> Step<'a> {
    /// The step of an empty chain: the bytes pass unchanged.
    #[must_use]
    pub fn untouched(input: Option<&'a [u8]>) -> Step<'a> {
        let bytes = input.unwrap_or_default();
        let flow = if input.is_none() { Flow::Ended } else { Flow::Hungry };
        Step { taken: bytes.len(), bytes, flow }
    }
}

struct Stage {
    machine: Box<dyn Machine>,
    held: Staging,
    /// The last input was not taken completely: the next input belongs to the same piece.
    is_mid_piece: bool,
    is_pending: bool,
    has_ended: bool,
    passed: Passed,
}

/// Filters in the order in which bytes pass through them. Don't pull from an empty chain: see
/// [`Chain::is_empty`].
#[derive(Default)]
pub struct Chain {
    stages: Vec<Stage>,
}

/// Location of the output of a stage.
enum Made {
    /// In the staging of the stage that ran.
    Held,
    /// In the input of the stage, between these two offsets.
    Given(usize, usize),
}

impl Chain {
    /// Adds a filter at the end. Returns false, and changes nothing, if there are [`FILTERS_MAX`]
    /// already.
    #[must_use]
    pub fn push(&mut self, machine: Box<dyn Machine>) -> bool {
        if self.stages.len() == FILTERS_MAX {
            return false;
        }
        // The staging of a filter that passes parts must hold the largest step, not just the
        // output.
        let output_bytes = if machine.passes_parts() { None } else { machine.output_bytes() };
        self.stages.push(Stage {
            has_ended: machine.is_done(),
            held: Staging::for_output(output_bytes),
            machine,
            is_mid_piece: false,
            is_pending: false,
            passed: Passed::default(),
        });
        true
    }

    /// True if the chain has no filters, so that bytes pass unchanged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Number of filters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// True if one step may take milliseconds.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.stages.iter().any(|stage| stage.machine.is_slow())
    }

    /// True if there will be no more output, for any input.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stages.last().is_some_and(|stage| stage.has_ended)
    }

    /// Maximum memory of the chain, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let last = self.stages.len().saturating_sub(1);
        self.stages.iter().enumerate().map(|(index, stage)| stage.memory_bytes(index == last)).sum()
    }

    /// Memory that the chain holds now or certainly will, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let last = self.stages.len().saturating_sub(1);
        let of = |(index, stage): (usize, &Stage)| stage.machine.held_bytes() + stage.room_bytes(index == last);
        self.stages.iter().enumerate().map(of).sum()
    }

    /// Notes that memory is short, or no longer.
    pub fn spare_memory(&mut self, is_short: bool) {
        self.stages.iter_mut().for_each(|stage| stage.machine.spare_memory(is_short));
    }

    /// Bytes that were announced, such as those of a range, and have not passed yet.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.machine.missing_bytes()).sum()
    }

    /// Number of bytes of the following input that are not needed: [`Chain::skip`] leaves them out.
    #[must_use]
    pub fn unwanted_bytes(&self) -> u64 {
        let first = self.stages.first().filter(|first| !first.has_ended && !self.has_ended());
        first.map_or(0, |first| first.machine.unwanted_bytes())
    }

    /// Continues as if that many bytes had been received and dropped: at most
    /// [`Chain::unwanted_bytes`].
    pub fn skip(&mut self, bytes: u64) {
        if let Some(first) = self.stages.first_mut() {
            first.machine.skip(bytes.min(first.machine.unwanted_bytes()));
        }
    }

    /// The counts of a filter, and its totals if it compresses, decompresses or checks gzip.
    #[must_use]
    pub fn passed(&self, index: usize) -> (Passed, Option<GzipTotals>) {
        self.stages.get(index).map_or_else(Default::default, |stage| (stage.passed, stage.machine.totals()))
    }

    /// The next note of a filter about the body; call after each step until there are no more.
    #[must_use]
    pub fn note(&mut self) -> Option<Note> {
        self.stages.iter_mut().find_map(|stage| stage.machine.note())
    }

    /// The annex to be stored with the body, once the chain has ended. `None` if there is none, or
    /// if a later filter has changed the body that it describes.
    #[must_use]
    pub fn annex(&mut self) -> Option<Vec<u8>> {
        let mut is_changed = false;
        for stage in self.stages.iter_mut().rev() {
            let annex = stage.machine.annex();
            if annex.is_some() {
                return annex.filter(|_| !is_changed);
            }
            is_changed |= !stage.machine.passes_parts() || stage.passed.bytes_in != stage.passed.bytes_out;
        }
        None
    }

    /// Checksum and length of the plain bytes, if the last filter makes a part of a joined gzip
    /// stream; valid once the chain has ended.
    #[must_use]
    pub fn gzip_sum(&self) -> Option<GzipSum> {
        self.stages.last()?.machine.gzip_sum()
    }

    /// Does one step: takes some of the input (`None` = the input has ended) and returns the
    /// output.
    ///
    /// # Errors
    /// A filter refused its input. The chain can't be used after that.
    pub fn step<'a>(&'a mut self, input: Option<&'a [u8]>) -> Result<Step<'a>, FilterError> {
        let last = self.stages.len().saturating_sub(1);
        for index in (0..self.stages.len()).rev() {
            if self.stages[index].has_ended {
                // The stages before this one no longer matter.
                break;
            }
            if index < last && !self.stages[index].held.is_empty() {
                continue;
            }
            let (before, from) = self.stages.split_at_mut(index);
            let stage = &mut from[0];
            let Some(given) = given(before.last(), stage, input) else { continue };
            let (taken, made) = stage.run(given, index == last)?;
            let upstream_start = before.last_mut().map(|before| before.held.take(taken));
            let bytes = match (made, upstream_start) {
                _ if index < last => &[],
                (Made::Held, _) => self.stages[index].held.bytes(),
                (Made::Given(from, to), Some(start)) => self.stages[index - 1].held.part(start + from, start + to),
                (Made::Given(from, to), None) => &input.unwrap_or_default()[from..to],
            };
            let flow = if self.stages[last].has_ended { Flow::Ended } else { Flow::More };
            return Ok(Step { taken: if index == 0 { taken } else { 0 }, bytes, flow });
        }
        let flow = if self.has_ended() { Flow::Ended } else { Flow::Hungry };
        Ok(Step { taken: 0, bytes: &[], flow })
    }
}

impl Chain {
    /// True if a flush would output something that was consumed before.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.has_work() || self.flushable().is_some()
    }

    /// Does one step of a flush, which outputs everything that the filters hold back while the
    /// input pauses. Call it until [`Chain::holds_back`] is false. Flushes change only the length
    /// of an encoded body.
    ///
    /// # Errors
    /// A filter failed. The chain can't be used after that.
    pub fn flush(&mut self) -> Result<Step<'_>, FilterError> {
        if self.has_work() {
            return self.step(Some(&[]));
        }
        let Some(index) = self.flushable() else { return self.step(Some(&[])) };
        let is_last = index + 1 == self.stages.len();
        let stage = &mut self.stages[index];
        stage.held.clear();
        stage.machine.flush(&mut stage.held)?;
        stage.passed.bytes_out += stage.held.bytes().len() as u64;
        let bytes = if is_last { stage.held.bytes() } else { &[] };
        Ok(Step { taken: 0, bytes, flow: Flow::More })
    }

    /// True if a step without new input would do something.
    fn has_work(&self) -> bool {
        let last = self.stages.len().saturating_sub(1);
        for (index, stage) in self.stages.iter().enumerate().rev() {
            if stage.has_ended {
                break;
            }
            let before = index.checked_sub(1).map(|before| &self.stages[before]);
            if (index == last || stage.held.is_empty()) && given(before, stage, Some(&[])).is_some() {
                return true;
            }
        }
        false
    }

    /// The first filter that holds something back and whose output is still used.
    fn flushable(&self) -> Option<usize> {
        let from = self.stages.iter().rposition(|stage| stage.has_ended).map_or(0, |ended| ended + 1);
        (from..self.stages.len()).find(|index| self.stages[*index].machine.holds_back())
    }
}

/// Runs a complete body through one filter and appends the result to `out`; for tests of filters.
///
/// # Errors
/// The filter refused the body, or the result would be longer than `output_bytes_max`
/// ([`TRUNCATED`]); `out` has the output up to that point.
pub fn whole(
    machine: impl Machine + 'static,
    body: &[u8],
    output_bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let mut chain = Chain::default();
    let _ = chain.push(Box::new(machine));
    let (mut rest, mut room) = (body, output_bytes_max);
    while !chain.has_ended() {
        let step = chain.step((!rest.is_empty()).then_some(rest))?;
        room = room.checked_sub(step.bytes.len()).ok_or(TRUNCATED)?;
        out.extend_from_slice(step.bytes);
        rest = &rest[step.taken..];
    }
    Ok(())
}

/// The input of a stage: bytes, or `Some(None)` if its input has ended. `None` if it has no work.
fn given<'a>(before: Option<&'a Stage>, stage: &Stage, input: Option<&'a [u8]>) -> Option<Option<&'a [u8]>> {
    let (bytes, is_over) = match before {
        Some(before) => (before.held.bytes(), before.has_ended),
        None => (input.unwrap_or_default(), input.is_none()),
    };
    if !bytes.is_empty() || (stage.is_pending && !is_over) {
        return Some(Some(bytes));
    }
    is_over.then_some(None)
}

impl Stage {
    /// Maximum memory of the filter, including its output, in bytes.
    fn memory_bytes(&self, is_last: bool) -> usize {
        self.machine.state_bytes() + self.room_bytes(is_last)
    }

    /// Room for its output, in bytes.
    fn room_bytes(&self, is_last: bool) -> usize {
        if is_last && self.machine.passes_parts() { 0 } else { self.held.memory_bytes() }
    }

    /// Runs the filter once. Returns the number of input bytes taken, and the location of its
    /// output.
    fn run(&mut self, given: Option<&[u8]>, is_last: bool) -> Result<(usize, Made), FilterError> {
        let held = &mut self.held;
        held.clear();
        let all = given.map_or(0, <[u8]>::len);
        // A last filter that only passes parts needs no room for them, so it gets all of the input
        // at once.
        let at_once_max = if is_last && self.machine.passes_parts() { all } else { FILTER_STEP_BYTES_MAX };
        let progress = self.machine.step(given.map(|bytes| &bytes[..all.min(at_once_max)]), held)?;
        let (count, made) = match progress.passed {
            None => (held.bytes().len(), Made::Held),
            Some((from, to)) if is_last => (to - from, Made::Given(from, to)),
            Some((from, to)) => {
                // The input of a step is never longer than the room, so nothing is lost.
                held.copy_from(&given.unwrap_or_default()[from..to]);
                (to - from, Made::Held)
            }
        };
        let is_idle = progress.taken == 0 && count == 0 && !progress.has_ended;
        if is_idle && given.is_some() && (all > 0 || progress.is_pending) {
            // It would be called with the same input for ever.
            return Err(FilterError::new("A filter makes no progress"));
        }
        self.passed.pieces_in += u64::from(all > 0 && !self.is_mid_piece);
        self.passed.bytes_in += progress.taken as u64;
        self.passed.bytes_out += count as u64;
        self.is_mid_piece = progress.taken < all;
        self.is_pending = progress.is_pending;
        // A filter without output at the end of its input has ended too, even if it does not report
        // it.
        self.has_ended = progress.has_ended || (is_idle && given.is_none());
        Ok((progress.taken, made))
    }
}
