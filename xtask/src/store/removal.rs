//! Removal of many objects: purges one by one, purges by tag, and simultaneous expiry.

use super::client::{Client, fill, per_second};
use super::{FEW, Scene};
use crate::place::{percentile, since_1970};
use crate::process::cpu_microseconds;
use crate::servers::Kind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Most objects that expire at one moment, or are purged.
const OBJECTS_MAX: u64 = 1_000_000;
/// Number of objects that share a tag.
const TAGGED: u64 = 100;
/// Most objects that are purged one by one.
const ALONE: u64 = 20_000;
/// Divisor for the part of the objects that has the common tag.
const SHARE: u64 = 10;
/// Number of objects that are requested during a removal.
const HOT: u64 = 100;
/// Time before the common expiry in which the last of these objects may be stored, in seconds.
const SPARE_SECONDS: u64 = 4;
/// `default_grace`: time for which objects are kept beyond their time to live.
const GRACE_SECONDS: u64 = 10;

/// VCL for purges; tags are Copal's.
const PURGE: &str = "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }\n";
const PURGE_BY_TAG: &str =
    "import xkey;\nsub vcl_recv { if (req.http.Tag) { return (synth(200, \"\" + xkey.purge(req.http.Tag))); } }\n";

impl Scene {
    /// All objects expire at one moment, while others are requested one by one.
    pub(super) fn death(&self) -> Result<String, String> {
        let objects = self.objects.min(OBJECTS_MAX);
        let (server, port) = self.start("death", self.roomy(objects), None)?;
        let hot = |number: u64| self.small(number);
        let now = || since_1970().as_secs();
        // The fill rate is estimated generously; objects that expire before all are stored would
        // hide the rest.
        let deadline = now() + objects / 5_000 + SPARE_SECONDS;
        fill(port, 0..objects, |number| format!("/until-{deadline}/{number}/{}", self.bytes))?;
        let mut client = Client::new(port)?;
        client.ask_all((0..HOT).map(hot))?;
        let (mut quiet, mut during) = (Vec::new(), Vec::new());
        while now() < deadline + GRACE_SECONDS + SPARE_SECONDS {
            for number in 0..HOT {
                let took = client.time(hot(number))?;
                if now() + 2 < deadline + GRACE_SECONDS { &mut quiet } else { &mut during }.push(took);
            }
        }
        drop(server);
        if quiet.is_empty() {
            return Err(format!("the first of {objects} objects died before the last was there"));
        }
        for times in [&mut quiet, &mut during] {
            times.sort_by(f64::total_cmp);
        }
        Ok(format!(
            "{objects} die at once: hits p99 {:.0} µs before, {:.0} µs meanwhile; p99.9 {:.0} and {:.0} µs\n",
            percentile(&quiet, 0.99),
            percentile(&during, 0.99),
            percentile(&quiet, 0.999),
            percentile(&during, 0.999),
        ))
    }

    /// Purges: one by one, by tags of few objects, and by a tag of many, while others are
    /// requested.
    pub(super) fn purges(&self) -> Result<String, String> {
        let objects = self.objects.min(OBJECTS_MAX);
        let has_tags = self.kind == Kind::Copal;
        let vcl = if has_tags { PURGE_BY_TAG.to_owned() + PURGE } else { PURGE.to_owned() };
        let (server, port) = self.start("purges", self.roomy(objects), Some(vcl))?;
        let path = |number: u64| {
            let many = if number.is_multiple_of(SHARE) { "+many" } else { "" };
            format!("/tags-few{}{many}/object-{number}/{}", number / TAGGED, self.bytes)
        };
        fill(port, 0..objects, path)?;
        let mut client = Client::new(port)?;
        let mut refused = 0;
        let alone = ALONE.min(objects / 2);
        let (begin, before) = (Instant::now(), cpu_microseconds(&server.tree()).0);
        client.send_all("PURGE", "", (0..alone).map(path), |answer| refused += u64::from(answer.status != 200))?;
        let rate = per_second(alone, begin);
        let cost = (cpu_microseconds(&server.tree()).0 - before) / alone.max(1) as f64;
        let mut report = format!("purged one by one: {rate:.0} a second, CPU µs each {cost:.1}");
        // Another request would store them again.
        let mut left = client.ask_all((0..alone.min(FEW)).map(path))?;
        if has_tags {
            let tags = alone / TAGGED..objects / TAGGED / 2;
            let begin = Instant::now();
            for tag in tags.clone() {
                let once = std::iter::once("/".to_owned());
                client.send_all("PURGE", &format!("Tag: few{tag}\r\n"), once, |answer| {
                    refused += u64::from(answer.status != 200);
                })?;
            }
            let rate = per_second(tags.end.saturating_sub(tags.start), begin);
            left += client.ask_all((tags.start * TAGGED..tags.end * TAGGED).take(FEW as usize).map(path))?;
            report += &format!(
                "; by tags of {TAGGED} objects, one at a time: {rate:.0} tags a second, {:.0} objects",
                rate * TAGGED as f64
            );
            report += &self.purge_many(port, (objects - objects / TAGGED / 2 * TAGGED) / SHARE)?;
        }
        report += &format!("\nrefused {refused}, hits of what was purged {left}\n");
        Ok(report)
    }

    /// Purges the objects with the common tag.
    fn purge_many(&self, port: u16, about: u64) -> Result<String, String> {
        let is_done = AtomicBool::new(false);
        let hot = |number: u64| self.small(number);
        let mut client = Client::new(port)?;
        client.ask_all((0..HOT).map(hot))?;
        let (mut took, waits) = std::thread::scope(|scope| -> Result<_, String> {
            let others = scope.spawn(|| -> Result<Vec<f64>, String> {
                let mut waits = Vec::new();
                while !is_done.load(Relaxed) {
                    for number in 0..HOT {
                        waits.push(client.time(hot(number))?);
                    }
                }
                Ok(waits)
            });
            std::thread::sleep(Duration::from_millis(200));
            let begin = Instant::now();
            let purged = Client::new(port).and_then(|mut client| {
                client.send_all("PURGE", "Tag: many\r\n", std::iter::once("/".to_owned()), drop)
            });
            let took = begin.elapsed();
            is_done.store(true, Relaxed);
            let waits = others.join().map_err(|_| "a client panicked")??;
            purged.map(|()| (took, waits))
        })?;
        took = took.max(Duration::from_micros(1));
        let longest = waits.iter().copied().fold(0.0, f64::max);
        Ok(format!(
            "; by one tag of about {about} objects: {:.0} ms, the longest wait for a hit meanwhile {:.1} ms",
            took.as_secs_f64() * 1e3,
            longest / 1e3
        ))
    }
}
