//! HTTP/2 as a guard at the connection sees it: the frames of both directions, what they cost, and when it is enough.
//!
//! The protocol itself is spoken by the crate `h2` in `engine`. This one stands between that and the socket: it counts, remembers
//! what a limit needs, and gives a verdict that ends the connection. The guard changes no byte; only `mending` and `windows` do. Pure machines
//! over bytes; time is an argument. *Invariant:* neither the verdict nor the place where it falls depends on the pieces in which the
//! bytes come.
//!
//! Reading order: `frame`, `reader`, `verdict`, `resets`, `allowance`, `streams`, `watch`, `mending`, `windows`, `upgrade`. Source: RFC 9113, RFC 9218 §7.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod allowance;
pub mod frame;
mod mending;
mod reader;
mod resets;
mod streams;
pub mod upgrade;
mod verdict;
mod watch;
mod windows;

pub use allowance::Allowance;
pub use mending::Mending;
pub use reader::{Found, FrameReader};
pub use resets::{ResetLimits, Resets};
pub use verdict::{Abuse, Verdict};
pub use watch::{Observer, PriorityUpdate, Traffic, Watch, WatchLimits};
pub use windows::{Heard, Outgoing, Windows};
