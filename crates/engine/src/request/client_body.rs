//! Where a client's body is.

use crate::bodies::request::HeldBody;
use crate::exchange::BodyAnnounced;

/// Where the request body is.
#[derive(Debug, Default)]
pub(crate) enum ClientBody {
    /// There is no body.
    #[default]
    None,
    /// Still with the transport, completely or in part.
    Unread {
        /// Content-Length; `None` = unknown length.
        length: Option<u64>,
        /// Some of it has been read, so the rest is no longer a complete body that could be forwarded.
        is_begun: bool,
    },
    /// Kept completely.
    Cached(HeldBody),
    /// Was read and is gone.
    Taken,
    /// The client broke off or sent nonsense.
    Failed,
}

impl From<BodyAnnounced> for ClientBody {
    fn from(announced: BodyAnnounced) -> ClientBody {
        match announced {
            BodyAnnounced::None => ClientBody::None,
            BodyAnnounced::Length(bytes) => ClientBody::Unread { length: Some(bytes), is_begun: false },
            BodyAnnounced::Unknown => ClientBody::Unread { length: None, is_begun: false },
        }
    }
}
