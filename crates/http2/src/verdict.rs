//! Why the guard ends a connection.

use crate::frame::ErrorCode;

/// What a client did too much of. Each has a counter of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Abuse {
    /// It reset its streams soon after it had opened them, or made us reset them.
    Resets,
    /// A header block of too many frames or bytes.
    HeaderBlock,
    /// Frames that carry nothing.
    EmptyFrames,
}

/// The end of a connection, with what the client is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Verdict {
    /// The code of the GOAWAY.
    pub code: ErrorCode,
    /// `None` if the client broke the protocol rather than a limit.
    pub abuse: Option<Abuse>,
    /// The reason in words, for the log.
    pub words: &'static str,
}

impl Verdict {
    pub(crate) const fn broken(code: ErrorCode, words: &'static str) -> Verdict {
        Verdict { code, abuse: None, words }
    }

    pub(crate) const fn too_much(abuse: Abuse, words: &'static str) -> Verdict {
        Verdict { code: ErrorCode::EnhanceYourCalm, abuse: Some(abuse), words }
    }
}
