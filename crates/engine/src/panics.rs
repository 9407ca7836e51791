//! Reporting of panics in requests.

use std::sync::OnceLock;

/// Takes the text of a panic.
pub type PanicListener = Box<dyn Fn(&str) + Send + Sync>;

/// The function that is called when a request panics; none at first.
#[derive(Default)]
pub struct PanicHook(OnceLock<PanicListener>);

impl PanicHook {
    /// Sets the function; only the first call has an effect.
    pub fn set(&self, hook: PanicListener) {
        let _ = self.0.set(hook);
    }

    /// Reports a panic.
    pub(crate) fn tell(&self, text: &str) {
        if let Some(hook) = self.0.get() {
            hook(text);
        }
    }
}
