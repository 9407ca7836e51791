//! Programs: their names, options and descriptions, one row each.
//!
//! Parsing, `--help`, man pages (`reference/programs.rs`) and completions
//! (`reference/completions.rs`) derive from these rows. The rows of the server, of the tools that
//! replace stock programs, and of Copal's own commands are in files of their own.

mod daemon;
mod own;
mod row;
mod tools;

pub use row::{Called, OptionGroup, OptionRow, Program};
pub(crate) use row::{DIRECTORY, HELP, either, option, word_option};

/// Every program and command, in the order of the lists.
pub static PROGRAMS: &[&Program] = &[
    &own::DEMO,
    &daemon::DAEMON,
    &own::STATUS,
    &own::STOP,
    &tools::ADM,
    &tools::LOG,
    &tools::NCSA,
    &tools::STAT,
    &tools::TOP,
    &tools::HIST,
    &own::WHY,
    &own::KEYS,
    &own::RECORD,
    &own::REPLAY,
    &own::POLICY,
    &own::BENCH,
    &own::OBSERVE,
    &own::DASH,
    &own::INIT,
    &own::VCL,
    &own::VCL_CHECK,
    &own::VCL_LINT,
    &own::VCL_TEST,
    &own::VCL_TRACE,
    &own::VCL_FMT,
    &own::VCL_MIGRATE,
    &own::VCL_EXPLAIN,
    &own::LSP,
    &own::PREFLIGHT,
    &own::UPGRADE,
    &tools::TEST,
];

/// Program with this name after `copal`.
///
/// # Panics
/// If there is none: the name comes from the program itself.
#[must_use]
pub fn program(part: &str) -> &'static Program {
    PROGRAMS.iter().find(|program| program.part == part).expect("a row for every part")
}

/// The parts of `copal`: those whose names are one word.
pub fn parts() -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().copied().filter(|program| !program.part.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::row::WIDTH;
    use super::*;
    use crate::option::DAEMON;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_within_a_program() {
        let mut parts = BTreeSet::new();
        for program in PROGRAMS {
            assert!(parts.insert(program.part), "{}", program.part);
            assert!(!program.line.is_empty() && !program.line.ends_with('.'), "{}", program.part);
            let mut letters = BTreeSet::new();
            let mut words = BTreeSet::new();
            let mut last = None;
            for row in program.options() {
                // The forms of one option are adjacent.
                if last != Some(row.letter) {
                    assert!(letters.insert(row.letter), "{} -{}", program.part, row.letter);
                }
                last = Some(row.letter);
                assert!(row.word.is_none_or(|word| words.insert(word)), "{} --{:?}", program.part, row.word);
                assert!(row.is_letter || row.word.is_some());
                assert!(!row.text.is_empty() || !row.argument.is_empty(), "{} -{}", program.part, row.letter);
            }
        }
    }

    #[test]
    fn the_long_options_of_the_server_are_those_of_its_row() {
        let words: BTreeSet<_> =
            program("daemon").options().filter_map(|row| Some((row.word?, !row.argument.is_empty()))).collect();
        assert_eq!(words, DAEMON.iter().map(|row| (row.name, row.takes_value)).collect());
    }

    #[test]
    fn a_usage_text_is_wrapped_and_has_every_option() {
        let names = [Called::Copal, Called::Stock];
        for (program, called) in PROGRAMS.iter().flat_map(|program| names.map(|called| (program, called))) {
            let usage = program.usage(called);
            assert!(usage.starts_with(&format!("Usage: {}", program.name(called))), "{usage}");
            assert!(usage.lines().all(|line| line.chars().count() <= WIDTH && line == line.trim_end()), "{usage}");
            for row in program.options() {
                assert!(usage.lines().any(|line| line.trim_start().starts_with(&row.flags())), "{}", row.flags());
            }
        }
    }
}
