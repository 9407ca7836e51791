//! A range cut out of a stream is the same for any division of the stream into pieces.

use body::{Chain, Machine, RangeCut};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

#[test]
fn a_cut_is_the_slice_of_the_whole() {
    let mut random = SmallRng::seed_from_u64(5);
    let whole: Vec<u8> = (0..1000).map(|_| random.random()).collect();
    for _ in 0..500 {
        let first = random.random_range(0..1000);
        let last = random.random_range(first..1000);
        let mut cut = RangeCut::new(first as u64, last as u64);
        let mut got = Vec::new();
        let mut rest = &whole[..];
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(random.random_range(1..200)));
            got.extend_from_slice(cut.cut(head));
            rest = tail;
        }
        assert_eq!(got, whole[first..=last]);
        assert!(cut.is_done());
    }
}

#[test]
fn a_stream_that_is_too_short_leaves_something_missing() {
    let mut cut = RangeCut::new(2, 5);
    assert_eq!(cut.cut(b"0123"), b"23");
    assert_eq!((cut.remaining(), cut.is_done()), (2, false));
    assert_eq!(cut.cut(b"4567"), b"45");
    assert_eq!((cut.remaining(), cut.is_done()), (0, true));
    assert_eq!(cut.cut(b"89"), b"");
}

#[test]
fn extreme_ranges_do_not_overflow() {
    assert_eq!(RangeCut::new(0, u64::MAX).cut(b"abc"), b"abc");
    assert_eq!(RangeCut::new(u64::MAX, u64::MAX).cut(b"abc"), b"");
    assert_eq!(RangeCut::new(5, 3).remaining(), 0);
}

#[test]
fn bytes_before_the_range_may_be_skipped() {
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(RangeCut::new(1 << 50, (1 << 50) + 3))));
    assert_eq!(chain.unwanted_bytes(), 1 << 50);
    chain.skip(1 << 40);
    chain.skip((1 << 50) - (1 << 40));
    assert_eq!((chain.unwanted_bytes(), chain.missing_bytes()), (0, 4));
    let step = chain.step(Some(b"abcdef")).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(step.bytes, b"abcd");
    assert_eq!((chain.unwanted_bytes(), chain.missing_bytes(), chain.has_ended()), (0, 0, true));
    let mut nothing = Chain::default();
    assert!(nothing.push(Box::new(RangeCut::new(1, 0))));
    assert_eq!(nothing.unwanted_bytes(), 0);
}
