//! Registry of the certificates and their listeners: [`Registry`].
//!
//! A certificate belongs to one frontend, i.e. a listener with TLS, or is global. *Active* ones are
//! served; loads and discards of the CLI are *staged* until they are committed. Nothing here reads
//! files, sends anything or reads a clock. *Invariant:* ids are unique among all certificates that
//! are active or staged to become so. *Invariant:* a registry only ever changes as a whole:
//! `apply.rs` changes a copy, and keeps it if the worker takes its table.
//!
//! Next files: `registry/handed.rs`, `apply.rs`.

mod handed;

pub use handed::HandedTls;

use crate::tls::files::{FromFiles, PemFiles, Stamp};
use crate::tls::tickets::{TicketKeys, random_secret};
use std::path::PathBuf;
use surface::limits::CERTIFICATES_MAX;
use tls::certificate::LoadedCertificate;
use tls::secret::Secret;
use tls::table::{CertificateRow, ClientDemand, ClientVerification, FrontendRow, HttpChallenge, TlsTable};

/// Length of the QUIC secret, in bytes.
const QUIC_SECRET_BYTES: usize = 64;
/// Name of the global certificates' frontend. Compat: that of Varnish 9.
pub const GLOBAL: &str = "default";

/// A listener with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontend {
    /// The `-a` name.
    pub name: String,
    /// Handshake settings.
    pub settings: Settings,
    /// Global certificates are served in addition to its own. Without own ones they always are.
    pub matches_global: bool,
    /// HTTP/3 is enabled.
    pub http3: bool,
    /// File that [`Settings::client`] was read from; `None` = it is not from a file.
    pub authorities: Option<Authorities>,
}

/// Verification of client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities {
    /// The file with the trust anchors.
    pub file: PathBuf,
    /// Demand on a client.
    pub demand: ClientDemand,
}

/// Handshake settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Refuses clients that send an unknown host name.
    pub aborts_unknown_names: bool,
    /// TLS 1.2 is enabled.
    pub tls12: bool,
    /// TLS 1.3 is enabled.
    pub tls13: bool,
    /// Names of the cipher suites, as rustls has them; empty = all.
    pub suites: Vec<String>,
    /// Our order of suites counts.
    pub prefers_own_order: bool,
    /// Verification of client certificates.
    pub client: ClientVerification,
    /// Early data is accepted.
    pub early_data: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            aborts_unknown_names: false,
            tls12: true,
            tls13: true,
            suites: Vec::new(),
            prefers_own_order: false,
            client: ClientVerification::default(),
            early_data: false,
        }
    }
}

/// Source of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Files, which are read again when they change, and their state when they were read.
    Files(PemFiles, Stamp),
    /// It was ordered; the keeper replaces it in time.
    Acme,
}

/// A certificate and its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its id for operators.
    pub id: String,
    /// Its frontend; `None` = global.
    pub frontend: Option<String>,
    /// The certificate, with its key.
    pub loaded: LoadedCertificate,
    /// OCSP response in DER.
    pub ocsp: Option<Vec<u8>>,
    /// Its source.
    pub origin: Origin,
    /// It serves clients that send no host name, or an unknown one.
    pub is_default: bool,
}

impl Certificate {
    /// A certificate that was read from files.
    #[must_use]
    pub fn from_files(id: String, frontend: Option<String>, files: PemFiles, read: FromFiles) -> Certificate {
        let FromFiles { loaded, ocsp, stamp, .. } = read;
        Certificate { id, frontend, loaded, ocsp, origin: Origin::Files(files, stamp), is_default: false }
    }

    /// Name in messages: its id and its source.
    #[must_use]
    pub fn described(&self) -> String {
        match &self.origin {
            Origin::Files(files, _) => format!("{} ({})", self.id, files.place()),
            Origin::Acme => self.id.clone(),
        }
    }
}

/// A change that waits for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Staged {
    /// A certificate becomes active.
    Load(Box<Certificate>),
    /// Removes the certificate with this id.
    Discard(String),
}

/// TLS state of the manager.
#[derive(Clone, Debug)]
pub struct Registry {
    frontends: Vec<Frontend>,
    active: Vec<Certificate>,
    staged: Vec<Staged>,
    http_challenges: Vec<HttpChallenge>,
    alpn_challenges: Vec<LoadedCertificate>,
    tickets: TicketKeys,
    quic_secret: Secret,
    next_number: usize,
}

impl Registry {
    /// A registry for those listeners, without a certificate.
    #[must_use]
    pub fn new(frontends: Vec<Frontend>) -> Registry {
        Registry {
            frontends,
            active: Vec::new(),
            staged: Vec::new(),
            http_challenges: Vec::new(),
            alpn_challenges: Vec::new(),
            tickets: TicketKeys::new(),
            quic_secret: random_secret(QUIC_SECRET_BYTES),
            next_number: 0,
        }
    }

    /// True if some listener has TLS.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.frontends.is_empty()
    }

    /// The listeners with TLS, to change their settings.
    pub fn frontends_mut(&mut self) -> &mut [Frontend] {
        &mut self.frontends
    }

    /// The active certificates, in the order in which they were loaded.
    #[must_use]
    pub fn active(&self) -> &[Certificate] {
        &self.active
    }

    /// Changes that wait for a commit, in order.
    #[must_use]
    pub fn staged(&self) -> &[Staged] {
        &self.staged
    }

    /// An active certificate.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Certificate> {
        self.active.iter().find(|certificate| certificate.id == id)
    }

    /// An id for a certificate without one: `cert0`, `cert1`, …, each given once.
    pub fn next_id(&mut self) -> String {
        loop {
            let id = format!("cert{}", self.next_number);
            self.next_number += 1;
            if !self.is_taken(&id) {
                return id;
            }
        }
    }

    /// True if a certificate has that id, or will have it after a commit.
    #[must_use]
    pub fn is_taken(&self, id: &str) -> bool {
        self.find(id).is_some() && !self.is_discarded(id) || self.staged_load(id).is_some()
    }

    /// True if a commit would remove it.
    #[must_use]
    pub fn is_discarded(&self, id: &str) -> bool {
        self.staged.iter().any(|staged| matches!(staged, Staged::Discard(other) if other == id))
    }

    /// The certificates that a commit would add.
    pub fn staged_loads(&self) -> impl Iterator<Item = &Certificate> {
        self.staged.iter().filter_map(|staged| match staged {
            Staged::Load(certificate) => Some(certificate.as_ref()),
            Staged::Discard(_) => None,
        })
    }

    fn staged_load(&self, id: &str) -> Option<&Certificate> {
        self.staged_loads().find(|certificate| certificate.id == id)
    }

    /// The certificates after a commit.
    pub fn prospective(&self) -> impl Iterator<Item = &Certificate> {
        let kept = self.active.iter().filter(|certificate| !self.is_discarded(&certificate.id));
        kept.chain(self.staged_loads())
    }

    /// Replaces the active certificate with its id, or appends it.
    ///
    /// # Errors
    /// There are [`CERTIFICATES_MAX`] already, or it is for a frontend that does not exist.
    pub fn put(&mut self, certificate: Certificate) -> Result<(), String> {
        self.check_frontend(certificate.frontend.as_deref())?;
        if certificate.is_default {
            self.active
                .iter_mut()
                .filter(|other| other.frontend == certificate.frontend)
                .for_each(|other| other.is_default = false);
        }
        match self.active.iter().position(|other| other.id == certificate.id) {
            Some(place) => self.active[place] = certificate,
            None if self.active.len() == CERTIFICATES_MAX => {
                return Err(format!("there are {CERTIFICATES_MAX} certificates already"));
            }
            None => self.active.push(certificate),
        }
        Ok(())
    }

    /// Replaces a certificate by the newly read one. A certificate that was removed meanwhile stays
    /// removed.
    pub fn refresh(&mut self, id: &str, read: FromFiles) {
        if let Some(certificate) = self.active.iter_mut().find(|certificate| certificate.id == id)
            && let Origin::Files(_, stamp) = &mut certificate.origin
        {
            *stamp = read.stamp;
            certificate.loaded = read.loaded;
            certificate.ocsp = read.ocsp;
        }
    }

    /// A host that another certificate covers too, with that one's id: one that would be at the
    /// same level after a commit, with the same kind of key. Certificates with different kinds of
    /// keys coexist on purpose.
    #[must_use]
    pub fn duplicate(&self, candidate: &Certificate) -> Option<(String, String)> {
        let family = |certificate: &Certificate| -> String {
            certificate.loaded.facts.key_kind.chars().take_while(char::is_ascii_alphabetic).collect()
        };
        let rivals = self.prospective().filter(|other| {
            other.id != candidate.id && other.frontend == candidate.frontend && family(other) == family(candidate)
        });
        for rival in rivals {
            let names = &rival.loaded.facts.names;
            if let Some(name) = candidate.loaded.facts.names.iter().find(|name| names.contains(name)) {
                return Some((name.clone(), rival.id.clone()));
            }
        }
        None
    }

    /// Removes an active certificate. Returns true if there was one.
    pub fn remove(&mut self, id: &str) -> bool {
        let before = self.active.len();
        self.active.retain(|certificate| certificate.id != id);
        self.active.len() < before
    }

    /// Stages a certificate.
    ///
    /// # Errors
    /// Its id is taken, its frontend does not exist, or there are too many.
    pub fn stage_load(&mut self, certificate: Certificate) -> Result<(), String> {
        self.check_frontend(certificate.frontend.as_deref())?;
        if self.is_taken(&certificate.id) {
            return Err(format!("There is a certificate \"{}\" already", certificate.id));
        }
        if self.prospective().count() >= CERTIFICATES_MAX {
            return Err(format!("There are {CERTIFICATES_MAX} certificates already"));
        }
        self.staged.push(Staged::Load(Box::new(certificate)));
        Ok(())
    }

    /// Stages the removal of a certificate; one that is only staged itself is removed at once.
    ///
    /// # Errors
    /// There is none with that id.
    pub fn stage_discard(&mut self, id: &str) -> Result<(), String> {
        let is_load = |staged: &Staged| matches!(staged, Staged::Load(certificate) if certificate.id == id);
        if let Some(at) = self.staged.iter().position(is_load) {
            self.staged.remove(at);
            return Ok(());
        }
        if self.find(id).is_none() || self.is_discarded(id) {
            return Err(format!("There is no certificate \"{id}\""));
        }
        self.staged.push(Staged::Discard(id.to_owned()));
        Ok(())
    }

    /// Applies the staged changes.
    ///
    /// # Errors
    /// There are too many certificates.
    pub fn commit(&mut self) -> Result<(), String> {
        for staged in std::mem::take(&mut self.staged) {
            match staged {
                Staged::Load(certificate) => self.put(*certificate)?,
                Staged::Discard(id) => _ = self.remove(&id),
            }
        }
        Ok(())
    }

    /// Drops the staged changes.
    pub fn rollback(&mut self) {
        self.staged.clear();
    }

    /// Sets the answers to challenges over HTTP.
    pub fn set_http_challenges(&mut self, challenges: Vec<HttpChallenge>) {
        self.http_challenges = challenges;
    }

    /// Sets the certificates that answer challenges in a handshake, on every frontend.
    pub fn set_alpn_challenges(&mut self, certificates: Vec<LoadedCertificate>) {
        self.alpn_challenges = certificates;
    }

    /// Creates a new ticket key.
    pub fn rotate_tickets(&mut self) {
        self.tickets.rotate();
    }

    /// The secret for QUIC tokens and resets.
    #[must_use]
    pub fn quic_secret(&self) -> Secret {
        self.quic_secret.clone()
    }

    /// The table for a worker.
    #[must_use]
    pub fn table(&self) -> TlsTable {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let mut certificates: Vec<CertificateRow> = self
            .active
            .iter()
            .map(|certificate| certificate.loaded.clone().into_row(certificate.id.clone(), certificate.ocsp.clone()))
            .collect();
        let challenges: Vec<u32> = (self.active.len()..).take(self.alpn_challenges.len()).map(number).collect();
        for challenge in &self.alpn_challenges {
            certificates.push(challenge.clone().into_row("challenge".to_owned(), None));
        }
        let frontends = self.frontends.iter().map(|frontend| self.row(frontend, &challenges)).collect();
        TlsTable {
            certificates,
            frontends,
            ticket_keys: self.tickets.all().to_vec(),
            http_challenges: self.http_challenges.clone(),
        }
    }

    fn row(&self, frontend: &Frontend, challenges: &[u32]) -> FrontendRow {
        let own = self.level(Some(&frontend.name));
        let uses_global = own.is_empty() || frontend.matches_global;
        let global = if uses_global { self.level(None) } else { Vec::new() };
        let default = self.default_of(&own).or_else(|| self.default_of(&global));
        let settings = &frontend.settings;
        FrontendRow {
            listener: frontend.name.clone(),
            certificates: [own, global].concat(),
            default,
            challenges: challenges.to_vec(),
            aborts_unknown_names: settings.aborts_unknown_names,
            tls12: settings.tls12,
            tls13: settings.tls13,
            suites: settings.suites.clone(),
            prefers_own_order: settings.prefers_own_order,
            client: settings.client.clone(),
            early_data: settings.early_data,
            http3: frontend.http3,
        }
    }

    /// The certificates of a frontend, or the global ones.
    fn level(&self, frontend: Option<&str>) -> Vec<u32> {
        let of_level = |certificate: &Certificate| certificate.frontend.as_deref() == frontend;
        (0..).zip(&self.active).filter(|(_, certificate)| of_level(certificate)).map(|(index, _)| index).collect()
    }

    /// The one that was declared to be the default, or else the first.
    fn default_of(&self, level: &[u32]) -> Option<u32> {
        let is_declared = |index: &&u32| self.active.get(**index as usize).is_some_and(|found| found.is_default);
        level.iter().find(is_declared).or(level.first()).copied()
    }

    fn check_frontend(&self, name: Option<&str>) -> Result<(), String> {
        match name {
            Some(name) if !self.frontends.iter().any(|frontend| frontend.name == name) => {
                Err(format!("There is no frontend \"{name}\""))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use tls::certificate::Pem;

    /// A certificate for some names, made on the spot.
    pub(crate) fn loaded(names: &[&str]) -> LoadedCertificate {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        Pem::read(certificate.pem().as_bytes(), Some(key.serialize_pem().as_bytes())).unwrap()
    }

    fn certificate(id: &str, frontend: Option<&str>) -> Certificate {
        Certificate {
            id: id.to_owned(),
            frontend: frontend.map(str::to_owned),
            loaded: loaded(&["a.example"]),
            ocsp: None,
            origin: Origin::Acme,
            is_default: false,
        }
    }

    fn registry(frontends: &[(&str, bool)]) -> Registry {
        let frontend = |(name, matches_global): &(&str, bool)| Frontend {
            name: (*name).to_owned(),
            settings: Settings::default(),
            matches_global: *matches_global,
            http3: false,
            authorities: None,
        };
        Registry::new(frontends.iter().map(frontend).collect())
    }

    /// The ids that each frontend serves, and its default.
    fn served(registry: &Registry) -> Vec<(Vec<String>, Option<String>)> {
        let table = registry.table();
        let id = |index: &u32| table.certificates[*index as usize].id.clone();
        let row = |row: &FrontendRow| (row.certificates.iter().map(id).collect(), row.default.as_ref().map(id));
        table.frontends.iter().map(row).collect()
    }

    fn ids(all: &[&str], default: &str) -> (Vec<String>, Option<String>) {
        (all.iter().map(|id| (*id).to_owned()).collect(), Some(default.to_owned()))
    }

    #[test]
    fn a_frontend_has_its_own_certificates_and_the_global_ones_if_it_wants_or_has_none() {
        let mut registry = registry(&[("bare", false), ("closed", false), ("open", true)]);
        assert_eq!(served(&registry), [(vec![], None), (vec![], None), (vec![], None)]);
        for (id, frontend) in [("g0", None), ("c0", Some("closed")), ("o0", Some("open")), ("g1", None)] {
            registry.put(certificate(id, frontend)).unwrap();
        }
        let expected = [ids(&["g0", "g1"], "g0"), ids(&["c0"], "c0"), ids(&["o0", "g0", "g1"], "o0")];
        assert_eq!(served(&registry), expected);
        registry.put(Certificate { is_default: true, ..certificate("g1", None) }).unwrap();
        assert_eq!(served(&registry)[0], ids(&["g0", "g1"], "g1"));
        registry.put(Certificate { is_default: true, ..certificate("g2", None) }).unwrap();
        assert_eq!(served(&registry)[0], ids(&["g0", "g1", "g2"], "g2"));
        assert!(registry.remove("g2") && !registry.remove("g2"));
        assert_eq!(served(&registry)[0], ids(&["g0", "g1"], "g0"));
        assert!(registry.put(certificate("x", Some("none"))).is_err());
    }

    #[test]
    fn staged_changes_apply_on_commit_and_not_after_a_rollback() {
        let mut registry = registry(&[("a0", false)]);
        registry.put(certificate("old", None)).unwrap();
        registry.stage_load(certificate("new", None)).unwrap();
        registry.stage_discard("old").unwrap();
        assert_eq!(served(&registry), [ids(&["old"], "old")]);
        assert_eq!(registry.prospective().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["new"]);
        let mut rolled_back = registry.clone();
        rolled_back.rollback();
        rolled_back.commit().unwrap();
        assert_eq!(served(&rolled_back), [ids(&["old"], "old")]);
        registry.commit().unwrap();
        assert_eq!(served(&registry), [ids(&["new"], "new")]);
        assert!(registry.staged().is_empty());
    }

    #[test]
    fn ids_are_unique_among_what_a_commit_would_leave() {
        let mut registry = registry(&[("a0", false)]);
        registry.put(certificate("cert1", None)).unwrap();
        assert_eq!((registry.next_id(), registry.next_id()), ("cert0".to_owned(), "cert2".to_owned()));
        let taken = registry.stage_load(certificate("cert1", None)).unwrap_err();
        assert_eq!(taken, "There is a certificate \"cert1\" already");
        registry.stage_discard("cert1").unwrap();
        assert!(registry.stage_discard("cert1").is_err());
        registry.stage_load(certificate("cert1", None)).unwrap();
        assert!(registry.stage_load(certificate("cert1", None)).is_err());
        registry.stage_discard("cert1").unwrap();
        assert_eq!(registry.staged(), [Staged::Discard("cert1".to_owned())]);
        assert_eq!(registry.stage_discard("none"), Err("There is no certificate \"none\"".to_owned()));
    }

    #[test]
    fn challenges_apply_to_every_frontend_and_are_not_its_certificates() {
        let mut registry = registry(&[("a0", false), ("a1", false)]);
        registry.put(certificate("one", None)).unwrap();
        registry.set_alpn_challenges(vec![loaded(&["b.example"]), loaded(&["c.example"])]);
        let answer = HttpChallenge { token: "t".to_owned(), answer: "t.k".to_owned() };
        registry.set_http_challenges(vec![answer.clone()]);
        let table = registry.table();
        assert_eq!(table.frontends[1].challenges, [1, 2]);
        assert_eq!(table.frontends[1].certificates, [0]);
        assert_eq!(table.certificates[2].names, ["c.example"]);
        assert_eq!(table.http_challenges, [answer]);
        assert!(tls::server::build(&table).is_ok());
    }

    #[test]
    fn there_is_a_most_of_certificates() {
        let mut registry = registry(&[("a0", false)]);
        let one = certificate("x", None);
        for number in 0..CERTIFICATES_MAX {
            registry.put(Certificate { id: number.to_string(), ..one.clone() }).unwrap();
        }
        assert!(registry.put(one.clone()).is_err());
        assert!(registry.stage_load(one.clone()).is_err());
        registry.put(Certificate { id: "0".to_owned(), ..one }).unwrap();
    }
}
