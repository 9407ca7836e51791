//! The result of one check of a probe.

/// The kind of connection to the origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// A Unix-domain socket.
    Unix,
}

/// The result of one check.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The kind of connection; `None` if there was none.
    pub family: Option<Family>,
    /// True if the request was sent; `None` if the check ended before that.
    pub sent: Option<bool>,
    /// True if an answer was read; `None` if the check ended before that, or the origin closed
    /// without an answer.
    pub received: Option<bool>,
    /// True if the status was the expected one.
    pub happy: bool,
    /// Seconds until the answer was read; 0 without an answer.
    pub seconds: f64,
    /// The first line of the answer, or the error.
    pub text: String,
}
