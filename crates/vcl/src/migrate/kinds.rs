//! Names of declarations: VCL 4.1 has a single namespace for all of them, and more reserved words.

use super::edit::Row;
use super::name_of::NameOf;
use super::writer::Writer;
use crate::dialect::VCL_4;
use crate::tree::Declaration;
use std::collections::{BTreeSet, HashMap};

/// The declarations, in lower case, that need another name. Subroutines keep their names.
pub(super) fn renamed(row: &Row<'_>, declarations: &[Declaration]) -> HashMap<(NameOf, String), String> {
    let spelled = |first, last| (first..=last).map(|index| row.text(index)).collect::<String>();
    let named = |declaration: &Declaration| match declaration {
        Declaration::Acl(acl) => Some((NameOf::Acl, spelled(acl.name.first, acl.name.last))),
        Declaration::Backend(backend) => Some((NameOf::Backend, spelled(backend.name.first, backend.name.last))),
        Declaration::Director(director) => Some((NameOf::Backend, spelled(director.name.first, director.name.last))),
        Declaration::Probe(probe) => Some((NameOf::Probe, spelled(probe.name.first, probe.name.last))),
        Declaration::Sub(_) | Declaration::Import(_) | Declaration::Version(_) => None,
    };
    let subs = declarations.iter().filter_map(|declaration| match declaration {
        Declaration::Sub(sub) => Some(spelled(sub.name.first, sub.name.last).to_ascii_lowercase()),
        _ => None,
    });
    let mut taken: BTreeSet<String> = subs.collect();
    let all: BTreeSet<String> =
        declarations.iter().filter_map(|declaration| Some(named(declaration)?.1.to_ascii_lowercase())).collect();
    let mut renamed = HashMap::new();
    for (kind, name) in declarations.iter().filter_map(named) {
        let lower = name.to_ascii_lowercase();
        // Backends and probes may still each have a `default`.
        let is_default = lower == "default" && kind != NameOf::Acl;
        let is_reserved = VCL_4.reserved.contains(&lower.as_str()) || VCL_4.is_statement(&lower);
        if is_default || !is_reserved && taken.insert(lower.clone()) {
            continue;
        }
        let mut new = format!("{name}_{}", kind.word());
        while all.contains(&new.to_ascii_lowercase()) || !taken.insert(new.to_ascii_lowercase()) {
            new.push('_');
        }
        renamed.insert((kind, lower), new);
    }
    renamed
}

impl Writer<'_> {
    /// The present name of a declaration.
    pub(super) fn name_now(&self, kind: NameOf, name: &str) -> String {
        self.renamed.get(&(kind, name.to_ascii_lowercase())).cloned().unwrap_or_else(|| name.to_owned())
    }
}
