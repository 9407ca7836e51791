//! tcp: the system's information about the client's connection, and limits on its speed.
//!
//! The engine has streams and descriptor numbers; system calls are behind [`SocketOptions`], which
//! `net` implements. In tasks without a client connection nothing happens. Compat: vmod_tcp of the
//! varnish-modules collection.

mod socket_options;

pub use socket_options::{NoSockets, SocketOptions, TcpInfo};

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use surface::tag::Tag;
use surface::vmod::functions::tcp::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::TcpCongestionAlgorithm => done(congestion_algorithm(context, arguments, scratch)),
        Function::TcpDumpInfo => done(dump_info(context)),
        Function::TcpGetEstimatedRtt => done(estimated_rtt(context)),
        Function::TcpSetSocketPace => done(set_socket_pace(context, arguments)),
    }
}

/// Longest name of a congestion control algorithm, in bytes.
const ALGORITHM_BYTES_MAX: usize = 16;

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
