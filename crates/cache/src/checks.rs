//! Checks of long objects that an earlier worker stored, done off the event loop, one check per
//! object at a time. A check takes as long as reading all of the object, and after a worker's death
//! many requests want the same object; they wait for the one check. *Lock*: one mutex, not held
//! during a check.

use crate::Cache;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use store::Object;
use tokio::sync::Mutex as Gate;

/// The checks under way.
#[derive(Default)]
pub(crate) struct Checks {
    /// By the address of the object, which everyone waiting at its gate keeps.
    gates: Mutex<HashMap<usize, Weak<Gate<()>>>>,
}

impl Checks {
    fn gate(&self, object: &Arc<Object>) -> Arc<Gate<()>> {
        let (mut gates, address) = (self.gates.lock(), Arc::as_ptr(object) as usize);
        if let Some(gate) = gates.get(&address).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::new(()));
        gates.insert(address, Arc::downgrade(&gate));
        gate
    }
}

impl Cache {
    /// Checks an object off the event loop ([`Object::check`]), or waits for another request's
    /// check of it; returns `false` if it was damaged and has been removed. A check under way
    /// continues even if no request waits for it any more.
    pub async fn check(&self, object: &Arc<Object>) -> bool {
        let guard = self.inner.checks.gate(object).lock_owned().await;
        if !object.is_unchecked() {
            return true;
        }
        if object.is_removed() {
            return false;
        }
        let object = Arc::clone(object);
        let check = move || {
            let is_sound = object.check();
            drop(guard);
            is_sound
        };
        tokio::task::spawn_blocking(check).await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};
    use store::{ObjectAttributes, Store};

    #[tokio::test]
    async fn callers_wait_for_a_check_in_progress() {
        let file = tempfile::tempfile().unwrap();
        let open = || Store::open(file.try_clone().unwrap().into(), "s0", 1 << 20).unwrap();
        let (store, _) = open();
        let attributes = ObjectAttributes { origin: 1e9, ttl: 10.0, ..ObjectAttributes::default() };
        let object = store.create(&attributes, b"head").unwrap();
        object.enter_index();
        object.append(&[7; 100_000]).await.unwrap();
        object.finish();
        // The worker is killed.
        std::mem::forget((object, store));
        let object = Arc::clone(&open().1.objects[0]);
        let cache = Cache::in_memory(1 << 20, 1e9).unwrap();
        let under_way = cache.inner.checks.gate(&object).lock_owned().await;
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(cache.check(&object))).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.iter_mut().all(|check| check.as_mut().poll(&mut context).is_pending()));
        assert!(object.is_unchecked(), "nobody has begun one");
        assert!(object.check());
        drop(under_way);
        for check in waiting {
            assert!(check.await);
        }
        assert!(cache.check(&object).await);
    }
}
