//! A text for a terminal of 80 columns: sentences are wrapped, source lines are cut.
//!
//! Emphasis is written as control characters, which no text from the log contains (it is
//! `surface::legible`), and becomes escape sequences or nothing at the end.

/// Columns of the text.
pub(super) const COLUMNS: usize = 80;
/// Shown at the end of a source line that is cut.
const CUT: &str = " ...";

/// Emphasis of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shade {
    /// Served from the cache.
    Good,
    /// Fetched from the origin.
    Plain,
    /// A failure, or a danger.
    Bad,
}

/// For each [`Shade`] its mark and its escape sequence.
const SHADES: [(Shade, char, &str); 3] =
    [(Shade::Good, '\u{1}', "\x1b[1;32m"), (Shade::Plain, '\u{2}', "\x1b[1;33m"), (Shade::Bad, '\u{3}', "\x1b[1;31m")];
/// Mark for the end of an emphasis.
const END: (char, &str) = ('\u{4}', "\x1b[0m");

/// `text` with an emphasis.
pub(super) fn shaded(shade: Shade, text: &str) -> String {
    format!("{}{text}{}", SHADES[shade as usize].1, END.0)
}

/// The lines written so far.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// Adds a text; its further lines are indented by four more columns. A word that is too long
    /// gets a line of its own.
    pub fn say(&mut self, indent: usize, text: &str) {
        let mut column = 0;
        for word in text.split(' ') {
            let width = columns(word);
            if column == 0 {
                self.text.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else if column + 1 + width > COLUMNS && !word.is_empty() {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push('\n');
                self.text.extend(std::iter::repeat_n(' ', indent + 4));
                column = indent + 4;
            } else {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(word);
            column += width;
        }
        self.text.push('\n');
    }

    /// Adds a line as it is, cut at the edge.
    pub fn quote(&mut self, indent: usize, line: &str) {
        self.text.extend(std::iter::repeat_n(' ', indent));
        let room = COLUMNS.saturating_sub(indent);
        if columns(line) <= room {
            self.text.push_str(line);
        } else {
            self.text.extend(line.chars().take(room - CUT.len()));
            self.text.push_str(CUT);
        }
        self.text.push('\n');
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    /// The whole text; `has_colors` turns emphasis into escape sequences.
    pub fn finish(self, has_colors: bool) -> String {
        let mut text = self.text;
        for (mark, sequence) in SHADES.iter().map(|(_, mark, sequence)| (*mark, *sequence)).chain([END]) {
            text = text.replace(mark, if has_colors { sequence } else { "" });
        }
        text
    }
}

/// Columns of a text, without marks.
fn columns(text: &str) -> usize {
    text.chars().filter(|letter| !letter.is_control()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_and_source_lines_are_cut() {
        let mut page = Page::default();
        page.say(2, &"word ".repeat(40));
        page.say(2, &"x".repeat(100));
        page.quote(4, &"set a = b; ".repeat(10));
        page.quote(4, "short");
        let text = page.finish(false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().filter(|line| !line.contains("xxx")).all(|line| line.len() <= COLUMNS), "{text}");
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("      word"), "{text}");
        assert!(text.contains(&"x".repeat(100)) && lines.last() == Some(&"    short"), "{text}");
        assert!(lines[lines.len() - 2].ends_with(" ..."), "{text}");
    }

    #[test]
    fn emphasis_takes_no_room_and_is_left_out_without_colors() {
        for (shade, sequence) in [(Shade::Good, "\x1b[1;32m"), (Shade::Plain, "\x1b[1;33m"), (Shade::Bad, "\x1b[1;31m")]
        {
            let page = |has_colors| {
                let mut page = Page::default();
                page.say(0, &format!("{} {}", "y".repeat(75), shaded(shade, "hits")));
                page.finish(has_colors)
            };
            assert_eq!(page(false), format!("{} hits\n", "y".repeat(75)));
            assert_eq!(page(true), format!("{} {sequence}hits\x1b[0m\n", "y".repeat(75)));
        }
    }
}
