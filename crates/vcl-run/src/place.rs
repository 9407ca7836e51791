//! Positions in the run of a program.

/// A position in the run of a program.
#[derive(Clone, Debug)]
pub struct Place {
    instruction: u32,
    subs: Vec<u32>,
}

impl Place {
    pub(crate) fn new(instruction: u32, subs: Vec<u32>) -> Place {
        Place { instruction, subs }
    }

    /// The instruction.
    #[must_use]
    pub fn instruction(&self) -> u32 {
        self.instruction
    }

    /// The subroutines that were called to get there, innermost last, without the method itself.
    pub fn subs(&self) -> impl Iterator<Item = u32> {
        self.subs.iter().copied()
    }
}
