//! The graph of calls: everything that a method reaches must be available in it, and no subroutine
//! may reach itself.

use super::{Checker, Sub, UseKind};
use crate::diagnostic::Draft;
use crate::tree::At;
use std::collections::HashSet;
use surface::diagnostic::Code;
use surface::vcl::{Action, Generation, METHODS, MethodRow, at};

impl Checker<'_> {
    pub(super) fn flow(&mut self) {
        if self.recursion() {
            return;
        }
        self.unreachable();
        self.available_at();
        let mut rows: Vec<&MethodRow> = METHODS.iter().collect();
        rows.sort_by_key(|row| row.name);
        let mut said = HashSet::new();
        for row in rows {
            self.reach(row, &mut said);
        }
        if self.dialect.language.is_none() {
            self.retired_returns();
        }
        self.read_only_unreached(&said);
    }

    /// Warns about actions of the first releases of VCL 4: one warning, at the first place.
    fn retired_returns(&mut self) {
        for row in METHODS.iter().filter(|row| !row.retired_actions.is_empty()) {
            let mut reached = vec![row.method as usize];
            let mut next = 0;
            let mut places: Vec<At> = Vec::new();
            while let Some(&sub) = reached.get(next) {
                next += 1;
                let sub = &self.subs[sub];
                let retired =
                    |action: Option<Action>| action.is_some_and(|action| row.retired_actions.contains(&action));
                places.extend(sub.returns.iter().filter(|(action, _)| retired(*action)).map(|&(_, place)| place));
                for &(callee, _) in &sub.calls {
                    if !reached.contains(&(callee as usize)) {
                        reached.push(callee as usize);
                    }
                }
            }
            let Some(&first) = places.iter().min() else { continue };
            let text = format!(
                "return ({}) in {} is of the first releases of VCL 4: the object is fetched and replaced.\nat",
                self.text(first),
                row.name
            );
            let draft = self.draft_at(Code::RetiredReturn, &text, first);
            let hint = "copal vcl migrate writes: set req.hash_always_miss = true; return (restart);";
            self.warning(first, draft.hint(hint));
        }
    }

    /// Reports variables set although they are read-only, in subroutines that no method reaches.
    fn read_only_unreached(&mut self, said: &HashSet<At>) {
        let uses = self.subs.iter().flat_map(|sub| &sub.uses);
        let left = uses.filter(|used| used.what == UseKind::ReadOnly && !said.contains(&used.first));
        let places: Vec<(At, At)> = left.map(|used| (used.first, used.last)).collect();
        for (first, last) in places {
            let what = UseKind::ReadOnly;
            let text = format!("\n{}\n", what.text());
            self.error(first, Draft::new(what.code()).between(self.token(first), self.token(last)).text(text));
        }
    }

    /// Reports subroutines that call themselves, directly or through others.
    fn recursion(&mut self) -> bool {
        let mut done = vec![false; self.subs.len()];
        let mut open = vec![false; self.subs.len()];
        let mut found = false;
        // Compat: which of them is named first follows from their names.
        let mut starts: Vec<usize> = (0..self.subs.len()).collect();
        starts.sort_by_key(|&sub| self.subs[sub].name.to_ascii_lowercase());
        for start in starts {
            if done[start] {
                continue;
            }
            // The calls that lead from `start` to the current subroutine; each is entered once.
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            open[start] = true;
            while let Some(step) = path.last_mut() {
                let sub = step.0;
                let Some(&(callee, _)) = self.subs[sub].calls.get(step.1) else {
                    open[sub] = false;
                    done[sub] = true;
                    path.pop();
                    continue;
                };
                step.1 += 1;
                let callee = callee as usize;
                if open[callee] {
                    let from = path.iter().position(|&(sub, _)| sub == callee).unwrap_or(0);
                    let text = self.cycle(&path[from..]);
                    self.error(self.subs[callee].defined, text);
                    found = true;
                } else if !done[callee] {
                    open[callee] = true;
                    path.push((callee, 0));
                }
            }
        }
        found
    }

    fn cycle(&self, path: &[(usize, usize)]) -> Draft {
        let first = path[0].0;
        let mut draft = self.draft_at(Code::Recursion, "Subroutine recurses on", self.subs[first].defined);
        for &(sub, next) in path.iter().rev() {
            let sub = &self.subs[sub];
            let call = sub.calls[next - 1].1;
            draft = draft.text(format!("\n\n...called from \"{}\"\n", sub.name)).at(self.token(call));
        }
        draft
    }

    /// Determines where each subroutine may run, starting with those that call no others.
    fn available_at(&mut self) {
        let mut known: Vec<Option<u16>> = vec![None; self.subs.len()];
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
                let entry = &self.subs[sub];
                let mut mask = entry.uses.iter().fold(at::ALL, |mask, used| mask & used.at);
                for row in METHODS {
                    if entry.returns.iter().any(|&(action, _)| !self.may_end(entry, row, action)) {
                        mask &= !row.bit;
                    }
                }
                if self.dialect.language.is_some() {
                    mask &= entry.method.or(entry.under).map_or(at::ALL, |method| method.row().bit);
                }
                for &(callee, _) in &entry.calls {
                    mask &= known[callee as usize].unwrap_or(0);
                }
                known[sub] = Some(mask);
            }
        }
        for (sub, mask) in self.subs.iter_mut().zip(known) {
            sub.at = mask.unwrap_or(0);
        }
    }

    /// True if an action returned by a subroutine may end a method.
    fn may_end(&self, sub: &Sub<'_>, row: &MethodRow, action: Option<Action>) -> bool {
        match self.dialect.language {
            None => action.is_some_and(|action| row.allows(action, Generation::V4)),
            // Each subroutine was lowered separately for each method.
            Some(_) => action.is_some() && sub.method.or(sub.under) == Some(row.method),
        }
    }

    /// Checks everything that a method reaches. A place that was reported for one method is not
    /// reported again for another.
    fn reach(&mut self, row: &'static MethodRow, said: &mut HashSet<At>) {
        let start = row.method as usize;
        if self.subs[start].at & row.bit != 0 {
            return;
        }
        // The call that led to each sub, for the chain in the message.
        let mut reached_by: Vec<Option<(usize, At)>> = vec![None; self.subs.len()];
        let mut seen = vec![false; self.subs.len()];
        seen[start] = true;
        let mut queue = vec![start];
        let mut errors: Vec<(At, Draft)> = Vec::new();
        while let Some(sub) = queue.pop() {
            let entry = &self.subs[sub];
            for &(action, place) in &entry.returns {
                if !self.may_end(entry, row, action) && said.insert(place) {
                    let names = self.dialect.endings(row.method);
                    let text = format!("Invalid return \"{}\"", self.text(place));
                    let draft = self.draft_at(Code::InvalidReturn, &text, place).text("\n\n");
                    let draft = self.chain(self.in_subroutine(draft, sub), sub, &reached_by, row);
                    let draft = draft.text(format!("Legal returns are: \"{}\"\n", names.join("\" \"")));
                    errors.push((
                        place,
                        draft.hint(format!("{} can return {}", self.dialect.method_name(row.method), names.join(", "))),
                    ));
                }
            }
            for used in &entry.uses {
                // In the method itself it has already been reported.
                let indirect = sub != start || used.what == UseKind::Action && entry.method.is_none();
                if used.at & row.bit == 0 && indirect && said.insert(used.first) {
                    let (first, last) = (self.token(used.first), self.token(used.last));
                    let draft = Draft::new(used.what.code()).between(first, last);
                    let draft = if used.what == UseKind::ReadOnly {
                        draft.text(format!("\n{}\n\n", used.what.text()))
                    } else {
                        let name = self.dialect.method_name(row.method);
                        let draft = draft.text(format!("\n{} from subroutine '{name}'.\n\n", used.what.text()));
                        self.in_subroutine(draft, sub).maybe_hint(self.available_hint(used.at))
                    };
                    errors.push((used.first, self.chain(draft, sub, &reached_by, row)));
                }
            }
            for &(callee, place) in &entry.calls {
                let callee = callee as usize;
                if !seen[callee] {
                    seen[callee] = true;
                    reached_by[callee] = Some((sub, place));
                    queue.push(callee);
                }
            }
        }
        for (place, draft) in errors {
            self.error(place, draft);
        }
    }

    fn in_subroutine(&self, draft: Draft, sub: usize) -> Draft {
        let entry = &self.subs[sub];
        let words = format!("...in subroutine \"{}\"\n", entry.name);
        draft.text(words).at(self.token(entry.defined)).text("\n\n")
    }

    /// Adds the calls by which a method reached a subroutine.
    fn chain(&self, draft: Draft, sub: usize, reached_by: &[Option<(usize, At)>], row: &MethodRow) -> Draft {
        let mut draft = draft;
        let mut here = sub;
        while let Some((caller, place)) = reached_by[here] {
            let words = format!("...called from \"{}\"\n", self.subs[caller].name);
            draft = draft.text(words).at(self.token(place)).text("\n\n");
            here = caller;
        }
        draft.text(format!("...which is the \"{}\" subroutine\n", self.dialect.method_name(row.method)))
    }
}
