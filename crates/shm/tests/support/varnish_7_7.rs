//! The programs of Varnish 7.7, for the tests of several crates.

use std::path::{Path, PathBuf};

/// Path of a stock program of the 7.7 that `.ci/varnish-7.7` fetches; prints a note if it is
/// missing.
pub fn program_of_7_7(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/outside/varnish-7.7/bin");
    let found = Some(folder.join(name)).filter(|path| path.is_file());
    if found.is_none() {
        println!("skipped: needs {name} of 7.7");
    }
    found
}
