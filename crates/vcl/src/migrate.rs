//! `copal vcl migrate`: rewrites a text of an old dialect, or of VCL 4.0, as VCL 4.1 that does the
//! same.
//!
//! The text is parsed as for the compiler and changed in place: unchanged parts keep their comments
//! and layout. A subroutine that means different things in different methods is written once for
//! each meaning. If a meaning cannot be preserved, a comment beginning with `migrate:` replaces it,
//! and the caller gets a [`Note`]. *Invariants:* a text that does not compile is not migrated; the
//! result compiles, or carries the reason why not.
//!
//! Preservation of one request's context: `vcl_fetch` becomes `vcl_backend_response`; its `error`
//! and `restart` reach `vcl_deliver` in headers of a response that is not stored, and so do its
//! changes of the request that the client's side reads. Failed fetches are abandoned, which leads
//! to `vcl_synth`. Included files become part of the text. Next files: `migrate/tables.rs`,
//! replacements of words; `migrate/writer.rs`, variables; `migrate/frame.rs`, additions around the
//! text.

mod declaration;
mod dns_director;
mod edit;
mod expression;
mod failover;
mod frame;
mod kinds;
mod name_of;
mod statement;
mod tables;
mod writer;

use crate::diagnostic::Diagnostics;
use crate::lex::lex;
use crate::load::{self, Loaded};
use crate::parse::{self, Tree};
use crate::source::Sources;
use crate::tree::{At, Backend, Block, Declaration, ExpressionKind, FieldValue, Statement, Sub};
use crate::{CompileError, CompileOptions, SourceText, compile};
use edit::{Edits, Row};
use frame::Surroundings;
use name_of::NameOf;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use surface::diagnostic::Code;
use surface::vcl::{Generation, METHODS, Method};
use writer::{Context, Director, Knowledge, Writer};

/// Something for the author to check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The name of the old source.
    pub file: String,
    /// Line in it, from 1.
    pub line: u32,
    /// Description of the change.
    pub text: String,
}

/// A text in VCL 4.1.
#[derive(Clone, Debug)]
pub struct Migrated {
    /// The text.
    pub text: Vec<u8>,
    /// The generation of the old text.
    pub generation: Generation,
    /// Parts that could not be preserved, in the order of the old text.
    pub notes: Vec<Note>,
    /// Reason why the new text does not compile; `None` if it does.
    pub problem: Option<CompileError>,
}

/// Rewrites a VCL in VCL 4.1. Accepts any bytes.
///
/// # Errors
/// All messages, if the old text does not compile.
pub fn migrate(source: &SourceText<'_>, options: &CompileOptions<'_>) -> Result<Migrated, CompileError> {
    let (text, mut notes) = without_inline_c(source);
    let source = SourceText { text: &text, ..*source };
    let options = CompileOptions { err_unref: false, ..*options };
    let generation = compile(&source, &options)?.program.generation();
    let mut diagnostics = Diagnostics::default();
    let assumed = generation.is_legacy().then_some(generation);
    let Some(loaded) = load::load(&source, &options, assumed, &mut diagnostics) else {
        return Err(CompileError::new(diagnostics));
    };
    let user = parse::parse(&loaded.sources, &loaded.tokens, 0, loaded.dialect, &mut diagnostics);
    let builtin = parse::parse(&loaded.sources, &loaded.tokens, loaded.builtin, loaded.dialect, &mut diagnostics);
    let mut migration = Migration {
        loaded: &loaded,
        user: &user,
        builtin: &builtin,
        known: Knowledge::default(),
        storages: options.storages,
    };
    // The first pass collects the dependencies between the parts; the second uses them, and
    // collects the same again.
    migration.known = migration.write().1;
    let (text, _, found) = migration.write();
    notes.extend(found);
    notes.sort_by_key(|note| (note.file != source.name, note.file.clone(), note.line));
    let new = SourceText { name: "migrated", text: &text };
    let problem = compile(&new, &CompileOptions { generation: None, ..options }).err();
    Ok(Migrated { text, generation, notes, problem })
}

/// The text with its inline C turned into comments.
fn without_inline_c(source: &SourceText<'_>) -> (Vec<u8>, Vec<Note>) {
    let mut sources = Sources::default();
    let index = sources.add(source.name.to_owned(), source.text.to_vec(), None);
    let mut errors = Vec::new();
    lex(&sources, index, &mut errors);
    let (mut text, mut notes, mut copied) = (Vec::with_capacity(source.text.len()), Vec::new(), 0);
    for error in errors.iter().filter(|error| error.code == Code::InlineC) {
        let (start, end) = (error.token.start as usize, error.token.end as usize);
        text.extend_from_slice(&source.text[copied..start]);
        let why = "nothing is compiled as C: write it as VCL, or use a VMOD";
        text.extend_from_slice(format!("# migrate: {why}\n").as_bytes());
        for line in source.text[start..end].split(|&byte| byte == b'\n') {
            text.extend_from_slice(b"# ");
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        copied = end;
        let (line, _) = sources.place(error.token);
        notes.push(Note { file: source.name.to_owned(), line, text: why.to_owned() });
    }
    text.extend_from_slice(&source.text[copied..]);
    (text, notes)
}

/// One text being migrated.
struct Migration<'a> {
    loaded: &'a Loaded,
    user: &'a Tree,
    builtin: &'a Tree,
    known: Knowledge,
    /// The existing storages.
    storages: &'a [String],
}

/// The methods whose old built-in subroutine differs from that of VCL 4.1.
const BUILTIN_DIFFERS: &[Method] = &[Method::Recv, Method::Hash, Method::BackendResponse, Method::Synth];

impl<'a> Migration<'a> {
    fn generation(&self) -> Generation {
        writer::generation_of(self.loaded.dialect)
    }

    /// The new text, the knowledge gathered on the way, and the notes.
    fn write(&self) -> (Vec<u8>, Knowledge, Vec<Note>) {
        let mut writer = self.writer(0, self.user);
        let contexts = self.contexts(&writer);
        self.name_subs(&mut writer, &contexts);
        let deliveries = self.user_pieces(Method::Deliver);
        // 1.x called no VCL for error pages.
        let delivers_errors = self.generation().is_legacy() && self.generation() != Generation::V1;
        let has_delivery = delivers_errors && !deliveries.is_empty();
        writer.delivery = has_delivery.then(|| "migrate_delivery".to_owned());

        let mut top = Edits::default();
        let mut appended: Vec<Vec<u8>> = Vec::new();
        let mut first_sub = None;
        let mut before_sub = 0;
        // Probes that are moved in front of the backends that use them.
        let mut moved = BTreeSet::new();
        for (index, declaration) in self.user.declarations.iter().enumerate() {
            let first = self.first_token(declaration);
            if first_sub.is_none() && matches!(declaration, Declaration::Sub(sub) if !is_housekeeping(sub, &writer)) {
                first_sub = Some(first);
                before_sub = index;
            }
            match declaration {
                Declaration::Version(_) => top.replace(first + 1, first + 1, "4.1"),
                Declaration::Sub(sub) => self.sub(sub, &contexts, &mut writer, &mut top, &mut appended),
                other => {
                    if moved.contains(&index) {
                        let last = self.last_token(other, &writer);
                        top.rewrite(first, last, Vec::new());
                        continue;
                    }
                    let mut before = Vec::new();
                    if let Declaration::Backend(backend) = other {
                        for later in
                            self.probes_behind(index, backend, &writer).into_iter().filter(|it| moved.insert(*it))
                        {
                            let probe = &self.user.declarations[later];
                            if let Declaration::Probe(tree) = probe {
                                writer.probe(tree);
                            }
                            before.extend(writer.written(self.first_token(probe), self.last_token(probe, &writer)));
                            before.extend_from_slice(b"\n\n");
                            writer.edits = Edits::default();
                        }
                    }
                    match other {
                        Declaration::Import(import) => writer.import(import),
                        Declaration::Acl(acl) => writer.acl(acl),
                        Declaration::Backend(backend) => writer.backend(backend),
                        Declaration::Probe(probe) => writer.probe(probe),
                        Declaration::Director(director) => writer.director(director),
                        Declaration::Version(_) | Declaration::Sub(_) => {}
                    }
                    let last = self.last_token(other, &writer);
                    before.extend(writer.written(first, last));
                    writer.edits = Edits::default();
                    top.rewrite(first, last, before);
                    if let Declaration::Backend(backend) = other {
                        let name = writer.name_now(NameOf::Backend, writer.row.text(backend.name.first));
                        if let Some(saint) = writer.saint(&name, backend.fields.as_deref().unwrap_or(&[])) {
                            top.after(last, &saint);
                        }
                    }
                }
            }
        }
        if has_delivery {
            appended.push(self.delivery(&deliveries, &mut writer));
        }
        let mut found = writer.found.clone();
        let endings = self.builtin_endings(&writer, &mut found);
        writer.found = found;
        self.assemble(writer, top, first_sub, before_sub, appended, endings)
    }

    /// The indices of the probes that a backend uses but that are declared later: VCL 4.1 does not
    /// look ahead.
    fn probes_behind(&self, index: usize, backend: &Backend, writer: &Writer<'_>) -> Vec<usize> {
        let used = backend.fields.iter().flatten().filter_map(|field| match field.value {
            FieldValue::Tokens(first, _) if writer.row.text(field.name) == "probe" => Some(writer.row.text(first)),
            _ => None,
        });
        let mut found = Vec::new();
        for name in used {
            let behind = self.user.declarations.iter().enumerate().skip(index + 1);
            found.extend(behind.filter_map(|(later, declaration)| match declaration {
                Declaration::Probe(probe) if writer.row.text(probe.name.first) == name => Some(later),
                _ => None,
            }));
        }
        found
    }

    fn writer(&self, start: At, tree: &'a Tree) -> Writer<'a> {
        let row = Row::new(self.loaded, start);
        let mut subs: HashMap<String, Vec<&'a Sub>> = HashMap::new();
        let (mut names, mut directors) = (BTreeSet::new(), HashMap::new());
        let (mut acls, mut backends) = (BTreeSet::new(), BTreeSet::new());
        let mut imported = BTreeSet::new();
        for declaration in &self.user.declarations {
            let name = match declaration {
                Declaration::Acl(acl) => acl.name,
                Declaration::Backend(backend) => backend.name,
                Declaration::Director(director) => director.name,
                Declaration::Probe(probe) => probe.name,
                Declaration::Sub(sub) => sub.name,
                Declaration::Import(import) => {
                    imported.insert(row.text(import.name).to_ascii_lowercase());
                    continue;
                }
                Declaration::Version(_) => continue,
            };
            let name = (name.first..=name.last).map(|index| row.text(index)).collect::<String>().to_ascii_lowercase();
            match declaration {
                Declaration::Acl(_) => {
                    acls.insert(name.clone());
                }
                Declaration::Backend(_) => {
                    backends.insert(name.clone());
                }
                Declaration::Director(director) => {
                    let word = row.text(director.policy);
                    let policy = self.loaded.dialect.directors.iter().find(|(known, _)| *known == word);
                    if let Some(&(_, policy)) = policy {
                        let suffix = Writer::suffix_of(&row, director);
                        let tries = Writer::tries_of(&row, director);
                        let members = Writer::members_of(&row, director);
                        directors.insert(name.clone(), Director { policy, suffix, tries, members });
                    }
                }
                _ => {}
            }
            names.insert(name);
        }
        for declaration in &tree.declarations {
            if let Declaration::Sub(sub) = declaration {
                subs.entry(sub_name(&row, sub)).or_default().push(sub);
            }
        }
        // Sooner or later a name must have a single meaning.
        let mut aliases = HashMap::new();
        let used =
            imported.iter().map(String::as_str).chain(["std", "purge", "directors", "saintmode", "dynamic", "var"]);
        for vmod in used.filter(|vmod| names.contains(*vmod)) {
            aliases.insert(vmod.to_owned(), format!("{vmod}_vmod"));
        }
        let renamed = kinds::renamed(&row, &self.user.declarations);
        Writer {
            row,
            renamed,
            storages: self.storages,
            dialect: self.loaded.dialect,
            language: self.loaded.dialect.language,
            directors,
            backends,
            acls,
            subs,
            sub_names: HashMap::new(),
            delivery: None,
            aliases,
            carried: self.known.carried(),
            known: self.known.clone(),
            found: Knowledge::default(),
            notes: Vec::new(),
            noted: HashSet::new(),
            new_acls: Vec::new(),
            has_none_backend: false,
            acl_names: HashMap::new(),
            edits: Edits::default(),
        }
    }

    /// The method that a subroutine belongs to.
    fn method(&self, name: &str) -> Option<Method> {
        match self.loaded.dialect.language {
            Some(language) => language.methods.iter().find(|row| row.name == name).map(|row| row.method),
            None => METHODS.iter().find(|row| row.name == name).map(|row| row.method),
        }
    }

    fn user_pieces(&self, method: Method) -> Vec<&'a Sub> {
        let text = |index: At| self.loaded.sources.text(self.loaded.tokens[index as usize]);
        let name = |sub: &Sub| (sub.name.first..=sub.name.last).map(text).collect::<String>().to_ascii_lowercase();
        let piece = |declaration: &'a Declaration| match declaration {
            Declaration::Sub(sub) if self.method(&name(sub)) == Some(method) => Some(sub),
            _ => None,
        };
        self.user.declarations.iter().filter_map(piece).collect()
    }

    /// The contexts in which each of the author's own subroutines runs.
    fn contexts(&self, writer: &Writer<'_>) -> BTreeMap<String, BTreeSet<Context>> {
        let mut contexts: BTreeMap<String, BTreeSet<Context>> = BTreeMap::new();
        for (name, pieces) in &writer.subs {
            let Some(method) = self.method(name) else { continue };
            let mut starts = vec![Context::same(method)];
            if method == Method::Deliver && self.generation().is_legacy() && self.generation() != Generation::V1 {
                starts.push(Context { old: method, new: Method::Synth });
            }
            for context in starts {
                let mut waiting: Vec<&Sub> = pieces.clone();
                while let Some(sub) = waiting.pop() {
                    let mut callees = Vec::new();
                    calls(&sub.body, &writer.row, &mut callees);
                    for callee in callees {
                        if contexts.entry(callee.clone()).or_default().insert(context) {
                            waiting.extend(writer.subs.get(&callee).into_iter().flatten());
                        }
                    }
                }
            }
        }
        // VCL 4.0 may be configured to accept unused subroutines, and a VMOD may refer to a
        // subroutine by its name.
        for (name, pieces) in writer.subs.iter().filter(|_| self.loaded.dialect.language.is_none()) {
            if self.method(name).is_none() && !contexts.contains_key(name) {
                contexts.insert(name.clone(), BTreeSet::from([self.guessed_context(writer, pieces)]));
            }
        }
        contexts
    }

    /// The context for which an uncalled subroutine was probably written, judging by the words in
    /// it.
    fn guessed_context(&self, writer: &Writer<'_>, pieces: &[&Sub]) -> Context {
        let says = |word: &str| {
            pieces.iter().any(|sub| {
                let (open, close) = (sub.body.open, writer.row.closing(sub.body.open));
                (open..close).any(|index| writer.row.text(index) == word)
            })
        };
        let words = [
            ("beresp", Method::BackendResponse),
            ("bereq", Method::BackendFetch),
            ("resp", Method::Deliver),
            ("obj", Method::Hit),
        ];
        Context::same(words.iter().find(|(word, _)| says(word)).map_or(Method::Recv, |&(_, method)| method))
    }

    /// Names each version of a subroutine: the first one keeps the author's name.
    fn name_subs(&self, writer: &mut Writer<'a>, contexts: &BTreeMap<String, BTreeSet<Context>>) {
        // Called subroutines come before their callers.
        let mut order: Vec<String> = Vec::new();
        let mut entered = BTreeSet::new();
        for name in contexts.keys() {
            visit(name, writer, &mut entered, &mut order);
        }
        for name in order {
            let (Some(contexts), Some(subs)) = (contexts.get(&name), writer.subs.get(&name).cloned()) else { continue };
            let Some(&sub) = subs.first() else { continue };
            let mut written: Vec<(Vec<u8>, String)> = Vec::new();
            let spelled = writer.row.text(sub.name.first).to_owned();
            let found = writer.found.clone();
            for &context in contexts {
                let body = body(writer, sub, context);
                let known = written.iter().find(|(text, _)| *text == body).map(|(_, name)| name.clone());
                let new = known.unwrap_or_else(|| {
                    let new =
                        if written.is_empty() { spelled.clone() } else { format!("{spelled}_{}", place(context)) };
                    written.push((body, new.clone()));
                    new
                });
                writer.sub_names.insert((name.clone(), context), new);
            }
            writer.notes.clear();
            writer.noted.clear();
            writer.new_acls.clear();
            writer.acl_names.clear();
            writer.found = found;
        }
    }

    /// Writes a subroutine in its place.
    fn sub(
        &self,
        sub: &Sub,
        contexts: &BTreeMap<String, BTreeSet<Context>>,
        writer: &mut Writer<'a>,
        top: &mut Edits,
        appended: &mut Vec<Vec<u8>>,
    ) {
        let name = sub_name(&writer.row, sub);
        let keyword = sub.name.first - 1;
        let close = writer.row.closing(sub.body.open);
        if let Some(method) = self.method(&name) {
            let body = body(writer, sub, Context::same(method));
            top.replace(sub.name.first, sub.name.last, method.row().name);
            top.rewrite(sub.body.open, close, body);
            return;
        }
        let ignored =
            self.loaded.dialect.language.is_some_and(|language| language.ignored_methods.contains(&name.as_str()));
        let unused = self.loaded.dialect.language.is_some() && !contexts.contains_key(&name);
        if ignored || unused {
            writer.listed(keyword, "nothing calls this subroutine");
            let text = writer.row.written(keyword, close, &Edits::default());
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<String> = text.lines().map(|line| format!("# {line}")).collect();
            top.rewrite(keyword, close, format!("# migrate: nothing calls this subroutine\n{}\n", lines.join("\n")));
            return;
        }
        let mut done = BTreeSet::new();
        for &context in contexts.get(&name).into_iter().flatten() {
            let new = writer.sub_names.get(&(name.clone(), context)).cloned().unwrap_or_else(|| name.clone());
            if !done.insert(new.clone()) {
                continue;
            }
            let body = body(writer, sub, context);
            if done.len() == 1 {
                top.rewrite(sub.body.open, close, body);
            } else {
                let of = writer.row.text(sub.name.first);
                writer.listed(keyword, &format!("{of} means something else where it runs as {new}"));
                let head = format!("# {of}, for where its words mean something else.\nsub {new} ");
                appended.push([head.as_bytes(), &body, b"\n"].concat());
            }
        }
    }

    /// The effect of `vcl_deliver` on an error page.
    fn delivery(&self, pieces: &[&Sub], writer: &mut Writer<'a>) -> Vec<u8> {
        let mut text = b"# Pages of errors were delivered like all responses.\nsub migrate_delivery {\n".to_vec();
        let notes = writer.notes.clone();
        for sub in pieces {
            let body = body(writer, sub, Context { old: Method::Deliver, new: Method::Synth });
            let inner = body.strip_prefix(b"{").unwrap_or(&body);
            let inner = inner.strip_suffix(b"}").unwrap_or(inner);
            let inner = inner.trim_ascii_end();
            text.extend_from_slice(inner.strip_prefix(b"\n").unwrap_or(inner));
            text.push(b'\n');
        }
        writer.notes = notes;
        text.extend_from_slice(b"}\n");
        text
    }

    /// The reachable subroutines of the old built-in VCL.
    fn builtin_endings(&self, user: &Writer<'a>, found: &mut Knowledge) -> Vec<u8> {
        let Some(language) = self.loaded.dialect.language else { return Vec::new() };
        let defaults = tables::defaults(self.generation());
        let mut writer = self.writer(self.loaded.builtin, self.builtin);
        writer.delivery.clone_from(&user.delivery);
        let mut out = Vec::new();
        for declaration in &self.builtin.declarations {
            let Declaration::Sub(sub) = declaration else { continue };
            let name = sub_name(&writer.row, sub);
            let Some(method) = language.methods.iter().find(|row| row.name == name).map(|row| row.method) else {
                continue;
            };
            let reached = self.user_pieces(method).iter().all(|sub| falls_through(&sub.body, user, 0));
            let same = match (self.generation(), method) {
                (Generation::V1, Method::Hash) => false,
                (_, Method::Hash) => true,
                (Generation::V3, Method::Synth) => user.delivery.is_none(),
                _ => !BUILTIN_DIFFERS.contains(&method),
            };
            if !reached || same {
                continue;
            }
            let body = body(&mut writer, sub, Context::same(method));
            out.extend_from_slice(format!("sub {} ", method.row().name).as_bytes());
            out.extend_from_slice(&body);
            out.extend_from_slice(b"\n\n");
        }
        if defaults.fixed_error_page {
            out.extend_from_slice(frame::fixed_page(user.delivery.as_deref()).as_bytes());
        }
        found.vmods.extend(&writer.found.vmods);
        found.passes_in_fetch |= writer.found.passes_in_fetch;
        found.delivers_in_fetch |= writer.found.delivers_in_fetch;
        found.errors_in_fetch |= writer.found.errors_in_fetch;
        found.read_in_fetch.extend(writer.found.read_in_fetch);
        out
    }

    fn first_token(&self, declaration: &Declaration) -> At {
        match declaration {
            // There is only one, and it comes first.
            Declaration::Version(_) => 0,
            Declaration::Import(import) => import.keyword,
            Declaration::Acl(acl) => acl.name.first - 1,
            Declaration::Backend(backend) => backend.keyword,
            Declaration::Director(director) => director.keyword,
            Declaration::Probe(probe) => probe.name.first - 1,
            Declaration::Sub(sub) => sub.name.first - 1,
        }
    }

    fn last_token(&self, declaration: &Declaration, writer: &Writer<'_>) -> At {
        match declaration {
            Declaration::Version(_) => 2,
            Declaration::Import(import) => import.end,
            other => writer.block_end(self.first_token(other)),
        }
    }

    /// The backend if the VCL names none: the first of all backends and directors, or the one
    /// called `default`.
    fn default_backend(&self, writer: &Writer<'_>) -> Option<(String, bool)> {
        let (name, is_director) = self.default_name(writer)?;
        Some((
            writer.backend_value(name, "req").unwrap_or_else(|| writer.name_now(NameOf::Backend, name)),
            is_director || writer.known.blacklists,
        ))
    }

    /// Its name, and true if it is a director.
    fn default_name<'w>(&self, writer: &'w Writer<'_>) -> Option<(&'w str, bool)> {
        let mut default = None;
        for declaration in &self.user.declarations {
            let (name, director) = match declaration {
                Declaration::Backend(backend) => (backend.name, false),
                Declaration::Director(director) => (director.name, true),
                _ => continue,
            };
            let name = writer.row.text(name.first);
            if default.is_none() || name == "default" {
                default = Some((name, director));
            }
        }
        default
    }

    fn assemble(
        &self,
        mut writer: Writer<'a>,
        mut top: Edits,
        first_sub: Option<At>,
        before_sub: usize,
        appended: Vec<Vec<u8>>,
        endings: Vec<u8>,
    ) -> (Vec<u8>, Knowledge, Vec<Note>) {
        let generation = self.generation();
        let is_old = generation.is_legacy();
        let defaults = tables::defaults(generation);
        let known = self.known.clone();
        let timeouts = known.to_backend_fetch.iter().any(|what| what.ends_with("_timeout"));
        let needs_std = is_old && !defaults.no_grace
            || defaults.every_status_lives
            || known.errors_in_fetch
            || known.reads_restarts
            || timeouts;
        if needs_std {
            writer.found.vmods.insert("std");
        }
        // An import further down comes too late; importing twice is allowed.
        let before = &self.user.declarations[..if first_sub.is_some() { before_sub } else { 0 }];
        let imports = before.iter().filter_map(|declaration| match declaration {
            Declaration::Import(import) => Some(writer.row.text(import.name).to_owned()),
            _ => None,
        });
        let imported: BTreeSet<String> = imports.collect();
        let vmods: Vec<(&'static str, String)> = writer
            .found
            .vmods
            .iter()
            .filter(|name| !imported.contains(**name))
            .map(|&name| (name, writer.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())))
            .collect();
        let mut head = frame::imports(&vmods);
        if !head.is_empty() {
            head.push('\n');
        }
        let std = writer.aliases.get("std").cloned().unwrap_or_else(|| "std".to_owned());
        let default_backend = self.default_backend(&writer);
        let default_late = self.default_name(&writer).map(|(name, _)| name.to_ascii_lowercase());
        let var = writer.aliases.get("var").cloned().unwrap_or_else(|| "var".to_owned());
        if !defaults.asks_for_gzip {
            let file = self.loaded.sources.files[0].name.clone();
            writer.notes.push(Note { file, line: 1, text: frame::asks_for_gzip(generation) });
        }
        let around = Surroundings {
            generation,
            defaults,
            std: &std,
            var: &var,
            default_late: default_late.filter(|name| writer.late_directors().contains(name)),
            default_backend,
            late: writer
                .late_directors()
                .into_iter()
                .filter_map(|name| Some((name.clone(), writer.backend_value(&name, "bereq")?)))
                .collect(),
            healthy: writer.healthy(&std, "req.backend_hint", "req"),
            again: writer.asked_again(),
        };
        let mut prologue = String::new();
        if is_old || known.sets_esi {
            prologue = frame::prologue(&known, &around);
        }
        for acl in &writer.new_acls {
            prologue += acl;
            prologue.push('\n');
        }
        if is_old || known.sets_esi {
            prologue += "# migrate: end.\n\n";
        }
        let source = SourceText { name: "prologue", text: prologue.as_bytes() };
        let prologue =
            crate::format(&source).map_or(prologue.clone(), |text| String::from_utf8_lossy(&text).into_owned());
        let last =
            self.loaded.tokens.iter().position(|token| token.kind == crate::source::Kind::End).unwrap_or(0) as At;
        let mut out = Vec::new();
        if is_old {
            out.extend_from_slice(format!("vcl 4.1;\n\n{head}").as_bytes());
        } else if !head.is_empty() {
            top.after(2, &format!("\n\n{}", head.trim_end()));
        }
        if let Some(first_sub) = first_sub.filter(|_| !prologue.is_empty()) {
            if before_sub == 0 {
                out.extend_from_slice(prologue.as_bytes());
                out.push(b'\n');
            } else {
                let lines = writer.row.lead(first_sub).iter().filter(|&&byte| byte == b'\n').count();
                let space = if lines < 2 { "\n" } else { "" };
                top.after(first_sub - 1, &format!("\n\n{}{space}", prologue.trim_end()));
            }
        }
        let lead = writer.row.lead(0);
        out.extend_from_slice(lead);
        if last > 0 {
            writer.row.write(0, last - 1, &top, &mut out);
        }
        out.extend_from_slice(writer.row.lead(last).trim_ascii_end());
        if first_sub.is_none() {
            out.extend_from_slice(b"\n\n");
            out.extend_from_slice(prologue.as_bytes());
        }
        while out.last() == Some(&b'\n') {
            out.pop();
        }
        out.push(b'\n');
        for text in &appended {
            out.push(b'\n');
            out.extend_from_slice(text);
        }
        if !endings.is_empty() {
            let text = format!("\n# migrate: what Varnish {} did where the VCL did not decide.\n\n", generation.name());
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(endings.trim_ascii_end());
            out.push(b'\n');
        }
        (out, writer.found, writer.notes)
    }
}

fn sub_name(row: &Row<'_>, sub: &Sub) -> String {
    let words: String = (sub.name.first..=sub.name.last).map(|index| row.text(index)).collect();
    words.to_ascii_lowercase()
}

fn is_housekeeping(sub: &Sub, writer: &Writer<'_>) -> bool {
    matches!(sub_name(&writer.row, sub).as_str(), "vcl_init" | "vcl_fini")
}

/// A short name for the context of a subroutine.
fn place(context: Context) -> &'static str {
    match (context.old, context.new) {
        (Method::BackendResponse, _) => "in_fetch",
        (Method::Deliver, Method::Synth) => "in_delivery_of_errors",
        (Method::Synth, _) => "in_error",
        (method, _) => match method.row().name.strip_prefix("vcl_").unwrap_or("") {
            "recv" => "in_recv",
            "hash" => "in_hash",
            "hit" => "in_hit",
            "miss" => "in_miss",
            "pass" => "in_pass",
            "pipe" => "in_pipe",
            "deliver" => "in_deliver",
            _ => "elsewhere",
        },
    }
}

/// The block of a subroutine, written for a context.
fn body(writer: &mut Writer<'_>, sub: &Sub, context: Context) -> Vec<u8> {
    writer.edits = Edits::default();
    writer.block(&sub.body, context);
    let close = writer.row.closing(sub.body.open);
    let text = writer.written(sub.body.open, close);
    writer.edits = Edits::default();
    text
}

/// Appends a subroutine after those that it calls.
fn visit(name: &str, writer: &Writer<'_>, entered: &mut BTreeSet<String>, order: &mut Vec<String>) {
    // Names, each with true if the subroutines it calls have already been appended.
    let mut waiting = vec![(name.to_owned(), false)];
    while let Some((name, is_done)) = waiting.pop() {
        if is_done {
            order.push(name);
            continue;
        }
        if !entered.insert(name.clone()) {
            continue;
        }
        let mut callees = Vec::new();
        for sub in writer.subs.get(&name).into_iter().flatten() {
            calls(&sub.body, &writer.row, &mut callees);
        }
        waiting.push((name, true));
        waiting.extend(callees.into_iter().map(|callee| (callee, false)));
    }
}

/// The subroutines that a block calls, in lower case.
fn calls(block: &Block, row: &Row<'_>, out: &mut Vec<String>) {
    for statement in &block.statements {
        match statement {
            Statement::Call { callee } => {
                if let ExpressionKind::Path(path) = &callee.kind {
                    let words: Vec<&str> = path.segments.iter().map(|segment| row.text(segment.name)).collect();
                    out.push(words.join(".").to_ascii_lowercase());
                }
            }
            Statement::If { branches, otherwise } => {
                branches.iter().map(|(_, block)| block).chain(otherwise).for_each(|block| calls(block, row, out));
            }
            Statement::Block(block) => calls(block, row, out),
            _ => {}
        }
    }
}

/// True if the end of a block can be reached. `depth` counts calls.
fn falls_through(block: &Block, writer: &Writer<'_>, depth: usize) -> bool {
    block.statements.iter().all(|statement| match statement {
        Statement::Return { .. } | Statement::Error { .. } | Statement::Panic { .. } => false,
        Statement::If { branches, otherwise: Some(otherwise) } => {
            branches.iter().any(|(_, block)| falls_through(block, writer, depth))
                || falls_through(otherwise, writer, depth)
        }
        Statement::Block(block) => falls_through(block, writer, depth),
        Statement::Call { callee } => {
            let ExpressionKind::Path(path) = &callee.kind else { return true };
            let name = writer.path_text(path).to_ascii_lowercase();
            let pieces = writer.subs.get(&name);
            depth > surface::limits::VCL_CALL_DEPTH_MAX
                || pieces.is_none_or(|pieces| pieces.iter().all(|sub| falls_through(&sub.body, writer, depth + 1)))
        }
        _ => true,
    })
}
