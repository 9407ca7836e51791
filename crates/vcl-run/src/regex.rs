//! Regular expressions: PCRE2 with its just-in-time compiler; the work of a match is bounded.
//!
//! Patterns and subjects are bytes; letters beyond ASCII match as their bytes unless the pattern
//! starts with `(*UTF)`. The limits are put in front of the pattern, where PCRE2 reads them; a
//! pattern can lower but not raise them. Substitution follows VCL: `\0` to `\9` are groups, any
//! other escaped character represents itself, and only the first match may be empty. Compat:
//! results of Varnish 7.1.1, pinned by the tests below.

use crate::failure::Failure;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use surface::limits::DYNAMIC_REGEX_BYTES_MAX;

/// Compilation mode of patterns, and the limits of one match: parameters `pcre2_match_limit` and
/// `pcre2_depth_limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegexLimits {
    /// Most internal steps.
    pub matches: u32,
    /// Deepest internal nesting.
    pub depth: u32,
    /// Compile to machine code (parameter `pcre2_jit_compilation`).
    pub jit: bool,
}

impl Default for RegexLimits {
    fn default() -> Self {
        RegexLimits { matches: 10_000, depth: 20, jit: true }
    }
}

/// A pattern that does not compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError {
    /// Error text.
    pub text: String,
    /// Position in the pattern, in bytes.
    pub offset: Option<usize>,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A match was abandoned, e.g. because it reached a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MatchError(pub String);

/// Reason why nothing was replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubstituteError {
    /// The match was abandoned.
    Match(MatchError),
    /// The result would exceed its limit.
    TooLong,
}

impl From<MatchError> for SubstituteError {
    fn from(error: MatchError) -> SubstituteError {
        SubstituteError::Match(error)
    }
}

/// The result of a substitution under construction: neither its length nor its capacity exceeds the
/// limit.
struct Bounded<'a> {
    out: &'a mut Vec<u8>,
    limit_bytes: usize,
}

impl Bounded<'_> {
    fn extend(&mut self, bytes: &[u8]) -> Result<(), SubstituteError> {
        let needed = self.out.len() + bytes.len();
        if needed > self.limit_bytes {
            return Err(SubstituteError::TooLong);
        }
        if needed > self.out.capacity() {
            let room = (2 * self.out.capacity()).clamp(needed, self.limit_bytes);
            self.out.reserve_exact(room - self.out.len());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

/// A regular expression.
///
/// Those of a program are compiled when they are first matched: with thousands of them, compiling
/// them all to machine code would be the largest cost of loading a VCL, and most are never matched
/// before the VCL is discarded.
#[derive(Debug)]
pub struct Regex {
    pattern: Box<str>,
    limits: RegexLimits,
    simple: Option<Simple>,
    compiled: OnceLock<Result<pcre2::bytes::Regex, PatternError>>,
    /// The same pattern, but never matching the empty string: for all matches but the first when
    /// all are replaced.
    not_empty: OnceLock<Result<pcre2::bytes::Regex, PatternError>>,
}

/// A pattern that is tested without PCRE2, whose call alone costs several hundred instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Simple {
    /// Any capital letter: the test of the built-in VCL on every Host.
    Capital,
    /// The text after the caret begins the subject, byte by byte.
    Start,
}

impl Simple {
    /// Classifies a pattern. `None` if the pattern is not simple, or if the limits are so low that
    /// PCRE2 might give up.
    fn of(pattern: &str, limits: RegexLimits) -> Option<Simple> {
        /// More than PCRE2 needs for any of these.
        const STEPS_MIN: u32 = 100;
        if limits.matches < STEPS_MIN {
            return None;
        }
        if matches!(pattern, "[[:upper:]]" | "[A-Z]") {
            return Some(Simple::Capital);
        }
        let literal = pattern.strip_prefix('^')?;
        (!literal.contains(['\\', '^', '$', '.', '[', '|', '(', ')', '?', '*', '+', '{', '\0']))
            .then_some(Simple::Start)
    }

    fn is_match(self, pattern: &str, subject: &[u8]) -> bool {
        match self {
            Simple::Capital => subject.iter().any(u8::is_ascii_uppercase),
            Simple::Start => subject.starts_with(&pattern.as_bytes()[1..]),
        }
    }
}

impl Regex {
    /// A pattern that is compiled when needed. A malformed pattern fails every match.
    #[must_use]
    pub fn deferred(pattern: &str, limits: RegexLimits) -> Regex {
        let simple = Simple::of(pattern, limits);
        Regex { pattern: pattern.into(), limits, simple, compiled: OnceLock::new(), not_empty: OnceLock::new() }
    }

    /// Compiles a pattern.
    ///
    /// # Errors
    /// If the pattern is malformed.
    pub fn new(pattern: &str, limits: RegexLimits) -> Result<Regex, PatternError> {
        let regex = Regex::deferred(pattern, limits);
        match regex.compiled.get_or_init(|| build("", pattern, limits)) {
            Ok(_) => Ok(regex),
            Err(error) => Err(error.clone()),
        }
    }

    /// Checks that a pattern compiles, without the cost of preparing it.
    ///
    /// # Errors
    /// If the pattern is malformed.
    pub fn check(pattern: &str) -> Result<(), PatternError> {
        pcre2::bytes::RegexBuilder::new().build(pattern).map(|_| ()).map_err(|error| pattern_error(&error, 0))
    }

    /// True if it matches exactly the texts with a capital letter, `A` to `Z`.
    pub(crate) fn is_capital(&self) -> bool {
        self.simple == Some(Simple::Capital)
    }

    /// Returns true if the pattern matches anywhere in the subject.
    ///
    /// # Errors
    /// If the match was abandoned.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, MatchError> {
        if let Some(simple) = self.simple {
            return Ok(simple.is_match(&self.pattern, subject));
        }
        self.compiled()?.is_match(subject).map_err(|error| give_up(&error))
    }

    /// The compiled expression, for VMODs that need captures.
    ///
    /// # Errors
    /// If the pattern is malformed.
    pub fn compiled(&self) -> Result<&pcre2::bytes::Regex, MatchError> {
        ready(self.compiled.get_or_init(|| build("", &self.pattern, self.limits)))
    }

    fn not_empty(&self) -> Result<&pcre2::bytes::Regex, MatchError> {
        ready(self.not_empty.get_or_init(|| build("(*NOTEMPTY)", &self.pattern, self.limits)))
    }

    /// Replaces the first match and appends the result to `out`, whose length then is at most
    /// `limit_bytes`. If there is no match, appends nothing and returns `false`.
    ///
    /// # Errors
    /// If the match was abandoned, or the result is too long: then `out` has part of it.
    pub fn substitute(
        &self,
        subject: &[u8],
        replacement: &[u8],
        out: &mut Vec<u8>,
        limit_bytes: usize,
    ) -> Result<bool, SubstituteError> {
        let compiled = self.compiled()?;
        let mut groups = compiled.capture_locations();
        let Some((start, end)) = first(compiled, &mut groups, subject, 0)? else {
            return Ok(false);
        };
        let mut out = Bounded { out, limit_bytes };
        out.extend(&subject[..start])?;
        expand(replacement, subject, &groups, &mut out)?;
        out.extend(&subject[end..])?;
        Ok(true)
    }

    /// Like [`Regex::substitute`], but replaces all matches.
    ///
    /// # Errors
    /// As for [`Regex::substitute`].
    pub fn substitute_all(
        &self,
        subject: &[u8],
        replacement: &[u8],
        out: &mut Vec<u8>,
        limit_bytes: usize,
    ) -> Result<bool, SubstituteError> {
        let compiled = self.compiled()?;
        let mut groups = compiled.capture_locations();
        let Some((start, mut end)) = first(compiled, &mut groups, subject, 0)? else {
            return Ok(false);
        };
        let mut out = Bounded { out, limit_bytes };
        out.extend(&subject[..start])?;
        expand(replacement, subject, &groups, &mut out)?;
        let not_empty = self.not_empty()?;
        while let Some((next, after)) = first(not_empty, &mut groups, subject, end)? {
            out.extend(&subject[end..next.max(end)])?;
            expand(replacement, subject, &groups, &mut out)?;
            if after <= end {
                break;
            }
            end = after;
        }
        out.extend(&subject[end..])?;
        Ok(true)
    }
}

/// The text of a pattern that VCL builds at run time.
///
/// # Errors
/// If it has more than [`DYNAMIC_REGEX_BYTES_MAX`] bytes.
pub fn dynamic_pattern(text: &[u8]) -> Result<Cow<'_, str>, Failure> {
    if text.len() > DYNAMIC_REGEX_BYTES_MAX {
        return Err(Failure(format!("Regular expression of more than {DYNAMIC_REGEX_BYTES_MAX} bytes")));
    }
    Ok(String::from_utf8_lossy(text))
}

fn build(verb: &str, pattern: &str, limits: RegexLimits) -> Result<pcre2::bytes::Regex, PatternError> {
    let bounded = format!("(*LIMIT_MATCH={})(*LIMIT_DEPTH={}){verb}{pattern}", limits.matches, limits.depth);
    let prefix = bounded.len() - pattern.len();
    let built = pcre2::bytes::RegexBuilder::new().jit_if_available(limits.jit).build(&bounded);
    built.map_err(|error| pattern_error(&error, prefix))
}

fn pattern_error(error: &pcre2::Error, prefix: usize) -> PatternError {
    PatternError { text: detail(error), offset: error.offset().map(|offset| offset.saturating_sub(prefix)) }
}

/// The library's own message, without the wrapper's introduction.
fn detail(error: &pcre2::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(": ") {
        Some((front, words)) if front.starts_with("PCRE2") => words.to_owned(),
        _ => text,
    }
}

fn ready(built: &Result<pcre2::bytes::Regex, PatternError>) -> Result<&pcre2::bytes::Regex, MatchError> {
    built.as_ref().map_err(|error| MatchError(error.text.clone()))
}

fn give_up(error: &pcre2::Error) -> MatchError {
    MatchError(detail(error))
}

fn first(
    regex: &pcre2::bytes::Regex,
    groups: &mut pcre2::bytes::CaptureLocations,
    subject: &[u8],
    from: usize,
) -> Result<Option<(usize, usize)>, MatchError> {
    if from > subject.len() {
        return Ok(None);
    }
    match regex.captures_read_at(groups, subject, from) {
        // `\K` can move the start past the end.
        Ok(Some(found)) => Ok(Some((found.start().min(found.end()), found.end()))),
        Ok(None) => Ok(None),
        Err(error) => Err(give_up(&error)),
    }
}

fn expand(
    replacement: &[u8],
    subject: &[u8],
    groups: &pcre2::bytes::CaptureLocations,
    out: &mut Bounded<'_>,
) -> Result<(), SubstituteError> {
    let mut rest = replacement;
    while let Some(at) = memchr_backslash(rest) {
        out.extend(&rest[..at])?;
        match rest.get(at + 1) {
            Some(digit @ b'0'..=b'9') => {
                if let Some((start, end)) = groups.get(usize::from(digit - b'0')) {
                    out.extend(subject.get(start..end).unwrap_or(b""))?;
                }
            }
            Some(&other) => out.extend(&[other])?,
            None => out.extend(b"\\")?,
        }
        rest = rest.get(at + 2..).unwrap_or(b"");
    }
    out.extend(rest)
}

fn memchr_backslash(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(subject: &str, pattern: &str, replacement: &str, all: bool) -> String {
        let regex = Regex::new(pattern, RegexLimits::default()).unwrap();
        let mut out = Vec::new();
        let found = if all {
            regex.substitute_all(subject.as_bytes(), replacement.as_bytes(), &mut out, 1000)
        } else {
            regex.substitute(subject.as_bytes(), replacement.as_bytes(), &mut out, 1000)
        };
        if found.unwrap() { String::from_utf8(out).unwrap() } else { subject.to_owned() }
    }

    #[test]
    fn simple_patterns_match_as_in_pcre2() {
        let subjects: [&[u8]; 12] =
            [b"", b"a", b"A", b"abZ", b"abc", b"/ab", b"/a\nb", b"x/ab", b"\xc4", b"\xc3\x84/", b"^/ab", b"\n/ab"];
        let patterns =
            ["[[:upper:]]", "[A-Z]", "^", "^/ab", "^/a\nb", "^\u{c4}", "^ab}]", "^a b#", "^/ab$", "^a.", "^a|b"];
        for pattern in patterns {
            let regex = Regex::deferred(pattern, RegexLimits::default());
            assert_eq!(regex.simple.is_none(), pattern.ends_with(['$', '.', 'b']) && pattern.contains(['$', '.', '|']));
            for subject in subjects {
                let wanted = regex.compiled().unwrap().is_match(subject).unwrap();
                assert_eq!(regex.is_match(subject), Ok(wanted), "{pattern:?} {subject:?}");
            }
        }
        assert_eq!(Regex::deferred("^a", RegexLimits { matches: 1, ..RegexLimits::default() }).simple, None);
    }

    #[test]
    fn all_matches_are_replaced_and_only_the_first_may_be_empty() {
        assert_eq!(replaced("foo bar", "o*", "-", true), "-f- bar");
        assert_eq!(replaced("oofoo bar", "o*", "-", true), "-f- bar");
        assert_eq!(replaced("foo bar", r"\b", "|", true), "|foo bar");
        assert_eq!(replaced("aab", "^a", "-", true), "-ab");
        assert_eq!(replaced("abab", "b|$", "X", true), "aXaX");
        assert_eq!(replaced("foo.bar.com", r"(?<=\.)b", "X", true), "foo.Xar.com");
    }

    #[test]
    fn escapes_stand_for_groups_or_for_themselves() {
        assert_eq!(replaced("abcabc", "(b)(c)?", r"[\0\1\2\3\&\\x]", true), r"a[bcbc&\x]a[bcbc&\x]");
        assert_eq!(replaced("foo.bar.com", "(o)(x)?(b)?", r"[\2\3\9]", false), "f[]o.bar.com");
        assert_eq!(replaced("foo", "o", r"-\n\q\\\", false), r"f-nq\\o");
        assert_eq!(replaced("", "^$", "X", false), "X");
    }

    #[test]
    fn a_result_is_never_longer_than_it_may_be_while_it_is_made() {
        let regex = Regex::new("a(.*)", RegexLimits::default()).unwrap();
        let every = Regex::new("a", RegexLimits::default()).unwrap();
        let subject = [b'a'; 1000];
        let (mut out, tenfold) = (Vec::new(), b"\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0".as_slice());
        assert_eq!(regex.substitute(&subject, tenfold, &mut out, 3000), Err(SubstituteError::TooLong));
        assert!(out.len() <= 3000 && out.capacity() <= 3000, "{} {}", out.len(), out.capacity());
        out = Vec::new();
        assert_eq!(every.substitute_all(&subject, tenfold, &mut out, 3000), Err(SubstituteError::TooLong));
        assert!(out.len() <= 3000 && out.capacity() <= 3000, "{} {}", out.len(), out.capacity());
        out = Vec::new();
        assert_eq!(every.substitute_all(&subject, tenfold, &mut out, 10_000), Ok(true));
        assert_eq!((out.len(), out.capacity() <= 10_000), (10_000, true));
    }

    #[test]
    fn runaway_match_is_given_up() {
        let regex = Regex::new("^(a+)+$", RegexLimits::default()).unwrap();
        let subject = [[b'a'; 60].as_slice(), b"b"].concat();
        assert_eq!(regex.is_match(&subject), Err(MatchError("match limit exceeded".into())));
    }

    #[test]
    fn deferred_pattern_matches_as_one_compiled_at_once_and_fails_when_malformed() {
        let limits = RegexLimits::default();
        assert_eq!(Regex::deferred("^a", limits).is_match(b"abc"), Ok(true));
        let broken = Regex::deferred("a(b", limits);
        assert_eq!(broken.is_match(b"ab"), Err(MatchError("missing closing parenthesis".into())));
        assert!(broken.substitute_all(b"ab", b"", &mut Vec::new(), 1000).is_err());
    }

    #[test]
    fn malformed_pattern_is_reported_with_reason_and_position() {
        let error = Regex::new("a(b", RegexLimits::default()).unwrap_err();
        assert_eq!((error.text.as_str(), error.offset), ("missing closing parenthesis", Some(3)));
    }
}
