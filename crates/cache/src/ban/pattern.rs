//! Recogniser for the regular expressions that publishing systems ban with, so that they can be
//! evaluated without a regular expression and found by hash.
//!
//! ```text
//! (^|,)cat_p_42(,|$)    ((^|,)a(,|$))|((^|,)b(,|$))   (^|[, ])(a|b)([, ]|$)   a member of a list
//! ^/blog/    ^/blog/.*    ^/blog/.*$    ^/(en|de)/                            start of a value
//! ^/page$    ^(a|b)$                                                          a whole value
//! \bnode:42\b                                                                 a word
//! ```
//!
//! A recognised pattern has exactly the meaning that PCRE gives it, including the line feed before
//! `$`; a pattern that is not understood to the last byte is not recognised. *Invariant*: a value
//! that matches yields every [`Key`] that the pattern was filed under (`ban/index.rs`); the fuzz
//! target `ban_pattern` compares both with the library.

use smallvec::SmallVec;
use surface::limits::{BAN_PATTERN_BYTES_MAX, BAN_PATTERN_LITERALS_MAX, BAN_PREFIX_BYTES_MAX};

/// A set of ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Separators(u128);

impl Separators {
    fn with(self, byte: u8) -> Option<Separators> {
        (byte < 128).then(|| Separators(self.0 | 1 << byte))
    }

    fn union(self, other: Separators) -> Separators {
        Separators(self.0 | other.0)
    }

    fn has(self, byte: u8) -> bool {
        byte < 128 && self.0 & 1 << byte != 0
    }

    /// `\s`
    fn blanks() -> Separators {
        Separators(b" \t\n\x0b\x0c\r".iter().fold(0, |set, byte| set | 1 << byte))
    }
}

/// The position in a value at which a text has to occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Shape {
    /// `^text$`
    Whole,
    /// `^text`
    Beginning,
    /// `^text.*$`: only one line follows.
    BeginningOfLine,
    /// `(^|,)text(,|$)`
    Member(Separators),
    /// `\btext\b`
    Word,
}

/// A recognised pattern: a value matches if any of the texts occurs in it at the position that the
/// shape requires.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    shape: Shape,
    /// The texts, with a line feed between them: they contain no control characters.
    texts: Box<[u8]>,
}

/// The way in which the texts of a ban and those of a value are compared: both are made into the
/// same keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    /// The value itself.
    Whole,
    /// Its first bytes, at most `BAN_PREFIX_BYTES_MAX`.
    Beginning,
    /// Each part between these separators.
    Member(Separators),
    /// Each run of letters, digits and `_`.
    Word,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The value without a final line feed, which `$` also matches before.
fn without_line_feed(value: &[u8]) -> Option<&[u8]> {
    value.strip_suffix(b"\n")
}

impl Form {
    /// The form of a regular expression, if it has one that is known.
    pub(crate) fn of(pattern: &str) -> Option<Form> {
        let mut found = Found { shape: None, texts: Vec::new() };
        found.alternatives(pattern.as_bytes(), 0)?;
        Some(Form { shape: found.shape?, texts: found.texts.join(&b'\n').into() })
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.split(|byte| *byte == b'\n')
    }

    /// True if a value matches the expression.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        self.texts().any(|text| stands_in(text, self.shape, value))
    }

    /// The keys to file a ban under: a matching value has at least one of them.
    pub(crate) fn keys(&self) -> (Key, SmallVec<[&[u8]; 1]>) {
        match self.shape {
            Shape::Whole => (Key::Whole, self.texts().collect()),
            Shape::Beginning | Shape::BeginningOfLine => (Key::Beginning, self.texts().map(beginning).collect()),
            Shape::Member(separators) => (Key::Member(separators), self.texts().collect()),
            Shape::Word => (Key::Word, self.texts().map(most_telling_word).collect()),
        }
    }
}

fn stands_in(text: &[u8], shape: Shape, value: &[u8]) -> bool {
    match shape {
        Shape::Whole => value == text || without_line_feed(value) == Some(text),
        Shape::Beginning => value.starts_with(text),
        Shape::BeginningOfLine => {
            let rest = value.strip_prefix(text);
            rest.is_some_and(|rest| !without_line_feed(rest).unwrap_or(rest).contains(&b'\n'))
        }
        Shape::Member(separators) => members(value, separators).any(|member| member == text),
        Shape::Word => value.windows(text.len()).enumerate().any(|(at, window)| {
            let before = at.checked_sub(1).and_then(|at| value.get(at));
            let behind = value.get(at + text.len());
            window == text && ![before, behind].into_iter().flatten().any(|byte| is_word(*byte))
        }),
    }
}

/// The members of a list, the last one also without its line feed.
fn members(value: &[u8], separators: Separators) -> impl Iterator<Item = &[u8]> {
    let last = value.rsplit(move |byte| separators.has(*byte)).next().and_then(without_line_feed);
    value.split(move |byte| separators.has(*byte)).chain(last)
}

/// The part of a text that the index uses.
fn beginning(text: &[u8]) -> &[u8] {
    &text[..text.len().min(BAN_PREFIX_BYTES_MAX)]
}

/// The word in `product-42` that probably occurs in the fewest values: with digits if possible,
/// then the longest.
fn most_telling_word(text: &[u8]) -> &[u8] {
    let words = text.split(|byte| !is_word(*byte));
    words.max_by_key(|word| (word.iter().any(u8::is_ascii_digit), word.len())).unwrap_or(text)
}

/// Calls `see` with the texts of a value for one kind of key. `lengths`: for beginnings, a bit for
/// each requested length, the lowest for 1.
pub(crate) fn keys_of(value: &[u8], key: Key, lengths: u64, mut see: impl FnMut(&[u8])) {
    match key {
        Key::Whole => [Some(value), without_line_feed(value)].into_iter().flatten().for_each(see),
        Key::Beginning => {
            let mut left = lengths;
            while left != 0 {
                let len = left.trailing_zeros() as usize + 1;
                let Some(text) = value.get(..len) else { return };
                see(text);
                left &= left - 1;
            }
        }
        Key::Member(separators) => members(value, separators).for_each(see),
        Key::Word => value.split(|byte| !is_word(*byte)).filter(|word| !word.is_empty()).for_each(see),
    }
}

/// The text that every match of an expression begins with, if it cannot match elsewhere:
/// `/product/` for `^/product/[0-9]+`. At most as long as the index uses.
pub(crate) fn necessary_beginning(pattern: &str) -> Option<SmallVec<[u8; 64]>> {
    let mut rest = pattern.as_bytes().strip_prefix(b"^")?;
    if split(pattern.as_bytes())?.len() > 1 {
        return None;
    }
    let mut text = SmallVec::new();
    while let Some((byte, behind)) = literal(rest) {
        // A quantifier may make the byte before it optional.
        if matches!(behind.first(), Some(b'*' | b'?' | b'+' | b'{')) {
            break;
        }
        text.push(byte);
        rest = behind;
    }
    text.truncate(BAN_PREFIX_BYTES_MAX);
    (!text.is_empty()).then_some(text)
}

/// The cache's result for a pattern and a value, for comparison with the regular expression
/// library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatternVerdict {
    /// True if the value matches, false if not; `None` if that is not known without a regular
    /// expression.
    pub matches: Option<bool>,
    /// True if the index would find a ban with this pattern for the value; `None` if the ban would
    /// not be in the index.
    pub is_found: Option<bool>,
}

/// Judges one pattern and one value. The pattern must be a valid regular expression.
#[must_use]
pub fn judge(pattern: &str, value: &[u8]) -> PatternVerdict {
    let is_found = |key: Key, texts: &[&[u8]]| {
        let bit = |text: &&[u8]| 1 << (text.len().clamp(1, BAN_PREFIX_BYTES_MAX) - 1);
        let lengths = texts.iter().map(bit).fold(0, std::ops::BitOr::bitor);
        let mut is_found = false;
        keys_of(value, key, lengths, |text| is_found |= texts.contains(&text));
        is_found
    };
    match Form::of(pattern) {
        Some(form) => {
            let (key, texts) = form.keys();
            PatternVerdict { matches: Some(form.matches(value)), is_found: Some(is_found(key, &texts)) }
        }
        None => {
            let found = necessary_beginning(pattern).map(|text| is_found(Key::Beginning, &[&text]));
            PatternVerdict { matches: None, is_found: found }
        }
    }
}

/// Maximum nesting of groups that is followed.
const NESTING_MAX: usize = 8;

/// The parts of a pattern read so far.
struct Found {
    shape: Option<Shape>,
    texts: Vec<Vec<u8>>,
}

/// The beginning of a branch.
enum Left {
    Start,
    Separator(Separators),
    Word,
}

impl Found {
    /// Reads `branch|branch|…`.
    fn alternatives(&mut self, pattern: &[u8], depth: usize) -> Option<()> {
        if depth > NESTING_MAX {
            return None;
        }
        for branch in split(pattern)? {
            match whole_group(branch) {
                Some(inner) => self.alternatives(inner, depth + 1)?,
                None => self.branch(branch)?,
            }
        }
        Some(())
    }

    /// Reads one branch; all of them must have the same shape.
    fn branch(&mut self, branch: &[u8]) -> Option<()> {
        let (left, rest) = left(branch)?;
        let (texts, rest) = texts(rest)?;
        let shape = match left {
            Left::Start => match rest {
                b"" | b".*" => Shape::Beginning,
                b"$" => Shape::Whole,
                b".*$" => Shape::BeginningOfLine,
                _ => return None,
            },
            Left::Separator(separators) => {
                let (right, behind) = edge(rest, b'$')?;
                if right != separators || !behind.is_empty() {
                    return None;
                }
                Shape::Member(separators)
            }
            Left::Word => {
                if rest != b"\\b" {
                    return None;
                }
                Shape::Word
            }
        };
        let fits = |text: &Vec<u8>| match shape {
            Shape::Whole => true,
            Shape::Beginning | Shape::BeginningOfLine => !text.is_empty(),
            Shape::Member(separators) => !text.is_empty() && !text.iter().any(|byte| separators.has(*byte)),
            Shape::Word => {
                text.first().is_some_and(|byte| is_word(*byte)) && text.last().is_some_and(|byte| is_word(*byte))
            }
        };
        if *self.shape.get_or_insert(shape) != shape || !texts.iter().all(fits) {
            return None;
        }
        self.texts.extend(texts);
        let bytes: usize = self.texts.iter().map(Vec::len).sum();
        (self.texts.len() <= BAN_PATTERN_LITERALS_MAX && bytes <= BAN_PATTERN_BYTES_MAX).then_some(())
    }
}

/// The position behind the first item of `pattern`: an escape, a class, or a single byte. Classes
/// need not be valid, but end.
fn behind_item(pattern: &[u8]) -> Option<usize> {
    match pattern.first()? {
        b'\\' => behind_escape(pattern),
        b'[' => {
            let mut at = 1 + usize::from(pattern.get(1) == Some(&b'^'));
            // A bracket that comes first is literal.
            at += usize::from(pattern.get(at) == Some(&b']'));
            loop {
                match pattern.get(at)? {
                    b']' => return Some(at + 1),
                    // Inner classes are rare, and the rules for them many.
                    b'[' => return None,
                    b'\\' => at += behind_escape(&pattern[at..])?,
                    _ => at += 1,
                }
            }
        }
        _ => Some(1),
    }
}

fn behind_escape(pattern: &[u8]) -> Option<usize> {
    // Quoting, and control characters that look like brackets.
    let hides = matches!(pattern.get(1)?, b'Q' | b'E' | b'c');
    (!hides).then_some(2)
}

/// The branches of a pattern, at the `|` outside of groups. `None` where brackets don't match, or a
/// group has a special meaning: in comments brackets are not syntax.
fn split(pattern: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut branches, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0usize);
    while at < pattern.len() {
        let behind = at + behind_item(&pattern[at..])?;
        match pattern[at] {
            b'(' if pattern[behind..].starts_with(b"?:") => depth += 1,
            b'(' if matches!(pattern.get(behind), Some(b'?' | b'*')) => return None,
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b'|' if depth == 0 => {
                branches.push(&pattern[start..at]);
                start = behind;
            }
            _ => {}
        }
        at = behind;
    }
    branches.push(pattern.get(start..)?);
    (depth == 0).then_some(branches)
}

/// Splits a pattern that begins with `(` as a group: its inside, and the rest. Groups with a
/// special meaning have `?` or `*` behind the bracket and are not read, except `(?:…)`.
fn group(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = pattern.strip_prefix(b"(")?;
    let inside = inside.strip_prefix(b"?:").unwrap_or(inside);
    if matches!(inside.first(), Some(b'?' | b'*')) {
        return None;
    }
    let (mut at, mut depth) = (0, 0usize);
    loop {
        match inside.get(at)? {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some((&inside[..at], &inside[at + 1..])),
            b')' => depth -= 1,
            _ => {}
        }
        at += behind_item(&inside[at..])?;
    }
}

/// The inside of a branch that is one group.
fn whole_group(branch: &[u8]) -> Option<&[u8]> {
    group(branch).filter(|(_, behind)| behind.is_empty()).map(|(inside, _)| inside)
}

/// A literal byte, and the rest.
fn literal(pattern: &[u8]) -> Option<(u8, &[u8])> {
    let (byte, rest) = match pattern {
        [b'\\', byte, rest @ ..] if byte.is_ascii_punctuation() => (*byte, rest),
        [byte, rest @ ..] if !b"\\^$.[]|()?*+{}".contains(byte) => (*byte, rest),
        _ => return None,
    };
    (!byte.is_ascii_control()).then_some((byte, rest))
}

/// One separator: a byte, `\s`, or a class of these.
fn separator(pattern: &[u8]) -> Option<Separators> {
    if pattern == b"\\s" {
        return Some(Separators::blanks());
    }
    if let Some((byte, b"")) = literal(pattern) {
        return Separators::default().with(byte);
    }
    let mut rest = pattern.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut set = Separators::default();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix(b"\\s") {
            (set, rest) = (set.union(Separators::blanks()), behind);
        } else {
            let (byte, behind) = literal(rest)?;
            // An unescaped `-` may be a range.
            if byte == b'-' {
                return None;
            }
            (set, rest) = (set.with(byte)?, behind);
        }
    }
    (set != Separators::default()).then_some(set)
}

/// A group like `(^|,)`: the anchor and separators, in any order; and the rest.
fn edge(pattern: &[u8], anchor: u8) -> Option<(Separators, &[u8])> {
    let (inside, behind) = group(pattern)?;
    let (mut set, mut is_anchored) = (Separators::default(), false);
    for branch in split(inside)? {
        if branch == [anchor] {
            is_anchored = true;
        } else {
            set = set.union(separator(branch)?);
        }
    }
    (is_anchored && set != Separators::default()).then_some((set, behind))
}

fn left(branch: &[u8]) -> Option<(Left, &[u8])> {
    if let Some(rest) = branch.strip_prefix(b"^") {
        return Some((Left::Start, rest));
    }
    if let Some(rest) = branch.strip_prefix(b"\\b") {
        return Some((Left::Word, rest));
    }
    edge(branch, b'^').map(|(separators, rest)| (Left::Separator(separators), rest))
}

/// Reads literal bytes and groups of alternative literals; returns all texts that they spell, and
/// the rest.
fn texts(pattern: &[u8]) -> Option<(Vec<Vec<u8>>, &[u8])> {
    let (mut texts, mut rest) = (vec![Vec::new()], pattern);
    loop {
        if let Some((byte, behind)) = literal(rest) {
            if texts.len() * texts[0].len() > BAN_PATTERN_BYTES_MAX {
                return None;
            }
            texts.iter_mut().for_each(|text| text.push(byte));
            rest = behind;
        } else if let Some((choices, behind)) = choices(rest) {
            let longest = texts[0].len() + choices.iter().map(|choice| choice.len()).max().unwrap_or(0);
            let count = texts.len() * choices.len();
            if count > BAN_PATTERN_LITERALS_MAX || count * longest > BAN_PATTERN_BYTES_MAX {
                return None;
            }
            texts = texts.iter().flat_map(|text| choices.iter().map(|choice| [text, *choice].concat())).collect();
            rest = behind;
        } else {
            return Some((texts, rest));
        }
    }
}

/// `(a|b|c)`: the alternatives, unescaped literals only, and the rest.
fn choices(pattern: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (mut inside, behind) = group(pattern)?;
    while let Some(inner) = whole_group(inside) {
        inside = inner;
    }
    let branches = split(inside)?;
    let is_plain = |branch: &&[u8]| {
        let mut rest: &[u8] = branch;
        while let Some((_, behind)) = literal(rest) {
            rest = behind;
        }
        rest.is_empty() && !branch.contains(&b'\\')
    };
    branches.iter().all(is_plain).then_some((branches, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcre2::bytes::Regex;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    /// Patterns that publishing systems send, as far as they can be looked up by hash.
    const RECOGNISED: &[&str] = &[
        "((^|,)cat_p_42(,|$))",
        "((^|,)cat_p_42(,|$))|((^|,)cat_p(,|$))",
        "(^|,)(a|b|c)(,|$)",
        "(,|^)((a|b))($|,)",
        "(?:^|,)a(?:,|$)",
        "(^|\\s)node:1(\\s|$)",
        "(^| )node:1( |$)",
        "(^|[, ])a([ ,]|$)",
        "(^|[\\s,])a(,|\\s|$)",
        "(^|;)pageId_5(;|$)",
        "\\bpost-42\\b",
        "\\b(a|b)\\b",
        "^/blog/",
        "^/blog/.*",
        "^/blog/.*$",
        "^/blog/a\\.html$",
        "^(/a|/b)",
        "^/a$|^/b$",
        "^/(en|de)/(shop|blog)/",
        "(^/a$|^/b$)",
        "^$",
        "^/a b$",
    ];

    /// Patterns that look similar and have another meaning, or are not understood.
    const NOT_RECOGNISED: &[&str] = &[
        "",
        "a",
        "^",
        "^a|b",
        "a$",
        "(^|,)a",
        "(^|,)a( |$)",
        "(^|,)a,b(,|$)",
        "(^|,)a*(,|$)",
        "(^|,)(a|b)?(,|$)",
        "(^|,)?a(,|$)",
        "(^|,)(,|$)",
        "^a?",
        "^a{2}",
        "^a+",
        "^*a",
        "^a.b",
        "^/a[bc]",
        "(?i)^a",
        "(*UTF)^a",
        "^\\d",
        "^\\Qa\\E",
        "^/a/.+",
        "\\b-a\\b",
        "\\ba",
        "(^|,)a(,|$)|^b$",
        "(^|[^,])a([^,]|$)",
        "(^|[a-c])x([a-c]|$)",
        "^a.*?$",
        "(?=^a)",
        "^a(?#)|b",
        "^a$\n",
        "(^|,)a(,|$)(,|$)",
    ];

    const VALUES: &[&str] = &[
        "",
        "a",
        "b",
        "a,b",
        "b,a",
        ",a",
        "a,",
        "a\n",
        "b,a\n",
        "a\nb",
        "x,a,y",
        "xa,y",
        "x,ay",
        "a b",
        "b a",
        "x; a",
        "a;b",
        "cat_p_42",
        "cat_p",
        "cat_p_4,cat_p_42",
        "cat_p_421",
        "xcat_p_42",
        "cat_c_1,cat_p_42,FPC",
        "node:1",
        "node:1 x",
        "x node:1",
        "node:12",
        "x\tnode:1\ny",
        "post-42",
        "x post-42",
        "post-421",
        "xpost-42",
        "post-42-1",
        "/blog/",
        "/blog/a",
        "/blog/a.html",
        "/blog/axhtml",
        "/blog",
        "x/blog/",
        "/blog/a\n",
        "/blog/a\nb",
        "/blog/\n\n",
        "/a",
        "/b",
        "/ab",
        "/a\n",
        "/en/shop/1",
        "/de/blog/",
        "/en/x/",
        "/a b",
        "pageId_5",
        "x;pageId_5;y",
        "aa",
        "a,a",
        ",",
        ",,",
        "\n",
        "(^|,)a",
    ];

    #[test]
    fn a_recognised_pattern_means_what_the_library_makes_of_it() {
        for pattern in RECOGNISED {
            let regex = Regex::new(pattern).unwrap();
            let form = Form::of(pattern).unwrap_or_else(|| panic!("{pattern} is not recognised"));
            for value in VALUES {
                let expected = regex.is_match(value.as_bytes()).unwrap();
                assert_eq!(form.matches(value.as_bytes()), expected, "{pattern} on {value:?}");
                let verdict = judge(pattern, value.as_bytes());
                assert!(verdict.is_found == Some(true) || !expected, "{pattern} is not found for {value:?}");
            }
        }
    }

    #[test]
    fn partly_understood_patterns_are_not_recognised() {
        for pattern in NOT_RECOGNISED {
            assert_eq!(Form::of(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn a_beginning_that_every_match_has_is_used() {
        let cases: &[(&str, Option<&str>)] = &[
            ("^/product/[0-9]+", Some("/product/")),
            ("^/page(\\?.*)?$", Some("/page")),
            ("^/ab?c", Some("/a")),
            ("^/a+", Some("/")),
            ("^/a{0,1}b", Some("/")),
            ("^/a|b", None),
            ("^a(?#[)|b(?#])", None),
            ("^a\\c[|b]", None),
            ("^a[]|b]", Some("a")),
            ("^a[\\]|]b", Some("a")),
            ("^(/a|/b)x?", None),
            ("^*/a", None),
            ("/a", None),
        ];
        for (pattern, expected) in cases {
            let found = necessary_beginning(pattern);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{pattern}");
        }
        let long = format!("^/{}", "a".repeat(1000));
        assert_eq!(necessary_beginning(&long).unwrap().len(), BAN_PREFIX_BYTES_MAX);
    }

    #[test]
    fn no_pattern_made_by_chance_means_something_else() {
        const PIECES: &[&str] = &[
            "^", "$", "(", ")", "|", ",", "a", "b", "ab", "(^|,)", "(,|$)", "\\b", ".*", "?", "*", "[", "]", "\\s",
            "(?:", "(?#", "\\c", "[^", "{2}", ".", "(a|b)", "-", "\\.", "(^|[, ])", "([ ,]|$)", "\\Q", "\\E", " ",
            "(^|\\s)", "($|\\s)",
        ];
        let mut random = SmallRng::seed_from_u64(3);
        let mut text = |most: usize, pieces: &[&str]| -> String {
            (0..random.random_range(1..=most)).map(|_| pieces[random.random_range(0..pieces.len())]).collect()
        };
        let (mut recognised, mut begun) = (0, 0);
        for _ in 0..300_000 {
            let pattern = text(7, PIECES);
            let verdict = judge(&pattern, b"");
            if verdict.is_found.is_none() {
                continue;
            }
            let Ok(regex) = Regex::new(&pattern) else {
                assert_eq!(verdict.matches, None, "{pattern} is no pattern");
                continue;
            };
            recognised += usize::from(verdict.matches.is_some());
            begun += usize::from(verdict.matches.is_none());
            for _ in 0..8 {
                let value = text(5, &["a", "b", "ab", ",", " ", "\n", "-", ".", "]"]);
                let expected = regex.is_match(value.as_bytes()).unwrap();
                let verdict = judge(&pattern, value.as_bytes());
                assert!(verdict.matches.is_none_or(|matches| matches == expected), "{pattern} on {value:?}");
                assert!(!expected || verdict.is_found == Some(true), "{pattern} is not found for {value:?}");
            }
        }
        assert!(recognised > 400 && begun > 250, "{recognised} {begun}");
    }

    #[test]
    fn too_many_texts_are_left_to_the_library() {
        let names = |count: usize| (0..count).map(|number| format!("n{number}")).collect::<Vec<_>>().join("|");
        assert!(Form::of(&format!("(^|,)({})(,|$)", names(BAN_PATTERN_LITERALS_MAX))).is_some());
        assert!(Form::of(&format!("(^|,)({})(,|$)", names(BAN_PATTERN_LITERALS_MAX + 1))).is_none());
        assert!(Form::of(&format!("^({})({})$", names(40), names(40))).is_none());
        assert!(Form::of(&format!("^({}){}$", names(1000), "x".repeat(1000))).is_none());
        assert!(Form::of(&format!("^{}({})$", "x".repeat(1000), names(1000))).is_none());
        assert!(Form::of(&format!("^{}$", "x".repeat(BAN_PATTERN_BYTES_MAX))).is_some());
        let deep = format!("{}^a${}", "(".repeat(5000), ")".repeat(5000));
        assert!(Form::of(&deep).is_none());
    }
}
