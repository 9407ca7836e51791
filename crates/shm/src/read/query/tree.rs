//! The tree of a query, its limits, and the error of a refused one.

use std::fmt;

use pcre2::bytes::Regex;

use crate::read::tags::TagSet;

/// Longest query text in bytes.
pub const QUERY_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of parentheses.
pub const QUERY_DEPTH_MAX: usize = 100;

/// Error of a refused query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryError {
    /// Description of the error.
    pub message: String,
    /// Start of the offending word, in bytes from 0.
    pub at: usize,
    /// Length of the offending word, in bytes.
    pub length: usize,
    /// Position of the error inside the word, if known.
    pub offset: Option<usize>,
    /// The query.
    pub text: String,
}

impl fmt::Display for QueryError {
    /// The message with its position, the query, and a line that marks the position.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.text.trim().is_empty() {
            return f.write_str(&self.message);
        }
        let shown: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let word = self.at..self.at + self.length;
        let fault = self.offset.map(|offset| self.at + offset);
        let mark = |at: usize| match word.contains(&at) {
            true if fault == Some(at) => '^',
            true => '#',
            false => '-',
        };
        let marks: String = (0..self.text.len()).map(mark).collect();
        write!(f, "{} (Pos {})\n{shown}\n{marks}", self.message, fault.unwrap_or(self.at) + 1)
    }
}

impl std::error::Error for QueryError {}

/// An expression.
#[derive(Debug)]
pub(super) enum Node {
    Or(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Vxid(Compare, i64),
    Test(Test),
}

/// A test of the records of a group.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) level: Option<(Compare, i32)>,
    pub(super) tags: TagSet,
    pub(super) prefix: Option<Vec<u8>>,
    pub(super) field: Option<usize>,
    pub(super) condition: Condition,
}

/// A condition on the text of a record.
#[derive(Debug)]
pub(super) enum Condition {
    Exists,
    Integer(Compare, i64),
    /// Compares thousandths.
    Decimal(Compare, i64),
    Equal(bool, Vec<u8>),
    Matches(bool, Regex),
}

/// A comparison of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    /// True if the comparison holds.
    pub(super) fn holds<T: Ord>(self, left: T, right: T) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::NotEqual => left != right,
            Compare::Less => left < right,
            Compare::LessOrEqual => left <= right,
            Compare::Greater => left > right,
            Compare::GreaterOrEqual => left >= right,
        }
    }
}
