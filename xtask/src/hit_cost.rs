//! `cargo xtask hit-cost`: how many instructions a hit takes, against a budget. Instructions do not depend on what else the machine
//! does, so this finds what a measurement of time cannot.
//!
//! What is counted is a test of the engine (`crates/engine/tests/hit_cost.rs`) under callgrind: everything between a request in
//! memory and its response in memory, without event loop and sockets. Valgrind does not know the instructions that CPUs have for
//! SHA-256, so that the digest counts as it does on a machine without them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The instructions that a hit may take under each policy: lines of `policy instructions`.
const BUDGET: &str = "crates/engine/tests/hit_cost.budget";

/// How far above the budget a count may be, in percent. Counts differ by less than one in a thousand between runs, and by a few
/// percent between compilers and CPUs.
const SLACK_PERCENT: u64 = 10;

/// Hits that are counted.
const HITS: u64 = 2000;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: needs valgrind");
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = root.join(BUDGET);
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{BUDGET}: {error}"))?;
    let budget = parse(&text)?;
    let program = build(&root)?;
    let mut counted = Vec::new();
    for (policy, allowed) in &budget {
        let count = count(&program, policy)?;
        println!("{policy}: {count} instructions a hit, budget {allowed}");
        if count + count / 20 < *allowed {
            println!("the budget can be lowered: cargo xtask hit-cost --write");
        }
        counted.push((policy.as_str(), *allowed, count));
    }
    if arguments.iter().any(|argument| argument == "--write") {
        let lines: String = counted.iter().map(|(policy, _, count)| format!("{policy} {count}\n")).collect();
        return std::fs::write(&file, lines).map_err(|error| format!("{BUDGET}: {error}"));
    }
    let judged: Vec<String> = counted.iter().filter_map(|row| judge(*row)).collect();
    if judged.is_empty() { Ok(()) } else { Err(judged.join("\n")) }
}

fn parse(text: &str) -> Result<Vec<(String, u64)>, String> {
    let row = |line: &str| {
        let (policy, allowed) = line.split_once(' ')?;
        Some((policy.to_owned(), allowed.trim().parse().ok()?))
    };
    text.lines().map(|line| row(line).ok_or_else(|| format!("{BUDGET}: '{line}' is no row"))).collect()
}

/// What is wrong with a count.
fn judge((policy, allowed, count): (&str, u64, u64)) -> Option<String> {
    let is_more = count > allowed + allowed * SLACK_PERCENT / 100;
    is_more.then(|| format!("{policy}: a hit takes {count} instructions, more than the budget allows ({allowed})"))
}

/// Builds the test as a release is built: what the compiler can see at once decides what it makes of it.
fn build(root: &Path) -> Result<PathBuf, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--release", "-p", "engine", "--test", "hit_cost", "--no-run", "--message-format=json"])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the test does not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let found =
        text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find_map(|message| {
            let is_test = message["target"]["name"] == "hit_cost";
            message["executable"].as_str().filter(|_| is_test).map(PathBuf::from)
        });
    found.ok_or_else(|| "cargo names no executable".into())
}

/// Instructions of a hit under a policy.
fn count(program: &Path, policy: &str) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*hit_cost*measured*"])
        .arg(program)
        .args(["--ignored", "--exact", "hits_in_memory", "--test-threads=1"])
        .env("HITS", HITS.to_string())
        .env("HIT_POLICY", policy)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
    match collected {
        Some(instructions) if output.status.success() && instructions > 0 => Ok(instructions / HITS),
        _ => Err(format!("valgrind counted nothing: {said}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_judged_by_its_distance_from_the_budget() {
        assert_eq!(judge(("rfc", 10_000, 11_000)), None);
        assert_eq!(judge(("rfc", 10_000, 5_000)), None);
        assert!(judge(("rfc", 10_000, 11_001)).is_some_and(|text| text.contains("more than")));
    }

    #[test]
    fn a_budget_is_read_line_by_line() {
        assert_eq!(parse("varnish 100\nrfc 200\n"), Ok(vec![("varnish".to_owned(), 100), ("rfc".to_owned(), 200)]));
        assert!(parse("varnish\n").is_err() && parse("rfc many\n").is_err());
        assert!(parse(include_str!("../../crates/engine/tests/hit_cost.budget")).is_ok_and(|rows| rows.len() == 2));
    }
}
