//! One step of the evaluator, and the conditions of branches.

use crate::program::Op;
use surface::vcl::{HttpObject, Var};

/// Condition of a branch, without the value stack.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Condition {
    /// There is a header of that name.
    HasHeader(HttpObject, u16),
    /// The header with that name, empty if there is none, matches.
    MatchHeader(HttpObject, u16, u32),
    /// The variable is this constant.
    IsText { var: Var, len: u16, start: u32 },
    /// The variable is this number.
    IsNumber(Var, i32),
}

/// A step of the evaluator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Step {
    /// An instruction; its jumps lead to steps.
    Plain(Op),
    /// Takes a bool and jumps if it is true.
    JumpIf(u32),
    /// Jumps unless it holds.
    Unless(Condition, u32),
    /// Jumps if it holds.
    If(Condition, u32),
    /// Hashes a variable, as a separate `hash_data`.
    HashVariable(Var),
    /// Hashes a header, as a separate `hash_data`.
    HashHeader(HttpObject, u32),
    /// If there is such a header, does the same as the next step, which hashes it, and continues
    /// after that; else jumps.
    HashHeaderUnless(HttpObject, u16, u32),
    /// If the request is a usual one (`usual.rs`), jumps to the target of the shortcut; else
    /// executes the replaced branch. An index into `Steps::shortcuts`.
    Shortcut(u32),
}
