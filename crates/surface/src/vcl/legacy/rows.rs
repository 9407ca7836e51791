//! The rows of the tables of old dialects, and the functions that write them.

use crate::vcl::{Action, Generation, Method, Type, Var};

/// A generation before 4.0.
#[derive(Debug)]
pub struct Language {
    /// The generation.
    pub generation: Generation,
    /// Its subroutines.
    pub methods: &'static [LegacyMethodRow],
    /// Subroutines that could be defined but have no counterpart: accepted, and never run.
    pub ignored_methods: &'static [&'static str],
    /// Its variables. A name has several rows if its meaning differs between subroutines.
    pub variables: &'static [LegacyVariableRow],
}

/// A subroutine of an old dialect.
#[derive(Debug)]
pub struct LegacyMethodRow {
    /// Name in VCL, e.g. `vcl_fetch`.
    pub name: &'static str,
    /// Its meaning.
    pub method: Method,
    /// Permitted actions.
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
    /// Name in VCL; `.*` at the end represents any header.
    pub name: &'static str,
    /// Type.
    pub kind: Type,
    /// Methods in which it can be read ([`crate::vcl::at`]).
    pub read: u16,
    /// Methods in which it can be set and, for a header, unset.
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
    /// True if a backend is healthy.
    Healthy(Var),
    /// The input of the hash: an assignment appends to it.
    Hash,
    /// No longer exists: it reads as 0, false or unset, and assignments are ignored.
    Nothing,
    /// Always holds: it reads as true, and assignments are ignored.
    True,
}

/// A word that ends a method.
pub(crate) const fn ends(word: &'static str, action: Action) -> ReturnRow {
    ReturnRow { word, action }
}

pub(crate) const fn method(name: &'static str, method: Method, returns: &'static [ReturnRow]) -> LegacyMethodRow {
    LegacyMethodRow { name, method, returns }
}

/// A variable that can be read in some methods and set in others.
pub(crate) const fn row(name: &'static str, kind: Type, read: u16, write: u16, var: Var) -> LegacyVariableRow {
    LegacyVariableRow { name, kind, read, write, means: Means::Variable(var) }
}

/// A variable that can be read and set in the same methods.
pub(crate) const fn both(name: &'static str, kind: Type, at: u16, var: Var) -> LegacyVariableRow {
    row(name, kind, at, at, var)
}

/// A variable that can only be read.
pub(crate) const fn read(name: &'static str, kind: Type, at: u16, var: Var) -> LegacyVariableRow {
    row(name, kind, at, 0, var)
}

/// A name without a corresponding variable in programs.
pub(crate) const fn special(name: &'static str, kind: Type, read: u16, write: u16, means: Means) -> LegacyVariableRow {
    LegacyVariableRow { name, kind, read, write, means }
}

/// The sets of methods used in the tables.
pub(crate) mod within {
    use crate::vcl::at;

    pub(crate) use crate::vcl::at::{DELIVER, HASH, HIT, MISS, PASS, PIPE, RECV};
    /// `vcl_fetch`.
    pub(crate) const FETCH: u16 = at::BACKEND_RESPONSE;
    /// `vcl_error`.
    pub(crate) const ERROR: u16 = at::SYNTH;
    /// From the request to the response of the backend.
    pub(crate) const UPTO_FETCH: u16 = RECV | PIPE | PASS | HASH | MISS | HIT | FETCH;
    /// Every method that handles a request.
    pub(crate) const REQUEST: u16 = UPTO_FETCH | DELIVER | ERROR;
}
