//! `cargo xtask package`: builds the program in its released form, and its packages for Debian
//! (`packaging/build-deb`), or with `--rpm` for RPM (`packaging/build-rpm`). The bill of materials
//! (`sbom.rs`) is written next to them.

use crate::task::option;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the task; passes arguments to the script.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace is gone")?;
    let is_rpm = arguments.iter().any(|argument| argument == "--rpm");
    let name = if is_rpm { "packaging/build-rpm" } else { "packaging/build-deb" };
    let mut script = Command::new(root.join(name));
    if option(arguments, "--binary").is_none() {
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
    script.args(arguments.iter().filter(|argument| *argument != "--rpm"));
    let status = script.status().map_err(|error| format!("{name}: {error}"))?;
    if !status.success() {
        return Err("no package was built".to_owned());
    }
    let folder = option(arguments, "--out").map_or_else(|| root.join("target/package"), PathBuf::from);
    let version = option(arguments, "--version").unwrap_or(env!("CARGO_PKG_VERSION"));
    let file = folder.join(format!("copal_{version}.cdx.json"));
    std::fs::write(&file, crate::sbom::bill()?).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
