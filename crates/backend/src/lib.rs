//! Origins: their definition and health, connections to them, and the choice of directors.
//!
//! | module | content |
//! | --- | --- |
//! | [`mod@backend`] | one backend: definition, counters, health, limits |
//! | [`health`] | the operator's setting and the probe's result |
//! | [`breaker`] | the circuit breaker fed by its fetches |
//! | `retry_budget` | budget of repeated fetches |
//! | `hold` | time during which an action is suspended |
//! | `addresses` | present addresses of a backend whose name is looked up repeatedly |
//! | [`follow`] | the task that looks up its name |
//! | [`probe`] | the probe's results so far: its window |
//! | [`finding`] | probe results reused for an equivalent backend |
//! | [`probing`] | the task that repeats the check |
//! | [`dial`] | the traits behind which `net` opens sockets |
//! | [`tls_settings`] | TLS settings of connections |
//! | [`pool`] | idle connections of one event loop |
//! | [`pool_key`] | destinations of idle connections |
//! | [`open`] | from a backend to a connection, or the reason why there is none |
//! | [`random`] | the generator that `debug.srandom` seeds |
//! | [`director`] | choice and kinds of directors, and the table of those of one loaded VCL |
//! | [`saint_mode`] | saint mode: the requests for which a backend counts as sick |
//! | [`dns_names`] | backends by name, looked up repeatedly |
//! | [`listing`] | facts about them for operators |
//!
//! *Invariants:* no sockets here (that is `net`), no VCL here (that is `vcl` and `vmods`). A
//! [`Backend`] and the [`Directors`] are shared by all event loops; a [`Pool`] belongs to one.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod addresses;
pub mod backend;
pub mod breaker;
mod connected;
mod details;
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
pub mod tls_settings;

pub use backend::Backend;
pub use breaker::{Breaker, BreakerFacts, Transition};
pub use connected::Connected;
pub use dial::{Dial, DialTarget, Dialling, Ends, Stream, TlsFailure};
pub use director::choice::{ClientName, Note, Notes, ResolveContext};
pub use director::kind::DirectorKind;
pub use director::table::Directors;
pub use director::table::resolve::NoBackend;
pub use dns_names::DnsNames;
pub use dns_names::attempts::{Attempts, Resolved};
pub use finding::{Finding, Findings};
pub use follow::{FollowSettings, follow_name};
pub use open::{BackendConnection, OpenError, OpenRequest, open};
pub use pool::Pool;
pub use probing::{rest_probe, run_probe};
pub use random::TestableRandom;
pub use saint_mode::TroubleList;
pub use tls_settings::TlsSettings;
