//! Size of the log ring in a small work directory, such as a tmpfs of 64 MB, the default of Docker
//! for `/dev/shm`.
//!
//! The ring gets the size of the parameter `vsl_space`, or less if the file system of the work
//! directory has less free space: counters, the index of shared memory and the files of the manager
//! need some of it, too. One line on the standard output reports a smaller ring. *Limits*:
//! [`LOG_BYTES_MIN`], [`LOG_SPARED_BYTES_MAX`].

use nix::sys::statvfs::statvfs;
use shm::layout::Layout;
use shm::log::LogRing;
use shm::vsm::VsmWriter;
use std::io::{Error, ErrorKind};
use std::path::Path;
use surface::limits::{LOG_BYTES_MIN, LOG_SPARED_BYTES_MAX};
use surface::parameter::value::format_bytes;

/// Publishes the log ring with `wanted_bytes`, or with as many as fit.
///
/// # Errors
/// Text for the operator: not even the smallest ring fits, or another error of the file system.
pub(crate) fn publish(vsm: &VsmWriter, wanted_bytes: u64, layout: Layout) -> Result<LogRing, String> {
    let (ring, remark) = publish_within(vsm, wanted_bytes, free_bytes(vsm.directory()), layout)?;
    if let Some(remark) = remark {
        println!("{remark}");
    }
    Ok(ring)
}

/// Free bytes on the file system of a directory; `None` if it has no limit, or an unknown one.
fn free_bytes(directory: &Path) -> Option<u64> {
    let found = statvfs(directory).ok().filter(|found| found.blocks() > 0)?;
    Some(found.blocks_available().saturating_mul(found.fragment_size()))
}

/// Publishes the ring, given the free bytes; also returns the line about a smaller one.
fn publish_within(
    vsm: &VsmWriter,
    wanted_bytes: u64,
    free_bytes: Option<u64>,
    layout: Layout,
) -> Result<(LogRing, Option<String>), String> {
    let place = vsm.directory().display();
    let free = free_bytes.map_or_else(String::new, |bytes| format!(": {} free", shown(bytes)));
    let mut bytes = Some(free_bytes.map_or(wanted_bytes, |free| fitting(wanted_bytes, free)));
    while let Some(ring_bytes) = bytes.filter(|bytes| *bytes >= LOG_BYTES_MIN.min(wanted_bytes)) {
        match LogRing::publish(vsm, usize::try_from(ring_bytes).unwrap_or(usize::MAX), layout) {
            Ok(ring) => {
                let (actual, wanted) = (shown(ring_bytes), shown(wanted_bytes));
                let remark = format!("Log of {actual} instead of {wanted} (vsl_space) in {place}{free}");
                return Ok((ring, (ring_bytes < wanted_bytes).then_some(remark)));
            }
            // A quota, or another program that uses the space.
            Err(error) if is_full(&error) => bytes = (ring_bytes > LOG_BYTES_MIN).then_some(ring_bytes / 2),
            Err(error) => return Err(format!("log segment: {error}")),
        }
    }
    Err(format!(
        "no space for the log in {place}{free}, {} needed: enlarge its file system, or give another work directory (-n)",
        shown(LOG_BYTES_MIN / 3 * 4)
    ))
}

/// Bytes of a ring that leaves some of the free bytes.
fn fitting(wanted_bytes: u64, free_bytes: u64) -> u64 {
    let most = free_bytes - (free_bytes / 4).min(LOG_SPARED_BYTES_MAX);
    if wanted_bytes <= most { wanted_bytes } else { rounded(most) }
}

/// Rounds down, so that the size is short to read.
fn rounded(bytes: u64) -> u64 {
    let step = if bytes >= 2 << 20 { 1 << 20 } else { 64 << 10 };
    bytes / step * step
}

fn shown(bytes: u64) -> String {
    format_bytes(rounded(bytes))
}

fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(wanted_bytes: u64, free_bytes: Option<u64>) -> Result<(u64, Option<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let vsm = VsmWriter::create(folder.path()).unwrap();
        let place = vsm.directory().display().to_string();
        let without_place = |text: String| text.replace(&place, "DIR");
        let (_ring, remark) = publish_within(&vsm, wanted_bytes, free_bytes, Layout::V71).map_err(without_place)?;
        let file = std::fs::read_dir(folder.path()).unwrap().flatten().find(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("_.Log.")
        });
        Ok((file.unwrap().metadata().unwrap().len(), remark.map(without_place)))
    }

    #[test]
    fn log_has_its_size_where_there_is_space() {
        assert_eq!(within(2 << 20, None), Ok((2 << 20, None)));
        assert_eq!(within(2 << 20, Some(1 << 40)), Ok((2 << 20, None)));
        assert_eq!(within(3 << 20, Some(4 << 20)), Ok((3 << 20, None)));
    }

    #[test]
    fn smaller_log_leaves_space_and_is_reported() {
        assert_eq!(fitting(80 << 20, 64 << 20), 56 << 20);
        assert_eq!(fitting(80 << 20, (64 << 20) - 4096), 55 << 20);
        let remark = "Log of 3M instead of 80M (vsl_space) in DIR: 4M free".to_owned();
        assert_eq!(within(80 << 20, Some(4 << 20)), Ok((3 << 20, Some(remark))));
        let remark = "Log of 0.75M instead of 1M (vsl_space) in DIR: 1M free".to_owned();
        assert_eq!(within(1 << 20, Some(1 << 20)), Ok((768 << 10, Some(remark))));
    }

    #[test]
    fn too_little_space_is_refused_with_a_remedy() {
        let message = "no space for the log in DIR: 960k free, 1M needed: \
                       enlarge its file system, or give another work directory (-n)";
        assert_eq!(within(80 << 20, Some((1 << 20) - 4096)), Err(message.to_owned()));
        assert!(within(1 << 20, Some(0)).is_err());
    }
}
