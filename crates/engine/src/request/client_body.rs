//! Where a client's body is, and how far it has been read.

use crate::bodies::pull::Pull;
use crate::bodies::request::HeldBody;
use crate::bodies::source::Handed;
use crate::exchange::BodyAnnounced;
use crate::fetch::interest::Interest;

/// How far a body has got through its filters.
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
    /// How far the body has been read.
    pub(crate) read: Option<ReadSoFar>,
    /// Dropped when the client has gone.
    pub(crate) interest: Interest,
}

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
