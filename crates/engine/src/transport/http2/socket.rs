//! The connection as the library of HTTP/2 sees it: it begins with what was read before, and what is written is collected until
//! the streams have had their turn, so that the frames of ten small responses are one write.
//!
//! Large frames are not collected: they are written from where they lie, together with what was collected before them.
//! *Invariant:* at most [`COLLECTED_BYTES_MAX`] bytes wait here; beyond that the library waits.

use crate::transport::discard::poll_discard;
use crate::transport::upgrade::Prologue;
use ::http2::frame::{HEAD_BYTES, kind};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Most bytes that are collected before they are written.
const COLLECTED_BYTES_MAX: usize = 16 << 10;
/// A GOAWAY without further data.
const GOAWAY_BYTES: usize = HEAD_BYTES + 8;
/// Where in a frame its kind stands.
const FRAME_KIND_AT: usize = 3;
/// Most slices of one write.
const SLICES_MAX: usize = 8;

/// What a client has sent before its connection is served as HTTP/2.
pub(in crate::transport) enum Opening {
    /// This, from the preface on.
    Bytes(Vec<u8>),
    /// A request of HTTP/1, which is the first stream.
    Upgrade(Prologue),
}

/// Hands out what is there before anything is read, as far as there is room; false if there is nothing.
pub(super) fn hand_out(bytes: &mut Bytes, buffer: &mut ReadBuf<'_>) -> bool {
    let is_there = !bytes.is_empty();
    let count = bytes.len().min(buffer.remaining());
    buffer.put_slice(&bytes.split_to(count));
    is_there
}

/// One end for the library, and one for the task of the connection.
pub(super) struct Socket<S>(Rc<Shared<S>>);

struct Shared<S> {
    inner: RefCell<Inner<S>>,
    /// Since when nothing could be written although there is something.
    blocked_since: Cell<Option<Instant>>,
    /// When something was read last.
    read_at: Cell<Instant>,
    /// Bytes read.
    read_bytes: Cell<u64>,
}

struct Inner<S> {
    stream: S,
    /// Until the client's own beginning is complete.
    prologue: Option<Prologue>,
    /// What was read before, and the library does not have yet.
    preread: Bytes,
    /// What was collected, and how much of it was written.
    out: Vec<u8>,
    written: usize,
}

impl<S> Clone for Socket<S> {
    fn clone(&self) -> Self {
        Socket(Rc::clone(&self.0))
    }
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
        Socket(Rc::new(Shared {
            inner: RefCell::new(Inner { stream, prologue, preread: preread.into(), out: Vec::new(), written: 0 }),
            blocked_since: Cell::new(None),
            read_at: Cell::new(Instant::now()),
            read_bytes: Cell::new(0),
        }))
    }

    /// Writes what was collected, and flushes it. Pending while the client does not take it.
    pub(super) fn poll_flush_collected(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.inner.borrow_mut();
        let had_collected = inner.written < inner.out.len();
        let result = inner.poll_write_collected(context, &[]);
        if let Poll::Ready(Ok(_)) = &result
            && inner.out.capacity() > 0
        {
            inner.out = Vec::new();
            if had_collected {
                self.0.blocked_since.set(None);
            }
        }
        // What TLS has encrypted and the client does not take is as little sent as what lies here.
        let result = match result {
            Poll::Ready(Ok(_)) => Pin::new(&mut inner.stream).poll_flush(context),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        self.note(&result);
        result
    }

    /// Collects frames that are not the library's. They come between its frames, and are few.
    pub(super) fn collect(&self, frames: &[u8]) {
        self.0.inner.borrow_mut().out.extend_from_slice(frames);
    }

    /// Forgets what was collected if that is a GOAWAY alone.
    pub(super) fn discard_goaway(&self) {
        let inner = &mut *self.0.inner.borrow_mut();
        let rest = &inner.out[inner.written..];
        if rest.len() == GOAWAY_BYTES && rest[FRAME_KIND_AT] == kind::GOAWAY {
            inner.forget_collected();
        }
    }

    /// Since when the client takes nothing.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        self.0.blocked_since.get()
    }

    /// When something was read last.
    pub(super) fn read_at(&self) -> Instant {
        self.0.read_at.get()
    }

    /// How many bytes were read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.0.read_bytes.get()
    }

    /// Closes the sending side. Ready when that is done, or cannot be.
    pub(super) fn poll_shut_down(&self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0.inner.borrow_mut().stream).poll_shutdown(context).map(|_| ())
    }

    /// Reads and throws away. Returns how much it was; 0 at the end, whatever that is.
    pub(super) fn poll_discard(&self, context: &mut Context<'_>) -> Poll<usize> {
        poll_discard(&mut self.0.inner.borrow_mut().stream, context)
    }

    fn note<T>(&self, written: &Poll<io::Result<T>>) {
        let since = written.is_pending().then(|| self.0.blocked_since.get().unwrap_or_else(Instant::now));
        self.0.blocked_since.set(since);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Inner<S> {
    /// Writes all that was collected, and what the slices hold as far as it goes with that. Returns how much of the slices was
    /// written.
    fn poll_write_collected(&mut self, context: &mut Context<'_>, more: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let mut slices = [IoSlice::new(b""); SLICES_MAX];
            slices[0] = IoSlice::new(rest);
            let count = 1 + more.len().min(SLICES_MAX - 1);
            slices[1..count].copy_from_slice(&more[..count - 1]);
            let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if written >= rest.len() {
                let beyond = written - rest.len();
                self.forget_collected();
                if beyond > 0 {
                    return Poll::Ready(Ok(beyond));
                }
            } else {
                self.written += written;
            }
        }
        if more.iter().all(|slice| slice.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, more)
    }

    fn forget_collected(&mut self) {
        self.out.clear();
        self.written = 0;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Socket<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.0.inner.borrow_mut();
        while let Some(prologue) = &mut inner.prologue {
            let mut bytes = [0; 512];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut inner.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            if let Some(preread) = prologue.take(read.filled()) {
                (inner.preread, inner.prologue) = (preread.into(), None);
            }
        }
        let before = buffer.filled().len();
        if !hand_out(&mut inner.preread, buffer) {
            ready!(Pin::new(&mut inner.stream).poll_read(context, buffer))?;
        }
        self.0.read_at.set(Instant::now());
        self.0.read_bytes.set(self.0.read_bytes.get() + (buffer.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let inner = &mut *self.0.inner.borrow_mut();
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        if inner.out.len() + total <= COLLECTED_BYTES_MAX {
            slices.iter().for_each(|slice| inner.out.extend_from_slice(slice));
            return Poll::Ready(Ok(total));
        }
        let written = inner.poll_write_collected(context, slices);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What is collected is flushed by whoever serves the connection.
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// So it is shut down.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
