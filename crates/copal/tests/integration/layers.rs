//! The layers of ARCHITECTURE.md, checked against the manifests: arrows point only down, and
//! forbidden edges do not exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Crates by layer, the lowest first. A crate may depend on its own layer and those below.
const LAYERS: &[&[&str]] = &[
    &["surface", "message", "pattern"],
    &[
        "http1",
        "semantics",
        "body",
        "vcl",
        "vcl-run",
        "shm",
        "cli-proto",
        "proxy-protocol",
        "field-coding",
        "eviction",
        "fleet",
        "recording",
        "tls",
        "http2",
        "http3",
    ],
    &["engine", "vmods", "backend", "cache", "store"],
    &[
        "control",
        "net",
        "worker",
        "manager",
        "load",
        "sandbox",
        "tools",
        "observe",
        "fleet-agent",
        "preflight",
        "vcl-test",
        "vtc",
        "copal",
    ],
    // For the fuzzer and the tests: above everything that is shipped, so that nothing shipped can
    // depend on it.
    &["exercises"],
];

/// Forbidden edges, with the reason.
const NEVER: &[(&str, &str, &str)] = &[
    ("engine", "net", "the engine runs without sockets"),
    ("engine", "tls", "the engine is told what was agreed; it shakes no hands"),
    ("cache", "net", "the cache runs without sockets"),
    ("manager", "engine", "the manager parses no request or response"),
    ("manager", "net", "the manager binds sockets and serves no client"),
    ("manager", "worker", "manager and worker share the messages between them, in control"),
    ("backend", "net", "directors and probes dial through a trait"),
    ("vcl", "engine", "the compiler knows nothing of the program around it"),
    ("worker", "vcl", "the worker gets checked programs and never compiles"),
    ("tools", "engine", "tools see the daemon only from outside"),
    ("tools", "manager", "tools see the daemon only from outside; preflight may see how it would start"),
    ("load", "engine", "load is made from outside"),
    ("load", "net", "what makes load shares no connections with what is measured"),
    ("observe", "engine", "observe sees the daemon only from outside"),
    ("observe", "net", "observe sees the daemon only from outside"),
    ("observe", "manager", "the manager starts it and must not wait for it"),
    ("observe", "worker", "observe sees the daemon only from outside"),
    ("fleet-agent", "manager", "the manager starts it and must not wait for it"),
    ("fleet-agent", "engine", "the agent sees the daemon only over its link"),
    ("fleet-agent", "control", "the agent reaches the worker only through the manager"),
    ("vcl-test", "net", "the cases of a VCL run without sockets"),
    ("engine", "vcl-test", "the engine knows nothing of its tests"),
    ("vtc", "engine", "the test runner sees the daemon only from outside"),
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files with an extension below a folder, except build output, corpora and hidden ones.
pub fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if is_hidden || path.ends_with("target") || path.ends_with("corpus") {
            continue;
        }
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files
}

/// Every crate under `crates/` with the workspace crates it depends on (not for tests).
pub fn dependencies() -> BTreeMap<String, Vec<String>> {
    let names: Vec<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names
        .iter()
        .map(|name| {
            let manifest = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
            let section = manifest.split("[dependencies]").nth(1).unwrap_or("").split("\n[").next().unwrap_or("");
            let used = section
                .lines()
                .filter_map(|line| line.split(['.', '=', ' ']).next())
                .filter(|word| names.iter().any(|name| name == word))
                .map(str::to_owned)
                .collect();
            (name.clone(), used)
        })
        .collect()
}

fn layer(name: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| layer.contains(&name))
        .unwrap_or_else(|| panic!("crate {name} stands in no layer: name it in layers.rs and ARCHITECTURE.md"))
}

#[test]
fn arrows_point_down_only() {
    for (name, used) in dependencies() {
        for dependency in used {
            assert!(layer(&dependency) <= layer(&name), "{name} must not depend on {dependency}, which is above it");
        }
    }
}

#[test]
fn forbidden_edges_are_not() {
    let dependencies = dependencies();
    for (from, to, reason) in NEVER {
        // Indirect edges count too.
        let mut reached = dependencies[*from].clone();
        let mut at = 0;
        while at < reached.len() {
            assert!(reached[at] != *to, "{from} must not reach {to}: {reason}");
            let more: Vec<String> =
                dependencies[&reached[at]].iter().filter(|name| !reached.contains(name)).cloned().collect();
            reached.extend(more);
            at += 1;
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_but_for_four_crates() {
    for name in dependencies().keys() {
        if ["shm", "store", "net", "control"].contains(&name.as_str()) {
            continue;
        }
        let file = if name == "copal" { "main.rs" } else { "lib.rs" };
        let text = std::fs::read_to_string(root().join("crates").join(name).join("src").join(file)).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name}/src/{file} must forbid unsafe code");
    }
}
