//! A full storage gets objects of other sizes: large ones instead of small ones and back, and a
//! hundred kinds of sizes.

use super::client::{Client, fill, per_second};
use super::{Scene, small_of};
use crate::process::memory_bytes;
use std::time::{Duration, Instant};

/// Body of a small object, in bytes.
const SMALL_BYTES: u64 = 100;
/// Body of a large object, in bytes.
const LARGE_BYTES: u64 = 1 << 20;
/// Limit of the storage that gets small objects and large ones, in MiB.
const MIXED_MEBIBYTES: u32 = 64;
/// Limit of the storage that gets a hundred kinds, in MiB.
const KINDS_MEBIBYTES: u32 = 256;
/// Number of sizes, in a geometric progression.
const KINDS: u64 = 100;
/// The largest of them, as a multiple of the smallest.
const SPREAD: f64 = 10_000.0;
/// Time after the last request in which memory may be given back.
const PAUSE: Duration = Duration::from_millis(1500);

fn small(number: u64) -> String {
    small_of(number, SMALL_BYTES)
}

/// The size of this kind.
fn kind_bytes(kind: u64) -> u64 {
    (SMALL_BYTES as f64 * SPREAD.powf(kind as f64 / (KINDS - 1) as f64)) as u64
}

impl Scene {
    /// A full storage gets large objects instead of small ones, and small ones again.
    pub(super) fn mixture(&self) -> Result<String, String> {
        let (server, port) = self.start("mixture", MIXED_MEBIBYTES, None)?;
        let mut client = Client::new(port)?;
        let before = memory_bytes(&server.tree());
        let capacity = u64::from(MIXED_MEBIBYTES) << 20;
        let (few, many) = (capacity / 2_000, capacity / 400);
        let speed = |client: &mut Client, from: u64, count: u64| -> Result<f64, String> {
            let begin = Instant::now();
            client.ask_all((from..from + count).map(small))?;
            Ok(per_second(count, begin))
        };
        let empty = speed(&mut client, 0, few)?;
        speed(&mut client, few, many)?;
        let full = speed(&mut client, few + many, few)?;
        let large = 3 * capacity / LARGE_BYTES;
        let begin = Instant::now();
        client.ask_all((0..large).map(|number| format!("/large-{number}/{LARGE_BYTES}")))?;
        let large_speed = per_second(large, begin);
        let after_large = speed(&mut client, few * 2 + many, few)?;
        speed(&mut client, few * 3 + many, many)?;
        let again = speed(&mut client, few * 3 + many * 2, few)?;
        std::thread::sleep(PAUSE);
        let grown = memory_bytes(&server.tree()).saturating_sub(before) as f64 / capacity as f64;
        Ok(format!(
            "small objects a second: {empty:.0} into an empty storage, {full:.0} into a full one, {after_large:.0} in place of \
             large ones, {again:.0} when they are all there is; large ones {large_speed:.0} a second\n\
             memory grown by {grown:.2} × the limit of {MIXED_MEBIBYTES} MiB\n",
        ))
    }

    /// A storage gets objects of a hundred sizes, as many as it holds, again and again.
    pub(super) fn kinds(&self) -> Result<String, String> {
        let (server, port) = self.start("kinds", KINDS_MEBIBYTES, None)?;
        fill(port, 0..KINDS, small)?;
        let before = memory_bytes(&server.tree());
        let capacity = u64::from(KINDS_MEBIBYTES) << 20;
        let round: u64 = (0..KINDS).map(kind_bytes).sum();
        let objects = capacity / round * KINDS;
        let mut speeds = Vec::new();
        for turn in 0..self.turns {
            let begin = Instant::now();
            fill(port, turn * objects..(turn + 1) * objects, |number| {
                // No two turns have their sizes in the same order.
                let kind = number.wrapping_mul(37).wrapping_add(number / KINDS) % KINDS;
                format!("/kind-{number}/{}", kind_bytes(kind))
            })?;
            speeds.push(per_second(objects * (round / KINDS), begin) / f64::from(1 << 20));
        }
        std::thread::sleep(PAUSE);
        let grown = memory_bytes(&server.tree()).saturating_sub(before) as f64 / capacity as f64;
        let full = speeds.get(1..).unwrap_or_default();
        let slowest = full.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = full.iter().sum::<f64>() / full.len().max(1) as f64;
        Ok(format!(
            "{KINDS} sizes from {SMALL_BYTES} bytes to {} KiB, {} times what {KINDS_MEBIBYTES} MiB hold: {:.0} MiB a second into an \
             empty storage, {mean:.0} into a full one, its slowest turn {slowest:.0}\nmemory grown by {grown:.2} × the limit\n",
            kind_bytes(KINDS - 1) >> 10,
            self.turns,
            speeds.first().copied().unwrap_or(f64::NAN),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_go_from_small_to_large() {
        assert_eq!((kind_bytes(0), kind_bytes(KINDS - 1)), (SMALL_BYTES, 1_000_000));
        assert!((1..KINDS).all(|kind| kind_bytes(kind) > kind_bytes(kind - 1)));
    }
}
