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
fn no_headers_lead_out_of_a_body_or_into_a_wrong_variant() {
    replay("http_headers", semantics::exercise::exercise);
}
