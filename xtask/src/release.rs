//! `cargo xtask release`: the program in its shipped form, built twice.
//!
//! ```text
//! instrumented build ─ training.rs ─→ profiles ─ llvm-profdata
//!     ─→ optimised build ─→ checks ─→ target/pgo/copal
//! ```
//!
//! Both are builds of the profile `dist` in Cargo.toml, in folders of their own below `target/pgo`,
//! so that no other build is disturbed. Code of C libraries (PCRE2, the cryptography, zstd) is not
//! part of it. Next file: `release/training.rs`.

mod training;

use crate::servers::{Build, Kind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Duration of each half of the last check, in seconds.
const CHECK_SECONDS: f64 = 3.0;
/// Time limit for the end of a checked daemon.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let compiler = Compiler::ask()?;
    let merge = compiler.profdata()?;
    let folder = target_folder()?.join("pgo");
    let profiles = folder.join("profiles");
    // Profiles of another source would be merged with the new ones.
    match std::fs::remove_dir_all(&profiles) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", profiles.display()));
        }
        Ok(()) | Err(_) => {}
    }
    let cpu = crate::task::option(arguments, "--target-cpu").map(|cpu| format!("-Ctarget-cpu={cpu}"));
    let since = Instant::now();
    let told = |what: &str| println!("release: {:>5.0} s  {what}", since.elapsed().as_secs_f64());
    let build = |name: &str, flag: String| compiler.build(&folder.join(name), cpu.iter().cloned().chain([flag]));
    told("instrumented build");
    let instrumented = build("instrumented", format!("-Cprofile-generate={}", profiles.display()))?;
    told("training");
    training::train(Build::new("trained", &instrumented))?;
    told("profiles are put together");
    let profile = merged(&merge, &profiles, &folder)?;
    told("build for what they say");
    let built = build("build", format!("-Cprofile-use={}", profile.display()))?;
    let program = folder.join("copal");
    std::fs::copy(&built, &program).map_err(|error| format!("{}: {error}", program.display()))?;
    told("checks");
    check(&program)?;
    let bytes = std::fs::metadata(&program).map_err(|error| error.to_string())?.len();
    let stripped = stripped_bytes(&program)
        .map_or_else(String::new, |bytes| format!(", {} without debug information", mebibytes(bytes)));
    told(&format!("{}: {}{stripped}", program.display(), mebibytes(bytes)));
    Ok(())
}

/// The compiler that cargo uses.
struct Compiler {
    host: String,
    /// Major version of LLVM.
    llvm: String,
    sysroot: PathBuf,
}

impl Compiler {
    fn ask() -> Result<Compiler, String> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let ask = |arguments: &[&str]| said(Command::new(&rustc).args(arguments));
        let version = ask(&["-vV"])?;
        let field = |name: &str| {
            let value = version.lines().find_map(|line| line.strip_prefix(name));
            value.map(|value| value.trim().to_owned()).ok_or_else(|| format!("rustc -vV says no {name}"))
        };
        let llvm = field("LLVM version:")?.split('.').next().unwrap_or_default().to_owned();
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?.trim());
        Ok(Compiler { host: field("host:")?, llvm, sysroot })
    }

    /// The program that merges profiles: the toolchain's own, or an installed one of the same LLVM.
    fn profdata(&self) -> Result<PathBuf, String> {
        let own = self.sysroot.join("lib/rustlib").join(&self.host).join("bin/llvm-profdata");
        let others = ["llvm-profdata".to_owned(), format!("llvm-profdata-{}", self.llvm)];
        let found = [own].into_iter().chain(others.map(PathBuf::from)).find(|program| {
            said(Command::new(program).arg("--version")).is_ok_and(|text| llvm_of(&text) == Some(self.llvm.as_str()))
        });
        found.ok_or_else(|| {
            format!(
                "llvm-profdata of LLVM {} is needed: run `rustup component add llvm-tools`, or install LLVM {0}",
                self.llvm
            )
        })
    }

    /// Builds Copal in a target folder of its own with additional flags; returns the program.
    ///
    /// The target is named, so that the flags do not apply to build scripts and macros.
    fn build(&self, folder: &Path, more: impl Iterator<Item = String>) -> Result<PathBuf, String> {
        let given = match (std::env::var("CARGO_ENCODED_RUSTFLAGS"), std::env::var("RUSTFLAGS")) {
            (Ok(flags), _) => flags.split('\x1f').map(str::to_owned).collect(),
            (Err(_), Ok(flags)) => flags.split_whitespace().map(str::to_owned).collect(),
            (Err(_), Err(_)) => Vec::new(),
        };
        let flags: Vec<String> = given.into_iter().filter(|flag| !flag.is_empty()).chain(more).collect();
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "--profile", "dist", "--locked", "--package", "copal", "--bin", "copal"])
            .args(["--target", &self.host, "--target-dir"])
            .arg(folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err("copal could not be built".to_owned());
        }
        Ok(folder.join(&self.host).join("dist/copal"))
    }
}

/// Output of a program that succeeds.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} ended with {}: {}", output.status, errors.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The major version in the version text of an LLVM tool.
fn llvm_of(text: &str) -> Option<&str> {
    text.split("LLVM version ").nth(1)?.split(['.', '\n']).next()
}

/// The folder in which cargo has built this program.
fn target_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    program.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| "this program is in no target folder".to_owned())
}

/// Merges the profiles. The file is named after its contents, since cargo rebuilds only if flags
/// change.
fn merged(merge: &Path, profiles: &Path, folder: &Path) -> Result<PathBuf, String> {
    let raw: Vec<PathBuf> = std::fs::read_dir(profiles)
        .map_err(|error| format!("{}: the training left nothing: {error}", profiles.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let new = folder.join("new.profdata");
    said(Command::new(merge).arg("merge").arg("-o").arg(&new).args(&raw))?;
    let bytes = std::fs::read(&new).map_err(|error| error.to_string())?;
    let mark = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    for old in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if old.file_name().to_string_lossy().starts_with("copal-") {
            std::fs::remove_file(old.path()).map_err(|error| error.to_string())?;
        }
    }
    let named = folder.join(format!("copal-{mark:016x}.profdata"));
    std::fs::rename(&new, &named).map_err(|error| error.to_string())?;
    println!("{} profiles, {} together", raw.len(), mebibytes(bytes.len() as u64));
    Ok(named)
}

/// Checks that the program works: its version, the demo, and every transport with every body
/// compared.
fn check(program: &Path) -> Result<(), String> {
    print!("{}", said(Command::new(program).arg("--version"))?);
    said(Command::new(program).args(["demo", "--once"]))?;
    let answers = crate::soak::exercise(Kind::Build(Build::new("checked", program)), CHECK_SECONDS, PATIENCE)?;
    println!("the demo ran, and {answers} answers over five transports were right");
    Ok(())
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Size in the package; `None` without the tool.
fn stripped_bytes(program: &Path) -> Option<u64> {
    let folder = tempfile::tempdir().ok()?;
    let copy = folder.path().join("copal");
    said(Command::new("strip").arg("--strip-debug").arg("-o").arg(&copy).arg(program)).ok()?;
    Some(std::fs::metadata(copy).ok()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_of_an_llvm() {
        assert_eq!(llvm_of("LLVM (http://llvm.org/):\n  LLVM version 22.1.2-rust-1.95.0-stable\n"), Some("22"));
        assert_eq!(llvm_of("Debian LLVM version 14.0.6\n  \n"), Some("14"));
        assert_eq!(llvm_of("something else"), None);
    }
}
