//! Lists of addresses and networks: the format of the parameter `trusted_fronts`.
//!
//! Members are separated by blanks or commas: `192.0.2.7 10.0.0.0/8 2001:db8::/32`. Only addresses
//! are accepted, no names: a list of trusted peers must not depend on DNS. Source: RFC 4632 §3.1,
//! RFC 4291 §2.3.

use std::net::IpAddr;

/// One member of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => bits_max,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        (prefix_bits <= bits_max).then_some(Network { address, prefix_bits })
    }

    fn includes(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = u32::from(network) ^ u32::from(address);
                differing.leading_zeros() >= self.prefix_bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = u128::from(network) ^ u128::from(address);
                differing.leading_zeros() >= self.prefix_bits
            }
            _ => false,
        }
    }
}

fn members(list: &str) -> impl Iterator<Item = &str> {
    list.split([' ', '\t', ',']).filter(|member| !member.is_empty())
}

/// Checks a list.
///
/// # Errors
/// The first member that is neither an address nor a network.
pub fn check(list: &str) -> Result<(), &str> {
    members(list).find(|member| Network::parse(member).is_none()).map_or(Ok(()), Err)
}

/// True if an address belongs to a list. An IPv4-mapped IPv6 address counts as the IPv4 address.
#[must_use]
pub fn includes(list: &str, address: IpAddr) -> bool {
    let address = address.to_canonical();
    members(list).filter_map(Network::parse).any(|network| network.includes(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_include_what_they_say() {
        let list = "192.0.2.7, 10.0.0.0/8\t2001:db8::/32,::1";
        check(list).unwrap();
        for inside in ["192.0.2.7", "10.255.0.1", "::ffff:10.1.2.3", "2001:db8:1::2", "::1"] {
            assert!(includes(list, inside.parse().unwrap()), "{inside}");
        }
        for outside in ["192.0.2.8", "11.0.0.1", "2001:db9::", "::2", "::"] {
            assert!(!includes(list, outside.parse().unwrap()), "{outside}");
        }
        assert!(includes("0.0.0.0/0", "203.0.113.1".parse().unwrap()));
        assert!(!includes("", "203.0.113.1".parse().unwrap()) && check("").is_ok());
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in ["localhost", "10.0.0.0/33", "10.0.0/8", "::1/129", "1.2.3.4/", "1.2.3.4/+8", "1.2.3.4:80", "*"] {
            assert_eq!(check(wrong), Err(wrong));
        }
        assert_eq!(check("10.0.0.1 proxy.example"), Err("proxy.example"));
    }
}
