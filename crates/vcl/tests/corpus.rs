//! Replays the fuzz corpus.

use std::path::Path;

#[test]
fn every_text_compiles_or_has_a_message() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/vcl_compile");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        vcl::exercise::exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 5, "there is a corpus");
}
