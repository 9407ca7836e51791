//! TLS configurations towards clients: [`ServedTls`], built from a [`TlsTable`] as a whole, or not
//! at all.
//!
//! A [`Frontend`] belongs to a listener and is shared by all event loops. It chooses the parameters
//! of a handshake from the ClientHello ([`Frontend::choose`]); the caller, which has the socket,
//! performs the handshake. *Invariant:* a connection keeps the frontend it began with. Next files:
//! `resolver.rs`, `tickets.rs`, `sessions.rs`.

use crate::resolver::{Certificates, Served};
use crate::sessions::Sessions;
use crate::suites;
use crate::table::{ClientDemand, ClientVerification, FrontendRow, TlsTable};
use crate::tickets::{Tickets, scope};
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, StoresServerSessions, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, RootCertStore, ServerConfig, SignatureScheme, SupportedProtocolVersion};
use rustls_pki_types::CertificateDer;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use surface::limits::{TLS_AUTHORITY_NAMES_BYTES_MAX, TLS_EARLY_DATA_BYTES_MAX};

/// HTTP/2 in ALPN.
pub const ALPN_HTTP2: &[u8] = b"h2";
/// HTTP/1.1 in ALPN.
pub const ALPN_HTTP1: &[u8] = b"http/1.1";
/// HTTP/3 in ALPN.
pub const ALPN_HTTP3: &[u8] = b"h3";
/// An authority's challenge in ALPN (RFC 8737).
pub const ALPN_CHALLENGE: &[u8] = b"acme-tls/1";

/// The TLS configurations of all listeners.
#[derive(Debug, Default)]
pub struct ServedTls {
    frontends: HashMap<String, Arc<Frontend>>,
}

impl ServedTls {
    /// The frontend of a listener; `None` if the table does not name it.
    #[must_use]
    pub fn of(&self, listener: &str) -> Option<Arc<Frontend>> {
        self.frontends.get(listener).cloned()
    }
}

/// Builds the configurations of a table.
///
/// # Errors
/// Names the unusable certificate, frontend or key, with the reason.
pub fn build(table: &TlsTable) -> Result<ServedTls, String> {
    build_after(table, &ServedTls::default())
}

/// Builds the configurations of a table. Sessions stored in `before` can still be resumed.
///
/// # Errors
/// As [`build`].
pub fn build_after(table: &TlsTable, before: &ServedTls) -> Result<ServedTls, String> {
    let all = table.certificates.iter().map(|row| Served::new(row).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let mut frontends = HashMap::new();
    for row in &table.frontends {
        let remembered = before.frontends.get(&row.listener).and_then(|frontend| frontend.sessions.clone());
        let frontend =
            Frontend::new(table, &all, row, remembered).map_err(|why| format!("frontend {}: {why}", row.listener))?;
        frontends.insert(row.listener.clone(), Arc::new(frontend));
    }
    Ok(ServedTls { frontends })
}

/// TLS configuration of a listener.
pub struct Frontend {
    certificates: Arc<Certificates>,
    aborts_unknown_names: bool,
    challenges: Arc<Certificates>,
    challenge: Arc<ServerConfig>,
    /// Offers `h2` and `http/1.1`.
    http2: Arc<ServerConfig>,
    /// Offers `http/1.1`.
    http1: Arc<ServerConfig>,
    /// Offers nothing.
    plain: Arc<ServerConfig>,
    quic: Arc<ServerConfig>,
    /// With early data: the sessions that may use it.
    sessions: Option<Arc<Sessions>>,
}

impl fmt::Debug for Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontend").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// Reason for refusing a client at its ClientHello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There are no certificates (alert internal_error).
    NoCertificates,
    /// There is none for the name (alert unrecognized_name).
    UnknownName,
    /// It requests the answer to a challenge that does not exist (alert no_application_protocol).
    NoChallenge,
}

impl Refusal {
    /// Number of the alert for the client. Source: RFC 8446 §6.
    #[must_use]
    pub fn alert(self) -> u8 {
        match self {
            Refusal::NoCertificates => 80,
            Refusal::UnknownName => 112,
            Refusal::NoChallenge => 120,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoCertificates => "no certificates loaded",
            Refusal::UnknownName => "no certificate for this name",
            Refusal::NoChallenge => "no such challenge",
        })
    }
}

impl Frontend {
    fn new(
        table: &TlsTable,
        all: &[Arc<Served>],
        row: &FrontendRow,
        remembered: Option<Arc<Sessions>>,
    ) -> Result<Frontend, String> {
        let certificates = Arc::new(Certificates::new(&table.certificates, all, row));
        let challenges = Arc::new(Certificates::challenges(&table.certificates, all, row));
        let scope = scope(row);
        let sessions = row.early_data.then(|| {
            remembered.filter(|sessions| sessions.are_of(&scope)).unwrap_or_else(|| Arc::new(Sessions::new(scope)))
        });
        let base = configuration(table, row, &certificates, sessions.as_ref())?;
        let offering = |protocols: &[&[u8]]| {
            let mut config = base.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            config
        };
        let mut challenge = offering(&[ALPN_CHALLENGE]);
        challenge.cert_resolver = Arc::clone(&challenges) as _;
        let mut quic = offering(&[ALPN_HTTP3]);
        // QUIC has its own limit for early data: rustls accepts all or none.
        quic.max_early_data_size = if row.early_data { u32::MAX } else { 0 };
        Ok(Frontend {
            aborts_unknown_names: row.aborts_unknown_names,
            challenge: Arc::new(challenge),
            http2: Arc::new(offering(&[ALPN_HTTP2, ALPN_HTTP1])),
            http1: Arc::new(offering(&[ALPN_HTTP1])),
            plain: Arc::new(base.clone()),
            quic: Arc::new(quic),
            sessions,
            certificates,
            challenges,
        })
    }

    /// The configuration for QUIC, which offers `h3`. TLS 1.3 must be among the versions.
    #[must_use]
    pub fn quic_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.quic)
    }

    /// Parameters of a handshake with a client on TCP. A client that offers none of our protocols
    /// continues without one.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn choose(&self, hello: &ClientHello<'_>, http2: bool) -> Result<Arc<ServerConfig>, Refusal> {
        let offers = |protocol: &[u8]| hello.alpn().is_some_and(|mut offered| offered.any(|one| one == protocol));
        if offers(ALPN_CHALLENGE) {
            let is_known = hello.server_name().is_some_and(|name| self.challenges.knows(name));
            return if is_known { Ok(Arc::clone(&self.challenge)) } else { Err(Refusal::NoChallenge) };
        }
        if self.certificates.is_empty() {
            return Err(Refusal::NoCertificates);
        }
        let is_known = match hello.server_name() {
            Some(name) => {
                self.certificates.knows(name) || (!self.aborts_unknown_names && self.certificates.has_default())
            }
            None => self.certificates.has_default(),
        };
        if !is_known {
            return Err(Refusal::UnknownName);
        }
        Ok(if http2 && offers(ALPN_HTTP2) {
            Arc::clone(&self.http2)
        } else if offers(ALPN_HTTP1) {
            Arc::clone(&self.http1)
        } else {
            Arc::clone(&self.plain)
        })
    }

    /// The certificate that a client got that sent `name` and supports `schemes`, given the
    /// negotiated suite.
    #[must_use]
    pub fn certificate(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
        suite: CipherSuite,
    ) -> Option<&Arc<Served>> {
        // In TLS 1.2 the suites of a client limit the signatures that it can check.
        let suite = suites::openssl_name(suite);
        let (is_rsa, is_curve) = (suite.starts_with("ECDHE-RSA"), suite.starts_with("ECDHE-ECDSA"));
        let is_possible =
            |scheme: &&SignatureScheme| !(is_rsa && is_on_curve(**scheme) || is_curve && !is_on_curve(**scheme));
        let possible: Vec<SignatureScheme> = schemes.iter().filter(is_possible).copied().collect();
        self.certificates.choose(name, &possible)
    }

    /// True if early data is accepted.
    #[must_use]
    pub fn has_early_data(&self) -> bool {
        self.sessions.is_some()
    }
}

/// True for a signature by a key on a curve.
fn is_on_curve(scheme: SignatureScheme) -> bool {
    use SignatureScheme as Scheme;
    matches!(
        scheme,
        Scheme::ECDSA_NISTP256_SHA256
            | Scheme::ECDSA_NISTP384_SHA384
            | Scheme::ECDSA_NISTP521_SHA512
            | Scheme::ECDSA_SHA1_Legacy
            | Scheme::ED25519
            | Scheme::ED448
    )
}

/// The configuration of a frontend without any protocols.
fn configuration(
    table: &TlsTable,
    row: &FrontendRow,
    certificates: &Arc<Certificates>,
    sessions: Option<&Arc<Sessions>>,
) -> Result<ServerConfig, String> {
    let provider = Arc::new(provider(row)?);
    let versions = versions(row)?;
    let verifier = verifier(&row.client, &provider)?;
    let mut base = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::clone(certificates) as _);
    base.ignore_client_order = row.prefers_own_order;
    if let Some(sessions) = sessions {
        base.session_storage = Arc::clone(sessions) as _;
        base.max_early_data_size = TLS_EARLY_DATA_BYTES_MAX;
        // A response to early data need not wait for the end of the handshake.
        base.send_half_rtt_data = true;
    } else {
        base.ticketer = Arc::new(Tickets::new(&table.ticket_keys, row)?);
        base.session_storage = Arc::new(NoSessions);
    }
    Ok(base)
}

/// Stores nothing: sessions are in tickets.
#[derive(Debug)]
struct NoSessions;

impl StoresServerSessions for NoSessions {
    fn put(&self, _: Vec<u8>, _: Vec<u8>) -> bool {
        false
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        false
    }
}

fn provider(row: &FrontendRow) -> Result<CryptoProvider, String> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    if !row.suites.is_empty() {
        let named = |name: &String| suites::named(name).map(|row| row.suite).ok_or(format!("no cipher suite {name}"));
        provider.cipher_suites = row.suites.iter().map(named).collect::<Result<_, _>>()?;
    }
    Ok(provider)
}

fn versions(row: &FrontendRow) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
    if row.tls13 {
        versions.push(&TLS13);
    }
    if row.tls12 {
        versions.push(&TLS12);
    }
    if versions.is_empty() { Err("no version of TLS".into()) } else { Ok(versions) }
}

/// Verifier of client certificates. An invalid one is refused, even if none is required.
fn verifier(
    client: &ClientVerification,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let is_required = match client.demand {
        ClientDemand::None => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientDemand::Optional => false,
        ClientDemand::Required => true,
    };
    let mut roots = RootCertStore::empty();
    for authority in &client.authorities {
        roots.add(CertificateDer::from(authority.clone())).map_err(|error| format!("authority of clients: {error}"))?;
    }
    let names_bytes: usize = roots.subjects().iter().map(|name| name.as_ref().len()).sum();
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder =
        if names_bytes > TLS_AUTHORITY_NAMES_BYTES_MAX { builder.clear_root_hint_subjects() } else { builder };
    let builder = if is_required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| format!("authorities of clients: {error}"))
}
