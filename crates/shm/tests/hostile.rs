//! For any content of shared memory, the readers neither panic nor run for ever.

use std::fs;
use std::sync::atomic::Ordering;

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use shm::layout::Layout;
use shm::log::{HEAD_BYTES, LogBuffer, LogId, LogRing};
use shm::read::counters::{CounterFilter, CounterReader, parse_document};
use shm::read::file::FileCursor;
use shm::read::group::{Grouper, Grouping};
use shm::read::query::Query;
use shm::read::ring::{RingCursor, Start};
use shm::read::vsm::Vsm;
use shm::read::{Cursor, Next};
use shm::region::Region;
use shm::vsc::Publisher;
use shm::vsm::{INDEX_NAME, MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY};
use surface::tag::Tag;

const ROUNDS: u64 = 150;

/// A ring of a few wraps, as bytes.
fn valid_ring(random: &mut SmallRng) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let vsm = VsmWriter::create(folder.path()).unwrap();
    let layout = Layout::ALL[random.random_range(0..2)];
    let ring = LogRing::publish(&vsm, 8192, layout).unwrap();
    let mut buffer = LogBuffer::new(&ring);
    for number in 0..random.random_range(0..400u32) {
        buffer.start(LogId::client(random.random_range(1..20)), 0.0);
        buffer.record_fmt(Tag::Begin, format_args!("req {} esi", random.random_range(0..20)));
        buffer.record_fmt(Tag::Link, format_args!("req {} esi", random.random_range(0..20)));
        buffer.record(Tag::ReqURL, &b"/abcdefghijklmnopqrstuvwxyz"[..random.random_range(0..20)]);
        if number % 3 != 0 {
            buffer.end();
        }
    }
    drop(buffer);
    let mut files = std::fs::read_dir(folder.path()).unwrap().flatten();
    let log = files.find(|file| file.file_name().to_string_lossy().starts_with("_.Log.")).unwrap();
    std::fs::read(log.path()).unwrap()
}

fn damage(bytes: &mut [u8], random: &mut SmallRng) {
    for _ in 0..random.random_range(0..40) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => {
                let end = (at + random.random_range(1..64)).min(bytes.len());
                random.fill_bytes(&mut bytes[at..end]);
            }
            _ => {
                let words = [0xFE45_4545u32, 0xFE57_5757, 0xFF00_0000, 0, u32::MAX, 0x4C00_FFFF];
                let at = at / 4 * 4;
                bytes[at..at + 4].copy_from_slice(&words[random.random_range(0..words.len())].to_ne_bytes());
            }
        }
    }
}

fn region(bytes: &[u8]) -> Region {
    let mut region = Region::heap(bytes.len());
    region.fill(0, bytes);
    region
}

/// Reads until the source has no more records; a ring may also report that the place is lost.
fn drain(cursor: &mut dyn Cursor, limit: usize) -> Vec<Vec<u32>> {
    let mut chunks = Vec::new();
    let mut words = Vec::new();
    while cursor.next(&mut words) == Next::Chunk {
        chunks.push(words.clone());
        assert!(chunks.len() <= limit, "the source has no end");
    }
    chunks
}

#[test]
fn a_damaged_ring_is_read_to_an_end() {
    for seed in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut bytes = valid_ring(&mut random);
        damage(&mut bytes, &mut random);
        if seed % 4 == 0 {
            // Keep the head's marker and size, so that the rest of the damage is reached.
            bytes[..16].copy_from_slice(&valid_ring(&mut random)[..16]);
        }
        for start in [Start::Head, Start::Tail] {
            let Some(mut cursor) = RingCursor::open(region(&bytes), start) else { continue };
            // A reader that runs in circles counts segments, and stops within four turns.
            let chunks = drain(&mut cursor, 4 * (bytes.len() - HEAD_BYTES) / 8);
            for grouping in [Grouping::Raw, Grouping::Vxid, Grouping::Request, Grouping::Session] {
                let query = Query::parse("ReqURL ~ a or {2+}VSL or vxid == 3", false).unwrap();
                let mut grouper = Grouper::new(grouping, 10, 5.0);
                let mut records = 0;
                for (time, chunk) in chunks.iter().enumerate() {
                    grouper.push(chunk, time as f64);
                }
                grouper.flush();
                while let Some(group) = grouper.next_ready() {
                    let _ = query.matches(&group);
                    records += group.iter().map(|transaction| transaction.records().count()).sum::<usize>();
                }
                assert!(records <= 20 * bytes.len(), "seed {seed}: records multiply");
            }
        }
    }
}

#[test]
fn a_chain_of_records_without_an_end_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let vsm = VsmWriter::create(folder.path()).unwrap();
    let ring = LogRing::publish(&vsm, 8192, Layout::V71).unwrap();
    for _ in 0..20 {
        ring.write(Tag::CLI, LogId::NONE, b"a record");
    }
    let mut files = fs::read_dir(folder.path()).unwrap().flatten();
    let log = files.find(|file| file.file_name().to_string_lossy().starts_with("_.Log.")).unwrap();
    let bytes = fs::read(log.path()).unwrap();
    let words: Vec<u32> =
        bytes[HEAD_BYTES..].chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
    let end = words.iter().position(|word| *word == 0xFE45_4545).unwrap();
    for start in [Start::Head, Start::Tail] {
        let ring = region(&bytes);
        // The end is a wrap: the chain leads back to its first record.
        ring.store_u32(HEAD_BYTES + 4 * end, 0xFE57_5757, Ordering::Relaxed);
        let mut cursor = RingCursor::open(ring, start).unwrap();
        for _ in 0..3 {
            let mut words = Vec::new();
            let mut last = cursor.next(&mut words);
            for _ in 0..200 {
                if last == Next::Chunk {
                    last = cursor.next(&mut words);
                }
            }
            assert_eq!(last, Next::Damaged);
            // The tail of such a chain is damaged at once.
            cursor.reset(Start::Tail);
            assert_eq!(cursor.next(&mut words), Next::Damaged);
        }
    }
}

#[test]
fn random_bytes_as_a_ring_or_a_file_are_refused_or_read_to_an_end() {
    for seed in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut bytes = vec![0; random.random_range(0..4096)];
        random.fill_bytes(&mut bytes);
        assert!(RingCursor::open(region(&bytes), Start::Head).is_none());
        for layout in Layout::ALL {
            let mut file = layout.file_head().to_vec();
            file.extend_from_slice(&bytes);
            drain(&mut FileCursor::open(&file[..]).unwrap(), bytes.len());
        }
        assert!(FileCursor::open(&bytes[..]).is_err());
    }
}

#[test]
fn a_head_that_promises_more_than_there_is_is_refused() {
    let mut random = SmallRng::seed_from_u64(1);
    for words in [0, 1 << 20, u64::MAX / 8, u64::MAX] {
        let ring = region(&valid_ring(&mut random));
        ring.store_u64(8, words, Ordering::Relaxed);
        assert!(RingCursor::open(ring, Start::Head).is_none(), "{words}");
    }
}

#[test]
fn a_writer_that_laps_the_reader_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(WORKER_DIRECTORY);
    fs::create_dir(&path).unwrap();
    let ring = LogRing::publish(&VsmWriter::create(&path).unwrap(), 8192, Layout::V71).unwrap();
    let mut vsm = Vsm::new(directory.path());
    vsm.poll();
    let map = || vsm.map(vsm.find("Log", None).unwrap()).unwrap();
    let mut cursor = RingCursor::open(map(), Start::Head).unwrap();
    let mut tail = RingCursor::open(map(), Start::Tail).unwrap();
    let mut words = Vec::new();
    ring.write(Tag::CLI, LogId::NONE, b"first");
    assert_eq!([cursor.next(&mut words), cursor.next(&mut words)], [Next::Chunk, Next::Wait]);
    // Five of eight segments behind is within the limit, six is too far.
    for _ in 0..220 {
        ring.write(Tag::CLI, LogId::NONE, b"many more");
    }
    assert_eq!(cursor.next(&mut words), Next::Chunk);
    for _ in 0..220 {
        ring.write(Tag::CLI, LogId::NONE, b"many more");
    }
    assert_eq!(cursor.next(&mut words), Next::Overrun);
    assert_eq!(tail.next(&mut words), Next::Overrun);
    cursor.reset(Start::Head);
    assert!(drain(&mut cursor, 1000).len() > 100, "the newer half of the ring is still readable");
    tail.reset(Start::Tail);
    assert_eq!(tail.next(&mut words), Next::Wait);
    ring.write(Tag::CLI, LogId::NONE, b"last");
    assert_eq!([tail.next(&mut words), tail.next(&mut words)], [Next::Chunk, Next::Wait]);
}

#[test]
fn random_lines_in_an_index_are_skipped() {
    let pieces = [
        "+",
        "-",
        "#",
        " ",
        "\n",
        "Stat",
        "StatDoc",
        "Log",
        "0",
        "4096",
        "18446744073709551615",
        "../x",
        "/etc/passwd",
        "_.index",
        "\0",
        "é",
        "\"",
    ];
    for seed in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().unwrap();
        for name in [MANAGER_DIRECTORY, WORKER_DIRECTORY] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let mut text = String::from("# 1 2\n");
        for _ in 0..random.random_range(0..200) {
            text.push_str(pieces[random.random_range(0..pieces.len())]);
            if random.random() {
                text.push(' ');
            }
        }
        let path = directory.path().join(WORKER_DIRECTORY).join(INDEX_NAME);
        fs::write(&path, &text).unwrap();
        let mut vsm = Vsm::new(directory.path());
        vsm.poll();
        for entry in vsm.entries() {
            let _ = vsm.map(entry);
        }
        assert!(vsm.argument("-T").is_err());
        let _ = CounterReader::new().read(&vsm);
        fs::write(&path, &text.as_bytes()[..text.len() / 2]).unwrap();
        vsm.poll();
    }
}

#[test]
fn damaged_counter_segments_are_read_or_skipped() {
    for seed in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(WORKER_DIRECTORY);
        fs::create_dir(&path).unwrap();
        let publisher = Publisher::new(&VsmWriter::create(&path).unwrap(), 1);
        let _block = publisher.publish(&surface::counter::SMA, "SMA.s0").unwrap();
        for entry in fs::read_dir(&path).unwrap() {
            let file = entry.unwrap().path();
            if file.file_name().unwrap() != INDEX_NAME {
                let mut bytes = fs::read(&file).unwrap();
                let head = bytes.len().min(if seed % 2 == 0 { 32 } else { 1700 });
                damage(&mut bytes[..head], &mut random);
                fs::write(&file, bytes).unwrap();
            }
        }
        let mut vsm = Vsm::new(directory.path());
        vsm.poll();
        assert!(CounterReader::new().read(&vsm).len() <= 7);
    }
}

#[test]
fn random_text_as_query_document_or_glob_is_answered() {
    let pieces = [
        "ReqURL",
        "vxid",
        "not",
        "and",
        "or",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "==",
        "~",
        "!~",
        "eq",
        "1",
        "2.5",
        "\"",
        "'",
        "\\",
        "\n",
        "#",
        "*",
        ",",
        ":",
        "é",
        "{\"elem\":",
        "}",
        "null",
        "?",
        "[!a-",
        "a",
    ];
    for seed in 0..10 * ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let text: Vec<_> =
            (0..random.random_range(0..30)).map(|_| pieces[random.random_range(0..pieces.len())]).collect();
        let text = text.join(if random.random() { " " } else { "" });
        let _ = Query::parse(&text, random.random()).map_err(|error| error.to_string());
        let _ = parse_document(text.as_bytes());
        let mut filter = CounterFilter::default();
        filter.add(true, &text);
        let _ = filter.shows("MAIN.uptime");
    }
}
