//! Gzip there and back, in any pieces, and what becomes of bad streams.

use body::{Gunzip, Gzip, GzipError, TestGunzip};
use rand::{Rng, SeedableRng, rngs::SmallRng};

fn zip(plain: &[u8], level: u32) -> Vec<u8> {
    let mut gzip = Gzip::new(level);
    let mut out = Vec::new();
    gzip.push(plain, &mut out).unwrap();
    let totals = gzip.finish(&mut out).unwrap();
    assert_eq!((totals.input_bytes, totals.output_bytes), (plain.len() as u64, out.len() as u64));
    out
}

fn unzip(zipped: &[u8], mut piece: impl FnMut() -> usize) -> Result<Vec<u8>, GzipError> {
    let mut gunzip = Gunzip::new();
    let mut out = Vec::new();
    let mut rest = zipped;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len().min(piece()));
        gunzip.push(head, &mut out)?;
        rest = tail;
    }
    let totals = gunzip.finish(&mut out)?;
    assert_eq!((totals.input_bytes, totals.output_bytes), (zipped.len() as u64, out.len() as u64));
    Ok(out)
}

fn check(zipped: &[u8], mut piece: impl FnMut() -> usize) -> Result<u64, GzipError> {
    let mut test = TestGunzip::new();
    let mut out = Vec::new();
    let mut rest = zipped;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len().min(piece()));
        test.push(head, &mut out)?;
        rest = tail;
    }
    let totals = test.finish(&mut out)?;
    assert_eq!(out, zipped, "the bytes go on unchanged");
    Ok(totals.output_bytes)
}

/// Bytes that compress somewhat: a small alphabet with runs.
fn sample(random: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < len {
        let run = random.gen_range(1..20);
        out.resize(out.len() + run, random.gen_range(0..40));
    }
    out.truncate(len);
    out
}

#[test]
fn what_was_zipped_in_any_pieces_unzips_in_any_pieces() {
    let mut random = SmallRng::seed_from_u64(3);
    for len in [0, 1, 100, 4096, 16_384, 16_385, 100_000, 300_000] {
        let plain = sample(&mut random, len);
        for level in [0, 1, 6, 9] {
            let mut gzip = Gzip::new(level);
            let mut zipped = Vec::new();
            let mut rest = &plain[..];
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(rest.len().min(random.gen_range(1..20_000)));
                gzip.push(head, &mut zipped).unwrap();
                if random.gen_bool(0.2) {
                    gzip.flush(&mut zipped).unwrap();
                }
                rest = tail;
            }
            gzip.finish(&mut zipped).unwrap();
            assert_eq!(zipped[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, zipped[8], 3]);
            assert!(unzip(&zipped, || random.gen_range(1..5000)).unwrap() == plain, "{len} at level {level}");
            assert_eq!(check(&zipped, || random.gen_range(1..5000)), Ok(len as u64));
        }
    }
}

#[test]
fn flushed_bytes_can_be_read_at_once() {
    let mut gzip = Gzip::new(6);
    let mut gunzip = Gunzip::new();
    let mut plain = Vec::new();
    for part in [&b"one "[..], b"two "] {
        let mut zipped = Vec::new();
        gzip.push(part, &mut zipped).unwrap();
        gzip.flush(&mut zipped).unwrap();
        gunzip.push(&zipped, &mut plain).unwrap();
        assert!(plain.ends_with(part));
    }
}

#[test]
fn output_stops_near_the_bound_and_goes_on_where_it_stopped() {
    let plain = vec![7; 5_000_000];
    let zipped = zip(&plain, 9);
    assert!(zipped.len() < 10_000);
    let mut gunzip = Gunzip::new();
    let mut out = Vec::new();
    let mut used = 0;
    let mut total = 0;
    loop {
        used += gunzip.push_bounded(&zipped[used..], &mut out, 50_000).unwrap();
        assert!(out.len() < 200_000, "{}", out.len());
        if out.is_empty() {
            break;
        }
        total += out.len();
        out.clear();
    }
    assert_eq!((used, total), (zipped.len(), plain.len()));
    gunzip.finish(&mut out).unwrap();
}

#[test]
fn bad_streams_are_told_apart() {
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
        ("nothing", Vec::new(), "Gunzip error at the very end"),
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
        assert_eq!(unzip(&bytes, || 7).map_err(GzipError::text), Err(expect), "{what}");
        assert_eq!(unzip(&bytes, || 100_000).map_err(GzipError::text), Err(expect), "{what}");
        let tested = if expect == "Gunzip error at the very end" { "tGunzip failed" } else { expect };
        assert_eq!(check(&bytes, || 7).map_err(GzipError::text), Err(tested), "{what}");
        assert_eq!(check(&bytes, || 100_000).map_err(GzipError::text), Err(tested), "{what}");
    }
    let damaged = unzip(b"hello world", || 100).unwrap_err();
    assert_eq!(damaged.gzip_record().as_deref(), Some("Gunzip error: -3 (incorrect header check)"));
}

#[test]
fn mangled_streams_end_in_an_error_or_in_bytes() {
    let mut random = SmallRng::seed_from_u64(4);
    let zipped = zip(&sample(&mut random, 5000), 6);
    for _ in 0..500 {
        let mut bad = zipped.clone();
        for _ in 0..random.gen_range(1..4) {
            let at = random.gen_range(0..bad.len());
            bad[at] = random.r#gen();
        }
        let whole = unzip(&bad, || 100_000).map_err(GzipError::text);
        assert_eq!(unzip(&bad, || random.gen_range(1..100)).map_err(GzipError::text).is_ok(), whole.is_ok());
    }
}
