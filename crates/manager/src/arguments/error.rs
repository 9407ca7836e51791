//! A start that failed: its message, and the form in which each command shows it.

use surface::program::Called;

/// A mistake in the command line, or a start that failed for another reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The message after `Error:`, with the blank or newline that precedes it.
    pub text: String,
    /// The same message under our own name; `None` = `text`.
    own_text: Option<String>,
    /// More about the cause, on a line of its own; not part of the message of `varnishd`.
    detail: Option<String>,
    hint: Hint,
}

/// Hint at the usage text behind a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// The usage text helps.
    Always,
    /// The usage text does not help. Compat: `varnishd` shows the hint anyway.
    Stock,
    Never,
}

impl ArgumentError {
    /// A message on one line about an option.
    pub fn new(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { text: format!(" {}", text.as_ref()), own_text: None, detail: None, hint: Hint::Always }
    }

    /// A message on one line about the system: the options are right.
    pub fn of_system(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { hint: Hint::Stock, ..ArgumentError::new(text) }
    }

    /// A message on one line that is not about options, and has no hint in Varnish.
    pub fn of_start(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { hint: Hint::Never, ..ArgumentError::new(text) }
    }

    /// A message from another part: about a parameter or a VCL.
    pub fn of_part(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { text: format!("\n{}", text.as_ref()), hint: Hint::Never, ..ArgumentError::new("") }
    }

    /// The same with more about the cause.
    #[must_use]
    pub fn with_detail(self, detail: Option<String>) -> ArgumentError {
        ArgumentError { detail: detail.or(self.detail), ..self }
    }

    /// The same with a message of its own for `copal daemon`.
    #[must_use]
    pub fn with_own_text(self, text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { own_text: Some(format!(" {}", text.as_ref())), ..self }
    }

    /// The text after `Error:`, as that command shows it.
    #[must_use]
    pub fn shown(&self, called: Called) -> String {
        let (detail, hint) = match (called, self.hint) {
            (Called::Stock, Hint::Always | Hint::Stock) => (None, "\n(-? gives usage)"),
            (Called::Stock, Hint::Never) => (None, ""),
            (Called::Copal, Hint::Always) => (self.detail.as_deref(), "\n(copal daemon --help lists the options)"),
            (Called::Copal, Hint::Stock | Hint::Never) => (self.detail.as_deref(), ""),
        };
        let detail = detail.map(|detail| format!("\n\t{detail}")).unwrap_or_default();
        let text = self.own_text.as_deref().filter(|_| called == Called::Copal).unwrap_or(&self.text);
        format!("{text}{detail}{hint}")
    }
}

impl From<String> for ArgumentError {
    fn from(text: String) -> Self {
        ArgumentError::new(text)
    }
}

impl From<&str> for ArgumentError {
    fn from(text: &str) -> Self {
        ArgumentError::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_hint_is_shown_where_it_helps_and_where_varnishd_shows_it() {
        let option = ArgumentError::new("invalid option -- 'Z'");
        assert_eq!(option.shown(Called::Stock), " invalid option -- 'Z'\n(-? gives usage)");
        assert_eq!(option.shown(Called::Copal), " invalid option -- 'Z'\n(copal daemon --help lists the options)");
        let system = ArgumentError::of_system("Address already in use").with_detail(Some("by nginx".to_owned()));
        assert_eq!(system.shown(Called::Stock), " Address already in use\n(-? gives usage)");
        assert_eq!(system.shown(Called::Copal), " Address already in use\n\tby nginx");
        for called in [Called::Stock, Called::Copal] {
            assert_eq!(ArgumentError::of_part("VCL compilation failed").shown(called), "\nVCL compilation failed");
        }
    }
}
