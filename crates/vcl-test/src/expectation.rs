//! Expectations: names, forms of values, comparison with the facts of a request.

use crate::facts::Facts;
use std::collections::BTreeMap;
use surface::nearest::did_you_mean;
use surface::quantity::seconds;
use surface::reason::HANDLINGS;
use toml::Value;
use vcl_run::regex::{Regex, RegexLimits};

/// Names of expectations.
const NAMES: &[&str] = &[
    "handling", "status", "reason", "backend", "stored", "ttl", "grace", "keep", "fetches", "restarts", "body",
    "header", "bereq",
];
/// Names below `bereq`.
const REQUEST_NAMES: &[&str] = &["method", "url", "header"];

/// An expectation that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mismatch {
    /// Its name: `header.Age`.
    pub(crate) name: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

/// Checks names and forms.
///
/// # Errors
/// A message for the author.
pub(crate) fn check(expect: &BTreeMap<String, Value>) -> Result<(), String> {
    for (name, value) in expect {
        known(name, NAMES)?;
        match (name.as_str(), value) {
            ("handling", Value::String(word)) => {
                let words = || HANDLINGS.iter().map(|row| row.1);
                if !words().any(|known| Pattern::of(value).is_ok_and(|pattern| pattern.holds(Some(known)))) {
                    return Err(format!("no handling is called {word}{}", did_you_mean(word, "", words())));
                }
            }
            ("stored", Value::Boolean(_)) => {}
            ("stored", _) => return Err("stored is true or false".to_owned()),
            ("header", Value::Table(headers)) => patterns(headers.values())?,
            ("bereq", Value::Table(parts)) => {
                for (part, value) in parts {
                    known(part, REQUEST_NAMES)?;
                    match value {
                        Value::Table(headers) if part == "header" => patterns(headers.values())?,
                        _ => patterns([value].into_iter())?,
                    }
                }
            }
            ("header" | "bereq", _) => return Err(format!("{name} is a table")),
            (_, value) => patterns([value].into_iter())?,
        }
    }
    Ok(())
}

fn known(name: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&name) {
        return Ok(());
    }
    let meant = did_you_mean(name, "", names.iter().copied());
    Err(format!("nothing called {name} can be expected{meant}; there are {}", names.join(", ")))
}

fn patterns<'a>(values: impl Iterator<Item = &'a Value>) -> Result<(), String> {
    for value in values {
        Pattern::of(value)?;
    }
    Ok(())
}

/// Compares the facts of a request with what was expected of it.
pub(crate) fn compare(expect: &BTreeMap<String, Value>, facts: &Facts) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (name, value) in expect {
        match (name.as_str(), value) {
            ("header", Value::Table(headers)) => {
                for (header, value) in headers {
                    one(&format!("header.{header}"), value, facts.header(header), &mut found);
                }
            }
            ("bereq", Value::Table(parts)) => bereq(parts, facts, &mut found),
            _ => one(name, value, facts.value(name), &mut found),
        }
    }
    found
}

fn bereq(parts: &toml::Table, facts: &Facts, found: &mut Vec<Mismatch>) {
    for (part, value) in parts {
        match value {
            Value::Table(headers) if part == "header" => {
                for (header, value) in headers {
                    one(&format!("bereq.header.{header}"), value, facts.bereq_header(header), found);
                }
            }
            _ => one(&format!("bereq.{part}"), value, facts.value(&format!("bereq.{part}")), found),
        }
    }
}

fn one(name: &str, value: &Value, got: Option<String>, found: &mut Vec<Mismatch>) {
    let Ok(pattern) = Pattern::of(value) else { return };
    if !pattern.holds(got.as_deref()) {
        let expected = match (&pattern, got.as_deref()) {
            (Pattern::Present(expected), Some("true" | "false")) => expected.to_string(),
            _ => pattern.text(),
        };
        found.push(Mismatch { name: name.to_owned(), expected, got: got.unwrap_or_else(|| "nothing".to_owned()) });
    }
}

/// The form of an expected value.
enum Pattern {
    /// Something, or nothing.
    Present(bool),
    Equal(String),
    NotEqual(String),
    /// A comparison of numbers or times: the operator, and its operand in numbers.
    Order(&'static str, f64, String),
    Match(Regex, String),
    NotMatch(Regex, String),
}

impl Pattern {
    fn of(value: &Value) -> Result<Pattern, String> {
        let text = match value {
            Value::Boolean(is_there) => return Ok(Pattern::Present(*is_there)),
            Value::Integer(number) => return Ok(Pattern::Equal(number.to_string())),
            Value::Float(number) => return Ok(Pattern::Equal(number.to_string())),
            Value::String(text) => text,
            Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
                return Err(format!("a value of type {} is not a text, a number, true or false", value.type_str()));
            }
        };
        for operator in ["<=", ">=", "<", ">"] {
            if let Some(operand) = text.strip_prefix(operator) {
                let number = number(operand).ok_or_else(|| format!("{operand:?} is not a number or a time"))?;
                return Ok(Pattern::Order(operator, number, text.clone()));
            }
        }
        let regex = |pattern: &str| {
            Regex::new(pattern, RegexLimits::default()).map_err(|error| format!("{pattern:?}: {error}"))
        };
        if let Some(pattern) = text.strip_prefix("!~") {
            return Ok(Pattern::NotMatch(regex(pattern.trim_start())?, text.clone()));
        }
        if let Some(pattern) = text.strip_prefix('~') {
            return Ok(Pattern::Match(regex(pattern.trim_start())?, text.clone()));
        }
        if let Some(other) = text.strip_prefix("!=") {
            return Ok(Pattern::NotEqual(other.trim_start().to_owned()));
        }
        Ok(Pattern::Equal(text.clone()))
    }

    /// The form as in the file.
    fn text(&self) -> String {
        match self {
            Pattern::Present(true) => "true".to_owned(),
            Pattern::Present(false) => "nothing".to_owned(),
            Pattern::Equal(text) => text.clone(),
            Pattern::NotEqual(text) => format!("!= {text}"),
            Pattern::Order(_, _, text) | Pattern::Match(_, text) | Pattern::NotMatch(_, text) => text.clone(),
        }
    }

    fn holds(&self, got: Option<&str>) -> bool {
        match (self, got) {
            // A fact that is itself true or false.
            (Pattern::Present(expected), Some("true")) => *expected,
            (Pattern::Present(expected), Some("false") | None) => !*expected,
            (Pattern::Present(expected), Some(_)) => *expected,
            (Pattern::Equal(expected), Some(got)) => expected == got || is_same_number(expected, got),
            (Pattern::NotEqual(other), Some(got)) => other != got && !is_same_number(other, got),
            (Pattern::NotEqual(_) | Pattern::NotMatch(..), None) => true,
            (Pattern::Order(operator, operand, _), Some(got)) => number(got).is_some_and(|got| match *operator {
                "<=" => got <= *operand,
                ">=" => got >= *operand,
                "<" => got < *operand,
                _ => got > *operand,
            }),
            (Pattern::Match(regex, _), Some(got)) => regex.is_match(got.as_bytes()).unwrap_or(false),
            (Pattern::NotMatch(regex, _), Some(got)) => regex.is_match(got.as_bytes()).is_ok_and(|found| !found),
            (Pattern::Equal(_) | Pattern::Order(..) | Pattern::Match(..), None) => false,
        }
    }
}

fn is_same_number(expected: &str, got: &str) -> bool {
    match (number(expected), number(got)) {
        (Some(expected), Some(got)) => (expected - got).abs() < 0.0005,
        _ => false,
    }
}

/// A number, or the seconds of a time.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    text.parse().ok().filter(|number: &f64| number.is_finite()).or_else(|| seconds(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, got: Option<&str>) -> bool {
        Pattern::of(&Value::String(pattern.to_owned())).unwrap().holds(got)
    }

    #[test]
    fn forms_of_values_compare_as_they_say() {
        for (pattern, got) in [
            ("hit", "hit"),
            ("5m", "300.000"),
            (">=300", "300"),
            ("<10s", "9.5"),
            ("~^a.c$", "abc"),
            ("!~x", "abc"),
            ("!=x", "abc"),
        ] {
            assert!(holds(pattern, Some(got)), "{pattern} {got}");
        }
        for (pattern, got) in [("hit", "hit-grace"), (">300", "300"), ("~^b", "abc"), ("!=abc", "abc"), (">1", "x")] {
            assert!(!holds(pattern, Some(got)), "{pattern} {got}");
        }
        assert!(!holds("a", None) && holds("!~a", None) && holds("!=a", None));
        let present = |expected, got| Pattern::of(&Value::Boolean(expected)).unwrap().holds(got);
        assert!(present(true, Some("x")) && present(false, None) && present(false, Some("false")));
        assert!(!present(true, None) && !present(true, Some("false")));
    }

    #[test]
    fn wrong_forms_are_refused() {
        for value in [Value::String("~(".into()), Value::String(">x".into()), Value::Array(Vec::new())] {
            assert!(Pattern::of(&value).is_err(), "{value:?}");
        }
    }
}
