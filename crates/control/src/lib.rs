//! The connection between manager and worker: messages, and descriptors that are passed on.
//!
//! Both processes use this crate and neither the other's. [`messages`] defines the messages over
//! their socket pair, [`inheritance`] finds the descriptors that a process was started with, and
//! [`listening`] sets the option of listening sockets that no safe library has, [`canary`] is what
//! the messages say of a VCL on trial, [`fleet`] what they say of a fleet. Not here: who sends
//! what and when (`manager::life`, `worker::run`). Next file: `messages.rs`.

#![warn(missing_docs)]

pub mod canary;
pub mod fleet;
pub mod inheritance;
pub mod listening;
pub mod messages;
