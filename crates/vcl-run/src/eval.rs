//! The evaluator: runs one method of a linked program against a [`Host`].
//!
//! The program counter, the value stack and the call stack are explicit, so that a run can stop while a VMOD waits and
//! continue later on the same machine. A machine belongs to one task and is reused for each method; once its stacks have
//! grown, running allocates nothing, and strings go into the [`Scratch`]. It writes VCL_call, VCL_return, VCL_acl and
//! VCL_Error records through [`Host::log`]. Invariant: no input causes a panic; what linking should have excluded ends
//! in a failure. Next file: `eval/calculate.rs`.

mod calculate;
mod text;

use crate::host::{Called, Failure, Host};
use crate::line;
use crate::link::LinkedProgram;
use crate::link::steps::{Condition, Shortcut, Step, Steps};
use crate::program::{Comparison, Op, SubDefinition};
use crate::regex::SubstituteError;
use crate::value::{Scratch, Text, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use surface::limits::{FAILURE_BYTES_MAX, KEPT_BUFFER_BYTES_MAX, VCL_CALL_DEPTH_MAX};
use surface::tag::Tag;
use surface::vcl::{Action, Method, Var};

/// What an unset piece of `synthetic` adds to the body. Compat: Varnish, all versions.
const UNSET_PIECE: &[u8] = b"(null)";

/// The arguments of an action.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ActionArguments {
    /// `synth` and `error`: the status; its last three digits are at least 100, and only they appear on the wire. `None`
    /// when not given.
    pub status: Option<u16>,
    /// `synth` and `error`: the reason; unset when not given.
    pub reason: Text,
    /// `pass` in vcl_backend_response: for how many seconds the pass is remembered.
    pub duration: Option<f64>,
    /// `vcl`: index into [`crate::program::Program::labels`].
    pub label: Option<u32>,
}

impl Default for ActionArguments {
    fn default() -> Self {
        ActionArguments { status: None, reason: Text::UNSET, duration: None, label: None }
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The method ended with an action (never [`Action::Fail`]); VCL_return is logged.
    Return(Action, ActionArguments),
    /// A VMOD waits; the task calls [`Machine::resume`] when the host has the result.
    Wait,
    /// The method failed: by `return(fail)`, in the evaluator or in a VMOD. VCL_Error (if there is a text) and
    /// `VCL_return fail` are logged.
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
    /// The steps being run are one for each instruction, as a trace needs them.
    is_plain: bool,
    /// Buffer for the results of substitutions before they go into the scratch.
    room: Vec<u8>,
}

/// A called subroutine that has not returned yet.
#[derive(Debug)]
struct Frame {
    /// The subroutine called.
    sub: u32,
    /// Where its caller continues.
    back: u32,
    /// When it was called, in seconds since 1970, if the caller wants to know how long it takes.
    since: Option<f64>,
}

/// A position in the run of a program.
#[derive(Clone, Debug)]
pub struct Place {
    instruction: u32,
    subs: Vec<u32>,
}

impl Place {
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

/// Why the loop of instructions stopped.
enum Stop {
    Return(Action, ActionArguments),
    Wait,
    Fail(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Fail(failure)
    }
}

fn damaged() -> Stop {
    Stop::Fail(Failure("VCL program is damaged".into()))
}

fn fail(text: impl Into<String>) -> Stop {
    Stop::Fail(Failure(text.into()))
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

    /// The action of a method that does nothing but return it, as if it had been run without a trace; logging that is left to the
    /// caller. `None` when there is more to do. `is_usual` is [`Host::is_usual`], asked where it matters.
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

    /// Where the last run, which was of this program, ended.
    #[must_use]
    pub fn decision(&self, program: &LinkedProgram) -> Place {
        self.place(program.steps(self.is_plain))
    }

    /// The position of the step that was taken last.
    fn place(&self, steps: &Steps) -> Place {
        let mut subs = Vec::new();
        self.trail(steps, |sub, _, _| subs.push(sub));
        Place { instruction: steps.instruction(self.counter.saturating_sub(1)), subs }
    }

    /// The calls that are under way, those included in whose place the subroutine stands: the subroutine, the instruction with
    /// which its caller goes on, and the time.
    fn trail(&self, steps: &Steps, mut each: impl FnMut(u32, u32, Option<f64>)) {
        for frame in &self.calls {
            let at = frame.back.saturating_sub(1);
            steps.inlined(at, |sub, back| each(sub, back, None));
            each(frame.sub, steps.instruction(at) + 1, frame.since);
        }
        steps.inlined(self.counter.saturating_sub(1), |sub, back| each(sub, back, None));
    }

    /// Goes on with one step for each instruction.
    #[cold]
    fn change_to_plain(&mut self, steps: &Steps) {
        let mut calls = Vec::new();
        self.trail(steps, |sub, back, since| calls.push(Frame { sub, back, since }));
        self.counter = steps.instruction(self.counter.saturating_sub(1)) + 1;
        self.calls = calls;
        self.is_plain = true;
    }

    /// The loop, once: what begins and what resumes a run share it.
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
                Step::Unless(condition, to) => holds(condition, program, host, scratch).map(|holds| {
                    if !holds {
                        self.counter = to;
                    }
                }),
                Step::If(condition, to) => holds(condition, program, host, scratch).map(|holds| {
                    if holds {
                        self.counter = to;
                    }
                }),
                Step::HashVariable(var) => hash_variable(var, host, scratch),
                Step::HashHeader(http, name) => {
                    whole(scratch).map(|()| host.hash_header(http, program.header_name(name)))
                }
                Step::HashHeaderUnless(http, name, to) => {
                    let name = program.header_name(u32::from(name));
                    // A scratch that has overflowed is for the next step to report.
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
                    Some(&Shortcut { branch: (condition, jumps_if, to), .. }) => {
                        holds(condition, program, host, scratch).map(|holds| {
                            if holds == jumps_if {
                                self.counter = to;
                            }
                        })
                    }
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

    fn finish<H: Host + ?Sized>(&mut self, stop: Stop, host: &mut H) -> Outcome {
        match stop {
            Stop::Wait => Outcome::Wait,
            Stop::Return(action, arguments) => {
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

    /// The bytes of a string or blob about to be used outside; fails when strings no longer fit into the request's
    /// memory.
    #[inline(always)]
    fn take_whole(&mut self, scratch: &Scratch) -> Result<Text, Stop> {
        whole(scratch)?;
        match self.take()? {
            Value::Text(text) | Value::Blob(text) => Ok(text),
            _ => Err(damaged()),
        }
    }

    /// Part of [`Machine::go`]: without inlining, a hit costs 1,500 instructions more. Long and rare cases are in
    /// functions of their own.
    #[inline(always)]
    fn step<H: Host + ?Sized>(
        &mut self,
        op: Op,
        (program, steps): (&LinkedProgram, &Steps),
        host: &mut H,
        scratch: &mut Scratch,
    ) -> Result<(), Stop> {
        match op {
            Op::Bool(value) => self.stack.push(Value::Bool(value)),
            Op::Int(value) => self.stack.push(Value::Int(value)),
            Op::Real(value) => self.stack.push(Value::Real(value)),
            Op::Duration(value) => self.stack.push(Value::Duration(value)),
            Op::Time(value) => self.stack.push(Value::Time(value)),
            Op::Bytes(value) => self.stack.push(Value::Bytes(value)),
            Op::Text { start, len } => self.stack.push(Value::Text(Text::constant(start, len))),
            Op::UnsetText => self.stack.push(Value::Text(Text::UNSET)),
            Op::Blob { start, len } => self.stack.push(Value::Blob(Text::constant(start, len))),
            Op::Ip4 { address, port } => {
                self.stack.push(Value::Ip(Some((IpAddr::V4(Ipv4Addr::from(address)), port))));
            }
            Op::Ip6 { start, port } => {
                let bytes = program.constants().get(start as usize..start as usize + 16).ok_or_else(damaged)?;
                let bytes: [u8; 16] = bytes.try_into().map_err(|_| damaged())?;
                self.stack.push(Value::Ip(Some((IpAddr::V6(Ipv6Addr::from(bytes)), port))));
            }
            Op::Backend(director) => self.stack.push(Value::Backend(director.map(crate::value::DirectorId))),
            Op::Acl(index) => self.stack.push(Value::Acl(Some(index))),
            Op::Probe(index) => self.stack.push(Value::Probe(Some(index))),
            Op::Stevedore(index) => self.stack.push(Value::Stevedore(index)),
            Op::Sub(index) => self.stack.push(Value::Sub(index)),
            Op::Regex(index) => self.stack.push(Value::Regex(index)),
            Op::Http(http) => self.stack.push(Value::Http(http)),
            Op::HeaderPlace(http, name) => self.stack.push(Value::Header(http, name)),
            Op::Absent => self.stack.push(Value::Absent),
            Op::Now => {
                let now = host.now();
                self.stack.push(Value::Time(now));
            }
            Op::Read(var) => {
                let value = host.read(var, scratch)?;
                self.stack.push(value);
            }
            Op::ReadHeader(http, name) => {
                let text = text::of_header(http, program.header_name(name), host, scratch);
                self.stack.push(Value::Text(text));
            }
            Op::HasHeader(http, name) => {
                let has = host.header(http, program.header_name(name)).is_some();
                self.stack.push(Value::Bool(has));
            }
            Op::MatchHeader(http, name, regex) => {
                let value = host.header(http, program.header_name(u32::from(name))).unwrap_or(b"");
                self.stack.push(Value::Bool(matches(program, regex, value)?));
            }
            Op::MatchVariable(var, regex) => {
                let matched = match host.variable_bytes(var) {
                    Some(value) => matches(program, regex, value)?,
                    None => {
                        let Value::Text(value) = host.read(var, scratch)? else { return Err(damaged()) };
                        matches(program, regex, scratch.get(value))?
                    }
                };
                self.stack.push(Value::Bool(matched));
            }
            Op::HeaderIs { http, name, len, start } => {
                let wanted = scratch.get(Text::constant(start, u32::from(len)));
                let is = host.header(http, program.header_name(u32::from(name))) == Some(wanted);
                self.stack.push(Value::Bool(is));
            }
            Op::StorageProperty(var) => {
                let Value::Stevedore(storage) = self.take()? else { return Err(damaged()) };
                self.stack.push(host.storage_property(storage, var));
            }
            Op::ToText => {
                let value = self.take()?;
                if let Some(why) = text::unformatable(value) {
                    return Err(fail(why));
                }
                self.stack.push(Value::Text(text::of(value, program, host, scratch)));
            }
            Op::Join(count) => {
                let first = self.stack.len().checked_sub(usize::from(count)).ok_or_else(damaged)?;
                let joined = text::join(&self.stack[first..], scratch);
                self.stack.truncate(first);
                self.stack.push(Value::Text(joined));
            }
            Op::Test => {
                let value = self.take()?;
                self.stack.push(Value::Bool(calculate::is_true(value)));
            }
            Op::ToReal => {
                let Value::Int(value) = self.take()? else { return Err(damaged()) };
                self.stack.push(Value::Real(value as f64));
            }
            Op::Upper => {
                let from = self.take_text()?;
                self.stack.push(Value::Text(scratch.put_changed(from, u8::make_ascii_uppercase)));
            }
            Op::Lower => {
                let from = self.take_text()?;
                self.stack.push(Value::Text(scratch.put_changed(from, u8::make_ascii_lowercase)));
            }
            Op::Resolve => {
                let Value::Backend(director) = self.take()? else { return Err(damaged()) };
                let resolved = director.and_then(|director| host.resolve_director(director));
                self.stack.push(Value::Backend(resolved));
            }
            Op::Not => {
                let value = self.take_bool()?;
                self.stack.push(Value::Bool(!value));
            }
            Op::Negate => {
                let value = self.take()?;
                self.stack.push(calculate::negate(value)?);
            }
            Op::CompareJoined(operator) => {
                let right = self.take_text()?;
                let left = self.take_text()?;
                let order = scratch.get(left).cmp(scratch.get(right));
                self.stack.push(Value::Bool(calculate::holds(operator, Some(order))));
            }
            Op::Calculate(operator) => {
                let right = self.take()?;
                let left = self.take()?;
                self.stack.push(calculate::calculate(operator, left, right)?);
            }
            Op::Compare(operator) => {
                let right = self.take()?;
                let left = self.take()?;
                self.stack.push(Value::Bool(calculate::compare(operator, left, right, scratch)));
            }
            Op::Match(regex) => {
                let subject = self.take_text()?;
                let matched = matches(program, regex, scratch.get(subject))?;
                self.stack.push(Value::Bool(matched));
            }
            Op::MatchValue => {
                let Value::Regex(regex) = self.take()? else { return Err(damaged()) };
                let subject = self.take_text()?;
                let matched = matches(program, regex, scratch.get(subject))?;
                self.stack.push(Value::Bool(matched));
            }
            Op::MatchAcl(acl) => {
                let matched = self.match_acl(acl, program, host)?;
                self.stack.push(Value::Bool(matched));
            }
            Op::MatchAclValue => {
                let Value::Acl(acl) = self.take()? else { return Err(damaged()) };
                let matched = match acl {
                    Some(acl) => self.match_acl(acl, program, host)?,
                    None => return Err(fail("Cannot match a null ACL")),
                };
                self.stack.push(Value::Bool(matched));
            }
            Op::Substitute(regex) => self.substitute(regex, false, program, scratch)?,
            Op::SubstituteAll(regex) => self.substitute(regex, true, program, scratch)?,
            Op::Jump(to) => self.counter = to,
            Op::JumpUnless(to) => {
                if !self.take_bool()? {
                    self.counter = to;
                }
            }
            Op::AndThen(to) => match self.stack.last() {
                Some(Value::Bool(false)) => self.counter = to,
                _ => drop(self.take()?),
            },
            Op::OrElse(to) => match self.stack.last() {
                Some(Value::Bool(true)) => self.counter = to,
                _ => drop(self.take()?),
            },
            Op::Forget => drop(self.take()?),
            Op::Write(var) => {
                whole(scratch)?;
                let value = self.take()?;
                host.write(var, value, false, scratch)?;
            }
            Op::WriteNoted(var) => {
                whole(scratch)?;
                let value = self.take()?;
                if host.tells_reasons() {
                    host.note(&self.place(steps));
                }
                host.write(var, value, false, scratch)?;
                self.is_traced = host.is_traced();
            }
            Op::Append(var) => {
                whole(scratch)?;
                let value = self.take()?;
                host.write(var, value, true, scratch)?;
            }
            Op::WriteHeader(http, name) => {
                let text = self.take_whole(scratch)?;
                host.set_header(http, program.header_name(name), text, scratch)?;
            }
            Op::Unset(var) => host.unset(var)?,
            Op::UnsetHeader(http, name) => host.unset_header(http, program.header_name(name)),
            Op::HashData(count) => {
                whole(scratch)?;
                let first = self.stack.len().checked_sub(usize::from(count)).ok_or_else(damaged)?;
                for value in self.stack.drain(first..) {
                    let Value::Text(text) = value else { return Err(damaged()) };
                    host.hash_data(text.is_set().then(|| scratch.get(text)));
                }
                host.hash_end();
            }
            Op::Synthetic(count) => self.synthetic(count, host, scratch)?,
            Op::Ban => {
                let text = self.take_whole(scratch)?;
                ban(text, host, scratch);
            }
            Op::Call(sub) => self.call(sub, (program, steps))?,
            Op::CallValue => {
                let Value::Sub(sub) = self.take()? else { return Err(damaged()) };
                self.call_checked(sub, (program, steps))?;
            }
            Op::CallVmod { function, instance, arguments } => {
                whole(scratch)?;
                let first = self.stack.len().checked_sub(usize::from(arguments)).ok_or_else(damaged)?;
                let called = host.call(function, instance, &self.stack[first..], scratch);
                self.stack.truncate(first);
                match called? {
                    Called::Value(value) => self.stack.push(value),
                    Called::Sub(sub) => {
                        // The caller drops this when the subroutine is done.
                        self.stack.push(Value::Void);
                        self.call_checked(sub, (program, steps))?;
                    }
                    Called::TimedSub(sub) => {
                        self.call_checked(sub, (program, steps))?;
                        if let Some(frame) = self.calls.last_mut() {
                            frame.since = Some(host.clock());
                        }
                    }
                    Called::Check(sub) => {
                        let definition = program.program().subs.get(sub as usize).ok_or_else(damaged)?;
                        let why = self.refusal(sub, definition, steps);
                        let text = why.map_or(Text::UNSET, |why| scratch.put(why.as_bytes()));
                        self.stack.push(Value::Text(text));
                    }
                    Called::Wait => return Err(Stop::Wait),
                }
            }
            Op::Leave => {
                let frame = self.calls.pop().ok_or_else(damaged)?;
                self.counter = frame.back;
                if let Some(since) = frame.since {
                    self.stack.push(Value::Duration((host.clock() - since).max(0.0)));
                }
            }
            Op::Return(Action::Fail) => return Err(fail("Failed from VCL")),
            Op::Return(action) => {
                whole(scratch)?;
                return Err(Stop::Return(action, ActionArguments::default()));
            }
            Op::ReturnStatus { action, reason } => return Err(self.return_status(action, reason, scratch)),
            Op::ReturnPass => {
                let Value::Duration(seconds) = self.take()? else { return Err(damaged()) };
                host.pass_for(seconds);
                let duration = Some(seconds);
                return Err(Stop::Return(Action::Pass, ActionArguments { duration, ..ActionArguments::default() }));
            }
            Op::ReturnVcl(label) => {
                let label = Some(label);
                return Err(Stop::Return(Action::Vcl, ActionArguments { label, ..ActionArguments::default() }));
            }
            Op::ReturnFail => {
                let text = self.take_text()?;
                return Err(failed_by_vcl(scratch.get(text)));
            }
            Op::Trace(point) => {
                if self.is_traced
                    && let Some(place) = program.program().points.get(point as usize)
                {
                    host.trace(point, *place);
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, sub: u32, (program, steps): (&LinkedProgram, &Steps)) -> Result<(), Stop> {
        if self.calls.len() >= VCL_CALL_DEPTH_MAX {
            let definition = program.program().subs.get(sub as usize).ok_or_else(damaged)?;
            return Err(fail(format!("Call of \"sub {}{{}}\" is nested too deep", definition.name)));
        }
        let entry = steps.entry(sub).ok_or_else(damaged)?;
        self.calls.push(Frame { sub, back: self.counter, since: None });
        self.counter = entry;
        Ok(())
    }

    /// Calls a subroutine that an expression returned: checks now what the compiler checks for calls by name.
    fn call_checked(&mut self, sub: u32, (program, steps): (&LinkedProgram, &Steps)) -> Result<(), Stop> {
        let definition: &SubDefinition = program.program().subs.get(sub as usize).ok_or_else(damaged)?;
        match self.refusal(sub, definition, steps) {
            Some(why) => Err(fail(why)),
            None => self.call(sub, (program, steps)),
        }
    }

    /// Why a subroutine that an expression returned cannot be called from here; `None` when it can.
    fn refusal(&self, sub: u32, definition: &SubDefinition, steps: &Steps) -> Option<String> {
        let at = self.method.map_or(0, |method| method.row().bit);
        if definition.at & at == 0 {
            return Some(format!("Dynamic call to \"sub {}{{}}\" not allowed from here", definition.name));
        }
        let mut is_running = false;
        self.trail(steps, |running, _, _| is_running |= running == sub);
        is_running.then(|| format!("Recursive dynamic call to \"sub {}{{}}\"", definition.name))
    }

    fn match_acl<H: Host + ?Sized>(&mut self, acl: u32, program: &LinkedProgram, host: &mut H) -> Result<bool, Stop> {
        let Value::Ip(address) = self.take()? else { return Err(damaged()) };
        let index = program.acl(acl).ok_or_else(damaged)?;
        let definition = program.program().acls.get(acl as usize).ok_or_else(damaged)?;
        let Some((address, _)) = address else {
            return Err(fail("Cannot match a null IP address"));
        };
        let found = index.find(address);
        if definition.log {
            match found.entry.and_then(|entry| definition.entries.get(entry as usize)) {
                Some(entry) => {
                    let word = if found.matched { "MATCH" } else { "NEG_MATCH" };
                    host.log(Tag::VCLAcl, format!("{word} {} {}", definition.name, entry.text).as_bytes());
                }
                None => host.log(Tag::VCLAcl, format!("NO_MATCH {}", definition.name).as_bytes()),
            }
        }
        Ok(found.matched)
    }

    /// Adds pieces to the synthetic body. Kept apart from the code that runs for every request.
    #[inline(never)]
    fn synthetic<H: Host + ?Sized>(&mut self, count: u16, host: &mut H, scratch: &mut Scratch) -> Result<(), Stop> {
        whole(scratch)?;
        let first = self.stack.len().checked_sub(usize::from(count)).ok_or_else(damaged)?;
        if let [Value::Text(text) | Value::Blob(text)] = self.stack[first..]
            && text.is_set()
        {
            host.synthetic(scratch.get(text));
        } else {
            let start = scratch.begin();
            for value in &self.stack[first..] {
                match value {
                    Value::Text(text) | Value::Blob(text) if text.is_set() => scratch.extend_text(*text),
                    _ => scratch.extend(UNSET_PIECE),
                }
            }
            let joined = scratch.end(start);
            whole(scratch)?;
            host.synthetic(scratch.get(joined));
        }
        self.stack.truncate(first);
        Ok(())
    }

    /// `return (synth(…))` and the like, with checks for anything that would break a status line.
    #[inline(never)]
    fn return_status(&mut self, action: Action, has_reason: bool, scratch: &Scratch) -> Stop {
        let mut arguments = || -> Result<ActionArguments, Stop> {
            let reason = if has_reason { self.take_whole(scratch)? } else { Text::UNSET };
            line::check("reason", scratch.get(reason))?;
            let Value::Int(status) = self.take()? else { return Err(damaged()) };
            let status = Some(checked_status(action, status)?);
            Ok(ActionArguments { status, reason, ..ActionArguments::default() })
        };
        match arguments() {
            Ok(arguments) => Stop::Return(action, arguments),
            Err(stop) => stop,
        }
    }

    fn substitute(
        &mut self,
        regex: u32,
        all: bool,
        program: &LinkedProgram,
        scratch: &mut Scratch,
    ) -> Result<(), Stop> {
        let replacement = self.take_text()?;
        let subject = self.take_text()?;
        let regex = program.regex(regex).ok_or_else(damaged)?;
        self.room.clear();
        let (from, to) = (scratch.get(subject), scratch.get(replacement));
        let room_bytes = scratch.left_bytes();
        let changed = if all {
            regex.substitute_all(from, to, &mut self.room, room_bytes)
        } else {
            regex.substitute(from, to, &mut self.room, room_bytes)
        };
        let result = match changed {
            Ok(true) => scratch.put(&self.room),
            Ok(false) if subject.is_set() => subject,
            Ok(false) => Text::EMPTY,
            Err(SubstituteError::TooLong) => {
                scratch.mark_overflowed();
                Text::EMPTY
            }
            Err(SubstituteError::Match(error)) => return Err(fail(format!("Regexp matching failed: {}", error.0))),
        };
        if self.room.capacity() > KEPT_BUFFER_BYTES_MAX {
            self.room = Vec::new();
        }
        self.stack.push(Value::Text(result));
        Ok(())
    }
}

/// Whether the condition of a branch holds.
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

#[cold]
fn out_of_memory() -> Stop {
    Stop::Fail(Failure::out_of_memory())
}

#[cold]
fn failed_by_vcl(text: &[u8]) -> Stop {
    fail(String::from_utf8_lossy(&text[..text.len().min(FAILURE_BYTES_MAX)]))
}

/// The `ban()` statement; errors in it are only logged.
#[cold]
fn ban<H: Host + ?Sized>(expression: Text, host: &mut H, scratch: &Scratch) {
    if !expression.is_set() {
        host.log_run(Tag::VCLError, b"ban(): Null argument");
    } else if let Err(text) = host.ban(scratch.get(expression)) {
        host.log(Tag::VCLError, format!("ban(): {text}").as_bytes());
    }
}

fn checked_status(action: Action, status: i64) -> Result<u16, Stop> {
    let name = action.name();
    if status < 0 {
        return Err(fail(format!("return({name}()) status code ({status}) is negative")));
    }
    let Ok(short) = u16::try_from(status) else {
        return Err(fail(format!("return({name}()) status code ({status}) > 65535")));
    };
    if short % 1000 < 100 {
        return Err(fail(format!("illegal return({name}()) status code ({status}) (..0##)")));
    }
    Ok(short)
}
