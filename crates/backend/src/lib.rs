//! Origins: what they are, whether they are healthy, how a fetch gets a connection to one, and how directors choose.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@backend`] | one backend: definition, counters, health, limits |
//! | [`health`] | the operator's setting and the probe's result |
//! | [`trust`] | what the fetches say: failures set it aside |
//! | `retry_budget` | how many fetches may be repeated |
//! | `hold` | how long something is not tried again |
//! | `addresses` | where it is, if its name is followed |
//! | [`follow`] | the task that looks up its name |
//! | [`probe`] | the probe's results so far: its window |
//! | [`finding`] | what a probe has found, for another backend that is the same to it |
//! | [`probing`] | the task that repeats the check |
//! | [`dial`] | the traits behind which `net` opens sockets |
//! | [`terms`] | how connections speak TLS |
//! | [`pool`] | idle connections of one event loop |
//! | [`pool_key`] | where idle connections lead |
//! | [`open`] | from a backend to a connection, or the reason why there is none |
//! | [`random`] | the generator that `debug.srandom` seeds |
//! | [`director`] | how directors choose, their kinds, and the table of all directors of one loaded VCL |
//! | [`saint_mode`] | saint mode: for which requests a backend counts as sick |
//! | [`dns_names`] | backends by name, which are looked up again and again |
//! | [`listing`] | what operators can learn about them |
//!
//! *Invariants:* no sockets here (that is `net`), no VCL here (that is `vcl` and `vmods`). A [`Backend`] and the
//! [`Directors`] are shared by all event loops; a [`Pool`] belongs to one.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod addresses;
pub mod backend;
pub mod dial;
pub mod director;
pub mod dns_names;
pub mod finding;
pub mod follow;
pub mod health;
mod hold;
pub mod listing;
#[cfg(test)]
mod memory;
pub mod open;
pub mod pool;
pub mod pool_key;
pub mod probe;
pub mod probing;
pub mod random;
mod retry_budget;
pub mod saint_mode;
pub mod terms;
pub mod trust;

pub use backend::Backend;
pub use dial::{Dial, DialTarget, Dialling, Ends, Stream, TlsFailure};
pub use director::choice::{ClientName, Note, Notes, ResolveContext};
pub use director::kind::DirectorKind;
pub use director::table::Directors;
pub use director::table::resolve::NoBackend;
pub use dns_names::DnsNames;
pub use finding::{Finding, Findings};
pub use follow::{FollowTerms, follow_name};
pub use open::{BackendConnection, OpenError, OpenRequest, open};
pub use pool::Pool;
pub use probing::{rest_probe, run_probe};
pub use random::TestableRandom;
pub use saint_mode::TroubleList;
pub use terms::TlsTerms;
pub use trust::{Trust, TrustFacts, Turn};
