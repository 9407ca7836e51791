//! Replays the fuzz corpus, and our own scripts.

#![forbid(unsafe_code)]

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;

#[test]
fn no_script_panics_the_parser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = 0;
    for folder in ["fuzz/corpus/vtc_script", "tests/vtc", "tests/vtc/vmod"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                vtc::exercise::exercise(&std::fs::read(path).unwrap());
                files += 1;
            }
        }
    }
    assert!(files > 20, "there is a corpus");
}

#[test]
fn no_damaged_script_panics_the_parser() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vtc");
    let text = std::fs::read(folder.join("runner_commands.vtc")).unwrap();
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..3000 {
        let mut damaged = text.clone();
        for _ in 0..random.gen_range(1..8) {
            let at = random.gen_range(0..damaged.len());
            match random.gen_range(0..3) {
                0 => damaged.truncate(at + 1),
                1 => damaged[at] = random.r#gen(),
                _ => damaged.insert(at, b"{}\"\\$\n# ,"[random.gen_range(0..9)]),
            }
        }
        vtc::exercise::exercise(&damaged);
    }
}
