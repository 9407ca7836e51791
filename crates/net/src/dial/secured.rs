//! An encrypted connection to an origin: [`Secured`].
//!
//! It behaves like one without TLS: an origin that closes without close_notify has closed, and a
//! caller that must detect truncation uses [`Stream::was_cut_off`]. TLS errors contain a
//! [`TlsFailure`] with the cause. Written bytes are sent on flush.

use backend::{Ends, Stream, TlsFailure, TlsSettings};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use surface::limits::ORIGIN_TLS_BUFFER_BYTES_MAX;
use tls::origin::{Client, OriginTls, facts, failure_text};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use vcl_run::tls::TlsFacts;

/// A connection after its handshake.
pub(super) struct Secured {
    stream: TlsStream<Box<dyn Stream>>,
    facts: TlsFacts,
    /// The origin closed without close_notify.
    was_cut_off: bool,
}

impl Secured {
    /// Performs the handshake with these parameters, within the time limit.
    pub(super) async fn shake_hands(
        tls: &Arc<OriginTls>,
        stream: Box<dyn Stream>,
        settings: &TlsSettings,
        protocols: &[&'static [u8]],
        timeout: Duration,
    ) -> Result<Secured, TlsFailure> {
        let shaking = async {
            let client =
                client(tls, settings, protocols).await.map_err(|text| TlsFailure { text, is_refusal: true })?;
            let connector = TlsConnector::from(client.config);
            let limit = |session: &mut tokio_rustls::rustls::ClientConnection| {
                session.set_buffer_limit(Some(ORIGIN_TLS_BUFFER_BYTES_MAX));
            };
            let stream = connector.connect_with(client.name, stream, limit).await;
            stream.map_err(|error| failure(&error))
        };
        let late = |_| failure(&io::ErrorKind::TimedOut.into());
        let stream = tokio::time::timeout(timeout, shaking).await.map_err(late)??;
        let facts = facts(stream.get_ref().1, settings.definition());
        Ok(Secured { stream, facts, was_cut_off: false })
    }

    /// TLS errors with a text for the log.
    fn told(error: io::Error) -> io::Error {
        if is_of_tls(&error) { io::Error::new(error.kind(), failure(&error)) } else { error }
    }
}

/// True if it is an error of the TLS library rather than of the connection.
fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>())
}

fn failure(error: &io::Error) -> TlsFailure {
    TlsFailure { text: failure_text(error), is_refusal: is_of_tls(error) }
}

/// The configuration for these parameters. The first one that needs the system's trust anchors
/// waits until they are read, which is not done on the event loop.
async fn client(tls: &Arc<OriginTls>, settings: &TlsSettings, protocols: &[&'static [u8]]) -> Result<Client, String> {
    if !tls.would_read(settings.definition()) {
        return tls.client(settings.definition(), settings.identity(), protocols);
    }
    let (tls, settings, protocols) = (Arc::clone(tls), settings.clone(), protocols.to_vec());
    let reading = move || tls.client(settings.definition(), settings.identity(), &protocols);
    tokio::task::spawn_blocking(reading).await.unwrap_or_else(|error| Err(error.to_string()))
}

impl Stream for Secured {
    fn ends(&self) -> Ends {
        self.stream.get_ref().0.ends()
    }

    fn tls(&self) -> Option<&TlsFacts> {
        Some(&self.facts)
    }

    fn was_cut_off(&self) -> bool {
        self.was_cut_off
    }
}

impl AsyncRead for Secured {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.stream).poll_read(context, into)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.was_cut_off = true;
                Poll::Ready(Ok(()))
            }
            result => Poll::Ready(result.map_err(Secured::told)),
        }
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Drop for Secured {
    /// Sends close_notify if there is room for it; never waits.
    fn drop(&mut self) {
        let _ = Pin::new(&mut self.stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }
}
