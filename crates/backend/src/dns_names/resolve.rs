//! Resolution of names to addresses, without sockets: [`Resolve`] is implemented by `net` over the
//! system's resolver and over DNS, and by tests over a table.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

/// The service that resolves names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The system: hosts file, nsswitch, DNS. No times to live.
    System,
    /// DNS itself (and the hosts file), with times to live.
    Dns,
}

impl Source {
    /// Its name in the log and in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::System => "getaddrinfo",
            Source::Dns => "dns",
        }
    }
}

/// The answer to a lookup.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer<T> {
    /// The values, in the order in which they arrived.
    pub list: Vec<T>,
    /// Seconds for which the answer is valid; `None` if unknown.
    pub ttl: Option<f64>,
    /// The half of the answer that could not be obtained.
    pub missing: Option<Missing>,
}

/// One family of addresses is not in an answer because its query was not answered. Its previous
/// addresses remain valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// IPv6, rather than IPv4.
    pub is_v6: bool,
    /// The error.
    pub error: ResolveError,
}

impl Answer<SocketAddr> {
    /// Adds those of the previous addresses that the answer does not cover. Returns the reason why
    /// it does not, if there are any.
    pub(crate) fn keep_unanswered(&mut self, before: impl IntoIterator<Item = SocketAddr>) -> Option<&ResolveError> {
        let missing = self.missing.as_ref()?;
        let found = self.list.len();
        self.list.extend(before.into_iter().filter(|address| address.is_ipv6() == missing.is_v6));
        (self.list.len() > found).then_some(&missing.error)
    }
}

/// One SRV record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The lowest priority is used first.
    pub priority: u16,
    /// Share among targets with the same priority.
    pub weight: u16,
    /// Port.
    pub port: u16,
    /// Host, without the dot at its end.
    pub host: String,
}

/// The reason why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolveError {
    /// A number, for the log.
    pub code: i32,
    /// Description of the error.
    pub text: String,
}

/// A lookup in progress.
pub type Resolving<'a, T> = Pin<Box<dyn Future<Output = Result<Answer<T>, ResolveError>> + 'a>>;

/// Looks up names, on the event loop on which it is called.
pub trait Resolve {
    /// The addresses of a host. `port` is a number or the name of a service.
    ///
    /// # Errors
    /// The name does not exist, no server answers, or the port is invalid.
    fn addresses<'a>(&'a self, source: Source, host: &'a str, port: &'a str) -> Resolving<'a, SocketAddr>;

    /// The SRV records of a name.
    ///
    /// # Errors
    /// The name does not exist, or no server answers.
    fn targets<'a>(&'a self, service: &'a str) -> Resolving<'a, Target>;
}
