//! RFC 9111 for a shared cache: permission to store a response, its freshness, and the conditions
//! of its reuse.
//!
//! [`judge`] is given a final response to a GET and returns its complete cacheability, before VCL
//! runs: VCL can override it. Not included: request directives and the use of stored responses are
//! judged at lookup.
//!
//! ```text
//!   origin = requested − Age, or Date       received
//!  ───┴───────────────────────────────────────┴─────┬──────────────┬──────────────┬──→ time
//!                                     origin + ttl ─┘  + grace ────┘  + keep ─────┘
//!                 fresh ────────────────────────────┤ stale while  ┤ validated, or used
//!                                                      revalidated    if the origin fails
//! ```
//!
//! *Invariants:* every number of a result is finite and not negative, for any input; an
//! unreadable field makes a response stale, never fresh. Source: RFC 9111 §3, §4.2; RFC 5861; RFC
//! 9213. Reading order: `age`, `directives`, `targeted`, `sharing`, `unkeyed`,
//! `mark`.

mod age;
pub mod directives;
mod mark;
mod sharing;
mod targeted;
mod unkeyed;

pub use age::Times;
pub use directives::FieldNames;
pub use mark::PrivateMark;
pub use sharing::Sharing;
pub use unkeyed::{Unkeyed, unkeyed};

use crate::date::{self, DateForms};
use crate::lifetime::Lifetime;
use directives::{Directives, Scope};
use message::Message;

/// Heuristic freshness of a response without explicit lifetime: this part of its age when it was
/// sent, if it has a date of last modification. Source: RFC 9111 §4.2.2.
const HEURISTIC_FRACTION: f64 = 0.1;

/// The operator's settings for storing.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Time, in seconds, for which a stale response is kept for validation, and for an origin that
    /// fails.
    pub keep: f64,
    /// Names of the fields that replace Cache-Control, the most important first, separated by
    /// commas.
    pub targets: &'a str,
    /// Responses with Set-Cookie may be stored.
    pub stores_set_cookie: bool,
}

/// The reason why a response must not be stored, or is not worth it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// `no-store`.
    NoStore,
    /// `private`.
    Private,
    /// `must-understand`, and the status is none of RFC 9110's.
    NotUnderstood,
    /// The request had Authorization, and no directive of the response permits sharing.
    Authorization,
    /// It sets a cookie, and the operator does not permit storing such responses.
    SetCookie,
    /// It has neither a lifetime nor a status with heuristic freshness.
    NotCacheable,
    /// It is stale on arrival, cannot be validated, and no directive allows its use when it is
    /// stale.
    Useless,
    /// It sets a cookie, and its lifetime is not its own.
    ResponseCookie,
    /// The request had a Cookie, and the response's lifetime is not its own.
    RequestCookie,
    /// `no-cache`, and a lifetime that is not its own would let it be used without validation.
    NoCache,
    /// It depends on a property of the request that is neither in the key nor in Vary. Found by
    /// [`unkeyed`].
    Unkeyed,
    /// VCL made the fetch a HEAD, so the response has no content for clients that send GET. Not
    /// found by [`judge`].
    NoContent,
    /// The origin marked it as one client's, and VCL has it stored for all. Not found by [`judge`].
    Marked,
    /// Other clients got another body under the same key. Not found by [`judge`].
    Differs,
}

impl Refusal {
    /// True if the response would be stored if it only had a lifetime.
    #[must_use]
    pub fn is_for_lack_of_lifetime(self) -> bool {
        matches!(self, Refusal::NotCacheable | Refusal::Useless)
    }
}

/// The cacheability of a response under RFC 9111.
#[derive(Clone, PartialEq, Debug)]
pub struct Cacheability {
    /// Time for which it may be used, also if it is refused.
    pub lifetime: Lifetime,
    /// The reason why it must not be stored.
    pub refusal: Option<Refusal>,
    /// It must be validated before every use (`no-cache`).
    pub must_validate: bool,
    /// It must never be served stale, not even if the origin fails.
    pub never_stale: bool,
    /// Fields for the requesting client only (`private` and `no-cache` with names).
    pub unshared: FieldNames,
    /// Facts that decide about a lifetime that is not the response's own. The request's Cookie is
    /// not among them yet.
    pub sharing: Sharing,
}

/// Judges a response with a final status. Source: RFC 9111 §3, §4.2.
#[must_use]
pub fn judge(response: &Message, is_authorized: bool, times: Times, settings: &Settings<'_>) -> Cacheability {
    let targeted = targeted::directives(response, settings.targets);
    let is_targeted = targeted.is_some();
    let directives = targeted.unwrap_or_else(|| Directives::of_cache_control(response));
    let date = field_date(response, "Date");
    let age_seconds = age::of_field(response.get("Age"));
    let origin = age::origin(age_seconds, date, times);
    let expires = if is_targeted { None } else { Expires::of(response) };

    let dated = date.unwrap_or(times.received);
    let explicit = explicit_lifetime(&directives, expires, dated);
    let may_guess = is_heuristically_cacheable(response.status()) || directives.public;
    let ttl = explicit.or_else(|| heuristic_lifetime(response, dated).filter(|_| may_guess)).unwrap_or(0.0);

    let must_validate = matches!(directives.no_cache, Scope::Whole);
    let allows_stale = directives.stale_while_revalidate.is_some() || directives.stale_if_error.is_some();
    // s-maxage forbids stale use only implicitly; an explicit time of stale use in the same
    // response overrides that.
    let never_stale = must_validate
        || directives.must_revalidate
        || directives.proxy_revalidate
        || (directives.s_maxage.is_some() && !allows_stale);
    let seconds = |window: Option<u64>| window.filter(|_| !never_stale).unwrap_or(0) as f64;
    let mut lifetime = Lifetime {
        origin,
        ttl: if must_validate { 0.0 } else { ttl },
        grace: seconds(directives.stale_while_revalidate),
        keep: settings.keep.max(seconds(directives.stale_if_error)),
        age_seconds,
        date: date.unwrap_or(0.0),
        expires: expires.and_then(|expires| expires.0).unwrap_or(0.0),
        max_age: directives.max_age_for_log(),
    };
    // A response that is stale on arrival is kept from now on: time in the past would be useless.
    let stale_for = times.received - origin - lifetime.ttl - lifetime.grace;
    lifetime.keep += stale_for.max(0.0);

    let is_useful = stale_for < 0.0 || seconds(directives.stale_if_error) > 0.0 || has_validator(response);
    let refusal = refusal(response, &directives, is_authorized, explicit.is_some() || may_guess, settings)
        .or((!is_useful).then_some(Refusal::Useless));
    let sharing = Sharing::of(response, &directives, is_targeted, explicit, is_authorized);
    Cacheability { lifetime, refusal, must_validate, never_stale, unshared: directives.into_names(), sharing }
}

/// True if a POST's response is also the answer to a later GET: it has an explicit lifetime, and
/// `Content-Location` names the request's own target. Source: RFC 9110 §9.3.3.
#[must_use]
pub fn answers_get(request: &Message, response: &Message, settings: &Settings<'_>) -> bool {
    let is_own = || {
        let location = response.get("Content-Location").unwrap_or_default();
        !location.is_empty() && path_of(location, request.get("Host").unwrap_or_default()) == Some(request.target())
    };
    request.method() == b"POST" && response.status() == 200 && is_own() && {
        let directives = targeted::directives(response, settings.targets);
        let is_targeted = directives.is_some();
        let directives = directives.unwrap_or_else(|| Directives::of_cache_control(response));
        directives.s_maxage.is_some() || directives.max_age.is_some() || (!is_targeted && response.has("Expires"))
    }
}

/// The path and query of a URI reference to this host: absolute, without a scheme, or only a path.
fn path_of<'a>(location: &'a [u8], host: &[u8]) -> Option<&'a [u8]> {
    let authority = [b"http://".as_slice(), b"https://", b"//"].iter().find_map(|scheme| {
        let (head, rest) = location.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    let Some(rest) = authority else { return location.starts_with(b"/").then_some(location) };
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    rest[..end].eq_ignore_ascii_case(host).then(|| if end < rest.len() { &rest[end..] } else { b"/" })
}

fn refusal(
    response: &Message,
    directives: &Directives,
    is_authorized: bool,
    may_be_stored: bool,
    settings: &Settings<'_>,
) -> Option<Refusal> {
    let is_understood = is_understood(response.status());
    if directives.must_understand && !is_understood {
        return Some(Refusal::NotUnderstood);
    }
    // A cache that understands the status ignores the no-store, which is meant for others. Source:
    // RFC 9111 §5.2.2.3.
    if directives.no_store && !directives.must_understand {
        return Some(Refusal::NoStore);
    }
    if matches!(directives.private, Scope::Whole) {
        return Some(Refusal::Private);
    }
    if is_authorized && !(directives.public || directives.must_revalidate || directives.s_maxage.is_some()) {
        return Some(Refusal::Authorization);
    }
    if !settings.stores_set_cookie && response.has("Set-Cookie") && !directives.unshares(b"Set-Cookie") {
        return Some(Refusal::SetCookie);
    }
    (!may_be_stored).then_some(Refusal::NotCacheable)
}

/// True if the status is one that HTTP itself defines. Source: RFC 9110 §15.
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=206 | 300..=305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

/// True if heuristic freshness is allowed for this status. Source: RFC 9110 §15.1.
#[must_use]
pub fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The explicit lifetime of the response; an unreadable one is 0.
fn explicit_lifetime(directives: &Directives, expires: Option<Expires>, date: f64) -> Option<f64> {
    if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
        return Some(seconds.unwrap_or(0) as f64);
    }
    expires.map(|Expires(time)| time.map_or(0.0, |time| (time - date).max(0.0)))
}

fn heuristic_lifetime(response: &Message, date: f64) -> Option<f64> {
    let changed = field_date(response, "Last-Modified")?;
    Some(((date - changed) * HEURISTIC_FRACTION).max(0.0))
}

fn has_validator(response: &Message) -> bool {
    response.has("ETag") || response.has("Last-Modified")
}

/// The value of Expires: a time, or an unreadable value, which counts as the past. Source: RFC 9111
/// §5.3.
#[derive(Clone, Copy)]
struct Expires(Option<f64>);

impl Expires {
    fn of(response: &Message) -> Option<Expires> {
        let mut lines = response.get_all("Expires");
        let first = lines.next()?;
        let is_alone = lines.next().is_none();
        Some(Expires(date::parse(first, DateForms::Rfc).filter(|_| is_alone)))
    }
}

fn field_date(response: &Message, name: &str) -> Option<f64> {
    date::parse(response.get(name)?, DateForms::Rfc)
}
