//! Fail: there is no object, or an incomplete one; all requests that wait for it are notified.

use super::task::Kept;
use super::{Fetch, FetchAnswer, Step};

impl Fetch {
    pub(super) fn fail(&mut self) -> Step {
        let Kept { object, is_stored, .. } = &self.task.attempt.kept;
        if let Some(object) = object {
            object.fail();
            if *is_stored {
                self.context.engine.cache.remove(object);
            }
        }
        self.task.attempt.kept = Kept::default();
        self.task.life.busy = None;
        let answer = std::mem::replace(&mut self.task.life.answer, FetchAnswer::Failed);
        // The client's side may be gone as well.
        let _ = self.report(answer);
        Step::Done
    }
}
