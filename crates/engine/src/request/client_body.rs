//! Place of a client's body, and the progress of reading it.

use crate::bodies::pull::Pull;
use crate::bodies::request::HeldBody;
use crate::bodies::source::Handed;
use crate::exchange::BodyAnnounced;
use crate::fetch::interest::Interest;

/// Progress of a body through its filters.
#[derive(Default)]
pub(crate) struct ReadSoFar {
    pub(crate) handed: Handed,
    pub(crate) pull: Pull,
}

/// The client's side of a pass between two streams that send and receive at the same time.
#[derive(Default)]
pub(crate) struct Duplex {
    /// The fetch has begun to take the body.
    pub(crate) is_begun: bool,
    /// Progress of reading the body.
    pub(crate) read: Option<ReadSoFar>,
    /// Dropped when the client is gone.
    pub(crate) interest: Interest,
}

/// Place of the request body.
#[derive(Debug, Default)]
pub(crate) enum ClientBody {
    /// No body.
    #[default]
    None,
    /// Still in the transport, completely or in part.
    Unread {
        /// Content-Length; `None` = unknown length.
        length: Option<u64>,
        /// Some of it has been read, so the rest is no longer a complete body that could be
        /// forwarded.
        is_begun: bool,
    },
    /// Kept completely.
    Cached(HeldBody),
    /// It was read and is gone.
    Taken,
    /// The client broke off or sent a malformed body.
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
