//! Findings for programs: one JSON document, SARIF 2.1.0, annotations of GitHub Actions.
//!
//! SARIF and annotations name files relative to the current directory, as code scanning expects
//! them. SARIF regions have lines only: its columns count UTF-16 units, those of messages count
//! tabs as eight.

use super::super::json::{message, place_value};
use super::report::Report;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use surface::lint::{Level, RULES};
use vcl::{Diagnostic, Finding, Place, Severity};

/// Findings and messages of the compiler, with counts over all files.
pub(super) fn json(reports: &[Report]) -> Value {
    let (mut findings, mut diagnostics) = (Vec::new(), Vec::new());
    let (mut suppressed, mut hidden) = (0, 0);
    for report in reports {
        match &report.result {
            Ok(linted) => {
                findings.extend(linted.findings.iter().map(|finding| finding_value(&report.name, finding)));
                suppressed += linted.suppressed;
                hidden += linted.hidden;
            }
            Err(error) => {
                diagnostics.extend(error.diagnostics.iter().map(|diagnostic| message(&report.name, diagnostic)));
                hidden += error.hidden;
            }
        }
    }
    let count = |level| reports.iter().map(|report| report.count(level)).sum::<usize>();
    json!({
        "errors": count(Level::Error),
        "warnings": count(Level::Warning),
        "notes": count(Level::Note),
        "suppressed": suppressed,
        "not_shown": hidden,
        "findings": findings,
        "diagnostics": diagnostics,
    })
}

fn finding_value(main: &str, finding: &Finding) -> Value {
    let row = finding.rule.row();
    let mut value = place_value(&finding.place);
    value["main"] = Value::from(main);
    value["rule"] = Value::from(row.id);
    value["level"] = Value::from(row.level.name());
    value["title"] = Value::from(row.title);
    value["message"] = Value::from(finding.message.as_str());
    value["hint"] = Value::from(finding.hint.as_str());
    value["why"] = Value::from(row.why);
    value["excerpt"] = Value::from(finding.place.excerpt.as_str());
    value["fix"] = finding.fix.as_ref().map_or(Value::Null, |fix| {
        let mut value = place_value(&fix.place);
        value["replacement"] = Value::from(fix.replacement.as_str());
        value
    });
    let related = finding.related.iter().map(|(words, place)| {
        let mut value = place_value(place);
        value["message"] = Value::from(words.as_str());
        value
    });
    value["related"] = Value::from_iter(related);
    value
}

/// The log of one run.
pub(super) fn sarif(reports: &[Report]) -> Value {
    let rules = RULES.iter().map(|row| {
        json!({
            "id": format!("copal/{}", row.id),
            "shortDescription": { "text": row.title },
            "fullDescription": { "text": row.why },
            "help": { "text": row.hint },
            "defaultConfiguration": { "level": row.level.name() },
        })
    });
    let mut results = Vec::new();
    for report in reports {
        match &report.result {
            Ok(linted) => results.extend(linted.findings.iter().map(sarif_finding)),
            Err(error) => results.extend(error.diagnostics.iter().map(sarif_message)),
        }
    }
    let driver = json!({
        "name": "copal vcl lint",
        "semanticVersion": surface::version::COPAL_VERSION,
        "rules": Value::from_iter(rules),
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    })
}

fn sarif_finding(finding: &Finding) -> Value {
    let row = finding.rule.row();
    let related = finding.related.iter().map(|(words, place)| {
        let mut value = sarif_place(place);
        value["message"] = json!({ "text": words });
        value
    });
    json!({
        "ruleId": format!("copal/{}", row.id),
        "ruleIndex": finding.rule as usize,
        "level": row.level.name(),
        "message": { "text": format!("{}: {}", finding.message, finding.hint) },
        "locations": [sarif_place(&finding.place)],
        "relatedLocations": Value::from_iter(related),
    })
}

fn sarif_message(diagnostic: &Diagnostic) -> Value {
    json!({
        "ruleId": diagnostic.code.number(),
        "level": severity(diagnostic),
        "message": { "text": diagnostic.message() },
        "locations": Value::from_iter(diagnostic.place().map(sarif_place)),
    })
}

fn severity(diagnostic: &Diagnostic) -> &'static str {
    match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn sarif_place(place: &Place) -> Value {
    let uri: String = relative(&place.file).bytes().map(uri_byte).collect();
    let region = json!({ "startLine": place.line, "endLine": place.end_line });
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri }, "region": region } })
}

/// A byte of a path as a URI has it.
fn uri_byte(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

/// The name of a file in the current directory.
fn relative(file: &str) -> String {
    let here = std::env::current_dir().ok();
    let inner = here.and_then(|here| Path::new(file).strip_prefix(here).ok().map(|path| path.display().to_string()));
    inner.unwrap_or_else(|| file.to_owned())
}

/// One workflow command a line.
pub(super) fn github(reports: &[Report]) -> String {
    let mut out = String::new();
    let mut write = |level: &str, place: Option<&Place>, title: &str, text: &str| {
        let place = place.map(|place| {
            let file = property(&relative(&place.file));
            format!("file={file},line={},endLine={},", place.line, place.end_line)
        });
        let place = place.unwrap_or_default();
        let _ = writeln!(out, "::{level} {place}title={}::{}", property(title), data(text));
    };
    for report in reports {
        match &report.result {
            Ok(linted) => {
                for finding in &linted.findings {
                    let row = finding.rule.row();
                    let level = match row.level {
                        Level::Note => "notice",
                        Level::Warning => "warning",
                        Level::Error => "error",
                    };
                    let title = format!("copal/{} {}", row.id, row.title);
                    let text = format!("{}: {}", finding.message, finding.hint);
                    write(level, Some(&finding.place), &title, &text);
                }
            }
            Err(error) => {
                for diagnostic in &error.diagnostics {
                    write(severity(diagnostic), diagnostic.place(), diagnostic.code.number(), &diagnostic.message());
                }
            }
        }
    }
    out
}

/// Text of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
