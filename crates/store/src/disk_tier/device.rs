//! Operations on a file of bodies: read from the page cache, read and wait, write, write and wait
//! for the disk.
//!
//! Nothing is mapped. Offsets are those of the file. The other implementation is the simulated disk
//! of the tests, which fails, tears writes and loses unsynced data.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Most slices of one write.
pub(crate) const SLICES_MAX: usize = 512;

/// A file of bodies.
pub(crate) trait Device: Send + Sync {
    /// Fills `buffer` from the page cache.
    ///
    /// # Errors
    /// `WouldBlock` if not all of it is cached; other errors as for [`Device::read`].
    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer`, waiting for the disk.
    ///
    /// # Errors
    /// Any error that the disk reports; `UnexpectedEof` if the file is shorter.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of it, at most [`SLICES_MAX`] slices. With `durable`, waits until the disk has
    /// these bytes.
    ///
    /// # Errors
    /// Any error that the disk reports; some of the bytes may have been written.
    fn write(&self, slices: &mut [IoSlice<'_>], offset: u64, durable: bool) -> io::Result<()>;

    /// Waits until the disk has everything.
    ///
    /// # Errors
    /// Any error that the disk reports.
    fn sync(&self) -> io::Result<()>;

    /// These bytes will be read soon.
    fn will_need(&self, offset: u64, bytes: u64);
}

impl Device for File {
    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let Ok(at) = libc::off_t::try_from(offset) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: one vector that describes `buffer`, which is exclusively borrowed; the descriptor
        // is open.
        let got = unsafe { libc::preadv2(self.as_raw_fd(), &part, 1, at, libc::RWF_NOWAIT) };
        match got {
            // A file system without this feature has to be read where waiting is harmless.
            -1 => match io::Error::last_os_error() {
                error if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)) => {
                    Err(io::ErrorKind::WouldBlock.into())
                }
                error => Err(error),
            },
            got if got as usize == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write(&self, mut slices: &mut [IoSlice<'_>], mut offset: u64, durable: bool) -> io::Result<()> {
        let flags = if durable { libc::RWF_DSYNC } else { 0 };
        while !slices.is_empty() {
            let at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
            let count = slices.len().min(SLICES_MAX) as libc::c_int;
            // SAFETY: an `IoSlice` has the layout of an `iovec`; the slices outlive the call; the
            // descriptor is open.
            let put = unsafe { libc::pwritev2(self.as_raw_fd(), slices.as_ptr().cast(), count, at, flags) };
            match put {
                -1 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
                0 => return Err(io::ErrorKind::WriteZero.into()),
                put => {
                    offset += put as u64;
                    IoSlice::advance_slices(&mut slices, put as usize);
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        if let (Ok(at), Ok(length)) = (libc::off_t::try_from(offset), libc::off_t::try_from(bytes)) {
            // SAFETY: passes numbers only; the descriptor is open. It is a hint, so its result does
            // not matter.
            unsafe { libc::posix_fadvise(self.as_raw_fd(), at, length, libc::POSIX_FADV_WILLNEED) };
        }
    }
}
