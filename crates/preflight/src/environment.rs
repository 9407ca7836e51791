//! Files of variables: `EnvironmentFile=` of a unit, and the shell fragments that init scripts read
//! (`/etc/default/varnish`).
//!
//! Both are `NAME=value` lines with quotes. Only a shell puts variables into values; commands in
//! `$( )` are not run. Source: systemd.exec(5), "EnvironmentFile="; sh(1).

use crate::words::{Lined, Variables};
use surface::limits::PREFLIGHT_WORD_BYTES_MAX;

/// Program that reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Systemd,
    Shell,
}

/// Adds the variables of a file, and returns the lines that cannot be judged: those with a command.
pub(crate) fn read(text: &str, file: &str, reader: Reader, variables: &mut Variables) -> Vec<usize> {
    let mut letters = Letters { rest: text.chars().peekable(), line: 1 };
    let mut commands = Vec::new();
    while letters.rest.peek().is_some() {
        let line = letters.line;
        let Some(name) = letters.name(reader) else {
            letters.skip_line();
            continue;
        };
        let value = letters.value(file, reader, variables);
        let text = value.text();
        if reader == Reader::Shell && (text.contains("$(") || text.contains('`')) {
            commands.push(line);
        }
        variables.insert(name, value);
    }
    commands
}

struct Letters<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Letters<'_> {
    fn next(&mut self) -> Option<(char, usize)> {
        let letter = self.rest.next()?;
        let line = self.line;
        self.line += usize::from(letter == '\n');
        Some((letter, line))
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|(letter, _)| letter != '\n') {}
    }

    fn skip_blanks(&mut self) {
        while self.rest.next_if(|letter| matches!(letter, ' ' | '\t' | '\r')).is_some() {}
    }

    /// The name before a `=`; `None` if the line is not an assignment; it is read in part then.
    fn name(&mut self, reader: Reader) -> Option<String> {
        self.skip_blanks();
        let mut name = String::new();
        while let Some(letter) = self.rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
            name.push(letter);
        }
        if reader == Reader::Shell && name == "export" && self.rest.peek() == Some(&' ') {
            return self.name(Reader::Systemd);
        }
        self.rest.next_if_eq(&'=').filter(|_| !name.is_empty()).map(|_| name)
    }

    fn value(&mut self, file: &str, reader: Reader, variables: &Variables) -> Lined {
        let mut value = Lined { file: file.to_owned(), letters: Vec::new() };
        let mut quote = None;
        let mut ended = false;
        while let Some((letter, line)) = self.next() {
            match (quote, letter) {
                (None, '\n') => break,
                (Some(open), _) if letter == open => quote = None,
                (None, '"' | '\'') if reader == Reader::Shell || value.letters.is_empty() => quote = Some(letter),
                (None | Some('"'), '\\') => match self.next() {
                    None | Some(('\n', _)) => {}
                    Some((next, at)) => {
                        if quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                            value.letters.push(('\\', line));
                        }
                        value.letters.push((next, at));
                    }
                },
                (None | Some('"'), '$') if reader == Reader::Shell => {
                    self.variable(line, variables, &mut value);
                }
                // Text after the value on its line is a comment or another command.
                (None, ' ' | '\t' | ';') if reader == Reader::Shell => ended = true,
                _ if ended => {}
                _ => value.letters.push((letter, line)),
            }
            if value.letters.len() > PREFLIGHT_WORD_BYTES_MAX {
                break;
            }
        }
        if quote.is_none() && reader == Reader::Systemd {
            while value.letters.last().is_some_and(|(letter, _)| letter.is_whitespace()) {
                value.letters.pop();
            }
        }
        value
    }

    /// Text after a dollar sign in a shell: a variable, or text that is left unchanged.
    fn variable(&mut self, line: usize, variables: &Variables, value: &mut Lined) {
        let braced = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(letter) = self.rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
            name.push(letter);
        }
        if braced && self.rest.next_if_eq(&'}').is_none() || name.is_empty() {
            let written = format!("${}{name}", if braced { "{" } else { "" });
            value.letters.extend(written.chars().map(|letter| (letter, line)));
            return;
        }
        if let Some(known) = variables.get(&name) {
            // The place of a word is that of the line in which the variable is used.
            value.letters.extend(known.letters.iter().map(|(letter, _)| (*letter, line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str, reader: Reader) -> (Variables, Vec<usize>) {
        let mut variables = Variables::new();
        let commands = read(text, "f", reader, &mut variables);
        (variables, commands)
    }

    #[test]
    fn an_init_scripts_fragment_is_read_as_a_shell_does() {
        let text = "# a comment\nPORT=80 # another\nexport S='one two'\nINSTANCE=$(uname -n)\n\
                    DAEMON_OPTS=\"-a :${PORT} \\\n  -s malloc,$S \\\"x\\\"\"\nif [ -f x ]; then\n";
        let (found, commands) = variables(text, Reader::Shell);
        assert_eq!(found["DAEMON_OPTS"].text(), "-a :80   -s malloc,one two \"x\"");
        assert_eq!(found["DAEMON_OPTS"].letters.last().unwrap().1, 6, "its second line");
        assert_eq!((found["PORT"].text().as_str(), found["S"].text().as_str()), ("80", "one two"));
        assert_eq!((commands, found.len()), (vec![4], 4));
    }

    #[test]
    fn systemd_puts_nothing_into_values() {
        let (found, commands) = variables("A=1 2 \n;x\nB=\"a\n$A\"\nC=${A}\nD=\n", Reader::Systemd);
        let text = |name: &str| found[name].text();
        assert_eq!(
            (text("A"), text("B"), text("C"), text("D")),
            ("1 2".into(), "a\n$A".into(), "${A}".into(), String::new())
        );
        assert!(commands.is_empty());
    }

    #[test]
    fn values_that_double_stay_bounded() {
        let mut text = "A0=xxxxxxxxxx\n".to_owned();
        for number in 1..64 {
            text += &format!("A{number}=\"${{A{0}}}${{A{0}}}\"\n", number - 1);
        }
        let (found, _) = variables(&text, Reader::Shell);
        assert!(found.values().all(|value| value.letters.len() <= 3 * PREFLIGHT_WORD_BYTES_MAX));
    }
}
