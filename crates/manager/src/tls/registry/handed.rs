//! TLS state that a manager sends to its successor: certificates, active and staged, with their
//! keys, and the keys of tickets and of QUIC.
//!
//! It goes through a socket from process to process and is never written anywhere. Challenges of
//! authorities are left out: the order they belong to ends with the process. Frontends come from
//! the successor's own command line. Received data is checked like a file.

use super::{Certificate, Origin, Registry, Staged};
use crate::tls::files::{PemFiles, Stamp};
use crate::tls::tickets::TicketKeys;
use serde::{Deserialize, Serialize};
use tls::certificate::LoadedCertificate;
use tls::secret::Secret;
use tls::table::TicketKey;

/// The TLS state.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedTls {
    active: Vec<HandedCertificate>,
    staged: Vec<HandedStaged>,
    ticket_keys: Vec<TicketKey>,
    quic_secret: Secret,
    next_number: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct HandedCertificate {
    id: String,
    frontend: Option<String>,
    chain: Vec<Vec<u8>>,
    key: Secret,
    ocsp: Option<Vec<u8>>,
    /// `None` = it was ordered.
    files: Option<(PemFiles, Stamp)>,
    is_default: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum HandedStaged {
    Load(HandedCertificate),
    Discard(String),
}

impl HandedCertificate {
    fn of(certificate: &Certificate) -> HandedCertificate {
        HandedCertificate {
            id: certificate.id.clone(),
            frontend: certificate.frontend.clone(),
            chain: certificate.loaded.chain.clone(),
            key: certificate.loaded.key.clone(),
            ocsp: certificate.ocsp.clone(),
            files: match &certificate.origin {
                Origin::Files(files, stamp) => Some((files.clone(), stamp.clone())),
                Origin::Acme => None,
            },
            is_default: certificate.is_default,
        }
    }

    fn checked(self) -> Result<Certificate, String> {
        let loaded = LoadedCertificate::of_der(self.chain, self.key)
            .map_err(|error| format!("the certificate {}: {error}", self.id))?;
        Ok(Certificate {
            id: self.id,
            frontend: self.frontend,
            loaded,
            ocsp: self.ocsp,
            origin: self.files.map_or(Origin::Acme, |(files, stamp)| Origin::Files(files, stamp)),
            is_default: self.is_default,
        })
    }
}

impl Registry {
    /// State for a successor.
    #[must_use]
    pub fn hand_over(&self) -> HandedTls {
        HandedTls {
            active: self.active.iter().map(HandedCertificate::of).collect(),
            staged: self
                .staged
                .iter()
                .map(|staged| match staged {
                    Staged::Load(certificate) => HandedStaged::Load(HandedCertificate::of(certificate)),
                    Staged::Discard(id) => HandedStaged::Discard(id.clone()),
                })
                .collect(),
            ticket_keys: self.tickets.all().to_vec(),
            quic_secret: self.quic_secret.clone(),
            next_number: self.next_number,
        }
    }

    /// Takes over the state of a predecessor; the registry has frontends and nothing else.
    ///
    /// # Errors
    /// The item that cannot be used.
    pub fn take_over(&mut self, handed: HandedTls) -> Result<(), String> {
        for certificate in handed.active {
            self.put(certificate.checked()?)?;
        }
        for staged in handed.staged {
            match staged {
                HandedStaged::Load(certificate) => self.stage_load(certificate.checked()?)?,
                HandedStaged::Discard(id) => self.stage_discard(&id)?,
            }
        }
        self.tickets = TicketKeys::of(handed.ticket_keys).ok_or("the keys of tickets are damaged")?;
        self.quic_secret = handed.quic_secret;
        self.next_number = handed.next_number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Frontend, Settings};
    use super::*;

    fn registry() -> Registry {
        let frontend = Frontend {
            name: "site".to_owned(),
            settings: Settings::default(),
            matches_global: false,
            http3: false,
            authorities: None,
        };
        Registry::new(vec![frontend])
    }

    fn certificate(id: &str, frontend: Option<&str>) -> Certificate {
        let key = rcgen::KeyPair::generate().unwrap();
        let made = rcgen::CertificateParams::new(vec![format!("{id}.example")]).unwrap().self_signed(&key).unwrap();
        let loaded = LoadedCertificate::of_der(vec![made.der().to_vec()], Secret::new(key.serialize_der())).unwrap();
        let frontend = frontend.map(str::to_owned);
        Certificate { id: id.to_owned(), frontend, loaded, ocsp: None, origin: Origin::Acme, is_default: false }
    }

    #[test]
    fn successor_serves_and_has_staged_what_its_predecessor_had() {
        let mut first = registry();
        first.put(certificate("a", Some("site"))).unwrap();
        first.put(certificate("b", None)).unwrap();
        first.stage_load(certificate("c", None)).unwrap();
        first.stage_discard("a").unwrap();
        first.next_id();
        let text = serde_json::to_string(&first.hand_over()).unwrap();
        let mut next = registry();
        next.take_over(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(next.table(), first.table(), "certificates, keys, tickets");
        assert_eq!(next.staged(), first.staged());
        assert_eq!((next.quic_secret(), next.next_id()), (first.quic_secret(), first.next_id()));
    }

    #[test]
    fn damaged_handover_is_refused() {
        let mut first = registry();
        first.put(certificate("a", Some("site"))).unwrap();
        let refused = |change: &dyn Fn(&mut HandedTls)| {
            let mut handed = first.hand_over();
            change(&mut handed);
            registry().take_over(handed).unwrap_err()
        };
        let other = certificate("x", None);
        assert!(
            refused(&|handed| handed.active[0].key = other.loaded.key.clone())
                .contains("the certificate a: key and certificate mismatch")
        );
        assert!(refused(&|handed| handed.active[0].chain[0].truncate(9)).contains("the certificate a: "));
        assert!(refused(&|handed| handed.active[0].chain.clear()).contains("no certificate"));
        assert!(refused(&|handed| handed.active[0].frontend = Some("gone".to_owned())).contains("gone"));
        assert_eq!(refused(&|handed| handed.ticket_keys.clear()), "the keys of tickets are damaged");
    }
}
