//! Texts for failed handshakes with an origin, which name the failed check and the remedy:
//! [`failure_text`].

use super::verifier::Distrust;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible};
use rustls_pki_types::UnixTime;
use std::fmt::Write as _;
use std::io;
use surface::limits::TLS_FAILURE_NAMES_MAX;
use x509_parser::time::ASN1Time;

/// Text for an error of a handshake, or of the connection after it. Control characters of the
/// origin's part are escaped.
#[must_use]
pub fn failure_text(error: &io::Error) -> String {
    let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let text = match own {
        Some(error) => of_library(error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the origin closed the connection during the handshake".to_owned()
        }
        None if error.kind() == io::ErrorKind::TimedOut => "the handshake took too long".to_owned(),
        None => format!("the connection broke during the handshake: {error}"),
    };
    surface::legible::line(text.as_bytes()).into_owned()
}

fn of_library(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => format!("Server verification failed: {}", of_certificate(error)),
        Error::AlertReceived(alert) => format!("the origin refused: {}", of_alert(*alert)),
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the origin does not speak TLS on this port".to_owned()
        }
        Error::InvalidMessage(message) => format!("what the origin sent is not TLS: {message:?}"),
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "the origin speaks neither TLS 1.2 nor 1.3".to_owned()
        }
        Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig) => {
            "the origin does not speak TLS 1.3, which .ssl_min_version demands".to_owned()
        }
        Error::PeerIncompatible(what) => format!("nothing in common with the origin: {what:?}"),
        error => error.to_string(),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("certificate has expired (it was valid until {})", date(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("certificate is not yet valid (it will be from {})", date(*not_before))
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("certificate is not for {}, but for {}", expected.to_str(), listed(presented))
        }
        CertificateError::UnknownIssuer => "unknown issuer".to_owned(),
        CertificateError::BadSignature => "bad signature".to_owned(),
        CertificateError::BadEncoding => "certificate cannot be read".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate is not for servers".to_owned()
        }
        CertificateError::Other(OtherError(error)) => match error.downcast_ref::<Distrust>() {
            Some(Distrust::Pin(has)) => format!("{} (it has sha256/{})", Distrust::Pin(*has), STANDARD.encode(has)),
            _ => error.to_string(),
        },
        error => error.to_string(),
    }
}

/// The names of a certificate, at most [`TLS_FAILURE_NAMES_MAX`]. The library writes them as
/// `DnsName("www.example.org")`.
fn listed(names: &[String]) -> String {
    let plain = |name: &str| match name.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')) {
        Some((name, _)) => name.to_owned(),
        None => name.to_owned(),
    };
    let shown: Vec<String> = names.iter().take(TLS_FAILURE_NAMES_MAX).map(|name| plain(name)).collect();
    let mut text = if shown.is_empty() { "no name".to_owned() } else { shown.join(", ") };
    if names.len() > shown.len() {
        let _ = write!(text, " and {} more", names.len() - shown.len());
    }
    text
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::HandshakeFailure => {
            "handshake failure (no version or cipher in common, or it wants a client certificate)".to_owned()
        }
        AlertDescription::ProtocolVersion => "it speaks neither TLS 1.2 nor 1.3, or not the one demanded".to_owned(),
        AlertDescription::UnrecognisedName => "it does not know the host named to it (.ssl_name)".to_owned(),
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "it wants a client certificate (.ssl_cert)".to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate => {
            format!("it does not accept our client certificate ({alert:?})")
        }
        alert => format!("alert {alert:?}"),
    }
}

fn date(time: UnixTime) -> String {
    let seconds = time.as_secs().cast_signed();
    let text = ASN1Time::from_timestamp(seconds).ok().and_then(|time| time.to_rfc2822().ok());
    text.unwrap_or_else(|| format!("{seconds} s since 1970"))
}
