//! Sharing of responses for a lifetime that is not their own.
//!
//! RFC 9111 lets a cache share a response with an explicit lifetime even if it sets a cookie. A
//! heuristic lifetime, or one that an operator has set for all of a site, is not such a permission:
//! the origin never declared the response public. *Invariant:* with a lifetime that is not the
//! response's own, nothing is shared that the request or the response marks as one client's.
//! Source: RFC 9111 §3, §7.3. Next file: `directives.rs`.

use super::Refusal;
use super::directives::{Directives, FieldNames, Scope};
use crate::vary::depends_on;
use message::Message;

/// Facts that decide whether a response may be shared for a lifetime that is not its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sharing {
    /// The response has a lifetime of its own, longer than 0, that applies to all clients.
    pub has_own_lifetime: bool,
    /// The directive by which the response restricts storing; it counts as the origin sent it.
    pub directive: Option<Refusal>,
    /// The request had a Cookie when the origin got it.
    pub asked_with_cookie: bool,
    /// The request had Authorization when the origin got it.
    pub asked_with_authorization: bool,
}

impl Sharing {
    /// Facts about a response with these directives; `explicit` is its own lifetime in seconds.
    pub(super) fn of(
        response: &Message,
        directives: &Directives,
        is_targeted: bool,
        explicit: Option<f64>,
        is_authorized: bool,
    ) -> Sharing {
        let directive = restriction(directives);
        // A `no-store` that comes with `must-understand` is meant for caches that do not understand
        // the status.
        let is_open = match directive {
            Some(Refusal::NoStore) => directives.must_understand && !is_narrowed(directives),
            Some(_) => false,
            None => true,
        };
        let has_own_lifetime = is_open && explicit.is_some_and(|seconds| seconds > 0.0);
        // A targeted field replaces Cache-Control for its own lifetime only.
        let others = || is_targeted.then(|| restriction(&Directives::of_cache_control(response))).flatten();
        Sharing {
            has_own_lifetime,
            directive: directive.or_else(|| if has_own_lifetime { None } else { others() }),
            asked_with_cookie: false,
            asked_with_authorization: is_authorized,
        }
    }

    /// Adds the Cookie of the request as the origin got it. An empty one does not distinguish
    /// clients.
    #[must_use]
    pub fn asked_by(self, request: &Message) -> Sharing {
        let asked_with_cookie = request.get_all("Cookie").any(|value| !value.trim_ascii().is_empty());
        Sharing { asked_with_cookie, ..self }
    }

    /// Takes over the properties of the request from an earlier evaluation.
    #[must_use]
    pub fn asked_as(self, earlier: Sharing) -> Sharing {
        let Sharing { asked_with_cookie, asked_with_authorization, .. } = earlier;
        Sharing { asked_with_cookie, asked_with_authorization, ..self }
    }

    /// Reason why the response, as VCL has left it, must not be shared; `None` if it may be.
    ///
    /// `unshared` are the fields that are not stored, and `asks_first` means that the response is
    /// validated before every use: then the origin decides for each client.
    #[must_use]
    pub fn refusal(&self, response: &Message, unshared: &FieldNames, asks_first: bool) -> Option<Refusal> {
        if self.has_own_lifetime {
            return None;
        }
        // Validation by one client would send another one's cookie along.
        if response.has("Set-Cookie") && !unshared.contain(b"Set-Cookie") {
            return Some(Refusal::ResponseCookie);
        }
        if asks_first {
            return None;
        }
        // A field in Vary is part of the variant's key: only a request that has the same one gets
        // the response.
        let authorization = self.asked_with_authorization && !depends_on(response, "Authorization");
        let cookie = self.asked_with_cookie && !depends_on(response, "Cookie");
        self.directive
            .or_else(|| authorization.then_some(Refusal::Authorization))
            .or_else(|| cookie.then_some(Refusal::RequestCookie))
    }
}

fn restriction(directives: &Directives) -> Option<Refusal> {
    if directives.no_store {
        Some(Refusal::NoStore)
    } else if directives.private == Scope::Whole {
        Some(Refusal::Private)
    } else {
        (directives.no_cache == Scope::Whole).then_some(Refusal::NoCache)
    }
}

/// True if the response is for one user, or for validation before every use.
fn is_narrowed(directives: &Directives) -> bool {
    directives.private == Scope::Whole || directives.no_cache == Scope::Whole
}
