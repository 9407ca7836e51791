//! `+fold`: reduces an acl to fewer entries with the same meaning.
//!
//! A network inside another with the same verdict is left out, and two halves of a network are
//! merged. Negated entries stay unchanged, and so do the entries they are exceptions to. Source:
//! acls of Varnish 7.5 to 8.0.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use vcl_run::program::AclEntry;

/// A network: true for IPv4, its first address as a number of 128 bits (an IPv4 address in the top
/// bits), and its length.
type Network = (bool, u128, u8);

fn network(entry: &AclEntry) -> Network {
    match entry.address {
        IpAddr::V4(address) => (true, u128::from(u32::from(address)) << 96, entry.bits),
        IpAddr::V6(address) => (false, u128::from(address), entry.bits),
    }
}

/// The network one bit shorter; `None` for the network of all addresses.
fn parent((is_v4, start, bits): Network) -> Option<Network> {
    let bits = bits.checked_sub(1)?;
    Some((is_v4, start & mask(bits), bits))
}

fn mask(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - u32::from(bits)) }
}

/// Entry for a network that is not in the source.
fn entry((is_v4, start, bits): Network) -> AclEntry {
    let address = match is_v4 {
        true => IpAddr::V4(Ipv4Addr::from((start >> 96) as u32)),
        false => IpAddr::V6(Ipv6Addr::from(start)),
    };
    AclEntry { address, bits, negated: false, text: format!("\"{address}\"/{bits} fixed: folded") }
}

/// The remaining entries.
pub(super) fn folded(entries: Vec<AclEntry>) -> Vec<AclEntry> {
    let mut left: HashMap<Network, AclEntry> = HashMap::with_capacity(entries.len());
    left.extend(entries.into_iter().map(|entry| (network(&entry), entry)));
    let mut by_bits: Vec<Vec<Network>> = vec![Vec::new(); 129];
    for (network, _) in left.iter().filter(|(_, entry)| !entry.negated) {
        by_bits[usize::from(network.2).min(128)].push(*network);
    }
    for bits in (1..=128).rev() {
        let mut halves = std::mem::take(&mut by_bits[bits]);
        halves.sort_unstable();
        for pair in halves.windows(2) {
            let (Some(whole), true) = (parent(pair[0]), parent(pair[0]) == parent(pair[1])) else { continue };
            if !left.contains_key(&whole) {
                left.remove(&pair[0]);
                left.remove(&pair[1]);
                left.insert(whole, entry(whole));
                by_bits[bits - 1].push(whole);
            }
        }
    }
    let covered: Vec<Network> = left
        .iter()
        .filter(|(network, entry)| {
            let nearest =
                std::iter::successors(parent(**network), |wider| parent(*wider)).find_map(|wider| left.get(&wider));
            !entry.negated && nearest.is_some_and(|nearest| !nearest.negated)
        })
        .map(|(network, _)| *network)
        .collect();
    // Any omitted network is inside a wider one with the same verdict, so the verdict on everything
    // inside it stays the same.
    for network in covered {
        left.remove(&network);
    }
    let mut entries: Vec<(Network, AclEntry)> = left.into_iter().collect();
    entries.sort_by_key(|(network, _)| *network);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[&str]) -> Vec<AclEntry> {
        let read = |text: &&str| {
            let (negated, network) = text.strip_prefix('!').map_or((false, *text), |network| (true, network));
            let (address, bits) = network.split_once('/').unwrap();
            let text = format!("\"{address}\"/{bits}");
            AclEntry { address: address.parse().unwrap(), bits: bits.parse().unwrap(), negated, text }
        };
        list.iter().map(read).collect()
    }

    #[track_caller]
    fn check(list: &[&str], expected: &[&str]) {
        let shown: Vec<String> = folded(of(list))
            .iter()
            .map(|entry| format!("{}{}/{}", if entry.negated { "!" } else { "" }, entry.address, entry.bits))
            .collect();
        let mut expected: Vec<String> = expected.iter().map(|entry| (*entry).to_owned()).collect();
        let mut sorted = shown.clone();
        sorted.sort();
        expected.sort();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn contained_networks_are_dropped_and_halves_are_merged() {
        check(&["192.0.2.0/24", "192.0.2.128/25"], &["192.0.2.0/24"]);
        check(&["192.0.2.0/25", "192.0.2.128/25"], &["192.0.2.0/24"]);
        check(
            &["192.0.2.0/26", "192.0.2.64/26", "192.0.2.128/25", "2001:db8::/33", "2001:db8:8000::/33"],
            &["192.0.2.0/24", "2001:db8::/32"],
        );
        check(&["192.0.2.128/25", "192.0.3.0/25"], &["192.0.2.128/25", "192.0.3.0/25"]);
        let folded = folded(of(&["192.0.2.0/32", "192.0.2.1/32"]));
        assert_eq!(folded[0].text, "\"192.0.2.0\"/31 fixed: folded");
    }

    #[test]
    fn exceptions_stay_exceptions() {
        let list = ["192.0.2.0/24", "!192.0.2.0/26", "192.0.2.0/28"];
        check(&list, &list);
        check(
            &["!192.0.2.0/24", "192.0.2.0/25", "192.0.2.128/25"],
            &["!192.0.2.0/24", "192.0.2.0/25", "192.0.2.128/25"],
        );
        check(&["!192.0.2.0/25", "192.0.2.128/25"], &["!192.0.2.0/25", "192.0.2.128/25"]);
    }
}
