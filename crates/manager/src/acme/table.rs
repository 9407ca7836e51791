//! State of the certificates that are ordered: [`Acme`].
//!
//! The manager owns it; the keeper changes it, the CLI reads it and requests orders. It has no
//! clock of its own. Next file: `keeper.rs`.

use super::folder::{Folder, Stamp};
use super::plan::{self, Record};
use crate::arguments::acme::{AcmeArgument, Wanted, Way};
use crate::arguments::listen::{ListenAddress, ListenArgument};
use std::cell::RefCell;
use tls::certificate::CertificateFacts;
use tokio::sync::Notify;

/// Everything about ordered certificates.
pub struct Acme {
    /// The options `-o acme…`.
    pub argument: AcmeArgument,
    /// The folder of account and certificates.
    pub folder: Folder,
    /// The certificates.
    pub items: RefCell<Vec<Item>>,
    /// Wakes the keeper.
    pub wake: Notify,
    /// The available challenge types, the first one preferred.
    pub ways: Vec<Way>,
}

/// A certificate that was ordered, or will be.
#[derive(Clone, Debug)]
pub struct Item {
    /// Names, and the listeners that use the certificate.
    pub wanted: Wanted,
    /// Record of the orders so far.
    pub record: Record,
    /// The present certificate.
    pub held: Option<Held>,
    /// An order is under way here.
    pub is_ordering: bool,
    /// An operator requested an order now.
    pub is_asked: bool,
    /// The record could not be saved: the one in the folder is older.
    pub is_unsaved: bool,
    /// Time of the next request for advice, in seconds since 1970.
    pub advice_at: f64,
}

/// A certificate that we have.
#[derive(Clone, Debug)]
pub struct Held {
    /// Stamp of its file.
    pub stamp: Stamp,
    /// Facts read from the certificate.
    pub facts: CertificateFacts,
    /// The certificate in DER.
    pub der: Vec<u8>,
    /// Time to renew it, in seconds since 1970.
    pub renew_at: f64,
    /// It is served; if not, that is tried again.
    pub is_served: bool,
}

impl Acme {
    /// Builds the table that a command line requests.
    ///
    /// # Errors
    /// There is no listener on which control of the names could be proven.
    pub fn new(argument: AcmeArgument, wanted: Vec<Wanted>, listeners: &[ListenArgument]) -> Result<Acme, String> {
        let ways = ways(argument.way, listeners);
        if ways.is_empty() {
            return Err("-o acme_challenge=http-01 needs a listener without TLS, reachable at port 80".to_owned());
        }
        let folder = Folder::of(&argument.folder, &argument.directory);
        let items = wanted.into_iter().map(Item::new).collect();
        Ok(Acme { argument, folder, items: RefCell::new(items), wake: Notify::new(), ways })
    }

    /// Name of the authority in messages.
    #[must_use]
    pub fn authority(&self) -> &str {
        let url = &self.argument.directory;
        url.split_once("://").map_or(url.as_str(), |(_, rest)| rest.split('/').next().unwrap_or(rest))
    }
}

/// The challenge types that these listeners allow. HTTP comes first, since authorities connect to
/// port 80, unless only port 443 is open.
fn ways(only: Option<Way>, listeners: &[ListenArgument]) -> Vec<Way> {
    let has = |tls: bool, port: Option<u16>| {
        listeners.iter().filter(|listener| listener.tls == tls).any(|listener| match &listener.address {
            ListenAddress::Tcp(addresses) => port.is_none_or(|port| addresses.iter().any(|one| one.port() == port)),
            ListenAddress::Unix { .. } => false,
        })
    };
    let mut ways = Vec::new();
    if has(false, None) {
        ways.push(Way::Http);
    }
    if has(true, None) {
        ways.push(Way::TlsAlpn);
    }
    if has(true, Some(443)) && !has(false, Some(80)) {
        ways.reverse();
    }
    ways.retain(|way| only.is_none_or(|only| only == *way));
    ways
}

impl Item {
    fn new(wanted: Wanted) -> Item {
        let record = Record::default();
        Item { wanted, record, held: None, is_ordering: false, is_asked: false, is_unsaved: false, advice_at: 0.0 }
    }

    /// Name in messages: its first host name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.wanted.names[0]
    }

    /// All its names, joined as in a listener's argument.
    #[must_use]
    pub fn names(&self) -> String {
        self.wanted.names.join("+")
    }

    /// Takes a certificate over. `chance` is in 0..1.
    pub fn hold(&mut self, stamp: Stamp, facts: CertificateFacts, der: Vec<u8>, chance: f64) {
        let is_for_all = self.wanted.names.iter().all(|name| facts.names.contains(name));
        let known = self.held.as_ref().filter(|held| held.stamp == stamp).map(|held| held.renew_at);
        let renew_at = match (is_for_all, known) {
            (false, _) => 0.0,
            // The same certificate again: the advice received for it remains valid.
            (true, Some(renew_at)) => renew_at,
            (true, None) => plan::renewal(facts.not_before as f64, facts.not_after as f64, chance),
        };
        if known.is_none() {
            self.advice_at = 0.0;
        }
        self.held = Some(Held { stamp, facts, der, renew_at, is_served: false });
    }

    /// Time when the next order is due, in seconds since 1970.
    #[must_use]
    pub fn due_at(&self) -> f64 {
        let wanted_at = self.held.as_ref().map_or(0.0, |held| held.renew_at);
        if self.is_asked { 0.0 } else { wanted_at.max(self.record.next_try) }
    }

    /// The word for its state.
    #[must_use]
    pub fn state(&self, now: f64) -> &'static str {
        match &self.held {
            _ if self.is_ordering => "ordering",
            None => "missing",
            Some(held) if held.facts.not_after as f64 <= now => "expired",
            Some(_) => "valid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::listen;

    fn listeners(all: &[&str]) -> Vec<ListenArgument> {
        all.iter().map(|text| listen::parse(text, &mut 0).unwrap()).collect()
    }

    #[test]
    fn the_way_follows_from_the_listeners() {
        let auto = |all: &[&str]| ways(None, &listeners(all));
        assert_eq!(auto(&["127.0.0.1:80", "127.0.0.1:443,https"]), [Way::Http, Way::TlsAlpn]);
        assert_eq!(auto(&["127.0.0.1:8080", "127.0.0.1:443,https"]), [Way::TlsAlpn, Way::Http]);
        assert_eq!(auto(&["127.0.0.1:8080", "127.0.0.1:8443,https"]), [Way::Http, Way::TlsAlpn]);
        assert_eq!(auto(&["127.0.0.1:443,https", "/run/x"]), [Way::TlsAlpn]);
        assert_eq!(ways(Some(Way::Http), &listeners(&["127.0.0.1:443,https"])), []);
    }

    #[test]
    fn a_certificate_is_due_at_once_if_it_lacks_a_name_or_an_operator_wants_it() {
        let names = vec!["a.example".to_owned(), "b.example".to_owned()];
        let mut item = Item::new(Wanted { names: names.clone(), listeners: vec!["a0".into()] });
        assert_eq!((item.due_at(), item.state(5.0)), (0.0, "missing"));
        let facts = |names: &[String]| CertificateFacts {
            names: names.to_vec(),
            not_before: 0,
            not_after: 900,
            ..CertificateFacts::default()
        };
        item.hold(Stamp::default(), facts(&names), Vec::new(), 0.0);
        assert_eq!((item.due_at(), item.state(5.0), item.state(900.0)), (600.0, "valid", "expired"));
        item.record.next_try = 700.0;
        assert_eq!(item.due_at(), 700.0);
        item.is_asked = true;
        assert_eq!(item.due_at(), 0.0);
        item.is_asked = false;
        item.hold(Stamp::default(), facts(&names[..1]), Vec::new(), 0.0);
        item.record.next_try = 0.0;
        assert_eq!(item.due_at(), 0.0, "a name is missing");
    }
}
