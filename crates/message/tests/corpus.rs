//! Replays the fuzz corpus.

use std::path::Path;

#[test]
fn stored_messages_are_written_as_they_were_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/message_decode");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        message::exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 5, "there is a corpus");
}
