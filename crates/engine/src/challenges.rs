//! Answers to the HTTP-01 challenges of a certificate authority, before it issues a certificate:
//! [`Challenges`].
//!
//! Source: RFC 8555 §8.3. The manager orders the certificate and sets the answers; without an order
//! there are none, and a request costs the check of one flag. Shared by all event loops; replaced
//! as a whole.

use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Path of a challenge; the token follows.
const PLACE: &[u8] = b"/.well-known/acme-challenge/";

/// Answers by token.
type Answers = HashMap<Box<[u8]>, Arc<[u8]>>;

/// Answers by token.
#[derive(Default)]
pub struct Challenges {
    is_any: AtomicBool,
    answers: ArcSwap<Answers>,
}

impl Challenges {
    /// Replaces all answers. Tokens that are not of the alphabet that RFC 8555 allows (base64url)
    /// are left out.
    pub fn set<'a>(&self, answers: impl Iterator<Item = (&'a str, &'a str)>) {
        let answers: Answers = answers
            .filter(|(token, _)| is_token(token.as_bytes()))
            .map(|(token, answer)| (token.as_bytes().into(), answer.as_bytes().into()))
            .collect();
        let is_any = !answers.is_empty();
        self.answers.store(Arc::new(answers));
        self.is_any.store(is_any, Ordering::Release);
    }

    /// True if there are any.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// The answer to a request for this URL, which must be exactly that of a challenge.
    pub(crate) fn answer(&self, url: &[u8]) -> Option<Arc<[u8]>> {
        let token = url.strip_prefix(PLACE)?;
        self.answers.load().get(token).cloned()
    }
}

fn is_token(token: &[u8]) -> bool {
    !token.is_empty() && token.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_path_of_a_known_token_is_answered() {
        let challenges = Challenges::default();
        assert!(!challenges.is_any());
        challenges.set([("to-Ken_1", "to-Ken_1.thumb"), ("../x", "no"), ("", "no"), ("a b", "no")].into_iter());
        assert!(challenges.is_any());
        let answer = |url: &str| challenges.answer(url.as_bytes());
        assert_eq!(answer("/.well-known/acme-challenge/to-Ken_1").as_deref(), Some(&b"to-Ken_1.thumb"[..]));
        for url in ["to-ken_1", "to-Ken_1/", "to-Ken_1?x", "to-Ken_", "", "../x", "%74o-Ken_1"] {
            assert!(answer(&format!("/.well-known/acme-challenge/{url}")).is_none(), "{url}");
        }
        assert!(answer("/.well-known//acme-challenge/to-Ken_1").is_none());
        challenges.set(std::iter::empty());
        assert!(!challenges.is_any() && answer("/.well-known/acme-challenge/to-Ken_1").is_none());
    }
}
