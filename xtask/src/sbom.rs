//! `cargo xtask sbom`: the crates that are compiled into the program, as a bill of materials
//! (CycloneDX 1.6, JSON), from `cargo metadata` and the checksums of Cargo.lock.
//!
//! Left out: crates of macros and of build scripts, and what only they need. C code in the program
//! comes with crates: `aws-lc-sys`, `pcre2-sys`, `zstd-sys`. The same commit gives the same bytes,
//! so there is neither a time nor a serial number.

use crate::task::option;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Runs the task: `--out FILE`, otherwise standard output.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let bill = bill()?;
    match option(arguments, "--out") {
        Some(file) => std::fs::write(file, bill).map_err(|error| format!("{file}: {error}")),
        None => {
            print!("{bill}");
            Ok(())
        }
    }
}

/// The bill of the program of this workspace, for this kind of machine.
///
/// # Errors
/// cargo fails, or Cargo.lock cannot be read.
pub fn bill() -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace is gone")?;
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &platform])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let bill = of_metadata(&metadata, &checksums(&lock)).ok_or("cargo metadata has another form than expected")?;
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())?))
}

/// The checksums (SHA-256) of crates in a Cargo.lock, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let of = |entry: &str, key: &str| {
        let value = entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]").skip(1);
    entries.filter_map(|entry| Some(((of(entry, "name")?, of(entry, "version")?), of(entry, "checksum")?))).collect()
}

/// A crate with the crates that it links.
struct Part<'a> {
    package: &'a Value,
    links: BTreeSet<&'a str>,
}

/// `None`: the metadata has another form than expected.
fn of_metadata(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Option<Value> {
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> =
        metadata["resolve"]["nodes"].as_array()?.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let program = *packages.iter().find(|(_, package)| package["name"] == "copal")?.0;
    let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
    let mut waiting = vec![program];
    while let Some(id) = waiting.pop() {
        if parts.contains_key(id) {
            continue;
        }
        let links = linked(nodes.get(id)?, &packages);
        waiting.extend(&links);
        parts.insert(id, Part { package: packages.get(id)?, links });
    }
    let reference = |id: &str| parts.get(id).map(|part| url(part.package));
    let mut components: Vec<Value> = parts
        .iter()
        .filter(|(id, _)| **id != program)
        .map(|(_, part)| component(part.package, "library", checksums))
        .collect();
    components.sort_by_key(|component| component["bom-ref"].as_str().unwrap_or_default().to_owned());
    let mut dependencies: Vec<Value> = parts
        .values()
        .map(|part| {
            let mut links: Vec<_> = part.links.iter().filter_map(|id| reference(id)).collect();
            links.sort();
            json!({ "ref": url(part.package), "dependsOn": links })
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].as_str().unwrap_or_default().to_owned());
    Some(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": component(packages.get(program)?, "application", checksums) },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The crates that a crate links: no build or test dependencies, no macros.
fn linked<'a>(node: &'a Value, packages: &BTreeMap<&'a str, &'a Value>) -> BTreeSet<&'a str> {
    let is_macro = |id: &str| {
        let targets = packages.get(id).and_then(|package| package["targets"].as_array());
        targets.is_some_and(|targets| targets.iter().any(|target| target["kind"][0] == "proc-macro"))
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| {
            dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        })
        .filter_map(|dependency| dependency["pkg"].as_str())
        .filter(|id| !is_macro(id))
        .collect()
}

/// Package URL of a crate, which is also its reference in the bill.
fn url(package: &Value) -> String {
    let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default());
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn component(package: &Value, kind: &str, checksums: &BTreeMap<(String, String), String>) -> Value {
    let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default().to_owned());
    let mut component = json!({
        "type": kind,
        "bom-ref": url(package),
        "name": name,
        "version": version,
        "purl": url(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // `/` is an old form of `OR`.
        component["licenses"] = json!([{ "expression": licence.replace(" / ", "/").replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_what_is_linked_and_nothing_else() {
        let package = |name: &str, kind: &str| json!({ "id": name, "name": name, "version": "1.0.0+c", "license": "MIT/Apache-2.0", "targets": [{ "kind": [kind] }] });
        let dependency = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let node = |name: &str, deps: Vec<Value>| json!({ "id": name, "deps": deps });
        let metadata = json!({
            "packages": [package("copal", "bin"), package("used", "lib"), package("below", "lib"), package("macros", "proc-macro"), package("tests", "lib"), package("script", "lib")],
            "resolve": { "nodes": [
                node("copal", vec![dependency("used", Value::Null), dependency("macros", Value::Null), dependency("tests", json!("dev")), dependency("script", json!("build"))]),
                node("used", vec![dependency("below", Value::Null)]),
                node("below", vec![]),
                node("macros", vec![dependency("script", Value::Null)]),
                node("tests", vec![]),
                node("script", vec![]),
            ] },
        });
        let lock = "[[package]]\nname = \"below\"\nversion = \"1.0.0+c\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"used\"\nversion = \"1.0.0+c\"\n";
        let bill = of_metadata(&metadata, &checksums(lock)).unwrap();
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().filter_map(|part| part["name"].as_str()).collect();
        assert_eq!(names, ["below", "used"]);
        let below = &bill["components"][0];
        assert_eq!(below["purl"], "pkg:cargo/below@1.0.0%2Bc");
        assert_eq!(below["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(below["hashes"][0]["content"], "ab");
        assert_eq!(bill["components"][1]["hashes"], Value::Null, "there is none");
        assert_eq!(bill["metadata"]["component"]["name"], "copal");
        assert_eq!(bill["dependencies"][1]["dependsOn"], json!(["pkg:cargo/used@1.0.0%2Bc"]));
        assert_eq!(of_metadata(&json!({}), &BTreeMap::new()), None);
    }
}
