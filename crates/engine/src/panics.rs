//! Who hears of a panic that cost a request.

use std::sync::OnceLock;

/// Takes the text of a panic.
pub type PanicListener = Box<dyn Fn(&str) + Send + Sync>;

/// Who is told when a request panics; nobody at first.
#[derive(Default)]
pub struct PanicHook(OnceLock<PanicListener>);

impl PanicHook {
    /// Sets who is told; only the first call counts.
    pub fn set(&self, hook: PanicListener) {
        let _ = self.0.set(hook);
    }

    /// Tells it.
    pub(crate) fn tell(&self, text: &str) {
        if let Some(hook) = self.0.get() {
            hook(text);
        }
    }
}
