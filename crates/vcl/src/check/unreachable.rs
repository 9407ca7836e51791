//! Warnings about statements after a return, and pieces of a method after one that always returns.
//!
//! A warning, never an error: the VCL is valid. A call counts as a return if the subroutine returns
//! an action on every path. The built-in pieces of methods are meant to be skipped by a return, so
//! they are never reported.

use super::{Checker, Meaning};
use crate::tree::{At, Block, ExpressionKind, Statement};
use surface::diagnostic::Code;

impl Checker<'_> {
    /// Warns about unreachable statements. There must be no recursion.
    pub(super) fn unreachable(&mut self) {
        let returning = self.returning();
        for index in 0..self.subs.len() {
            let mut ended = false;
            for piece in self.subs[index].pieces.clone() {
                if piece.name.first >= self.loaded.builtin {
                    break;
                }
                if ended {
                    self.never(piece.name.first, "This part of the subroutine is never reached:");
                    break;
                }
                self.look(&piece.body, &returning);
                ended = self.ends(&piece.body, &returning);
            }
        }
    }

    /// For each subroutine, true if it returns an action on every path: called subroutines first,
    /// then their callers.
    fn returning(&self) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; self.subs.len()];
        let mut returning = vec![false; self.subs.len()];
        for start in 0..self.subs.len() {
            let mut path = vec![(start, 0usize)];
            while let Some((sub, next)) = path.pop() {
                if known[sub].is_some() {
                    continue;
                }
                if let Some(&(callee, _)) = self.subs[sub].calls.get(next) {
                    path.push((sub, next + 1));
                    path.push((callee as usize, 0));
                    continue;
                }
                let pieces = &self.subs[sub].pieces;
                let returns = !pieces.iter().any(|piece| leaves(&piece.body))
                    && pieces.iter().any(|piece| self.ends(&piece.body, &returning));
                known[sub] = Some(returns);
                returning[sub] = returns;
            }
        }
        returning
    }

    fn never(&mut self, place: At, text: &str) {
        let draft = self.draft_at(Code::Unreachable, text, place);
        self.warning(place, draft.hint("every way to it ends in a return before"));
    }

    /// Reports the first unreachable statement of each block.
    fn look(&mut self, block: &Block, returning: &[bool]) {
        let mut ended = false;
        for statement in &block.statements {
            if ended {
                self.never(statement.first(), "This statement is never reached:");
                return;
            }
            match statement {
                Statement::If { branches, otherwise } => {
                    branches.iter().for_each(|(_, block)| self.look(block, returning));
                    otherwise.iter().for_each(|block| self.look(block, returning));
                }
                Statement::Block(block) => self.look(block, returning),
                _ => {}
            }
            ended = self.statement_ends(statement, returning);
        }
    }

    fn ends(&self, block: &Block, returning: &[bool]) -> bool {
        block.statements.iter().any(|statement| self.statement_ends(statement, returning))
    }

    fn statement_ends(&self, statement: &Statement, returning: &[bool]) -> bool {
        match statement {
            Statement::Return { .. } | Statement::Error { .. } => true,
            Statement::If { branches, otherwise: Some(otherwise) } => {
                branches.iter().all(|(_, block)| self.ends(block, returning)) && self.ends(otherwise, returning)
            }
            Statement::Block(block) => self.ends(block, returning),
            Statement::Call { callee } => match &callee.kind {
                ExpressionKind::Path(path) if path.segments.len() == 1 => {
                    match self.symbols.get(&self.key(self.text(path.first()), &["sub"])).map(|symbol| symbol.meaning) {
                        Some(Meaning::Sub(sub)) => returning[sub as usize],
                        _ => false,
                    }
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// True if the block contains a `return;` without an action.
fn leaves(block: &Block) -> bool {
    block.statements.iter().any(|statement| match statement {
        Statement::Return { action, .. } => action.is_none(),
        Statement::If { branches, otherwise } => {
            branches.iter().any(|(_, block)| leaves(block)) || otherwise.as_ref().is_some_and(leaves)
        }
        Statement::Block(block) => leaves(block),
        _ => false,
    })
}
