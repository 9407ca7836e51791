//! The connection of a client: it begins with the bytes that were read before, and knows since when
//! the client accepts no bytes.

use crate::transport::discard::poll_discard;
use crate::transport::upgrade::Prologue;
use ::http2::Machine;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Most bytes that are read at a time. The memory is that of the stack.
pub(super) const READ_BYTES: usize = 32 << 10;

/// Bytes that a client has sent before its connection is served as HTTP/2.
pub(in crate::transport) enum Opening {
    /// These bytes, from the preface on.
    Bytes(Vec<u8>),
    /// A request of HTTP/1, which is the first stream.
    Upgrade(Prologue),
}

/// The connection of a client.
pub(super) struct Socket<S> {
    stream: S,
    /// Present until the client's own preface is complete.
    prologue: Option<Prologue>,
    /// Bytes that were read before, and not handed out yet.
    preread: Vec<u8>,
    /// Time since which nothing could be written although bytes are pending.
    blocked_since: Option<Instant>,
    /// Time of the last read.
    read_at: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(super) fn new(stream: S, opening: Opening) -> Socket<S> {
        let (preread, prologue) = match opening {
            Opening::Bytes(preread) => (preread, None),
            Opening::Upgrade(mut prologue) => match prologue.take(b"") {
                Some(preread) => (preread, None),
                None => (Vec::new(), Some(prologue)),
            },
        };
        Socket { stream, prologue, preread, blocked_since: None, read_at: Instant::now() }
    }

    /// Reads a piece and passes it to `take`. Returns the number of bytes; 0 at the end of the
    /// client's bytes, whatever its cause.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>, mut take: impl FnMut(&[u8])) -> Poll<usize> {
        if !self.preread.is_empty() {
            let bytes = std::mem::take(&mut self.preread);
            take(&bytes);
            return Poll::Ready(bytes.len());
        }
        let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
        let mut read = ReadBuf::uninit(&mut bytes);
        if ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)).is_err() {
            return Poll::Ready(0);
        }
        self.read_at = Instant::now();
        let filled = read.filled();
        let Some(prologue) = &mut self.prologue else {
            take(filled);
            return Poll::Ready(filled.len());
        };
        if let Some(bytes) = prologue.take(filled) {
            self.prologue = None;
            take(&bytes);
        }
        Poll::Ready(filled.len())
    }

    /// Writes the output of the machine, and flushes it. Pending while the client does not accept
    /// it: bytes that TLS has encrypted and the client does not accept count as unsent.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>, machine: &mut Machine) -> Poll<io::Result<()>> {
        let had_output = !machine.output().is_empty();
        if !had_output && self.blocked_since.is_none() {
            return Poll::Ready(Ok(()));
        }
        let written = self.poll_write_all(context, machine);
        if had_output && machine.output().is_empty() {
            self.blocked_since = None;
        }
        let result = match written {
            Poll::Ready(Ok(())) => Pin::new(&mut self.stream).poll_flush(context),
            other => other,
        };
        let since = result.is_pending().then(|| self.blocked_since.unwrap_or_else(Instant::now));
        self.blocked_since = since;
        result
    }

    fn poll_write_all(&mut self, context: &mut Context<'_>, machine: &mut Machine) -> Poll<io::Result<()>> {
        while !machine.output().is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, machine.output()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            machine.sent(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Time since which the client accepts no bytes.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        self.blocked_since
    }

    /// Time of the last read.
    pub(super) fn read_at(&self) -> Instant {
        self.read_at
    }

    /// Closes the sending side. Ready when that is done, or not possible.
    pub(super) fn poll_shut_down(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.stream).poll_shutdown(context).map(|_| ())
    }

    /// Reads and discards bytes. Returns their number; 0 at the end, whatever its cause.
    pub(super) fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        poll_discard(&mut self.stream, context)
    }
}
