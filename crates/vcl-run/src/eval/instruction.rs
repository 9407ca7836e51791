//! Execution of one instruction of the value stack.
//!
//! Branches and conditions that need no stack are steps of their own, which the evaluator's loop
//! executes itself.

use super::stop::{Stop, damaged, fail};
use super::{ActionArguments, Frame, Machine, calculate, matches, text, whole};
use crate::host::{Called, Host};
use crate::line;
use crate::link::LinkedProgram;
use crate::link::steps::Steps;
use crate::program::{Op, SubDefinition};
use crate::regex::SubstituteError;
use crate::value::{Scratch, Text, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use surface::limits::{FAILURE_BYTES_MAX, KEPT_BUFFER_BYTES_MAX, VCL_CALL_DEPTH_MAX};
use surface::tag::Tag;
use surface::vcl::Action;

/// Text that an unset piece of `synthetic` adds to the body. Compat: Varnish, all versions.
const UNSET_PIECE: &[u8] = b"(null)";

impl Machine {
    /// Part of [`Machine::go`]: without inlining, a hit costs 1,500 instructions more. Long and
    /// rare cases are in functions of their own.
    #[inline(always)]
    pub(super) fn step<H: Host + ?Sized>(
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
            Op::Note => {
                if host.tells_reasons() {
                    host.note(&self.place(steps));
                }
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

    /// Calls a subroutine that an expression returned: performs the checks that the compiler makes
    /// for calls by name.
    fn call_checked(&mut self, sub: u32, (program, steps): (&LinkedProgram, &Steps)) -> Result<(), Stop> {
        let definition: &SubDefinition = program.program().subs.get(sub as usize).ok_or_else(damaged)?;
        match self.refusal(sub, definition, steps) {
            Some(why) => Err(fail(why)),
            None => self.call(sub, (program, steps)),
        }
    }

    /// Reason why a subroutine that an expression returned cannot be called from here; `None` if it
    /// can.
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
