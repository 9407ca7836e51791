//! Rules of statements: values that are overwritten (C2), changes that come too late (C6),
//! subroutines in pieces (C8).

use super::finding::Found;
use super::view::{View, expressions_of, statements_of};
use crate::tree::{Block, Declaration, Path, Statement, Sub};
use std::collections::{HashMap, HashSet};
use surface::lint::Rule;

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    for declaration in view.declarations {
        if let Declaration::Sub(sub) = declaration {
            overwritten(view, &sub.body, found);
            statements_of(&sub.body, &mut |statement| match statement {
                Statement::If { branches, otherwise } => {
                    branches.iter().map(|(_, block)| block).chain(otherwise).for_each(|block| {
                        overwritten(view, block, found);
                    });
                }
                Statement::Block(block) => overwritten(view, block, found),
                _ => {}
            });
        }
    }
    repeated(view, found);
    too_late(view, found);
}

/// Finds headers that are set twice in a row of statements without calls and branches.
fn overwritten(view: &View<'_>, block: &Block, found: &mut Found<'_>) {
    let mut set: HashMap<String, &Statement> = HashMap::new();
    for statement in &block.statements {
        for expression in expressions_of(statement) {
            view.paths(expression, &mut |path| {
                let name = view.name(path);
                set.retain(|known, _| !name.starts_with(known.as_str()));
            });
        }
        match statement {
            Statement::Set { target, .. } => {
                let name = view.name(target);
                let is_plain = view.is_sign(target.last() + 1, crate::source::Sign::Assign);
                if !name.contains(".http.") || !is_plain {
                    continue;
                }
                if let Some(before) = set.insert(name, statement) {
                    report_overwritten(before, target, statement, found, view);
                }
            }
            Statement::Unset { target } => {
                set.remove(&view.name(target));
            }
            Statement::HashData { .. } | Statement::Ban { .. } | Statement::Synthetic { .. } => {}
            _ => set.clear(),
        }
    }
}

fn report_overwritten(
    before: &Statement,
    target: &Path,
    statement: &Statement,
    found: &mut Found<'_>,
    view: &View<'_>,
) {
    let place = found.place(statement.first(), target.last());
    let first = before.first();
    let message = "This value is replaced before anything reads it";
    if let Some(finding) = found.add(Rule::Overwritten, first, view.target_end(first), message) {
        finding.related.extend(place.map(|place| ("It is replaced here".to_owned(), place)));
    }
}

/// Finds methods that one file defines more than once.
fn repeated(view: &View<'_>, found: &mut Found<'_>) {
    let mut pieces: Vec<&&Sub> = view.subs.values().flat_map(|pieces| pieces.iter()).collect();
    pieces.sort_by_key(|piece| piece.name.first);
    let mut first: HashMap<(String, u32), &Sub> = HashMap::new();
    for piece in pieces {
        let name = view.word(piece.name.first);
        let source = view.loaded.tokens.get(piece.name.first as usize).map_or(0, |token| token.source);
        let shown = view.shown(piece.name.first);
        if let Some(before) = first.get(&(name.clone(), source)) {
            let place = found.place(before.name.first, before.name.last);
            let message = format!("{shown} is defined before in this file");
            if let Some(finding) = found.add(Rule::SubRepeated, piece.name.first, piece.name.last, message) {
                finding.related.extend(place.map(|place| ("The first definition".to_owned(), place)));
            }
        } else {
            first.insert((name, source), piece);
        }
    }
}

/// Finds changes of bereq after the response, unless the VCL retries or reads the value.
fn too_late(view: &View<'_>, found: &mut Found<'_>) {
    let mut read: HashSet<String> = HashSet::new();
    let mut retries = false;
    view.statements(&mut |_, statement| {
        if let Statement::Return { action, .. } = statement {
            retries |= view.action(action.as_ref()) == "retry";
        }
        for expression in expressions_of(statement) {
            view.paths(expression, &mut |path| {
                read.insert(view.name(path));
            });
        }
    });
    if retries {
        return;
    }
    for method in ["vcl_backend_response", "vcl_backend_error"] {
        for piece in view.subs.get(method).into_iter().flatten() {
            statements_of(&piece.body, &mut |statement| {
                let (Statement::Set { target, .. } | Statement::Unset { target }) = statement else { return };
                let name = view.name(target);
                let is_request = name.starts_with("bereq.http.") || name == "bereq.url" || name == "bereq.method";
                let is_read = read.iter().any(|read| read.starts_with(&name));
                if is_request && !is_read {
                    let message = format!("{name} has been sent already");
                    found.add(Rule::ChangedTooLate, statement.first(), target.last(), message);
                }
            });
        }
    }
}
