//! Variables: from the words of a path to a row of [`surface::vcl::VARIABLES`].

use super::{Checked, Checker, Reported, UseKind, nearest};
use crate::diagnostic::Draft;
use crate::source::Kind;
use crate::tree::{At, Path};
use crate::variable_names::names;
use std::borrow::Cow;
use surface::diagnostic::Code;
use surface::vcl::legacy::Means;
use surface::vcl::{HttpObject, Type, VARIABLES, Var, VariableRow};

/// Longest header name, in bytes. Compat: the longest that Varnish 7.1 accepts.
pub(crate) const HEADER_NAME_BYTES_MAX: usize = 126;

/// A variable found at the start of a path.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) row: VariableRow,
    /// The meaning, if it belongs to an old dialect.
    pub(super) means: Means,
    /// The header, for `*.http.*`.
    pub(super) header: Option<(HttpObject, String)>,
    /// The storage, for `storage.*`.
    pub(super) storage: Option<u32>,
    /// Number of words of the path that name it.
    pub(super) segments: usize,
}

/// The result of looking for a variable.
pub(super) enum Lookup {
    Found(Variable),
    /// The path names a storage itself.
    Storage(u32),
    /// The path begins like a header but names none: `req.http`.
    Family,
    None,
}

/// A word in lower case; most are already written that way.
fn lower(word: &str) -> Cow<'_, str> {
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(word.to_ascii_lowercase())
    } else {
        Cow::Borrowed(word)
    }
}

/// The message whose headers that family of variables contains.
pub(super) fn http_object(var: Var) -> Option<HttpObject> {
    Some(match var {
        Var::ReqHttp => HttpObject::Req,
        Var::ReqTopHttp => HttpObject::ReqTop,
        Var::BereqHttp => HttpObject::Bereq,
        Var::BerespHttp => HttpObject::Beresp,
        // On one side this is the object, on the other the stale object.
        Var::ObjHttp | Var::ObjStaleHttp => HttpObject::Obj,
        Var::RespHttp => HttpObject::Resp,
        _ => return None,
    })
}

/// A suggestion for a header of a misspelt family: `req.htpp.Host`.
pub(super) fn nearest_header(written: &str) -> Option<String> {
    const FAMILIES: [&str; 6] = ["req.http", "bereq.http", "beresp.http", "resp.http", "obj.http", "req_top.http"];
    let (second_dot, _) = written.match_indices('.').nth(1)?;
    let (family, name) = written.split_at(second_dot);
    nearest(family, FAMILIES.into_iter()).map(|family| format!("{family}{name}"))
}

impl Checker<'_> {
    /// Finds the longest variable that a path begins with.
    ///
    /// # Errors
    /// If the path is a variable that cannot be used; the error has been reported.
    pub(super) fn find_variable(&mut self, path: &Path, kind: UseKind) -> Checked<Lookup> {
        let plain = path.segments.iter().take(3).take_while(|segment| segment.arguments.is_none()).count();
        let words: Vec<Cow<'_, str>> =
            path.segments[..plain].iter().map(|segment| lower(self.text(segment.name))).collect();
        if words.first().is_some_and(|word| word == "storage") {
            return self.find_storage(path, &words);
        }
        if let Some(language) = self.dialect.language {
            return self.find_legacy_variable(language, path, kind);
        }
        if words.len() >= 2 && words[1] == "http" {
            let family = format!("{}.http.*", words[0]);
            if let Some(rows) = names().get(family.as_str()) {
                let row = *rows[0];
                let means = Means::Variable(row.var);
                let Some(segment) = path.segments.get(2) else {
                    return Ok(Lookup::Family);
                };
                let Some(http) = http_object(row.var) else { return Ok(Lookup::None) };
                let name = self.header_name(segment.name)?;
                if name.is_empty() {
                    return Ok(Lookup::Family);
                }
                let header = Some((http, name));
                return Ok(Lookup::Found(Variable { row, means, header, storage: None, segments: 3 }));
            }
        }
        let mut other_version = None;
        for segments in (1..=words.len()).rev() {
            let name = if segments == 1 { words[0].clone() } else { Cow::Owned(words[..segments].join(".")) };
            let Some(rows) = names().get(&*name) else { continue };
            let syntax = self.loaded.syntax;
            let fits =
                |row: &&&VariableRow| row.syntax_min <= syntax && (row.syntax_max == 41 || syntax <= row.syntax_max);
            if let Some(row) = rows.iter().find(fits) {
                // A message about a longer name that this version lacks is better than one about a
                // property of a shorter name.
                if other_version.is_none() {
                    let (row, means) = (**row, Means::Variable(row.var));
                    return Ok(Lookup::Found(Variable { row, means, header: None, storage: None, segments }));
                }
                break;
            }
            other_version = other_version.or(rows.first().copied());
        }
        match other_version {
            Some(row) => {
                let first = path.first();
                let last = path.segments[row.name.matches('.').count().min(path.segments.len() - 1)].name;
                let when = if row.syntax_min == 41 {
                    "(Only available when 4.1 <= VCL syntax)"
                } else {
                    "(Only available when VCL syntax <= 4.0)"
                };
                let name: String = (first..=last).map(|index| self.text(index)).collect();
                let instead = self.dialect.renamed.iter().find(|(old, _)| *old == row.name);
                let draft = Draft::new(Code::OtherVersion);
                // When a member of an existing variable is read, Varnish finds the variable and
                // reports the member as missing.
                let whole = row.name.rsplit_once('.').filter(|_| kind == UseKind::Read);
                let draft = match whole.and_then(|(whole, part)| Some((names().get(whole)?.first()?.kind, part))) {
                    Some((kind, part)) => draft
                        .text(format!("Unknown property '{part}' for type {}\n", kind.name()))
                        .at(self.token(last))
                        .hint(when.trim_matches(['(', ')']))
                        .primary(self.token(first), self.token(last)),
                    None => {
                        let draft = draft.text(format!("Symbol not found: '{name}' {when}\nAt: "));
                        draft.between(self.token(first), self.token(last))
                    }
                };
                Err(self.error(first, draft.maybe_hint(instead.map(|(_, new)| format!("use {new}")))))
            }
            None => Ok(Lookup::None),
        }
    }

    fn find_storage(&mut self, path: &Path, words: &[Cow<'_, str>]) -> Checked<Lookup> {
        let Some(name) = words.get(1) else { return Ok(Lookup::None) };
        let found = self.options.storages.iter().position(|storage| storage.eq_ignore_ascii_case(name));
        let Some(index) = found else {
            let all = self.options.storages.join(", ");
            let help = if all.is_empty() { None } else { Some(format!("storages: {all}")) };
            let last = path.segments[words.len() - 1].name;
            let written: String = (path.first()..=last).map(|index| self.text(index)).collect();
            return Err(self.not_found(&written, path.first(), last, help.as_deref()));
        };
        let index = index as u32;
        let property = words.get(2).and_then(|word| names().get(format!("storage.*.{word}").as_str()));
        Ok(match property {
            Some(rows) => Lookup::Found(Variable {
                row: *rows[0],
                means: Means::Variable(rows[0].var),
                header: None,
                storage: Some(index),
                segments: 3,
            }),
            None => Lookup::Storage(index),
        })
    }

    /// A header name, quoted or not.
    pub(super) fn header_name(&mut self, token: At) -> Checked<String> {
        let quoted = self.token(token).kind == Kind::Text;
        let bytes = if quoted { self.loaded.sources.content(self.token(token)) } else { self.text(token).as_bytes() };
        if quoted && self.loaded.syntax < 41 {
            let draft = Draft::new(Code::HeaderName).text("Quoted headers are available for VCL >= 4.1.\nAt:");
            return Err(self.error(token, draft.at(self.token(token))));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if let Some(&wrong) = bytes.iter().find(|&&byte| !allowed(byte)) {
            let text = format!("Invalid character '{}' in header name.", wrong.escape_ascii());
            return Err(self.error_at(Code::HeaderName, &text, token));
        }
        let name = String::from_utf8_lossy(bytes).into_owned();
        if name.len() > HEADER_NAME_BYTES_MAX {
            return Err(self.error_at(Code::HeaderName, &format!("HTTP header ({name:.20}..) is too long."), token));
        }
        Ok(name)
    }

    /// The variable that `set` and `unset` name.
    pub(super) fn target(&mut self, path: &Path) -> Checked<Variable> {
        let (first, last) = (path.first(), path.last());
        let written: String = (first..=last).map(|index| self.text(index)).collect();
        let variable = match self.find_variable(path, UseKind::Set)? {
            Lookup::Found(variable) if variable.storage.is_some() => {
                return Err(self.unknown_variable(&written, first, last));
            }
            Lookup::Found(variable) if variable.segments == path.segments.len() => variable,
            Lookup::Found(_) | Lookup::Storage(_) => return Err(self.unknown_variable(&written, first, last)),
            Lookup::Family => return Err(self.family_alone(&written, first, last)),
            Lookup::None => {
                let name = self.text(first);
                if path.segments.len() == 1 && (self.symbol(name).is_some() || self.builtin_kind(name).is_some()) {
                    return Err(self.wrong_type(name, first, last, "var"));
                }
                if self.is_damaged(name) {
                    return Err(Reported);
                }
                return Err(self.unknown_variable(&written, first, last));
            }
        };
        Ok(variable)
    }

    /// Records that the variable at that path is set or unset.
    ///
    /// # Errors
    /// If no method may do that.
    pub(super) fn may_change(&mut self, variable: &Variable, path: &Path, kind: UseKind) -> Checked<()> {
        let (first, last) = (path.first(), path.last());
        let (mask, never) = match kind {
            UseKind::Unset => (variable.row.unset, "Variable cannot be unset."),
            _ if variable.row.read == 0 => (variable.row.write, "Variable cannot be set."),
            _ => (variable.row.write, "Variable is read only."),
        };
        if mask == 0 && kind == UseKind::Set && variable.row.read != 0 {
            let read = variable.row.read;
            match self.subs[self.current].method {
                Some(method) if method.row().bit & read == 0 => {
                    self.note_use(read, first, last, UseKind::Read);
                    return Err(Reported);
                }
                // Reported later, with the chain of calls that leads there.
                None if self.dialect.language.is_none() => {
                    self.note_use(read, first, last, UseKind::Read);
                    self.note_use(0, first, last, UseKind::ReadOnly);
                    return Err(Reported);
                }
                _ => {}
            }
        }
        if mask == 0 {
            let help = match (variable.row.kind, kind) {
                (Type::Header, _) | (_, UseKind::Unset) if variable.row.write != 0 => {
                    Some("only headers, bodies, timeouts, req.ttl and req.grace can be unset; set it to another value")
                }
                _ => None,
            };
            let draft = Draft::new(Code::ReadOnly).between(self.token(first), self.token(last));
            return Err(self.error(first, draft.text(format!("\n{never}\n")).maybe_hint(help)));
        }
        self.note_use(mask, first, last, kind);
        Ok(())
    }

    pub(super) fn family_alone(&mut self, written: &str, first: At, last: At) -> Reported {
        let text = format!("Symbol '{written}' has wrong type (none), expected var:\nAt: ");
        let draft = Draft::new(Code::WrongSymbol).text(text).between(self.token(first), self.token(last));
        let draft = draft.text("\nSymbol was builtin\n").hint(format!("name a header: {written}.Host"));
        self.error(first, draft)
    }

    /// `Symbol not found`, with a suggestion of the intended variable.
    pub(super) fn unknown_variable(&mut self, written: &str, first: At, last: At) -> Reported {
        let lower = written.to_ascii_lowercase();
        if let Some((_, instead)) = self.dialect.renamed.iter().find(|(old, _)| *old == lower) {
            return self.not_found(written, first, last, Some(&format!("use {instead}")));
        }
        if let Some(other) = self.other_dialects_hint(&lower) {
            return self.not_found(written, first, last, Some(&other));
        }
        let variables: Vec<&'static str> = match self.dialect.language {
            Some(language) => language.variables.iter().map(|row| row.name).collect(),
            None => VARIABLES.iter().map(|row| row.name).collect(),
        };
        let known = self.symbols.values().map(|symbol| symbol.name.as_str());
        let variables = variables.into_iter().filter(|name| !name.contains('*'));
        let near = if self.diagnostics.wants_suggestions() {
            nearest(&lower, variables.chain(known)).map(str::to_owned).or_else(|| nearest_header(written))
        } else {
            None
        };
        self.unknown_symbol(written, first, last, None, near.as_deref())
    }

    /// Records that a variable is read.
    pub(super) fn note_read(&mut self, variable: &Variable, first: At) {
        if variable.row.read != 0 {
            self.note_use(variable.row.read, first, first, UseKind::Read);
        }
    }
}
