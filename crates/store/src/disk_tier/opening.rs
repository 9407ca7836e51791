//! Opening of a storage with a file: with the arena of the last worker, after a reboot from the
//! log, or empty.

use super::device::Device;
use super::log::{AREAS_AT, Entry, Header, Record, replay};
use super::map::Map;
use super::queue::Queue;
use super::reclaimer::Segments;
use super::runs::Runs;
use super::writer::Writer;
use super::{Counts, Extent, FileOptions, Space, Tier};
use crate::arena::Inner;
use crate::journal::new_identity;
use crate::memory::{Memory, PAGE_BYTES};
use crate::object::Object;
use crate::recovery::Recovered;
use crate::storage::{Store, arena_bytes};
use crate::unsized_bodies::UnsizedBodies;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};
use surface::closed_set::Advice;
use tokio::sync::Notify;

const FILE_BYTES_MIN: u64 = 256 << 10;
/// Smallest area of the log.
const AREA_BYTES_MIN: u64 = 32 << 10;

/// The division of a new file.
fn header_for(options: &FileOptions) -> io::Result<Header> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if options.bytes < FILE_BYTES_MIN {
        return Err(wrong("the file is too small"));
    }
    let granularity = options.granularity_bytes;
    if !granularity.is_power_of_two() || !(512..=1 << 20).contains(&granularity) {
        return Err(wrong("the granularity is a power of two from 512 bytes to 1 MiB"));
    }
    let area = (options.metadata_bytes.saturating_mul(2)).min(options.bytes / 16).max(AREA_BYTES_MIN);
    let area_bytes = area.next_multiple_of(PAGE_BYTES);
    Ok(Header { file_bytes: options.bytes, area_bytes, granularity, journal: options.journal, ..Header::default() })
}

/// A start value for ids that no earlier process has given: none gives one for each nanosecond of
/// its life.
fn first_id() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::try_from(time.as_nanos()).unwrap_or(1))
}

/// The limit of the metadata: a snapshot must fit into an area.
fn limit_of(area_bytes: u64, options: &FileOptions) -> u64 {
    options.metadata_bytes.min(area_bytes / 4 * 3)
}

/// The new division of a file with this header: unchanged, or for another size, granularity or
/// metadata limit, so that objects which still have room stay. `None` = there is no room for its
/// log.
///
/// The area in use counts until the next snapshot is complete. Longer areas, which a file that has
/// grown a lot needs, are at its new end.
fn divided_anew(found: &Header, wanted: &Header, options: &FileOptions) -> Option<Header> {
    let (file_bytes, granularity) = (wanted.file_bytes, wanted.granularity);
    let kept = Header { file_bytes, granularity, ..*found };
    let unit = granularity.max(PAGE_BYTES);
    let end = file_bytes.saturating_sub(2 * wanted.area_bytes) / unit * unit;
    // For a smaller gain it is not worth having the bodies avoid the old areas.
    let is_worth = limit_of(wanted.area_bytes, options) / 2 > limit_of(found.area_bytes, options);
    if is_worth && end >= found.file_bytes {
        return Some(Header { areas_at: end, area_bytes: wanted.area_bytes, ..kept });
    }
    let has_room = (AREA_BYTES_MIN..=file_bytes / 4).contains(&found.area_bytes) && found.areas().end <= file_bytes;
    has_room.then_some(kept)
}

/// The initial content of a storage.
enum Beginning {
    /// With the records in the arena.
    Arena,
    /// With the log.
    Log,
    /// Empty.
    Empty,
}

impl Store {
    /// Opens a storage whose bodies are in `file`; `metadata` is a memory file for the rest. Both
    /// belong to the manager, which holds a lock on the file. If the memory file is new, the
    /// objects are read from the log in the file; if both are new, or the file is of another
    /// layout, length or journal, the storage begins empty ([`Recovered::anew`] contains the
    /// reason). Starts a thread that writes.
    ///
    /// # Errors
    /// The files cannot be sized, mapped or read; `InvalidInput` for invalid options.
    pub fn open_disk_tier(
        metadata: OwnedFd,
        file: OwnedFd,
        name: &str,
        options: &FileOptions,
    ) -> io::Result<(Store, Recovered)> {
        let file = File::from(file);
        if file.metadata()?.len() < options.bytes {
            file.set_len(options.bytes)?;
        }
        advise(&file, options.advice);
        Store::open_file_on(metadata, Box::new(file), name, options)
    }

    pub(crate) fn open_file_on(
        metadata: OwnedFd,
        device: Box<dyn Device>,
        name: &str,
        options: &FileOptions,
    ) -> io::Result<(Store, Recovered)> {
        let wanted = header_for(options)?;
        let found = Header::read(&*device)?;
        let (reason, usable) = match found {
            None => (None, None),
            Some(found) if found.journal != wanted.journal => (Some("its bans are in another journal"), None),
            Some(found) => match divided_anew(&found, &wanted, options) {
                None => (Some("its log was made for a much larger file"), None),
                Some(divided) => (None, Some((found, divided)).filter(|_| found.generation > 0)),
            },
        };
        let metadata = File::from(metadata);
        let limit = limit_of(usable.map_or(wanted.area_bytes, |(_, divided)| divided.area_bytes), options);
        let bytes = arena_bytes(limit)?;
        let is_ours = |header: &Header| -> bool {
            metadata.metadata().is_ok_and(|found| found.len() == bytes)
                && crate::layout::pairing(&metadata) == Some(header.pairing)
        };
        let beginning = match &usable {
            Some((found, _)) if is_ours(found) => Beginning::Arena,
            Some(_) => Beginning::Log,
            None => Beginning::Empty,
        };
        // No entry in the areas is of a new generation.
        let empty =
            || Header { sequence: found.map_or(0, |found| found.sequence), generation: new_identity(), ..wanted };
        // The header on the disk until the next snapshot is complete.
        let mut header = usable.map_or_else(empty, |(found, _)| found);
        if !matches!(beginning, Beginning::Arena) {
            metadata.set_len(0)?;
            metadata.set_len(bytes)?;
            header.pairing = new_identity();
            // From now on the old arena is not taken for this one; the log is unchanged.
            header.write(&*device)?;
        }
        let divided = Header {
            sequence: header.sequence,
            pairing: header.pairing,
            ..usable.map_or(header, |(_, divided)| divided)
        };
        let tier = Arc::new(tier(device, &divided, &header, options.advice));
        let memory = Memory::map(metadata, bytes)?;
        let (store, mut recovered) = Store::on_with(memory, name, limit, Some(Arc::clone(&tier) as _))?;
        let position = match beginning {
            Beginning::Arena => {
                take_extents(&tier, &mut recovered);
                None
            }
            // The log is not continued: it still lists objects that had no room here, and bytes
            // behind a torn entry could be taken for a part of it later.
            Beginning::Log => {
                restore(&store.inner, &tier, &header, &mut recovered)?;
                None
            }
            Beginning::Empty => Some(0),
        };
        // Last, so that an arena that was not filled completely is not accepted.
        store.inner.memory.store(crate::layout::PAIRING_AT, header.pairing);
        recovered.anew = reason;
        let writer = Writer::new(&tier, &store.inner, divided, position);
        let thread = std::thread::Builder::new().name(format!("file {name}")).spawn(move || writer.run())?;
        store.inner.writer.lock().replace(thread);
        Ok((store, recovered))
    }
}

/// `on_disk`: the header that counts until the next snapshot is complete.
fn tier(device: Box<dyn Device>, header: &Header, on_disk: &Header, advice: Advice) -> Tier {
    let unit = header.granularity.max(PAGE_BYTES);
    let is_in_front = |header: &Header| header.areas().start == AREAS_AT;
    let fronts = [header, on_disk].into_iter().filter(|header| is_in_front(header)).map(|header| header.areas().end);
    let from = fronts.max().unwrap_or(AREAS_AT).next_multiple_of(unit);
    let to = (header.file_bytes / header.granularity * header.granularity).max(from);
    let mut space =
        Space { runs: Runs::new(from, to, header.granularity), segments: Segments::new(from, to, header.granularity) };
    // Bodies avoid areas that are further back.
    for areas in [header, on_disk].into_iter().filter(|header| !is_in_front(header)).map(Header::areas) {
        let at = areas.start / unit * unit;
        space.runs.claim(Extent { at, bytes: areas.end.min(to).saturating_sub(at) });
    }
    space.runs.set_hand(from);
    Tier {
        device,
        bodies: from..to,
        granularity: header.granularity,
        advice,
        space: Mutex::new(space),
        reclaimer: RwLock::new(None),
        queue: Queue::default(),
        unwritten_bytes: AtomicU64::new(0),
        queued_bytes: AtomicU64::new(0),
        written: Notify::new(),
        unsized_bodies: UnsizedBodies::default(),
        next_id: AtomicU64::new(first_id()),
        counts: Counts::default(),
    }
}

/// Claims the room of an object that was found; returns `false` if another one has it.
fn claim(tier: &Tier, object: &Arc<Object>) -> bool {
    let Some(map) = object.stored().filter(|_| object.is_on_disk()).and_then(Map::of) else { return true };
    tier.has_seen(map.id);
    let mut claimed = Vec::new();
    let mut space = tier.space.lock();
    let mut bytes = 0;
    for extent in map.extents() {
        if !space.runs.claim(extent) {
            for extent in claimed {
                space.runs.give_back(extent);
            }
            return false;
        }
        bytes += extent.bytes;
        claimed.push(extent);
    }
    let is_whole = bytes == object.available_bytes();
    if let Some(first) = claimed.first() {
        space.segments.enter(first.at, object);
    }
    drop(space);
    for extent in claimed {
        tier.counts.usage.allocated(tier.room_of(extent.bytes));
    }
    is_whole
}

/// The objects of the arena keep their room in the file; those that claim the extents of others are
/// dropped.
fn take_extents(tier: &Tier, recovered: &mut Recovered) {
    let before = recovered.objects.len();
    recovered.objects.retain(|object| {
        let is_sound = claim(tier, object);
        if !is_sound {
            object.disown();
        }
        is_sound
    });
    recovered.torn += before - recovered.objects.len();
}

/// Creates the objects that are in the log.
fn restore(store: &Arc<Inner>, tier: &Tier, header: &Header, recovered: &mut Recovered) -> io::Result<()> {
    let mut found: HashMap<u64, Arc<Object>> = HashMap::new();
    let mut order: Vec<u64> = Vec::new();
    // Objects whose room is claimed by another object that a later entry removes: a snapshot is not
    // atomic.
    let mut early: HashMap<u64, Arc<Object>> = HashMap::new();
    let (mut torn, mut evicted) = (0, 0);
    replay(&*tier.device, header, |entry| match entry {
        Entry::Removed(id) => {
            tier.has_seen(id);
            if let Some(object) = found.remove(&id) {
                object.remove();
            } else if let Some(object) = early.remove(&id) {
                object.disown();
            }
        }
        Entry::Lifetime(id, lifetime, keep_ban) => {
            if let Some(object) = found.get(&id).or_else(|| early.get(&id)) {
                object.restore_lifetime(lifetime, keep_ban);
            }
        }
        Entry::Inserted(record) => {
            let Record { id, .. } = *record;
            if found.contains_key(&id) || early.contains_key(&id) {
                return;
            }
            match Object::restored(store, &record) {
                Err(_) => evicted += 1,
                Ok(None) => torn += 1,
                Ok(Some(object)) if claim(tier, &object) => {
                    found.insert(id, object);
                    order.push(id);
                }
                Ok(Some(object)) => {
                    early.insert(id, object);
                    order.push(id);
                }
            }
        }
    })?;
    for (id, object) in early {
        if claim(tier, &object) {
            found.insert(id, object);
        } else {
            object.disown();
            torn += 1;
        }
    }
    // Objects removed here are not in the next snapshot.
    tier.queue.forget_entries();
    // Oldest first, as they were stored.
    recovered.objects = order.into_iter().filter_map(|id| found.remove(&id)).collect();
    recovered.torn += torn;
    recovered.evicted += evicted;
    Ok(())
}

/// Announces the access pattern of the file to the kernel; a hint.
fn advise(file: &File, advice: Advice) {
    let advice = match advice {
        Advice::Normal => libc::POSIX_FADV_NORMAL,
        Advice::Random => libc::POSIX_FADV_RANDOM,
        Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
    };
    // SAFETY: passes numbers only; the descriptor is open.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
}
