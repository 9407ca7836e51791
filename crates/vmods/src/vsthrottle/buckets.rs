//! The token buckets, spread over [`SHARDS`] tables. Each table has its own lock.

use parking_lot::Mutex;
use std::collections::HashMap;

/// Number of tables; a power of two.
pub(crate) const SHARDS: usize = 16;

/// Calls of a table between two sweeps.
const SWEEP_CALLS: u32 = 1000;

/// SHA-256 of key, limit, period and block.
pub(crate) type Identity = [u8; 32];

/// One bucket. Times are seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    last_used: f64,
    period: f64,
    pub(crate) blocked_until: f64,
    pub(crate) tokens: i64,
    capacity: i64,
}

impl Bucket {
    fn new(rate: &Rate, now: f64) -> Bucket {
        Bucket { last_used: now, period: rate.period, blocked_until: 0.0, tokens: rate.limit, capacity: rate.limit }
    }

    /// The tokens, including those gained since the last use. If the clock was set back, none are
    /// gained.
    pub(crate) fn tokens_at(&self, now: f64) -> i64 {
        let gained = (now - self.last_used).max(0.0) / self.period * self.capacity as f64;
        // `as` truncates and saturates, and turns NaN into 0.
        self.tokens.saturating_add(gained as i64).min(self.capacity)
    }

    /// Takes a token; returns true if there is none, or during a block.
    pub(crate) fn is_denied(&mut self, block: f64, now: f64) -> bool {
        self.tokens = self.tokens_at(now);
        let is_blocked = block > 0.0 && now < self.blocked_until;
        let has_token = self.tokens > 0;
        if is_blocked || has_token {
            self.last_used = now;
        }
        if has_token {
            self.tokens -= 1;
        } else if block > 0.0 && !is_blocked {
            self.blocked_until = now + block;
        }
        is_blocked || !has_token
    }

    fn is_as_good_as_new(&self, now: f64) -> bool {
        now - self.last_used > self.period && now > self.blocked_until
    }
}

/// The arguments of a call that describe a bucket.
pub(crate) struct Rate {
    pub(crate) identity: Identity,
    pub(crate) limit: i64,
    pub(crate) period: f64,
    pub(crate) block: f64,
}

/// One table of buckets.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    buckets: HashMap<Identity, Bucket>,
    calls: u32,
}

impl Shard {
    /// The bucket, created if there is none, and true if others were dropped to make room for it.
    pub(crate) fn bucket(&mut self, rate: &Rate, now: f64, buckets_max: usize) -> (&mut Bucket, bool) {
        self.calls += 1;
        let is_full = self.buckets.len() >= buckets_max && !self.buckets.contains_key(&rate.identity);
        if self.calls >= SWEEP_CALLS || is_full {
            self.calls = 0;
            self.buckets.retain(|_, bucket| !bucket.is_as_good_as_new(now));
        }
        let dropped = is_full && self.buckets.len() >= buckets_max;
        if dropped {
            self.drop_oldest();
        }
        (self.buckets.entry(rate.identity).or_insert_with(|| Bucket::new(rate, now)), dropped)
    }

    /// Removes a bucket.
    pub(crate) fn remove(&mut self, identity: &Identity) {
        self.buckets.remove(identity);
    }

    /// Drops the least recently used eighth of the buckets, so that one search makes room for many
    /// additions.
    fn drop_oldest(&mut self) {
        let mut ages: Vec<f64> = self.buckets.values().map(|bucket| bucket.last_used).collect();
        let mut goes = ages.len() / 8 + 1;
        let (_, newest_to_go, _) = ages.select_nth_unstable_by(goes - 1, f64::total_cmp);
        let limit = *newest_to_go;
        self.buckets.retain(|_, bucket| {
            let stays = goes == 0 || bucket.last_used > limit;
            goes -= usize::from(!stays);
            stays
        });
    }
}

/// All buckets.
#[derive(Debug, Default)]
pub(crate) struct Buckets([Mutex<Shard>; SHARDS]);

impl Buckets {
    /// The table with that bucket.
    pub(crate) fn shard(&self, identity: &Identity) -> &Mutex<Shard> {
        &self.0[usize::from(identity[0]) % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(key: u32, limit: i64, period: f64) -> Rate {
        let mut identity = [0; 32];
        identity[..4].copy_from_slice(&key.to_le_bytes());
        Rate { identity, limit, period, block: 0.0 }
    }

    #[test]
    fn tokens_come_back_in_the_course_of_the_period() {
        let mut bucket = Bucket::new(&rate(1, 3, 10.0), 100.0);
        let denied: Vec<bool> = (0..5).map(|_| bucket.is_denied(0.0, 100.0)).collect();
        assert_eq!(denied, [false, false, false, true, true]);
        assert!(bucket.is_denied(0.0, 103.0), "a third of the period is not over");
        assert!(!bucket.is_denied(0.0, 103.4));
        assert!(bucket.is_denied(0.0, 103.4));
        assert_eq!(bucket.tokens_at(1000.0), 3, "no more than the limit");
        assert_eq!(bucket.tokens_at(1.0), 0, "nothing when the clock was set back");
    }

    #[test]
    fn blocked_clients_stay_blocked_for_the_block_time() {
        let mut bucket = Bucket::new(&rate(1, 1, 1.0), 100.0);
        assert!(!bucket.is_denied(30.0, 100.0));
        assert!(bucket.is_denied(30.0, 100.1));
        assert!(bucket.is_denied(30.0, 110.0), "tokens are back, the block is not over");
        assert!(!bucket.is_denied(30.0, 130.2));
    }

    #[test]
    fn strange_limits_and_periods_are_survived() {
        for (limit, period) in
            [(0, 0.0), (-5, 1.0), (i64::MAX, 1e-300), (i64::MIN, -1.0), (3, f64::NAN), (3, f64::INFINITY)]
        {
            let mut bucket = Bucket::new(&rate(1, limit, period), 1.0);
            for second in 1..5 {
                let _ = bucket.is_denied(1.0, f64::from(second));
            }
            assert!(bucket.tokens_at(10.0) <= limit.max(0));
        }
    }

    #[test]
    fn full_table_drops_the_least_recently_used() {
        let mut shard = Shard::default();
        for key in 0..80 {
            let (bucket, _) = shard.bucket(&rate(key, 5, 1000.0), f64::from(key), 80);
            bucket.is_denied(0.0, f64::from(key));
        }
        let (_, dropped) = shard.bucket(&rate(79, 5, 1000.0), 100.0, 80);
        assert!(!dropped, "it is there");
        let (_, dropped) = shard.bucket(&rate(100, 5, 1000.0), 100.0, 80);
        assert!(dropped);
        assert_eq!(shard.buckets.len(), 80 - 11 + 1);
        let left = |shard: &Shard, key: u32| shard.buckets.contains_key(&rate(key, 5, 1000.0).identity);
        assert_eq!((left(&shard, 0), left(&shard, 10), left(&shard, 11), left(&shard, 79)), (false, false, true, true));
    }

    #[test]
    fn a_sweep_drops_buckets_that_are_full_again() {
        let mut shard = Shard::default();
        let _ = shard.bucket(&rate(1, 5, 1.0), 0.0, 80);
        for _ in 0..SWEEP_CALLS {
            let _ = shard.bucket(&rate(2, 5, 1000.0), 10.0, 80);
        }
        assert_eq!(shard.buckets.len(), 1);
    }
}
