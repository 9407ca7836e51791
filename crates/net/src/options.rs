//! Options of listening sockets, and of client sockets: those are read and set by descriptor number
//! while their session exists.
//!
//! VCL has only the number of a connection. Each loop keeps the numbers of its open connections, so
//! a number never leads to any other descriptor. Compat: the options that vmod_tcp and
//! `std.set_ip_tos()` use.

use socket2::SockRef;
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use vmods::{SocketOptions, TcpInfo};

/// The longest name of a congestion control algorithm, including its final NUL, in bytes.
const ALGORITHM_BYTES_MAX: usize = 16;

/// The options of the clients' sockets of one event loop.
#[derive(Default, Debug)]
pub struct ConnectedSockets {
    /// Bit `number & 63` of word `number >> 6` is set while a connection has that descriptor open.
    open: RefCell<Vec<u64>>,
}

impl ConnectedSockets {
    fn mark(&self, descriptor: RawFd, is_open: bool) {
        let Ok(number) = usize::try_from(descriptor) else { return };
        let mut open = self.open.borrow_mut();
        if open.len() <= number >> 6 {
            open.resize((number >> 6) + 1, 0);
        }
        let bit = 1 << (number & 63);
        if is_open {
            open[number >> 6] |= bit;
        } else {
            open[number >> 6] &= !bit;
        }
    }

    fn is_open(&self, descriptor: RawFd) -> bool {
        let Ok(number) = usize::try_from(descriptor) else { return false };
        self.open.borrow().get(number >> 6).is_some_and(|word| word >> (number & 63) & 1 == 1)
    }

    /// Shuts down the receiving side, so that the session ends: only if no received bytes are
    /// unread. Returns true if it was done.
    pub(crate) fn hang_up(&self, descriptor: RawFd) -> bool {
        let done = self.with(descriptor, |socket| {
            let socket = SockRef::from(&socket);
            match socket.peek(&mut [std::mem::MaybeUninit::uninit()]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.shutdown(std::net::Shutdown::Read),
                // Bytes, the client's own end, or an error: the session is about to read it.
                Ok(_) => Err(io::ErrorKind::ResourceBusy.into()),
                Err(error) => Err(error),
            }
        });
        done.is_ok()
    }

    /// Lends the connection with that number to `act`; EBADF if there is none, as for a connection
    /// in memory.
    fn with<T>(&self, descriptor: RawFd, act: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        if !self.is_open(descriptor) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        // SAFETY: a number is in the set while a `Connected` owns the stream with that number,
        // which removes it before closing. Neither that value nor this one is `Send`, so the stream
        // cannot be closed while `act`, which cannot reach it, runs on this thread.
        act(unsafe { BorrowedFd::borrow_raw(descriptor) })
    }
}

/// A client's connection whose options can be read by its descriptor number while it is open.
#[derive(Debug)]
pub(crate) struct Connected<S> {
    // Order matters: the number must be removed before the descriptor is closed and may be reused.
    _entry: Entry,
    stream: S,
}

#[derive(Debug)]
struct Entry {
    sockets: Rc<ConnectedSockets>,
    descriptor: RawFd,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.sockets.mark(self.descriptor, false);
    }
}

impl<S: AsRawFd> Connected<S> {
    /// Takes a stream that owns one descriptor for its whole life, as tokio's do.
    pub(crate) fn new(sockets: &Rc<ConnectedSockets>, stream: S) -> Connected<S> {
        let entry = Entry { sockets: Rc::clone(sockets), descriptor: stream.as_raw_fd() };
        sockets.mark(entry.descriptor, true);
        Connected { _entry: entry, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connected<S> {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connected<S> {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    #[inline]
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// The type of an option: numbers only, so that every bit pattern is a valid value.
trait OptionValue: Copy {}
impl OptionValue for u32 {}
impl OptionValue for [u8; ALGORITHM_BYTES_MAX] {}
impl OptionValue for libc::tcp_info {}

/// Reads an option into `value`; returns the number of bytes written.
fn read<T: OptionValue>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &mut T) -> io::Result<usize> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is `len` writable bytes of a type for which all bytes are valid, and the
    // system writes no more.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(value).cast(), &mut len) };
    if result == 0 { Ok(len as usize) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option to these bytes.
fn write(socket: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let len = value.len() as libc::socklen_t;
    // SAFETY: `value` is `len` readable bytes.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Number of bytes in the system's send buffer, including those in transit. Source: tcp(7),
/// SIOCOUTQ.
fn undelivered(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ by another name, writes one `c_int`, and `bytes` is one.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { Ok(u64::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

impl SocketOptions for ConnectedSockets {
    fn undelivered(&self, descriptor: i32) -> io::Result<u64> {
        self.with(descriptor, undelivered)
    }

    fn reset_at_close(&self, descriptor: i32) -> io::Result<()> {
        self.with(descriptor, |socket| SockRef::from(&socket).set_linger(Some(Duration::ZERO)))
    }

    fn tcp_info(&self, descriptor: i32) -> io::Result<TcpInfo> {
        // SAFETY: `tcp_info` is numbers only, for which zeros are a value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        self.with(descriptor, |socket| read(socket, libc::SOL_TCP, libc::TCP_INFO, &mut info))?;
        Ok(TcpInfo {
            snd_mss: info.tcpi_snd_mss,
            rcv_mss: info.tcpi_rcv_mss,
            lost: info.tcpi_lost,
            retrans: info.tcpi_retrans,
            pmtu: info.tcpi_pmtu,
            rtt: info.tcpi_rtt,
            rttvar: info.tcpi_rttvar,
            snd_cwnd: info.tcpi_snd_cwnd,
            advmss: info.tcpi_advmss,
            reordering: info.tcpi_reordering,
        })
    }

    fn congestion(&self, descriptor: i32) -> io::Result<String> {
        let mut name = [0u8; ALGORITHM_BYTES_MAX];
        let len = self.with(descriptor, |socket| read(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name))?;
        let name = name.get(..len).unwrap_or(&name);
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    fn set_congestion(&self, descriptor: i32, algorithm: &str) -> io::Result<()> {
        let name = algorithm.as_bytes();
        self.with(descriptor, |socket| write(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name))
    }

    fn pace(&self, descriptor: i32) -> io::Result<u32> {
        let mut bytes_per_second = 0u32;
        self.with(descriptor, |socket| {
            read(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut bytes_per_second)
        })?;
        Ok(bytes_per_second)
    }

    fn set_pace(&self, descriptor: i32, bytes_per_second: u32) -> io::Result<()> {
        let rate = bytes_per_second.to_ne_bytes();
        self.with(descriptor, |socket| write(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate))
    }

    fn set_send_buffer(&self, descriptor: i32, bytes: u32) -> io::Result<(u64, u64)> {
        self.with(descriptor, |socket| {
            let socket = SockRef::from(&socket);
            let before = socket.send_buffer_size()?;
            socket.set_send_buffer_size(bytes as usize)?;
            Ok((before as u64, socket.send_buffer_size()? as u64))
        })
    }

    fn set_type_of_service(&self, descriptor: i32, tos: u8) -> io::Result<()> {
        self.with(descriptor, |socket| {
            let socket = SockRef::from(&socket);
            match socket.local_addr()?.is_ipv6() {
                true => socket.set_tclass_v6(u32::from(tos)),
                false => socket.set_tos_v4(u32::from(tos)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_connections_options_are_read_and_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let sockets = Rc::new(ConnectedSockets::default());
        let server = Connected::new(&sockets, server);
        let descriptor = server.stream.as_raw_fd();
        let info = sockets.tcp_info(descriptor).unwrap();
        assert!(info.snd_mss > 0 && info.snd_cwnd > 0, "{info:?}");
        sockets.set_pace(descriptor, 1_024_000).unwrap();
        assert_eq!(sockets.pace(descriptor).unwrap(), 1_024_000);
        let algorithm = sockets.congestion(descriptor).unwrap();
        assert!(!algorithm.is_empty() && !algorithm.contains('\0'));
        sockets.set_congestion(descriptor, &algorithm).unwrap();
        assert!(sockets.set_congestion(descriptor, "no such thing").is_err());
        sockets.set_type_of_service(descriptor, 0x10).unwrap();
        let (before, after) = sockets.set_send_buffer(descriptor, 4096).unwrap();
        assert!(after < before, "{before} {after}");
        assert_eq!(SockRef::from(&server.stream).tos_v4().unwrap(), 0x10);
        drop(client);
    }

    #[test]
    fn a_connection_that_is_reset_at_its_close_does_not_end_regularly() {
        use std::io::Read as _;
        for is_reset in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let sockets = Rc::new(ConnectedSockets::default());
            let server = Connected::new(&sockets, listener.accept().unwrap().0);
            if is_reset {
                sockets.reset_at_close(server.stream.as_raw_fd()).unwrap();
            }
            drop(server);
            let end = client.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(end, if is_reset { Err(io::ErrorKind::ConnectionReset) } else { Ok(0) });
        }
    }

    #[test]
    fn unacknowledged_bytes_are_counted() {
        use std::io::{Read as _, Write as _};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = server.write(&[7; 64 << 10]) {
            sent += count;
        }
        let sockets = Rc::new(ConnectedSockets::default());
        let server = Connected::new(&sockets, server);
        let descriptor = server.stream.as_raw_fd();
        assert!(sockets.undelivered(descriptor).unwrap() > 0);
        client.read_exact(&mut vec![0; sent]).unwrap();
        while sockets.undelivered(descriptor).unwrap() > 0 {
            std::thread::yield_now();
        }
        assert!(sockets.undelivered(-1).is_err());
    }

    #[test]
    fn tcp_queries_on_other_descriptors_fail() {
        let sockets = Rc::new(ConnectedSockets::default());
        let (one, _other) = UnixStream::pair().unwrap();
        let one = Connected::new(&sockets, one);
        for descriptor in [-1, i32::MAX, one.stream.as_raw_fd()] {
            assert!(sockets.tcp_info(descriptor).is_err());
            assert!(sockets.congestion(descriptor).is_err());
            assert!(sockets.set_congestion(descriptor, "reno").is_err());
        }
        assert!(sockets.set_type_of_service(-1, 0).is_err());
    }

    #[test]
    fn number_leads_to_an_open_connection_of_this_loop_and_to_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (sockets, others) = (Rc::new(ConnectedSockets::default()), ConnectedSockets::default());
        let descriptor = server.as_raw_fd();
        assert!(sockets.pace(descriptor).is_err(), "no connection yet");
        let server = Connected::new(&sockets, server);
        assert!(sockets.pace(descriptor).is_ok());
        assert!(others.pace(descriptor).is_err(), "another loop's");
        assert!(sockets.pace(client.as_raw_fd()).is_err(), "not a client's");
        // A later owner of the number is not affected.
        let keeper = server.stream.try_clone().unwrap();
        drop(server);
        assert!(sockets.pace(descriptor).is_err());
        drop(keeper);
    }
}
