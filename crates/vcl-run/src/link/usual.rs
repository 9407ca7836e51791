//! Usual requests: properties common to most requests, and their path through a row of branches.
//!
//! Most conditions of the built-in VCL test if a request is a GET with a Host in small letters,
//! without Authorization and Cookie; so do many VCLs of users. The host of a program can answer
//! that at once ([`crate::host::Host::is_usual`]). Branches that follow from it, and those in
//! between that make no difference, are then skipped. *Invariants:* skipped code changes nothing
//! and cannot fail; jumps lead forward, so that every walk ends.

use super::step::{Condition, Step};
use crate::program::{Op, Program};
use crate::regex::Regex;
use surface::vcl::{HttpObject, Var};

/// Most nested branches that a walk examines.
const DEPTH_MAX: usize = 8;

/// The tables that conditions refer to.
pub(super) struct Facts<'a> {
    pub(super) program: &'a Program,
    pub(super) constants: &'a [u8],
    pub(super) regexes: &'a [Regex],
}

impl Facts<'_> {
    /// The step that a usual request reaches from a step without any effect, and the number of
    /// branches on the way.
    pub(super) fn walk(&self, code: &[Step], from: usize) -> (usize, usize) {
        self.walk_until(code, from, code.len(), 0)
    }

    fn walk_until(&self, code: &[Step], from: usize, until: usize, depth: usize) -> (usize, usize) {
        let (mut at, mut passed) = (from, 0);
        while at < until {
            let (condition, jumps_if, to) = match code[at] {
                Step::If(condition, to) => (condition, true, to as usize),
                Step::Unless(condition, to) => (condition, false, to as usize),
                Step::Plain(Op::Jump(to)) if to as usize > at => {
                    at = to as usize;
                    continue;
                }
                _ => break,
            };
            // Code that verification did not reach may have any target.
            if to <= at {
                break;
            }
            at = match self.holds(condition) {
                Some(holds) if holds == jumps_if => to,
                Some(_) => at + 1,
                None if is_harmless(condition) && depth < DEPTH_MAX => {
                    let (end, inside) = self.walk_until(code, at + 1, to, depth + 1);
                    if end != to {
                        break;
                    }
                    passed += inside;
                    to
                }
                None => break,
            };
            passed += 1;
        }
        (at, passed)
    }

    /// True if it holds for a usual request; `None` if that is undetermined.
    fn holds(&self, condition: Condition) -> Option<bool> {
        let is_name = |index: u16, name: &str| {
            self.program.headers.get(usize::from(index)).is_some_and(|header| header.eq_ignore_ascii_case(name))
        };
        match condition {
            Condition::HasHeader(HttpObject::Req, name) if is_name(name, "Host") => Some(true),
            Condition::HasHeader(HttpObject::Req, name) => {
                (is_name(name, "Authorization") || is_name(name, "Cookie")).then_some(false)
            }
            Condition::MatchHeader(HttpObject::Req, name, regex) => {
                let is_capital = self.regexes.get(regex as usize).is_some_and(Regex::is_capital);
                (is_name(name, "Host") && is_capital).then_some(false)
            }
            Condition::IsText { var: Var::ReqMethod, len, start } => {
                let text = self.constants.get(start as usize..start as usize + usize::from(len))?;
                Some(text == b"GET")
            }
            Condition::HasHeader(..)
            | Condition::MatchHeader(..)
            | Condition::IsText { .. }
            | Condition::IsNumber(..) => None,
        }
    }
}

/// True if evaluating it changes nothing and cannot fail.
fn is_harmless(condition: Condition) -> bool {
    match condition {
        Condition::HasHeader(..) => true,
        Condition::IsText { var, .. } => matches!(var, Var::ReqUrl | Var::ReqMethod | Var::ReqProto),
        Condition::IsNumber(var, _) => matches!(var, Var::ReqEsiLevel | Var::ReqRestarts),
        Condition::MatchHeader(..) => false,
    }
}
