//! Choice of the certificate for a client: [`Certificates`].
//!
//! An exact name beats a wildcard, which matches exactly one label; case does not matter. Among
//! certificates for the same name the client's signature schemes decide, then the kind of key
//! (those on curves cost a tenth of RSA), then the order of the table. An OCSP response is stapled
//! until its next update is due.

use crate::certificate::{CertificateFacts, certified};
use crate::staple::Staple;
use crate::table::{CertificateRow, FrontendRow};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::UnixTime;
use std::collections::HashMap;
use std::sync::Arc;

/// A usable certificate, and its facts for VCL.
#[derive(Debug)]
pub struct Served {
    /// Its id for operators.
    pub id: String,
    /// Facts read from the certificate.
    pub facts: CertificateFacts,
    key: Arc<CertifiedKey>,
    /// The certificate with an OCSP response, if there is one.
    stapled: Option<(Staple, Arc<CertifiedKey>)>,
}

impl Served {
    /// Checks a row.
    ///
    /// # Errors
    /// The reason why a certificate cannot be used, with its id.
    pub(crate) fn new(row: &CertificateRow) -> Result<Served, String> {
        let say = |error| format!("certificate {}: {error}", row.id);
        let key = certified(&row.chain, &row.key).map_err(say)?;
        let first = row.chain.first().map_or(&[][..], |first| first);
        let facts = CertificateFacts::read(first).map_err(say)?;
        // The reader of the file has reported its fault.
        let staple = row.ocsp.as_ref().and_then(|ocsp| Some((Staple::read(ocsp, first).ok()?, ocsp)));
        let stapled =
            staple.map(|(staple, ocsp)| (staple, Arc::new(CertifiedKey { ocsp: Some(ocsp.clone()), ..key.clone() })));
        Ok(Served { id: row.id.clone(), facts, key: Arc::new(key), stapled })
    }

    /// The certificate to present at this time.
    fn shown(&self, now: UnixTime) -> &Arc<CertifiedKey> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        self.stapled.as_ref().filter(|(staple, _)| staple.is_good_at(now)).map_or(&self.key, |(_, stapled)| stapled)
    }

    fn fits(&self, schemes: &[SignatureScheme]) -> bool {
        self.key.key.choose_scheme(schemes).is_some()
    }
}

/// The certificates of a listener by name.
#[derive(Debug, Default)]
pub struct Certificates {
    by_name: HashMap<Box<str>, Vec<Arc<Served>>>,
    default: Vec<Arc<Served>>,
}

impl Certificates {
    /// The certificates that `which` names, and `default` for all other clients. `all` are those of
    /// the table.
    pub(crate) fn new(table: &[CertificateRow], all: &[Arc<Served>], row: &FrontendRow) -> Certificates {
        let mut certificates = Certificates::default();
        for (served, names) in chosen(table, all, &row.certificates) {
            for name in names {
                certificates.by_name.entry(name.as_str().into()).or_default().push(Arc::clone(served));
            }
        }
        for of_name in certificates.by_name.values_mut() {
            of_name.sort_by_key(|served| served.key.key.algorithm() == SignatureAlgorithm::RSA);
        }
        if let Some(default) = row.default.and_then(|index| all.get(index as usize)) {
            certificates.default.push(Arc::clone(default));
            // If the client does not support this key type, fall back to another certificate for
            // the host, then to any.
            let further = chosen(table, all, &row.certificates).map(|(served, _)| Arc::clone(served));
            certificates.default.extend(further);
        }
        certificates
    }

    /// The certificates that answer challenges; other clients get none.
    pub(crate) fn challenges(table: &[CertificateRow], all: &[Arc<Served>], row: &FrontendRow) -> Certificates {
        let mut certificates = Certificates::default();
        for (served, names) in chosen(table, all, &row.challenges) {
            for name in names {
                certificates.by_name.insert(name.as_str().into(), vec![Arc::clone(served)]);
            }
        }
        certificates
    }

    /// True if no client can be served.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.default.is_empty()
    }

    /// True if there is a certificate for clients that send no host name.
    #[must_use]
    pub fn has_default(&self) -> bool {
        !self.default.is_empty()
    }

    /// True if there is a certificate for this name in particular.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        !self.named(name).is_empty()
    }

    /// The certificate for a client that sends the host name `name`, or none.
    #[must_use]
    pub fn choose(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<&Arc<Served>> {
        let named = name.map_or(&[][..], |name| self.named(name));
        let fitting = |among: &'_ [Arc<Served>]| among.iter().position(|served| served.fits(schemes));
        if let Some(place) = fitting(named) {
            return named.get(place);
        }
        // None that the client could check: the name still identifies the intended host.
        if let Some(first) = named.first() {
            return Some(first);
        }
        fitting(&self.default).and_then(|place| self.default.get(place)).or_else(|| self.default.first())
    }

    fn named(&self, name: &str) -> &[Arc<Served>] {
        // rustls returns names in the client's case.
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        if let Some(exact) = self.by_name.get(name) {
            return exact;
        }
        let wildcard = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        wildcard.and_then(|name| self.by_name.get(name.as_str())).map_or(&[], Vec::as_slice)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name(), hello.signature_schemes())
            .map(|served| Arc::clone(served.shown(UnixTime::now())))
    }
}

/// The certificates with these indices, with their names; invalid indices are left out.
fn chosen<'a>(
    table: &'a [CertificateRow],
    all: &'a [Arc<Served>],
    indices: &'a [u32],
) -> impl Iterator<Item = (&'a Arc<Served>, &'a [String])> {
    let both = move |index: &u32| Some((all.get(*index as usize)?, &*table.get(*index as usize)?.names));
    indices.iter().filter_map(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::staple::tests::response;
    use rcgen::{CertificateParams, KeyPair, SerialNumber};
    use std::time::Duration;

    #[test]
    fn a_response_of_ocsp_is_stapled_to_its_certificate_until_there_is_a_newer_one() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from_slice(&[7]));
        let chain = vec![params.self_signed(&key).unwrap().der().to_vec()];
        let served = |ocsp: Vec<u8>| {
            let key = Secret::new(key.serialize_der());
            let row = CertificateRow { id: "a".into(), chain: chain.clone(), key, names: vec![], ocsp: Some(ocsp) };
            Served::new(&row).unwrap()
        };
        let stapled_at = |served: &Served, seconds| {
            served.shown(UnixTime::since_unix_epoch(Duration::from_secs(seconds))).ocsp.is_some()
        };
        let until_2030 = served(response(&[7], Some("20300101000000Z")));
        assert!(stapled_at(&until_2030, 1_893_455_999) && !stapled_at(&until_2030, 1_893_456_000));
        for unusable in [response(&[8], None), b"staple".to_vec(), Vec::new()] {
            assert!(!stapled_at(&served(unusable), 1_800_000_000));
        }
    }
}
