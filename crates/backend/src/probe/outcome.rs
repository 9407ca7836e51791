//! What one check of a probe found.

/// How the origin was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// A Unix-domain socket.
    Unix,
}

/// What one check found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The kind of connection; `None` if there was none.
    pub family: Option<Family>,
    /// Whether the request was sent; `None` if the check ended before that.
    pub sent: Option<bool>,
    /// Whether an answer was read; `None` if the check ended before that, or the origin closed without an answer.
    pub received: Option<bool>,
    /// Whether the status was the expected one.
    pub happy: bool,
    /// Seconds until the answer was read; 0 without an answer.
    pub seconds: f64,
    /// The first line of the answer, or what went wrong.
    pub text: String,
}
