//! Checker of names, types and rules: turns a tree into a program.
//!
//! Passes, in order: collect the names of all declarations; make backends, probes and ACLs; lower
//! each subroutine to instructions while typing its expressions; then check the graph of calls
//! (`check/flow.rs`), and report unused names. A pass continues after errors, so that one
//! compilation shows many of them. Names are compared ignoring case, as in Varnish; header names
//! keep the case in which they were written.

mod acl;
mod address;
mod arguments;
mod backend;
mod backend_care;
mod backend_tls;
mod collect;
mod emit;
mod expression;
mod flow;
mod legacy;
mod path;
mod statement;
mod unreachable;
mod variable;

pub(crate) use variable::HEADER_NAME_BYTES_MAX;

use crate::CompileOptions;
use crate::diagnostic::{Diagnostics, Draft};
use crate::dialect::Dialect;
use crate::load::Loaded;
use crate::source::Token;
use crate::tree::{self, At, Name};
use emit::Emitter;
use hashbrown::HashMap;
use std::collections::HashSet;
use surface::diagnostic::Code;
use surface::vcl::{Action, METHODS, Method};
use surface::vmod::FUNCTIONS;
use vcl_run::program::{
    AclDefinition, BackendDefinition, DirectorBlock, InstanceDefinition, ProbeDefinition, Program, Source,
    SubDefinition,
};

/// An error that has been reported.
#[derive(Debug)]
pub(crate) struct Reported;

type Checked<T> = Result<T, Reported>;

/// The meaning of a name in the VCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Backend(u32),
    Probe(u32),
    Acl(u32),
    Sub(u32),
    Instance(u32),
    /// An imported VMOD; its name here may be an alias.
    Vmod(&'static str),
}

impl Meaning {
    /// The word for this kind in messages.
    fn kind(self) -> &'static str {
        match self {
            Meaning::Backend(_) => "backend",
            Meaning::Probe(_) => "probe",
            Meaning::Acl(_) => "acl",
            Meaning::Sub(_) => "sub",
            Meaning::Instance(_) => "instance",
            Meaning::Vmod(_) => "vmod",
        }
    }
}

#[derive(Debug)]
struct Symbol {
    meaning: Meaning,
    /// The token of the name in its declaration.
    defined: At,
    /// The name as written there.
    name: String,
    used: bool,
}

/// Something whose availability depends on the method.
#[derive(Debug)]
struct Use {
    at: u16,
    first: At,
    last: At,
    what: UseKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UseKind {
    Read,
    Set,
    Unset,
    Action,
    /// Set although no method may set it; the methods that call the subroutine are determined
    /// later.
    ReadOnly,
}

impl UseKind {
    fn code(self) -> Code {
        match self {
            UseKind::Read => Code::NotReadable,
            UseKind::Set => Code::NotSettable,
            UseKind::Unset => Code::NotUnsettable,
            UseKind::Action => Code::NotHere,
            UseKind::ReadOnly => Code::ReadOnly,
        }
    }

    fn text(self) -> &'static str {
        match self {
            UseKind::Read => "Not available",
            UseKind::Set => "Cannot be set",
            UseKind::Unset => "Cannot be unset",
            UseKind::Action => "Not a valid action",
            UseKind::ReadOnly => "Variable is read only.",
        }
    }
}

/// A subroutine: its pieces of text, and the data for later passes.
#[derive(Debug)]
struct Sub<'a> {
    name: String,
    defined: At,
    method: Option<Method>,
    /// In the old dialects: the method for which this user's subroutine was lowered.
    under: Option<Method>,
    /// Its name begins with `vcl_`.
    reserved: bool,
    pieces: Vec<&'a tree::Sub>,
    uses: Vec<Use>,
    calls: Vec<(u32, At)>,
    /// Actions; `None` for a word that is not an action in this method.
    returns: Vec<(Option<Action>, At)>,
    entry: u32,
    end: u32,
    at: u16,
}

/// An object of vcl_init.
#[derive(Debug)]
struct Instance {
    vmod: &'static str,
    class: &'static str,
    definition: InstanceDefinition,
}

/// The state of all passes.
struct Checker<'a> {
    loaded: &'a Loaded,
    options: &'a CompileOptions<'a>,
    dialect: &'static Dialect,
    diagnostics: &'a mut Diagnostics,
    symbols: HashMap<String, Symbol>,
    /// Names whose declaration is broken: a second message about them is not worthwhile.
    damaged: HashSet<String>,
    functions: HashMap<(&'static str, &'static str, &'static str), u32>,
    subs: Vec<Sub<'a>>,
    backends: Vec<BackendDefinition>,
    probes: Vec<ProbeDefinition>,
    acls: Vec<AclDefinition>,
    instances: Vec<Instance>,
    directors: u32,
    labels: Vec<String>,
    vmods: Vec<String>,
    default_backend: Option<u32>,
    default_probe: Option<u32>,
    /// The director that is used when no other is named: index among the directors. `director`
    /// blocks come first.
    default_director: Option<u32>,
    /// The declarations of `director` blocks; the objects are created in vcl_init.
    declared_directors: Vec<legacy::Declared>,
    blocks: Vec<DirectorBlock>,
    /// User subroutines as lowered for each method.
    pieces_under: HashMap<(u32, Method), u32>,
    emitter: Emitter,
    /// The subroutine being lowered.
    current: usize,
    /// The endings of messages about the argument being compiled.
    call_context: Vec<Draft>,
}

/// Turns a tree into a program. `None` when there were errors.
pub(crate) fn check(
    loaded: &Loaded,
    declarations: &[tree::Declaration],
    builtin: &[tree::Declaration],
    damaged: HashSet<String>,
    dialect: &'static Dialect,
    options: &CompileOptions<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Program> {
    let mut checker = Checker {
        loaded,
        options,
        dialect,
        diagnostics,
        symbols: HashMap::new(),
        damaged: damaged.into_iter().map(|name| name.to_ascii_lowercase()).collect(),
        functions: FUNCTIONS
            .iter()
            .enumerate()
            .map(|(index, row)| ((row.vmod, row.class, row.name), index as u32))
            .collect(),
        subs: Vec::new(),
        backends: Vec::new(),
        probes: Vec::new(),
        acls: Vec::new(),
        instances: Vec::new(),
        directors: 0,
        labels: Vec::new(),
        vmods: Vec::new(),
        default_backend: None,
        default_probe: None,
        default_director: None,
        declared_directors: Vec::new(),
        blocks: Vec::new(),
        pieces_under: HashMap::new(),
        emitter: Emitter::default(),
        current: 0,
        call_context: Vec::new(),
    };
    let syntax_ok = !checker.diagnostics.has_errors();
    checker.collect(declarations, builtin);
    checker.lower();
    checker.flow();
    if syntax_ok && !checker.diagnostics.has_errors() {
        checker.unused();
    }
    if checker.diagnostics.has_errors() {
        return None;
    }
    Some(checker.program())
}

impl<'a> Checker<'a> {
    fn token(&self, index: At) -> Token {
        let tokens = &self.loaded.tokens;
        tokens[(index as usize).min(tokens.len() - 1)]
    }

    fn text(&self, index: At) -> &'a str {
        self.loaded.sources.text(self.token(index))
    }

    fn shown(&self, index: At) -> String {
        self.loaded.sources.shown(self.token(index)).into_owned()
    }

    /// All tokens of a name, as one word.
    fn name_text(&self, name: Name) -> String {
        (name.first..=name.last).map(|index| self.text(index)).collect()
    }

    /// A message with a text, and below it one token.
    fn draft_at(&self, code: Code, text: &str, index: At) -> Draft {
        Draft::new(code).text(format!("{text}\n")).at(self.token(index))
    }

    /// A message with a text, and below it a range of tokens.
    fn draft_between(&self, code: Code, text: &str, first: At, last: At) -> Draft {
        Draft::new(code).text(format!("{text}\n")).between(self.token(first), self.token(last))
    }

    fn error(&mut self, order: At, mut draft: Draft) -> Reported {
        for context in self.call_context.iter().rev() {
            draft = draft.append(context.clone());
        }
        self.diagnostics.error(&self.loaded.sources, u64::from(order), draft);
        Reported
    }

    /// An error at one token.
    fn error_at(&mut self, code: Code, text: &str, index: At) -> Reported {
        let draft = self.draft_at(code, text, index);
        self.error(index, draft)
    }

    fn error_between(&mut self, code: Code, text: &str, first: At, last: At) -> Reported {
        let draft = self.draft_between(code, text, first, last);
        self.error(first, draft)
    }

    fn expected(&mut self, what: &str, index: At) -> Reported {
        self.expected_with(what, index, None)
    }

    fn expected_with(&mut self, what: &str, index: At, hint: Option<&str>) -> Reported {
        let text = format!("Expected {what} got {}\nat", self.shown(index));
        let draft = self.draft_at(Code::Expected, &text, index).maybe_hint(hint);
        self.error(index, draft)
    }

    fn warning(&mut self, order: At, draft: Draft) {
        self.diagnostics.warning(&self.loaded.sources, u64::from(order), draft);
    }

    fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name.to_ascii_lowercase().as_str())
    }

    /// Key of a name where certain kinds of declaration are expected. In the old dialects an acl
    /// and a backend may have the same name; the later one is stored with its kind in front of the
    /// name.
    fn key(&self, name: &str, kinds: &[&str]) -> String {
        let plain = name.to_ascii_lowercase();
        if self.dialect.forms.names_by_kind {
            for kind in kinds {
                let key = format!("{kind} {plain}");
                if self.symbols.contains_key(&key) {
                    return key;
                }
            }
        }
        plain
    }

    /// Marks a name as used and returns its meaning.
    fn use_symbol(&mut self, name: &str) -> Option<Meaning> {
        self.use_symbol_of(name, &[])
    }

    /// Like [`Self::use_symbol`], where certain kinds of declaration are expected.
    fn use_symbol_of(&mut self, name: &str, kinds: &[&str]) -> Option<Meaning> {
        let key = self.key(name, kinds);
        let symbol = self.symbols.get_mut(&key)?;
        symbol.used = true;
        Some(symbol.meaning)
    }

    fn is_damaged(&self, name: &str) -> bool {
        self.damaged.contains(name.to_ascii_lowercase().as_str())
    }

    /// Records that the current subroutine does something that only some methods may do.
    fn note_use(&mut self, at: u16, first: At, last: At, what: UseKind) {
        if let Some(method) = self.subs[self.current].method
            && method.row().bit & at == 0
        {
            let name = self.dialect.method_name(method);
            let text = format!("\n{} in subroutine '{name}'.\n", what.text());
            let draft = Draft::new(what.code()).between(self.token(first), self.token(last)).text(text);
            self.error(first, draft.maybe_hint(self.available_hint(at)));
        }
        self.subs[self.current].uses.push(Use { at, first, last, what });
    }

    fn unused(&mut self) {
        let mut unused: Vec<(At, String)> = Vec::new();
        let default = self.default_backend.map(Meaning::Backend);
        let default_director = self.default_director.map(Meaning::Instance);
        for symbol in self.symbols.values().filter(|symbol| !symbol.used && Some(symbol.meaning) != default) {
            let kind = match symbol.meaning {
                Meaning::Backend(_) | Meaning::Probe(_) | Meaning::Acl(_) | Meaning::Sub(_) => symbol.meaning.kind(),
                Meaning::Instance(_)
                    if self.dialect.forms.director_blocks && Some(symbol.meaning) != default_director =>
                {
                    "director"
                }
                _ => continue,
            };
            unused.push((symbol.defined, format!("Unused {kind} {}, defined:", symbol.name)));
        }
        for (defined, text) in unused {
            let draft = self.draft_at(Code::Unused, &text, defined);
            // If such names are not reserved, a misspelt method is a subroutine that nothing calls.
            let name = self.text(defined);
            let methods = METHODS.iter().filter(|row| self.dialect.has_method(row.method));
            let methods = methods.map(|row| self.dialect.method_name(row.method));
            let near = name.starts_with("vcl_").then(|| nearest(name, methods)).flatten();
            let draft = draft.nearest(self.token(defined), self.token(defined), near);
            if near.is_some() {
                self.error(defined, draft);
            } else if self.options.err_unref {
                self.error(defined, draft.hint("use it, remove it, or set the parameter vcc_err_unref to off"));
            } else {
                self.warning(defined, draft);
            }
        }
    }

    /// A hint: the methods in which something is available.
    fn available_hint(&self, at: u16) -> Option<String> {
        let names = self.dialect.method_names(at);
        (!names.is_empty()).then(|| format!("it is available in {}", names.join(", ")))
    }

    /// True if the VCL itself, and not only the built-in one, takes part in the handling of a 304.
    fn refreshes(&self) -> bool {
        let mut reached = vec![Method::BackendRefresh as usize];
        let mut next = 0;
        while let Some(&sub) = reached.get(next) {
            let sub = &self.subs[sub];
            if sub.pieces.iter().any(|piece| piece.name.first < self.loaded.builtin) {
                return true;
            }
            for callee in sub.calls.iter().map(|&(callee, _)| callee as usize) {
                if !reached.contains(&callee) {
                    reached.push(callee);
                }
            }
            next += 1;
        }
        false
    }

    fn program(self) -> Program {
        let sources = &self.loaded.sources.files;
        let default_director = self.default_director.map(|director| self.backends.len() as u32 + director);
        let refreshes = self.refreshes();
        Program {
            syntax: self.loaded.syntax,
            sources: sources
                .iter()
                .map(|file| Source { name: file.name.clone(), text: String::from_utf8_lossy(&file.text).into_owned() })
                .collect(),
            default_backend: self.default_backend.or(default_director),
            backends: self.backends,
            probes: self.probes,
            acls: self.acls,
            instances: self.instances.into_iter().map(|instance| instance.definition).collect(),
            blocks: self.blocks,
            labels: self.labels,
            vmods: self.vmods,
            subs: self
                .subs
                .into_iter()
                .map(|sub| SubDefinition { name: sub.name, entry: sub.entry, end: sub.end, at: sub.at })
                .collect(),
            code: self.emitter.code,
            constants: self.emitter.constants,
            headers: self.emitter.headers,
            regexes: self.emitter.regexes,
            points: self.emitter.points,
            places: self.emitter.places,
            refreshes,
            follows_rfc: self.options.follows_rfc && self.loaded.syntax >= 40,
        }
    }
}

pub(crate) use surface::nearest::nearest;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_word_is_near() {
        let words = ["req.url", "req.method", "req.http", "beresp.ttl"];
        assert_eq!(nearest("req.urll", words.into_iter()), Some("req.url"));
        assert_eq!(nearest("REQ.METHOD", words.into_iter()), Some("req.method"));
        assert_eq!(nearest("beresp.tll", words.into_iter()), Some("beresp.ttl"));
        assert_eq!(nearest("nothing.like.it", words.into_iter()), None);
        assert_eq!(nearest("sdt", ["std", "cookie"].into_iter()), Some("std"));
    }
}
