//! PROXY headers that a client sends before everything else.

use std::net::SocketAddr;

use crate::address;

/// The header for `CLIENT:PORT SERVER:PORT`.
///
/// # Errors
/// The error in the addresses.
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
    let mut bytes = Vec::new();
    match version {
        1 => proxy_protocol::write_version_1(client, server, &mut bytes),
        _ => proxy_protocol::write_version_2(client, server, b"", &mut bytes),
    }
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
