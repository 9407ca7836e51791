//! What most requests have in common, and where they get to in a row of branches.
//!
//! Most of what the built-in VCL asks is whether a request is a GET with a Host in small letters, without Authorization and Cookie;
//! so do many VCLs of users. Whoever runs a program can answer that at once ([`crate::host::Host::is_usual`]). Branches that
//! follow from it, and such in between that make no difference, are then passed by. *Invariants:* what is passed by changes
//! nothing and cannot fail; jumps lead forward, so that every walk ends.

use super::steps::{Condition, Step};
use crate::program::{Op, Program};
use crate::regex::Regex;
use surface::vcl::{HttpObject, Var};

/// Most branches inside of one another that a walk looks into.
const DEPTH_MAX: usize = 8;

/// The tables that conditions refer to.
pub(super) struct Facts<'a> {
    pub(super) program: &'a Program,
    pub(super) constants: &'a [u8],
    pub(super) regexes: &'a [Regex],
}

impl Facts<'_> {
    /// The step where a usual request gets to from a step without doing anything, and how many branches that takes.
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
            // What verification did not reach may lead anywhere.
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

    /// Whether it holds for a usual request; `None` when that may be so or not.
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

/// Whether asking for it changes nothing and cannot fail.
fn is_harmless(condition: Condition) -> bool {
    match condition {
        Condition::HasHeader(..) => true,
        Condition::IsText { var, .. } => matches!(var, Var::ReqUrl | Var::ReqMethod | Var::ReqProto),
        Condition::IsNumber(var, _) => matches!(var, Var::ReqEsiLevel | Var::ReqRestarts),
        Condition::MatchHeader(..) => false,
    }
}
