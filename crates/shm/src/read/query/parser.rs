//! Parser of queries: words to tree.

use pcre2::bytes::RegexBuilder;

use super::lexer::{Placed, Token, split};
use super::tree::{Compare, Condition, Node, QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QueryError, Test};
use crate::read::tags::{TagListError, TagSet};

/// Parses a query of one or more lines.
pub(super) fn parse(text: &str, caseless: bool) -> Result<Node, QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        let message = format!("Query longer than {QUERY_BYTES_MAX} bytes");
        return Err(QueryError { message, at: 0, length: 0, offset: None, text: String::new() });
    }
    let mut parser = Parser { text, caseless, words: split(text)?, next: 0 };
    let mut lines: Option<Node> = None;
    while let Some(word) = parser.words.get(parser.next) {
        if word.token == Token::End {
            parser.next += 1;
            continue;
        }
        let line = parser.expression(0)?;
        if parser.token() != &Token::End {
            return parser.fail(format!("Expected EOI got '{}'", parser.shown()));
        }
        lines = Some(match lines {
            Some(before) => Node::Or(Box::new(before), Box::new(line)),
            None => line,
        });
    }
    match lines {
        Some(node) => Ok(node),
        None => Err(QueryError { message: "Empty query".into(), at: 0, length: 0, offset: None, text: String::new() }),
    }
}

struct Parser<'a> {
    text: &'a str,
    caseless: bool,
    words: Vec<Placed>,
    next: usize,
}

/// Tags of a test, and true if `vxid` was among them.
struct Tags {
    set: TagSet,
    tags: usize,
    vxids: usize,
}

impl Parser<'_> {
    fn word(&self) -> &Placed {
        // The list ends with `End`, and the position never moves past it.
        &self.words[self.next.min(self.words.len() - 1)]
    }

    fn token(&self) -> &Token {
        &self.word().token
    }

    fn shown(&self) -> &str {
        let word = self.word();
        &self.text[word.at..word.at + word.length]
    }

    fn advance(&mut self) {
        if self.next + 1 < self.words.len() {
            self.next += 1;
        }
    }

    fn is_at(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(found) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is_at(sign);
        if found {
            self.advance();
        }
        found
    }

    fn value(&self, expected: &str) -> Result<String, QueryError> {
        match self.token() {
            Token::Value(value) => Ok(value.clone()),
            _ => self.fail(format!("Expected {expected} got '{}'", self.shown())),
        }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, QueryError> {
        self.fail_at(message, None)
    }

    fn fail_at<T>(&self, message: impl Into<String>, offset: Option<usize>) -> Result<T, QueryError> {
        let (message, text, word) = (message.into(), self.text.to_owned(), self.word());
        Err(QueryError { message, at: word.at, length: word.length, offset, text })
    }

    fn expect(&mut self, sign: &str) -> Result<(), QueryError> {
        if self.take(sign) {
            return Ok(());
        }
        match self.token() {
            Token::End => self.fail(format!("Expected '{sign}' got end of input")),
            _ => self.fail(format!("Expected '{sign}' got '{}'", self.shown())),
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Node, QueryError> {
        if depth > QUERY_DEPTH_MAX {
            return self.fail("Parentheses nested too deep");
        }
        let mut left = self.conjunction(depth)?;
        while self.take("or") {
            left = Node::Or(Box::new(left), Box::new(self.conjunction(depth)?));
        }
        Ok(left)
    }

    fn conjunction(&mut self, depth: usize) -> Result<Node, QueryError> {
        let mut left = self.negation(depth)?;
        while self.take("and") {
            left = Node::And(Box::new(left), Box::new(self.negation(depth)?));
        }
        Ok(left)
    }

    fn negation(&mut self, depth: usize) -> Result<Node, QueryError> {
        if self.take("not") { Ok(Node::Not(Box::new(self.primary(depth)?))) } else { self.primary(depth) }
    }

    fn primary(&mut self, depth: usize) -> Result<Node, QueryError> {
        if self.take("(") {
            let inner = self.expression(depth + 1)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let level = self.level()?;
        let Tags { set, tags, vxids } = self.tags()?;
        let prefix = if self.take(":") { Some(self.string("string")?.into_bytes()) } else { None };
        let field = if self.take("[") { Some(self.field()?) } else { None };
        if vxids > 0 {
            let bare_prefix = prefix.as_ref().is_none_or(Vec::is_empty);
            if vxids > 1 || tags > 0 || level.is_some() || !bare_prefix || field.is_some() {
                return self.fail("Unexpected taglist selection for vxid");
            }
            return self.vxid();
        }
        let condition = self.condition()?;
        Ok(Node::Test(Test { level, tags: set, prefix, field, condition }))
    }

    fn level(&mut self) -> Result<Option<(Compare, i32)>, QueryError> {
        if !self.take("{") {
            return Ok(None);
        }
        let value = self.value("integer")?;
        let (level, rest) = leading_integer(&value);
        let level = level as i32;
        if level < 0 {
            return self.fail("Expected positive integer");
        }
        let (compare, rest) = match rest.as_bytes().first() {
            Some(b'+') => (Compare::GreaterOrEqual, &rest[1..]),
            Some(b'-') => (Compare::LessOrEqual, &rest[1..]),
            _ => (Compare::Equal, rest),
        };
        if !rest.is_empty() {
            return self.fail("Syntax error in level limit");
        }
        self.advance();
        self.expect("}")?;
        Ok(Some((compare, level)))
    }

    fn tags(&mut self) -> Result<Tags, QueryError> {
        let mut found = Tags { set: TagSet::EMPTY, tags: 0, vxids: 0 };
        loop {
            if self.is_at("vxid") {
                found.vxids += 1;
            } else {
                let glob = self.value("VSL tag name")?;
                found.tags += 1;
                match TagSet::parse_glob(&glob) {
                    Ok(tags) => found.set.insert(tags),
                    Err(TagListError::None) => return self.fail("Tag name matches zero tags"),
                    Err(TagListError::Several) => return self.fail("Tag name is ambiguous"),
                    Err(TagListError::Syntax) => return self.fail("Syntax error in tag name"),
                }
            }
            self.advance();
            if !self.take(",") {
                return Ok(found);
            }
        }
    }

    fn string(&mut self, expected: &str) -> Result<String, QueryError> {
        let value = self.value(expected)?;
        self.advance();
        Ok(value)
    }

    fn field(&mut self) -> Result<usize, QueryError> {
        let value = self.value("integer")?;
        let (number, rest) = leading_integer(&value);
        let Some(number) = usize::try_from(number as i32).ok().filter(|number| *number > 0 && rest.is_empty()) else {
            return self.fail("Expected positive integer");
        };
        self.advance();
        self.expect("]")?;
        Ok(number)
    }

    fn comparison(&mut self) -> Option<Compare> {
        let Token::Sign(sign) = self.token() else { return None };
        let compare = match *sign {
            "==" => Compare::Equal,
            "!=" => Compare::NotEqual,
            "<" => Compare::Less,
            "<=" => Compare::LessOrEqual,
            ">" => Compare::Greater,
            ">=" => Compare::GreaterOrEqual,
            _ => return None,
        };
        self.advance();
        Some(compare)
    }

    fn condition(&mut self) -> Result<Condition, QueryError> {
        if matches!(self.token(), Token::End | Token::Sign("and" | "or" | ")")) {
            return Ok(Condition::Exists);
        }
        if let Some(compare) = self.comparison() {
            return Ok(match self.number()? {
                Number::Integer(number) => Condition::Integer(compare, number),
                Number::Thousandths(number) => Condition::Decimal(compare, number),
            });
        }
        for (word, wanted) in [("eq", true), ("ne", false)] {
            if self.take(word) {
                return Ok(Condition::Equal(wanted, self.string("string")?.into_bytes()));
            }
        }
        for (sign, wanted) in [("~", true), ("!~", false)] {
            if self.take(sign) {
                return self.regex(wanted);
            }
        }
        self.fail(format!("Expected operator got '{}'", self.shown()))
    }

    /// The number at this position; the caller moves on.
    fn number_here(&self) -> Result<Number, QueryError> {
        let value = self.value("number")?;
        if value.contains('.') {
            return match super::number::whole_thousandths(value.as_bytes()) {
                Some(number) => Ok(Number::Thousandths(number)),
                None => self.fail("Floating point parse error"),
            };
        }
        let (number, rest) = leading_integer(&value);
        if rest.trim_ascii_start().is_empty() { Ok(Number::Integer(number)) } else { self.fail("Integer parse error") }
    }

    fn number(&mut self) -> Result<Number, QueryError> {
        let number = self.number_here()?;
        self.advance();
        Ok(number)
    }

    fn regex(&mut self, wanted: bool) -> Result<Condition, QueryError> {
        let pattern = self.value("regular expression")?;
        match RegexBuilder::new().caseless(self.caseless).jit_if_available(true).build(&pattern) {
            Ok(regex) => {
                self.advance();
                Ok(Condition::Matches(wanted, regex))
            }
            Err(error) => {
                let message = format!("Regular expression error: {}", regex_message(&error));
                self.fail_at(message, Some(error.offset().unwrap_or(0)))
            }
        }
    }

    fn vxid(&mut self) -> Result<Node, QueryError> {
        let Some(compare) = self.comparison() else {
            return self.fail(format!("Expected vxid operator got '{}'", self.shown()));
        };
        match self.number_here()? {
            Number::Integer(number) => {
                self.advance();
                Ok(Node::Vxid(compare, number))
            }
            Number::Thousandths(_) => self.fail_at(format!("Expected integer got '{}'", self.shown()), Some(0)),
        }
    }
}

enum Number {
    Integer(i64),
    Thousandths(i64),
}

/// The library's message without its introduction.
#[must_use]
pub(super) fn regex_message(error: &pcre2::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once("at offset ").and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_, message)) => message.to_owned(),
        None => text,
    }
}

/// The integer at the start of `text`, as C reads one: blanks, a sign, decimal, `0x` hexadecimal or
/// `0` octal; saturates. Also returns the rest after it; without digits the number is 0 and the
/// rest is the whole text.
fn leading_integer(text: &str) -> (i64, &str) {
    let start = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (negative, unsigned) = match start.as_bytes().first() {
        Some(b'-') => (true, &start[1..]),
        Some(b'+') => (false, &start[1..]),
        _ => (false, start),
    };
    let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal.filter(|rest| rest.starts_with(|first: char| first.is_ascii_hexdigit())) {
        Some(rest) => (rest, 16),
        None if unsigned.starts_with('0') => (unsigned, 8),
        None => (unsigned, 10),
    };
    let count = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    if count == 0 {
        return (0, text);
    }
    let signed = format!("{}{}", if negative { "-" } else { "" }, &digits[..count]);
    let limit = if negative { i64::MIN } else { i64::MAX };
    (i64::from_str_radix(&signed, radix).unwrap_or(limit), &digits[count..])
}
