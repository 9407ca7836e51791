//! The type-length-value elements after the addresses of a version 2 header.
//!
//! The elements of a header that was read are well-formed
//! ([`ProxyHeader::elements`](crate::ProxyHeader)); in other bytes, a malformed element counts as
//! absent.

/// The client's protocol (ALPN).
pub const ALPN: u8 = 0x01;
/// The host name that the client sent (SNI).
pub const AUTHORITY: u8 = 0x02;
/// The checksum of the header, computed with zeros at its own position.
const CHECKSUM: u8 = 0x03;
/// Facts about the client's TLS: flags, the result of the verification of its certificate, and more
/// elements.
pub const TLS: u8 = 0x20;
/// Within the TLS element: the version.
pub const TLS_VERSION: u8 = 0x21;
/// Within the TLS element: the common name of the client's certificate.
pub const COMMON_NAME: u8 = 0x22;
/// Within the TLS element: the cipher.
pub const CIPHER: u8 = 0x23;
/// Within the TLS element: the algorithm of the certificate's signature.
pub const SIGNATURE_ALGORITHM: u8 = 0x24;
/// Within the TLS element: the algorithm of the certificate's key.
pub const KEY_ALGORITHM: u8 = 0x25;

/// Flag in the first byte of the TLS element: the client came over TLS.
pub const OVER_TLS: u8 = 0x01;
/// Flag: the client sent a certificate over this connection.
pub const CERTIFICATE_ON_CONNECTION: u8 = 0x02;
/// Flag: the client sent a certificate at least once over the TLS session.
pub const CERTIFICATE_IN_SESSION: u8 = 0x04;

/// Bytes of the TLS element before the elements within it: the flags, and four bytes with the
/// result of the verification.
pub const TLS_HEAD_BYTES: usize = 5;

/// The value of the first element of a type; includes elements within the TLS element.
#[must_use]
pub fn find(elements: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = elements;
    while let Ok(Some((kind, value))) = next_element(&mut rest) {
        if kind == wanted {
            return Some(value);
        }
        if kind == TLS
            && let Some(found) = value.get(TLS_HEAD_BYTES..).and_then(|within| find(within, wanted))
        {
            return Some(found);
        }
    }
    None
}

/// Checks the elements of a header, including those within the TLS element, and its checksum.
pub(crate) fn check(elements: &[u8], header: &[u8]) -> Result<(), &'static str> {
    let mut rest = elements;
    while let Some((kind, value)) = next_element(&mut rest)? {
        match kind {
            TLS => {
                let mut within = value.get(TLS_HEAD_BYTES..).ok_or("TLV Length Error")?;
                while next_element(&mut within)?.is_some() {}
            }
            CHECKSUM => {
                let expected: [u8; 4] = value.try_into().map_err(|_| "CRC error")?;
                let end = header.len() - rest.len();
                let zeroed = [&header[..end - 4], &[0; 4], &header[end..]].concat();
                if crc32c(&zeroed) != u32::from_be_bytes(expected) {
                    return Err("CRC error");
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Takes the next element from the front: its type and value; `None` at the end.
fn next_element<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, &'static str> {
    match **rest {
        [] => Ok(None),
        [kind, high, low, ..] => {
            let end = 3 + usize::from(u16::from_be_bytes([high, low]));
            let value = rest.get(3..end).ok_or("TLV Length Error")?;
            *rest = &rest[end..];
            Ok(Some((kind, value)))
        }
        _ => Err("TLV Dribble bytes"),
    }
}

/// CRC-32C (Castagnoli), bit by bit: at most 4 KiB, once per connection. Source: RFC 9260 appendix
/// A.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_within_the_tls_element_too() {
        let elements = [
            &[ALPN, 0, 2][..],
            b"h2",
            &[TLS, 0, 12, OVER_TLS, 0, 0, 0, 7, TLS_VERSION, 0, 4],
            b"v1.3",
            &[AUTHORITY, 0, 3],
            b"a.b",
        ]
        .concat();
        assert_eq!(find(&elements, ALPN), Some(&b"h2"[..]));
        assert_eq!(find(&elements, TLS_VERSION), Some(&b"v1.3"[..]));
        assert_eq!(find(&elements, AUTHORITY), Some(&b"a.b"[..]));
        assert_eq!(find(&elements, CIPHER), None);
    }

    #[test]
    fn elements_with_a_wrong_length_are_absent() {
        for elements in [&[ALPN, 0, 3, b'h'][..], &[ALPN, 0], &[TLS, 0, 2, 1, 0], &[TLS, 0, 7, 1, 0, 0, 0, 0, ALPN, 9]]
        {
            assert_eq!(find(elements, ALPN), None, "{elements:?}");
        }
    }
}
