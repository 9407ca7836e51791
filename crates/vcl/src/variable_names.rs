//! The variables of VCL 4 by their names.

use hashbrown::HashMap;
use std::sync::OnceLock;
use surface::vcl::{VARIABLES, VariableRow};

/// The rows of all variables whose names are complete.
pub(crate) fn names() -> &'static HashMap<&'static str, Vec<&'static VariableRow>> {
    static NAMES: OnceLock<HashMap<&'static str, Vec<&'static VariableRow>>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names: HashMap<&'static str, Vec<&'static VariableRow>> = HashMap::new();
        for row in VARIABLES {
            names.entry(row.name).or_default().push(row);
        }
        names
    })
}

/// The rows of a VCL 4 variable, by its lower-case name.
pub(crate) fn variable_rows(name: &str) -> &'static [&'static VariableRow] {
    names().get(name).map_or(&[], Vec::as_slice)
}
