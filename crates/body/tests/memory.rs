//! What filters take of memory is what the limits say: measured on the process, so in a binary with nothing else in it.

use body::{Chain, Gunzip, Gzip, Machine};
use surface::limits::{FILTER_STEP_BYTES_MAX, GUNZIP_STATE_BYTES, GZIP_STATE_BYTES};

/// Many, so that what the process takes by the way does not count.
const CHAINS: usize = 200;

/// Resident private memory of this process, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn measured(filter: impl Fn() -> Box<dyn Machine>, body: &[u8]) -> (usize, usize) {
    let before = resident_bytes();
    let chains: Vec<Chain> = (0..CHAINS)
        .map(|_| {
            let mut chain = Chain::default();
            assert!(chain.push(filter()));
            let mut rest = body;
            for _ in 0..50 {
                let step = chain.step(Some(rest)).unwrap();
                rest = &rest[step.taken..];
            }
            chain
        })
        .collect();
    ((resident_bytes() - before) / CHAINS, chains[0].memory_bytes())
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
    assert_eq!(gunzip_said, GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX);
    assert_eq!(gzip_said, GZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX);
    assert!(gunzip <= gunzip_said && gunzip > gunzip_said / 2, "{gunzip} of {gunzip_said}");
    assert!(gzip <= gzip_said && gzip > gzip_said / 2, "{gzip} of {gzip_said}");
}
