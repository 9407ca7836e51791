//! Replays the fuzz corpus.

use http1::exercise;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        run(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 5, "{target} has a corpus");
}

#[test]
fn requests_are_read_alike_after_they_were_written() {
    replay("http1_request", exercise::request);
}

#[test]
fn responses_are_read_alike_after_they_were_written() {
    replay("http1_response", exercise::response);
}

#[test]
fn chunked_bodies_are_read_alike_in_any_pieces() {
    replay("chunked_body", exercise::chunked_body);
}
