//! tcp: what the system knows about the client's connection, and limits on its speed.
//!
//! The engine has streams and descriptor numbers; system calls are behind [`SocketOptions`], which `net` implements. In
//! tasks without a client connection nothing happens. Compat: vmod_tcp of the varnish-modules collection.

use crate::arguments::Arguments;
use crate::context::VmodContext;
use std::io;
use surface::tag::Tag;
use vcl_run::value::{Scratch, Value};

/// Longest name of a congestion control algorithm, in bytes.
const ALGORITHM_BYTES_MAX: usize = 16;

/// What the system knows about a TCP connection: those fields of `TCP_INFO` that are shown. Times in microseconds.
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

/// Options of a connected client socket, by descriptor number. All methods fail for other descriptors.
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
    /// Sets the size of the send buffer, in bytes; returns the old size, and the new one that the system has chosen.
    fn set_send_buffer(&self, descriptor: i32, bytes: u32) -> io::Result<(u64, u64)>;
    /// How many bytes were written that the other end has not acknowledged.
    ///
    /// # Errors
    /// When there is no such connection, or the system does not say.
    fn undelivered(&self, _descriptor: i32) -> io::Result<u64> {
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

/// `tcp.dump_info()`
pub(crate) fn dump_info(context: &mut dyn VmodContext) -> Value {
    let Some((sockets, descriptor)) = context.client_socket() else { return Value::Void };
    match sockets.tcp_info(descriptor) {
        Ok(info) => {
            let TcpInfo { snd_mss, rcv_mss, lost, retrans, pmtu, rtt, rttvar, snd_cwnd, advmss, reordering } = info;
            let first = format!("tcpi: snd_mss={snd_mss} rcv_mss={rcv_mss} lost={lost} retrans={retrans}");
            context.log(Tag::VCLLog, first.as_bytes());
            let second = format!(
                "tcpi2: pmtu={pmtu} rtt={rtt} rttvar={rttvar} snd_cwnd={snd_cwnd} advmss={advmss} reordering={reordering}"
            );
            context.log(Tag::VCLLog, second.as_bytes());
        }
        Err(_) => context.log(Tag::VCLError, b"getsockopt() failed"),
    }
    Value::Void
}

/// `tcp.get_estimated_rtt()`: whole milliseconds.
pub(crate) fn estimated_rtt(context: &mut dyn VmodContext) -> Value {
    let Some((sockets, descriptor)) = context.client_socket() else { return Value::Real(0.0) };
    match sockets.tcp_info(descriptor) {
        Ok(info) => Value::Real(f64::from(info.rtt / 1000)),
        Err(_) => {
            context.log(Tag::VCLError, b"getsockopt() failed");
            Value::Real(0.0)
        }
    }
}

/// `tcp.congestion_algorithm()`: 0, or −1 if the system refuses it.
pub(crate) fn congestion_algorithm(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let wanted = scratch.get(arguments.text(0));
    let algorithm = String::from_utf8_lossy(&wanted[..wanted.len().min(ALGORITHM_BYTES_MAX)]).into_owned();
    let Some((sockets, descriptor)) = context.client_socket() else { return Value::Int(-1) };
    if sockets.set_congestion(descriptor, &algorithm).is_err() {
        let text = format!("TCP_CONGESTION setsockopt() for \"{algorithm}\" failed.");
        context.log(Tag::VCLError, text.as_bytes());
        return Value::Int(-1);
    }
    match sockets.congestion(descriptor) {
        Ok(now) => context.log(Tag::VCLLog, format!("getsockopt() returned: {now}").as_bytes()),
        Err(_) => context.log(Tag::VCLError, b"getsockopt() failed."),
    }
    Value::Int(0)
}

/// `tcp.set_socket_pace()`: in KiB per second.
pub(crate) fn set_socket_pace(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let rate = arguments.int(0);
    let bytes = u32::try_from(rate.clamp(0, i64::from(u32::MAX)).saturating_mul(1024)).unwrap_or(u32::MAX);
    let Some((sockets, descriptor)) = context.client_socket() else { return Value::Void };
    let done = sockets.set_pace(descriptor, bytes);
    let shown = sockets.pace(descriptor);
    match done {
        Ok(()) => context.log(Tag::VCLLog, format!("vmod-tcp: Socket paced to {rate} KB/s.").as_bytes()),
        Err(_) => context.log(Tag::VCLError, b"set_socket_pace(): Error setting pace rate."),
    }
    let (result, bytes) = shown.map_or((-1, 0), |bytes| (0, bytes));
    context.log(Tag::VCLLog, format!("getsockopt() {result} {bytes}").as_bytes());
    Value::Void
}
