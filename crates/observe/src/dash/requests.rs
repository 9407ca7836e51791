//! Requests in the log: their facts, those that failed or were slow, and the rankings.
//!
//! Runs on the thread of the log reader, and holds its locks for single requests only. If there are
//! more requests than [`DASH_RANKED_A_SECOND`], every n-th is ranked, with the weight n.
//! *Invariant:* no header but `Host` is kept, and values of query arguments that may be secrets are
//! masked here, at the source.

use super::tops::{By, Tops};
use crate::log_reader::{Consumer, Fate};
use serde_json::{Value, json};
use shm::read::transaction::{Kind, Reason as Begun, Transaction};
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use surface::legible;
use surface::limits::{
    DASH_RANKED_A_SECOND, DASH_REQUESTS_A_SECOND, DASH_REQUESTS_MAX, DASH_SAMPLES_MAX, DASH_SLOW_MILLISECONDS,
    DASH_TEXT_BYTES_MAX, DASH_WHY_BYTES_MAX,
};
use surface::reason::{self, Handling, Reason};
use surface::secrets::{decoded, holds_secret, names_secret};
use surface::tag::Tag;

/// Interval at which rankings age.
const AGEING: Duration = Duration::from_secs(300);
/// Other requests that are kept in a second.
const SAMPLES_A_SECOND: usize = 2;

/// Addresses of clients in the rankings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Clients {
    #[default]
    Off,
    /// A hash with a key of this process.
    Hash,
    Show,
}

/// The facts of a request.
#[derive(Default)]
struct Facts<'a> {
    vxid: u64,
    start: f64,
    end: f64,
    method: &'a [u8],
    url: &'a [u8],
    host: &'a [u8],
    client: &'a [u8],
    status: u16,
    handling: Option<Handling>,
    is_hit: bool,
    reason: &'static str,
    bytes: u64,
    vcl: &'a [u8],
    backend: &'a [u8],
    fetch_seconds: f64,
    failure: &'a [u8],
}

impl<'a> Facts<'a> {
    fn of(group: &'a [Transaction]) -> Option<Facts<'a>> {
        let first = group.first().filter(|first| first.kind == Kind::Request)?;
        let mut facts = Facts { vxid: first.vxid, ..Facts::default() };
        for transaction in group {
            match (transaction.kind, transaction.reason) {
                (Kind::Request, Begun::Esi) => {}
                (Kind::Request, _) => transaction.records().for_each(|record| {
                    if let Some(tag) = record.tag() {
                        facts.take(tag, record.text());
                    }
                }),
                (Kind::BackendRequest, _) => facts.take_fetch(transaction),
                _ => {}
            }
        }
        Some(facts)
    }

    fn take(&mut self, tag: Tag, text: &'a [u8]) {
        match tag {
            Tag::Timestamp => {
                if let Some(time) = number(text, 1).filter(|time| *time > 0.0) {
                    self.start = if self.start == 0.0 { time } else { self.start };
                    self.end = self.end.max(time);
                }
            }
            Tag::ReqStart => self.client = word(text, 0),
            Tag::ReqMethod if self.method.is_empty() => self.method = text,
            Tag::ReqURL if self.url.is_empty() => self.url = text,
            Tag::ReqHeader if self.host.is_empty() => {
                if let Some((name, value)) = text.split_first_chunk::<5>() {
                    self.host = if name.eq_ignore_ascii_case(b"host:") { value.trim_ascii() } else { self.host };
                }
            }
            Tag::RespStatus => self.status = number(text, 0).map_or(0, |status| status as u16),
            Tag::ReqAcct => self.bytes = number(text, 5).map_or(0, |bytes| bytes as u64),
            Tag::Hit => self.is_hit = true,
            Tag::VCLUse => self.vcl = word(text, 0),
            Tag::Witness => {
                if let Some(text) = text.strip_prefix(reason::RECORD.as_bytes()) {
                    let found = std::str::from_utf8(word(text, 0)).ok().and_then(Reason::from_word);
                    if let Some(row) = found.map(Reason::row) {
                        self.handling = row.handling.or(self.handling);
                        self.reason = row.word;
                    }
                }
            }
            _ => {}
        }
    }

    fn take_fetch(&mut self, transaction: &'a Transaction) {
        let (mut start, mut end) = (0.0f64, 0.0f64);
        for record in transaction.records() {
            match record.tag() {
                Some(Tag::Timestamp) => {
                    if let Some(time) = number(record.text(), 1).filter(|time| *time > 0.0) {
                        start = if start == 0.0 { time } else { start };
                        end = end.max(time);
                    }
                }
                Some(Tag::BackendOpen) => self.backend = word(record.text(), 1),
                Some(Tag::FetchError) => self.failure = record.text(),
                _ => {}
            }
        }
        self.fetch_seconds += (end - start).max(0.0);
    }

    fn handling(&self) -> Handling {
        self.handling.unwrap_or(if self.is_hit { Handling::Hit } else { Handling::Answer })
    }

    fn seconds(&self) -> f64 {
        (self.end - self.start).max(0.0)
    }

    fn has_failed(&self) -> bool {
        self.status >= 500 || !self.failure.is_empty()
    }

    fn is_slow(&self) -> bool {
        self.seconds() * 1000.0 >= DASH_SLOW_MILLISECONDS as f64
    }

    /// Host and URL, as the page shows them.
    fn address(&self) -> String {
        let url = masked(&self.url[..self.url.len().min(2 * DASH_TEXT_BYTES_MAX)]);
        shown(&[self.host, &url].concat())
    }
}

fn word(text: &[u8], place: usize) -> &[u8] {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(place).unwrap_or_default()
}

fn number(text: &[u8], place: usize) -> Option<f64> {
    std::str::from_utf8(word(text, place)).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Text from the network, cut and without characters that a reader could mistake.
fn shown(text: &[u8]) -> String {
    let text = legible::line(&text[..text.len().min(DASH_TEXT_BYTES_MAX)]).into_owned();
    match text.char_indices().nth(DASH_TEXT_BYTES_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

/// A text with addresses, in which the values of those query arguments are masked that may be
/// secrets, by their names. A value that holds such an argument, as an address for a redirect may,
/// is masked as a whole.
fn masked(text: &[u8]) -> Vec<u8> {
    let is_delimiter = |byte: &u8| matches!(byte, b'?' | b'&' | b';');
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.iter().position(is_delimiter) {
        out.extend_from_slice(&rest[..=start]);
        rest = &rest[start + 1..];
        let is_end =
            |byte: &u8| is_delimiter(byte) || byte.is_ascii_whitespace() || matches!(byte, b'#' | b'"' | b'\'');
        let (pair, after) = rest.split_at(rest.iter().position(is_end).unwrap_or(rest.len()));
        let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = (decoded(&pair[..end]), pair.get(end + 1..).map(decoded));
        let is_secret = value.is_some_and(|value| names_secret(&name) || holds_secret(&value));
        out.extend_from_slice(if is_secret { &pair[..end] } else { pair });
        out.extend_from_slice(if is_secret { b"=***" } else { b"" });
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

/// A kept request.
#[derive(Clone)]
struct Kept {
    vxid: u64,
    time: f64,
    /// For the filter: lower case.
    text: String,
    row: Value,
    why: String,
}

/// Requests and rankings.
#[derive(Default)]
pub(crate) struct Requests {
    notable: VecDeque<Kept>,
    samples: VecDeque<Kept>,
    /// Failed and slow requests beyond the limit of a second.
    skipped: u64,
    /// One of so many requests is ranked.
    ranked_one_of: u64,
    pub tops: Tops,
}

impl Requests {
    /// Rows whose text contains `filter`, the newest first, and the number of those that were not
    /// kept.
    pub fn rows(&self, filter: &str, with_samples: bool) -> Value {
        let filter = filter.to_lowercase();
        let samples = self.samples.iter().filter(|_| with_samples);
        let mut rows: Vec<&Kept> =
            self.notable.iter().chain(samples).filter(|one| one.text.contains(&filter)).collect();
        rows.sort_by(|one, other| other.time.total_cmp(&one.time));
        json!({"rows": rows.iter().map(|one| &one.row).collect::<Vec<_>>(), "skipped": self.skipped,
               "slow_milliseconds": DASH_SLOW_MILLISECONDS})
    }

    /// The explanation of a kept request.
    pub fn why(&self, vxid: u64) -> Option<Value> {
        let found = self.notable.iter().chain(&self.samples).find(|one| one.vxid == vxid)?;
        Some(json!({"request": found.row, "why": found.why}))
    }

    /// One of so many requests is ranked at present.
    pub fn ranked_one_of(&self) -> u64 {
        self.ranked_one_of.max(1)
    }
}

/// The consumer of the log.
pub(crate) struct Source {
    requests: Arc<Mutex<Requests>>,
    clients: Clients,
    key: RandomState,
    second: Instant,
    /// Requests, explained ones and samples in this second.
    counts: (u64, usize, usize),
    /// One of so many is ranked in this second.
    one_of: u64,
    aged: Instant,
}

impl Source {
    pub fn new(requests: &Arc<Mutex<Requests>>, clients: Clients) -> Source {
        Source {
            requests: Arc::clone(requests),
            clients,
            key: RandomState::new(),
            second: Instant::now(),
            counts: (0, 0, 0),
            one_of: 1,
            aged: Instant::now(),
        }
    }

    fn begin_second(&mut self) {
        if self.second.elapsed() >= Duration::from_secs(1) {
            let rate = self.counts.0 as f64 / self.second.elapsed().as_secs_f64();
            self.one_of = (rate / DASH_RANKED_A_SECOND as f64).ceil().max(1.0) as u64;
            (self.second, self.counts) = (Instant::now(), (0, 0, 0));
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.ranked_one_of = self.one_of;
            if self.aged.elapsed() >= AGEING {
                requests.tops.age();
                self.aged = Instant::now();
            }
        }
    }

    fn rank(&self, facts: &Facts<'_>) {
        let (address, weight) = (facts.address(), self.one_of);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let tops = &mut requests.tops;
        tops.add(By::Requests, &address, weight);
        tops.add(By::Bytes, &address, facts.bytes.saturating_mul(weight));
        tops.add(By::OriginTime, &address, ((facts.fetch_seconds * 1e6) as u64).saturating_mul(weight));
        if matches!(facts.handling(), Handling::Miss | Handling::Pass | Handling::Pipe) {
            tops.add(By::Misses, &address, weight);
        }
        if facts.has_failed() {
            tops.add(By::Errors, &address, weight);
        }
        tops.add(By::Hosts, &shown(facts.host), weight);
        tops.add(By::Status, &facts.status.to_string(), weight);
        match self.clients {
            Clients::Off => {}
            Clients::Hash => tops.add(By::Clients, &format!("{:016x}", self.key.hash_one(facts.client)), weight),
            Clients::Show => tops.add(By::Clients, &shown(facts.client), weight),
        }
    }

    fn keep(&mut self, facts: &Facts<'_>, group: &[Transaction]) {
        let is_notable = facts.has_failed() || facts.is_slow();
        if !is_notable && self.counts.2 >= SAMPLES_A_SECOND {
            return;
        }
        let requests = Arc::clone(&self.requests);
        if is_notable && self.counts.1 >= DASH_REQUESTS_A_SECOND {
            requests.lock().unwrap_or_else(PoisonError::into_inner).skipped += 1;
            return;
        }
        if is_notable {
            self.counts.1 += 1
        } else {
            self.counts.2 += 1
        }
        let why = masked(tools::explain(group).join("\n").as_bytes());
        let mut why = String::from_utf8_lossy(&why).into_owned();
        if let Some((end, _)) = why.char_indices().nth(DASH_WHY_BYTES_MAX) {
            why.truncate(end);
        }
        let kept = made(facts, why, is_notable);
        let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
        let (ring, most) = match is_notable {
            true => (&mut requests.notable, DASH_REQUESTS_MAX),
            false => (&mut requests.samples, DASH_SAMPLES_MAX),
        };
        if ring.len() == most {
            ring.pop_front();
        }
        ring.push_back(kept);
    }
}

fn made(facts: &Facts<'_>, why: String, is_notable: bool) -> Kept {
    let address = facts.address();
    let kind = match (facts.has_failed(), is_notable) {
        (true, _) => "failed",
        (false, true) => "slow",
        (false, false) => "sample",
    };
    let row = json!({
        "vxid": facts.vxid,
        "time": facts.end,
        "kind": kind,
        "method": shown(facts.method),
        "address": address,
        "status": facts.status,
        "result": facts.handling().word(),
        "reason": facts.reason,
        "seconds": facts.seconds(),
        "origin_seconds": facts.fetch_seconds,
        "bytes": facts.bytes,
        "vcl": shown(facts.vcl),
        "backend": shown(facts.backend),
        "failure": shown(facts.failure),
    });
    let words = [address.as_str(), kind, facts.handling().word(), facts.reason, &facts.status.to_string()];
    let text = format!("{} {} {}", words.join(" "), shown(facts.backend), shown(facts.failure)).to_lowercase();
    Kept { vxid: facts.vxid, time: facts.end, text, row, why }
}

impl Consumer for Source {
    fn transaction(&mut self, _: &Transaction, _: Fate) {}

    fn wants_groups(&self) -> bool {
        true
    }

    fn group(&mut self, group: &[Transaction]) {
        self.begin_second();
        let Some(facts) = Facts::of(group) else { return };
        self.counts.0 += 1;
        if self.counts.0.is_multiple_of(self.one_of) {
            self.rank(&facts);
        }
        self.keep(&facts, group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_addresses_are_masked() {
        let masked = |url: &str| String::from_utf8(masked(url.as_bytes())).unwrap();
        assert_eq!(
            masked("/a?page=1&access_token=abc&api-key=x&q=key"),
            "/a?page=1&access_token=***&api-key=***&q=key"
        );
        assert_eq!(masked("/a?SID=1&keyword=2&sig=3&code"), "/a?SID=***&keyword=2&sig=***&code");
        assert_eq!(masked("/token=1"), "/token=1");
        for (address, expected) in [
            ("/a?a%5Btoken%5D=1&tok%65n=2&b=3", "/a?a%5Btoken%5D=***&tok%65n=***&b=3"),
            ("/a?st=503;token=1;q=2", "/a?st=503;token=***;q=2"),
            ("/a?next=/b?token=1&q=2", "/a?next=/b?token=***&q=2"),
            ("/a?next=%2Fb%3Ftoken%3D1&q=2", "/a?next=***&q=2"),
            ("/a?next=%2Fb%3Ftok%2565n%3D1", "/a?next=***"),
            ("GET\n  host/a?sid=1#f failed; status=500", "GET\n  host/a?sid=***#f failed; status=500"),
            ("/a?%", "/a?%"),
        ] {
            assert_eq!(masked(address), expected);
        }
    }

    #[test]
    fn markup_and_marks_of_direction_are_text() {
        let facts = Facts { host: b"h", url: "/</script>\u{202e}\u{7}".as_bytes(), ..Facts::default() };
        let address = facts.address();
        assert!(address.starts_with("h/</script>") && !address.contains('\u{202e}') && !address.contains('\u{7}'));
        let long = Facts { url: &[b'\x01'; 100_000], ..Facts::default() };
        assert!(long.address().len() <= 4 * DASH_TEXT_BYTES_MAX);
    }
}
