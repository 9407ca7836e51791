//! Names, types and rules: a tree becomes a program.
//!
//! Passes, in order: names are collected from all declarations; backends, probes and ACLs are made; each subroutine is
//! lowered to instructions while its expressions are typed; then the graph of calls is checked (`check/flow.rs`), and what
//! nobody uses is named. A pass goes on after errors, so that one compilation shows many of them.
//! Names are compared without regard to case, as in Varnish; header names keep the case they were written in.

mod acl;
mod address;
mod arguments;
mod backend;
mod collect;
mod emit;
mod expression;
mod flow;
mod path;
mod statement;
mod variable;

use crate::CompileOptions;
use crate::diagnostic::{Diagnostics, at, between, hint};
use crate::dialect::Dialect;
use crate::load::Loaded;
use crate::source::Token;
use crate::tree::{self, At, Name};
use emit::Emitter;
use std::collections::{HashMap, HashSet};
use surface::vcl::{Action, METHODS, Method};
use surface::vmod::FUNCTIONS;
use vcl_run::program::{
    AclDefinition, BackendDefinition, InstanceDefinition, ProbeDefinition, Program, Source, SubDefinition,
};

/// An error that has been reported.
#[derive(Debug)]
pub(crate) struct Reported;

type Checked<T> = Result<T, Reported>;

/// What a name of the VCL stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Backend(u32),
    Probe(u32),
    Acl(u32),
    Sub(u32),
    Instance(u32),
    /// An imported VMOD; the name may be an alias.
    Vmod(&'static str),
}

impl Meaning {
    /// The word for it in messages.
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
    /// The name where it was declared.
    defined: At,
    /// As it was written there.
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
}

impl UseKind {
    fn text(self) -> &'static str {
        match self {
            UseKind::Read => "Not available",
            UseKind::Set => "Cannot be set",
            UseKind::Unset => "Cannot be unset",
            UseKind::Action => "Not a valid action",
        }
    }
}

/// A subroutine: its pieces of text, and what the later passes must know of it.
#[derive(Debug)]
struct Sub<'a> {
    name: String,
    defined: At,
    method: Option<Method>,
    /// Its name begins with `vcl_`.
    reserved: bool,
    pieces: Vec<&'a tree::Sub>,
    uses: Vec<Use>,
    calls: Vec<(u32, At)>,
    returns: Vec<(Action, At)>,
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
    /// Names whose declaration is broken: not worth a second message.
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
    emitter: Emitter,
    /// The subroutine being lowered.
    current: usize,
    /// What a message within an argument ends in.
    call_context: Vec<String>,
}

/// Makes a program of a tree. `None` when there were errors.
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

    /// The place of one token.
    fn at(&self, index: At) -> String {
        at(&self.loaded.sources, self.token(index))
    }

    /// The place of a row of tokens.
    fn between(&self, first: At, last: At) -> String {
        between(&self.loaded.sources, self.token(first), self.token(last))
    }

    fn error(&mut self, order: At, text: String) -> Reported {
        let context: String = self.call_context.iter().rev().map(String::as_str).collect();
        self.diagnostics.error(u64::from(order), text + &context);
        Reported
    }

    /// An error at one token.
    fn error_at(&mut self, text: &str, index: At) -> Reported {
        let text = format!("{text}\n{}", self.at(index));
        self.error(index, text)
    }

    fn error_between(&mut self, text: &str, first: At, last: At) -> Reported {
        let text = format!("{text}\n{}", self.between(first, last));
        self.error(first, text)
    }

    fn expected(&mut self, what: &str, index: At) -> Reported {
        let text = format!("Expected {what} got {}\nat", self.shown(index));
        self.error_at(&text, index)
    }

    fn warning(&mut self, order: At, text: &str) {
        self.diagnostics.warning(u64::from(order), format!("{text}\n(That was just a warning)\n"));
    }

    fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name.to_ascii_lowercase().as_str())
    }

    /// Marks a name as used and says what it is.
    fn use_symbol(&mut self, name: &str) -> Option<Meaning> {
        let symbol = self.symbols.get_mut(name.to_ascii_lowercase().as_str())?;
        symbol.used = true;
        Some(symbol.meaning)
    }

    fn is_damaged(&self, name: &str) -> bool {
        self.damaged.contains(name.to_ascii_lowercase().as_str())
    }

    /// Notes that the current subroutine does what only some methods may do.
    fn note_use(&mut self, at: u16, first: At, last: At, what: UseKind) {
        if let Some(method) = self.subs[self.current].method
            && method.row().bit & at == 0
        {
            let place = self.between(first, last);
            let help = available_hint(at);
            let text = format!("{place}\n{} in subroutine '{}'.\n{help}", what.text(), method.row().name);
            self.error(first, text);
        }
        self.subs[self.current].uses.push(Use { at, first, last, what });
    }

    fn unused(&mut self) {
        let mut unused: Vec<(At, String)> = Vec::new();
        let default = self.default_backend.map(Meaning::Backend);
        for symbol in self.symbols.values().filter(|symbol| !symbol.used && Some(symbol.meaning) != default) {
            if let Meaning::Backend(_) | Meaning::Probe(_) | Meaning::Acl(_) | Meaning::Sub(_) = symbol.meaning {
                unused.push((symbol.defined, format!("Unused {} {}, defined:\n", symbol.meaning.kind(), symbol.name)));
            }
        }
        for (defined, text) in unused {
            let text = text + &self.at(defined);
            if self.options.err_unref {
                let help = hint("use it, remove it, or set the parameter vcc_err_unref to off");
                self.error(defined, text + &help);
            } else {
                self.warning(defined, &text);
            }
        }
    }

    fn program(self) -> Program {
        let sources = &self.loaded.sources.files;
        Program {
            syntax: self.loaded.syntax,
            sources: sources
                .iter()
                .map(|file| Source { name: file.name.clone(), text: String::from_utf8_lossy(&file.text).into_owned() })
                .collect(),
            backends: self.backends,
            default_backend: self.default_backend,
            probes: self.probes,
            acls: self.acls,
            instances: self.instances.into_iter().map(|instance| instance.definition).collect(),
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
        }
    }
}

/// In which methods something would be available.
fn available_hint(at: u16) -> String {
    let names: Vec<&str> = METHODS.iter().filter(|row| at & row.bit != 0).map(|row| row.name).collect();
    if names.is_empty() { String::new() } else { hint(&format!("it is available in {}", names.join(", "))) }
}

/// The nearest of some words to one that is unknown, if any is near enough to have been meant.
pub(crate) fn nearest<'w>(word: &str, candidates: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let word = &word.as_bytes()[..word.len().min(64)];
    let allowed = 1 + word.len() / 4;
    candidates
        .filter(|candidate| candidate.len() <= 80 && candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (distance(word, candidate.as_bytes()), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove, replace or swap with their neighbour to get from one word to the other, without regard to case.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let same = |i: usize, j: usize| a[i].eq_ignore_ascii_case(&b[j]);
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (last[j] + usize::from(!same(i, j))).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j) {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

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
