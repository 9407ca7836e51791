//! Tests of the whole language from outside: literate tests, the tables against the compiler, the
//! evaluator against a naive one.
//!
//! The compiler's environment is in `world`, the host of programs in `host`.

mod host;
mod hostile;
mod literate;
mod tables;
mod world;
