//! From the records of the log to an [`Exchange`].

use crate::exchange::{Exchange, Fetch, Head, Said};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::net::{IpAddr, Ipv4Addr};
use surface::limits::RECORDING_REASONS_MAX;
use surface::reason::{Handling, RECORD, Reason, TAG};
use surface::tag::Tag;

/// A record of the log.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its transaction.
    pub vxid: u64,
    /// Its tag.
    pub tag: Tag,
    /// Its payload without the NUL.
    pub text: &'a [u8],
}

/// A transaction: its parent, the word for its reason, and its records.
struct Begun<'a> {
    kind: &'a [u8],
    parent: u64,
    reason: &'a [u8],
    lines: Vec<Line<'a>>,
}

/// The exchange of these records: those of a client's request, its restarts and its fetches, in the
/// order of the log. `None` if they begin no request of a client. Records of `record_bytes_max`
/// bytes or more count as cut (`vsl_reclen`).
#[must_use]
pub fn gather(lines: &[Line<'_>], record_bytes_max: usize) -> Option<Exchange> {
    let begun = transactions(lines);
    let (&first, _) = begun.iter().find(|(_, one)| one.kind == b"req" && one.reason == b"rxreq")?;
    let chain = chain(&begun, first);
    let mut exchange = empty();
    exchange.restarts = (chain.len() - 1) as u32;
    exchange.fragments = begun.values().filter(|one| one.kind == b"req" && one.reason == b"esi").count() as u32;
    let mut state = State::default();
    for vxid in &chain {
        state.is_first = *vxid == first;
        for line in &begun[vxid].lines {
            exchange.is_cut |= is_cut(line, record_bytes_max);
            state.take(line, &mut exchange);
        }
    }
    for vxid in fetches(&begun, &chain) {
        let one = &begun[&vxid];
        exchange.is_cut |= one.lines.iter().any(|line| is_cut(line, record_bytes_max));
        let fetch = fetch(vxid, one, &mut exchange.reasons);
        exchange.fetches.push(fetch);
    }
    exchange.fetches.sort_by(|one, other| one.start.total_cmp(&other.start));
    state.end(&mut exchange);
    Some(exchange)
}

fn empty() -> Exchange {
    Exchange {
        start: 0.0,
        client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        listener: String::new(),
        vcl: String::new(),
        request: Head::default(),
        body_bytes: 0,
        is_cut: false,
        lookup: None,
        key: None,
        hit: None,
        fetches: Vec::new(),
        response: None,
        response_bytes: 0,
        handling: String::new(),
        reasons: Vec::new(),
        restarts: 0,
        fragments: 0,
    }
}

fn transactions<'a>(lines: &[Line<'a>]) -> BTreeMap<u64, Begun<'a>> {
    let mut begun: BTreeMap<u64, Begun<'a>> = BTreeMap::new();
    for line in lines {
        if line.tag == Tag::Begin {
            let parent = number(word(line.text, 1)).unwrap_or(0.0) as u64;
            let (kind, reason) = (word(line.text, 0), word(line.text, 2));
            begun.entry(line.vxid).or_insert(Begun { kind, parent, reason, lines: Vec::new() });
        } else if let Some(one) = begun.get_mut(&line.vxid) {
            one.lines.push(*line);
        }
    }
    begun
}

/// The request and its restarts.
fn chain(begun: &BTreeMap<u64, Begun<'_>>, first: u64) -> Vec<u64> {
    let mut chain = vec![first];
    while let Some(last) = chain.last().copied() {
        let is_next = |one: &Begun<'_>| one.kind == b"req" && one.reason == b"restart" && one.parent == last;
        match begun.iter().find(|(vxid, one)| is_next(one) && !chain.contains(vxid)) {
            Some((&next, _)) => chain.push(next),
            None => break,
        }
    }
    chain
}

/// The fetches for these requests, with their retries.
fn fetches(begun: &BTreeMap<u64, Begun<'_>>, chain: &[u64]) -> Vec<u64> {
    let mut found: Vec<u64> = Vec::new();
    loop {
        let before = found.len();
        for (&vxid, one) in begun.iter().filter(|(_, one)| one.kind == b"bereq") {
            if !found.contains(&vxid) && (chain.contains(&one.parent) || found.contains(&one.parent)) {
                found.push(vxid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn is_cut(line: &Line<'_>, record_bytes_max: usize) -> bool {
    let matters = matches!(
        line.tag,
        Tag::ReqURL
            | Tag::ReqHeader
            | Tag::ReqUnset
            | Tag::RespHeader
            | Tag::BereqURL
            | Tag::BereqHeader
            | Tag::BereqUnset
            | Tag::BerespHeader
    );
    matters && line.text.len() >= record_bytes_max
}

/// The state of reading the requests of a chain.
#[derive(Default)]
struct State<'a> {
    is_first: bool,
    has_left_recv: bool,
    /// The URL and the host as VCL has changed them.
    url: &'a [u8],
    host: &'a [u8],
    /// Values of `X-Forwarded-For` as received, before the cache appended the client.
    forwarded: Vec<&'a [u8]>,
    handling: Option<Handling>,
    is_hit: bool,
}

impl<'a> State<'a> {
    fn take(&mut self, line: &Line<'a>, exchange: &mut Exchange) {
        let text = line.text;
        match line.tag {
            Tag::Timestamp if self.is_first && text.starts_with(b"Start:") => {
                exchange.start = number(word(text, 1)).unwrap_or(0.0);
            }
            Tag::VCLUse => exchange.vcl = String::from_utf8_lossy(word(text, 0)).into_owned(),
            Tag::ReqStart if self.is_first => {
                let address = std::str::from_utf8(word(text, 0)).ok();
                exchange.client = address.and_then(|address| address.parse().ok()).unwrap_or(exchange.client);
                exchange.listener = String::from_utf8_lossy(word(text, 2)).into_owned();
            }
            Tag::ReqMethod | Tag::ReqURL | Tag::ReqProtocol | Tag::ReqHeader | Tag::ReqUnset => {
                self.take_request(line, exchange);
            }
            Tag::VCLCall => self.take_call(text, exchange),
            Tag::Hash => {
                let mut hasher = DefaultHasher::new();
                hasher.write_u64(exchange.key.unwrap_or(0));
                hasher.write(text);
                exchange.key = Some(hasher.finish());
            }
            Tag::Hit => {
                self.is_hit = true;
                exchange.hit = number(word(text, 0)).map(|vxid| vxid as u64);
            }
            Tag::RespProtocol => exchange.response = Some(head([text, b"", b""])),
            Tag::RespStatus | Tag::RespReason | Tag::RespHeader | Tag::RespUnset => {
                if let Some(response) = &mut exchange.response {
                    take_response(response, line);
                }
            }
            Tag::ReqAcct => {
                exchange.body_bytes = number(word(text, 1)).unwrap_or(0.0) as u64;
                exchange.response_bytes = number(word(text, 4)).unwrap_or(0.0) as u64;
            }
            tag if tag == TAG => {
                let Some((row, said)) = said(text, false) else { return };
                self.handling = row.row().handling.or(self.handling);
                if exchange.reasons.len() < RECORDING_REASONS_MAX {
                    exchange.reasons.push(said);
                }
            }
            _ => {}
        }
    }

    fn take_request(&mut self, line: &Line<'a>, exchange: &mut Exchange) {
        let text = line.text;
        let is_received = self.is_first && !self.has_left_recv;
        match line.tag {
            Tag::ReqMethod if is_received => exchange.request.line[0] = text.to_vec(),
            Tag::ReqURL => {
                self.url = text;
                if is_received {
                    exchange.request.line[1] = text.to_vec();
                }
            }
            Tag::ReqProtocol if is_received => exchange.request.line[2] = text.to_vec(),
            Tag::ReqHeader => {
                let Some((name, value)) = field(text) else { return };
                if name.eq_ignore_ascii_case(b"host") {
                    self.host = value;
                }
                if is_received {
                    exchange.request.fields.push((name.to_vec(), value.to_vec()));
                }
            }
            Tag::ReqUnset if is_received => {
                let Some((name, value)) = field(text) else { return };
                let fields = &mut exchange.request.fields;
                fields.retain(|(found, kept)| !(found == name && kept == value));
                if name.eq_ignore_ascii_case(b"x-forwarded-for") {
                    self.forwarded.push(value);
                }
            }
            _ => {}
        }
    }

    fn take_call(&mut self, text: &[u8], exchange: &mut Exchange) {
        match text {
            b"RECV" if self.is_first && !self.has_left_recv => {
                self.has_left_recv = true;
                remove_added(&mut exchange.request, exchange.client, &self.forwarded);
            }
            b"HASH" => {
                exchange.lookup = Some((self.host.to_vec(), self.url.to_vec()));
                exchange.key = None;
            }
            _ => {}
        }
    }

    fn end(&self, exchange: &mut Exchange) {
        let plain = if self.is_hit { Handling::Hit } else { Handling::Answer };
        exchange.handling = self.handling.unwrap_or(plain).word().to_owned();
        // A request that ended before vcl_recv, or whose beginning was lost.
        exchange.is_cut |= !self.has_left_recv || exchange.start <= 0.0;
    }
}

/// Removes the fields that the cache has added to a request before vcl_recv: the client in
/// `X-Forwarded-For`, and `X-Forwarded-Proto`.
fn remove_added(request: &mut Head, client: IpAddr, forwarded: &[&[u8]]) {
    let is = |name: &[u8], wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
    if request.fields.last().is_some_and(|(name, _)| is(name, "x-forwarded-proto")) {
        request.fields.pop();
    }
    let Some((name, value)) = request.fields.last().filter(|(name, _)| is(name, "x-forwarded-for")) else { return };
    if !forwarded.is_empty() {
        let name = name.clone();
        request.fields.pop();
        request.fields.extend(forwarded.iter().map(|value| (name.clone(), value.to_vec())));
    } else if *value == client.to_string().as_bytes() {
        request.fields.pop();
    }
}

fn head(line: [&[u8]; 3]) -> Head {
    Head { line: line.map(<[u8]>::to_vec), fields: Vec::new() }
}

fn take_response(response: &mut Head, line: &Line<'_>) {
    match line.tag {
        Tag::RespStatus | Tag::BerespStatus => response.line[1] = line.text.to_vec(),
        Tag::RespReason | Tag::BerespReason => response.line[2] = line.text.to_vec(),
        Tag::RespHeader | Tag::BerespHeader => {
            response.fields.extend(field(line.text).map(|(name, value)| (name.to_vec(), value.to_vec())));
        }
        Tag::RespUnset => {
            let Some((name, value)) = field(line.text) else { return };
            if let Some(place) = response.fields.iter().position(|(found, kept)| found == name && kept == value) {
                response.fields.remove(place);
            }
        }
        _ => {}
    }
}

fn fetch(vxid: u64, one: &Begun<'_>, reasons: &mut Vec<Said>) -> Fetch {
    let mut fetch = Fetch {
        vxid,
        start: 0.0,
        is_background: one.reason == b"bgfetch",
        backend: String::new(),
        request: Head::default(),
        response: None,
        body_bytes: 0,
        failure: String::new(),
        stored: None,
        lifetime: None,
    };
    // True until the response of the origin is complete.
    let mut is_receiving = true;
    for line in &one.lines {
        let text = line.text;
        match line.tag {
            Tag::Timestamp if text.starts_with(b"Start:") => fetch.start = number(word(text, 1)).unwrap_or(0.0),
            Tag::BackendOpen => fetch.backend = String::from_utf8_lossy(word(text, 1)).into_owned(),
            Tag::FetchError => {
                is_receiving &= fetch.response.is_some();
                fetch.failure = String::from_utf8_lossy(text).into_owned();
            }
            Tag::BereqMethod if is_receiving => fetch.request.line[0] = text.to_vec(),
            Tag::BereqURL if is_receiving => fetch.request.line[1] = text.to_vec(),
            Tag::BereqProtocol if is_receiving => fetch.request.line[2] = text.to_vec(),
            Tag::BereqHeader if is_receiving && fetch.response.is_none() => {
                fetch.request.fields.extend(field(text).map(|(name, value)| (name.to_vec(), value.to_vec())));
            }
            Tag::BereqUnset if is_receiving && fetch.response.is_none() => {
                let Some((name, value)) = field(text) else { continue };
                let fields = &mut fetch.request.fields;
                if let Some(place) = fields.iter().position(|(found, kept)| found == name && kept == value) {
                    fields.remove(place);
                }
            }
            Tag::BerespProtocol if is_receiving && fetch.response.is_none() => {
                fetch.response = Some(head([text, b"", b""]));
            }
            Tag::BerespStatus | Tag::BerespReason | Tag::BerespHeader if is_receiving => {
                if let Some(response) = &mut fetch.response {
                    // After a 304, the status and the fields of the stored response follow.
                    is_receiving = line.tag != Tag::BerespStatus || response.line[1].is_empty();
                    if is_receiving {
                        take_response(response, line);
                    }
                }
            }
            Tag::VCLCall if matches!(text, b"BACKEND_RESPONSE" | b"BACKEND_ERROR") => is_receiving = false,
            Tag::TTL => {
                is_receiving = false;
                fetch.lifetime = lifetime(text).or(fetch.lifetime);
            }
            Tag::BereqAcct => fetch.body_bytes = number(word(text, 4)).unwrap_or(0.0) as u64,
            tag if tag == TAG => {
                let Some((reason, said)) = said(text, true) else { continue };
                if reason == Reason::Stored {
                    fetch.stored = Some(true);
                } else if said.word.starts_with("not-stored") {
                    fetch.stored = Some(false);
                }
                if reasons.len() < RECORDING_REASONS_MAX {
                    reasons.push(said);
                }
            }
            _ => {}
        }
    }
    fetch
}

/// `VCL 120 10 0 …`
fn lifetime(text: &[u8]) -> Option<[f64; 3]> {
    Some([number(word(text, 1))?, number(word(text, 2))?, number(word(text, 3))?])
}

fn said(text: &[u8], is_fetch: bool) -> Option<(Reason, Said)> {
    let text = std::str::from_utf8(text.strip_prefix(RECORD.as_bytes())?).ok()?;
    let (word, details) = text.split_once(' ').unwrap_or((text, ""));
    let reason = Reason::from_word(word)?;
    let places = [details.strip_prefix("at="), details.split_once("ttl-at=").map(|(_, place)| place)];
    let place = places.into_iter().flatten().find_map(|place| {
        let (file, line) = place.split(" in=").next()?.rsplit_once(':')?;
        Some((file.to_owned(), line.trim().parse().ok()?))
    });
    Some((reason, Said { word: word.to_owned(), place, is_fetch }))
}

/// Name and value of a field.
fn field(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().position(|byte| *byte == b':').filter(|place| *place > 0)?;
    Some((&text[..colon], text[colon + 1..].trim_ascii()))
}

fn word(text: &[u8], place: usize) -> &[u8] {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(place).unwrap_or_default()
}

fn number(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests;
