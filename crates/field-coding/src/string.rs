//! Strings of a header block: a length, and text in the clear or in Huffman's code. Source:
//! RFC 7541 §5.2, RFC 9204 §4.1.2.

use crate::huffman::{self, NoText};
use crate::integer::{self, Unreadable};

/// A header block cannot be read: COMPRESSION_ERROR in HTTP/2, QPACK_DECOMPRESSION_FAILED in
/// HTTP/3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undecodable;

impl From<Unreadable> for Undecodable {
    fn from(_: Unreadable) -> Undecodable {
        Undecodable
    }
}

impl From<NoText> for Undecodable {
    fn from(_: NoText) -> Undecodable {
        Undecodable
    }
}

/// Reads a string, and advances past it. The length has `bits` bits in its first byte, of which the
/// bit before them flags Huffman's code, and at most `more_bytes_max` bytes after that. The text is
/// in `buffer` if it had to be decoded.
///
/// # Errors
/// See [`Undecodable`].
pub fn read<'b, 't: 'b>(
    rest: &mut &'t [u8],
    bits: u32,
    more_bytes_max: u32,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], Undecodable> {
    let is_huffman = rest.first().ok_or(Undecodable)? >> bits & 1 == 1;
    let length = usize::try_from(integer::read(rest, bits, more_bytes_max)?).map_err(|_| Undecodable)?;
    let (text, after) = rest.split_at_checked(length).ok_or(Undecodable)?;
    *rest = after;
    if !is_huffman {
        return Ok(text);
    }
    buffer.clear();
    huffman::decode(text, buffer)?;
    Ok(buffer)
}
