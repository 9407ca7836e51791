//! The settings of one test: the runner writes them, the process that runs the script reads them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of one test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestSettings {
    /// The script, as named on the command line.
    pub script: String,
    /// Working directory of the runner.
    pub working_directory: PathBuf,
    /// The test's own folder.
    pub folder: PathBuf,
    /// Macros that exist from the start.
    pub macros: Vec<(String, String)>,
    /// Parameters for every daemon, `name=value`.
    pub parameters: Vec<String>,
    /// VMOD path of the daemon, if set.
    pub vmod_path: Option<String>,
    /// Time limit of the whole test, in seconds.
    pub seconds_max: u64,
    /// True if the folder may be kept: daemons then leave everything they can in it.
    pub keeps_folder: bool,
    /// True if a build tree is tested.
    pub in_build_tree: bool,
    /// Default address to listen on: `127.0.0.1:0`.
    pub listen_address: String,
}

impl TestSettings {
    /// Time limit of the whole test.
    #[must_use]
    pub fn time_max(&self) -> Duration {
        Duration::from_secs(self.seconds_max)
    }
}
