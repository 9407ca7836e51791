//! Unkeyed answers: they depend on a property of the request, or of its connection, that is neither
//! in the key nor in Vary.
//!
//! This follows from the status (416 depends on Range), from a field of the response
//! (`Preference-Applied`), or from a field of the request that changes its method. Such an answer
//! is wrong for other requests whatever its lifetime: one client would decide the response for all
//! others. Errors are taken for answers to the request line only if nothing else in the request
//! looks like their cause. Source: RFC 9110 §15, RFC 6585, RFC 8470 §5.2; the attacks known as
//! cache-poisoned denial of service (cpdos.org).

use crate::vary::depends_on;
use message::Message;
use surface::limits::ERROR_CAUSE_BYTES_MAX;

/// A reason not to store an answer for other requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unkeyed {
    /// It implies nothing about other requests, so no marker is needed.
    pub is_odd: bool,
}

/// A status that depends on more than key and Vary. Fields that end with the client's connection
/// cannot be named in Vary: the origin never gets them.
struct Row {
    status: u16,
    /// Fields on which it depends; if Vary names one of them, it is keyed. Empty: on nothing that
    /// Vary could name.
    fields: &'static [&'static str],
    /// The cause is one request; others need not get the same.
    is_odd: bool,
}

const fn row(status: u16, fields: &'static [&'static str], is_odd: bool) -> Row {
    Row { status, fields, is_odd }
}

/// Fields with which clients state the formats they accept.
const ACCEPTED: &[&str] = &["Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language"];

static STATUSES: &[Row] = &[
    row(226, &["A-IM"], true),
    row(401, &["Authorization"], false),
    row(406, ACCEPTED, true),
    row(407, &[], false),
    row(408, &[], false),
    row(412, &[], true),
    row(413, &[], true),
    row(415, &[], true),
    row(416, &["Range"], true),
    row(417, &[], true),
    row(421, &[], false),
    row(425, &[], true),
    row(426, &[], false),
    row(428, &[], false),
    row(429, &[], false),
    row(431, &[], true),
    row(505, &[], false),
    row(506, ACCEPTED, true),
    row(510, &[], true),
    row(511, &[], false),
];

/// Fields by which frameworks take a GET for another method.
const METHOD_FIELDS: [&str; 3] = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"];

/// Reason why the answer would be wrong for other requests with the same key; `None` if there is
/// none. `request` is the one sent to the origin.
#[must_use]
pub fn unkeyed(request: &Message, response: &Message) -> Option<Unkeyed> {
    let status = response.status();
    let by_status = STATUSES.iter().find(|row| row.status == status);
    if let Some(row) = by_status.filter(|row| !row.fields.iter().any(|name| depends_on(response, name))) {
        return Some(Unkeyed { is_odd: row.is_odd });
    }
    let by_method = METHOD_FIELDS.iter().any(|name| request.has(name) && !depends_on(response, name));
    let by_preference = response.has("Preference-Applied") && !depends_on(response, "Prefer");
    let by_head = (400..=599).contains(&status) && may_cause_errors(request);
    (by_method || by_preference || by_head).then_some(Unkeyed { is_odd: true })
}

/// True if many origins would answer the fields of the request with an error: they are long, or
/// have characters beyond ASCII.
fn may_cause_errors(request: &Message) -> bool {
    let bytes: usize = request.headers().map(|header| header.line().len()).sum();
    let is_plain = |value: &[u8]| value.iter().all(|&byte| matches!(byte, b'\t' | b' '..=b'~'));
    bytes > ERROR_CAUSE_BYTES_MAX || request.headers().any(|header| !is_plain(header.value()))
}
