//! Early data through the whole program: from rustls, which lets a test hold the end of the
//! handshake back, from OpenSSL, and over HTTP/3 from quinn. The handling of requests in detail is
//! tested in memory (`crates/engine/tests/early.rs`).

use crate::daemon::{Daemon, HANG, Origin, eventually, free_port, needs, ok};
use bytes::Buf as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

const VCL: &str = "vcl 4.1; import tls;
    backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
    sub vcl_recv { return (pass); }
    sub vcl_deliver { set resp.http.Who = tls.client_cert_subject(); }";

/// A daemon whose listener accepts early data, and the parameters of its clients.
struct Site {
    daemon: Daemon,
    origin: Origin,
    port: u16,
    folder: tempfile::TempDir,
    roots: RootCertStore,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Site {
    /// `more` are further settings of the frontend.
    fn start(more: &str) -> Site {
        // The origin reports if it received Early-Data; it then refuses paths that begin with
        // /late.
        let origin = Origin::start(|request| {
            let early = request.lines().find_map(|line| line.strip_prefix("Early-Data: ")).unwrap_or("-");
            if early == "1" && request.contains(" /late") {
                return b"HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n".to_vec();
            }
            ok("", &format!("early={early}"))
        });
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("a.pem"), made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        let port = free_port();
        let conf = format!(
            "frontend = {{ host = \"127.0.0.1\" port = \"{port}\" early-data = on {} }}\npem-file = \"{}\"\n",
            more.replace('@', folder.path().to_str().unwrap()),
            path("a.pem")
        );
        std::fs::write(path("tls.conf"), conf).unwrap();
        let daemon = Daemon::with_vcl(VCL, origin.port, &["-A", &path("tls.conf"), "-p", "feature=+http2"]);
        let certificate = CertificateDer::from(made.cert.der().to_vec());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        Site { daemon, origin, port, roots, certificate, key: made.signing_key.serialize_der(), folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// A client that keeps sessions and offers these protocols.
    fn client(&self, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let key = PrivatePkcs8KeyDer::from(self.key.clone()).into();
        let mut config = builder.with_client_auth_cert(vec![self.certificate.clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.enable_early_data = true;
        Arc::new(config)
    }

    fn counted(&self, counter: &str, count: u64) {
        eventually(counter, || (self.daemon.counter(counter) == count).then_some(()));
    }

    /// Value of a counter in `varnishstat`.
    fn shown(&self, counter: &str) -> String {
        let output = self.daemon.applet("varnishstat", &["-1", "-f", counter]);
        String::from_utf8(output.stdout).unwrap().split_whitespace().nth(1).unwrap_or_default().to_owned()
    }
}

/// A client's connection that sends nothing by itself.
struct Connection {
    tls: ClientConnection,
    stream: TcpStream,
}

impl Connection {
    fn new(site: &Site, config: &Arc<ClientConfig>) -> Connection {
        let tls = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(site.address()).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        Connection { tls, stream }
    }

    /// Begins with this request as early data. Returns the bytes of the first flight.
    fn early(site: &Site, config: &Arc<ClientConfig>, request: &str) -> (Connection, Vec<u8>) {
        let mut connection = Connection::new(site, config);
        connection.tls.early_data().expect("a session to resume").write_all(request.as_bytes()).unwrap();
        let flight = connection.flight();
        connection.stream.write_all(&flight).unwrap();
        (connection, flight)
    }

    fn flight(&mut self) -> Vec<u8> {
        let mut flight = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut flight).unwrap();
        }
        flight
    }

    /// Sends the pending output, the end of the handshake too.
    fn speak(&mut self) {
        let flight = self.flight();
        self.stream.write_all(&flight).unwrap();
    }

    /// Reads received bytes; false at the end.
    fn hear(&mut self) -> bool {
        let count = self.tls.read_tls(&mut self.stream).unwrap();
        self.tls.process_new_packets().unwrap();
        count > 0
    }

    /// Reads until a response of two or more lines is complete, and sends nothing meanwhile.
    fn response(&mut self) -> String {
        let mut response = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            match self.tls.reader().read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => response.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let text = String::from_utf8_lossy(&response);
                    if text.contains("\r\n\r\nearly=") {
                        break;
                    }
                    assert!(self.hear(), "no more than {text}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        String::from_utf8(response).unwrap()
    }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Performs a full handshake, and gets sessions with it.
fn meet(site: &Site, config: &Arc<ClientConfig>) {
    let mut connection = Connection::new(site, config);
    connection.tls.writer().write_all(GET.as_bytes()).unwrap();
    while connection.tls.is_handshaking() {
        connection.speak();
        connection.hear();
    }
    connection.speak();
    assert!(connection.response().ends_with("early=-"));
}

#[test]
fn requests_that_only_ask_are_answered_before_the_handshake_is_complete() {
    let site = Site::start("");
    let config = site.client(&[b"http/1.1"]);
    meet(&site, &config);
    let (mut connection, flight) = Connection::early(&site, &config, GET);
    let response = connection.response();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("early=1"), "{response}");
    // An attacker replays the recording: the attacker cannot complete that handshake.
    let asked = site.origin.count();
    let mut replay = TcpStream::connect(site.address()).unwrap();
    replay.set_read_timeout(Some(HANG)).unwrap();
    replay.write_all(&flight).unwrap();
    assert!(replay.read(&mut [0; 100]).unwrap() > 0, "the answer of a server that shakes hands in full");
    drop(replay);
    site.counted("MAIN.tls_failed", 1);
    assert_eq!(site.origin.count(), asked);
    // After the handshake the same connection is an ordinary one.
    connection.speak();
    connection.tls.writer().write_all(GET.as_bytes()).unwrap();
    connection.speak();
    assert!(connection.response().ends_with("early=-"));
    site.counted("MAIN.req_early", 1);
    assert_eq!(site.shown("MAIN.req_early"), "1");
}

#[test]
fn requests_that_change_something_wait_and_a_425_leads_to_another_try() {
    let site = Site::start("");
    let config = site.client(&[b"http/1.1"]);
    meet(&site, &config);
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    let (mut connection, _) = Connection::early(&site, &config, post);
    site.counted("MAIN.req_early_held", 1);
    let asked = site.origin.count();
    while connection.tls.is_handshaking() {
        connection.hear();
    }
    assert_eq!(site.origin.count(), asked);
    connection.speak();
    assert!(connection.response().ends_with("early=-"));

    // Sessions are there again, and outlive a change of certificates.
    let load = site.daemon.cli(&["tls.cert.load", &site.path("a.pem")]);
    assert!(load.0, "{}", load.1);
    assert!(site.daemon.cli(&["tls.cert.commit"]).0);
    let asked = site.origin.count();
    let (mut connection, _) = Connection::early(&site, &config, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    while connection.tls.is_handshaking() {
        connection.hear();
    }
    eventually("the origin is asked", || (site.origin.count() == asked + 1).then_some(()));
    connection.speak();
    let response = connection.response();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("early=-"), "{response}");
    site.counted("MAIN.req_early_again", 1);
    assert_eq!(site.origin.count(), asked + 2);
}

#[test]
fn openssl_sends_early_data_and_is_answered() {
    if needs("openssl").is_none() {
        return;
    }
    let site = Site::start("");
    std::fs::write(site.path("request"), "GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let client = |more: &[&str], request: &str| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &site.address().to_string(), "-servername", "localhost", "-ign_eof"]);
        let mut child =
            command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        text
    };
    let first = client(&["-sess_out", &site.path("session")], "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(first.contains("Early data was not sent") && first.contains("early=-"), "{first}");
    let second = client(&["-sess_in", &site.path("session"), "-early_data", &site.path("request")], "");
    assert!(second.contains("Early data was accepted") && second.contains("early=-"), "{second}");
    let again =
        client(&["-sess_in", &site.path("session"), "-early_data", &site.path("request")], "GET / HTTP/1.0\r\n\r\n");
    assert!(again.contains("Early data was rejected"), "a session is used once: {again}");
}

#[test]
fn http3_has_the_client_certificate_and_serves_early_data() {
    let site = Site::start("h3 = on client-verify = required client-verify-ca = \"@/a.pem\"");
    let config = quinn::crypto::rustls::QuicClientConfig::try_from(site.client(&[b"h3"])).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(config));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let story = async {
        let mut endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        endpoint.set_default_client_config(config);
        let (mut early, mut rounds) = (0, 0);
        // The end of the handshake may overtake the request.
        while early == 0 && rounds < 20 {
            let connecting = endpoint.connect(site.address(), "localhost").unwrap();
            let connection = match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => connecting.await.unwrap(),
            };
            let (mut driver, mut requests) = h3::client::new(h3_quinn::Connection::new(connection)).await.unwrap();
            tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
            let request = http::Request::get("https://localhost/").body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.finish().await.unwrap();
            let response = stream.recv_response().await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["who"], "CN=rcgen self signed cert");
            let mut body = Vec::new();
            while let Some(mut piece) = stream.recv_data().await.unwrap() {
                let length = piece.remaining();
                body.extend_from_slice(&piece.copy_to_bytes(length));
            }
            early += usize::from(body == b"early=1");
            rounds += 1;
        }
        assert_eq!(early, 1, "in {rounds} rounds");
        rounds
    };
    let rounds = runtime.block_on(async { tokio::time::timeout(HANG, story).await.unwrap() });
    site.counted("MAIN.h3_handshakes", rounds);
    assert_eq!(site.shown("MAIN.h3_sess"), rounds.to_string());
}
