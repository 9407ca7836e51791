//! The exercises over the corpus of the fuzzer, and over what a fuzzer begins with.

#![forbid(unsafe_code)]

mod corpus;
mod damaged;
mod generated;
