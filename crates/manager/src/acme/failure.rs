//! Cause of a failed order, in one line for operators: [`Failure`].
//!
//! An authority's problem is shown as received (its type and detail), with control characters
//! escaped, and cut to the length of a line.

use super::plan::Kind;
use instant_acme::{Error, Problem};
use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;
use surface::legible;
use surface::limits::{ACME_ORDER_SECONDS, ACME_TEXT_BYTES_MAX};

/// Common prefix of ACME's problem types.
const PREFIX: &str = "urn:ietf:params:acme:error:";

/// A failed conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Cause, as far as it decides the next step.
    pub kind: Kind,
    /// One line.
    pub text: String,
    /// The delay that the authority asked for.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure with this text, which may come from outside.
    #[must_use]
    pub fn new(kind: Kind, text: &str) -> Failure {
        let mut text = legible::line(text.as_bytes()).into_owned();
        if let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= ACME_TEXT_BYTES_MAX) {
            text.truncate(end);
            text.push('…');
        }
        Failure { kind, text, retry_after: None }
    }

    /// The failure that a problem document describes.
    #[must_use]
    pub fn of_problem(problem: &Problem) -> Failure {
        let kind = match problem.r#type.as_deref().and_then(|name| name.strip_prefix(PREFIX)) {
            Some("rateLimited") => Kind::Limited,
            Some("accountDoesNotExist") => Kind::AccountUnknown,
            Some("badNonce") => Kind::Stale,
            Some("serverInternal") => Kind::Unreachable,
            _ => Kind::Refused,
        };
        Failure::new(kind, &words(problem))
    }

    /// An error of the library.
    #[must_use]
    pub fn of(error: &Error) -> Failure {
        match error {
            Error::Api(problem) => Failure::of_problem(problem),
            Error::Timeout(_) => Failure::new(Kind::Unreachable, "the authority did not come to an end in time"),
            Error::Json(error) => {
                Failure::new(Kind::Unreachable, &format!("the authority cannot be understood: {error}"))
            }
            Error::Crypto | Error::KeyRejected => {
                Failure::new(Kind::AccountUnknown, "the key of the account is of no use")
            }
            other => {
                // The cause is at the end of the chain; that a request failed is obvious.
                let mut text = other.to_string();
                let mut next = other.source();
                while let Some(error) = next {
                    let _ = write!(text, ": {error}");
                    next = error.source();
                }
                Failure::new(Kind::Unreachable, &text)
            }
        }
    }

    /// The whole took too long.
    #[must_use]
    pub fn late() -> Failure {
        Failure::new(Kind::Unreachable, &format!("the order was not done after {ACME_ORDER_SECONDS} seconds"))
    }
}

/// A problem in one line: its type without the common prefix, its detail, and those of its
/// subproblems.
fn words(problem: &Problem) -> String {
    let short = |name: &Option<String>| {
        name.as_deref().map_or("problem", |name| name.strip_prefix(PREFIX).unwrap_or(name)).to_owned()
    };
    let mut text = short(&problem.r#type);
    if let Some(detail) = &problem.detail {
        let _ = write!(text, ": {detail}");
    }
    for part in problem.subproblems.iter().take(3) {
        let _ = write!(text, "; {}", short(&part.r#type));
        if let Some(detail) = &part.detail {
            let _ = write!(text, ": {detail}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(json: &str) -> Failure {
        Failure::of(&Error::Api(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn problem_is_reported_with_its_type_and_detail() {
        let failure =
            problem(r#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many", "status": 429}"#);
        assert_eq!((failure.kind, failure.text.as_str()), (Kind::Limited, "rateLimited: too many"));
        let failure = problem(
            r#"{"type": "about:blank", "subproblems": [{"type": "urn:ietf:params:acme:error:caa", "detail": "no"}]}"#,
        );
        assert_eq!((failure.kind, failure.text.as_str()), (Kind::Refused, "about:blank; caa: no"));
        assert_eq!(problem("{}").text, "problem");
        assert_eq!(problem(r#"{"type": "urn:ietf:params:acme:error:accountDoesNotExist"}"#).kind, Kind::AccountUnknown);
    }

    #[test]
    fn authority_texts_are_sanitised_and_truncated() {
        let failure = problem(r#"{"type": "x\u001b[2J", "detail": "a\nError: forged\r"}"#);
        assert!(!failure.text.contains(|letter: char| letter.is_control()), "{:?}", failure.text);
        let failure = problem(&format!(r#"{{"detail": "{}"}}"#, "é".repeat(5000)));
        assert!(failure.text.len() <= ACME_TEXT_BYTES_MAX + 8);
    }
}
