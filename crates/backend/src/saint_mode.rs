//! Saint mode: the requests for which a backend temporarily counts as sick, because VCL rejected
//! its response.
//!
//! One short list per backend, shared by all event loops. While it is empty (always, unless VCL
//! adds to it), a check costs one relaxed load and no lock. The list is bounded: when it is full,
//! the entry that would expire first makes room. It is used by `beresp.saintmode` of the old
//! dialects (`Directors::is_healthy_for`) and by the saintmode VMOD.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use surface::limits::BACKEND_TROUBLES_MAX;

/// Requests for which a backend must not be used.
#[derive(Debug, Default)]
pub struct TroubleList {
    list: Mutex<Vec<Trouble>>,
    /// Number of entries in the list, including expired ones.
    count: AtomicUsize,
}

/// The reason why a backend must not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AvoidReason {
    /// There is trouble over this digest.
    Digest,
    /// There is trouble over too many digests.
    Threshold,
}

#[derive(Clone, Copy, Debug)]
struct Trouble {
    digest: [u8; 32],
    /// Seconds since 1970.
    until: f64,
}

impl TroubleList {
    /// Records trouble over a digest until `until` (seconds since 1970); of two ends for a digest
    /// the later one counts.
    pub fn add(&self, digest: &[u8; 32], until: f64, now: f64) {
        let mut list = self.list.lock();
        list.retain(|trouble| trouble.until > now);
        match list.iter_mut().find(|trouble| trouble.digest == *digest) {
            Some(known) => known.until = known.until.max(until),
            None => {
                if list.len() >= BACKEND_TROUBLES_MAX
                    && let Some(first) =
                        (0..list.len()).min_by(|one, two| list[*one].until.total_cmp(&list[*two].until))
                {
                    list.swap_remove(first);
                }
                list.push(Trouble { digest: *digest, until });
            }
        }
        self.count.store(list.len(), Relaxed);
    }

    /// The reason why the backend must not be used for this digest (`None` = any): there is trouble
    /// over it, or over at least `threshold` digests (0 = saint mode is off, the result is always
    /// `None`).
    #[must_use]
    pub fn concern(&self, digest: Option<&[u8; 32]>, now: f64, threshold: usize) -> Option<AvoidReason> {
        if threshold == 0 || self.count.load(Relaxed) == 0 {
            return None;
        }
        let mut list = self.list.lock();
        list.retain(|trouble| trouble.until > now);
        self.count.store(list.len(), Relaxed);
        if digest.is_some_and(|digest| list.iter().any(|trouble| trouble.digest == *digest)) {
            return Some(AvoidReason::Digest);
        }
        (list.len() >= threshold).then_some(AvoidReason::Threshold)
    }

    /// Number of digests that there is trouble over at present.
    #[must_use]
    pub fn count(&self, now: f64) -> usize {
        if self.count.load(Relaxed) == 0 {
            return 0;
        }
        self.list.lock().iter().filter(|trouble| trouble.until > now).count()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.list.lock().clear();
        self.count.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_concerns_its_digest_until_it_ends() {
        let troubles = TroubleList::default();
        troubles.add(&[1; 32], 20.0, 10.0);
        assert_eq!(troubles.concern(Some(&[1; 32]), 19.0, 10), Some(AvoidReason::Digest));
        assert_eq!(troubles.concern(Some(&[2; 32]), 19.0, 10), None, "other digests are not concerned");
        assert_eq!(troubles.concern(None, 19.0, 10), None);
        assert_eq!(troubles.concern(Some(&[1; 32]), 20.0, 10), None, "it has ended");
        assert_eq!(troubles.count(20.0), 0);
    }

    #[test]
    fn trouble_over_enough_digests_concerns_all() {
        let troubles = TroubleList::default();
        troubles.add(&[1; 32], 20.0, 10.0);
        troubles.add(&[2; 32], 30.0, 10.0);
        assert_eq!(troubles.concern(Some(&[3; 32]), 15.0, 2), Some(AvoidReason::Threshold));
        assert_eq!(troubles.concern(None, 15.0, 2), Some(AvoidReason::Threshold));
        assert_eq!(troubles.concern(Some(&[3; 32]), 25.0, 2), None, "one of the two has ended");
        assert_eq!(troubles.concern(Some(&[2; 32]), 15.0, 0), None, "0 turns it off");
    }

    #[test]
    fn the_same_digest_counts_once_and_the_list_stays_bounded() {
        let troubles = TroubleList::default();
        troubles.add(&[1; 32], 20.0, 10.0);
        troubles.add(&[1; 32], 15.0, 10.0);
        assert_eq!((troubles.count(10.0), troubles.count(16.0)), (1, 1), "the later end counts");
        for number in 0..BACKEND_TROUBLES_MAX as u32 + 5 {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&number.to_le_bytes());
            troubles.add(&digest, 100.0 + f64::from(number), 10.0);
        }
        assert_eq!(troubles.count(10.0), BACKEND_TROUBLES_MAX);
        troubles.clear();
        assert_eq!(troubles.count(10.0), 0);
    }
}
