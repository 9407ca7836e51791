//! Clients of our own over TLS, for what no client of other make does: reading no further, and asking on while certificates change.

use super::*;
use crate::daemon::PATIENCE;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::sync::Arc;

/// A blocking connection.
pub type Secured = StreamOwned<ClientConnection, TcpStream>;

impl Door {
    /// What clients trust, and what they offer to speak.
    pub fn client_config(&self, protocol: &str) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.authority.file()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        Arc::new(config)
    }

    /// A new connection, its handshake still to come.
    ///
    /// # Errors
    /// When there is no connection.
    pub fn secured(&self, config: &Arc<ClientConfig>) -> std::io::Result<Secured> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(NAMES[0]).unwrap();
        Ok(StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), stream))
    }
}
