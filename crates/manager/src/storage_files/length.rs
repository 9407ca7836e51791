//! Length of a storage's file, and its space on the disk.

use super::locked::LockedFile;
use crate::arguments::storage::file::{FileArgument, FileSize, too_small};
use crate::memory::Size as Shown;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;
use nix::sys::statvfs::fstatvfs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Gives a storage's file its length, and allocates the space on the disk.
///
/// # Errors
/// The message for the operator.
pub(super) fn fit(
    file: &mut LockedFile,
    argument: &FileArgument,
    remark: &mut dyn FnMut(String),
) -> Result<(), String> {
    let bytes = sized(file, argument, remark)?;
    file.is_given(bytes);
    Ok(())
}

/// Sets the length, and returns it.
fn sized(file: &LockedFile, argument: &FileArgument, remark: &mut dyn FnMut(String)) -> Result<u64, String> {
    let failed = |error: &io::Error| file.failed(error);
    let (handle, path) = (file.file(), file.path());
    let found = handle.metadata().map_err(|error| failed(&error))?;
    let disk = fstatvfs(handle).map_err(|error| failed(&error.into()))?;
    let unit = disk.fragment_size();
    let (free, all) = (disk.blocks_available() * unit, disk.blocks() * unit);
    let (length, has) = (found.len(), found.blocks() * 512);
    let size = &argument.size_text;
    let wanted = match argument.size {
        FileSize::Bytes(bytes) => bytes,
        FileSize::Percent(_) if length >= argument.bytes_min() => length,
        FileSize::Percent(percent) => free.saturating_add(has) / 100 * percent,
    };
    let wanted = wanted - wanted % argument.granularity_bytes;
    if wanted < argument.bytes_min() {
        return Err(too_small(size));
    }
    if wanted > all {
        return Err(format!("(-sfile) size \"{size}\": larger than file system"));
    }
    let full = || {
        let (missing, free) = (Shown(wanted.saturating_sub(has)), Shown(free));
        format!("(-sfile) size \"{size}\": {missing} more are needed on the disk of {path:?}, which has {free}")
    };
    if wanted.saturating_sub(has) > free {
        return Err(full());
    }
    if length > wanted {
        handle.set_len(wanted).map_err(|error| failed(&error))?;
    }
    let bytes = libc::off_t::try_from(wanted).map_err(|_| too_small(size))?;
    match fallocate(handle, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(wanted),
        Err(Errno::ENOSPC | Errno::EDQUOT) => {
            // A partial extension is of no use.
            let _ = handle.set_len(length.min(wanted));
            Err(full())
        }
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => {
            handle.set_len(wanted).map_err(|error| failed(&error))?;
            let what = "no room can be reserved on its file system, which may be full before the storage is";
            remark(format!("{}: {what}", path.display()));
            Ok(wanted)
        }
        Err(error) => Err(failed(&error.into())),
    }
}
