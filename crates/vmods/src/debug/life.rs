//! debug: lifecycle of a VCL that imports it. It logs when the VCL becomes warm or cold, can refuse
//! to become warm, and can prevent the VCL from becoming cold or from being discarded.

use parking_lot::Mutex;
use surface::parameter::Parameters;
use vcl_run::program::Program;

/// Requests of debug's functions about the lifecycle of one VCL.
#[derive(Debug, Default)]
pub struct DebugLife(Mutex<LifeSettings>);

#[derive(Debug, Default)]
struct LifeSettings {
    /// The VCL was notified that it is warm, and not yet that it is cold.
    is_told_warm: bool,
    /// `debug.vcl_prevent_cold()`
    prevents_cold: bool,
    /// `debug.vcl_discard_delay()`, seconds.
    discard_delay: f64,
    /// Time until which the VCL may not end, in seconds since 1970.
    held_until: f64,
}

/// True if a program imports debug.
fn imports_debug(program: &Program) -> bool {
    program.vmods.iter().any(|vmod| vmod == "debug")
}

impl DebugLife {
    /// The VCL is to become warm. Returns true if that is to be logged.
    ///
    /// # Errors
    /// The text for the CLI: a `max_esi_depth` of 42 refuses the change.
    pub fn warm(&self, program: &Program, parameters: &Parameters) -> Result<bool, String> {
        if !imports_debug(program) {
            return Ok(false);
        }
        if parameters.max_esi_depth == 42 {
            return Err("max_esi_depth is not the answer.".to_owned());
        }
        Ok(!std::mem::replace(&mut self.0.lock().is_told_warm, true))
    }

    /// The VCL is cold, and nothing runs on it. Returns true if that is to be logged. `now` is
    /// seconds since 1970.
    pub fn cold(&self, now: f64) -> bool {
        let mut settings = self.0.lock();
        let is_news = std::mem::take(&mut settings.is_told_warm);
        if is_news {
            settings.held_until = now + settings.discard_delay;
        }
        is_news
    }

    /// True if the VCL has not yet been notified that it is cold.
    #[must_use]
    pub fn awaits_cold(&self) -> bool {
        self.0.lock().is_told_warm
    }

    /// True if the VCL may not become cold.
    #[must_use]
    pub fn prevents_cold(&self) -> bool {
        self.0.lock().prevents_cold
    }

    /// True if the VCL, which is cold, may not end or become warm yet.
    #[must_use]
    pub fn is_cooling(&self, now: f64) -> bool {
        now < self.0.lock().held_until
    }

    /// Sets the time for which the VCL, once cold, may not end, in seconds.
    pub(crate) fn set_discard_delay(&self, seconds: f64) {
        self.0.lock().discard_delay = seconds;
    }

    /// Allows or prevents that the VCL becomes cold.
    pub(crate) fn set_prevents_cold(&self, prevents: bool) {
        self.0.lock().prevents_cold = prevents;
    }
}
