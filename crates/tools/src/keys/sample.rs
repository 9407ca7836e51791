//! Sampled requests: the parts of their keys, as hashes.
//!
//! *Invariant:* names beyond the limit are not told apart, so that requests of an attacker with a
//! new argument each cost only their hashes.

use shm::read::transaction::Transaction;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use surface::limits::{KEYS_NAME_BYTES_MAX, KEYS_NAMES_MAX};
use surface::tag::Tag;

/// Arguments of one request that are told apart.
const ARGUMENTS_MAX: usize = 32;

/// Names with numbers.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<Vec<u8>, u32>,
    all: Vec<Vec<u8>>,
}

impl Names {
    /// The number of a name; `None` if there are too many.
    fn number(&mut self, name: &[u8]) -> Option<u32> {
        let name = &name[..name.len().min(KEYS_NAME_BYTES_MAX)];
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if self.all.len() == KEYS_NAMES_MAX {
            return None;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(name.to_vec(), number);
        self.all.push(name.to_vec());
        Some(number)
    }

    pub fn name(&self, number: u32) -> &[u8] {
        self.all.get(number as usize).map_or(&[], Vec::as_slice)
    }
}

/// One request.
pub(super) struct Request {
    /// Hash of host and path.
    pub path: u64,
    /// Names and hashes of the query arguments, in their order. Those beyond the limits are one
    /// without a name.
    pub arguments: Vec<(Option<u32>, u64)>,
    /// Names of the cookies.
    pub cookies: Vec<u32>,
    pub is_hit: bool,
    pub is_pass: bool,
    pub bytes: u64,
    /// Numbers of host, first path element and content type.
    pub groups: [Option<u32>; 3],
    /// Names of the fields in `Vary`, with the hash of the request's value.
    pub vary: Vec<(u32, u64)>,
}

/// All requests that were read.
#[derive(Default)]
pub(super) struct Sample {
    pub all: Vec<Request>,
    pub arguments: Names,
    pub cookies: Names,
    pub fields: Names,
    /// Names of hosts, first path elements and content types.
    pub groups: [Names; 3],
}

/// A hash of a value.
pub(super) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[derive(Default)]
struct Facts<'a> {
    method: &'a [u8],
    url: &'a [u8],
    host: &'a [u8],
    cookies: Vec<&'a [u8]>,
    headers: Vec<&'a [u8]>,
    vary: Vec<&'a [u8]>,
    content_type: &'a [u8],
    bytes: u64,
    is_hit: bool,
    is_pass: bool,
    is_over: bool,
}

impl<'a> Facts<'a> {
    fn gather(transaction: &'a Transaction) -> Facts<'a> {
        let mut facts = Facts::default();
        for record in transaction.records() {
            if let Some(tag) = record.tag() {
                facts.take(tag, record.text());
            }
        }
        facts
    }

    fn take(&mut self, tag: Tag, text: &'a [u8]) {
        match tag {
            Tag::ReqMethod if self.method.is_empty() => self.method = text,
            // The last one before the lookup: VCL may have normalised it.
            Tag::ReqURL if !self.is_over => self.url = text,
            Tag::ReqHeader if !self.is_over => {
                self.headers.push(text);
                match header(text, b"host") {
                    Some(host) => self.host = host,
                    None => self.cookies.extend(header(text, b"cookie")),
                }
            }
            Tag::ReqUnset if !self.is_over => {
                self.headers.retain(|header| *header != text);
                if let Some(value) = header(text, b"cookie") {
                    self.cookies.retain(|cookie| *cookie != value);
                }
            }
            Tag::RespHeader => {
                self.vary.extend(header(text, b"vary"));
                if let Some(value) = header(text, b"content-type") {
                    self.content_type = value.split(|byte| *byte == b';').next().unwrap_or_default();
                }
            }
            Tag::VCLCall => match text {
                b"HIT" => (self.is_hit, self.is_over) = (true, true),
                b"MISS" => self.is_over = true,
                b"PASS" => (self.is_pass, self.is_over) = (true, true),
                _ => {}
            },
            Tag::ReqAcct => self.bytes = field(text, 4).unwrap_or(0),
            _ => {}
        }
    }
}

impl Sample {
    pub fn requests(&self) -> usize {
        self.all.len()
    }

    /// Adds a request, if it is one for the cache.
    pub fn add(&mut self, transaction: &Transaction) {
        let facts = Facts::gather(transaction);
        if !matches!(facts.method, b"GET" | b"HEAD") || !facts.is_over {
            return;
        }
        let end = facts.url.iter().position(|byte| *byte == b'?').unwrap_or(facts.url.len());
        let (path, query) = facts.url.split_at(end);
        let first = path.split(|byte| *byte == b'/').nth(1).unwrap_or_default();
        let arguments = self.arguments_of(query.get(1..).unwrap_or_default());
        let mut cookies: Vec<u32> = Vec::new();
        for name in facts.cookies.iter().flat_map(|list| list.split(|byte| *byte == b';')) {
            let name = name.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            let number = if name.is_empty() { None } else { self.cookies.number(name) };
            cookies.extend(number.filter(|number| !cookies.contains(number)));
        }
        let mut vary = Vec::new();
        for name in facts.vary.iter().flat_map(|list| list.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii) {
            let name = name.to_ascii_lowercase();
            let value = facts.headers.iter().find_map(|line| header(line, &name));
            vary.extend(self.fields.number(&name).map(|number| (number, hash(value))));
        }
        let [hosts, firsts, types] = &mut self.groups;
        let groups = [hosts.number(facts.host), firsts.number(first), types.number(facts.content_type)];
        self.all.push(Request {
            path: hash((facts.host.to_ascii_lowercase(), path)),
            arguments,
            cookies,
            is_hit: facts.is_hit,
            is_pass: facts.is_pass,
            bytes: facts.bytes,
            groups,
            vary,
        });
    }

    fn arguments_of(&mut self, query: &[u8]) -> Vec<(Option<u32>, u64)> {
        let mut all = Vec::new();
        let mut pairs = query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        for pair in pairs.by_ref().take(ARGUMENTS_MAX) {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            all.push((self.arguments.number(name), hash(pair)));
        }
        let rest: Vec<&[u8]> = pairs.collect();
        if !rest.is_empty() {
            all.push((None, hash(rest)));
        }
        all
    }
}

impl Request {
    /// The key, without the argument of this name.
    pub fn key(&self, without: Option<u32>) -> u64 {
        let kept = self.arguments.iter().filter(|(name, _)| without.is_none() || *name != without);
        hash((self.path, kept.map(|(_, hash)| *hash).collect::<Vec<_>>()))
    }

    /// The key with its arguments in the order of their hashes.
    pub fn sorted_key(&self) -> u64 {
        let mut hashes: Vec<u64> = self.arguments.iter().map(|(_, hash)| *hash).collect();
        hashes.sort_unstable();
        hash((self.path, hashes))
    }
}

/// Number of different values.
pub(super) fn distinct(values: impl Iterator<Item = u64>) -> usize {
    values.collect::<HashSet<_>>().len()
}

/// The value of a header line with this name in lower case.
fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
}

fn field(text: &[u8], place: usize) -> Option<u64> {
    let field = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(place)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}
