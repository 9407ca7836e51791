//! Regular expressions: PCRE2 with its just-in-time compiler, bounded in the work one match may do.
//!
//! Patterns and subjects are bytes; letters beyond ASCII match as their bytes unless the pattern starts with `(*UTF)`.

use std::fmt;

/// Bounds of one match: the parameters `pcre2_match_limit` and `pcre2_depth_limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegexLimits {
    /// Most internal steps.
    pub matches: u32,
    /// Deepest internal nesting.
    pub depth: u32,
}

impl Default for RegexLimits {
    fn default() -> Self {
        RegexLimits { matches: 10_000, depth: 20 }
    }
}

/// A pattern that does not compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError {
    /// What is wrong.
    pub text: String,
    /// Where in the pattern, in bytes.
    pub offset: Option<usize>,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A match that was given up, e.g. because it reached a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MatchError(pub String);

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Regex {
    compiled: pcre2::bytes::Regex,
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// When the pattern is malformed.
    pub fn new(pattern: &str, limits: RegexLimits) -> Result<Regex, PatternError> {
        let bounded = format!("(*LIMIT_MATCH={})(*LIMIT_DEPTH={}){pattern}", limits.matches, limits.depth);
        let prefix = bounded.len() - pattern.len();
        match pcre2::bytes::RegexBuilder::new().jit_if_available(true).build(&bounded) {
            Ok(compiled) => Ok(Regex { compiled }),
            Err(error) => Err(PatternError {
                text: error.to_string(),
                offset: error.offset().map(|offset| offset.saturating_sub(prefix)),
            }),
        }
    }

    /// Whether the pattern matches anywhere in the subject.
    ///
    /// # Errors
    /// When the match was given up.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, MatchError> {
        self.compiled.is_match(subject).map_err(|error| MatchError(error.to_string()))
    }

    /// The compiled expression, for captures.
    #[must_use]
    pub fn compiled(&self) -> &pcre2::bytes::Regex {
        &self.compiled
    }
}
