//! Those who may vouch for an origin: [`Authorities`], of the system or given by an operator.

use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use std::collections::HashSet;

/// Authorities, and certificates that are trusted by themselves.
#[derive(Debug)]
pub(super) struct Authorities {
    anchors: RootCertStore,
    /// SHA-256 of each: a certificate that was given as an authority is trusted also when an origin shows it as its own.
    digests: HashSet<[u8; 32]>,
    /// Why there is none.
    complaint: Option<String>,
}

impl Authorities {
    /// Nobody, for backends whose chain is not verified.
    pub(super) fn none() -> Authorities {
        Authorities { anchors: RootCertStore::empty(), digests: HashSet::new(), complaint: None }
    }

    /// These; what is no certificate is left out.
    pub(super) fn of(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Authorities {
        let mut authorities = Authorities::none();
        for certificate in certificates {
            let digest = sha256(&certificate);
            if authorities.anchors.add(certificate).is_ok() {
                authorities.digests.insert(digest);
            }
        }
        if authorities.anchors.is_empty() {
            authorities.complaint = Some("no authority to verify the origin's certificate with".to_owned());
        }
        authorities
    }

    /// Those that the system trusts. Reads files.
    pub(super) fn of_the_system() -> Authorities {
        let found = rustls_native_certs::load_native_certs();
        let mut authorities = Authorities::of(found.certs);
        if let (Some(complaint), Some(error)) = (&mut authorities.complaint, found.errors.first()) {
            *complaint = format!("{complaint}: {error}");
        }
        authorities
    }

    /// As rustls takes them.
    pub(super) fn anchors(&self) -> &RootCertStore {
        &self.anchors
    }

    /// Whether this very certificate is one of them.
    pub(super) fn include(&self, certificate: &CertificateDer<'_>) -> bool {
        self.digests.contains(&sha256(certificate))
    }

    /// Why there is none; `None` if there are some.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }
}

/// SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap_or_default()
}
