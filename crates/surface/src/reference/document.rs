//! A page of a reference, and how it is written: as Markdown, and as roff for man(1).
//!
//! Texts come from the tables; what either language would take for its own is escaped here.

use std::fmt::Write;

/// A part of a page.
pub enum Block {
    /// The title of a section.
    Section(String),
    /// The title of a part of a section.
    Part(String),
    /// Prose.
    Paragraph(String),
    /// A thing that has a name, and what is said about it.
    Item {
        /// As typed or read.
        name: String,
        /// A line about its nature, perhaps empty.
        nature: String,
        /// What it is.
        text: String,
    },
}

/// A page.
pub struct Document {
    /// Its title.
    pub title: String,
    /// What it is about, in one line.
    pub line: String,
    /// What it says.
    pub blocks: Vec<Block>,
}

impl Document {
    /// An empty page.
    #[must_use]
    pub fn new(title: &str, line: &str) -> Document {
        Document { title: title.to_owned(), line: line.to_owned(), blocks: Vec::new() }
    }

    /// Adds a section.
    pub fn section(&mut self, title: &str) {
        self.blocks.push(Block::Section(title.to_owned()));
    }

    /// Adds a part of a section.
    pub fn part(&mut self, title: &str) {
        self.blocks.push(Block::Part(title.to_owned()));
    }

    /// Adds prose, whose paragraphs are set apart by empty lines.
    pub fn say(&mut self, text: &str) {
        let paragraphs = text.split("\n\n").filter(|text| !text.is_empty());
        self.blocks.extend(paragraphs.map(|text| Block::Paragraph(text.to_owned())));
    }

    /// Adds a thing that has a name.
    pub fn item(&mut self, name: &str, nature: &str, text: &str) {
        self.blocks.push(Block::Item { name: name.to_owned(), nature: nature.to_owned(), text: text.to_owned() });
    }

    /// The page as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}.\n", self.title, markdown(&capital(&self.line)));
        out.push_str(
            "\nThis page is written from the tables of `crates/surface`. To write it anew: `REFERENCE_UPDATE=1 cargo test -p surface`.\n",
        );
        let titles = || {
            self.blocks.iter().filter_map(|block| if let Block::Section(title) = block { Some(title) } else { None })
        };
        if titles().count() >= CONTENTS_FROM {
            out.push('\n');
            for title in titles() {
                let _ = writeln!(out, "- [{}](#{})", markdown(title), anchor(title));
            }
        }
        let mut in_list = false;
        for block in &self.blocks {
            let is_item = matches!(block, Block::Item { .. });
            if !(is_item && in_list) {
                out.push('\n');
            }
            in_list = is_item;
            let _ = match block {
                Block::Section(title) => writeln!(out, "## {}", markdown(title)),
                Block::Part(title) => writeln!(out, "### {}", markdown(title)),
                Block::Paragraph(text) => writeln!(out, "{}", markdown(text)),
                Block::Item { name, nature, text } => {
                    let nature = if nature.is_empty() { String::new() } else { format!(" ({})", markdown(nature)) };
                    let colon = if text.is_empty() { "" } else { ": " };
                    writeln!(out, "- `{name}`{nature}{colon}{}", markdown(text))
                }
            };
        }
        out
    }

    /// The page as roff, for a section of the manual, under these names.
    #[must_use]
    pub fn roff(&self, names: &[&str], section: u8) -> String {
        let version = crate::version::COPAL_VERSION;
        let mut out = format!(".TH {} {section} \"\" \"Copal {version}\" \"Copal\"\n", names[0].to_uppercase());
        let _ = writeln!(out, ".SH NAME\n{} \\- {}", roff(&names.join(", ")), roff(&self.line));
        if matches!(self.blocks.first(), Some(Block::Paragraph(_))) {
            out.push_str(".SH DESCRIPTION\n");
        }
        let mut begins = true;
        for block in &self.blocks {
            let was_title = begins;
            begins = matches!(block, Block::Section(_) | Block::Part(_));
            let _ = match block {
                Block::Section(title) => writeln!(out, ".SH {}", quoted(&title.to_uppercase())),
                Block::Part(title) => writeln!(out, ".SS {}", quoted(title)),
                Block::Paragraph(text) if was_title => writeln!(out, "{}", line(text)),
                Block::Paragraph(text) => writeln!(out, ".PP\n{}", line(text)),
                Block::Item { name, nature, text } => {
                    let _ = writeln!(out, ".TP\n\\fB{}\\fR", roff(name));
                    let nature = if nature.is_empty() { String::new() } else { format!("({nature}) ") };
                    writeln!(out, "{}", line(format!("{nature}{text}").trim_end()))
                }
            };
        }
        out
    }
}

/// From how many sections on a page begins with a list of them.
const CONTENTS_FROM: usize = 4;

/// With a capital letter at the beginning.
pub(super) fn capital(line: &str) -> String {
    let mut letters = line.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What a link to a section has after its `#`.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Text between the marks of Markdown: what could be an element or a mark is escaped.
fn markdown(text: &str) -> String {
    let mut out = String::new();
    let mut in_code = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_within =
            out.ends_with(char::is_alphanumeric) && letters.peek().is_some_and(|next| next.is_alphanumeric());
        match letter {
            '`' => {
                in_code = !in_code;
                out.push('`');
            }
            '_' if is_within => out.push('_'),
            '<' | '*' | '_' | '[' | '|' if !in_code => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}

/// Text of roff; a hyphen that is typed stays one.
fn roff(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '…' => out.push_str("..."),
            _ => out.push(letter),
        }
    }
    out
}

/// A line of text: one that begins like a request is kept from being one.
fn line(text: &str) -> String {
    let text = roff(text);
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// An argument of a request.
fn quoted(text: &str) -> String {
    format!("\"{}\"", roff(text).replace('"', "\\(dq"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_the_languages_are_escaped() {
        let mut page = Document::new("x", "a <b> of c_d");
        page.section("It's");
        page.say(".TH is `not <b>` a\\b");
        page.item("-a", "<n>", "");
        let text = page.markdown();
        for part in ["# x\n", "A \\<b> of c_d.\n", "## It's\n", "\n.TH is `not <b>` a\\b\n", "\n- `-a` (\\<n>)\n"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let text = page.roff(&["x", "y-z"], 7);
        for part in [
            ".TH X 7 ",
            "x, y\\-z \\- a <b> of c_d\n",
            ".SH \"IT\\(aqS\"\n",
            "S\"\n\\&.TH is \\(ganot <b>\\(ga a\\eb\n",
            ".TP\n\\fB\\-a\\fR\n(<n>)\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
