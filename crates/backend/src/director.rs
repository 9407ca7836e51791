//! Directors: sets of backends and other directors that choose a member for each fetch.
//!
//! The layers; each knows only those above it in this table:
//!
//! | module | what |
//! | --- | --- |
//! | [`choice`] | the input of a choice: request, members, and what can be learnt about them |
//! | [`kind`] | the kinds of directors, one file each |
//! | [`table`] | all backends and directors of one loaded VCL |
//! | [`trail`] | which backends one fetch of an old dialect tries, one after the other |
//!
//! A director knows its members by [`vcl_run::value::DirectorId`] and asks [`choice::Candidates`] about their health, so
//! directors nest.

pub mod choice;
pub mod kind;
pub mod table;
pub mod trail;

#[cfg(test)]
pub(crate) mod tests;
