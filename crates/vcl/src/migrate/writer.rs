//! Facts about a text during its migration, and the data that its parts exchange.
//!
//! A subroutine is written for a [`Context`]: the method in which it ran, and the one in which it
//! runs now. Those of `vcl_deliver` also run at the end of `vcl_synth`, because error pages used to
//! be delivered like all others.

use super::edit::{Edits, Row};
use super::name_of::NameOf;
use super::tables::{BACKEND_SIDE, FATES, TreatmentRow, Use};
use super::{Note, tables};
use crate::dialect::{Dialect, DirectorPolicy};
use crate::tree::{At, Path, Sub};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use surface::vcl::legacy::{Language, Means};
use surface::vcl::{Generation, Method, Type, VARIABLES, Var};

/// The version of the language that is written.
pub(super) const SYNTAX: u8 = 41;

/// The context of a subroutine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Context {
    /// The method that used to reach it.
    pub(super) old: Method,
    /// The method that reaches it in VCL 4.1.
    pub(super) new: Method,
}

impl Context {
    pub(super) fn same(method: Method) -> Context {
        Context { old: method, new: method }
    }

    /// `vcl_fetch`, which acted for the client.
    pub(super) fn is_fetch(self) -> bool {
        self.old == Method::BackendResponse
    }

    pub(super) fn bit(self) -> u16 {
        self.new.row().bit
    }
}

/// Data that the parts of a text need from each other. Gathered in the first pass, used in the
/// second.
#[derive(Clone, Default, Debug)]
pub(super) struct Knowledge {
    /// VMODs that are called.
    pub(super) vmods: BTreeSet<&'static str>,
    /// Changes of `bereq` in `vcl_miss` and `vcl_pass`: a header as `http.Name`, or another
    /// property.
    pub(super) to_backend_fetch: BTreeSet<String>,
    /// Changes of the request in `vcl_fetch`, in lower case, with the author's spelling: as above,
    /// or `url`.
    pub(super) set_in_fetch: BTreeMap<String, String>,
    /// Values that the client's side reads after the fetch, in lower case.
    pub(super) read_after_fetch: BTreeSet<String>,
    /// Values that the client's side reads before the fetch; if the request restarts this is also
    /// after it.
    pub(super) read_before_fetch: BTreeSet<String>,
    /// Headers of the object that `vcl_hit` changes.
    pub(super) to_delivery: BTreeSet<String>,
    pub(super) errors_in_fetch: bool,
    pub(super) restarts_in_fetch: bool,
    pub(super) passes_in_fetch: bool,
    pub(super) delivers_in_fetch: bool,
    pub(super) reads_restarts: bool,
    pub(super) sets_esi: bool,
    pub(super) sets_grace: bool,
    pub(super) rolls_back: bool,
    /// VCL sets the identity of clients.
    pub(super) sets_identity: bool,
    /// Backends are avoided for some requests: saint mode.
    pub(super) blacklists: bool,
    /// The client's request restarts, wherever that is requested.
    pub(super) restarts: bool,
    /// The client's side keeps a reason while a status is set.
    pub(super) keeps_reason: bool,
    /// Changes of the request in `vcl_miss` and `vcl_pass` after `bereq` was made from it, with the
    /// author's spelling.
    pub(super) set_before_fetch: BTreeMap<String, String>,
    /// Values that `vcl_fetch` reads from the request.
    pub(super) read_in_fetch: BTreeSet<String>,
}

impl Knowledge {
    /// Changes of the request that come too late for the backend. Values that `vcl_fetch` reads
    /// must be in `bereq`.
    pub(super) fn hidden(&self) -> Vec<&String> {
        let hidden = self.set_before_fetch.iter().filter(|(name, _)| !self.read_in_fetch.contains(*name));
        hidden.map(|(_, spelled)| spelled).collect()
    }

    /// Changes of the request in `vcl_fetch` that the client's side reads later.
    pub(super) fn carried(&self) -> BTreeMap<String, String> {
        let read = |name: &&String| {
            self.read_after_fetch.contains(*name) || self.restarts_in_fetch && self.read_before_fetch.contains(*name)
        };
        let kept = self.set_in_fetch.iter().filter(|(name, _)| read(name));
        kept.map(|(name, spelled)| (name.clone(), spelled.clone())).collect()
    }
}

/// A director of the old text.
#[derive(Clone, Debug)]
pub(super) struct Director {
    pub(super) policy: DirectorPolicy,
    /// The token with the text of `.suffix`.
    pub(super) suffix: Option<At>,
    /// Number of times that a member was chosen until one yielded a connection.
    pub(super) tries: u32,
    /// The names of its members; empty for those that have none.
    pub(super) members: Vec<String>,
}

/// A variable that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) means: Means,
    pub(super) kind: Type,
    /// The name of a header as the author spells it.
    pub(super) header: Option<String>,
}

/// The name of a variable in VCL 4.1.
#[derive(Clone, Debug)]
pub(super) enum NewName {
    Name(String),
    /// It can only be read; this is the value.
    Value(String),
    Treatment(&'static TreatmentRow),
    /// It has no effect.
    Nothing,
}

/// Writes the parts of one row of tokens.
pub(super) struct Writer<'a> {
    pub(super) row: Row<'a>,
    pub(super) dialect: &'static Dialect,
    pub(super) language: Option<&'static Language>,
    pub(super) directors: HashMap<String, Director>,
    pub(super) backends: BTreeSet<String>,
    pub(super) acls: BTreeSet<String>,
    /// Declarations with a new name.
    pub(super) renamed: HashMap<(NameOf, String), String>,
    /// The existing storages.
    pub(super) storages: &'a [String],
    /// Subroutines by name; methods may have several pieces.
    pub(super) subs: HashMap<String, Vec<&'a Sub>>,
    /// The names of subroutines that are written in several versions.
    pub(super) sub_names: HashMap<(String, Context), String>,
    /// The subroutine to call before an error page is delivered.
    pub(super) delivery: Option<String>,
    /// Other names for imported VMODs whose own would collide.
    pub(super) aliases: HashMap<String, String>,
    pub(super) known: Knowledge,
    /// The result of [`Knowledge::carried`].
    pub(super) carried: BTreeMap<String, String>,
    pub(super) found: Knowledge,
    pub(super) notes: Vec<Note>,
    /// The notes made so far: source, offset, text.
    pub(super) noted: HashSet<(u32, u32, String)>,
    /// Acls for addresses that were compared with strings.
    pub(super) new_acls: Vec<String>,
    /// Their names, by those strings.
    pub(super) acl_names: HashMap<String, String>,
    /// A backend was added to a text that has none.
    pub(super) has_none_backend: bool,
    pub(super) edits: Edits,
}

impl<'a> Writer<'a> {
    /// The name of a VMOD; using it makes sure that it is imported.
    pub(super) fn vmod(&mut self, name: &'static str) -> String {
        self.found.vmods.insert(name);
        self.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Adds a note about a place, both in the text and to the list.
    pub(super) fn note(&mut self, statement: At, text: &str) {
        self.listed(statement, text);
        let written = if self.row.begins_line(statement) {
            format!("# migrate: {text}\n{}", self.row.indentation(statement))
        } else {
            format!("/* migrate: {text} */ ")
        };
        self.edits.before(statement, &written);
    }

    /// Adds a note about a place, only to the list.
    pub(super) fn listed(&mut self, place: At, text: &str) {
        let token = self.row.token(place);
        let (line, _) = self.row.sources.place(token);
        let file = self.row.sources.file(token).name.clone();
        if self.noted.insert((token.source, token.start, text.to_owned())) {
            self.notes.push(Note { file, line, text: text.to_owned() });
        }
    }

    /// Turns a range into a comment that gives the reason.
    pub(super) fn comment_out(&mut self, first: At, last: At, why: &str) {
        self.listed(first, why);
        let old = self.row.flat(first, last);
        let text = if self.row.begins_line(first) {
            let ends = self.row.lead(last + 1).contains(&b'\n');
            let end = if ends { String::new() } else { format!("\n{}", self.row.indentation(first)) };
            format!("# migrate: {why}: {old}{end}")
        } else {
            format!("/* migrate: {why}: {} */", old.replace("*/", "* /").replace("/*", "/ *"))
        };
        self.edits.replace(first, last, text);
    }

    /// The words of a path with dots between them.
    pub(super) fn path_text(&self, path: &Path) -> String {
        let words: Vec<&str> = path.segments.iter().map(|segment| self.row.text(segment.name)).collect();
        words.join(".")
    }

    /// The variable that a path means in the old text.
    pub(super) fn variable(&self, path: &Path, old: Method, used: Use) -> Option<Found> {
        if path.segments.iter().any(|segment| segment.arguments.is_some()) {
            return None;
        }
        let text = self.path_text(path);
        let lower = text.to_ascii_lowercase();
        let (family, header) = match lower.split('.').collect::<Vec<_>>()[..] {
            [object, "http", _, ..] => {
                let prefix = object.len() + ".http.".len();
                (format!("{object}.http.*"), Some(text[prefix..].trim_matches('"').to_owned()))
            }
            _ => (lower, None),
        };
        let bit = old.row().bit;
        let (means, kind) = match self.language {
            Some(language) => {
                let rows = || language.variables.iter().filter(|row| row.name == family);
                let mask = |row: &surface::vcl::legacy::LegacyVariableRow| {
                    if used == Use::Read { row.read } else { row.write }
                };
                let row = rows().find(|row| mask(row) & bit != 0).or_else(|| rows().next())?;
                (row.means, row.kind)
            }
            None => {
                let rows = || VARIABLES.iter().filter(|row| row.name == family);
                let row = rows().find(|row| row.syntax_max < SYNTAX).or_else(|| rows().next())?;
                (Means::Variable(row.var), row.kind)
            }
        };
        Some(Found { means, kind, header })
    }

    /// The present name of a variable.
    pub(super) fn new_name(&mut self, found: &Found, context: Context, used: Use) -> NewName {
        let var = match found.means {
            Means::Variable(var) => var,
            Means::Port(var) => {
                let (std, name) = (self.vmod("std"), self.name_of(self.sided(var, context), None));
                // The address of a backend no longer exists.
                let known = available(var, context.bit(), Use::Read);
                return NewName::Value(if known { format!("{std}.port({name})") } else { "0".to_owned() });
            }
            Means::Healthy(var) => {
                let (std, name) = (self.vmod("std"), self.name_of(self.sided(var, context), None));
                return NewName::Value(self.healthy(&std, &name, if context.is_fetch() { "bereq" } else { "req" }));
            }
            Means::True if used == Use::Read => return NewName::Value("true".to_owned()),
            Means::Nothing | Means::Hash if used == Use::Read => {
                let value = match found.kind {
                    Type::Bool => "false",
                    Type::Int => "0",
                    Type::Duration => "0s",
                    _ => "\"\"",
                };
                return NewName::Value(value.to_owned());
            }
            Means::True | Means::Nothing | Means::Hash => return NewName::Nothing,
        };
        let sided = self.sided(var, context);
        let treatment = |var: Var| {
            FATES.iter().find(|row| row.var == var && row.at & context.bit() != 0 && row.uses.contains(&used))
        };
        // Used only where the variable itself is not available.
        if available(sided, context.bit(), used) {
            return NewName::Name(self.name_of(sided, found.header.as_deref()));
        }
        match treatment(var).or_else(|| treatment(sided)) {
            Some(row) => NewName::Treatment(row),
            None => NewName::Name(self.name_of(sided, found.header.as_deref())),
        }
    }

    /// The variable on the side to which the context belongs.
    fn sided(&self, var: Var, context: Context) -> Var {
        if !context.is_fetch() {
            return var;
        }
        BACKEND_SIDE.iter().find(|(old, _)| *old == var).map_or(var, |&(_, new)| new)
    }

    /// The name of a variable.
    pub(super) fn name_of(&self, var: Var, header: Option<&str>) -> String {
        let rows = || VARIABLES.iter().filter(|row| row.var == var);
        let row = rows().find(|row| row.syntax_max >= SYNTAX).or_else(|| rows().next());
        let name = row.map_or("", |row| row.name);
        match (name.strip_suffix('*'), header) {
            (Some(family), Some(header)) => format!("{family}{}", quoted_header(header)),
            _ => name.to_owned(),
        }
    }

    /// Records the values that the client's side reads from the request, and those that `vcl_fetch`
    /// changes in it.
    pub(super) fn remember(&mut self, found: &Found, context: Context, used: Use) {
        let Means::Variable(var) = found.means else { return };
        self.found.sets_identity |= var == Var::ClientIdentity && used == Use::Set;
        let name = match (var, &found.header) {
            (Var::ReqHttp, Some(header)) => format!("http.{header}"),
            (Var::ReqUrl, _) => "url".to_owned(),
            (Var::ReqMethod, _) => "method".to_owned(),
            (Var::ReqGrace, _) if used == Use::Set => {
                self.found.sets_grace |= !context.is_fetch();
                return;
            }
            _ => return,
        };
        let lower = name.to_ascii_lowercase();
        match (used, context.is_fetch()) {
            (Use::Read, true) => {
                self.found.read_in_fetch.insert(lower);
            }
            (Use::Set | Use::Unset, false) if matches!(context.old, Method::Miss | Method::Pass) => {
                self.found.set_before_fetch.insert(lower, name);
            }
            (Use::Read, false) if matches!(context.old, Method::Deliver | Method::Synth) => {
                self.found.read_after_fetch.insert(lower);
            }
            (Use::Read, false) => {
                self.found.read_before_fetch.insert(lower);
            }
            (Use::Set | Use::Unset, true) if name != "method" => {
                self.found.set_in_fetch.insert(lower, name);
            }
            _ => {}
        }
    }

    /// Records that a header differs on the backend's side.
    pub(super) fn note_changed_header(&mut self, found: &Found, context: Context, statement: At) {
        let Means::Variable(Var::ReqHttp) = found.means else { return };
        if !context.is_fetch() {
            return;
        }
        let header = found.header.as_deref().unwrap_or("").to_ascii_lowercase();
        if let Some((_, text)) = tables::CHANGED_HEADERS.iter().find(|(name, _)| *name == header) {
            self.note(statement, text);
        }
    }

    /// Replacement for a director where a backend is expected, or for a backend wrapped in saint
    /// mode. `http` is the current request.
    pub(super) fn backend_value(&self, name: &str, http: &str) -> Option<String> {
        if self.known.blacklists && self.backends.contains(&name.to_ascii_lowercase()) {
            return Some(format!("{}_saint.backend()", self.name_now(NameOf::Backend, name)));
        }
        let Some(director) = self.directors.get(&name.to_ascii_lowercase()) else {
            let new = self.name_now(NameOf::Backend, name);
            return (new != name).then_some(new);
        };
        let name = self.director_name(name);
        Some(match director.policy {
            DirectorPolicy::Client => format!("{name}.backend(client.identity)"),
            DirectorPolicy::Dns => self.name_asked_for(&name, director.suffix, http),
            // It hashes the input of vcl_hash, which is not known earlier.
            DirectorPolicy::Hash => format!("{name}.backend(resolve = LAZY)"),
            _ => format!("{name}.backend()"),
        })
    }

    /// The name of a director: only a backend may be called `default`.
    pub(super) fn director_name(&self, name: &str) -> String {
        match name.eq_ignore_ascii_case("default") {
            true => "default_director".to_owned(),
            false => self.name_now(NameOf::Backend, name),
        }
    }

    /// The bytes of a range with the changes made so far.
    pub(super) fn written(&self, first: At, last: At) -> Vec<u8> {
        self.row.written(first, last, &self.edits)
    }
}

/// True if VCL 4.1 has a variable in some of these methods.
fn available(var: Var, bit: u16, used: Use) -> bool {
    VARIABLES.iter().any(|row| {
        let mask = match used {
            Use::Read => row.read,
            Use::Set => row.write,
            Use::Unset => row.unset,
        };
        row.var == var && row.syntax_max >= SYNTAX && mask & bit != 0
    })
}

/// The name of a header in the form that follows `http.`.
pub(super) fn quoted_header(name: &str) -> String {
    let plain = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if name.split('.').all(plain) { name.to_owned() } else { format!("\"{name}\"") }
}

/// The generation of a dialect.
pub(super) fn generation_of(dialect: &Dialect) -> Generation {
    dialect.language.map_or(Generation::V4, |language| language.generation)
}
