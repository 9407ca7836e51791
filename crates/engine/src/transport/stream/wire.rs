//! A stream as the wire of a pipe: the pipe reads the client's DATA, and its writes pass through
//! the tunnel (`tunnel.rs`).

use super::exchange::StreamExchange;
use super::tunnel::{Answer, NO_ANSWER};
use super::{RequestStream, Reset, StreamGone};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

fn broken() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl<S: RequestStream> StreamExchange<S> {
    /// Sends the rest of the origin's answer.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tunnel) = &mut self.tunnel else { return Poll::Ready(Err(broken())) };
        if self.is_complete || (self.head.is_none() && tunnel.rest.is_empty() && !tunnel.is_ending) {
            return Poll::Ready(Ok(()));
        }
        let (rest, is_ending) = (std::mem::take(&mut tunnel.rest), tunnel.is_ending);
        let sent = self.poll_send_now(context, &rest, is_ending);
        if sent.is_pending()
            && let Some(tunnel) = &mut self.tunnel
        {
            tunnel.rest = rest;
            return Poll::Pending;
        }
        self.gone = 0;
        sent.map_err(|StreamGone| {
            self.is_gone = true;
            broken()
        })
    }

    /// Reports to a client whose request was not answered at all that no origin was reached.
    pub(super) fn end_tunnel(&mut self) {
        let Some(tunnel) = &mut self.tunnel else { return };
        if !self.is_gone && matches!(tunnel.answer, Answer::Awaited(_)) && self.head.is_none() {
            self.head = Some(tunnel.fail(NO_ANSWER));
            // Heads of HTTP/2 wait for nothing.
            let _ = self.poll_answer(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl<S: RequestStream> AsyncRead for StreamExchange<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Some(tunnel) = &this.tunnel else { return Poll::Ready(Err(broken())) };
        if this.is_gone || (this.is_complete && !tunnel.is_open()) {
            return Poll::Ready(Err(broken()));
        }
        if !tunnel.is_open() {
            // The pipe reads again when it has written: both directions are one task.
            ready!(this.stream.poll_gone(context));
            this.is_gone = true;
            return Poll::Ready(Err(broken()));
        }
        match ready!(this.poll_tunnelled(context)) {
            Err(StreamGone) => {
                this.is_gone = true;
                Poll::Ready(Err(broken()))
            }
            Ok(()) => {
                let count = this.piece.len().min(buffer.remaining());
                buffer.put_slice(&this.piece.split_to(count));
                this.stream.release(count);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl<S: RequestStream> AsyncWrite for StreamExchange<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_answer(context))?;
        let Some(tunnel) = &mut this.tunnel else { return Poll::Ready(Err(broken())) };
        if this.is_gone || this.is_complete {
            return Poll::Ready(Err(broken()));
        }
        if tunnel.is_open() && !bytes.is_empty() {
            let sent = ready!(this.stream.poll_send_data(context, bytes, false));
            return Poll::Ready(sent.map_err(|StreamGone| {
                this.is_gone = true;
                broken()
            }));
        }
        if let Some(head) = tunnel.take(bytes) {
            this.head = Some(head);
        }
        if let Poll::Ready(Err(error)) = this.poll_answer(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_answer(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(head) = this.tunnel.as_mut().and_then(|tunnel| tunnel.end()) {
            this.head = Some(head);
        }
        let sent = ready!(this.poll_answer(context));
        if !this.is_complete {
            // The answer broke off.
            this.give_up(Reset::Incomplete);
        }
        Poll::Ready(sent)
    }
}
