//! The row of a program: its options, its names, and the usage text.

use serde::{Deserialize, Serialize};

/// One option, or one form of an option whose value has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRow {
    /// The letter after the dash; for an option without a letter, the value by which its parser
    /// identifies it.
    pub letter: char,
    /// True if the letter can be typed.
    pub is_letter: bool,
    /// The word after two dashes.
    pub word: Option<&'static str>,
    /// Form of its value; empty for none. `<a|b>` lists words; `<file>` and `<dir>` name the kind
    /// of value.
    pub argument: &'static str,
    /// Description.
    pub text: &'static str,
}

impl OptionRow {
    /// Spelling in the usage text: `-f, --follow`, without the value.
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

/// The option that selects the working directory of the server.
pub(crate) const DIRECTORY: OptionRow = option('n', "<dir>", "Work directory of the server.");

/// Options under a title.
#[derive(Clone, Copy, Debug)]
pub struct OptionGroup {
    /// The title.
    pub title: &'static str,
    /// Options in the order of the usage text.
    pub options: &'static [OptionRow],
}

/// Name by which a program was called; it calls itself by the same. It also decides the defaults of
/// a daemon's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Called {
    /// `copal PART`.
    Copal,
    /// The name of the stock program, as a link or as the first argument.
    #[default]
    Stock,
}

impl Called {
    /// Name of the daemon's process.
    #[must_use]
    pub fn daemon(self) -> &'static str {
        match self {
            Called::Stock => "varnishd",
            Called::Copal => "copal",
        }
    }

    /// The `Via` of responses to clients.
    #[must_use]
    pub fn via(self) -> &'static str {
        match self {
            Called::Stock => "1.1 varnish (Varnish/7.1)",
            Called::Copal => {
                concat!("1.1 copal (Copal/", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"), ")")
            }
        }
    }

    /// The `Server` of synthetic responses.
    #[must_use]
    pub fn server(self) -> &'static str {
        match self {
            Called::Stock => "Varnish",
            Called::Copal => "Copal",
        }
    }
}

/// One program, or one command of `copal`.
#[derive(Debug)]
pub struct Program {
    /// Words after `copal`: `log`, `vcl check`.
    pub part: &'static str,
    /// The stock program that it replaces: a link of that name runs this program.
    pub stock: Option<&'static str>,
    /// Summary in one line.
    pub line: &'static str,
    /// Description in paragraphs; empty if the summary suffices.
    pub about: &'static str,
    /// Its options.
    pub groups: &'static [OptionGroup],
    /// Form of the operands after the options; empty if there are none.
    pub rest: &'static str,
    /// Further notes, such as the exit status.
    pub notes: &'static str,
    /// Exit status for a wrong command line.
    pub usage_status: i32,
    /// True if the first word that is not an option ends the options.
    pub stops_at_word: bool,
}

impl Program {
    /// The name by which it was called: `copal` with the command, or the stock program's name if it
    /// replaces one.
    #[must_use]
    pub fn name(&self, called: Called) -> String {
        match (called, self.stock) {
            (Called::Stock, Some(stock)) => stock.to_owned(),
            _ => format!("copal {}", self.part),
        }
    }

    /// All options.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionRow> + use<> {
        self.groups.iter().flat_map(|group| group.options)
    }

    /// The program's name with its operands, as manual pages show it.
    #[must_use]
    pub fn synopsis(&self, called: Called) -> String {
        let mut text = self.name(called);
        if self.options().next().is_some() {
            text.push_str(" [options]");
        }
        if !self.rest.is_empty() {
            text.push(' ');
            text.push_str(self.rest);
        }
        text
    }

    /// First line of the usage text. Stock tools without operands print `<options>` there, and
    /// scripts look for it.
    #[must_use]
    pub fn usage_line(&self, called: Called) -> String {
        let synopsis = self.synopsis(called);
        let is_reader =
            called == Called::Stock && self.stock.is_some() && self.part != "daemon" && self.rest.is_empty();
        format!("Usage: {}", if is_reader { synopsis.replace("[options]", "<options>") } else { synopsis })
    }

    /// The usage text.
    #[must_use]
    pub fn usage(&self, called: Called) -> String {
        let mut text = self.usage_line(called);
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

/// Column at which the texts of options begin in a usage text.
const TEXT_COLUMN: usize = 31;
/// Width of a usage text: the default width of a terminal.
pub(super) const WIDTH: usize = 80;

fn paragraphs(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split("\n\n").filter(|paragraph| !paragraph.is_empty())
}

/// Writes words in lines of at most [`WIDTH`]; the first line has `column` characters already, the
/// others begin with `indent` spaces.
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
