//! `cargo xtask package`: builds the program in its released form, and the Debian packages of it
//! (`packaging/build-deb`).

use std::path::Path;
use std::process::Command;

/// Runs the task; passes arguments to `packaging/build-deb`.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace is gone")?;
    let mut script = Command::new(root.join("packaging/build-deb"));
    if crate::task::option(arguments, "--binary").is_none() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--profile", "dist", "--locked", "--package", "copal", "--bin", "copal"])
            .current_dir(root)
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !built.success() {
            return Err("the program could not be built".to_owned());
        }
        script.arg("--binary").arg(root.join("target/dist/copal"));
    }
    let status = script.args(arguments).status().map_err(|error| format!("packaging/build-deb: {error}"))?;
    if status.success() { Ok(()) } else { Err("no package was built".to_owned()) }
}
