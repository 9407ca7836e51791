//! Parser: tokens to a tree.
//!
//! After an error the parser reports what it expected and continues with the next statement or
//! declaration. For a token that begins no expression it leaves [`ExpressionKind::Unexpected`] in
//! the tree: only the checker can determine the expected type. Depth is counted; see
//! [`surface::limits::VCL_NESTING_MAX`]. Next files: `parse/declaration.rs`, `parse/expression.rs`.

mod declaration;
mod expression;
mod legacy;

use crate::diagnostic::{Diagnostics, Draft};
use crate::dialect::{Dialect, StatementWord};
use crate::source::{Kind, Sign, Sources, Token};
use crate::tree::{At, Block, Declaration, Expression, ExpressionKind, Name, Path, ReturnAction, Statement};
use std::collections::HashSet;
use surface::diagnostic::Code;
use surface::limits::VCL_NESTING_MAX;
use surface::vcl::Action;

/// The result of a syntax error: no value, since it has been reported.
#[derive(Debug)]
pub(crate) struct Broken;

type Parsed<T> = Result<T, Broken>;

/// The tree of one row of tokens, and names whose declaration is broken (their uses are not
/// reported).
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) damaged: HashSet<String>,
    /// The first token that the checker has to report.
    pub(crate) unexpected: Option<At>,
}

/// Parses the tokens from `start` to the next [`Kind::End`].
pub(crate) fn parse(
    sources: &Sources,
    tokens: &[Token],
    start: At,
    dialect: &'static Dialect,
    diagnostics: &mut Diagnostics,
) -> Tree {
    let mut parser = Parser {
        sources,
        tokens,
        next: start,
        depth: 0,
        unexpected: false,
        too_deep: false,
        unclosed: false,
        dialect,
        diagnostics,
        damaged: HashSet::new(),
        first_unexpected: None,
    };
    let declarations = parser.declarations();
    Tree { declarations, damaged: parser.damaged, unexpected: parser.first_unexpected }
}

struct Parser<'a> {
    sources: &'a Sources,
    tokens: &'a [Token],
    next: At,
    depth: usize,
    /// Ends the statement, but keeps its parsed part: an
    /// [`crate::tree::ExpressionKind::Unexpected`] was left, or its end is not the expected one.
    /// The preceding part may be wrong, too, and Varnish would have reported only that.
    unexpected: bool,
    too_deep: bool,
    /// A block lacks its `}`: all enclosing blocks end here, too.
    unclosed: bool,
    dialect: &'static Dialect,
    diagnostics: &'a mut Diagnostics,
    damaged: HashSet<String>,
    first_unexpected: Option<At>,
}

/// Line number of `before`, if `token` is on a later one.
pub(crate) fn line_left(sources: &Sources, before: Token, token: Token) -> Option<u32> {
    let (line, next) = (sources.place(before).0, sources.place(token).0);
    (before.source == token.source && line < next).then_some(line)
}

impl<'a> Parser<'a> {
    fn token_at(&self, index: At) -> Token {
        self.tokens[(index as usize).min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> Token {
        self.token_at(self.next)
    }

    fn peek_word(&self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == Kind::Word).then(|| self.sources.text(token))
    }

    fn is_next(&self, sign: Sign) -> bool {
        self.peek().is(sign)
    }

    /// Moves past a token, but never past the end.
    fn advance(&mut self) -> At {
        let here = self.next;
        if self.peek().kind != Kind::End {
            self.next += 1;
        }
        here
    }

    fn accept(&mut self, sign: Sign) -> bool {
        let found = self.is_next(sign);
        if found {
            self.advance();
        }
        found
    }

    fn error(&mut self, order: At, draft: Draft) -> Broken {
        self.diagnostics.error(self.sources, u64::from(order), draft);
        Broken
    }

    fn error_here(&mut self, code: Code, text: &str, help: Option<&str>) -> Broken {
        let draft = Draft::new(code).text(format!("{text}\n")).at(self.peek()).maybe_hint(help);
        self.error(self.next, draft)
    }

    /// Ends the statement at a token that only the checker can report.
    fn leave_unexpected(&mut self) {
        self.unexpected = true;
        self.first_unexpected = self.first_unexpected.or(Some(self.next));
    }

    /// `Expected X got Y`.
    fn expected(&mut self, what: &str) -> Broken {
        self.expected_with(what, None)
    }

    fn expected_with(&mut self, what: &str, help: Option<&str>) -> Broken {
        if self.unexpected || self.too_deep {
            return Broken;
        }
        let got = self.sources.shown(self.peek());
        let text = format!("Expected {what} got {got}\nat");
        self.error_here(Code::Expected, &text, help)
    }

    fn expect(&mut self, sign: Sign, shown: &str) -> Parsed<At> {
        if self.is_next(sign) { Ok(self.advance()) } else { Err(self.expected(shown)) }
    }

    fn expect_word(&mut self) -> Parsed<At> {
        if self.peek().kind == Kind::Word { Ok(self.advance()) } else { Err(self.expected("ID")) }
    }

    fn semicolon(&mut self) -> Parsed<At> {
        if self.is_next(Sign::Semicolon) {
            return Ok(self.advance());
        }
        let line =
            self.next.checked_sub(1).and_then(|before| line_left(self.sources, self.token_at(before), self.peek()));
        let missing = line.map(|line| format!("a ; is missing at the end of line {line}"));
        let help = match self.peek().kind {
            Kind::Text if !self.dialect.forms.juxtaposition => Some("strings are joined with +"),
            _ if missing.is_some() => missing.as_deref(),
            Kind::Sign(Sign::BraceClose) => Some("a ; ends the statement"),
            _ => None,
        };
        Err(self.expected_with("';'", help))
    }

    /// A name with dots in it; the checker reports that dots are not allowed.
    fn name(&mut self) -> Parsed<Name> {
        let first = self.expect_word()?;
        let mut last = first;
        while self.is_next(Sign::Dot) && self.token_at(self.next + 1).kind == Kind::Word {
            self.advance();
            last = self.advance();
        }
        Ok(Name { first, last })
    }

    fn name_text(&self, name: Name) -> String {
        (name.first..=name.last).map(|index| self.sources.text(self.token_at(index))).collect()
    }

    /// Runs a part of the grammar one nesting level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= VCL_NESTING_MAX {
            if !self.too_deep {
                self.error_here(
                    Code::NestedTooDeep,
                    &format!("Nested too deep (more than {VCL_NESTING_MAX} levels) at"),
                    None,
                );
            }
            self.too_deep = true;
            // Nothing after this point can be parsed usefully.
            while self.peek().kind != Kind::End {
                self.next += 1;
            }
            return Err(Broken);
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn block(&mut self) -> Parsed<Block> {
        let open = self.expect(Sign::BraceOpen, "'{'")?;
        self.deeper(|parser| {
            let mut statements = Vec::new();
            loop {
                if parser.accept(Sign::BraceClose) {
                    return Ok(Block { open, statements });
                }
                if parser.unclosed {
                    return Ok(Block { open, statements });
                }
                let token = parser.peek();
                if parser.begins_declaration() {
                    let got = parser.sources.shown(token);
                    let text = format!("Symbol cannot be used here.\nExpected '}}' got {got}\nat\n");
                    let draft = Draft::new(Code::Unclosed).text(text).at(token);
                    let draft = draft.text("opened here:\n").at(parser.token_at(open));
                    parser.error(parser.next, draft.hint("a } is missing before it"));
                    parser.unclosed = true;
                    return Ok(Block { open, statements });
                }
                if token.kind == Kind::End {
                    if !parser.too_deep {
                        let opened = parser.token_at(open);
                        let draft = Draft::new(Code::Unclosed).text("Expected '}' got end of input\nat\n").at(token);
                        parser.error(parser.next, draft.text("opened here:\n").at(opened));
                    }
                    return Ok(Block { open, statements });
                }
                let before = parser.next;
                match parser.statement() {
                    Ok(statement) => statements.extend(statement),
                    Err(Broken) => parser.recover(before),
                }
                if parser.unexpected {
                    parser.unexpected = false;
                    parser.recover(before);
                }
            }
        })
    }

    /// True if a declaration begins where a statement is expected: `sub name {`.
    fn begins_declaration(&self) -> bool {
        let next = |ahead: At| self.token_at(self.next + ahead);
        matches!(self.peek_word(), Some("sub" | "acl" | "backend" | "probe"))
            && next(1).kind == Kind::Word
            && next(2).is(Sign::BraceOpen)
    }

    /// Continues after the `;` of a broken statement, or at the `}` of its block. Brackets opened
    /// on the way are skipped.
    fn recover(&mut self, statement: At) {
        if self.next == statement {
            self.advance();
        }
        let parentheses = |token: Token| i32::from(token.is(Sign::ParenOpen)) - i32::from(token.is(Sign::ParenClose));
        let mut unclosed: i32 = (statement..self.next).map(|index| parentheses(self.token_at(index))).sum();
        let mut open = 0usize;
        loop {
            let token = self.peek();
            unclosed += parentheses(token);
            match token.kind {
                Kind::End => return,
                Kind::Sign(Sign::BraceOpen) => open += 1,
                Kind::Sign(Sign::BraceClose) if open == 0 => return,
                Kind::Sign(Sign::BraceClose) => {
                    open -= 1;
                    if open == 0 {
                        self.advance();
                        return;
                    }
                }
                Kind::Sign(Sign::Semicolon) if open == 0 => {
                    self.advance();
                    // Inside parentheses, anything that cannot begin a statement still belongs to
                    // the broken one.
                    let begins = matches!(
                        self.peek().kind,
                        Kind::Word | Kind::End | Kind::Sign(Sign::BraceOpen | Sign::BraceClose)
                    );
                    if unclosed <= 0 || begins {
                        return;
                    }
                    continue;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// One statement; `Ok(None)` only for parts of the text that were given up.
    fn statement(&mut self) -> Parsed<Option<Statement>> {
        if self.is_next(Sign::BraceOpen) {
            return self.block().map(|block| Some(Statement::Block(block)));
        }
        let Some(word) = self.peek_word() else {
            return Err(self.error_here(Code::ExpectedStatement, "Expected an action, 'if', '{' or '}'", None));
        };
        let meaning = self
            .dialect
            .statements
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word))
            .map(|&(_, meaning)| meaning);
        let Some(meaning) = meaning else {
            return self.use_statement().map(Some);
        };
        let keyword = self.advance();
        let statement = match meaning {
            StatementWord::Set => self.set()?,
            StatementWord::Unset => {
                let target = self.variable()?;
                self.end_statement();
                Statement::Unset { target }
            }
            StatementWord::Call => {
                if self.peek().kind != Kind::Word {
                    return Err(self.expected("ID"));
                }
                let callee = self.primary()?;
                self.end_statement();
                Statement::Call { callee }
            }
            StatementWord::Return => self.return_statement(keyword)?,
            StatementWord::If => self.if_statement()?,
            StatementWord::New => self.new_statement(keyword)?,
            StatementWord::Ban => Statement::Ban { value: self.in_parentheses()? },
            StatementWord::HashData => Statement::HashData { keyword, value: self.in_parentheses()? },
            StatementWord::Synthetic => Statement::Synthetic { keyword, value: self.in_parentheses()? },
            old => return self.legacy_statement(keyword, old).map(Some),
        };
        Ok(Some(statement))
    }

    /// The `;`, unless the statement was given up inside an expression. Without it the statement
    /// stays in the tree.
    fn end_statement(&mut self) {
        if !self.unexpected {
            self.unexpected = self.semicolon().is_err();
        }
    }

    /// Like [`Self::end_statement`], after `)`.
    fn end_parentheses(&mut self) {
        if !self.unexpected {
            self.unexpected = self.expect(Sign::ParenClose, "')'").and_then(|_| self.semicolon()).is_err();
        }
    }

    /// The name of a variable in `set` and `unset`.
    fn variable(&mut self) -> Parsed<Path> {
        if self.peek().kind != Kind::Word {
            return Err(self.expected("ID"));
        }
        self.path(false)
    }

    fn set(&mut self) -> Parsed<Statement> {
        let target = self.variable()?;
        let operator = self.next;
        if !matches!(
            self.peek().kind,
            Kind::Sign(Sign::Assign | Sign::PlusAssign | Sign::MinusAssign | Sign::StarAssign | Sign::SlashAssign)
        ) {
            let help = self.is_next(Sign::Equal).then_some("== compares; = sets");
            self.expected_with("'='", help);
            self.unexpected = true;
            let value = Expression { first: operator, last: operator, kind: ExpressionKind::Broken };
            return Ok(Statement::Set { target, operator, value });
        }
        self.advance();
        let value = self.expression()?;
        self.end_statement();
        Ok(Statement::Set { target, operator, value })
    }

    fn in_parentheses(&mut self) -> Parsed<Expression> {
        self.expect(Sign::ParenOpen, "'('")?;
        let value = self.expression()?;
        self.end_parentheses();
        Ok(value)
    }

    fn return_statement(&mut self, keyword: At) -> Parsed<Statement> {
        if self.is_next(Sign::Semicolon) {
            self.advance();
            return Ok(Statement::Return { keyword, action: None });
        }
        if !self.is_next(Sign::ParenOpen) {
            return Err(self.expected_with("'('", Some("the action stands in parentheses: return (pass);")));
        }
        self.advance();
        let name = self.expect_word()?;
        let mut next = self.next;
        let mut arguments = None;
        if self.is_next(Sign::ParenOpen) {
            let word = self.sources.text(self.token_at(name));
            if Action::ALL.iter().any(|action| action.name() == word && !action.takes_arguments()) {
                return Err(self.error_here(Code::ReturnArguments, "Arguments not allowed.", None));
            }
            arguments = Some(self.arguments("')'")?);
            next = self.next;
        }
        self.end_parentheses();
        Ok(Statement::Return { keyword, action: Some(ReturnAction { name, arguments, next }) })
    }

    fn if_statement(&mut self) -> Parsed<Statement> {
        let mut branches = Vec::new();
        loop {
            if !self.is_next(Sign::ParenOpen) {
                return Err(self.expected_with("'('", Some("the condition stands in parentheses")));
            }
            self.advance();
            let condition = self.expression()?;
            if !self.unexpected && !self.is_next(Sign::ParenClose) {
                let help = match (self.peek().kind, self.peek_word()) {
                    (Kind::Sign(Sign::Assign), _) => Some("= sets; == compares"),
                    (Kind::Sign(Sign::BitAnd), _) | (_, Some("and" | "AND")) => Some("both conditions: a && b"),
                    (Kind::Sign(Sign::BitOr), _) | (_, Some("or" | "OR")) => Some("one of two conditions: a || b"),
                    (_, Some("not" | "NOT")) => Some("what is not so: !(a) or a !~ b"),
                    (_, Some("eq" | "is")) => Some("equal texts: a == b"),
                    (Kind::Sign(Sign::BraceOpen), _) => Some("a ) is missing before the {"),
                    _ => None,
                };
                self.expected_with("')'", help);
                self.unexpected = true;
            } else if !self.unexpected {
                self.advance();
                if !self.is_next(Sign::BraceOpen) {
                    self.expected_with("'{'", Some("what an if does stands in braces"));
                    self.unexpected = true;
                }
            }
            if self.unexpected {
                branches.push((condition, Block { open: self.next, statements: Vec::new() }));
                return Ok(Statement::If { branches, otherwise: None });
            }
            branches.push((condition, self.block()?));
            let Some(word) = self.peek_word() else { break };
            if self.dialect.else_if.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                self.advance();
            } else if word.eq_ignore_ascii_case("else") {
                self.advance();
                if self.peek_word().is_some_and(|word| word.eq_ignore_ascii_case("if")) {
                    self.advance();
                } else if self.is_next(Sign::BraceOpen) {
                    let otherwise = Some(self.block()?);
                    return Ok(Statement::If { branches, otherwise });
                } else {
                    return Err(self.error_here(Code::ElseAlone, "'else' must be followed by 'if' or '{'", None));
                }
            } else {
                break;
            }
        }
        Ok(Statement::If { branches, otherwise: None })
    }

    fn new_statement(&mut self, keyword: At) -> Parsed<Statement> {
        let name = self.name()?;
        let damaged = |parser: &mut Self, broken: Broken| {
            let text = parser.name_text(name);
            parser.damaged.insert(text);
            broken
        };
        if !self.is_next(Sign::Assign) {
            let broken = self.expected("'='");
            return Err(damaged(self, broken));
        }
        self.advance();
        if self.peek().kind != Kind::Word {
            let broken = self.expected("ID");
            return Err(damaged(self, broken));
        }
        let class = match self.path(true) {
            Ok(class) => class,
            Err(broken) => return Err(damaged(self, broken)),
        };
        if !self.unexpected
            && let Err(broken) = self.semicolon()
        {
            return Err(damaged(self, broken));
        }
        Ok(Statement::New { keyword, name, class })
    }

    /// A statement that begins with a name: a call of a function or method.
    fn use_statement(&mut self) -> Parsed<Statement> {
        let path = self.path(true)?;
        let next = self.next;
        let called = path.segments.last().is_some_and(|segment| segment.arguments.is_some());
        let ended = called && !self.unexpected && self.accept(Sign::Semicolon);
        // If it does not end here, the checker can determine the meaning of the name, and so the
        // token expected after it.
        if !ended {
            self.leave_unexpected();
        }
        Ok(Statement::Use { path, next, ended })
    }
}
