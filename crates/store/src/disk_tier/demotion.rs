//! Demotion: an object in memory gets a second record, whose body is in a file, so that evicting it
//! from memory need not lose it.
//!
//! The words, the key and the head are identical, so keys derived from them remain valid.
//! *Invariant*: only a sound object is copied, since the copy has a checksum of its own; until the
//! index takes the copy (`Object::enter_index`), no later process sees it.

use super::map::CHUNK_BYTES;
use super::object::append_piece;
use crate::arena::StoreFull;
use crate::attributes::ObjectFlags;
use crate::disk_tier::DiskWrite;
use crate::layout::{IDENTITY, KEEP_BAN, KEY, KEY_BYTES, LIFETIME, ORIGIN, USE, lengths, low, pair};
use crate::object::{Body, Object, Words};
use crate::storage::Store;
use std::sync::Arc;

impl Store {
    /// Makes a copy of a complete object whose body is written to the file of this storage. The
    /// caller puts it into the index instead of the original, after [`Object::live_on`]. Never
    /// waits for the disk; takes as long as copying the body.
    ///
    /// # Errors
    /// [`StoreFull`]: this storage has no file, or no room, or the disk does not keep up; or the
    /// object is incomplete, transient, or damaged (then it is removed).
    pub fn demoted(&self, object: &Object) -> Result<Arc<Object>, StoreFull> {
        let tier = self.inner.shared_disk_tier().filter(|tier| !tier.is_busy()).ok_or(StoreFull)?;
        let flags = object.flags();
        let is_fit = object.is_whole() && !flags.has(ObjectFlags::TRANSIENT) && !object.is_on_disk() && object.check();
        let place = object.stored().filter(|_| is_fit).ok_or(StoreFull)?;
        let head = object.head();
        let words = Words {
            identity: pair(low(place.word(IDENTITY)), 0),
            lengths: lengths(0, head.len()),
            origin: place.word(ORIGIN),
            lifetime: place.word(LIFETIME),
            keep_ban: place.word(KEEP_BAN),
            used: place.word(USE),
        };
        let parts = [place.fixed(KEY, KEY_BYTES), object.vary(), head];
        let body_bytes = object.available_bytes();
        let body = Body::InFile(Some(DiskWrite::new(&tier, false)));
        let copy = Object::write_record(&self.inner, &words, parts, flags, Some(body_bytes), body)?;
        match copy.fill_from(object, body_bytes) {
            Some(()) => Ok(copy),
            None => {
                copy.fail();
                Err(StoreFull)
            }
        }
    }
}

impl Object {
    /// Writes the body and the annex of another object; `None` if there is no room.
    fn fill_from(&self, other: &Object, body_bytes: u64) -> Option<()> {
        let (place, streaming) = self.stored().zip(self.streaming.get())?;
        let disk_write = streaming.disk_write.as_ref()?;
        let mut offset = 0;
        while offset < body_bytes {
            let chunk = other.chunk_at(offset).filter(|chunk| !chunk.is_empty())?;
            for piece in chunk.chunks(CHUNK_BYTES as usize) {
                append_piece(place, &streaming, disk_write, piece).ok()?;
            }
            offset += chunk.len() as u64;
        }
        self.finish_with(&other.annex().unwrap_or_default()).ok()
    }

    /// Takes over the properties of an object that may have changed since this copy of it was made:
    /// lifetime, bans passed, hits and last use. The caller makes sure that nothing changes now: it
    /// holds the index's lock and the only handles.
    pub fn live_on(&self, original: &Object) {
        let Some((place, old)) = self.stored().zip(original.stored()) else { return };
        for word in [LIFETIME, KEEP_BAN, USE] {
            place.store.memory.store(place.at(word), old.word(word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, made};
    use crate::arena::StoreFull;
    use crate::attributes::{ObjectAttributes, ObjectFlags};
    use crate::memory::memory_file;
    use crate::storage::Store;
    use std::os::unix::fs::FileExt;

    #[tokio::test]
    async fn only_a_sound_object_is_copied() {
        for is_damaged in [false, true] {
            let (file, content) = (memory_file(c"test").unwrap(), body(1, 150_000));
            let open = || Store::open(file.try_clone().unwrap().into(), "s0", 1 << 20).unwrap();
            let (store, _) = open();
            let flags = ObjectFlags::ESI;
            let attributes =
                ObjectAttributes { xid: 1, origin: 1e9 + 0.1, ttl: 0.3, flags, ..ObjectAttributes::default() };
            let object = store.create(&attributes, b"the head").unwrap();
            object.enter_index();
            object.append(&content).await.unwrap();
            object.finish_with(b"the annex").unwrap();
            // The worker is killed.
            std::mem::forget((object, store));
            if is_damaged {
                let mut all = vec![0; file.metadata().unwrap().len() as usize];
                file.read_exact_at(&mut all, 0).unwrap();
                let at = all.windows(16).position(|window| window == &content[70_000..70_016]).unwrap();
                file.write_all_at(b"!", at as u64).unwrap();
            }
            let (_store, recovered) = open();
            let object = &recovered.objects[0];
            let kept = made();
            let copy = kept.store.demoted(object);
            assert_eq!(object.is_removed(), is_damaged);
            if is_damaged {
                assert_eq!(copy.err(), Some(StoreFull));
                continue;
            }
            let copy = copy.unwrap();
            assert!(copy.is_on_disk() && copy.annex().as_deref() == Some(b"the annex"));
            assert_eq!((copy.xid(), copy.origin(), copy.ttl()), (object.xid(), object.origin(), object.ttl()));
            assert_eq!((copy.head(), copy.flags(), copy.available_bytes()), (&b"the head"[..], flags, 150_000));
            // It was not put into the index.
            drop(copy);
            assert!(kept.store.settle().await);
            assert_eq!(kept.store.file_usage().unwrap().usage.g_bytes, 0);
            assert!(kept.killed(kept.disk.clone()).1.objects.is_empty());
        }
    }
}
