//! Recovery after a restart: the scan of a used arena.
//!
//! Nothing in the file is trusted: a record counts when its commit bits are set, its lengths are
//! inside its blocks, and its links lead to extents that no other record claims. The rest is freed.
//! Its checksum is computed when it is first used (`soundness.rs`), so a start takes no longer for
//! long bodies than for short ones.

use crate::arena::{HANDLE_BYTES, Inner, PRIVATE_FREE_BYTES, RESIDENT_SLACK};
use crate::disk_tier::map_bytes;
use crate::heap::{Block, Geometry, Heap};
use crate::layout::{
    ANNEX_LENGTH_BYTES, EXTENT_HEADER_BYTES, HAS_NEXT, Head, KIND_EXTENT, KIND_ON_DISK, KIND_RECORD, LENGTHS,
    LINK_BYTES, ORIGIN, PREVIOUS_FREE, RECORD_HEADER_BYTES, REMOVED, UNCHECKED, body_length, head_length, vary_length,
};
use crate::memory::Memory;
use crate::object::Object;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Result of the scan of a used arena.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Complete objects, none of them checked ([`Object::check`]). The index takes them over, and
    /// removes those that it does not need.
    pub objects: Vec<Arc<Object>>,
    /// Number of objects dropped because they were unfinished, or their lengths or links damaged.
    pub torn: usize,
    /// Number of objects dropped because the limit has become smaller.
    pub evicted: usize,
    /// The reason why a file that was in use begins empty, in words for the operator; `None` = it
    /// does not begin empty.
    pub anew: Option<&'static str>,
}

/// A record that claims to be committed.
struct Candidate {
    head: Head,
    record: u32,
}

/// The extents of the records that have any: most have none.
type Chains = HashMap<u32, Vec<u32>>;

/// Scans the arena, frees incomplete records, and creates handles for the rest. There may be
/// millions of records, each on a page of its own: everything needed from one is read while it is
/// in the CPU cache.
pub(crate) fn recover(
    memory: Memory,
    geometry: Geometry,
    limit_bytes: u64,
    make: impl FnOnce(Memory, Heap) -> Arc<Inner>,
) -> (Arc<Inner>, Recovered) {
    let (mut candidates, mut extents, mut torn) = (Vec::new(), HashSet::new(), 0);
    // A damaged head ends the walk; the blocks after it are lost.
    let walked = geometry.walk(&memory, |at, head| match head.kind() {
        KIND_RECORD | KIND_ON_DISK if head.is_committed() => {
            if head.has(HAS_NEXT) || chain(&memory, geometry, at, &mut HashSet::new()).is_some() {
                memory.update(geometry.byte(at), |head| head & !PREVIOUS_FREE | UNCHECKED);
                candidates.push(Candidate { head, record: at });
            } else {
                torn += 1;
            }
        }
        KIND_RECORD | KIND_ON_DISK if head.0 & REMOVED == 0 => torn += 1,
        KIND_EXTENT => {
            memory.update(geometry.byte(at), |head| head & !PREVIOUS_FREE);
            extents.insert(at);
        }
        _ => {}
    });
    torn += usize::from(walked.is_err());
    let mut chains = Chains::new();
    let before = candidates.len();
    candidates.retain(|Candidate { head, record }| {
        let claimed =
            if head.has(HAS_NEXT) { chain(&memory, geometry, *record, &mut extents) } else { Some(Vec::new()) };
        let is_whole = claimed.is_some();
        chains.extend(claimed.filter(|claimed| !claimed.is_empty()).map(|claimed| (*record, claimed)));
        is_whole
    });
    torn += before - candidates.len();
    let evicted = keep_to_limit(&memory, geometry, &mut candidates, &mut chains, limit_bytes);
    let mut kept_extents: Vec<u32> = chains.into_values().flatten().collect();
    kept_extents.sort_unstable();
    let extents = kept_extents.iter().map(|at| Block { at: *at, units: Head(memory.load(geometry.byte(*at))).units() });
    let records = candidates.iter().map(|Candidate { head, record }| Block { at: *record, units: head.units() });
    let mut heap = Heap::rebuild(&memory, geometry, merged(records, extents));
    heap.give_back(&memory, limit_bytes + limit_bytes / RESIDENT_SLACK);
    let inner = make(memory, heap);
    candidates.iter().for_each(|candidate| inner.count_recovered(candidate.head));
    kept_extents.iter().for_each(|at| inner.count_recovered(Head(inner.memory.load(geometry.byte(*at)))));
    let objects = candidates.iter().map(|candidate| Object::recovered(&inner, candidate.record)).collect();
    (inner, Recovered { objects, torn, evicted, anew: None })
}

/// The blocks of both in address order.
fn merged(records: impl Iterator<Item = Block>, extents: impl Iterator<Item = Block>) -> impl Iterator<Item = Block> {
    let (mut records, mut extents) = (records.peekable(), extents.peekable());
    std::iter::from_fn(move || {
        let before = extents.peek().map_or(u32::MAX, |extent| extent.at);
        records.next_if(|record| record.at < before).or_else(|| extents.next())
    })
}

/// Drops objects beyond a limit that has become smaller; returns their number. Those further back
/// go first: the use of objects is not known here, and only adjacent objects together give whole
/// pages back. This happens before anything is read or allocated for them, since memory may be
/// scarce.
fn keep_to_limit(
    memory: &Memory,
    geometry: Geometry,
    candidates: &mut Vec<Candidate>,
    chains: &mut Chains,
    limit_bytes: u64,
) -> usize {
    let units = |at: &u32| u64::from(Head(memory.load(geometry.byte(*at))).units());
    let before = candidates.len();
    let mut left = limit_bytes.saturating_sub(Heap::private_bytes_of(geometry).saturating_sub(PRIVATE_FREE_BYTES));
    candidates.retain(|Candidate { head, record }| {
        let of_extents: u64 = chains.get(record).map_or(0, |extents| extents.iter().map(units).sum());
        let bytes = ((u64::from(head.units()) + of_extents) << geometry.shift) + HANDLE_BYTES as u64;
        let fits = bytes <= left;
        left -= if fits { bytes } else { 0 };
        if !fits {
            chains.remove(record);
        }
        fits
    });
    before - candidates.len()
}

/// Follows the links of a record; takes its extents out of `unclaimed`. `None` when lengths or
/// links are impossible.
fn chain(memory: &Memory, geometry: Geometry, record: u32, unclaimed: &mut HashSet<u32>) -> Option<Vec<u32>> {
    let at = geometry.byte(record);
    let mut head = Head(memory.load(at));
    let block_bytes = geometry.byte(head.units());
    let lengths = memory.load(at + LENGTHS);
    let annex = if head.is_annexed() { ANNEX_LENGTH_BYTES } else { 0 };
    let fixed = RECORD_HEADER_BYTES + (vary_length(memory.load(at + ORIGIN)) + head_length(lengths)) as u64 + annex;
    let mut room = block_bytes.checked_sub(fixed)?;
    let mut body_bytes = chain_length(memory, head, body_length(lengths), at + fixed, room)?
        .checked_add(annex_length(memory, head, at + fixed))?;
    let mut block = record;
    let mut claimed = Vec::new();
    while head.has(HAS_NEXT) {
        body_bytes = body_bytes.checked_sub(room.checked_sub(LINK_BYTES)?)?;
        let next = u32::try_from(memory.load(geometry.byte(block + head.units()) - LINK_BYTES)).ok()?;
        if !unclaimed.remove(&next) {
            return None;
        }
        claimed.push(next);
        block = next;
        head = Head(memory.load(geometry.byte(block)));
        room = geometry.byte(head.units()).checked_sub(EXTENT_HEADER_BYTES)?;
    }
    (body_bytes <= room).then_some(claimed)
}

/// Number of bytes at the position of the body; `None` if the map of a body in a file has no room.
/// `room` is that of the first block.
fn chain_length(memory: &Memory, head: Head, body_bytes: u64, body_at: u64, room: u64) -> Option<u64> {
    if head.kind() != KIND_ON_DISK {
        return Some(body_bytes);
    }
    if room < 16 {
        return None;
    }
    // SAFETY: as below; the caller's `room` guarantees that the bytes are inside the block.
    let extents = unsafe { memory.bytes(body_at + 8, 8) };
    let extents = extents.try_into().map_or(u64::MAX, u64::from_le_bytes);
    (extents < 1 << 24).then(|| map_bytes(body_bytes, extents))
}

/// The length of a record's annex; `body_at` is the offset of its body, inside the record's block.
fn annex_length(memory: &Memory, head: Head, body_at: u64) -> u64 {
    if !head.is_annexed() {
        return 0;
    }
    // SAFETY: no other thread uses the arena while it is recovered; the caller has checked that the
    // word is inside the block.
    let bytes = unsafe { memory.bytes(body_at - ANNEX_LENGTH_BYTES, ANNEX_LENGTH_BYTES as usize) };
    bytes.try_into().map_or(0, u64::from_le_bytes)
}
