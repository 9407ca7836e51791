//! Access control lists.

use super::address::masked;
use super::{Checked, Checker, Meaning};
use crate::diagnostic::hint;
use crate::tree::{Acl, AclEntry as EntryTree, At};
use std::collections::HashMap;
use std::net::IpAddr;
use vcl_run::program::{AclDefinition, AclEntry};

/// Entries by network, to find contradictions.
type Known = HashMap<(IpAddr, u8), (bool, At)>;

struct Flags {
    log: bool,
    pedantic: bool,
}

impl Checker<'_> {
    pub(super) fn acl(&mut self, tree: &Acl) -> Checked<()> {
        let index = self.acls.len() as u32;
        let name = self.declare(tree.name, Meaning::Acl(index), "Acl", "ACL")?;
        let flags = self.acl_flags(tree);
        let mut entries = Vec::with_capacity(tree.entries.len());
        let mut known = Known::new();
        for entry in &tree.entries {
            // A wrong entry is reported and left out.
            let _ = self.acl_entry(entry, &flags, &mut known, &mut entries);
        }
        self.acls.push(AclDefinition { name, log: flags.log, entries });
        Ok(())
    }

    fn acl_flags(&mut self, tree: &Acl) -> Flags {
        let mut flags = Flags { log: false, pedantic: self.options.acl_pedantic };
        for &(sign, word) in &tree.flags {
            let on = self.text(sign) == "+";
            match self.text(word) {
                "log" => flags.log = on,
                "pedantic" => flags.pedantic = on,
                // How lookups are done is not for the VCL to say.
                "table" => {}
                _ => {
                    let help = hint("the flags are log, table and pedantic");
                    let text = format!("Unknown ACL flag:\n{}{help}", self.at(word));
                    self.error(word, text);
                }
            }
        }
        flags
    }

    fn acl_entry(
        &mut self,
        tree: &EntryTree,
        flags: &Flags,
        known: &mut Known,
        entries: &mut Vec<AclEntry>,
    ) -> Checked<()> {
        let content = String::from_utf8_lossy(self.loaded.sources.content(self.token(tree.host))).into_owned();
        let (host, inner_mask) = match content.split_once('/') {
            None => (content.as_str(), None),
            Some((host, mask)) if !mask.is_empty() && mask.bytes().all(|byte| byte.is_ascii_digit()) => {
                (host, Some(mask.parse::<u32>().unwrap_or(u32::MAX)))
            }
            Some(_) => return Err(self.error_at(".../mask is not numeric.", tree.host)),
        };
        if let (Some(_), Some((slash, _))) = (inner_mask, tree.mask) {
            return Err(self.error_at("/mask only allowed once.", slash));
        }
        let mask_token = tree.mask.map_or(tree.host, |(_, mask)| mask);
        let mask = inner_mask.or(tree.mask.map(|(_, mask)| self.text(mask).parse().unwrap_or(u32::MAX)));
        let found = match self.addresses(host) {
            Ok(found) => found,
            Err(_) if tree.optional => {
                let place = self.at(tree.host);
                self.diagnostics.warning(
                    u64::from(tree.host),
                    format!("Warning: {host} ignored\n  -- Name or service not known\n{place}"),
                );
                return Ok(());
            }
            Err(text) => return Err(self.error_at(&format!("DNS lookup({host}): {text}"), tree.host)),
        };
        for address in found {
            let (width, family) = if address.is_ipv4() { (32u8, "IPv4") } else { (128, "IPv6") };
            let bits = match mask {
                None => width,
                Some(mask) if mask <= u32::from(width) => mask as u8,
                Some(mask) => {
                    return Err(self.error_at(&format!("Too wide mask (/{mask}) for {family} address"), mask_token));
                }
            };
            let network = masked(address, bits);
            let written = match tree.mask {
                Some((_, mask)) => format!("\"{content}\"/{}", self.text(mask)),
                None => format!("\"{content}\""),
            };
            let text = if network == address { written } else { format!("{written} fixed: {network}/{bits}") };
            if network != address {
                let message = format!("Non-zero bits in masked part, (maybe use {network}/{bits} ?)");
                if flags.pedantic {
                    let help = hint("or declare the acl with -pedantic, which clears these bits");
                    let message = format!("{message}\n{}{help}", self.at(tree.host));
                    return Err(self.error(tree.host, message));
                }
                let message = format!("{message}\n{}", self.at(tree.host));
                self.warning(tree.host, &message);
            }
            match known.get(&(network, bits)) {
                Some(&(negated, before)) if negated != tree.negated => {
                    let message = format!("Conflicting ACL entries:\n{}\nvs:\n{}", self.at(before), self.at(tree.host));
                    return Err(self.error(before, message));
                }
                Some(_) => {}
                None => {
                    known.insert((network, bits), (tree.negated, tree.host));
                    entries.push(AclEntry { address: network, bits, negated: tree.negated, text });
                }
            }
        }
        Ok(())
    }
}
