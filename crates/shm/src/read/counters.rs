//! The counters, reader side: the JSON documents, the values they explain, and the globs that
//! select among them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::vsm::{SegmentEntry, Vsm};
use crate::region::Region;

/// Largest document that is read, in bytes.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// One counter as its document describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CounterText {
    /// The element's name.
    pub name: String,
    /// `counter`, `gauge` or `bitmap`.
    pub kind: String,
    /// `info`, `diag` or `debug`.
    pub level: String,
    /// `integer`, `bytes`, `bitmap` or `duration`.
    pub format: String,
    /// One line of explanation.
    pub oneliner: String,
    /// More explanation; often none.
    pub docs: String,
    offset: usize,
}

impl CounterText {
    /// `c`, `g` or `b`, as the tools abbreviate [`CounterText::kind`].
    #[must_use]
    pub fn kind_letter(&self) -> char {
        match self.kind.as_str() {
            "counter" => 'c',
            "gauge" => 'g',
            "bitmap" => 'b',
            _ => '?',
        }
    }

    /// `i`, `B`, `b` or `d`, as the tools abbreviate [`CounterText::format`].
    #[must_use]
    pub fn format_letter(&self) -> char {
        match self.format.as_str() {
            "integer" => 'i',
            "bytes" => 'B',
            "bitmap" => 'b',
            "duration" => 'd',
            _ => '?',
        }
    }
}

/// One counter with its full name and present value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CounterValue {
    /// `<ident>.<element>`.
    pub name: String,
    /// The serial number of its segment; a different one after a restart.
    pub section: u64,
    /// The present value.
    pub value: u64,
    /// Text of its document.
    pub text: Arc<CounterText>,
}

/// Reads all counters that a server publishes; keeps mappings and documents from one time to the
/// next.
#[derive(Default)]
pub struct CounterReader {
    documents: HashMap<u64, (u64, Vec<Arc<CounterText>>)>,
    blocks: HashMap<u64, Region>,
}

impl CounterReader {
    /// A reader that has seen nothing yet.
    #[must_use]
    pub fn new() -> CounterReader {
        CounterReader::default()
    }

    /// Every counter of every visible section, in the order of the index and of each document.
    pub fn read(&mut self, vsm: &Vsm) -> Vec<CounterValue> {
        let mut values = Vec::new();
        self.for_each(vsm, |block| {
            values.extend(block.texts.iter().enumerate().map(|(place, text)| CounterValue {
                name: format!("{}.{}", block.ident, text.name),
                section: block.serial,
                value: block.value(place),
                text: Arc::clone(text),
            }));
        });
        values
    }

    /// Passes every visible section to `take`, in the order of the index.
    pub fn for_each(&mut self, vsm: &Vsm, mut take: impl FnMut(Block<'_>)) {
        let listed: HashSet<u64> = vsm.entries().map(|entry| entry.serial).collect();
        self.documents.retain(|_, (serial, _)| listed.contains(serial));
        self.blocks.retain(|serial, _| listed.contains(serial));
        for entry in vsm.entries() {
            match entry.class.as_str() {
                "StatDoc" => self.take_document(vsm, entry),
                "Stat" => {
                    if let Some(block) = self.block(vsm, entry) {
                        take(block);
                    }
                }
                _ => {}
            }
        }
    }

    /// The counter `name` of the section `ident`, after the serial number of its segment; `None` if
    /// it is not published. Reads nothing else.
    pub fn one(&mut self, vsm: &Vsm, ident: &str, name: &str) -> Option<(u64, u64)> {
        for entry in vsm.entries().filter(|entry| entry.class == "StatDoc") {
            self.take_document(vsm, entry);
        }
        let entry = vsm.find("Stat", Some(ident))?;
        let block = self.block(vsm, entry)?;
        let place = block.texts.iter().position(|text| text.name == name)?;
        Some((block.serial, block.value(place)))
    }

    fn take_document(&mut self, vsm: &Vsm, entry: &SegmentEntry) {
        if self.documents.values().any(|(serial, _)| *serial == entry.serial) {
            return;
        }
        let Ok(region) = vsm.map(entry) else { return };
        let Some((document, body)) = head(&region) else { return };
        let mut bytes = Vec::new();
        region.copy_out(body, DOCUMENT_BYTES_MAX, &mut bytes);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        self.documents.insert(document, (entry.serial, parse_document(&bytes[..end])));
    }

    fn block<'a>(&'a mut self, vsm: &Vsm, entry: &'a SegmentEntry) -> Option<Block<'a>> {
        if let std::collections::hash_map::Entry::Vacant(e) = self.blocks.entry(entry.serial) {
            e.insert(vsm.map(entry).ok()?);
        }
        let region = self.blocks.get(&entry.serial)?;
        if region.load_u32(0, Ordering::Acquire) != 1 {
            return None;
        }
        let (document, body) = head(region)?;
        let (_, texts) = self.documents.get(&document)?;
        Some(Block { ident: &entry.ident, serial: entry.serial, texts, region, body })
    }
}

/// The counters of one section.
pub struct Block<'a> {
    /// Name of the section: `MAIN`, `VBE.boot.default`.
    pub ident: &'a str,
    /// The serial number of its segment; a different one after a restart.
    pub serial: u64,
    /// The counters as their document describes them.
    pub texts: &'a [Arc<CounterText>],
    region: &'a Region,
    body: usize,
}

impl Block<'_> {
    /// The present value of the counter at this place of `texts`; 0 if there is none.
    #[must_use]
    pub fn value(&self, place: usize) -> u64 {
        let Some(text) = self.texts.get(place) else { return 0 };
        self.region.load_u64(self.body.saturating_add(text.offset), Ordering::Relaxed)
    }
}

/// Document id and body offset of a segment that is ready.
fn head(region: &Region) -> Option<(u64, usize)> {
    if region.load_u32(0, Ordering::Acquire) == 0 {
        return None;
    }
    let body = usize::try_from(region.load_u64(8, Ordering::Relaxed)).ok()?;
    (body % 8 == 0 && body < region.len()).then(|| (region.load_u64(16, Ordering::Relaxed), body))
}

/// The counters of a document by offset; empty if it is not such a document.
#[must_use]
pub fn parse_document(text: &[u8]) -> Vec<Arc<CounterText>> {
    let Ok(Value::Object(document)) = serde_json::from_slice(text) else { return Vec::new() };
    let Some(elements) = document.get("elem").and_then(Value::as_object) else { return Vec::new() };
    let mut counters: Vec<_> = elements.iter().filter_map(|(name, element)| counter(name, element)).collect();
    counters.sort_by_key(|counter| counter.offset);
    counters
}

fn counter(name: &str, element: &Value) -> Option<Arc<CounterText>> {
    let word = |key: &str| element.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let offset = usize::try_from(element.get("index")?.as_u64()?).ok()?;
    Some(Arc::new(CounterText {
        name: name.to_owned(),
        kind: word("type"),
        level: word("level"),
        format: word("format"),
        oneliner: word("oneliner"),
        docs: word("docs"),
        offset,
    }))
}

/// Include and exclude globs on full counter names, the first match decides.
#[derive(Clone, Default, Debug)]
pub struct CounterFilter {
    rules: Vec<(bool, String)>,
    any_include: bool,
}

impl CounterFilter {
    /// Appends a rule: names that match `glob` are shown, or hidden.
    pub fn add(&mut self, include: bool, glob: &str) {
        self.any_include |= include;
        self.rules.push((include, glob.to_owned()));
    }

    /// True if the counter should be shown. A name that no rule matches is shown only if there are
    /// no including rules.
    #[must_use]
    pub fn shows(&self, name: &str) -> bool {
        let decided = self
            .rules
            .iter()
            .find(|(_, glob)| pattern::matches(glob.as_bytes(), name.as_bytes(), pattern::Flags::default()));
        decided.map_or(!self.any_include, |(include, _)| *include)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsc::Publisher;
    use crate::vsm::{INDEX_NAME, VsmWriter, WORKER_DIRECTORY};
    use std::io::Write;

    #[test]
    fn thirty_thousand_sections_are_read_again_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(WORKER_DIRECTORY);
        let publisher = Publisher::new(&VsmWriter::create(&path).unwrap(), 1);
        let _section = publisher.publish(&surface::counter::MGT, "MGT").unwrap();
        // More of the same: a server with as many backends.
        let index = std::fs::read_to_string(path.join(INDEX_NAME)).unwrap();
        let (before, _) = index.lines().last().unwrap().rsplit_once(' ').unwrap();
        let more: String = (0..30_000).map(|number| format!("{before} B.{number}\n")).collect();
        let mut file = std::fs::OpenOptions::new().append(true).open(path.join(INDEX_NAME)).unwrap();
        file.write_all(more.as_bytes()).unwrap();
        let mut vsm = Vsm::new(directory.path());
        vsm.poll();
        let mut reader = CounterReader::new();
        let first = reader.read(&vsm).len();
        assert_eq!(first, 30_001 * surface::counter::MGT.counters.len());
        let before = crate::thread_cpu_time();
        assert_eq!(reader.read(&vsm).len(), first);
        // When every section was searched for among all others, this took most of a minute.
        let taken = crate::thread_cpu_time() - before;
        assert!(taken.as_secs() < 8, "{taken:?}");
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let mut filter = CounterFilter::default();
        assert!(filter.shows("MAIN.uptime"));
        filter.add(false, "MAIN.s_*");
        assert!(filter.shows("MAIN.uptime") && !filter.shows("MAIN.s_pass"));
        filter.add(true, "MAIN.*");
        assert!(filter.shows("MAIN.uptime") && !filter.shows("MAIN.s_pass") && !filter.shows("MGT.uptime"));
    }

    #[test]
    fn a_document_that_is_none_has_no_counters() {
        for text in [&b""[..], b"{", b"[]", b"{\"elem\": 3}", b"{\"elem\": {\"a\": {\"index\": -1}}}", b"\xff"] {
            assert!(parse_document(text).is_empty());
        }
    }
}
