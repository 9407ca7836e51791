//! The static table and the dynamic one.

use field_coding::FIELD_EXTRA_BYTES;
use std::collections::VecDeque;

/// Size of both tables at the beginning of a connection. Source: RFC 9113 §6.5.2.
pub const TABLE_BYTES_AT_FIRST: usize = 4096;

/// Number of static entries.
pub(super) const STATIC_ENTRIES: usize = 61;

/// Names and values by index, from 1 on. Source: RFC 7541, Appendix A.
#[rustfmt::skip]
pub(super) static STATIC: [(&[u8], &[u8]); STATIC_ENTRIES] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Index of the first entry of `:status`.
pub(super) const STATUS: usize = 8;
/// Bytes of evicted entries that are kept before the others are moved.
const EVICTED_BYTES_MAX: usize = 1024;

/// One entry: where its name and value are, counted from the beginning of the connection.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    name_bytes: usize,
    value_bytes: usize,
    mark: u32,
}

/// The dynamic table. The texts of its entries are in one buffer, the oldest first.
#[derive(Debug)]
pub(super) struct DynamicTable {
    entries: VecDeque<Entry>,
    texts: Vec<u8>,
    /// Bytes of texts that are no longer in the buffer.
    dropped: usize,
    bytes: usize,
    bytes_max: usize,
}

impl DynamicTable {
    pub(super) fn new(bytes_max: usize) -> DynamicTable {
        DynamicTable { entries: VecDeque::new(), texts: Vec::new(), dropped: 0, bytes: 0, bytes_max }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Sets the largest size, and evicts the oldest entries beyond it.
    pub(super) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
    }

    /// The entry with this index, 0 for the newest: name and value.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(self.entries.len().checked_sub(index + 1)?)?;
        let text = &self.texts[entry.start - self.dropped..][..entry.name_bytes + entry.value_bytes];
        Some(text.split_at(entry.name_bytes))
    }

    /// Enters a field. One that is larger than the table empties it. Source: RFC 7541 §4.4.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], mark: u32) {
        let bytes = name.len() + value.len() + FIELD_EXTRA_BYTES;
        self.evict(self.bytes_max.saturating_sub(bytes));
        if bytes > self.bytes_max {
            return;
        }
        let start = self.dropped + self.texts.len();
        self.texts.extend_from_slice(name);
        self.texts.extend_from_slice(value);
        self.entries.push_back(Entry { start, name_bytes: name.len(), value_bytes: value.len(), mark });
        self.bytes += bytes;
    }

    /// Index of the newest entry with this mark and these texts, 0 for the newest of all.
    pub(super) fn find(&self, name: &[u8], value: &[u8], mark: u32) -> Option<usize> {
        let mut marked = self.entries.iter().rev().enumerate().filter(|(_, entry)| entry.mark == mark);
        marked.find(|(index, _)| self.get(*index) == Some((name, value))).map(|(index, _)| index)
    }

    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.name_bytes + oldest.value_bytes + FIELD_EXTRA_BYTES;
        }
        let end = self.dropped + self.texts.len();
        let unused = self.entries.front().map_or(end, |oldest| oldest.start) - self.dropped;
        if unused > EVICTED_BYTES_MAX || unused == self.texts.len() {
            self.texts.drain(..unused);
            self.dropped += unused;
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.texts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_entries_are_evicted_and_texts_are_bounded() {
        let mut table = DynamicTable::new(200);
        for number in 0..10_000 {
            table.insert(b"name", format!("{number:028}").as_bytes(), number);
            assert!(table.held_bytes() <= EVICTED_BYTES_MAX + 2 * 200, "{}", table.held_bytes());
        }
        let value = |number| format!("{number:028}").into_bytes();
        assert_eq!(table.get(0), Some((&b"name"[..], &value(9_999)[..])));
        assert_eq!(table.get(2), Some((&b"name"[..], &value(9_997)[..])));
        assert_eq!((table.get(3), table.get(usize::MAX - 1)), (None, None));
        assert_eq!((table.find(b"name", &value(9_998), 9_998), table.find(b"name", &value(9_998), 1)), (Some(1), None));
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"b", 0);
        table.insert(b"a", &[b'x'; 68], 0);
        assert_eq!((table.get(0), table.held_bytes()), (None, 0));
        table.insert(b"a", &[b'x'; 67], 0);
        assert!(table.get(0).is_some());
        table.set_bytes_max(99);
        assert_eq!(table.get(0), None);
    }
}
