//! The report: a list by verdict for people, one document for programs.

use serde_json::{Value, json};
use std::io::{self, Write};
use surface::legible;

/// Verdict on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It works as it is.
    Works,
    /// It is accepted with a difference; or it could not be checked.
    Changes,
    /// The daemon would not start, or would not do what the setting demands.
    Blocks,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Blocks, Verdict::Changes, Verdict::Works];

    fn word(self) -> &'static str {
        match self {
            Verdict::Works => "works",
            Verdict::Changes => "changes",
            Verdict::Blocks => "blocks",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Verdict::Works => "works as it is",
            Verdict::Changes => "changes",
            Verdict::Blocks => "blocks",
        }
    }
}

/// Position of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file, or `command line`.
    pub(crate) file: String,
    /// The line, from 1; 0 = the file as a whole.
    pub(crate) line: usize,
}

impl Place {
    pub(crate) fn new(file: &str, line: usize) -> Place {
        Place { file: file.to_owned(), line }
    }
}

/// One checked item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) place: Place,
    /// The item and, unless it just works, the reason.
    pub(crate) what: String,
    /// Remedy; empty if none is needed.
    pub(crate) remedy: String,
}

/// All findings.
#[derive(Debug, Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
    /// The files that were read.
    read: Vec<String>,
    /// The final command line, word by word.
    pub(crate) command: Vec<String>,
}

impl Report {
    pub(crate) fn works(&mut self, place: &Place, what: impl Into<String>) {
        self.add(Verdict::Works, place, what.into(), String::new());
    }

    pub(crate) fn changes(&mut self, place: &Place, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Verdict::Changes, place, what.into(), remedy.into());
    }

    pub(crate) fn blocks(&mut self, place: &Place, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Verdict::Blocks, place, what.into(), remedy.into());
    }

    fn add(&mut self, verdict: Verdict, place: &Place, what: String, remedy: String) {
        let finding = Finding { verdict, place: place.clone(), what, remedy };
        // A file that is named twice is not reported twice.
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Records that a file was read.
    pub(crate) fn note_read(&mut self, file: &str) {
        if !self.read.iter().any(|known| known == file) {
            self.read.push(file.to_owned());
        }
    }

    /// The worst verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Works)
    }

    /// The exit status.
    pub(crate) fn status(&self) -> i32 {
        match self.verdict() {
            Verdict::Works => 0,
            Verdict::Changes => 1,
            Verdict::Blocks => 2,
        }
    }

    fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.verdict == verdict)
    }

    /// Text for people; with `problems` without the working items.
    pub(crate) fn write_text(&self, output: &mut dyn Write, problems: bool) -> io::Result<()> {
        let files: Vec<_> = self.read.iter().map(|file| legible::line(file.as_bytes())).collect();
        if !files.is_empty() {
            writeln!(output, "read: {}", files.join(", "))?;
        }
        for verdict in Verdict::ALL {
            if self.of(verdict).next().is_none() || problems && verdict == Verdict::Works {
                continue;
            }
            writeln!(output, "\n{}:", verdict.heading())?;
            for finding in self.of(verdict) {
                let Place { file, line } = &finding.place;
                let place = if *line == 0 { file.clone() } else { format!("{file}:{line}") };
                let what = finding.what.trim_end().replace('\n', "\n      ");
                writeln!(output, "  {}: {}", legible::line(place.as_bytes()), legible::lines(what.as_bytes()))?;
                if !finding.remedy.is_empty() {
                    writeln!(output, "      -> {}", legible::line(finding.remedy.as_bytes()))?;
                }
            }
        }
        if !self.command.is_empty() {
            // A word that blocks is not part of the line, so the line should not be used as it is.
            let is_whole = self.of(Verdict::Blocks).next().is_none();
            let heading = if is_whole { "to start" } else { "to start, without what blocks" };
            writeln!(output, "\n{heading}:\n  {}", legible::line(self.command.join(" ").as_bytes()))?;
        }
        let count = |verdict| self.of(verdict).count();
        writeln!(
            output,
            "\n{} block, {} change, {} work as they are",
            count(Verdict::Blocks),
            count(Verdict::Changes),
            count(Verdict::Works)
        )
    }

    /// JSON for programs.
    pub(crate) fn write_json(&self, output: &mut dyn Write) -> io::Result<()> {
        let findings = self.findings.iter().map(|finding| {
            json!({
                "verdict": finding.verdict.word(),
                "file": finding.place.file,
                "line": if finding.place.line == 0 { Value::Null } else { Value::from(finding.place.line) },
                "what": finding.what.trim_end(),
                "remedy": if finding.remedy.is_empty() { Value::Null } else { Value::from(finding.remedy.as_str()) },
            })
        });
        let document = json!({
            "verdict": self.verdict().word(),
            "read": self.read,
            "findings": Value::from_iter(findings),
            "command": self.command,
        });
        writeln!(output, "{}", legible::json(&format!("{document:#}")))
    }
}
