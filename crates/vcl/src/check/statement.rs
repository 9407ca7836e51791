//! Lowering of statements to instructions.

use super::variable::Variable;
use super::{Checked, Checker, Meaning, Reported, UseKind, nearest};
use crate::diagnostic::Draft;
use crate::parse::line_left;
use crate::source::Sign;
use crate::tree::{At, Block, Expression, ExpressionKind, Name, Path, ReturnAction, Segment, Statement};
use surface::diagnostic::Code;
use surface::header::MARKING_HEADERS;
use surface::vcl::legacy::Means;
use surface::vcl::{Action, HttpObject, METHODS, Method, Type, at};
use surface::vmod::foreign;
use vcl_run::program::{Arithmetic, Op, Point};

impl Checker<'_> {
    /// Lowers every subroutine, methods first.
    pub(super) fn lower(&mut self) {
        let mut index = 0;
        // Versions of subroutines for a method are added while calls to them are lowered.
        while index < self.subs.len() {
            self.current = index;
            self.subs[index].entry = self.emitter.here();
            let method = self.subs[index].method;
            if method == Some(Method::Init) {
                self.make_directors();
            }
            if self.dialect.language.is_none() || self.method_here().is_some() {
                for piece in self.subs[index].pieces.clone() {
                    self.block(&piece.body);
                }
            }
            match method {
                Some(method) if !self.dialect.has_method(method) => self.missing_method(method),
                // The built-in piece always ends the method; this is only for the verifier.
                Some(_) => self.emitter.op(Op::Return(Action::Fail)),
                None => self.emitter.op(Op::Leave),
            }
            self.subs[index].end = self.emitter.here();
            index += 1;
        }
    }

    fn block(&mut self, block: &Block) {
        if block.statements.is_empty() {
            return;
        }
        if !self.options.traces_statements {
            self.point(block.open);
        }
        for statement in &block.statements {
            if self.options.traces_statements && !matches!(statement, Statement::Block(_)) {
                self.point(statement.first());
            }
            // Reported errors do not stop the pass; in that case the emitted code is never run.
            let _ = self.statement(statement);
        }
    }

    /// Emits a point of the trace at a token.
    fn point(&mut self, at: At) {
        let token = self.token(at);
        let (line, position) = self.loaded.sources.place(token);
        self.emitter.points.push(Point { source: token.source, line, position });
        let point = self.emitter.points.len() as u32 - 1;
        self.emitter.op(Op::Trace(point));
    }

    fn statement(&mut self, statement: &Statement) -> Checked<()> {
        match statement {
            Statement::Set { target, operator, value } => self.set(target, *operator, value),
            Statement::Unset { target } => {
                let variable = self.target(target)?;
                self.may_change(&variable, target, UseKind::Unset)?;
                match &variable.header {
                    Some((http, name)) => {
                        self.note_marking(*http, name, target.first());
                        let name = self.emitter.header(name);
                        self.emitter.op(Op::UnsetHeader(*http, name));
                    }
                    None => self.emitter.op(Op::Unset(variable.row.var)),
                }
                Ok(())
            }
            Statement::Call { callee } => self.call(callee),
            Statement::Return { keyword, action } => {
                let before = self.emitter.here();
                self.return_action(*keyword, action.as_ref())?;
                self.mark_place(*keyword, before);
                Ok(())
            }
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
                self.emitter.hash_data();
                Ok(())
            }
            Statement::Synthetic { keyword, value } => {
                self.note_use(at::SYNTH | at::BACKEND_ERROR, *keyword, *keyword, UseKind::Action);
                self.value(value, Type::Body)?;
                self.emitter.synthetic();
                Ok(())
            }
            Statement::Block(block) => {
                self.block(block);
                Ok(())
            }
            Statement::Use { path, next, ended } => self.use_path(path, *next, *ended),
            Statement::Error { keyword, .. } => {
                let before = self.emitter.here();
                self.legacy_statement(statement)?;
                self.mark_place(*keyword, before);
                Ok(())
            }
            old => self.legacy_statement(old),
        }
    }

    fn set(&mut self, target: &Path, operator: At, value: &Expression) -> Checked<()> {
        let variable = self.target(target)?;
        if matches!(value.kind, ExpressionKind::Broken) {
            return Err(Reported);
        }
        // Compat: errors of the value are reported even if the variable cannot be set; Varnish
        // checks the value first.
        let settable = self.may_change(&variable, target, UseKind::Set);
        let kind = variable.row.kind;
        let sign = self.token(operator);
        if variable.means == Means::Hash && !sign.is(Sign::PlusAssign) {
            return Err(self.expected("'+='", operator));
        }
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
                let appends = if matches!(kind, Type::String | Type::Header | Type::Body) { " or +=" } else { "" };
                let help = format!("a variable of type {} is set with ={appends}", kind.name());
                return Err(self.expected_with("'='", operator, Some(&help)));
            }
        };
        let appends = !sign.is(Sign::Assign) && arithmetic.is_none() && variable.means != Means::Hash;
        if (appends && kind != Type::Body) || arithmetic.is_some() {
            self.read_target(&variable);
        }
        let wanted = if wanted == Type::Header { Type::String } else { wanted };
        if wanted == Type::Real && kind != Type::Real {
            // A literal factor is a REAL; an INT variable is not converted here.
            self.exact(value, wanted)?;
        } else {
            self.value(value, wanted)?;
        }
        settable?;
        if let Some(arithmetic) = arithmetic {
            self.emitter.op(Op::Calculate(arithmetic));
        } else if appends && kind != Type::Body {
            self.emitter.op(Op::Join(2));
        }
        if self.set_special(variable.means, target) {
            return Ok(());
        }
        match (&variable.header, appends && kind == Type::Body) {
            (Some((http, name)), _) => {
                self.note_marking(*http, name, target.first());
                let name = self.emitter.header(name);
                self.emitter.op(Op::WriteHeader(*http, name));
            }
            (None, true) => self.emitter.op(Op::Append(variable.row.var)),
            (None, false) if variable.row.var.is_noted() => {
                let before = self.emitter.here();
                self.emitter.op(Op::WriteNoted(variable.row.var));
                self.mark_place(target.first(), before);
            }
            (None, false) => self.emitter.op(Op::Write(variable.row.var)),
        }
        Ok(())
    }

    /// Before the change of a header that marks a response as one client's: records the place.
    fn note_marking(&mut self, http: HttpObject, name: &str, target: At) {
        let is_marking = MARKING_HEADERS.iter().any(|marking| name.eq_ignore_ascii_case(marking));
        if http == HttpObject::Beresp && is_marking {
            let before = self.emitter.here();
            self.emitter.op(Op::Note);
            self.mark_place(target, before);
        }
    }

    fn read_target(&mut self, variable: &Variable) {
        if self.special_value(&variable.row, variable.means) {
            return;
        }
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
            match self.use_symbol_of(name, &["sub"]) {
                Some(Meaning::Sub(sub)) => {
                    let sub = self.callee_here(sub);
                    self.subs[self.current].calls.push((sub, token));
                    self.emitter.op(Op::Call(sub));
                    return Ok(());
                }
                Some(_) => {}
                None if self.is_damaged(name) => return Err(Reported),
                None if self.builtin_kind(name).is_some() => {}
                None => return Err(self.undefined_reference("sub", name, token)),
            }
        }
        self.value(callee, Type::Sub)?;
        self.emitter.op(Op::CallValue);
        Ok(())
    }

    /// Records the place of the statement that emitted the last instruction, if it emitted any.
    pub(super) fn mark_place(&mut self, keyword: At, before: u32) {
        let here = self.emitter.here();
        if here > before {
            let token = self.token(keyword);
            let (line, position) = self.loaded.sources.place(token);
            self.emitter.places.push((here - 1, Point { source: token.source, line, position }));
        }
    }

    fn return_action(&mut self, keyword: At, action: Option<&ReturnAction>) -> Checked<()> {
        let Some(action) = action else {
            // The pieces of the built-in methods (vcl_req_cookie) are ordinary subroutines.
            if self.subs[self.current].method.is_some() {
                let help = "a method returns an action: return (...);";
                return Err(self.expected_with("'('", keyword + 1, Some(help)));
            }
            self.emitter.op(Op::Leave);
            return Ok(());
        };
        if self.dialect.language.is_some() {
            return self.legacy_return(action);
        }
        let word = self.text(action.name);
        let Some(&known) = Action::ALL.iter().find(|known| known.name() == word) else {
            let can = self.subs[self.current].method.map(|method| {
                let row = method.row();
                format!("{} can return {}", row.name, action_names(row.actions))
            });
            let current = Action::ALL.iter().filter(|action| METHODS.iter().any(|row| row.actions.contains(action)));
            let near = nearest(word, current.map(|known| known.name()));
            let token = self.token(action.name);
            let draft = self.draft_at(Code::UnknownReturn, "Expected return action name.", action.name);
            return Err(self.error(action.name, draft.maybe_hint(can).nearest(token, token, near)));
        };
        self.subs[self.current].returns.push((Some(known), action.name));
        let items = action.arguments.as_ref().map(|arguments| arguments.items.as_slice());
        match (known, items) {
            (Action::Synth | Action::Error, Some(items)) => self.return_status(known, action, items),
            (Action::Synth | Action::Vcl, None) => {
                Err(self.error_at(Code::ReturnArguments, "Missing argument.", action.next))
            }
            (Action::Fail, Some(items)) => {
                self.only_argument(action, items, Type::String)?;
                self.emitter.op(Op::ReturnFail);
                Ok(())
            }
            (Action::Pass, Some(items)) => {
                self.only_argument(action, items, Type::Duration)?;
                // Only vcl_backend_response uses the duration; others may give one.
                self.emitter.op(Op::ReturnPass);
                Ok(())
            }
            (Action::Vcl, Some(items)) => self.return_vcl(action, items),
            (_, Some(_)) => {
                let open = action.arguments.as_ref().map_or(action.next, |arguments| arguments.open);
                Err(self.error_at(Code::ReturnArguments, "Arguments not allowed.", open))
            }
            (_, None) => {
                self.emitter.op(Op::Return(known));
                Ok(())
            }
        }
    }

    /// Emits the argument of an action that takes one.
    fn only_argument(&mut self, action: &ReturnAction, items: &[crate::tree::Argument], wanted: Type) -> Checked<()> {
        let close = action.arguments.as_ref().map_or(action.next, |arguments| arguments.close);
        match items {
            [item] => self.value(&item.value, wanted),
            [] => {
                let text = format!("Unknown token {} when looking for {}\n", self.shown(close), wanted.name());
                Err(self.error_at(Code::ExpectedExpression, &text, close))
            }
            [item, second, ..] => {
                self.value(&item.value, wanted)?;
                Err(self.expected("')'", second.value.first - 1))
            }
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
            [] => return Err(self.expected("ID", close)),
            [item, rest @ ..] => {
                let ExpressionKind::Path(path) = &item.value.kind else {
                    return Err(self.expected("ID", item.value.first));
                };
                let written: String = (path.first()..=path.last()).map(|index| self.text(index)).collect();
                if surface::vcl::VARIABLES.iter().any(|row| row.name.eq_ignore_ascii_case(&written)) {
                    return Err(self.wrong_type(&written, path.first(), path.last(), "vcl"));
                }
                if path.segments.len() > 1 {
                    return Err(self.not_found(&written, path.first(), path.last(), None));
                }
                if let [second, ..] = rest {
                    return Err(self.expected("')'", second.value.first - 1));
                }
                path.first()
            }
        };
        let name = self.text(token);
        if !self.options.labels.iter().any(|label| label == name) {
            // In 4.0 only the name of a label is looked up.
            if self.loaded.syntax >= 41 && self.symbol(name).is_some() {
                return Err(self.wrong_type(name, token, token, "vcl"));
            }
            let near = nearest(name, self.options.labels.iter().map(String::as_str));
            let help = Some("it is no label; labels are made with vcl.label");
            return Err(self.unknown_symbol(name, token, token, help, near));
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
            // An error in the condition has been reported; the other branches are checked
            // nevertheless.
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

    /// A call used as a statement.
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
            if ended {
                return Ok(());
            }
            let line = line_left(&self.loaded.sources, self.token(next - 1), self.token(next));
            let help = line.map(|line| format!("a ; is missing at the end of line {line}"));
            return Err(self.expected_with("';'", next, help.as_deref()));
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
                Some(Meaning::Sub(_)) => Some(format!("call {word};")),
                _ if self.token(next).is(Sign::Assign) => Some(format!("set {written} = ...;")),
                _ => None,
            };
            let draft = self.draft_at(Code::WrongSymbol, "Symbol cannot be used here.", after);
            return Err(self.error(first, draft.maybe_hint(help)));
        }
        let help = self.statement_hint(word, path);
        let (from, to) = (self.token(first), self.token(last));
        let draft =
            Draft::new(Code::UnknownSymbol).text(format!("Symbol not found: '{written}'\nAt: ")).between(from, to);
        let draft = draft.text("\nSymbol not found.\n").at(self.token(after));
        Err(self.error(first, draft.maybe_hint(help)))
    }

    /// True if a path begins with something that exists but is not a statement.
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
        if ["regsub", "regsuball", "true", "false", "default"].contains(&lower.as_str()) {
            return true;
        }
        // Words that only begin names of variables (`client`) have no meaning alone.
        surface::vcl::VARIABLES.iter().any(|row| {
            let begins = row.name.split('.').next() == Some(lower.as_str());
            begins && (path.segments.len() > 1 || row.name == lower)
        })
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

    /// The hint about an unknown function of a VMOD, or about an object that does not exist yet.
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
                if let Some(now) = foreign::present_name(&format!("{vmod}.{wanted}")) {
                    return Some(format!("it is gone; there is {now}"));
                }
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

/// A list of actions in quotes.
pub(super) fn action_names(actions: &[Action]) -> String {
    let mut names: Vec<&str> = actions.iter().map(|action| action.name()).collect();
    names.sort_unstable();
    names.join(", ")
}
