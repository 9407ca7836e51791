//! Clients of our own over TLS, for behaviour that no other client has: to stop reading, and to
//! keep requesting while certificates change.

use super::*;
use crate::daemon::HANG;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::sync::Arc;

/// A blocking connection.
pub type Secured = StreamOwned<ClientConnection, TcpStream>;

impl Door {
    /// Client configuration: trust anchors, and the protocol to offer.
    pub fn client_config(&self, protocol: &str) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.authority.file()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        Arc::new(config)
    }

    /// A new connection, before its handshake.
    ///
    /// # Errors
    /// The connection cannot be made.
    pub fn secured(&self, config: &Arc<ClientConfig>) -> std::io::Result<Secured> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(HANG))?;
        let name = ServerName::try_from(NAMES[0]).unwrap();
        Ok(StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), stream))
    }
}
