//! Arbitrary bytes as a ban expression, in VCL and in the CLI, and as an entry of the journal.

use cache::BanSpecification;

/// Reads `bytes` in all three ways.
///
/// # Panics
/// When a ban is refused without a message, when the text shown for a ban means another ban, or when a ban comes out of the
/// journal differently from how it went in.
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
