//! Verification of an origin's identity: [`OriginVerifier`].
//!
//! Chain, name and pin are verified independently, as the attributes say: `.ssl_verify_peer` alone
//! verifies the chain without the name, which no verifier of the library does. The origin's
//! signature in the handshake is always verified: the origin has the key of the certificate that it
//! presents.

use super::authorities::{Authorities, sha256};
use crate::certificate::CertificateFacts;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use vcl_run::program::TlsDefinition;

/// Verifies origins under one set of attributes.
#[derive(Debug)]
pub(super) struct OriginVerifier {
    /// `None` = the chain is not verified.
    authorities: Option<Arc<Authorities>>,
    /// `None` = the name is not verified.
    name: Option<ServerName<'static>>,
    /// SHA-256 of the public key.
    pin: Option<[u8; 32]>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// A failed check for which the library has no error of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Distrust {
    /// The certificate is self-signed.
    SelfSigned,
    /// The chain leads to no trust anchor; the issuer that was not found.
    UnknownIssuer(String),
    /// The public key is another one; SHA-256 of it.
    Pin([u8; 32]),
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::SelfSigned => f.write_str("self-signed certificate"),
            Distrust::UnknownIssuer(issuer) => write!(f, "unknown issuer ({issuer})"),
            Distrust::Pin(_) => f.write_str("another public key than .ssl_pin says"),
        }
    }
}

impl std::error::Error for Distrust {}

impl From<Distrust> for Error {
    fn from(distrust: Distrust) -> Error {
        CertificateError::Other(OtherError(Arc::new(distrust))).into()
    }
}

impl OriginVerifier {
    /// A verifier for these attributes.
    ///
    /// # Errors
    /// The name is to be verified and is invalid.
    pub(super) fn new(
        settings: &TlsDefinition,
        authorities: Arc<Authorities>,
        provider: &CryptoProvider,
    ) -> Result<OriginVerifier, String> {
        let name = match settings.verify_host {
            true => Some(host_name(&settings.host)?),
            false => None,
        };
        let authorities = settings.verify_peer.then_some(authorities);
        Ok(OriginVerifier {
            authorities,
            name,
            pin: settings.pin,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    fn verify_chain(
        &self,
        authorities: &Authorities,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if authorities.include(certificate) {
            return in_time(certificate, now);
        }
        let parsed = ParsedCertificate::try_from(certificate)?;
        let anchors = authorities.anchors();
        match verify_server_cert_signed_by_trust_anchor(&parsed, anchors, chain, now, self.algorithms.all) {
            Err(error) => Err(explained(error, certificate, chain)),
            Ok(()) => Ok(()),
        }
    }
}

/// An error of the library, in more detail if it has none.
fn explained(error: Error, certificate: &CertificateDer<'_>, chain: &[CertificateDer<'_>]) -> Error {
    let Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_)) = &error else {
        return error;
    };
    let Ok(facts) = CertificateFacts::read(certificate) else { return error };
    if facts.subject == facts.issuer {
        return Distrust::SelfSigned.into();
    }
    let last = chain.last().and_then(|last| CertificateFacts::read(last).ok()).unwrap_or(facts);
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => Distrust::UnknownIssuer(last.issuer).into(),
        error => error,
    }
}

/// A host name or address, in the library's form.
pub(super) fn host_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host).map(|name| name.to_owned()).map_err(|_| format!("'{host}' is no host name"))
}

/// True if a certificate is within its validity period.
fn in_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let facts = CertificateFacts::read(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let moment = |seconds: i64| UnixTime::since_unix_epoch(Duration::from_secs(seconds.max(0).cast_unsigned()));
    let (not_before, not_after) = (moment(facts.not_before), moment(facts.not_after));
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    Ok(())
}

impl ServerCertVerifier for OriginVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(authorities) = &self.authorities {
            self.verify_chain(authorities, end_entity, intermediates, now)?;
        }
        if let Some(name) = &self.name {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
        }
        if let Some(pin) = &self.pin {
            let key = sha256(&ParsedCertificate::try_from(end_entity)?.subject_public_key_info());
            if key != *pin {
                return Err(Distrust::Pin(key).into());
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
