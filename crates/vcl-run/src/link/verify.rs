//! Verifier that a program satisfies the assumptions of the evaluator, by running each subroutine
//! over types instead of values.

use crate::program::{Op, Program};
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;
use surface::vcl::{Action, LEGACY_VARIABLES, METHODS, Type, VARIABLES, Var};
use surface::vmod::FUNCTIONS;

/// Most values on the stack at once; compiled programs need a few hundred at most.
const STACK_DEPTH_MAX: usize = 1 << 16;

/// Reason why a program cannot be run: this compiler did not produce it, or it was damaged in
/// transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError(pub String);

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VerifyError {}

pub(super) fn verify(program: &Program) -> Result<(), VerifyError> {
    if program.subs.len() < METHODS.len() {
        return Err(VerifyError("methods are missing".into()));
    }
    tables(program)?;
    let mut calls: Vec<Vec<u32>> = Vec::with_capacity(program.subs.len());
    for (number, sub) in program.subs.iter().enumerate() {
        let is_method = number < METHODS.len();
        if is_method && sub.at & METHODS[number].bit == 0 {
            return Err(VerifyError(format!("sub {}: not the method's place", sub.name)));
        }
        let mut check =
            Check { program, at: sub.at, targets: HashMap::new(), stack: Some(Vec::new()), calls: Vec::new() };
        check.sub(sub.entry, sub.end, is_method).map_err(|text| VerifyError(format!("sub {}: {text}", sub.name)))?;
        calls.push(check.calls);
    }
    no_cycles(&calls)
}

fn tables(program: &Program) -> Result<(), VerifyError> {
    let probes = program.probes.len() as u32;
    for backend in &program.backends {
        if backend.probe.is_some_and(|probe| probe >= probes) {
            return Err(VerifyError(format!("backend {}: probe out of range", backend.name)));
        }
    }
    // In the old dialects a director can be the default; directors are numbered after the backends.
    let directors = program.instances.iter().filter(|instance| instance.director.is_some()).count();
    if program.default_backend.is_some_and(|backend| backend as usize >= program.backends.len() + directors) {
        return Err(VerifyError("default backend out of range".into()));
    }
    for block in &program.blocks {
        if block.instance as usize >= program.instances.len() {
            return Err(VerifyError("director block out of range".into()));
        }
        let members = block.names.iter().flat_map(|names| &names.members);
        if members.into_iter().any(|&member| member as usize >= program.backends.len()) {
            return Err(VerifyError("member of a director block out of range".into()));
        }
    }
    let sources = program.sources.len() as u32;
    if program.points.iter().any(|point| point.source >= sources) {
        return Err(VerifyError("point out of range".into()));
    }
    Ok(())
}

/// Refuses subroutines that can call themselves, so that the depth of calls is bounded. Visits each
/// once, without recursion.
fn no_cycles(calls: &[Vec<u32>]) -> Result<(), VerifyError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; calls.len()];
    for start in 0..calls.len() {
        let mut path = vec![(start, 0usize)];
        while let Some((sub, next)) = path.pop() {
            if next == 0 {
                if marks[sub] == Mark::Done {
                    continue;
                }
                marks[sub] = Mark::Open;
            }
            let Some(&callee) = calls[sub].get(next) else {
                marks[sub] = Mark::Done;
                continue;
            };
            path.push((sub, next + 1));
            match marks[callee as usize] {
                Mark::New => path.push((callee as usize, 0)),
                Mark::Open => return Err(VerifyError("a subroutine calls itself".into())),
                Mark::Done => {}
            }
        }
    }
    Ok(())
}

struct Check<'a> {
    program: &'a Program,
    /// Methods that may run this subroutine.
    at: u16,
    /// The stack with which each later instruction is reached by a jump.
    targets: HashMap<u32, Vec<Type>>,
    /// The stack at this point; `None` if it is unreachable.
    stack: Option<Vec<Type>>,
    calls: Vec<u32>,
}

impl Check<'_> {
    fn sub(&mut self, entry: u32, end: u32, is_method: bool) -> Result<(), String> {
        let code = self.program.code.get(entry as usize..end as usize).ok_or("code out of range")?;
        for (offset, op) in code.iter().enumerate() {
            let here = entry + offset as u32;
            if let Some(jumped) = self.targets.remove(&here) {
                match &self.stack {
                    Some(stack) if *stack != jumped => return Err(format!("stacks differ at {here}")),
                    Some(_) => {}
                    None => self.stack = Some(jumped),
                }
            }
            let Some(mut stack) = self.stack.take() else { continue };
            let goes_on =
                self.step(*op, here, end, is_method, &mut stack).map_err(|text| format!("{text} at {here}: {op:?}"))?;
            if stack.len() > STACK_DEPTH_MAX {
                return Err(format!("stack too deep at {here}"));
            }
            if goes_on {
                self.stack = Some(stack);
            }
        }
        if self.stack.is_some() || !self.targets.is_empty() {
            return Err("runs off its end".into());
        }
        Ok(())
    }

    fn jump(&mut self, here: u32, end: u32, to: u32, stack: &[Type]) -> Result<(), String> {
        if to <= here || to >= end {
            return Err("jump out of range".into());
        }
        match self.targets.get(&to) {
            Some(known) if known.as_slice() != stack => Err("stacks differ at the target".into()),
            Some(_) => Ok(()),
            None => {
                self.targets.insert(to, stack.to_vec());
                Ok(())
            }
        }
    }

    /// Refuses an action that is not available in one of the methods that run this subroutine.
    fn action(&self, action: Action) -> Result<(), String> {
        let generation = self.program.generation();
        match METHODS.iter().find(|row| self.at & row.bit != 0 && !row.allows(action, generation)) {
            Some(row) => Err(format!("return({}) in {}", action.name(), row.name)),
            None => Ok(()),
        }
    }

    /// Applies one instruction to the stack of types; returns true if the next instruction can be
    /// reached from here.
    fn step(&mut self, op: Op, here: u32, end: u32, is_method: bool, stack: &mut Vec<Type>) -> Result<bool, String> {
        let program = self.program;
        match op {
            Op::Bool(_) => stack.push(Type::Bool),
            Op::Int(_) => stack.push(Type::Int),
            Op::Real(_) => stack.push(Type::Real),
            Op::Duration(_) => stack.push(Type::Duration),
            Op::Time(_) | Op::Now => stack.push(Type::Time),
            Op::Bytes(_) => stack.push(Type::Bytes),
            Op::Text { start, len } => {
                constant(program, start, len)?;
                stack.push(Type::String);
            }
            Op::UnsetText => stack.push(Type::String),
            Op::Blob { start, len } => {
                constant(program, start, len)?;
                stack.push(Type::Blob);
            }
            Op::Ip4 { .. } => stack.push(Type::Ip),
            Op::Ip6 { start, .. } => {
                constant(program, start, 16)?;
                stack.push(Type::Ip);
            }
            Op::Backend(_) => stack.push(Type::Backend),
            Op::Acl(index) => {
                below(index, program.acls.len())?;
                stack.push(Type::Acl);
            }
            Op::Probe(index) => {
                below(index, program.probes.len())?;
                stack.push(Type::Probe);
            }
            Op::Stevedore(_) => stack.push(Type::Stevedore),
            Op::Sub(index) => {
                below(index, program.subs.len())?;
                stack.push(Type::Sub);
            }
            Op::Regex(index) => {
                below(index, program.regexes.len())?;
                stack.push(Type::Regex);
            }
            Op::Http(_) => stack.push(Type::Http),
            Op::HeaderPlace(_, name) => {
                below(name, program.headers.len())?;
                stack.push(Type::Header);
            }
            Op::Absent => stack.push(Type::Void),
            Op::Read(var) => stack.push(variable_type(var)?),
            Op::ReadHeader(_, name) => {
                below(name, program.headers.len())?;
                stack.push(Type::String);
            }
            Op::HasHeader(_, name) => {
                below(name, program.headers.len())?;
                stack.push(Type::Bool);
            }
            Op::MatchHeader(_, name, regex) => {
                below(u32::from(name), program.headers.len())?;
                below(regex, program.regexes.len())?;
                stack.push(Type::Bool);
            }
            Op::MatchVariable(var, regex) => {
                below(regex, program.regexes.len())?;
                if variable_type(var)? != Type::String {
                    return Err("a pattern matches a text".into());
                }
                stack.push(Type::Bool);
            }
            Op::HeaderIs { http: _, name, len, start } => {
                below(u32::from(name), program.headers.len())?;
                constant(program, start, u32::from(len))?;
                stack.push(Type::Bool);
            }
            Op::StorageProperty(var) => {
                take(stack, Type::Stevedore)?;
                stack.push(match var {
                    Var::StorageHappy => Type::Bool,
                    Var::StorageFreeSpace | Var::StorageUsedSpace => Type::Bytes,
                    _ => return Err("no property of a storage".into()),
                });
            }
            Op::ToText => {
                stack.pop().ok_or("stack is empty")?;
                stack.push(Type::String);
            }
            Op::Join(count) => {
                for _ in 0..count {
                    take(stack, Type::String)?;
                }
                stack.push(Type::String);
            }
            Op::Test => {
                stack.pop().ok_or("stack is empty")?;
                stack.push(Type::Bool);
            }
            Op::ToReal => {
                take(stack, Type::Int)?;
                stack.push(Type::Real);
            }
            Op::Upper | Op::Lower => {
                take(stack, Type::String)?;
                stack.push(Type::String);
            }
            Op::Resolve => {
                take(stack, Type::Backend)?;
                stack.push(Type::Backend);
            }
            Op::Not => {
                take(stack, Type::Bool)?;
                stack.push(Type::Bool);
            }
            Op::Negate => match stack.last() {
                Some(Type::Int | Type::Real | Type::Duration | Type::Time | Type::Bytes) => {}
                _ => return Err("no number".into()),
            },
            Op::CompareJoined(_) => {
                take(stack, Type::String)?;
                take(stack, Type::String)?;
                stack.push(Type::Bool);
            }
            Op::Calculate(operator) => {
                let right = stack.pop().ok_or("stack is empty")?;
                let left = stack.pop().ok_or("stack is empty")?;
                stack.push(operator.result(left, right).ok_or("types do not calculate")?);
            }
            Op::Compare(_) => {
                let right = stack.pop().ok_or("stack is empty")?;
                take(stack, right)?;
                stack.push(Type::Bool);
            }
            Op::Match(index) => {
                below(index, program.regexes.len())?;
                take(stack, Type::String)?;
                stack.push(Type::Bool);
            }
            Op::MatchValue => {
                take(stack, Type::Regex)?;
                take(stack, Type::String)?;
                stack.push(Type::Bool);
            }
            Op::MatchAcl(index) => {
                below(index, program.acls.len())?;
                take(stack, Type::Ip)?;
                stack.push(Type::Bool);
            }
            Op::MatchAclValue => {
                take(stack, Type::Acl)?;
                take(stack, Type::Ip)?;
                stack.push(Type::Bool);
            }
            Op::Substitute(index) | Op::SubstituteAll(index) => {
                below(index, program.regexes.len())?;
                take(stack, Type::String)?;
                take(stack, Type::String)?;
                stack.push(Type::String);
            }
            Op::Jump(to) => {
                self.jump(here, end, to, stack)?;
                return Ok(false);
            }
            Op::JumpUnless(to) => {
                take(stack, Type::Bool)?;
                self.jump(here, end, to, stack)?;
            }
            Op::AndThen(to) | Op::OrElse(to) => {
                take(stack, Type::Bool)?;
                stack.push(Type::Bool);
                self.jump(here, end, to, stack)?;
                stack.pop();
            }
            Op::Forget => {
                stack.pop().ok_or("stack is empty")?;
            }
            Op::Write(var) | Op::WriteNoted(var) => {
                let kind = variable_type(var)?;
                let given = stack.pop().ok_or("stack is empty")?;
                let body = kind == Type::Body && matches!(given, Type::String | Type::Blob);
                if given != kind && !body {
                    return Err(format!("{} for {}", given.name(), kind.name()));
                }
            }
            Op::Note => {}
            Op::Append(var) => {
                variable_type(var)?;
                match stack.pop() {
                    Some(Type::String | Type::Blob) => {}
                    _ => return Err("no text to append".into()),
                }
            }
            Op::WriteHeader(_, name) => {
                below(name, program.headers.len())?;
                take(stack, Type::String)?;
            }
            Op::Unset(var) => {
                variable_type(var)?;
            }
            Op::UnsetHeader(_, name) => below(name, program.headers.len())?,
            Op::Ban => take(stack, Type::String)?,
            Op::HashData(count) => {
                for _ in 0..count {
                    take(stack, Type::String)?;
                }
            }
            Op::Synthetic(count) => {
                for _ in 0..count {
                    match stack.pop() {
                        Some(Type::String | Type::Blob) => {}
                        _ => return Err("no text for a body".into()),
                    }
                }
            }
            Op::Call(sub) => {
                below(sub, program.subs.len())?;
                if !stack.is_empty() {
                    return Err("call within an expression".into());
                }
                if program.subs[sub as usize].at & self.at != self.at {
                    return Err("calls what its methods may not run".into());
                }
                self.calls.push(sub);
            }
            Op::CallValue => {
                take(stack, Type::Sub)?;
                if !stack.is_empty() {
                    return Err("call within an expression".into());
                }
            }
            Op::CallVmod { function, instance, arguments } => {
                let row = FUNCTIONS.get(function as usize).ok_or("no such VMOD function")?;
                if let Some(instance) = instance {
                    below(instance, program.instances.len())?;
                }
                for _ in 0..arguments {
                    stack.pop().ok_or("stack is empty")?;
                }
                stack.push(match row.returns {
                    Type::Strands | Type::Enum | Type::Body => Type::String,
                    kind => kind,
                });
            }
            Op::Leave => {
                if is_method {
                    return Err("a method leaves without an action".into());
                }
                return empty(stack);
            }
            Op::Return(action) => {
                self.action(action)?;
                return empty(stack);
            }
            Op::ReturnStatus { action, reason } => {
                self.action(action)?;
                if !matches!(action, Action::Synth | Action::Error) {
                    return Err("status for an action that has none".into());
                }
                if reason {
                    take(stack, Type::String)?;
                }
                take(stack, Type::Int)?;
                return empty(stack);
            }
            Op::ReturnPass => {
                self.action(Action::Pass)?;
                take(stack, Type::Duration)?;
                return empty(stack);
            }
            Op::ReturnVcl(label) => {
                self.action(Action::Vcl)?;
                below(label, program.labels.len())?;
                return empty(stack);
            }
            Op::ReturnFail => {
                take(stack, Type::String)?;
                return empty(stack);
            }
            Op::Trace(point) => below(point, program.points.len())?,
        }
        Ok(true)
    }
}

fn empty(stack: &[Type]) -> Result<bool, String> {
    if stack.is_empty() { Ok(false) } else { Err("values are left on the stack".into()) }
}

fn take(stack: &mut Vec<Type>, kind: Type) -> Result<(), String> {
    match stack.pop() {
        Some(found) if found == kind => Ok(()),
        Some(found) => Err(format!("{} where {} is needed", found.name(), kind.name())),
        None => Err("stack is empty".into()),
    }
}

fn below(index: u32, len: usize) -> Result<(), String> {
    if (index as usize) < len { Ok(()) } else { Err(format!("index {index} out of range")) }
}

fn constant(program: &Program, start: u32, len: u32) -> Result<(), String> {
    let end = u64::from(start) + u64::from(len);
    if end <= program.constants.len() as u64 { Ok(()) } else { Err("constant out of range".into()) }
}

/// The type that a variable has on the stack.
fn variable_type(var: Var) -> Result<Type, String> {
    // Programs use variables tens of thousands of times; the table has a hundred rows.
    static TYPES: LazyLock<HashMap<Var, Type>> = LazyLock::new(|| {
        VARIABLES
            .iter()
            .map(|row| (row.var, row.kind))
            .chain(LEGACY_VARIABLES.iter().copied())
            .map(|(var, kind)| (var, if kind == Type::Header { Type::String } else { kind }))
            .collect()
    });
    TYPES.get(&var).copied().ok_or_else(|| "no such variable".into())
}
