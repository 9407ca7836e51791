//! Replays the fuzz corpus.

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
fn a_gzipped_body_is_the_same_in_any_pieces() {
    replay("gzip_body", body::exercise::exercise);
}
