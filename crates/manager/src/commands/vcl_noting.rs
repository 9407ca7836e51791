//! Enters changes of the active VCL in the history. Next file: `vcl_switch.rs`.

use crate::clock::now;
use crate::state::Manager;
use crate::vcl_history::{Change, Used};

/// Changes the table, and notes in the history if another VCL is active then.
pub(super) fn noting(manager: &Manager, who: &str, why: &str, change: impl FnOnce()) {
    let from = Used::active(&manager.vcls.borrow());
    change();
    if let Some(to) = Used::active(&manager.vcls.borrow()) {
        let change = Change { at: now(), who: who.to_owned(), from, to, why: why.to_owned() };
        manager.history.borrow_mut().add(change);
    }
}
