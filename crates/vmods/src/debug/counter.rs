//! debug: a counter of its own (`DEBUG.count`), which comes and goes as VCL says.

use crate::arguments::Arguments;
use crate::context::VmodContext;
use crate::done;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vcl_run::host::{Called, Failure};
use vcl_run::value::Value;

/// The counter, which all VCLs share.
#[derive(Debug, Default)]
pub(crate) struct DebugCounter {
    is_shown: AtomicBool,
    value: AtomicU64,
}

impl DebugCounter {
    /// Its value, while there is one.
    pub(crate) fn shown(&self) -> Option<u64> {
        self.is_shown.load(Ordering::Acquire).then(|| self.value.load(Ordering::Relaxed))
    }
}

/// `debug.vsc_new()`: only the first call counts.
pub(crate) fn create(context: &mut dyn VmodContext) -> Value {
    let counter = &context.shared().debug_counter;
    if !counter.is_shown.load(Ordering::Acquire) {
        counter.value.store(0, Ordering::Relaxed);
        counter.is_shown.store(true, Ordering::Release);
    }
    Value::Void
}

/// `debug.vsc_count()`
pub(crate) fn count(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let counter = &context.shared().debug_counter;
    if counter.shown().is_none() {
        return Err(Failure("debug.vsc_count(): there is no counter".to_owned()));
    }
    counter.value.fetch_add(arguments.int(0).cast_unsigned(), Ordering::Relaxed);
    done(Value::Void)
}

/// `debug.vsc_destroy()`
pub(crate) fn destroy(context: &mut dyn VmodContext) -> Value {
    context.shared().debug_counter.is_shown.store(false, Ordering::Release);
    Value::Void
}
