//! Resolution of host names and ports in VCL.

use super::Checker;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host with the port written after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostPort<'t> {
    pub(super) host: &'t str,
    pub(super) port: Option<&'t str>,
}

/// Splits `host`, `host:port`, `host port`, `[v6]`, `[v6]:port` and `[v6] port`; a bare IPv6
/// address has no port.
///
/// # Errors
/// If brackets do not match.
pub(super) fn split(text: &str) -> Result<HostPort<'_>, &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("IPv6 address lacks ']'")?;
        return match after.strip_prefix([':', ' ']) {
            Some(port) => Ok(HostPort { host, port: Some(port) }),
            None if after.is_empty() => Ok(HostPort { host, port: None }),
            None => Err("IPv6 address has wrong port separator"),
        };
    }
    if let Some((host, port)) = text.split_once(' ') {
        return Ok(HostPort { host, port: Some(port) });
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Ok(HostPort { host, port: Some(port) }),
        _ => Ok(HostPort { host: text, port: None }),
    }
}

impl Checker<'_> {
    /// All addresses of a host.
    ///
    /// # Errors
    /// The resolver's message.
    pub(super) fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![address]);
        }
        // Compat: blanks before a numeric IPv4 address are skipped, as the system's resolver does.
        if let Ok(address) = host.trim_ascii_start().parse::<Ipv4Addr>() {
            return Ok(vec![IpAddr::V4(address)]);
        }
        let plausible = !host.is_empty() && host.len() <= 255 && host.bytes().all(|byte| byte.is_ascii_graphic());
        if !plausible {
            return Err("Name or service not known".into());
        }
        let found = self.options.resolver.addresses(host)?;
        if found.is_empty() { Err("Name or service not known".into()) } else { Ok(found) }
    }

    /// Port by number or name; empty means 80.
    ///
    /// # Errors
    /// If there is no such service.
    pub(super) fn port(&self, port: &str) -> Result<u16, String> {
        if port.is_empty() {
            return Ok(80);
        }
        if port.bytes().all(|byte| byte.is_ascii_digit()) {
            return port.parse().map_err(|_| "Port is not between 0 and 65535".to_owned());
        }
        self.options.resolver.port(port).ok_or_else(|| "Servname not supported for ai_socktype".to_owned())
    }

    /// Like [`Checker::addresses`]; no host, or `*`, means any address of this machine. Compat:
    /// Varnish 7.1 accepts `.host = ":80"`; connecting to the unspecified address means connecting
    /// to oneself.
    ///
    /// # Errors
    /// The resolver's message.
    pub(super) fn addresses_or_any(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        if host.is_empty() || host == "*" {
            return Ok(vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]);
        }
        self.addresses(host)
    }

    /// All addresses of a host with an optional port, and the port: the default if there is none,
    /// or 80 without one.
    ///
    /// # Errors
    /// The reason why the host has no address.
    pub(super) fn addresses_and_port(&self, text: &str, default_port: &str) -> Result<(Vec<IpAddr>, u16), String> {
        let HostPort { host, port } = split(text)?;
        let port = port.filter(|port| !port.is_empty());
        if host.is_empty() && port.is_none() {
            return Err("Name or service not known".into());
        }
        let number = self.port(port.unwrap_or(default_port))?;
        Ok((self.addresses_or_any(host)?, number))
    }
}

/// True if a host is written as an address rather than a name; a port may follow.
pub(super) fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<IpAddr>().is_ok() || without_port(host).parse::<IpAddr>().is_ok()
}

/// Host name without the colon and the port.
pub(super) fn without_port(host: &str) -> &str {
    host.split(':').next().unwrap_or(host)
}

/// The list of addresses for a message about too many of them.
pub(super) fn listed<'a>(found: impl Iterator<Item = &'a IpAddr>, port: u16) -> String {
    let start = "Please specify which exact address you want to use, we found all of these:".to_owned();
    found.fold(start, |text, address| text + &format!("\n\t{address}:{port}"))
}

/// The address with all bits beyond the mask zero.
pub(super) fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_separated() {
        let check = |text, host, port| assert_eq!(split(text), Ok(HostPort { host, port }), "{text}");
        check("192.0.2.1", "192.0.2.1", None);
        check("192.0.2.1:80", "192.0.2.1", Some("80"));
        check("192.0.2.1 http", "192.0.2.1", Some("http"));
        check("::1", "::1", None);
        check("[::1]", "::1", None);
        check("[::1]:80", "::1", Some("80"));
        check("[::1] 80", "::1", Some("80"));
        assert_eq!(split("[::1"), Err("IPv6 address lacks ']'"));
        assert_eq!(split("[::1]80"), Err("IPv6 address has wrong port separator"));
    }

    #[test]
    fn masks_clear_host_bits() {
        let check = |address: &str, bits, expect: &str| {
            assert_eq!(masked(address.parse().unwrap(), bits), expect.parse::<IpAddr>().unwrap());
        };
        check("192.0.2.255", 24, "192.0.2.0");
        check("192.0.2.255", 32, "192.0.2.255");
        check("192.0.2.255", 0, "0.0.0.0");
        check("2001:db8::1", 32, "2001:db8::");
        check("2001:db8::1", 128, "2001:db8::1");
        check("2001:db8::1", 0, "::");
    }
}
