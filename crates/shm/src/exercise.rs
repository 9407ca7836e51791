//! The entry of the fuzz target: arbitrary bytes as everything that the readers read.
//!
//! A violated promise panics, which is what a fuzzer looks for; nothing else calls this.

use crate::log::HEAD_BYTES;
use crate::read::group::{Grouper, Grouping};
use crate::read::query::Query;
use crate::read::ring::{RingCursor, Start};
use crate::read::{Cursor, Next, counters, file::FileCursor, tags::TagSet, vsm};
use crate::region::Region;

/// Chunks read of one source; a ring may be read in circles.
const CHUNKS_MAX: usize = 10_000;
/// Bytes taken for a query.
const QUERY_BYTES_MAX: usize = 200;

/// Reads `bytes` as a log file, as a log ring, as an index of segments, as a description of counters, as a query and as a list
/// of tags, and puts what it finds through the grouping and the query. The query is the first line.
///
/// # Panics
/// When a source of records has no end, or an index is another one line by line than at once.
pub fn exercise(bytes: &[u8]) {
    let line_end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let (line, rest) = bytes.split_at(line_end.min(QUERY_BYTES_MAX));
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    let text = String::from_utf8_lossy(line);
    let _ = TagSet::parse_list(&text);
    let query = Query::parse(&text, false).ok();
    let _ = counters::parse_document(rest);
    vsm::exercise(&String::from_utf8_lossy(rest));
    if let Ok(cursor) = FileCursor::open(rest) {
        assert!(read(cursor, query.as_ref()) < CHUNKS_MAX, "a file has an end");
    }
    if rest.len() >= HEAD_BYTES {
        let mut region = Region::heap(rest.len() / 8 * 8);
        region.fill(0, &rest[..rest.len() / 8 * 8]);
        if let Some(cursor) = RingCursor::open(region, Start::Head) {
            read(cursor, query.as_ref());
        }
    }
}

fn read(mut cursor: impl Cursor, query: Option<&Query>) -> usize {
    let mut words = Vec::new();
    let mut groupers = [Grouping::Raw, Grouping::Vxid, Grouping::Request, Grouping::Session]
        .map(|grouping| Grouper::new(grouping, 20, 120.0));
    let mut chunks = 0;
    while chunks < CHUNKS_MAX && cursor.next(&mut words) == Next::Chunk {
        chunks += 1;
        for grouper in &mut groupers {
            grouper.push(&words, chunks as f64);
        }
    }
    for grouper in &mut groupers {
        grouper.flush();
        while let Some(group) = grouper.next_ready() {
            let _ = query.map(|query| query.matches(&group));
            for transaction in &group {
                for record in transaction.records() {
                    let _ = (record.tag(), record.text().len());
                }
            }
        }
    }
    chunks
}
