//! std: logging, and control of the running task.
//!
//! `std.syslog` writes a datagram to the local `/dev/log`; a message that cannot be delivered at
//! once is dropped.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;
use surface::tag::Tag;
use surface::vcl::Method;
use vcl_run::host::{Called, Failure};
use vcl_run::line;
use vcl_run::value::{Scratch, Text, Value};

/// The socket of the system's log daemon.
const SYSLOG_SOCKET: &str = "/dev/log";
/// The program name in syslog messages.
const SYSLOG_NAME: &str = "varnishd";

/// `std.log()`
pub(crate) fn log(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    context.log(Tag::VCLLog, scratch.get(arguments.text(0)));
    Value::Void
}

/// `std.syslog()`
pub(crate) fn syslog(arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    static SOCKET: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    let socket = SOCKET.get_or_init(|| {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(socket)
    });
    if let Some(socket) = socket {
        let message = syslog_message(arguments.int(0), scratch.get(arguments.text(1)), std::process::id());
        // If no daemon listens, that is not an error of the request.
        let _ = socket.send_to(&message, SYSLOG_SOCKET);
    }
    Value::Void
}

/// A message in the format of syslog(3), without the time, which the daemon adds.
fn syslog_message(priority: i64, text: &[u8], process: u32) -> Vec<u8> {
    // Facility and level have ten bits; the C library masks them in the same way.
    let mut message = format!("<{}>{SYSLOG_NAME}[{process}]: ", priority & 0x3ff).into_bytes();
    message.extend_from_slice(text);
    message
}

/// `std.timestamp()`
pub(crate) fn timestamp(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let label = line::shown(scratch.get(arguments.text(0)));
    if !label.is_empty() {
        context.timestamp(&label);
    }
    Value::Void
}

/// `std.timed_call()`: the evaluator runs the subroutine and measures the time.
///
/// # Errors
/// No subroutine was given.
pub(crate) fn timed_call(arguments: Arguments<'_>) -> Result<Called, Failure> {
    match arguments.value(0) {
        Value::Sub(sub) => Ok(Called::TimedSub(sub)),
        _ => Err(Failure("std.timed_call() without a subroutine".to_owned())),
    }
}

/// `std.syntax()`
pub(crate) fn syntax(context: &dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let wanted = (arguments.real(0) * 10.0).round();
    Value::Bool(f64::from(context.program().program().syntax) >= wanted)
}

/// `std.getenv()`
pub(crate) fn getenv(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    // Only the start of a long name is used: no system has names that long.
    let name = line::shown(scratch.get(arguments.text(0))).into_owned();
    if name.is_empty() || name.contains(['=', '\0']) {
        return Value::Text(Text::UNSET);
    }
    match std::env::var_os(name) {
        Some(value) => Value::Text(scratch.put(value.as_encoded_bytes())),
        None => Value::Text(Text::UNSET),
    }
}

/// `std.cache_req_body()`
pub(crate) fn cache_req_body(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    if context.method() != Method::Recv {
        context.log(Tag::VCLError, b"req.body can only be cached in vcl_recv{}");
        return done(Value::Bool(false));
    }
    context.cache_request_body(u64::try_from(arguments.int(0)).unwrap_or(0))
}

/// `std.late_100_continue()`
pub(crate) fn late_100_continue(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    if context.method() == Method::Recv {
        context.late_100_continue(arguments.bool(0));
    } else {
        context.log(Tag::VCLError, b"std.late_100_continue() only valid in vcl_recv{}");
    }
    done(Value::Void)
}

/// `std.set_ip_tos()`
pub(crate) fn set_ip_tos(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    context.set_type_of_service(arguments.int(0) as u8);
    done(Value::Void)
}

/// `std.rollback()`
pub(crate) fn rollback(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    if let Some(http) = arguments.http(0) {
        context.rollback(http)?;
    }
    done(Value::Void)
}

/// `std.ban()`
pub(crate) fn ban(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let expression = arguments.text(0);
    let result =
        if expression.is_set() { context.ban(scratch.get(expression)) } else { Err("Null argument".to_owned()) };
    let is_added = result.is_ok();
    let error = result.err().unwrap_or_default();
    if !is_added {
        context.log(Tag::VCLError, format!("ban(): {error}").as_bytes());
    }
    context.task().kept().ban_error = error;
    Value::Bool(is_added)
}

/// `std.ban_error()`
pub(crate) fn ban_error(context: &mut dyn VmodContext, scratch: &mut Scratch) -> Value {
    Value::Text(scratch.put(context.task().kept().ban_error.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syslog_message_names_priority_program_and_process() {
        assert_eq!(syslog_message(9, b"x y", 7), b"<9>varnishd[7]: x y");
        assert_eq!(syslog_message(-1, b"", 7), b"<1023>varnishd[7]: ");
    }
}
