//! A TLS connection with a client as a stream: [`TlsStream`], over rustls and any stream of bytes.
//!
//! tokio-rustls does the same for connections to origins, but it cannot read early data before the
//! handshake ends. Here the handshake continues while the connection is read, also by an empty
//! read, which is ready at its end; an [`EarlyPhase`] reports its result to waiting tasks. A
//! handshake that is not complete in time ends the connection: its early data is void. Received
//! bytes are decrypted one record at a time and returned without a copy. Sent bytes are encrypted
//! ahead of the client by [`TLS_SEND_AHEAD_BYTES`] at most, less while memory is short, and those
//! that the client has not taken count as memory of requests. *Invariant:* a stream that waits for
//! its client holds no more than rustls' buffer for one read (4 KiB).

use engine::memory::SentAhead;
use engine::peer::EarlyPhase;
use rustls::ServerConnection;
use std::future::Future as _;
use std::io::{self, BufRead as _, IoSlice, Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use surface::limits::TLS_SEND_AHEAD_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Most early data returned at a time, in bytes.
const EARLY_BYTES: usize = 4 << 10;

/// A TLS connection with a client.
pub(crate) struct TlsStream<S> {
    io: S,
    session: Box<ServerConnection>,
    handshake: Handshake,
    /// Early data may be left that was not returned.
    holds_early: bool,
    has_said_goodbye: bool,
    /// The most that rustls encrypts ahead, in bytes.
    ahead_bytes_max: usize,
    /// Bytes that are encrypted and not yet taken by the client, at most.
    ahead_bytes: usize,
    /// Ledger of bytes sent ahead; `None` = they are not counted.
    sent_ahead: Option<SentAhead>,
}

/// State of the handshake.
enum Handshake {
    Complete,
    /// Received bytes are early data.
    UnderWay {
        phase: Rc<EarlyPhase>,
        due: Pin<Box<Sleep>>,
    },
    Failed,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Continues a session whose handshake is complete; with `early` data it is still under way,
    /// and has a deadline.
    pub(crate) fn new(
        io: S,
        mut session: Box<ServerConnection>,
        early: Option<(Rc<EarlyPhase>, Instant)>,
    ) -> TlsStream<S> {
        session.set_buffer_limit(Some(TLS_SEND_AHEAD_BYTES));
        let holds_early = session.early_data().is_some();
        let handshake = match early {
            None => Handshake::Complete,
            Some((phase, due)) => Handshake::UnderWay { phase, due: Box::pin(sleep_until(due)) },
        };
        TlsStream {
            io,
            session,
            handshake,
            holds_early,
            has_said_goodbye: false,
            ahead_bytes_max: TLS_SEND_AHEAD_BYTES,
            ahead_bytes: 0,
            sent_ahead: None,
        }
    }

    /// From now on counts bytes that the client has not taken.
    pub(crate) fn count_ahead(&mut self, sent_ahead: SentAhead) {
        self.sent_ahead = Some(sent_ahead);
    }

    /// Limits rustls' encryption in advance to the available memory.
    fn limit_ahead(&mut self) {
        let bytes_max = self.sent_ahead.as_ref().map_or(TLS_SEND_AHEAD_BYTES, SentAhead::bytes_max);
        if bytes_max != self.ahead_bytes_max {
            self.session.set_buffer_limit(Some(bytes_max));
            self.ahead_bytes_max = bytes_max;
        }
    }

    /// Counts bytes that the client has not taken.
    fn hold_ahead(&mut self, bytes: usize) {
        self.ahead_bytes = bytes.min(TLS_SEND_AHEAD_BYTES);
        if let Some(sent_ahead) = &mut self.sent_ahead {
            sent_ahead.set(self.ahead_bytes);
        }
    }

    /// Returns early data, if there is any.
    fn read_early(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        if !self.holds_early {
            return false;
        }
        let mut bytes = [0; EARLY_BYTES];
        let room = bytes.len().min(buffer.remaining());
        let count = self.session.early_data().and_then(|mut early| early.read(&mut bytes[..room]).ok()).unwrap_or(0);
        if count > 0 {
            buffer.put_slice(&bytes[..count]);
        } else if !self.session.is_handshaking() {
            self.holds_early = false;
        }
        count > 0
    }

    /// Checks if the handshake is complete now.
    fn look_at_handshake(&mut self) {
        if let Handshake::UnderWay { phase, .. } = &self.handshake
            && !self.session.is_handshaking()
        {
            phase.complete();
            self.handshake = Handshake::Complete;
        }
    }

    /// A handshake under way will never be complete.
    fn fail_handshake(&mut self) {
        if let Handshake::UnderWay { phase, .. } = &self.handshake {
            phase.fail();
            self.handshake = Handshake::Failed;
        }
    }

    /// Continues the handshake for a caller that only writes: otherwise it would not notice that
    /// the handshake is complete, has failed, or is late.
    fn check_handshake(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Poll::Ready(ended) = self.poll_handshake(context) {
            ended?;
        }
        match self.handshake {
            Handshake::Failed => Err(io::ErrorKind::ConnectionAborted.into()),
            Handshake::Complete | Handshake::UnderWay { .. } => Ok(()),
        }
    }

    /// Continues the handshake, if it is not complete.
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Handshake::UnderWay { .. } = self.handshake {
            match self.poll_receive(context) {
                Poll::Ready(received) => _ = received?,
                Poll::Pending => {
                    ready!(self.poll_send(context))?;
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends encrypted bytes; ready when none is left.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Blocking { io: &mut self.io, context }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if self.ahead_bytes > 0 {
            self.hold_ahead(0);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads from the socket once and decrypts; false at the end of the connection.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let received = self.poll_receive_records(context);
        match (&received, &mut self.handshake) {
            (Poll::Ready(Ok(true)), _) => self.look_at_handshake(),
            (Poll::Ready(Ok(false) | Err(_)), _) => self.fail_handshake(),
            (Poll::Pending, Handshake::UnderWay { due, .. }) => {
                ready!(due.as_mut().poll(context));
                self.fail_handshake();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            (Poll::Pending, Handshake::Complete | Handshake::Failed) => {}
        }
        received
    }

    fn poll_receive_records(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let count = match self.session.read_tls(&mut Blocking { io: &mut self.io, context }) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if let Err(error) = self.session.process_new_packets() {
            // The alert with the cause; a client that does not take it gets none.
            let _ = self.poll_send(context);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(count > 0))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buffer.remaining() == 0 {
            return this.poll_handshake(context);
        }
        loop {
            if let Handshake::Failed = this.handshake {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if this.read_early(buffer) {
                return Poll::Ready(Ok(()));
            }
            let mut reader = this.session.reader();
            match reader.fill_buf() {
                Ok(chunk) => {
                    let count = chunk.len().min(buffer.remaining());
                    buffer.put_slice(&chunk[..count]);
                    reader.consume(count);
                    return Poll::Ready(Ok(()));
                }
                // A client may close without close_notify: HTTP itself delimits requests.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            match this.poll_receive(context) {
                Poll::Ready(received) => _ = received?,
                Poll::Pending => {
                    // Tickets and the like are sent now, unless a response has included them.
                    if let Poll::Ready(Err(error)) = this.poll_send(context) {
                        return Poll::Ready(Err(error));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if slices.iter().all(|slice| slice.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        this.check_handshake(context)?;
        this.limit_ahead();
        loop {
            let count = this.session.writer().write_vectored(slices)?;
            if count > 0 {
                return match this.poll_send(context) {
                    Poll::Ready(sent) => Poll::Ready(sent.map(|()| count)),
                    // Bytes that the client does not take at once wait for the next write, or for
                    // the flush.
                    Poll::Pending => {
                        this.hold_ahead(this.ahead_bytes + count);
                        Poll::Ready(Ok(count))
                    }
                };
            }
            ready!(this.poll_send(context))?;
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_handshake(context)?;
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.has_said_goodbye {
            this.session.send_close_notify();
            this.has_said_goodbye = true;
        }
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.io).poll_shutdown(context)
    }
}

impl<S> Drop for TlsStream<S> {
    fn drop(&mut self) {
        if let Handshake::UnderWay { phase, .. } = &self.handshake {
            phase.fail();
        }
    }
}

/// A stream as rustls uses it: an operation that would block is an error. The task is woken when it
/// can be tried again.
struct Blocking<'a, 'b, S> {
    io: &'a mut S,
    context: &'a mut Context<'b>,
}

fn at_once<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl<S: AsyncRead + Unpin> Read for Blocking<'_, '_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        at_once(Pin::new(&mut *self.io).poll_read(self.context, &mut buffer))?;
        Ok(buffer.filled().len())
    }
}

impl<S: AsyncWrite + Unpin> Write for Blocking<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        at_once(Pin::new(&mut *self.io).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        at_once(Pin::new(&mut *self.io).poll_write_vectored(self.context, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        at_once(Pin::new(&mut *self.io).poll_flush(self.context))
    }
}
