//! Detection of the client's protocol: HTTP/1, HTTP/2 from the first byte on, or HTTP/2 after an
//! upgrade request.
//!
//! The HTTP/2 state of a session is boxed: an idle HTTP/1 connection must not reserve memory for
//! it. Next files: `http1.rs`, `http2.rs`, `upgrade.rs`.

use super::http1::{self, Connection, Over, Switch};
use super::http2::{self, Opening};
use super::upgrade;
use crate::context::Loop;
use crate::session::{Session, SessionEnd};
use futures_util::future::Either;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};

/// First protocol of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstProtocol {
    /// HTTP/1, or the preface of HTTP/2: the first bytes decide.
    Either,
    /// HTTP/2, as agreed in the TLS handshake.
    Http2,
}

/// Serves an open session until it ends. `preread` are bytes already read from its connection.
pub(super) fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    session: Session,
    stream: S,
    preread: Vec<u8>,
    speaks: FirstProtocol,
) -> Either<impl Future<Output = ()>, Pin<Box<impl Future<Output = ()>>>> {
    match speaks {
        FirstProtocol::Either => Either::Left(serve_either(context, session, stream, preread)),
        FirstProtocol::Http2 => {
            Either::Right(Box::pin(http2::serve(context, session, stream, Opening::Bytes(preread))))
        }
    }
}

/// Begins with HTTP/1. The state of the future is created outside of it, and used in place: a
/// future that is given a value to keep reserves memory for it twice.
fn serve_either<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    mut session: Session,
    stream: S,
    preread: Vec<u8>,
) -> impl Future<Output = ()> {
    let mut held = http1::hold(&context, &preread);
    drop(preread);
    let mut connection = Connection::new(stream);
    async move {
        match http1::exchanges(&context, &mut session.view, &mut connection, held.take()).await {
            Over::Session(end) => {
                if connection.is_cut() {
                    // Neither TLS's close_notify nor a FIN: an HTTP/1.0 client would take it for
                    // the end of the body.
                    let _ = context.sockets.reset_at_close(session.view.peer.descriptor);
                } else {
                    connection.shut_down().await;
                }
                session.end(&context, end);
                if connection.has_unread() {
                    let presence = context.stay();
                    connection.linger().await;
                    drop(presence);
                }
                drop(session);
            }
            Over::Protocol(how) => Box::pin(serve_switched(context, session, connection.into_stream(), how)).await,
        }
    }
}

/// Serves a client that has changed from HTTP/1 to HTTP/2.
async fn serve_switched<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    session: Session,
    stream: S,
    how: Switch,
) {
    match how {
        Switch::Preface(received) => {
            session.view.log(&context, Tag::Debug, format_args!("H2 Prior Knowledge Upgrade"));
            Box::pin(http2::serve(context, session, stream, Opening::Bytes(received))).await;
        }
        Switch::Upgrade(slot) => serve_upgraded(context, session, stream, slot).await,
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
        Ok(prologue) => Box::pin(http2::serve(context, session, stream, Opening::Upgrade(prologue))).await,
        Err(text) => {
            session.view.log(&context, Tag::Debug, format_args!("{text}"));
            session.close(&context, SessionEnd::waiting(CloseReason::RxJunk));
        }
    }
}
