//! Replays the fuzz corpora.

use std::path::Path;

fn replay(corpus: &str, exercise: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 5, "there is a corpus");
}

#[test]
fn every_text_compiles_or_has_a_message() {
    replay("vcl_compile", vcl::exercise::exercise);
}

#[test]
fn programs_of_the_corpus_do_what_the_naive_evaluator_does() {
    replay("vcl_run", |bytes| {
        vcl::exercise::exercise_run(bytes);
    });
}

/// A thousand programs that are the same ones every time.
#[test]
fn random_programs_do_what_the_naive_evaluator_does() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut done = 0;
    for _ in 0..1_000 {
        let bytes: Vec<u8> = (0..600)
            .map(|_| {
                // xorshift64*
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
            })
            .collect();
        done += vcl::exercise::exercise_run(&bytes);
    }
    assert!(done > 4_000, "the programs do something: {done}");
}

#[test]
fn every_text_is_formatted_or_has_a_message() {
    replay("vcl_format", vcl::exercise::exercise_format);
    replay("vcl_compile", vcl::exercise::exercise_format);
}

#[test]
fn every_text_is_migrated_or_has_a_message() {
    for corpus in ["vcl_migrate", "vcl_compile", "vcl_format"] {
        replay(corpus, vcl::exercise::exercise_migrate);
    }
}
