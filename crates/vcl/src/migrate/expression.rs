//! Expressions: names, consecutive strings, numbers without a unit, old patterns.

use super::name_of::NameOf;
use super::tables::{Treatment, Use};
use super::writer::{Context, Found, NewName, Writer};
use crate::source::{Kind, Sign};
use crate::tree::{At, Expression, ExpressionKind, Path, Segment};
use surface::vcl::legacy::Means;
use surface::vcl::{Method, Type, Var};

impl Writer<'_> {
    /// Rewrites an expression; notes are put before the token `statement`.
    pub(super) fn expression(&mut self, tree: &Expression, context: Context, statement: At) {
        match &tree.kind {
            ExpressionKind::Or(parts) | ExpressionKind::And(parts) => {
                for part in parts {
                    self.expression(part, context, statement);
                }
            }
            ExpressionKind::Not(inner) | ExpressionKind::Group(inner) | ExpressionKind::Negate(inner) => {
                self.expression(inner, context, statement);
            }
            ExpressionKind::Compare(sides, operator) => self.comparison(sides, *operator, context, statement),
            ExpressionKind::Sum(first, rest) => {
                self.expression(first, context, statement);
                for (_, part) in rest {
                    self.expression(part, context, statement);
                }
                let counts = |kind| matches!(kind, Type::Duration | Type::Time);
                if counts(self.kind(first, context)) || rest.iter().any(|(_, part)| counts(self.kind(part, context))) {
                    self.seconds(first);
                    rest.iter().for_each(|(_, part)| self.seconds(part));
                }
            }
            ExpressionKind::Product(first, rest) => {
                self.expression(first, context, statement);
                for (_, part) in rest {
                    self.expression(part, context, statement);
                }
            }
            ExpressionKind::Juxtaposed(parts) => self.joined(parts, context, statement),
            ExpressionKind::Path(path) => self.read(path, context, statement, false),
            ExpressionKind::Member(base, members) => {
                self.expression(base, context, statement);
                self.arguments(members, context, statement);
            }
            ExpressionKind::Text => self.text_literal(tree.first, false),
            ExpressionKind::Number(_) | ExpressionKind::Blob | ExpressionKind::Unexpected | ExpressionKind::Broken => {}
        }
    }

    /// The type of an expression, as far as it is easily seen.
    pub(super) fn kind(&self, tree: &Expression, context: Context) -> Type {
        match &tree.kind {
            ExpressionKind::Path(path) => match self.variable(path, context.old, Use::Read) {
                Some(found) => found.kind,
                None => Type::String,
            },
            ExpressionKind::Number(Some(unit)) => match self.row.text(*unit) {
                "B" | "KB" | "MB" | "GB" | "TB" => Type::Bytes,
                _ => Type::Duration,
            },
            ExpressionKind::Number(None) => Type::Int,
            ExpressionKind::Sum(first, _) | ExpressionKind::Product(first, _) => self.kind(first, context),
            ExpressionKind::Group(inner) | ExpressionKind::Negate(inner) => self.kind(inner, context),
            ExpressionKind::Or(_) | ExpressionKind::And(_) | ExpressionKind::Not(_) | ExpressionKind::Compare(..) => {
                Type::Bool
            }
            _ => Type::String,
        }
    }

    /// Adds to a number without a unit the unit that it had implicitly.
    pub(super) fn seconds(&mut self, tree: &Expression) {
        match &tree.kind {
            ExpressionKind::Number(None) => self.edits.after(tree.last, "s"),
            ExpressionKind::Group(inner) | ExpressionKind::Negate(inner) => self.seconds(inner),
            ExpressionKind::Sum(first, rest) => {
                self.seconds(first);
                rest.iter().for_each(|(_, part)| self.seconds(part));
            }
            _ => {}
        }
    }

    fn comparison(&mut self, sides: &(Expression, Expression), operator: At, context: Context, statement: At) {
        let (left, right) = sides;
        let sign = self.row.token(operator).kind;
        if matches!(sign, Kind::Sign(Sign::Match | Sign::NotMatch)) {
            self.expression(left, context, statement);
            match &right.kind {
                ExpressionKind::Text => self.text_literal(right.first, true),
                // The name of an acl.
                ExpressionKind::Path(path) if path.segments.len() == 1 => {
                    let old = self.row.text(path.first());
                    let new = self.name_now(NameOf::Acl, old);
                    if new != old {
                        self.edits.replace(path.first(), path.last(), new);
                    }
                }
                _ => self.expression(right, context, statement),
            }
            return;
        }
        let kinds = (self.kind(left, context), self.kind(right, context));
        if self.dialect.forms.address_equals_acl {
            let address = match kinds {
                (Type::Ip, _) if right.kind_is_text() => Some((left, right)),
                (_, Type::Ip) if left.kind_is_text() => Some((right, left)),
                _ => None,
            };
            if let Some((address, text)) = address {
                self.expression(address, context, statement);
                let value = self.written(address.first, address.last);
                let literal = self.row.sources.bytes(self.row.token(text.first)).to_vec();
                let name = self.acl_of(&String::from_utf8_lossy(&literal));
                let sign: &[u8] = if sign == Kind::Sign(Sign::NotEqual) { b"!~" } else { b"~" };
                self.edits.replace(left.first, right.last, [&value[..], b" ", sign, b" ", name.as_bytes()].concat());
                return;
            }
        }
        for side in [left, right] {
            match &side.kind {
                ExpressionKind::Path(path) => self.read(path, context, statement, true),
                _ => self.expression(side, context, statement),
            }
        }
        if self.dialect.forms.bare_seconds {
            let counts = |kind| matches!(kind, Type::Duration | Type::Time);
            if counts(kinds.0) {
                self.seconds(right);
            } else if counts(kinds.1) {
                self.seconds(left);
            }
        }
    }

    /// Creates an acl with one entry.
    fn acl_of(&mut self, literal: &str) -> String {
        if let Some(name) = self.acl_names.get(literal) {
            return name.clone();
        }
        let mut number = self.new_acls.len() + 1;
        while self.acls.contains(&format!("migrate_address_{number}")) {
            number += 1;
        }
        let name = format!("migrate_address_{number}");
        self.acl_names.insert(literal.to_owned(), name.clone());
        self.new_acls.push(format!("acl {name} {{\n    {literal};\n}}\n"));
        name
    }

    /// Consecutive strings.
    fn joined(&mut self, parts: &[Expression], context: Context, statement: At) {
        for (index, part) in parts.iter().enumerate() {
            self.expression(part, context, statement);
            if index + 1 == parts.len() {
                break;
            }
            // Two numbers would be added.
            let number = |tree: &Expression| {
                matches!(self.kind(tree, context), Type::Int | Type::Real | Type::Duration | Type::Time | Type::Bytes)
            };
            let sum = index == 0 && number(part) && number(&parts[1]);
            self.edits.after(part.last, if sum { " + \"\" +" } else { " +" });
        }
    }

    /// A path that is read: a variable, a function with its arguments, the name of a backend.
    fn read(&mut self, path: &Path, context: Context, statement: At, compared: bool) {
        if path.segments.iter().any(|segment| segment.arguments.is_some()) {
            self.vmod_call(path);
            self.arguments(&path.segments, context, statement);
            return;
        }
        if let [storage, name, property] = &path.segments[..]
            && self.dialect.forms.storages_by_name
            && self.row.text(storage.name) == "storage"
            && !self.storages.iter().any(|known| known == self.row.text(name.name))
        {
            let text = format!("there is no storage {}: it reads as nothing", self.row.text(name.name));
            self.note(statement, &text);
            let value = match self.row.text(property.name) {
                "happy" => "false",
                _ if compared => "0B",
                // The value may be used in a calculation.
                _ => "0",
            };
            return self.edits.replace(path.first(), path.last(), value);
        }
        let Some(found) = self.variable(path, context.old, Use::Read) else {
            if let [segment] = &path.segments[..]
                && let Some(value) =
                    self.backend_value(self.row.text(segment.name), if context.is_fetch() { "bereq" } else { "req" })
            {
                self.edits.replace(path.first(), path.last(), value);
            }
            return;
        };
        self.remember(&found, context, Use::Read);
        self.note_changed_header(&found, context, statement);
        let new = match self.new_name(&found, context, Use::Read) {
            NewName::Name(name) | NewName::Value(name) => name,
            NewName::Nothing => return,
            NewName::Treatment(row) => {
                if !row.note.is_empty() {
                    self.note(statement, row.note);
                }
                self.fate_value(row.treatment, &found, context, compared)
            }
        };
        if new != self.path_text(path) {
            self.edits.replace(path.first(), path.last(), new);
        }
    }

    /// Replacement for reading a variable that has moved.
    fn fate_value(&mut self, treatment: Treatment, found: &Found, context: Context, compared: bool) -> String {
        match treatment {
            Treatment::Value(text) if text.contains("{std}") => {
                let std = self.vmod("std");
                text.replace("{std}", &std)
            }
            Treatment::Value(text) => text.to_owned(),
            Treatment::Cacheable if compared => "(bereq.http.migrate-cacheable ~ \".\")".to_owned(),
            Treatment::Cacheable => "bereq.http.migrate-cacheable".to_owned(),
            Treatment::Restarts => {
                self.found.reads_restarts = true;
                format!("{}.get_int(\"restarts\")", self.vmod("var"))
            }
            Treatment::Esi => match context.new {
                Method::Deliver | Method::Synth => "resp.do_esi".to_owned(),
                Method::BackendResponse => "true".to_owned(),
                _ => "(req.http.migrate-esi != \"false\")".to_owned(),
            },
            Treatment::Storage => "beresp.storage".to_owned(),
            // Here the request to be sent is still the client's.
            Treatment::ToBackendFetch => match found.means {
                Means::Variable(Var::BereqHttp) => self.name_of(Var::ReqHttp, found.header.as_deref()),
                Means::Variable(Var::BereqUrl) => "req.url".to_owned(),
                _ => "req.method".to_owned(),
            },
            Treatment::Gone | Treatment::Age(_) | Treatment::ToDelivery | Treatment::Saint => "\"\"".to_owned(),
        }
    }

    /// A VMOD whose name would collide gets another one.
    pub(super) fn vmod_call(&mut self, path: &Path) {
        let first = self.row.text(path.first());
        if let Some(alias) = self.aliases.get(first).cloned() {
            self.edits.replace(path.first(), path.first(), alias);
        }
    }

    /// The arguments of functions.
    pub(super) fn arguments(&mut self, segments: &[Segment], context: Context, statement: At) {
        for segment in segments {
            let Some(arguments) = &segment.arguments else { continue };
            let substitutes = matches!(self.row.text(segment.name), "regsub" | "regsuball");
            for (index, item) in arguments.items.iter().enumerate() {
                let literal = item.value.kind_is_text();
                match (substitutes, index) {
                    (true, 1) if literal => self.text_literal(item.value.first, true),
                    (true, 2) if literal => self.replacement(item.value.first),
                    _ => self.expression(&item.value, context, statement),
                }
            }
        }
    }

    /// A string: in some dialects `%41` means `A`, and in one of them patterns ignore case.
    pub(super) fn text_literal(&mut self, index: At, pattern: bool) {
        let raw = self.row.sources.bytes(self.row.token(index));
        let content = self.row.sources.content(self.row.token(index));
        let escaped = self.dialect.forms.percent_escapes && raw.starts_with(b"\"") && raw.contains(&b'%');
        let ignores_case = pattern && self.dialect.forms.patterns_ignore_case && !content.starts_with(b"(?i)");
        if !escaped && !ignores_case {
            return;
        }
        let mut text = content.to_vec();
        if ignores_case {
            text.splice(0..0, b"(?i)".iter().copied());
        }
        self.edits.replace(index, index, quoted(&text));
    }

    /// The replacement of a match: one dialect has `$1` and `&`.
    fn replacement(&mut self, index: At) {
        self.text_literal(index, false);
        if !self.dialect.forms.dollar_groups {
            return;
        }
        let content = self.row.sources.content(self.row.token(index));
        let mut text = Vec::with_capacity(content.len());
        let mut next = 0;
        while let Some(&byte) = content.get(next) {
            let after = content.get(next + 1).copied();
            match (byte, after) {
                (b'\\', Some(after)) => {
                    text.extend([byte, after]);
                    next += 1;
                }
                (b'$', Some(digit)) if digit.is_ascii_digit() => text.push(b'\\'),
                (b'&', _) => text.extend_from_slice(b"\\0"),
                _ => text.push(byte),
            }
            next += 1;
        }
        if text != content {
            self.edits.replace(index, index, quoted(&text));
        }
    }
}

/// A string in quotes that can hold it.
pub(super) fn quoted(text: &[u8]) -> Vec<u8> {
    let has = |what: &[u8]| text.windows(what.len()).any(|window| window == what);
    let (open, close): (&[u8], &[u8]) = if !has(b"\"") && !has(b"\n") && !has(b"\r") {
        (b"\"", b"\"")
    } else if !has(b"\"}") {
        (b"{\"", b"\"}")
    } else {
        (b"\"\"\"", b"\"\"\"")
    };
    [open, text, close].concat()
}

impl Expression {
    /// True for a string in quotes.
    pub(super) fn kind_is_text(&self) -> bool {
        matches!(self.kind, ExpressionKind::Text)
    }
}
