//! The last changes of the active VCL: when, by whom, from what to what, and why.
//!
//! Pure data. It is in the manager, so it survives workers, and it is handed to a successor, so it
//! survives an upgrade. It ends with the manager: the next one starts with the VCLs of its command
//! line. A label is kept with the VCL behind it, since a move of the active label is a change too.

use crate::vcl_table::{Kind, VclTable};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use surface::limits::{VCL_HISTORY_CHANGES_MAX, VCL_HISTORY_TEXT_BYTES_MAX};

/// An active VCL, or an active label with the VCL behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Name of the VCL or label.
    pub name: String,
    /// The VCL behind the label; `None` = not a label.
    #[serde(default)]
    pub target: Option<String>,
}

impl Used {
    /// The entry that is active now.
    #[must_use]
    pub fn active(table: &VclTable) -> Option<Used> {
        table.active().map(|name| Used::named(table, name))
    }

    /// The entry of that name.
    #[must_use]
    pub fn named(table: &VclTable, name: &str) -> Used {
        let target = match table.get(name).map(|entry| &entry.kind) {
            Some(Kind::Label(target)) => Some(target.clone()),
            Some(Kind::Program(_)) | None => None,
        };
        Used { name: name.to_owned(), target }
    }
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.target {
            Some(target) => write!(f, "{}({target})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Seconds since 1970.
    pub at: f64,
    /// The CLI connection that asked for it, or the part of the manager.
    pub who: String,
    /// The VCL before; `None` = there was none.
    pub from: Option<Used>,
    /// The VCL after.
    pub to: Used,
    /// The command, or the decision.
    pub why: String,
}

/// The last changes, the oldest first; at most [`VCL_HISTORY_CHANGES_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VclHistory(VecDeque<Change>);

impl VclHistory {
    /// The changes, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Change> {
        self.0.iter().rev()
    }

    /// Adds a change, unless nothing changed, and forgets the oldest one if there are too many.
    pub fn add(&mut self, mut change: Change) {
        if change.from.as_ref() == Some(&change.to) {
            return;
        }
        for text in [&mut change.who, &mut change.why] {
            let longest = VCL_HISTORY_TEXT_BYTES_MAX.min(text.len());
            text.truncate((0..=longest).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0));
        }
        self.0.push_back(change);
        while self.0.len() > VCL_HISTORY_CHANGES_MAX {
            self.0.pop_front();
        }
    }

    /// The history that another manager handed over, within the limits of this one.
    #[must_use]
    pub fn checked(self) -> VclHistory {
        let mut history = VclHistory::default();
        self.0.into_iter().for_each(|change| history.add(change));
        history
    }

    /// The VCL that was active before the last `steps` changes.
    ///
    /// # Errors
    /// The text for the CLI: so many changes are not known, or there was no VCL before.
    pub fn before(&self, steps: usize) -> Result<&Used, String> {
        let change = steps.checked_sub(1).and_then(|back| self.newest_first().nth(back));
        match change {
            Some(Change { from: Some(from), .. }) => Ok(from),
            Some(Change { to, .. }) => Err(format!("No VCL was active before {to}")),
            None => Err(match self.0.len() {
                0 => "No change of the active VCL is known".to_owned(),
                1 => "Only 1 change of the active VCL is known, see vcl.history".to_owned(),
                known => format!("Only {known} changes of the active VCL are known, see vcl.history"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(name: &str) -> Used {
        Used { name: name.to_owned(), target: None }
    }

    fn change(from: Option<&str>, to: &str) -> Change {
        Change { at: 1.0, who: "x".repeat(1000), from: from.map(used), to: used(to), why: "vcl.use".into() }
    }

    #[test]
    fn the_oldest_changes_are_forgotten_and_texts_are_bounded() {
        let mut history = VclHistory::default();
        history.add(change(None, "v0"));
        assert_eq!(history.before(1), Err("No VCL was active before v0".to_owned()));
        for number in 0..40 {
            history.add(change(Some(&format!("v{number}")), &format!("v{}", number + 1)));
        }
        history.add(change(Some("v40"), "v40"));
        assert_eq!(history.newest_first().count(), VCL_HISTORY_CHANGES_MAX);
        assert_eq!(history.newest_first().next().unwrap().who.len(), VCL_HISTORY_TEXT_BYTES_MAX);
        assert_eq!(history.before(1), Ok(&used("v39")));
        assert_eq!(history.before(VCL_HISTORY_CHANGES_MAX), Ok(&used("v24")));
        assert!(history.before(VCL_HISTORY_CHANGES_MAX + 1).is_err() && history.before(0).is_err());
    }

    #[test]
    fn a_history_that_was_handed_over_keeps_its_limits() {
        let long = VclHistory((0..100).map(|number| change(None, &format!("v{number}"))).collect());
        let checked = long.checked();
        assert_eq!(checked.newest_first().count(), VCL_HISTORY_CHANGES_MAX);
        assert_eq!(checked.newest_first().next().unwrap().to, used("v99"));
    }
}
