//! The command: forms, levels, exit status, and the VCL of the repository.

use super::super::tests::run_with;
use serde_json::Value;
use std::path::{Path, PathBuf};
use surface::lint::{Level, Rule};
use vcl::{CompileOptions, SourceText};

const OPEN: &str = "vcl 4.1; backend default none;\nsub vcl_recv { return (purge); }";
const NOTE: &str = "vcl 4.1; backend default none;\nsub vcl_recv { if (req.http.Cookie) { return (pass); } }";

#[test]
fn finding_has_file_line_caret_and_hint() {
    let (status, output, error) = run_with(&["lint", "-"], OPEN);
    assert_eq!((status, error.as_str()), (1, ""));
    assert_eq!(
        output,
        "error[S5]: Every client can remove objects from the cache here\n  --> <stdin>:2:16\n    \
         2 | sub vcl_recv { return (purge); }\n      |                ^^^^^^\n  \
         hint: check client.ip against an acl first\n\n<stdin>: 1 error\n"
    );
}

#[test]
fn level_of_deny_decides_the_status() {
    let status = |args: &[&str], text: &str| run_with(&[&["lint"], args, &["-"]].concat(), text).0;
    assert_eq!((status(&[], OPEN), status(&[], NOTE), status(&[], "vcl 4.1; backend default none;")), (1, 0, 0));
    assert_eq!((status(&["--deny", "warn"], NOTE), status(&["--deny=note"], NOTE)), (0, 1));
    assert_eq!((status(&["--deny", "nothing"], NOTE), status(&[], "vcl 4.1; sub {")), (2, 1));
    assert_eq!(run_with(&["lint"], OPEN).0, 2);
    assert_eq!(run_with(&["lint", "/no/such/\x1b[2Jfile"], "").2, "/no/such/%1b[2Jfile: No such file or directory\n");
}

#[test]
fn json_has_counts_places_and_the_suppressed() {
    let text = format!("{OPEN} # copal: allow(S5) tested");
    let (status, output, _) = run_with(&["lint", "--json", "-"], &text);
    let value: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((status, value["suppressed"].as_u64(), value["findings"].as_array().unwrap().len()), (0, Some(1), 0));
    let value: Value = serde_json::from_str(&run_with(&["lint", "--json", "-"], OPEN).1).unwrap();
    let first = &value["findings"][0];
    assert_eq!(
        (value["errors"].as_u64(), first["rule"].as_str(), first["line"].as_u64()),
        (Some(1), Some("S5"), Some(2))
    );
    let broken: Value = serde_json::from_str(&run_with(&["lint", "--json", "-"], "vcl 4.1; sub {").1).unwrap();
    assert!(!broken["diagnostics"].as_array().unwrap().is_empty());
}

#[test]
fn sarif_names_rules_levels_and_lines() {
    let value: Value = serde_json::from_str(&run_with(&["lint", "--sarif", "-"], OPEN).1).unwrap();
    let run = &value["runs"][0];
    let result = &run["results"][0];
    let index = result["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!((value["version"].as_str(), result["ruleId"].as_str()), (Some("2.1.0"), Some("copal/S5")));
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "copal/S5");
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (place["region"]["startLine"].as_u64(), place["artifactLocation"]["uri"].as_str()),
        (Some(2), Some("%3Cstdin%3E"))
    );
}

#[test]
fn annotations_cannot_be_forged_by_a_file_name_or_a_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a\n::error::b,c\x1b.vcl");
    std::fs::write(&path, OPEN).unwrap();
    let (_, output, _) = run_with(&["lint", "--github", path.to_str().unwrap()], "");
    assert_eq!(output.lines().count(), 1, "{output}");
    assert!(output.starts_with("::error file=") && output.contains("%0A%3A%3Aerror%3A%3Ab%2Cc"), "{output}");
    assert!(output.contains(",line=2,") && !output.contains('\x1b'), "{output}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every VCL of the repository that is not a test's: files, and blocks in documents.
fn published() -> Vec<(String, String)> {
    let mut folders = vec![root().join("docs"), root().join("packaging"), root().join("crates/copal/src")];
    let mut found = Vec::new();
    let mut files = vec![root().join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    for path in files {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("vcl") => found.push((name, std::fs::read_to_string(&path).unwrap())),
            // The page of the rules shows findings.
            Some("md") if !name.ends_with("reference/lint.md") => {
                let text = std::fs::read_to_string(&path).unwrap();
                for (index, part) in text.split("```vcl\n").skip(1).enumerate() {
                    let code = part.split_once("```").unwrap().0.to_owned();
                    found.push((format!("{name} block {}", index + 1), code));
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn vcl_of_the_documents_and_packages_has_no_finding_above_a_note() {
    let (mut count, mut faults) = (0, Vec::new());
    for (name, text) in published() {
        for backend in [None, Some("backend default none;")] {
            let options = CompileOptions {
                version_optional: true,
                default_backend: backend,
                follows_rfc: true,
                labels: &["shop".to_owned(), "blog".to_owned()],
                ..CompileOptions::default()
            };
            let Ok(linted) = vcl::lint(&SourceText { name: &name, text: text.as_bytes() }, &options) else { continue };
            count += 1;
            let is_fault = |rule: Rule| rule.row().level > Level::Note && !(rule == Rule::Unused && is_fragment(&text));
            faults.extend(linted.findings.iter().filter(|found| is_fault(found.rule)).map(|found| found.pretty(false)));
            break;
        }
    }
    assert!(count >= 15, "{count} texts");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// True for a part of a VCL, whose declarations another part uses.
fn is_fragment(text: &str) -> bool {
    !text.contains("vcl 4.")
}
