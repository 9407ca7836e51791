//! A query's words → its tree.

use pcre2::bytes::RegexBuilder;

use super::lexer::{Placed, Token, split};
use super::{Compare, Condition, Node, QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QueryError, Test};
use crate::read::tags::{TagListError, TagSet};

/// Parses a query of one or more lines.
pub(super) fn parse(text: &str, caseless: bool) -> Result<Node, QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        let message = format!("Query longer than {QUERY_BYTES_MAX} bytes");
        return Err(QueryError { message, at: 0, length: 0, text: String::new() });
    }
    let mut parser = Parser { text, caseless, words: split(text)?, next: 0 };
    let mut lines: Option<Node> = None;
    loop {
        while parser.token() == &Token::Line {
            parser.next += 1;
        }
        if parser.token() == &Token::End {
            break;
        }
        let line = parser.expression(0)?;
        if !matches!(parser.token(), Token::Line | Token::End) {
            return parser.fail(format!("Expected EOI got '{}'", parser.shown()));
        }
        lines = Some(match lines {
            Some(before) => Node::Or(Box::new(before), Box::new(line)),
            None => line,
        });
    }
    match lines {
        Some(node) => Ok(node),
        None => Err(QueryError { message: "Empty query".into(), at: 0, length: 0, text: String::new() }),
    }
}

struct Parser<'a> {
    text: &'a str,
    caseless: bool,
    words: Vec<Placed>,
    next: usize,
}

impl Parser<'_> {
    fn word(&self) -> &Placed {
        // The list ends with `End`, and nothing moves past it.
        &self.words[self.next.min(self.words.len() - 1)]
    }

    fn token(&self) -> &Token {
        &self.word().token
    }

    fn shown(&self) -> &str {
        let word = self.word();
        if word.token == Token::Line { "" } else { &self.text[word.at..word.at + word.length] }
    }

    fn advance(&mut self) {
        if self.next + 1 < self.words.len() {
            self.next += 1;
        }
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.token(), Token::Sign(found) if *found == sign);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.token(), Token::Word(word) if word == wanted);
        if found {
            self.advance();
        }
        found
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, QueryError> {
        let word = self.word();
        Err(QueryError { message: message.into(), at: word.at, length: word.length, text: self.text.to_owned() })
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), QueryError> {
        if self.take_sign(sign) {
            return Ok(());
        }
        let got = match self.token() {
            Token::End | Token::Line => "end of input".to_owned(),
            _ => format!("'{}'", self.shown()),
        };
        self.fail(format!("Expected '{sign}' got {got}"))
    }

    fn expression(&mut self, depth: usize) -> Result<Node, QueryError> {
        if depth > QUERY_DEPTH_MAX {
            return self.fail("Parentheses nested too deep");
        }
        let mut left = self.conjunction(depth)?;
        while self.take_word("or") {
            left = Node::Or(Box::new(left), Box::new(self.conjunction(depth)?));
        }
        Ok(left)
    }

    fn conjunction(&mut self, depth: usize) -> Result<Node, QueryError> {
        let mut left = self.negation(depth)?;
        while self.take_word("and") {
            left = Node::And(Box::new(left), Box::new(self.negation(depth)?));
        }
        Ok(left)
    }

    fn negation(&mut self, depth: usize) -> Result<Node, QueryError> {
        if self.take_word("not") { Ok(Node::Not(Box::new(self.primary(depth)?))) } else { self.primary(depth) }
    }

    fn primary(&mut self, depth: usize) -> Result<Node, QueryError> {
        if self.take_sign("(") {
            let inner = self.expression(depth + 1)?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        let level = self.level()?;
        if matches!(self.token(), Token::Word(word) if word == "vxid") {
            return self.vxid(level.is_some());
        }
        let tags = self.tags()?;
        let prefix = if self.take_sign(":") { Some(self.string()?.into_bytes()) } else { None };
        let field = if self.take_sign("[") { Some(self.field()?) } else { None };
        let condition = self.condition()?;
        Ok(Node::Test(Test { level, tags, prefix, field, condition }))
    }

    fn level(&mut self) -> Result<Option<(Compare, u32)>, QueryError> {
        if !self.take_sign("{") {
            return Ok(None);
        }
        let Token::Word(word) = self.token().clone() else { return self.fail("Expected integer") };
        let (digits, compare) = match word.as_bytes().last() {
            Some(b'+') => (&word[..word.len() - 1], Compare::GreaterOrEqual),
            Some(b'-') => (&word[..word.len() - 1], Compare::LessOrEqual),
            _ => (&word[..], Compare::Equal),
        };
        if word.starts_with('-') {
            return self.fail("Expected positive integer");
        }
        let Ok(level) = digits.parse() else { return self.fail("Syntax error in level limit") };
        self.advance();
        self.expect_sign("}")?;
        Ok(Some((compare, level)))
    }

    fn tags(&mut self) -> Result<TagSet, QueryError> {
        let mut set = TagSet::EMPTY;
        loop {
            let Token::Word(word) = self.token().clone() else {
                return self.fail(format!("Expected VSL tag name got '{}'", self.shown()));
            };
            if matches!(word.as_str(), "and" | "or" | "not") {
                return self.fail(format!("Expected VSL tag name got '{word}'"));
            }
            match TagSet::parse_list(&word) {
                Ok(tags) => set.insert(tags),
                Err(TagListError::None) => return self.fail("Tag name matches zero tags"),
                Err(TagListError::Several) => return self.fail("Tag name is ambiguous"),
                Err(TagListError::Syntax) => return self.fail("Syntax error in tag name"),
            }
            self.advance();
            if !self.take_sign(",") {
                return Ok(set);
            }
        }
    }

    fn string(&mut self) -> Result<String, QueryError> {
        match self.token().clone() {
            Token::Word(string) | Token::Quoted(string) => {
                self.advance();
                Ok(string)
            }
            _ => self.fail(format!("Expected string got '{}'", self.shown())),
        }
    }

    fn field(&mut self) -> Result<usize, QueryError> {
        let number = match self.token() {
            Token::Word(word) => word.parse().ok().filter(|number| *number > 0),
            _ => None,
        };
        let Some(number) = number else { return self.fail("Expected positive integer") };
        self.advance();
        self.expect_sign("]")?;
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
        if let Some(compare) = self.comparison() {
            return self.number(compare);
        }
        for (word, wanted) in [("eq", true), ("ne", false)] {
            if self.take_word(word) {
                return Ok(Condition::Equal(wanted, self.string()?.into_bytes()));
            }
        }
        for (sign, wanted) in [("~", true), ("!~", false)] {
            if self.take_sign(sign) {
                return self.regex(wanted);
            }
        }
        match self.token() {
            Token::End | Token::Line | Token::Sign(")") => Ok(Condition::Exists),
            Token::Word(word) if word == "and" || word == "or" => Ok(Condition::Exists),
            _ => self.fail(format!("Expected operator got '{}'", self.shown())),
        }
    }

    fn number(&mut self, compare: Compare) -> Result<Condition, QueryError> {
        let (Token::Word(word) | Token::Quoted(word)) = self.token().clone() else {
            return self.fail(format!("Expected number got '{}'", self.shown()));
        };
        let condition = if word.contains('.') {
            match decimal_operand(&word) {
                Some(number) => Condition::Decimal(compare, number),
                None => return self.fail("Floating point parse error"),
            }
        } else {
            match integer_operand(&word) {
                Some(number) => Condition::Integer(compare, number),
                None => return self.fail("Integer parse error"),
            }
        };
        self.advance();
        Ok(condition)
    }

    fn regex(&mut self, wanted: bool) -> Result<Condition, QueryError> {
        let here = self.word().clone();
        let pattern = self.string()?;
        match RegexBuilder::new().caseless(self.caseless).jit_if_available(true).build(&pattern) {
            Ok(regex) => Ok(Condition::Matches(wanted, regex)),
            Err(error) => {
                let message = format!("Regular expression error: {}", regex_message(&error));
                let at = here.at + error.offset().unwrap_or(0).min(here.length.saturating_sub(1));
                Err(QueryError { message, at, length: here.at + here.length - at, text: self.text.to_owned() })
            }
        }
    }

    fn vxid(&mut self, with_level: bool) -> Result<Node, QueryError> {
        self.advance();
        if with_level || matches!(self.token(), Token::Sign(":" | "[" | ",")) {
            return self.fail("Unexpected taglist selection for vxid");
        }
        let Some(compare) = self.comparison() else {
            return self.fail(format!("Expected vxid operator got '{}'", self.shown()));
        };
        let number = match self.token() {
            Token::Word(word) | Token::Quoted(word) => integer_operand(word),
            _ => None,
        };
        let Some(number) = number else { return self.fail(format!("Expected integer got '{}'", self.shown())) };
        self.advance();
        Ok(Node::Vxid(compare, number))
    }
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

/// Decimal, `0x` hexadecimal or `0` octal, with a sign; saturates.
fn integer_operand(word: &str) -> Option<i64> {
    let word = word.trim();
    let (negative, digits) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = i64::from_str_radix(digits, radix).unwrap_or(i64::MAX);
    Some(if negative { -value } else { value })
}

/// Thousandths.
fn decimal_operand(word: &str) -> Option<i64> {
    let word = word.trim();
    let digits = word.strip_prefix('-').unwrap_or(word);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().filter(|byte| *byte == b'.').count() == 1;
    if plain { super::thousandths(word.as_bytes()) } else { None }
}
