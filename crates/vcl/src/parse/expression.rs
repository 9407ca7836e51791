//! Expressions, by recursive descent: `||`, `&&`, `!`, comparison, `+ -`, `* / %`, sign, and
//! operands.

use super::{Broken, Parsed, Parser};
use crate::source::{Kind, Sign};
use crate::tree::{Argument, Arguments, At, Expression, ExpressionKind, Path, Segment};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.deeper(Self::alternatives)
    }

    fn alternatives(&mut self) -> Parsed<Expression> {
        self.chain(Sign::Or, Self::conjunction, ExpressionKind::Or)
    }

    fn conjunction(&mut self) -> Parsed<Expression> {
        self.chain(Sign::And, Self::negation, ExpressionKind::And)
    }

    fn chain(
        &mut self,
        sign: Sign,
        operand: fn(&mut Self) -> Parsed<Expression>,
        kind: fn(Vec<Expression>) -> ExpressionKind,
    ) -> Parsed<Expression> {
        let first = operand(self)?;
        if self.unexpected || !self.is_next(sign) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while !self.unexpected && self.accept(sign) {
            operands.push(operand(self)?);
        }
        let (first, last) = (operands[0].first, operands[operands.len() - 1].last);
        Ok(Expression { first, last, kind: kind(operands) })
    }

    fn negation(&mut self) -> Parsed<Expression> {
        if !self.is_next(Sign::Not) {
            return self.comparison();
        }
        let first = self.advance();
        let operand = self.comparison()?;
        Ok(Expression { first, last: operand.last, kind: ExpressionKind::Not(Box::new(operand)) })
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let left = self.joined()?;
        let compares = matches!(
            self.peek().kind,
            Kind::Sign(
                Sign::Equal
                    | Sign::NotEqual
                    | Sign::Less
                    | Sign::LessOrEqual
                    | Sign::Greater
                    | Sign::GreaterOrEqual
                    | Sign::Match
                    | Sign::NotMatch
            )
        );
        if self.unexpected || !compares {
            return Ok(left);
        }
        let operator = self.advance();
        let right = self.joined()?;
        Ok(Expression {
            first: left.first,
            last: right.last,
            kind: ExpressionKind::Compare(Box::new((left, right)), operator),
        })
    }

    /// Consecutive strings, in the dialects that allow them.
    fn joined(&mut self) -> Parsed<Expression> {
        let first = self.sum()?;
        if self.unexpected || !self.dialect.forms.juxtaposition || !self.begins_text() {
            return Ok(first);
        }
        let mut parts = vec![first];
        while !self.unexpected && self.begins_text() {
            parts.push(self.sum()?);
        }
        let (first, last) = (parts[0].first, parts[parts.len() - 1].last);
        Ok(Expression { first, last, kind: ExpressionKind::Juxtaposed(parts) })
    }

    fn sum(&mut self) -> Parsed<Expression> {
        self.operations(&[Sign::Plus, Sign::Minus], Self::product, ExpressionKind::Sum)
    }

    fn product(&mut self) -> Parsed<Expression> {
        self.operations(&[Sign::Star, Sign::Slash, Sign::Percent], Self::signed, ExpressionKind::Product)
    }

    fn operations(
        &mut self,
        signs: &[Sign],
        operand: fn(&mut Self) -> Parsed<Expression>,
        kind: fn(Box<Expression>, Vec<(u32, Expression)>) -> ExpressionKind,
    ) -> Parsed<Expression> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while !self.unexpected && signs.iter().any(|&sign| self.is_next(sign)) {
            let operator = self.advance();
            rest.push((operator, operand(self)?));
        }
        let Some((_, last)) = rest.last() else { return Ok(first) };
        let (first_token, last) = (first.first, last.last);
        Ok(Expression { first: first_token, last, kind: kind(Box::new(first), rest) })
    }

    fn signed(&mut self) -> Parsed<Expression> {
        if !self.is_next(Sign::Minus) {
            return self.primary();
        }
        let first = self.advance();
        let operand = self.deeper(Self::signed)?;
        Ok(Expression { first, last: operand.last, kind: ExpressionKind::Negate(Box::new(operand)) })
    }

    pub(super) fn primary(&mut self) -> Parsed<Expression> {
        let token = self.peek();
        let first = self.next;
        let kind = match token.kind {
            Kind::Word => {
                let path = self.path(true)?;
                let last = path.last();
                return Ok(Expression { first, last, kind: ExpressionKind::Path(path) });
            }
            Kind::Text => {
                self.advance();
                ExpressionKind::Text
            }
            Kind::Blob => {
                self.advance();
                ExpressionKind::Blob
            }
            Kind::Integer | Kind::Real => {
                self.advance();
                let unit = (self.peek().kind == Kind::Word).then(|| self.advance());
                ExpressionKind::Number(unit)
            }
            Kind::Sign(Sign::ParenOpen) => {
                self.advance();
                let inner = self.expression()?;
                if !self.unexpected {
                    self.expect(Sign::ParenClose, "')'")?;
                }
                ExpressionKind::Group(Box::new(inner))
            }
            _ => {
                self.leave_unexpected();
                return Ok(Expression { first, last: first, kind: ExpressionKind::Unexpected });
            }
        };
        let last = if self.next > first { self.next - 1 } else { first };
        let mut base = Expression { first, last, kind };
        if !self.unexpected && self.is_next(Sign::Dot) {
            let mut members = Vec::new();
            while !self.unexpected && self.accept(Sign::Dot) {
                members.push(self.segment(true)?);
            }
            let last = members.last().map_or(last, Segment::last);
            base = Expression { first, last, kind: ExpressionKind::Member(Box::new(base), members) };
        }
        Ok(base)
    }

    /// Words separated by dots; with `calls`, also their arguments.
    pub(super) fn path(&mut self, calls: bool) -> Parsed<Path> {
        let mut segments = vec![self.segment(calls)?];
        while !self.unexpected && self.is_next(Sign::Dot) {
            if !calls && !self.is_segment(self.next + 1) {
                // The target of set or unset ends here; the caller reports what it expects instead
                // of the dot.
                break;
            }
            self.advance();
            segments.push(self.segment(calls)?);
        }
        Ok(Path { segments })
    }

    /// True if a path can continue with this token: a word or, after `http.`, a string.
    fn is_segment(&self, index: At) -> bool {
        match self.token_at(index).kind {
            Kind::Word => true,
            Kind::Text => index >= 2 && self.sources.bytes(self.token_at(index - 2)) == b"http",
            _ => false,
        }
    }

    /// One word of a path; after `http` it may be a string.
    fn segment(&mut self, calls: bool) -> Parsed<Segment> {
        let quoted = self.peek().kind == Kind::Text && self.is_segment(self.next);
        let name = if quoted { self.advance() } else { self.expect_word()? };
        let arguments = if calls && self.is_next(Sign::ParenOpen) { Some(self.arguments("','")?) } else { None };
        Ok(Segment { name, arguments })
    }

    /// `(a, name = b)`; `after` names the token expected after an argument, for messages.
    pub(super) fn arguments(&mut self, after: &str) -> Parsed<Arguments> {
        let open = self.advance();
        let mut items = Vec::new();
        while !self.unexpected && !self.is_next(Sign::ParenClose) {
            let named = self.peek().kind == Kind::Word && self.token_at(self.next + 1).is(Sign::Assign);
            let name = named.then(|| self.advance());
            if named {
                self.advance();
            }
            items.push(Argument { name, value: self.expression()? });
            if self.unexpected || self.is_next(Sign::ParenClose) {
                break;
            }
            if !self.is_next(Sign::Comma) {
                let help = (self.peek().kind == Kind::Text).then_some("strings are joined with +");
                return Err(self.expected_with(after, help));
            }
            self.advance();
            if after == "')'" && self.is_next(Sign::ParenClose) {
                // `return (synth(200,))`: the comma announces another argument.
                items.push(Argument { name: None, value: self.expression()? });
            }
        }
        let close =
            if self.unexpected { self.next } else { self.expect(Sign::ParenClose, "')'").map_err(|_| Broken)? };
        Ok(Arguments { open, items, close })
    }
}
