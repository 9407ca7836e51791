//! The tasks in one table: name, description, options, function. Help and the check of arguments
//! derive from it.

/// A task.
pub struct Task {
    /// Name on the command line.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    /// Options as shown in the help: with a blank and a value, or alone, or in brackets a word
    /// without a name.
    pub options: &'static [&'static str],
    /// Runs it with arguments that are in the table.
    pub run: fn(&[String]) -> Result<(), String>,
}

/// Widest line of the help, in characters.
const WIDTH: usize = 140;
/// Column at which the text of a task begins.
const INDENT: usize = 12;

impl Task {
    /// Its part of the help.
    pub fn usage(&self) -> String {
        let mut lines = vec![format!("  {:<9} {}", self.name, self.what)];
        let mut last = String::new();
        for option in self.options {
            let shown = if option.starts_with('-') { format!("[{option}]") } else { (*option).to_owned() };
            if !last.is_empty() && INDENT + last.len() + 1 + shown.len() > WIDTH {
                lines.push(format!("{:INDENT$}{last}", ""));
                last.clear();
            }
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(&shown);
        }
        if !last.is_empty() {
            lines.push(format!("{:INDENT$}{last}", ""));
        }
        lines.join("\n") + "\n"
    }

    /// Checks that it takes these arguments.
    ///
    /// # Errors
    /// An unknown option, one without its value, or a superfluous word.
    pub fn check(&self, arguments: &[String]) -> Result<(), String> {
        let mut words = self.options.iter().filter(|option| !option.starts_with('-')).count();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if !argument.starts_with('-') {
                words = words.checked_sub(1).ok_or_else(|| format!("'{argument}' is a word too many"))?;
                continue;
            }
            let of = |option: &&&str| option.split(' ').next() == Some(argument);
            let option = self.options.iter().find(of).ok_or_else(|| format!("there is no option {argument}"))?;
            if option.contains(' ') && rest.next().is_none_or(|value| value.starts_with("--")) {
                return Err(format!("{argument} needs a value: {option}"));
            }
        }
        Ok(())
    }
}

/// True if help is requested.
pub fn is_help(argument: &str) -> bool {
    matches!(argument, "help" | "--help" | "-h")
}

/// The value after `--name` among the arguments.
pub fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// Like [`option`], parsed as a number.
pub fn number<T: std::str::FromStr>(arguments: &[String], name: &str, default: T) -> Result<T, String> {
    match option(arguments, name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("{name}: '{text}' is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_takes_what_its_row_has_and_nothing_else() {
        let task = Task { name: "a", what: "b", options: &["--rounds N", "--quick", "[FILTER]"], run: |_| Ok(()) };
        let check = |line: &str| task.check(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        for right in ["", "--quick", "word", "--rounds 3 word --quick", "--rounds -1"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in ["--round 3", "--rounds", "--rounds --quick", "one two", "-q", "--quick yes no"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert_eq!(task.usage(), "  a         b\n            [--rounds N] [--quick] [FILTER]\n");
    }

    #[test]
    fn every_task_has_a_name_of_its_own_and_fits_its_column() {
        let names: std::collections::BTreeSet<_> = crate::TASKS.iter().map(|task| task.name).collect();
        assert_eq!(names.len(), crate::TASKS.len());
        assert!(crate::TASKS.iter().all(|task| task.name.len() < INDENT - 2 && !is_help(task.name)));
    }
}
