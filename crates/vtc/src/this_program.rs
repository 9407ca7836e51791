//! The runner starts itself for each script.

/// Path of the running program, even if its file has been replaced.
pub(crate) const PATH: &str = "/proc/self/exe";
/// First argument of a process that runs one script.
pub(crate) const SCRIPT_ARGUMENT: &str = "--run-script";
