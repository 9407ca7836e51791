//! Certificates from PEM files: [`Pem::read`] checks that certificate and key are present and
//! match, and returns the certificate's facts.
//!
//! The bytes are an operator's, so errors are for operators: each names the fault, without the
//! file's name, which the caller adds. Nothing here reads a clock: an expired certificate loads,
//! and its dates are among its facts. Next file: `distinguished.rs`.

use crate::distinguished::distinguished_name;
use crate::secret::Secret;
use crate::table::CertificateRow;
use rustls::RootCertStore;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use surface::limits::{AUTHORITIES_MAX, CERTIFICATE_CHAIN_MAX, CERTIFICATE_NAMES_MAX};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

/// Reads PEM files.
#[derive(Clone, Copy, Debug)]
pub struct Pem;

/// A certificate with its key, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedCertificate {
    /// The certificates in DER, that of the server first.
    pub chain: Vec<Vec<u8>>,
    /// The private key in DER: PKCS#8, PKCS#1 or SEC1.
    pub key: Secret,
    /// Facts read from the certificate.
    pub facts: CertificateFacts,
}

/// Facts that a certificate states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Its DNS names, or else its CN, in lower case. A wildcard replaces the first label.
    pub names: Vec<String>,
    /// Its subject, in the form of RFC 4514.
    pub subject: String,
    /// Its issuer.
    pub issuer: String,
    /// Its serial number, hexadecimal.
    pub serial: String,
    /// Valid from, seconds since 1970.
    pub not_before: i64,
    /// Valid until, seconds since 1970.
    pub not_after: i64,
    /// Its kind of key: `RSA2048`, `EC256`, `ED25519`.
    pub key_kind: String,
    /// Signature algorithm, in OpenSSL's words: `RSA-SHA256`, `ecdsa-with-SHA256`, `ED25519`; else
    /// the number of the algorithm.
    pub signature_kind: String,
}

/// Reason why no certificate was read. The text is for an operator; it names no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// The file is empty.
    Empty,
    /// The file is not PEM, or broken.
    NotPem(&'static str),
    /// No certificate.
    NoCertificate,
    /// No private key.
    NoKey,
    /// The key has a passphrase.
    EncryptedKey,
    /// The key cannot be used.
    BadKey(String),
    /// The certificate cannot be used.
    BadCertificate(String),
    /// The key is not that of the certificate.
    Mismatch,
    /// The certificate cannot be an authority.
    NoAuthority(String),
    /// More certificates than this limit.
    TooMany(usize),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::Empty => f.write_str("the file is empty"),
            CertificateError::NotPem(why) => write!(f, "not a PEM file: {why}"),
            CertificateError::NoCertificate => f.write_str("no certificate in it"),
            CertificateError::NoKey => f.write_str("no private key in it"),
            CertificateError::EncryptedKey => f.write_str("the private key is encrypted with a passphrase"),
            CertificateError::BadKey(why) => write!(f, "the private key cannot be used: {why}"),
            CertificateError::BadCertificate(why) => write!(f, "the certificate cannot be used: {why}"),
            CertificateError::Mismatch => f.write_str("key and certificate mismatch"),
            CertificateError::NoAuthority(why) => write!(f, "no authority: {why}"),
            CertificateError::TooMany(most) => write!(f, "more than {most} certificates"),
        }
    }
}

impl std::error::Error for CertificateError {}

impl LoadedCertificate {
    /// A certificate with its chain, and its key, both in DER.
    ///
    /// # Errors
    /// [`CertificateError::NoCertificate`], `TooMany`, `BadCertificate`, `BadKey`, `Mismatch`.
    pub fn of_der(chain: Vec<Vec<u8>>, key: Secret) -> Result<LoadedCertificate, CertificateError> {
        let first = chain.first().ok_or(CertificateError::NoCertificate)?;
        if chain.len() > CERTIFICATE_CHAIN_MAX {
            return Err(CertificateError::TooMany(CERTIFICATE_CHAIN_MAX));
        }
        let facts = CertificateFacts::read(first)?;
        certified(&chain, &key)?;
        Ok(LoadedCertificate { chain, key, facts })
    }
}

impl Pem {
    /// Reads a certificate and its key. The first certificate is the server's, the others are its
    /// chain; the key may be anywhere in the file, or apart in `key_bytes`.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn read(bytes: &[u8], key_bytes: Option<&[u8]>) -> Result<LoadedCertificate, CertificateError> {
        let chain = certificates(bytes, CERTIFICATE_CHAIN_MAX)?;
        let Some(first) = chain.first() else {
            return Err(CertificateError::NoCertificate);
        };
        // Faults of the certificate are reported before those of the key.
        CertificateFacts::read(first)?;
        LoadedCertificate::of_der(chain, private_key(key_bytes.unwrap_or(bytes))?)
    }

    /// Reads certificates of authorities, those that issue certificates of clients or origins, and
    /// returns them in DER. Other sections of the file are ignored.
    ///
    /// # Errors
    /// [`CertificateError::Empty`], `NotPem`, `NoCertificate`, `TooMany`, and `BadCertificate` or
    /// `NoAuthority` for one that cannot be used.
    pub fn read_authorities(bytes: &[u8]) -> Result<Vec<Vec<u8>>, CertificateError> {
        let authorities = certificates(bytes, AUTHORITIES_MAX)?;
        if authorities.is_empty() {
            return Err(CertificateError::NoCertificate);
        }
        for authority in &authorities {
            CertificateFacts::read(authority)?;
            let added = RootCertStore::empty().add(authority.as_slice().into());
            added.map_err(|error| CertificateError::NoAuthority(error.to_string()))?;
        }
        Ok(authorities)
    }
}

impl LoadedCertificate {
    /// The row of the table that a worker gets.
    #[must_use]
    pub fn into_row(self, id: String, ocsp: Option<Vec<u8>>) -> CertificateRow {
        CertificateRow { id, chain: self.chain, key: self.key, names: self.facts.names, ocsp }
    }
}

impl CertificateFacts {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// [`CertificateError::BadCertificate`].
    pub fn read(der: &[u8]) -> Result<CertificateFacts, CertificateError> {
        let bad = |why: &dyn fmt::Display| CertificateError::BadCertificate(why.to_string());
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| bad(&error))?;
        Ok(CertificateFacts {
            names: names(&certificate),
            subject: distinguished_name(certificate.subject()),
            issuer: distinguished_name(certificate.issuer()),
            serial: hexadecimal(certificate.raw_serial()),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            key_kind: key_kind(&certificate),
            signature_kind: signature_kind(&certificate),
        })
    }
}

/// The fault of a PEM file. The library's own text quotes the line, and if line ends are lost that
/// is the key.
fn pem_fault(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no end; are line ends missing?",
        pem::Error::IllegalSectionStart { .. } => "a line that begins a section says more; are line ends missing?",
        pem::Error::Base64Decode(_) => "a section is not base64",
        pem::Error::SectionTooLarge => "a section is too large",
        _ => "it cannot be read",
    }
}

/// The certificates among the sections of a PEM file, at most `most`.
fn certificates(bytes: &[u8], most: usize) -> Result<Vec<Vec<u8>>, CertificateError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(CertificateError::Empty);
    }
    let mut found = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes) {
        match section.map_err(|error| CertificateError::NotPem(pem_fault(&error)))? {
            (SectionKind::Certificate, der) => found.push(der),
            (_, mut other) => zeroize::Zeroize::zeroize(&mut other),
        }
        if found.len() > most {
            return Err(CertificateError::TooMany(most));
        }
    }
    Ok(found)
}

/// The first private key among the sections of a PEM file.
fn private_key(bytes: &[u8]) -> Result<Secret, CertificateError> {
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes) {
        let (kind, der) = section.map_err(|error| CertificateError::NotPem(pem_fault(&error)))?;
        if let SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey = kind {
            return Ok(Secret::new(der));
        }
    }
    let is_encrypted = [&b"BEGIN ENCRYPTED PRIVATE KEY"[..], b"4,ENCRYPTED"]
        .iter()
        .any(|sign| bytes.windows(sign.len()).any(|window| window == *sign));
    Err(if is_encrypted { CertificateError::EncryptedKey } else { CertificateError::NoKey })
}

/// Certificate and key as rustls uses them.
///
/// # Errors
/// [`CertificateError::BadKey`], `BadCertificate`, `Mismatch`.
pub(crate) fn certified(chain: &[Vec<u8>], key: &Secret) -> Result<CertifiedKey, CertificateError> {
    let der = PrivateKeyDer::try_from(key.bytes()).map_err(|why| CertificateError::BadKey(why.to_owned()))?;
    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&der)
        .map_err(|error| CertificateError::BadKey(error.to_string()))?;
    let chain = chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
    let certified = CertifiedKey::new(chain, signer);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => Err(CertificateError::Mismatch),
        Err(error) if is_unknown_extension(&error) => match is_key_of(&certified)? {
            true => Ok(certified),
            false => Err(CertificateError::Mismatch),
        },
        Err(error) => Err(CertificateError::BadCertificate(error.to_string())),
    }
}

/// True if a certificate could not be read only because of a critical extension that webpki does
/// not support. A certificate that answers a challenge in a handshake has one (RFC 8737 §3).
fn is_unknown_extension(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::UnsupportedCriticalExtension))
}

/// True if the key is that of the certificate; does not read the certificate's names.
fn is_key_of(certified: &CertifiedKey) -> Result<bool, CertificateError> {
    let der = certified.cert.first().map_or(&[][..], |first| first.as_ref());
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| CertificateError::BadCertificate(error.to_string()))?;
    let key = certified.key.public_key();
    Ok(key.is_none_or(|key| key.as_ref() == certificate.public_key().raw))
}

/// The DNS names among the alternative names, or else the common name. Invalid host names are left
/// out.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let mut names: Vec<String> = Vec::new();
    if let Some(alternatives) = alternatives {
        for name in &alternatives.value.general_names {
            if let GeneralName::DNSName(name) = name {
                names.extend(host_name(name));
            }
        }
    }
    if names.is_empty() {
        let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        names.extend(common.filter_map(host_name));
    }
    names.truncate(CERTIFICATE_NAMES_MAX);
    names
}

/// A host name in lower case, if it is one.
fn host_name(name: &str) -> Option<String> {
    let is_host = |name: &str| {
        !name.is_empty()
            && name.len() <= 253
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    is_host(name.strip_prefix("*.").unwrap_or(name)).then(|| name.to_ascii_lowercase())
}

/// The kind of key, as HAProxy and hitch name it in a PROXY header.
fn key_kind(certificate: &X509Certificate<'_>) -> String {
    let info = certificate.public_key();
    match info.parsed() {
        Ok(PublicKey::RSA(key)) => format!("RSA{}", key.key_size()),
        Ok(PublicKey::EC(_)) => {
            let curve = info.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
            match curve.map(|oid| oid.to_id_string()).as_deref() {
                Some("1.2.840.10045.3.1.7") => "EC256".to_owned(),
                Some("1.3.132.0.34") => "EC384".to_owned(),
                Some("1.3.132.0.35") => "EC521".to_owned(),
                _ => "EC".to_owned(),
            }
        }
        _ if info.algorithm.algorithm.to_id_string() == "1.3.101.112" => "ED25519".to_owned(),
        _ => info.algorithm.algorithm.to_id_string(),
    }
}

/// OpenSSL's names of signature algorithms.
const SIGNATURES: &[(&str, &str)] = &[
    ("1.2.840.113549.1.1.5", "RSA-SHA1"),
    ("1.2.840.113549.1.1.11", "RSA-SHA256"),
    ("1.2.840.113549.1.1.12", "RSA-SHA384"),
    ("1.2.840.113549.1.1.13", "RSA-SHA512"),
    ("1.2.840.113549.1.1.10", "RSASSA-PSS"),
    ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256"),
    ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384"),
    ("1.2.840.10045.4.3.4", "ecdsa-with-SHA512"),
    ("1.3.101.112", "ED25519"),
];

fn signature_kind(certificate: &X509Certificate<'_>) -> String {
    let numbers = certificate.signature_algorithm.algorithm.to_id_string();
    match SIGNATURES.iter().find(|(known, _)| *known == numbers) {
        Some((_, name)) => (*name).to_owned(),
        None => numbers,
    }
}

/// SHA-256 of a certificate in DER, hexadecimal.
#[must_use]
pub fn fingerprint(der: &[u8]) -> String {
    hexadecimal(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der).as_ref())
}

/// Bytes in hexadecimal, lower case.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().take(64).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    fn made(names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params(names).self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn params(names: &[&str]) -> CertificateParams {
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_order_of_key_and_certificates_does_not_matter() {
        let (certificate, key) = made(&["a.example"]);
        let (other, _) = made(&["b.example"]);
        let first = Pem::read(format!("{certificate}{other}{key}").as_bytes(), None).unwrap();
        let last = Pem::read(format!("{key}{certificate}{other}").as_bytes(), None).unwrap();
        let apart = Pem::read(format!("{certificate}{other}").as_bytes(), Some(key.as_bytes())).unwrap();
        assert_eq!(first, last);
        assert_eq!(first, apart);
        assert_eq!(first.chain.len(), 2);
        assert_eq!(first.facts.names, ["a.example"]);
    }

    #[test]
    fn every_mistake_has_words_of_its_own() {
        let (certificate, key) = made(&["a.example"]);
        let (_, foreign) = made(&["a.example"]);
        let refused = |text: &str| Pem::read(text.as_bytes(), None).unwrap_err();
        assert_eq!(refused(""), CertificateError::Empty);
        assert_eq!(refused(" \n"), CertificateError::Empty);
        assert_eq!(refused("hello"), CertificateError::NoCertificate);
        assert_eq!(refused(&key), CertificateError::NoCertificate);
        assert_eq!(refused(&certificate), CertificateError::NoKey);
        assert_eq!(refused(&format!("{certificate}{foreign}")), CertificateError::Mismatch);
        assert!(CertificateError::Mismatch.to_string().contains("mismatch"));
        let torn = &certificate[..certificate.len() / 2];
        assert!(matches!(refused(torn), CertificateError::NotPem(_)));
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert_eq!(refused(&format!("{certificate}{encrypted}")), CertificateError::EncryptedKey);
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(refused(&format!("{nonsense}{key}")), CertificateError::BadCertificate(_)));
        let nonsense = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(matches!(refused(&format!("{certificate}{nonsense}")), CertificateError::BadKey(_)));
        let long = certificate.repeat(CERTIFICATE_CHAIN_MAX + 1);
        assert_eq!(refused(&format!("{long}{key}")), CertificateError::TooMany(CERTIFICATE_CHAIN_MAX));
    }

    #[test]
    fn authorities_are_read_up_to_their_limit() {
        let (certificate, key) = made(&["ca.example"]);
        let read = |count: usize| Pem::read_authorities(certificate.repeat(count).as_bytes());
        assert_eq!(read(CERTIFICATE_CHAIN_MAX + 1).unwrap().len(), CERTIFICATE_CHAIN_MAX + 1);
        assert_eq!(read(AUTHORITIES_MAX).unwrap().len(), AUTHORITIES_MAX);
        assert_eq!(read(AUTHORITIES_MAX + 1).unwrap_err().to_string(), "more than 1000 certificates");
        assert_eq!(Pem::read_authorities(key.as_bytes()), Err(CertificateError::NoCertificate));
    }

    #[test]
    fn private_key_never_appears_in_messages() {
        let (_, key) = made(&["a.example"]);
        let secret = key.lines().nth(1).unwrap();
        let numbers = format!("{:?}", &secret.as_bytes()[..4]);
        for torn in
            [key.replace('\n', " "), key.replace('\n', ""), key.replacen('\n', " ", 1), key.replacen('-', "", 1)]
        {
            for message in [
                Pem::read(torn.as_bytes(), None).unwrap_err().to_string(),
                Pem::read_authorities(torn.as_bytes()).unwrap_err().to_string(),
            ] {
                let is_shown = message.contains(&secret[..4]) || message.contains(numbers.trim_matches(['[', ']']));
                assert!(!is_shown && message.len() < 100, "{message}");
            }
        }
    }

    #[test]
    fn a_certificate_that_answers_an_authority_is_read_and_its_key_is_checked() {
        let (key, foreign) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut answering = params(&["a.example"]);
        answering.custom_extensions = vec![rcgen::CustomExtension::new_acme_identifier(&[7; 32])];
        let pem = answering.self_signed(&key).unwrap().pem();
        let read = |key: &KeyPair| Pem::read(format!("{pem}{}", key.serialize_pem()).as_bytes(), None);
        assert_eq!(read(&key).unwrap().facts.names, ["a.example"]);
        assert_eq!(read(&foreign), Err(CertificateError::Mismatch));
    }

    #[test]
    fn the_common_name_counts_only_without_dns_names() {
        let key = KeyPair::generate().unwrap();
        let mut with = params(&["WWW.Example.org", "*.example.org", "192.0.2.1"]);
        with.distinguished_name.push(DnType::CommonName, "cn.example");
        let with = CertificateFacts::read(with.self_signed(&key).unwrap().der()).unwrap();
        assert_eq!(with.names, ["www.example.org", "*.example.org"]);
        let mut without = params(&[]);
        without.distinguished_name = rcgen::DistinguishedName::new();
        without.distinguished_name.push(DnType::OrganizationName, "Example, Inc.");
        without.distinguished_name.push(DnType::CommonName, "CN.example");
        let without = CertificateFacts::read(without.self_signed(&key).unwrap().der()).unwrap();
        assert_eq!(without.names, ["cn.example"]);
        assert_eq!(without.subject, "CN=CN.example,O=Example\\, Inc.");
    }

    #[test]
    fn invalid_host_names_are_refused() {
        for no in ["", "*", "*.", "a b", "a\n", "a.*.b", "**.a"] {
            assert_eq!(host_name(no), None, "{no:?}");
        }
        assert_eq!(host_name("A.b.").as_deref(), Some("a.b"));
    }

    #[test]
    fn kinds_of_keys_and_signatures_have_the_names_that_openssl_users_know() {
        let facts = |key: &KeyPair| CertificateFacts::read(params(&["a"]).self_signed(key).unwrap().der()).unwrap();
        let kinds = |key: &KeyPair| {
            let facts = facts(key);
            (facts.key_kind, facts.signature_kind)
        };
        let own = |one: &str, two: &str| (one.to_owned(), two.to_owned());
        assert_eq!(kinds(&KeyPair::generate().unwrap()), own("EC256", "ecdsa-with-SHA256"));
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        assert_eq!(kinds(&key), own("EC384", "ecdsa-with-SHA384"));
        assert_eq!(kinds(&KeyPair::generate_for(&PKCS_ED25519).unwrap()), own("ED25519", "ED25519"));
    }
}
