//! Shell patterns over names, as in fnmatch(3): `*`, `?`, `[…]` and `\`.
//!
//! Bytes, not characters: ranges and classes are those of the C locale. The time is bounded by the
//! product of both lengths. Used by `backend.list`, `vcl.discard`, `include +glob`, std.fnmatch and
//! the tools' `-f`. Source: POSIX.1-2017, XCU §2.13.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Variants of matching.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// Only a slash matches a slash.
    pub pathname: bool,
    /// A backslash is an ordinary character.
    pub noescape: bool,
    /// Only a period matches a period at the start (and after a slash, with `pathname`).
    pub period: bool,
}

/// True if the whole subject matches.
#[must_use]
pub fn matches(pattern: &[u8], subject: &[u8], flags: Flags) -> bool {
    let mut at = 0;
    let mut here = 0;
    // After the last star: the position in the pattern after it, and the position in the subject to
    // try next.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if let Some(b'*') = pattern.get(at) {
            if is_leading_period(subject, here, flags) {
                return false;
            }
            at += 1;
            star = Some((at, here));
            continue;
        }
        let step = match subject.get(here) {
            None if at == pattern.len() => return true,
            None => None,
            Some(byte) => step(&pattern[at..], *byte, is_leading_period(subject, here, flags), flags),
        };
        match (step, star) {
            (Some(consumed), _) => {
                at += consumed;
                here += 1;
            }
            (None, Some((after_star, tried))) => match subject.get(tried) {
                None => return false,
                Some(b'/') if flags.pathname => return false,
                Some(_) => {
                    at = after_star;
                    here = tried + 1;
                    star = Some((after_star, here));
                }
            },
            (None, None) => return false,
        }
    }
}

fn is_leading_period(subject: &[u8], here: usize, flags: Flags) -> bool {
    flags.period
        && subject.get(here) == Some(&b'.')
        && (here == 0 || flags.pathname && subject.get(here - 1) == Some(&b'/'))
}

/// Number of pattern bytes that match this byte; `None` if they don't.
fn step(pattern: &[u8], byte: u8, leading_period: bool, flags: Flags) -> Option<usize> {
    let is_slash = flags.pathname && byte == b'/';
    match pattern.first()? {
        b'?' => (!is_slash && !leading_period).then_some(1),
        b'[' => match bracket(pattern, byte, flags) {
            Some((matched, consumed)) => (matched && !is_slash && !leading_period).then_some(consumed),
            None => (byte == b'[').then_some(1),
        },
        b'\\' if !flags.noescape => (*pattern.get(1)? == byte).then_some(2),
        literal => (*literal == byte).then_some(1),
    }
}

/// Parses a bracket expression; `None` if it is not closed and so is an ordinary `[`.
fn bracket(pattern: &[u8], byte: u8, flags: Flags) -> Option<(bool, usize)> {
    let mut at = 1;
    let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let mut matched = false;
    let mut is_first = true;
    loop {
        let start = *pattern.get(at)?;
        if start == b']' && !is_first {
            return Some((matched != negated, at + 1));
        }
        is_first = false;
        if start == b'['
            && pattern.get(at + 1) == Some(&b':')
            && let Some(length) = pattern[at + 2..].windows(2).position(|pair| pair == b":]")
        {
            matched |= is_in_class(&pattern[at + 2..at + 2 + length], byte);
            at += length + 4;
            continue;
        }
        let (low, used) = bracket_byte(&pattern[at..], flags)?;
        at += used;
        let mut high = low;
        if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|next| *next != b']') {
            let (end, used) = bracket_byte(&pattern[at + 1..], flags)?;
            high = end;
            at += 1 + used;
        }
        matched |= (low..=high).contains(&byte);
    }
}

fn bracket_byte(pattern: &[u8], flags: Flags) -> Option<(u8, usize)> {
    match pattern {
        [b'\\', escaped, ..] if !flags.noescape => Some((*escaped, 2)),
        [byte, ..] => Some((*byte, 1)),
        [] => None,
    }
}

fn is_in_class(name: &[u8], byte: u8) -> bool {
    match name {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"punct" => byte.is_ascii_punctuation(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"graph" => byte.is_ascii_graphic(),
        b"cntrl" => byte.is_ascii_control(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHNAME: Flags = Flags { pathname: true, noescape: false, period: false };

    fn check(pattern: &str, subject: &str, flags: Flags, expected: bool) {
        assert_eq!(matches(pattern.as_bytes(), subject.as_bytes(), flags), expected, "{pattern} {subject}");
    }

    #[test]
    fn wildcards_match_as_in_the_shell() {
        for (pattern, subject, expected) in [
            ("", "", true),
            ("*", "", true),
            ("vcl1.*", "vcl1.s1", true),
            ("*.s?", "boot.s1", true),
            ("*.s?", "boot.s12", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("[ab]", "b", true),
            ("[!ab]", "b", false),
            ("[^ab]", "c", true),
            ("[a-c]x", "bx", true),
            ("[]x]", "]", true),
            ("[a-]", "-", true),
            ("[[:digit:]a]", "7", true),
            ("[[:digit:]a]", "b", false),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("x\\", "x\\", false),
            ("**", "abc", true),
            ("*a", "aaaa", true),
        ] {
            check(pattern, subject, Flags::default(), expected);
        }
    }

    #[test]
    fn slashes_are_special_only_when_asked() {
        check("/foo/*", "/foo/bar", PATHNAME, true);
        check("/foo/*", "/foo/bar/baz", PATHNAME, false);
        check("/foo/*", "/foo/bar/baz", Flags::default(), true);
        check("/foo/*/quux", "/foo/bar/quux", PATHNAME, true);
        check("/*/b*z", "/a/bz/z", PATHNAME, false);
        check("a?b", "a/b", PATHNAME, false);
        check("a[/]b", "a/b", PATHNAME, false);
        check("a?b", "a/b", Flags::default(), true);
    }

    #[test]
    fn escapes_and_periods_follow_their_flags() {
        let noescape = Flags { noescape: true, ..Flags::default() };
        check("\\*", "\\xyz", noescape, true);
        let period = Flags { period: true, pathname: true, noescape: false };
        check("*", ".hidden", period, false);
        check("/?x", "/.x", period, false);
        check("/.x", "/.x", period, true);
        check("/a*", "/a.x", period, true);
        check("*", ".hidden", Flags::default(), true);
    }

    #[test]
    fn a_pattern_of_many_stars_takes_bounded_time() {
        let pattern = "*a".repeat(100) + "b";
        check(&pattern, &"a".repeat(10_000), Flags::default(), false);
    }
}
