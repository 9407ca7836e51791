//! Arbitrary bytes as a PROXY header, and headers written from them.

use ::proxy_protocol::{Parsed, parse, write_version_1, write_version_2};
use std::net::{Ipv6Addr, SocketAddr};
use surface::limits::{PROXY_HEADER_1_BYTES_MAX, PROXY_HEADER_2_BYTES_MAX};

/// Reads `bytes` as they arrive, one by one; then writes headers with addresses and a name taken
/// from them.
///
/// # Panics
/// When a header is read differently in pieces than at once, when the parser waits for more
/// although the bytes can't become a header, or when a header written for a backend can't be read
/// back.
pub fn proxy_header(bytes: &[u8]) {
    let whole = parse(bytes);
    match &whole {
        Parsed::Complete { header, consumed } => {
            assert!(*consumed <= bytes.len() && *consumed <= PROXY_HEADER_2_BYTES_MAX);
            assert!(header.version == 2 || *consumed <= PROXY_HEADER_1_BYTES_MAX);
            assert!(header.elements.is_empty() || header.version == 2 && header.addresses.is_some());
            assert_eq!(parse(&bytes[..*consumed]), whole, "what follows a header does not matter");
        }
        Parsed::Partial => assert!(bytes.len() < PROXY_HEADER_2_BYTES_MAX, "a header has an end"),
        Parsed::Bad(_) | Parsed::BadElements { .. } | Parsed::Overflow => {}
    }
    let mut before = Parsed::Partial;
    for end in 0..=bytes.len().min(PROXY_HEADER_2_BYTES_MAX + 1) {
        let now = parse(&bytes[..end]);
        match before {
            Parsed::Partial => {}
            Parsed::Complete { .. } | Parsed::BadElements { .. } => {
                assert_eq!(now, before, "a header stays what it is");
            }
            Parsed::Bad(_) => assert!(matches!(now, Parsed::Bad(_)), "no header becomes one"),
            // The result for a line that is too long may become more precise when its end has
            // arrived.
            Parsed::Overflow => assert!(matches!(now, Parsed::Overflow | Parsed::Bad(_)), "nothing becomes shorter"),
        }
        before = now;
    }
    let Some((addresses, name)) = bytes.split_first_chunk::<36>() else { return };
    round_trip(addresses, name);
}

fn round_trip(addresses: &[u8; 36], name: &[u8]) {
    let end = |ip: &[u8], port: &[u8]| -> SocketAddr {
        let mut octets = [0; 16];
        octets.copy_from_slice(ip);
        let ip = Ipv6Addr::from(octets);
        // Half of the addresses are IPv4.
        let ip = if octets[15] % 2 == 0 { ip.into() } else { [octets[0], octets[1], octets[2], octets[3]].into() };
        SocketAddr::new(ip, u16::from_be_bytes([port[0], port[1]]))
    };
    let client = end(&addresses[..16], &addresses[32..34]);
    let server = end(&addresses[16..32], &addresses[34..]);
    for version in [1, 2] {
        let mut written = Vec::new();
        if version == 1 {
            write_version_1(client, server, &mut written);
        } else {
            write_version_2(client, server, name, &mut written);
        }
        let Parsed::Complete { header, consumed } = parse(&written) else { panic!("{:?}", parse(&written)) };
        assert_eq!((header.version, consumed), (version, written.len()));
        let Some(read) = header.addresses else { panic!("addresses were written") };
        let same = |read: SocketAddr, sent: SocketAddr| {
            (read.ip().to_canonical(), read.port()) == (sent.ip().to_canonical(), sent.port())
        };
        assert!(same(read.0, client) && same(read.1, server), "{read:?} {client} {server}");
    }
}
