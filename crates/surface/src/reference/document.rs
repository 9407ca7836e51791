//! Pages of the reference, written as Markdown and as roff for man(1).
//!
//! Texts come from the tables; characters with a meaning in either language are escaped here.

use std::fmt::Write;

/// A part of a page.
pub enum Block {
    /// The title of a section.
    Section(String),
    /// The title of a part of a section.
    Part(String),
    /// Prose.
    Paragraph(String),
    /// A VCL text.
    Code(String),
    /// A named thing with its description.
    Item {
        /// Name, as typed or read.
        name: String,
        /// Its type or bounds in a line, perhaps empty.
        nature: String,
        /// Description.
        text: String,
    },
}

/// A page.
pub struct Document {
    /// Title.
    pub title: String,
    /// Summary in one line.
    pub line: String,
    /// Contents.
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

    /// Adds prose; empty lines separate its paragraphs.
    pub fn say(&mut self, text: &str) {
        let paragraphs = text.split("\n\n").filter(|text| !text.is_empty());
        self.blocks.extend(paragraphs.map(|text| Block::Paragraph(text.to_owned())));
    }

    /// Adds a VCL text.
    pub fn code(&mut self, text: &str) {
        self.blocks.push(Block::Code(text.to_owned()));
    }

    /// Adds a named thing.
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
                Block::Code(text) => writeln!(out, "```vcl\n{}\n```", text.trim_end()),
                Block::Item { name, nature, text } => {
                    let nature = if nature.is_empty() { String::new() } else { format!(" ({})", markdown(nature)) };
                    let colon = if text.is_empty() { "" } else { ": " };
                    writeln!(out, "- `{name}`{nature}{colon}{}", markdown(text))
                }
            };
        }
        out
    }

    /// The page as roff, for a section of the manual, under `names`.
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
                Block::Code(text) => {
                    let lines: Vec<String> = text.lines().map(line).collect();
                    writeln!(out, ".PP\n.nf\n{}\n.fi", lines.join("\n"))
                }
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

/// Number of sections from which a page begins with a table of contents.
const CONTENTS_FROM: usize = 4;

/// Capitalizes the first letter.
pub(super) fn capital(line: &str) -> String {
    let mut letters = line.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Fragment of a link to a section, after its `#`.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Escapes text between Markdown markup: characters that could begin an element or markup.
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

/// Escapes text for roff; a typed hyphen stays a hyphen.
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

/// Escapes a line of text that begins like a roff request.
fn line(text: &str) -> String {
    let text = roff(text);
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// Quotes an argument of a roff request.
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
