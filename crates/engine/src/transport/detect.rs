//! Which protocol a client speaks: HTTP/1, HTTP/2 from the first byte on, or HTTP/2 after it has asked for that.
//!
//! What a session does in HTTP/2 is boxed: an idle HTTP/1 connection must not hold room for it. Next files: `http1.rs`,
//! `http2.rs`, `upgrade.rs`.

use super::http1::{self, Handover, Switch};
use super::http2::{self, Opening};
use super::upgrade;
use crate::context::Loop;
use crate::session::{Session, SessionEnd};
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};

/// What a client begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaks {
    /// HTTP/1, or the preface of HTTP/2: its first bytes tell.
    Either,
    /// HTTP/2, as agreed in the TLS handshake.
    Http2,
}

/// Serves an open session until it ends. `preread` are bytes already read from its connection.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    session: Session,
    stream: S,
    preread: Vec<u8>,
    speaks: Speaks,
) {
    if speaks == Speaks::Http2 {
        return Box::pin(http2::serve(context, session, stream, Opening::Bytes(preread))).await;
    }
    let held = http1::hold(&context, &preread);
    drop(preread);
    let Some(Handover { session, stream, how }) = http1::serve(&context, session, stream, held).await else { return };
    match how {
        Switch::Preface(received) => {
            session.view.log(&context, Tag::Debug, format_args!("H2 Prior Knowledge Upgrade"));
            Box::pin(http2::serve(context, session, stream, Opening::Bytes(received))).await;
        }
        Switch::Upgrade(slot) => Box::pin(serve_upgraded(context, session, stream, slot)).await,
    }
}

/// Grants the upgrade, and serves the request as the first stream.
async fn serve_upgraded<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    session: Session,
    mut stream: S,
    slot: Box<crate::request::RequestSlot>,
) {
    session.view.log(&context, Tag::Debug, format_args!("H2 Optimistic Upgrade"));
    let granted = upgrade::grant(&context, &mut stream, &slot).await;
    context.requests.put(slot);
    match granted {
        Ok(prologue) => http2::serve(context, session, stream, Opening::Upgrade(prologue)).await,
        Err(text) => {
            session.view.log(&context, Tag::Debug, format_args!("{text}"));
            session.close(&context, SessionEnd::waiting(CloseReason::RxJunk));
        }
    }
}
