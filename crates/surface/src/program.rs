//! The programs: their names, options and what is said about them, one row each.
//!
//! Parsing, `--help`, man pages (`reference/programs.rs`) and completions (`reference/completions.rs`) derive from these rows. The rows
//! of the server, of the tools that stand in for stock programs, and of Copal's own commands are in files of their own.

mod daemon;
mod own;
mod tools;

/// One option, or one form of an option whose value has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRow {
    /// The letter after the dash; for an option that is only a word, the letter that stands for it in its parser.
    pub letter: char,
    /// Whether the letter can be typed.
    pub is_letter: bool,
    /// The word after two dashes.
    pub word: Option<&'static str>,
    /// The form of its value; empty for none. `<a|b>` lists words, `<file>` and `<dir>` say what they are.
    pub argument: &'static str,
    /// What it does.
    pub text: &'static str,
}

impl OptionRow {
    /// As shown: `-f, --follow`, without the value.
    #[must_use]
    pub fn flags(&self) -> String {
        match (self.is_letter, self.word) {
            (true, Some(word)) => format!("-{}, --{word}", self.letter),
            (false, Some(word)) => format!("--{word}"),
            (_, None) => format!("-{}", self.letter),
        }
    }
}

/// An option that is a letter.
pub(crate) const fn option(letter: char, argument: &'static str, text: &'static str) -> OptionRow {
    OptionRow { letter, is_letter: true, word: None, argument, text }
}

/// An option that is a word.
pub(crate) const fn word_option(
    letter: char,
    word: &'static str,
    argument: &'static str,
    text: &'static str,
) -> OptionRow {
    OptionRow { letter, is_letter: false, word: Some(word), argument, text }
}

/// An option that is a letter and a word.
pub(crate) const fn either(letter: char, word: &'static str, argument: &'static str, text: &'static str) -> OptionRow {
    OptionRow { letter, is_letter: true, word: Some(word), argument, text }
}

/// The option that prints the usage.
pub(crate) const HELP: OptionRow = either('h', "help", "", "Print this text.");

/// Where the server is found.
pub(crate) const DIRECTORY: OptionRow = option('n', "<dir>", "Work directory of the server.");

/// Options under a title.
#[derive(Clone, Copy, Debug)]
pub struct OptionGroup {
    /// The title.
    pub title: &'static str,
    /// In the order of the usage text.
    pub options: &'static [OptionRow],
}

/// One program, or one command of `copal`.
#[derive(Debug)]
pub struct Program {
    /// What comes after `copal`: `log`, `vcl check`.
    pub part: &'static str,
    /// The stock program that it stands in for: a link of that name is this program.
    pub stock: Option<&'static str>,
    /// What it is, in one line.
    pub line: &'static str,
    /// What it does, in paragraphs; empty if the line says it.
    pub about: &'static str,
    /// Its options.
    pub groups: &'static [OptionGroup],
    /// What may follow the options; empty if nothing may.
    pub rest: &'static str,
    /// What else there is to say, such as the exit status.
    pub notes: &'static str,
    /// Exit status for a wrong command line.
    pub usage_status: i32,
    /// True when the first word that is not an option ends the options.
    pub stops_at_word: bool,
}

impl Program {
    /// The stock program's name, or `copal` with the command.
    #[must_use]
    pub fn name(&self) -> String {
        self.stock.map_or_else(|| format!("copal {}", self.part), str::to_owned)
    }

    /// All options.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionRow> + use<> {
        self.groups.iter().flat_map(|group| group.options)
    }

    /// The program's name with what may follow it, as manual pages show it.
    #[must_use]
    pub fn synopsis(&self) -> String {
        let mut text = self.name();
        if self.options().next().is_some() {
            text.push_str(" [options]");
        }
        if !self.rest.is_empty() {
            text.push(' ');
            text.push_str(self.rest);
        }
        text
    }

    /// The first line of the usage text. The stock tools that take nothing but options say `<options>` there, and scripts look for it.
    #[must_use]
    pub fn usage_line(&self) -> String {
        let synopsis = self.synopsis();
        let is_reader = self.stock.is_some() && self.part != "daemon" && self.rest.is_empty();
        format!("Usage: {}", if is_reader { synopsis.replace("[options]", "<options>") } else { synopsis })
    }

    /// The usage text.
    #[must_use]
    pub fn usage(&self) -> String {
        let mut text = self.usage_line();
        text.push('\n');
        for paragraph in paragraphs(self.about) {
            text.push('\n');
            wrap(paragraph, 0, 0, &mut text);
        }
        for group in self.groups {
            text.push_str(&format!("\n{}:\n", group.title));
            for row in group.options {
                let blank = if row.argument.is_empty() { "" } else { " " };
                let head = format!("  {}{blank}{}", row.flags(), row.argument);
                text.push_str(&head);
                let mut column = head.chars().count();
                if column + 2 > TEXT_COLUMN {
                    text.push('\n');
                    column = 0;
                }
                text.extend(std::iter::repeat_n(' ', TEXT_COLUMN - column));
                wrap(row.text, TEXT_COLUMN, TEXT_COLUMN, &mut text);
            }
        }
        for paragraph in paragraphs(self.notes) {
            text.push('\n');
            wrap(paragraph, 0, 0, &mut text);
        }
        text
    }

    /// The letters in the form of getopt(3), for wrapper scripts.
    #[must_use]
    pub fn optstring(&self) -> String {
        let mut rows: Vec<_> = self.options().filter(|row| row.is_letter).collect();
        rows.sort_by_key(|row| (row.letter.to_ascii_lowercase(), row.letter.is_ascii_lowercase()));
        rows.dedup_by_key(|row| row.letter);
        rows.iter().flat_map(|row| [Some(row.letter), (!row.argument.is_empty()).then_some(':')]).flatten().collect()
    }
}

/// Where the texts of options begin in a usage text.
const TEXT_COLUMN: usize = 31;
/// The width of a usage text: that of a terminal which nobody has widened.
const WIDTH: usize = 80;

fn paragraphs(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split("\n\n").filter(|paragraph| !paragraph.is_empty())
}

/// Writes words in lines of at most [`WIDTH`]; the first line is `column` wide already, the others begin with `indent` spaces.
fn wrap(text: &str, mut column: usize, indent: usize, out: &mut String) {
    let mut is_first = true;
    for word in text.split_ascii_whitespace() {
        let width = word.chars().count();
        if !is_first && column + 1 + width > WIDTH {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
            is_first = true;
        }
        if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
        is_first = false;
    }
    out.push('\n');
}

/// Every program and command, in the order in which they are listed.
pub static PROGRAMS: &[&Program] = &[
    &own::DEMO,
    &daemon::DAEMON,
    &tools::ADM,
    &tools::LOG,
    &tools::NCSA,
    &tools::STAT,
    &tools::TOP,
    &tools::HIST,
    &own::WHY,
    &own::POLICY,
    &own::BENCH,
    &own::VCL,
    &own::VCL_CHECK,
    &own::VCL_FMT,
    &own::VCL_MIGRATE,
    &own::VCL_EXPLAIN,
    &own::PREFLIGHT,
    &own::UPGRADE,
    &tools::TEST,
];

/// The program that is called so after `copal`.
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
                // The forms of one option stand beside one another.
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
        for program in PROGRAMS {
            let usage = program.usage();
            assert!(usage.starts_with(&format!("Usage: {}", program.name())), "{usage}");
            assert!(usage.lines().all(|line| line.chars().count() <= WIDTH && line == line.trim_end()), "{usage}");
            for row in program.options() {
                assert!(usage.lines().any(|line| line.trim_start().starts_with(&row.flags())), "{}", row.flags());
            }
        }
    }
}
