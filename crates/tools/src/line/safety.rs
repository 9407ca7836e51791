//! Which bytes a line may contain.

use surface::tag::Tag;

/// What a line may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Safety {
    /// Records with arbitrary bytes are skipped.
    Text,
    /// Such bytes are escaped; something that is not a request gets no line.
    Json,
}

/// Tags whose payload is whatever a peer has sent.
pub(super) fn is_unsafe(tag: Tag) -> bool {
    tag.row().binary || matches!(tag, Tag::Debug | Tag::HttpGarbage | Tag::Hash)
}
