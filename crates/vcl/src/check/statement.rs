//! Statements to instructions.

use super::variable::Variable;
use super::{Checked, Checker, Meaning, Reported, UseKind, nearest};
use crate::diagnostic::hint;
use crate::source::Sign;
use crate::tree::{At, Block, Expression, ExpressionKind, Name, Path, ReturnAction, Segment, Statement};
use surface::vcl::{Action, Type, at};
use vcl_run::program::{Arithmetic, Op, Point};

impl Checker<'_> {
    /// Lowers every subroutine, methods first.
    pub(super) fn lower(&mut self) {
        for index in 0..self.subs.len() {
            self.current = index;
            self.subs[index].entry = self.emitter.here();
            for piece in self.subs[index].pieces.clone() {
                self.block(&piece.body);
            }
            match self.subs[index].method {
                // The built-in piece ends every method; this is for the verifier alone.
                Some(_) => self.emitter.op(Op::Return(Action::Fail)),
                None => self.emitter.op(Op::Leave),
            }
            self.subs[index].end = self.emitter.here();
        }
    }

    fn block(&mut self, block: &Block) {
        if block.statements.is_empty() {
            return;
        }
        let token = self.token(block.open);
        let (line, position) = self.loaded.sources.place(token);
        self.emitter.points.push(Point { source: token.source, line, position });
        let point = self.emitter.points.len() as u32 - 1;
        self.emitter.op(Op::Trace(point));
        for statement in &block.statements {
            // Reported errors do not stop the pass; what was emitted is never run.
            let _ = self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) -> Checked<()> {
        match statement {
            Statement::Set { target, operator, value } => self.set(target, *operator, value),
            Statement::Unset { target } => {
                let variable = self.target(target, UseKind::Unset)?;
                match &variable.header {
                    Some((http, name)) => {
                        let name = self.emitter.header(name);
                        self.emitter.op(Op::UnsetHeader(*http, name));
                    }
                    None => self.emitter.op(Op::Unset(variable.row.var)),
                }
                Ok(())
            }
            Statement::Call { callee } => self.call(callee),
            Statement::Return { keyword, action } => self.return_action(*keyword, action.as_ref()),
            Statement::If { branches, otherwise } => self.if_chain(branches, otherwise.as_ref()),
            Statement::New { keyword, name, class } => self.new_object(*keyword, *name, class),
            Statement::Ban { value } => {
                self.value(value, Type::String)?;
                self.emitter.op(Op::Ban);
                Ok(())
            }
            Statement::HashData { keyword, value } => {
                self.note_use(at::HASH, *keyword, *keyword, UseKind::Action);
                self.value(value, Type::Strands)?;
                self.emitter.op(Op::HashData);
                Ok(())
            }
            Statement::Synthetic { keyword, value } => {
                self.note_use(at::SYNTH | at::BACKEND_ERROR, *keyword, *keyword, UseKind::Action);
                self.value(value, Type::Body)?;
                self.emitter.op(Op::Synthetic);
                Ok(())
            }
            Statement::Block(block) => {
                self.block(block);
                Ok(())
            }
            Statement::Use { path, next, ended } => self.use_path(path, *next, *ended),
        }
    }

    fn set(&mut self, target: &Path, operator: At, value: &Expression) -> Checked<()> {
        let variable = self.target(target, UseKind::Set)?;
        let kind = variable.row.kind;
        let sign = self.token(operator);
        let (wanted, arithmetic) = match (kind, sign.kind) {
            (_, crate::source::Kind::Sign(Sign::Assign)) => (kind, None),
            (Type::String | Type::Header | Type::Body, crate::source::Kind::Sign(Sign::PlusAssign)) => (kind, None),
            (Type::Int | Type::Real | Type::Duration | Type::Time | Type::Bytes, crate::source::Kind::Sign(sign)) => {
                let scaled = matches!(sign, Sign::StarAssign | Sign::SlashAssign);
                let operand = match kind {
                    Type::Int => Type::Int,
                    Type::Real => Type::Real,
                    Type::Bytes if !scaled => Type::Bytes,
                    _ if scaled => Type::Real,
                    _ => Type::Duration,
                };
                let arithmetic = match sign {
                    Sign::PlusAssign => Arithmetic::Add,
                    Sign::MinusAssign => Arithmetic::Subtract,
                    Sign::StarAssign => Arithmetic::Multiply,
                    _ => Arithmetic::Divide,
                };
                (operand, Some(arithmetic))
            }
            _ => {
                let help = hint(&format!("a variable of type {} is only set with =", kind.name()));
                let text = format!("Expected '=' got {}\nat\n{}{help}", self.shown(operator), self.at(operator));
                return Err(self.error(operator, text));
            }
        };
        let appends = !sign.is(Sign::Assign) && arithmetic.is_none();
        if (appends && kind != Type::Body) || arithmetic.is_some() {
            self.read_target(&variable);
        }
        let wanted = if wanted == Type::Header { Type::String } else { wanted };
        self.value(value, wanted)?;
        if let Some(arithmetic) = arithmetic {
            self.emitter.op(Op::Calculate(arithmetic));
        } else if appends && kind != Type::Body {
            self.emitter.op(Op::Join(2));
        }
        match (&variable.header, appends && kind == Type::Body) {
            (Some((http, name)), _) => {
                let name = self.emitter.header(name);
                self.emitter.op(Op::WriteHeader(*http, name));
            }
            (None, true) => self.emitter.op(Op::Append(variable.row.var)),
            (None, false) => self.emitter.op(Op::Write(variable.row.var)),
        }
        Ok(())
    }

    fn read_target(&mut self, variable: &Variable) {
        match &variable.header {
            Some((http, name)) => self.emitter.read_header(*http, name),
            None => self.emitter.op(Op::Read(variable.row.var)),
        }
    }

    fn call(&mut self, callee: &Expression) -> Checked<()> {
        if let ExpressionKind::Path(path) = &callee.kind
            && let [Segment { name: token, arguments: None }] = path.segments[..]
        {
            let name = self.text(token);
            match self.use_symbol(name) {
                Some(Meaning::Sub(sub)) => {
                    self.subs[self.current].calls.push((sub, token));
                    self.emitter.op(Op::Call(sub));
                    return Ok(());
                }
                Some(_) => {}
                None if self.is_damaged(name) => return Err(Reported),
                None if self.is_word_of_language(name) => {}
                None => {
                    let known = self.subs.iter().map(|sub| sub.name.as_str());
                    let help =
                        nearest(name, known).map_or(String::new(), |near| hint(&format!("did you mean {near}?")));
                    let text = format!("Undefined sub {name}, first reference:\n{}{help}", self.at(token));
                    return Err(self.error(token, text));
                }
            }
        }
        self.value(callee, Type::Sub)?;
        self.emitter.op(Op::CallValue);
        Ok(())
    }

    fn return_action(&mut self, keyword: At, action: Option<&ReturnAction>) -> Checked<()> {
        let Some(action) = action else {
            // The pieces of the built-in methods (vcl_req_cookie) are subroutines like any other.
            if self.subs[self.current].method.is_some() {
                let help = hint("a method returns an action: return (...);");
                let text = format!("Expected '(' got ';'\nat\n{}{help}", self.at(keyword + 1));
                return Err(self.error(keyword + 1, text));
            }
            self.emitter.op(Op::Leave);
            return Ok(());
        };
        let word = self.text(action.name);
        let Some(&known) = Action::ALL.iter().find(|known| known.name() == word) else {
            let help =
                match (self.subs[self.current].method, nearest(word, Action::ALL.iter().map(|known| known.name()))) {
                    (_, Some(near)) => hint(&format!("did you mean {near}?")),
                    (Some(method), None) => {
                        hint(&format!("{} can return {}", method.row().name, action_names(method.row().actions)))
                    }
                    (None, None) => String::new(),
                };
            let text = format!("Expected return action name.\n{}{help}", self.at(action.name));
            return Err(self.error(action.name, text));
        };
        self.subs[self.current].returns.push((known, action.name));
        let items = action.arguments.as_ref().map(|arguments| arguments.items.as_slice());
        match (known, items) {
            (Action::Synth | Action::Error, Some(items)) => self.return_status(known, action, items),
            (Action::Synth | Action::Vcl, None) => Err(self.error_at("Missing argument.", action.next)),
            (Action::Fail, Some(items)) => {
                let value = self.only_argument(action, items, Type::String)?;
                self.value(value, Type::String)?;
                self.emitter.op(Op::ReturnFail);
                Ok(())
            }
            (Action::Pass, Some(items)) => {
                let value = self.only_argument(action, items, Type::Duration)?;
                self.value(value, Type::Duration)?;
                // Only vcl_backend_response has a use for the duration; others may say it.
                self.emitter.op(Op::ReturnPass);
                Ok(())
            }
            (Action::Vcl, Some(items)) => self.return_vcl(action, items),
            (_, Some(_)) => {
                let open = action.arguments.as_ref().map_or(action.next, |arguments| arguments.open);
                Err(self.error_at("Arguments not allowed.", open))
            }
            (_, None) => {
                self.emitter.op(Op::Return(known));
                Ok(())
            }
        }
    }

    /// The argument of an action that takes one.
    fn only_argument<'e>(
        &mut self,
        action: &ReturnAction,
        items: &'e [crate::tree::Argument],
        wanted: Type,
    ) -> Checked<&'e Expression> {
        let close = action.arguments.as_ref().map_or(action.next, |arguments| arguments.close);
        match items {
            [item] => Ok(&item.value),
            [] => {
                let text = format!("Unknown token {} when looking for {}\n", self.shown(close), wanted.name());
                Err(self.error_at(&text, close))
            }
            [_, second, ..] => Err(self.expected("')'", second.value.first - 1)),
        }
    }

    fn return_status(&mut self, known: Action, action: &ReturnAction, items: &[crate::tree::Argument]) -> Checked<()> {
        let reason = match items {
            [status] => {
                self.value(&status.value, Type::Int)?;
                false
            }
            [status, reason] => {
                self.value(&status.value, Type::Int)?;
                self.value(&reason.value, Type::String)?;
                true
            }
            [_, _, third, ..] => return Err(self.expected("')'", third.value.first - 1)),
            [] => {
                self.only_argument(action, items, Type::Int)?;
                false
            }
        };
        self.emitter.op(Op::ReturnStatus { action: known, reason });
        Ok(())
    }

    fn return_vcl(&mut self, action: &ReturnAction, items: &[crate::tree::Argument]) -> Checked<()> {
        let close = action.arguments.as_ref().map_or(action.next, |arguments| arguments.close);
        let token = match items {
            [item] => match &item.value.kind {
                ExpressionKind::Path(path) if path.segments.len() == 1 => path.first(),
                _ => return Err(self.expected("ID", item.value.first)),
            },
            [] => return Err(self.expected("ID", close)),
            [_, second, ..] => return Err(self.expected("')'", second.value.first - 1)),
        };
        let name = self.text(token);
        if !self.options.labels.iter().any(|label| label == name) {
            // In 4.0 a label is looked for by name alone.
            if self.loaded.syntax >= 41 && self.symbol(name).is_some() {
                return Err(self.wrong_type(name, token, token, "vcl"));
            }
            let near = nearest(name, self.options.labels.iter().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean {near}?"),
                None => "it is no label; labels are made with vcl.label".to_owned(),
            };
            return Err(self.not_found(name, token, token, Some(&help)));
        }
        let label = self.labels.iter().position(|known| known == name).unwrap_or_else(|| {
            self.labels.push(name.to_owned());
            self.labels.len() - 1
        });
        self.emitter.op(Op::ReturnVcl(label as u32));
        Ok(())
    }

    fn if_chain(&mut self, branches: &[(Expression, Block)], otherwise: Option<&Block>) -> Checked<()> {
        let mut ends = Vec::new();
        for (index, (condition, block)) in branches.iter().enumerate() {
            let result = self.value(condition, Type::Bool);
            let skip = self.emitter.jump(Op::JumpUnless);
            self.block(block);
            if index + 1 < branches.len() || otherwise.is_some() {
                ends.push(self.emitter.jump(Op::Jump));
            }
            self.emitter.land(&[skip]);
            // An error in the condition is reported; the others are still looked at.
            let _ = result;
        }
        if let Some(block) = otherwise {
            self.block(block);
        }
        self.emitter.land(&ends);
        Ok(())
    }

    fn new_object(&mut self, keyword: At, name: Name, class: &Path) -> Checked<()> {
        self.note_use(at::INIT, keyword, keyword, UseKind::Action);
        let text = self.name_text(name);
        let Some(symbol) = self.symbol(&text) else { return Err(Reported) };
        let (meaning, defined) = (symbol.meaning, symbol.defined);
        let Meaning::Instance(index) = meaning else { return Err(Reported) };
        if defined != name.first {
            return Err(Reported);
        }
        let (vmod, class_name) = {
            let instance = &self.instances[index as usize];
            (instance.vmod, instance.class)
        };
        let Some(&function) = self.functions.get(&(vmod, class_name, "")) else { return Err(Reported) };
        let Some(segment) = class.segments.last() else { return Err(Reported) };
        let Some(arguments) = &segment.arguments else {
            return Err(self.expected_in_call("'('", segment.name + 1, class.first(), segment.name));
        };
        self.vmod_call(function, Some(index), class.first(), arguments)?;
        self.emitter.op(Op::Forget);
        Ok(())
    }

    /// A call for what it does.
    fn use_path(&mut self, path: &Path, next: At, ended: bool) -> Checked<()> {
        let first = path.first();
        let word = self.text(first);
        let callable = match self.symbol(word).map(|symbol| (symbol.meaning, symbol.defined)) {
            Some((Meaning::Vmod(vmod), defined)) if defined < first => path.segments.get(1).is_some_and(|segment| {
                let function = self.text(segment.name);
                surface::vmod::FUNCTIONS
                    .iter()
                    .any(|row| row.vmod == vmod && row.class.is_empty() && row.name.eq_ignore_ascii_case(function))
            }),
            Some((Meaning::Instance(_), defined)) if defined < first => {
                if path.segments.len() == 1 {
                    return Err(self.expected("'.'", next));
                }
                true
            }
            _ => false,
        };
        if callable {
            self.path_value(path, first, path.last(), Type::Void, true)?;
            self.emitter.op(Op::Forget);
            return if ended { Ok(()) } else { Err(self.expected("';'", next)) };
        }
        if self.is_damaged(word) {
            return Err(Reported);
        }
        if let Some((Meaning::Vmod(vmod), defined)) = self.symbol(word).map(|symbol| (symbol.meaning, symbol.defined))
            && defined < first
            && let Some(reported) = self.method_of_class(vmod, path)
        {
            return Err(reported);
        }
        let last = path.segments.last().map_or(first, |segment| segment.name);
        let written: String = (first..=last).map(|index| self.text(index)).collect();
        let after =
            path.segments.last().and_then(|segment| segment.arguments.as_ref()).map_or(next, |found| found.open);
        if self.is_known_path(path) {
            let help = match self.symbol(word).map(|symbol| symbol.meaning) {
                Some(Meaning::Sub(_)) => hint(&format!("call {word};")),
                _ if self.token(next).is(Sign::Assign) => hint(&format!("set {written} = ...;")),
                _ => String::new(),
            };
            let text = format!("Symbol cannot be used here.\n{}{help}", self.at(after));
            return Err(self.error(first, text));
        }
        let help = self.statement_hint(word, path);
        let place = self.between(first, last);
        let text =
            format!("Symbol not found: '{written}'\nAt: {place}{}", help.map_or(String::new(), |help| hint(&help)));
        Err(self.error(first, text))
    }

    /// Whether a path begins with something that exists, though not as a statement.
    fn is_known_path(&mut self, path: &Path) -> bool {
        let word = self.text(path.first());
        if self.is_word_of_language(word) && !self.dialect.moved.iter().any(|(old, _)| *old == word) {
            return true;
        }
        match self.symbol(word).map(|symbol| (symbol.meaning, symbol.defined)) {
            Some((Meaning::Vmod(vmod), defined)) => {
                let class = path.segments.get(1).map_or("", |segment| self.text(segment.name));
                return defined < path.first()
                    && surface::vmod::FUNCTIONS.iter().any(|row| row.vmod == vmod && row.class == class);
            }
            Some((Meaning::Instance(_), _)) => return false,
            Some(_) => return true,
            None => {}
        }
        let lower = word.to_ascii_lowercase();
        if lower == "regsub" || lower == "regsuball" {
            return true;
        }
        surface::vcl::VARIABLES.iter().any(|row| row.name.split('.').next() == Some(lower.as_str()))
    }

    fn statement_hint(&self, word: &str, path: &Path) -> Option<String> {
        if let Some((_, instead)) = self.dialect.moved.iter().find(|(old, _)| *old == word) {
            return Some((*instead).to_owned());
        }
        if path.segments.len() > 1 {
            return self.member_hint(path);
        }
        let words = self.dialect.statements.iter().map(|(word, _)| *word);
        nearest(word, words).map(|near| format!("did you mean {near}?"))
    }

    /// What to say of an unknown function of a VMOD, or of an object that is not there yet.
    pub(super) fn member_hint(&self, path: &Path) -> Option<String> {
        let first = path.first();
        let word = self.text(first);
        match self.symbol(word).map(|symbol| (symbol.meaning, symbol.defined)) {
            Some((_, defined)) if defined > first => {
                let (line, _) = self.loaded.sources.place(self.token(defined));
                Some(format!("{word} is defined further down, on line {line}"))
            }
            Some((Meaning::Vmod(vmod), _)) => {
                let names: Vec<&str> = surface::vmod::FUNCTIONS
                    .iter()
                    .filter(|row| row.vmod == vmod && row.class.is_empty())
                    .map(|row| row.name)
                    .collect();
                let wanted = path.segments.get(1).map_or("", |segment| self.text(segment.name));
                Some(match nearest(wanted, names.iter().copied()) {
                    Some(near) => format!("did you mean {word}.{near}?"),
                    None if names.is_empty() => {
                        format!("{vmod} has classes only; objects are made with new in vcl_init")
                    }
                    None => format!("{vmod} has {}", names.join(", ")),
                })
            }
            None if surface::vmod::VMODS.iter().any(|row| row.name == word) => Some(format!("import {word}; first")),
            _ => None,
        }
    }
}

/// Actions as a list in quotes.
pub(super) fn action_names(actions: &[Action]) -> String {
    let mut names: Vec<&str> = actions.iter().map(|action| action.name()).collect();
    names.sort_unstable();
    names.join(", ")
}
