//! Fail: there is no object, or half of one; everybody who waits for it is told.

use super::{Fetch, FetchAnswer, Step};

impl Fetch {
    pub(super) fn fail(&mut self) -> Step {
        if let Some(object) = self.object.take() {
            object.fail();
            if self.is_stored {
                self.context.engine.cache.remove(&object);
            }
        }
        self.busy = None;
        let answer = std::mem::replace(&mut self.answer, FetchAnswer::Failed);
        // The client's side may be gone, too.
        let _ = self.report(answer);
        Step::Done
    }
}
