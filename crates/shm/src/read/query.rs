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
mod parser;

use std::fmt;

use pcre2::bytes::Regex;

use super::record::Record;
use super::tags::TagSet;
use super::transaction::Transaction;

/// Longest query text in bytes.
pub const QUERY_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of parentheses.
pub const QUERY_DEPTH_MAX: usize = 100;

/// A compiled query.
#[derive(Debug)]
pub struct Query {
    root: Node,
    caseless: bool,
}

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

#[derive(Debug)]
enum Node {
    Or(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Vxid(Compare, i64),
    Test(Test),
}

#[derive(Debug)]
struct Test {
    level: Option<(Compare, i32)>,
    tags: TagSet,
    prefix: Option<Vec<u8>>,
    field: Option<usize>,
    condition: Condition,
}

#[derive(Debug)]
enum Condition {
    Exists,
    Integer(Compare, i64),
    /// Compares thousandths.
    Decimal(Compare, i64),
    Equal(bool, Vec<u8>),
    Matches(bool, Regex),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    fn holds<T: Ord>(self, left: T, right: T) -> bool {
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

/// Largest whole part of a number with a decimal point, Source: RFC 8941 §3.3.2.
const DECIMAL_WHOLE_MAX: i64 = 999_999_999_999;
/// Most digits before the point, Source: RFC 8941 §3.3.1.
const WHOLE_DIGITS_MAX: usize = 15;

/// A number as the log's fields hold them.
struct Number {
    negative: bool,
    whole: i64,
    /// Truncated, not rounded. Compat: the stock tools compare no further decimals.
    thousandths: i64,
}

impl Number {
    /// The number at the start of `text`, and the rest after it. Blanks may precede it and surround
    /// its point.
    fn read(text: &[u8]) -> Option<(Number, &[u8])> {
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = skip_blanks(text);
        let (negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, mut rest) = text.split_at(digits(text));
        if whole.len() > WHOLE_DIGITS_MAX {
            return None;
        }
        if !whole.is_empty() {
            rest = skip_blanks(rest);
        }
        let value = |digits: &[u8]| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        let mut number = Number { negative, whole: value(whole), thousandths: 0 };
        let Some(after) = rest.strip_prefix(b".") else {
            return (!whole.is_empty()).then_some((number, rest));
        };
        let (fraction, after) = after.split_at(digits(after));
        if number.whole > DECIMAL_WHOLE_MAX || whole.is_empty() && fraction.is_empty() {
            return None;
        }
        number.thousandths = value(&[fraction, b"000"].concat()[..3]);
        Some((number, skip_blanks(after)))
    }

    fn signed(&self, magnitude: i64) -> i64 {
        if self.negative { -magnitude } else { magnitude }
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..]
}

/// The whole part of the number at the start of `text`.
fn integer(text: &[u8]) -> Option<i64> {
    Number::read(text).map(|(number, _)| number.signed(number.whole))
}

/// Thousandths of the number at the start of `text`.
fn thousandths(text: &[u8]) -> Option<i64> {
    let (number, _) = Number::read(text)?;
    (number.whole <= DECIMAL_WHOLE_MAX).then(|| number.signed(number.whole * 1000 + number.thousandths))
}

/// Thousandths of `text` if it is a number and nothing else.
fn whole_thousandths(text: &[u8]) -> Option<i64> {
    let (number, rest) = Number::read(text)?;
    rest.is_empty().then(|| number.signed(number.whole * 1000 + number.thousandths))
}

#[cfg(test)]
mod tests;
