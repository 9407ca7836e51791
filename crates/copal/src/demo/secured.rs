//! The demo's TLS: a certificate made on the spot, and a visitor that uses HTTP/2.
//!
//! Only the visitor here trusts that certificate. Its key is in the demo's folder, readable for the
//! demo's owner only, and is removed with it.

use http::{Request, Version};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// File of the certificate in the demo's folder, for clients that are configured to trust it.
pub const CERTIFICATE: &str = "demo.crt";
/// Time limit of the visitor for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// TLS files of the daemon, and the certificate that the visitor trusts.
pub struct Secured {
    /// Its listening address.
    pub address: SocketAddr,
    /// The `-A` file.
    pub file: PathBuf,
    /// True if HTTP/3 is enabled.
    pub has_http3: bool,
    certificate: CertificateDer<'static>,
}

/// The parts of an answer that the demo uses.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// True if the response advertises HTTP/3.
    pub names_http3: bool,
}

impl Secured {
    /// Makes a certificate for localhost, and writes the daemon's files into the folder.
    ///
    /// # Errors
    /// The file that could not be made or written, for the terminal.
    pub fn make(folder: &Path, address: SocketAddr) -> Result<Secured, String> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), address.ip().to_string()])
            .map_err(|error| format!("no certificate could be made: {error}"))?;
        let path = |name: &str| folder.join(name);
        let (certificate_file, key_file, file) = (path(CERTIFICATE), path("demo.key"), path("tls.conf"));
        write(&certificate_file, 0o644, &made.cert.pem())?;
        write(&key_file, 0o600, &made.signing_key.serialize_pem())?;
        // UDP may be unavailable here, and TCP alone is enough.
        let has_http3 = UdpSocket::bind(address).is_ok();
        let text = format!(
            "frontend = {{\n    host = \"{}\"\n    port = \"{}\"\n    h3 = {}\n}}\npem-file = {{\n    cert = \"{}\"\n    private-key = \"{}\"\n}}\n",
            address.ip(),
            address.port(),
            if has_http3 { "on" } else { "off" },
            certificate_file.display(),
            key_file.display(),
        );
        write(&file, 0o644, &text)?;
        Ok(Secured { address, file, has_http3, certificate: made.cert.der().clone() })
    }

    /// The protocols, in words.
    pub fn protocols(&self) -> &'static str {
        if self.has_http3 { "HTTP/1.1, HTTP/2 and HTTP/3" } else { "HTTP/1.1 and HTTP/2; there is no UDP for HTTP/3" }
    }

    /// Requests a page over HTTP/2, which is negotiated in the handshake.
    ///
    /// # Errors
    /// The error on the way to the answer, for the terminal.
    pub async fn ask(&self, path: &str) -> Result<Answer, String> {
        let asked = tokio::time::timeout(ANSWER, self.ask_patiently(path)).await;
        asked.map_err(|_| format!("https://{}{path}: no answer after {} s", self.address, ANSWER.as_secs()))?
    }

    async fn ask_patiently(&self, path: &str) -> Result<Answer, String> {
        let url = format!("https://{}{path}", self.address);
        let failed = |why: &dyn std::fmt::Display| format!("{url}: {why}");
        let stream = TcpStream::connect(self.address).await.map_err(|error| failed(&error))?;
        let name = ServerName::from(self.address.ip());
        let stream = self.connector()?.connect(name, stream).await.map_err(|error| failed(&error))?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(failed(&"HTTP/2 was not agreed on"));
        }
        let (mut requests, connection) = h2::client::handshake(stream).await.map_err(|error| failed(&error))?;
        let request = Request::get(&url).version(Version::HTTP_2).body(()).map_err(|error| failed(&error))?;
        let (answer, _) = requests.send_request(request, true).map_err(|error| failed(&error))?;
        let answer = tokio::select! {
            answer = answer => answer.map_err(|error| failed(&error))?,
            ended = connection => return Err(failed(&format!("the connection ended: {ended:?}"))),
        };
        let services = answer.headers().get_all("alt-svc").iter();
        let names_http3 = services.into_iter().any(|value| value.as_bytes().starts_with(b"h3="));
        Ok(Answer { status: answer.status().as_u16(), names_http3 })
    }

    fn connector(&self) -> Result<TlsConnector, String> {
        let text = |error: rustls::Error| error.to_string();
        let mut trusted = RootCertStore::empty();
        trusted.add(self.certificate.clone()).map_err(text)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = versions.map_err(text)?.with_root_certificates(trusted).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// Writes a new file, with the permissions `mode` from the beginning.
fn write(path: &Path, mode: u32, text: &str) -> Result<(), String> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| format!("{}: {error}", path.display()))
}
