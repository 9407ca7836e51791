//! Differences between two results of one request.

use recording::{Exchange, Head};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use surface::legible;
use surface::replay::DifferenceClass;

/// Difference of two TTLs that counts, in seconds.
const TTL_SECONDS: f64 = 1.0;
/// Fields that differ in every replay, or that only frame a message.
const VOLATILE: [&str; 12] = [
    "age",
    "cache-status",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server-timing",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "via",
    "x-varnish",
];

/// Whose stored responses a cache holds.
#[derive(Default)]
pub(super) struct Owners {
    /// By the number of the fetch: a hash of the client's credentials, if the origin saw any.
    of_fetch: HashMap<u64, Option<u64>>,
}

impl Owners {
    /// Notes the fetches of a request. True if it was served what was fetched with the credentials
    /// of another client.
    pub(super) fn note(&mut self, exchange: &Exchange) -> bool {
        let own = credentials(&exchange.request);
        for fetch in exchange.fetches.iter().filter(|fetch| fetch.stored == Some(true)) {
            let owner = credentials(&fetch.request).and(own);
            self.of_fetch.insert(fetch.vxid, owner);
        }
        let owner = exchange.hit.and_then(|hit| self.of_fetch.get(&hit).copied().flatten());
        exchange.handling.starts_with("hit") && owner.is_some() && owner != own
    }
}

/// A hash of the credentials of a request; `None` without any.
fn credentials(request: &Head) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut count = 0;
    for name in ["Cookie", "Authorization"] {
        for value in request.values(name) {
            (name, value).hash(&mut hasher);
            count += 1;
        }
    }
    (count > 0).then(|| hasher.finish())
}

/// One result, with what is not in the log.
pub(super) struct Side<'a> {
    pub(super) exchange: &'a Exchange,
    /// It was served what was fetched with the credentials of another client.
    pub(super) is_shared: bool,
    /// Requests to the origin that were not answered.
    pub(super) missing: &'a [String],
}

/// The differences, with a text for each.
pub(super) fn differences(before: &Side<'_>, after: &Side<'_>) -> Vec<(DifferenceClass, String)> {
    if let Some(missing) = after.missing.first() {
        return vec![(DifferenceClass::Unanswered, format!("asks for {}", shown(missing.as_bytes())))];
    }
    let (one, other) = (before.exchange, after.exchange);
    let mut found = Vec::new();
    let mut add = |class, text: String| found.push((class, text));
    if after.is_shared && !before.is_shared {
        add(DifferenceClass::Leak, "served what was fetched with the credentials of another client".to_owned());
    } else if stores_for_one(other) && !stores_for_one(one) && one.fetch().is_some() {
        add(DifferenceClass::Leak, "stores a response that was fetched with credentials".to_owned());
    }
    if serves_cookie(other) && !serves_cookie(one) {
        add(DifferenceClass::SetCookie, "a stored response with Set-Cookie is served".to_owned());
    }
    if one.status() != other.status() {
        add(DifferenceClass::Status, format!("{} → {}", one.status(), other.status()));
    }
    if one.handling != other.handling {
        add(DifferenceClass::Handling, format!("{} → {}", one.handling, other.handling));
    }
    if one.key.zip(other.key).is_some_and(|(one, other)| one != other) {
        add(DifferenceClass::Key, "the parts of the key differ".to_owned());
    }
    if let (Some(one), Some(other)) = (one.fetch(), other.fetch()) {
        if one.backend != other.backend {
            let [one, other] = [one, other].map(|fetch| shown(fetch.backend.as_bytes()));
            add(DifferenceClass::Backend, format!("{one} → {other}"));
        }
        if let (Some([one, ..]), Some([other, ..])) = (one.lifetime, other.lifetime)
            && (one - other).abs() > TTL_SECONDS
        {
            add(DifferenceClass::Ttl, format!("{one:.0} s → {other:.0} s"));
        }
        let lines = [one, other].map(|fetch| &fetch.request.line[..2]);
        if lines[0] != lines[1] {
            let [one, other] = lines.map(|line| shown(&[&line[0][..], b" ", &line[1]].concat()));
            add(DifferenceClass::Request, format!("{one} → {other}"));
        } else if let Some(text) = fields(&one.request, &other.request) {
            add(DifferenceClass::Request, text);
        }
    }
    let responses = one.response.as_ref().zip(other.response.as_ref());
    if let Some(text) = responses.and_then(|(one, other)| fields(one, other)) {
        add(DifferenceClass::Response, text);
    }
    found
}

/// True if a response was stored that the origin made for a request with credentials.
fn stores_for_one(exchange: &Exchange) -> bool {
    exchange.fetches.iter().any(|fetch| fetch.stored == Some(true) && credentials(&fetch.request).is_some())
}

fn serves_cookie(exchange: &Exchange) -> bool {
    let has = |response: &Head| response.value("Set-Cookie").is_some();
    exchange.handling.starts_with("hit") && exchange.response.as_ref().is_some_and(has)
}

/// The first difference of the fields of two heads; `None` if they are the same.
fn fields(one: &Head, other: &Head) -> Option<String> {
    let (one, other) = (sorted(one), sorted(other));
    for (name, values) in &one {
        let text = shown(name.as_bytes());
        match other.get(name) {
            None => return Some(format!("{text} is missing")),
            Some(found) if found != values => {
                let [one, other] = [values, found].map(|values| shown(&values.join(&b", "[..])));
                return Some(format!("{text}: {one} → {other}"));
            }
            Some(_) => {}
        }
    }
    let added = other.iter().find(|(name, _)| !one.contains_key(*name));
    added.map(|(name, values)| format!("{}: {} is new", shown(name.as_bytes()), shown(&values.join(&b", "[..]))))
}

fn sorted(head: &Head) -> BTreeMap<String, Vec<&[u8]>> {
    let mut all: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for (name, value) in &head.fields {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if !VOLATILE.contains(&name.as_str()) {
            all.entry(name).or_default().push(value);
        }
    }
    all
}

/// Text of the recording for a terminal, cut.
pub(super) fn shown(text: &[u8]) -> String {
    const LETTERS_MAX: usize = 120;
    let text = legible::line(&text[..text.len().min(4 * LETTERS_MAX)]).into_owned();
    match text.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::{Line, gather};
    use surface::tag::Tag;

    fn exchange(lines: &[(u64, Tag, &str)]) -> Exchange {
        let all = lines.iter().map(|(vxid, tag, text)| Line { vxid: *vxid, tag: *tag, text: text.as_bytes() });
        let begin = [Line { vxid: 2, tag: Tag::Begin, text: b"req 1 rxreq" }];
        gather(&begin.into_iter().chain(all).collect::<Vec<_>>(), 1000).unwrap()
    }

    fn classes(one: &Exchange, other: &Exchange) -> Vec<&'static str> {
        let side = |exchange| Side { exchange, is_shared: false, missing: &[] };
        differences(&side(one), &side(other)).iter().map(|(class, _)| class.word()).collect()
    }

    #[test]
    fn fields_that_differ_in_each_replay_are_no_difference() {
        let response = |age: &str, name: &str, value: &str| {
            let field = format!("{name}: {value}");
            let all = [
                (2, Tag::RespProtocol, "HTTP/1.1"),
                (2, Tag::RespStatus, "200"),
                (2, Tag::RespHeader, age),
                (2, Tag::RespHeader, field.as_str()),
            ];
            exchange(&all)
        };
        let one = response("Age: 1", "X", "a");
        assert_eq!(classes(&one, &response("Age: 2", "x", "a")), [""; 0]);
        assert_eq!(classes(&one, &response("Age: 1", "X", "b")), ["response"]);
        assert_eq!(classes(&one, &response("Age: 1", "Y", "a")), ["response"]);
    }

    #[test]
    fn response_for_another_client_is_a_leak() {
        let cookie = |value: &str| format!("Cookie: session={value}");
        let fetched = |vxid: u64, value: &str| {
            let field = cookie(value);
            let begin = "bereq 2 fetch".to_owned();
            let all = [
                (2, Tag::ReqHeader, field.as_str()),
                (2, Tag::VCLCall, "RECV"),
                (vxid, Tag::Begin, begin.as_str()),
                (vxid, Tag::BereqHeader, field.as_str()),
                (vxid, Tag::Witness, "why stored seconds=60"),
            ];
            exchange(&all)
        };
        let hit = |value: &str| {
            let field = cookie(value);
            exchange(&[(2, Tag::ReqHeader, &field), (2, Tag::VCLCall, "RECV"), (2, Tag::Hit, "9 60 0 0")])
        };
        let mut owners = Owners::default();
        assert!(!owners.note(&fetched(9, "a")));
        assert!(!owners.note(&hit("a")));
        assert!(owners.note(&hit("b")));
        let (one, other) = (fetched(11, "b"), hit("b"));
        let side = |exchange, is_shared| Side { exchange, is_shared, missing: &[] };
        let found = differences(&side(&one, false), &side(&other, true));
        assert_eq!(found[0].0, DifferenceClass::Leak);
    }

    #[test]
    fn unanswered_requests_are_not_compared_further() {
        let (one, other) =
            (exchange(&[(2, Tag::RespProtocol, "HTTP/1.1"), (2, Tag::RespStatus, "200")]), exchange(&[]));
        let missing = ["GET a.example/\u{1b}[2J".to_owned()];
        let before = Side { exchange: &one, is_shared: false, missing: &[] };
        let found = differences(&before, &Side { exchange: &other, is_shared: false, missing: &missing });
        assert_eq!(found.iter().map(|(class, _)| class.word()).collect::<Vec<_>>(), ["unanswered"]);
        assert!(!found[0].1.contains('\u{1b}'), "{}", found[0].1);
    }
}
