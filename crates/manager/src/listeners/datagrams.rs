//! UDP sockets for HTTP/3.
//!
//! Each event loop has its own (SO_REUSEPORT). QUIC arrives in bursts that the kernel's default
//! buffers do not hold, so larger ones are requested: as root beyond the system's limits, otherwise
//! up to them.

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, SndBufForce};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// The buffer of each socket, in each direction, in bytes.
const BUFFER_BYTES: usize = 4 << 20;

/// Binds a socket to an address; `shared` with those of other loops. `of_both` makes an IPv6 socket
/// serve IPv4 as well.
///
/// # Errors
/// Errors of the system.
pub fn bind(address: SocketAddr, shared: bool, of_both: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(!of_both)?;
    }
    socket.set_nonblocking(true)?;
    // Small buffers are slow, not wrong.
    if setsockopt(&socket, RcvBufForce, &BUFFER_BYTES).is_err() {
        let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    }
    if setsockopt(&socket, SndBufForce, &BUFFER_BYTES).is_err() {
        let _ = socket.set_send_buffer_size(BUFFER_BYTES);
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
