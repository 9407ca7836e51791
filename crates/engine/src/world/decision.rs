//! Where VCL decided something that somebody may ask about.

use surface::vcl::Method;
use vcl_run::eval::{Machine, Place};
use vcl_run::link::LinkedProgram;

/// Where VCL set something that somebody may ask about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    method: Option<Method>,
    instruction: u32,
    /// The subroutines called to get there.
    subs: Vec<u32>,
}

impl Noted {
    /// Takes over a place; the room is used again.
    pub(crate) fn set(&mut self, method: Method, place: Place<'_>) {
        self.method = Some(method);
        self.instruction = place.instruction();
        self.subs.clear();
        self.subs.extend(place.subs());
    }
}

/// Where a method's decision stands in the VCL: `at=<source>:<line> in=<method>›<subroutine>…`.
pub(crate) struct Decision<'a> {
    source: &'a str,
    line: u32,
    subs: Vec<&'a str>,
}

impl<'a> Decision<'a> {
    /// The decision of the run that ended last. Without a place (the program is damaged, or VCL failed) it reads empty.
    pub(crate) fn of(machine: &Machine, program: &'a LinkedProgram) -> Decision<'a> {
        let place = machine.decision();
        Decision::at(program, machine.method(), place.instruction(), place.subs())
    }

    /// What was noted when it was set.
    pub(crate) fn noted(noted: &Noted, program: &'a LinkedProgram) -> Decision<'a> {
        Decision::at(program, noted.method, noted.instruction, noted.subs.iter().copied())
    }

    fn at(
        program: &'a LinkedProgram,
        method: Option<Method>,
        instruction: u32,
        called: impl Iterator<Item = u32>,
    ) -> Decision<'a> {
        let program = program.program();
        let (source, line) =
            program.place_of(instruction).map_or(("", 0), |(source, point)| (source.name.as_str(), point.line));
        let method = method.map(|method| method.row().name);
        let called = called.filter_map(|sub| program.subs.get(sub as usize)).map(|sub| sub.name.as_str());
        Decision { source, line, subs: method.into_iter().chain(called).collect() }
    }

    /// Whether a subroutine of that name had been called.
    pub(crate) fn is_under(&self, sub: &str) -> bool {
        self.subs.contains(&sub)
    }

    /// `<source>:<line>`; `None` without a place.
    pub(crate) fn place(&self) -> Option<String> {
        (!self.source.is_empty()).then(|| format!("{}:{}", self.source, self.line))
    }
}

impl std::fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.source.is_empty() {
            write!(f, "at={}:{} ", self.source, self.line)?;
        }
        write!(f, "in={}", self.subs.join(">"))
    }
}
