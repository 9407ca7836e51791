//! Facts of one request, from its response, the requests that origins received, and the log.

use crate::wire::HttpMessage;
use shm::log::OwnedRecord;
use std::collections::{BTreeMap, BTreeSet};
use surface::reason::{Handling, REASONS, RECORD, Reason, ReasonRow, TAG};
use surface::tag::Tag;

/// A recorded reason.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) row: &'static ReasonRow,
    /// File and line of the VCL statement that decided.
    pub(crate) at: Option<(String, u32)>,
    /// It was recorded by a fetch.
    pub(crate) is_fetch: bool,
}

/// A line of VCL: index of the source, and line.
pub(crate) type Line = (u32, u32);

/// Everything that can be expected of one request.
pub(crate) struct Facts {
    response: Option<HttpMessage>,
    received: Vec<HttpMessage>,
    /// The log of the request and of its fetches.
    pub(crate) records: Vec<OwnedRecord>,
    pub(crate) reasons: Vec<Said>,
    handling: Handling,
    stored: Option<bool>,
    /// ttl, grace and keep of the last fetch, in seconds.
    lifetime: Option<[String; 3]>,
    backend: Option<String>,
    restarts: usize,
}

impl Facts {
    pub(crate) fn new(response: Option<HttpMessage>, received: Vec<HttpMessage>, records: Vec<OwnedRecord>) -> Facts {
        let chain = Chain::of(&records);
        let mut facts = Facts {
            response,
            received,
            records: Vec::new(),
            reasons: Vec::new(),
            handling: Handling::Answer,
            stored: None,
            lifetime: None,
            backend: None,
            restarts: chain.restarts,
        };
        let (mut handling, mut is_hit) = (None, false);
        for record in &records {
            let text = String::from_utf8_lossy(&record.payload);
            let vxid = record.id.vxid();
            let is_own = chain.requests.contains(&vxid);
            if !is_own && !chain.fetches.contains(&vxid) {
                continue;
            }
            match record.tag {
                Tag::Hit if is_own => is_hit = true,
                Tag::BackendOpen => facts.backend = text.split(' ').nth(1).map(str::to_owned),
                Tag::TTL if !is_own => facts.lifetime = lifetime(&text).or(facts.lifetime),
                tag if tag == TAG => {
                    let Some(said) = said(&text, !is_own) else { continue };
                    if is_own && said.row.handling.is_some() {
                        handling = said.row.handling;
                    }
                    if !is_own && said.row.reason == Reason::Stored {
                        facts.stored = Some(true);
                    } else if !is_own && said.row.word.starts_with("not-stored") {
                        facts.stored = Some(false);
                    }
                    facts.reasons.push(said);
                }
                _ => {}
            }
        }
        let plain = if is_hit { Handling::Hit } else { Handling::Answer };
        facts.handling = handling.unwrap_or(plain);
        facts.records = records;
        facts
    }

    pub(crate) fn handling(&self) -> Handling {
        self.handling
    }

    /// The failure of a fetch, or else the last reason of the request.
    pub(crate) fn decisive(&self) -> Option<&Said> {
        let is_failure = |said: &&Said| said.is_fetch && said.row.handling == Some(Handling::Error);
        self.reasons.iter().rfind(is_failure).or_else(|| self.reasons.iter().rfind(|said| !said.is_fetch))
    }

    /// A fact by the name of its expectation.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let response = self.response.as_ref();
        let lifetime = |index: usize| self.lifetime.as_ref().map(|lifetime| lifetime[index].clone());
        let received = self.received.last();
        match name {
            "handling" => Some(self.handling.word().to_owned()),
            "status" => response.map(|response| response.word(1).to_owned()),
            "reason" => self.decisive().map(|said| said.row.word.to_owned()),
            "backend" => self.backend.clone(),
            "stored" => Some(self.stored.unwrap_or(false).to_string()),
            "ttl" => lifetime(0),
            "grace" => lifetime(1),
            "keep" => lifetime(2),
            "fetches" => Some(self.received.len().to_string()),
            "restarts" => Some(self.restarts.to_string()),
            "body" => response.map(|response| String::from_utf8_lossy(&response.body).into_owned()),
            "bereq.method" => received.map(|request| request.word(0).to_owned()),
            "bereq.url" => received.map(|request| request.word(1).to_owned()),
            _ => None,
        }
    }

    /// A header of the response.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.response.as_ref()?.header(name)
    }

    /// A header of the last request that an origin received.
    pub(crate) fn bereq_header(&self, name: &str) -> Option<String> {
        self.received.last()?.header(name)
    }

    /// The lines of VCL that ran, in order.
    pub(crate) fn lines(&self) -> Vec<Line> {
        lines(&self.records)
    }
}

/// The lines of VCL that these records name.
pub(crate) fn lines(records: &[OwnedRecord]) -> Vec<Line> {
    let traces = records.iter().filter(|record| record.tag == Tag::VCLTrace);
    traces.filter_map(|record| point(&String::from_utf8_lossy(&record.payload))).collect()
}

/// The source and line of a VCL_trace record: `name index source.line.column`.
pub(crate) fn point(text: &str) -> Option<Line> {
    let mut numbers = text.rsplit(' ').next()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `VCL 120 10 0 …`
fn lifetime(text: &str) -> Option<[String; 3]> {
    let mut words = text.split(' ').skip(1).map(str::to_owned);
    Some([words.next()?, words.next()?, words.next()?])
}

fn said(text: &str, is_fetch: bool) -> Option<Said> {
    let (word, details) = text.strip_prefix(RECORD)?.split_once(' ').unwrap_or((text.strip_prefix(RECORD)?, ""));
    let row = REASONS.iter().find(|row| row.word == word)?;
    let places = [details.strip_prefix("at="), details.split_once("ttl-at=").map(|(_, place)| place)];
    let at = places.into_iter().flatten().find_map(|place| {
        let place = place.split(" in=").next()?;
        let (file, line) = place.rsplit_once(':')?;
        Some((file.to_owned(), line.trim().parse().ok()?))
    });
    Some(Said { row, at, is_fetch })
}

/// The transactions of the client's request and its restarts, and of their fetches. Fragments of a
/// page are not among them.
struct Chain {
    requests: BTreeSet<u64>,
    fetches: BTreeSet<u64>,
    restarts: usize,
}

impl Chain {
    fn of(records: &[OwnedRecord]) -> Chain {
        let mut chain = Chain { requests: BTreeSet::new(), fetches: BTreeSet::new(), restarts: 0 };
        let mut begun: BTreeMap<u64, (String, u64, String)> = BTreeMap::new();
        for record in records.iter().filter(|record| record.tag == Tag::Begin) {
            let text = String::from_utf8_lossy(&record.payload);
            let mut words = text.split(' ');
            let (Some(kind), Some(parent), Some(reason)) = (words.next(), words.next(), words.next()) else { continue };
            let Ok(parent) = parent.parse() else { continue };
            begun.insert(record.id.vxid(), (kind.to_owned(), parent, reason.to_owned()));
        }
        // Numbers rise, so a parent comes before its children.
        for (&vxid, (kind, parent, reason)) in &begun {
            match (kind.as_str(), reason.as_str()) {
                ("req", "rxreq") => {
                    chain.requests.insert(vxid);
                }
                ("req", "restart") if chain.requests.contains(parent) => {
                    chain.requests.insert(vxid);
                    chain.restarts += 1;
                }
                ("bereq", _) if chain.requests.contains(parent) || chain.fetches.contains(parent) => {
                    chain.fetches.insert(vxid);
                }
                _ => {}
            }
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_with_their_place() {
        let at = |text: &str| said(text, false).map(|said| (said.row.word, said.at));
        assert_eq!(at("why pass at=/a b/s.vcl:7 in=vcl_recv"), Some(("pass", Some(("/a b/s.vcl".to_owned(), 7)))));
        assert_eq!(at("why not-stored-ttl ttl-at=s.vcl:9"), Some(("not-stored-ttl", Some(("s.vcl".to_owned(), 9)))));
        assert_eq!(at("why stored seconds=1"), Some(("stored", None)));
        assert_eq!((at("why x"), at("whyever"), at("")), (None, None, None));
    }

    #[test]
    fn damaged_trace_records_name_no_line() {
        assert_eq!(point("test 3 0.14.5"), Some((0, 14)));
        for text in ["", "test", "a.b.c", "1.", "99999999999.1.1"] {
            assert_eq!(point(text), None, "{text}");
        }
    }
}
