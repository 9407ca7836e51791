//! Arbitrary bytes as all inputs of the readers of shared memory.

use shm::log::HEAD_BYTES;
use shm::read::group::{Grouper, Grouping};
use shm::read::query::Query;
use shm::read::ring::{RingCursor, Start};
use shm::read::vsm::{SegmentEntry, Vsm};
use shm::read::{Cursor, Next, counters, file::FileCursor, tags::TagSet};
use shm::region::Region;
use shm::vsm::{INDEX_NAME, WORKER_DIRECTORY};
use std::fs::{self, File};
use std::io::Write;

/// Chunks read from one source; the links of a damaged ring may form a circle.
const CHUNKS_MAX: usize = 10_000;
/// Bytes taken for a query.
const QUERY_BYTES_MAX: usize = 200;

/// Reads `bytes` as a log file, as a log ring, as an index of segments, as a description of
/// counters, as a query and as a list of tags, and runs the found records through the grouping and
/// the query. The query is the first line.
///
/// # Panics
/// When a source of records has no end, or an index differs when it is read line by line.
pub fn readers(bytes: &[u8]) {
    let line_end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let (line, rest) = bytes.split_at(line_end.min(QUERY_BYTES_MAX));
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    let text = String::from_utf8_lossy(line);
    let _ = TagSet::parse_list(&text);
    let query = Query::parse(&text, false).ok();
    let _ = counters::parse_document(rest);
    index(rest);
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

/// Reads `bytes` as the index of a worker, at once and while it grows line by line.
fn index(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // In memory if possible: a fuzzer creates one directory after another.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let (mut at_once, mut by_line) = (directory.path().join("at_once"), directory.path().join("by_line"));
    let (mut whole, mut growing) = (Vsm::new(&at_once), Vsm::new(&by_line));
    for place in [&mut at_once, &mut by_line] {
        place.push(WORKER_DIRECTORY);
        fs::create_dir_all(&*place).expect("a folder");
        place.push(INDEX_NAME);
    }
    fs::write(at_once, format!("{text}\n")).expect("room for an index");
    whole.poll();
    let mut file = File::create(by_line).expect("room for an index");
    let mut expected: Vec<&str> = Vec::new();
    for line in text.split_inclusive('\n') {
        let before = growing.entries().count();
        file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).expect("room for a line");
        growing.poll();
        let line = line.lines().next().unwrap_or_default();
        if growing.entries().count() > before {
            expected.extend(line.strip_prefix("+ "));
        } else if let Some(gone) = line.strip_prefix("- ") {
            expected.retain(|line| *line != gone);
        }
    }
    assert!(whole.entries().eq(growing.entries()), "an index is the same in any pieces");
    assert!(whole.entries().map(SegmentEntry::line).eq(expected), "lines come and go");
    for entry in whole.entries() {
        assert!(!entry.file().contains('/') && entry.file() != "..", "a file lies in the directory of its index");
    }
}
