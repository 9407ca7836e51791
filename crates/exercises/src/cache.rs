//! Arbitrary bytes as a ban expression, in VCL and in the CLI, as an entry of the journal, and as a
//! pattern with values to match.

use cache::{BanSpecification, judge_ban_pattern};
use pcre2::bytes::RegexBuilder;

/// Reads `bytes` in all three ways.
///
/// # Panics
/// When a ban is refused without a message, when the text shown for a ban means another ban, or
/// when a ban is read from the journal differently from how it was written.
pub fn ban(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<&str> = text.split(' ').collect();
    for parsed in [BanSpecification::parse_text(&text), BanSpecification::parse(&words)] {
        match parsed {
            Ok(ban) => {
                assert!(ban.has_request_tests() || ban.has_object_tests(), "a ban bans something");
                assert_eq!(BanSpecification::from_journal(&ban.to_journal(1.5)), (1.5, ban.clone()));
            }
            Err(message) => assert!(!message.is_empty(), "a refusal has a message"),
        }
    }
    // Words in the CLI may contain blanks, words in VCL may not.
    if let Ok(ban) = BanSpecification::parse_text(&text)
        && let Ok(again) = BanSpecification::parse_text(ban.text())
    {
        assert_eq!(again.text(), ban.text());
    }
    // A ban that can't be read must ban everything; only an empty entry bans nothing.
    let (_, read) = BanSpecification::from_journal(bytes);
    let bans_something = read.has_request_tests() || read.has_object_tests();
    assert!(bans_something || bytes.len() < 12);
}

/// Reads the first line of `bytes` as a pattern, and the rest as values: the lines, all of it, and
/// texts composed of pieces of the pattern, since those may match.
///
/// # Panics
/// When a pattern that the library refuses is recognised, when a recognised one means something
/// else than in the library, or when the index would not find a ban for a value that matches.
pub fn ban_pattern(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let pieces: Vec<&str> = pattern
        .split(|letter: char| !letter.is_alphanumeric() && !"/_-:.".contains(letter))
        .filter(|piece| !piece.is_empty())
        .take(8)
        .collect();
    let mut values: Vec<String> = rest.lines().take(20).map(str::to_owned).collect();
    values.extend([String::new(), rest.to_owned()]);
    for piece in &pieces {
        values.push((*piece).to_owned());
        for other in &pieces {
            values.extend([",", " ", "", "\n", "-"].map(|joint| [piece, joint, other].concat()));
        }
    }
    match RegexBuilder::new().build(pattern) {
        Err(_) => assert!(
            judge_ban_pattern(pattern, b"").matches.is_none() || pattern.len() > 1000,
            "{pattern:?} is no pattern, but was recognised"
        ),
        Ok(regex) => {
            for value in values {
                // A match that takes too long counts as none.
                let expected = regex.is_match(value.as_bytes()).unwrap_or(false);
                let verdict = judge_ban_pattern(pattern, value.as_bytes());
                assert!(verdict.matches.is_none_or(|matches| matches == expected), "{pattern:?} on {value:?}");
                assert!(!expected || verdict.is_found != Some(false), "{pattern:?} is not found for {value:?}");
            }
        }
    }
}
