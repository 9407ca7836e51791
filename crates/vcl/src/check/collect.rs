//! First pass: every declared name, with what stands in the way of it.

use super::{Checked, Checker, Instance, Meaning, Reported, Sub, Symbol, nearest};
use crate::diagnostic::hint;
use crate::tree::{At, Block, Declaration, Import, Name, Path, Statement, Sub as SubTree};
use surface::vcl::{METHODS, VARIABLES};
use surface::vmod::VMODS;
use vcl_run::program::{Endpoint, InstanceDefinition};

impl<'a> Checker<'a> {
    pub(super) fn collect(&mut self, declarations: &'a [Declaration], builtin: &'a [Declaration]) {
        for row in METHODS {
            self.subs.push(self.new_sub(row.name.to_owned(), 0));
            self.subs.last_mut().expect("one was pushed").method = Some(row.method);
            let meaning = Meaning::Sub(self.subs.len() as u32 - 1);
            let symbol = Symbol { meaning, defined: self.loaded.builtin, name: row.name.to_owned(), used: true };
            self.symbols.insert(row.name.to_owned(), symbol);
        }
        // The hooks of the built-in VCL, so that the user's pieces go in front of theirs.
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
        for declaration in declarations.iter().chain(builtin) {
            // Each reports its own errors.
            let _: Checked<()> = match declaration {
                Declaration::Version => Ok(()),
                Declaration::Import(import) => self.import(import),
                Declaration::Acl(acl) => self.acl(acl),
                Declaration::Backend(backend) => self.backend(backend),
                Declaration::Probe(probe) => self.probe(probe),
                Declaration::Sub(sub) => self.sub(sub),
            };
        }
        // The default probe is that of backends declared before it, too.
        for backend in &mut self.backends {
            if !matches!(backend.endpoint, Endpoint::None) {
                backend.probe = backend.probe.or(self.default_probe);
            }
        }
        if self.default_backend.is_none() && self.damaged.is_empty() {
            let help = hint("e.g. backend default { .host = \"127.0.0.1\"; .port = \"8080\"; }");
            let text = "No backends or directors found in VCL program, at least one is necessary.\n".to_owned() + &help;
            self.error(self.loaded.builtin, text);
        }
    }

    fn new_sub(&self, name: String, defined: At) -> Sub<'a> {
        Sub {
            method: None,
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

    /// What the language itself means by a name, if it means anything.
    fn builtin_kind(&self, name: &str) -> Option<&'static str> {
        let is = |word: &str| word.eq_ignore_ascii_case(name);
        if self.dialect.statements.iter().any(|(word, _)| is(word)) {
            return Some("action");
        }
        if self.dialect.reserved.iter().any(|word| is(word)) {
            return Some("reserved");
        }
        if ["default", "regsub", "regsuball", "true", "false"].into_iter().any(is) {
            return Some("func");
        }
        if VARIABLES.iter().any(|row| is(row.name)) {
            return Some("var");
        }
        VARIABLES.iter().any(|row| row.name.split('.').next().is_some_and(is)).then_some("none")
    }

    /// Declares a backend, probe, acl or object.
    pub(super) fn declare(&mut self, name: Name, meaning: Meaning, title: &str, shown: &str) -> Checked<String> {
        let text = self.name_text(name);
        if name.first != name.last {
            let message = format!("Name of {shown}, '{text}', contains illegal character '.'");
            return Err(self.error_between(&message, name.first, name.last));
        }
        if text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("vcl_")) {
            let text = format!("Symbols named 'vcl_*' are reserved.\nAt:{}", self.at(name.first));
            return Err(self.error(name.first, text));
        }
        let default_ok = text == "default" && matches!(meaning, Meaning::Backend(_) | Meaning::Probe(_));
        if !default_ok && let Some(kind) = self.builtin_kind(&text) {
            return Err(self.error_at(&format!("Name {text} must have type '{kind}'."), name.first));
        }
        // Probes and backends may both be called `default`.
        let key = match meaning {
            Meaning::Probe(_) if default_ok => "probe default".to_owned(),
            _ => text.to_ascii_lowercase(),
        };
        if let Some(known) = self.symbols.get(&key) {
            if default_ok && matches!(meaning, Meaning::Backend(_)) {
                let message = format!("Only one default director possible.\n{}", self.at(name.first));
                return Err(self.error(name.first, message));
            }
            let again = std::mem::discriminant(&known.meaning) == std::mem::discriminant(&meaning);
            let defined = known.defined;
            let message = if again {
                let dot = if title == "Instance" || title == "Backend" || title == "Probe" || title == "Acl" {
                    "."
                } else {
                    ""
                };
                format!("{title} '{text}' redefined{dot}\n{}", self.at(name.first))
            } else {
                format!("Name '{text}' already defined.\n{}", self.at(name.first))
            };
            let message = format!("{message}\nFirst definition:\n{}", self.at(defined));
            return Err(self.error(name.first, message));
        }
        let symbol = Symbol { meaning, defined: name.first, name: text.clone(), used: false };
        self.symbols.insert(key, symbol);
        Ok(text)
    }

    fn import(&mut self, import: &Import) -> Checked<()> {
        let vmod = self.text(import.name);
        let name = import.alias.unwrap_or(Name { first: import.name, last: import.name });
        let alias = self.name_text(name);
        let Some(row) = VMODS.iter().find(|row| row.name == vmod) else {
            self.damaged.insert(alias.to_ascii_lowercase());
            let near = nearest(vmod, VMODS.iter().map(|row| row.name));
            let all: Vec<&str> = VMODS.iter().map(|row| row.name).collect();
            let mut help = match near {
                Some(near) => format!("did you mean {near}? "),
                None => String::new(),
            };
            help += &format!("VMODs are part of the program; there are {}", all.join(", "));
            let text = format!("Could not find VMOD {vmod}\n{}{}", self.at(import.name), hint(&help));
            return Err(self.error(import.name, text));
        };
        if alias.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("vcl_")) {
            let text = format!("Symbols named 'vcl_*' are reserved.\nAt:{}", self.at(name.first));
            return Err(self.error(name.first, text));
        }
        let key = alias.to_ascii_lowercase();
        match self.symbols.get(&key).map(|symbol| symbol.meaning) {
            Some(Meaning::Vmod(known)) if known == row.name => return Ok(()),
            Some(Meaning::Vmod(_)) => {
                let text = format!("Another module already imported as {alias}.");
                return Err(self.error_between(&text, import.keyword, import.end));
            }
            Some(_) => return Err(self.wrong_type(&alias, name.first, name.last, "vmod")),
            None if self.builtin_kind(&alias).is_some() => {
                return Err(self.wrong_type(&alias, name.first, name.last, "vmod"));
            }
            None => {}
        }
        let symbol = Symbol { meaning: Meaning::Vmod(row.name), defined: import.keyword, name: alias, used: false };
        self.symbols.insert(key, symbol);
        if !self.vmods.iter().any(|known| known == row.name) {
            self.vmods.push(row.name.to_owned());
        }
        // An outside file is not loaded; the path is accepted so that existing VCL keeps working.
        let _ = import.path;
        Ok(())
    }

    /// `Symbol 'x' has wrong type (kind), expected …:`
    pub(super) fn wrong_type(&mut self, name: &str, first: At, last: At, expected: &str) -> Reported {
        let known = self.symbol(name).map(|symbol| (symbol.meaning.kind(), Some(symbol.defined)));
        let (kind, defined) = known.unwrap_or((self.builtin_kind(name).unwrap_or("none"), None));
        let place = self.between(first, last);
        let mut text = format!("Symbol '{name}' has wrong type ({kind}), expected {expected}:\nAt: {place}\n");
        match defined {
            Some(defined) if defined < self.loaded.builtin => {
                text += &format!("Symbol was defined here: {}", self.at(defined));
            }
            _ => text += "Symbol was builtin\n",
        }
        self.error(first, text)
    }

    fn sub(&mut self, tree: &'a SubTree) -> Checked<()> {
        let name = self.name_text(tree.name);
        let first = tree.name.first;
        let result = self.declare_sub(tree, &name, first);
        // Objects are found whatever becomes of the sub.
        self.instances_in(&tree.body);
        result
    }

    fn declare_sub(&mut self, tree: &'a SubTree, name: &str, first: At) -> Checked<()> {
        if tree.name.first != tree.name.last {
            let message = format!("Name of subroutine, '{name}', contains illegal character '.'");
            return Err(self.error_between(&message, first, tree.name.last));
        }
        match self.symbol(name).map(|symbol| symbol.meaning) {
            Some(Meaning::Sub(index)) => {
                let sub = &mut self.subs[index as usize];
                if !sub.reserved {
                    let defined = sub.defined;
                    let name = self.subs[index as usize].name.clone();
                    let text = format!(
                        "Subroutine '{name}' redefined\n{}\nPreviously defined here:\n{}",
                        self.at(first),
                        self.at(defined)
                    );
                    return Err(self.error(first, text));
                }
                if sub.pieces.is_empty() {
                    sub.defined = first;
                }
                sub.pieces.push(tree);
                Ok(())
            }
            Some(_) => Err(self.wrong_type(name, first, first, "sub")),
            None if self.builtin_kind(name).is_some() => Err(self.wrong_type(name, first, first, "sub")),
            None if name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("vcl_")) => {
                let known: Vec<String> =
                    self.subs.iter().filter(|sub| sub.reserved).map(|sub| sub.name.clone()).collect();
                let help = nearest(name, known.iter().map(String::as_str))
                    .map_or(String::new(), |near| hint(&format!("did you mean {near}?")));
                let text = format!(
                    "The names 'vcl_*' are reserved for subroutines.\n{}\nValid vcl_* subroutines are:\n\t{}\n{help}",
                    self.at(first),
                    known.join("\n\t")
                );
                Err(self.error(first, text))
            }
            None => {
                let mut sub = self.new_sub(name.to_owned(), first);
                sub.pieces.push(tree);
                self.subs.push(sub);
                let meaning = Meaning::Sub(self.subs.len() as u32 - 1);
                let symbol = Symbol { meaning, defined: first, name: name.to_owned(), used: false };
                self.symbols.insert(name.to_ascii_lowercase(), symbol);
                Ok(())
            }
        }
    }

    /// Declares the objects that a block makes.
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

    /// The class that `new` names.
    pub(super) fn class_of(&mut self, class: &Path) -> Checked<(&'static str, &'static str)> {
        let words: Vec<&str> = class.segments.iter().map(|segment| self.text(segment.name)).collect();
        let (first, last) = (class.first(), class.segments.last().map_or(class.first(), |segment| segment.name));
        let written = words.join(".");
        let vmod = match (words.as_slice(), self.symbol(words[0]).map(|symbol| (symbol.meaning, symbol.defined))) {
            ([_], Some((meaning, _))) => {
                let _ = meaning;
                return Err(self.wrong_type(&written, first, last, "object"));
            }
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
                let help = match (nearest(words[1], names.iter().copied()), names.is_empty()) {
                    (Some(near), _) => format!("did you mean {}.{near}?", words[0]),
                    (None, false) => format!("classes of {vmod}: {}", names.join(", ")),
                    (None, true) => format!("{vmod} has no classes"),
                };
                Err(self.not_found(&written, first, last, Some(&help)))
            }
        }
    }

    /// `Symbol not found: 'x'`
    pub(super) fn not_found(&mut self, name: &str, first: At, last: At, help: Option<&str>) -> Reported {
        let place = self.between(first, last);
        let help = help.map_or(String::new(), hint);
        self.error(first, format!("Symbol not found: '{name}'\nAt: {place}{help}"))
    }
}
