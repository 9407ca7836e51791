//! A naive evaluator that walks a random program directly: no stack, no handles, no jumps, no
//! constants.
//!
//! The evaluator must produce the same result. Irregularities of the language (an unset string
//! equals nothing, but a joined one is text like any other) are implemented here a second time.

use super::random::{Duration, HEADERS, Integer, RandomProgram, Real, Shown, Statement, Text, Truth};
use std::cmp::Ordering;

/// Longest text; programs that make longer ones are not compared.
const TEXT_BYTES_MAX: usize = 10_000;

/// Reason why a walk stops early.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    Return(&'static str),
    /// `return;`
    Leave,
    Fail(String),
    TooLong,
}

type Walked<T> = Result<T, End>;

/// The state of a walk.
#[derive(Default)]
pub(super) struct Walk {
    headers: [Option<String>; HEADERS.len()],
    ttl: f64,
    pub(super) done: Vec<String>,
}

/// Walks vcl_recv: the program's actions, or `None` if a text grew too long.
pub(super) fn walk(program: &RandomProgram) -> Option<Vec<String>> {
    let mut walk = Walk::default();
    match walk.statements(program, &program.subs[0]) {
        Ok(()) => walk.done.push("return synth".into()),
        Err(End::Return(action)) => walk.done.push(format!("return {action}")),
        Err(End::Fail(text)) => walk.done.extend([format!("error {text}"), "return fail".into()]),
        // vcl_recv has no bare return.
        Err(End::Leave | End::TooLong) => return None,
    }
    Some(walk.done)
}

impl Walk {
    fn statements(&mut self, program: &RandomProgram, statements: &[Statement]) -> Walked<()> {
        statements.iter().try_for_each(|statement| self.statement(program, statement))
    }

    fn statement(&mut self, program: &RandomProgram, statement: &Statement) -> Walked<()> {
        match statement {
            Statement::SetHeader(header, text) => {
                let value = self.text(text)?.unwrap_or_default();
                self.set(*header, value)
            }
            Statement::AppendHeader(header, text) => {
                let before = self.headers[*header].clone().unwrap_or_default();
                let value = before + &self.text(text)?.unwrap_or_default();
                self.set(*header, value)
            }
            Statement::UnsetHeader(header) => {
                self.headers[*header] = None;
                self.done.push(format!("unset {}", HEADERS[*header]));
                Ok(())
            }
            Statement::SetTtl(operator, duration) => {
                let before = self.ttl;
                let value = self.duration(duration)?;
                self.ttl = match *operator {
                    "+=" => before + value,
                    "-=" => before - value,
                    _ => value,
                };
                self.done.push(format!("ttl {:?}", self.ttl));
                Ok(())
            }
            Statement::Ban(text) => {
                self.done.push(match self.text(text)? {
                    Some(text) => format!("ban {text}"),
                    None => "error ban(): Null argument".to_owned(),
                });
                Ok(())
            }
            Statement::If(branches, otherwise) => {
                for (condition, statements) in branches {
                    if self.truth(condition)? {
                        return self.statements(program, statements);
                    }
                }
                self.statements(program, otherwise)
            }
            Statement::Block(statements) => self.statements(program, statements),
            Statement::Call(sub) => match self.statements(program, &program.subs[*sub]) {
                Err(End::Leave) => Ok(()),
                other => other,
            },
            Statement::Return(action) => Err(End::Return(action)),
            Statement::Leave => Err(End::Leave),
        }
    }

    fn set(&mut self, header: usize, value: String) -> Walked<()> {
        if value.len() > TEXT_BYTES_MAX {
            return Err(End::TooLong);
        }
        self.done.push(format!("{}: {value}", HEADERS[header]));
        self.headers[header] = Some(value);
        Ok(())
    }

    /// `None`: unset.
    fn text(&self, text: &Text) -> Walked<Option<String>> {
        let value = match text {
            Text::Literal(text) => Some((*text).to_owned()),
            Text::Header(header) => self.headers[*header].clone(),
            Text::Join(first, rest) => {
                let mut parts = vec![self.text(first)?];
                for shown in rest {
                    parts.push(self.shown(shown)?);
                }
                // A join whose parts are all unset is unset.
                if parts.iter().all(Option::is_none) { None } else { Some(parts.into_iter().flatten().collect()) }
            }
            Text::Upper(text) => self.text(text)?.map(|text| text.to_ascii_uppercase()),
            Text::Lower(text) => self.text(text)?.map(|text| text.to_ascii_lowercase()),
            Text::Substitute(all, text, pattern, replacement) => {
                let subject = self.text(text)?.unwrap_or_default();
                Some(if *all {
                    subject.replace(pattern, replacement)
                } else {
                    subject.replacen(pattern, replacement, 1)
                })
            }
        };
        if value.as_ref().is_some_and(|value| value.len() > TEXT_BYTES_MAX) { Err(End::TooLong) } else { Ok(value) }
    }

    fn shown(&self, shown: &Shown) -> Walked<Option<String>> {
        Ok(Some(match shown {
            Shown::Text(text) => return self.text(text),
            Shown::Integer(integer) => match self.integer(integer)? {
                value @ -999_999_999_999_999..=999_999_999_999_999 => value.to_string(),
                value => return Err(End::Fail(format!("INT overflow converting to string ({value:X})"))),
            },
            Shown::Real(real) => thousandths(self.real(real)?)?,
            Shown::Duration(duration) => thousandths(self.duration(duration)?)?,
            Shown::Truth(truth) => self.truth(truth)?.to_string(),
        }))
    }

    fn integer(&self, integer: &Integer) -> Walked<i64> {
        let wide = match integer {
            Integer::Literal(number) => i128::from(*number),
            Integer::Negative(inner) => -i128::from(self.integer(inner)?),
            Integer::Operation(sign, left, right) => {
                let (left, right) = (i128::from(self.integer(left)?), i128::from(self.integer(right)?));
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ if right == 0 => return Err(End::Fail("Division by zero".into())),
                    '/' => left / right,
                    _ => left % right,
                }
            }
        };
        Ok(wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    fn real(&self, real: &Real) -> Walked<f64> {
        let (sign, left, right) = match real {
            Real::Literal(thousandths) => {
                let written = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
                return Ok(written.parse().unwrap_or(f64::NAN));
            }
            Real::Operation(sign, left, right) => (sign, self.real(left)?, self.real(right)?),
            Real::Scaled(sign, left, right) => (sign, self.real(left)?, f64::from(*right)),
        };
        Ok(operation(*sign, left, right))
    }

    fn duration(&self, duration: &Duration) -> Walked<f64> {
        Ok(match duration {
            Duration::Literal(number, unit) => {
                f64::from(*number)
                    * match *unit {
                        "ms" => 1e-3,
                        "m" => 60.0,
                        "h" => 3_600.0,
                        _ => 1.0,
                    }
            }
            Duration::Operation(sign, left, right) => operation(*sign, self.duration(left)?, self.duration(right)?),
            Duration::Scaled(sign, left, right) => operation(*sign, self.duration(left)?, f64::from(*right)),
            Duration::Variable => self.ttl,
        })
    }

    fn truth(&self, truth: &Truth) -> Walked<bool> {
        Ok(match truth {
            Truth::Literal(truth) => *truth,
            Truth::Set(text) => self.text(text)?.is_some(),
            Truth::NotZero(integer) => self.integer(integer)? != 0,
            Truth::Not(inner) => !self.truth(inner)?,
            Truth::And(left, right) => self.truth(left)? && self.truth(right)?,
            Truth::Or(left, right) => self.truth(left)? || self.truth(right)?,
            Truth::Texts(operator, left, right) => {
                let order = match (self.text(left)?, self.text(right)?) {
                    (left_text, right_text) if is_joined(left) || is_joined(right) => {
                        left_text.unwrap_or_default().cmp(&right_text.unwrap_or_default())
                    }
                    (Some(left), Some(right)) => left.cmp(&right),
                    _ => Ordering::Greater,
                };
                holds(operator, Some(order))
            }
            Truth::Integers(operator, left, right) => {
                holds(operator, Some(self.integer(left)?.cmp(&self.integer(right)?)))
            }
            Truth::Reals(operator, left, right) => holds(operator, self.real(left)?.partial_cmp(&self.real(right)?)),
            Truth::Durations(operator, left, right) => {
                holds(operator, self.duration(left)?.partial_cmp(&self.duration(right)?))
            }
            Truth::Match(wanted, text, start, pattern, end) => {
                let text = self.text(text)?.unwrap_or_default();
                let found = match (start, end) {
                    (true, true) => text == *pattern,
                    (true, false) => text.starts_with(pattern),
                    (false, true) => text.ends_with(pattern),
                    (false, false) => text.contains(pattern),
                };
                found == *wanted
            }
        })
    }
}

/// True if the text is the result of a join; later operations on it do not change that.
fn is_joined(text: &Text) -> bool {
    match text {
        Text::Join(..) => true,
        Text::Upper(text) | Text::Lower(text) => is_joined(text),
        _ => false,
    }
}

fn operation(sign: char, left: f64, right: f64) -> f64 {
    match sign {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        _ => left / right,
    }
}

fn holds(operator: &str, order: Option<Ordering>) -> bool {
    let is = |wanted: &[Ordering]| order.is_some_and(|order| wanted.contains(&order));
    match operator {
        "==" => is(&[Ordering::Equal]),
        "!=" => !is(&[Ordering::Equal]),
        "<" => is(&[Ordering::Less]),
        ">" => is(&[Ordering::Greater]),
        "<=" => is(&[Ordering::Less, Ordering::Equal]),
        _ => is(&[Ordering::Greater, Ordering::Equal]),
    }
}

/// A number with three decimals, unless it has more than twelve digits before them.
fn thousandths(value: f64) -> Walked<String> {
    if value.abs() <= 999_999_999_999.999 {
        return Ok(format!("{value:.3}"));
    }
    let shown = match format!("{value:.6e}").split_once('e') {
        Some((digits, exponent)) => format!("{digits}e{:+03}", exponent.parse::<i32>().unwrap_or_default()),
        None if value.is_nan() => "nan".to_owned(),
        None => value.to_string(),
    };
    Err(End::Fail(format!("REAL overflow converting to string ({shown})")))
}
