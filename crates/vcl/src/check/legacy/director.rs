//! `director` blocks: each becomes an object of the directors VMOD, created when the VCL is loaded.

use super::super::{Checked, Checker, Instance, Meaning};
use crate::diagnostic::Draft;
use crate::dialect::DirectorPolicy;
use crate::source::Kind;
use crate::tree::{At, Backend, Director, Field, FieldValue};
use surface::diagnostic::Code;
use surface::vcl::Type;
use vcl_run::program::{DirectorBlock, InstanceDefinition, NamesBlock, Op};

/// Default validity of a dns director's answer, in seconds.
const DNS_SECONDS: f64 = 60.0;

/// A director as declared.
#[derive(Debug)]
pub(in super::super) struct Declared {
    instance: u32,
    class: &'static str,
    members: Vec<(Member, f64)>,
}

/// A member of a director.
#[derive(Clone, Copy, Debug)]
enum Member {
    Backend(u32),
    /// Another director, as an instance. Directors are numbered after the backends, whose number is
    /// known only when all of them have been read.
    Director(u32),
}

impl Checker<'_> {
    pub(in super::super) fn director(&mut self, tree: &Director) -> Checked<()> {
        let word = self.text(tree.policy);
        let Some(&(_, policy)) = self.dialect.directors.iter().find(|(known, _)| *known == word) else {
            let known: Vec<&str> = self.dialect.directors.iter().map(|(word, _)| *word).collect();
            let near = super::super::nearest(word, known.iter().copied());
            let name = self.name_text(tree.name).to_ascii_lowercase();
            self.damaged.insert(name);
            let token = self.token(tree.policy);
            let text = format!("Unknown director policy: {} at", self.shown(tree.policy));
            let draft = self.draft_at(Code::DirectorPolicy, &text, tree.policy);
            let draft = draft.hint(format!("the policies are {}", known.join(", "))).nearest(token, token, near);
            return Err(self.error(tree.policy, draft));
        };
        let class = match policy {
            DirectorPolicy::RoundRobin => "round_robin",
            DirectorPolicy::Random => "random",
            DirectorPolicy::Fallback => "fallback",
            DirectorPolicy::Hash | DirectorPolicy::Client => "hash",
            DirectorPolicy::Dns => "dns",
        };
        let index = self.instances.len() as u32;
        let name = self.declare(tree.name, Meaning::Instance(index), "Director", "director")?;
        let director = Some(self.directors);
        self.directors += 1;
        self.instances.push(Instance {
            vmod: "directors",
            class,
            definition: InstanceDefinition {
                name: name.clone(),
                vmod: "directors".into(),
                // For the two kinds that hash, the name gives the input of the hash.
                class: if policy == DirectorPolicy::Client { "client" } else { class }.into(),
                director,
            },
        });
        if self.default_backend.is_none() && self.default_director.is_none() || name == "default" {
            self.default_director = director;
            self.default_backend = None;
        }
        let mut block = DirectorBlock { instance: index, retries: None, names: None };
        if policy == DirectorPolicy::Dns {
            block.names = Some(self.names_block(tree)?);
        } else {
            for field in &tree.fields {
                block.retries = Some(self.retries_field(policy, field)?);
            }
        }
        if tree.members.is_empty() && tree.list.as_ref().is_none_or(|list| list.entries.is_empty()) {
            let text = format!("Director '{name}' has no members.");
            return Err(self.error_between(Code::DirectorMember, &text, tree.keyword, tree.policy));
        }
        let mut members = Vec::with_capacity(tree.members.len());
        for (number, member) in tree.members.iter().enumerate() {
            let context = Draft::new(Code::DirectorMember)
                .text("\nIn member host specification starting at:\n")
                .at(self.token(member.open));
            self.call_context.push(context);
            // An invalid member is reported and left out.
            if let Ok(member) = self.director_member(tree, policy, number, member.open, &member.fields) {
                members.push(member);
            }
            self.call_context.pop();
        }
        match &mut block.names {
            Some(names) => {
                let backends = members.iter().filter_map(|(member, _)| match member {
                    Member::Backend(index) => Some(*index),
                    Member::Director(_) => None,
                });
                names.members = backends.collect();
            }
            None => self.declared_directors.push(Declared { instance: index, class, members }),
        }
        self.blocks.push(block);
        Ok(())
    }

    /// The settings of a dns director, without its members.
    fn names_block(&mut self, tree: &Director) -> Checked<NamesBlock> {
        let (mut suffix, mut ttl) = (String::new(), DNS_SECONDS);
        for (index, field) in tree.fields.iter().enumerate() {
            let name = self.text(field.name);
            if tree.fields[..index.min(8)].iter().any(|before| self.text(before.name) == name) {
                let text = format!("Field '{name}' redefined at:");
                return Err(self.error_at(Code::FieldRepeated, &text, field.name));
            }
            match name {
                "suffix" => suffix = self.string_field(field)?.0,
                "ttl" => ttl = self.duration_field(field)?,
                other => {
                    let draft = self.draft_at(Code::UnknownField, &format!("Unknown field: '{other}' at"), field.name);
                    return Err(self.error(field.name, draft.hint("the fields are .list, .suffix, .ttl")));
                }
            }
        }
        let (fields, entries) = match &tree.list {
            Some(list) => (list.fields.as_slice(), list.entries.as_slice()),
            None => (&[] as &[_], &[] as &[_]),
        };
        let common = self.common_fields(fields)?;
        Ok(NamesBlock { suffix, ttl, list: self.networks(entries), common, members: Vec::new() })
    }

    /// `.retries` of the random kinds of directors.
    fn retries_field(&mut self, policy: DirectorPolicy, field: &Field) -> Checked<u32> {
        let weighs = matches!(policy, DirectorPolicy::Random | DirectorPolicy::Hash | DirectorPolicy::Client);
        if weighs && self.text(field.name) == "retries" {
            return self.integer_field(field).map(|(retries, _)| retries);
        }
        let text = format!("Unknown field: '{}' at", self.text(field.name));
        Err(self.error_at(Code::UnknownField, &text, field.name))
    }

    fn director_member(
        &mut self,
        tree: &Director,
        policy: DirectorPolicy,
        number: usize,
        open: At,
        fields: &[Field],
    ) -> Checked<(Member, f64)> {
        let weighs = matches!(policy, DirectorPolicy::Random | DirectorPolicy::Hash | DirectorPolicy::Client);
        let mut backend = None;
        let mut weight = None;
        for field in fields {
            match self.text(field.name) {
                "backend" => backend = Some(self.member_backend(tree, number, field)?),
                "weight" if weighs => {
                    let (value, place) = self.integer_field(field)?;
                    if value == 0 {
                        return Err(self.error_at(
                            Code::DirectorMember,
                            "The .weight must be higher than zero.",
                            place,
                        ));
                    }
                    weight = Some(f64::from(value));
                }
                other => {
                    let known: &[&str] = if weighs { &["backend", "weight"] } else { &["backend"] };
                    let draft = self.draft_at(Code::UnknownField, &format!("Unknown field: '{other}' at"), field.name);
                    return Err(self.error(field.name, draft.hint(format!("the fields are .{}", known.join(", .")))));
                }
            }
        }
        let missing = match (backend.is_some(), weight.is_some() || !weighs) {
            (true, true) => None,
            (false, _) => Some("backend"),
            (true, false) => Some("weight"),
        };
        match (missing, backend) {
            (None, Some(backend)) => Ok((backend, weight.unwrap_or(1.0))),
            (missing, _) => {
                let field = missing.unwrap_or("backend");
                Err(self.error_at(Code::DirectorMember, &format!("Mandatory field '{field}' missing."), open))
            }
        }
    }

    /// The backend of a member, given by name or described in place.
    fn member_backend(&mut self, tree: &Director, number: usize, field: &Field) -> Checked<Member> {
        if let FieldValue::Fields(fields) = &field.value {
            let name = format!("{}[{number}]", self.name_text(tree.name));
            let described = Backend { keyword: field.name, name: tree.name, fields: None };
            let definition = self.backend_fields(&described, fields, name)?;
            self.backends.push(definition);
            return Ok(Member::Backend(self.backends.len() as u32 - 1));
        }
        let FieldValue::Tokens(first, _) = field.value else { return Err(super::super::Reported) };
        let mut value = self.field_value(field)?;
        let place = self.take_kind(&mut value, Kind::Word, "ID")?;
        self.finish(&value)?;
        let name = self.text(place);
        match self.use_symbol_of(name, &["backend", "instance"]) {
            Some(Meaning::Backend(index)) => Ok(Member::Backend(index)),
            Some(Meaning::Instance(_)) if self.text(tree.policy) == "dns" => {
                let draft = self.draft_at(Code::DirectorMember, "A dns director has backends only:", first);
                Err(self.error(first, draft.hint("a director has no address that a name could have")))
            }
            Some(Meaning::Instance(instance)) => Ok(Member::Director(instance)),
            Some(_) => Err(self.wrong_type(name, first, first, "backend")),
            None if self.is_damaged(name) => Err(super::super::Reported),
            None => {
                let known = self.symbols.values().filter(|symbol| matches!(symbol.meaning, Meaning::Backend(_)));
                let near = super::super::nearest(name, known.map(|symbol| symbol.name.as_str())).map(str::to_owned);
                let text = format!("Reference to unknown backend '{name}' at");
                let draft = self.draft_at(Code::UndefinedReference, &text, first);
                let draft = draft.hint("a backend is declared before the directors that use it");
                let token = self.token(first);
                Err(self.error(first, draft.nearest(token, token, near.as_deref())))
            }
        }
    }

    /// Creates the directors, at the beginning of vcl_init.
    pub(in super::super) fn make_directors(&mut self) {
        for declared in std::mem::take(&mut self.declared_directors) {
            self.construct(declared.class, declared.instance);
            for (member, weight) in declared.members {
                self.emitter.op(match member {
                    Member::Backend(index) => Op::Backend(Some(index)),
                    Member::Director(instance) => self.director_value(instance),
                });
                if matches!(declared.class, "random" | "hash") {
                    self.emitter.op(Op::Real(weight));
                }
                self.native("directors", declared.class, "add_backend", Some(declared.instance));
                self.emitter.op(Op::Forget);
            }
        }
    }

    fn construct(&mut self, class: &'static str, instance: u32) {
        let Some(&function) = self.functions.get(&("directors", class, "")) else { return };
        for parameter in surface::vmod::FUNCTIONS[function as usize].arguments {
            self.emitter.op(match parameter.kind {
                Type::Bool => Op::Bool(false),
                _ => Op::Absent,
            });
        }
        self.native("directors", class, "", Some(instance));
        self.emitter.op(Op::Forget);
    }

    /// A director as a BACKEND value.
    pub(in super::super) fn director_value(&self, instance: u32) -> Op {
        let director = self.instances.get(instance as usize).and_then(|instance| instance.definition.director);
        Op::Backend(director.map(|director| self.backends.len() as u32 + director))
    }
}
