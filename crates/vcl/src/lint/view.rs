//! The tree as the rules read it: names in lower case, constant texts, mentions.

use crate::load::Loaded;
use crate::source::{Kind, Sign};
use crate::tree::{
    Arguments, At, Block, Declaration, Expression, ExpressionKind, Path, ReturnAction, Segment, Statement, Sub,
};
use std::collections::{HashMap, HashSet};
use surface::quantity::seconds_in;

/// A VCL without its built-in part.
pub(super) struct View<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) declarations: &'a [Declaration],
    /// The pieces of each subroutine, by name in lower case.
    pub(super) subs: HashMap<String, Vec<&'a Sub>>,
    acls: HashSet<String>,
    /// Variables that some statement sets or unsets.
    written: HashSet<String>,
    /// Names of headers that some statement sets, on any object.
    headers_set: HashSet<String>,
}

impl<'a> View<'a> {
    pub(super) fn new(loaded: &'a Loaded, declarations: &'a [Declaration]) -> View<'a> {
        let mut view = View {
            loaded,
            declarations,
            subs: HashMap::new(),
            acls: HashSet::new(),
            written: HashSet::new(),
            headers_set: HashSet::new(),
        };
        for declaration in declarations {
            match declaration {
                Declaration::Sub(sub) => view.subs.entry(view.word(sub.name.first)).or_default().push(sub),
                Declaration::Acl(acl) => {
                    view.acls.insert(view.word(acl.name.first));
                }
                _ => {}
            }
        }
        let (mut written, mut headers_set) = (HashSet::new(), HashSet::new());
        view.statements(&mut |_, statement| {
            let (Statement::Set { target, .. } | Statement::Unset { target }) = statement else { return };
            let name = view.name(target);
            if let (Statement::Set { .. }, Some((_, header))) = (statement, name.split_once(".http.")) {
                headers_set.insert(header.to_owned());
            }
            written.insert(name);
        });
        (view.written, view.headers_set) = (written, headers_set);
        view
    }

    /// A token in lower case.
    pub(super) fn word(&self, at: At) -> String {
        self.shown(at).to_ascii_lowercase()
    }

    /// A token as written.
    pub(super) fn shown(&self, at: At) -> &'a str {
        self.loaded.tokens.get(at as usize).map_or("", |&token| self.loaded.sources.text(token))
    }

    pub(super) fn is_sign(&self, at: At, sign: Sign) -> bool {
        self.loaded.tokens.get(at as usize).is_some_and(|token| token.is(sign))
    }

    /// The words of a path with dots between them, in lower case and without arguments.
    pub(super) fn name(&self, path: &Path) -> String {
        self.name_of(&path.segments)
    }

    fn name_of(&self, segments: &[Segment]) -> String {
        let words: Vec<String> = segments.iter().map(|segment| self.word(segment.name)).collect();
        words.join(".")
    }

    /// The last token of the variable that a `set` or `unset` at this token names.
    pub(super) fn target_end(&self, keyword: At) -> At {
        let mut end = keyword + 1;
        while self.is_sign(end + 1, Sign::Dot) {
            end += 2;
        }
        end
    }

    /// True for the name of an ACL.
    pub(super) fn is_acl(&self, expression: &Expression) -> bool {
        match &bare(expression).kind {
            ExpressionKind::Path(path) => path.segments.len() == 1 && self.acls.contains(&self.name(path)),
            _ => false,
        }
    }

    /// True if some statement sets or unsets this variable.
    pub(super) fn is_written(&self, name: &str) -> bool {
        self.written.contains(name)
    }

    /// True if some statement sets a header of this name (in lower case), on any object.
    pub(super) fn sets_header(&self, name: &str) -> bool {
        self.headers_set.contains(name)
    }

    /// The value of a constant string.
    pub(super) fn constant(&self, expression: &Expression) -> Option<String> {
        match &bare(expression).kind {
            ExpressionKind::Text => {
                let token = *self.loaded.tokens.get(expression_token(expression) as usize)?;
                (token.kind == Kind::Text)
                    .then(|| String::from_utf8_lossy(self.loaded.sources.content(token)).into_owned())
            }
            _ => None,
        }
    }

    /// A constant number, a duration in seconds.
    pub(super) fn number(&self, expression: &Expression) -> Option<f64> {
        match &bare(expression).kind {
            ExpressionKind::Number(unit) => {
                let number: f64 = self.shown(expression_token(expression)).parse().ok()?;
                let factor = unit.map_or(Some(1.0), |unit| seconds_in(&self.word(unit)))?;
                Some(number * factor)
            }
            _ => None,
        }
    }

    /// A duration of two tokens, the number and the unit, in seconds.
    pub(super) fn seconds(&self, number: At) -> Option<f64> {
        let value: f64 = self.shown(number).parse().ok()?;
        Some(value * seconds_in(&self.word(number + 1))?)
    }

    /// Every path of an expression, those in arguments included.
    pub(super) fn paths<'e>(&self, expression: &'e Expression, visit: &mut dyn FnMut(&'e Path)) {
        self.parts(expression, &mut |part| {
            if let ExpressionKind::Path(path) = &part.kind {
                visit(path);
            }
        });
    }

    /// Every part of an expression, outer ones first. The depth is that of the brackets in the
    /// text, which the parser bounds.
    pub(super) fn parts<'e>(&self, expression: &'e Expression, visit: &mut dyn FnMut(&'e Expression)) {
        visit(expression);
        match &expression.kind {
            ExpressionKind::Or(all) | ExpressionKind::And(all) | ExpressionKind::Juxtaposed(all) => {
                all.iter().for_each(|part| self.parts(part, visit));
            }
            ExpressionKind::Not(inner) | ExpressionKind::Negate(inner) | ExpressionKind::Group(inner) => {
                self.parts(inner, visit);
            }
            ExpressionKind::Compare(pair, _) => {
                self.parts(&pair.0, visit);
                self.parts(&pair.1, visit);
            }
            ExpressionKind::Sum(first, rest) | ExpressionKind::Product(first, rest) => {
                self.parts(first, visit);
                rest.iter().for_each(|(_, part)| self.parts(part, visit));
            }
            ExpressionKind::Path(path) => self.segments(&path.segments, visit),
            ExpressionKind::Member(inner, segments) => {
                self.parts(inner, visit);
                self.segments(segments, visit);
            }
            ExpressionKind::Text
            | ExpressionKind::Number(_)
            | ExpressionKind::Blob
            | ExpressionKind::Unexpected
            | ExpressionKind::Broken => {}
        }
    }

    fn segments<'e>(&self, segments: &'e [Segment], visit: &mut dyn FnMut(&'e Expression)) {
        for arguments in segments.iter().filter_map(|segment| segment.arguments.as_ref()) {
            arguments.items.iter().for_each(|argument| self.parts(&argument.value, visit));
        }
    }

    /// True if an expression reads a variable, or a method of it such as `.lower()`.
    pub(super) fn mentions(&self, expression: &Expression, names: &[&str]) -> bool {
        let mut found = false;
        self.paths(expression, &mut |path| found |= self.is_one_of(path, names));
        found
    }

    /// True if a path is one of these variables, or a method of one.
    pub(super) fn is_one_of(&self, path: &Path, names: &[&str]) -> bool {
        let name = self.name(path);
        names
            .iter()
            .any(|wanted| name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }

    /// Every statement with the piece of the subroutine that contains it; outer statements first.
    pub(super) fn statements(&self, visit: &mut dyn FnMut(&'a Sub, &'a Statement)) {
        for declaration in self.declarations {
            if let Declaration::Sub(sub) = declaration {
                statements_of(&sub.body, &mut |statement| visit(sub, statement));
            }
        }
    }

    /// Every expression of the VCL.
    pub(super) fn expressions(&self, visit: &mut dyn FnMut(&'a Statement, &'a Expression)) {
        self.statements(&mut |_, statement| {
            for expression in expressions_of(statement) {
                self.parts(expression, &mut |part| visit(statement, part));
            }
        });
    }

    /// The action of a return, in lower case.
    pub(super) fn action(&self, action: Option<&ReturnAction>) -> String {
        action.map_or_else(String::new, |action| self.word(action.name))
    }
}

/// An expression without the parentheses around it.
pub(super) fn bare(expression: &Expression) -> &Expression {
    match &expression.kind {
        ExpressionKind::Group(inner) => bare(inner),
        _ => expression,
    }
}

/// The first token of an expression, without the parentheses around it.
fn expression_token(expression: &Expression) -> At {
    bare(expression).first
}

/// Every statement of a block and of the blocks in it.
pub(super) fn statements_of<'b>(block: &'b Block, visit: &mut dyn FnMut(&'b Statement)) {
    for statement in &block.statements {
        visit(statement);
        match statement {
            Statement::If { branches, otherwise } => {
                branches.iter().for_each(|(_, block)| statements_of(block, visit));
                otherwise.iter().for_each(|block| statements_of(block, visit));
            }
            Statement::Block(block) => statements_of(block, visit),
            _ => {}
        }
    }
}

fn of_arguments<'s>(arguments: Option<&'s Arguments>, found: &mut Vec<&'s Expression>) {
    found.extend(arguments.iter().flat_map(|arguments| &arguments.items).map(|argument| &argument.value));
}

/// The expressions of a statement itself, without those of the blocks in it.
pub(super) fn expressions_of(statement: &Statement) -> Vec<&Expression> {
    let mut found = Vec::new();
    match statement {
        Statement::Set { value, .. }
        | Statement::Ban { value }
        | Statement::HashData { value, .. }
        | Statement::Synthetic { value, .. }
        | Statement::OldBan { value, .. }
        | Statement::Log { value, .. }
        | Statement::Panic { value, .. } => found.push(value),
        Statement::Call { callee } => found.push(callee),
        Statement::Return { action, .. } => {
            of_arguments(action.as_ref().and_then(|action| action.arguments.as_ref()), &mut found);
        }
        Statement::If { branches, .. } => found.extend(branches.iter().map(|(condition, _)| condition)),
        Statement::New { class: path, .. } | Statement::Use { path, .. } => {
            path.segments.iter().for_each(|segment| of_arguments(segment.arguments.as_ref(), &mut found));
        }
        Statement::Error { status, reason, .. } => found.extend(status.iter().chain(reason)),
        Statement::Unset { .. }
        | Statement::Purge { .. }
        | Statement::Esi { .. }
        | Statement::Rollback { .. }
        | Statement::Block(_) => {}
    }
    found
}
