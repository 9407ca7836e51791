//! Facts about a handshake for VCL and the log.

use rustls::pki_types::CertificateDer;
use rustls::server::ClientHello;
use rustls::{HandshakeKind, ServerConnection, SignatureScheme};
use tls::certificate::{CertificateFacts, fingerprint};
use tls::ja3::ja3;
use tls::server::Frontend;
use tls::suites::{openssl_name, version_name};
use vcl_run::tls::{ClientCertificate, TlsFacts};

/// Facts from the ClientHello.
pub(super) struct HelloFacts {
    pub(super) server_name: Option<Box<str>>,
    schemes: Vec<SignatureScheme>,
    ja3: Option<Box<str>>,
}

impl HelloFacts {
    /// Takes the facts from a ClientHello, and the fingerprint from its `bytes`.
    pub(super) fn new(hello: &ClientHello<'_>, bytes: Option<&Vec<u8>>) -> HelloFacts {
        HelloFacts {
            server_name: hello.server_name().map(Box::from),
            schemes: hello.signature_schemes().to_vec(),
            ja3: bytes.and_then(|bytes| ja3(bytes)).map(String::into_boxed_str),
        }
    }

    /// Facts about the complete handshake.
    pub(super) fn agreed(self, session: &ServerConnection, frontend: &Frontend) -> TlsFacts {
        let suite = session.negotiated_cipher_suite().map(|suite| suite.suite());
        let certificate =
            suite.and_then(|suite| frontend.certificate(self.server_name.as_deref(), &self.schemes, suite));
        let of_certificate = |pick: fn(&CertificateFacts) -> &String| {
            certificate.map(|served| pick(&served.facts).clone().into_boxed_str())
        };
        TlsFacts {
            version: session.protocol_version().map_or("", version_name),
            cipher: suite.map_or("", openssl_name),
            alpn: session.alpn_protocol().map(|protocol| String::from_utf8_lossy(protocol).into()),
            certificate_signature: of_certificate(|facts| &facts.signature_kind),
            certificate_key: of_certificate(|facts| &facts.key_kind),
            server_name: self.server_name,
            ja3: self.ja3,
            is_resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
            client_certificate: session.peer_certificates().and_then(client_certificate),
        }
    }
}

/// True if the client's certificate has expired at `now`, in seconds since 1970. A resumed session
/// has not been verified again since it began.
pub(crate) fn has_expired(chain: &[CertificateDer<'_>], now: f64) -> bool {
    let facts = chain.first().and_then(|first| CertificateFacts::read(first).ok());
    facts.is_some_and(|facts| now > facts.not_after as f64)
}

/// Facts about the verified client certificate, which is the first of `chain`.
pub(crate) fn client_certificate(chain: &[CertificateDer<'_>]) -> Option<Box<ClientCertificate>> {
    let first = chain.first()?;
    let facts = CertificateFacts::read(first).ok()?;
    Some(Box::new(ClientCertificate {
        subject: facts.subject,
        issuer: facts.issuer,
        serial: facts.serial,
        fingerprint: fingerprint(first),
    }))
}
