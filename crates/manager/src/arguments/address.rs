//! Network addresses as they are written on the command line: `host`, `host:port`, `[v6]:port`,
//! `:port`, `host port`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use vcl::{Resolve as _, SystemResolver};

/// An address as written, split in two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Host name or address; `None` = any address.
    pub host: Option<String>,
    /// Port number or service name.
    pub port: Option<String>,
}

/// Splits an address in two. A bare IPv6 address has no port.
#[must_use]
pub fn split(text: &str) -> HostPort {
    let some = |part: &str| (!part.is_empty()).then(|| part.to_owned());
    let text = text.trim();
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        let port = rest.trim_start_matches([':', ' ']);
        return HostPort { host: some(host), port: some(port) };
    }
    if let Some((host, port)) = text.split_once(' ') {
        return HostPort { host: some(host), port: some(port.trim()) };
    }
    if text.matches(':').count() > 1 {
        return HostPort { host: some(text), port: None };
    }
    match text.split_once(':') {
        Some((host, port)) => HostPort { host: some(host), port: some(port) },
        None => HostPort { host: some(text), port: None },
    }
}

/// The addresses to listen on or to connect to. No host, or `*`, means any address of both
/// families.
///
/// # Errors
/// The reason why there is no address.
pub fn resolve(address: &HostPort, default_port: u16) -> Result<Vec<SocketAddr>, String> {
    let port = match &address.port {
        None => default_port,
        Some(text) => port_number(text).ok_or("Servname not supported for ai_socktype")?,
    };
    let host = match address.host.as_deref() {
        None | Some("*") => {
            let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
            return Ok(any.map(|address| SocketAddr::new(address, port)).to_vec());
        }
        Some(host) => host,
    };
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let mut found: Vec<SocketAddr> = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    found.dedup();
    if found.is_empty() && host == "localhost" {
        // The default of -T must not depend on /etc/hosts.
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]);
    }
    if found.is_empty() { Err("Name or service not known".to_owned()) } else { Ok(found) }
}

/// A port by number or by its name in /etc/services.
fn port_number(text: &str) -> Option<u16> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    SystemResolver.port(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut_in_host_and_port() {
        let check = |text: &str, host: Option<&str>, port: Option<&str>| {
            let expected = HostPort { host: host.map(str::to_owned), port: port.map(str::to_owned) };
            assert_eq!(split(text), expected, "{text}");
        };
        check(":80", None, Some("80"));
        check("", None, None);
        check("localhost", Some("localhost"), None);
        check("127.0.0.1:http", Some("127.0.0.1"), Some("http"));
        check("127.0.0.1 8080", Some("127.0.0.1"), Some("8080"));
        check("[::1]:80", Some("::1"), Some("80"));
        check("[::1] 80", Some("::1"), Some("80"));
        check("[::1]", Some("::1"), None);
        check("::1", Some("::1"), None);
    }

    #[test]
    fn literal_addresses_resolve_to_themselves() {
        let check = |text: &str, expected: &[&str]| {
            let found = resolve(&split(text), 80).map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(found, Ok(expected.iter().map(|text| (*text).to_owned()).collect()), "{text}");
        };
        check(":0", &["0.0.0.0:0", "[::]:0"]);
        check("127.0.0.1", &["127.0.0.1:80"]);
        check("[::1]:http", &["[::1]:80"]);
        assert!(resolve(&split("127.0.0.1:99999"), 80).is_err());
        assert!(resolve(&split("127.0.0.1:no-such-service"), 80).is_err());
    }
}
