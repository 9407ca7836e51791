//! Parser of headers.
//!
//! A parser over the bytes received so far. Addresses that the sender left out or that we can't use
//! are not an error (`addresses: None`); a malformed header is. Compat: texts as observed in
//! Varnish 7.1.1.

use crate::element;
use crate::layout::{
    FAMILY_TCP4, FAMILY_TCP6, FAMILY_UNSPECIFIED, HEAD_BYTES, PREFIX, SIGNATURE, TCP4_BYTES, TCP6_BYTES,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use surface::limits::{PROXY_HEADER_1_BYTES_MAX, PROXY_HEADER_2_BYTES_MAX};

/// A complete header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// 1 or 2.
    pub version: u8,
    /// Client and server address; `None` for LOCAL and unusable families.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Reason why the addresses were ignored, for a `ProxyGarbage` record.
    pub ignored: Option<String>,
    /// LOCAL command (version 2): the connection is the sender's own.
    pub local: bool,
    /// The type-length-value elements after the addresses (version 2), well-formed.
    pub elements: Vec<u8>,
}

/// The result of parsing the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// A header of `consumed` bytes.
    Complete {
        /// The header.
        header: ProxyHeader,
        /// Its length in bytes.
        consumed: usize,
    },
    /// Not a PROXY header; the text is for `ProxyGarbage`, empty if there is nothing to log.
    Bad(String),
    /// A version 2 header whose elements are malformed: not to be used, but the log names its
    /// addresses.
    BadElements {
        /// Client and server address.
        addresses: (SocketAddr, SocketAddr),
        /// For `ProxyGarbage`.
        text: String,
    },
    /// Longer than we accept, by its own length field or by the bytes so far.
    Overflow,
}

/// Parses the bytes received so far.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    let shared = bytes.len().min(SIGNATURE.len());
    if bytes.is_empty() {
        Parsed::Partial
    } else if bytes[..shared] == SIGNATURE[..shared] {
        if bytes.len() < HEAD_BYTES { Parsed::Partial } else { version_2(bytes) }
    } else {
        version_1(bytes)
    }
}

fn version_1(bytes: &[u8]) -> Parsed {
    let prefix = PREFIX.as_bytes();
    let shared = bytes.len().min(prefix.len());
    if bytes[..shared] != prefix[..shared] {
        return Parsed::Bad(String::new());
    }
    // A complete line is parsed even if it is too long, to report its fault; an incomplete one is
    // refused.
    let Some(end) = bytes.iter().take(PROXY_HEADER_2_BYTES_MAX).position(|byte| *byte == b'\n') else {
        return if bytes.len() >= PROXY_HEADER_1_BYTES_MAX { Parsed::Overflow } else { Parsed::Partial };
    };
    // The specification requires CR LF; a header that ends in a bare LF is a mistake or an attack.
    let Some(line) = bytes[..end].strip_suffix(b"\r") else { return Parsed::Bad(String::new()) };
    let Ok(line) = std::str::from_utf8(line) else { return Parsed::Bad(String::new()) };
    let fields: Vec<&str> = line.split(' ').collect();
    let header = |addresses| ProxyHeader { version: 1, addresses, ignored: None, local: false, elements: Vec::new() };
    let complete = |addresses| match end < PROXY_HEADER_1_BYTES_MAX {
        true => Parsed::Complete { header: header(addresses), consumed: end + 1 },
        false => Parsed::Overflow,
    };
    if fields.len() >= 2 && fields[1] == "UNKNOWN" {
        return complete(None);
    }
    if fields.len() < 6 {
        return Parsed::Bad("PROXY1: Too few fields".into());
    }
    if fields.len() > 6 {
        return Parsed::Bad("PROXY1: Too many fields".into());
    }
    let wants_v4 = match fields[1] {
        "TCP4" => true,
        "TCP6" => false,
        _ => return Parsed::Bad("PROXY1: Wrong TCP[46] field".into()),
    };
    let end_of = |address: &str, port: &str| -> Option<SocketAddr> {
        let address: IpAddr = address.parse().ok()?;
        (address.is_ipv4() == wants_v4).then_some(SocketAddr::new(address, port.parse().ok()?))
    };
    let Some(client) = end_of(fields[2], fields[4]) else {
        return Parsed::Bad("PROXY1: Cannot resolve source address".into());
    };
    let Some(server) = end_of(fields[3], fields[5]) else {
        return Parsed::Bad("PROXY1: Cannot resolve destination address".into());
    };
    complete(Some((client, server)))
}

fn version_2(bytes: &[u8]) -> Parsed {
    let length = usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    let consumed = HEAD_BYTES + length;
    if consumed > PROXY_HEADER_2_BYTES_MAX {
        return Parsed::Overflow;
    }
    let (version, command) = (bytes[12] >> 4, bytes[12] & 0x0f);
    if version != 2 {
        return Parsed::Bad(format!("PROXY2: bad version ({version})"));
    }
    if command > 1 {
        return Parsed::Bad(format!("PROXY2: bad command ({command})"));
    }
    if bytes.len() < consumed {
        return Parsed::Partial;
    }
    let body = &bytes[HEAD_BYTES..consumed];
    let mut header =
        ProxyHeader { version: 2, addresses: None, ignored: None, local: command == 0, elements: Vec::new() };
    if !header.local {
        match bytes[13] {
            FAMILY_TCP4 if length >= TCP4_BYTES => {
                let ip = |at: usize| Ipv4Addr::new(body[at], body[at + 1], body[at + 2], body[at + 3]);
                let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
                header.addresses =
                    Some((SocketAddr::new(ip(0).into(), port(8)), SocketAddr::new(ip(4).into(), port(10))));
            }
            FAMILY_TCP6 if length >= TCP6_BYTES => {
                let ip = |at: usize| {
                    let mut octets = [0; 16];
                    octets.copy_from_slice(&body[at..at + 16]);
                    Ipv6Addr::from(octets)
                };
                let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
                header.addresses =
                    Some((SocketAddr::new(ip(0).into(), port(32)), SocketAddr::new(ip(16).into(), port(34))));
            }
            FAMILY_TCP4 => header.ignored = Some(format!("PROXY2: Ignoring short IPv4 addresses ({length})")),
            FAMILY_TCP6 => header.ignored = Some(format!("PROXY2: Ignoring short IPv6 addresses ({length})")),
            FAMILY_UNSPECIFIED => header.ignored = Some("PROXY2: Ignoring UNSPEC|UNSPEC addresses".into()),
            other => header.ignored = Some(format!("PROXY2: Ignoring unsupported protocol (0x{other:02x})")),
        }
    }
    if let Some(addresses) = header.addresses {
        let elements = &body[if bytes[13] == FAMILY_TCP4 { TCP4_BYTES } else { TCP6_BYTES }..];
        if let Err(text) = element::check(elements, &bytes[..consumed]) {
            return Parsed::BadElements { addresses, text: format!("PROXY2: {text}") };
        }
        header.elements = elements.to_vec();
    }
    Parsed::Complete { header, consumed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(bytes: &[u8]) -> (ProxyHeader, usize) {
        match parse(bytes) {
            Parsed::Complete { header, consumed } => (header, consumed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn version_1_names_client_and_server_and_leaves_the_request() {
        let (header, consumed) = complete(b"PROXY TCP4 1.2.3.4 5.6.7.8 1234 5678\r\nGET /");
        assert_eq!(consumed, 38);
        let (client, server) = header.addresses.unwrap();
        assert_eq!((client.to_string().as_str(), server.to_string().as_str()), ("1.2.3.4:1234", "5.6.7.8:5678"));
        assert_eq!(complete(b"PROXY UNKNOWN\r\n").0.addresses, None);
    }

    #[test]
    fn every_prefix_of_a_good_header_is_partial() {
        let one = b"PROXY TCP6 1:f::2 5:a::8 1234 5678\r\n";
        for end in 0..one.len() {
            assert_eq!(parse(&one[..end]), Parsed::Partial, "{end}");
        }
        let mut two = SIGNATURE.to_vec();
        two.extend([0x21, 0x11, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 4, 210, 0, 80]);
        for end in 0..two.len() {
            assert_eq!(parse(&two[..end]), Parsed::Partial, "{end}");
        }
        assert_eq!(complete(&two).0.addresses.unwrap().0.to_string(), "1.2.3.4:1234");
    }

    /// A version 2 header with these elements.
    fn with_elements(elements: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0x21, 0x11]);
        bytes.extend((12 + elements.len() as u16).to_be_bytes());
        bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 4, 210, 0, 80]);
        bytes.extend(elements);
        bytes
    }

    /// Text about a header whose elements are malformed. It includes its addresses.
    fn refused(bytes: &[u8]) -> String {
        match parse(bytes) {
            Parsed::BadElements { addresses, text } => {
                assert_eq!(addresses.0.port(), 1234);
                text
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn elements_are_kept_when_they_are_well_formed() {
        assert_eq!(element::crc32c(b"123456789"), 0xe306_9283, "the check value of CRC-32C");
        let tls = [0x20, 0, 10, 1, 0, 0, 0, 0, 0x21, 0, 2, b'v', b'3'];
        for (elements, expected) in [
            (&[1u8, 0, 2, b'h', b'2'][..], Ok(())),
            (&tls, Ok(())),
            (&[1, 0], Err("PROXY2: TLV Dribble bytes")),
            (&[1, 0, 9, 0], Err("PROXY2: TLV Length Error")),
            (&[0x20, 0, 4, 1, 0, 0, 0], Err("PROXY2: TLV Length Error")),
            (&[0x20, 0, 6, 1, 0, 0, 0, 0, 0x21], Err("PROXY2: TLV Dribble bytes")),
            (&[3, 0, 4, 0, 0, 0, 0], Err("PROXY2: CRC error")),
            (&[3, 0, 3, 0, 0, 0], Err("PROXY2: CRC error")),
        ] {
            match expected {
                Ok(()) => assert_eq!(complete(&with_elements(elements)).0.elements, elements),
                Err(expected) => assert_eq!(refused(&with_elements(elements)), expected),
            }
        }
        let mut checked = with_elements(&[3, 0, 4, 0, 0, 0, 0]);
        let sum = element::crc32c(&checked);
        let at = checked.len() - 4;
        checked[at..].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(complete(&checked).0.elements.len(), 7);
        checked[20] ^= 1;
        assert_eq!(refused(&checked), "PROXY2: CRC error");
    }

    #[test]
    fn malformed_headers_are_reported_with_the_reason() {
        for (bytes, text) in [
            (&b"PROXY TCP4 1.2.3.4 5.6.7.8 1234\r\n"[..], "PROXY1: Too few fields"),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234 5 6\r\n", "PROXY1: Too many fields"),
            (b"PROXY TCP5 1.2.3.4 5.6.7.8 1234 5678\r\n", "PROXY1: Wrong TCP[46] field"),
            (b"PROXY TCP4 1:f::2 5.6.7.8 1234 5678\r\n", "PROXY1: Cannot resolve source address"),
            (b"GET / HTTP/1.1\r\n", ""),
        ] {
            assert_eq!(parse(bytes), Parsed::Bad(text.into()));
        }
        assert_eq!(parse(&[b'x'; 200]), Parsed::Bad(String::new()));
        assert_eq!(parse(b"PROXY UNKNOWN\nGET"), Parsed::Bad(String::new()));
    }

    #[test]
    fn header_that_is_or_will_be_too_long_is_not_waited_for() {
        let long = [&b"PROXY TCP4 1.2.3.4 5.6.7.8 1 "[..], &[b' '; 100]].concat();
        assert_eq!(parse(&long), Parsed::Overflow);
        assert_eq!(parse(&long[..PROXY_HEADER_1_BYTES_MAX - 1]), Parsed::Partial);
        assert_eq!(parse(&[&long[..], b"\r\n"].concat()), Parsed::Bad("PROXY1: Too many fields".into()));
        assert_eq!(parse(&[b"PROXY UNKNOWN ", &[b'x'; 100][..], b"\r\n"].concat()), Parsed::Overflow);
        let announced = |length: u16| {
            let mut bytes = SIGNATURE.to_vec();
            bytes.extend([0x21, 0x11]);
            bytes.extend(length.to_be_bytes());
            parse(&bytes)
        };
        assert_eq!(announced(PROXY_HEADER_2_BYTES_MAX as u16 - 16), Parsed::Partial);
        assert_eq!(announced(PROXY_HEADER_2_BYTES_MAX as u16 - 15), Parsed::Overflow);
        assert_eq!(announced(u16::MAX), Parsed::Overflow);
    }
}
