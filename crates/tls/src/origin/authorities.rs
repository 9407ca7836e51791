//! Trust anchors for origins: [`Authorities`], of the system or given by an operator.
//!
//! *Invariant:* the system's authorities are the only files that a worker reads. Files that VCL
//! names for TLS are read by the manager's compiler.

use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls_native_certs::ErrorKind;
use rustls_pki_types::CertificateDer;
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use surface::limits::AUTHORITIES_RETRY_SECONDS;

/// Authorities, and certificates that are trusted by themselves.
#[derive(Debug)]
pub(super) struct Authorities {
    anchors: RootCertStore,
    /// SHA-256 of each: a certificate that was given as an authority is also accepted as an
    /// origin's own.
    digests: HashSet<[u8; 32]>,
    /// The reason why there is none.
    complaint: Option<String>,
    /// Some could not be read; a later read may succeed.
    is_partial: bool,
}

impl Authorities {
    /// No trust anchors, for backends whose chain is not verified.
    pub(super) fn none() -> Authorities {
        Authorities { anchors: RootCertStore::empty(), digests: HashSet::new(), complaint: None, is_partial: false }
    }

    /// These certificates; invalid ones are left out.
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

    /// The system's trust anchors. Reads files.
    pub(super) fn of_the_system() -> Authorities {
        let found = rustls_native_certs::load_native_certs();
        let mut authorities = Authorities::of(found.certs);
        if let (Some(complaint), Some(error)) = (&mut authorities.complaint, found.errors.first()) {
            *complaint = format!("{complaint}: {error}");
        }
        authorities.is_partial = found.errors.iter().any(|error| is_passing(&error.kind));
        authorities
    }

    /// The trust anchors in rustls' form.
    pub(super) fn anchors(&self) -> &RootCertStore {
        &self.anchors
    }

    /// True if this very certificate is one of them.
    pub(super) fn include(&self, certificate: &CertificateDer<'_>) -> bool {
        self.digests.contains(&sha256(certificate))
    }

    /// True if the next read may find more.
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// The reason why there is none; `None` if there are some.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }
}

/// True if the failed read may succeed the next time without a change: a shortage of descriptors or
/// memory is temporary.
fn is_passing(kind: &ErrorKind) -> bool {
    use io::ErrorKind as Kind;
    let ErrorKind::Io { inner, .. } = kind else { return false };
    let lasting = [Kind::NotFound, Kind::PermissionDenied, Kind::InvalidData, Kind::IsADirectory, Kind::NotADirectory];
    !lasting.contains(&inner.kind())
}

/// The system's trust anchors, read when they are needed. They are kept as long as the process
/// lives if there are some and none was left out; else they are read again,
/// [`AUTHORITIES_RETRY_SECONDS`] later at the earliest.
#[derive(Default)]
pub(super) struct OfSystem {
    found: Mutex<Option<Found>>,
    /// Held while they are read.
    reading: Mutex<()>,
}

struct Found {
    authorities: Arc<Authorities>,
    /// Time until which they are valid; `None` = for ever.
    until: Option<Instant>,
}

impl OfSystem {
    /// The trust anchors that were read, if they are still valid.
    pub(super) fn known(&self, now: Instant) -> Option<Arc<Authorities>> {
        let found = locked(&self.found);
        let found = found.as_ref().filter(|found| found.until.is_none_or(|until| now < until));
        found.map(|found| Arc::clone(&found.authorities))
    }

    /// The trust anchors that were read, or are read now by `read`.
    pub(super) fn read(&self, now: Instant, read: impl FnOnce() -> Authorities) -> Arc<Authorities> {
        if let Some(known) = self.known(now) {
            return known;
        }
        let _reading = locked(&self.reading);
        // Another thread may have read them meanwhile.
        self.known(now).unwrap_or_else(|| {
            let authorities = Arc::new(read());
            let is_good = authorities.complaint.is_none() && !authorities.is_partial;
            let until = (!is_good).then(|| now + Duration::from_secs(AUTHORITIES_RETRY_SECONDS));
            *locked(&self.found) = Some(Found { authorities: Arc::clone(&authorities), until });
            authorities
        })
    }
}

/// Each change is complete before a panic is possible.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Authorities {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Authorities::of([params.self_signed(&key).unwrap().der().clone()])
    }

    #[test]
    fn authorities_that_could_not_be_read_are_read_again_after_a_while_and_good_ones_are_kept() {
        let (system, begun) = (OfSystem::default(), Instant::now());
        let retry = Duration::from_secs(AUTHORITIES_RETRY_SECONDS);
        assert!(system.known(begun).is_none());
        assert!(system.read(begun, || Authorities::of([])).complaint().is_some());
        let soon = begun + retry / 2;
        assert!(system.read(soon, || unreachable!("too soon")).complaint().is_some());
        assert!(system.known(begun + retry).is_none());
        let partial = system.read(begun + retry, || Authorities { is_partial: true, ..some() });
        assert!(partial.complaint().is_none() && partial.is_partial());
        let later = begun + 2 * retry;
        assert!(!system.read(later, some).is_partial());
        let much_later = later + 1000 * retry;
        assert!(system.read(much_later, || unreachable!("they are good")).complaint().is_none());
    }

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        let of = |inner: io::Error| is_passing(&ErrorKind::Io { inner, path: "/etc/ssl".into() });
        // EMFILE, EIO.
        assert!(of(io::Error::from_raw_os_error(24)) && of(io::Error::from_raw_os_error(5)));
        assert!(!of(io::ErrorKind::NotFound.into()) && !of(io::ErrorKind::PermissionDenied.into()));
    }
}
