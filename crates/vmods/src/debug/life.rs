//! debug: what becomes of a VCL that imports it. It logs when the VCL goes warm or cold, can refuse to go warm, and can keep the
//! VCL from going cold or from ending.

use crate::context::VmodContext;
use crate::done;
use parking_lot::Mutex;
use surface::parameter::Parameters;
use vcl_run::host::{Called, Failure};
use vcl_run::program::Program;
use vcl_run::value::Value;

/// What the functions of debug have said about the life of one VCL.
#[derive(Debug, Default)]
pub struct DebugLife(Mutex<Wishes>);

#[derive(Debug, Default)]
struct Wishes {
    /// The VCL was told that it is warm, and not yet that it is cold.
    is_told_warm: bool,
    /// `debug.vcl_prevent_cold()`
    prevents_cold: bool,
    /// `debug.vcl_discard_delay()`, seconds.
    discard_delay: f64,
    /// Until when the VCL may not end, seconds since 1970.
    held_until: f64,
}

/// Whether a program imports debug.
fn imports_debug(program: &Program) -> bool {
    program.vmods.iter().any(|vmod| vmod == "debug")
}

impl DebugLife {
    /// The VCL is to go warm. Returns whether that is to be logged.
    ///
    /// # Errors
    /// The text for the CLI: a `max_esi_depth` of 42 asks to refuse that.
    pub fn warm(&self, program: &Program, parameters: &Parameters) -> Result<bool, String> {
        if !imports_debug(program) {
            return Ok(false);
        }
        if parameters.max_esi_depth == 42 {
            return Err("max_esi_depth is not the answer.".to_owned());
        }
        Ok(!std::mem::replace(&mut self.0.lock().is_told_warm, true))
    }

    /// The VCL is cold, and nothing runs on it. Returns whether that is to be logged. `now` is seconds since 1970.
    pub fn cold(&self, now: f64) -> bool {
        let mut wishes = self.0.lock();
        let is_news = std::mem::take(&mut wishes.is_told_warm);
        if is_news {
            wishes.held_until = now + wishes.discard_delay;
        }
        is_news
    }

    /// Whether the VCL still has to learn that it is cold.
    #[must_use]
    pub fn awaits_cold(&self) -> bool {
        self.0.lock().is_told_warm
    }

    /// Whether the VCL may not go cold.
    #[must_use]
    pub fn prevents_cold(&self) -> bool {
        self.0.lock().prevents_cold
    }

    /// Whether the VCL, which is cold, may not end or become warm yet.
    #[must_use]
    pub fn is_cooling(&self, now: f64) -> bool {
        now < self.0.lock().held_until
    }
}

/// `debug.vcl_discard_delay()`
pub(crate) fn discard_delay(context: &mut dyn VmodContext, seconds: f64) -> Result<Called, Failure> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(Failure("debug.vcl_discard_delay(): the delay must be above 0".to_owned()));
    }
    context.instances().debug_life().0.lock().discard_delay = seconds;
    done(Value::Void)
}

/// `debug.vcl_prevent_cold()`, `debug.vcl_allow_cold()`
pub(crate) fn prevent_cold(context: &mut dyn VmodContext, prevents: bool) -> Value {
    context.instances().debug_life().0.lock().prevents_cold = prevents;
    Value::Void
}
