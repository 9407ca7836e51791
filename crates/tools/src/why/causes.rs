//! The causes whose advice has been printed: it is not repeated for every request.

use std::collections::HashMap;

use surface::limits::WHY_CAUSES_MAX;

/// Causes with the request for which their advice was printed.
#[derive(Default)]
pub(super) struct Causes(HashMap<String, u64>);

impl Causes {
    /// The request for which the advice of this cause was printed; `None` for the first one, which
    /// is recorded. After [`WHY_CAUSES_MAX`] causes it starts anew.
    pub fn printed_for(&mut self, cause: &str, xid: u64) -> Option<u64> {
        if let Some(first) = self.0.get(cause) {
            return Some(*first);
        }
        if self.0.len() >= WHY_CAUSES_MAX {
            self.0.clear();
        }
        self.0.insert(cause.to_owned(), xid);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_found_again_and_bounded() {
        let mut causes = Causes::default();
        assert_eq!((causes.printed_for("a", 1), causes.printed_for("a", 2)), (None, Some(1)));
        for number in 0..2 * WHY_CAUSES_MAX {
            causes.printed_for(&number.to_string(), 3);
        }
        assert!(causes.0.len() <= WHY_CAUSES_MAX);
    }
}
