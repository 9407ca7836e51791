//! Options that accepted TCP connections inherit from their listening socket, so that a connection
//! costs no system call for them.
//!
//! Source: tcp(7) and Linux's behaviour: a new connection begins as a copy of the listening socket.
//! *Invariant:* a connection that was in the queue before the options were set, or changed, gets
//! them itself.

use socket2::{SockRef, TcpKeepalive};
use std::os::fd::AsFd;
use std::time::Duration;
use surface::parameter::Parameters;

/// The options of one listening socket.
#[derive(Default)]
pub(crate) struct AcceptedOptions {
    /// Options that were set on the listening socket; `None` = none yet, or they could not be set.
    keepalive: Option<Keepalive>,
    /// The queue was empty since these options were set.
    is_settled: bool,
}

/// `tcp_keepalive_time` and `tcp_keepalive_intvl` in seconds, `tcp_keepalive_probes`.
#[derive(Clone, Copy, PartialEq)]
struct Keepalive(f64, f64, u32);

impl AcceptedOptions {
    /// Gives the listening socket the options of its connections, if they have changed.
    pub(crate) fn set(&mut self, listening: &impl AsFd, parameters: &Parameters) {
        let keepalive = Keepalive::of(parameters);
        if self.keepalive != Some(keepalive) {
            self.is_settled = false;
            self.keepalive = keepalive.apply(listening).is_ok().then_some(keepalive);
        }
    }

    /// The queue of the listening socket is empty.
    pub(crate) fn settle(&mut self) {
        self.is_settled = self.keepalive.is_some();
    }

    /// Gives an accepted connection its options, if it may not have inherited them. Failures are
    /// ignored: the peer may already be gone, and the first read will show that.
    pub(crate) fn prepare(&mut self, listening: &impl AsFd, accepted: &impl AsFd, parameters: &Parameters) {
        self.set(listening, parameters);
        if !self.is_settled {
            let _ = Keepalive::of(parameters).apply(accepted);
        }
    }
}

impl Keepalive {
    fn of(parameters: &Parameters) -> Keepalive {
        let probes = u32::try_from(parameters.tcp_keepalive_probes).unwrap_or(9);
        Keepalive(parameters.tcp_keepalive_time, parameters.tcp_keepalive_intvl, probes)
    }

    /// Sets these options, and TCP_NODELAY.
    fn apply(self, socket: &impl AsFd) -> std::io::Result<()> {
        let socket = SockRef::from(socket);
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_keepalive(
            &TcpKeepalive::new()
                .with_time(Duration::from_secs_f64(self.0))
                .with_interval(Duration::from_secs_f64(self.1))
                .with_retries(self.2),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn options(stream: &TcpStream) -> (bool, bool, u64, u64, u32) {
        let socket = SockRef::from(stream);
        (
            socket.tcp_nodelay().unwrap(),
            socket.keepalive().unwrap(),
            socket.tcp_keepalive_time().unwrap().as_secs(),
            socket.tcp_keepalive_interval().unwrap().as_secs(),
            socket.tcp_keepalive_retries().unwrap(),
        )
    }

    #[test]
    fn connections_have_the_options_however_they_came() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listening.local_addr().unwrap()).unwrap();
        let mut parameters = Parameters::default();
        let mut inherited = AcceptedOptions::default();
        let _early = connect();
        inherited.set(&listening, &parameters);
        let accepted = listening.accept().unwrap().0;
        assert!(!options(&accepted).0, "it was in the queue before");
        inherited.prepare(&listening, &accepted, &parameters);
        assert_eq!(options(&accepted), (true, true, 7200, 75, 9));

        inherited.settle();
        let _later = connect();
        assert_eq!(options(&listening.accept().unwrap().0), (true, true, 7200, 75, 9), "inherited");

        let _queued = connect();
        parameters.tcp_keepalive_time = 60.0;
        parameters.tcp_keepalive_probes = 3;
        let accepted = listening.accept().unwrap().0;
        inherited.prepare(&listening, &accepted, &parameters);
        assert_eq!(options(&accepted), (true, true, 60, 75, 3), "changed while it waited");
        let _last = connect();
        assert_eq!(options(&listening.accept().unwrap().0), (true, true, 60, 75, 3), "inherited");
    }
}
