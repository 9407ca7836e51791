//! The places of VCL's decisions, for the log's reasons.

use surface::vcl::Method;
use vcl_run::eval::{Machine, Place};
use vcl_run::link::LinkedProgram;

/// A place where VCL set a value that a reason may refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    method: Option<Method>,
    instruction: u32,
    /// The subroutines called on the path to that place.
    subs: Vec<u32>,
}

impl Noted {
    /// Stores a place, reusing the memory.
    pub(crate) fn set(&mut self, method: Method, place: &Place) {
        self.method = Some(method);
        self.instruction = place.instruction();
        self.subs.clear();
        self.subs.extend(place.subs());
    }
}

/// The place of a method's decision in the VCL: `at=<source>:<line> in=<method>›<subroutine>…`.
pub(crate) struct Decision<'a> {
    source: &'a str,
    line: u32,
    subs: Vec<&'a str>,
}

impl<'a> Decision<'a> {
    /// The decision of the last run. Without a place (the program is damaged, or VCL failed) it
    /// formats as empty text.
    pub(crate) fn of(machine: &Machine, program: &'a LinkedProgram) -> Decision<'a> {
        let place = machine.decision(program);
        Decision::at(program, machine.method(), place.instruction(), place.subs())
    }

    /// The place that was recorded when a value was set.
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

    /// True if a subroutine of that name was on the call stack.
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
            for text in ["at=", self.source, ":", itoa::Buffer::new().format(self.line), " "] {
                f.write_str(text)?;
            }
        }
        f.write_str("in=")?;
        self.subs.iter().enumerate().try_for_each(|(at, sub)| {
            f.write_str(if at > 0 { ">" } else { "" })?;
            f.write_str(sub)
        })
    }
}
