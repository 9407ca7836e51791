//! Statements, and the endings of subroutines.

use super::expression::quoted;
use super::tables::{Times, Treatment, Use, defaults};
use super::writer::{Context, Found, NewName, Writer, generation_of, quoted_header};
use crate::check::HEADER_NAME_BYTES_MAX;
use crate::dialect::StatementWord;
use crate::source::Sign;
use crate::tree::{At, Block, Expression, ExpressionKind, Path, ReturnAction, Statement};
use surface::vcl::legacy::Means;
use surface::vcl::{Action, Generation, Method, Type, Var};

/// The parameter `max_restarts`.
pub(super) const RESTARTS_MAX: u32 = 4;

impl Writer<'_> {
    pub(super) fn block(&mut self, block: &Block, context: Context) {
        for statement in &block.statements {
            self.statement(statement, context);
        }
    }

    fn statement(&mut self, statement: &Statement, context: Context) {
        match statement {
            Statement::Set { target, operator, value } => self.set(target, *operator, value, context),
            Statement::Unset { target } => self.unset(target.first().saturating_sub(1), target, context),
            Statement::Call { callee } => {
                if let ExpressionKind::Path(path) = &callee.kind {
                    let name = (self.path_text(path).to_ascii_lowercase(), context);
                    if let Some(new) = self.sub_names.get(&name).cloned() {
                        self.edits.replace(callee.first, callee.last, new);
                    }
                }
            }
            Statement::Return { keyword, action } => {
                if let Some(action) = action {
                    self.end(*keyword, action, context);
                }
            }
            Statement::If { branches, otherwise } => {
                let keyword = branches.first().map_or(0, |(condition, _)| condition.first.saturating_sub(2));
                if let ([(condition, block)], None) = (&branches[..], otherwise)
                    && self.never_holds(condition, context)
                {
                    self.listed(keyword, "this can never be");
                    return self.edits.rewrite(keyword, self.row.closing(block.open), "");
                }
                for (condition, block) in branches {
                    self.expression(condition, context, keyword);
                    self.block(block, context);
                }
                if let Some(block) = otherwise {
                    self.block(block, context);
                }
            }
            Statement::New { .. } => {}
            Statement::Ban { value } => self.expression(value, context, value.first.saturating_sub(2)),
            Statement::HashData { keyword, value } => self.expression(value, context, *keyword),
            Statement::Synthetic { keyword, value } => self.synthetic(*keyword, value, context),
            Statement::Error { keyword, status, reason } => {
                self.error(*keyword, status.as_ref(), reason.as_ref(), context);
            }
            Statement::Purge { keyword } => {
                let vmod = self.vmod("purge");
                self.edits.replace(*keyword, *keyword, format!("{vmod}.hard()"));
            }
            Statement::OldBan { keyword, value } => self.old_ban(*keyword, value, context),
            Statement::Esi { keyword } => self.edits.replace(*keyword, *keyword, "set beresp.do_esi = true"),
            Statement::Rollback { keyword } => {
                let text = self.rollback(*keyword, context);
                self.edits.replace(*keyword, *keyword, text);
            }
            Statement::Log { keyword, value } => {
                let vmod = self.vmod("std");
                self.called(&format!("{vmod}.log"), *keyword, value, context);
            }
            Statement::Panic { keyword, value } => {
                let vmod = self.vmod("std");
                self.note(*keyword, "panic ends the request, not the server");
                self.called(&format!("{vmod}.log"), *keyword, value, context);
                let next = self.next_statement(*keyword);
                self.edits.after(value.last, &format!("{next}return (fail)"));
            }
            Statement::Block(block) if self.row.is(block.open, Sign::BraceOpen) => self.block(block, context),
            // `restart rollback;`
            Statement::Block(block) => {
                let rollback = self.rollback(block.open, context);
                let next = self.next_statement(block.open);
                let restart = self.restart(block.open, context);
                let text = format!("{rollback}{next}{restart}");
                self.edits.replace(block.open, block.open + 1, text);
            }
            Statement::Use { path, .. } => {
                self.vmod_call(path);
                self.arguments(&path.segments, context, path.first());
            }
        }
    }

    /// True if a condition is `!obj.valid`: every object is valid.
    fn never_holds(&self, condition: &Expression, context: Context) -> bool {
        let ExpressionKind::Not(inner) = &condition.kind else { return false };
        let ExpressionKind::Path(path) = &inner.kind else { return false };
        self.variable(path, context.old, Use::Read).is_some_and(|found| found.means == Means::True)
    }

    fn rollback(&mut self, keyword: At, context: Context) -> String {
        let vmod = self.vmod("std");
        if context.is_fetch() {
            self.note(keyword, "this rolls back what the backend was asked, not the client's request");
            return format!("{vmod}.rollback(bereq)");
        }
        self.found.rolls_back = true;
        format!("{vmod}.rollback(req){}call migrate_request", self.next_statement(keyword))
    }

    /// The text between a statement and another one that is inserted after it.
    pub(super) fn next_statement(&self, place: At) -> String {
        let mut first = place;
        while first > 0 && !self.row.begins_line(first) {
            let before = first - 1;
            if self.row.is(before, Sign::Semicolon) || self.row.is(before, Sign::BraceOpen) {
                return "; ".to_owned();
            }
            first = before;
        }
        format!(";\n{}", self.row.indentation(place))
    }

    /// Turns a word followed by a value into a call.
    fn called(&mut self, function: &str, keyword: At, value: &Expression, context: Context) {
        self.expression(value, context, keyword);
        let written = self.written(value.first, value.last);
        self.edits.replace(keyword, value.last, [function.as_bytes(), b"(", &written, b")"].concat());
    }

    /// Turns an error page into a body: a second one replaces the first.
    fn synthetic(&mut self, keyword: At, value: &Expression, context: Context) {
        self.expression(value, context, keyword);
        if self.language.is_some() {
            self.edits.replace(keyword, keyword, "set resp.body =");
        }
    }

    fn set(&mut self, target: &Path, operator: At, value: &Expression, context: Context) {
        let keyword = target.first().saturating_sub(1);
        let Some(found) = self.variable(target, context.old, Use::Set) else { return };
        self.expression(value, context, keyword);
        if self.dialect.forms.bare_seconds && matches!(found.kind, Type::Duration | Type::Time) {
            self.seconds(value);
        }
        if found.means == Means::Hash {
            return self.hash(keyword, value, context);
        }
        self.remember(&found, context, Use::Set);
        match self.new_name(&found, context, Use::Set) {
            NewName::Name(name) | NewName::Value(name) => {
                if name != self.path_text(target) {
                    self.edits.replace(target.first(), target.last(), name.clone());
                }
                if found.header.is_some() && self.dialect.forms.percent_escapes && self.is_header(value, context) {
                    return self.set_or_unset(keyword, &name, &found, value, context);
                }
                if let Some(object) = name.strip_suffix(".status").filter(|_| self.language.is_some()) {
                    self.keep_reason(keyword, object, value.last, context);
                }
                self.carry(&found, value.last, context, false);
                self.mark_director(&found, value, context);
                if context.is_fetch() && found.means == Means::Variable(Var::BerespGrace) {
                    let note = "who finds a stale object waits for the new one, together with all who come meanwhile, \
                                unless the backend is sick";
                    self.listed(keyword, note);
                }
            }
            NewName::Nothing => {
                let end = self.row.semicolon(value.last);
                self.comment_out(keyword, end, "it has no effect any more");
            }
            NewName::Treatment(row) => self.changed(keyword, operator, value, &found, row.treatment, row.note, context),
        }
    }

    /// True if an expression is just a header.
    fn is_header(&self, value: &Expression, context: Context) -> bool {
        let ExpressionKind::Path(path) = &value.kind else { return false };
        self.variable(path, context.old, Use::Read).is_some_and(|found| found.header.is_some())
    }

    /// Up to 2.1, setting a header to nothing removed it.
    fn set_or_unset(&mut self, keyword: At, name: &str, found: &Found, value: &Expression, context: Context) {
        self.carry(found, value.last, context, false);
        let statement = self.written(keyword, value.last);
        let ExpressionKind::Path(path) = &value.kind else { return };
        let source =
            match self.variable(path, context.old, Use::Read).map(|found| self.new_name(&found, context, Use::Read)) {
                Some(NewName::Name(source)) => source,
                _ => return,
            };
        let end = self.row.semicolon(value.last);
        let text =
            [format!("if ({source}) {{ ").as_bytes(), &statement, format!("; }} else {{ unset {name}; }}").as_bytes()]
                .concat();
        self.edits.replace(keyword, end, text);
    }

    /// Setting a status used to leave the reason unchanged.
    fn keep_reason(&mut self, keyword: At, object: &str, last: At, context: Context) {
        let next = self.next_statement(keyword);
        let next = next.trim_start_matches(';');
        let kept = if context.is_fetch() { "bereq.http.migrate-kept" } else { "req.http.migrate-kept" };
        self.edits.before(keyword, &format!("set {kept} = {object}.reason;{next}"));
        self.edits.after(last, &format!(";{next}set {object}.reason = {kept}"));
        self.found.keeps_reason |= !context.is_fetch();
    }

    fn hash(&mut self, keyword: At, value: &Expression, context: Context) {
        let end = self.row.semicolon(value.last);
        if context.new != Method::Hash {
            return self.comment_out(keyword, end, "the hash is made in vcl_hash alone");
        }
        let written = self.written(value.first, value.last);
        self.edits.replace(keyword, value.last, [b"hash_data(", &written[..], b")"].concat());
    }

    /// Assigns to a variable that has moved.
    #[allow(clippy::too_many_arguments)]
    fn changed(
        &mut self,
        keyword: At,
        operator: At,
        value: &Expression,
        found: &Found,
        treatment: Treatment,
        note: &str,
        context: Context,
    ) {
        let end = self.row.semicolon(value.last);
        let written = self.written(value.first, value.last);
        let name: Vec<u8> = match treatment {
            Treatment::ToBackendFetch => self.carry_to_backend_fetch(found).into_bytes(),
            Treatment::ToDelivery => self.carry_to_delivery(found).into_bytes(),
            Treatment::Cacheable => {
                let name = "bereq.http.migrate-cacheable";
                let text: Vec<u8> = match &written[..] {
                    b"true" => format!("set {name} = \"true\"").into_bytes(),
                    b"false" => format!("unset {name}").into_bytes(),
                    _ => [
                        b"if (",
                        &written[..],
                        format!(") {{ set {name} = \"true\"; }} else {{ unset {name}; }}").as_bytes(),
                    ]
                    .concat(),
                };
                let last = if text.starts_with(b"if") { end } else { end - 1 };
                return self.edits.replace(keyword, last, text);
            }
            Treatment::Age(times) => {
                let vmod = self.vmod("purge");
                let value: &[u8] = &written;
                let over = matches!(value, b"0s" | b"0");
                let arguments = match times {
                    // In 3.0 this ended the life of the object.
                    Times::Ttl if over && generation_of(self.dialect) == Generation::V3 => b"0s, 0s, 0s".to_vec(),
                    Times::Ttl => value.to_vec(),
                    Times::Grace => [b"obj.ttl, ", value].concat(),
                    Times::Keep => [b"obj.ttl, -1s, ", value].concat(),
                };
                self.edits.replace(keyword, value_end(end), [vmod.as_bytes(), b".soft(", &arguments, b")"].concat());
                return if over {
                    self.listed(keyword, "all variants of the object end")
                } else {
                    self.note(keyword, note)
                };
            }
            Treatment::Esi => match context.new {
                Method::Deliver | Method::Synth => b"resp.do_esi".to_vec(),
                Method::BackendResponse if written == b"false" => b"beresp.do_esi".to_vec(),
                Method::BackendResponse => return self.comment_out(keyword, end, "it was so already"),
                _ => {
                    self.found.sets_esi = true;
                    b"req.http.migrate-esi".to_vec()
                }
            },
            Treatment::Storage => {
                let literal = written.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
                let Some(literal) = literal.filter(|_| value.kind_is_text()) else {
                    return self.comment_out(keyword, end, "a storage is named as storage.NAME");
                };
                if !self.storages.iter().any(|known| known.as_bytes() == literal) {
                    return self.comment_out(keyword, end, "there is no storage of that name");
                }
                let text = [b"set beresp.storage = storage.", literal].concat();
                self.edits.replace(keyword, value_end(end), text);
                return self.note(keyword, note);
            }
            Treatment::Saint => {
                self.found.blacklists = true;
                let vmod = self.vmod("saintmode");
                let text = [vmod.as_bytes(), b".blacklist(", &written[..], b")"].concat();
                self.edits.replace(keyword, value_end(end), text);
                return self.listed(keyword, note);
            }
            Treatment::Value(_) | Treatment::Gone | Treatment::Restarts => {
                let why = if note.is_empty() { "it has no effect any more" } else { note };
                return self.comment_out(keyword, end, why);
            }
        };
        let operator = self.row.text(operator).as_bytes().to_vec();
        self.edits.replace(keyword, value_end(end), [b"set ", &name[..], b" ", &operator, b" ", &written].concat());
        if !note.is_empty() {
            self.note(keyword, note);
        }
    }

    /// Header that carries a change of `bereq` to the point where `bereq` exists.
    fn carry_to_backend_fetch(&mut self, found: &Found) -> String {
        let what = match (found.means, &found.header) {
            (Means::Variable(Var::BereqUrl), _) => "url".to_owned(),
            (Means::Variable(Var::BereqMethod), _) => "method".to_owned(),
            (Means::Variable(Var::BereqConnectTimeout), _) => "connect_timeout".to_owned(),
            (Means::Variable(Var::BereqFirstByteTimeout), _) => "first_byte_timeout".to_owned(),
            (Means::Variable(Var::BereqBetweenBytesTimeout), _) => "between_bytes_timeout".to_owned(),
            (_, header) => format!("http.{}", header.as_deref().unwrap_or("")),
        };
        let header = carrier("bereq", &what);
        self.found.to_backend_fetch.insert(what);
        format!("req.http.{header}")
    }

    /// The header that carries a change of the object to the response.
    fn carry_to_delivery(&mut self, found: &Found) -> String {
        let header = found.header.clone().unwrap_or_default();
        let name = carrier("obj", &format!("http.{header}"));
        self.found.to_delivery.insert(header);
        format!("req.http.{name}")
    }

    /// After a change of the request in `vcl_fetch`: carries it to the client's side if it is read
    /// there.
    fn carry(&mut self, found: &Found, last: At, context: Context, unset: bool) {
        let what = match (found.means, &found.header) {
            (Means::Variable(Var::ReqHttp), Some(header)) => format!("http.{header}"),
            (Means::Variable(Var::ReqUrl), _) => "url".to_owned(),
            _ => return,
        };
        if matches!(context.old, Method::Miss | Method::Pass)
            && self.known.read_in_fetch.contains(&what.to_ascii_lowercase())
        {
            self.listed(last, "bereq is made after this: the backend sees the change");
        }
        let Some(spelled) = self.carried.get(&what.to_ascii_lowercase()).cloned() else { return };
        if !context.is_fetch() {
            return;
        }
        let next = self.next_statement(last);
        let header = carrier("req", &spelled);
        let value = if unset { "\"\"".to_owned() } else { format!("bereq.{spelled}") };
        // Inserted after the statement, whose own semicolon then ends this one.
        self.edits.after(last, &format!("{next}set beresp.http.{header} = {value}"));
        self.listed(
            last,
            &format!("vcl_fetch changes req.{what}: it reaches the client's side in a header of the response"),
        );
    }

    fn unset(&mut self, keyword: At, target: &Path, context: Context) {
        self.edits.replace(keyword, keyword, "unset");
        let Some(found) = self.variable(target, context.old, Use::Unset) else { return };
        let end = self.row.semicolon(target.last());
        self.remember(&found, context, Use::Unset);
        match self.new_name(&found, context, Use::Unset) {
            NewName::Name(name) | NewName::Value(name) => {
                if name != self.path_text(target) {
                    self.edits.replace(target.first(), target.last(), name);
                }
                self.carry(&found, target.last(), context, true);
            }
            NewName::Treatment(row) => {
                let name = match row.treatment {
                    Treatment::ToBackendFetch => self.carry_to_backend_fetch(&found),
                    Treatment::ToDelivery => self.carry_to_delivery(&found),
                    _ => return self.comment_out(keyword, end, row.note),
                };
                self.edits.replace(keyword, value_end(end), format!("set {name} = \"\""));
                if !row.note.is_empty() {
                    self.note(keyword, row.note);
                }
            }
            NewName::Nothing => self.comment_out(keyword, end, "it has no effect any more"),
        }
    }

    /// `error 404 "reason";`
    fn error(&mut self, keyword: At, status: Option<&Expression>, reason: Option<&Expression>, context: Context) {
        let end = self.row.semicolon(keyword);
        // A text at the position of the status is the reason.
        let text_alone = status.filter(|status| reason.is_none() && self.kind(status, context) != Type::Int);
        let (status, reason) = if text_alone.is_some() { (None, status) } else { (status, reason) };
        let mut part = |tree: &Expression| {
            self.expression(tree, context, keyword);
            self.written(tree.first, tree.last)
        };
        let status = status.map_or(b"503".to_vec(), &mut part);
        let reason = reason.map(part);
        let text = self.error_text(&status, reason.as_deref(), keyword, context);
        self.edits.replace(keyword, value_end(end), text);
    }

    /// The code that ends a subroutine with an error.
    fn error_text(&mut self, status: &[u8], reason: Option<&[u8]>, keyword: At, context: Context) -> Vec<u8> {
        if context.new == Method::Synth {
            // An error during the delivery of an error page had no further effect.
            return b"return (deliver)".to_vec();
        }
        if !context.is_fetch() {
            let reason = reason.map_or(Vec::new(), |reason| [b", ", reason].concat());
            return [b"return (synth(", status, &reason, b"))"].concat();
        }
        self.found.errors_in_fetch = true;
        self.listed(keyword, "an error in vcl_fetch is the client's: it reaches vcl_synth by way of vcl_deliver");
        let next = self.next_statement(keyword).into_bytes();
        let reason = reason.map_or(Vec::new(), |reason| [b"set beresp.http.migrate-reason = ", reason, &next].concat());
        [b"set beresp.http.migrate-error = ", status, &next, &reason, b"call migrate_error"].concat()
    }

    fn restart(&mut self, keyword: At, context: Context) -> String {
        self.found.restarts = true;
        if context.is_fetch() {
            self.found.restarts_in_fetch = true;
            return "call migrate_restart".to_owned();
        }
        if context.new == Method::Synth {
            // When no restart was left, the page was delivered.
            let next = self.next_statement(keyword);
            let next = next.trim_start_matches(';');
            let deliver = String::from_utf8_lossy(&self.deliver_page(keyword, context)).into_owned();
            return format!("if (req.restarts < {RESTARTS_MAX}) {{ return (restart); }}{next}{deliver}");
        }
        "return (restart)".to_owned()
    }

    /// `return (deliver)` of an error page.
    fn deliver_page(&mut self, keyword: At, context: Context) -> Vec<u8> {
        let before = match &self.delivery {
            Some(name) if context.old == Method::Synth => format!("call {name}{}", self.next_statement(keyword)),
            _ => String::new(),
        };
        format!("{before}return (deliver)").into_bytes()
    }

    /// `return (miss)` and `return (fetch)` in vcl_hit of the first releases of VCL 4.
    fn fetch_anew(&mut self, keyword: At) {
        let text = "the request restarts, so vcl_recv runs again: check what it does if req.restarts > 0";
        self.listed(keyword, text);
        let next = self.next_statement(keyword);
        let text = format!("set req.hash_always_miss = true{next}return (restart)");
        self.edits.replace(keyword, value_end(self.row.semicolon(keyword)), text);
    }

    /// `return (word);` and `word;`
    fn end(&mut self, keyword: At, action: &ReturnAction, context: Context) {
        let word = self.row.text(action.name);
        if self.language.is_none() {
            let retired = context.old.row().retired_actions;
            if retired.iter().any(|action| action.name() == word) {
                self.fetch_anew(keyword);
            }
            return;
        }
        let Some(meaning) = self.dialect.legacy_action(context.old, word) else { return };
        let end = self.row.semicolon(keyword);
        let defaults = defaults(generation_of(self.dialect));
        let text: Vec<u8> = match meaning {
            Action::Synth => self.error_text(b"503", None, keyword, context),
            Action::Restart => {
                if context.is_fetch() {
                    let text =
                        "the client's request restarts by way of vcl_deliver, not the fetch (which would be retry)";
                    self.listed(keyword, text);
                }
                self.restart(keyword, context).into_bytes()
            }
            Action::Pass if context.is_fetch() && defaults.pass_lives => {
                self.found.passes_in_fetch = true;
                b"call migrate_pass".to_vec()
            }
            Action::Pass if context.is_fetch() => b"return (pass(beresp.ttl))".to_vec(),
            Action::Deliver if context.is_fetch() => {
                self.found.delivers_in_fetch = true;
                b"call migrate_deliver".to_vec()
            }
            Action::Deliver if context.old == Method::Synth => self.deliver_page(keyword, context),
            Action::Ok => b"return (ok)".to_vec(),
            other => {
                // Only the word differs.
                if action.name != keyword {
                    if other.name() != word {
                        self.edits.replace(action.name, action.name, other.name());
                    }
                    return;
                }
                format!("return ({})", other.name()).into_bytes()
            }
        };
        self.edits.replace(keyword, value_end(end), text);
    }

    /// Translates bans of 2.x to the form of `ban()`.
    fn old_ban(&mut self, keyword: At, value: &Expression, context: Context) {
        let word = self.row.text(keyword);
        let meaning = self.dialect.statements.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        let ignores_case = self.dialect.forms.patterns_ignore_case;
        let end = self.row.semicolon(value.last);
        let written: Vec<u8> = match meaning.map(|(_, meaning)| *meaning) {
            Some(StatementWord::BanUrl) => {
                self.expression(value, context, keyword);
                let start: &[u8] = if ignores_case { b"\"req.url ~ (?i)\" + " } else { b"\"req.url ~ \" + " };
                [start, &self.written(value.first, value.last)].concat()
            }
            Some(StatementWord::PurgeHash) => {
                self.expression(value, context, keyword);
                self.note(keyword, "what was hashed is not kept as text: the ban looks at the URL alone");
                let value = self.written(value.first, value.last);
                [b"\"req.url ~ (?i)\" + regsub(", &value[..], b", \"#.*$\", \"\")"].concat()
            }
            _ => match self.written_ban(value, context, keyword) {
                Some(text) => text,
                None => {
                    self.expression(value, context, keyword);
                    self.written(value.first, value.last)
                }
            },
        };
        self.edits.replace(keyword, value_end(end), [b"ban(", &written[..], b")"].concat());
    }

    /// `req.url == "…" && obj.http.x ~ "…"`: left sides and operators become text, right sides are
    /// values.
    fn written_ban(&mut self, value: &Expression, context: Context, keyword: At) -> Option<Vec<u8>> {
        let tests = match &value.kind {
            ExpressionKind::And(tests) => tests.as_slice(),
            _ => std::slice::from_ref(value),
        };
        let mut parts = Vec::new();
        for (index, test) in tests.iter().enumerate() {
            let ExpressionKind::Compare(sides, operator) = &test.kind else { return None };
            let ExpressionKind::Path(path) = &sides.0.kind else { return None };
            let joint = if index > 0 { " && " } else { "" };
            let text = format!("{joint}{} {} ", self.path_text(path), self.row.text(*operator));
            parts.push(quoted(text.as_bytes()));
            self.expression(&sides.1, context, keyword);
            parts.push(self.written(sides.1.first, sides.1.last));
        }
        Some(parts.join(&b" + "[..]))
    }
}

/// The last token before the semicolon of a statement.
fn value_end(semicolon: At) -> At {
    semicolon.saturating_sub(1)
}

/// Name of a header that carries a value from one side to the other. `what` is `http.Name` or a
/// property.
pub(super) fn carrier(from: &str, what: &str) -> String {
    match what.strip_prefix("http.") {
        Some(header) => quoted_header(&shortened(format!("migrate-{from}-{header}"))),
        None => format!("migrate-{from}_{what}"),
    }
}

/// A valid header name: if the name is too long, its end is replaced by a checksum.
fn shortened(mut name: String) -> String {
    const CHECKSUM_DIGITS: usize = 16;
    if name.len() > HEADER_NAME_BYTES_MAX {
        // FNV-1a of the lower-case letters, since header names ignore case.
        let checksum = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
        });
        // Names are ASCII.
        name.truncate(HEADER_NAME_BYTES_MAX - CHECKSUM_DIGITS);
        name += &format!("{checksum:016x}");
    }
    name
}
