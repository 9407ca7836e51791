//! The clients: handshakes by rustls, hits over HTTP/1.1 and HTTP/2 by h2load, over HTTP/3 by quinn and h3.
//!
//! Nothing is verified: the certificates are made for the run.

use crate::process;
use h3::client::SendRequest;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, SignatureScheme};

/// What is requested: the object of 1 KiB.
const PATH: &str = "/b1";
/// Handshakes under way at a time.
const HANDSHAKES_AT_ONCE: usize = 16;
/// Connections of HTTP/2 and HTTP/3, and requests on each at a time.
const CONNECTIONS: usize = 10;
const STREAMS: usize = 10;

/// The key of the certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// ECDSA, P-256.
    Ecdsa,
    /// RSA, 2048 bits.
    Rsa,
}

impl Key {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Key::Ecdsa => "ecdsa",
            Key::Rsa => "rsa",
        }
    }
}

/// What a client does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    /// TLS 1.3 handshakes, each on a connection of its own.
    Handshakes {
        /// With a ticket of an earlier one.
        resumed: bool,
    },
    /// Hits over HTTP/1.1 and TLS, keep-alive.
    Http1 {
        /// Connections.
        connections: usize,
    },
    /// Hits over HTTP/1.1 in clear, keep-alive.
    Http1Clear {
        /// Connections.
        connections: usize,
    },
    /// Hits over HTTP/2 and TLS.
    Http2,
    /// Hits over HTTP/2 in clear, by prior knowledge.
    Http2Clear,
    /// Hits over HTTP/3.
    Http3,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// CPU microseconds of the server's processes for each handshake or hit.
    pub cpu: f64,
    /// How many a second.
    pub per_second: f64,
    /// What failed.
    pub errors: u64,
}

/// How many succeeded and failed.
#[derive(Clone, Default)]
struct Count {
    done: u64,
    errors: u64,
    /// What the first failure was.
    failure: Option<String>,
}

impl Count {
    fn add<T>(&mut self, result: Result<T, String>) {
        match result {
            Ok(_) => self.done += 1,
            Err(error) => {
                self.errors += 1;
                self.failure.get_or_insert(error);
            }
        }
    }
}

impl Client {
    /// Runs against a port on loopback for about `seconds`, after a short warm-up.
    pub fn run(self, port: u16, seconds: f64, pids: &[u32]) -> Result<Outcome, String> {
        let warm_up = (seconds / 5.0).max(0.2);
        let load = |seconds: f64| match self {
            Client::Handshakes { resumed } => block_on(handshakes(port, seconds, resumed)),
            Client::Http3 => block_on(http3(port, seconds)),
            Client::Http1 { connections } => h2load(&["--h1"], "https", port, connections, 1, seconds),
            Client::Http1Clear { connections } => h2load(&["--h1"], "http", port, connections, 1, seconds),
            Client::Http2 => h2load(&[], "https", port, CONNECTIONS, STREAMS, seconds),
            Client::Http2Clear => h2load(&[], "http", port, CONNECTIONS, STREAMS, seconds),
        };
        load(warm_up)?;
        let (before, since) = (process::cpu_microseconds(pids).0, Instant::now());
        let count = load(seconds)?;
        let (after, lasted) = (process::cpu_microseconds(pids).0, since.elapsed().as_secs_f64());
        if count.done == 0 {
            return Err(count.failure.unwrap_or_else(|| "nothing was done in time".into()));
        }
        let done = count.done as f64;
        Ok(Outcome { cpu: (after - before) / done, per_second: done / lasted, errors: count.errors })
    }
}

/// Runs h2load for a time; without warm-up of its own.
fn h2load(
    more: &[&str],
    scheme: &str,
    port: u16,
    connections: usize,
    streams: usize,
    seconds: f64,
) -> Result<Count, String> {
    // Its time is given in whole seconds or milliseconds.
    let duration = format!("{}ms", (seconds * 1000.0) as u64);
    let output = Command::new("h2load")
        .args(more)
        .args(["-D", &duration, "-c", &connections.to_string(), "-m", &streams.to_string()])
        .arg(format!("{scheme}://localhost:{port}{PATH}"))
        .output()
        .map_err(|error| format!("h2load: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |before: &str| -> Option<u64> {
        let end = text.find(before)?;
        text[..end].rsplit([' ', ',']).find(|word| !word.is_empty())?.parse().ok()
    };
    let good = number(" 2xx").ok_or_else(|| format!("h2load: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    let errors = number(" failed").unwrap_or(0) + number(" 5xx").unwrap_or(0);
    Ok(Count { done: good, errors, failure: None })
}

fn block_on(load: impl Future<Output = Result<Count, String>>) -> Result<Count, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    tokio::task::LocalSet::new().block_on(&runtime, load)
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody(rustls::crypto::WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// TLS 1.3 without verification, with tickets or without.
pub fn config(protocols: &[&[u8]], resumed: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let anybody = Arc::new(Anybody(provider.signature_verification_algorithms));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(anybody)
        .with_no_client_auth();
    config.resumption = if resumed { Resumption::in_memory_sessions(64) } else { Resumption::disabled() };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// A port on loopback.
pub fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The name that the certificates are for.
pub fn localhost() -> Result<ServerName<'static>, String> {
    ServerName::try_from("localhost").map_err(|error| error.to_string())
}

/// Shakes hands again and again. A connection that is to hand out tickets for the next one reads until they have come.
async fn handshakes(port: u16, seconds: f64, resumed: bool) -> Result<Count, String> {
    let due = Instant::now() + Duration::from_secs_f64(seconds);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..HANDSHAKES_AT_ONCE {
        let connector = TlsConnector::from(Arc::new(config(&[b"http/1.1"], resumed)?));
        tasks.spawn_local(async move {
            let mut count = Count::default();
            // The first one brings the ticket.
            let mut has_ticket = false;
            while Instant::now() < due {
                count.add(shake_hands(&connector, port, resumed, has_ticket).await);
                has_ticket = resumed;
            }
            count
        });
    }
    sum(tasks).await
}

async fn shake_hands(connector: &TlsConnector, port: u16, resumed: bool, has_ticket: bool) -> Result<(), String> {
    let stream = tokio::net::TcpStream::connect(address(port)).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let mut stream = connector.connect(localhost()?, stream).await.map_err(|error| error.to_string())?;
    if has_ticket && stream.get_ref().1.handshake_kind() != Some(rustls::HandshakeKind::Resumed) {
        return Err("the ticket was not taken".into());
    }
    if resumed {
        // Tickets come behind the handshake: the server's first answer has them in front.
        let request = format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut received = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut received).await;
    }
    let _ = stream.shutdown().await;
    Ok(())
}

/// One connection of HTTP/3 that has answered a request; what is returned keeps it open.
pub async fn hold_http3(port: u16) -> Result<Box<dyn std::any::Any>, String> {
    let endpoint = quinn::Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(|e| e.to_string())?;
    let (mut driver, mut requests) = connect_http3(&endpoint, port).await?;
    let driver = tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
    get(&mut requests, port).await?;
    Ok(Box::new((endpoint, driver, requests)))
}

type Http3Driver = h3::client::Connection<h3_quinn::Connection, bytes::Bytes>;
type Http3Requests = SendRequest<h3_quinn::OpenStreams, bytes::Bytes>;

async fn connect_http3(endpoint: &quinn::Endpoint, port: u16) -> Result<(Http3Driver, Http3Requests), String> {
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(config(&[b"h3"], false)?);
    let tls = quinn::ClientConfig::new(Arc::new(tls.map_err(|error| error.to_string())?));
    let connecting = endpoint.connect_with(tls, address(port), "localhost").map_err(|error| error.to_string())?;
    let connection = connecting.await.map_err(|error| error.to_string())?;
    h3::client::new(h3_quinn::Connection::new(connection)).await.map_err(|error| error.to_string())
}

/// Requests over HTTP/3, some connections with some requests at a time.
async fn http3(port: u16, seconds: f64) -> Result<Count, String> {
    let due = Instant::now() + Duration::from_secs_f64(seconds);
    let endpoint = quinn::Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(|e| e.to_string())?;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mut driver, requests) = connect_http3(&endpoint, port).await?;
        tokio::task::spawn_local(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
        for _ in 0..STREAMS {
            let mut requests = requests.clone();
            tasks.spawn_local(async move {
                let mut count = Count::default();
                while Instant::now() < due {
                    count.add(get(&mut requests, port).await);
                }
                count
            });
        }
    }
    let count = sum(tasks).await;
    endpoint.close(0u32.into(), b"");
    count
}

async fn get(requests: &mut Http3Requests, port: u16) -> Result<(), String> {
    let request = http::Request::get(format!("https://localhost:{port}{PATH}")).body(());
    let request = request.map_err(|error| error.to_string())?;
    let mut stream = requests.send_request(request).await.map_err(|error| error.to_string())?;
    stream.finish().await.map_err(|error| error.to_string())?;
    let response = stream.recv_response().await.map_err(|error| error.to_string())?;
    while stream.recv_data().await.map_err(|error| error.to_string())?.is_some() {}
    if response.status() == 200 { Ok(()) } else { Err(format!("status {}", response.status())) }
}

async fn sum(mut tasks: tokio::task::JoinSet<Count>) -> Result<Count, String> {
    let mut all = Count::default();
    while let Some(count) = tasks.join_next().await {
        let count = count.map_err(|error| error.to_string())?;
        all.done += count.done;
        all.errors += count.errors;
        all.failure = all.failure.or(count.failure);
    }
    Ok(all)
}
