//! Options of listening sockets.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets returning clients send their request with the first packet (TCP Fast Open), up to `waiting`
/// of them at a time. Source: RFC 7413; parameter `tcp_fastopen`.
///
/// # Errors
/// The kernel refuses.
pub fn enable_fast_open(socket: BorrowedFd<'_>, waiting: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    let value = std::ptr::from_ref(&waiting).cast();
    // SAFETY: `value` is `len` readable bytes, and the descriptor is borrowed for the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN, value, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
