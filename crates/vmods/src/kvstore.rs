//! kvstore: values that an object keeps between requests, with an end.
//!
//! Each object belongs to its VCL and is bounded by [`KVSTORE_BYTES_MAX`]; a value that has no room
//! is not stored, which the log says. Compat: the calls of the VMOD of that name that published VCL
//! uses.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use parking_lot::Mutex;
use std::collections::HashMap;
use surface::limits::KVSTORE_BYTES_MAX;
use surface::tag::Tag;
use surface::vmod::functions::kvstore::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::Value;

/// Memory of an entry besides its key and value, in bytes.
const ENTRY_BYTES: usize = 96;

/// The content of an object.
#[derive(Default)]
struct Store(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_key: HashMap<Vec<u8>, Entry>,
    bytes: usize,
    /// When expired entries were last dropped to make room, in seconds since 1970.
    swept_at: f64,
}

struct Entry {
    value: Vec<u8>,
    /// Seconds since 1970; infinite without an end.
    end: f64,
}

impl Entries {
    fn get(&mut self, key: &[u8], now: f64) -> Option<&[u8]> {
        if self.by_key.get(key).is_some_and(|entry| entry.end <= now) {
            self.remove(key);
        }
        self.by_key.get(key).map(|entry| &entry.value[..])
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(entry) = self.by_key.remove(key) {
            self.bytes -= ENTRY_BYTES + key.len() + entry.value.len();
        }
    }

    /// Stores a value; false if it has no room, and the old one is kept.
    fn set(&mut self, key: &[u8], value: &[u8], end: f64, now: f64) -> bool {
        let freed = |known: &Entries| known.by_key.get(key).map_or(0, |old| ENTRY_BYTES + key.len() + old.value.len());
        let bytes = ENTRY_BYTES + key.len() + value.len();
        // A sweep walks all entries, so a full store does it once a second.
        if self.bytes - freed(self) + bytes > KVSTORE_BYTES_MAX && (now - self.swept_at).abs() >= 1.0 {
            self.swept_at = now;
            let expired: Vec<Vec<u8>> =
                self.by_key.iter().filter(|(_, entry)| entry.end <= now).map(|(key, _)| key.clone()).collect();
            expired.iter().for_each(|key| self.remove(key));
        }
        if self.bytes - freed(self) + bytes > KVSTORE_BYTES_MAX {
            return false;
        }
        self.remove(key);
        self.bytes += bytes;
        self.by_key.insert(key.to_vec(), Entry { value: value.to_vec(), end });
        true
    }
}

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    if function == Function::Kvstore {
        context.instances().keep_object(instance, Store::default());
        return done(Value::Void);
    }
    let now = context.now();
    let Some(store) = context.instances().object::<Store>(instance) else {
        return Err(Failure("kvstore: the object was never made".to_owned()));
    };
    let key = scratch.get(arguments.text(0)).to_vec();
    let mut entries = store.0.lock();
    let (value, is_stored) = match function {
        Function::Kvstore => (Value::Void, true),
        Function::KvstoreGet => match entries.get(&key, now) {
            Some(value) => (Value::Text(scratch.put(value)), true),
            None => (Value::Text(arguments.text(1)), true),
        },
        Function::KvstoreSet => {
            let is_stored = entries.set(&key, scratch.get(arguments.text(1)), end(now, arguments, 2), now);
            (Value::Void, is_stored)
        }
        Function::KvstoreDelete => {
            entries.remove(&key);
            (Value::Void, true)
        }
        Function::KvstoreCounter => count(&mut entries, &key, arguments, now),
    };
    drop(entries);
    if !is_stored {
        context.log(Tag::VCLError, b"kvstore: no room for the value");
    }
    done(value)
}

/// The end of a value; 0 s or less means none.
fn end(now: f64, arguments: Arguments<'_>, place: usize) -> f64 {
    match arguments.real(place) {
        ttl if ttl > 0.0 => now + ttl,
        _ => f64::INFINITY,
    }
}

/// `.counter()`: adds to a number, which begins with 0; its end stays.
fn count(entries: &mut Entries, key: &[u8], arguments: Arguments<'_>, now: f64) -> (Value, bool) {
    let text = |value: &[u8]| std::str::from_utf8(value).ok()?.parse::<i64>().ok();
    let known = entries.get(key, now).and_then(text);
    let end = match (known, entries.by_key.get(key)) {
        (Some(_), Some(entry)) => entry.end,
        _ => end(now, arguments, 2),
    };
    let count = known.unwrap_or(0).saturating_add(arguments.int(1));
    let is_stored = entries.set(key, count.to_string().as_bytes(), end, now);
    (Value::Int(count), is_stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_and_memory_is_bounded() {
        let mut entries = Entries::default();
        assert!(entries.set(b"a", b"1", 10.0, 0.0));
        assert_eq!(entries.get(b"a", 9.0), Some(&b"1"[..]));
        assert_eq!(entries.get(b"a", 10.0), None);
        assert_eq!(entries.bytes, 0);
        let long = vec![b'x'; 1 << 20];
        let stored = (0..100_u32).filter(|key| entries.set(&key.to_le_bytes(), &long, 50.0, 20.0)).count();
        assert!(stored < 64 && entries.bytes <= KVSTORE_BYTES_MAX, "{stored}");
        assert!(!entries.set(b"b", &long, 50.0, 30.0), "nothing has expired");
        let longer = vec![b'y'; 2 << 20];
        assert!(!entries.set(&0_u32.to_le_bytes(), &longer, 50.0, 30.0));
        assert_eq!(entries.get(&0_u32.to_le_bytes(), 30.0), Some(&long[..]), "the old value is kept");
        assert!(entries.set(b"b", &long, 90.0, 60.0));
        assert_eq!(entries.by_key.len(), 1);
        entries.set(b"b", b"", 90.0, 60.0);
        entries.remove(b"b");
        assert_eq!(entries.bytes, 0);
    }
}
