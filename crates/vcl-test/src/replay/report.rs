//! The reports of a replay: text, JSON and Markdown.

use super::summary::{Example, Summary, Totals};
use serde_json::{Value, json};
use std::fmt::Write as _;
use surface::quantity::size;
use surface::replay::DifferenceClass;

/// Form of a report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Markdown,
}

/// The contents of a report.
pub(super) struct Report<'a> {
    pub(super) summary: &'a Summary,
    /// The old VCL was replayed too.
    pub(super) has_old: bool,
    /// Limits that were passed, in words.
    pub(super) passed: &'a [String],
    /// The reason why nothing follows from the replay.
    pub(super) fault: Option<&'a str>,
    pub(super) status: i32,
}

impl Report<'_> {
    pub(super) fn write(&self, form: Form) -> String {
        match form {
            Form::Text => self.text(),
            Form::Json => format!("{}\n", self.object()),
            Form::Markdown => self.markdown(),
        }
    }

    fn classes(&self) -> impl Iterator<Item = (DifferenceClass, u64, f64)> {
        let all = DifferenceClass::ALL.into_iter();
        all.map(|class| (class, self.summary.count(class), self.summary.share(class)))
            .filter(|(_, count, _)| *count > 0)
    }

    /// Requests that were not compared, by cause.
    fn left_out(&self) -> Vec<String> {
        let summary = self.summary;
        let causes = [
            (summary.cut, "incomplete in the recording"),
            (summary.skipped, "relayed or ended early"),
            (summary.unknown, "with a response from before the recording (see --warm)"),
        ];
        causes.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect()
    }

    fn remarks(&self) -> Vec<String> {
        let summary = self.summary;
        let mut remarks = Vec::new();
        if let Some(damage) = summary.damage {
            remarks.push(format!("The recording is damaged: {damage}. What comes before was replayed."));
        }
        if summary.lost > 0 {
            remarks.push(format!("Requests are missing from the recording at {} places.", summary.lost));
        }
        if summary.similar > 0 {
            let count = summary.similar;
            remarks.push(format!("{count} responses of the origin were recorded with other cookies or credentials."));
        }
        if summary.fragments > 0 {
            remarks.push(format!("{} fragments (ESI) are not replayed.", summary.fragments));
        }
        remarks
    }

    fn text(&self) -> String {
        let summary = self.summary;
        let mut out = String::new();
        let _ = writeln!(out, "{} requests recorded, {} compared", summary.recorded, summary.compared);
        let left_out = self.left_out();
        if !left_out.is_empty() {
            let _ = writeln!(out, "  left out: {}", left_out.join(", "));
        }
        if self.has_old {
            let (noise, percent) = (summary.noise, summary.noise_percent());
            let _ = writeln!(out, "  old VCL against the recording: {noise} requests differ ({percent:.2} %)");
            for example in summary.noise_examples.iter() {
                let _ = writeln!(out, "    {}: {}", example.request, example.text);
            }
        }
        for remark in self.remarks() {
            let _ = writeln!(out, "  {remark}");
        }
        let (before, after) = (summary.before, summary.after);
        let _ = writeln!(out, "\n{:24}{:>12}{:>12}", "", "before", "after");
        let ratio = |totals: Totals| format!("{:.1} %", totals.hit_percent());
        for (name, one, other) in [
            ("hit ratio", ratio(before), ratio(after)),
            ("requests to the origin", before.fetches.to_string(), after.fetches.to_string()),
            ("bytes from the origin", size(before.bytes), size(after.bytes)),
        ] {
            let _ = writeln!(out, "{name:24}{one:>12}{other:>12}");
        }
        let _ = writeln!(out, "\n{} requests differ", summary.differing);
        for (class, count, share) in self.classes() {
            let _ = writeln!(out, "\n{:11} {count:>6}  {share:>6.2} %  {}", class.word(), class.text());
            for example in summary.examples_of(class) {
                let _ = writeln!(out, "  {} (at {:.3} s): {}", example.request, example.at, example.text);
                for line in &example.lines {
                    let _ = writeln!(out, "    {line}");
                }
            }
        }
        for text in self.passed {
            let _ = writeln!(out, "\nlimit passed: {text}");
        }
        if let Some(fault) = self.fault {
            let _ = writeln!(out, "\n{fault}");
        }
        out
    }

    fn object(&self) -> Value {
        let summary = self.summary;
        let totals = |totals: Totals| json!({"requests": totals.requests, "hits": totals.hits, "fetches": totals.fetches, "bytes": totals.bytes});
        let example = |example: &Example| json!({"request": example.request, "at": example.at, "text": example.text, "lines": example.lines});
        let class = |(class, count, share): (DifferenceClass, u64, f64)| {
            let examples: Vec<Value> = summary.examples_of(class).map(example).collect();
            json!({"class": class.word(), "requests": count, "percent": share, "examples": examples})
        };
        json!({
            "recorded": summary.recorded, "compared": summary.compared, "differing": summary.differing,
            "cut": summary.cut, "skipped": summary.skipped, "unknown": summary.unknown,
            "noise": if self.has_old { json!(summary.noise) } else { Value::Null },
            "lost": summary.lost, "similar": summary.similar, "fragments": summary.fragments, "damage": summary.damage,
            "before": totals(summary.before), "after": totals(summary.after),
            "differences": self.classes().map(class).collect::<Vec<_>>(),
            "limits_passed": self.passed, "fault": self.fault, "status": self.status,
        })
    }

    fn markdown(&self) -> String {
        let summary = self.summary;
        let mut out = format!("### VCL replay: {} of {} requests differ\n\n", summary.differing, summary.compared);
        let (before, after) = (summary.before, summary.after);
        out.push_str("| | before | after |\n| --- | ---: | ---: |\n");
        let _ = writeln!(out, "| hit ratio | {:.1} % | {:.1} % |", before.hit_percent(), after.hit_percent());
        let _ = writeln!(out, "| requests to the origin | {} | {} |", before.fetches, after.fetches);
        let _ = writeln!(out, "| bytes from the origin | {} | {} |", size(before.bytes), size(after.bytes));
        if summary.differing > 0 {
            out.push_str("\n| difference | requests | share | example |\n| --- | ---: | ---: | --- |\n");
        }
        for (class, count, share) in self.classes() {
            let example = summary.examples_of(class).next();
            let example = example.map(|one| cell(&format!("{}: {}", one.request, one.text))).unwrap_or_default();
            let _ = writeln!(out, "| {} | {count} | {share:.2} % | {example} |", class.text());
        }
        for text in self.passed.iter().map(String::as_str).chain(self.fault) {
            let _ = writeln!(out, "\n**{text}**");
        }
        for remark in self.left_out().into_iter().map(|text| format!("{text}.")).chain(self.remarks()) {
            let _ = writeln!(out, "\n{remark}");
        }
        out
    }
}

/// Text in a cell of a table, as code.
fn cell(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
