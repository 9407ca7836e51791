//! The memory of filters equals the documented limits: measured on the process, so in a binary with
//! nothing else in it.

use body::esi::{EsiGzip, Page};
use body::{Brotli, Chain, Gunzip, Gzip, Machine, Unbrotli, Unzstd, Zstd};
use surface::limits::{ESI_GZIP_QUEUE_BYTES, FILTER_STEP_BYTES_MAX, GUNZIP_STATE_BYTES, GZIP_STATE_BYTES};

/// Many, so that other memory of the process does not matter.
const CHAINS: usize = 200;
/// Fewer, of filters that take megabytes.
const LARGE_CHAINS: usize = 4;

type Filter = fn() -> Box<dyn Machine>;

/// Resident private memory of this process, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn measured(filter: impl Fn() -> Box<dyn Machine>, body: &[u8]) -> (usize, usize) {
    measured_of(CHAINS, 50, filter, body)
}

fn measured_of(count: usize, steps: usize, filter: impl Fn() -> Box<dyn Machine>, body: &[u8]) -> (usize, usize) {
    let before = resident_bytes();
    let chains: Vec<Chain> = (0..count)
        .map(|_| {
            let mut chain = Chain::default();
            assert!(chain.push(filter()));
            let mut rest = body;
            for _ in 0..steps {
                let step = chain.step(Some(rest)).unwrap();
                rest = &rest[step.taken..];
            }
            chain
        })
        .collect();
    ((resident_bytes() - before) / count, chains[0].memory_bytes())
}

#[test]
fn a_filter_takes_no_more_memory_than_the_limits_say() {
    let noise: Vec<u8> = (0..400_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut zip = Chain::default();
    assert!(zip.push(Box::new(Gzip::new(9))));
    let mut zipped = Vec::new();
    let mut rest = &noise[..];
    while !zip.has_ended() {
        let step = zip.step((!rest.is_empty()).then_some(rest)).unwrap();
        zipped.extend_from_slice(step.bytes);
        rest = &rest[step.taken..];
    }
    let (gunzip, gunzip_said) = measured(|| Box::new(Gunzip::new(None)), &zipped);
    let (gzip, gzip_said) = measured(|| Box::new(Gzip::new(9)), &noise);
    let page = [b"<", &noise[..]].concat();
    let (packed, packed_said) = measured(|| Box::new(EsiGzip::new(&Page::default(), 9)), &page);
    let fixed = GZIP_STATE_BYTES + ESI_GZIP_QUEUE_BYTES + FILTER_STEP_BYTES_MAX;
    assert!((fixed..fixed + 2000).contains(&packed_said), "{packed_said}");
    assert!(packed <= packed_said && packed > packed_said / 3, "{packed} of {packed_said}");
    assert_eq!(gunzip_said, GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX);
    assert_eq!(gzip_said, GZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX);
    assert!(gunzip <= gunzip_said && gunzip > gunzip_said / 2, "{gunzip} of {gunzip_said}");
    assert!(gzip <= gzip_said && gzip > gzip_said / 2, "{gzip} of {gzip_said}");
    larger_windows_are_counted_too();
}

/// One test after the other: both measure the process.
fn larger_windows_are_counted_too() {
    // Text with little repetition, so that every window fills up.
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"etaoin shrdlucmfwyp"[(state >> 24) as usize % 19]
    };
    let text: Vec<u8> = (0..3_000_000).map(|_| letter()).collect();
    let packed = |machine: Box<dyn Machine>| {
        let mut chain = Chain::default();
        assert!(chain.push(machine));
        let (mut rest, mut out) = (&text[..], Vec::new());
        while !chain.has_ended() {
            let step = chain.step((!rest.is_empty()).then_some(rest)).unwrap();
            out.extend_from_slice(step.bytes);
            rest = &rest[step.taken..];
        }
        out
    };
    let (brotli, zstd) = (packed(Box::new(Brotli::new(3, None))), packed(Box::new(Zstd::new(3, None))));
    let filters: [(&str, Filter, &[u8]); 5] = [
        ("brotli 6", || Box::new(Brotli::new(6, None)), &text[..500_000]),
        ("brotli 9", || Box::new(Brotli::new(9, None)), &text[..500_000]),
        ("zstd 9", || Box::new(Zstd::new(9, None)), &text[..500_000]),
        ("unbrotli", || Box::new(Unbrotli::new(1 << 19)), &brotli),
        ("unzstd", || Box::new(Unzstd::new(1 << 20)), &zstd),
    ];
    for (name, filter, body) in filters {
        let (is, said) = measured_of(LARGE_CHAINS, 150, filter, body);
        assert!(is <= said, "{name}: {is} of {said}");
    }
}
