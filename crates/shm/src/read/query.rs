//! The log query language of vsl-query(7): does a group of transactions hold a record that
//! satisfies an expression?
//!
//! ```text
//! expression := and { "or" and } ; and := not { "and" not }
//! not := [ "not" ] ( "(" expression ")" | test )
//! test := [ "{" level [ "+" | "-" ] "}" ] tag { "," tag } [ ":" prefix ] [ "[" field "]" ]
//!         [ operator operand ]
//!       | "vxid" operator integer
//! ```
//!
//! One expression per line; several lines are joined by `or`. Text → `lexer.rs` → `parser.rs` →
//! [`Query`], evaluated here. Compat: the syntax of numbers, and every edge case, was taken from
//! the answers of the stock 7.1 tools.

mod lexer;
mod number;
mod parser;
mod tree;

use super::record::Record;
use super::transaction::Transaction;
use number::{integer, thousandths};
use tree::{Condition, Node, Test};
pub use tree::{QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QueryError};

/// A compiled query.
#[derive(Debug)]
pub struct Query {
    root: Node,
    caseless: bool,
}

impl Query {
    /// Compiles a query; `caseless` makes regular expressions and string comparisons ignore case.
    ///
    /// # Errors
    /// The error and its position.
    pub fn parse(text: &str, caseless: bool) -> Result<Query, QueryError> {
        Ok(Query { root: parser::parse(text, caseless)?, caseless })
    }

    /// True when the group satisfies the query.
    #[must_use]
    pub fn matches(&self, group: &[Transaction]) -> bool {
        self.holds(&self.root, group)
    }

    fn holds(&self, node: &Node, group: &[Transaction]) -> bool {
        match node {
            Node::Or(left, right) => self.holds(left, group) || self.holds(right, group),
            Node::And(left, right) => self.holds(left, group) && self.holds(right, group),
            Node::Not(inner) => !self.holds(inner, group),
            Node::Vxid(compare, number) => {
                group.iter().any(|transaction| compare.holds(transaction.vxid.cast_signed(), *number))
            }
            Node::Test(test) => group.iter().any(|transaction| {
                test.level.is_none_or(|(compare, level)| compare.holds(i64::from(transaction.level), i64::from(level)))
                    && transaction.records().any(|record| self.satisfies(test, &record))
            }),
        }
    }

    fn satisfies(&self, test: &Test, record: &Record) -> bool {
        if !test.tags.contains(record.number) {
            return false;
        }
        let mut text = record.data();
        if let Some(prefix) = &test.prefix {
            let Some(rest) = strip_prefix(text, prefix) else { return false };
            text = rest;
        }
        if let Some(field) = test.field {
            let Some(found) = nth_quotable_field(text, field) else { return false };
            text = found;
        }
        match &test.condition {
            Condition::Exists => true,
            Condition::Integer(compare, number) => integer(text).is_some_and(|found| compare.holds(found, *number)),
            Condition::Decimal(compare, number) => thousandths(text).is_some_and(|found| compare.holds(found, *number)),
            Condition::Equal(wanted, string) => {
                let equal = if self.caseless { text.eq_ignore_ascii_case(string) } else { text == string };
                equal == *wanted
            }
            // Compat: a match that exceeds its limits counts as one.
            Condition::Matches(wanted, regex) => regex.is_match(text).unwrap_or(true) == *wanted,
        }
    }
}

/// A regular expression's error as the options of the tools report it.
#[must_use]
pub fn regex_error(error: &pcre2::Error) -> String {
    format!("Regex error at position {} ({})", error.offset().unwrap_or(0), parser::regex_message(error))
}

/// The text after `prefix` (compared ignoring case) and a colon, without leading blanks.
#[must_use]
pub fn strip_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let start = text.get(..prefix.len())?;
    if !start.eq_ignore_ascii_case(prefix) || text.get(prefix.len()) != Some(&b':') {
        return None;
    }
    Some(text[prefix.len() + 1..].trim_ascii_start())
}

/// The `number`th (from 1) of the blank-separated fields.
#[must_use]
pub fn nth_field(text: &[u8], number: usize) -> Option<&[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(number.checked_sub(1)?)
}

/// The `number`th (from 1) of the blank-separated fields, each of which may be in double quotes and
/// then contain blanks. `None` also when a quoted field up to there is not closed, or followed by
/// something other than a blank.
fn nth_quotable_field(text: &[u8], number: usize) -> Option<&[u8]> {
    let mut rest = text;
    let mut found = None;
    for _ in 0..number {
        rest = rest.trim_ascii_start();
        let end;
        (found, end) = match rest.strip_prefix(b"\"") {
            Some(quoted) => {
                let length = quoted.iter().position(|byte| *byte == b'"')?;
                (Some(&quoted[..length]), length + 2)
            }
            None if rest.is_empty() => return None,
            None => {
                let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                (Some(&rest[..length]), length)
            }
        };
        rest = &rest[end..];
        if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests;
