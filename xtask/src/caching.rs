//! `cargo xtask caching --suite DIR`: the score in the public suite of HTTP caches,
//! http-tests/cache-tests.
//!
//! DIR is a checkout of that suite with `undici` in its `node_modules`. Its origin and its client
//! run in node, Copal between them with `http_policy=rfc` and default settings otherwise
//! (`--leniencies` enables everything that is off by default). The required and optimal tests that
//! fail are compared with the expected ones of the engine's own version of the suite
//! (`crates/engine/tests/caching/expected.txt`): any difference is an error.

use crate::place::{build, folder, free_port};
use crate::process::Server;
use crate::servers::Kind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Failures that the engine's tests expect.
const EXPECTED: &str = include_str!("../../crates/engine/tests/caching/expected.txt");

/// Expected to fail even with all leniencies.
const NEVER: &[&str] = &["conditional-lm-fresh-no-lm"];

/// Parameters that go beyond the RFCs, to improve the score.
const LENIENCIES: &[&str] =
    &["partial_leniency=on", "unknown_transfer_encoding=on", "vary_language_order=on", "vary_language_select=on"];

/// Prints a line for each test, judged by the suite's own rules: kind, result, id.
const JUDGE: &str = "
import fs from 'fs'
const [suite, file] = process.argv.slice(-2)
const tests = (await import(suite + '/tests/index.mjs')).default
const { determineTestResult, resultTypes } = await import(suite + '/test-engine/lib/results.mjs')
const results = JSON.parse(fs.readFileSync(file))
for (const group of tests) {
  for (const test of group.tests.filter(test => !test.browser_only)) {
    const result = determineTestResult(tests, test.id, results)
    const word = Object.keys(resultTypes).find(key => resultTypes[key] === result)
    console.log([test.kind ?? 'required', word, test.id].join(' '))
  }
}
";

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let suite = crate::task::option(arguments, "--suite").ok_or("--suite DIR: a checkout of http-tests/cache-tests")?;
    let suite = Path::new(suite).canonicalize().map_err(|error| format!("{suite}: {error}"))?;
    if !suite.join("node_modules/undici").is_dir() {
        return Err(format!("run `npm install --ignore-scripts undici@7` in {} first", suite.display()));
    }
    if !has("--as-built") {
        build()?;
    }
    let verdicts = run(&suite, has("--leniencies"))?;
    let counts = counts(&verdicts);
    println!("| tests | passed | of |\n| --- | --- | --- |");
    for (kind, (passed, all)) in &counts {
        println!("| {kind} | {passed} | {all} |");
    }
    compare(&verdicts, has("--leniencies"))
}

/// One test: its kind, the word for its result, its id.
type Verdict = [String; 3];

fn run(suite: &Path, is_lenient: bool) -> Result<Vec<Verdict>, String> {
    let folder = folder()?;
    let (origin_port, port) = (free_port()?, free_port()?);
    let node = PathBuf::from("node");
    let origin_log = folder.path().join("origin.log");
    let mut origin = Server::start_in(
        suite,
        &node,
        &["test-engine/server/server.mjs".to_owned()],
        &[
            ("npm_config_protocol", "http".to_owned()),
            ("npm_config_port", origin_port.to_string()),
            ("npm_config_pidfile", folder.path().join("origin.pid").display().to_string()),
        ],
        &origin_log,
    )?;
    origin.wait_for_port(origin_port, &origin_log)?;
    let mut launch = Kind::Copal.launch(port, origin_port, folder.path(), 64)?;
    let chosen = ["http_policy=rfc"].iter().chain(LENIENCIES.iter().filter(|_| is_lenient));
    launch.arguments.extend(chosen.flat_map(|parameter| ["-p".to_owned(), (*parameter).to_owned()]));
    let log = folder.path().join("copal.log");
    let mut copal = Server::start_in(suite, &launch.program, &launch.arguments, &[], &log)?;
    copal.wait_for_port(port, &log)?;
    let client = Command::new(&node)
        .current_dir(suite)
        .args(["--no-warnings", "test-engine/cli.mjs"])
        .env("npm_config_base", format!("http://127.0.0.1:{port}"))
        .env("npm_config_id", "")
        .env("npm_package_config_id", "")
        .output()
        .map_err(|error| format!("node: {error}"))?;
    let results = folder.path().join("results.json");
    std::fs::write(&results, &client.stdout).map_err(|error| error.to_string())?;
    let judged = Command::new(&node)
        .args(["--input-type=module", "-e", JUDGE, "--"])
        .args([suite, &results])
        .output()
        .map_err(|error| format!("node: {error}"))?;
    let text = String::from_utf8_lossy(&judged.stdout);
    let verdicts: Vec<Verdict> = text
        .lines()
        .filter_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().ok())
        .collect();
    if verdicts.is_empty() {
        let said = [client.stderr, judged.stderr].concat();
        return Err(format!("the suite gave no results: {}", String::from_utf8_lossy(&said)));
    }
    Ok(verdicts)
}

fn counts(verdicts: &[Verdict]) -> BTreeMap<&str, (usize, usize)> {
    let mut counts = BTreeMap::<&str, (usize, usize)>::new();
    for [kind, word, _] in verdicts {
        let (passed, all) = counts.entry(kind).or_default();
        *passed += usize::from(matches!(word.as_str(), "pass" | "yes"));
        *all += 1;
    }
    counts
}

/// Compares the required and optimal tests with the expected results.
fn compare(verdicts: &[Verdict], is_lenient: bool) -> Result<(), String> {
    let listed: Vec<&str> = EXPECTED.lines().filter_map(|line| line.split_once(": ")).map(|(id, _)| id).collect();
    let mut differences = Vec::new();
    for [kind, word, id] in verdicts.iter().filter(|[kind, ..]| kind != "check") {
        let may_fail = if is_lenient { NEVER.contains(&id.as_str()) } else { listed.contains(&id.as_str()) };
        match (word == "pass", may_fail) {
            (false, false) => differences.push(format!("{kind} {id}: {word}")),
            (true, true) => differences.push(format!("{kind} {id} passes and is expected to fail")),
            _ => {}
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("not as expected:\n{}", differences.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> Verdict {
        text.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()
    }

    #[test]
    fn a_difference_in_either_direction_is_an_error() {
        let right =
            ["required pass freshness-max-age-0", "optimal optional_fail conditional-lm-fresh-no-lm", "check no x"];
        assert_eq!(compare(&right.map(verdict), false), Ok(()));
        assert!(compare(&[verdict("required fail freshness-max-age-0")], false).is_err());
        assert!(compare(&[verdict("optimal pass conditional-lm-fresh-no-lm")], false).is_err());
        assert!(compare(&[verdict("required setup_fail headers-store-Transfer-Encoding")], true).is_err());
        assert_eq!(counts(&right.map(verdict))["required"], (1, 1));
    }
}
