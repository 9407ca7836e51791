//! The UDP socket of one event loop: [`LoopSocket`], which forwards datagrams of other loops'
//! connections to them.
//!
//! quinn sees only datagrams of this loop: those from its socket, and those that other loops have
//! put into the loop's mailbox. A datagram that belongs to no loop is dropped. *Invariants:* a
//! mailbox holds [`QUIC_HANDED_DATAGRAMS_MAX`] at most; further ones are lost, as on any network.
//! Each datagram is passed to quinn in a buffer of its own (`batch.rs`): holding a part of one
//! holds no others. Next file: `quic/batch.rs`.

use super::batch::Batch;
use super::ids::{LoopIds, Recipient};
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use shm::counters::MainCounters;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use surface::counter::Main;
use surface::limits::QUIC_HANDED_DATAGRAMS_MAX;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Number of consecutive failures after which a socket counts as broken.
const FAILURES_MAX: u32 = 100;

/// A datagram that arrived at another loop.
struct Handed {
    meta: RecvMeta,
    bytes: Vec<u8>,
}

/// Datagrams that wait for one loop.
#[derive(Default)]
struct Mailbox {
    datagrams: VecDeque<Handed>,
    /// Waker of the task that reads the loop's socket.
    reader: Option<Waker>,
}

/// The mailboxes of all loops that listen on one port.
#[derive(Clone)]
pub struct Mailboxes(Arc<[Mutex<Mailbox>]>);

impl Mailboxes {
    /// Mailboxes for `loops` loops.
    #[must_use]
    pub fn new(loops: usize) -> Mailboxes {
        Mailboxes((0..loops).map(|_| Mutex::default()).collect())
    }

    fn open(&self, number: usize) -> Option<MutexGuard<'_, Mailbox>> {
        Some(self.0.get(number)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a datagram into a mailbox; false if it is lost.
    fn put(&self, number: usize, handed: Handed) -> bool {
        let Some(mut mailbox) = self.open(number) else { return false };
        let has_room = mailbox.datagrams.len() < QUIC_HANDED_DATAGRAMS_MAX;
        if has_room {
            mailbox.datagrams.push_back(handed);
        }
        let reader = mailbox.reader.take();
        drop(mailbox);
        if let Some(reader) = reader {
            reader.wake();
        }
        has_room
    }
}

/// The UDP socket of one event loop.
pub(super) struct LoopSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    ids: LoopIds,
    number: usize,
    mailboxes: Mailboxes,
    counters: Arc<MainCounters>,
    failures: AtomicU32,
    /// Only the task that reads the socket opens it.
    batch: Mutex<Batch>,
}

impl fmt::Debug for LoopSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopSocket").field("number", &self.number).finish_non_exhaustive()
    }
}

impl LoopSocket {
    /// Registers a socket with the current event loop, which has this number.
    pub(super) fn new(
        descriptor: OwnedFd,
        ids: LoopIds,
        number: usize,
        mailboxes: Mailboxes,
        counters: Arc<MainCounters>,
    ) -> io::Result<LoopSocket> {
        let socket = std::net::UdpSocket::from(descriptor);
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        let socket = UdpSocket::from_std(socket)?;
        let batch = Mutex::new(Batch::new(state.gro_segments()));
        Ok(LoopSocket { socket, state, ids, number, mailboxes, counters, failures: AtomicU32::new(0), batch })
    }

    /// Takes the datagrams of our mailbox; `None` if it is empty, and the task will be woken.
    fn collect(&self, wait: &Context<'_>, buffers: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> Option<usize> {
        let mut mailbox = self.mailboxes.open(self.number)?;
        let mut count = 0;
        while count < buffers.len().min(metas.len())
            && let Some(handed) = mailbox.datagrams.pop_front()
        {
            if put(&handed.bytes, handed.meta, &mut buffers[count], &mut metas[count]) {
                count += 1;
            }
        }
        if count == 0 && !mailbox.reader.as_ref().is_some_and(|waker| waker.will_wake(wait.waker())) {
            mailbox.reader = Some(wait.waker().clone());
        }
        (count > 0).then_some(count)
    }

    /// Keeps the datagrams of a batch that are ours, forwards those of other loops, and drops the
    /// rest.
    fn sort(&self, batch: &mut Batch, buffers: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> usize {
        let mut count = 0;
        while count < buffers.len().min(metas.len())
            && let Some((bytes, meta)) = batch.next()
        {
            match self.ids.recipient(bytes) {
                Recipient::Nobody => continue,
                Recipient::Here => {}
                Recipient::Former => self.counters.add(Main::H3Former, 1),
                Recipient::Other(number) => {
                    self.hand_over(number.into(), bytes, meta);
                    continue;
                }
            }
            if put(bytes, meta, &mut buffers[count], &mut metas[count]) {
                count += 1;
            }
        }
        count
    }

    fn hand_over(&self, number: usize, bytes: &[u8], meta: RecvMeta) {
        self.counters.add(Main::H3HandedOver, 1);
        if !self.mailboxes.put(number, Handed { meta, bytes: bytes.to_vec() }) {
            self.counters.add(Main::H3HandedLost, 1);
        }
    }
}

/// Copies a datagram to quinn's buffer. One that is longer than the advertised maximum is dropped:
/// false.
fn put(bytes: &[u8], meta: RecvMeta, buffer: &mut [u8], into: &mut RecvMeta) -> bool {
    let Some(room) = buffer.get_mut(..bytes.len()) else { return false };
    room.copy_from_slice(bytes);
    *into = meta;
    true
}

impl AsyncUdpSocket for LoopSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_io(Interest::WRITABLE, || self.state.send((&self.socket).into(), transmit))
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(count) = self.collect(context, buffers, metas) {
                return Poll::Ready(Ok(count));
            }
            let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
            let count = self.sort(&mut batch, buffers, metas);
            if count > 0 {
                return Poll::Ready(Ok(count));
            }
            ready!(self.socket.poll_recv_ready(context))?;
            let received = self.socket.try_io(Interest::READABLE, || {
                batch.fill(|buffers, metas| self.state.recv((&self.socket).into(), buffers, metas))
            });
            match received {
                Ok(()) => self.failures.store(0, Ordering::Relaxed),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // One datagram could not be received, or an earlier one could not be sent: not a
                // reason to give the socket up, as quinn would.
                Err(error) => {
                    if self.failures.fetch_add(1, Ordering::Relaxed) > FAILURES_MAX {
                        return Poll::Ready(Err(error));
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        1
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Waits until a socket can be written to.
struct Writable {
    socket: Arc<LoopSocket>,
    waiting: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").finish_non_exhaustive()
    }
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = Arc::clone(&self.socket);
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(async move { socket.socket.writable().await }));
        let result = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(result)
    }
}
