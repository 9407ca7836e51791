//! HTTP/3 through the whole program, with a third-party client (h3 on quinn).

use crate::daemon::{Daemon, HANG, Origin, eventually, free_port, ok};
use bytes::Buf;
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quinn::{ClientConfig, ConnectionError, Endpoint};
use rustls::pki_types::CertificateDer;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

const ANY: &str = "127.0.0.1:0";
/// A daemon with HTTP/3, and the parameters of its clients.
pub struct Site {
    pub daemon: Daemon,
    pub address: SocketAddr,
    config: ClientConfig,
    _folder: tempfile::TempDir,
}

impl Site {
    pub fn start(origin: &Origin, arguments: &[&str]) -> Site {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("both.pem");
        std::fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        let port = free_port();
        let listener = format!("tls=127.0.0.1:{port},https,h3");
        let daemon = Daemon::in_front_of(origin.port, &[&["-a", &listener], arguments].concat());
        let load = daemon.cli(&["tls.cert.load", file.to_str().unwrap()]);
        assert!(load.0, "{}", load.1);
        assert!(daemon.cli(&["tls.cert.commit"]).0);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Site { daemon, address, config: ClientConfig::new(Arc::new(tls)), _folder: folder }
    }

    fn endpoint(&self) -> Endpoint {
        let mut endpoint = Endpoint::client(ANY.parse().unwrap()).unwrap();
        endpoint.set_default_client_config(self.config.clone());
        endpoint
    }

    pub async fn client(&self) -> Client {
        let endpoint = self.endpoint();
        let connection = endpoint.connect(self.address, "localhost").unwrap().await.unwrap();
        let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection.clone())).await.unwrap();
        tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
        Client { endpoint, connection, requests }
    }
}

pub struct Client {
    endpoint: Endpoint,
    connection: quinn::Connection,
    requests: SendRequest<OpenStreams, bytes::Bytes>,
}

impl Client {
    async fn get(&mut self, path: &str) -> (http::Response<()>, Vec<u8>) {
        let request = http::Request::get(format!("https://localhost{path}")).body(()).unwrap();
        let mut stream = self.requests.send_request(request).await.unwrap();
        stream.finish().await.unwrap();
        let response = stream.recv_response().await.unwrap();
        let mut body = Vec::new();
        while let Some(mut piece) = stream.recv_data().await.unwrap() {
            let length = piece.remaining();
            body.extend_from_slice(&piece.copy_to_bytes(length));
        }
        (response, body)
    }

    /// With more fields; the response may break off: status, received body, and true if that is
    /// complete.
    pub async fn get_with(&mut self, path: &str, fields: &[(&str, &str)]) -> (u16, Vec<u8>, bool) {
        let mut request = http::Request::get(format!("https://localhost{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut stream = self.requests.send_request(request.body(()).unwrap()).await.unwrap();
        stream.finish().await.unwrap();
        let status = stream.recv_response().await.unwrap().status().as_u16();
        let mut body = Vec::new();
        loop {
            match stream.recv_data().await {
                Ok(Some(mut piece)) => {
                    let length = piece.remaining();
                    body.extend_from_slice(&piece.copy_to_bytes(length));
                }
                Ok(None) => return (status, body, true),
                Err(_) => return (status, body, false),
            }
        }
    }
}

pub fn run<F: Future<Output = ()>>(story: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(HANG, story).await.unwrap() });
}

#[test]
fn objects_come_over_http3_whole_from_the_origin_and_from_the_cache() {
    let body = "0123456789".repeat(100_000);
    let sent = body.clone();
    let origin = Origin::start(move |_| ok("Cache-Control: max-age=600\r\n", &sent));
    let site = Site::start(&origin, &[]);
    run(async {
        let mut client = site.client().await;
        for _ in 0..3 {
            let (response, received) = client.get("/large").await;
            assert_eq!(response.status(), 200);
            let announced = format!("h3=\":{}\"; ma=86400", site.address.port());
            assert_eq!(response.headers()["alt-svc"], announced.as_str());
            assert!(received == body.as_bytes());
        }
        assert_eq!(origin.count(), 1);
        // Several times as many requests as may be under way at once.
        for number in 0..300 {
            assert_eq!(client.get(&format!("/{}", number % 7)).await.0.status(), 200);
        }
    });
    assert_eq!(site.daemon.counter_reaching("MAIN.h3_sess", 1), 1);
}

#[test]
fn request_continues_while_the_client_address_changes() {
    let (moved, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let origin = Origin::start(move |_| {
        // Ends once the client has migrated; later requests find the channel closed.
        let _ = gate.lock().unwrap().recv();
        ok("", &"x".repeat(300_000))
    });
    let site = Site::start(&origin, &["-p", "event_loops=3"]);
    run(async {
        let mut client = site.client().await;
        let (endpoint, connection) = (client.endpoint.clone(), client.connection.clone());
        let moving = tokio::spawn(async move {
            for _ in 0..10 {
                endpoint.rebind(UdpSocket::bind(ANY).unwrap()).unwrap();
                // Any packet carries the new address, and an acknowledgement proves that it was
                // received.
                let mut stream = connection.open_uni().await.unwrap();
                let _ = stream.finish();
                let _ = stream.stopped().await;
            }
            drop(moved);
        });
        assert_eq!(client.get("/").await.1.len(), 300_000);
        moving.await.unwrap();
        assert_eq!(client.get("/again").await.1.len(), 300_000);
    });
    assert_eq!(site.daemon.counter_reaching("MAIN.h3_sess", 1), 1);
    // Ten ports are not always those of the same loop of three.
    site.daemon.counter_reaching("MAIN.h3_handed_over", 1);
}

#[test]
fn clients_of_a_worker_that_was_killed_come_again_at_once() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=600\r\n", "x"));
    let site = Site::start(&origin, &[]);
    run(async {
        let mut client = site.client().await;
        client.get("/").await;
        let before = site.daemon.worker();
        kill(Pid::from_raw(before), Signal::SIGKILL).unwrap();
        eventually("there is a new worker", || (site.daemon.worker() != before).then_some(()));
        let connection = client.connection.clone();
        let asking = tokio::spawn(async move {
            let request = http::Request::get("https://localhost/").body(()).unwrap();
            let _ = client.requests.send_request(request).await;
            std::future::pending::<()>().await;
        });
        // After its idle timeout the reason would be another.
        let told = tokio::time::timeout(HANG, connection.closed()).await;
        assert!(matches!(told, Ok(ConnectionError::Reset)), "{told:?}");
        asking.abort();
        let (response, _) = site.client().await.get("/").await;
        assert!(response.headers()["x-varnish"].to_str().unwrap().contains(' '), "a hit: {response:?}");
    });
}

#[test]
fn half_open_handshakes_are_bounded_and_block_no_client() {
    let origin = Origin::start(|_| ok("", "x"));
    let site = Site::start(&origin, &["-p", "event_loops=1"]);
    run(async {
        // First datagrams of clients that never send again.
        let relay = tokio::net::UdpSocket::bind(ANY).await.unwrap();
        let stranger = tokio::net::UdpSocket::bind(ANY).await.unwrap();
        let endpoint = site.endpoint();
        let mut datagram = [0; 1500];
        for _ in 0..300 {
            let connecting = endpoint.connect(relay.local_addr().unwrap(), "localhost").unwrap();
            for _ in 0..2 {
                let (count, _) = relay.recv_from(&mut datagram).await.unwrap();
                stranger.send_to(&datagram[..count], site.address).await.unwrap();
            }
            drop(connecting);
        }
        assert_eq!(site.client().await.get("/").await.0.status(), 200);
    });
    // Counters are summed a moment later.
    eventually("clients are asked to try again", || (site.daemon.counter("MAIN.h3_retries") > 0).then_some(()));
}

#[test]
fn stopping_daemon_closes_http3_connections() {
    let origin = Origin::start(|_| ok("", "x"));
    let site = Site::start(&origin, &[]);
    run(async {
        let mut client = site.client().await;
        client.get("/").await;
        let connection = client.connection.clone();
        let stopping = std::thread::scope(|scope| scope.spawn(|| site.daemon.cli(&["stop"])).join().unwrap());
        assert!(stopping.0, "{}", stopping.1);
        let told = connection.closed().await;
        let ConnectionError::ApplicationClosed(close) = &told else { panic!("{told:?}") };
        assert_eq!(close.error_code.into_inner(), 0x100, "H3_NO_ERROR");
    });
}
