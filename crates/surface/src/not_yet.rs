//! What is accepted but not implemented yet: parameters and their bits for features that this version lacks.
//!
//! A site's command line must still work, so none of them is refused; but anyone who uses one is told, by `param.set` and by
//! `-p`. When a feature is implemented its row is removed, and with it every such message. What will never be needed here is not in this table: see
//! [`crate::parameter::ACCEPTED_ONLY`].

use crate::parameter::value;
use crate::parameter::{BitRow, DEBUG_BITS, FEATURE_BITS, Parameters};

/// A feature that is missing.
#[derive(Debug)]
pub struct NotYet {
    /// The message to its users.
    pub text: &'static str,
    /// Parameters that have a meaning only with it.
    pub parameters: &'static [&'static str],
    /// Bits of the parameter `feature`.
    pub feature_bits: &'static [&'static str],
    /// Bits of the parameter `debug`.
    pub debug_bits: &'static [&'static str],
}

/// The rows.
pub static NOT_YET: &[NotYet] = &[NotYet {
    text: "HTTP/2 is not part of this version: clients are served over HTTP/1 only",
    parameters: &[
        "h2_header_table_size",
        "h2_initial_window_size",
        "h2_max_concurrent_streams",
        "h2_max_frame_size",
        "h2_max_header_list_size",
        "h2_rx_window_increment",
        "h2_rx_window_low_water",
        "h2_rxbuf_storage",
    ],
    feature_bits: &["http2"],
    debug_bits: &["h2_nocheck", "protocol"],
}];

/// The messages for a parameter with its present value; `name` may be an old name. A parameter at its default requests
/// nothing.
pub fn of_parameter(parameters: &Parameters, name: &str) -> impl Iterator<Item = &'static str> {
    let row = value::row(name);
    let name = row.map_or("", |row| row.name);
    let is_default = row.is_none_or(|row| value::is_default(parameters, row));
    let bits = match name {
        "feature" => parameters.feature,
        "debug" => parameters.debug,
        _ => 0,
    };
    let is_asked_for = move |not_yet: &&NotYet| {
        let (table, names): (&[BitRow], _) = match name {
            "feature" => (FEATURE_BITS, not_yet.feature_bits),
            _ => (DEBUG_BITS, not_yet.debug_bits),
        };
        let has_bit = table.iter().enumerate().any(|(place, bit)| bits >> place & 1 == 1 && names.contains(&bit.name));
        !is_default && (has_bit || not_yet.parameters.contains(&name))
    };
    NOT_YET.iter().filter(is_asked_for).map(|not_yet| not_yet.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{ACCEPTED_ONLY, PARAMETERS};

    #[test]
    fn what_does_not_act_is_marked_so_where_it_is_shown() {
        for row in NOT_YET {
            for name in row.parameters {
                let parameter = PARAMETERS.iter().find(|parameter| parameter.name == *name).unwrap();
                assert!(parameter.flags & ACCEPTED_ONLY != 0, "{name}");
            }
            for (table, names) in [(FEATURE_BITS, row.feature_bits), (DEBUG_BITS, row.debug_bits)] {
                for name in names {
                    assert!(table.iter().any(|bit| bit.name == *name && bit.is_accepted_only), "{name}");
                }
            }
        }
        let is_listed = |name: &str| NOT_YET.iter().any(|row| row.parameters.contains(&name));
        assert!(PARAMETERS.iter().filter(|row| row.name.starts_with("h2_")).all(|row| is_listed(row.name)));
    }

    #[test]
    fn only_what_is_asked_for_is_told() {
        let mut parameters = Parameters::default();
        let count = |parameters: &Parameters, name| of_parameter(parameters, name).count();
        for row in PARAMETERS {
            assert_eq!(count(&parameters, row.name), 0, "{}", row.name);
        }
        parameters.feature |= crate::parameter::feature::HTTP2;
        assert!(of_parameter(&parameters, "feature").all(|text| text.starts_with("HTTP/2 ")));
        assert_eq!((count(&parameters, "feature"), count(&parameters, "debug")), (1, 0));
        parameters.feature = crate::parameter::feature::SHORT_PANIC;
        assert_eq!(count(&parameters, "feature"), 0);
        parameters.debug = crate::parameter::debug::H2_NOCHECK;
        parameters.h2_header_table_size = 7;
        assert_eq!((count(&parameters, "debug"), count(&parameters, "h2_header_table_size")), (1, 1));
    }
}
