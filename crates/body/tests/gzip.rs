//! Gzip in both directions, in any pieces, and the treatment of bad streams.

use body::{Chain, FilterError, Flow, Gunzip, Gzip, GzipTotals, Machine, RangeCut, TestGunzip};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use surface::limits::{FILTER_STEP_BYTES_MAX, FILTERS_MAX, GUNZIP_STATE_BYTES};

/// Pulls a body in pieces through a filter.
fn pull(
    body: &[u8],
    mut piece: impl FnMut() -> usize,
    filter: Box<dyn Machine>,
) -> Result<(Vec<u8>, GzipTotals), FilterError> {
    let mut chain = Chain::default();
    assert!(chain.push(filter));
    let mut out = Vec::new();
    let mut rest = body;
    while !chain.has_ended() {
        let (mut head, tail) = rest.split_at(rest.len().min(piece()));
        rest = tail;
        let is_over = head.is_empty();
        loop {
            let step = chain.step((!is_over).then_some(head))?;
            out.extend_from_slice(step.bytes);
            head = &head[step.taken..];
            if step.flow != Flow::More {
                break;
            }
        }
        assert!(head.is_empty());
    }
    let (passed, totals) = chain.passed(0);
    assert_eq!((passed.bytes_in, passed.bytes_out), (body.len() as u64, out.len() as u64));
    Ok((out, totals.unwrap()))
}

fn zip(plain: &[u8], level: u32) -> Vec<u8> {
    let (out, totals) = pull(plain, || usize::MAX, Box::new(Gzip::new(level))).unwrap();
    assert_eq!((totals.input_bytes, totals.output_bytes), (plain.len() as u64, out.len() as u64));
    out
}

fn unzip(zipped: &[u8], piece: impl FnMut() -> usize) -> Result<Vec<u8>, FilterError> {
    let (out, totals) = pull(zipped, piece, Box::new(Gunzip::new(None)))?;
    assert_eq!((totals.input_bytes, totals.output_bytes), (zipped.len() as u64, out.len() as u64));
    Ok(out)
}

fn check(zipped: &[u8], piece: impl FnMut() -> usize) -> Result<u64, FilterError> {
    let (out, totals) = pull(zipped, piece, Box::new(TestGunzip::new()))?;
    assert_eq!(out, zipped, "the bytes go on unchanged");
    Ok(totals.output_bytes)
}

/// Bytes that compress somewhat: a small alphabet with runs.
fn sample(random: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < len {
        let run = random.random_range(1..20);
        out.resize(out.len() + run, random.random_range(0..40));
    }
    out.truncate(len);
    out
}

#[test]
fn gzip_round_trips_in_any_pieces() {
    let mut random = SmallRng::seed_from_u64(3);
    for len in [0, 1, 100, 4096, 16_384, 16_385, 100_000, 300_000] {
        let plain = sample(&mut random, len);
        for level in [0, 1, 6, 9] {
            let (zipped, _) = pull(&plain, || random.random_range(1..20_000), Box::new(Gzip::new(level))).unwrap();
            assert_eq!(zipped[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, zipped[8], 3]);
            assert!(unzip(&zipped, || random.random_range(1..5000)).unwrap() == plain, "{len} at level {level}");
            assert_eq!(check(&zipped, || random.random_range(1..5000)), Ok(len as u64));
        }
    }
}

/// 5 MB of zeros in 5 KB.
fn bomb() -> Vec<u8> {
    let zipped = zip(&vec![0; 5_000_000], 9);
    assert!(zipped.len() < 10_000);
    zipped
}

#[test]
fn a_step_yields_no_more_than_its_bound_whatever_goes_in() {
    let zipped = bomb();
    for filters in [
        vec![Box::new(Gunzip::new(None)) as Box<dyn Machine>],
        vec![Box::new(TestGunzip::new())],
        vec![Box::new(Gunzip::new(None)), Box::new(RangeCut::new(4_000_000, 4_999_999))],
        vec![Box::new(TestGunzip::new()), Box::new(Gunzip::new(None)), Box::new(Gzip::new(0))],
        vec![Box::new(Gunzip::new(None)), Box::new(Gzip::new(9)), Box::new(Gunzip::new(None))],
    ] {
        let mut chain = Chain::default();
        assert!(filters.into_iter().all(|filter| chain.push(filter)));
        let (mut input, mut total, mut steps) = (&zipped[..], 0, 0);
        while !chain.has_ended() {
            let step = chain.step((!input.is_empty()).then_some(input)).unwrap();
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            total += step.bytes.len();
            steps += 1;
            input = &input[step.taken..];
        }
        let zipped = zipped.len();
        assert!(total == zipped || total == 1_000_000 || total >= 5_000_000, "{total}");
        assert!(total == zipped || steps >= 5_000_000 / FILTER_STEP_BYTES_MAX, "{steps} steps");
        assert_eq!(chain.missing_bytes(), 0);
    }
}

#[test]
fn a_check_takes_no_more_in_than_it_has_looked_at() {
    let zipped = bomb();
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(TestGunzip::new())));
    let first = chain.step(Some(&zipped)).unwrap();
    assert!(first.taken < 1000 && first.flow == Flow::More, "{first:?}");
}

#[test]
fn a_chain_has_a_named_number_of_filters_at_most() {
    let mut chain = Chain::default();
    for _ in 0..FILTERS_MAX {
        assert!(chain.push(Box::new(Gunzip::new(None))));
    }
    assert!(!chain.push(Box::new(Gunzip::new(None))));
    assert_eq!(chain.len(), FILTERS_MAX);
    assert_eq!(chain.memory_bytes(), FILTERS_MAX * (FILTER_STEP_BYTES_MAX + GUNZIP_STATE_BYTES));
}

#[test]
fn invalid_streams_are_distinguished() {
    let zipped = zip(&b"hello world ".repeat(200), 6);
    let len = zipped.len();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = zipped.clone();
        bad.splice(at..at + bytes.len(), bytes.iter().copied());
        bad
    };
    let cases = [
        ("cut in the trailer", zipped[..len - 5].to_vec(), "Gunzip error at the very end"),
        ("cut in the data", zipped[..20].to_vec(), "Gunzip error at the very end"),
        ("cut in the header", zipped[..5].to_vec(), "Gunzip error at the very end"),
        ("a single byte", zipped[..1].to_vec(), "Gunzip error at the very end"),
        ("junk behind", [&zipped[..], b"junk"].concat(), "Junk after gzip data"),
        ("zeros behind", [&zipped[..], &[0; 3]].concat(), "Junk after gzip data"),
        ("a second member", [&zipped[..], &zipped].concat(), "Junk after gzip data"),
        ("plain text", b"hello world".to_vec(), "Invalid Gzip data: incorrect header check"),
        ("wrong method", with(2, &[7]), "Invalid Gzip data: unknown compression method"),
        ("wrong checksum", with(len - 8, &[0; 4]), "Invalid Gzip data: incorrect data check"),
        ("wrong length", with(len - 4, &[0; 4]), "Invalid Gzip data: incorrect length check"),
        ("wrong block", with(10, &[0xff]), "Invalid Gzip data: invalid block type"),
    ];
    for (what, bytes, expect) in cases {
        assert_eq!(unzip(&bytes, || 7).map_err(FilterError::text), Err(expect), "{what}");
        assert_eq!(unzip(&bytes, || 100_000).map_err(FilterError::text), Err(expect), "{what}");
        let tested = if expect == "Gunzip error at the very end" { "tGunzip failed" } else { expect };
        assert_eq!(check(&bytes, || 7).map_err(FilterError::text), Err(tested), "{what}");
        assert_eq!(check(&bytes, || 100_000).map_err(FilterError::text), Err(tested), "{what}");
    }
    let damaged = unzip(b"hello world", || 100).unwrap_err();
    assert_eq!(damaged.fetch_detail(), Some("Gunzip error: -3 (incorrect header check)"));
}

#[test]
fn mangled_streams_end_in_an_error_or_in_bytes() {
    let mut random = SmallRng::seed_from_u64(4);
    let zipped = zip(&sample(&mut random, 5000), 6);
    for _ in 0..500 {
        let mut bad = zipped.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bad.len());
            bad[at] = random.random();
        }
        let whole = unzip(&bad, || 100_000).map_err(FilterError::text);
        assert_eq!(unzip(&bad, || random.random_range(1..100)).map_err(FilterError::text).is_ok(), whole.is_ok());
    }
}
