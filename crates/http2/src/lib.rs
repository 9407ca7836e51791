//! HTTP/2 without connections: the server's side as a machine, and the parts that others share.
//!
//! [`Machine`] is a connection with a client: bytes in, requests out; responses in, bytes out. It
//! keeps the protocol's rules, and the limits for clients that abuse it: each frame that costs work
//! and carries nothing is charged to an [`Allowance`], each request that is given up to a budget of
//! [`Resets`]. Connections to origins use the library `h2`; the crate `engine` checks their frames
//! with [`FrameReader`].
//!
//! Pure machines over bytes; time is an argument. *Invariant:* memory is bounded for any input.
//!
//! Reading order: `frame`, `reader`, `hpack`, `head`, `streams`, `windows`, `order`, `machine`;
//! `allowance`, `resets`, `verdict`, `priority`, `upgrade`. Source: RFC 9113, RFC 7541, RFC 9218.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod allowance;
pub mod frame;
pub mod head;
pub mod hpack;
mod machine;
mod order;
mod priority;
mod reader;
mod resets;
mod streams;
pub mod upgrade;
mod verdict;
mod windows;

pub use allowance::Allowance;
pub use machine::{BodyPart, Machine, MachineSettings, NewRequest, Observer, Sending, StreamGone, Traffic};
pub use priority::{Priority, WaitingPriorities};
pub use reader::{Found, FrameReader};
pub use resets::{ResetLimits, Resets};
pub use verdict::{Abuse, Verdict};
