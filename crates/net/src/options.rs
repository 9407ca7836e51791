//! Options of client sockets, asked and set by descriptor number while their session lives, and of listening ones.
//!
//! Compat: the options that vmod_tcp and `std.set_ip_tos()` touch.

use socket2::SockRef;
use std::io;
use std::os::fd::BorrowedFd;
use vmods::{SocketOptions, TcpInfo};

/// The longest name of a congestion control algorithm, with its end, in bytes.
const ALGORITHM_BYTES_MAX: usize = 16;

/// The options of this process's sockets.
#[derive(Clone, Copy, Default, Debug)]
pub struct ConnectedSockets;

/// The descriptor of a session's connection.
///
/// # Errors
/// EBADF for a number that is none: that of a connection in memory.
fn borrowed<'a>(descriptor: i32) -> io::Result<BorrowedFd<'a>> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is not −1. It is that of the running session's own connection, which stays open while its VCL
    // runs; were it not, the calls below fail or meet another socket, and touch no memory but their own.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// Reads an option into `value`; returns how many bytes of it were written.
fn read<T: Copy>(descriptor: i32, level: i32, name: i32, value: &mut T) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let socket = borrowed(descriptor)?;
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is `len` writable bytes of a plain type, and the system writes no more than that.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(value).cast(), &mut len) };
    if result == 0 { Ok(len as usize) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option to these bytes.
fn write(descriptor: i32, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let socket = borrowed(descriptor)?;
    let len = value.len() as libc::socklen_t;
    // SAFETY: `value` is `len` readable bytes.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets clients that have been here before send their request with the first packet (TCP Fast Open), up to `waiting` of
/// them at a time. Source: RFC 7413; parameter `tcp_fastopen`.
///
/// # Errors
/// When the kernel does not want to.
pub fn enable_fast_open(socket: BorrowedFd<'_>, waiting: i32) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    write(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN, &waiting.to_ne_bytes())
}

impl SocketOptions for ConnectedSockets {
    fn tcp_info(&self, descriptor: i32) -> io::Result<TcpInfo> {
        // SAFETY: `tcp_info` is numbers only, for which zeros are a value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        read(descriptor, libc::SOL_TCP, libc::TCP_INFO, &mut info)?;
        Ok(TcpInfo {
            snd_mss: info.tcpi_snd_mss,
            rcv_mss: info.tcpi_rcv_mss,
            lost: info.tcpi_lost,
            retrans: info.tcpi_retrans,
            pmtu: info.tcpi_pmtu,
            rtt: info.tcpi_rtt,
            rttvar: info.tcpi_rttvar,
            snd_cwnd: info.tcpi_snd_cwnd,
            advmss: info.tcpi_advmss,
            reordering: info.tcpi_reordering,
        })
    }

    fn congestion(&self, descriptor: i32) -> io::Result<String> {
        let mut name = [0u8; ALGORITHM_BYTES_MAX];
        let len = read(descriptor, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
        let name = name.get(..len).unwrap_or(&name);
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    fn set_congestion(&self, descriptor: i32, algorithm: &str) -> io::Result<()> {
        write(descriptor, libc::IPPROTO_TCP, libc::TCP_CONGESTION, algorithm.as_bytes())
    }

    fn pace(&self, descriptor: i32) -> io::Result<u32> {
        let mut bytes_per_second = 0u32;
        read(descriptor, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut bytes_per_second)?;
        Ok(bytes_per_second)
    }

    fn set_pace(&self, descriptor: i32, bytes_per_second: u32) -> io::Result<()> {
        write(descriptor, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_second.to_ne_bytes())
    }

    fn set_send_buffer(&self, descriptor: i32, bytes: u32) -> io::Result<(u64, u64)> {
        let socket = borrowed(descriptor)?;
        let socket = SockRef::from(&socket);
        let before = socket.send_buffer_size()?;
        socket.set_send_buffer_size(bytes as usize)?;
        Ok((before as u64, socket.send_buffer_size()? as u64))
    }

    fn set_type_of_service(&self, descriptor: i32, tos: u8) -> io::Result<()> {
        let socket = borrowed(descriptor)?;
        let socket = SockRef::from(&socket);
        match socket.local_addr()?.is_ipv6() {
            true => socket.set_tclass_v6(u32::from(tos)),
            false => socket.set_tos(u32::from(tos)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_connections_options_are_read_and_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (sockets, descriptor) = (ConnectedSockets, server.as_raw_fd());
        let info = sockets.tcp_info(descriptor).unwrap();
        assert!(info.snd_mss > 0 && info.snd_cwnd > 0, "{info:?}");
        sockets.set_pace(descriptor, 1_024_000).unwrap();
        assert_eq!(sockets.pace(descriptor).unwrap(), 1_024_000);
        let algorithm = sockets.congestion(descriptor).unwrap();
        assert!(!algorithm.is_empty() && !algorithm.contains('\0'));
        sockets.set_congestion(descriptor, &algorithm).unwrap();
        assert!(sockets.set_congestion(descriptor, "no such thing").is_err());
        sockets.set_type_of_service(descriptor, 0x10).unwrap();
        let (before, after) = sockets.set_send_buffer(descriptor, 4096).unwrap();
        assert!(after < before, "{before} {after}");
        assert_eq!(SockRef::from(&server).tos().unwrap(), 0x10);
        drop(client);
    }

    #[test]
    fn what_is_no_tcp_connection_is_an_error() {
        let (one, _other) = UnixStream::pair().unwrap();
        for descriptor in [-1, one.as_raw_fd()] {
            assert!(ConnectedSockets.tcp_info(descriptor).is_err());
            assert!(ConnectedSockets.congestion(descriptor).is_err());
            assert!(ConnectedSockets.set_congestion(descriptor, "reno").is_err());
        }
        assert!(ConnectedSockets.set_type_of_service(-1, 0).is_err());
    }
}
