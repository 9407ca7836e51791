//! Rules of `copal vcl lint`: for each the identifier, the level, the reason, and a VCL that breaks
//! and one that follows it.
//!
//! Identifiers are stable: S for rules whose violation leaks a response or takes a site down, P for
//! performance, C for correctness, A for the suppressions themselves. The examples are the tests of
//! the rules (`crates/vcl/src/lint`), and the page `docs/reference/lint.md` is written from the
//! rows. The rows are in `lint/rows.rs`.

mod row;
mod rows;

pub use row::{Level, Rule, RuleRow};
pub use rows::RULES;

impl Rule {
    /// The row of this rule.
    #[must_use]
    pub fn row(self) -> &'static RuleRow {
        &RULES[self as usize]
    }

    /// The rule with this identifier, ignoring case; the prefix `copal/` is optional.
    #[must_use]
    pub fn of_id(id: &str) -> Option<Rule> {
        let id = id.strip_prefix("copal/").unwrap_or(id);
        RULES.iter().find(|row| row.id.eq_ignore_ascii_case(id)).map(|row| row.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_rules_and_complete() {
        for (index, row) in RULES.iter().enumerate() {
            assert_eq!(row.rule as usize, index, "{}", row.id);
            assert_eq!(Rule::of_id(row.id), Some(row.rule));
            assert!(!row.title.is_empty() && row.title.len() <= 80 && !row.title.ends_with('.'), "{}", row.id);
            assert!(row.why.len() > 60 && row.why.ends_with('.') && !row.hint.ends_with('.'), "{}", row.id);
            assert!(row.bad != row.good && row.bad.starts_with("vcl 4.1;") && row.good.starts_with("vcl 4.1;"));
        }
        assert_eq!(Rule::of_id("copal/s1"), Some(Rule::SetCookieStored));
        assert_eq!(Rule::of_id("S99"), None);
    }

    #[test]
    fn levels_have_names_and_an_order() {
        assert!(Level::Note < Level::Warning && Level::Warning < Level::Error);
        for level in Level::ALL {
            assert_eq!(Level::of_name(level.name()), Some(level));
        }
        assert_eq!((Level::of_name("warn"), Level::of_name("x")), (Some(Level::Warning), None));
    }
}
