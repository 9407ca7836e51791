//! Truth, arithmetic and comparison of values.
//!
//! Compat: an unset string equals nothing, not even another unset one, and is greater than
//! everything, as in Varnish 7.1.1.

use super::stop::{Stop, damaged, fail};
use crate::program::{Arithmetic, Comparison};
use crate::value::{Scratch, Value};
use std::cmp::Ordering;

/// True if a value counts as true where a BOOL is expected.
pub(super) fn is_true(value: Value) -> bool {
    match value {
        Value::Bool(value) => value,
        Value::Int(value) | Value::Bytes(value) => value != 0,
        Value::Real(value) => value != 0.0,
        Value::Duration(value) | Value::Time(value) => value > 0.0,
        Value::Text(text) => text.is_set(),
        Value::Blob(blob) => !blob.is_empty(),
        Value::Ip(address) => address.is_some(),
        Value::Backend(director) => director.is_some(),
        Value::Acl(index) | Value::Probe(index) | Value::Stevedore(index) => index.is_some(),
        Value::Sub(_) | Value::Regex(_) | Value::Http(_) | Value::Header(..) | Value::NamedHeader(..) => true,
        Value::Void | Value::Absent => false,
    }
}

pub(super) fn calculate(operator: Arithmetic, left: Value, right: Value) -> Result<Value, Stop> {
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right)) => Value::Int(integers(operator, left, right)?),
        (Value::Bytes(left), Value::Bytes(right)) => Value::Bytes(integers(operator, left, right)?),
        (Value::Bytes(left), Value::Int(right)) => Value::Bytes(integers(operator, left, right)?),
        (Value::Bytes(left), Value::Real(right)) => Value::Bytes(reals(operator, left as f64, right) as i64),
        (Value::Real(left), Value::Real(right)) => Value::Real(reals(operator, left, right)),
        (Value::Real(left), Value::Int(right)) => Value::Real(reals(operator, left, right as f64)),
        (Value::Int(left), Value::Real(right)) => Value::Real(reals(operator, left as f64, right)),
        (Value::Duration(left), Value::Duration(right)) => Value::Duration(reals(operator, left, right)),
        (Value::Duration(left), Value::Int(right)) => Value::Duration(reals(operator, left, right as f64)),
        (Value::Duration(left), Value::Real(right)) => Value::Duration(reals(operator, left, right)),
        (Value::Time(left), Value::Duration(right)) => Value::Time(reals(operator, left, right)),
        (Value::Time(left), Value::Time(right)) => Value::Duration(reals(operator, left, right)),
        _ => return Err(damaged()),
    })
}

pub(super) fn negate(value: Value) -> Result<Value, Stop> {
    Ok(match value {
        Value::Int(value) => Value::Int(value.saturating_neg()),
        Value::Bytes(value) => Value::Bytes(value.saturating_neg()),
        Value::Real(value) => Value::Real(-value),
        Value::Duration(value) => Value::Duration(-value),
        Value::Time(value) => Value::Time(-value),
        _ => return Err(damaged()),
    })
}

fn integers(operator: Arithmetic, left: i64, right: i64) -> Result<i64, Stop> {
    Ok(match operator {
        Arithmetic::Add => left.saturating_add(right),
        Arithmetic::Subtract => left.saturating_sub(right),
        Arithmetic::Multiply => left.saturating_mul(right),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => return Err(fail("Division by zero")),
        Arithmetic::Divide => left.saturating_div(right),
        Arithmetic::Remainder => left.wrapping_rem(right),
    })
}

fn reals(operator: Arithmetic, left: f64, right: f64) -> f64 {
    match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    }
}

pub(super) fn compare(operator: Comparison, left: Value, right: Value, scratch: &Scratch) -> bool {
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            if left.is_set() && right.is_set() {
                Some(scratch.get(left).cmp(scratch.get(right)))
            } else {
                Some(Ordering::Greater)
            }
        }
        (Value::Int(left), Value::Int(right)) | (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(&right)),
        (Value::Real(left), Value::Real(right))
        | (Value::Duration(left), Value::Duration(right))
        | (Value::Time(left), Value::Time(right)) => left.partial_cmp(&right),
        (Value::Ip(left), Value::Ip(right)) => {
            let address = |ip: Option<(std::net::IpAddr, u16)>| ip.map(|(address, _)| address);
            equality(address(left) == address(right))
        }
        (Value::Blob(left), Value::Blob(right)) => equality(scratch.get(left) == scratch.get(right)),
        (left, right) => equality(left == right),
    };
    holds(operator, order)
}

/// True if a comparison holds for an order; values without an order are only unequal.
pub(super) fn holds(operator: Comparison, order: Option<Ordering>) -> bool {
    match operator {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn equality(equal: bool) -> Option<Ordering> {
    equal.then_some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Text;

    #[test]
    fn dividing_by_zero_fails_instead_of_stopping_the_process() {
        for operator in [Arithmetic::Divide, Arithmetic::Remainder] {
            assert!(calculate(operator, Value::Int(1), Value::Int(0)).is_err());
        }
        let endless = calculate(Arithmetic::Divide, Value::Duration(1.0), Value::Int(0)).ok();
        assert_eq!(endless, Some(Value::Duration(f64::INFINITY)));
        assert_eq!(
            calculate(Arithmetic::Divide, Value::Int(i64::MIN), Value::Int(-1)).ok(),
            Some(Value::Int(i64::MAX))
        );
        assert_eq!(calculate(Arithmetic::Remainder, Value::Int(i64::MIN), Value::Int(-1)).ok(), Some(Value::Int(0)));
    }

    #[test]
    fn unset_string_equals_nothing() {
        let mut scratch = Scratch::new(1000);
        let empty = Value::Text(scratch.put(b""));
        let unset = Value::Text(Text::UNSET);
        assert!(!compare(Comparison::Equal, unset, empty, &scratch));
        assert!(!compare(Comparison::Equal, unset, unset, &scratch));
        assert!(compare(Comparison::NotEqual, unset, empty, &scratch));
        assert!(!compare(Comparison::Less, unset, empty, &scratch));
        assert!(compare(Comparison::GreaterOrEqual, unset, empty, &scratch));
    }

    #[test]
    fn addresses_are_equal_whatever_the_port() {
        let scratch = Scratch::new(0);
        let ip = |port| Value::Ip(Some(("192.0.2.1".parse().unwrap(), port)));
        assert!(compare(Comparison::Equal, ip(1), ip(2), &scratch));
        assert!(compare(Comparison::NotEqual, ip(1), Value::Ip(None), &scratch));
    }
}
