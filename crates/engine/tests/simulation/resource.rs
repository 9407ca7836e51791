//! The resources at the origin: they differ in cacheability, and their bodies identify themselves.

use rand::RngExt;
use rand::rngs::SmallRng;
use std::cell::Cell;

/// The sharing of a resource's responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// By all clients.
    All,
    /// By clients of the same variant.
    Variants,
    /// Not at all, because of a cookie.
    Cookie,
    /// Not at all, because of Cache-Control.
    Private,
    /// Not at all, because of VCL (hit-for-pass).
    Pass,
}

/// A resource.
pub struct Resource {
    pub url: String,
    pub sharing: Sharing,
    /// Seconds.
    pub ttl: u64,
    /// Seconds.
    pub grace: u64,
    /// Seconds.
    pub keep: u64,
    pub has_etag: bool,
    pub is_chunked: bool,
    /// Maximum number of body bytes.
    pub bytes_max: usize,
    /// Probability of trouble per response, in percent.
    pub trouble: u32,
    /// Maximum number of milliseconds between pieces.
    pub pause_max: u64,
    /// Changes when the origin publishes.
    pub version: Cell<u64>,
}

impl Resource {
    pub fn random(index: usize, rng: &mut SmallRng) -> Resource {
        let sharing = match rng.random_range(0..10) {
            0..=4 => Sharing::All,
            5 | 6 => Sharing::Variants,
            7 => Sharing::Cookie,
            8 => Sharing::Private,
            _ => Sharing::Pass,
        };
        let whole = if rng.random_bool(0.2) { "whole" } else { "" };
        let zip = if rng.random_bool(0.2) { "zip" } else { "" };
        Resource {
            url: format!("/r{index}{whole}{zip}"),
            sharing,
            ttl: [1, 2, 5, 30, 120][rng.random_range(0..5)],
            grace: [0, 1, 10][rng.random_range(0..3)],
            keep: [0, 20, 600][rng.random_range(0..3)],
            has_etag: rng.random_bool(0.5),
            is_chunked: rng.random_bool(0.4),
            bytes_max: [0, 100, 3_000, 40_000, 200_000][rng.random_range(0..5)],
            trouble: [0, 5, 30][rng.random_range(0..3)],
            pause_max: [0, 0, 50, 3_000][rng.random_range(0..4)],
            version: Cell::new(1),
        }
    }

    /// Makes it long enough for slices, unless it is very small, and gives its versions validators.
    pub fn grow(&mut self) {
        if self.bytes_max >= 3_000 {
            self.bytes_max = 200_000;
            self.has_etag = true;
            self.version.set(15);
        }
    }

    /// True if responses are for one client only.
    pub fn is_private(&self) -> bool {
        matches!(self.sharing, Sharing::Cookie | Sharing::Private | Sharing::Pass)
    }

    /// Time for which a response may be served after it was made, in milliseconds.
    pub fn life_millis(&self) -> u64 {
        (self.ttl + self.grace) * 1000
    }

    /// The validator of a version.
    pub fn etag(&self, version: u64, variant: &str) -> String {
        format!("\"{version}-{variant}\"")
    }

    /// The body of one response: text that identifies its response on every line.
    pub fn body(&self, version: u64, variant: &str, client: &str) -> Vec<u8> {
        let length = if self.bytes_max == 0 { 0 } else { (version as usize * 7919 + 31) % self.bytes_max };
        let mut body = Vec::with_capacity(length + 64);
        let mut line = 0;
        while body.len() < length {
            body.extend_from_slice(format!("{} v{version} {variant} {client} {line}\n", self.url).as_bytes());
            line += 1;
        }
        body.truncate(length);
        body
    }
}
