//! PROXY headers that a client sends before everything else.
//!
//! Source: the PROXY protocol, versions 1 (a line of text) and 2 (binary).

use std::net::{IpAddr, SocketAddr};

use crate::address;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY.
const VERSION_AND_COMMAND: u8 = 0x21;

/// The header for `CLIENT:PORT SERVER:PORT`.
///
/// # Errors
/// What is wrong with the addresses.
pub fn header(version: u8, addresses: &str) -> Result<Vec<u8>, String> {
    let (client, server) = addresses.trim().split_once(' ').ok_or("two addresses are needed for a PROXY header")?;
    let one = |whose: &str, text: &str| -> Result<SocketAddr, String> {
        let found = address::resolve(text.trim(), Some(0)).ok().and_then(|all| all.first().copied());
        found.ok_or_else(|| format!("Could not resolve {whose} address"))
    };
    let (client, server) = (one("client", client)?, one("server", server)?);
    if client.is_ipv4() != server.is_ipv4() {
        return Err("client and server address are of different families".to_owned());
    }
    if version == 1 {
        let family = if server.is_ipv4() { "TCP4" } else { "TCP6" };
        let (client_port, server_port) = (client.port(), server.port());
        let line = format!("PROXY {family} {} {} {client_port} {server_port}\r\n", client.ip(), server.ip());
        return Ok(line.into_bytes());
    }
    let mut rest = Vec::new();
    for address in [client, server] {
        match address.ip() {
            IpAddr::V4(ip) => rest.extend(ip.octets()),
            IpAddr::V6(ip) => rest.extend(ip.octets()),
        }
    }
    rest.extend(client.port().to_be_bytes());
    rest.extend(server.port().to_be_bytes());
    let family = if server.is_ipv4() { 0x11 } else { 0x21 };
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([VERSION_AND_COMMAND, family, 0, rest.len() as u8]);
    bytes.extend(rest);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn both_versions_carry_both_addresses() {
        let one = header(1, "1.2.3.4:1111 5.6.7.8:5678").unwrap();
        assert_eq!(one, b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 5678\r\n");
        let two = header(2, "1.2.3.4:258 5.6.7.8:772").unwrap();
        assert_eq!(two[12..], [0x21, 0x11, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4]);
        let six = header(1, "[1:f::2]:1 [5:a::8]:2").unwrap();
        assert_eq!(six, b"PROXY TCP6 1:f::2 5:a::8 1 2\r\n");
        assert_eq!(header(2, "[1:f::2]:1 [5:a::8]:2").unwrap().len(), 16 + 36);
        assert!(header(1, "1.2.3.4:1").is_err() && header(1, "1.2.3.4:1 [::1]:2").is_err());
    }
}
