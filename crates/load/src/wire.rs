//! A connection over TCP, with or without TLS.

use crate::failure::{Failure, Kind};
use crate::plan::{Plan, Target};
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};
use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, SignatureScheme};

/// Loopback addresses used as sources of short connections, so that recently closed ones do not
/// exhaust the ports.
const SOURCES: u32 = 250;
/// Bytes that are discarded at a time.
const DISCARD_BYTES: usize = 1 << 20;

/// Accepts any certificate.
#[derive(Debug)]
struct AnyCertificate(rustls::crypto::WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
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

/// TLS 1.3, or 1.2 for old servers, without verification; with tickets or without.
pub(crate) fn tls_config(protocol: &[u8], resume: bool) -> Result<ClientConfig, Failure> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let anybody = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
    // QUIC does not support TLS 1.2, and refuses it.
    let versions: &[_] = if protocol == b"h3" {
        &[&rustls::version::TLS13]
    } else {
        &[&rustls::version::TLS13, &rustls::version::TLS12]
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| Failure::new(Kind::Tls, error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(anybody)
        .with_no_client_auth();
    config.resumption = if resume { Resumption::in_memory_sessions(64) } else { Resumption::disabled() };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

/// Settings for opening connections; one for each thread.
pub(crate) struct Opener {
    target: Target,
    /// The server name in a handshake.
    name: Option<ServerName<'static>>,
    connector: Option<TlsConnector>,
    /// Connections use many loopback addresses as sources.
    scattered: bool,
}

impl Opener {
    pub(crate) fn new(plan: &Plan, protocol: &[u8]) -> Result<Opener, Failure> {
        let target = plan.target.clone();
        let (mut name, mut connector) = (None, None);
        if target.tls {
            name = Some(server_name(&target)?);
            connector = Some(TlsConnector::from(Arc::new(tls_config(protocol, plan.resume)?)));
        }
        let many = plan.per_connection.is_some() || plan.connections + plan.idle > 10_000;
        let scattered = many && matches!(target.address, SocketAddr::V4(v4) if v4.ip().is_loopback());
        Ok(Opener { target, name, connector, scattered })
    }

    pub(crate) async fn open(&self) -> Result<Wire, Failure> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let stream = if self.scattered {
            let socket = TcpSocket::new_v4()?;
            let number = OPENED.fetch_add(1, Ordering::Relaxed) % SOURCES;
            let source = Ipv4Addr::new(127, 0, 0, 2 + number as u8);
            // The port is chosen when the destination is known: so the number of connections is
            // limited only by the pairs.
            setsockopt(&socket, sockopt::IpBindAddressNoPort, &true).map_err(io::Error::from)?;
            socket.bind(SocketAddr::from((source, 0)))?;
            socket.connect(self.target.address).await?
        } else {
            TcpStream::connect(self.target.address).await?
        };
        stream.set_nodelay(true)?;
        let (Some(name), Some(connector)) = (&self.name, &self.connector) else { return Ok(Wire::Clear(stream)) };
        let secured = connector.connect(name.clone(), stream).await.map_err(|error| match error.get_ref() {
            Some(inner) if inner.is::<rustls::Error>() => Failure::new(Kind::Tls, error.to_string()),
            _ => Failure::from(error),
        })?;
        Ok(Wire::Secured(Box::new(secured)))
    }
}

/// The name for a handshake.
pub(crate) fn server_name(target: &Target) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(target.host.clone())
        .map_err(|error| Failure::new(Kind::Tls, format!("{}: {error}", target.host)))
}

/// A connection.
pub(crate) enum Wire {
    Clear(TcpStream),
    Secured(Box<TlsStream<TcpStream>>),
}

thread_local! {
    /// Buffer for discarded bytes.
    static WASTE: RefCell<Vec<u8>> = RefCell::new(vec![0; DISCARD_BYTES]);
}

impl Wire {
    /// True if the handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Wire::Clear(_) => false,
            Wire::Secured(stream) => stream.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        }
    }

    /// Drops up to `most` bytes as they arrive; without TLS the kernel does so without copying
    /// them. Returns their number; 0 at the end.
    pub(crate) async fn discard(&mut self, most: u64) -> io::Result<usize> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(DISCARD_BYTES);
        match self {
            Wire::Clear(stream) => {
                let descriptor = stream.as_raw_fd();
                let drop_some =
                    || WASTE.with_borrow_mut(|waste| recv(descriptor, &mut waste[..most], MsgFlags::MSG_TRUNC));
                stream.async_io(Interest::READABLE, || drop_some().map_err(io::Error::from)).await
            }
            Wire::Secured(_) => {
                std::future::poll_fn(|context| {
                    WASTE.with_borrow_mut(|waste| {
                        let mut room = ReadBuf::new(&mut waste[..most]);
                        let ready = Pin::new(&mut *self).poll_read(context, &mut room);
                        ready.map(|result| result.map(|()| room.filled().len()))
                    })
                })
                .await
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Clear(stream) => Pin::new(stream).poll_read(context, into),
            Wire::Secured(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Clear(stream) => Pin::new(stream).poll_write(context, bytes),
            Wire::Secured(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Clear(stream) => Pin::new(stream).poll_flush(context),
            Wire::Secured(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Clear(stream) => Pin::new(stream).poll_shutdown(context),
            Wire::Secured(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
