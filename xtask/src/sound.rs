//! `cargo xtask sound`: Miri over the crates with unsafe code that it can run, and ThreadSanitizer
//! over those whose threads share memory. Both need a nightly toolchain with the components `miri`
//! and `rust-src`. The models of the protocols (`tests/models.rs` of `store` and `cache`) are
//! ordinary tests. Tests that Miri cannot run are listed here, with the reason.

use std::process::Command;

/// Targets of Miri: a crate, the filters of skipped tests, and the reason.
const UNDER_MIRI: &[(&str, &[&str], &str)] = &[
    ("store", &[], ""),
    ("shm", &["vsm::", "place::", "read::vsm"], "mappings of files, and owners of files, which Miri does not have"),
];

/// Targets of ThreadSanitizer.
const UNDER_TSAN: &[&str] = &["store", "cache"];

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let both = !has("--miri") && !has("--tsan");
    let filter = arguments.iter().find(|argument| !argument.starts_with("--"));
    if both || has("--miri") {
        for (name, left_out, why) in UNDER_MIRI {
            if !left_out.is_empty() {
                println!("{name} without {}: {why}", left_out.join(", "));
            }
            let mut command = nightly(&["miri", "test", "-p", name, "--lib", "--"]);
            command.args(filter).args(left_out.iter().flat_map(|word| ["--skip", word]));
            run(command.env("MIRIFLAGS", "-Zmiri-disable-isolation"), &format!("Miri over {name}"))?;
        }
    }
    if both || has("--tsan") {
        for name in UNDER_TSAN {
            // The standard library is built too, or its own synchronisation would not be seen.
            let target = "x86_64-unknown-linux-gnu";
            let mut command =
                nightly(&["test", "-Zbuild-std", "--target", target, "-p", name, "--lib", "--tests", "--"]);
            command.args(filter);
            // Models create threads of their own kind, which the sanitizer does not support.
            command.args(["--skip", "is_found_out", "--skip", "models::"]);
            command.env("RUSTFLAGS", "-Zsanitizer=thread").env("CARGO_TARGET_DIR", "target/tsan");
            run(&mut command, &format!("ThreadSanitizer over {name}"))?;
        }
    }
    Ok(())
}

fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // The calling process has named its own toolchain.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").arg("+nightly").args(arguments);
    command
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{what}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what}: {status}")) }
}
