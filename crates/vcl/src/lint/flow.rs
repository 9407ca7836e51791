//! Walks of all paths through a method of the VCL, with a few facts for each path.
//!
//! The facts of a path are bits: those of [`State::must`] hold on every path to a point, those of
//! [`State::may`] on at least one. Calls are followed into the subroutines; the number of steps is
//! limited, since calls of calls multiply. Beyond the limit the rest of the method is not looked
//! at, so that findings may be missing but none is wrong.

use super::view::View;
use crate::tree::{At, Block, Expression, ExpressionKind, Statement};
use surface::limits::{VCL_CALL_DEPTH_MAX, VCL_LINT_STEPS_MAX};

/// The facts on the paths to one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Facts of every path.
    pub(super) must: u32,
    /// Facts of at least one path.
    pub(super) may: u32,
    /// A statement that the fact of this number in `may` is about.
    pub(super) places: [At; 2],
}

impl State {
    pub(super) fn has(&self, facts: u32) -> bool {
        self.must & facts == facts
    }

    fn join(self, other: State) -> State {
        let place = |index: usize| if self.places[index] == 0 { other.places[index] } else { self.places[index] };
        State { must: self.must & other.must, may: self.may | other.may, places: [place(0), place(1)] }
    }
}

/// A rule that follows the paths.
pub(super) trait Watch {
    /// A condition is evaluated; what it sets holds in all branches and after them.
    fn condition(&mut self, view: &View<'_>, condition: &Expression, state: &mut State);

    /// A branch begins, after its condition; what it sets holds at its end only if it holds on all
    /// paths.
    fn branch(&mut self, _view: &View<'_>, _condition: &Expression, _block: &Block, _state: &mut State) {}

    /// A statement other than a condition, a block or a return is executed.
    fn statement(&mut self, view: &View<'_>, statement: &Statement, state: &mut State);

    /// A path ends in this action; an empty one: the built-in VCL continues.
    fn end(&mut self, view: &View<'_>, action: &str, at: At, state: &State);
}

/// Walks a method. Does nothing if the VCL does not extend it.
pub(super) fn walk(view: &View<'_>, method: &str, watch: &mut dyn Watch) {
    let Some(pieces) = view.subs.get(method) else { return };
    let mut walker = Walker { view, watch, steps: 0, depth: 0 };
    let mut state = Some(State::default());
    let mut last = 0;
    for piece in pieces {
        let Some(before) = state else { return };
        last = piece.name.first;
        state = walker.sub(&piece.body, before);
    }
    if let Some(state) = state.filter(|_| !walker.is_over()) {
        walker.watch.end(view, "", last, &state);
    }
}

struct Walker<'v, 'w> {
    view: &'v View<'v>,
    watch: &'w mut dyn Watch,
    steps: usize,
    depth: usize,
}

impl Walker<'_, '_> {
    fn is_over(&self) -> bool {
        self.steps > VCL_LINT_STEPS_MAX
    }

    /// The body of a subroutine: a `return;` ends it like its last statement.
    fn sub(&mut self, body: &Block, state: State) -> Option<State> {
        let mut left = None;
        let end = self.block(body, state, &mut left);
        joined(end, left)
    }

    /// The state after a block; `None` if every path has ended. `left` collects the states at
    /// returns to the caller.
    fn block(&mut self, block: &Block, mut state: State, left: &mut Option<State>) -> Option<State> {
        for statement in &block.statements {
            self.steps += 1;
            if self.is_over() {
                return None;
            }
            state = self.statement(statement, state, left)?;
        }
        Some(state)
    }

    fn statement(&mut self, statement: &Statement, mut state: State, left: &mut Option<State>) -> Option<State> {
        match statement {
            Statement::If { branches, otherwise } => {
                let mut after = None;
                for (condition, block) in branches {
                    self.watch.condition(self.view, condition, &mut state);
                    let mut inner = state;
                    self.watch.branch(self.view, condition, block, &mut inner);
                    after = joined(after, self.block(block, inner, left));
                }
                let rest = match otherwise {
                    Some(block) => self.block(block, state, left),
                    None => Some(state),
                };
                joined(after, rest)
            }
            Statement::Block(block) => self.block(block, state, left),
            Statement::Return { keyword, action: None } if self.view.word(*keyword) == "return" => {
                *left = joined(*left, Some(state));
                None
            }
            Statement::Return { keyword, action } => {
                let name = match action {
                    Some(action) => self.view.action(Some(action)),
                    None => self.view.word(*keyword),
                };
                self.watch.end(self.view, &name, *keyword, &state);
                None
            }
            Statement::Error { keyword, .. } => {
                self.watch.end(self.view, "error", *keyword, &state);
                None
            }
            Statement::Call { callee } => self.call(callee, state),
            Statement::Set { .. }
            | Statement::Unset { .. }
            | Statement::New { .. }
            | Statement::Ban { .. }
            | Statement::HashData { .. }
            | Statement::Synthetic { .. }
            | Statement::Purge { .. }
            | Statement::OldBan { .. }
            | Statement::Esi { .. }
            | Statement::Rollback { .. }
            | Statement::Log { .. }
            | Statement::Panic { .. }
            | Statement::Use { .. } => {
                self.watch.statement(self.view, statement, &mut state);
                Some(state)
            }
        }
    }

    /// Follows a call. A subroutine of the built-in VCL changes nothing that a rule looks for.
    fn call(&mut self, callee: &Expression, state: State) -> Option<State> {
        let ExpressionKind::Path(path) = &callee.kind else { return Some(state) };
        let Some(pieces) = self.view.subs.get(&self.view.name(path)).filter(|_| self.depth < VCL_CALL_DEPTH_MAX) else {
            return Some(state);
        };
        self.depth += 1;
        let mut state = Some(state);
        for piece in pieces {
            state = state.and_then(|state| self.sub(&piece.body, state));
        }
        self.depth -= 1;
        state
    }
}

fn joined(a: Option<State>, b: Option<State>) -> Option<State> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.join(b)),
        (a, b) => a.or(b),
    }
}
