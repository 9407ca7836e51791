//! The whole engine in memory under a virtual clock: a [`World`] with VCL, origins and clients.
//!
//! Nothing here touches a socket or the wall clock. Connections are pairs of in-memory streams, and
//! virtual time advances only when all tasks wait. The simulation is made of the same parts.

#![allow(dead_code, unused_imports, reason = "each test module uses a part of it")]

mod client;
pub mod counting;
pub mod measured;
mod origin;
pub mod quic;
mod resolver;
mod streams;
mod world;

pub use client::{Client, Response};
pub use origin::{OriginRequest, OriginStream, always, serve_each};
pub use resolver::{Table, look_up};
pub use streams::StreamClient;
pub use world::{ORIGIN, START, World, run, run_with};
