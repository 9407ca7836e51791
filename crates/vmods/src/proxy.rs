//! proxy: what the sender of a PROXY header of version 2 says about the client besides its addresses.
//!
//! `net` has found the elements well-formed; one that is not reads as absent. Elements within the TLS element are found
//! like the others. Source: the PROXY protocol specification, §2.2.

use crate::context::VmodContext;
use vcl_run::value::{Scratch, Text, Value};

/// Types of elements.
pub(crate) const ALPN: u8 = 0x01;
pub(crate) const AUTHORITY: u8 = 0x02;
const TLS: u8 = 0x20;
pub(crate) const TLS_VERSION: u8 = 0x21;
pub(crate) const COMMON_NAME: u8 = 0x22;
pub(crate) const CIPHER: u8 = 0x23;
pub(crate) const SIGNATURE_ALGORITHM: u8 = 0x24;
pub(crate) const KEY_ALGORITHM: u8 = 0x25;

/// Flags in the first byte of the TLS element; four bytes with the result of the check follow.
pub(crate) const OVER_TLS: u8 = 0x01;
pub(crate) const CERTIFICATE_ON_CONNECTION: u8 = 0x02;
pub(crate) const CERTIFICATE_IN_SESSION: u8 = 0x04;
const TLS_HEAD_BYTES: usize = 5;

/// The value of the first element of a type.
fn find(elements: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = elements;
    while let [kind, high, low, ..] = *rest {
        let end = 3 + usize::from(u16::from_be_bytes([high, low]));
        let value = rest.get(3..end)?;
        if kind == wanted {
            return Some(value);
        }
        if kind == TLS
            && let Some(found) = value.get(TLS_HEAD_BYTES..).and_then(|within| find(within, wanted))
        {
            return Some(found);
        }
        rest = &rest[end..];
    }
    None
}

fn element(context: &dyn VmodContext, wanted: u8) -> Option<&[u8]> {
    context.connection().and_then(|connection| find(connection.proxy_elements, wanted))
}

/// A text; it ends before the first NUL.
pub(crate) fn text(context: &mut dyn VmodContext, scratch: &mut Scratch, wanted: u8) -> Value {
    let bytes = element(context, wanted).and_then(|bytes| bytes.split(|byte| *byte == 0).next());
    Value::Text(bytes.map_or(Text::UNSET, |bytes| scratch.put(bytes)))
}

/// A flag of the TLS element.
pub(crate) fn flag(context: &mut dyn VmodContext, wanted: u8) -> Value {
    let flags = element(context, TLS).and_then(|value| value.first());
    Value::Bool(flags.is_some_and(|flags| flags & wanted == wanted))
}

/// `proxy.ssl_verify_result()`
pub(crate) fn verify_result(context: &mut dyn VmodContext) -> Value {
    let number = element(context, TLS).and_then(|value| value.get(1..TLS_HEAD_BYTES)?.try_into().ok());
    Value::Int(number.map_or(0, |bytes| i64::from(u32::from_be_bytes(bytes))))
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
    fn elements_that_lie_about_their_length_are_absent() {
        for elements in [&[ALPN, 0, 3, b'h'][..], &[ALPN, 0], &[TLS, 0, 2, 1, 0], &[TLS, 0, 7, 1, 0, 0, 0, 0, ALPN, 9]]
        {
            assert_eq!(find(elements, ALPN), None, "{elements:?}");
        }
    }
}
