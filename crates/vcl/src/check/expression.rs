//! Expressions: their types, and the instructions that leave their value on the stack.
//!
//! Typing goes from left to right, and the expected type is passed down, because a literal means
//! different things in different places: `"192.0.2.1"` is an IP where an IP is expected, `1` needs
//! a unit where BYTES are. Compat: the permitted operands are those observed in Varnish 7.1.1, even
//! where that is odd (in a text, a sum of two TIMEs is text).

use super::address::listed;
use super::{Checked, Checker, Reported};
use crate::diagnostic::Draft;
use crate::source::{Kind, Sign};
use crate::tree::{At, Expression, ExpressionKind};
use std::net::IpAddr;
use surface::diagnostic::Code;
use surface::vcl::{Type, Var};
use vcl_run::program::{Arithmetic, Comparison, Op};
use vcl_run::regex::Regex;

/// Most strings on the stack before they are joined.
const JOIN_MAX: u16 = 64;

/// The type of a value on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Plain(Type),
    /// A concatenation; in comparisons it is never unset.
    Joined,
    /// An object of vcl_init; leaves nothing on the stack.
    Instance(u32),
}

impl Typed {
    pub(super) fn is_text(self) -> bool {
        matches!(self, Typed::Joined | Typed::Plain(Type::String | Type::Strands))
    }

    /// The type as far as the rules are concerned: all kinds of text are STRING.
    fn base(self) -> Option<Type> {
        match self {
            Typed::Plain(Type::Strands) | Typed::Joined => Some(Type::String),
            Typed::Plain(kind) => Some(kind),
            Typed::Instance(_) => None,
        }
    }
}

/// True if every value of the type can be converted to text.
fn has_text(kind: Type) -> bool {
    matches!(
        kind,
        Type::Bool
            | Type::Int
            | Type::Real
            | Type::Duration
            | Type::Time
            | Type::Bytes
            | Type::Blob
            | Type::Ip
            | Type::Backend
            | Type::Stevedore
            | Type::Acl
            | Type::Probe
            | Type::Header
            | Type::Enum
    )
}

/// True if a sign is allowed where that type is expected. Compat: Varnish 7.1.1 allows it only
/// there.
fn may_be_negative(wanted: Type) -> bool {
    matches!(wanted, Type::Int | Type::Real | Type::Duration | Type::String | Type::Strands)
}

/// Name of an expected type.
pub(super) fn wanted_name(kind: Type) -> &'static str {
    if kind == Type::Strands || kind == Type::Body { Type::String.name() } else { kind.name() }
}

impl Checker<'_> {
    pub(super) fn typed_name(&self, typed: Typed) -> String {
        match typed {
            Typed::Instance(index) => {
                let instance = &self.instances[index as usize];
                format!("{}.{}", instance.vmod, instance.class)
            }
            other => other.base().unwrap_or(Type::Void).name().to_owned(),
        }
    }

    /// Emits the value of an expression, converted to that type.
    pub(super) fn value(&mut self, expression: &Expression, wanted: Type) -> Checked<()> {
        if wanted == Type::Regex
            && let Some(pattern) = self.constant_text(expression)
        {
            let regex = self.regex(&pattern, expression)?;
            self.emitter.op(Op::Regex(regex));
            return Ok(());
        }
        if wanted == Type::Regex
            && let ExpressionKind::Sum(first, rest) = &expression.kind
            && self.constant_text(first).is_some()
        {
            return Err(self.pattern_ends(rest));
        }
        let typed = self.lowered(expression, wanted)?;
        self.convert(typed, wanted, expression)
    }

    /// Emits the value of an expression that must have exactly that type, without a conversion.
    pub(super) fn exact(&mut self, expression: &Expression, wanted: Type) -> Checked<()> {
        let typed = self.lowered(expression, wanted)?;
        if typed == Typed::Plain(wanted) { Ok(()) } else { Err(self.mismatch(typed, wanted, expression)) }
    }

    /// Reports a pattern that begins as a string and continues as something else.
    fn pattern_ends(&mut self, rest: &[(At, Expression)]) -> Reported {
        for (operator, operand) in rest {
            if !self.token(*operator).is(Sign::Plus) {
                let after = if self.call_context.is_empty() { "')'" } else { "','" };
                return self.expected(after, *operator);
            }
            if self.constant_text(operand).is_none() {
                let text = format!("Expected CSTR got {}\nat", self.shown(operand.first));
                return self.error_at(Code::PatternNotConstant, &text, operand.first);
            }
        }
        Reported
    }

    /// Converts the value on the stack to that type.
    fn convert(&mut self, from: Typed, wanted: Type, expression: &Expression) -> Checked<()> {
        let text = |kind| matches!(kind, Type::String | Type::Strands | Type::Body);
        match (from, wanted) {
            (Typed::Plain(kind), wanted) if kind == wanted => return Ok(()),
            (from, wanted) if from.is_text() && text(wanted) => return Ok(()),
            (Typed::Plain(Type::Blob), Type::Body) => return Ok(()),
            (Typed::Plain(kind), wanted) if has_text(kind) && text(wanted) => {
                self.emitter.op(Op::ToText);
                return Ok(());
            }
            (from, Type::Bool) if self.has_truth(from) => {
                self.emitter.test();
                return Ok(());
            }
            (Typed::Plain(Type::Int), Type::Real) => {
                self.emitter.make_real();
                return Ok(());
            }
            _ => {}
        }
        Err(self.mismatch(from, wanted, expression))
    }

    /// `Expression has type X, expected Y`
    fn mismatch(&mut self, from: Typed, wanted: Type, expression: &Expression) -> Reported {
        let text = |kind| matches!(kind, Type::String | Type::Strands | Type::Body);
        let (first, last) = (expression.first, expression.last);
        let name = self.typed_name(from);
        let wanted_name = wanted_name(wanted);
        let draft = Draft::new(Code::TypeMismatch);
        let mut draft = if text(wanted) {
            let draft = draft.text(format!("Cannot convert {name} to STRING.\n")).at(self.token(last + 1));
            draft.text(format!("\nExpression has type {name}, expected {wanted_name}\n"))
        } else {
            draft.text(format!("Expression has type {name}, expected {wanted_name}\n"))
        };
        draft = draft.between(self.token(first), self.token(last)).primary(self.token(first), self.token(last));
        if wanted == Type::Duration && first == last && matches!(expression.kind, ExpressionKind::Number(None)) {
            draft = draft.suggest(self.token(first), self.token(last), format!("{}s", self.text(first)));
        }
        self.error(first, draft.maybe_hint(conversion_hint(&name, wanted)))
    }

    fn has_truth(&self, typed: Typed) -> bool {
        typed.is_text() || matches!(typed, Typed::Plain(Type::Bool | Type::Int | Type::Duration | Type::Backend))
    }

    /// Emits the value of an expression, whatever its type.
    pub(super) fn lowered(&mut self, expression: &Expression, wanted: Type) -> Checked<Typed> {
        match &expression.kind {
            ExpressionKind::Or(operands) => self.logical(operands, "||", Op::OrElse),
            ExpressionKind::And(operands) => self.logical(operands, "&&", Op::AndThen),
            ExpressionKind::Not(operand) => {
                let typed = self.lowered(operand, wanted)?;
                self.truth(typed, "'!' must be followed by BOOL, found", expression.first, expression.last)?;
                self.emitter.op(Op::Not);
                Ok(Typed::Plain(Type::Bool))
            }
            ExpressionKind::Compare(operands, operator) => self.comparison(&operands.0, *operator, &operands.1, wanted),
            ExpressionKind::Sum(first, rest) => self.sum(first, rest, wanted),
            ExpressionKind::Product(first, rest) => self.product(first, rest, wanted),
            ExpressionKind::Juxtaposed(parts) => self.juxtaposed(parts),
            ExpressionKind::Negate(_) if !may_be_negative(wanted) => {
                let shown = if wanted == Type::Body { wanted.name() } else { wanted_name(wanted) };
                let text = format!("Unknown token '-' when looking for {shown}\n");
                let draft = self.draft_at(Code::ExpectedExpression, &text, expression.first);
                Err(self.error(expression.first, draft.hint("0 - x is the same")))
            }
            ExpressionKind::Negate(operand) => {
                let typed = self.lowered(operand, wanted)?;
                match typed {
                    Typed::Plain(Type::Int | Type::Real | Type::Duration | Type::Bytes | Type::Time) => {
                        self.emitter.negate();
                        Ok(typed)
                    }
                    _ => {
                        let name = self.typed_name(typed);
                        let text = format!("Operator - not possible on type {name}.");
                        Err(self.error_at(Code::OperatorImpossible, &text, expression.first))
                    }
                }
            }
            ExpressionKind::Group(inner) => self.lowered(inner, wanted),
            ExpressionKind::Text => self.text_literal(expression.first, wanted),
            ExpressionKind::Number(unit) => self.number(expression.first, *unit, wanted),
            ExpressionKind::Blob => {
                let bytes = super::backend::decode_blob(self.loaded.sources.bytes(self.token(expression.first)));
                let (start, len) = self.emitter.constant(&bytes);
                self.emitter.op(Op::Blob { start, len });
                Ok(Typed::Plain(Type::Blob))
            }
            ExpressionKind::Path(path) => self.path_value(path, expression.first, expression.last, wanted, false),
            ExpressionKind::Member(base, members) => {
                let typed = self.lowered(base, Type::String)?;
                self.members(typed, members)
            }
            ExpressionKind::Broken => Err(Reported),
            ExpressionKind::Unexpected => {
                let shown = self.shown(expression.first);
                let text = format!("Unknown token {shown} when looking for {}\n", wanted_name(wanted));
                Err(self.error_at(Code::ExpectedExpression, &text, expression.first))
            }
        }
    }

    /// Emits a BOOL, or reports the type found instead.
    fn truth(&mut self, typed: Typed, message: &str, first: At, last: At) -> Checked<()> {
        if typed == Typed::Plain(Type::Bool) {
            return Ok(());
        }
        if self.has_truth(typed) {
            self.emitter.test();
            return Ok(());
        }
        let text = format!("{message} {}.", self.typed_name(typed));
        Err(self.error_between(Code::BooleanExpected, &text, first, last))
    }

    fn logical(&mut self, operands: &[Expression], sign: &str, jump: fn(u32) -> Op) -> Checked<Typed> {
        let mut jumps = Vec::with_capacity(operands.len());
        for (index, operand) in operands.iter().enumerate() {
            let side = if index == 0 { "preceeded" } else { "followed" };
            let message = format!("'{sign}' must be {side} by BOOL, found");
            let typed = self.lowered(operand, Type::Bool)?;
            self.truth(typed, &message, operand.first, operand.last)?;
            if index + 1 < operands.len() {
                jumps.push(self.emitter.jump(jump));
            }
        }
        self.emitter.land(&jumps);
        Ok(Typed::Plain(Type::Bool))
    }

    fn comparison(&mut self, left: &Expression, operator: At, right: &Expression, wanted: Type) -> Checked<Typed> {
        let mut left_type = self.lowered(left, wanted)?;
        let shown = self.text_of_sign(operator);
        let sign = match self.token(operator).kind {
            Kind::Sign(sign) => sign,
            _ => return Err(Reported),
        };
        if left_type == Typed::Plain(Type::Ip)
            && self.dialect.forms.address_equals_acl
            && matches!(sign, Sign::Equal | Sign::NotEqual)
        {
            self.address_equals(right)?;
            if sign == Sign::NotEqual {
                self.emitter.op(Op::Not);
            }
            return Ok(Typed::Plain(Type::Bool));
        }
        let left_is_id = left_type == Typed::Plain(Type::Int) && self.read_an_id();
        if matches!(sign, Sign::Match | Sign::NotMatch) {
            if left_is_id {
                self.emitter.op(Op::ToText);
                left_type = Typed::Plain(Type::String);
            }
            match left_type {
                typed if typed.is_text() => match self.constant_text(right) {
                    Some(pattern) => {
                        let regex = self.regex(&pattern, right)?;
                        self.emitter.matches(regex);
                    }
                    None => {
                        self.value(right, Type::Regex)?;
                        self.emitter.op(Op::MatchValue);
                    }
                },
                Typed::Plain(Type::Ip) => {
                    self.value(right, Type::Acl)?;
                    if let Some(Op::Acl(acl)) = self.emitter.code.last().copied() {
                        self.emitter.code.pop();
                        self.emitter.op(Op::MatchAcl(acl));
                    } else {
                        self.emitter.op(Op::MatchAclValue);
                    }
                }
                other => {
                    let text = format!("Operator {shown} not possible on {}", self.typed_name(other));
                    let draft = self.draft_at(Code::OperatorImpossible, &text, operator);
                    return Err(self.error(operator, draft.hint("a STRING matches a regular expression, an IP an acl")));
                }
            }
            if sign == Sign::NotMatch {
                self.emitter.op(Op::Not);
            }
            return Ok(Typed::Plain(Type::Bool));
        }
        let comparison = match sign {
            Sign::Equal => Comparison::Equal,
            Sign::NotEqual => Comparison::NotEqual,
            Sign::Less => Comparison::Less,
            Sign::LessOrEqual => Comparison::LessOrEqual,
            Sign::Greater => Comparison::Greater,
            _ => Comparison::GreaterOrEqual,
        };
        let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let possible = match left_type.base() {
            Some(Type::Int | Type::Duration | Type::Bytes | Type::Real | Type::Time | Type::String) => true,
            Some(Type::Bool | Type::Ip | Type::Backend | Type::Acl | Type::Probe | Type::Stevedore | Type::Sub) => {
                equality
            }
            _ => false,
        };
        if !possible {
            let name = self.typed_name(left_type);
            let text = format!("Operator {shown} not possible on {name}");
            return Err(self.error_at(Code::OperatorImpossible, &text, operator));
        }
        let before_right = self.emitter.code.len();
        let mut right_type = self.lowered(right, left_type.base().unwrap_or(Type::Void))?;
        if left_is_id && right_type.is_text() {
            self.insert_to_text(before_right);
            left_type = Typed::Plain(Type::String);
        } else if left_type.is_text() && right_type == Typed::Plain(Type::Int) && self.read_an_id() {
            self.emitter.op(Op::ToText);
            right_type = Typed::Plain(Type::String);
        }
        let left_base = left_type.base().unwrap_or(Type::Void);
        if right_type.base() != Some(left_base) {
            let (left_name, right_name) = (self.typed_name(left_type), self.typed_name(right_type));
            let help = match (left_base, right_type.base()) {
                (Type::Duration, Some(Type::Int | Type::Real)) => Some("a duration has a unit: 10s"),
                (Type::Real, Some(Type::Int)) => Some("write the number with a dot: 1.0"),
                (Type::String, Some(Type::Int)) => Some("std.integer(text, 0) makes an INT of text"),
                (Type::String, Some(Type::Real)) => Some("std.real(text, 0.0) makes a REAL of text"),
                (Type::String, Some(Type::Duration)) => Some("std.duration(text, 0s) makes a DURATION of text"),
                (Type::String, _) => Some("\"\" + x makes a STRING of x"),
                (_, Some(Type::String)) => Some("both sides have one type; \"\" + x makes a STRING of x"),
                _ => None,
            };
            let text = format!("Comparison of different types: {left_name} '{shown}' {right_name}");
            let draft = self.draft_at(Code::ComparisonMismatch, &text, operator);
            return Err(self.error(operator, draft.maybe_hint(help)));
        }
        let joined = left_type == Typed::Joined || right_type == Typed::Joined;
        if joined {
            self.emitter.op(Op::CompareJoined(comparison));
        } else {
            self.emitter.compare(comparison);
        }
        Ok(Typed::Plain(Type::Bool))
    }

    /// True if the value emitted last is a transaction number. It is an INT, as in 7.3, and is
    /// compared with text as the STRING that it was before.
    fn read_an_id(&self) -> bool {
        matches!(self.emitter.code.last(), Some(Op::Read(Var::ReqXid | Var::BereqXid | Var::SessXid)))
    }

    fn text_of_sign(&self, operator: At) -> String {
        self.text(operator).to_owned()
    }

    fn sum(&mut self, first: &Expression, rest: &[(At, Expression)], wanted: Type) -> Checked<Typed> {
        let mut typed = self.lowered(first, wanted)?;
        let text_wanted = matches!(wanted, Type::String | Type::Strands | Type::Body | Type::Header);
        // Number of strings on the stack that wait to be joined; 0 while numbers are added.
        let mut waiting = 0u16;
        for (operator, operand) in rest {
            let plus = self.token(*operator).is(Sign::Plus);
            let operand_wanted = match typed.base() {
                Some(kind @ (Type::Int | Type::Real | Type::Duration | Type::Bytes | Type::Time)) => kind,
                Some(_) if text_wanted => Type::String,
                Some(kind) => kind,
                None => Type::String,
            };
            // The type of an operand is known only once it has been emitted; the left side is
            // converted to text before that if it will become text in any case.
            let left_is_text = typed.is_text();
            let before_operand = self.emitter.code.len();
            let right = self.lowered(operand, operand_wanted)?;
            let arithmetic = if plus { Arithmetic::Add } else { Arithmetic::Subtract };
            let result = match (typed, right) {
                (Typed::Plain(left), Typed::Plain(right)) if waiting == 0 => arithmetic.result(left, right),
                _ => None,
            };
            if let Some(result) = result {
                self.emitter.op(Op::Calculate(arithmetic));
                typed = Typed::Plain(result);
                continue;
            }
            let joinable = |typed: Typed| typed.is_text() || matches!(typed, Typed::Plain(kind) if has_text(kind));
            if plus && text_wanted && (!joinable(typed) || !joinable(right)) {
                let wrong = if joinable(typed) { right } else { typed };
                let text = format!("Cannot convert {} to STRING.", self.typed_name(wrong));
                let draft = self.draft_at(Code::TypeMismatch, &text, operand.last + 1);
                return Err(self.error(*operator, draft.primary(self.token(*operator), self.token(operand.last))));
            }
            if !plus || !(left_is_text || text_wanted) || !joinable(typed) || !joinable(right) {
                let (left_name, right_name) = (self.typed_name(typed), self.typed_name(right));
                let sign = self.text_of_sign(*operator);
                let text = format!("{left_name} {sign} {right_name} not possible.");
                let help = match (typed.base(), right.base()) {
                    (Some(Type::Duration), Some(Type::Int | Type::Real)) => Some("a duration has a unit: 10s"),
                    (Some(Type::String), _) if !plus => None,
                    (_, Some(Type::String)) if plus => Some("\"\" + ... makes text of what is added"),
                    _ => None,
                };
                let draft = self.draft_between(Code::OperatorImpossible, &text, *operator, operand.last);
                return Err(self.error(*operator, draft.maybe_hint(help)));
            }
            if waiting == 0 {
                waiting = 1;
                if !left_is_text {
                    self.insert_to_text(before_operand);
                }
            }
            if !right.is_text() {
                self.emitter.op(Op::ToText);
            }
            waiting += 1;
            if waiting == JOIN_MAX {
                self.emitter.op(Op::Join(waiting));
                waiting = 1;
            }
            typed = Typed::Joined;
        }
        if waiting > 1 {
            self.emitter.op(Op::Join(waiting));
        }
        Ok(typed)
    }

    /// Inserts a conversion between two operands that are already emitted. Jumps within the second
    /// one are adjusted.
    fn insert_to_text(&mut self, at: usize) {
        self.emitter.code.insert(at, Op::ToText);
        let from = at as u32;
        for op in &mut self.emitter.code[at + 1..] {
            if let Op::Jump(to) | Op::JumpUnless(to) | Op::AndThen(to) | Op::OrElse(to) = op
                && *to >= from
            {
                *to += 1;
            }
        }
    }

    /// Consecutive strings.
    fn juxtaposed(&mut self, parts: &[Expression]) -> Checked<Typed> {
        let mut waiting = 0;
        for part in parts {
            self.value(part, Type::String)?;
            waiting += 1;
            if waiting == JOIN_MAX {
                self.emitter.op(Op::Join(waiting));
                waiting = 1;
            }
        }
        if waiting > 1 {
            self.emitter.op(Op::Join(waiting));
        }
        Ok(Typed::Joined)
    }

    fn product(&mut self, first: &Expression, rest: &[(At, Expression)], wanted: Type) -> Checked<Typed> {
        let mut typed = self.lowered(first, wanted)?;
        for (operator, operand) in rest {
            let (sign, arithmetic) = match self.token(*operator).kind {
                Kind::Sign(Sign::Star) => ("*", Arithmetic::Multiply),
                Kind::Sign(Sign::Slash) => ("/", Arithmetic::Divide),
                _ => ("%", Arithmetic::Remainder),
            };
            let left_name = self.typed_name(typed);
            let operand_wanted = match (typed, arithmetic) {
                (Typed::Plain(Type::Int), _) => Type::Int,
                (Typed::Plain(_), Arithmetic::Remainder)
                | (Typed::Joined | Typed::Instance(_), Arithmetic::Remainder) => {
                    return Err(self.error_at(Code::OperatorImpossible, "Operator % only possible on INT.", *operator));
                }
                (Typed::Plain(Type::Bytes | Type::Duration | Type::Real), _) => Type::Real,
                _ => {
                    let text = format!("Operator {sign} not possible on type {left_name}.");
                    return Err(self.error_at(Code::OperatorImpossible, &text, *operator));
                }
            };
            let right = self.lowered(operand, operand_wanted)?;
            let result = match (typed, right) {
                (Typed::Plain(left), Typed::Plain(right)) => arithmetic.result(left, right),
                _ => None,
            };
            let Some(result) = result else {
                let right_name = self.typed_name(right);
                let help = match (typed.base(), right.base()) {
                    (Some(Type::Int), Some(Type::Duration | Type::Bytes)) => Some("put the number on the right"),
                    (Some(Type::Int), Some(Type::Real)) => {
                        Some("write the left number with a dot, or put it on the right")
                    }
                    _ => None,
                };
                let text = format!("{left_name} {sign} {right_name} not possible.");
                let draft = self.draft_at(Code::OperatorImpossible, &text, *operator);
                return Err(self.error(*operator, draft.maybe_hint(help)));
            };
            self.emitter.op(Op::Calculate(arithmetic));
            typed = Typed::Plain(result);
        }
        Ok(typed)
    }

    fn text_literal(&mut self, token: At, wanted: Type) -> Checked<Typed> {
        if wanted == Type::Ip {
            let written = String::from_utf8_lossy(self.loaded.sources.content(self.token(token))).into_owned();
            if written.starts_with('/') {
                let text = format!("Cannot convert to an IP address: '\"{written}\"'");
                let draft = self.draft_at(Code::AddressConstant, &text, token);
                return Err(self.error(token, draft.hint("a Unix socket has no IP address")));
            }
            match self.addresses_and_port(&written, "") {
                Ok((found, port))
                    if found.iter().any(|address| *address != found[0]) && !self.dialect.defaults.first_address =>
                {
                    let all = listed(found.iter(), port);
                    let text = format!(
                        "IP constant \"{written}\": resolves to too many addresses.\nOnly one IPv4 or IPv6 are allowed.\n{all}"
                    );
                    return Err(self.error_at(Code::AddressConstant, &text, token));
                }
                Ok((found, port)) => match found[0] {
                    IpAddr::V4(address) => self.emitter.op(Op::Ip4 { address: address.octets(), port }),
                    IpAddr::V6(address) => {
                        let (start, _) = self.emitter.constant(&address.octets());
                        self.emitter.op(Op::Ip6 { start, port });
                    }
                },
                Err(reason) => {
                    let text = format!(
                        "IP constant '\"{written}\"' could not be resolved to an IP address:\n\t{reason}\n(Sorry if that error message is gibberish.)"
                    );
                    let help =
                        written.contains('/').then_some("a network is an acl: acl name { ... } and client.ip ~ name");
                    let draft = self.draft_at(Code::AddressConstant, &text, token).maybe_hint(help);
                    return Err(self.error(token, draft));
                }
            }
            return Ok(Typed::Plain(Type::Ip));
        }
        let content = self.loaded.sources.content(self.token(token));
        self.emitter.text(content);
        Ok(Typed::Plain(Type::String))
    }

    fn number(&mut self, token: At, unit: Option<At>, wanted: Type) -> Checked<Typed> {
        let real = self.token(token).kind == Kind::Real;
        if wanted == Type::Bytes {
            let Some(unit) = unit else {
                let next = token + 1;
                let text = format!("Expected BYTES unit (B, KB, MB...) got {}", self.shown(next));
                let draft = self.draft_at(Code::UnknownUnit, &text, next);
                return Err(self.error(next, draft.hint("e.g. 10KB")));
            };
            let amount: f64 = self.text(token).parse().unwrap_or(0.0);
            let Some(factor) = bytes_unit(self.text(unit)) else {
                let text = format!("Unknown BYTES unit of measurement ([KMGTP][B]){}", self.shown(unit));
                let draft = Draft::new(Code::UnknownUnit).text(text).at(self.token(unit));
                return Err(self.error(unit, draft));
            };
            if factor == 1.0 && amount.fract() != 0.0 {
                let text = format!("Fractional BYTES not allowed{}", self.shown(unit));
                let draft = Draft::new(Code::UnknownUnit).text(text).at(self.token(unit));
                return Err(self.error(unit, draft));
            }
            self.emitter.op(Op::Bytes((amount * factor) as i64));
            return Ok(Typed::Plain(Type::Bytes));
        }
        if let Some(unit) = unit {
            let seconds = self.seconds(token, unit)?;
            self.emitter.op(Op::Duration(seconds));
            return Ok(Typed::Plain(Type::Duration));
        }
        if real || wanted == Type::Real {
            let value = self.text(token).parse().unwrap_or(0.0);
            self.emitter.op(Op::Real(value));
            return Ok(Typed::Plain(Type::Real));
        }
        if wanted == Type::Duration && self.dialect.forms.bare_seconds {
            self.emitter.op(Op::Duration(self.text(token).parse().unwrap_or(0.0)));
            return Ok(Typed::Plain(Type::Duration));
        }
        let value = self.text(token).parse().unwrap_or(i64::MAX);
        self.emitter.op(Op::Int(value));
        Ok(Typed::Plain(Type::Int))
    }

    /// The text of an expression that consists of string literals only.
    pub(super) fn constant_text(&self, expression: &Expression) -> Option<Vec<u8>> {
        match &expression.kind {
            ExpressionKind::Text => Some(self.loaded.sources.content(self.token(expression.first)).to_vec()),
            ExpressionKind::Group(inner) => self.constant_text(inner),
            ExpressionKind::Juxtaposed(parts) => {
                let parts: Option<Vec<Vec<u8>>> = parts.iter().map(|part| self.constant_text(part)).collect();
                Some(parts?.concat())
            }
            ExpressionKind::Sum(first, rest) => {
                let mut text = self.constant_text(first)?;
                for (operator, operand) in rest {
                    if !self.token(*operator).is(Sign::Plus) {
                        return None;
                    }
                    text.extend(self.constant_text(operand)?);
                }
                Some(text)
            }
            _ => None,
        }
    }

    /// Index of a pattern; each is compiled only once, as a check.
    pub(super) fn regex(&mut self, pattern: &[u8], expression: &Expression) -> Checked<u32> {
        // Patterns are text; other bytes are written as escapes, which PCRE reads as the same
        // bytes.
        let prefix = if self.dialect.forms.patterns_ignore_case { "(?i)" } else { "" };
        let pattern: String = pattern
            .utf8_chunks()
            .flat_map(|chunk| {
                let invalid = chunk.invalid().iter().map(|byte| format!("\\x{{{byte:02x}}}"));
                std::iter::once(chunk.valid().to_owned()).chain(invalid)
            })
            .fold(prefix.to_owned(), |all, part| all + &part);
        if let Some(known) = self.emitter.regex(&pattern) {
            return Ok(known);
        }
        if let Err(error) = Regex::check(&pattern) {
            let text = format!("Regexp compilation error:\n\n{}\n", error.text);
            let draft = self.draft_between(Code::RegexInvalid, &text, expression.first, expression.last);
            let hint = error.offset.map(|offset| format!("at byte {offset} of the pattern"));
            return Err(self.error(expression.first, draft.maybe_hint(hint)));
        }
        Ok(self.emitter.add_regex(pattern))
    }
}

/// Bytes per unit, ignoring case.
fn bytes_unit(unit: &str) -> Option<f64> {
    let factor = |power: i32| 1024f64.powi(power);
    Some(match unit.to_ascii_lowercase().as_str() {
        "b" => 1.0,
        "k" | "kb" => factor(1),
        "m" | "mb" => factor(2),
        "g" | "gb" => factor(3),
        "t" | "tb" => factor(4),
        "p" | "pb" => factor(5),
        _ => return None,
    })
}

fn conversion_hint(from: &str, wanted: Type) -> Option<String> {
    Some(match (from, wanted) {
        ("INT" | "REAL", Type::Duration) => "a duration has a unit: 10s".into(),
        ("STRING", Type::Duration) => "std.duration(..., fallback) makes a DURATION of text".into(),
        ("STRING", Type::Int) => "std.integer(..., fallback) makes an INT of text".into(),
        ("STRING", Type::Real) => "std.real(..., fallback) makes a REAL of text".into(),
        ("STRING", Type::Regex) => "a pattern is written as a string, it cannot be computed".into(),
        ("STRING", Type::Ip) => "std.ip(..., fallback) makes an IP of text".into(),
        ("STRING", Type::Acl | Type::Backend | Type::Probe) => {
            format!("name the {} without quotes", wanted.name().to_ascii_lowercase())
        }
        ("REAL" | "TIME" | "BYTES" | "IP", Type::Bool) => "compare it with something".into(),
        (name, Type::Backend) if name.contains('.') => "ask the object for one: .backend()".into(),
        _ => return None,
    })
}
