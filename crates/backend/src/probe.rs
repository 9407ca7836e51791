//! The state of a backend's probe: the definition, and the results of the checks so far. Nothing
//! runs here; the task that does the checks is in `probing.rs`.

pub mod outcome;
pub mod window;

use outcome::Outcome;
use shm::locks::ClassMutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use surface::counter::LockClass;
use vcl_run::program::ProbeDefinition;
use window::Window;

/// The shortest interval and timeout, regardless of the definition.
pub(crate) const DURATION_MIN: Duration = Duration::from_millis(1);
/// The longest interval and timeout.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);

/// The probe of one backend.
pub struct ProbeState {
    definition: ProbeDefinition,
    window: ClassMutex<Window>,
    is_announced: AtomicBool,
    is_checked: AtomicBool,
    key: OnceLock<u64>,
}

impl ProbeState {
    /// A probe that has not run yet.
    #[must_use]
    pub fn new(definition: ProbeDefinition) -> ProbeState {
        let window = Window::new(&definition);
        ProbeState {
            definition,
            window: ClassMutex::new(LockClass::Probe, window),
            is_announced: AtomicBool::new(false),
            is_checked: AtomicBool::new(false),
            key: OnceLock::new(),
        }
    }

    /// The definition.
    #[must_use]
    pub fn definition(&self) -> &ProbeDefinition {
        &self.definition
    }

    /// The results so far.
    #[must_use]
    pub fn window(&self) -> Window {
        *self.window.lock()
    }

    /// Adds a result; returns the new window.
    pub(crate) fn note(&self, outcome: &Outcome) -> Window {
        self.is_checked.store(true, Relaxed);
        let mut window = self.window.lock();
        window.note(outcome);
        *window
    }

    /// Discards all results; returns the new window.
    pub(crate) fn restart(&self) -> Window {
        let mut window = self.window.lock();
        *window = Window::new(&self.definition);
        *window
    }

    /// Continues from those results.
    pub(crate) fn resume(&self, window: Window) {
        *self.window.lock() = window;
    }

    /// True if there was a check in this process.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked.load(Relaxed)
    }

    /// A number for the checked properties, made on first use.
    pub(crate) fn key(&self, make: impl FnOnce() -> u64) -> u64 {
        *self.key.get_or_init(make)
    }

    /// Marks the probe as logged; returns true the first time.
    pub(crate) fn announce(&self) -> bool {
        !self.is_announced.swap(true, Relaxed)
    }
}

/// Seconds as a duration that can be added to a clock.
pub(crate) fn bounded(seconds: f64) -> Duration {
    // A value that no duration can express counts as the longest.
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(DURATION_MAX).clamp(DURATION_MIN, DURATION_MAX)
}
