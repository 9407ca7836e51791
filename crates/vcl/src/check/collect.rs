//! First pass: collects every declared name, and reports conflicts.

use super::{Checked, Checker, Instance, Meaning, Reported, Sub, Symbol, nearest};
use crate::diagnostic::Draft;
use crate::tree::{At, Block, Declaration, Import, Name, Path, Statement, Sub as SubTree};
use surface::diagnostic::Code;
use surface::nearest::nearest_of_few;
use surface::vcl::{METHODS, VARIABLES};
use surface::vmod::VMODS;
use surface::vmod::foreign::{self, ForeignRow};
use vcl_run::program::{Endpoint, InstanceDefinition};

impl<'a> Checker<'a> {
    pub(super) fn collect(&mut self, declarations: &'a [Declaration], builtin: &'a [Declaration]) {
        for row in METHODS {
            let name = self.dialect.method_name(row.method);
            self.subs.push(Sub { method: Some(row.method), ..self.new_sub(name.to_owned(), 0) });
            if !self.dialect.has_method(row.method) {
                continue;
            }
            let meaning = Meaning::Sub(self.subs.len() as u32 - 1);
            let symbol = Symbol { meaning, defined: self.loaded.builtin, name: name.to_owned(), used: true };
            self.symbols.insert(name.to_owned(), symbol);
        }
        // The hooks of the built-in VCL are added first, so that the user's pieces precede the
        // built-in ones.
        for declaration in builtin {
            if let Declaration::Sub(sub) = declaration {
                let name = self.name_text(sub.name);
                if !self.symbols.contains_key(&name) {
                    self.subs.push(self.new_sub(name.clone(), sub.name.first));
                    let meaning = Meaning::Sub(self.subs.len() as u32 - 1);
                    self.symbols.insert(name.clone(), Symbol { meaning, defined: sub.name.first, name, used: true });
                }
            }
        }
        // Before 4.0 a backend may refer to a probe declared later. Compat: 3.0.7.
        let is_early = |declaration: &&Declaration| {
            self.dialect.language.is_some() && matches!(declaration, Declaration::Probe(_))
        };
        let (early, others): (Vec<&Declaration>, Vec<_>) = declarations.iter().chain(builtin).partition(is_early);
        for declaration in early.into_iter().chain(others) {
            // Each declaration reports its own errors.
            let _: Checked<()> = match declaration {
                Declaration::Version(keyword) => self.version(*keyword),
                Declaration::Import(import) => self.import(import),
                Declaration::Acl(acl) => self.acl(acl),
                Declaration::Backend(backend) => self.backend(backend),
                Declaration::Director(director) => self.director(director),
                Declaration::Probe(probe) => self.probe(probe),
                Declaration::Sub(sub) => self.sub(sub),
            };
        }
        // The default probe also applies to backends declared before it.
        for backend in &mut self.backends {
            if !matches!(backend.endpoint, Endpoint::None) {
                backend.probe = backend.probe.or(self.default_probe);
            }
        }
        if self.default_backend.is_none() && self.default_director.is_none() && self.damaged.is_empty() {
            let text = "No backends or directors found in VCL program, at least one is necessary.\n";
            let own = "e.g. backend default { .host = \"127.0.0.1\"; .port = \"8080\"; }";
            let option = if self.options.version_optional { ", or the option -b 127.0.0.1:8080" } else { "" };
            let hint = format!("{own}{option}");
            self.error(self.loaded.builtin, Draft::new(Code::NoBackend).text(text).hint(hint));
        }
    }

    pub(super) fn new_sub(&self, name: String, defined: At) -> Sub<'a> {
        Sub {
            method: None,
            under: None,
            reserved: name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("vcl_")),
            name,
            defined,
            pieces: Vec::new(),
            uses: Vec::new(),
            calls: Vec::new(),
            returns: Vec::new(),
            entry: 0,
            end: 0,
            at: 0,
        }
    }

    /// True if a name is reserved because it is a word of the grammar. Compat: Varnish 7.1 reserves
    /// these words, and names that begin with `vcl_`, from VCL 4.1 on.
    pub(super) fn is_reserved(&self, name: &str) -> bool {
        self.loaded.syntax != 40 && self.dialect.reserved.iter().any(|word| word.eq_ignore_ascii_case(name))
    }

    /// True if a name begins in a way reserved for subroutines; see [`Self::is_reserved`].
    pub(super) fn begins_as_method(&self, name: &str) -> bool {
        self.loaded.syntax != 40 && name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("vcl_"))
    }

    /// The kind of thing that the language itself has under this name, if any.
    pub(super) fn builtin_kind(&self, name: &str) -> Option<&'static str> {
        let is = |word: &str| word.eq_ignore_ascii_case(name);
        if self.dialect.forms.words_are_names {
            return self.is_reserved(name).then_some("reserved");
        }
        if self.dialect.statements.iter().any(|(word, _)| is(word)) {
            return Some("action");
        }
        if self.is_reserved(name) {
            return Some("reserved");
        }
        if ["default", "regsub", "regsuball", "true", "false"].into_iter().any(is) {
            return Some("func");
        }
        // Words that only begin variable names (`client`, `local`, `storage`) can be used. Compat:
        // Varnish 7.1.
        VARIABLES.iter().any(|row| is(row.name)).then_some("var")
    }

    /// Declares a backend, probe, acl or object.
    pub(super) fn declare(&mut self, name: Name, meaning: Meaning, title: &str, shown: &str) -> Checked<String> {
        let text = self.name_text(name);
        if name.first != name.last {
            let message = format!("Name of {shown}, '{text}', contains illegal character '.'");
            return Err(self.error_between(Code::MalformedName, &message, name.first, name.last));
        }
        if self.begins_as_method(&text) {
            let draft = Draft::new(Code::ReservedName).text("Symbols named 'vcl_*' are reserved.\nAt:");
            return Err(self.error(name.first, draft.at(self.token(name.first))));
        }
        let default_ok = text == "default" && matches!(meaning, Meaning::Backend(_) | Meaning::Probe(_));
        if !default_ok && let Some(kind) = self.builtin_kind(&text) {
            let text = format!("Name {text} must have type '{kind}'.");
            return Err(self.error_at(Code::ReservedName, &text, name.first));
        }
        // Probes and backends may both be called `default`.
        let mut key = match meaning {
            Meaning::Probe(_) if default_ok => "probe default".to_owned(),
            _ => text.to_ascii_lowercase(),
        };
        let other = |known: &Symbol| std::mem::discriminant(&known.meaning) != std::mem::discriminant(&meaning);
        if self.dialect.forms.names_by_kind && self.symbols.get(&key).is_some_and(other) {
            key = format!("{} {key}", meaning.kind());
        }
        if let Some(known) = self.symbols.get(&key) {
            if default_ok && matches!(meaning, Meaning::Backend(_)) {
                let defined = known.defined;
                let draft = self.draft_at(Code::Redefined, "Only one default director possible.", name.first);
                let draft = draft.text("\nFirst definition:\n").at(self.token(defined));
                return Err(self.error(name.first, draft));
            }
            let again = std::mem::discriminant(&known.meaning) == std::mem::discriminant(&meaning);
            let defined = known.defined;
            let message = if again {
                let dot = if title == "Instance" || title == "Backend" || title == "Probe" || title == "Acl" {
                    "."
                } else {
                    ""
                };
                format!("{title} '{text}' redefined{dot}")
            } else {
                format!("Name '{text}' already defined.")
            };
            let draft = self.draft_at(Code::Redefined, &message, name.first);
            return Err(self.error(name.first, draft.text("\nFirst definition:\n").at(self.token(defined))));
        }
        let symbol = Symbol { meaning, defined: name.first, name: text.clone(), used: false };
        self.symbols.insert(key, symbol);
        Ok(text)
    }

    /// A second version statement in the main text; those of included files are checked when the
    /// files are opened.
    fn version(&mut self, keyword: At) -> Checked<()> {
        let top = if self.loaded.syntax == 40 { "4.0" } else { "4.1" };
        let number = keyword + 1;
        if self.token(keyword).source != 0 || self.text(number) <= top {
            return Ok(());
        }
        let text = format!("VCL version {} higher than the top level version {top}", self.text(number));
        Err(self.error_between(Code::VersionHigher, &text, keyword, number))
    }

    fn import(&mut self, import: &Import) -> Checked<()> {
        let vmod = self.text(import.name);
        let name = import.alias.unwrap_or(Name { first: import.name, last: import.name });
        let alias = self.name_text(name);
        let taken = self.symbol(&alias).is_some_and(|symbol| !matches!(symbol.meaning, Meaning::Vmod(_)));
        if name.first == name.last && (taken || self.builtin_kind(&alias).is_some()) {
            return Err(self.wrong_type(&alias, name.first, name.last, "vmod"));
        }
        let Some(row) = VMODS.iter().find(|row| row.name == vmod) else {
            self.damaged.insert(alias.to_ascii_lowercase());
            let all: Vec<&str> = VMODS.iter().map(|row| row.name).collect();
            let token = self.token(import.name);
            let draft = self.draft_at(Code::UnknownVmod, &format!("Could not find VMOD {vmod}"), import.name);
            let lower = vmod.to_ascii_lowercase();
            let bare = ["libvmod_", "vmod_"].iter().find_map(|prefix| lower.strip_prefix(prefix)).unwrap_or(vmod);
            let near = all.iter().copied().find(|name| *name == bare).or_else(|| nearest(bare, all.iter().copied()));
            let help = match (foreign::find(bare), near) {
                (Some(ForeignRow { purpose, instead: "", .. }), _) => {
                    format!("it is for {purpose}, and nothing here does that")
                }
                (Some(ForeignRow { purpose, instead, .. }), _) => {
                    format!("it is for {purpose}, for which there is {instead}")
                }
                (None, Some(near)) => format!("did you mean {near}?"),
                (None, None) => format!("VMODs are part of the program: {}", all.join(", ")),
            };
            let draft = draft.nearest(token, token, near).hint(help);
            return Err(self.error(import.name, draft));
        };
        if self.begins_as_method(&alias) {
            let draft = Draft::new(Code::ReservedName).text("Symbols named 'vcl_*' are reserved.\nAt:");
            return Err(self.error(name.first, draft.at(self.token(name.first))));
        }
        let key = alias.to_ascii_lowercase();
        match self.symbols.get(&key).map(|symbol| symbol.meaning) {
            Some(Meaning::Vmod(known)) if known == row.name => return Ok(()),
            Some(Meaning::Vmod(_)) => {
                let text = format!("Another module already imported as {alias}.");
                return Err(self.error_between(Code::AliasTaken, &text, import.keyword, import.end));
            }
            _ => {}
        }
        let symbol = Symbol { meaning: Meaning::Vmod(row.name), defined: import.keyword, name: alias, used: false };
        self.symbols.insert(key, symbol);
        if !self.vmods.iter().any(|known| known == row.name) {
            self.vmods.push(row.name.to_owned());
        }
        // External VMOD files are not loaded; the path is accepted so that existing VCL keeps
        // working.
        let _ = import.path;
        Ok(())
    }

    /// `Symbol 'x' has wrong type (kind), expected …:`
    pub(super) fn wrong_type(&mut self, name: &str, first: At, last: At, expected: &str) -> Reported {
        // A backend may be called `default`, which is a word of the language nevertheless.
        let (kind, defined) = match (self.builtin_kind(name), self.symbol(name)) {
            (None, Some(symbol)) => (symbol.meaning.kind(), Some(symbol.defined)),
            (builtin, _) => (builtin.unwrap_or("none"), None),
        };
        let text = format!("Symbol '{name}' has wrong type ({kind}), expected {expected}:\nAt: ");
        let draft = Draft::new(Code::WrongSymbol).text(text).between(self.token(first), self.token(last));
        let draft = match defined {
            Some(defined) if defined < self.loaded.builtin => {
                draft.text("\nSymbol was defined here: ").at(self.token(defined))
            }
            _ => draft.text("\nSymbol was builtin\n"),
        };
        self.error(first, draft)
    }

    fn sub(&mut self, tree: &'a SubTree) -> Checked<()> {
        let name = self.name_text(tree.name);
        let first = tree.name.first;
        let result = self.declare_sub(tree, &name, first);
        // Objects are declared even if the sub itself has errors.
        self.instances_in(&tree.body);
        result
    }

    fn declare_sub(&mut self, tree: &'a SubTree, name: &str, first: At) -> Checked<()> {
        if tree.name.first != tree.name.last {
            let message = format!("Name of subroutine, '{name}', contains illegal character '.'");
            return Err(self.error_between(Code::MalformedName, &message, first, tree.name.last));
        }
        if self.dialect.language.is_some_and(|language| language.ignored_methods.contains(&name)) {
            self.without_effect(&format!("'{name}'"), first, first);
            return Ok(());
        }
        let by_kind = self.dialect.forms.names_by_kind;
        let mut key = self.key(name, &["sub"]);
        if by_kind && self.symbols.get(&key).is_some_and(|symbol| !matches!(symbol.meaning, Meaning::Sub(_))) {
            key = format!("sub {key}");
        }
        match self.symbols.get(&key).map(|symbol| symbol.meaning) {
            Some(Meaning::Sub(index)) => {
                let sub = &mut self.subs[index as usize];
                if !sub.reserved {
                    let defined = sub.defined;
                    let name = self.subs[index as usize].name.clone();
                    let draft = self.draft_at(Code::Redefined, &format!("Subroutine '{name}' redefined"), first);
                    let draft = draft.text("\nPreviously defined here:\n").at(self.token(defined));
                    return Err(self.error(first, draft));
                }
                if sub.pieces.is_empty() {
                    sub.defined = first;
                }
                sub.pieces.push(tree);
                Ok(())
            }
            Some(_) => Err(self.wrong_type(name, first, first, "sub")),
            None if self.builtin_kind(name).is_some() => Err(self.wrong_type(name, first, first, "sub")),
            None if name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("vcl_"))
                && !self.may_name_sub(name) =>
            {
                let named = |sub: &&Sub<'_>| sub.method.is_none_or(|method| self.dialect.has_method(method));
                let reserved = self.subs.iter().filter(|sub| sub.reserved).filter(named);
                let known: Vec<String> = reserved.map(|sub| sub.name.clone()).collect();
                let ends: Vec<&str> = known.iter().filter_map(|known| known.strip_prefix("vcl_")).collect();
                let near = name.get(4..).and_then(|end| nearest_of_few(end, &ends)).map(|end| format!("vcl_{end}"));
                let text = "The names 'vcl_*' are reserved for subroutines.";
                let draft = self.draft_at(Code::UnknownMethod, text, first);
                let draft = draft.text(format!("\nValid vcl_* subroutines are:\n\t{}\n", known.join("\n\t")));
                let moved = self.dialect.moved.iter().find(|(old, _)| old.eq_ignore_ascii_case(name));
                let near = if moved.is_some() { None } else { near };
                let draft = draft.nearest(self.token(first), self.token(first), near.as_deref());
                let draft = draft.maybe_hint(moved.map(|&(_, instead)| instead));
                Err(self.error(first, draft))
            }
            None => {
                let mut sub = self.new_sub(name.to_owned(), first);
                sub.pieces.push(tree);
                self.subs.push(sub);
                let meaning = Meaning::Sub(self.subs.len() as u32 - 1);
                let symbol = Symbol { meaning, defined: first, name: name.to_owned(), used: false };
                self.symbols.insert(key, symbol);
                Ok(())
            }
        }
    }

    /// True if a name that begins like a method can belong to a subroutine: only in the old
    /// dialects, where nothing was reserved, and unless another dialect has a method of that name.
    fn may_name_sub(&self, name: &str) -> bool {
        self.dialect.forms.words_are_names && !self.dialect.moved.iter().any(|(other, _)| *other == name)
    }

    /// Declares the objects that a block creates.
    fn instances_in(&mut self, block: &'a Block) {
        for statement in &block.statements {
            match statement {
                Statement::New { name, class, .. } => {
                    if let Err(Reported) = self.declare_instance(*name, class) {
                        let text = self.name_text(*name).to_ascii_lowercase();
                        self.damaged.insert(text);
                    }
                }
                Statement::If { branches, otherwise } => {
                    for (_, block) in branches {
                        self.instances_in(block);
                    }
                    if let Some(block) = otherwise {
                        self.instances_in(block);
                    }
                }
                Statement::Block(block) => self.instances_in(block),
                _ => {}
            }
        }
    }

    fn declare_instance(&mut self, name: Name, class: &Path) -> Checked<()> {
        let (vmod, class_name) = self.class_of(class)?;
        let index = self.instances.len() as u32;
        let text = self.declare(name, Meaning::Instance(index), "Instance", "VCL object")?;
        let is_director = VMODS.iter().any(|row| row.name == vmod && row.directors.contains(&class_name));
        let director = is_director.then(|| {
            self.directors += 1;
            self.directors - 1
        });
        self.instances.push(Instance {
            vmod,
            class: class_name,
            definition: InstanceDefinition { name: text, vmod: vmod.into(), class: class_name.into(), director },
        });
        Ok(())
    }

    /// The class named after `new`.
    pub(super) fn class_of(&mut self, class: &Path) -> Checked<(&'static str, &'static str)> {
        let words: Vec<&str> = class.segments.iter().map(|segment| self.text(segment.name)).collect();
        let (first, last) = (class.first(), class.segments.last().map_or(class.first(), |segment| segment.name));
        let written = words.join(".");
        let vmod = match (words.as_slice(), self.symbol(words[0]).map(|symbol| (symbol.meaning, symbol.defined))) {
            // Compat: VCL 4.0 does not look for a name of another kind here.
            ([_], Some(_)) if self.loaded.syntax == 40 => return Err(self.not_found(&written, first, last, None)),
            ([_], Some(_)) => return Err(self.wrong_type(&written, first, last, "object")),
            ([_, _, ..], Some((Meaning::Vmod(vmod), defined))) if defined < first => vmod,
            _ if self.is_damaged(words[0]) => return Err(Reported),
            _ => {
                let known = VMODS.iter().any(|row| row.name == words[0]);
                let help = known.then(|| format!("import {}; first", words[0]));
                return Err(self.not_found(&written, first, last, help.as_deref()));
            }
        };
        let classes = || surface::vmod::FUNCTIONS.iter().filter(|row| row.vmod == vmod && row.name.is_empty());
        match classes().find(|row| row.class.eq_ignore_ascii_case(words[1])) {
            Some(row) if words.len() == 2 => Ok((vmod, row.class)),
            _ => {
                let names: Vec<&str> = classes().map(|row| row.class).collect();
                let gone = foreign::present_name(&format!("{vmod}.{}", words[1]));
                let help = match (gone, nearest(words[1], names.iter().copied())) {
                    (Some(now), _) => format!("it is gone; there is {now}"),
                    (None, Some(near)) => format!("did you mean {}.{near}?", words[0]),
                    (None, None) if names.is_empty() => format!("{vmod} has no classes"),
                    (None, None) => format!("classes of {vmod}: {}", names.join(", ")),
                };
                Err(self.not_found(&written, first, last, Some(&help)))
            }
        }
    }

    /// `Symbol not found: 'x'`
    pub(super) fn not_found(&mut self, name: &str, first: At, last: At, help: Option<&str>) -> Reported {
        self.unknown_symbol(name, first, last, help, None)
    }

    /// Like [`Self::not_found`], with a suggestion of the intended name.
    pub(super) fn unknown_symbol(
        &mut self,
        name: &str,
        first: At,
        last: At,
        help: Option<&str>,
        near: Option<&str>,
    ) -> Reported {
        let (from, to) = (self.token(first), self.token(last));
        let draft = Draft::new(Code::UnknownSymbol).text(format!("Symbol not found: '{name}'\nAt: ")).between(from, to);
        self.error(first, draft.maybe_hint(help).nearest(from, to, near))
    }
}
