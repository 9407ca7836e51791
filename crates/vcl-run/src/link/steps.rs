//! The code that the evaluator runs: the verified instructions of a program, without trace points,
//! with short subroutines inlined, and with frequent sequences merged into one step each.
//!
//! Traced runs use the instructions unchanged (`plain`). *Invariants:* both forms have the same
//! effect; each step can be mapped back to the instruction that it came from, and to the
//! subroutines that would have been called on the way there: places in reasons and a change from
//! one form to the other depend on this. Next file: `../eval.rs`.

use super::step::{Condition, Step};
use super::usual::Facts;
use crate::program::{Comparison, Op, Program};
use surface::limits::VCL_CALL_DEPTH_MAX;
use surface::vcl::{Action, Var};

/// Longest subroutine, in instructions, that is inlined.
const INLINED_INSTRUCTIONS_MAX: usize = 48;
/// Deepest calls that are inlined.
const INLINED_DEPTH_MAX: usize = 8;
/// Maximum ratio of the steps of all subroutines to the instructions.
const GROWTH_MAX: usize = 2;
/// Fewest branches that are worth a shortcut.
const SHORTCUT_BRANCHES_MIN: usize = 4;

/// Origin of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// The instruction; for several merged ones, the last.
    instruction: u32,
    /// The inlined call that contains it: 1 + an index into [`Steps::calls`], or 0.
    call: u32,
}

/// A call that was replaced by its subroutine.
#[derive(Clone, Copy, Debug)]
struct Call {
    sub: u32,
    /// The instruction with which its caller continues.
    back: u32,
    /// The containing call, as in [`Origin::call`].
    outer: u32,
}

/// The end of a method that does nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// The step that returns.
    pub(crate) step: u32,
    pub(crate) action: Action,
    /// True if only usual requests get there without doing anything else.
    pub(crate) is_for_usual: bool,
}

/// The steps of a program.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    code: Vec<Step>,
    origins: Vec<Origin>,
    calls: Vec<Call>,
    /// First step of each subroutine.
    entries: Vec<u32>,
    shortcuts: Vec<Shortcut>,
}

/// A branch among several whose outcome is known for a usual request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortcut {
    /// The branch: its condition, true if it jumps when that holds or false if it jumps unless it
    /// holds, and its target.
    pub(crate) branch: (Condition, bool, u32),
    /// The step that a usual request reaches.
    pub(crate) to: u32,
}

impl Steps {
    /// Each instruction as a step.
    pub(super) fn plain(program: &Program) -> Steps {
        Steps {
            code: program.code.iter().copied().map(Step::Plain).collect(),
            origins: (0..program.code.len() as u32).map(|instruction| Origin { instruction, call: 0 }).collect(),
            calls: Vec::new(),
            entries: program.subs.iter().map(|sub| sub.entry).collect(),
            shortcuts: Vec::new(),
        }
    }

    /// The steps of a verified program.
    pub(super) fn fast(program: &Program, facts: &Facts<'_>) -> Steps {
        let mut maker = Maker {
            program,
            inlines: may_inline(program),
            is_target: targets(program),
            steps: Steps::default(),
            length_max: program.code.len() * GROWTH_MAX,
        };
        for sub in &program.subs {
            maker.steps.entries.push(maker.steps.code.len() as u32);
            maker.sub((sub.entry, sub.end), 0, 0);
        }
        let mut steps = maker.steps;
        steps.join_hashes(program);
        steps.put_shortcuts(facts);
        steps
    }

    /// Merges a test for a header and the step that hashes it, so that it is looked up once.
    fn join_hashes(&mut self, program: &Program) {
        let name = |index: u32| program.headers.get(index as usize);
        for at in 1..self.code.len() {
            let &[Step::Unless(Condition::HasHeader(http, tested), to), Step::HashHeader(from, hashed)] =
                &self.code[at - 1..=at]
            else {
                continue;
            };
            let is_same = name(u32::from(tested))
                .zip(name(hashed))
                .is_some_and(|(tested, hashed)| tested.eq_ignore_ascii_case(hashed));
            if http == from && is_same {
                self.code[at - 1] = Step::HashHeaderUnless(http, tested, to);
            }
        }
    }

    /// Lets usual requests skip branches that are the same for all of them.
    fn put_shortcuts(&mut self, facts: &Facts<'_>) {
        let mut behind = 0;
        for at in 0..self.code.len() {
            let (condition, jumps_if, target) = match self.code[at] {
                Step::If(condition, to) => (condition, true, to),
                Step::Unless(condition, to) => (condition, false, to),
                _ => continue,
            };
            if at < behind {
                continue;
            }
            let (to, passed) = facts.walk(&self.code, at);
            if passed >= SHORTCUT_BRANCHES_MIN {
                self.code[at] = Step::Shortcut(self.shortcuts.len() as u32);
                self.shortcuts.push(Shortcut { branch: (condition, jumps_if, target), to: to as u32 });
                behind = to;
            }
        }
    }

    /// A shortcut.
    #[inline]
    pub(crate) fn shortcut(&self, index: u32) -> Option<&Shortcut> {
        self.shortcuts.get(index as usize)
    }

    /// Ending of a subroutine that does nothing but return an action, if only for usual requests.
    pub(super) fn ending(&self, sub: u32) -> Option<Ending> {
        let entry = self.entry(sub)?;
        let (step, is_for_usual) = match *self.code.get(entry as usize)? {
            Step::Shortcut(index) => (self.shortcut(index)?.to, true),
            _ => (entry, false),
        };
        match *self.code.get(step as usize)? {
            Step::Plain(Op::Return(action)) if action != Action::Fail => Some(Ending { step, action, is_for_usual }),
            _ => None,
        }
    }

    /// The steps.
    pub(crate) fn code(&self) -> &[Step] {
        &self.code
    }

    /// First step of a subroutine.
    pub(crate) fn entry(&self, sub: u32) -> Option<u32> {
        self.entries.get(sub as usize).copied()
    }

    /// The instruction that a step comes from.
    pub(crate) fn instruction(&self, step: u32) -> u32 {
        self.origins.get(step as usize).map_or(0, |origin| origin.instruction)
    }

    /// Calls `each` with the inlined subroutines that contain a step, and with the instructions at
    /// which their callers continue; the outermost first.
    pub(crate) fn inlined(&self, step: u32, mut each: impl FnMut(u32, u32)) {
        let mut found = [(0, 0); INLINED_DEPTH_MAX];
        let mut count = 0;
        let mut next = self.origins.get(step as usize).map_or(0, |origin| origin.call);
        while let Some(call) = next.checked_sub(1).and_then(|index| self.calls.get(index as usize)) {
            let Some(place) = found.get_mut(count) else { break };
            *place = (call.sub, call.back);
            count += 1;
            next = call.outer;
        }
        found[..count].iter().rev().for_each(|&(sub, back)| each(sub, back));
    }
}

/// True if calls can be inlined without a difference: none would have been nested too deep.
fn may_inline(program: &Program) -> bool {
    if program.subs.len() <= VCL_CALL_DEPTH_MAX {
        return true;
    }
    // Only a program with a subroutine as a value can call one that is not named in the call.
    !program.code.iter().any(|op| matches!(op, Op::Sub(_))) && deepest(program) <= VCL_CALL_DEPTH_MAX
}

/// The longest chain of calls by name; more than any limit if the search takes too long.
fn deepest(program: &Program) -> usize {
    let mut depths = vec![0; program.subs.len()];
    // No subroutine calls itself, so that each round settles at least the next level.
    for _ in 0..=VCL_CALL_DEPTH_MAX {
        let mut is_settled = true;
        for (index, sub) in program.subs.iter().enumerate() {
            let code = &program.code[sub.entry as usize..sub.end as usize];
            let called = code.iter().filter_map(|op| match op {
                Op::Call(callee) => depths.get(*callee as usize).map(|depth| depth + 1),
                _ => None,
            });
            let depth = called.max().unwrap_or(0);
            is_settled &= depths[index] == depth;
            depths[index] = depth;
        }
        if is_settled {
            return depths.into_iter().max().unwrap_or(0);
        }
    }
    usize::MAX
}

/// For each instruction, true if it is reached other than from its predecessor, after branches are
/// redirected to their final targets.
fn targets(program: &Program) -> Vec<bool> {
    let mut is_target = vec![false; program.code.len()];
    for op in &program.code {
        let to = match (op, branch(program, *op)) {
            (Op::Jump(to), _) => *to,
            (_, Some(Branch::Unless(to) | Branch::If(to) | Branch::AndThen(to) | Branch::OrElse(to))) => to,
            _ => continue,
        };
        // Code that verification did not reach may have any target.
        if let Some(mark) = is_target.get_mut(to as usize) {
            *mark = true;
        }
    }
    // A jump to a trace point continues after it.
    for index in 1..is_target.len() {
        is_target[index] |= is_target[index - 1] && matches!(program.code[index - 1], Op::Trace(_));
    }
    is_target
}

/// A branch with its final target.
#[derive(Clone, Copy)]
enum Branch {
    Unless(u32),
    If(u32),
    AndThen(u32),
    OrElse(u32),
}

struct Maker<'a> {
    program: &'a Program,
    inlines: bool,
    is_target: Vec<bool>,
    steps: Steps,
    length_max: usize,
}

impl Maker<'_> {
    /// Generates the steps of a subroutine, whose calls are inlined; an inlined subroutine ends by
    /// continuing after its call.
    fn sub(&mut self, (entry, end): (u32, u32), call: u32, depth: usize) {
        // The step of each instruction, and the steps whose jumps lead to an instruction.
        let mut places = vec![0u32; (end - entry) as usize + 1];
        let mut jumps: Vec<(usize, u32)> = Vec::new();
        let place_of = |places: &[u32], to: u32| {
            to.checked_sub(entry).and_then(|index| places.get(index as usize)).copied().unwrap_or(u32::MAX)
        };
        let mut at = entry;
        while at < end {
            let here = self.steps.code.len();
            let (taken, step) = self.next(at, end);
            for place in &mut places[(at - entry) as usize..(at - entry + taken) as usize] {
                *place = here as u32;
            }
            at += taken;
            let Some(step) = step else { continue };
            let origin = Origin { instruction: at - 1, call };
            match step {
                Step::Plain(Op::Call(callee)) if self.is_short(callee, depth) => {
                    let sub = &self.program.subs[callee as usize];
                    self.steps.calls.push(Call { sub: callee, back: at, outer: call });
                    self.sub((sub.entry, sub.end), self.steps.calls.len() as u32, depth + 1);
                }
                Step::Plain(Op::Leave) if call > 0 => {
                    // After the last instruction, the caller continues.
                    if at < end {
                        jumps.push((here, end));
                        self.put(Step::Plain(Op::Jump(0)), origin);
                    }
                }
                step => {
                    if let Some(to) = target(step) {
                        jumps.push((here, to));
                    }
                    self.put(step, origin);
                }
            }
        }
        places[(end - entry) as usize] = self.steps.code.len() as u32;
        for (step, to) in jumps {
            retarget(&mut self.steps.code[step], place_of(&places, to));
        }
    }

    fn put(&mut self, step: Step, origin: Origin) {
        self.steps.code.push(step);
        self.steps.origins.push(origin);
    }

    /// Bounded in every way, since nothing is known about code that verification did not reach.
    fn is_short(&self, sub: u32, depth: usize) -> bool {
        self.program.subs.get(sub as usize).is_some_and(|sub| {
            self.inlines
                && (sub.end - sub.entry) as usize <= INLINED_INSTRUCTIONS_MAX
                && depth < INLINED_DEPTH_MAX
                && self.steps.code.len().max(self.steps.calls.len()) < self.length_max
        })
    }

    /// The step that begins with an instruction, and the number of instructions it replaces.
    fn next(&self, at: u32, end: u32) -> (u32, Option<Step>) {
        let code = &self.program.code;
        // The next instructions, up to the next jump target.
        let mut ops = [Op::Absent; 5];
        let (mut count, mut to) = (0, at);
        while to < end && count < ops.len() && (to == at || !self.is_target[to as usize]) {
            ops[count] = code[to as usize];
            count += 1;
            to += 1;
        }
        if let Op::Trace(_) = ops[0] {
            return (1, None);
        }
        let (condition, taken) = match ops {
            [Op::HasHeader(http, name), ..] => match u16::try_from(name) {
                Ok(name) => (Some(Condition::HasHeader(http, name)), 1),
                Err(_) => (None, 1),
            },
            [Op::MatchHeader(http, name, regex), ..] => (Some(Condition::MatchHeader(http, name, regex)), 1),
            [Op::Read(var), Op::Text { start, len }, Op::Compare(Comparison::Equal | Comparison::NotEqual), ..]
                if has_bytes(var) && count > 2 =>
            {
                (u16::try_from(len).ok().map(|len| Condition::IsText { var, len, start }), 3)
            }
            [Op::Read(var), Op::Int(number), Op::Compare(Comparison::Equal | Comparison::NotEqual), ..]
                if count > 2 =>
            {
                (i32::try_from(number).ok().map(|number| Condition::IsNumber(var, number)), 3)
            }
            _ => (None, 1),
        };
        if let Some(condition) = condition {
            let mut negated = matches!(ops[taken - 1], Op::Compare(Comparison::NotEqual));
            let mut taken = taken;
            if taken < count && ops[taken] == Op::Not {
                negated = !negated;
                taken += 1;
            }
            let branch = if taken < count { branch(self.program, ops[taken]) } else { None };
            let step = match (branch, negated) {
                (Some(Branch::Unless(to)), false) | (Some(Branch::If(to)), true) => Some(Step::Unless(condition, to)),
                (Some(Branch::If(to)), false) | (Some(Branch::Unless(to)), true) => Some(Step::If(condition, to)),
                (Some(Branch::AndThen(_) | Branch::OrElse(_)) | None, _) => None,
            };
            if let Some(step) = step {
                return (taken as u32 + 1, Some(step));
            }
        }
        let step = match ops {
            [Op::Read(var), Op::HashData(1), ..] if count > 1 && has_bytes(var) => Some((2, Step::HashVariable(var))),
            [Op::ReadHeader(http, name), Op::HashData(1), ..] if count > 1 => Some((2, Step::HashHeader(http, name))),
            [Op::Not, next, ..] if count > 1 => match branch(self.program, next) {
                Some(Branch::Unless(to)) => Some((2, Step::JumpIf(to))),
                Some(Branch::If(to)) => Some((2, Step::Plain(Op::JumpUnless(to)))),
                _ => None,
            },
            _ => None,
        };
        if let Some((taken, step)) = step {
            return (taken, Some(step));
        }
        let step = match branch(self.program, ops[0]) {
            Some(Branch::Unless(to)) => Step::Plain(Op::JumpUnless(to)),
            Some(Branch::If(to)) => Step::JumpIf(to),
            Some(Branch::AndThen(to)) => Step::Plain(Op::AndThen(to)),
            Some(Branch::OrElse(to)) => Step::Plain(Op::OrElse(to)),
            None => Step::Plain(ops[0]),
        };
        (1, Some(step))
    }
}

/// Final target of a branch: a branch that leaves its bool for another branch need not do so, if
/// that is known to take it.
fn branch(program: &Program, op: Op) -> Option<Branch> {
    let mut branch = match op {
        Op::JumpUnless(to) => Branch::Unless(to),
        Op::AndThen(to) => Branch::AndThen(to),
        Op::OrElse(to) => Branch::OrElse(to),
        _ => return None,
    };
    loop {
        let (Branch::AndThen(to) | Branch::OrElse(to)) = branch else { return Some(branch) };
        // Branches lead forward, so this ends; code that verification did not reach is left
        // unchanged.
        let next = match program.code.get(to as usize) {
            Some(Op::JumpUnless(end)) if *end > to => Op::JumpUnless(*end),
            Some(Op::AndThen(end)) if *end > to => Op::AndThen(*end),
            Some(Op::OrElse(end)) if *end > to => Op::OrElse(*end),
            _ => return Some(branch),
        };
        branch = match (branch, next) {
            (Branch::AndThen(_), Op::JumpUnless(end)) => Branch::Unless(end),
            (Branch::AndThen(_), Op::AndThen(end)) => Branch::AndThen(end),
            (Branch::AndThen(_), _) => Branch::Unless(to + 1),
            (_, Op::OrElse(end)) => Branch::OrElse(end),
            (_, _) => Branch::If(to + 1),
        };
    }
}

/// True if a host may have the text of a variable without a copy; such a variable is always set.
fn has_bytes(var: Var) -> bool {
    matches!(var, Var::ReqUrl | Var::ReqMethod | Var::ReqProto | Var::BereqUrl | Var::BereqMethod)
}

fn target(step: Step) -> Option<u32> {
    match step {
        Step::Plain(Op::Jump(to) | Op::JumpUnless(to) | Op::AndThen(to) | Op::OrElse(to))
        | Step::JumpIf(to)
        | Step::Unless(_, to)
        | Step::If(_, to) => Some(to),
        // The last two are generated once all places are known.
        Step::Plain(_)
        | Step::HashVariable(_)
        | Step::HashHeader(..)
        | Step::HashHeaderUnless(..)
        | Step::Shortcut(_) => None,
    }
}

fn retarget(step: &mut Step, place: u32) {
    if let Step::Plain(Op::Jump(to) | Op::JumpUnless(to) | Op::AndThen(to) | Op::OrElse(to))
    | Step::JumpIf(to)
    | Step::Unless(_, to)
    | Step::If(_, to) = step
    {
        *to = place;
    }
}
