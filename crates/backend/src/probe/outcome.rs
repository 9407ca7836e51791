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
    /// The connection; `None` when there was none.
    pub family: Option<Family>,
    /// Whether the request was sent; `None` when it did not come to that.
    pub sent: Option<bool>,
    /// Whether an answer was read; `None` when it did not come to that, or the origin closed without a word.
    pub received: Option<bool>,
    /// Whether the status was the expected one.
    pub happy: bool,
    /// How long it took until the answer was read, in seconds; 0 without an answer.
    pub seconds: f64,
    /// The first line of the answer, or what went wrong.
    pub text: String,
}
