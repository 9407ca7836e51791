//! What the log says of one request, with its restarts and fetches: the material of an explanation.

use shm::read::group::{Kind, Reason as Begun, Transaction};
use surface::legible;
use surface::reason::{DETAILS, RECORD, Reason};
use surface::tag::Tag;

/// A request, from the log. All texts are as the log's tools show them (`surface::legible`).
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Method as received.
    pub method: String,
    /// Host as VCL left it.
    pub host: String,
    /// URL as received.
    pub received_url: String,
    /// URL as VCL left it.
    pub url: String,
    /// Status sent; empty when none was.
    pub status: String,
    /// Reason phrase sent.
    pub phrase: String,
    /// Seconds from its start to its end.
    pub seconds: Option<f64>,
    /// Served from the cache: the `Hit` record, `xid ttl grace keep …`.
    pub hit: Option<String>,
    /// The steps: the request itself, its restarts, and its fetches.
    pub steps: Vec<Step>,
}

/// One transaction.
#[derive(Debug)]
pub(crate) struct Step {
    pub xid: u32,
    /// What it was begun for.
    pub begun: Begun,
    pub is_fetch: bool,
    /// Its decisions, in order.
    pub decisions: Vec<Decision>,
    /// `TTL` records.
    pub ttl: Vec<String>,
    /// `VCL_Error`, `FetchError`, `Error`, `BogoHeader` and `HttpGarbage` records.
    pub errors: Vec<(Tag, String)>,
    /// Status of the origin's answer, or of the one that was made in its place.
    pub status: String,
    /// The origin answered 304: the stored copy is still good.
    pub is_revalidated: bool,
    /// The marker that lookup found: the `HitMiss` or `HitPass` record, `xid seconds-left`.
    pub marker: Option<String>,
    /// Cache-Control, Expires, Age, Vary, Set-Cookie … of the origin's answer.
    pub headers: Vec<String>,
    /// `BackendOpen`.
    pub backend: String,
    /// Waited for another request's fetch, seconds.
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
    /// Reads the payload of a `Witness` record (of a `Notice`, in logs of earlier releases); `None` when it is no reason, or one of another version.
    fn parse(payload: &str) -> Option<Decision> {
        let text = payload.strip_prefix(RECORD)?;
        let (word, mut rest) = text.split_once(' ').unwrap_or((text, ""));
        let reason = Reason::from_word(word)?;
        let mut details = Vec::new();
        while let Some((name, after)) = rest.split_once('=').filter(|(name, _)| DETAILS.contains(name)) {
            // A value runs to the next name: values of free text come last, in one piece.
            let next = DETAILS.iter().filter_map(|name| after.find(&format!(" {name}="))).min();
            let (value, tail) = next.map_or((after, ""), |at| (&after[..at], &after[at + 1..]));
            details.push((name.to_owned(), value.to_owned()));
            rest = tail;
        }
        Some(Decision { reason, details })
    }

    pub(crate) fn detail(&self, name: &str) -> Option<&str> {
        self.details.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Headers of a response that have a say in whether and how long it is kept.
const TELLING: &[&str] = &[
    "cache-control",
    "expires",
    "age",
    "date",
    "pragma",
    "surrogate-control",
    "vary",
    "set-cookie",
    "content-encoding",
];

impl Account {
    pub(crate) fn of(group: &[Transaction]) -> Account {
        let mut account = Account::default();
        for transaction in group {
            match transaction.kind {
                Kind::Request => account.add_request(transaction),
                Kind::BackendRequest => account.add_fetch(transaction),
                Kind::Session | Kind::Unknown | Kind::Raw => {}
            }
        }
        account
    }

    pub(crate) fn xids(&self) -> impl Iterator<Item = u32> {
        self.steps.iter().map(|step| step.xid)
    }

    fn add_request(&mut self, transaction: &Transaction) {
        let mut step = Step::new(transaction, false);
        for record in transaction.records() {
            let Some(tag) = record.tag() else { continue };
            let text = legible::line(record.text()).into_owned();
            match tag {
                Tag::ReqMethod if self.method.is_empty() => self.method = text,
                Tag::ReqURL => {
                    if self.received_url.is_empty() {
                        self.received_url.clone_from(&text);
                    }
                    self.url = text;
                }
                Tag::ReqHeader => {
                    if let Some(value) = header(&text, "host") {
                        self.host = value.to_owned();
                    }
                }
                Tag::RespStatus => self.status = text,
                Tag::RespReason => self.phrase = text,
                Tag::Hit => self.hit = Some(text),
                Tag::Timestamp => {
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
        self.steps.push(step);
    }

    fn add_fetch(&mut self, transaction: &Transaction) {
        let mut step = Step::new(transaction, true);
        // After the origin's answer come the headers of the stored copy, or of the answer made in its place.
        let mut is_origins = true;
        for record in transaction.records() {
            let Some(tag) = record.tag() else { continue };
            let text = legible::line(record.text()).into_owned();
            match tag {
                Tag::BerespStatus => {
                    is_origins = step.status.is_empty();
                    step.is_revalidated |= step.status == "304";
                    step.status = text;
                }
                Tag::BackendOpen => step.backend = text,
                Tag::BerespHeader => {
                    if is_origins && TELLING.iter().any(|name| header(&text, name).is_some()) {
                        step.headers.push(text);
                    }
                }
                Tag::BerespUnset => step.headers.retain(|known| *known != text),
                Tag::Timestamp => {
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
        Step {
            xid: transaction.vxid,
            begun: transaction.reason,
            is_fetch,
            decisions: Vec::new(),
            ttl: Vec::new(),
            errors: Vec::new(),
            status: String::new(),
            is_revalidated: false,
            marker: None,
            headers: Vec::new(),
            backend: String::new(),
            waited: None,
            seconds: None,
        }
    }

    /// What requests and fetches have in common.
    fn take(&mut self, tag: Tag, text: String) {
        match tag {
            Tag::Witness | Tag::Notice => self.decisions.extend(Decision::parse(&text)),
            Tag::TTL => self.ttl.push(text),
            Tag::HitMiss | Tag::HitPass => self.marker = Some(text),
            Tag::VCLError | Tag::FetchError | Tag::Error | Tag::BogoHeader | Tag::HttpGarbage => {
                self.errors.push((tag, text));
            }
            _ => {}
        }
    }
}

/// The value of a header line, when it is this header.
fn header<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim())
}

/// Seconds since the start and since the last timestamp, of a timestamp with this label.
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
        for strange in ["", "why", "why ", "why never-heard-of", "vsl: High number of variants (12)"] {
            assert_eq!(Decision::parse(strange), None, "{strange}");
        }
    }

    #[test]
    fn timestamps_are_read_by_label() {
        assert_eq!(timestamp("Resp: 1795202400.5 0.25 0.125", "Resp"), Some((0.25, 0.125)));
        assert_eq!(timestamp("Resp: 1795202400.5 0.25 0.125", "Start"), None);
        assert_eq!(timestamp("Resp: x", "Resp"), None);
    }
}
