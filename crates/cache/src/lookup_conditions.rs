//! Lookup conditions: the rules of RFC 9111 under which a stored response may answer a request.
//!
//! Under the other policies a lookup has no conditions, and behaves as in Varnish. With conditions,
//! an object without time to live can still be validated; one that must be validated, or that does
//! not satisfy the request's directives, counts as stale even if it is fresh. Source: RFC 9111
//! §4.2.4, §5.2. Next file: `lookup.rs`.

use crate::lookup_request::{LookupConditions, LookupRequest};
use semantics::{language, vary};
use store::{Object, ObjectFlags};

/// The use that a request can make of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worth {
    /// It may answer the request.
    Answer,
    /// It may be validated, or served in its grace.
    Stale,
    /// It cannot be used.
    Nothing,
}

impl LookupConditions {
    /// The use that a request can make of an object of the right variant.
    pub(crate) fn worth(&self, object: &Object, request: &LookupRequest<'_>) -> Worth {
        let (age, ttl, flags) = (request.now - object.origin(), object.ttl().max(0.0), object.flags());
        let is_pass = flags.has(ObjectFlags::HIT_FOR_PASS);
        if is_pass || flags.has(ObjectFlags::HIT_FOR_MISS) {
            return match age < ttl {
                true => Worth::Answer,
                false if is_pass => Worth::Nothing,
                false => Worth::Stale,
            };
        }
        if self.granted != 0 && identity(object) == self.granted {
            return Worth::Answer;
        }
        if flags.has(ObjectFlags::REVALIDATE) || !is_young_enough(age, request) || age + self.min_fresh > ttl {
            let is_welcome = !flags.has(ObjectFlags::REVALIDATE)
                && !flags.has(ObjectFlags::NEVER_STALE)
                && self.min_fresh <= 0.0
                && is_young_enough(age, request)
                && age - ttl <= self.max_stale
                && self.max_stale > 0.0;
            return if is_welcome { Worth::Answer } else { Worth::Stale };
        }
        if age < ttl { Worth::Answer } else { Worth::Stale }
    }

    /// True if a stale object may be served while it is refreshed.
    pub(crate) fn allow_grace(&self, object: &Object, request: &LookupRequest<'_>) -> bool {
        let age = request.now - object.origin();
        !object.flags().has(ObjectFlags::REVALIDATE)
            && self.min_fresh <= 0.0
            && is_young_enough(age, request)
            && age >= object.ttl()
    }

    /// True if an object made for another `Accept-Language` is in the language that this client
    /// prefers.
    pub(crate) fn speaks(&self, object: &Object, request: &LookupRequest<'_>) -> bool {
        if !self.selects_language {
            return false;
        }
        let ours = |name: &&[u8]| !(request.gzip_support && name.eq_ignore_ascii_case(b"Accept-Encoding"));
        let mut differing = vary::differing(object.vary(), request.request, request.sameness).filter(ours);
        if !differing.all(|name| name.eq_ignore_ascii_case(b"Accept-Language")) {
            return false;
        }
        let mut languages = message::stored_headers(object.head()).filter(|header| header.is("Content-Language"));
        match (languages.next(), languages.next(), language::preferred(request.request)) {
            (Some(spoken), None, Some(preferred)) => spoken.value().eq_ignore_ascii_case(preferred),
            _ => false,
        }
    }
}

/// The identity of an object for the requests that wait for it. Transaction ids alone begin anew
/// with each worker.
pub(crate) fn identity(object: &Object) -> u64 {
    let tenths_of_ms = (object.origin() * 10_000.0) as u64;
    u64::from(object.xid()) << 32 | tenths_of_ms & u64::from(u32::MAX)
}

fn is_young_enough(age: f64, request: &LookupRequest<'_>) -> bool {
    request.ttl_cap.is_none_or(|cap| age < cap)
}
