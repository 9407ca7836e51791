//! A storage with a file is opened: by a worker that finds the arena of the last one, after a reboot from the log, or empty.

use super::device::Device;
use super::log::{AREAS_AT, Entry, Header, Record, replay};
use super::map::Map;
use super::queue::Queue;
use super::runs::Runs;
use super::sweep::Stretches;
use super::writer::Writer;
use super::{Advice, Counts, FileOptions, Space, Tier};
use crate::arena::Inner;
use crate::journal::new_identity;
use crate::memory::{Memory, PAGE_BYTES};
use crate::object::Object;
use crate::recovery::Recovered;
use crate::storage::{Store, arena_bytes};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

const FILE_BYTES_MIN: u64 = 256 << 10;
/// An area of the log has at least this.
const AREA_BYTES_MIN: u64 = 32 << 10;

/// How the file is divided.
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

/// Numbers that no earlier process has given: none gives one for each nanosecond that it lives.
fn first_id() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::try_from(time.as_nanos()).unwrap_or(1))
}

/// How a storage begins.
enum Beginning {
    /// With the records in the arena.
    Arena,
    /// With the log.
    Log,
    /// Empty.
    Empty,
}

impl Store {
    pub(crate) fn open_file_on(
        metadata: OwnedFd,
        device: Box<dyn Device>,
        name: &str,
        options: &FileOptions,
    ) -> io::Result<(Store, Recovered)> {
        let wanted = header_for(options)?;
        let found = Header::read(&*device)?;
        let reason = match found {
            None => None,
            Some(found) if found.journal != wanted.journal => Some("its bans are in another journal"),
            Some(found)
                if (found.file_bytes, found.area_bytes, found.granularity)
                    != (wanted.file_bytes, wanted.area_bytes, wanted.granularity) =>
            {
                Some("it was made with another size, granularity or limit of metadata")
            }
            Some(_) => None,
        };
        let usable = found.filter(|found| reason.is_none() && found.generation > 0);
        let metadata = File::from(metadata);
        // A snapshot must fit an area.
        let limit = options.metadata_bytes.min(wanted.area_bytes / 4 * 3);
        let bytes = arena_bytes(limit)?;
        let is_ours = |header: &Header| -> bool {
            metadata.metadata().is_ok_and(|found| found.len() == bytes)
                && crate::layout::pairing(&metadata) == Some(header.pairing)
        };
        let beginning = match &usable {
            Some(header) if is_ours(header) => Beginning::Arena,
            Some(_) => Beginning::Log,
            None => Beginning::Empty,
        };
        let mut header = usable.unwrap_or(wanted);
        if matches!(beginning, Beginning::Empty) {
            // Nothing that lies in the area is of this generation.
            header = Header { sequence: found.map_or(0, |found| found.sequence), generation: new_identity(), ..wanted };
        }
        if !matches!(beginning, Beginning::Arena) {
            metadata.set_len(0)?;
            metadata.set_len(bytes)?;
            header.pairing = new_identity();
            // From now on the old arena is not taken for this one; the log stays what it was.
            header.write(&*device)?;
        }
        if found.is_some_and(|found| found.is_old) {
            header.renew(&*device)?;
        }
        let tier = Arc::new(tier(device, &header, options.advice));
        let memory = Memory::map(metadata, bytes)?;
        let (store, mut recovered) = Store::on_with(memory, name, limit, Some(Arc::clone(&tier)))?;
        let position = match beginning {
            Beginning::Arena => {
                take_extents(&tier, &mut recovered);
                None
            }
            Beginning::Log => Some(restore(&store.inner, &tier, &header, &mut recovered)?),
            Beginning::Empty => Some(0),
        };
        // Last, so that an arena that was not filled to the end is not taken for whole.
        store.inner.memory.store(crate::layout::PAIRING_AT, header.pairing);
        recovered.anew = reason;
        let writer = Writer::new(&tier, &store.inner, header, position);
        let thread = std::thread::Builder::new().name(format!("file {name}")).spawn(move || writer.run())?;
        store.inner.writer.lock().replace(thread);
        Ok((store, recovered))
    }
}

fn tier(device: Box<dyn Device>, header: &Header, advice: Advice) -> Tier {
    let from = (AREAS_AT + 2 * header.area_bytes).next_multiple_of(header.granularity.max(PAGE_BYTES));
    let to = header.file_bytes / header.granularity * header.granularity;
    let space = Space {
        runs: Runs::new(from, to.max(from), header.granularity),
        stretches: Stretches::new(from, to.max(from), header.granularity),
    };
    Tier {
        device,
        bodies: from..to.max(from),
        granularity: header.granularity,
        advice,
        space: Mutex::new(space),
        queue: Queue::default(),
        unwritten_bytes: AtomicU64::new(0),
        written: Notify::new(),
        next_id: AtomicU64::new(first_id()),
        counts: Counts::default(),
    }
}

/// Takes the room of an object that was found; `false` if another one has it.
fn claim(tier: &Tier, object: &Arc<Object>) -> bool {
    let Some(map) = object.stored().filter(|_| object.is_filed()).and_then(Map::of) else { return true };
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
        space.stretches.enter(first.at, object);
    }
    drop(space);
    for extent in claimed {
        tier.counts.usage.allocated(tier.room_of(extent.bytes));
    }
    is_whole
}

/// The objects of the arena keep their room in the file; those that claim what others have are dropped.
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

/// Makes the objects that the log tells of; returns where the log goes on.
fn restore(store: &Arc<Inner>, tier: &Tier, header: &Header, recovered: &mut Recovered) -> io::Result<u64> {
    let mut found: HashMap<u64, Arc<Object>> = HashMap::new();
    let mut order: Vec<u64> = Vec::new();
    // Their room is another's, whose end comes later: a snapshot is not made in an instant.
    let mut early: HashMap<u64, Arc<Object>> = HashMap::new();
    let (mut torn, mut evicted) = (0, 0);
    let position = replay(&*tier.device, header, |entry| match entry {
        Entry::Removed(id) => {
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
    // What was removed here is removed in the log.
    tier.queue.forget_entries();
    // Oldest first, as they were stored.
    recovered.objects = order.into_iter().filter_map(|id| found.remove(&id)).collect();
    recovered.torn += torn;
    recovered.evicted += evicted;
    Ok(position)
}

/// What the kernel is told of the file; a hint.
pub(crate) fn advise(file: &File, advice: Advice) {
    let advice = match advice {
        Advice::Normal => libc::POSIX_FADV_NORMAL,
        Advice::Random => libc::POSIX_FADV_RANDOM,
        Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
    };
    // SAFETY: passes numbers only; the descriptor is open.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
}
