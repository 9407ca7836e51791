//! An annex: bytes that belong to an object without being a part of its body.
//!
//! It is written behind the body when that is complete, into the same blocks, so it survives the
//! worker with the object, counts against the storage with it, is covered by its checksum, and is
//! freed with it. Readers of the body do not see it. Room for its length is kept only in records of
//! objects that can have one ([`ObjectFlags::ESI`]). *Invariant:* the length is written before
//! COMPLETE, and read after it.

use crate::attributes::AppendError;
use crate::chain::annex_chunk;
use crate::disk_tier::chain_bytes;
use crate::layout::COMPLETE;
use crate::object::Object;
use crate::place::Place;
use crate::writer::put_all;

impl Object {
    /// As [`Object::finish`], with an annex. The annex is dropped for passing objects, and for
    /// objects created without [`crate::ObjectFlags::ESI`], which have no room for one. An annex
    /// may need room that must be made by evicting.
    ///
    /// # Errors
    /// [`AppendError`]; the body has not ended then, and can only fail.
    pub fn finish_with(&self, annex: &[u8]) -> Result<(), AppendError> {
        let Some(place) = self.stored() else {
            self.finish();
            return Ok(());
        };
        let annex = if place.head().is_annexed() { annex } else { &[] };
        self.write_map(place)?;
        self.write_annex(place, annex)?;
        self.end_stored(place, COMPLETE, annex);
        Ok(())
    }

    pub(crate) fn write_annex(&self, place: &Place, annex: &[u8]) -> Result<(), AppendError> {
        if annex.is_empty() {
            return Ok(());
        }
        let Some(streaming) = self.streaming.get() else { return Err(AppendError::Abandoned) };
        let mut position = streaming.position.lock();
        if position.ended {
            return Err(AppendError::Abandoned);
        }
        put_all(place, &mut position, streaming.promised_bytes, annex)?;
        let length = (annex.len() as u64).to_le_bytes();
        // SAFETY: the word is between response head and body, where no thread reads before the
        // object is complete; there is one writer, the holder of the position's lock.
        unsafe { place.store.memory.write(place.fixed_end(), &length) };
        Ok(())
    }

    /// Length of the annex in bytes; 0 = there is none, or the body is not complete.
    #[must_use]
    pub fn annex_bytes(&self) -> u64 {
        self.annexed().map_or(0, |(_, bytes)| bytes)
    }

    /// A copy of the annex; `None` if there is none, or the body is not complete.
    #[must_use]
    pub fn annex(&self) -> Option<Vec<u8>> {
        let (place, bytes) = self.annexed()?;
        annex_of(place, bytes)
    }

    fn annexed(&self) -> Option<(&Place, u64)> {
        let place = self.stored().filter(|place| place.head().is_annexed() && self.is_whole())?;
        Some(place.annex_bytes()).filter(|bytes| *bytes > 0).map(|bytes| (place, bytes))
    }
}

/// A copy of the annex of a complete object, which has `bytes`.
pub(crate) fn annex_of(place: &Place, bytes: u64) -> Option<Vec<u8>> {
    let (begin, mut annex) = (chain_bytes(place), Vec::with_capacity(usize::try_from(bytes).ok()?));
    while (annex.len() as u64) < bytes {
        annex.extend_from_slice(annex_chunk(place, begin + bytes, begin + annex.len() as u64)?);
    }
    Some(annex)
}

#[cfg(test)]
mod tests {
    use crate::attributes::{ObjectAttributes, ObjectFlags};
    use crate::memory::Memory;
    use crate::object::Object;
    use crate::storage::Store;
    use std::sync::Arc;

    fn attributes(flags: ObjectFlags, body_bytes: Option<u64>) -> ObjectAttributes {
        ObjectAttributes {
            key: [7; 32],
            xid: 9,
            origin: 1e9,
            ttl: 10.0,
            flags,
            body_bytes,
            ..ObjectAttributes::default()
        }
    }

    fn store() -> Store {
        Store::on(Memory::on_heap(4 << 20).unwrap(), "s0", 4 << 20).unwrap().0
    }

    async fn made(store: &Store, attributes: &ObjectAttributes, body: &[u8], annex: &[u8]) -> Arc<Object> {
        let object = store.create(attributes, b"head").unwrap();
        for part in body.chunks(777) {
            object.append(part).await.unwrap();
        }
        assert_eq!(object.annex(), None, "not before the end");
        object.finish_with(annex).unwrap();
        object
    }

    #[tokio::test]
    async fn annex_is_not_part_of_the_body_at_any_length() {
        let store = store();
        let (body, annex): (Vec<u8>, Vec<u8>) = ((0..200_000u32).map(|n| n as u8).collect(), vec![0xee; 90_000]);
        // Miri is a thousand times slower.
        let few = cfg!(miri);
        let bodies: &[usize] = if few { &[1, 5_000] } else { &[1, 100, 3_500, 4_000, 4_096, 5_000, 200_000] };
        let annexes: &[usize] = if few { &[600] } else { &[1, 500, 600, 90_000] };
        for &body_bytes in bodies {
            for &annex_bytes in annexes {
                for known in [None, Some(body_bytes as u64)] {
                    let (body, annex) = (&body[..body_bytes], &annex[..annex_bytes]);
                    let object = made(&store, &attributes(ObjectFlags::ESI, known), body, annex).await;
                    assert_eq!(object.available_bytes(), body_bytes as u64);
                    assert_eq!((object.vary(), object.head()), (&b""[..], &b"head"[..]));
                    assert!(object.annex().as_deref() == Some(annex), "{body_bytes} {annex_bytes} {known:?}");
                    let (mut read, mut reader) = (Vec::new(), object.reader().unwrap());
                    while let Some(chunk) = reader.chunk_at(read.len() as u64) {
                        assert_eq!(object.chunk_at(read.len() as u64), Some(chunk));
                        read.extend_from_slice(chunk);
                    }
                    assert!(read == body, "{body_bytes} {annex_bytes} {known:?}");
                    drop(reader);
                    drop(object);
                    store.check();
                }
            }
        }
    }

    #[tokio::test]
    async fn objects_without_room_for_an_annex_have_none() {
        let store = store();
        let plain = made(&store, &attributes(ObjectFlags::NONE, None), b"body", b"annex").await;
        assert_eq!((plain.annex(), plain.annex_bytes(), plain.available_bytes()), (None, 0, 4));
        let empty = made(&store, &attributes(ObjectFlags::ESI, None), b"body", b"").await;
        assert_eq!((empty.annex(), empty.annex_bytes(), empty.available_bytes()), (None, 0, 4));
        let passing = Object::passing(attributes(ObjectFlags::ESI, None), b"head".to_vec(), 100);
        passing.finish_with(b"annex").unwrap();
        assert_eq!(passing.annex(), None);
    }
}
