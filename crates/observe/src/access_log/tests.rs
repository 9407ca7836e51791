//! Tests: a queue, its limits, and each destination.

use super::*;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::time::Instant;
use surface::limits::{ACCESS_LOG_QUEUE_BYTES_MAX, TEST_HANG_SECONDS};

fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
    while !condition() {
        assert!(Instant::now() < deadline, "did not come about");
        thread::sleep(Duration::from_millis(1));
    }
}

/// An access log with this specification; lines are put into its queue directly.
fn started(specification: &str) -> (Writer, Source) {
    let prepared = Prepared::new(&AccessLog::parse(specification).unwrap()).unwrap();
    prepared.start(&Totals::default()).unwrap()
}

fn text(path: &std::path::Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn file_that_was_moved_or_removed_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
    let (writer, source) = started(path.to_str().unwrap());
    assert!(source.queue.put(b"one\n"));
    eventually(|| source.counts.written() == 1);
    fs::rename(&path, &moved).unwrap();
    assert!(source.queue.put(b"two\n"));
    eventually(|| source.counts.written() == 2);
    fs::remove_file(&path).unwrap();
    writer.reopen();
    eventually(|| path.exists());
    assert!(source.queue.put(b"three\n"));
    drop(writer);
    assert_eq!((text(&moved).as_str(), text(&path).as_str()), ("one\n", "three\n"));
    assert_eq!((source.counts.written(), source.counts.dropped(LineDrop::Write)), (3, 0));
}

#[test]
fn file_is_replaced_at_its_size_between_lines_and_old_ones_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (writer, source) = started(&format!("{},rotate=1kx2", path.display()));
    let line = format!("{}\n", "x".repeat(299));
    for _ in 0..20 {
        assert!(source.queue.put(line.as_bytes()));
    }
    drop(writer);
    assert_eq!(source.counts.written(), 20);
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["log", "log.1", "log.2"]);
    for name in names {
        let text = text(&folder.path().join(name));
        assert!(text.len() <= 1200 && text.split_inclusive('\n').all(|one| one == line), "{text}");
    }
}

#[test]
fn lines_that_a_file_does_not_take_are_counted_and_writing_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/log");
    let (writer, source) = started(path.to_str().unwrap());
    assert!(source.queue.put(b"one\n"));
    eventually(|| source.counts.dropped(LineDrop::Write) == 1);
    fs::create_dir(folder.path().join("missing")).unwrap();
    assert!(source.queue.put(b"two\n"));
    eventually(|| source.counts.written() == 1);
    drop(writer);
    assert_eq!(text(&path), "two\n");
    // A device without room.
    let (writer, source) = started("/dev/full");
    assert!(source.queue.put(b"one\n") && source.queue.put(b"two\n"));
    drop(writer);
    assert_eq!((source.counts.written(), source.counts.dropped(LineDrop::Write)), (0, 2));
}

#[test]
fn destination_that_takes_nothing_costs_the_queue_and_no_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // A reader that does not read.
    let mut reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let (writer, mut source) = started(path.to_str().unwrap());
    let line = vec![b'x'; 1 << 16];
    let (mut put, begun) = (0u64, Instant::now());
    for _ in 0..2 * ACCESS_LOG_QUEUE_BYTES_MAX / line.len() {
        put += 1;
        if !source.queue.put(&line) {
            source.counts.drop_lines(LineDrop::Queue, 1);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    drop(writer);
    source.line.clear();
    let counts = &source.counts;
    let dropped: u64 = LineDrop::ALL.into_iter().map(|why| counts.dropped(why)).sum();
    assert_eq!(counts.written() + dropped, put);
    assert!(dropped > 0);
    let mut start = [0; 4];
    reader.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"xxxx");
}

#[test]
fn each_line_is_a_datagram_and_an_absent_receiver_loses_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (writer, source) = started(&format!("unix:{}", path.display()));
    assert!(source.queue.put(b"lost\n"));
    eventually(|| source.counts.dropped(LineDrop::Write) == 1);
    let receiver = UnixDatagram::bind(&path).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(TEST_HANG_SECONDS))).unwrap();
    assert!(source.queue.put(b"one\n") && source.queue.put(b"two\n"));
    let mut room = [0; 64];
    for expected in [&b"one"[..], b"two"] {
        let count = receiver.recv(&mut room).unwrap();
        assert_eq!(&room[..count], expected);
    }
    drop(writer);
    assert_eq!(source.counts.written(), 2);
}

#[test]
fn wrong_formats_and_queries_are_named() {
    for (wrong, said) in [("stdout,format=%Z", "Unknown format"), ("stdout,query=(", "query")] {
        let result = Prepared::new(&AccessLog::parse(wrong).unwrap());
        assert!(result.err().unwrap().contains(said), "{wrong}");
    }
}
