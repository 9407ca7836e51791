//! Between the guard and the library: the client's frames are mended ([`Mending`]) as they are read.

use super::socket::hand_out;
use ::http2::{Heard, Mending};
use bytes::Bytes;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// What is changed of what comes from a connection.
pub(super) struct Mended {
    mending: Rc<RefCell<Mending>>,
    /// Mended, and not handed out yet.
    ready: Bytes,
}

/// Most bytes that are read at a time to complete a frame.
const COMPLETION_BYTES_MAX: usize = 4096;

impl Mended {
    pub(super) fn new(mending: Rc<RefCell<Mending>>) -> Mended {
        Mended { mending, ready: Bytes::new() }
    }

    /// What a GOAWAY is to say of what has come.
    pub(super) fn heard(&self) -> Heard {
        self.mending.borrow().heard()
    }

    /// Reads what `read` yields, mended. As for every reader, nothing read means the end.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let mut mending = self.mending.borrow_mut();
        loop {
            if hand_out(&mut self.ready, buffer) {
                return Poll::Ready(Ok(()));
            }
            let missing = mending.missing();
            if missing > 0 {
                let mut bytes = [0; COMPLETION_BYTES_MAX];
                let mut piece = ReadBuf::new(&mut bytes[..missing.min(COMPLETION_BYTES_MAX)]);
                ready!(read(context, &mut piece))?;
                if piece.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.ready = mending.complete(piece.filled()).unwrap_or_default().into();
                continue;
            }
            let before = buffer.filled().len();
            ready!(read(context, buffer))?;
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
