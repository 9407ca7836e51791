//! The part of a request's body that an origin has been sent: the final amount, and the progress of
//! an upload.

use std::cell::Cell;
use surface::limits::UPLOAD_KEPT_BYTES_MAX;

/// Amount of a request's body that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum SentBody {
    /// No body.
    #[default]
    None,
    /// This many bytes, and more are to follow.
    Some(u64),
    /// All of it: this many bytes.
    All(u64),
}

impl SentBody {
    /// True if a failure of the request may be due to its body, which is the client's: the origin
    /// did not take all of it, or it is longer than some origins accept.
    pub(crate) fn may_be_to_blame(self) -> bool {
        match self {
            SentBody::None => false,
            SentBody::Some(_) => true,
            SentBody::All(bytes) => bytes > UPLOAD_KEPT_BYTES_MAX as u64,
        }
    }

    /// Counts more bytes that were sent.
    pub(crate) fn add(&mut self, more: u64) {
        if let SentBody::Some(bytes) | SentBody::All(bytes) = self {
            *bytes += more;
        }
    }

    /// Marks the body as completely sent.
    pub(crate) fn complete(&mut self) {
        if let SentBody::Some(bytes) = *self {
            *self = SentBody::All(bytes);
        }
    }
}

/// Progress of a body that is sent while the response is received.
#[derive(Default)]
pub(crate) struct UploadProgress {
    /// Bytes sent.
    bytes: Cell<u64>,
    /// All of the body was sent.
    is_whole: Cell<bool>,
}

impl UploadProgress {
    /// Bytes sent.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts bytes that were sent.
    pub(super) fn add(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Marks the body as completely sent.
    pub(super) fn complete(&self) {
        self.is_whole.set(true);
    }

    /// Amount of the body that was sent.
    pub(super) fn sent(&self) -> SentBody {
        if self.is_whole.get() { SentBody::All(self.bytes()) } else { SentBody::Some(self.bytes()) }
    }
}
