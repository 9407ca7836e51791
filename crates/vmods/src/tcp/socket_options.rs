//! [`SocketOptions`]: system calls on the sockets of clients, which `net` implements.

use std::io;

/// The system's information about a TCP connection: those fields of `TCP_INFO` that are shown.
/// Times in microseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct TcpInfo {
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub lost: u32,
    pub retrans: u32,
    pub pmtu: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
}

/// Options of a connected client socket, by descriptor number. All methods fail for other
/// descriptors.
#[allow(clippy::missing_errors_doc)]
pub trait SocketOptions {
    /// The system's information about the connection.
    fn tcp_info(&self, descriptor: i32) -> io::Result<TcpInfo>;
    /// The congestion control algorithm.
    fn congestion(&self, descriptor: i32) -> io::Result<String>;
    /// Sets the congestion control algorithm.
    fn set_congestion(&self, descriptor: i32, algorithm: &str) -> io::Result<()>;
    /// The most bytes sent per second.
    fn pace(&self, descriptor: i32) -> io::Result<u32>;
    /// Sets the most bytes to send per second; `u32::MAX` = no limit.
    fn set_pace(&self, descriptor: i32, bytes_per_second: u32) -> io::Result<()>;
    /// Sets the type of service of an IP connection.
    fn set_type_of_service(&self, descriptor: i32, tos: u8) -> io::Result<()>;
    /// Sets the size of the send buffer, in bytes; returns the old size, and the new one that the
    /// system has chosen.
    fn set_send_buffer(&self, descriptor: i32, bytes: u32) -> io::Result<(u64, u64)>;
    /// Number of bytes that were written but not acknowledged by the peer.
    ///
    /// # Errors
    /// If there is no such connection, or the system does not provide the number.
    fn undelivered(&self, _descriptor: i32) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes the connection end with a reset when it is closed, so that the peer does not take that
    /// for a regular end. A Unix-domain socket has no reset.
    ///
    /// # Errors
    /// If there is no such connection, or the system refuses.
    fn reset_at_close(&self, _descriptor: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Used where there are no sockets: everything fails.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoSockets;

impl SocketOptions for NoSockets {
    fn tcp_info(&self, _descriptor: i32) -> io::Result<TcpInfo> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn congestion(&self, _descriptor: i32) -> io::Result<String> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_congestion(&self, _descriptor: i32, _algorithm: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn pace(&self, _descriptor: i32) -> io::Result<u32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_pace(&self, _descriptor: i32, _bytes_per_second: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_type_of_service(&self, _descriptor: i32, _tos: u8) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_send_buffer(&self, _descriptor: i32, _bytes: u32) -> io::Result<(u64, u64)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
