//! Access control lists.

mod fold;

use super::address::masked;
use super::{Checked, Checker, Meaning, nearest};
use crate::diagnostic::Draft;
use crate::tree::{Acl, AclEntry as EntryTree, At, Expression, ExpressionKind};
use std::collections::HashMap;
use std::net::IpAddr;
use surface::diagnostic::Code;
use vcl_run::program::{AclDefinition, AclEntry, Op};

/// Entries by network, for finding contradictions.
type Known = HashMap<(IpAddr, u8), (bool, At)>;

struct Flags {
    log: bool,
    pedantic: bool,
    fold: bool,
}

impl Checker<'_> {
    pub(super) fn acl(&mut self, tree: &Acl) -> Checked<()> {
        let index = self.acls.len() as u32;
        let name = self.declare(tree.name, Meaning::Acl(index), "Acl", "ACL")?;
        let flags = self.acl_flags(tree);
        let mut entries = Vec::with_capacity(tree.entries.len());
        let mut known = Known::new();
        for entry in &tree.entries {
            // An invalid entry is reported and left out.
            let _ = self.acl_entry(entry, &flags, &mut known, &mut entries);
        }
        if flags.fold {
            entries = fold::folded(entries);
        }
        self.acls.push(AclDefinition { name, log: flags.log, entries });
        Ok(())
    }

    fn acl_flags(&mut self, tree: &Acl) -> Flags {
        let mut flags = Flags {
            log: self.dialect.defaults.acl_log,
            pedantic: self.options.acl_pedantic && self.dialect.defaults.acl_pedantic,
            fold: false,
        };
        for &(sign, word) in &tree.flags {
            let on = self.text(sign) == "+";
            match self.text(word) {
                "log" => flags.log = on,
                "pedantic" => flags.pedantic = on,
                "fold" => flags.fold = on,
                // VCL has no influence on the lookup method.
                "table" => {}
                _ => {
                    let near = nearest(self.text(word), ["log", "table", "pedantic", "fold"].into_iter());
                    let draft = self.draft_at(Code::AclFlag, "Unknown ACL flag:", word);
                    let draft = draft.hint("the flags are log, table, pedantic and fold");
                    self.error(word, draft.nearest(self.token(word), self.token(word), near));
                }
            }
        }
        flags
    }

    /// Emits a test that is true if the IP on the stack is in the network written as an expression:
    /// `client.ip == "192.0.2.0"/24`, which the old compilers turned into an acl.
    pub(super) fn address_equals(&mut self, expression: &Expression) -> Checked<()> {
        let (host, mask) = match &expression.kind {
            ExpressionKind::Text => (expression.first, None),
            ExpressionKind::Product(address, rest) => match (&address.kind, rest.as_slice()) {
                (ExpressionKind::Text, [(slash, number)]) if matches!(number.kind, ExpressionKind::Number(None)) => {
                    (address.first, Some((*slash, number.first)))
                }
                _ => return Err(self.expected("CSTR", expression.first)),
            },
            _ => return Err(self.expected("CSTR", expression.first)),
        };
        let entry = EntryTree { negated: false, optional: false, host, mask };
        let flags = Flags { log: false, pedantic: false, fold: false };
        let mut entries = Vec::new();
        self.acl_entry(&entry, &flags, &mut Known::new(), &mut entries)?;
        let name = format!("{:.200}", self.text(host));
        self.acls.push(AclDefinition { name, log: flags.log, entries });
        self.emitter.op(Op::MatchAcl(self.acls.len() as u32 - 1));
        Ok(())
    }

    /// The networks in a dns director's list.
    pub(super) fn networks(&mut self, entries: &[EntryTree]) -> Vec<AclEntry> {
        let flags = Flags { log: false, pedantic: true, fold: false };
        let (mut known, mut found) = (Known::new(), Vec::with_capacity(entries.len()));
        for entry in entries {
            if self.string(entry.host).parse::<IpAddr>().is_err() {
                let draft = self.draft_at(Code::FieldValue, "Incomplete IP supplied:", entry.host);
                self.error(entry.host, draft.hint("the list is of addresses and networks: \"192.0.2.0\"/24;"));
                continue;
            }
            // An invalid entry is reported and left out.
            let _ = self.acl_entry(entry, &flags, &mut known, &mut found);
        }
        found
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
            Some(_) => return Err(self.error_at(Code::AclMask, ".../mask is not numeric.", tree.host)),
        };
        if let (Some(_), Some((slash, _))) = (inner_mask, tree.mask) {
            return Err(self.error_at(Code::AclMask, "/mask only allowed once.", slash));
        }
        let mask_token = tree.mask.map_or(tree.host, |(_, mask)| mask);
        let mask = inner_mask.or(tree.mask.map(|(_, mask)| self.text(mask).parse().unwrap_or(u32::MAX)));
        let short = net_notation(host);
        let mask = mask.or(short.map(|(_, bits)| bits));
        let found = match short.map_or_else(|| self.addresses(host), |(address, _)| Ok(vec![address])) {
            Ok(found) => found,
            Err(_) if tree.optional => {
                let text = format!("Warning: {host} ignored\n  -- Name or service not known");
                let draft = self.draft_at(Code::AclUnresolved, &text, tree.host);
                self.warning(tree.host, draft);
                return Ok(());
            }
            Err(text) => {
                let text = format!("DNS lookup({host}): {text}");
                return Err(self.error_at(Code::AclUnresolved, &text, tree.host));
            }
        };
        for address in found {
            let (width, family) = if address.is_ipv4() { (32u8, "IPv4") } else { (128, "IPv6") };
            let bits = match mask {
                None => width,
                Some(mask) if mask <= u32::from(width) => mask as u8,
                Some(mask) => {
                    let text = format!("Too wide mask (/{mask}) for {family} address");
                    return Err(self.error_at(Code::AclMask, &text, mask_token));
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
                let draft = self.draft_at(Code::AclHostBits, &message, tree.host);
                if flags.pedantic {
                    let draft = match self.dialect.defaults.acl_pedantic {
                        true => draft.hint("or declare the acl with -pedantic, which clears these bits"),
                        false => draft,
                    };
                    return Err(self.error(tree.host, draft));
                }
                self.warning(tree.host, draft);
            }
            match known.get(&(network, bits)) {
                Some(&(negated, before)) if negated != tree.negated => {
                    let draft = Draft::new(Code::AclConflict).text("Conflicting ACL entries:\n");
                    let draft = draft.at(self.token(before)).text("\nvs:\n").at(self.token(tree.host));
                    return Err(self.error(before, draft));
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

/// An IPv4 address of one to four numbers, with its number of bits: `10.1` means 10.1.0.0/16,
/// unlike in the C library.
fn net_notation(host: &str) -> Option<(IpAddr, u32)> {
    let mut octets = [0u8; 4];
    let mut count = 0;
    for part in host.split('.') {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *octets.get_mut(count)? = if is_number { part.parse().ok()? } else { return None };
        count += 1;
    }
    Some((IpAddr::from(octets), 8 * count as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_address_that_are_left_out_are_zero() {
        for (host, expected) in [
            ("10", Some(([10, 0, 0, 0], 8))),
            ("192.168.16", Some(([192, 168, 16, 0], 24))),
            ("127.0.0.1", Some(([127, 0, 0, 1], 32))),
            ("256", None),
            ("1.2.3.4.5", None),
            ("1.", None),
            ("::1", None),
            ("localhost", None),
            ("", None),
        ] {
            assert_eq!(net_notation(host), expected.map(|(octets, bits)| (IpAddr::from(octets), bits)), "{host}");
        }
    }
}
