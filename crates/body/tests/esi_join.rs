//! Gzip streams made of pieces are one valid stream, for any fragments and any division into
//! pieces.

use body::esi::join::{GzipFragment, GzipSum, JOINED_HEADER, PlainFragment};
use body::{Chain, FilterError, Flow, Gunzip, JUNK_AFTER_END, Machine, TRUNCATED, whole};
use flate2::{Compress, Compression, FlushCompress, GzBuilder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::Write;
use surface::limits::FILTER_STEP_BYTES_MAX;

/// The output of a machine for a fragment in pieces.
fn piece_of(machine: impl Machine + 'static, fragment: &[u8], piece: usize) -> Result<(Vec<u8>, GzipSum), FilterError> {
    let (mut chain, mut out) = (Chain::default(), Vec::new());
    assert!(chain.push(Box::new(machine)));
    for mut rest in fragment.chunks(piece).map(Some).chain([None]) {
        loop {
            let step = chain.step(rest)?;
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            out.extend_from_slice(step.bytes);
            rest = rest.map(|rest| &rest[step.taken..]);
            if step.flow != Flow::More || rest == Some(&[]) {
                break;
            }
        }
    }
    Ok((out, chain.gzip_sum().unwrap()))
}

fn joined(pieces: &[(Vec<u8>, GzipSum)]) -> (Vec<u8>, GzipSum) {
    let (mut stream, mut sum) = (JOINED_HEADER.to_vec(), GzipSum::default());
    for (bytes, piece) in pieces {
        stream.extend_from_slice(bytes);
        sum.append(*piece);
    }
    stream.extend_from_slice(&sum.trailer());
    (stream, sum)
}

fn gunzipped(stream: &[u8]) -> Result<Vec<u8>, FilterError> {
    let mut out = Vec::new();
    whole(Gunzip::new(None), stream, usize::MAX, &mut out).map(|()| out)
}

fn gzipped(plain: &[u8], level: u32) -> Vec<u8> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::new(level));
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

/// Text that compresses well, noise that does not, and both in turn.
fn texts() -> Vec<Vec<u8>> {
    let mut random = StdRng::seed_from_u64(7);
    let mut noise = |length: usize| (0..length).map(|_| random.random::<u8>()).collect::<Vec<u8>>();
    let words: Vec<u8> = noise(30_000).iter().flat_map(|byte| [b'a' + byte % 7, b' ', b'a' + byte / 64]).collect();
    let mixed = [&noise(40_000), &words[..70_000], &noise(3)[..], &vec![0; 100_000], &words[..999]].concat();
    vec![Vec::new(), b"x".to_vec(), b"Hello, world".to_vec(), noise(1), noise(100_000), words, mixed]
}

#[test]
fn gzipped_fragments_of_all_levels_are_joined_in_any_pieces() {
    let texts = texts();
    for level in 0..=9 {
        // A byte at a time takes long, so one level has to do.
        let pieces = if level == 6 { &[1, 7, 1000, usize::MAX][..] } else { &[7 + level as usize, 1000, usize::MAX] };
        for piece in pieces.iter().copied() {
            let pieces: Vec<_> = texts
                .iter()
                .map(|text| piece_of(GzipFragment::default(), &gzipped(text, level), piece).unwrap())
                .collect();
            let (stream, sum) = joined(&pieces);
            let all = texts.concat();
            assert_eq!(sum, GzipSum { crc32: crc32fast::hash(&all), plain_bytes: all.len() as u64 });
            assert!(gunzipped(&stream).unwrap() == all, "level {level}, pieces of {piece}");
        }
    }
}

#[test]
fn plain_and_gzipped_fragments_mix_and_what_was_joined_is_a_fragment() {
    let texts = texts();
    for piece in [1, 7, 1000, usize::MAX] {
        let plain = |text: &Vec<u8>| piece_of(PlainFragment::default(), text, piece).unwrap();
        let packed = |text: &Vec<u8>| piece_of(GzipFragment::default(), &gzipped(text, 6), piece).unwrap();
        let inner: Vec<_> = texts.iter().flat_map(|text| [plain(text), packed(text)]).collect();
        let (inner, _) = joined(&inner);
        let again = piece_of(GzipFragment::default(), &inner, piece).unwrap();
        let (outer, _) = joined(&[plain(&texts[2]), again, packed(&texts[2])]);
        let twice: Vec<u8> = texts.iter().flat_map(|text| [&text[..], text].concat()).collect();
        assert!(gunzipped(&outer).unwrap() == [&texts[2], &twice, &texts[2]].map(|text| &text[..]).concat());
    }
}

#[test]
fn nothing_joined_is_a_valid_stream_too() {
    assert_eq!(gunzipped(&joined(&[]).0), Ok(Vec::new()));
}

/// A gzip member whose blocks end at every bit of a byte in turn.
#[test]
fn a_fragment_may_end_at_any_bit() {
    let mut ends = [false; 8];
    for length in 0..64 {
        let text = vec![b'a' + length; usize::from(length)];
        let mut deflate = Compress::new(Compression::new(6), false);
        let mut raw = Vec::with_capacity(100);
        deflate.compress_vec(&text, &mut raw, FlushCompress::Finish).unwrap();
        let (piece, sum) = piece_of(GzipFragment::default(), &gzipped(&text, 6), 3).unwrap();
        let extra = piece.len() - raw.len();
        assert!(extra <= 5, "{extra} more bytes at most");
        ends[extra] = true;
        let twice = joined(&[(piece.clone(), sum), (piece, sum)]).0;
        assert_eq!(gunzipped(&twice).unwrap(), [&text[..], &text].concat());
    }
    assert!(ends[4] && ends[5], "both ways to fill up a byte came about");
}

#[test]
fn every_kind_of_header_is_passed_over() {
    let text = b"a fragment".repeat(10);
    let bare = gzipped(&text, 6);
    for flags in 0..32_u8 {
        let mut stream = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 255];
        if flags & 4 != 0 {
            stream.extend_from_slice(&[3, 0, 0, 7, 0]);
        }
        if flags & 8 != 0 {
            stream.extend_from_slice(b"a name\0");
        }
        if flags & 16 != 0 {
            stream.extend_from_slice(b"\0");
        }
        if flags & 2 != 0 {
            let crc = crc32fast::hash(&stream) as u16;
            stream.extend_from_slice(&crc.to_le_bytes());
        }
        let head = stream.len();
        stream.extend_from_slice(&bare[10..]);
        assert_eq!(gunzipped(&stream).as_deref(), Ok(&text[..]), "{flags}");
        for piece in [1, 5, usize::MAX] {
            let made = piece_of(GzipFragment::default(), &stream, piece).unwrap();
            assert_eq!(gunzipped(&joined(&[made]).0).as_deref(), Ok(&text[..]), "{flags}");
        }
        if flags & 2 != 0 {
            stream[head - 1] ^= 1;
            assert!(piece_of(GzipFragment::default(), &stream, 4).is_err());
        }
        stream[3] |= 0x20;
        assert!(piece_of(GzipFragment::default(), &stream, 4).is_err());
    }
    let mut empty_extra = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 0, 0];
    empty_extra.extend_from_slice(&bare[10..]);
    assert!(piece_of(GzipFragment::default(), &empty_extra, 1).is_ok());
}

#[test]
fn a_step_sees_few_blocks_however_short_they_are() {
    // Four empty blocks with fixed codes are five bytes; the last one, in a byte and a half, ends
    // the stream.
    let four = [0b0000_0010_u8, 0b0000_1000, 0b0010_0000, 0b1000_0000, 0];
    let blocks = 100_000;
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    stream.extend(four.repeat(blocks / 4));
    stream.extend_from_slice(&[3, 0]);
    stream.extend_from_slice(&[0; 8]);
    assert_eq!(gunzipped(&stream).as_deref(), Ok(&[][..]));
    let mut chain = Chain::default();
    assert!(chain.push(Box::new(GzipFragment::default())));
    let (mut rest, mut steps, mut out) = (&stream[..], 0, Vec::new());
    while !rest.is_empty() {
        let step = chain.step(Some(rest)).unwrap();
        out.extend_from_slice(step.bytes);
        rest = &rest[step.taken..];
        steps += 1;
    }
    assert!(steps >= blocks / 300, "{steps} steps");
    assert_eq!(chain.step(None).unwrap().flow, Flow::Ended);
    let sum = chain.gzip_sum().unwrap();
    assert_eq!(gunzipped(&joined(&[(out, sum)]).0).as_deref(), Ok(&[][..]));
}

#[test]
fn a_fragment_that_is_cut_off_or_too_long_is_refused() {
    let stream = gzipped(&texts()[5][..3000], 6);
    assert_eq!(piece_of(GzipFragment::default(), b"", 100).map(|(made, _)| made), Ok(Vec::new()), "it may be empty");
    for length in 1..stream.len() {
        let made = piece_of(GzipFragment::default(), &stream[..length], 100);
        assert_eq!(made.map_err(FilterError::text).err(), Some(TRUNCATED.text()), "{length} bytes");
    }
    for junk in [&b"x"[..], &stream] {
        for piece in [1, usize::MAX] {
            let made = piece_of(GzipFragment::default(), &[&stream, junk].concat(), piece);
            assert_eq!(made.err(), Some(JUNK_AFTER_END), "a second member is junk too, as everywhere");
        }
    }
    assert!(piece_of(GzipFragment::default(), b"plain text", 4).is_err());
}

/// A fragment that passes can be decompressed, and one that can be decompressed passes; only the
/// checksum is not verified.
#[test]
fn a_damaged_fragment_is_refused_where_unpacking_it_would_fail() {
    let mut random = StdRng::seed_from_u64(11);
    let mut refused = 0;
    for text in [&texts()[5][..2000], &texts()[6][39_000..45_000]] {
        for level in [0, 1, 6, 9] {
            let stream = gzipped(text, level);
            for _ in 0..800 {
                let mut damaged = stream.clone();
                let at = random.random_range(0..damaged.len());
                damaged[at] ^= 1 << random.random_range(0..8);
                let made = piece_of(GzipFragment::default(), &damaged, random.random_range(1..500));
                refused += usize::from(made.is_err());
                match (made, gunzipped(&damaged)) {
                    (Ok(made), Ok(plain)) => assert!(gunzipped(&joined(&[made]).0).unwrap() == plain),
                    (Ok(_), Err(error)) => assert_eq!(error.text(), "Invalid Gzip data: incorrect data check"),
                    (Err(error), Ok(_)) => panic!("{error:?} of a good stream"),
                    (Err(_), Err(_)) => {}
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn a_fragment_does_not_reach_back_into_the_page() {
    // One fixed block: a length of 3 at distance 1, with nothing before it.
    let blocks = [0x03, 0b0000_0010, 0, 0];
    let stream = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &blocks, &[0; 8]].concat();
    let error = piece_of(GzipFragment::default(), &stream, usize::MAX).unwrap_err();
    assert_eq!(error.text(), "Invalid Gzip data: invalid distance too far back");
}

#[test]
fn a_bomb_costs_no_more_than_its_bytes() {
    let bomb = gzipped(&vec![0; 64 << 20], 9);
    assert!(bomb.len() < 80_000);
    let (piece, sum) = piece_of(GzipFragment::default(), &bomb, usize::MAX).unwrap();
    assert!(piece.len() <= bomb.len());
    assert_eq!(sum.plain_bytes, 64 << 20);
}

#[test]
fn lengths_beyond_32_bits_end_a_stream_modulo_2_to_the_32() {
    let mut sum = GzipSum { crc32: 0, plain_bytes: (1 << 32) - 3 };
    sum.append(GzipSum { crc32: crc32fast::hash(b"abcde"), plain_bytes: 5 });
    assert_eq!(sum.trailer()[9..], 2_u32.to_le_bytes());
}
