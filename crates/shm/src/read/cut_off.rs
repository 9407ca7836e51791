//! Handling of a mapped file that is truncated by its writer: our programs print a message and
//! exit.
//!
//! A read beyond the end of a mapped file is a bus error, despite all earlier checks. No server
//! shortens its segments, but any process that can write to them can, and a tool that dies of it
//! silently looks like a faulty tool.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Exit status after such an error.
pub const CUT_OFF: i32 = 1;

/// From now on a bus error ends this process with one line on standard error and status
/// [`CUT_OFF`].
pub fn end_with_a_message() {
    let action = SigAction::new(SigHandler::Handler(bus_error), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler calls nothing but write(2) and _exit(2), which are async-signal-safe, and
    // touches no memory but its constant message.
    let _ = unsafe { sigaction(Signal::SIGBUS, &action) };
}

extern "C" fn bus_error(_: libc::c_int) {
    const MESSAGE: &[u8] = b"The server's shared memory was cut off while it was read\n";
    // SAFETY: the pointer and the length are those of a constant; _exit does not return.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(CUT_OFF);
    }
}
