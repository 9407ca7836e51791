//! ACL lookup: entries laid out as disjoint ranges of addresses, found by one binary search.

use crate::program::AclDefinition;
use std::net::IpAddr;

/// The result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AclMatch {
    /// Index of the most specific entry that covers the address.
    pub entry: Option<u32>,
    /// True if the address belongs to the ACL: there is an entry and it is not negated.
    pub matched: bool,
}

/// An ACL prepared for lookups.
#[derive(Clone, Debug, Default)]
pub struct AclIndex {
    v4: Vec<(u32, Option<u32>)>,
    v6: Vec<(u128, Option<u32>)>,
    negated: Vec<bool>,
}

impl AclIndex {
    /// Prepares an ACL.
    #[must_use]
    pub fn new(definition: &AclDefinition) -> AclIndex {
        let mut index =
            AclIndex { negated: definition.entries.iter().map(|entry| entry.negated).collect(), ..Self::default() };
        let mut v4 = Vec::new();
        let mut v6 = Vec::new();
        for (number, entry) in definition.entries.iter().enumerate() {
            let number = number as u32;
            match entry.address {
                IpAddr::V4(address) => v4.push((u128::from(u32::from(address)), entry.bits.min(32), number)),
                IpAddr::V6(address) => v6.push((u128::from(address), entry.bits.min(128), number)),
            }
        }
        index.v4 = ranges(v4, 32).into_iter().map(|(start, entry)| (start as u32, entry)).collect();
        index.v6 = ranges(v6, 128);
        index
    }

    /// Looks an address up.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> AclMatch {
        let entry = match address {
            IpAddr::V4(address) => {
                let address = u32::from(address);
                let after = self.v4.partition_point(|&(start, _)| start <= address);
                after.checked_sub(1).and_then(|at| self.v4[at].1)
            }
            IpAddr::V6(address) => {
                let address = u128::from(address);
                let after = self.v6.partition_point(|&(start, _)| start <= address);
                after.checked_sub(1).and_then(|at| self.v6[at].1)
            }
        };
        let matched = entry.is_some_and(|entry| !self.negated.get(entry as usize).copied().unwrap_or(true));
        AclMatch { entry, matched }
    }
}

/// Turns nested prefixes into disjoint ranges: each start has the entry that applies from there on.
/// Of several entries with the same prefix the first one declared applies.
fn ranges(mut prefixes: Vec<(u128, u8, u32)>, width: u8) -> Vec<(u128, Option<u32>)> {
    prefixes.sort_by_key(|&(start, bits, number)| (start, bits, number));
    prefixes.dedup_by_key(|&mut (start, bits, _)| (start, bits));
    let mut result: Vec<(u128, Option<u32>)> = Vec::with_capacity(prefixes.len() * 2);
    // The prefixes that enclose the current one, with their last address.
    let mut open: Vec<(u128, u32)> = Vec::new();
    let close_until = |open: &mut Vec<(u128, u32)>, result: &mut Vec<(u128, Option<u32>)>, start: Option<u128>| {
        while let Some(&(last, _)) = open.last() {
            if start.is_some_and(|start| last >= start) {
                break;
            }
            open.pop();
            let outer = open.last().map(|&(_, number)| number);
            if width == 32 && last >= u128::from(u32::MAX) || last == u128::MAX {
                continue;
            }
            push_range(result, last + 1, outer);
        }
    };
    for (start, bits, number) in prefixes {
        close_until(&mut open, &mut result, Some(start));
        let size_bits = width - bits;
        let last = if size_bits >= 128 { u128::MAX } else { start | ((1u128 << size_bits) - 1) };
        push_range(&mut result, start, Some(number));
        open.push((last, number));
    }
    close_until(&mut open, &mut result, None);
    result
}

fn push_range(result: &mut Vec<(u128, Option<u32>)>, start: u128, entry: Option<u32>) {
    match result.last_mut() {
        Some(last) if last.0 == start => last.1 = entry,
        _ => result.push((start, entry)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::AclEntry;

    fn acl(entries: &[(&str, u8, bool)]) -> AclDefinition {
        AclDefinition {
            name: "a".into(),
            log: false,
            entries: entries
                .iter()
                .map(|&(address, bits, negated)| AclEntry {
                    address: address.parse().unwrap(),
                    bits,
                    negated,
                    text: String::new(),
                })
                .collect(),
        }
    }

    fn find(index: &AclIndex, address: &str) -> (Option<u32>, bool) {
        let found = index.find(address.parse().unwrap());
        (found.entry, found.matched)
    }

    #[test]
    fn most_specific_entry_decides() {
        let index = AclIndex::new(&acl(&[
            ("10.0.0.0", 8, false),
            ("10.1.0.0", 16, true),
            ("10.1.2.3", 32, false),
            ("255.255.255.255", 32, false),
            ("2001:db8::", 32, false),
        ]));
        assert_eq!(find(&index, "9.255.255.255"), (None, false));
        assert_eq!(find(&index, "10.0.0.1"), (Some(0), true));
        assert_eq!(find(&index, "10.1.0.0"), (Some(1), false));
        assert_eq!(find(&index, "10.1.2.3"), (Some(2), true));
        assert_eq!(find(&index, "10.1.2.4"), (Some(1), false));
        assert_eq!(find(&index, "10.2.0.0"), (Some(0), true));
        assert_eq!(find(&index, "11.0.0.0"), (None, false));
        assert_eq!(find(&index, "255.255.255.255"), (Some(3), true));
        assert_eq!(find(&index, "2001:db8:ffff::1"), (Some(4), true));
        assert_eq!(find(&index, "2001:db9::"), (None, false));
    }

    #[test]
    fn whole_address_space_is_one_entry() {
        let index = AclIndex::new(&acl(&[("0.0.0.0", 0, false), ("::", 0, false), ("0.0.0.0", 1, true)]));
        assert_eq!(find(&index, "1.2.3.4"), (Some(2), false));
        assert_eq!(find(&index, "128.0.0.0"), (Some(0), true));
        assert_eq!(find(&index, "255.255.255.255"), (Some(0), true));
        assert_eq!(find(&index, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), (Some(1), true));
        assert_eq!(find(&index, "::"), (Some(1), true));
    }

    #[test]
    fn first_of_equal_entries_holds() {
        let index = AclIndex::new(&acl(&[("10.0.0.0", 8, true), ("10.0.0.0", 8, false)]));
        assert_eq!(find(&index, "10.0.0.1"), (Some(0), false));
    }

    #[test]
    fn no_family_matches_the_other() {
        let index = AclIndex::new(&acl(&[("10.0.0.0", 8, false)]));
        assert_eq!(find(&index, "::ffff:10.0.0.1"), (None, false));
    }
}
