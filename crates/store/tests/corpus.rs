//! Replays the fuzz corpora.

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
fn no_damage_to_an_arena_keeps_it_from_being_recovered() {
    replay("arena_recovery", store::exercise::arena);
}

#[test]
fn a_journal_is_read_or_refused_whatever_is_in_it() {
    replay("ban_journal", store::exercise::journal);
}
