//! Facts in the log about one request, with its restarts and fetches: the material for an
//! explanation.

use super::near_miss::{Difference, Stored};
use shm::read::transaction::{Kind, Reason as Begun, Transaction};
use std::collections::HashMap;
use surface::legible;
use surface::limits::WHY_COOKIES_MAX;
use surface::reason::{DETAILS, FREE_DETAILS, MORE, RECORD, Reason};
use surface::tag::Tag;

/// A request in the log. All texts are in the form in which the log tools show them
/// (`surface::legible`).
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// The request for the page that includes this fragment.
    pub page: Option<u64>,
    /// Method as received.
    pub method: String,
    /// Protocol as received: `HTTP/2.0`.
    pub protocol: String,
    /// The client's scheme, `http` or `https`; empty if the log doesn't contain it, as that of a
    /// daemon without TLS.
    pub scheme: String,
    /// Host as received.
    pub received_host: String,
    /// Host after VCL.
    pub host: String,
    /// URL as received.
    pub received_url: String,
    /// URL after VCL.
    pub url: String,
    /// Status sent; empty if nothing was sent.
    pub status: String,
    /// Reason phrase sent.
    pub phrase: String,
    /// Start, in seconds since 1970.
    pub start: f64,
    /// Seconds from its start to its end.
    pub seconds: Option<f64>,
    /// Objects that the cache had under almost the same address.
    pub near: Vec<(Difference, Stored)>,
    /// The steps: the request itself, its restarts, and its fetches.
    pub steps: Vec<Step>,
}

/// The content of a `Hit` record: `xid ttl grace keep …`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Hit {
    /// The fetch that stored the object.
    pub xid: u64,
    /// Seconds left.
    pub ttl: f64,
    pub grace: f64,
    pub keep: f64,
}

impl Hit {
    fn parse(text: &str) -> Option<Hit> {
        let mut words = text.split(' ');
        let xid = words.next()?.parse().ok()?;
        let mut number = || words.next()?.parse().ok().filter(|number: &f64| number.is_finite());
        Some(Hit { xid, ttl: number()?, grace: number()?, keep: number()? })
    }
}

/// One transaction.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub xid: u64,
    /// The transaction that began it.
    pub parent: u64,
    /// Reason for its start; `None` if its records don't contain it.
    pub begun: Option<Begun>,
    pub is_fetch: bool,
    /// The stored object that lookup found.
    pub hit: Option<Hit>,
    /// Its decisions, in order.
    pub decisions: Vec<Decision>,
    /// `TTL` records.
    pub ttl: Vec<String>,
    /// `VCL_Error`, `FetchError`, `Error`, `BogoHeader` and `HttpGarbage` records.
    pub errors: Vec<(Tag, String)>,
    /// Status of the origin's response, or of the one generated instead of it.
    pub status: String,
    /// Status of the origin's response, if there was one.
    pub origin_status: Option<String>,
    /// Names of the cookies that the origin's response sets; of a request, those of the stored copy
    /// that it found.
    pub set_cookies: Vec<String>,
    /// Names of the cookies in the request to the origin.
    pub request_cookies: Vec<String>,
    /// True if the origin responded with 304: the stored object is still valid.
    pub is_revalidated: bool,
    /// The marker found by lookup: the fetch that created it, and its remaining time in seconds.
    pub marker: Option<(u64, f64)>,
    /// Cache-Control, Expires, Age, Vary … of the origin's response; only the names from
    /// Set-Cookie.
    pub headers: Vec<String>,
    /// `BackendOpen`.
    pub backend: String,
    /// Seconds spent waiting for another request's fetch.
    pub waited: Option<f64>,
    /// Seconds from its start to its end.
    pub seconds: Option<f64>,
}

/// A recorded reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub reason: Reason,
    pub details: Vec<(String, String)>,
}

impl Decision {
    /// Parses the payload of a `Witness` record (a `Notice` in logs of earlier releases); `None` if
    /// it is not a reason, or one of another version.
    fn parse(payload: &str) -> Option<Decision> {
        let text = payload.strip_prefix(RECORD)?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(Decision { reason: Reason::from_word(word)?, details: details(rest) })
    }

    /// The first detail with that name.
    pub(crate) fn detail(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All details with that name: a value too long for one record is spread over several.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.details.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A detail that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.detail(name)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A detail that is a list.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        self.all(name).flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty()).collect()
    }
}

/// `name=value …` in the order of the record.
fn details(mut rest: &str) -> Vec<(String, String)> {
    let mut details = Vec::new();
    while let Some((name, after)) = rest.split_once('=').filter(|(name, _)| DETAILS.contains(name)) {
        // A value extends to the next name; a value that clients or origins can influence extends
        // to the end, whatever it contains.
        let next = DETAILS.iter().filter_map(|name| after.find(&format!(" {name}="))).min();
        let next = next.filter(|_| !FREE_DETAILS.contains(&name));
        let (value, tail) = next.map_or((after, ""), |at| (&after[..at], &after[at + 1..]));
        details.push((name.to_owned(), value.to_owned()));
        rest = tail;
    }
    details
}

/// Response headers that influence the storing of the response and its lifetime.
const TELLING: &[&str] = &[
    "cache-control",
    "expires",
    "age",
    "date",
    "last-modified",
    "etag",
    "pragma",
    "surrogate-control",
    "vary",
    "content-encoding",
];

impl Account {
    /// The client's request of a group, and the fragments of its page, each of which is a request
    /// of its own. A transaction belongs to the request that began it.
    pub(crate) fn all_of(group: &[Transaction]) -> Vec<Account> {
        let mut accounts = vec![Account::default()];
        let mut places = HashMap::new();
        for transaction in group {
            let mut place = places.get(&transaction.parent).copied().unwrap_or(0);
            if transaction.kind == Kind::Request && transaction.reason == Begun::Esi {
                place = accounts.len();
                accounts.push(Account { page: Some(transaction.parent), ..Account::default() });
            }
            places.insert(transaction.vxid, place);
            match transaction.kind {
                Kind::Request => accounts[place].add_request(transaction),
                Kind::BackendRequest => accounts[place].add_fetch(transaction),
                Kind::Session | Kind::Unknown | Kind::Raw => {}
            }
        }
        accounts.retain(|account| !account.steps.is_empty());
        accounts
    }

    /// The step that produced the client's response, the request itself or its last restart, and
    /// the fetches for it. Without any such step: all fetches.
    pub(crate) fn last(&self) -> (Option<&Step>, Vec<&Step>) {
        let Some(place) = self.steps.iter().rposition(|step| !step.is_fetch) else {
            return (None, self.steps.iter().collect());
        };
        let last = &self.steps[place];
        // Retries are children of the fetches before them, and those of an earlier step may occur
        // here, too.
        let mut family = vec![last.xid];
        let mut fetches = Vec::new();
        for fetch in &self.steps[place + 1..] {
            if family.contains(&fetch.parent) {
                family.push(fetch.xid);
                fetches.push(fetch);
            }
        }
        (Some(last), fetches)
    }

    /// The stored object that the last step found.
    pub(crate) fn hit(&self) -> Option<Hit> {
        self.last().0?.hit
    }

    pub(crate) fn xids(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().map(|step| step.xid)
    }

    /// Parses a single record about input that was too large to become a request, `text=GET /path
    /// HTTP/1.1`.
    pub(crate) fn of_refused(record: &Transaction) -> Option<Account> {
        let mut step = Step { xid: record.vxid, ..Step::default() };
        let witness = record.records().find(|record| record.tag() == Some(Tag::Witness))?;
        step.take_reason(&legible::line(witness.text()));
        let line =
            step.decisions.iter().find(|made| made.reason == Reason::RequestTooLarge)?.detail("text")?.to_owned();
        let mut words = line.split(' ').map(str::to_owned);
        let (method, url) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        Some(Account { method, received_url: url.clone(), url, steps: vec![step], ..Account::default() })
    }

    fn add_request(&mut self, transaction: &Transaction) {
        let mut step = Step::new(transaction, false);
        // VCL may give each client a cookie of its own.
        let mut is_delivered = false;
        for record in transaction.records() {
            let Some(tag) = record.tag() else { continue };
            let text = legible::line(record.text()).into_owned();
            match tag {
                Tag::ReqMethod if self.method.is_empty() => self.method = text,
                Tag::ReqProtocol if self.protocol.is_empty() => self.protocol = text,
                Tag::ReqStart if self.scheme.is_empty() => {
                    text.split(' ').nth(3).unwrap_or_default().clone_into(&mut self.scheme);
                }
                Tag::ReqURL => {
                    if self.received_url.is_empty() {
                        self.received_url.clone_from(&text);
                    }
                    self.url = text;
                }
                Tag::ReqHeader => {
                    if let Some(value) = header(&text, "host") {
                        if self.received_host.is_empty() {
                            value.clone_into(&mut self.received_host);
                        }
                        value.clone_into(&mut self.host);
                    }
                }
                Tag::RespHeader if !is_delivered => step.set_cookies.extend(set_cookie(&text)),
                Tag::RespUnset => {
                    if let Some(name) = set_cookie(&text) {
                        step.set_cookies.retain(|known| *known != name);
                    }
                }
                Tag::VCLCall if text == "DELIVER" => is_delivered = true,
                Tag::RespStatus => self.status = text,
                Tag::RespReason => self.phrase = text,
                Tag::Hit => step.hit = Hit::parse(&text),
                Tag::Timestamp => {
                    if let Some(start) = absolute(&text, "Start").filter(|_| self.start == 0.0) {
                        self.start = start;
                    }
                    if let Some(seconds) = timestamp(&text, "Waitinglist").map(|(_, since)| since) {
                        step.waited = Some(seconds);
                    }
                    if let Some((seconds, _)) = timestamp(&text, "Resp").or_else(|| timestamp(&text, "PipeSess")) {
                        self.seconds = Some(seconds);
                    }
                }
                other => step.take(other, text),
            }
        }
        if step.hit.is_none() {
            step.set_cookies.clear();
        }
        self.steps.push(step);
    }

    fn add_fetch(&mut self, transaction: &Transaction) {
        let mut step = Step::new(transaction, true);
        // The origin's response is followed by the headers of the stored object, or of the response
        // generated instead of it.
        let mut is_origins = true;
        // A status without an earlier timestamp of the origin's response belongs to a response
        // generated by Copal.
        let mut has_answered = false;
        for record in transaction.records() {
            let Some(tag) = record.tag() else { continue };
            let text = legible::line(record.text()).into_owned();
            match tag {
                Tag::BerespStatus => {
                    is_origins = step.status.is_empty();
                    step.is_revalidated |= step.status == "304";
                    if has_answered && step.origin_status.is_none() {
                        step.origin_status = Some(text.clone());
                    }
                    step.status = text;
                }
                Tag::BackendOpen => step.backend = text,
                Tag::BereqHeader => step.request_cookies.extend(request_cookies(&text)),
                Tag::BereqUnset if header(&text, "cookie").is_some() => step.request_cookies.clear(),
                Tag::BerespHeader => {
                    step.set_cookies.extend(set_cookie(&text).filter(|_| is_origins));
                    if is_origins && TELLING.iter().any(|name| header(&text, name).is_some()) {
                        step.headers.push(text);
                    }
                }
                Tag::BerespUnset => {
                    step.headers.retain(|known| *known != text);
                    if let Some(name) = set_cookie(&text) {
                        step.set_cookies.retain(|known| *known != name);
                    }
                }
                Tag::Timestamp => {
                    has_answered |= absolute(&text, "Beresp").is_some();
                    for label in ["BerespBody", "Beresp", "Error"] {
                        if let Some((seconds, _)) = timestamp(&text, label) {
                            step.seconds = Some(seconds);
                        }
                    }
                }
                other => step.take(other, text),
            }
        }
        self.steps.push(step);
    }
}

impl Step {
    fn new(transaction: &Transaction, is_fetch: bool) -> Step {
        let (xid, parent) = (transaction.vxid, transaction.parent);
        Step { xid, parent, begun: Some(transaction.reason), is_fetch, ..Step::default() }
    }

    /// Handles records common to requests and fetches.
    fn take(&mut self, tag: Tag, text: String) {
        match tag {
            Tag::Witness | Tag::Notice => self.take_reason(&text),
            Tag::TTL => self.ttl.push(text),
            Tag::HitMiss | Tag::HitPass => {
                let marker = text.split_once(' ').and_then(|(xid, left)| Some((xid.parse().ok()?, left.parse().ok()?)));
                self.marker = marker;
            }
            Tag::VCLError | Tag::FetchError | Tag::Error | Tag::BogoHeader | Tag::HttpGarbage => {
                self.errors.push((tag, without_values(tag, text)));
            }
            _ => {}
        }
    }

    fn take_reason(&mut self, payload: &str) {
        let more = payload.strip_prefix(RECORD).and_then(|text| text.strip_prefix(MORE)?.strip_prefix(' '));
        match (more, self.decisions.last_mut()) {
            (Some(more), Some(last)) => last.details.extend(details(more)),
            (Some(_), None) => {}
            (None, _) => self.decisions.extend(Decision::parse(payload)),
        }
    }
}

/// Reduces an error's text: to the first line for an unreadable request, to the name for a header
/// line with cookies.
fn without_values(tag: Tag, text: String) -> String {
    let cut = match tag {
        Tag::HttpGarbage => text.find(['\r', '\n']).or_else(|| text.find("%0d")).or_else(|| text.find("%0a")),
        Tag::BogoHeader => text.to_ascii_lowercase().find("cookie").map(|at| at + "cookie".len()),
        _ => None,
    };
    cut.filter(|at| *at < text.len()).map_or(text.clone(), |at| format!("{} [...]", &text[..at]))
}

/// The value of a header line, if it is of this header.
fn header<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim())
}

/// The name of the cookie that a header line sets.
fn set_cookie(line: &str) -> Option<String> {
    let cookie = header(line, "set-cookie")?;
    Some(cookie.split(['=', ';']).next().unwrap_or_default().trim().to_owned())
}

/// Names of the cookies in a header line, up to the number that reasons record.
fn request_cookies(line: &str) -> Vec<String> {
    let cookies = header(line, "cookie").unwrap_or_default().split(';');
    let names = cookies.map(|cookie| cookie.split('=').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).take(WHY_COOKIES_MAX).map(str::to_owned).collect()
}

/// The time of a timestamp with this label, in seconds since 1970.
fn absolute(text: &str, label: &str) -> Option<f64> {
    let (found, numbers) = text.split_once(": ")?;
    if found != label {
        return None;
    }
    numbers.split(' ').next()?.parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

/// For a timestamp with this label: seconds since the start and since the previous timestamp.
fn timestamp(text: &str, label: &str) -> Option<(f64, f64)> {
    let (found, numbers) = text.split_once(": ")?;
    if found != label {
        return None;
    }
    let mut numbers = numbers.split(' ').skip(1).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_with_their_details() {
        let decision = Decision::parse("why pass at=/etc/my vcl/a.vcl:12 in=vcl_recv>vcl_req_cookie").unwrap();
        assert_eq!(decision.reason, Reason::PassByVcl);
        assert_eq!(decision.detail("at"), Some("/etc/my vcl/a.vcl:12"));
        assert_eq!(decision.detail("in"), Some("vcl_recv>vcl_req_cookie"));
        let decision = Decision::parse("why connect-failed text=backend a=b: fail errno 111 (x)").unwrap();
        assert_eq!(decision.detail("text"), Some("backend a=b: fail errno 111 (x)"));
        assert_eq!(Decision::parse("why miss-absent").unwrap().details, []);
        // Text from clients or origins stays a single value.
        let decision = Decision::parse("why miss-vary headers=A at=/etc/forged.vcl:1").unwrap();
        assert_eq!((decision.detail("headers"), decision.detail("at")), (Some("A at=/etc/forged.vcl:1"), None));
        let mut step = Step::default();
        for payload in [
            "why more cookies=lost",
            "why pass in=vcl_recv",
            "why more dialect=4 cookies=a; b",
            "why more cookies=c in=x",
        ] {
            step.take(Tag::Witness, payload.to_owned());
        }
        let [decision] = &step.decisions[..] else { panic!("{:?}", step.decisions) };
        assert_eq!(decision.all("cookies").collect::<Vec<_>>(), ["a; b", "c in=x"]);
        assert_eq!((decision.detail("dialect"), decision.detail("in")), (Some("4"), Some("vcl_recv")));
        for strange in ["", "why", "why ", "why never-heard-of", "vsl: High number of variants (12)"] {
            assert_eq!(Decision::parse(strange), None, "{strange}");
        }
    }

    #[test]
    fn values_of_cookies_are_not_taken_over() {
        let garbage = without_values(Tag::HttpGarbage, "GET / HTTP/1.1%0d%0aCookie: a=secret".to_owned());
        assert_eq!(garbage, "GET / HTTP/1.1 [...]");
        let bogus = without_values(Tag::BogoHeader, "Header too long: Cookie: a=secret".to_owned());
        assert_eq!(bogus, "Header too long: Cookie [...]");
        assert_eq!(without_values(Tag::VCLError, "plain".to_owned()), "plain");
    }

    #[test]
    fn timestamps_are_read_by_label() {
        assert_eq!(timestamp("Resp: 1795202400.5 0.25 0.125", "Resp"), Some((0.25, 0.125)));
        assert_eq!(timestamp("Resp: 1795202400.5 0.25 0.125", "Start"), None);
        assert_eq!(timestamp("Resp: x", "Resp"), None);
    }
}
