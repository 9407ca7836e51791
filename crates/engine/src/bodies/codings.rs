//! The coding of a stored body: its flags, the requests that accept it, and the filter that decodes
//! it.

use crate::logged::MessageTags;
use message::Message;
use shm::log::LogBuffer;
use store::ObjectFlags;
use surface::encoding::{ENCODINGS, Encoding};

/// The flag of an object whose body has that coding.
pub(crate) const fn flag_of(encoding: Encoding) -> ObjectFlags {
    match encoding {
        Encoding::Gzip => ObjectFlags::GZIPPED,
        Encoding::Brotli => ObjectFlags::BROTLI,
        Encoding::Zstd => ObjectFlags::ZSTD,
    }
}

/// The coding according to the flags of an object.
pub(crate) fn coding_of(flags: ObjectFlags) -> Option<Encoding> {
    ENCODINGS.into_iter().find(|encoding| flags.has(flag_of(*encoding)))
}

/// True if a request accepts a body with these flags unchanged.
pub(crate) fn is_accepted(flags: ObjectFlags, request: &Message) -> bool {
    coding_of(flags).is_none_or(|encoding| semantics::encoding::accepts(request, encoding))
}

/// The filter that decodes a body with these flags, for a list of filters: with a space before it.
pub(crate) fn unpacker(flags: ObjectFlags) -> &'static [u8] {
    match coding_of(flags) {
        None => b"",
        Some(Encoding::Gzip) => b" gunzip",
        Some(Encoding::Brotli) => b" unbrotli",
        Some(Encoding::Zstd) => b" unzstd",
    }
}

/// Makes a strong ETag weak: the bytes that are sent are not the ones that it identifies.
pub(crate) fn weaken_etag(message: &mut Message, log: &mut LogBuffer, tags: MessageTags) {
    let Some(before) = message.get("ETag").filter(|tag| !tag.starts_with(b"W/")).map(<[u8]>::to_vec) else { return };
    log.record_parts(tags.unset, &[b"ETag: ", &before]);
    semantics::encoding::weaken_etag(message);
    log.record_parts(tags.header, &[b"ETag: ", message.get("ETag").unwrap_or_default()]);
}
