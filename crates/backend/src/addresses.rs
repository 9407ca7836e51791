//! The present addresses of a backend whose name is followed, each with its own idle connections.
//!
//! The list is replaced as a whole when an answer differs; addresses that stay keep their place, with what is known about them. A
//! connection to an address that has left is used to the end of its response and then closed: the key of its place has no users any more
//! ([`PoolKey::is_used`]). Those of the preferred family take turns; the others are for when these cannot be reached. An address that
//! could not be reached a moment ago comes last. Who looks up the name: `follow.rs`.

use crate::dial::DialTarget;
use crate::hold::Hold;
use crate::pool_key::{PoolKey, SharedKey};
use crate::terms::TlsTerms;
use parking_lot::RwLock;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use surface::limits::DYNAMIC_ADDRESSES_MAX;
use vcl_run::program::{BackendDefinition, Endpoint};

/// How long an address that could not be reached comes after the others.
const ADDRESS_FAILED: Duration = Duration::from_secs(10);

/// One address.
struct Present {
    address: SocketAddr,
    key: SharedKey,
    /// It comes last for a while.
    failed: Hold,
}

/// A way to a backend: where to connect to, and where its idle connections are.
#[derive(Clone)]
pub struct Route {
    /// Where to connect to.
    pub target: DialTarget,
    /// The key of the idle connections.
    pub key: Arc<PoolKey>,
    present: Option<Arc<Present>>,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Route {
    /// The only way to a backend that has one address of each family at most.
    pub(crate) fn fixed(target: DialTarget, key: &Arc<PoolKey>) -> Route {
        Route { target, key: Arc::clone(key), present: None }
    }

    /// It could not be taken: others come first for a while.
    pub(crate) fn note_failure(&self) {
        if let Some(present) = &self.present {
            present.failed.set(ADDRESS_FAILED);
        }
    }
}

/// The addresses of one backend.
pub(crate) struct Addresses {
    present: RwLock<Arc<[Arc<Present>]>>,
    turn: AtomicUsize,
}

impl Addresses {
    /// Those that were found when the VCL was compiled.
    pub(crate) fn new(definition: &BackendDefinition, tls: Option<&TlsTerms>) -> Addresses {
        let addresses = Addresses { present: RwLock::new(Arc::from([])), turn: AtomicUsize::new(0) };
        if let Endpoint::Ip { v4, v6 } = definition.endpoint {
            addresses.set(&v4.into_iter().chain(v6).collect::<Vec<_>>(), definition, tls);
        }
        addresses
    }

    /// Replaces them; returns whether they differ from those before. Nothing happens if there are none.
    pub(crate) fn set(&self, found: &[SocketAddr], definition: &BackendDefinition, tls: Option<&TlsTerms>) -> bool {
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
                Arc::new(Present { address, key, failed: Hold::new() })
            }
        };
        *self.present.write() = wanted.into_iter().map(place).collect();
        true
    }

    /// The present ones, in order.
    pub(crate) fn list(&self) -> Vec<SocketAddr> {
        self.present.read().iter().map(|present| present.address).collect()
    }

    /// All ways, the one whose turn it is first.
    pub(crate) fn routes(&self, prefer_v6: bool) -> Vec<Route> {
        let present = Arc::clone(&self.present.read());
        let turn = self.turn.fetch_add(1, Relaxed);
        let mut order: Vec<&Arc<Present>> = Vec::with_capacity(present.len());
        for is_v6 in [prefer_v6, !prefer_v6] {
            let family = || present.iter().filter(|present| present.address.is_ipv6() == is_v6);
            let start = turn.checked_rem(family().count()).unwrap_or(0);
            order.extend(family().skip(start).chain(family().take(start)));
        }
        // Each is asked once: its time may be over meanwhile.
        order.sort_by_cached_key(|present| present.failed.is_on());
        let route = |present: &Arc<Present>| Route {
            target: match present.address {
                SocketAddr::V4(_) => DialTarget::Ip { v4: Some(present.address), v6: None, prefer_v6 },
                SocketAddr::V6(_) => DialTarget::Ip { v4: None, v6: Some(present.address), prefer_v6 },
            },
            key: Arc::clone(present.key.key()),
            present: Some(Arc::clone(present)),
        };
        order.into_iter().map(route).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::definition;
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
