//! A compressor that gathers a short body and compresses it in one step.
//!
//! The tables of a compressor take megabytes, whatever the length of the body. Here they exist
//! during one step only, unless the body is long or the source pauses, so that a thousand short
//! bodies at once take a thousand times their length and not gigabytes. A long body goes through a
//! compressor of its own. It takes less if memory is short, or if a body known to be short pauses.
//!
//! *Invariant:* the bytes gathered come out before any later ones.

use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use surface::limits::GATHERED_BYTES_MAX;

/// A kind of compressor.
pub(super) struct Kind {
    /// Opens one of a level, for a body of a length, if that is known.
    pub open: fn(u64, Option<u64>) -> Box<dyn Machine>,
    /// Most memory of such a one, in bytes.
    pub state_bytes: fn(u64, Option<u64>) -> usize,
    /// The level that takes the least memory.
    pub frugal_level: u64,
}

/// The compressor.
pub(super) struct Gathered {
    kind: &'static Kind,
    level: u64,
    length: Option<u64>,
    is_memory_short: bool,
    state: State,
}

enum State {
    /// Bytes that were taken.
    Gathering(Vec<u8>),
    /// A compressor, and gathered bytes that it has not taken yet, from a position on.
    Streaming { machine: Box<dyn Machine>, gathered: Vec<u8>, at: usize },
    /// The whole compressed body, from a position on.
    Whole { packed: Vec<u8>, at: usize },
}

impl Gathered {
    /// A compressor for a body of that length, if it is known.
    pub fn new(kind: &'static Kind, level: u64, length: Option<u64>) -> Gathered {
        let is_long = length.is_some_and(|bytes| bytes > GATHERED_BYTES_MAX as u64);
        let state = if is_long {
            State::Streaming { machine: (kind.open)(level, length), gathered: Vec::new(), at: 0 }
        } else {
            State::Gathering(Vec::new())
        };
        Gathered { kind, level, length, is_memory_short: false, state }
    }

    /// Most bytes that are gathered.
    fn gathered_bytes_max(&self) -> usize {
        self.length.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX).min(GATHERED_BYTES_MAX)
    }

    /// Gives the gathered bytes to a compressor of their own.
    fn stream(&mut self) {
        let State::Gathering(gathered) = &mut self.state else { return };
        let gathered = std::mem::take(gathered);
        // A short body gains little from large tables.
        let is_short = self.length.is_some_and(|bytes| bytes <= GATHERED_BYTES_MAX as u64);
        let is_frugal = self.is_memory_short || is_short;
        let level = if is_frugal { self.kind.frugal_level.min(self.level) } else { self.level };
        self.state = State::Streaming { machine: (self.kind.open)(level, self.length), gathered, at: 0 };
    }

    /// Compresses all that was gathered.
    fn pack(&mut self) -> Result<(), FilterError> {
        let State::Gathering(gathered) = &mut self.state else { return Ok(()) };
        let body = std::mem::take(gathered);
        let mut machine = (self.kind.open)(self.level, Some(body.len() as u64));
        let (mut packed, mut at) = (Vec::new(), 0);
        let mut room = Staging::for_output(Some(body.len() as u64));
        loop {
            let progress = machine.step((at < body.len()).then_some(&body[at..]), &mut room)?;
            at += progress.taken;
            packed.extend_from_slice(room.bytes());
            room.clear();
            if progress.has_ended {
                break;
            }
        }
        packed.shrink_to_fit();
        self.state = State::Whole { packed, at: 0 };
        Ok(())
    }
}

impl Machine for Gathered {
    /// # Errors
    /// The compressor failed.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        match (&mut self.state, input) {
            (State::Gathering(held), Some(bytes)) if held.len() + bytes.len() <= GATHERED_BYTES_MAX => {
                held.extend_from_slice(bytes);
                return Ok(Progress { taken: bytes.len(), ..Progress::default() });
            }
            (State::Gathering(_), Some(_)) => self.stream(),
            (State::Gathering(_), None) => self.pack()?,
            (State::Streaming { .. } | State::Whole { .. }, _) => {}
        }
        match &mut self.state {
            State::Gathering(_) => Ok(Progress::default()),
            State::Streaming { machine, gathered, at } => {
                while *at < gathered.len() {
                    *at += machine.step(Some(&gathered[*at..]), out)?.taken;
                    if out.is_full() {
                        return Ok(Progress { is_pending: true, ..Progress::default() });
                    }
                }
                *gathered = Vec::new();
                *at = 0;
                machine.step(input, out)
            }
            State::Whole { packed, at } => {
                *at += out.copy_from(&packed[*at..]);
                let has_ended = *at == packed.len();
                Ok(Progress { taken: 0, is_pending: !has_ended, has_ended, passed: None })
            }
        }
    }

    fn flush(&mut self, out: &mut Staging) -> Result<(), FilterError> {
        self.stream();
        let State::Streaming { machine, gathered, at } = &mut self.state else { return Ok(()) };
        while *at < gathered.len() {
            *at += machine.step(Some(&gathered[*at..]), out)?.taken;
            if out.is_full() {
                return Ok(());
            }
        }
        machine.flush(out)
    }

    fn holds_back(&self) -> bool {
        match &self.state {
            State::Gathering(held) => !held.is_empty(),
            State::Streaming { machine, gathered, at } => *at < gathered.len() || machine.holds_back(),
            State::Whole { .. } => false,
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> usize {
        match &self.state {
            State::Gathering(_) => self.gathered_bytes_max() + (self.kind.state_bytes)(self.level, self.length),
            State::Streaming { machine, gathered, .. } => gathered.capacity() + machine.state_bytes(),
            State::Whole { packed, .. } => packed.capacity(),
        }
    }

    fn held_bytes(&self) -> usize {
        match &self.state {
            // The bytes that it may gather are counted from the start; its compressor exists for
            // one step.
            State::Gathering(_) => self.gathered_bytes_max(),
            State::Streaming { machine, gathered, .. } => gathered.capacity() + machine.held_bytes(),
            State::Whole { packed, .. } => packed.capacity(),
        }
    }

    fn spare_memory(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unbrotli;
    use crate::chain::{Chain, Flow, whole};
    use crate::filter::brotli::Brotli;

    static KIND: Kind = Kind {
        open: |level, length| Box::new(Brotli::new(level, length)),
        state_bytes: |level, length| Brotli::new(level, length).state_bytes(),
        frugal_level: 1,
    };

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| b"etaoin shrdlu"[(at * at + at / 7) % 13]).collect()
    }

    /// The body after compression in pieces, with a flush after the piece of this number, and
    /// decompression.
    fn round_trip(length: Option<u64>, body: &[u8], flush_after: Option<usize>) -> Vec<u8> {
        let mut chain = Chain::default();
        assert!(chain.push(Box::new(Gathered::new(&KIND, 5, length))));
        let mut packed = Vec::new();
        for (index, piece) in body.chunks(3000).enumerate() {
            let mut rest = piece;
            loop {
                let step = chain.step(Some(rest)).unwrap();
                packed.extend_from_slice(step.bytes);
                rest = &rest[step.taken..];
                if rest.is_empty() && matches!(step.flow, Flow::Hungry) {
                    break;
                }
            }
            while flush_after == Some(index) && chain.holds_back() {
                packed.extend_from_slice(chain.flush().unwrap().bytes);
            }
        }
        while !chain.has_ended() {
            packed.extend_from_slice(chain.step(None).unwrap().bytes);
        }
        let mut plain = Vec::new();
        whole(Unbrotli::default(), &packed, body.len() + 1, &mut plain).unwrap();
        plain
    }

    #[test]
    fn body_comes_out_whole_whatever_its_length_and_its_pauses() {
        for length in [0, 1, 2999, 30_000, GATHERED_BYTES_MAX, GATHERED_BYTES_MAX + 1, 300_000] {
            let body = text(length);
            for known in [None, Some(length as u64)] {
                for flush_after in [None, Some(0), Some(15)] {
                    assert!(round_trip(known, &body, flush_after) == body, "{length} {known:?} {flush_after:?}");
                }
            }
        }
    }

    #[test]
    fn flush_puts_out_all_that_was_gathered() {
        let mut machine = Gathered::new(&KIND, 5, None);
        let mut out = Staging::for_output(None);
        machine.step(Some(&text(1000)), &mut out).unwrap();
        assert!(machine.holds_back() && out.bytes().is_empty());
        machine.flush(&mut out).unwrap();
        assert!(!machine.holds_back() && !out.bytes().is_empty());
    }

    #[test]
    fn thousand_short_bodies_take_little_more_than_their_length() {
        for length in [None, Some(2000)] {
            let mut machines: Vec<Gathered> = (0..1000).map(|_| Gathered::new(&KIND, 6, length)).collect();
            let mut out = Staging::for_output(None);
            for machine in &mut machines {
                machine.step(Some(&text(2000)), &mut out).unwrap();
            }
            let held: usize = machines.iter().map(Machine::held_bytes).sum();
            assert!(held <= 1000 * GATHERED_BYTES_MAX, "{held}");
            for machine in &mut machines {
                machine.step(None, &mut out).unwrap();
                out.clear();
            }
            let held: usize = machines.iter().map(Machine::held_bytes).sum();
            assert!(held <= 1000 * 2000, "{held}");
        }
    }

    #[test]
    fn long_body_is_charged_for_a_compressor_and_takes_a_small_one_while_memory_is_short() {
        let held_of = |is_short| {
            let mut machine = Gathered::new(&KIND, 6, None);
            machine.spare_memory(is_short);
            let mut out = Staging::for_output(None);
            for _ in 0..2 {
                machine.step(Some(&text(40_000)), &mut out).unwrap();
                out.clear();
            }
            machine.held_bytes()
        };
        assert!(held_of(false) > 4 << 20, "{}", held_of(false));
        assert!(held_of(true) < 512 << 10, "{}", held_of(true));
    }
}
