//! How names become addresses, without sockets: [`Resolve`] is implemented by `net` over the system's resolver and over DNS,
//! and by tests over a table.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

/// Whom to ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The system: hosts file, nsswitch, DNS. No times to live.
    System,
    /// DNS itself (and the hosts file), with times to live.
    Dns,
}

impl Source {
    /// The name in the log and in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::System => "getaddrinfo",
            Source::Dns => "dns",
        }
    }
}

/// What a name stands for at the time.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer<T> {
    /// The values, in the order they came in.
    pub list: Vec<T>,
    /// For how many seconds that holds; `None` when nobody says so.
    pub ttl: Option<f64>,
}

/// One SRV record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The lowest comes first.
    pub priority: u16,
    /// Share among those of the same priority.
    pub weight: u16,
    /// Port.
    pub port: u16,
    /// Host, without a dot at its end.
    pub host: String,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolveError {
    /// A number, for the log.
    pub code: i32,
    /// What went wrong.
    pub text: String,
}

/// A lookup under way.
pub type Resolving<'a, T> = Pin<Box<dyn Future<Output = Result<Answer<T>, ResolveError>> + 'a>>;

/// Looks names up, from the event loop it is called on.
pub trait Resolve {
    /// The addresses of a host. `port` is a number or the name of a service.
    ///
    /// # Errors
    /// The name does not exist, nobody answers, or the port means nothing.
    fn addresses<'a>(&'a self, source: Source, host: &'a str, port: &'a str) -> Resolving<'a, SocketAddr>;

    /// The SRV records of a name.
    ///
    /// # Errors
    /// The name does not exist, or nobody answers.
    fn targets<'a>(&'a self, service: &'a str) -> Resolving<'a, Target>;
}
