//! Client side of HTTP/3, with the libraries `quinn` and `h3`: independent of the server's
//! implementation.

use crate::exchange::{Answer, Ask, fields, is_hit, uri};
use crate::failure::{Failure, Kind};
use crate::plan::{Plan, Target};
use crate::wire::tls_config;
use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// The socket of a thread, and the initial settings of its connections.
pub(crate) struct Door {
    endpoint: quinn::Endpoint,
    config: quinn::ClientConfig,
    target: Target,
}

impl Door {
    /// Opens the socket. Must be called on an event loop.
    pub(crate) fn new(plan: &Plan) -> Result<Door, Failure> {
        let target = plan.target.clone();
        let own = match target.address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let endpoint = quinn::Endpoint::client(own)?;
        let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls_config(b"h3", plan.resume)?);
        let tls = tls.map_err(|error| Failure::new(Kind::Tls, error.to_string()))?;
        Ok(Door { endpoint, config: quinn::ClientConfig::new(Arc::new(tls)), target })
    }
}

/// A connection; copies share it.
#[derive(Clone)]
pub(crate) struct Http3 {
    requests: SendRequest<h3_quinn::OpenStreams, Bytes>,
    connection: quinn::Connection,
    is_over: Rc<Cell<bool>>,
}

impl Http3 {
    pub(crate) async fn open(door: &Door) -> Result<Http3, Failure> {
        let connecting = door.endpoint.connect_with(door.config.clone(), door.target.address, &door.target.host);
        let connecting = connecting.map_err(|error| Failure::new(Kind::Other, error.to_string()))?;
        let connection = connecting.await.map_err(|error| match &error {
            // TLS alerts are carried as transport errors 0x100 to 0x1ff (RFC 9001 §4.8).
            quinn::ConnectionError::TransportError(inner) if (0x100..0x200).contains(&u64::from(inner.code)) => {
                Failure::new(Kind::Tls, error.to_string())
            }
            _ => lost(&error),
        })?;
        let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection.clone()))
            .await
            .map_err(|error| Failure::new(Kind::Protocol, error.to_string()))?;
        let is_over = Rc::new(Cell::new(false));
        let ended = Rc::clone(&is_over);
        tokio::task::spawn_local(async move {
            std::future::poll_fn(|context| driver.poll_close(context)).await;
            ended.set(true);
        });
        Ok(Http3 { requests, connection, is_over })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get() || self.connection.close_reason().is_some()
    }

    pub(crate) fn close(&self) {
        // H3_NO_ERROR.
        self.connection.close(0x100u32.into(), b"");
    }

    pub(crate) async fn ask(&self, ask: &Ask<'_>, mut keep: Option<&mut Vec<u8>>) -> Result<Answer, Failure> {
        let failure = |said: String| match self.connection.close_reason() {
            Some(reason) => lost(&reason),
            None if said.contains("reset") => Failure::new(Kind::Reset, said),
            None => Failure::new(Kind::Protocol, said),
        };
        let request = fields(ask, uri(ask, "https")?)?;
        let mut requests = self.requests.clone();
        let mut stream = requests.send_request(request).await.map_err(|error| failure(error.to_string()))?;
        stream.finish().await.map_err(|error| failure(error.to_string()))?;
        let head = stream.recv_response().await.map_err(|error| failure(error.to_string()))?;
        let field = |name| head.headers().get(name).map(http::HeaderValue::as_bytes);
        let announced = field("content-length").and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
        let mut answer = Answer { status: head.status().as_u16(), hit: field("x-varnish").map(is_hit), body_bytes: 0 };
        while let Some(mut piece) = stream.recv_data().await.map_err(|error| failure(error.to_string()))? {
            answer.body_bytes += piece.remaining() as u64;
            while let Some(keep) = keep.as_deref_mut().filter(|_| piece.has_remaining()) {
                keep.extend_from_slice(piece.chunk());
                piece.advance(piece.chunk().len());
            }
        }
        let is_bodiless = ask.method == "HEAD" || matches!(answer.status, 204 | 304);
        if announced.is_some_and(|bytes| bytes != answer.body_bytes && !is_bodiless) {
            let said = format!("{} bytes of body, {} announced", answer.body_bytes, announced.unwrap_or(0));
            return Err(Failure::new(Kind::Length, said));
        }
        Ok(answer)
    }
}

fn lost(error: &quinn::ConnectionError) -> Failure {
    use quinn::ConnectionError::{ApplicationClosed, ConnectionClosed, LocallyClosed, Reset, TimedOut};
    let kind = match error {
        TimedOut => Kind::Timeout,
        Reset | ConnectionClosed(_) | ApplicationClosed(_) => Kind::Reset,
        LocallyClosed => Kind::Closed,
        _ => Kind::Protocol,
    };
    Failure::new(kind, error.to_string())
}
