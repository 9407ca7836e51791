//! A chain of filters that is pulled: whoever sends or stores a body asks for one step after the other.
//!
//! ```text
//! input ─▶ stage 0 ─held─▶ stage 1 ─held─▶ … ─▶ last stage ─▶ bytes of the step
//! ```
//!
//! A step runs one stage once: the last one that has both something to do and somewhere to put it. So the work of a step is
//! bounded, and so is what a chain holds, by its stages alone and whatever goes in. The caller does with the bytes what it
//! must (which may take long: a slow client), then asks for the next step. A range, and the check of a gzipped body, yield a
//! part of what they were given where it lies: nothing is copied for them at the end of a chain.
//!
//! *Invariant:* bytes that a stage made are held until the next stage has taken them all; only then does it run again.

use crate::filter::gunzip::TRUNCATED;
use crate::machine::{FilterError, GzipTotals, Machine};
use crate::staging::Staging;
use surface::limits::{FILTER_STEP_BYTES_MAX, FILTERS_MAX};

/// What has passed a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// Pieces that went in.
    pub pieces_in: u64,
    /// Bytes that went in.
    pub bytes_in: u64,
    /// Bytes that came out.
    pub bytes_out: u64,
}

/// How a chain is to be pulled on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// More may come of what went in: ask again, with what is left of the input.
    More,
    /// Nothing more comes of what went in.
    Hungry,
    /// Nothing more will ever come out.
    Ended,
}

/// What one step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step<'a> {
    /// Bytes of the input that were taken in; the rest belongs to the next step.
    pub taken: usize,
    /// What came out: at most [`FILTER_STEP_BYTES_MAX`] bytes, unless they are a part of the input where it lies.
    pub bytes: &'a [u8],
    /// How to go on.
    pub flow: Flow,
}

impl<'a> Step<'a> {
    /// A step of no filter at all: bytes go on as they come.
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
    /// The last input was not taken whole: what comes next belongs to the same piece.
    is_mid_piece: bool,
    is_pending: bool,
    has_ended: bool,
    passed: Passed,
}

/// Filters in the order in which bytes pass them. Without any, nothing may be pulled from it: see [`Chain::is_empty`].
#[derive(Default)]
pub struct Chain {
    stages: Vec<Stage>,
}

/// Where the bytes of a step lie.
enum Made {
    /// In the staging of the stage that ran.
    Held,
    /// In what the stage was given: these.
    Given(usize, usize),
}

impl Chain {
    /// Adds a filter behind the others. False, and nothing happens, when there are [`FILTERS_MAX`] already.
    #[must_use]
    pub fn push(&mut self, machine: Box<dyn Machine>) -> bool {
        if self.stages.len() == FILTERS_MAX {
            return false;
        }
        // Where parts pass, what fits into a step must fit into the staging.
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

    /// Whether there is no filter: bytes pass by untouched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// How many filters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// Whether nothing more will come out, whatever goes in.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stages.last().is_some_and(|stage| stage.has_ended)
    }

    /// Bytes of memory that the chain takes at most.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let last = self.stages.len().saturating_sub(1);
        self.stages.iter().enumerate().map(|(index, stage)| stage.memory_bytes(index == last)).sum()
    }

    /// Bytes that were promised, as those of a range, and have not passed yet.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.machine.missing_bytes()).sum()
    }

    /// What has passed a filter, and its totals if it packs or unpacks.
    #[must_use]
    pub fn passed(&self, index: usize) -> (Passed, Option<GzipTotals>) {
        self.stages.get(index).map_or_else(Default::default, |stage| (stage.passed, stage.machine.totals()))
    }

    /// One step: takes some of the input in, or learns that there will be no more (`None`), and yields what comes out.
    ///
    /// # Errors
    /// A filter refused what it got. The chain is of no more use then.
    pub fn step<'a>(&'a mut self, input: Option<&'a [u8]>) -> Result<Step<'a>, FilterError> {
        let last = self.stages.len().saturating_sub(1);
        for index in (0..self.stages.len()).rev() {
            if self.stages[index].has_ended {
                // What comes before it does not matter any more.
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

/// A body that is held whole through one filter, for programs that test others; appended to `out`.
///
/// # Errors
/// The filter refused it, or it would become more than `output_bytes_max` ([`TRUNCATED`]); what came out before that is in
/// `out`.
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

/// What a stage is given to work on: bytes, or that there are no more. `None` when it has nothing to do.
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
    /// Bytes of memory that the filter takes at most, its output included.
    fn memory_bytes(&self, is_last: bool) -> usize {
        let needs_no_room = is_last && self.machine.passes_parts();
        self.machine.state_bytes() + if needs_no_room { 0 } else { self.held.memory_bytes() }
    }

    /// Runs the filter once. Gives how much it took in, and where lies what came of it.
    fn run(&mut self, given: Option<&[u8]>, is_last: bool) -> Result<(usize, Made), FilterError> {
        let held = &mut self.held;
        held.clear();
        let all = given.map_or(0, <[u8]>::len);
        // At the end of a chain what only passes may pass at once.
        let at_once_max = if is_last && self.machine.passes_parts() { all } else { FILTER_STEP_BYTES_MAX };
        let progress = self.machine.step(given.map(|bytes| &bytes[..all.min(at_once_max)]), held)?;
        let (count, made) = match progress.passed {
            None => (held.bytes().len(), Made::Held),
            Some((from, to)) if is_last => (to - from, Made::Given(from, to)),
            Some((from, to)) => {
                // As much as a step takes in fits, so nothing of it is lost.
                held.copy_from(&given.unwrap_or_default()[from..to]);
                (to - from, Made::Held)
            }
        };
        let is_idle = progress.taken == 0 && count == 0 && !progress.has_ended;
        if is_idle && given.is_some() && (all > 0 || progress.is_pending) {
            // It would be called with the same again, for ever.
            return Err(FilterError::new("A filter makes no progress"));
        }
        self.passed.pieces_in += u64::from(all > 0 && !self.is_mid_piece);
        self.passed.bytes_in += progress.taken as u64;
        self.passed.bytes_out += count as u64;
        self.is_mid_piece = progress.taken < all;
        self.is_pending = progress.is_pending;
        // One that makes nothing of the end is at its own, whether it says so or not.
        self.has_ended = progress.has_ended || (is_idle && given.is_none());
        Ok((progress.taken, made))
    }
}
