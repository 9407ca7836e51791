//! TLS table of a worker: [`TlsTable`], complete, as the manager has checked it. A new table
//! replaces the old one as a whole.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// TLS configuration of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsTable {
    /// Every certificate that some frontend uses.
    pub certificates: Vec<CertificateRow>,
    /// The listeners with TLS.
    pub frontends: Vec<FrontendRow>,
    /// Keys of session tickets: tickets are made with the first, and accepted with any.
    pub ticket_keys: Vec<TicketKey>,
    /// Answers to `GET /.well-known/acme-challenge/TOKEN` (RFC 8555 §8.3).
    pub http_challenges: Vec<HttpChallenge>,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRow {
    /// Its id for operators.
    pub id: String,
    /// The certificates in DER, that of the server first.
    pub chain: Vec<Vec<u8>>,
    /// The private key in DER: PKCS#8, PKCS#1 or SEC1.
    pub key: Secret,
    /// Its host names, in lower case, perhaps with a wildcard for the first label.
    pub names: Vec<String>,
    /// OCSP response in DER, to be stapled.
    pub ocsp: Option<Vec<u8>>,
}

/// TLS configuration of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontendRow {
    /// The `-a` name of the listener.
    pub listener: String,
    /// Indices into [`TlsTable::certificates`] in order of preference; empty = handshakes fail.
    pub certificates: Vec<u32>,
    /// Index of the certificate for clients that send no host name, or one without a certificate.
    pub default: Option<u32>,
    /// Indices of the certificates that answer a TLS-ALPN-01 challenge (RFC 8737), for the protocol
    /// `acme-tls/1`.
    pub challenges: Vec<u32>,
    /// Refuses clients that send a host name without a certificate (alert unrecognized_name).
    pub aborts_unknown_names: bool,
    /// TLS 1.2 is enabled.
    pub tls12: bool,
    /// TLS 1.3 is enabled.
    pub tls13: bool,
    /// Names of the allowed cipher suites, in the form of rustls and IANA; empty = all.
    pub suites: Vec<String>,
    /// Our order of suites counts, not the client's.
    pub prefers_own_order: bool,
    /// Verification of client certificates.
    pub client: ClientVerification,
    /// Early data is accepted.
    pub early_data: bool,
    /// HTTP/3 is enabled on the UDP port of the same number.
    pub http3: bool,
}

/// Demand on client certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientDemand {
    /// None is requested.
    #[default]
    None,
    /// One is requested; a client without one is served as well.
    Optional,
    /// A client without a certificate is refused.
    Required,
}

/// Verification of client certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientVerification {
    /// Demand on a client.
    pub demand: ClientDemand,
    /// The authorities that may have issued its certificate, in DER.
    pub authorities: Vec<Vec<u8>>,
}

/// A key of session tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketKey {
    /// Identifies tickets made with it.
    pub name: [u8; 16],
    /// The key, 32 bytes.
    pub key: Secret,
}

/// A challenge over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpChallenge {
    /// The last part of the path.
    pub token: String,
    /// The body of the answer.
    pub answer: String,
}
