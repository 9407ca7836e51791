//! Endpoints over loopback, with quinn's own client at the other end.

use super::*;
use quinn::{ClientConfig, Endpoint, SendStream};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use shm::counters::MainCounters;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, UdpSocket};
use surface::limits::TEST_HANG_SECONDS;
use tls::secret::Secret;
use tls::table::{CertificateRow, ClientVerification, FrontendRow, TlsTable};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A UDP socket that shares its port.
fn shared(address: SocketAddr) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket.into()
}

/// Servers, and clients that trust their certificate.
struct Site {
    frontend: Arc<Frontend>,
    client: ClientConfig,
    keys: Arc<QuicKeys>,
}

impl Site {
    fn new() -> Site {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let certificate = made.cert.der().to_vec();
        let table = TlsTable {
            certificates: vec![CertificateRow {
                id: "a".into(),
                chain: vec![certificate.clone()],
                key: Secret::new(made.signing_key.serialize_der()),
                names: vec!["a.example".into()],
                ocsp: None,
            }],
            frontends: vec![FrontendRow {
                listener: "a0".into(),
                certificates: vec![0],
                default: Some(0),
                challenges: Vec::new(),
                aborts_unknown_names: false,
                tls12: true,
                tls13: true,
                suites: Vec::new(),
                prefers_own_order: false,
                client: ClientVerification::default(),
                early_data: false,
                http3: true,
            }],
            ..TlsTable::default()
        };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate)).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h3".to_vec()];
        let client = quinn::crypto::rustls::QuicClientConfig::try_from(client).unwrap();
        Site {
            frontend: tls::server::build(&table).unwrap().of("a0").unwrap(),
            client: ClientConfig::new(Arc::new(client)),
            keys: Arc::new(QuicKeys::of(&Secret::new(vec![5; 64]))),
        }
    }

    /// The event loops of a worker, each on one of the sockets, which echo the received bytes.
    fn serve(&self, sockets: Vec<UdpSocket>) -> Vec<(Endpoint, Arc<MainCounters>)> {
        let (ids, mailboxes) = (WorkerIds::new(self.keys.ids), Mailboxes::new(sockets.len()));
        let one = |(number, socket): (usize, UdpSocket)| {
            let counters = Arc::new(MainCounters::new());
            let of_loop = ids.of_loop(number);
            let socket =
                LoopSocket::new(socket.into(), of_loop.clone(), number, mailboxes.clone(), Arc::clone(&counters));
            let server = endpoint(socket.unwrap(), of_loop, &self.keys).unwrap();
            server.set_server_config(Some(server_config(&self.frontend, &self.keys).unwrap()));
            tokio::spawn(echo(server.clone()));
            (server, counters)
        };
        sockets.into_iter().enumerate().map(one).collect()
    }

    fn client(&self) -> Endpoint {
        let mut client = Endpoint::client(ANY).unwrap();
        client.set_default_client_config(self.client.clone());
        client
    }
}

async fn echo(server: Endpoint) {
    while let Some(incoming) = server.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let mut bytes = [0; 100];
                while let Ok(Some(count)) = receive.read(&mut bytes).await {
                    if send.write_all(&bytes[..count]).await.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

/// Sends a word on a stream and reads the echo.
async fn exchange(send: &mut SendStream, receive: &mut quinn::RecvStream, said: &[u8]) {
    send.write_all(said).await.unwrap();
    let mut heard = vec![0; said.len()];
    receive.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, said);
}

#[tokio::test]
async fn client_whose_port_changes_keeps_its_connection_on_any_loop() {
    let site = Site::new();
    let first = shared(ANY);
    let address = first.local_addr().unwrap();
    let servers = site.serve(vec![first, shared(address), shared(address), shared(address)]);
    let client = site.client();
    let connection = client.connect(address, "a.example").unwrap().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    exchange(&mut send, &mut receive, b"from the first port").await;
    // The kernel chooses by the client's port. The probability that it chooses the same loop ten
    // times is one in a million.
    for _ in 0..10 {
        client.rebind(UdpSocket::bind(ANY).unwrap()).unwrap();
        exchange(&mut send, &mut receive, b"from another port").await;
    }
    let handed: u64 = servers.iter().map(|(_, counters)| counters.get(Main::H3HandedOver)).sum();
    assert!(handed > 0);
    assert_eq!(servers.iter().map(|(server, _)| server.open_connections()).sum::<usize>(), 1);
}

/// Over loopback the kernel coalesces datagrams that a client sends at once.
#[tokio::test]
async fn bulk_transfers_are_complete_on_every_socket() {
    let site = Site::new();
    let first = shared(ANY);
    let address = first.local_addr().unwrap();
    let servers = site.serve(vec![first, shared(address)]);
    let client = site.client();
    let connection = client.connect(address, "a.example").unwrap().await.unwrap();
    let said: Vec<u8> = (0..300_000u32).map(|number| (number / 7) as u8).collect();
    for _ in 0..6 {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        let heard = async {
            let mut heard = vec![0; said.len()];
            receive.read_exact(&mut heard).await.map(|()| heard)
        };
        let (sent, heard) = tokio::join!(send.write_all(&said), heard);
        sent.unwrap();
        assert!(heard.unwrap() == said);
        client.rebind(UdpSocket::bind(ANY).unwrap()).unwrap();
    }
    assert_eq!(servers.iter().map(|(_, counters)| counters.get(Main::H3Former)).sum::<u64>(), 0);
}

#[test]
fn client_of_a_dead_worker_is_reset_by_the_next_one() {
    let site = Site::new();
    let before = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let socket = shared(ANY);
    let (kept, address) = (socket.try_clone().unwrap(), socket.local_addr().unwrap());
    let gone = before.block_on(async { site.serve(vec![socket]) });
    after.block_on(async {
        let client = site.client();
        let connection = client.connect(address, "a.example").unwrap().await.unwrap();
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        exchange(&mut send, &mut receive, b"while it lived").await;
        // It dies without closing its connections.
        std::mem::forget(gone);
        before.shutdown_background();
        let next = site.serve(vec![kept]);
        send.write_all(&[0; 600]).await.unwrap();
        let told = tokio::time::timeout(Duration::from_secs(TEST_HANG_SECONDS), connection.closed()).await;
        assert!(matches!(told, Ok(ConnectionError::Reset)), "{told:?}");
        // By chance the id may look like one of its own.
        assert!(next[0].1.get(Main::H3Former) <= 10);
        client.connect(address, "a.example").unwrap().await.unwrap();
    });
}

#[tokio::test]
async fn garbage_is_not_answered_and_does_not_disturb() {
    let site = Site::new();
    let socket = shared(ANY);
    let address = socket.local_addr().unwrap();
    let servers = site.serve(vec![socket]);
    let stranger = tokio::net::UdpSocket::bind(ANY).await.unwrap();
    let mut bytes = [0u8; 1300];
    let mut state = 1u64;
    for round in 0..3000 {
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 33) as u8;
        }
        // Short headers, handshakes of no client, first packets too small for one.
        let length = match round % 3 {
            0 => {
                bytes[0] = 0x40 | bytes[0] & 0x3f;
                1300
            }
            1 => {
                bytes[..6].copy_from_slice(&[0xe0, 0, 0, 0, 1, 12]);
                1300
            }
            _ => {
                bytes[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
                usize::from(bytes[6])
            }
        };
        stranger.send_to(&bytes[..length], address).await.unwrap();
        tokio::task::yield_now().await;
    }
    let client = site.client();
    let connection = client.connect(address, "a.example").unwrap().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    exchange(&mut send, &mut receive, b"as ever").await;
    assert_eq!(stranger.try_recv(&mut bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(servers[0].0.open_connections(), 1);
}

#[tokio::test]
async fn unknown_version_is_reported_with_the_known_ones() {
    let site = Site::new();
    let socket = shared(ANY);
    let address = socket.local_addr().unwrap();
    let _servers = site.serve(vec![socket]);
    let stranger = tokio::net::UdpSocket::bind(ANY).await.unwrap();
    let mut bytes = vec![0; 1200];
    bytes[..14].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 4, 1, 2, 3, 4, 3, 5, 6, 7]);
    stranger.send_to(&bytes, address).await.unwrap();
    let mut heard = [0; 1500];
    let count = stranger.recv(&mut heard).await.unwrap();
    assert_eq!(heard[1..5], [0; 4], "a version negotiation");
    assert!(heard[..count].windows(4).any(|version| version == [0, 0, 0, 1]));
    assert!(count < 100);
}
