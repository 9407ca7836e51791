//! Replays the fuzz corpus.

use std::path::Path;

#[test]
fn no_command_or_reply_panics() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cli_command");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        cli_proto::exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 5, "there is a corpus");
}
