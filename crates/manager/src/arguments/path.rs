//! Paths on the command line.

use std::path::{Path, PathBuf};

/// The absolute path; the path itself if there is no working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
