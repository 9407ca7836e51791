//! Directors: sets of backends and other directors that choose a member for each fetch.
//!
//! In layers, each of which knows only those above it in this table:
//!
//! | module | what |
//! | --- | --- |
//! | [`choice`] | what a director is given to choose with: request, members, and what can be learnt of them |
//! | [`kind`] | the kinds of directors, one file each |
//! | [`table`] | all backends and directors of one loaded VCL |
//! | [`trail`] | the way of one fetch of an old dialect through them |
//!
//! A director knows its members by [`vcl_run::value::DirectorId`] and asks [`choice::Candidates`] about their health, so
//! directors nest.

pub mod choice;
pub mod kind;
pub mod table;
pub mod trail;

#[cfg(test)]
pub(crate) mod tests;
