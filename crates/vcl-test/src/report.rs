//! Results for people, for TAP and for JUnit.

use crate::runner::{Failure, Job, Outcome};
use std::fmt::Write as _;
use surface::legible;

/// The lines below a case that has failed.
fn details(job: &Job, outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    match &outcome.result {
        Err(text) => lines.extend(text.lines().map(str::to_owned)),
        Ok(failures) => {
            let mut last = None;
            for failure in failures {
                if last != Some(failure.step) {
                    lines.push(request(job, failure));
                    last = Some(failure.step);
                }
                let mismatch = &failure.mismatch;
                lines.push(format!("  {}: expected {}, got {}", mismatch.name, mismatch.expected, mismatch.got));
                lines.extend(failure.why.iter().map(|why| format!("    {why}")));
            }
        }
    }
    lines.iter().map(|line| legible::line(line.as_bytes()).into_owned()).collect()
}

fn request(job: &Job, failure: &Failure) -> String {
    let step = &job.case.steps[failure.step];
    let after = if step.after > 0.0 { format!(", {} s later", step.after) } else { String::new() };
    format!("request {}{after}: {} {}", failure.step + 1, step.request.method, step.request.url)
}

fn place(job: &Job) -> String {
    let whole = format!("{}:{}: {}", job.case.file, job.case.line, job.case.name);
    legible::line(whole.as_bytes()).into_owned()
}

/// One case as text.
pub(crate) fn text(job: &Job, outcome: &Outcome) -> String {
    let word = if outcome.has_passed() { "ok  " } else { "FAIL" };
    let mut out = format!("{word} {}\n", place(job));
    for line in details(job, outcome) {
        let _ = writeln!(out, "     {line}");
    }
    out
}

/// The last line of the text.
pub(crate) fn summary(cases: usize, failed: usize, seconds: f64) -> String {
    let noun = if cases == 1 { "case" } else { "cases" };
    format!("{cases} {noun}, {failed} failed, {seconds:.2} s\n")
}

/// The first lines of TAP.
pub(crate) fn tap_head(cases: usize) -> String {
    format!("TAP version 13\n1..{cases}\n")
}

/// One case in TAP; `number` is from 1.
pub(crate) fn tap(number: usize, job: &Job, outcome: &Outcome) -> String {
    let word = if outcome.has_passed() { "ok" } else { "not ok" };
    // A mark of TAP's directives.
    let mut out = format!("{word} {number} - {}\n", place(job).replace('#', "\\#"));
    for line in details(job, outcome) {
        let _ = writeln!(out, "# {line}");
    }
    out
}

/// A report in JUnit's XML.
pub(crate) fn junit(results: &[(Job, Outcome)]) -> String {
    let failed = results.iter().filter(|(_, outcome)| !outcome.has_passed()).count();
    let seconds: f64 = results.iter().map(|(_, outcome)| outcome.seconds).sum();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"copal vcl test\" tests=\"{}\" failures=\"{failed}\" time=\"{seconds:.3}\">\n",
        results.len()
    );
    for (job, outcome) in results {
        let (name, file) = (xml(&job.case.name), xml(&job.case.file));
        let _ = write!(out, "  <testcase name=\"{name}\" classname=\"{file}\" time=\"{:.3}\"", outcome.seconds);
        if outcome.has_passed() {
            out.push_str("/>\n");
            continue;
        }
        let lines = details(job, outcome);
        let first = lines.iter().find(|line| line.contains("expected")).or(lines.first());
        let message = first.map_or("", |line| line.trim());
        let _ = writeln!(
            out,
            ">\n    <failure message=\"{}\">{}</failure>\n  </testcase>",
            xml(message),
            xml(&lines.join("\n"))
        );
    }
    out.push_str("</testsuite>\n");
    out
}

/// Text in XML: only characters that XML permits.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for letter in legible::lines(text.as_bytes()).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            _ => out.push(letter),
        }
    }
    out
}
