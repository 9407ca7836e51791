//! Replays the fuzz corpus.

use std::path::Path;

#[test]
fn no_log_ring_query_or_counter_text_panics() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/log_reader");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        shm::exercise::exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 5, "there is a corpus");
}
