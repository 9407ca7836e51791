//! vtc: helpers for test cases.
//!
//! `barrier_sync` connects to a barrier of varnishtest and waits until the barrier closes the
//! connection. Next file: `vtc/workspace.rs`.

pub(crate) mod replay;
pub(crate) mod workspace;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::{Finish, VmodContext};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use surface::vmod::functions::vtc::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::VtcBarrierSync => barrier_sync(context, arguments, scratch),
        Function::VtcNoBackend => done(Value::Backend(None)),
        Function::VtcNoStevedore => done(Value::Stevedore(None)),
        Function::VtcNoIp => done(Value::Ip(None)),
        Function::VtcPanic => panic(arguments, scratch),
        Function::VtcSleep => sleep(context, arguments),
        Function::VtcTypesize => done(typesize(arguments, scratch)),
        Function::VtcWorkspaceAlloc => workspace::alloc(context, arguments, scratch),
        Function::VtcWorkspaceReserve => workspace::reserve(context, arguments, scratch),
        Function::VtcWorkspaceFree => done(workspace::free(context, scratch)),
        Function::VtcWorkspaceSnapshot => done(workspace::snapshot(context)),
        Function::VtcWorkspaceReset => done(workspace::reset(context, scratch)),
        Function::VtcWorkspaceOverflowed => done(workspace::overflowed(context, arguments, scratch)),
        Function::VtcWorkspaceOverflow => done(workspace::overflow(context, arguments, scratch)),
        Function::VtcWorkspaceDump => workspace::dump(arguments, scratch),
        Function::VtcVsl => replay::vsl(context, arguments, scratch),
        Function::VtcVslReplay => replay::replay(context, arguments, scratch),
        Function::VtcProxyHeader => proxy_header(arguments, scratch),
    }
}

/// Longest sleep or wait, in seconds.
const WAIT_SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// `vtc.sleep()`
pub(crate) fn sleep(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let Some(pause) = duration(arguments.real(0)) else { return done(Value::Void) };
    if !context.can_wait() {
        std::thread::sleep(pause);
        return done(Value::Void);
    }
    context.wait(Box::pin(async move {
        tokio::time::sleep(pause).await;
        let finish: Finish = Box::new(|_, _| Ok(Value::Void));
        finish
    }));
    Ok(Called::Wait)
}

/// `None` for zero and negative times, and for NaN.
fn duration(seconds: f64) -> Option<Duration> {
    let pause = Duration::try_from_secs_f64(seconds.clamp(0.0, WAIT_SECONDS_MAX)).ok()?;
    (!pause.is_zero()).then_some(pause)
}

/// `vtc.barrier_sync()`
pub(crate) fn barrier_sync(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let address = String::from_utf8_lossy(scratch.get(arguments.text(0))).into_owned();
    let limit = duration(arguments.real(1));
    if !context.can_wait() {
        return settle(meet(&address, limit)).map(Called::Value);
    }
    context.wait(Box::pin(async move {
        let result = tokio::task::spawn_blocking(move || meet(&address, limit)).await;
        let result = result.unwrap_or_else(|error| Err(io::Error::other(error)));
        let finish: Finish = Box::new(move |_, _| settle(result));
        finish
    }));
    Ok(Called::Wait)
}

fn settle(result: io::Result<()>) -> Result<Value, Failure> {
    match result {
        Ok(()) => Ok(Value::Void),
        Err(error) => Err(Failure(format!("Barrier synchronization failed: {error}"))),
    }
}

/// Connects, and reads until the other side closes. Blocking.
fn meet(address: &str, limit: Option<Duration>) -> io::Result<()> {
    let mut stream: Box<dyn Read> = if address.starts_with('/') {
        let stream = UnixStream::connect(address)?;
        stream.set_read_timeout(limit)?;
        Box::new(stream)
    } else {
        let stream = TcpStream::connect(socket_address(address)?)?;
        stream.set_read_timeout(limit)?;
        Box::new(stream)
    };
    let mut bytes = [0; 64];
    while stream.read(&mut bytes)? > 0 {}
    Ok(())
}

/// `host:port` or, as in varnishtest, `host port`.
fn socket_address(text: &str) -> io::Result<SocketAddr> {
    let text = text.trim();
    let colon = match text.rsplit_once(' ') {
        Some((host, port)) if host.contains(':') && !host.starts_with('[') => format!("[{}]:{port}", host.trim()),
        Some((host, port)) => format!("{}:{port}", host.trim()),
        None => text.to_owned(),
    };
    colon.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// `vtc.panic()`: ends the process like an uncontained internal error. Compat: its purpose is to
/// test how everything around a worker handles its end.
pub(crate) fn panic(arguments: Arguments<'_>, scratch: &Scratch) -> ! {
    let text = String::from_utf8_lossy(scratch.get(arguments.text(0))).into_owned();
    // The hook stores the text. The abort follows, since a request contains its panics.
    let _ = std::panic::catch_unwind(|| panic!("PANIC: {text}"));
    std::process::abort()
}

/// `vtc.typesize()`: the size in C of a structure whose members the letters describe; −1 for an
/// unknown letter.
pub(crate) fn typesize(arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    Value::Int(size_of_letters(scratch.get(arguments.text(0))))
}

fn size_of_letters(letters: &[u8]) -> i64 {
    let mut size: i64 = 0;
    let mut widest = 1;
    for letter in letters {
        let width = match letter {
            b'c' => 1,
            b's' => 2,
            b'i' | b'u' | b'f' => 4,
            b'd' | b'j' | b'l' | b'o' | b'p' | b'z' => 8,
            _ => return -1,
        };
        size = (size + width - 1) / width * width + width;
        widest = widest.max(width);
    }
    (size + widest - 1) / widest * widest
}

/// `vtc.proxy_header()`
pub(crate) fn proxy_header(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let ends = arguments.ip(1).zip(arguments.ip(2));
    let Some((client, server)) = ends.map(|(client, server)| (SocketAddr::from(client), SocketAddr::from(server)))
    else {
        return Err(Failure("vtc.proxy_header(): address is NULL".to_owned()));
    };
    let mut header = Vec::new();
    if scratch.get(arguments.text(0)) == b"v1" {
        proxy_protocol::write_version_1(client, server, &mut header);
    } else {
        proxy_protocol::write_version_2(client, server, scratch.get(arguments.text(3)), &mut header);
    }
    done(Value::Blob(scratch.put(&header)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_laid_out_as_in_c() {
        for (letters, size) in [("p", 8), ("cpisz", 32), ("dfjlou", 48), ("", 0), ("cs", 4), ("!", -1)] {
            assert_eq!(size_of_letters(letters.as_bytes()), size, "{letters}");
        }
    }

    #[test]
    fn barriers_are_found_in_both_notations() {
        for text in ["127.0.0.1:80", "127.0.0.1 80", " 127.0.0.1 80 "] {
            assert_eq!(socket_address(text).unwrap(), "127.0.0.1:80".parse().unwrap());
        }
        assert_eq!(socket_address("::1 80").unwrap(), "[::1]:80".parse().unwrap());
        assert!(socket_address("nowhere").is_err());
    }

    #[test]
    fn a_barrier_is_waited_for_until_it_closes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let barrier = std::thread::spawn(move || drop(listener.accept().unwrap()));
        meet(&address, None).unwrap();
        barrier.join().unwrap();
        assert!(meet(&address, None).is_err(), "nobody listens any more");
    }
}
