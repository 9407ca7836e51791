//! `cargo xtask cost`: instructions and locked instructions of a hit, a pass and a miss, against a
//! budget. Instructions do not depend on the load of the machine, so this finds what a measurement
//! of time cannot.
//!
//! The measured programs are tests of the engine (`crates/engine/tests/{hit,fetch}_cost.rs`) under
//! callgrind: everything between a request in memory and its response in memory, without event loop
//! and sockets. Two runs of different length are subtracted, so that start and warm-up do not
//! count. Valgrind does not know the CPU instructions for SHA-256, so the digest counts as it does
//! on a machine without them.
//!
//! Locked instructions are those of x86 with a `lock` prefix, and `xchg` with memory. Each row is
//! counted with one event loop and with 16; a number that grows is work whose cost depends on the
//! number of cores, and fails, with its source lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The budget: lines of `row policy instructions locked`, per request.
const BUDGET: &str = "crates/engine/tests/cost.budget";

/// Excess over the budget that is allowed, in percent. Counts differ by less than one in a
/// thousand between runs, and by a few percent between compilers and CPUs.
const SLACK_PERCENT: f64 = 10.0;
/// Locked instructions per request that 16 loops may add to those of one: some happen once in
/// several requests.
const GROWTH_MAX: f64 = 0.5;
/// Requests of the short and of the long run.
const REQUESTS: [u64; 2] = [200, 1200];
const LOOPS_MAX: usize = 16;

/// One row of the budget.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    /// `hit`, `pass` or `miss`.
    name: String,
    policy: String,
    instructions: f64,
    locked: f64,
}

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    for program in ["valgrind", "objdump"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("skipped: needs {program}");
            return Ok(());
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = root.join(BUDGET);
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{BUDGET}: {error}"))?;
    let budget = parse(&text)?;
    let programs = build(&root)?;
    let mut locked = BTreeMap::new();
    for (test, program) in &programs {
        locked.insert(test.as_str(), locked_addresses(program)?);
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (mut counted, mut faults) = (Vec::new(), Vec::new());
    for row in &budget {
        let test = if row.name == "hit" { "hit_cost" } else { "fetch_cost" };
        let program = programs.get(test).ok_or_else(|| format!("cargo names no executable {test}"))?;
        let count = |loops| count(program, &locked[test], row, loops, folder.path());
        let (alone, together) = (count(1)?, count(LOOPS_MAX)?);
        let [locked, locked_together] = [&alone, &together].map(Count::locked);
        println!(
            "{} {}: {:.0} instructions, budget {:.0}; {locked:.1} locked, budget {:.1}, with {LOOPS_MAX} loops {locked_together:.1}",
            row.name, row.policy, alone.instructions, row.instructions, row.locked
        );
        if arguments.iter().any(|argument| argument == "--lines") {
            alone.lines.iter().for_each(|(line, number)| println!("  {number:>6.1}  {line}"));
        }
        let now = Row { instructions: alone.instructions, locked, ..row.clone() };
        faults.extend(judge(row, &now));
        faults.extend(growth(row, &alone, &together));
        counted.push(now);
    }
    if arguments.iter().any(|argument| argument == "--write") {
        let line = |row: &Row| format!("{} {} {:.0} {:.1}\n", row.name, row.policy, row.instructions, row.locked);
        let lines: String = counted.iter().map(line).collect();
        std::fs::write(&file, lines).map_err(|error| format!("{BUDGET}: {error}"))?;
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn parse(text: &str) -> Result<Vec<Row>, String> {
    let row = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (name, policy) = (words.next()?, words.next()?);
        let (instructions, locked) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Row { name, policy, instructions, locked })
    };
    text.lines().map(|line| row(line).ok_or_else(|| format!("{BUDGET}: '{line}' is not a row"))).collect()
}

/// Counts that exceed the budget.
fn judge(allowed: &Row, now: &Row) -> Vec<String> {
    let exceeds = |now: f64, allowed: f64| now > allowed * (1.0 + SLACK_PERCENT / 100.0);
    let (name, policy) = (&now.name, &now.policy);
    let mut faults = Vec::new();
    if exceeds(now.instructions, allowed.instructions) {
        faults.push(format!(
            "{name} {policy}: {:.0} instructions, more than the budget allows ({:.0})",
            now.instructions, allowed.instructions
        ));
    }
    if exceeds(now.locked, allowed.locked) {
        faults.push(format!(
            "{name} {policy}: {:.1} locked instructions, more than the budget allows ({:.1})",
            now.locked, allowed.locked
        ));
    }
    faults
}

/// Source lines whose locked instructions grow with the number of loops.
fn growth(row: &Row, alone: &Count, together: &Count) -> Vec<String> {
    if together.locked() <= alone.locked() + GROWTH_MAX {
        return Vec::new();
    }
    let before = |line: &String| alone.lines.get(line).copied().unwrap_or(0.0);
    let grown = together.lines.iter().filter(|(line, number)| **number > before(line) + GROWTH_MAX / 2.0);
    let text = |(line, number): (&String, &f64)| {
        format!("{} {}: {line}: {:.1} locked, with {LOOPS_MAX} loops {number:.1}", row.name, row.policy, before(line))
    };
    grown.map(text).collect()
}

/// Builds the tests with the profile `dist`, as the shipped program is: the optimiser's view
/// decides the count. Returns the programs by the names of the tests.
fn build(root: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--profile", "dist", "--workspace", "--test", "hit_cost", "--test", "fetch_cost"])
        .args(["--no-run", "--message-format=json"])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let programs = messages.filter_map(|message| {
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, PathBuf::from(message["executable"].as_str()?)))
    });
    Ok(programs.collect())
}

/// Numbers per request.
struct Count {
    instructions: f64,
    /// Locked instructions by function and source line.
    lines: BTreeMap<String, f64>,
}

impl Count {
    fn locked(&self) -> f64 {
        self.lines.values().sum()
    }
}

/// Counts a row with this many event loops.
fn count(program: &Path, locked: &BTreeSet<u64>, row: &Row, loops: usize, folder: &Path) -> Result<Count, String> {
    let mut runs = Vec::new();
    for requests in REQUESTS {
        let profile = folder.join("callgrind.out");
        let test = if row.name == "hit" { "hits_in_memory" } else { "fetches_in_memory" };
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no"])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(program)
            .args(["--ignored", "--exact", test, "--test-threads=1"])
            .env("COST_ROW", &row.name)
            .env("COST_POLICY", &row.policy)
            .env("COST_REQUESTS", requests.to_string())
            .env("COST_LOOPS", loops.to_string())
            .output()
            .map_err(|error| format!("valgrind: {error}"))?;
        if !output.status.success() {
            return Err(format!("valgrind: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let text = std::fs::read_to_string(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
        runs.push(read_profile(&text, program, locked));
    }
    let [(short, short_lines), (long, long_lines)] = &runs[..] else { return Err("two runs were expected".into()) };
    let each = |more: u64, less: u64| (more as f64 - less as f64) / (REQUESTS[1] - REQUESTS[0]) as f64;
    let line = |(line, more): (&String, &u64)| {
        let each = each(*more, short_lines.get(line).copied().unwrap_or(0));
        (each >= 0.05).then(|| (line.clone(), each))
    };
    if long <= short {
        return Err("valgrind counted nothing".into());
    }
    Ok(Count { instructions: each(*long, *short), lines: long_lines.iter().filter_map(line).collect() })
}

/// Addresses of the program's locked instructions, as in its file.
fn locked_addresses(program: &Path) -> Result<BTreeSet<u64>, String> {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output();
    let output = output.map_err(|error| format!("objdump: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(locked_address).collect())
}

/// The address of a line of the disassembly, if its instruction is locked.
fn locked_address(line: &str) -> Option<u64> {
    let (address, instruction) = line.trim_start().split_once(":\t")?;
    let is_locked = instruction.starts_with("lock ") || instruction.starts_with("xchg") && instruction.contains('(');
    is_locked.then(|| u64::from_str_radix(address, 16).ok())?
}

/// The instructions in all, and the locked ones by function and source line.
fn read_profile(text: &str, program: &Path, locked: &BTreeSet<u64>) -> (u64, BTreeMap<String, u64>) {
    let (mut all, mut lines) = (0, BTreeMap::new());
    let (mut is_ours, mut is_call) = (false, false);
    let (mut file, mut function) = ("", "");
    let program = program.to_string_lossy();
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "ob" => is_ours = value == program,
                "fl" | "fi" | "fe" => file = value,
                "fn" => function = value,
                "calls" => is_call = true,
                _ => {}
            }
            continue;
        }
        let mut words = line.split(' ');
        let Some(address) = words.next().and_then(|word| word.strip_prefix("0x")) else { continue };
        // The line behind `calls=` is what the called function cost, which is counted there.
        if std::mem::take(&mut is_call) {
            continue;
        }
        let (number, cost) = (words.next().unwrap_or("?"), words.next().and_then(|word| word.parse::<u64>().ok()));
        let Some(cost) = cost else { continue };
        all += cost;
        let is_locked = u64::from_str_radix(address, 16).is_ok_and(|address| locked.contains(&address));
        if is_ours && is_locked {
            *lines.entry(format!("{function} ({file}:{number})")).or_default() += cost;
        }
    }
    (all, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(instructions: f64, locked: f64) -> Row {
        Row { name: "hit".to_owned(), policy: "rfc".to_owned(), instructions, locked }
    }

    fn counted(lines: &[(&str, f64)]) -> Count {
        Count { instructions: 1.0, lines: lines.iter().map(|(line, number)| ((*line).to_owned(), *number)).collect() }
    }

    #[test]
    fn count_is_judged_by_its_distance_from_the_budget() {
        let allowed = row(10_000.0, 30.0);
        assert_eq!(judge(&allowed, &row(11_000.0, 33.0)), [""; 0]);
        assert_eq!(judge(&allowed, &row(5_000.0, 3.0)), [""; 0]);
        assert!(judge(&allowed, &row(11_001.0, 30.0))[0].contains("11001 instructions, more than"));
        assert!(judge(&allowed, &row(10_000.0, 34.0))[0].contains("34.0 locked instructions, more than"));
    }

    #[test]
    fn budget_is_read_line_by_line() {
        let read = parse("hit rfc 100 3.5\n").unwrap();
        assert_eq!(read, [row(100.0, 3.5)]);
        assert!(parse("hit rfc 100\n").is_err() && parse("hit rfc many 1\n").is_err());
        assert!(parse(include_str!("../../crates/engine/tests/cost.budget")).is_ok_and(|rows| rows.len() == 6));
    }

    #[test]
    fn locked_instructions_that_grow_with_the_loops_are_named_by_line() {
        let (alone, together) = (counted(&[("a:1", 2.0), ("b:2", 3.0)]), counted(&[("a:1", 2.0), ("b:2", 33.0)]));
        assert_eq!(growth(&row(1.0, 1.0), &alone, &alone), [""; 0]);
        assert_eq!(growth(&row(1.0, 1.0), &alone, &together), ["hit rfc: b:2: 3.0 locked, with 16 loops 33.0"]);
    }

    #[test]
    fn profile_counts_locked_instructions_of_the_program_by_line() {
        assert_eq!(locked_address("  1f00:\tlock cmpxchg %rcx,(%rdx)"), Some(0x1f00));
        assert_eq!(locked_address("  1f04:\txchg   %rcx,(%rdx)"), Some(0x1f04));
        assert_eq!(locked_address("  1f08:\txchg   %ax,%ax"), None);
        let text = "positions: instr line\nevents: Ir\nob=/p\nfl=a.rs\nfn=f\n0x10 7 5\n0x14 8 2\ncalls=1 0x90 1\n0x18 8 900\nob=/libc.so\nfn=g\n0x10 1 3\n";
        let (all, lines) = read_profile(text, Path::new("/p"), &BTreeSet::from([0x10]));
        assert_eq!((all, lines), (10, BTreeMap::from([("f (a.rs:7)".to_owned(), 5)])));
    }
}
