//! Statements that only the old dialects have.

use super::super::{Checked, Checker, UseKind};
use crate::dialect::StatementWord;
use crate::source::{Kind, Sign};
use crate::tree::{At, Expression, ExpressionKind, ReturnAction, Statement};
use surface::diagnostic::Code;
use surface::vcl::{Action, HttpObject, Method, Type, Var, at};
use vcl_run::program::Op;

/// The status of `error;` without a number.
const ERROR_STATUS: i64 = 503;

/// The status of `return (error)` if none has been set; in `vcl_fetch` the backend has set one.
/// Compat: Varnish 2.0 to 3.0, r00558.
const UNNAMED_STATUS: i64 = 501;

/// The methods that have a request.
const REQUESTS: u16 = at::CLIENT | at::BACKEND_RESPONSE;

impl Checker<'_> {
    pub(in super::super) fn legacy_statement(&mut self, statement: &Statement) -> Checked<()> {
        match statement {
            Statement::Error { keyword, status, reason } => {
                self.error_statement(*keyword, status.as_ref(), reason.as_ref())
            }
            Statement::Purge { keyword } => {
                self.note_use(at::HIT | at::MISS, *keyword, *keyword, UseKind::Action);
                self.native("purge", "", "hard", None);
                self.emitter.op(Op::Forget);
                Ok(())
            }
            Statement::OldBan { keyword, value } => self.old_ban(*keyword, value),
            Statement::Esi { keyword } => {
                self.note_use(at::BACKEND_RESPONSE, *keyword, *keyword, UseKind::Action);
                self.emitter.op(Op::Bool(true));
                self.emitter.op(Op::Write(Var::BerespDoEsi));
                Ok(())
            }
            Statement::Rollback { keyword } => {
                self.note_use(REQUESTS, *keyword, *keyword, UseKind::Action);
                self.emitter.op(Op::Http(HttpObject::Req));
                self.native("std", "", "rollback", None);
                self.emitter.op(Op::Forget);
                Ok(())
            }
            Statement::Log { keyword, value } => {
                self.note_use(REQUESTS, *keyword, *keyword, UseKind::Action);
                self.value(value, Type::Strands)?;
                self.native("std", "", "log", None);
                self.emitter.op(Op::Forget);
                Ok(())
            }
            Statement::Panic { keyword, value } => {
                // `panic` killed the worker. Here it ends the request, which has the same effect
                // for the client.
                let text = "panic ends the request, not the worker.";
                let draft = self.draft_at(Code::Approximated, text, *keyword);
                self.warning(*keyword, draft);
                self.value(value, Type::Strands)?;
                self.emitter.op(Op::ReturnFail);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn error_statement(
        &mut self,
        keyword: At,
        status: Option<&Expression>,
        reason: Option<&Expression>,
    ) -> Checked<()> {
        self.note_return("error", keyword);
        // `error obj.response;`: a text at the position of the status is the reason.
        let text_alone = status.filter(|_| reason.is_none()).filter(|status| self.is_text_variable(status));
        let (status, reason) = match text_alone {
            Some(_) => (None, status),
            None => (status, reason),
        };
        match status {
            Some(status) => self.value(status, Type::Int)?,
            None => self.emitter.op(Op::Int(ERROR_STATUS)),
        }
        if let Some(reason) = reason {
            self.value(reason, Type::String)?;
        }
        self.emitter.op(Op::ReturnStatus { action: Action::Synth, reason: reason.is_some() });
        Ok(())
    }

    /// True if an expression is a variable that contains text.
    fn is_text_variable(&self, expression: &Expression) -> bool {
        let (ExpressionKind::Path(path), Some(language)) = (&expression.kind, self.dialect.language) else {
            return false;
        };
        let name: String = (path.first()..=path.last()).map(|index| self.text(index)).collect();
        if path.segments.get(1).is_some_and(|segment| self.text(segment.name) == "http") {
            return true;
        }
        language.variables.iter().any(|row| row.name == name && row.kind == Type::String)
    }

    /// Records that a word ends the current subroutine, and returns its action.
    fn note_return(&mut self, word: &str, place: At) -> Option<Action> {
        let method = self.method_here();
        let action = method.and_then(|method| self.dialect.legacy_action(method, word));
        self.subs[self.current].returns.push((action, place));
        action
    }

    /// `return (word);` and `word;`
    pub(in super::super) fn legacy_return(&mut self, action: &ReturnAction) -> Checked<()> {
        let word = self.text(action.name);
        let Some(method) = self.method_here() else { return Ok(()) };
        if let Some(arguments) = &action.arguments {
            return Err(self.error_at(Code::ReturnArguments, "Arguments not allowed.", arguments.open));
        }
        let known = self.note_return(word, action.name);
        if known.is_none() && !self.is_ending(word) {
            self.subs[self.current].returns.pop();
            let endings = self.dialect.endings(method);
            let near = super::super::nearest(word, endings.iter().copied());
            let can = format!("{} can return {}", self.dialect.method_name(method), endings.join(", "));
            let token = self.token(action.name);
            let draft = self.draft_at(Code::UnknownReturn, "Expected return action name.", action.name);
            return Err(self.error(action.name, draft.hint(can).nearest(token, token, near)));
        }
        match known {
            Some(Action::Synth) => {
                self.emitter.op(match method {
                    Method::BackendResponse => Op::Read(Var::BerespStatus),
                    _ => Op::Int(UNNAMED_STATUS),
                });
                self.emitter.op(Op::ReturnStatus { action: Action::Synth, reason: false });
            }
            Some(action) => self.emitter.op(Op::Return(action)),
            // Reported by the pass over the graph of calls.
            None => self.emitter.op(Op::Return(Action::Fail)),
        }
        Ok(())
    }

    /// True if any method of any dialect can return this word.
    fn is_ending(&self, word: &str) -> bool {
        use surface::vcl::Generation;
        let old = |generation: &Generation| {
            surface::vcl::legacy::Language::of(*generation).is_some_and(|language| {
                language.methods.iter().any(|row| row.returns.iter().any(|ending| ending.word == word))
            })
        };
        Generation::ALL.iter().any(old) || matches!(word, "discard" | "keep")
    }

    /// Translates bans of 2.x to the form of `ban()`.
    fn old_ban(&mut self, keyword: At, value: &Expression) -> Checked<()> {
        let word = self.text(keyword);
        let meaning = self.dialect.statements.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        let ignores_case = self.dialect.forms.patterns_ignore_case;
        match meaning.map(|(_, meaning)| *meaning) {
            Some(StatementWord::BanUrl) => {
                self.emitter.text(if ignores_case { b"req.url ~ (?i)" } else { b"req.url ~ " });
                self.value(value, Type::String)?;
                self.emitter.op(Op::Join(2));
            }
            Some(StatementWord::PurgeHash) => {
                // The hashed data is not stored as text; of a pattern for "url#host#" only the part
                // about the URL can be tested.
                let draft = self.draft_at(Code::Approximated, "purge_hash looks at the URL alone.", keyword);
                self.warning(keyword, draft);
                self.emitter.text(if ignores_case { b"req.url ~ (?i)" } else { b"req.url ~ " });
                self.value(value, Type::String)?;
                let regex = self.emitter.add_pattern("#.*$");
                self.emitter.text(b"");
                self.emitter.op(Op::Substitute(regex));
                self.emitter.op(Op::Join(2));
            }
            _ => {
                let tests = match &value.kind {
                    ExpressionKind::And(tests) => tests.as_slice(),
                    _ => std::slice::from_ref(value),
                };
                if matches!(tests[0].kind, ExpressionKind::Compare(..)) {
                    self.written_ban(tests)?;
                } else {
                    self.value(value, Type::String)?;
                    if ignores_case {
                        // The patterns in the text are evaluated at run time.
                        let regex = self.emitter.add_pattern(r"(!?~)[ \t]+");
                        self.emitter.text(br"\1 (?i)");
                        self.emitter.op(Op::SubstituteAll(regex));
                    }
                }
            }
        }
        self.emitter.op(Op::Ban);
        Ok(())
    }

    /// `req.url == "…" && obj.http.x ~ "…"`: left sides and operators become text, right sides are
    /// values.
    fn written_ban(&mut self, tests: &[Expression]) -> Checked<()> {
        let mut parts = 0;
        for (index, test) in tests.iter().enumerate() {
            let ExpressionKind::Compare(sides, operator) = &test.kind else {
                return Err(self.error_between(Code::PurgeTest, "Expected ~, !~, == or !=.", test.first, test.last));
            };
            let signs = [Sign::Match, Sign::NotMatch, Sign::Equal, Sign::NotEqual];
            if !matches!(self.token(*operator).kind, Kind::Sign(sign) if signs.contains(&sign)) {
                return Err(self.error_at(Code::PurgeTest, "Expected ~, !~, == or !=.", *operator));
            }
            let ExpressionKind::Path(path) = &sides.0.kind else {
                let (first, last) = (sides.0.first, sides.0.last);
                return Err(self.error_between(Code::PurgeTest, "Unknown purge variable.", first, last));
            };
            let name: String = (path.first()..=path.last()).map(|index| self.text(index)).collect();
            if !["req.url", "req.http.", "obj.http.", "obj.hash"].iter().any(|known| name.starts_with(known)) {
                let text = "Unknown purge variable.";
                let draft = self.draft_between(Code::PurgeTest, text, path.first(), path.last());
                return Err(self.error(path.first(), draft.hint("a purge looks at req.url, req.http.* and obj.http.*")));
            }
            let joint = if index > 0 { " && " } else { "" };
            let is_pattern = matches!(self.token(*operator).kind, Kind::Sign(Sign::Match | Sign::NotMatch));
            let flag = if is_pattern && self.dialect.forms.patterns_ignore_case { "(?i)" } else { "" };
            let text = format!("{joint}{name} {} {flag}", self.text(*operator));
            self.emitter.text(text.as_bytes());
            self.value(&sides.1, Type::String)?;
            parts += 2;
        }
        self.emitter.op(Op::Join(parts));
        Ok(())
    }
}
