//! The result of linting one file.

use surface::lint::Level;
use vcl::{CompileError, Linted};

/// The result for one file.
pub(super) struct Report {
    /// The name of the main file.
    pub(super) name: String,
    pub(super) result: Result<Linted, CompileError>,
}

impl Report {
    pub(super) fn count(&self, level: Level) -> usize {
        match &self.result {
            Ok(linted) => linted.findings.iter().filter(|finding| finding.rule.row().level == level).count(),
            Err(error) if level == Level::Error => error.diagnostics.len() + error.hidden,
            Err(_) => 0,
        }
    }

    /// True if something is of this level or above.
    pub(super) fn is_denied(&self, deny: Level) -> bool {
        let is_above = |level: &Level| *level >= deny && self.count(*level) > 0;
        self.result.is_err() || Level::ALL.iter().any(is_above)
    }
}
