//! Groups are complete and in order for any content of the log.

use super::*;
use crate::log::LogId;

/// Groups the lines of a log, `<vxid> <tag> <payload>` each, and shows the result: `<level>:<vxid>`
/// with the grouper's notes.
fn grouped(grouping: Grouping, limit: usize, log: &str) -> Vec<String> {
    let mut grouper = Grouper::new(grouping, limit, 100.0);
    for (time, line) in log.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let mut words = line.splitn(3, ' ');
        let vxid = words.next().unwrap().parse().unwrap();
        let tag = Tag::from_name(words.next().unwrap()).unwrap();
        let mut chunk = Vec::new();
        append_text(&mut chunk, tag, LogId::client(vxid), words.next().unwrap_or_default().as_bytes());
        grouper.push(&chunk, time as f64);
    }
    std::iter::from_fn(|| grouper.next_ready()).map(|group| show(&group)).collect()
}

fn show(group: &[Transaction]) -> String {
    let show_one = |transaction: &Transaction| {
        let mut text = format!("{}:{}", transaction.level, transaction.vxid);
        for record in transaction.records().filter(|record| record.tag() == Some(Tag::VSL)) {
            text.push_str(&format!(" [{}]", String::from_utf8_lossy(record.text())));
        }
        text
    };
    group.iter().map(show_one).collect::<Vec<_>>().join(", ")
}

const MISS_WITH_RESTART: &str = "
    1 Begin sess 0 HTTP/1
    1 Link req 2 rxreq
    2 Begin req 1 rxreq
    2 Link req 3 restart
    2 End
    3 Begin req 2 restart
    3 Link bereq 4 fetch
    4 Begin bereq 3 fetch
    4 Link bereq 5 retry
    4 End
    5 Begin bereq 4 retry
    5 End
    3 Link req 6 esi
    6 Begin req 3 esi
    6 End
    3 End
    1 End";

#[test]
fn a_request_is_reported_breadth_first_when_all_of_it_has_ended() {
    assert_eq!(grouped(Grouping::Request, 100, MISS_WITH_RESTART), ["1:2, 1:3, 2:4, 2:6, 3:5"]);
    assert_eq!(grouped(Grouping::Session, 100, MISS_WITH_RESTART), ["1:1, 2:2, 2:3, 3:4, 3:6, 4:5"]);
    assert_eq!(grouped(Grouping::Vxid, 100, MISS_WITH_RESTART), ["1:2", "1:4", "1:5", "1:6", "1:3", "1:1"]);
    assert_eq!(grouped(Grouping::Raw, 100, MISS_WITH_RESTART).len(), 17);
}

#[test]
fn a_transaction_without_begin_is_dropped_and_one_without_end_is_kept_back() {
    let log = "7 ReqURL /lost\n 7 End\n 8 Begin req 0 rxreq\n 8 ReqURL /open\n 0 CLI Rd ping";
    assert_eq!(grouped(Grouping::Vxid, 100, log), [""; 0]);
    let mut grouper = Grouper::new(Grouping::Request, 100, 100.0);
    let mut chunk = Vec::new();
    append_text(&mut chunk, Tag::Begin, LogId::client(8), b"req 0 rxreq");
    grouper.push(&chunk, 0.0);
    grouper.tick(99.0);
    assert!(grouper.next_ready().is_none());
    grouper.tick(100.0);
    assert_eq!(show(&grouper.next_ready().unwrap()), "1:8 [timeout]");
    grouper.push(&chunk, 101.0);
    grouper.flush();
    assert_eq!(show(&grouper.next_ready().unwrap()), "1:8 [flush]");
}

#[test]
fn the_oldest_transactions_are_ended_when_there_are_too_many() {
    let log = "1 Begin req 0 rxreq\n 2 Begin req 0 rxreq\n 3 Begin req 0 rxreq\n 3 End\n 1 End";
    assert_eq!(grouped(Grouping::Request, 2, log), ["1:1 [store overflow]", "1:3"]);
}

#[test]
fn contradictions_are_noted_and_circles_are_not_closed() {
    let check = |log: &str, expected: &[&str]| assert_eq!(grouped(Grouping::Request, 100, log), expected, "{log}");
    check("1 Begin req 0 rxreq\n 1 Begin req 0 rxreq\n 1 End", &["1:1 [duplicate begin (1:Begin \"req 0 rxreq\")]"]);
    check("1 Begin req 0 rxreq\n 1 Link nonsense\n 1 End", &["1:1 [parse error (1:Link \"nonsense\")]"]);
    check("1 Begin req 0 rxreq\n 1 Link req 0 esi\n 1 End", &["1:1 [illegal link vxid (1:Link \"req 0 esi\")]"]);
    check("1 Begin req 0 rxreq\n 1 Link req 1 esi\n 1 End", &["1:1 [link to self (1:Link \"req 1 esi\")]"]);
    check(
        "1 Begin req 0 rxreq\n 1 Link req 2 esi\n 2 Begin req 1 esi\n 2 Link req 1 esi\n 2 End\n 1 End",
        &["1:1, 2:2 [link to ancestor (2:Link \"req 1 esi\")]"],
    );
    check(
        "1 Begin req 0 rxreq\n 1 Link req 2 esi\n 2 Begin req 9 esi\n 2 End\n 1 End",
        &["1:1, 2:2 [link mismatch (2:Begin \"req 9 esi\")]"],
    );
    check(
        "1 Begin req 0 rxreq\n 1 Link req 2 esi\n 2 Begin req 1 esi\n 2 End\n 3 Begin req 2 esi\n 3 End\n 1 End",
        &["1:3 [link too late (3:Begin \"req 2 esi\")]", "1:1, 2:2"],
    );
}

#[test]
fn a_transaction_that_never_ends_stops_growing() {
    let mut grouper = Grouper::new(Grouping::Vxid, 100, 1e9);
    let mut chunk = Vec::new();
    append_text(&mut chunk, Tag::Begin, LogId::client(1), b"req 0 rxreq");
    grouper.push(&chunk, 0.0);
    chunk.clear();
    append_text(&mut chunk, Tag::Debug, LogId::client(1), &[b'x'; 60_000]);
    let pieces = TRANSACTION_WORDS_MAX / chunk.len() + 10;
    for _ in 0..pieces {
        grouper.push(&chunk, 1.0);
    }
    grouper.flush();
    let group = grouper.next_ready().unwrap();
    assert!(group[0].words().len() <= TRANSACTION_WORDS_MAX + 100);
    assert_eq!(show(&group), "1:1 [flush]");
}
