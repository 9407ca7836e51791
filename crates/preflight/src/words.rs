//! Words of command lines, each with its place in the source.

use crate::report::Place;
use std::collections::BTreeMap;
use std::ffi::OsString;
use surface::limits::{PREFLIGHT_WORD_BYTES_MAX, PREFLIGHT_WORDS_MAX};

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: OsString,
    pub(crate) place: Place,
}

impl Word {
    /// The word as text, for display.
    pub(crate) fn shown(&self) -> String {
        self.text.to_string_lossy().into_owned()
    }
}

/// A text with the line of each letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lined {
    pub(crate) file: String,
    pub(crate) letters: Vec<(char, usize)>,
}

impl Lined {
    pub(crate) fn text(&self) -> String {
        self.letters.iter().map(|(letter, _)| letter).collect()
    }

    /// The line on which it begins.
    pub(crate) fn line(&self) -> usize {
        self.letters.first().map_or(0, |(_, line)| *line)
    }

    fn place(&self, line: usize) -> Place {
        Place::new(&self.file, line)
    }
}

/// Variables, by name.
pub(crate) type Variables = BTreeMap<String, Lined>;

/// Meaning of a dollar sign.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dollars {
    /// systemd's: `${NAME}` within a word, `$NAME` as a word of its own, which is split; `$$` is a
    /// dollar sign.
    Systemd,
    /// An ordinary character.
    Plain,
}

/// Splits a text into words in systemd's way: at blanks, with quotes and backslashes; then inserts
/// variables.
///
/// # Errors
/// A quote that does not end, or too many words.
pub(crate) fn split(text: &Lined, variables: &Variables, dollars: Dollars) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    for (letters, line) in cut(text)? {
        match dollars {
            Dollars::Plain => push(&mut words, letters.iter().collect(), text.place(line))?,
            Dollars::Systemd => expand(&letters, &text.place(line), variables, &mut words)?,
        }
    }
    Ok(words)
}

fn push(words: &mut Vec<Word>, text: String, place: Place) -> Result<(), String> {
    if words.len() == PREFLIGHT_WORDS_MAX || text.len() > PREFLIGHT_WORD_BYTES_MAX {
        return Err(format!("{}:{}: a command line that is too long", place.file, place.line));
    }
    words.push(Word { text: text.into(), place });
    Ok(())
}

/// The words, with quotes and backslashes resolved, and the line of each.
fn cut(text: &Lined) -> Result<Vec<(Vec<char>, usize)>, String> {
    let mut words = Vec::new();
    let mut word: Option<(Vec<char>, usize)> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut letters = text.letters.iter().copied();
    while let Some((letter, line)) = letters.next() {
        match (quote, letter) {
            (Some((open, _)), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some((letter, line));
                word.get_or_insert((Vec::new(), line));
            }
            (_, '\\') => {
                let (next, _) = letters.next().unwrap_or(('\\', line));
                let meant = match next {
                    'n' => '\n',
                    't' => '\t',
                    's' => ' ',
                    other => other,
                };
                word.get_or_insert((Vec::new(), line)).0.push(meant);
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert((Vec::new(), line)).0.push(letter),
        }
    }
    if let Some((open, line)) = quote {
        return Err(format!("{}:{line}: a {open} without its end", text.file));
    }
    words.extend(word);
    Ok(words)
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn expand(letters: &[char], place: &Place, variables: &Variables, words: &mut Vec<Word>) -> Result<(), String> {
    if let ['$', name @ ..] = letters
        && !name.is_empty()
        && name.iter().all(|letter| is_name(*letter))
    {
        let name: String = name.iter().collect();
        if let Some(value) = variables.get(&name) {
            for word in split(value, &Variables::new(), Dollars::Plain)? {
                push(words, word.shown(), word.place)?;
            }
        }
        return Ok(());
    }
    let (mut text, mut rest, mut only) = (String::new(), letters, None);
    while let Some((&letter, after)) = rest.split_first() {
        rest = after;
        match (letter, after) {
            ('$', ['$', more @ ..]) => {
                text.push('$');
                rest = more;
            }
            ('$', ['{', more @ ..]) if more.contains(&'}') => {
                let end = more.iter().position(|letter| *letter == '}').unwrap_or_default();
                let name: String = more[..end].iter().collect();
                if let Some(value) = variables.get(&name) {
                    text.push_str(&value.text());
                    only = (letters.len() == end + 3).then(|| value.place(value.line()));
                }
                rest = &more[end + 1..];
            }
            _ => text.push(letter),
        }
        if text.len() > PREFLIGHT_WORD_BYTES_MAX {
            break;
        }
    }
    push(words, text, only.unwrap_or_else(|| place.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lined(file: &str, text: &str) -> Lined {
        let mut line = 1;
        let letters = text.chars().map(|letter| {
            let here = line;
            line += usize::from(letter == '\n');
            (letter, here)
        });
        Lined { file: file.to_owned(), letters: letters.collect() }
    }

    fn words(text: &str) -> Vec<(String, String)> {
        let value = |text| lined("env", text);
        let variables = [("A", value("-s\nmalloc,1m")), ("B", value("x y")), ("E", value(""))];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let split = split(&lined("unit", text), &variables, Dollars::Systemd).unwrap();
        split.iter().map(|word| (word.shown(), format!("{}:{}", word.place.file, word.place.line))).collect()
    }

    #[test]
    fn variables_are_put_where_systemd_puts_them() {
        let of = |text: &str| words(text).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(of("a $A b"), ["a", "-s", "malloc,1m", "b"]);
        assert_eq!(of("${A} x${B}y $E ${E}"), ["-s\nmalloc,1m", "xx yy", ""]);
        assert_eq!(of("$UNSET ${UNSET} x$A $$A"), ["", "x$A", "$A"]);
        assert_eq!(of("'a b' \"c\\\"d\" e\\ f \"\""), ["a b", "c\"d", "e f", ""]);
    }

    #[test]
    fn words_have_their_source_position() {
        let places: Vec<_> = words("one\ntwo $A ${B} p${B}").into_iter().map(|(_, place)| place).collect();
        assert_eq!(places, ["unit:1", "unit:2", "env:1", "env:2", "env:1", "unit:2"]);
    }

    #[test]
    fn a_line_without_end_and_a_quote_without_end_are_refused() {
        assert_eq!(
            split(&lined("u", "a\n'b"), &Variables::new(), Dollars::Plain).unwrap_err(),
            "u:2: a ' without its end"
        );
        let many = "x ".repeat(PREFLIGHT_WORDS_MAX + 1);
        assert!(split(&lined("u", &many), &Variables::new(), Dollars::Plain).is_err());
        let mut doubling = Variables::new();
        doubling.insert("A".to_owned(), lined("e", &"y".repeat(PREFLIGHT_WORD_BYTES_MAX)));
        assert!(split(&lined("u", &"${A}".repeat(1000)), &doubling, Dollars::Systemd).is_err());
    }
}
