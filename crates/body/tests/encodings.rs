//! Brotli and Zstandard in both directions, against the libraries' own readers and writers, in
//! pieces of every size.

use body::{Brotli, Chain, FilterError, Flow, Gunzip, Gzip, Machine, RangeCut, TestGunzip, Unbrotli, Unzstd, Zstd};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::io::{Read, Write};
use surface::limits::FILTER_STEP_BYTES_MAX;

/// A filter that compresses, the one that decompresses, and the library's own writer and reader of
/// complete bodies.
struct Codec {
    name: &'static str,
    pack: fn(u64) -> Box<dyn Machine>,
    levels: [u64; 3],
    unpack: fn() -> Box<dyn Machine>,
    write: fn(&[u8]) -> Vec<u8>,
    read: fn(&[u8]) -> Option<Vec<u8>>,
}

const CODECS: [Codec; 2] = [
    Codec {
        name: "brotli",
        pack: |level| Box::new(Brotli::new(level, None)),
        levels: [0, 5, 11],
        unpack: || Box::new(Unbrotli::default()),
        write: |plain| {
            let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 9, 24);
            writer.write_all(plain).unwrap();
            writer.into_inner()
        },
        read: |packed| {
            let mut plain = Vec::new();
            brotli::Decompressor::new(packed, 4096).read_to_end(&mut plain).is_ok().then_some(plain)
        },
    },
    Codec {
        name: "zstd",
        pack: |level| Box::new(Zstd::new(level, None)),
        levels: [1, 9, 19],
        unpack: || Box::new(Unzstd::default()),
        write: |plain| zstd::encode_all(plain, 3).unwrap(),
        read: |packed| zstd::decode_all(packed).ok(),
    },
];

/// Pulls a body in pieces, and checks the bound of every step.
fn pull(
    body: &[u8],
    mut piece: impl FnMut() -> usize,
    machines: Vec<Box<dyn Machine>>,
) -> Result<Vec<u8>, FilterError> {
    let mut chain = Chain::default();
    for machine in machines {
        assert!(chain.push(machine));
    }
    let (mut out, mut rest, mut is_over) = (Vec::new(), body, false);
    while !is_over {
        let (head, tail) = rest.split_at(piece().min(rest.len()));
        is_over = head.is_empty();
        let mut head = (!is_over).then_some(head);
        rest = tail;
        loop {
            let step = chain.step(head)?;
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            out.extend_from_slice(step.bytes);
            head = head.map(|head| &head[step.taken..]);
            match step.flow {
                Flow::More => {}
                Flow::Hungry => break,
                Flow::Ended => return Ok(out),
            }
        }
        assert!(head.is_none_or(<[u8]>::is_empty));
    }
    panic!("a chain that has all its input ends");
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
fn output_compressed_in_any_pieces_is_read_by_other_decoders() {
    let mut random = SmallRng::seed_from_u64(5);
    for Codec { name, pack, levels, unpack, read, .. } in CODECS {
        for len in [0, 1, 100, 65_536, 65_537, 300_000] {
            let plain = sample(&mut random, len);
            for level in levels {
                let packed = pull(&plain, || random.random_range(1..70_000), vec![pack(level)]).unwrap();
                assert!(read(&packed).as_ref() == Some(&plain), "{name} {len} at level {level}");
                assert!(len < 1000 || packed.len() < len / 2, "{name} {len} at level {level}: {}", packed.len());
                let again = pull(&packed, || random.random_range(1..5000), vec![unpack()]).unwrap();
                assert!(again == plain, "{name} {len} at level {level}");
            }
        }
    }
}

#[test]
fn output_of_other_encoders_is_decompressed_in_any_pieces() {
    let mut random = SmallRng::seed_from_u64(6);
    for Codec { name, unpack, write, .. } in CODECS {
        for len in [0, 1, 4096, 500_000] {
            let plain = sample(&mut random, len);
            let packed = write(&plain);
            for most in [2, 100, 100_000] {
                let got = pull(&packed, || random.random_range(1..most), vec![unpack()]);
                assert!(got.is_ok_and(|got| got == plain), "{name} {len} in pieces up to {most}");
            }
        }
    }
}

#[test]
fn bomb_is_decompressed_in_bounded_steps_and_only_as_far_as_pulled() {
    for Codec { name, unpack, write, .. } in CODECS {
        let packed = write(&vec![0; 50_000_000]);
        assert!(packed.len() < 10_000, "{name}: {}", packed.len());
        let cut = pull(&packed, || 10_000, vec![unpack(), Box::new(RangeCut::new(1_000_000, 1_000_009))]);
        assert_eq!(cut, Ok(vec![0; 10]), "{name}");
        let mut chain = Chain::default();
        assert!(chain.push(unpack()));
        let (mut rest, mut made) = (&packed[..], 0);
        while made < 1_000_000 {
            let step = chain.step(Some(rest)).unwrap();
            assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
            made += step.bytes.len();
            rest = &rest[step.taken..];
        }
        assert!(made < 1_000_000 + FILTER_STEP_BYTES_MAX, "{name}");
    }
}

#[test]
fn bad_bodies_are_refused_with_a_reason() {
    for Codec { name, unpack, write, .. } in CODECS {
        let mut random = SmallRng::seed_from_u64(7);
        let packed = write(&sample(&mut random, 20_000));
        let cases = [
            ("a single byte", packed[..1].to_vec(), true),
            ("cut short", packed[..packed.len() - 1].to_vec(), true),
            ("cut in the middle", packed[..packed.len() / 2].to_vec(), true),
            ("plain text", b"hello world, this is no coding at all".to_vec(), false),
            ("junk behind", [&packed[..], b"junk and more junk"].concat(), false),
        ];
        for (what, bytes, is_short) in cases {
            for most in [1, 7, 100_000] {
                let error = pull(&bytes, || most, vec![unpack()]).unwrap_err();
                assert_eq!(error.text().contains("too early"), is_short, "{name}, {what}: {}", error.text());
            }
        }
    }
}

#[test]
fn an_empty_body_stays_empty() {
    for Codec { name, unpack, .. } in CODECS {
        assert_eq!(pull(b"", || 1, vec![unpack()]), Ok(Vec::new()), "{name}");
    }
    for machine in [Box::new(Gunzip::new(None)) as Box<dyn Machine>, Box::new(TestGunzip::new())] {
        assert_eq!(pull(b"", || 1, vec![machine]), Ok(Vec::new()));
    }
}

/// Flushes the chain and returns the output.
fn flushed(chain: &mut Chain) -> Vec<u8> {
    let mut out = Vec::new();
    while chain.holds_back() {
        let step = chain.flush().unwrap();
        assert!(step.bytes.len() <= FILTER_STEP_BYTES_MAX);
        out.extend_from_slice(step.bytes);
    }
    out
}

/// Returns the output of a chain for some input, without a flush.
fn given(chain: &mut Chain, mut input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let step = chain.step(Some(input)).unwrap();
        out.extend_from_slice(step.bytes);
        input = &input[step.taken..];
        if step.flow != Flow::More {
            return out;
        }
    }
}

#[test]
fn flush_outputs_all_input_consumed_so_far_and_the_body_goes_on() {
    type Codec = fn() -> [Box<dyn Machine>; 2];
    let mut random = SmallRng::seed_from_u64(11);
    let codecs: [(&str, Codec); 3] = [
        ("gzip", || [Box::new(Gzip::new(6)), Box::new(Gunzip::new(None))]),
        ("brotli", || [Box::new(Brotli::new(5, None)), Box::new(Unbrotli::default())]),
        ("zstd", || [Box::new(Zstd::new(3, None)), Box::new(Unzstd::default())]),
    ];
    for (name, codec) in codecs {
        let [encoder, decoder] = codec();
        let (mut encoding, mut decoding) = (Chain::default(), Chain::default());
        assert!(encoding.push(encoder) && decoding.push(decoder) && !encoding.holds_back());
        assert_eq!(flushed(&mut encoding), b"", "nothing was consumed");
        // Noise does not compress: its flush takes several steps.
        let noise: Vec<u8> = (0..300_000).map(|_| random.random()).collect();
        for piece in [b"a line\n".to_vec(), b"another\n".to_vec(), sample(&mut random, 100_000), noise] {
            let mut encoded = given(&mut encoding, &piece);
            encoded.extend(flushed(&mut encoding));
            assert_eq!(flushed(&mut encoding), b"", "a second flush outputs nothing");
            let got = given(&mut decoding, &encoded);
            assert!(got == piece, "{name}: {} of {} bytes", got.len(), piece.len());
        }
        let mut end = Vec::new();
        while !encoding.has_ended() {
            end.extend_from_slice(encoding.step(None).unwrap().bytes);
        }
        assert_eq!(given(&mut decoding, &end), b"");
        while !decoding.has_ended() {
            assert_eq!(decoding.step(None).unwrap().bytes, b"");
        }
    }
}

#[test]
fn windows_that_no_client_could_have_offered_are_refused() {
    // Brotli's large window: 0x11, then the number of bits.
    let large = pull(&[0x11, 30, 0, 0, 0, 0, 0, 0], || 8, vec![Box::new(Unbrotli::default())]);
    assert_eq!(large.map_err(FilterError::text), Err("Invalid brotli data"));
    // A frame with a window of 16 MiB.
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, (24 - 10) << 3][..], &[0x09, 0, 0, b'x']].concat();
    let wide = pull(&frame, || 100, vec![Box::new(Unzstd::default())]);
    assert_eq!(wide.map_err(FilterError::text), Err("Invalid Zstandard data"));
    let mut fits = frame.clone();
    fits[5] = (23 - 10) << 3;
    assert_eq!(pull(&fits, || 100, vec![Box::new(Unzstd::default())]), Ok(b"x".to_vec()));
}

#[test]
fn mangled_bodies_end_in_an_error_or_in_bytes() {
    let mut random = SmallRng::seed_from_u64(8);
    for Codec { name, unpack, write, .. } in CODECS {
        let packed = write(&sample(&mut random, 5000));
        for _ in 0..200 {
            let mut bad = packed.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..bad.len());
                bad[at] = random.random();
            }
            let whole = pull(&bad, || 100_000, vec![unpack()]);
            let pieces = pull(&bad, || random.random_range(1..100), vec![unpack()]);
            assert_eq!(whole.is_ok(), pieces.is_ok(), "{name}");
        }
    }
}

#[test]
fn several_frames_are_one_body() {
    let frames = [zstd::encode_all(&b"one, "[..], 3).unwrap(), zstd::encode_all(&b"two"[..], 3).unwrap()].concat();
    for piece in [1, 5, 100] {
        assert_eq!(pull(&frames, || piece, vec![Box::new(Unzstd::default())]), Ok(b"one, two".to_vec()));
    }
}
