//! The language as a whole, from outside: literate tests, the tables against the compiler, the evaluator against a naive one.
//!
//! What the compiler asks of the outside is in `world`, what a program asks of its host in `host`.

mod host;
mod hostile;
mod literate;
mod tables;
mod world;
