//! Words of VCL that came with Varnish 7.2 to 8.0 and have nothing behind them here: what the compiler says of them.
//!
//! A word that gets something behind it leaves this table for one of the others.
//! Source: the release notes and the reference pages of those releases.

/// One word.
#[derive(Debug)]
pub struct NewerRow {
    /// The word; `.*` at the end stands for all that begin so.
    pub name: &'static str,
    /// The release that brought it.
    pub since: &'static str,
    /// What to do without it.
    pub instead: &'static str,
}

const fn newer(name: &'static str, since: &'static str, instead: &'static str) -> NewerRow {
    NewerRow { name, since, instead }
}

/// Variables.
pub static NEWER_VARIABLES: &[NewerRow] = &[
    newer("req.trace", "7.4", "VCL_trace records are chosen with the parameter vsl_mask"),
    newer("bereq.trace", "7.4", "VCL_trace records are chosen with the parameter vsl_mask"),
    newer("bereq.task_deadline", "7.5", "the parameter pipe_timeout ends idle pipes"),
    newer("beresp.transit_buffer", "7.3", "how far a fetch runs ahead of a passed client is bounded by itself"),
    newer("req.filters", "7.7", "bodies of requests go to the origin as they came"),
    newer("bereq.filters", "7.7", "bodies of requests go to the origin as they came"),
    newer("obj_stale.*", "8.0", "a 304 of the origin renews the object with its headers merged"),
];

/// Subroutines.
pub static NEWER_METHODS: &[NewerRow] = &[newer(
    "vcl_backend_refresh",
    "8.0",
    "a 304 of the origin goes to vcl_backend_response, where beresp.was_304 is true",
)];

/// Actions.
pub static NEWER_ACTIONS: &[NewerRow] = &[
    newer("beresp", "8.0", "it belongs to vcl_backend_refresh"),
    newer("merge", "8.0", "it belongs to vcl_backend_refresh"),
    newer("obj_stale", "8.0", "it belongs to vcl_backend_refresh"),
];

/// Attributes of backends and probes.
pub static NEWER_FIELDS: &[NewerRow] = &[
    newer("via", "7.3", "name the proxy as the backend"),
    newer("authority", "7.3", "it belongs to .via"),
    newer("expect_close", "7.3", "probes ask the backend to close the connection"),
];

/// The row of a word, without regard to case.
#[must_use]
pub fn find(rows: &'static [NewerRow], word: &str) -> Option<&'static NewerRow> {
    let lower = word.to_ascii_lowercase();
    rows.iter().find(|row| match row.name.strip_suffix('*') {
        Some(prefix) => lower.starts_with(prefix),
        None => row.name == lower,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcl::{Action, METHODS, VARIABLES};

    #[test]
    fn what_is_newer_is_not_there() {
        for row in NEWER_VARIABLES {
            assert!(VARIABLES.iter().all(|known| known.name != row.name), "{}", row.name);
        }
        assert!(METHODS.iter().all(|known| find(NEWER_METHODS, known.name).is_none()));
        assert!(Action::ALL.iter().all(|known| find(NEWER_ACTIONS, known.name()).is_none()));
        assert!(find(NEWER_VARIABLES, "Obj_Stale.http.x").is_some());
    }
}
