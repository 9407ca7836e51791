//! Attempts of one fetch: the addresses of a name that it tries in turn until a connect succeeds.
//!
//! Each address of a name is a backend of its own ([`Domain`]). A fetch whose connect fails
//! continues with the next address. All attempts together take at most the time of one: each has
//! half of the remaining time, and the last one all of it. An address whose connect failed comes
//! after the others for a while ([`Backend::is_unreachable`]). Only connects are repeated: once
//! there is a connection, the usual rules for repeating a request apply. *Limit*:
//! [`DYNAMIC_ADDRESSES_MAX`] attempts. Compat: libvmod-dynamic tries one address.

use crate::backend::Backend;
use crate::dns_names::domain::Domain;
use crate::open::{OpenRequest, connect_limit};
use std::sync::Arc;
use std::time::Duration;
use surface::limits::DYNAMIC_ADDRESSES_MAX;
use tokio::time::Instant;

/// Shortest time limit of an attempt; 0 would mean no limit.
const SHARE_MIN: Duration = Duration::from_millis(1);

/// The backend of one fetch.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The backend.
    pub backend: Arc<Backend>,
    /// The name of which the backend is an address; `None` for all other backends.
    pub name: Option<Arc<Domain>>,
}

impl From<Arc<Backend>> for Resolved {
    fn from(backend: Arc<Backend>) -> Resolved {
        Resolved { backend, name: None }
    }
}

/// See the module header. Empty for a backend that is not an address of a name.
#[derive(Debug, Default)]
pub struct Attempts(Option<Trying>);

#[derive(Debug)]
struct Trying {
    name: Arc<Domain>,
    tried: Vec<Arc<Backend>>,
    /// Time limit of all attempts; set when the first begins.
    due: Option<Instant>,
}

impl Attempts {
    /// Attempts whose first backend is the resolved one.
    #[must_use]
    pub fn of(resolved: &Resolved) -> Attempts {
        let tried = vec![Arc::clone(&resolved.backend)];
        Attempts(resolved.name.clone().map(|name| Trying { name, tried, due: None }))
    }

    /// Limits the connect of the next attempt to its share of the time of a single one.
    pub fn limit(&mut self, request: &mut OpenRequest<'_>) {
        let whole = connect_limit(request);
        let share = self.share(whole);
        if share < whole {
            request.connect_timeout = Some(share.as_secs_f64());
        }
    }

    /// Time limit of the next attempt; `whole` is that of a single one.
    fn share(&mut self, whole: Duration) -> Duration {
        let Some(Trying { name, tried, due }) = &mut self.0 else { return whole };
        let now = Instant::now();
        let left = due.get_or_insert(now + whole).saturating_duration_since(now);
        let has_others = name.another(tried, |backend| backend.is_healthy() && !backend.is_unreachable()).is_some();
        (if has_others { left / 2 } else { left }).max(SHARE_MIN)
    }

    /// The next backend after a failed connect; `None` if no other one `is_usable`, or no time is
    /// left.
    pub(crate) fn next(&mut self, is_usable: impl Fn(&Arc<Backend>) -> bool) -> Option<Arc<Backend>> {
        let Trying { name, tried, due } = self.0.as_mut()?;
        if tried.len() >= DYNAMIC_ADDRESSES_MAX || due.is_some_and(|due| Instant::now() >= due) {
            return None;
        }
        let next = name.another(tried, is_usable)?;
        tried.push(Arc::clone(&next));
        Some(next)
    }
}
