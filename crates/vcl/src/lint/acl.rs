//! ACL entries that are contained in others (C11).

use super::finding::Found;
use super::view::View;
use crate::tree::{AclEntry, At, Declaration};
use std::net::IpAddr;
use surface::lint::Rule;

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    for declaration in view.declarations {
        if let Declaration::Acl(acl) = declaration {
            let mut networks: Vec<Network> = acl.entries.iter().filter_map(|entry| network(view, entry)).collect();
            contained(&mut networks, found);
        }
    }
}

/// An entry with a numeric address. Addresses of both families are 128 bits wide here.
#[derive(Clone, Copy)]
struct Network {
    is_v6: bool,
    first: u128,
    bits: u32,
    negated: bool,
    at: At,
    last: At,
}

impl Network {
    fn contains(&self, other: &Network) -> bool {
        let mask = if self.bits == 0 { 0 } else { u128::MAX << (128 - self.bits) };
        self.is_v6 == other.is_v6 && self.bits <= other.bits && other.first & mask == self.first
    }
}

fn network(view: &View<'_>, entry: &AclEntry) -> Option<Network> {
    let host = view.shown(entry.host).trim_matches('"');
    let address: IpAddr = host.parse().ok()?;
    let (is_v6, value, width) = match address {
        IpAddr::V4(address) => (false, u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (true, u128::from(address), 128),
    };
    let bits = match entry.mask {
        Some((_, number)) => view.shown(number).parse().ok().filter(|&bits| bits <= width)?,
        None => width,
    };
    let mask = if bits == 0 { 0 } else { u128::MAX << (128 - bits) };
    let last = entry.mask.map_or(entry.host, |(_, number)| number);
    Some(Network { is_v6, first: value & mask, bits, negated: entry.negated, at: entry.host, last })
}

/// Reports entries whose nearest container says the same. Sorted by address and width, the
/// containers of an entry are on a stack.
fn contained(networks: &mut [Network], found: &mut Found<'_>) {
    networks.sort_by_key(|network| (network.is_v6, network.first, network.bits, network.at));
    let mut around: Vec<Network> = Vec::new();
    for network in networks.iter() {
        while around.last().is_some_and(|outer| !outer.contains(network)) {
            around.pop();
        }
        if let Some(outer) = around.last().filter(|outer| outer.negated == network.negated) {
            let is_same = outer.bits == network.bits;
            let message = if is_same { "This entry is there twice" } else { "This entry is contained in another" };
            let place = found.place(outer.at, outer.last);
            if let Some(finding) = found.add(Rule::AclContained, network.at, network.last, message) {
                finding.related.extend(place.map(|place| ("The other entry".to_owned(), place)));
            }
        }
        around.push(*network);
    }
}
