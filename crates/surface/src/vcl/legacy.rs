//! The words of VCL before 4.0, one file per generation: methods with what they may return, and variables with where they
//! are available.
//!
//! Every row gives the meaning of a word in terms of VCL 4, which are also those of programs: `vcl_fetch` is the method
//! [`Method::BackendResponse`], `return (lookup)` the action [`Action::Hash`], `req.request` the variable
//! [`Var::ReqMethod`]. What an action then does depends on the generation of the program, not on these rows. Source: the
//! compilers of Varnish 1.1.2, 2.0.6, 2.1.5 and 3.0.7 (`vcc_gen_obj.tcl`, `vcc_gen_fixed_token.tcl`, `generate.py`),
//! read as lists of facts.

mod v1;
mod v20;
mod v21;
mod v3;

use super::{Action, Generation, Method, Type, Var};

/// A generation before 4.0.
#[derive(Debug)]
pub struct Language {
    /// Which one.
    pub generation: Generation,
    /// Its subroutines.
    pub methods: &'static [LegacyMethodRow],
    /// Subroutines that could be defined but have no counterpart: accepted, and never run.
    pub ignored_methods: &'static [&'static str],
    /// Its variables. A name has several rows when it means different things in different subroutines.
    pub variables: &'static [LegacyVariableRow],
}

/// A subroutine of an old dialect.
#[derive(Debug)]
pub struct LegacyMethodRow {
    /// Name in VCL, e.g. `vcl_fetch`.
    pub name: &'static str,
    /// Its meaning.
    pub method: Method,
    /// What it may return.
    pub returns: &'static [ReturnRow],
}

/// One word that ends a subroutine.
#[derive(Debug)]
pub struct ReturnRow {
    /// The word, e.g. `hit_for_pass`.
    pub word: &'static str,
    /// Its meaning.
    pub action: Action,
}

/// A variable of an old dialect.
#[derive(Debug)]
pub struct LegacyVariableRow {
    /// Name in VCL; `.*` at the end stands for any header.
    pub name: &'static str,
    /// Type.
    pub kind: Type,
    /// Methods in which it can be read ([`super::at`]).
    pub read: u16,
    /// Methods in which it can be set and, if it is a header, unset.
    pub write: u16,
    /// Its meaning.
    pub means: Means,
}

/// The meaning of a variable of an old dialect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// A variable of programs.
    Variable(Var),
    /// The port of an address.
    Port(Var),
    /// Whether a backend is healthy.
    Healthy(Var),
    /// Whatever is appended to it goes into the hash.
    Hash,
    /// No longer exists: it reads as 0, false or unset, and assignments are ignored.
    Nothing,
    /// Always holds: it reads as true, and assignments are ignored.
    True,
}

impl Language {
    /// The tables of a generation; `None` for VCL 4.
    #[must_use]
    pub const fn of(generation: Generation) -> Option<&'static Language> {
        match generation {
            Generation::V1 => Some(&v1::LANGUAGE),
            Generation::V20 => Some(&v20::LANGUAGE),
            Generation::V21 => Some(&v21::LANGUAGE),
            Generation::V3 => Some(&v3::LANGUAGE),
            Generation::V4 => None,
        }
    }

    /// The row of a method; `None` when this generation does not have it.
    #[must_use]
    pub fn method(&self, method: Method) -> Option<&'static LegacyMethodRow> {
        self.methods.iter().find(|row| row.method == method)
    }
}

/// A word that ends a method.
const fn ends(word: &'static str, action: Action) -> ReturnRow {
    ReturnRow { word, action }
}

const fn method(name: &'static str, method: Method, returns: &'static [ReturnRow]) -> LegacyMethodRow {
    LegacyMethodRow { name, method, returns }
}

/// A variable that can be read in some methods and set in others.
const fn row(name: &'static str, kind: Type, read: u16, write: u16, var: Var) -> LegacyVariableRow {
    LegacyVariableRow { name, kind, read, write, means: Means::Variable(var) }
}

/// A variable that can be read and set in the same methods.
const fn both(name: &'static str, kind: Type, at: u16, var: Var) -> LegacyVariableRow {
    row(name, kind, at, at, var)
}

/// A variable that can only be read.
const fn read(name: &'static str, kind: Type, at: u16, var: Var) -> LegacyVariableRow {
    row(name, kind, at, 0, var)
}

/// A name without a corresponding variable in programs.
const fn special(name: &'static str, kind: Type, read: u16, write: u16, means: Means) -> LegacyVariableRow {
    LegacyVariableRow { name, kind, read, write, means }
}

/// The sets of methods used in the tables.
mod within {
    use super::super::at;

    pub(super) use super::super::at::{DELIVER, HASH, HIT, MISS, PASS, PIPE, RECV};
    /// `vcl_fetch`.
    pub(super) const FETCH: u16 = at::BACKEND_RESPONSE;
    /// `vcl_error`.
    pub(super) const ERROR: u16 = at::SYNTH;
    /// From the request to the response of the backend.
    pub(super) const UPTO_FETCH: u16 = RECV | PIPE | PASS | HASH | MISS | HIT | FETCH;
    /// Every method that handles a request.
    pub(super) const REQUEST: u16 = UPTO_FETCH | DELIVER | ERROR;
}

#[cfg(test)]
mod tests {
    use super::super::{LEGACY_VARIABLES, VARIABLES};
    use super::*;

    #[test]
    fn a_name_means_one_thing_in_one_method() {
        for generation in Generation::ALL {
            let Some(language) = Language::of(*generation) else { continue };
            for (index, row) in language.variables.iter().enumerate() {
                for other in &language.variables[index + 1..] {
                    let clash = row.name == other.name && (row.read & other.read != 0 || row.write & other.write != 0);
                    assert!(!clash, "{} {}", generation.name(), row.name);
                }
                if let Means::Variable(var) = row.means {
                    let old = LEGACY_VARIABLES.iter().find(|(known, _)| *known == var).map(|&(_, kind)| kind);
                    let kind = old.or(VARIABLES.iter().find(|row| row.var == var).map(|row| row.kind));
                    assert_eq!(Some(row.kind), kind, "{} {}", generation.name(), row.name);
                }
            }
        }
    }

    #[test]
    fn a_word_is_one_action_in_one_method() {
        for generation in Generation::ALL {
            let Some(language) = Language::of(*generation) else { continue };
            for row in language.methods {
                for (index, ending) in row.returns.iter().enumerate() {
                    assert!(row.returns[index + 1..].iter().all(|other| other.word != ending.word), "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn generations_have_names() {
        for &generation in Generation::ALL {
            assert_eq!(Generation::of_name(generation.name()), Some(generation));
        }
        assert_eq!(Generation::of_name("3.0.7"), Some(Generation::V3));
        assert_eq!(Generation::of_name("1.x"), Some(Generation::V1));
        assert_eq!(Generation::of_name("3.0.x7"), None);
        assert_eq!(Generation::of_name("5"), None);
        assert_eq!(Generation::of_name(""), None);
    }
}
