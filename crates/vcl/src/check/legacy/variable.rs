//! Variables of the old dialects: finds rows of [`surface::vcl::legacy`] by name and by the method
//! in which they are used.

use super::super::expression::Typed;
use super::super::variable::{Lookup, Variable, http_object};
use super::super::{Checked, Checker, UseKind};
use crate::dialect::legacy_rows;
use crate::tree::Path;
use surface::vcl::legacy::{Language, LegacyVariableRow, Means};
use surface::vcl::{Type, Var, VariableRow};
use vcl_run::program::Op;

impl Checker<'_> {
    /// Finds the variable that a path names. A header's name may contain dots.
    pub(in super::super) fn find_legacy_variable(
        &mut self,
        language: &'static Language,
        path: &Path,
        kind: UseKind,
    ) -> Checked<Lookup> {
        if path.segments.iter().any(|segment| segment.arguments.is_some()) {
            return Ok(Lookup::None);
        }
        let words: Vec<String> =
            path.segments.iter().map(|segment| self.text(segment.name).to_ascii_lowercase()).collect();
        if words.len() >= 2 && words[1] == "http" {
            let family = format!("{}.http.*", words[0]);
            if !legacy_rows(language.generation, &family).is_empty() {
                if words.len() == 2 {
                    return Ok(Lookup::Family);
                }
                let variable = self.legacy_row(language, &family, kind);
                let mut name = String::new();
                for segment in &path.segments[2..] {
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name += &self.header_name(segment.name)?;
                }
                return Ok(match (variable, name.is_empty()) {
                    (_, true) => Lookup::Family,
                    (Some((row, means)), false) => {
                        let header = http_object(row.var).map(|http| (http, name));
                        Lookup::Found(Variable { row, means, header, storage: None, segments: path.segments.len() })
                    }
                    (None, false) => Lookup::None,
                });
            }
        }
        Ok(match self.legacy_row(language, &words.join("."), kind) {
            Some((row, means)) => {
                Lookup::Found(Variable { row, means, header: None, storage: None, segments: path.segments.len() })
            }
            None => Lookup::None,
        })
    }

    /// Emits the storage expressions of 3.0: a test for the existence of a storage, and its
    /// properties, which are 0 if it does not exist.
    pub(in super::super) fn legacy_storage(&mut self, path: &Path) -> Checked<Option<Typed>> {
        if !self.dialect.forms.storages_by_name || self.text(path.first()) != "storage" {
            return Ok(None);
        }
        let [_, name, property @ ..] = path.segments.as_slice() else { return Ok(None) };
        let name = self.text(name.name);
        let index = self.options.storages.iter().position(|storage| storage == name).map(|index| index as u32);
        let [property] = property else {
            self.emitter.op(Op::Bool(index.is_some()));
            return Ok(Some(Typed::Plain(Type::Bool)));
        };
        let (var, kind) = match self.text(property.name) {
            "free_space" => (Var::StorageFreeSpace, Type::Bytes),
            "used_space" => (Var::StorageUsedSpace, Type::Bytes),
            "happy" => (Var::StorageHappy, Type::Bool),
            _ => return Ok(None),
        };
        match (index, kind) {
            (Some(index), _) => {
                self.emitter.op(Op::Stevedore(Some(index)));
                self.emitter.op(Op::StorageProperty(var));
            }
            (None, Type::Bool) => self.emitter.op(Op::Bool(false)),
            (None, _) => self.emitter.op(Op::Bytes(0)),
        }
        Ok(Some(Typed::Plain(kind)))
    }

    /// The row of a name for the current method, and the methods in which the name can be used at
    /// all.
    fn legacy_row(&self, language: &'static Language, name: &str, kind: UseKind) -> Option<(VariableRow, Means)> {
        let rows = || legacy_rows(language.generation, name).iter().copied();
        let bit = self.method_here().map_or(0, |method| method.row().bit);
        let mask = |row: &LegacyVariableRow| if kind == UseKind::Read { row.read } else { row.write };
        let here = rows().find(|row| mask(row) & bit != 0).or_else(|| rows().next())?;
        let read = rows().fold(0, |all, row| all | row.read);
        let write = rows().fold(0, |all, row| all | row.write);
        let var = match here.means {
            Means::Variable(var) | Means::Port(var) | Means::Healthy(var) => var,
            Means::Hash | Means::Nothing | Means::True => Var::ReqHash,
        };
        let unset = if here.kind == Type::Header { write } else { 0 };
        let row = VariableRow {
            var,
            name: here.name,
            kind: here.kind,
            read,
            write,
            unset,
            syntax_min: self.loaded.syntax,
            syntax_max: self.loaded.syntax,
            text: "",
        };
        Some((row, here.means))
    }

    /// Emits the value of a variable that has no counterpart in programs; returns false if it has
    /// one.
    pub(in super::super) fn special_value(&mut self, row: &VariableRow, means: Means) -> bool {
        match means {
            Means::Variable(_) => return false,
            Means::Port(var) => {
                self.emitter.op(Op::Read(var));
                self.native("std", "", "port", None);
            }
            Means::Healthy(var) => {
                self.emitter.op(Op::Read(var));
                self.native("std", "", "healthy", None);
            }
            Means::True => self.emitter.op(Op::Bool(true)),
            Means::Hash | Means::Nothing => self.emitter.op(match row.kind {
                Type::Bool => Op::Bool(false),
                Type::Int => Op::Int(0),
                Type::Duration => Op::Duration(0.0),
                _ => Op::UnsetText,
            }),
        }
        true
    }

    /// Assigns the value on the stack to a variable that has no counterpart in programs; returns
    /// false if it has one.
    pub(in super::super) fn set_special(&mut self, means: Means, target: &Path) -> bool {
        match means {
            Means::Variable(_) => return false,
            Means::Hash => self.emitter.op(Op::HashData(1)),
            Means::Port(_) | Means::Healthy(_) => {}
            Means::Nothing | Means::True => {
                self.without_effect("Setting this variable", target.first(), target.last());
                self.emitter.op(Op::Forget);
            }
        }
        true
    }

    /// The hint about a variable that only another dialect has.
    pub(in super::super) fn other_dialects_hint(&self, name: &str) -> Option<String> {
        self.dialect.language?;
        let known: Vec<&str> = surface::vcl::Generation::ALL
            .iter()
            .filter(|&&generation| {
                Language::of(generation).is_some_and(|language| {
                    let header = name.split('.').nth(1) == Some("http");
                    let family = || name.split('.').next().map(|object| format!("{object}.http.*"));
                    language
                        .variables
                        .iter()
                        .any(|row| row.name == name || header && family().is_some_and(|family| row.name == family))
                })
            })
            .map(|generation| generation.name())
            .collect();
        if known.is_empty() { None } else { Some(format!("it is a variable of VCL {}", known.join(", "))) }
    }
}
