//! Writer of headers, which give a peer the client's address of a connection.

use crate::element;
use crate::layout::{
    COMMAND_LOCAL, COMMAND_PROXY, FAMILY_TCP4, FAMILY_TCP6, FAMILY_UNSPECIFIED, PREFIX, SIGNATURE, TCP4_BYTES,
    TCP6_BYTES,
};
use std::net::{IpAddr, SocketAddr};

/// Writes a version 1 header. Addresses of different families are written as IPv6.
pub fn write_version_1(client: SocketAddr, server: SocketAddr, out: &mut Vec<u8>) {
    let (client, server) = same_family(client, server);
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let line = format!("{PREFIX} {family} {} {} {} {}\r\n", client.ip(), server.ip(), client.port(), server.port());
    out.extend_from_slice(line.as_bytes());
}

/// Writes the version 1 header of a connection whose client is unknown.
pub fn write_version_1_unknown(out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{PREFIX} UNKNOWN\r\n").as_bytes());
}

/// Writes a version 2 header, with the host name that the client sent (SNI) if there is one.
pub fn write_version_2(client: SocketAddr, server: SocketAddr, authority: &[u8], out: &mut Vec<u8>) {
    let (client, server) = same_family(client, server);
    out.extend_from_slice(&SIGNATURE);
    out.push(COMMAND_PROXY);
    let authority = &authority[..authority.len().min(255)];
    let extra = if authority.is_empty() { 0 } else { 3 + authority.len() as u16 };
    match (client.ip(), server.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.push(FAMILY_TCP4);
            out.extend_from_slice(&(TCP4_BYTES as u16 + extra).to_be_bytes());
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        (from, to) => {
            out.push(FAMILY_TCP6);
            out.extend_from_slice(&(TCP6_BYTES as u16 + extra).to_be_bytes());
            out.extend_from_slice(&as_v6(from));
            out.extend_from_slice(&as_v6(to));
        }
    }
    out.extend_from_slice(&client.port().to_be_bytes());
    out.extend_from_slice(&server.port().to_be_bytes());
    if !authority.is_empty() {
        out.push(element::AUTHORITY);
        out.extend_from_slice(&(authority.len() as u16).to_be_bytes());
        out.extend_from_slice(authority);
    }
}

/// Writes a version 2 header for a connection of our own, such as a probe's.
pub fn write_version_2_local(out: &mut Vec<u8>) {
    out.extend_from_slice(&SIGNATURE);
    out.extend_from_slice(&[COMMAND_LOCAL, FAMILY_UNSPECIFIED, 0, 0]);
}

fn same_family(client: SocketAddr, server: SocketAddr) -> (SocketAddr, SocketAddr) {
    if client.is_ipv4() == server.is_ipv4() {
        return (client, server);
    }
    let widen = |address: SocketAddr| SocketAddr::new(IpAddr::from(as_v6(address.ip())), address.port());
    (widen(client), widen(server))
}

fn as_v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn version_1_names_both_ends() {
        let mut out = Vec::new();
        write_version_1(address("192.0.2.1:1111"), address("198.51.100.2:80"), &mut out);
        assert_eq!(out, b"PROXY TCP4 192.0.2.1 198.51.100.2 1111 80\r\n");
        out.clear();
        write_version_1(address("[2001:db8::1]:1"), address("[::1]:2"), &mut out);
        assert_eq!(out, b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n");
    }

    #[test]
    fn version_2_lengths_cover_addresses_and_authority() {
        for (client, server, addresses) in
            [("192.0.2.1:1111", "198.51.100.2:80", 12), ("[::1]:1", "[::1]:2", 36), ("[::1]:1", "192.0.2.1:2", 36)]
        {
            for authority in [&b""[..], b"example.com"] {
                let mut out = Vec::new();
                write_version_2(address(client), address(server), authority, &mut out);
                let extra = if authority.is_empty() { 0 } else { 14 };
                assert_eq!(usize::from(u16::from_be_bytes([out[14], out[15]])), addresses + extra);
                assert_eq!(out.len(), 16 + addresses + extra, "{client} {server}");
            }
        }
    }
}
