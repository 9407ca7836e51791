//! Accepts connections and gives each a thread, up to a limit.

use crate::listener::{Listener, Stream};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Interval at which the processes of the server are checked, in milliseconds.
const CHECK_MILLISECONDS: u16 = 1000;
/// Pause after a failure to accept, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Stack of a connection's thread, in bytes.
const STACK_BYTES: usize = 512 << 10;

/// Handler of the connections to a socket.
pub(crate) trait Service: Send + Sync + 'static {
    /// Most connections at once.
    const CONNECTIONS_MAX: usize;

    /// Serves a connection to its end, on a thread of its own.
    fn serve(&self, stream: Stream);

    /// Refuses a connection without waiting.
    fn refuse(&self, stream: Stream);

    /// Called each second in which nothing else happens.
    fn check(&self) {}
}

/// Serves until one of `ends` is closed at its other end.
///
/// # Errors
/// Waiting for connections is impossible.
pub(crate) fn serve<S: Service>(listeners: &[Listener], service: &Arc<S>, ends: &[BorrowedFd<'_>]) -> io::Result<()> {
    let connections = Arc::new(AtomicUsize::new(0));
    loop {
        let mut waited: Vec<PollFd<'_>> =
            listeners.iter().map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN)).collect();
        waited.extend(ends.iter().map(|end| PollFd::new(*end, PollFlags::POLLIN)));
        match poll(&mut waited, PollTimeout::from(CHECK_MILLISECONDS)) {
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(0) => service.check(),
            Ok(_) => {}
        }
        let is_ready = |polled: &PollFd<'_>| polled.any().unwrap_or(true);
        if waited.iter().skip(listeners.len()).any(is_ready) {
            return Ok(());
        }
        for (listener, _) in listeners.iter().zip(&waited).filter(|(_, polled)| is_ready(polled)) {
            accept(listener, service, &connections);
        }
    }
}

fn accept<S: Service>(listener: &Listener, service: &Arc<S>, connections: &Arc<AtomicUsize>) {
    let stream = match listener.accept() {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) => return,
        Err(_) => return thread::sleep(PAUSE),
    };
    let place = Place::take(connections);
    if connections.load(Ordering::Acquire) > S::CONNECTIONS_MAX || stream.set_nonblocking(false).is_err() {
        return service.refuse(stream);
    }
    let service = Arc::clone(service);
    // If there is no thread, the connection is closed with the closure that holds it.
    let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let _place = place;
        service.serve(stream);
    });
}

/// A place among the connections.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(connections: &Arc<AtomicUsize>) -> Place {
        connections.fetch_add(1, Ordering::AcqRel);
        Place(Arc::clone(connections))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
