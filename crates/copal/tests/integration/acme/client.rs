//! A TLS client that accepts any certificate, and returns the one it got.

use super::*;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

#[derive(Debug)]
struct Any(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A TLS connection.
pub struct Connection(StreamOwned<ClientConnection, TcpStream>);

impl Connection {
    /// Connects and performs the handshake.
    pub fn open(port: u16, name: &str) -> Result<Connection, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Any(provider)))
            .with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(HANG)).unwrap();
        connection.complete_io(&mut socket).map_err(|error| error.to_string())?;
        Ok(Connection(StreamOwned::new(connection, socket)))
    }

    /// The server's certificate, in DER.
    pub fn certificate(&self) -> Vec<u8> {
        self.0.conn.peer_certificates().unwrap()[0].to_vec()
    }

    /// A request whose answer has a body of known length; returns the status.
    pub fn get(&mut self) -> Result<u16, String> {
        self.0.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").map_err(|error| error.to_string())?;
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&received[..end]).into_owned();
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length: usize = length.and_then(|text| text.trim().parse().ok()).ok_or("no length")?;
                if received.len() >= end + 4 + length {
                    return head.get(9..12).and_then(|text| text.parse().ok()).ok_or_else(|| head.clone());
                }
            }
            match self.0.read(&mut buffer) {
                Ok(count) if count > 0 => received.extend_from_slice(&buffer[..count]),
                Ok(_) => return Err("closed".to_owned()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}
