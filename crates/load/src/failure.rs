//! Failures of a request, grouped by their apparent cause.

use std::io;

/// A kind of failure; the order is that of reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The port refuses connections.
    Refused,
    /// The connection or stream was reset.
    Reset,
    /// The connection ended before an answer was complete, in its head.
    Closed,
    /// No complete answer in time.
    Timeout,
    /// An unexpected status.
    Status,
    /// A body shorter or longer than announced or expected.
    Length,
    /// Not HTTP, or a violation of the protocol.
    Protocol,
    /// No handshake.
    Tls,
    /// This machine has no more ports, descriptors or memory: a fault of the load generator's side.
    Exhausted,
    /// Any other failure, such as no route to the host.
    Other,
}

/// All kinds.
pub const KINDS: [Kind; 10] = [
    Kind::Refused,
    Kind::Reset,
    Kind::Closed,
    Kind::Timeout,
    Kind::Status,
    Kind::Length,
    Kind::Protocol,
    Kind::Tls,
    Kind::Exhausted,
    Kind::Other,
];

impl Kind {
    /// Name in reports and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Refused => "refused",
            Kind::Reset => "reset",
            Kind::Closed => "closed",
            Kind::Timeout => "timeout",
            Kind::Status => "status",
            Kind::Length => "length",
            Kind::Protocol => "protocol",
            Kind::Tls => "tls",
            Kind::Exhausted => "exhausted",
            Kind::Other => "other",
        }
    }
}

/// A failure, with its error text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The kind.
    pub kind: Kind,
    /// Error text.
    pub said: String,
}

impl Failure {
    /// A failure of that kind.
    pub fn new(kind: Kind, said: impl Into<String>) -> Failure {
        Failure { kind, said: said.into() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        use nix::libc::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => Kind::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Kind::Reset
            }
            io::ErrorKind::UnexpectedEof => Kind::Closed,
            io::ErrorKind::TimedOut => Kind::Timeout,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Kind::Exhausted,
            _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM)) => Kind::Exhausted,
            _ => Kind::Other,
        };
        Failure { kind, said: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_fault() {
        let kind = |errno| Failure::from(io::Error::from_raw_os_error(errno)).kind;
        assert_eq!(kind(nix::libc::ECONNREFUSED), Kind::Refused);
        assert_eq!(kind(nix::libc::ECONNRESET), Kind::Reset);
        assert_eq!(kind(nix::libc::EPIPE), Kind::Reset);
        assert_eq!(kind(nix::libc::EADDRNOTAVAIL), Kind::Exhausted);
        assert_eq!(kind(nix::libc::EMFILE), Kind::Exhausted);
        assert_eq!(kind(nix::libc::EHOSTUNREACH), Kind::Other);
    }

    #[test]
    fn kinds_are_listed_in_their_order() {
        for (at, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, at, "{}", kind.name());
        }
    }
}
