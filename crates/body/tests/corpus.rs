//! Replays the fuzz corpus, and does what a fuzzer begins with.

use body::Filter;
use rand::{Rng, SeedableRng, rngs::SmallRng};
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

#[test]
fn arbitrary_bytes_keep_the_promises() {
    let mut random = SmallRng::seed_from_u64(9);
    for _ in 0..100 {
        let plain: Vec<u8> = (0..random.gen_range(0..3000)).map(|_| random.gen_range(0..4)).collect();
        let mut body = vec![random.r#gen()];
        body::whole(Filter::gzip(random.gen_range(0..10)), &plain, usize::MAX, &mut body).unwrap();
        for _ in 0..random.gen_range(0..3) {
            let at = random.gen_range(0..body.len());
            body[at] = random.r#gen();
        }
        body.truncate(random.gen_range(0..body.len() * 2));
        body::exercise::exercise(&body);
    }
}
