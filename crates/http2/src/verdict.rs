//! Reasons for which the guard ends a connection.

use crate::frame::ErrorCode;

/// Kind of abuse. Each has a counter of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Abuse {
    /// The client reset its streams soon after it had opened them, or made us reset them.
    Resets,
    /// A header block of too many frames or bytes.
    HeaderBlock,
    /// Too many frames without content.
    EmptyFrames,
}

/// The end of a connection, with the error for the client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Verdict {
    /// The code of the GOAWAY.
    pub code: ErrorCode,
    /// `None` if the client violated the protocol rather than a limit.
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
