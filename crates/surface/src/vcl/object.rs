//! The objects of the language: the part of a variable's name before the first dot.
//!
//! A variable's object is derived from its row at compile time: a variable without a row, or whose
//! name begins differently, does not compile.

use super::legacy::{Language, Means};
use super::variables::COUNT;
use super::{Generation, VARIABLES, Var};

/// An object of the language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum VclObject {
    Client,
    Server,
    Remote,
    Local,
    Req,
    ReqTop,
    Bereq,
    Beresp,
    Obj,
    ObjStale,
    Resp,
    Now,
    Sess,
    Storage,
    Param,
}

/// The prefixes of their variables' names.
const NAMES: &[(&str, VclObject)] = &[
    ("client", VclObject::Client),
    ("server", VclObject::Server),
    ("remote", VclObject::Remote),
    ("local", VclObject::Local),
    ("req", VclObject::Req),
    ("req_top", VclObject::ReqTop),
    ("bereq", VclObject::Bereq),
    ("beresp", VclObject::Beresp),
    ("obj", VclObject::Obj),
    ("obj_stale", VclObject::ObjStale),
    ("resp", VclObject::Resp),
    ("now", VclObject::Now),
    ("sess", VclObject::Sess),
    ("storage", VclObject::Storage),
    ("param", VclObject::Param),
];

/// The object of each variable.
static OBJECTS: [VclObject; COUNT] = objects();

impl Var {
    /// Object of the variable. Variables that only the old dialects have belong to the object of
    /// the oldest of them.
    #[inline]
    #[must_use]
    pub fn object(self) -> VclObject {
        OBJECTS[self as usize]
    }
}

const fn objects() -> [VclObject; COUNT] {
    let mut found: [Option<VclObject>; COUNT] = [None; COUNT];
    let mut row = 0;
    while row < VARIABLES.len() {
        found[VARIABLES[row].var as usize] = Some(named(VARIABLES[row].name));
        row += 1;
    }
    let mut generation = 0;
    while generation < Generation::ALL.len() {
        if let Some(language) = Language::of(Generation::ALL[generation]) {
            let mut row = 0;
            while row < language.variables.len() {
                let variable = &language.variables[row];
                if let Means::Variable(var) = variable.means
                    && found[var as usize].is_none()
                {
                    found[var as usize] = Some(named(variable.name));
                }
                row += 1;
            }
        }
        generation += 1;
    }
    let mut objects = [VclObject::Now; COUNT];
    let mut var = 0;
    while var < COUNT {
        objects[var] = found[var].expect("a variable without a row");
        var += 1;
    }
    objects
}

const fn named(name: &str) -> VclObject {
    let mut candidate = 0;
    while candidate < NAMES.len() {
        if begins(name.as_bytes(), NAMES[candidate].0.as_bytes()) {
            return NAMES[candidate].1;
        }
        candidate += 1;
    }
    panic!("a variable of no object")
}

/// True if a name is that word, or continues after it with a dot.
const fn begins(name: &[u8], word: &[u8]) -> bool {
    if name.len() < word.len() || (name.len() > word.len() && name[word.len()] != b'.') {
        return false;
    }
    let mut at = 0;
    while at < word.len() {
        if name[at] != word[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_belongs_to_what_its_name_begins_with() {
        assert_eq!(Var::ReqUrl.object(), VclObject::Req);
        assert_eq!(Var::ReqTopUrl.object(), VclObject::ReqTop);
        assert_eq!(Var::ObjStaleTtl.object(), VclObject::ObjStale);
        assert_eq!(Var::Now.object(), VclObject::Now);
        assert_eq!(Var::Saintmode.object(), VclObject::Beresp);
        assert_eq!(Var::Cacheable.object(), VclObject::Obj);
        for row in VARIABLES {
            let word = row.name.split('.').next().unwrap();
            assert!(NAMES.contains(&(word, row.var.object())), "{}", row.name);
        }
    }
}
