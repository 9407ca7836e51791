//! What a worker serves TLS with: [`TlsTable`], complete, as the manager has checked it. A new table replaces the old one whole.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// Everything about TLS that a worker needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsTable {
    /// Every certificate that some frontend uses.
    pub certificates: Vec<CertificateRow>,
    /// The listeners that speak TLS.
    pub frontends: Vec<FrontendRow>,
    /// Keys of session tickets: tickets are made with the first, and accepted with any.
    pub ticket_keys: Vec<TicketKey>,
    /// Answers to `GET /.well-known/acme-challenge/TOKEN` (RFC 8555 §8.3).
    pub http_challenges: Vec<HttpChallenge>,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRow {
    /// The name by which an operator knows it.
    pub id: String,
    /// The certificates in DER, that of the server first.
    pub chain: Vec<Vec<u8>>,
    /// The private key in DER: PKCS#8, PKCS#1 or SEC1.
    pub key: Secret,
    /// The names it is for, in lower case, perhaps with a wildcard for the first label.
    pub names: Vec<String>,
    /// A response of OCSP in DER, to be stapled.
    pub ocsp: Option<Vec<u8>>,
}

/// How a listener speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontendRow {
    /// The `-a` name of the listener.
    pub listener: String,
    /// Indices into [`TlsTable::certificates`] in order of preference; empty = handshakes fail.
    pub certificates: Vec<u32>,
    /// Index of the certificate for clients that name no host, or one for which there is none.
    pub default: Option<u32>,
    /// Indices of the certificates that answer a TLS-ALPN-01 challenge (RFC 8737), for the protocol `acme-tls/1`.
    pub challenges: Vec<u32>,
    /// Refuses clients that name a host for which there is no certificate (alert unrecognized_name).
    pub aborts_unknown_names: bool,
    /// TLS 1.2 is spoken.
    pub tls12: bool,
    /// TLS 1.3 is spoken.
    pub tls13: bool,
    /// Names of the cipher suites allowed, as rustls and IANA call them; empty = all.
    pub suites: Vec<String>,
    /// Our order of suites counts, not the client's.
    pub prefers_own_order: bool,
    /// What is expected of a client.
    pub client: ClientDemand,
    /// Early data is accepted.
    pub early_data: bool,
    /// HTTP/3 is spoken on the UDP port of the same number.
    pub http3: bool,
}

/// Certificates of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientDemand {
    /// None is asked for.
    #[default]
    None,
    /// One is asked for; a client without one is served as well.
    Optional {
        /// The authorities that may have issued it, in DER.
        authorities: Vec<Vec<u8>>,
    },
    /// No handshake without one.
    Required {
        /// The authorities that may have issued it, in DER.
        authorities: Vec<Vec<u8>>,
    },
}

/// A key of session tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketKey {
    /// Tells tickets made with it from others.
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
