//! Properties of a TLS connection for VCL: [`TlsFacts`], of a client's connection or of one to an
//! origin.

/// Results of a handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.2`, `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, as named by OpenSSL.
    pub cipher: &'static str,
    /// The host named by the client (SNI).
    pub server_name: Option<Box<str>>,
    /// The protocol agreed on (ALPN).
    pub alpn: Option<Box<str>>,
    /// Signature algorithm of the server's certificate, e.g. `RSA-SHA256`; `None` if it is not
    /// known.
    pub certificate_signature: Option<Box<str>>,
    /// The kind of key of the server's certificate, e.g. `RSA-2048`.
    pub certificate_key: Option<Box<str>>,
    /// The JA3 fingerprint of the client, if parameter `tls_ja3` enables it.
    pub ja3: Option<Box<str>>,
    /// The session was resumed from a ticket.
    pub is_resumed: bool,
    /// The client's certificate, which was verified.
    pub client_certificate: Option<Box<ClientCertificate>>,
}

impl TlsFacts {
    /// The connection in the log: version, suite, name, protocol, and the kind of handshake (full
    /// or resumed). `is_early` if requests came before its end.
    #[must_use]
    pub fn record(&self, is_early: bool) -> String {
        let name = self.server_name.as_deref().unwrap_or("-");
        let protocol = self.alpn.as_deref().unwrap_or("-");
        let how = match (is_early, self.is_resumed) {
            (true, _) => "early",
            (false, true) => "resumed",
            (false, false) => "full",
        };
        format!("{} {} {name} {protocol} {how}", self.version, self.cipher)
    }
}

/// A client's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject, in the form of RFC 4514.
    pub subject: String,
    /// Its issuer.
    pub issuer: String,
    /// Its serial number, hexadecimal.
    pub serial: String,
    /// SHA-256 of its DER form, hexadecimal.
    pub fingerprint: String,
}
