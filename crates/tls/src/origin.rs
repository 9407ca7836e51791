//! What we shake hands with origins with: [`OriginTls`] keeps a client's configuration for each way in which backends speak TLS.
//!
//! ```text
//! terms of a backend ─▶ configuration (kept, with its sessions) ─▶ handshake ─▶ facts, or the reason why not
//! ```
//! A configuration belongs to one set of terms: a session is resumed only under the terms under which it was made, so nothing
//! that was verified for one backend counts for another. One [`OriginTls`] serves a process; its lock is taken once a
//! handshake. The authorities of the system are read when the first backend needs them, and again if not all could be read;
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
//! *Invariant:* at most [`ORIGIN_TLS_TERMS_MAX`] configurations are kept; the one that was not used for the longest time goes.
//!
//! Source: RFC 8446, RFC 9110 §4.3.4, RFC 9525. Next files: `origin/verifier.rs`, `origin/failure.rs`.

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
use surface::limits::{ORIGIN_TLS_SESSIONS_MAX, ORIGIN_TLS_TERMS_MAX};
use vcl_run::program::TlsDefinition;
use vcl_run::tls::TlsFacts;
use verifier::{OriginVerifier, host_name};

/// Tells terms apart: a digest of everything in a [`TlsDefinition`].
pub type TermsIdentity = [u8; 32];

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
    identity: TermsIdentity,
    protocols: Vec<Vec<u8>>,
}

/// What a handshake starts with.
#[derive(Clone)]
pub struct Client {
    /// The configuration.
    pub config: Arc<ClientConfig>,
    /// Whom we want to talk to. It is named to the origin only if the terms say so.
    pub name: ServerName<'static>,
}

impl OriginTls {
    /// Nothing kept yet.
    #[must_use]
    pub fn new() -> OriginTls {
        OriginTls::default()
    }

    /// Whether [`OriginTls::client`] would have to read files: then call it where that may take its time.
    #[must_use]
    pub fn would_read(&self, terms: &TlsDefinition) -> bool {
        terms.verify_peer && terms.authorities.is_empty() && self.system.known(Instant::now()).is_none()
    }

    /// The client for these terms; `identity` stands for them. `protocols` are offered, the preferred one first.
    ///
    /// # Errors
    /// Why no handshake can be tried, in words for the log: no authority, a client's certificate that cannot be used.
    pub fn client(
        &self,
        terms: &TlsDefinition,
        identity: TermsIdentity,
        protocols: &[&[u8]],
    ) -> Result<Client, String> {
        let key = Key { identity, protocols: protocols.iter().map(|protocol| protocol.to_vec()).collect() };
        if let Some(client) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).find(&key) {
            return Ok(client);
        }
        let authorities = match (terms.verify_peer, terms.authorities.is_empty()) {
            (false, _) => Arc::new(Authorities::none()),
            (true, true) => self.system.read(Instant::now(), Authorities::of_the_system),
            (true, false) => Arc::new(Authorities::of(terms.authorities.iter().map(|der| der.clone().into()))),
        };
        if let Some(complaint) = authorities.complaint() {
            return Err(complaint.to_owned());
        }
        let is_partial = authorities.is_partial();
        let client = build(terms, protocols, authorities)?;
        if !is_partial {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).keep(key, client.clone());
        }
        Ok(client)
    }
}

fn build(terms: &TlsDefinition, protocols: &[&[u8]], authorities: Arc<Authorities>) -> Result<Client, String> {
    let name = server_name(terms)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] =
        if terms.only_tls13 { &[&rustls::version::TLS13] } else { rustls::ALL_VERSIONS };
    let verifier = OriginVerifier::new(terms, authorities, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &terms.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let unusable = |why: String| format!("the client certificate cannot be used: {why}");
            let chain = client.chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
            let key =
                PrivateKeyDer::try_from(client.key.as_slice()).map_err(|why| unusable(why.to_owned()))?.clone_key();
            builder.with_client_auth_cert(chain, key).map_err(|error| unusable(error.to_string()))?
        }
    };
    config.enable_sni = terms.server_name.is_some();
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
        if self.clients.len() >= ORIGIN_TLS_TERMS_MAX
            && let Some(oldest) = self.clients.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone())
        {
            self.clients.remove(&oldest);
        }
        self.clients.insert(key, (client, self.now));
    }
}

/// Whom we want to talk to. If nobody is named to the origin, any address stands for it.
fn server_name(terms: &TlsDefinition) -> Result<ServerName<'static>, String> {
    match &terms.server_name {
        Some(name) => host_name(name),
        None => Ok(ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])))),
    }
}

/// Whether a certificate can be for this: a host's name or an address.
#[must_use]
pub fn is_host_name(host: &str) -> bool {
    host_name(host).is_ok()
}

/// What was agreed in a handshake that is done.
#[must_use]
pub fn facts(connection: &ClientConnection, terms: &TlsDefinition) -> TlsFacts {
    let own = connection.peer_certificates().and_then(<[_]>::first);
    let certificate = own.and_then(|der| CertificateFacts::read(der).ok());
    let (signature, key) = match certificate {
        Some(facts) => (Some(facts.signature_kind.into()), Some(facts.key_kind.into())),
        None => (None, None),
    };
    TlsFacts {
        version: connection.protocol_version().map_or("", version_name),
        cipher: connection.negotiated_cipher_suite().map_or("", |suite| openssl_name(suite.suite())),
        server_name: terms.server_name.as_deref().map(Into::into),
        alpn: connection.alpn_protocol().map(|protocol| String::from_utf8_lossy(protocol).into()),
        certificate_signature: signature,
        certificate_key: key,
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        ..TlsFacts::default()
    }
}

#[cfg(test)]
mod tests;
