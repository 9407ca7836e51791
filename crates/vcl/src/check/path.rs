//! Paths as values: variables, headers, names of the VCL, functions of VMODs, and members after a
//! dot.

use super::expression::{Typed, wanted_name};
use super::variable::{Lookup, Variable};
use super::{Checked, Checker, Meaning, Reported, UseKind, nearest};
use crate::diagnostic::Draft;
use crate::tree::{At, Path, Segment};
use surface::diagnostic::Code;
use surface::vcl::legacy::Means;
use surface::vcl::{HttpObject, Type, Var};
use surface::vmod::FUNCTIONS;
use vcl_run::program::{Endpoint, Op};

impl Checker<'_> {
    /// Emits the value of a path.
    pub(super) fn path_value(
        &mut self,
        path: &Path,
        first: At,
        last: At,
        wanted: Type,
        statement: bool,
    ) -> Checked<Typed> {
        let word = self.text(first);
        let single = path.segments.len() == 1;
        if path.segments[0].arguments.is_none()
            && let Some(value) = [("true", true), ("false", false)]
                .iter()
                .find(|(name, _)| word.eq_ignore_ascii_case(name))
                .map(|&(_, value)| value)
        {
            self.emitter.op(Op::Bool(value));
            return self.members(Typed::Plain(Type::Bool), &path.segments[1..]);
        }
        if let Some(typed) = self.legacy_storage(path)? {
            return Ok(typed);
        }
        match self.find_variable(path, UseKind::Read)? {
            Lookup::Found(variable) => {
                let segments = variable.segments;
                let typed = self.variable_value(&variable, first, wanted, path)?;
                return self.members(typed, &path.segments[segments..]);
            }
            Lookup::Storage(index) => {
                self.emitter.op(Op::Stevedore(Some(index)));
                return self.members(Typed::Plain(Type::Stevedore), &path.segments[2..]);
            }
            Lookup::Family => {
                let end = path.segments.last().map_or(first, |segment| segment.name);
                let written: String = (first..=end).map(|index| self.text(index)).collect();
                return Err(self.family_alone(&written, first, end));
            }
            Lookup::None => {}
        }
        if word.eq_ignore_ascii_case("regsub") || word.eq_ignore_ascii_case("regsuball") {
            let all = word.len() > 6;
            let typed = self.regsub(&path.segments[0], all, first, last)?;
            return self.members(typed, &path.segments[1..]);
        }
        if single
            && word == "default"
            && let Some(typed) = self.default_symbol(wanted, first)?
        {
            return Ok(typed);
        }
        let kinds: &[&str] = match wanted {
            Type::Acl => &["acl"],
            Type::Backend => &["backend", "instance"],
            Type::Probe => &["probe"],
            _ => &[],
        };
        let known = self.symbols.get(&self.key(word, kinds)).map(|symbol| (symbol.meaning, symbol.defined));
        if single && let Some((meaning, defined)) = known {
            self.declared_otherwise(word, meaning, defined, first, wanted)?;
        }
        match known {
            Some((Meaning::Vmod(vmod), defined)) if defined < first && !single => {
                return self.vmod_function(vmod, path, first, wanted, statement);
            }
            Some((Meaning::Instance(index), _)) if self.dialect.forms.director_blocks => {
                self.use_symbol_of(word, kinds);
                let op = self.director_value(index);
                self.emitter.op(op);
                return self.members(Typed::Plain(Type::Backend), &path.segments[1..]);
            }
            Some((Meaning::Instance(index), defined)) if defined < first => {
                self.use_symbol_of(word, kinds);
                let Some(method) = path.segments.get(1) else { return Ok(Typed::Instance(index)) };
                let typed = self.instance_method(index, method, first, wanted, statement)?;
                return self.members(typed, &path.segments[2..]);
            }
            Some((Meaning::Backend(index), _)) => {
                self.use_symbol_of(word, kinds);
                let none =
                    matches!(self.backends.get(index as usize).map(|backend| &backend.endpoint), Some(Endpoint::None));
                self.emitter.op(Op::Backend((!none).then_some(index)));
                return self.members(Typed::Plain(Type::Backend), &path.segments[1..]);
            }
            Some((Meaning::Acl(index), _)) => {
                self.use_symbol_of(word, kinds);
                self.emitter.op(Op::Acl(index));
                return self.members(Typed::Plain(Type::Acl), &path.segments[1..]);
            }
            Some((Meaning::Probe(index), _)) => {
                self.use_symbol_of(word, kinds);
                self.emitter.op(Op::Probe(index));
                return self.members(Typed::Plain(Type::Probe), &path.segments[1..]);
            }
            Some((Meaning::Sub(index), _)) => {
                self.use_symbol_of(word, kinds);
                if wanted != Type::Sub {
                    let text = format!("Symbol '{word}' can only be used as a SUB expression");
                    let draft = self.draft_at(Code::WrongSymbol, &text, first + 1);
                    let draft = self.in_place_of_call(draft, first).primary(self.token(first), self.token(first));
                    return Err(self.error(first, draft.hint(format!("call {word};"))));
                }
                self.emitter.op(Op::Sub(index));
                return Ok(Typed::Plain(Type::Sub));
            }
            Some((Meaning::Vmod(_), defined)) if single && defined < first => {
                let text = format!("Symbol '{word}' type (vmod) can not be used in expression.");
                let draft = self.draft_at(Code::WrongSymbol, &text, first);
                let draft = draft.text("\nThat symbol was defined here:\n").at(self.token(defined));
                return Err(self.error(first, draft));
            }
            _ => {}
        }
        Err(self.unknown_path(path, first, wanted))
    }

    /// Handles `default` where a backend or probe is expected.
    fn default_symbol(&mut self, wanted: Type, first: At) -> Checked<Option<Typed>> {
        match wanted {
            Type::Probe => {
                let Some(probe) = self.default_probe else { return Ok(None) };
                self.emitter.op(Op::Probe(probe));
                Ok(Some(Typed::Plain(Type::Probe)))
            }
            Type::Backend => {
                if let Some(director) = self.default_director {
                    self.emitter.op(Op::Backend(Some(self.backends.len() as u32 + director)));
                    return Ok(Some(Typed::Plain(Type::Backend)));
                }
                let Some(index) = self.default_backend else { return Ok(None) };
                let none =
                    matches!(self.backends.get(index as usize).map(|backend| &backend.endpoint), Some(Endpoint::None));
                self.use_symbol("default");
                self.emitter.op(Op::Backend((!none).then_some(index)));
                Ok(Some(Typed::Plain(Type::Backend)))
            }
            _ => {
                let draft = self.draft_at(Code::WrongSymbol, "Symbol 'default' is a reserved word.", first);
                let draft = self.in_place_of_call(draft, first);
                Err(self.error(first, draft))
            }
        }
    }

    /// Reports a name that is declared below its use, as another kind than the expected one.
    /// Compat: Varnish 7.1 takes the use for the declaration of the expected kind, and reports the
    /// token after it.
    fn declared_otherwise(
        &mut self,
        word: &str,
        meaning: Meaning,
        defined: At,
        first: At,
        wanted: Type,
    ) -> Checked<()> {
        let wanted_name = match wanted {
            Type::Acl => "acl",
            Type::Backend => "backend",
            Type::Sub => "sub",
            _ => return Ok(()),
        };
        let is_declaration =
            matches!(meaning, Meaning::Acl(_) | Meaning::Backend(_) | Meaning::Probe(_) | Meaning::Sub(_));
        let is_below = defined > first && defined < self.loaded.builtin && self.dialect.language.is_none();
        if !is_declaration || !is_below || meaning.kind() == wanted_name {
            return Ok(());
        }
        self.use_symbol_of(word, &[meaning.kind()]);
        let draft = Draft::new(Code::WrongSymbol);
        let draft = match meaning {
            Meaning::Sub(_) => {
                let text = format!("Symbol '{word}' has wrong type ({wanted_name}), expected sub:\nAt: ");
                let draft = draft.text(text).between(self.token(defined), self.token(defined));
                draft.text("\nSymbol was declared here: ").at(self.token(first))
            }
            _ => draft.text(format!("Name {word} must have type '{wanted_name}'.\n")).at(self.token(defined)),
        };
        let hint = format!("line {} uses it as {wanted_name}", self.loaded.sources.place(self.token(first)).0);
        Err(self.error(first, draft.hint(hint)))
    }

    /// The end of a message about a name that is evaluated like a call. Compat: the words of
    /// Varnish 7.1.
    fn in_place_of_call(&self, draft: Draft, name: At) -> Draft {
        draft.text("\nWhile compiling function call:\n\n").between(self.token(name), self.token(name))
    }

    pub(super) fn is_word_of_language(&self, word: &str) -> bool {
        self.dialect.statements.iter().any(|(known, _)| known.eq_ignore_ascii_case(word)) || self.is_reserved(word)
    }

    /// Reports why a path has no meaning.
    fn unknown_path(&mut self, path: &Path, first: At, wanted: Type) -> Reported {
        let word = self.text(first);
        if self.is_damaged(word) {
            return Reported;
        }
        let single = path.segments.len() == 1 && path.segments[0].arguments.is_none();
        if path.segments.len() == 1 && self.is_word_of_language(word) && !self.dialect.forms.words_are_names {
            let action = self.dialect.statements.iter().any(|(known, _)| known.eq_ignore_ascii_case(word));
            let kind = if action { "action" } else { "reserved" };
            let text = format!("Symbol '{word}' type ({kind}) can not be used in expression.");
            return self.error_at(Code::WrongSymbol, &text, first);
        }
        if single && matches!(wanted, Type::Backend | Type::Acl | Type::Probe | Type::Sub) {
            if self.begins_as_method(word) {
                let draft = Draft::new(Code::ReservedName).text("Symbols named 'vcl_*' are reserved.\nAt:");
                return self.error(first, draft.at(self.token(first)));
            }
            let kind = wanted.name().to_ascii_lowercase();
            return self.undefined_reference(&kind, word, first);
        }
        let last = path.segments.last().map_or(first, |segment| segment.name);
        let written: String = if path.segments.iter().all(|segment| segment.arguments.is_none()) {
            (first..=last).map(|index| self.text(index)).collect()
        } else {
            path.segments.iter().map(|segment| self.text(segment.name)).collect::<Vec<_>>().join(".")
        };
        if let Some(help) = self.member_hint(path) {
            return self.not_found(&written, first, last, Some(&help));
        }
        self.unknown_variable(&written, first, last)
    }

    /// `Undefined acl x, first reference:`
    pub(super) fn undefined_reference(&mut self, kind: &str, word: &str, first: At) -> Reported {
        let names =
            self.symbols.values().filter(|symbol| symbol.meaning.kind() == kind).map(|symbol| symbol.name.as_str());
        let near = if self.diagnostics.wants_suggestions() { nearest(word, names) } else { None };
        let token = self.token(first);
        let draft =
            self.draft_at(Code::UndefinedReference, &format!("Undefined {kind} {word}, first reference:"), first);
        let draft = draft.nearest(token, token, near);
        self.error(first, draft)
    }

    fn variable_value(&mut self, variable: &Variable, first: At, wanted: Type, path: &Path) -> Checked<Typed> {
        let row = variable.row;
        let whole = variable.segments == path.segments.len();
        if let Some((http, name)) = &variable.header {
            self.note_read(variable, first);
            if wanted == Type::Header && whole {
                let name = self.emitter.header(name);
                self.emitter.op(Op::HeaderPlace(*http, name));
                return Ok(Typed::Plain(Type::Header));
            }
            self.emitter.read_header(*http, name);
            return Ok(Typed::Plain(Type::String));
        }
        if let Some(storage) = variable.storage {
            self.note_read(variable, first);
            self.emitter.op(Op::Stevedore(Some(storage)));
            self.emitter.op(Op::StorageProperty(row.var));
            return Ok(Typed::Plain(row.kind));
        }
        if row.kind == Type::Http {
            if whole {
                self.note_read(variable, first);
            }
            self.emitter.op(Op::Http(match row.var {
                Var::Bereq => HttpObject::Bereq,
                Var::Beresp => HttpObject::Beresp,
                Var::Resp => HttpObject::Resp,
                _ => HttpObject::Req,
            }));
            return Ok(Typed::Plain(Type::Http));
        }
        if variable.means != Means::Variable(row.var) && row.read != 0 {
            self.note_read(variable, first);
            self.special_value(&row, variable.means);
            return Ok(Typed::Plain(row.kind));
        }
        if row.read == 0 {
            // Bodies cannot be read: nothing accepts their type.
            let wanted_name = wanted_name(wanted);
            let last = first + 2;
            let message = if matches!(wanted, Type::String | Type::Strands | Type::Body) {
                let text = format!("Cannot convert {} to STRING.", row.kind.name());
                self.draft_at(Code::TypeMismatch, &text, last + 1)
            } else {
                let text = format!("Expression has type {}, expected {wanted_name}", row.kind.name());
                self.draft_between(Code::TypeMismatch, &text, first, last)
            };
            let message = message.primary(self.token(first), self.token(last));
            return Err(self.error(first, message.hint(format!("{} can be set, but not read", row.name))));
        }
        self.note_read(variable, first);
        self.emitter.op(if row.var == Var::Now { Op::Now } else { Op::Read(row.var) });
        Ok(Typed::Plain(row.kind))
    }

    /// Emits properties and methods of a value.
    pub(super) fn members(&mut self, mut typed: Typed, members: &[Segment]) -> Checked<Typed> {
        for member in members {
            let name = self.text(member.name).to_ascii_lowercase();
            let op = match (typed, name.as_str()) {
                (typed, "upper") if typed.is_text() => Op::Upper,
                (typed, "lower") if typed.is_text() => Op::Lower,
                (Typed::Plain(Type::Backend), "resolve") => Op::Resolve,
                (Typed::Plain(Type::Stevedore), "free_space" | "used_space" | "happy") => {
                    let (var, kind) = match name.as_str() {
                        "free_space" => (Var::StorageFreeSpace, Type::Bytes),
                        "used_space" => (Var::StorageUsedSpace, Type::Bytes),
                        _ => (Var::StorageHappy, Type::Bool),
                    };
                    self.emitter.op(Op::StorageProperty(var));
                    typed = Typed::Plain(kind);
                    continue;
                }
                _ => return Err(self.unknown_property(typed, member.name)),
            };
            match &member.arguments {
                None => return Err(self.expected("'('", member.name + 1)),
                Some(arguments) if !arguments.items.is_empty() => {
                    return Err(self.expected("')'", arguments.items[0].value.first));
                }
                Some(_) => {}
            }
            self.emitter.op(op);
        }
        Ok(typed)
    }

    fn unknown_property(&mut self, typed: Typed, token: At) -> Reported {
        let word = self.text(token);
        let (name, known): (String, Vec<&str>) = match typed {
            typed if typed.is_text() => ("STRINGS".into(), vec!["upper()", "lower()"]),
            Typed::Plain(Type::Backend) => ("BACKEND".into(), vec!["resolve()"]),
            Typed::Plain(Type::Stevedore) => ("STEVEDORE".into(), vec!["free_space", "used_space", "happy"]),
            Typed::Plain(Type::Http) => {
                let prefix = if token >= 2 { self.text(token - 2).to_ascii_lowercase() } else { String::new() };
                let names = surface::vcl::VARIABLES
                    .iter()
                    .filter_map(|row| row.name.strip_prefix(prefix.as_str())?.strip_prefix('.'));
                let near = nearest(word, names.filter(|name| !name.contains('*')).chain(["http"]));
                let renamed = self
                    .dialect
                    .renamed
                    .iter()
                    .find(|(old, _)| *old == format!("{prefix}.{}", word.to_ascii_lowercase()));
                let help = match (renamed, near) {
                    (Some((_, new)), _) => Some(format!("use {new}")),
                    (None, Some(near)) => Some(format!("did you mean {prefix}.{near}?")),
                    (None, None) => None,
                };
                let text = format!("Unknown property '{word}' for type HTTP");
                let place = self.token(token);
                let mut draft = self.draft_at(Code::UnknownProperty, &text, token).maybe_hint(help);
                if let (None, Some(near)) = (renamed, near) {
                    draft = draft.suggest(place, place, near);
                }
                return self.error(token, draft);
            }
            Typed::Instance(index) => {
                let instance = &self.instances[index as usize];
                let (vmod, class) = (instance.vmod, instance.class);
                let names =
                    FUNCTIONS.iter().filter(|row| row.vmod == vmod && row.class == class && !row.name.is_empty());
                (self.typed_name(typed), names.map(|row| row.name).collect())
            }
            other => (self.typed_name(other), Vec::new()),
        };
        let near = nearest(word, known.iter().copied());
        let there_is = (!known.is_empty()).then(|| format!("there is {}", known.join(", ")));
        let place = self.token(token);
        let text = format!("Unknown property '{word}' for type {name}");
        let draft = self.draft_at(Code::UnknownProperty, &text, token).maybe_hint(there_is).nearest(place, place, near);
        self.error(token, draft)
    }

    fn vmod_function(
        &mut self,
        vmod: &'static str,
        path: &Path,
        first: At,
        wanted: Type,
        statement: bool,
    ) -> Checked<Typed> {
        let segment = &path.segments[1];
        let name = self.text(segment.name);
        let exact = self.functions.get(&(vmod, "", name)).copied();
        let found = exact.or_else(|| {
            let same = |row: &surface::vmod::FunctionRow| {
                row.vmod == vmod && row.class.is_empty() && row.name.eq_ignore_ascii_case(name)
            };
            FUNCTIONS.iter().position(same).map(|index| index as u32)
        });
        let Some(function) = found else {
            if let Some(reported) = self.method_of_class(vmod, path) {
                return Err(reported);
            }
            return Err(self.unknown_path(path, first, wanted));
        };
        self.use_symbol(self.text(first));
        let typed = self.called(function, None, segment, first, statement)?;
        self.members(typed, &path.segments[2..])
    }

    /// Reports `directors.round_robin.backend()`: a method called on a class, where it requires an
    /// object.
    pub(super) fn method_of_class(&mut self, vmod: &'static str, path: &Path) -> Option<Reported> {
        let [module, class, method, ..] = path.segments.as_slice() else { return None };
        let (class_name, method_name) = (self.text(class.name), self.text(method.name));
        let same = |row: &&surface::vmod::FunctionRow| {
            row.vmod == vmod
                && row.class.eq_ignore_ascii_case(class_name)
                && !row.name.is_empty()
                && row.name.eq_ignore_ascii_case(method_name)
        };
        FUNCTIONS.iter().find(same)?;
        let (first, last) = (module.name, method.name);
        let hint = format!(
            "methods are called on an object: new x = {}.{class_name}(...); in vcl_init, then x.{method_name}(...)",
            self.text(first)
        );
        let draft = self.draft_between(Code::MethodOfClass, "Syntax error.", first, last);
        Some(self.error(first, draft.hint(hint)))
    }

    fn instance_method(
        &mut self,
        instance: u32,
        segment: &Segment,
        first: At,
        _wanted: Type,
        statement: bool,
    ) -> Checked<Typed> {
        let (vmod, class) = {
            let instance = &self.instances[instance as usize];
            (instance.vmod, instance.class)
        };
        let name = self.text(segment.name);
        let same = |row: &surface::vmod::FunctionRow| {
            row.vmod == vmod && row.class == class && !row.name.is_empty() && row.name.eq_ignore_ascii_case(name)
        };
        let Some(function) = FUNCTIONS.iter().position(same) else {
            return Err(self.unknown_property(Typed::Instance(instance), segment.name));
        };
        self.called(function as u32, Some(instance), segment, first, statement)
    }

    /// Emits a call of a VMOD with its arguments.
    fn called(
        &mut self,
        function: u32,
        instance: Option<u32>,
        segment: &Segment,
        first: At,
        statement: bool,
    ) -> Checked<Typed> {
        let row = &FUNCTIONS[function as usize];
        if row.returns == Type::Void && !statement {
            return Err(self.error_at(Code::VoidResult, "Function returns VOID:", segment.name + 1));
        }
        let Some(arguments) = &segment.arguments else {
            return Err(self.expected_in_call("'('", segment.name + 1, first, segment.name));
        };
        self.note_use(row.at, first, segment.name, UseKind::Read);
        self.vmod_call(function, instance, first, arguments)?;
        Ok(match row.returns {
            Type::String | Type::Strands | Type::Enum | Type::Body => Typed::Plain(Type::String),
            kind => Typed::Plain(kind),
        })
    }
}
