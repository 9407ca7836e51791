//! The settings of one test: the runner writes them, the process that runs the script reads them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of one test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestSettings {
    /// The script, as named on the command line.
    pub script: String,
    /// Where the runner was started.
    pub working_directory: PathBuf,
    /// The test's own folder.
    pub folder: PathBuf,
    /// Macros that exist from the start.
    pub macros: Vec<(String, String)>,
    /// Parameters for every daemon, `name=value`.
    pub parameters: Vec<String>,
    /// Where the daemon finds its VMODs, if that is set.
    pub vmod_path: Option<String>,
    /// How long the whole test may take, in seconds.
    pub seconds_max: u64,
    /// Whether the folder may be kept: daemons then leave everything they can in it.
    pub keeps_folder: bool,
    /// Whether a build tree is tested.
    pub in_build_tree: bool,
    /// Default address to listen on: `127.0.0.1:0`.
    pub listen_address: String,
}

impl TestSettings {
    /// How long the whole test may take.
    #[must_use]
    pub fn time_max(&self) -> Duration {
        Duration::from_secs(self.seconds_max)
    }
}
