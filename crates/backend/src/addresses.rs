//! The present addresses of a backend whose name is looked up repeatedly, each with its own idle
//! connections.
//!
//! The list is replaced as a whole when an answer differs; addresses that stay keep their position
//! and state. A connection to an address that has left is used to the end of its response and then
//! closed: the pool key of the address has no users any more ([`PoolKey::is_used`]). Addresses of
//! the preferred family take turns; the others are used when these cannot be reached. An address
//! that recently could not be reached comes last. The lookup itself: `follow.rs`.

use crate::dial::DialTarget;
use crate::hold::{ADDRESS_FAILED, Hold};
use crate::pool_key::{PoolKey, SharedKey};
use crate::tls_settings::TlsSettings;
use parking_lot::RwLock;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use surface::limits::DYNAMIC_ADDRESSES_MAX;
use vcl_run::program::{BackendDefinition, Endpoint};

/// One address.
struct Present {
    address: SocketAddr,
    key: SharedKey,
    /// It comes last for a while.
    failed: Arc<Hold>,
}

/// A route to a backend: the connect target, and its idle connections.
#[derive(Clone)]
pub struct Route {
    /// The connect target.
    pub target: DialTarget,
    /// The key of the idle connections.
    pub key: Arc<PoolKey>,
    /// Set after a failed connect: other addresses come first for a while.
    failed: Option<Arc<Hold>>,
    /// Keeps the pool key of a followed address in use, and with it the idle connections.
    _present: Option<Arc<Present>>,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Route {
    /// The only route to a backend that has one address.
    pub(crate) fn fixed(target: DialTarget, key: &Arc<PoolKey>) -> Route {
        Route { target, key: Arc::clone(key), failed: None, _present: None }
    }

    /// The routes to a backend with a fixed address of each family: the preferred family first,
    /// unless its last connect failed and that of the other did not.
    pub(crate) fn of_families(
        (v4, v6): (SocketAddr, SocketAddr),
        prefer_v6: bool,
        key: &Arc<PoolKey>,
        failed: &[Arc<Hold>; 2],
    ) -> Vec<Route> {
        let route = |is_v6: bool| Route {
            target: DialTarget::Ip { v4: (!is_v6).then_some(v4), v6: is_v6.then_some(v6), prefer_v6 },
            key: Arc::clone(key),
            failed: Some(Arc::clone(&failed[usize::from(is_v6)])),
            _present: None,
        };
        let [v4_failed, v6_failed] = failed.each_ref().map(|failed| failed.is_on());
        let begins_with_v6 = if v4_failed == v6_failed { prefer_v6 } else { v4_failed };
        vec![route(begins_with_v6), route(!begins_with_v6)]
    }

    /// Notes that a connect failed: other routes come first for a while.
    pub(crate) fn note_failure(&self) {
        if let Some(failed) = &self.failed {
            failed.set(ADDRESS_FAILED);
        }
    }
}

/// The addresses of one backend.
pub(crate) struct Addresses {
    present: RwLock<Arc<[Arc<Present>]>>,
    turn: AtomicUsize,
}

impl Addresses {
    /// The addresses found when the VCL was compiled.
    pub(crate) fn new(definition: &BackendDefinition, tls: Option<&TlsSettings>) -> Addresses {
        let addresses = Addresses { present: RwLock::new(Arc::from([])), turn: AtomicUsize::new(0) };
        if let Endpoint::Ip { v4, v6 } = definition.endpoint {
            addresses.set(&v4.into_iter().chain(v6).collect::<Vec<_>>(), definition, tls);
        }
        addresses
    }

    /// Replaces them; returns true if they differ from those before. Does nothing if there are
    /// none.
    pub(crate) fn set(&self, found: &[SocketAddr], definition: &BackendDefinition, tls: Option<&TlsSettings>) -> bool {
        let mut wanted: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !wanted.contains(address) && wanted.len() < DYNAMIC_ADDRESSES_MAX {
                wanted.push(*address);
            }
        }
        wanted.sort_unstable();
        let before = Arc::clone(&self.present.read());
        if wanted.is_empty() || before.iter().map(|present| present.address).eq(wanted.iter().copied()) {
            return false;
        }
        let place = |address: SocketAddr| match before.iter().find(|present| present.address == address) {
            Some(known) => Arc::clone(known),
            None => {
                let (v4, v6) = if address.is_ipv4() { (Some(address), None) } else { (None, Some(address)) };
                let key = SharedKey::at(Endpoint::Ip { v4, v6 }, definition, tls);
                Arc::new(Present { address, key, failed: Arc::new(Hold::new()) })
            }
        };
        *self.present.write() = wanted.into_iter().map(place).collect();
        true
    }

    /// The present addresses, in order.
    pub(crate) fn list(&self) -> Vec<SocketAddr> {
        self.present.read().iter().map(|present| present.address).collect()
    }

    /// All routes, the one whose turn it is first.
    pub(crate) fn routes(&self, prefer_v6: bool) -> Vec<Route> {
        let present = Arc::clone(&self.present.read());
        let turn = self.turn.fetch_add(1, Relaxed);
        let mut order: Vec<&Arc<Present>> = Vec::with_capacity(present.len());
        for is_v6 in [prefer_v6, !prefer_v6] {
            let family = || present.iter().filter(|present| present.address.is_ipv6() == is_v6);
            let start = turn.checked_rem(family().count()).unwrap_or(0);
            order.extend(family().skip(start).chain(family().take(start)));
        }
        // Each hold is read once: it may expire during the sort.
        order.sort_by_cached_key(|present| present.failed.is_on());
        let route = |present: &Arc<Present>| Route {
            target: match present.address {
                SocketAddr::V4(_) => DialTarget::Ip { v4: Some(present.address), v6: None, prefer_v6 },
                SocketAddr::V6(_) => DialTarget::Ip { v4: None, v6: Some(present.address), prefer_v6 },
            },
            key: Arc::clone(present.key.key()),
            failed: Some(Arc::clone(&present.failed)),
            _present: Some(Arc::clone(present)),
        };
        order.into_iter().map(route).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::definition;
    use std::time::Duration;
    use tokio::time::advance;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn first(all: &Addresses) -> SocketAddr {
        match all.routes(false)[0].target {
            DialTarget::Ip { v4, v6, .. } => v4.or(v6).unwrap(),
            DialTarget::Unix(_) => unreachable!(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_take_turns_the_other_family_comes_after_them_and_the_failed_ones_last() {
        let all = Addresses::new(&definition("b"), None);
        let list = addresses(&["192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80"]);
        assert!(all.set(&list, &definition("b"), None));
        assert!(!all.set(&[list[2], list[1], list[0], list[0]], &definition("b"), None), "the same in another order");
        let turns: Vec<_> = (0..4).map(|_| first(&all)).collect();
        assert_eq!(turns[0], turns[2]);
        assert_ne!(turns[0], turns[1]);
        assert!(turns.iter().all(SocketAddr::is_ipv4));
        for route in all.routes(false).iter().filter(|route| matches!(route.target, DialTarget::Ip { v6: None, .. })) {
            route.note_failure();
        }
        advance(Duration::from_secs(9)).await;
        assert_eq!(first(&all), list[2]);
        assert_eq!(all.routes(false).len(), 3, "they are tried all the same if nothing else works");
        advance(Duration::from_secs(1)).await;
        assert!(first(&all).is_ipv4());
    }

    #[tokio::test(start_paused = true)]
    async fn unreachable_one_of_two_fixed_addresses_comes_last_for_a_while() {
        let (v4, v6) = ("192.0.2.1:80".parse().unwrap(), "[2001:db8::1]:80".parse().unwrap());
        let endpoint = Endpoint::Ip { v4: Some(v4), v6: Some(v6) };
        let backend = crate::Backend::new("vcl1", BackendDefinition { endpoint, ..definition("b") }, None, 0.0);
        let order = |prefer_v6| -> Vec<SocketAddr> {
            let address = |route: &Route| match route.target {
                DialTarget::Ip { v4, v6, .. } => v4.xor(v6).unwrap(),
                DialTarget::Unix(_) => unreachable!(),
            };
            backend.routes(prefer_v6).iter().map(address).collect()
        };
        assert_eq!((order(false), order(true)), (vec![v4, v6], vec![v6, v4]));
        backend.routes(true)[0].note_failure();
        assert_eq!((order(false), order(true)), (vec![v4, v6], vec![v4, v6]));
        backend.routes(false)[0].note_failure();
        assert_eq!((order(false), order(true)), (vec![v4, v6], vec![v6, v4]), "both failed");
        advance(Duration::from_secs(10)).await;
        assert_eq!((order(false), order(true)), (vec![v4, v6], vec![v6, v4]));
    }

    #[test]
    fn an_address_that_stays_keeps_its_connections_and_one_that_leaves_loses_them() {
        let all = Addresses::new(&definition("b"), None);
        all.set(&addresses(&["192.0.2.11:80", "192.0.2.12:80"]), &definition("b"), None);
        let before = all.routes(false);
        let key_of = |routes: &[Route], last: u8| {
            let ends = |route: &&Route| matches!(route.target, DialTarget::Ip { v4: Some(SocketAddr::V4(v4)), .. } if v4.ip().octets()[3] == last);
            Arc::clone(&routes.iter().find(ends).unwrap().key)
        };
        let (stays, leaves) = (key_of(&before, 11), key_of(&before, 12));
        drop(before);
        all.set(&addresses(&["192.0.2.11:80", "192.0.2.13:80"]), &definition("b"), None);
        assert!(Arc::ptr_eq(&stays, &key_of(&all.routes(false), 11)));
        assert!(stays.is_used() && !leaves.is_used());
        assert!(!all.set(&[], &definition("b"), None), "no answer is not an answer");
        assert_eq!(all.list().len(), 2);
    }
}
