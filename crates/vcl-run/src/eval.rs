//! The evaluator: runs one method of a linked program against a [`Host`].
//!
//! The program counter, the value stack and the call stack are explicit, so that a run can stop
//! while a VMOD waits and continue later on the same machine. A machine belongs to one task and is
//! reused for each method; once its stacks have grown, running allocates nothing, and strings go
//! into the [`Scratch`]. It writes VCL_call, VCL_return, VCL_acl and VCL_Error records through
//! [`Host::log`]. Invariant: no input causes a panic; conditions that linking should have excluded
//! end in a failure. Next file: `eval/instruction.rs`.

mod calculate;
mod instruction;
mod stop;
mod text;

use crate::failure::Failure;
use crate::host::Host;
use crate::link::LinkedProgram;
use crate::link::step::{Condition, Step};
use crate::link::steps::Steps;
pub use crate::place::Place;
use crate::program::Comparison;
use crate::value::{Scratch, Text, Value};
pub use stop::ActionArguments;
use stop::{Stop, damaged, fail, out_of_memory};
use surface::tag::Tag;
use surface::vcl::{Action, Method, Var};

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The method ended with an action (never [`Action::Fail`]); VCL_return is logged.
    Return(Action, ActionArguments),
    /// A VMOD waits; the task calls [`Machine::resume`] when the host has the result.
    Wait,
    /// The method failed: by `return(fail)`, in the evaluator or in a VMOD. VCL_Error (if there is
    /// a text) and `VCL_return fail` are logged.
    Failed(Failure),
}

/// The state of one running method.
#[derive(Debug, Default)]
pub struct Machine {
    stack: Vec<Value>,
    calls: Vec<Frame>,
    counter: u32,
    method: Option<Method>,
    is_traced: bool,
    /// True if one step is run for each instruction, as a trace requires.
    is_plain: bool,
    /// Buffer for the results of substitutions before they go into the scratch.
    room: Vec<u8>,
}

/// A called subroutine that has not returned yet.
#[derive(Debug)]
struct Frame {
    /// The subroutine called.
    sub: u32,
    /// The position at which its caller continues.
    back: u32,
    /// Time of the call, in seconds since 1970, if the caller needs its duration.
    since: Option<f64>,
}

impl Machine {
    /// An idle machine.
    #[must_use]
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Clears the state of the last method. Memory beyond `kept_bytes` is freed.
    pub fn clear(&mut self, kept_bytes: usize) {
        let Machine { stack, calls, counter, method, is_traced, is_plain, room } = self;
        stack.clear();
        stack.shrink_to(kept_bytes / size_of::<Value>());
        calls.clear();
        (*counter, *method, *is_traced, *is_plain) = (0, None, false, false);
        room.clear();
        room.shrink_to(kept_bytes);
    }

    /// Bytes allocated, used or not.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.stack.capacity() * size_of::<Value>() + self.calls.capacity() * size_of::<Frame>() + self.room.capacity()
    }

    /// Runs a method from its start.
    pub fn run<H: Host + ?Sized>(
        &mut self,
        program: &LinkedProgram,
        method: Method,
        host: &mut H,
        scratch: &mut Scratch,
    ) -> Outcome {
        self.stack.clear();
        self.calls.clear();
        self.method = Some(method);
        self.is_traced = host.is_traced();
        self.is_plain = self.is_traced;
        scratch.set_constants(program.constants());
        host.log_call(method);
        match program.steps(self.is_plain).entry(method as u32) {
            Some(entry) => {
                self.counter = entry;
                self.go(program, host, scratch)
            }
            None => self.finish(damaged(), host),
        }
    }

    /// The action of a method that does nothing but return it, as if it had been run without a
    /// trace; logging is left to the caller. `None` if there is more to do. `is_usual` is
    /// [`Host::is_usual`], called only where it matters.
    #[inline]
    pub fn run_at_once(
        &mut self,
        program: &LinkedProgram,
        method: Method,
        is_usual: impl FnOnce() -> bool,
    ) -> Option<Action> {
        let ending = program.ending(method)?;
        if ending.is_for_usual && !is_usual() {
            return None;
        }
        self.stack.clear();
        self.calls.clear();
        (self.method, self.is_traced, self.is_plain) = (Some(method), false, false);
        self.counter = ending.step + 1;
        Some(ending.action)
    }

    /// Continues after [`Outcome::Wait`].
    pub fn resume<H: Host + ?Sized>(
        &mut self,
        program: &LinkedProgram,
        host: &mut H,
        scratch: &mut Scratch,
    ) -> Outcome {
        scratch.set_constants(program.constants());
        match host.resume(scratch) {
            Ok(value) => {
                self.stack.push(value);
                self.go(program, host, scratch)
            }
            Err(failure) => self.finish(Stop::Fail(failure), host),
        }
    }

    /// The method that ran last.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// The position at which the last run, which was of this program, ended.
    #[must_use]
    pub fn decision(&self, program: &LinkedProgram) -> Place {
        self.place(program.steps(self.is_plain))
    }

    /// The position of the step that was taken last.
    fn place(&self, steps: &Steps) -> Place {
        let mut subs = Vec::new();
        self.trail(steps, |sub, _, _| subs.push(sub));
        Place::new(steps.instruction(self.counter.saturating_sub(1)), subs)
    }

    /// The active calls, including inlined ones: for each the subroutine, the instruction with
    /// which its caller continues, and the time.
    fn trail(&self, steps: &Steps, mut each: impl FnMut(u32, u32, Option<f64>)) {
        for frame in &self.calls {
            let at = frame.back.saturating_sub(1);
            steps.inlined(at, |sub, back| each(sub, back, None));
            each(frame.sub, steps.instruction(at) + 1, frame.since);
        }
        steps.inlined(self.counter.saturating_sub(1), |sub, back| each(sub, back, None));
    }

    /// Continues with one step for each instruction.
    #[cold]
    fn change_to_plain(&mut self, steps: &Steps) {
        let mut calls = Vec::new();
        self.trail(steps, |sub, back, since| calls.push(Frame { sub, back, since }));
        self.counter = steps.instruction(self.counter.saturating_sub(1)) + 1;
        self.calls = calls;
        self.is_plain = true;
    }

    /// The loop, shared by start and resumption of a run.
    #[inline(never)]
    fn go<H: Host + ?Sized>(&mut self, program: &LinkedProgram, host: &mut H, scratch: &mut Scratch) -> Outcome {
        let mut steps = program.steps(self.is_plain);
        let stop = loop {
            let Some(&step) = steps.code().get(self.counter as usize) else { break damaged() };
            self.counter += 1;
            let result = match step {
                Step::Plain(op) => self.step(op, (program, steps), host, scratch),
                Step::JumpIf(to) => self.take_bool().map(|value| {
                    if value {
                        self.counter = to;
                    }
                }),
                Step::Unless(condition, to) => self.branch((condition, false, to), program, host, scratch),
                Step::If(condition, to) => self.branch((condition, true, to), program, host, scratch),
                Step::HashVariable(var) => hash_variable(var, host, scratch),
                Step::HashHeader(http, name) => {
                    whole(scratch).map(|()| host.hash_header(http, program.header_name(name)))
                }
                Step::HashHeaderUnless(http, name, to) => {
                    let name = program.header_name(u32::from(name));
                    // The next step reports a scratch that has overflowed.
                    if scratch.overflowed() {
                        if host.header(http, name).is_none() {
                            self.counter = to;
                        }
                    } else if host.hash_header_if_any(http, name) {
                        self.counter += 1;
                    } else {
                        self.counter = to;
                    }
                    Ok(())
                }
                Step::Shortcut(index) => match steps.shortcut(index) {
                    Some(shortcut) if host.is_usual() => {
                        self.counter = shortcut.to;
                        Ok(())
                    }
                    Some(shortcut) => self.branch(shortcut.branch, program, host, scratch),
                    None => Err(damaged()),
                },
            };
            if let Err(stop) = result {
                break stop;
            }
            if self.is_traced != self.is_plain && self.is_traced {
                self.change_to_plain(steps);
                steps = program.steps(true);
            }
        };
        self.finish(stop, host)
    }

    /// Jumps if the condition holds, or unless it holds.
    #[inline(always)]
    fn branch<H: Host + ?Sized>(
        &mut self,
        (condition, jumps_if, to): (Condition, bool, u32),
        program: &LinkedProgram,
        host: &mut H,
        scratch: &mut Scratch,
    ) -> Result<(), Stop> {
        if holds(condition, program, host, scratch)? == jumps_if {
            self.counter = to;
        }
        Ok(())
    }

    fn finish<H: Host + ?Sized>(&mut self, stop: Stop, host: &mut H) -> Outcome {
        match stop {
            Stop::Wait => Outcome::Wait,
            Stop::Return(action, arguments) => {
                if let Some(label) = arguments.label {
                    host.log_switch(label);
                }
                host.log_return(action);
                Outcome::Return(action, arguments)
            }
            Stop::Fail(failure) => {
                if !failure.0.is_empty() {
                    host.log_run(Tag::VCLError, failure.0.as_bytes());
                }
                host.log_return(Action::Fail);
                Outcome::Failed(failure)
            }
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Value, Stop> {
        self.stack.pop().ok_or_else(damaged)
    }

    #[inline(always)]
    fn take_bool(&mut self) -> Result<bool, Stop> {
        match self.take()? {
            Value::Bool(value) => Ok(value),
            _ => Err(damaged()),
        }
    }

    #[inline(always)]
    fn take_text(&mut self) -> Result<Text, Stop> {
        match self.take()? {
            Value::Text(text) => Ok(text),
            _ => Err(damaged()),
        }
    }

    /// The bytes of a string or blob about to be used outside; fails if strings no longer fit into
    /// the request's memory.
    #[inline(always)]
    fn take_whole(&mut self, scratch: &Scratch) -> Result<Text, Stop> {
        whole(scratch)?;
        match self.take()? {
            Value::Text(text) | Value::Blob(text) => Ok(text),
            _ => Err(damaged()),
        }
    }
}

/// True if the condition of a branch holds.
#[inline(always)]
fn holds<H: Host + ?Sized>(
    condition: Condition,
    program: &LinkedProgram,
    host: &mut H,
    scratch: &mut Scratch,
) -> Result<bool, Stop> {
    Ok(match condition {
        Condition::HasHeader(http, name) => host.header(http, program.header_name(u32::from(name))).is_some(),
        Condition::MatchHeader(http, name, regex) => {
            let value = host.header(http, program.header_name(u32::from(name))).unwrap_or(b"");
            matches(program, regex, value)?
        }
        Condition::IsText { var, len, start } => {
            let constant = Text::constant(start, u32::from(len));
            match host.variable_bytes(var) {
                Some(text) => text == scratch.get(constant),
                None => {
                    let value = host.read(var, scratch)?;
                    calculate::compare(Comparison::Equal, value, Value::Text(constant), scratch)
                }
            }
        }
        Condition::IsNumber(var, number) => match host.read(var, scratch)? {
            Value::Int(value) => value == i64::from(number),
            value => calculate::compare(Comparison::Equal, value, Value::Int(i64::from(number)), scratch),
        },
    })
}

/// `hash_data` of a variable.
#[inline(always)]
fn hash_variable<H: Host + ?Sized>(var: Var, host: &mut H, scratch: &mut Scratch) -> Result<(), Stop> {
    whole(scratch)?;
    if !host.hash_variable(var) {
        let Value::Text(text) = host.read(var, scratch)? else { return Err(damaged()) };
        whole(scratch)?;
        host.hash_data(text.is_set().then(|| scratch.get(text)));
        host.hash_end();
    }
    Ok(())
}

fn matches(program: &LinkedProgram, regex: u32, subject: &[u8]) -> Result<bool, Stop> {
    let regex = program.regex(regex).ok_or_else(damaged)?;
    regex.is_match(subject).map_err(|error| fail(format!("Regexp matching failed: {}", error.0)))
}

#[inline]
fn whole(scratch: &Scratch) -> Result<(), Stop> {
    if scratch.overflowed() { Err(out_of_memory()) } else { Ok(()) }
}
