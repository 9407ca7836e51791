//! Directors: sets of backends and other directors that choose a member for each fetch.
//!
//! The layers; each depends only on those above it in this table:
//!
//! | module | content |
//! | --- | --- |
//! | [`choice`] | the input of a choice: request, members, and their properties |
//! | [`interface`] | the interface of a kind of director |
//! | [`kind`] | the kinds of directors, one file each |
//! | [`table`] | all backends and directors of one loaded VCL |
//! | [`trail`] | the backends that one fetch of an old dialect tries, in order |
//!
//! A director refers to its members by [`vcl_run::value::DirectorId`] and queries
//! [`choice::Candidates`] for their health, so directors nest.

pub mod choice;
mod interface;
pub mod kind;
pub mod table;
pub mod trail;

#[cfg(test)]
pub(crate) mod tests;
