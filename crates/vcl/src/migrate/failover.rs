//! Behaviour of a director of an old dialect after a member without a connection: it tried another
//! one.
//!
//! VCL 4.1 cannot do that. The nearest equivalent is `return (retry)` in `vcl_backend_error`. It
//! cannot distinguish this failure from others, and does not send a body again: so GET and HEAD
//! requests are retried after any failure, and others never. Directors that choose anew for each
//! fetch find the next member themselves; the others are asked for it.

use super::writer::{Director, Writer, generation_of};
use crate::dialect::DirectorPolicy;
use surface::vcl::Generation;

/// Number of levels of nested directors that are considered.
pub(super) const DIRECTORS_DEEP_MAX: u32 = 4;
/// More tries than are ever made: counting stops here, regardless of the number of members.
const TRIES_COUNTED_MAX: u32 = 16;
/// The parameter `max_retries`.
const RETRIES_MAX: u32 = 4;

impl Writer<'_> {
    /// The directors, by name, that are asked for another member when one yields no connection.
    pub(super) fn asked_again(&self) -> Vec<Again> {
        let mut names: Vec<&String> = self.directors.keys().collect();
        names.sort();
        names.into_iter().flat_map(|name| self.again(name)).collect()
    }

    fn again(&self, name: &str) -> Vec<Again> {
        let Some(director) = self.directors.get(name) else { return Vec::new() };
        let retries = self.retries_of(director);
        let Some(value) = self.backend_value(name, "bereq").filter(|_| retries > 0) else { return Vec::new() };
        let name = self.director_name(name);
        // The number of this try as text, empty for the first.
        const TRY: &str = "regsub(bereq.retries, \"^0$\", \"\")";
        let again = |test: String, next: Option<String>| Again { test, next, retries };
        match director.policy {
            // They choose anew for every fetch.
            DirectorPolicy::RoundRobin | DirectorPolicy::Random => {
                vec![again(format!("bereq.backend == {value}"), None)]
            }
            DirectorPolicy::Client => vec![again(
                format!("bereq.backend == {name}.backend(client.identity + {TRY})"),
                Some(format!("{name}.backend(client.identity + (bereq.retries + 1))")),
            )],
            DirectorPolicy::Hash => vec![again(
                format!("bereq.backend == {value} || bereq.backend == {name}.backend(alt = bereq.retries)"),
                Some(format!("{name}.backend(alt = bereq.retries + 1)")),
            )],
            DirectorPolicy::Fallback => {
                let rest = |number: usize| format!("{}.backend()", fallback_rest(&name, number));
                let rests = fallback_rests(director.members.len(), retries);
                let mut tries = 0;
                let mut all = Vec::new();
                for (number, member) in director.members.iter().enumerate().take(retries as usize + 1) {
                    let test = format!("bereq.backend == {}", rest(number));
                    tries += self.tries_for(member, DIRECTORS_DEEP_MAX);
                    // If a member is a director, it first tries its own members, and leaves one try
                    // for each member after it.
                    let behind = rests.saturating_sub(number) as u32;
                    let own = tries.saturating_sub(1).min(retries.saturating_sub(behind));
                    if self.directors.contains_key(member) && own > 0 {
                        all.push(Again { test: test.clone(), next: None, retries: own });
                    }
                    if number < rests {
                        all.push(again(test, Some(rest(number + 1))));
                    }
                }
                all
            }
            DirectorPolicy::Dns => Vec::new(),
        }
    }

    /// Number of times that VCL may ask a director again for one fetch. Before 3.0 directors that
    /// choose by a key chose the same member again.
    pub(super) fn retries_of(&self, director: &Director) -> u32 {
        let by_key = matches!(director.policy, DirectorPolicy::Client | DirectorPolicy::Hash);
        let has_others =
            director.policy != DirectorPolicy::Dns && !(by_key && generation_of(self.dialect) < Generation::V3);
        match director.policy {
            _ if !has_others => 0,
            // Each retry takes another member, so more retries would be useless.
            DirectorPolicy::Hash => (director.members.len() as u32).saturating_sub(1).min(RETRIES_MAX),
            _ => self.tries_in(director, DIRECTORS_DEEP_MAX).saturating_sub(1).min(RETRIES_MAX),
        }
    }

    /// Number of connections that a director tries: the number of its choices, or of the tries of
    /// the members themselves.
    pub(super) fn tries_in(&self, director: &Director, deep: u32) -> u32 {
        let mut own = 0;
        for member in &director.members {
            own += self.tries_for(member, deep);
            if own > TRIES_COUNTED_MAX {
                break;
            }
        }
        match director.policy {
            DirectorPolicy::Dns => 1,
            DirectorPolicy::Fallback => own,
            _ if own as usize > director.members.len() => own.max(director.tries),
            _ => director.tries,
        }
    }

    fn tries_for(&self, member: &str, deep: u32) -> u32 {
        match self.directors.get(member).filter(|_| deep > 0) {
            Some(director) => self.tries_in(director, deep - 1).clamp(1, TRIES_COUNTED_MAX),
            None => 1,
        }
    }
}

/// A way to ask a director again.
pub(super) struct Again {
    /// The condition that the fetch went to this director.
    pub(super) test: String,
    /// The backend for the next try, if it differs from the default one.
    pub(super) next: Option<String>,
    /// Maximum number of retries.
    pub(super) retries: u32,
}

/// Number of additional fallback directors that are needed, each with one leading member less.
pub(super) fn fallback_rests(members: usize, retries: u32) -> usize {
    members.saturating_sub(1).min(retries as usize)
}

/// The fallback director without the first `number` members.
pub(super) fn fallback_rest(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}_from_{}", number + 1) }
}
