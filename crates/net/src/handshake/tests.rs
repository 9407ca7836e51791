//! Handshakes with rustls clients in memory: choice of certificate and protocol, tickets, and
//! attacks.

use super::*;
use engine::peer::EarlyPhase;
use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, KeyPair, PKCS_RSA_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, SupportedProtocolVersion};
use std::future::Future;
use std::time::Duration;
use tls::certificate::Pem;
use tls::secret::Secret;
use tls::server::{build, build_after};
use tls::table::{CertificateRow, ClientDemand, ClientVerification, FrontendRow, TicketKey, TlsTable};
use tokio::io::DuplexStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as ClientStream;

/// A self-signed certificate for these names.
fn certificate(id: &str, names: &[&str], key: &KeyPair) -> CertificateRow {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = CertificateParams::new(names).unwrap().self_signed(key).unwrap();
    let pem = format!("{}{}", made.pem(), key.serialize_pem());
    Pem::read(pem.as_bytes(), None).unwrap().into_row(id.into(), None)
}

fn frontend(listener: &str, certificates: &[u32]) -> FrontendRow {
    FrontendRow {
        listener: listener.into(),
        certificates: certificates.to_vec(),
        default: certificates.last().copied(),
        tls12: true,
        tls13: true,
        ..FrontendRow::default()
    }
}

/// A table with these certificates for the listener `a`, the last one as default.
fn table(certificates: Vec<CertificateRow>) -> TlsTable {
    let all: Vec<u32> = (0..certificates.len() as u32).collect();
    TlsTable {
        certificates,
        frontends: vec![frontend("a", &all)],
        ticket_keys: vec![TicketKey { name: [1; 16], key: Secret::new(vec![1; 32]) }],
        ..TlsTable::default()
    }
}

fn simple() -> TlsTable {
    table(vec![certificate("one", &["a.example", "*.wild.example"], &KeyPair::generate().unwrap())])
}

/// Accepts every certificate.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn client_of(versions: &[&'static SupportedProtocolVersion], provider: CryptoProvider) -> ClientConfig {
    let believer = Arc::new(AnyCertificate(provider.clone()));
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(believer)
        .with_no_client_auth()
}

fn client() -> ClientConfig {
    client_of(rustls::ALL_VERSIONS, rustls::crypto::aws_lc_rs::default_provider())
}

fn offering(protocols: &[&[u8]]) -> ClientConfig {
    let mut config = client();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config
}

fn parameters(http2: bool) -> HandshakeParameters {
    HandshakeParameters { due: Instant::now() + Duration::from_secs(8), now: 0.0, http2, ja3: false }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

/// Both ends of a handshake over a pipe of 64 KiB.
async fn meet(
    served: &ServedTls,
    listener: &str,
    config: ClientConfig,
    name: &str,
    http2: bool,
) -> (Result<Secured<DuplexStream>, Failure>, io::Result<ClientStream<DuplexStream>>) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let handshakes = Handshakes::default();
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let server = shake_hands(far, Vec::new(), served.of(listener), parameters(http2), &handshakes);
    tokio::join!(server, connector.connect(name, near))
}

async fn agreed(table: &TlsTable, config: ClientConfig, name: &str, http2: bool) -> Secured<DuplexStream> {
    let (server, client) = meet(&build(table).unwrap(), "a", config, name, http2).await;
    client.unwrap();
    server.unwrap_or_else(|failure| panic!("{failure:?}"))
}

#[test]
fn http2_is_negotiated_if_both_support_it_and_a_lack_of_alpn_is_tolerated() {
    run(async {
        let table = simple();
        let alpn = async |protocols: &[&[u8]], http2| {
            agreed(&table, offering(protocols), "a.example", http2).await.facts.alpn.map(String::from)
        };
        assert_eq!(alpn(&[b"http/1.1", b"h2"], true).await.as_deref(), Some("h2"));
        assert_eq!(alpn(&[b"h2", b"http/1.1"], false).await.as_deref(), Some("http/1.1"));
        assert_eq!(alpn(&[b"h2"], false).await, None);
        assert_eq!(alpn(&[b"spdy/3"], true).await, None);
        assert_eq!(alpn(&[], true).await, None);
    });
}

#[test]
fn tls_facts_are_available_in_vcl() {
    run(async {
        let table = simple();
        let facts = agreed(&table, client(), "a.example", false).await.facts;
        assert_eq!((facts.version, facts.cipher), ("TLSv1.3", "TLS_AES_256_GCM_SHA384"));
        assert_eq!(facts.server_name.as_deref(), Some("a.example"));
        assert_eq!(facts.certificate_key.as_deref(), Some("EC256"));
        assert_eq!(facts.certificate_signature.as_deref(), Some("ecdsa-with-SHA256"));
        assert!(!facts.is_resumed && facts.client_certificate.is_none() && facts.ja3.is_none());
        let old = client_of(&[&rustls::version::TLS12], rustls::crypto::aws_lc_rs::default_provider());
        let facts = agreed(&table, old, "a.example", false).await.facts;
        assert_eq!((facts.version, facts.cipher), ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"));
    });
}

/// The names of the certificate that a client gets for `name`.
async fn shown(table: &TlsTable, name: &str) -> Vec<String> {
    let (_, client) = meet(&build(table).unwrap(), "a", client(), name, false).await;
    let client = client.unwrap();
    let first = client.get_ref().1.peer_certificates().unwrap()[0].clone();
    tls::certificate::CertificateFacts::read(&first).unwrap().names
}

#[test]
fn an_exact_name_beats_a_wildcard_of_one_label_and_the_default_serves_the_rest() {
    run(async {
        let key = KeyPair::generate().unwrap();
        let table = table(vec![
            certificate("wild", &["*.example"], &key),
            certificate("exact", &["a.example"], &key),
            certificate("default", &["default"], &key),
        ]);
        assert_eq!(shown(&table, "a.example").await, ["a.example"]);
        assert_eq!(shown(&table, "A.Example").await, ["a.example"]);
        assert_eq!(shown(&table, "b.example").await, ["*.example"]);
        assert_eq!(shown(&table, "c.b.example").await, ["default"]);
        assert_eq!(shown(&table, "example").await, ["default"]);
        assert_eq!(shown(&table, "192.0.2.1").await, ["default"], "no name");
    });
}

#[test]
fn a_client_gets_the_kind_of_certificate_that_it_can_check() {
    run(async {
        let rsa = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        let table = table(vec![
            certificate("rsa", &["a.example"], &rsa),
            certificate("curve", &["a.example"], &KeyPair::generate().unwrap()),
        ]);
        let only = |prefix: &str| {
            let mut provider = rustls::crypto::aws_lc_rs::default_provider();
            let of_kind = |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite()).contains(prefix);
            provider.cipher_suites.retain(of_kind);
            client_of(&[&rustls::version::TLS12], provider)
        };
        let facts = agreed(&table, only("ECDHE_RSA"), "a.example", false).await.facts;
        assert_eq!((facts.cipher, facts.certificate_key.as_deref()), ("ECDHE-RSA-AES256-GCM-SHA384", Some("RSA2048")));
        let facts = agreed(&table, only("ECDHE_ECDSA"), "a.example", false).await.facts;
        assert_eq!(facts.certificate_key.as_deref(), Some("EC256"));
        let facts = agreed(&table, client(), "a.example", false).await.facts;
        assert_eq!(facts.certificate_key.as_deref(), Some("EC256"), "the cheaper one");
    });
}

#[test]
fn unknown_names_are_turned_away_where_that_is_wanted() {
    run(async {
        let mut table = simple();
        table.frontends[0].aborts_unknown_names = true;
        let served = build(&table).unwrap();
        let (server, client) = meet(&served, "a", client(), "other.example", false).await;
        let failure = server.err().unwrap();
        assert_eq!(failure.cause, "no certificate for this name (other.example)");
        assert!(client.unwrap_err().to_string().contains("UnrecognisedName"));
        assert!(meet(&served, "a", self::client(), "b.wild.example", false).await.0.is_ok());
        assert!(
            meet(&served, "a", self::client(), "192.0.2.1", false).await.0.is_ok(),
            "who names nobody gets the default"
        );
    });
}

#[test]
fn lack_of_certificates_is_logged() {
    run(async {
        let mut table = simple();
        table.frontends = vec![frontend("a", &[])];
        let served = build(&table).unwrap();
        for listener in ["a", "unknown"] {
            let (server, client) = meet(&served, listener, client(), "a.example", false).await;
            assert!(server.err().unwrap().cause.starts_with("no certificates loaded"));
            client.unwrap_err();
        }
    });
}

/// Exchanges a word in each direction, so that the client gets its tickets.
async fn talk(server: Secured<DuplexStream>, mut client: ClientStream<DuplexStream>) {
    let mut stream = server.stream;
    let mut word = [0; 5];
    let (sent, _) = tokio::join!(stream.write_all(b"hello"), client.read_exact(&mut word));
    sent.unwrap();
    assert_eq!(&word, b"hello");
}

#[test]
fn a_session_is_resumed_with_its_ticket_even_by_the_next_worker_but_not_elsewhere() {
    run(async {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let mut table = simple();
            table.frontends.push(frontend("b", &[0]));
            let config = client_of(&[version], rustls::crypto::aws_lc_rs::default_provider());
            let meeting = async |table: &TlsTable, listener: &str| {
                let (server, client) = meet(&build(table).unwrap(), listener, config.clone(), "a.example", false).await;
                let (server, client) = (server.unwrap_or_else(|failure| panic!("{failure:?}")), client.unwrap());
                let is_resumed = server.facts.is_resumed;
                talk(server, client).await;
                is_resumed
            };
            assert!(!meeting(&table, "a").await, "{version:?}");
            assert!(meeting(&table, "a").await, "{version:?}");
            table.ticket_keys.insert(0, TicketKey { name: [2; 16], key: Secret::new(vec![2; 32]) });
            assert!(meeting(&table, "a").await, "{version:?}: the key before the last");
            assert!(!meeting(&table, "b").await, "{version:?}: another frontend");
            table.ticket_keys.clear();
            assert!(!meeting(&table, "b").await, "{version:?}: the keys are gone");
        }
    });
}

#[test]
fn client_certificates_are_verified_and_available_in_vcl() {
    run(async {
        let root = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, &root).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, "somebody");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let theirs = params.signed_by(&key, &issuer).unwrap();
        let forged = params.self_signed(&key).unwrap();
        let showing = |certificate: &rcgen::Certificate| {
            let provider = rustls::crypto::aws_lc_rs::default_provider();
            let believer = Arc::new(AnyCertificate(provider.clone()));
            ClientConfig::builder_with_provider(Arc::new(provider))
                .with_safe_default_protocol_versions()
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(believer)
                .with_client_auth_cert(
                    vec![certificate.der().clone()],
                    rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
                )
                .unwrap()
        };
        let mut table = simple();
        let authorities = vec![issuer.der().to_vec()];
        table.frontends[0].client =
            ClientVerification { demand: ClientDemand::Optional, authorities: authorities.clone() };
        let facts = agreed(&table, showing(&theirs), "a.example", false).await.facts;
        let certificate = facts.client_certificate.unwrap();
        assert_eq!((certificate.subject.as_str(), certificate.fingerprint.len()), ("CN=somebody", 64));
        assert!(certificate.issuer.contains("CN=authority"), "{certificate:?}");
        assert!(agreed(&table, client(), "a.example", false).await.facts.client_certificate.is_none());
        let served = build(&table).unwrap();
        assert!(meet(&served, "a", showing(&forged), "a.example", false).await.0.is_err(), "optional is not unchecked");
        table.frontends[0].client = ClientVerification { demand: ClientDemand::Required, authorities };
        let served = build(&table).unwrap();
        assert!(meet(&served, "a", client(), "a.example", false).await.0.is_err());
        assert!(meet(&served, "a", showing(&theirs), "a.example", false).await.0.is_ok());
    });
}

#[test]
fn authorities_with_overlong_names_are_not_announced_and_still_verify() {
    run(async {
        let (authority, config, _) = client_of_an_authority();
        let key = KeyPair::generate().unwrap();
        let named = |number: usize| {
            let mut params = CertificateParams::new(vec![]).unwrap();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            params.distinguished_name.push(rcgen::DnType::OrganizationName, format!("{number} {}", "x".repeat(90)));
            params.self_signed(&key).unwrap().der().to_vec()
        };
        let mut table = simple();
        let authorities = (0..1000).map(named).chain([authority]).collect();
        table.frontends[0].client = ClientVerification { demand: ClientDemand::Required, authorities };
        let served = build(&table).unwrap();
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let provider = Arc::clone(config.crypto_provider());
            let only = ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_protocol_versions(&[version])
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate((*provider).clone())))
                .with_client_cert_resolver(Arc::clone(&config.client_auth_cert_resolver));
            let (server, client) = meet(&served, "a", only, "a.example", false).await;
            let server = server.unwrap_or_else(|failure| panic!("{version:?}: {failure:?}"));
            assert!(server.facts.client_certificate.is_some());
            client.unwrap();
        }
    });
}

/// An authority of clients, and a client with a certificate that expires in a minute, at the second
/// time that is returned.
fn client_of_an_authority() -> (Vec<u8>, ClientConfig, f64) {
    let root = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, &root).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_after = (std::time::SystemTime::now() + Duration::from_secs(60)).into();
    let theirs = params.signed_by(&key, &issuer).unwrap();
    let until = tls::certificate::CertificateFacts::read(theirs.der()).unwrap().not_after;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let believer = Arc::new(AnyCertificate(provider.clone()));
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(believer)
        .with_client_auth_cert(vec![theirs.der().clone()], key)
        .unwrap();
    (issuer.der().to_vec(), config, until as f64)
}

#[test]
fn a_session_is_not_resumed_with_a_certificate_that_has_expired() {
    run(async {
        let (authority, config, until) = client_of_an_authority();
        let mut table = simple();
        table.frontends[0].client = ClientVerification { demand: ClientDemand::Required, authorities: vec![authority] };
        let served = build(&table).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let meet_at = async |now| {
            let (near, far) = tokio::io::duplex(64 << 10);
            let (parameters, handshakes) = (HandshakeParameters { now, ..parameters(false) }, Handshakes::default());
            let server = shake_hands(far, Vec::new(), served.of("a"), parameters, &handshakes);
            let client = async {
                let mut client = connector.connect("a.example".try_into().unwrap(), near).await?;
                // The tickets, or the end.
                let _ = tokio::time::timeout(Duration::from_millis(1), client.read(&mut [0])).await;
                io::Result::Ok(client)
            };
            let (server, client) = tokio::join!(server, client);
            if let Ok(server) = server {
                let is_resumed = server.facts.is_resumed;
                talk(server, client.unwrap()).await;
                return Ok(is_resumed);
            }
            server.map(|_| false)
        };
        assert!(!meet_at(until - 2.0).await.unwrap());
        assert!(meet_at(until - 1.0).await.unwrap());
        let failure = meet_at(until + 1.0).await.unwrap_err();
        assert_eq!((failure.reason, failure.cause.as_str()), (CloseReason::RxBad, EXPIRED));
    });
}

#[test]
fn a_challenge_is_answered_for_its_name_and_nothing_else_is() {
    run(async {
        let key = KeyPair::generate().unwrap();
        let mut table =
            table(vec![certificate("one", &["a.example"], &key), certificate("acme", &["c.example"], &key)]);
        table.frontends[0].certificates = vec![0];
        table.frontends[0].default = Some(0);
        table.frontends[0].challenges = vec![1];
        let served = build(&table).unwrap();
        let (server, client) = meet(&served, "a", offering(&[b"acme-tls/1"]), "c.example", true).await;
        assert!(server.unwrap_or_else(|failure| panic!("{failure:?}")).is_challenge);
        assert_eq!(client.unwrap().get_ref().1.alpn_protocol(), Some(&b"acme-tls/1"[..]));
        let (server, _) = meet(&served, "a", offering(&[b"acme-tls/1"]), "a.example", true).await;
        assert!(server.err().unwrap().cause.starts_with("no such challenge"));
        assert_eq!(shown(&table, "c.example").await, ["a.example"], "the challenge's certificate is for the authority");
    });
}

/// Result for a client that sends these bytes in pieces of `size`; the answer it got is the second.
async fn hostile(bytes: &[u8], size: usize) -> (Failure, Vec<u8>) {
    let served = build(&simple()).unwrap();
    let handshakes = Handshakes::default();
    let (mut near, far) = tokio::io::duplex(64 << 10);
    let server = shake_hands(far, Vec::new(), served.of("a"), parameters(false), &handshakes);
    let client = async {
        let mut answer = Vec::new();
        for piece in bytes.chunks(size) {
            if near.write_all(piece).await.is_err() {
                break;
            }
        }
        let _ = near.read_to_end(&mut answer).await;
        answer
    };
    let (server, answer) = tokio::join!(server, client);
    (server.err().unwrap(), answer)
}

#[test]
fn plain_http_on_a_tls_port_gets_an_explanation() {
    run(async {
        let (failure, answer) = hostile(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 4).await;
        assert_eq!((failure.reason, failure.cause.as_str()), (CloseReason::RxJunk, "this is HTTP in clear"));
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 400 ") && head.contains(&format!("Content-Length: {}\r\n", body.len())),
            "{answer}"
        );
        let (failure, answer) = hostile(&[0x80, 46, 1, 3, 1, 0, 0, 0, 0, 0], 3).await;
        assert_eq!(failure.reason, CloseReason::RxJunk, "{failure:?}");
        assert_eq!(answer.first(), Some(&21), "an alert");
        let (failure, _) = hostile(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0], 1).await;
        assert!(matches!(failure.reason, CloseReason::RxJunk | CloseReason::RxBad), "{failure:?}");
        // An alert where a hello should be.
        let (failure, _) = hostile(&[21, 3, 1, 0, 2, 2, 40], 1).await;
        assert!(!failure.cause.is_empty());
    });
}

#[test]
fn an_answer_in_clear_is_not_lost_to_a_reset() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listening = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listening.local_addr().unwrap();
        let client = async {
            let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
            let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n", "x".repeat(500));
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            // After a reset the system refuses that.
            client.write_all(b"more").await.map(|()| answer)
        };
        let handshakes = Handshakes::default();
        let server = async {
            let (stream, _) = listening.accept().await.unwrap();
            stream.readable().await.unwrap();
            shake_hands(stream, Vec::new(), None, parameters(false), &handshakes).await.err().unwrap()
        };
        let (answer, failure) = tokio::join!(client, server);
        assert!(answer.unwrap().ends_with("This port speaks HTTPS, and not HTTP\n"));
        assert_eq!(failure.reason, CloseReason::RxJunk);
    });
}

#[test]
fn a_hello_without_end_is_given_up() {
    run(async {
        // 16 MiB announced, in records of 1 KiB.
        let mut bytes = Vec::new();
        let mut body = vec![1, 0xff, 0xff, 0xff];
        body.resize(1024, 3);
        while bytes.len() < 2 * TLS_HELLO_BYTES_MAX {
            bytes.extend_from_slice(&[22, 3, 1, 4, 0]);
            bytes.extend_from_slice(&body);
            body.fill(3);
        }
        let (failure, _) = hostile(&bytes, 4096).await;
        assert!(
            matches!(failure.reason, CloseReason::RxOverflow | CloseReason::RxJunk | CloseReason::RxBad),
            "{failure:?}"
        );
        // Records of one byte.
        let bytes: Vec<u8> =
            [1, 0, 0xff, 0xff].iter().chain([3; 60_000].iter()).flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect();
        let (failure, _) = hostile(&bytes, 4096).await;
        assert!(
            matches!(failure.reason, CloseReason::RxOverflow | CloseReason::RxJunk | CloseReason::RxBad),
            "{failure:?}"
        );
    });
}

#[test]
fn a_handshake_in_slow_motion_ends_at_its_deadline() {
    run(async {
        let served = build(&simple()).unwrap();
        let handshakes = Handshakes::default();
        let (near, far) = tokio::io::duplex(64 << 10);
        let begun = Instant::now();
        let server = shake_hands(far, vec![22, 3, 1], served.of("a"), parameters(false), &handshakes);
        let failure = server.await.err().unwrap();
        assert_eq!((failure.reason, begun.elapsed()), (CloseReason::RxTimeout, Duration::from_secs(8)));
        drop(near);
        // One that sends a whole hello and then nothing.
        let mut bytes = Vec::new();
        let mut session = rustls::ClientConnection::new(Arc::new(client()), "a.example".try_into().unwrap()).unwrap();
        session.write_tls(&mut bytes).unwrap();
        let (_near, far) = tokio::io::duplex(64 << 10);
        let failure = shake_hands(far, bytes, served.of("a"), parameters(false), &handshakes).await.err().unwrap();
        assert_eq!(failure.reason, CloseReason::RxTimeout);
        assert!(handshakes.under_way.borrow().is_empty());
    });
}

#[test]
fn a_handshake_in_pieces_of_one_byte_is_a_handshake() {
    run(async {
        let served = build(&simple()).unwrap();
        let (mut near, far) = tokio::io::duplex(64);
        let server = tokio::task::spawn_local(async move {
            let parameters = HandshakeParameters { ja3: true, ..parameters(false) };
            shake_hands(far, Vec::new(), served.of("a"), parameters, &Handshakes::default()).await
        });
        let mut client = rustls::ClientConnection::new(Arc::new(client()), "a.example".try_into().unwrap()).unwrap();
        while client.is_handshaking() || client.wants_write() {
            let mut flight = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut flight).unwrap();
            }
            for byte in flight {
                near.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            if client.is_handshaking() {
                let mut answer = [0; 100];
                let count = near.read(&mut answer).await.unwrap();
                client.read_tls(&mut &answer[..count]).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        let server = server.await.unwrap().unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(server.facts.ja3.unwrap().len(), 32);
    });
}

#[test]
fn when_too_many_are_under_way_the_oldest_is_given_up() {
    run(async {
        let served = Arc::new(build(&simple()).unwrap());
        let handshakes = Rc::new(Handshakes::default());
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..TLS_HANDSHAKES_MAX {
            let (near, far) = tokio::io::duplex(64);
            clients.push(near);
            let (served, handshakes) = (Arc::clone(&served), Rc::clone(&handshakes));
            servers.push(tokio::task::spawn_local(async move {
                shake_hands(far, Vec::new(), served.of("a"), parameters(false), &handshakes).await.err()
            }));
        }
        while handshakes.under_way.borrow().len() < TLS_HANDSHAKES_MAX {
            tokio::task::yield_now().await;
        }
        let (near, far) = tokio::io::duplex(64 << 10);
        let connector = TlsConnector::from(Arc::new(client()));
        let one_more = shake_hands(far, Vec::new(), served.of("a"), parameters(false), &handshakes);
        let (one_more, _) = tokio::join!(one_more, connector.connect("a.example".try_into().unwrap(), near));
        assert!(one_more.is_ok());
        let oldest = servers.remove(0).await.unwrap().unwrap();
        assert!(oldest.is_refused && oldest.reason == CloseReason::Overload);
        assert_eq!(handshakes.under_way.borrow().len(), TLS_HANDSHAKES_MAX - 1);
    });
}

#[test]
fn body_arrives_completely_with_its_end() {
    run(async {
        let (server, client) = meet(&build(&simple()).unwrap(), "a", client(), "a.example", false).await;
        let (mut stream, mut client) = (server.unwrap_or_else(|failure| panic!("{failure:?}")).stream, client.unwrap());
        let body: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
        let sent = body.clone();
        let server = async {
            stream.write_all(&sent).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut request = Vec::new();
            stream.read_to_end(&mut request).await.unwrap();
            request
        };
        let client = async {
            client.write_all(b"question").await.unwrap();
            let mut received = Vec::new();
            // tokio-rustls reports an end without close_notify as an error.
            client.read_to_end(&mut received).await.unwrap();
            let (io, _) = client.into_inner();
            drop(io);
            received
        };
        let (request, received) = tokio::join!(server, client);
        assert_eq!(request, b"question", "an end without a word is an end");
        assert!(received == body);
    });
}

#[test]
fn a_client_that_does_not_read_is_not_encrypted_for() {
    run(async {
        let (server, _client) = meet(&build(&simple()).unwrap(), "a", client(), "a.example", false).await;
        let mut stream = server.unwrap_or_else(|failure| panic!("{failure:?}")).stream;
        let body = vec![0; 1 << 20];
        let mut taken = 0;
        while let Ok(count) = tokio::time::timeout(Duration::from_secs(1), stream.write(&body)).await {
            taken += count.unwrap();
        }
        let bound = (64 << 10) + surface::limits::TLS_SEND_AHEAD_BYTES;
        assert!(taken <= bound + (16 << 10), "{taken} bytes");
        let flush = tokio::time::timeout(Duration::from_secs(1), stream.flush()).await;
        assert!(flush.is_err(), "what was not taken was not flushed");
    });
}

/// A limit for the memory of requests.
struct Bounded(engine::memory::RequestMemory, u64);

impl engine::memory::Bound for Bounded {
    fn memory(&self) -> &engine::memory::RequestMemory {
        &self.0
    }

    fn limit_bytes(&self) -> u64 {
        self.1
    }
}

#[test]
fn tls_bytes_ahead_of_slow_clients_are_counted_and_shrink_under_memory_pressure() {
    use engine::memory::{Ledger, SentAhead};
    use surface::counter::Main;
    use surface::limits::{TLS_SEND_AHEAD_BYTES, TLS_SEND_AHEAD_BYTES_SHORT};
    run(async {
        const CLIENTS: usize = 20;
        let counters = Arc::new(shm::counters::MainCounters::new());
        let held = || counters.get(Main::ReqBytes) as usize;
        let served = build(&simple()).unwrap();
        for (limit, each) in [(1 << 30, TLS_SEND_AHEAD_BYTES), (1, TLS_SEND_AHEAD_BYTES_SHORT)] {
            let memory = Arc::new(Bounded(Default::default(), limit));
            let ledger = Ledger::new(memory, Arc::clone(&counters));
            let mut short = SentAhead::new(Rc::clone(&ledger));
            short.set(1);
            let (mut streams, mut clients) = (Vec::new(), Vec::new());
            for _ in 0..CLIENTS {
                let (server, client) = meet(&served, "a", client(), "a.example", false).await;
                let mut stream = server.unwrap_or_else(|failure| panic!("{failure:?}")).stream;
                stream.count_ahead(SentAhead::new(Rc::clone(&ledger)));
                let before = held();
                stream.write_all(b"taken at once").await.unwrap();
                assert_eq!(held(), before);
                let body = vec![0; 1 << 20];
                let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&body)).await;
                streams.push(stream);
                clients.push(client.unwrap());
            }
            let most = 1 + CLIENTS * TLS_SEND_AHEAD_BYTES;
            assert!(held() > CLIENTS * each && held() <= most, "{} of {CLIENTS} at {each}", held());
            assert!(each < TLS_SEND_AHEAD_BYTES || held() == most);
            let (stream, client) = (&mut streams[0], &mut clients[0]);
            let before = held();
            let mut received = vec![0; 64 << 10];
            let flushed = async {
                while let Ok(Ok(1..)) = tokio::time::timeout(Duration::from_secs(1), client.read(&mut received)).await {
                }
            };
            let (sent, ()) = tokio::join!(stream.flush(), flushed);
            sent.unwrap();
            assert!(held() + each <= before, "what was taken does not count any more");
            drop(streams);
            assert_eq!(held(), 1);
            drop(short);
        }
    });
}

#[test]
fn early_data_is_read_before_the_handshake_ends_and_only_once() {
    run(async {
        let mut table = simple();
        table.frontends[0].early_data = true;
        let served = build(&table).unwrap();
        let mut config = client_of(&[&rustls::version::TLS13], rustls::crypto::aws_lc_rs::default_provider());
        config.enable_early_data = true;
        let (server, client) = meet(&served, "a", config.clone(), "a.example", false).await;
        let server = server.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(server.early.is_none());
        talk(server, client.unwrap()).await;

        // The first flight of the next connection, which an attacker records.
        let mut session = rustls::ClientConnection::new(Arc::new(config), "a.example".try_into().unwrap()).unwrap();
        session.early_data().unwrap().write_all(b"GET /").unwrap();
        let mut flight = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut flight).unwrap();
        }
        let handshakes = Handshakes::default();
        let (mut near, far) = tokio::io::duplex(64 << 10);
        let secured = shake_hands(far, flight.clone(), served.of("a"), parameters(false), &handshakes).await;
        let mut secured = secured.unwrap_or_else(|failure| panic!("{failure:?}"));
        let phase: Rc<EarlyPhase> = secured.early.clone().unwrap();
        assert!(phase.is_under_way() && secured.facts.is_resumed);
        let mut word = [0; 16];
        assert_eq!(secured.stream.read(&mut word).await.unwrap(), 5);
        assert_eq!(&word[..5], b"GET /");
        assert!(phase.is_under_way());
        // The answer is sent while the handshake is incomplete.
        secured.stream.write_all(b"yes").await.unwrap();
        secured.stream.flush().await.unwrap();
        let mut answer = vec![0; 16 << 10];
        let mut count = near.read(&mut answer).await.unwrap();
        let mut bytes = &answer[..count];
        while !bytes.is_empty() {
            session.read_tls(&mut bytes).unwrap();
            session.process_new_packets().unwrap();
        }
        count = std::io::Read::read(&mut session.reader(), &mut word).unwrap();
        assert_eq!(&word[..count], b"yes");
        session.writer().write_all(b"more").unwrap();
        let mut flight_2 = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut flight_2).unwrap();
        }
        near.write_all(&flight_2).await.unwrap();
        assert_eq!(secured.stream.read(&mut word).await.unwrap(), 4);
        assert!(!phase.is_under_way(), "the handshake is complete");

        // The recording, played again, is an ordinary handshake whose early data is not read.
        let (_near, far) = tokio::io::duplex(64 << 10);
        let again = shake_hands(far, flight, served.of("a"), parameters(false), &handshakes).await;
        assert_eq!(again.err().unwrap().reason, CloseReason::RxTimeout);
    });
}

/// A client that resumes a session with early data; its first flight was given to a server.
async fn resume_early(
    served: &ServedTls,
    config: &Arc<ClientConfig>,
) -> (rustls::ClientConnection, DuplexStream, Secured<DuplexStream>) {
    let mut session = rustls::ClientConnection::new(Arc::clone(config), "a.example".try_into().unwrap()).unwrap();
    session.early_data().expect("a session to resume").write_all(b"early").unwrap();
    let (near, far) = tokio::io::duplex(64 << 10);
    let flight = take_flight(&mut session);
    let secured = shake_hands(far, flight, served.of("a"), parameters(true), &Handshakes::default()).await;
    (session, near, secured.unwrap_or_else(|failure| panic!("{failure:?}")))
}

fn take_flight(session: &mut rustls::ClientConnection) -> Vec<u8> {
    let mut flight = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut flight).unwrap();
    }
    flight
}

/// The rest of a client's handshake.
async fn finish(session: &mut rustls::ClientConnection, near: &mut DuplexStream) {
    while session.is_handshaking() {
        let mut answer = [0; 4096];
        let count = near.read(&mut answer).await.unwrap();
        let mut bytes = &answer[..count];
        while !bytes.is_empty() {
            session.read_tls(&mut bytes).unwrap();
            session.process_new_packets().unwrap();
        }
    }
    near.write_all(&take_flight(session)).await.unwrap();
}

/// A table whose listener accepts early data, and a client with a session of it.
async fn early_client() -> (TlsTable, ServedTls, Arc<ClientConfig>) {
    let mut table = simple();
    table.frontends[0].early_data = true;
    let served = build(&table).unwrap();
    let mut config = client_of(&[&rustls::version::TLS13], rustls::crypto::aws_lc_rs::default_provider());
    config.enable_early_data = true;
    config.alpn_protocols = vec![b"h2".to_vec()];
    befriend(&served, &config).await;
    (table, served, Arc::new(config))
}

/// Performs a handshake, after which the client has a session to resume.
async fn befriend(served: &ServedTls, config: &ClientConfig) {
    let (server, client) = meet(served, "a", config.clone(), "a.example", true).await;
    let (mut server, mut client) = (server.unwrap_or_else(|failure| panic!("{failure:?}")), client.unwrap());
    // The handshake is complete once data was read after it; only then there are sessions.
    let mut word = [0; 2];
    let (sent, heard) = tokio::join!(client.write_all(b"hi"), server.stream.read_exact(&mut word));
    assert_eq!((sent.unwrap(), heard.unwrap()), ((), 2));
    talk(server, client).await;
}

#[test]
fn waiters_are_notified_of_the_handshake_end_and_early_data_is_kept() {
    run(async {
        let (_, served, config) = early_client().await;
        let (mut session, mut near, mut secured) = resume_early(&served, &config).await;
        assert_eq!(secured.facts.alpn.as_deref(), Some("h2"), "streams may be early, too");
        let phase = secured.early.clone().unwrap();
        let waiting = async {
            // An empty read continues the handshake.
            assert_eq!(secured.stream.read(&mut []).await.unwrap(), 0);
            assert!(phase.ended().await);
        };
        tokio::join!(waiting, finish(&mut session, &mut near));
        assert!(!phase.is_under_way());
        let mut word = [0; 5];
        secured.stream.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"early");
    });
}

#[test]
fn a_handshake_with_early_data_that_is_never_complete_ends_the_connection() {
    run(async {
        let (_, served, config) = early_client().await;
        let begun = Instant::now();
        let (_session, near, mut secured) = resume_early(&served, &config).await;
        let phase = secured.early.clone().unwrap();
        let mut word = [0; 5];
        secured.stream.read_exact(&mut word).await.unwrap();
        assert_eq!(secured.stream.read(&mut word).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!((begun.elapsed().as_secs_f64() - 8.0).abs() < 0.1, "the time of the handshake counts");
        assert!(!phase.ended().await);
        assert!(secured.stream.read(&mut word).await.is_err(), "and nothing more is read");
        drop(near);

        befriend(&served, &config).await;
        let (_session, near, mut secured) = resume_early(&served, &config).await;
        drop(near);
        let _ = secured.stream.read(&mut []).await;
        assert!(!secured.early.unwrap().ended().await, "the client has gone");
        // Early data is void now.
        assert!(secured.stream.read(&mut word).await.is_err());

        befriend(&served, &config).await;
        let (_session, _near, secured) = resume_early(&served, &config).await;
        drop(secured.stream);
        assert!(!secured.early.unwrap().ended().await, "we have");
    });
}

#[test]
fn a_handshake_that_is_never_complete_ends_the_connection_while_it_is_only_written_to() {
    run(async {
        let (_, served, config) = early_client().await;
        let begun = Instant::now();
        let (_session, mut near, mut secured) = resume_early(&served, &config).await;
        let reading = async {
            let mut received = vec![0; 64 << 10];
            while near.read(&mut received).await.is_ok_and(|count| count > 0) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let writing = async {
            while begun.elapsed() < Duration::from_secs(60) {
                if let Err(error) = secured.stream.write_all(&[0; 32 << 10]).await {
                    return error.kind();
                }
            }
            io::ErrorKind::Other
        };
        let kind = tokio::select! { kind = writing => kind, () = reading => panic!("the client reads on") };
        assert_eq!(kind, io::ErrorKind::TimedOut);
        assert!((begun.elapsed().as_secs_f64() - 8.0).abs() < 0.5, "{:?}", begun.elapsed());
        assert!(!secured.early.clone().unwrap().ended().await);
        assert!(secured.stream.flush().await.is_err() && secured.stream.write(b"more").await.is_err());
    });
}

#[test]
fn a_handshake_that_is_complete_in_time_is_noticed_while_the_connection_is_only_written_to() {
    run(async {
        let (_, served, config) = early_client().await;
        let begun = Instant::now();
        let (mut session, mut near, mut secured) = resume_early(&served, &config).await;
        let phase = secured.early.clone().unwrap();
        let client = async {
            finish(&mut session, &mut near).await;
            let mut received = vec![0; 64 << 10];
            while near.read(&mut received).await.is_ok_and(|count| count > 0) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let writing = async {
            while begun.elapsed() < Duration::from_secs(20) {
                secured.stream.write_all(&[0; 32 << 10]).await.unwrap();
            }
        };
        tokio::select! { () = writing => {}, () = client => panic!("the client reads on") };
        assert!(!phase.is_under_way() && phase.ended().await);
    });
}

#[test]
fn sessions_outlive_a_change_of_certificates_and_not_one_of_demands() {
    run(async {
        let (mut table, served, config) = early_client().await;
        table.certificates.push(certificate("two", &["b.example"], &KeyPair::generate().unwrap()));
        let next = build_after(&table, &served).unwrap();
        let (_, _, secured) = resume_early(&next, &config).await;
        assert!(secured.facts.is_resumed && secured.early.is_some());
        table.frontends[0].client = ClientVerification {
            demand: ClientDemand::Optional,
            authorities: vec![table.certificates[0].chain[0].clone()],
        };
        let stricter = build_after(&table, &next).unwrap();
        let (server, client) = meet(&stricter, "a", (*config).clone(), "a.example", true).await;
        let server = server.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(!server.facts.is_resumed && server.early.is_none());
        drop(client);
    });
}

#[test]
fn early_data_is_refused_where_it_is_not_wanted() {
    run(async {
        let served = build(&simple()).unwrap();
        let mut config = client();
        config.enable_early_data = true;
        let (server, client) = meet(&served, "a", config.clone(), "a.example", false).await;
        talk(server.unwrap_or_else(|failure| panic!("{failure:?}")), client.unwrap()).await;
        let mut session = rustls::ClientConnection::new(Arc::new(config), "a.example".try_into().unwrap()).unwrap();
        assert!(session.early_data().is_none(), "its tickets allow none");
        let _ = session.write_tls(&mut Vec::new());
    });
}

#[test]
fn invalid_table_names_the_faulty_part() {
    let mut table = simple();
    table.certificates[0].key = certificate("x", &["a"], &KeyPair::generate().unwrap()).key;
    assert_eq!(build(&table).unwrap_err(), "certificate one: key and certificate mismatch");
    let mut table = simple();
    table.frontends[0].suites = vec!["RC4-MD5".into()];
    assert_eq!(build(&table).unwrap_err(), "frontend a: no cipher suite RC4-MD5");
    let mut table = simple();
    (table.frontends[0].tls12, table.frontends[0].tls13) = (false, false);
    assert_eq!(build(&table).unwrap_err(), "frontend a: no version of TLS");
}
