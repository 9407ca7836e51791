//! Resolution of the hosts and services in a VCL.
//!
//! Behind a trait, so that tests and fuzzers can compile without a name server.

use crate::files::error_text;
use std::net::{IpAddr, ToSocketAddrs};

/// Finds addresses for the compiler.
pub trait Resolve {
    /// The addresses of a host name (never a literal address). The error's text becomes part of the
    /// message.
    ///
    /// # Errors
    /// If there are none.
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
    /// The TCP port of a service name, e.g. 80 for `http`.
    fn port(&self, service: &str) -> Option<u16>;
}

/// The system's resolver and `/etc/services`.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        match (host, 0u16).to_socket_addrs() {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => {
                let text = error_text(&error);
                Err(text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned())
            }
        }
    }

    fn port(&self, service: &str) -> Option<u16> {
        let services = std::fs::read_to_string("/etc/services").unwrap_or_default();
        let listed = services.lines().find_map(|line| {
            let mut words = line.split('#').next().unwrap_or("").split_ascii_whitespace();
            let name = words.next()?;
            let port = words.next()?.strip_suffix("/tcp")?;
            (name == service || words.any(|alias| alias == service)).then(|| port.parse().ok())?
        });
        listed.or(match service {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_names() {
        assert_eq!(SystemResolver.port("http"), Some(80));
        assert_eq!(SystemResolver.port("no-such-service"), None);
    }
}
