//! Destinations of connections: each destination in use has its pools of idle connections.
//!
//! Backends with the same destination share one key. The table of keys belongs to the process: a
//! newly loaded VCL finds the connections of its predecessors. When the last backend of a
//! destination is gone, its key is removed and the connections kept under it are closed
//! ([`PoolKey::is_used`]). Section `LCK.conn_pool` counts the keys as they are added and removed.
//!
//! *Invariant:* connections and sessions towards origins are shared only under the same TLS
//! settings.

use crate::tls_settings::TlsSettings;
use parking_lot::{Mutex, MutexGuard};
use shm::locks;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use surface::counter::LockClass;
use vcl_run::program::{BackendDefinition, Endpoint, ViaDefinition};

/// A destination: address, bytes sent first, and TLS settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    endpoint: Endpoint,
    /// The name that connections follow; their destination changes with its addresses.
    follows: Option<(String, u16)>,
    preamble: Vec<u8>,
    /// The proxy that the connections pass through.
    via: Option<ViaDefinition>,
    /// Digest of the TLS settings; `None` in clear.
    tls: Option<[u8; 32]>,
}

/// The common identity of a group of idle connections: their destination, for as long as a backend
/// uses it.
#[derive(Debug)]
pub struct PoolKey {
    place: Place,
    /// No other key of this process has or had it.
    number: u64,
    /// Number of backends that use it; changed under the table's lock.
    users: AtomicUsize,
}

impl PoolKey {
    fn new(place: Place) -> PoolKey {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        PoolKey { place, number: NUMBERS.fetch_add(1, Ordering::Relaxed), users: AtomicUsize::new(1) }
    }

    /// True if a backend still uses it.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    /// Its unique number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// The keys of all backends.
static KEYS: LazyLock<Mutex<HashMap<Place, Arc<PoolKey>>>> = LazyLock::new(Mutex::default);

fn keys() -> MutexGuard<'static, HashMap<Place, Arc<PoolKey>>> {
    locks::note_locked(LockClass::ConnPool);
    KEYS.lock()
}

/// A backend's share in a key.
pub(crate) struct SharedKey(Arc<PoolKey>);

impl SharedKey {
    /// The key of this backend. `tls` are its TLS settings.
    pub(crate) fn new(definition: &BackendDefinition, tls: Option<&TlsSettings>) -> SharedKey {
        let follows = definition.follows.as_ref().map(|name| (name.host.clone(), name.port));
        SharedKey::of(definition.endpoint.clone(), follows, definition, tls)
    }

    /// The key of one of the addresses of a backend.
    pub(crate) fn at(endpoint: Endpoint, definition: &BackendDefinition, tls: Option<&TlsSettings>) -> SharedKey {
        SharedKey::of(endpoint, None, definition, tls)
    }

    fn of(
        endpoint: Endpoint,
        follows: Option<(String, u16)>,
        definition: &BackendDefinition,
        tls: Option<&TlsSettings>,
    ) -> SharedKey {
        let place = Place {
            endpoint,
            follows,
            preamble: definition.preamble.clone(),
            via: definition.via.clone(),
            tls: tls.map(TlsSettings::identity),
        };
        if place.endpoint == Endpoint::None {
            // It has no destination, so there is nothing to keep.
            return SharedKey(Arc::new(PoolKey::new(place)));
        }
        let mut keys = keys();
        if let Some(known) = keys.get(&place) {
            known.users.fetch_add(1, Ordering::Release);
            return SharedKey(Arc::clone(known));
        }
        let key = Arc::new(PoolKey::new(place.clone()));
        keys.insert(place, Arc::clone(&key));
        locks::note_created(LockClass::ConnPool);
        SharedKey(key)
    }

    pub(crate) fn key(&self) -> &Arc<PoolKey> {
        &self.0
    }
}

impl Drop for SharedKey {
    fn drop(&mut self) {
        if self.0.place.endpoint == Endpoint::None {
            return;
        }
        let mut keys = keys();
        if self.0.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            keys.remove(&self.0.place);
            locks::note_destroyed(LockClass::ConnPool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tls;

    #[test]
    fn backends_that_lead_to_the_same_place_share_a_key_until_the_last_is_gone() {
        let definition = |preamble: &[u8]| BackendDefinition {
            preamble: preamble.to_vec(),
            ..BackendDefinition::new("b", Endpoint::Unix("/of/this/test".into()))
        };
        let key = |preamble: &[u8]| SharedKey::new(&definition(preamble), None);
        let (first, second, other) = (key(b""), key(b""), key(b"PROXY"));
        assert!(Arc::ptr_eq(first.key(), second.key()));
        assert!(!Arc::ptr_eq(first.key(), other.key()));
        let place = Arc::clone(first.key());
        drop(first);
        assert!(place.is_used());
        drop(second);
        assert!(!place.is_used());
        let again = key(b"");
        assert!(!Arc::ptr_eq(again.key(), &place) && again.key().is_used());
    }

    #[test]
    fn connections_are_shared_only_under_equal_tls_settings() {
        let definition = BackendDefinition::new("b", Endpoint::Unix("/of/another/test".into()));
        let key =
            |host: Option<&str>| SharedKey::new(&definition, host.map(|host| TlsSettings::new(tls(host))).as_ref());
        let keys = [key(None), key(Some("a.example")), key(Some("b.example"))];
        assert!(!Arc::ptr_eq(keys[0].key(), keys[1].key()) && !Arc::ptr_eq(keys[1].key(), keys[2].key()));
        assert!(Arc::ptr_eq(keys[1].key(), key(Some("a.example")).key()));
    }
}
