//! The exercises over the corpus of the fuzzer, and over initial inputs of a fuzzer.

#![forbid(unsafe_code)]

mod corpus;
mod damaged;
mod generated;
