//! A connection whose client's frames are mended ([`Mending`]) between the guard and the library.

use ::http2::Mending;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection, and what is changed of what comes from it.
pub(super) struct Mended<S> {
    stream: S,
    mending: Rc<RefCell<Mending>>,
    /// Mended, and how much of it the library has.
    ready: Vec<u8>,
    taken: usize,
}

/// Most bytes that are read at a time to complete a frame.
const COMPLETION_BYTES_MAX: usize = 4096;

impl<S> Mended<S> {
    pub(super) fn new(stream: S, mending: Rc<RefCell<Mending>>) -> Mended<S> {
        Mended { stream, mending, ready: Vec::new(), taken: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Mended<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut mending = this.mending.borrow_mut();
        loop {
            if this.taken < this.ready.len() {
                let rest = &this.ready[this.taken..];
                let count = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..count]);
                this.taken += count;
                if this.taken == this.ready.len() {
                    (this.ready, this.taken) = (Vec::new(), 0);
                }
                return Poll::Ready(Ok(()));
            }
            let missing = mending.missing();
            if missing > 0 {
                let mut bytes = [0; COMPLETION_BYTES_MAX];
                let mut piece = ReadBuf::new(&mut bytes[..missing.min(COMPLETION_BYTES_MAX)]);
                ready!(Pin::new(&mut this.stream).poll_read(context, &mut piece))?;
                if piece.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.ready = mending.complete(piece.filled()).unwrap_or_default();
                continue;
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            if buffer.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
            let passed = mending.look(&mut buffer.filled_mut()[before..]);
            buffer.set_filled(before + passed);
            // To the library an empty read would be the end of the connection.
            if passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Mended<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
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

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
