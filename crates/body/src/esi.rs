//! Edge Side Includes: a page is parsed while it is stored, and assembled from its pieces while it
//! is sent.
//!
//! ```text
//! page ─▶ machine (filters `esi`, `esi_gzip`) ─▶ stored body, unchanged or compressed
//!             └ parser ─▶ runs ─▶ plan, stored with the body        notes ─▶ log
//!
//! stored body + plan ─▶ verbatim pieces ─┐
//! fragments, plain or gzip ─▶ joining ───┴─▶ response to the client
//! ```
//!
//! Nothing here fetches or sends: the parser and the joining of gzip streams are machines without
//! I/O; the inclusion of fragments is done by the engine. *Invariants:* the stored body is the
//! whole page, so that it can also be sent unchanged; a plan covers it exactly; the plan does not
//! depend on the pieces in which the page was received.
//!
//! Reading order: `plan`, `note`, `machine` (the filters), `parser`, `runs` (its marks become the
//! plan), `join`.

mod address;
mod deflate;
mod huffman;
pub mod join;
pub(crate) mod machine;
pub(crate) mod note;
mod packer;
pub(crate) mod parser;
mod plan;
mod runs;
pub(crate) mod sum;
mod syntax;

pub use machine::{Esi, EsiGzip, Page};
pub use note::{Note, NoteLevel};
pub use parser::Leniency;
pub use plan::{Instruction, Instructions, Plan, PlanWriter};
