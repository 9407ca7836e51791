//! Words of VCL before 4.0, one file per generation: methods with their permitted actions, and
//! variables with the places where they are available.
//!
//! Every row gives the meaning of a word in terms of VCL 4, which are also those of programs:
//! `vcl_fetch` is the method [`Method::BackendResponse`], `return (lookup)` the action
//! [`Action::Hash`], `req.request` the variable [`Var::ReqMethod`]. The effect of an action then
//! depends on the generation of the program, not on these rows. Source: the compilers of Varnish
//! 1.1.2, 2.0.6, 2.1.5 and 3.0.7 (`vcc_gen_obj.tcl`, `vcc_gen_fixed_token.tcl`, `generate.py`),
//! read as lists of facts.

mod rows;
mod v1;
mod v20;
mod v21;
mod v3;

pub use rows::{Language, LegacyMethodRow, LegacyVariableRow, Means, ReturnRow};
pub(crate) use rows::{both, ends, method, read, row, special, within};

use super::{Generation, Method};

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

    /// Row of a method; `None` if this generation lacks it.
    #[must_use]
    pub fn method(&self, method: Method) -> Option<&'static LegacyMethodRow> {
        self.methods.iter().find(|row| row.method == method)
    }
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
