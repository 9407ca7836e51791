//! Handshakes in memory: a client of origins, and servers with certificates made on the spot.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io;
use vcl_run::program::ClientIdentity;

/// An authority.
struct Authority {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Authority { der, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Shown {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned(), "*.b.example".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "origin");
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Shown { chain: vec![certificate.der().to_vec()], key: key.serialize_der() }
    }
}

/// A certificate with its key.
struct Shown {
    chain: Vec<Vec<u8>>,
    key: Vec<u8>,
}

impl Shown {
    fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> Shown {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        Shown { chain: vec![certificate.der().to_vec()], key: key.serialize_der() }
    }

    fn server(&self) -> ServerConfig {
        self.server_of(rustls::ALL_VERSIONS)
    }

    fn server_of(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> ServerConfig {
        let builder = ServerConfig::builder_with_protocol_versions(versions).with_no_client_auth();
        builder.with_single_cert(self.chain(), self.key()).unwrap()
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.iter().cloned().map(Into::into).collect()
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.clone()).unwrap()
    }
}

fn settings(host: &str, authorities: &[&Authority]) -> TlsDefinition {
    TlsDefinition {
        server_name: Some(host.to_owned()),
        host: host.to_owned(),
        verify_peer: true,
        verify_host: true,
        authorities: authorities.iter().map(|authority| authority.der.clone()).collect(),
        client: None,
        pin: None,
        only_tls13: false,
    }
}

/// Exchanges the output of both sides until both are done, or one fails.
fn shake(client: &mut ClientConnection, server: &mut ServerConnection) -> Result<(), io::Error> {
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut refused = None;
    for _ in 0..20 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes)?;
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest)?;
            // The server's objection reaches us as an alert.
            refused = server.process_new_packets().err().or(refused);
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes)?;
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest)?;
            client.process_new_packets().map_err(wrong)?;
        }
    }
    assert!(refused.is_none(), "{refused:?}");
    Ok(())
}

/// The facts of a handshake with these attributes, or the reason for its failure.
fn met(origin: &OriginTls, settings: &TlsDefinition, server: &Arc<ServerConfig>) -> Result<TlsFacts, String> {
    let identity = [u8::from(settings.only_tls13); 32];
    let client = origin.client(settings, identity, &[b"http/1.1"])?;
    let mut connection = ClientConnection::new(client.config, client.name).map_err(|error| error.to_string())?;
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    shake(&mut connection, &mut server).map_err(|error| failure_text(&error))?;
    assert_eq!(server.server_name(), settings.server_name.as_deref());
    Ok(facts(&connection, settings))
}

fn once(settings: &TlsDefinition, server: ServerConfig) -> Result<TlsFacts, String> {
    met(&OriginTls::new(), settings, &Arc::new(server))
}

fn refused(settings: &TlsDefinition, server: ServerConfig) -> String {
    once(settings, server).unwrap_err()
}

#[test]
fn verified_origin_is_accepted_and_its_tls_facts_are_available() {
    let authority = Authority::new("Authority");
    let origin = authority.issue(|_| {});
    let mut server = origin.server();
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    let facts = once(&settings("a.example", &[&authority]), server).unwrap();
    assert_eq!((facts.version, facts.is_resumed), ("TLSv1.3", false));
    assert!(facts.cipher.starts_with("TLS_"), "{}", facts.cipher);
    assert_eq!(facts.alpn.as_deref(), Some("http/1.1"));
    assert_eq!(facts.server_name.as_deref(), Some("a.example"));
    assert_eq!(facts.certificate_key.as_deref(), Some("EC256"));
    assert_eq!(facts.certificate_signature.as_deref(), Some("ecdsa-with-SHA256"));
    let older = once(&settings("x.b.example", &[&authority]), origin.server_of(&[&rustls::version::TLS12])).unwrap();
    assert_eq!((older.version, older.cipher), ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"));
}

#[test]
fn each_failed_check_has_its_own_message() {
    let (authority, stranger) = (Authority::new("Authority"), Authority::new("Stranger"));
    let wanted = settings("a.example", &[&authority]);
    let expired = authority.issue(|params| params.not_after = date_time_ymd(2020, 2, 1));
    let said = refused(&wanted, expired.server());
    assert!(said.starts_with("Server verification failed: certificate has expired (it was valid until"), "{said}");
    assert!(said.contains("1 Feb 2020"), "{said}");
    let early = authority.issue(|params| params.not_before = date_time_ymd(3000, 1, 1));
    let said = refused(&wanted, early.server());
    assert!(said.contains("certificate is not yet valid") && said.contains("3000"), "{said}");
    let said = refused(&wanted, stranger.issue(|_| {}).server());
    assert!(said.contains("unknown issuer (CN=Stranger"), "{said}");
    let said = refused(&wanted, Shown::self_signed(|_| {}).server());
    assert_eq!(said, "Server verification failed: self-signed certificate");
    let said = refused(&settings("c.example", &[&authority]), authority.issue(|_| {}).server());
    assert_eq!(said, "Server verification failed: certificate is not for c.example, but for a.example, *.b.example");
    let client_only = authority.issue(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    let said = refused(&wanted, client_only.server());
    assert_eq!(said, "Server verification failed: certificate is not for servers");
    let modern = TlsDefinition { only_tls13: true, ..wanted.clone() };
    let said = refused(&modern, authority.issue(|_| {}).server_of(&[&rustls::version::TLS12]));
    assert!(said.contains("the origin"), "{said}");
}

#[test]
fn only_the_configured_checks_are_made() {
    let (authority, stranger) = (Authority::new("Authority"), Authority::new("Stranger"));
    let other_name = TlsDefinition { verify_host: false, ..settings("c.example", &[&authority]) };
    assert!(once(&other_name, authority.issue(|_| {}).server()).is_ok());
    assert!(refused(&other_name, stranger.issue(|_| {}).server()).contains("unknown issuer"));
    let name_only = TlsDefinition { verify_peer: false, ..settings("a.example", &[]) };
    assert!(once(&name_only, stranger.issue(|_| {}).server()).is_ok());
    let anybody = TlsDefinition { verify_peer: false, verify_host: false, ..settings("c.example", &[]) };
    assert!(once(&anybody, Shown::self_signed(|params| params.not_after = date_time_ymd(2020, 1, 1)).server()).is_ok());
    let unnamed = TlsDefinition { server_name: None, host: "192.0.2.1".into(), ..anybody };
    assert!(once(&unnamed, stranger.issue(|_| {}).server()).is_ok());
}

#[test]
fn a_certificate_given_as_an_authority_is_trusted_itself_while_it_is_valid() {
    for is_authority in [false, true] {
        let change = |params: &mut CertificateParams| {
            if is_authority {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }
        };
        let own = Shown::self_signed(change);
        let wanted = TlsDefinition { authorities: own.chain.clone(), ..settings("a.example", &[]) };
        assert!(once(&wanted, own.server()).is_ok(), "{is_authority}");
    }
    let expired = Shown::self_signed(|params| params.not_after = date_time_ymd(2020, 1, 1));
    let wanted = TlsDefinition { authorities: expired.chain.clone(), ..settings("a.example", &[]) };
    assert!(refused(&wanted, expired.server()).contains("certificate has expired"));
}

#[test]
fn origin_without_the_pinned_key_is_refused_and_its_key_is_logged() {
    let authority = Authority::new("Authority");
    let origin = authority.issue(|_| {});
    let wanted = TlsDefinition { pin: Some([7; 32]), ..settings("a.example", &[&authority]) };
    let said = refused(&wanted, origin.server());
    let has = said.split("it has sha256/").nth(1).and_then(|rest| rest.strip_suffix(')')).unwrap().to_owned();
    let pin = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, has).unwrap();
    let wanted = TlsDefinition { pin: Some(pin.try_into().unwrap()), ..wanted };
    assert!(once(&wanted, origin.server()).is_ok());
    assert!(refused(&wanted, authority.issue(|_| {}).server()).contains("another public key than .ssl_pin says"));
}

#[test]
fn session_is_resumed_only_under_equal_settings() {
    let authority = Authority::new("Authority");
    let origin = OriginTls::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let server = Arc::new(authority.issue(|_| {}).server_of(&[version]));
        let wanted = settings("a.example", &[&authority]);
        assert!(!met(&origin, &wanted, &server).unwrap().is_resumed);
        let again = met(&origin, &wanted, &server).unwrap();
        assert!(again.is_resumed && again.certificate_key.is_some());
        if *version == rustls::version::TLS13 {
            let others = TlsDefinition { only_tls13: true, ..wanted };
            assert!(!met(&origin, &others, &server).unwrap().is_resumed);
        }
    }
}

#[test]
fn origin_that_requests_a_client_certificate_gets_the_configured_one() {
    let authority = Authority::new("Authority");
    let mut trusted = RootCertStore::empty();
    trusted.add(authority.der.clone().into()).unwrap();
    let origin = authority.issue(|_| {});
    let server = || {
        let verifier = WebPkiClientVerifier::builder(Arc::new(trusted.clone())).build().unwrap();
        let builder = ServerConfig::builder().with_client_cert_verifier(verifier);
        builder.with_single_cert(origin.chain(), origin.key()).unwrap()
    };
    let wanted = settings("a.example", &[&authority]);
    let said = refused(&wanted, server());
    assert_eq!(said, "the origin refused: it wants a client certificate (.ssl_cert)");
    let ours = authority.issue(|_| {});
    let client = Some(ClientIdentity { chain: ours.chain, key: ours.key });
    assert!(once(&TlsDefinition { client, ..wanted.clone() }, server()).is_ok());
    let ours = Authority::new("Stranger").issue(|_| {});
    let client = Some(ClientIdentity { chain: ours.chain, key: ours.key });
    let said = refused(&TlsDefinition { client, ..wanted }, server());
    assert!(said.starts_with("the origin refused: it does not accept our client certificate"), "{said}");
}

#[test]
fn the_configurations_that_are_kept_are_bounded_and_the_oldest_goes() {
    let origin = OriginTls::new();
    let settings = TlsDefinition { verify_peer: false, verify_host: false, ..settings("a.example", &[]) };
    let get = |number: usize| {
        let mut identity = [0; 32];
        identity[..8].copy_from_slice(&number.to_le_bytes());
        origin.client(&settings, identity, &[]).unwrap().config
    };
    let (first, second) = (get(0), get(1));
    for number in 2..ORIGIN_TLS_SETTINGS_MAX {
        get(number);
    }
    assert!(Arc::ptr_eq(&first, &get(0)));
    get(ORIGIN_TLS_SETTINGS_MAX);
    assert!(Arc::ptr_eq(&first, &get(0)) && !Arc::ptr_eq(&second, &get(1)));
    assert_eq!(origin.kept.lock().unwrap().clients.len(), ORIGIN_TLS_SETTINGS_MAX);
}

#[test]
fn plain_answer_is_reported_as_not_tls() {
    let client = OriginTls::new()
        .client(&TlsDefinition { verify_peer: false, ..settings("a.example", &[]) }, [0; 32], &[b"http/1.1"])
        .unwrap();
    let mut connection = ClientConnection::new(client.config, client.name).unwrap();
    connection.read_tls(&mut &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]).unwrap();
    let error = connection.process_new_packets().unwrap_err();
    let error = io::Error::new(io::ErrorKind::InvalidData, error);
    assert_eq!(failure_text(&error), "the origin does not speak TLS on this port");
    assert!(failure_text(&io::ErrorKind::UnexpectedEof.into()).contains("closed the connection"));
}
