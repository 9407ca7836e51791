//! TLS configurations towards origins: [`OriginTls`] keeps one for each set of TLS attributes of
//! backends.
//!
//! ```text
//! attributes of a backend ─▶ configuration (kept, with its sessions) ─▶ handshake ─▶ facts or error
//! ```
//! A configuration belongs to one set of attributes: a session is resumed only under the attributes
//! under which it was made, so verification for one backend never counts for another. One
//! [`OriginTls`] serves a process; its lock is taken once a handshake. The system's trust anchors
//! are read when the first backend needs them, and again if not all could be read; `SSL_CERT_FILE`
//! and `SSL_CERT_DIR` replace them. *Invariant:* at most [`ORIGIN_TLS_SETTINGS_MAX`] configurations
//! are kept; the one that was not used for the longest time is dropped.
//!
//! Source: RFC 8446, RFC 9110 §4.3.4, RFC 9525. Next files: `origin/verifier.rs`,
//! `origin/failure.rs`.

mod authorities;
mod verifier;

mod failure;

pub use failure::failure_text;

use crate::certificate::CertificateFacts;
use crate::suites::{openssl_name, version_name};
use authorities::{Authorities, OfSystem};
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use rustls_pki_types::{CertificateDer, IpAddr, Ipv4Addr, PrivateKeyDer, ServerName};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use surface::limits::{ORIGIN_TLS_SESSIONS_MAX, ORIGIN_TLS_SETTINGS_MAX};
use vcl_run::program::TlsDefinition;
use vcl_run::tls::TlsFacts;
use verifier::{OriginVerifier, host_name};

/// Identity of a set of attributes: a digest of everything in a [`TlsDefinition`].
pub type SettingsDigest = [u8; 32];

/// The configurations of a process.
#[derive(Default)]
pub struct OriginTls {
    system: OfSystem,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    clients: HashMap<Key, (Client, u64)>,
    /// Counts uses.
    now: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    identity: SettingsDigest,
    protocols: Vec<Vec<u8>>,
}

/// Parameters of one handshake.
#[derive(Clone)]
pub struct Client {
    /// The configuration.
    pub config: Arc<ClientConfig>,
    /// Name of the peer. It is sent to the origin only if the attributes say so.
    pub name: ServerName<'static>,
}

impl OriginTls {
    /// Nothing kept yet.
    #[must_use]
    pub fn new() -> OriginTls {
        OriginTls::default()
    }

    /// True if [`OriginTls::client`] would have to read files: then call it where blocking is
    /// allowed.
    #[must_use]
    pub fn would_read(&self, settings: &TlsDefinition) -> bool {
        settings.verify_peer && settings.authorities.is_empty() && self.system.known(Instant::now()).is_none()
    }

    /// The client for these attributes; `identity` identifies them. `protocols` are offered, the
    /// preferred one first.
    ///
    /// # Errors
    /// The reason why no handshake can be tried, for the log: no trust anchor, an unusable client
    /// certificate.
    pub fn client(
        &self,
        settings: &TlsDefinition,
        identity: SettingsDigest,
        protocols: &[&[u8]],
    ) -> Result<Client, String> {
        let key = Key { identity, protocols: protocols.iter().map(|protocol| protocol.to_vec()).collect() };
        if let Some(client) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).find(&key) {
            return Ok(client);
        }
        let authorities = match (settings.verify_peer, settings.authorities.is_empty()) {
            (false, _) => Arc::new(Authorities::none()),
            (true, true) => self.system.read(Instant::now(), Authorities::of_the_system),
            (true, false) => Arc::new(Authorities::of(settings.authorities.iter().map(|der| der.clone().into()))),
        };
        if let Some(complaint) = authorities.complaint() {
            return Err(complaint.to_owned());
        }
        let is_partial = authorities.is_partial();
        let client = build(settings, protocols, authorities)?;
        if !is_partial {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).keep(key, client.clone());
        }
        Ok(client)
    }
}

fn build(settings: &TlsDefinition, protocols: &[&[u8]], authorities: Arc<Authorities>) -> Result<Client, String> {
    let name = server_name(settings)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] =
        if settings.only_tls13 { &[&rustls::version::TLS13] } else { rustls::ALL_VERSIONS };
    let verifier = OriginVerifier::new(settings, authorities, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &settings.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let unusable = |why: String| format!("the client certificate cannot be used: {why}");
            let chain = client.chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
            let key =
                PrivateKeyDer::try_from(client.key.as_slice()).map_err(|why| unusable(why.to_owned()))?.clone_key();
            builder.with_client_auth_cert(chain, key).map_err(|error| unusable(error.to_string()))?
        }
    };
    config.enable_sni = settings.server_name.is_some();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.resumption = Resumption::in_memory_sessions(ORIGIN_TLS_SESSIONS_MAX);
    Ok(Client { config: Arc::new(config), name })
}

impl Kept {
    fn find(&mut self, key: &Key) -> Option<Client> {
        self.now += 1;
        let (client, used) = self.clients.get_mut(key)?;
        *used = self.now;
        Some(client.clone())
    }

    fn keep(&mut self, key: Key, client: Client) {
        if self.clients.len() >= ORIGIN_TLS_SETTINGS_MAX
            && let Some(oldest) = self.clients.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone())
        {
            self.clients.remove(&oldest);
        }
        self.clients.insert(key, (client, self.now));
    }
}

/// Name of the peer. If no name is sent to the origin, any address serves as one.
fn server_name(settings: &TlsDefinition) -> Result<ServerName<'static>, String> {
    match &settings.server_name {
        Some(name) => host_name(name),
        None => Ok(ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])))),
    }
}

/// True if a certificate can be for this: a host's name or an address.
#[must_use]
pub fn is_host_name(host: &str) -> bool {
    host_name(host).is_ok()
}

/// Facts about a complete handshake.
#[must_use]
pub fn facts(connection: &ClientConnection, settings: &TlsDefinition) -> TlsFacts {
    let own = connection.peer_certificates().and_then(<[_]>::first);
    let certificate = own.and_then(|der| CertificateFacts::read(der).ok());
    let (signature, key) = match certificate {
        Some(facts) => (Some(facts.signature_kind.into()), Some(facts.key_kind.into())),
        None => (None, None),
    };
    TlsFacts {
        version: connection.protocol_version().map_or("", version_name),
        cipher: connection.negotiated_cipher_suite().map_or("", |suite| openssl_name(suite.suite())),
        server_name: settings.server_name.as_deref().map(Into::into),
        alpn: connection.alpn_protocol().map(|protocol| String::from_utf8_lossy(protocol).into()),
        certificate_signature: signature,
        certificate_key: key,
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        ..TlsFacts::default()
    }
}

#[cfg(test)]
mod tests;
