//! Tokens that log a browser in to the dashboard: each once, for a minute.
//!
//! The CLI gives them out (`dash.login`), so that only those who know its secret get one. `copal
//! observe` asks whether a token is right; it never learns one that was not used.

use rand::Rng as _;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use surface::limits::{DASH_TOKEN_SECONDS_MAX, DASH_TOKENS_MAX};

/// The tokens that were not used.
#[derive(Debug, Default)]
pub struct Tokens(RefCell<VecDeque<(String, Instant)>>);

impl Tokens {
    /// A new token of 128 random bits. The oldest gives way if there are too many.
    pub fn give(&self, now: Instant) -> String {
        let mut bytes = [0u8; 16];
        rand::rng().fill_bytes(&mut bytes);
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut tokens = self.0.borrow_mut();
        if tokens.len() == DASH_TOKENS_MAX {
            tokens.pop_front();
        }
        tokens.push_back((token.clone(), now));
        token
    }

    /// True if the token is right; it is used then.
    pub fn take(&self, token: &str, now: Instant) -> bool {
        let mut tokens = self.0.borrow_mut();
        let life = Duration::from_secs(DASH_TOKEN_SECONDS_MAX);
        tokens.retain(|(_, made)| now.saturating_duration_since(*made) < life);
        let before = tokens.len();
        tokens.retain(|(known, _)| known != token);
        tokens.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_works_once_within_its_minute() {
        let (tokens, start) = (Tokens::default(), Instant::now());
        let [one, other] = [tokens.give(start), tokens.give(start)];
        assert_eq!(one.len(), 32);
        assert!(!tokens.take("", start) && !tokens.take(&one[1..], start));
        assert!(tokens.take(&one, start));
        assert!(!tokens.take(&one, start), "used");
        assert!(!tokens.take(&other, start + Duration::from_secs(DASH_TOKEN_SECONDS_MAX)), "too old");
    }

    #[test]
    fn number_of_tokens_is_bounded() {
        let (tokens, start) = (Tokens::default(), Instant::now());
        let all: Vec<String> = (0..=DASH_TOKENS_MAX).map(|_| tokens.give(start)).collect();
        assert!(!tokens.take(&all[0], start));
        assert!(tokens.take(&all[1], start) && tokens.take(&all[DASH_TOKENS_MAX], start));
    }
}
