//! Client side of HTTP/2, with the library `h2`.

use crate::exchange::{Answer, Ask, fields, is_hit, uri};
use crate::failure::{Failure, Kind};
use crate::wire::Opener;
use bytes::Bytes;
use h2::client::SendRequest;
use std::cell::Cell;
use std::rc::Rc;

/// Windows that no usual body fills, so that the client does not delay the server's answer.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// A connection; copies share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    requests: SendRequest<Bytes>,
    is_over: Rc<Cell<bool>>,
    scheme: &'static str,
}

impl Http2 {
    /// Opens one; its frames are read by a task of this event loop.
    pub(crate) async fn open(opener: &Opener, tls: bool) -> Result<Http2, Failure> {
        let wire = opener.open().await?;
        let (requests, connection) = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .enable_push(false)
            .handshake(wire)
            .await
            .map_err(failure)?;
        let is_over = Rc::new(Cell::new(false));
        let ended = Rc::clone(&is_over);
        tokio::task::spawn_local(async move {
            let _ = connection.await;
            ended.set(true);
        });
        Ok(Http2 { requests, is_over, scheme: if tls { "https" } else { "http" } })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    pub(crate) async fn ask(&self, ask: &Ask<'_>, mut keep: Option<&mut Vec<u8>>) -> Result<Answer, Failure> {
        let mut requests = self.requests.clone().ready().await.map_err(failure)?;
        let (response, _) = requests.send_request(fields(ask, uri(ask, self.scheme)?)?, true).map_err(failure)?;
        let (head, mut body) = response.await.map_err(failure)?.into_parts();
        let hit = head.headers.get("x-varnish").map(|value| is_hit(value.as_bytes()));
        let mut answer = Answer { status: head.status.as_u16(), hit, body_bytes: 0 };
        while let Some(piece) = body.data().await {
            let piece = piece.map_err(failure)?;
            answer.body_bytes += piece.len() as u64;
            body.flow_control().release_capacity(piece.len()).map_err(failure)?;
            if let Some(keep) = keep.as_deref_mut() {
                keep.extend_from_slice(&piece);
            }
        }
        Ok(answer)
    }
}

fn failure(error: h2::Error) -> Failure {
    let said = error.to_string();
    if error.is_io() {
        return error.into_io().map_or_else(|| Failure::new(Kind::Other, said), Failure::from);
    }
    let is_reset = error.is_remote() && (error.is_reset() || error.is_go_away());
    let kind = if is_reset { Kind::Reset } else { Kind::Protocol };
    Failure::new(kind, said)
}
