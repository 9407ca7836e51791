//! The best result that knowledge of the future allows.
//!
//! For objects of one size, evicting the object whose next request is last is optimal (Bélády).
//! With sizes the optimum cannot be computed in reasonable time: [`belady`] is then a good cache
//! that cannot be built, not a bound, and [`bound`] is a limit that no cache can exceed. Source:
//! Berger, Beckmann, Harchol-Balter, "Practical Bounds on Optimal Caching with Variable Object
//! Sizes", 2018 (PFOO-L).

use super::{ReplayCounts, Request};
use std::collections::{BTreeSet, HashMap};

/// For each request, the number of the next one for the same key; `usize::MAX` if there is none.
fn next_uses(requests: &[Request]) -> Vec<usize> {
    let (mut next, mut seen) = (vec![usize::MAX; requests.len()], HashMap::new());
    for (number, request) in requests.iter().enumerate().rev() {
        next[number] = seen.insert(request.key, number).unwrap_or(usize::MAX);
    }
    next
}

/// Evicts the object whose next request is last, or does not store one that would be evicted first.
/// Counts from request `from` on.
#[must_use]
pub fn belady(requests: &[Request], capacity_bytes: u64, from: usize) -> ReplayCounts {
    let next = next_uses(requests);
    let (mut held, mut order, mut held_bytes) = (HashMap::new(), BTreeSet::new(), 0);
    let mut counts = ReplayCounts::default();
    for (number, request) in requests.iter().enumerate() {
        let was = held.remove(&request.key);
        if let Some(bytes) = was {
            order.remove(&(number, request.key));
            held_bytes -= bytes;
        }
        if number >= from {
            counts.count(*request, was.is_some());
        }
        let bytes = was.unwrap_or(request.bytes);
        if next[number] == usize::MAX || bytes > capacity_bytes {
            continue;
        }
        held.insert(request.key, bytes);
        order.insert((next[number], request.key));
        held_bytes += bytes;
        while held_bytes > capacity_bytes {
            let Some((_, key)) = order.pop_last() else { break };
            held_bytes -= held.remove(&key).unwrap_or(0);
        }
    }
    counts
}

/// Shares of hits and of their bytes that no cache can exceed, of all requests from `from` on.
///
/// Each hit takes room from one request to the next, bytes times requests; a cache has its size
/// times the requests. The cheapest hits are counted until that is used up.
#[must_use]
pub fn bound(requests: &[Request], capacity_bytes: u64, from: usize) -> (f64, f64) {
    let next = next_uses(requests);
    let room = capacity_bytes as f64 * requests.len() as f64;
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        if next[number] != usize::MAX && next[number] >= from && request.bytes <= capacity_bytes {
            spans.push((request.bytes, (next[number] - number) as u64));
        }
    }
    let counted = requests.get(from..).unwrap_or_default();
    let all_bytes: u64 = counted.iter().map(|request| request.bytes).sum();
    let fill = |spans: &[(u64, u64)]| {
        let (mut used, mut hits, mut hit_bytes) = (0.0, 0, 0);
        for (bytes, length) in spans {
            used += *bytes as f64 * *length as f64;
            // The one that no longer fits is counted completely, so that it stays a bound.
            (hits, hit_bytes) = (hits + 1, hit_bytes + bytes);
            if used > room {
                break;
            }
        }
        (hits as f64, hit_bytes as f64)
    };
    spans.sort_unstable_by_key(|(bytes, length)| u128::from(*bytes) * u128::from(*length));
    let hits = fill(&spans).0;
    spans.sort_unstable_by_key(|(_, length)| *length);
    let hit_bytes = fill(&spans).1;
    (hits / counted.len().max(1) as f64, hit_bytes / all_bytes.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(keys: &[u64]) -> Vec<Request> {
        keys.iter().map(|key| Request { key: *key, bytes: 1 }).collect()
    }

    #[test]
    fn a_loop_that_is_one_larger_than_the_cache_keeps_all_but_one() {
        let loops: Vec<u64> = (0..40).map(|step| step % 4).collect();
        let requests = trace(&loops);
        let best = belady(&requests, 3, 0);
        // Of every four requests, about three can be hits; LRU would have none.
        assert!((24..=27).contains(&best.hits), "{best:?}");
        let (bound, byte_bound) = bound(&requests, 3, 0);
        assert!(bound >= best.hit_ratio() && byte_bound >= best.byte_hit_ratio() && bound < 0.95, "{bound}");
    }

    #[test]
    fn objects_without_a_later_request_are_not_stored() {
        let requests = trace(&[1, 2, 3, 4, 1, 5, 6, 1]);
        assert_eq!(belady(&requests, 1, 0).hits, 2);
        assert_eq!(belady(&requests, 1, 5), ReplayCounts { requests: 3, hits: 1, bytes: 3, hit_bytes: 1 });
        let large = [Request { key: 1, bytes: 10 }; 3];
        assert_eq!((belady(&large, 5, 0).hits, bound(&large, 5, 0)), (0, (0.0, 0.0)));
    }
}
