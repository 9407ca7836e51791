//! Bytes that a line may contain.

use surface::tag::Tag;

/// Permitted content of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Safety {
    /// Records with arbitrary bytes are skipped.
    Text,
    /// Such bytes are escaped; something that is not a request gets no line.
    Json,
}

/// True for tags whose payload comes unchecked from a peer.
pub(super) fn is_unsafe(tag: Tag) -> bool {
    tag.row().binary || matches!(tag, Tag::Debug | Tag::HttpGarbage | Tag::Hash)
}
