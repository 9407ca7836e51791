//! The output about a test: one line if it passed; otherwise the script line that failed, the
//! expected and the received data, and the last lines of all actors involved. The whole log is
//! printed on request (`-v`).

use std::fmt::Write;

use crate::runner::job::{Ended, Verdict};

/// Log lines shown for an actor that failed.
const LINES_OF_FAILED: usize = 25;
/// Log lines shown for other actors.
const LINES_OF_OTHERS: usize = 20;
/// Longest line, in bytes.
const LINE_BYTES: usize = 400;

/// One line of a log.
struct Line<'a> {
    name: &'a str,
    lead: &'a str,
    seconds: &'a str,
    text: &'a str,
}

/// The output about a test. `verbosity` is 0 for failures only, 1, or 2 for everything.
pub fn of(script: &str, ended: &Ended, log: &[u8], verbosity: u8) -> String {
    let mut text = String::new();
    let log = String::from_utf8_lossy(log);
    let seconds = ended.seconds;
    if verbosity > 1 {
        text.push_str(&log);
        if !log.ends_with('\n') && !log.is_empty() {
            text.push('\n');
        }
    }
    if ended.timed_out {
        let _ = writeln!(text, "#    top  TEST {script} TIMED OUT (kill -9)");
    }
    match ended.verdict {
        Verdict::Failed => {
            if verbosity > 0 {
                text.push_str(&failure(script, &log, verbosity));
            }
            let _ = writeln!(text, "#    top  TEST {script} FAILED ({seconds:.3}) {}", ended.how);
        }
        Verdict::Passed if verbosity > 0 => {
            let _ = writeln!(text, "#    top  TEST {script} passed ({seconds:.3})");
        }
        Verdict::Skipped if verbosity > 0 => {
            let reason = lines(&log).into_iter().find(|line| line.text.starts_with("SKIPPING test"));
            let reason = reason.map_or(String::new(), |line| line.text.replacen("SKIPPING test", "", 1));
            let _ = writeln!(text, "#    top  TEST {script} skipped ({seconds:.3}){reason}");
        }
        _ => {}
    }
    text
}

/// The failure, and the lines before it.
fn failure(script: &str, log: &str, verbosity: u8) -> String {
    let mut text = String::new();
    let lines = lines(log);
    let failed: Vec<&Line> = lines.iter().filter(|line| line.lead == "----").collect();
    let mut names: Vec<&str> = Vec::new();
    for line in &failed {
        match line.text.strip_prefix("at line ") {
            Some(place) => {
                let (number, command) = place.split_once(": ").unwrap_or((place.trim_end_matches(':'), ""));
                let _ = writeln!(text, "{script}:{number}: {}", cut(command));
            }
            None => {
                let _ = writeln!(text, "{script}: {}: {}", line.name, cut(line.text));
            }
        }
        if !names.contains(&line.name) {
            names.push(line.name);
        }
    }
    if verbosity > 1 {
        return text;
    }
    if failed.is_empty() {
        let last = lines.iter().rev().find(|line| line.name == "top" && line.text.starts_with("=== "));
        if let Some(last) = last {
            let _ = writeln!(text, "{script}: the script was at: {}", cut(&last.text[4..]));
        }
    }
    let culprits = names.len();
    for line in &lines {
        // The script's own position has been shown, unless no actor has failed.
        let is_of_use = !line.name.is_empty() && (culprits == 0 || line.name != "top");
        if is_of_use && !names.contains(&line.name) {
            names.push(line.name);
        }
    }
    for (index, name) in names.iter().enumerate() {
        let most = if index < culprits { LINES_OF_FAILED } else { LINES_OF_OTHERS };
        let all: Vec<&Line> = lines.iter().filter(|line| line.name == *name && !is_noise(line)).collect();
        let shown = &all[all.len().saturating_sub(most)..];
        if shown.len() < all.len() {
            let _ = writeln!(text, "--- {name}: the last {} of {} lines", shown.len(), all.len());
        } else {
            let _ = writeln!(text, "--- {name}:");
        }
        for line in shown {
            let Line { lead, name, seconds, text: said } = line;
            let _ = writeln!(text, "{lead} {name:<5} {seconds:>6} {}", cut(said));
        }
    }
    text.push_str("--- (-v shows the whole log, -l leaves the test's folder)\n");
    text
}

/// True for macros, and for heads that have already been shown as received.
fn is_noise(line: &Line) -> bool {
    ["extmacro def ", "macro def ", "macro undef ", "http["].iter().any(|start| line.text.starts_with(start))
}

fn cut(text: &str) -> String {
    if text.len() <= LINE_BYTES {
        return text.to_owned();
    }
    let mut end = LINE_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

/// The lines of a log; those with only the time are merged into the following ones.
fn lines(log: &str) -> Vec<Line<'_>> {
    let mut seconds = "";
    let mut lines = Vec::new();
    for line in log.lines() {
        let lead = line.get(..4).unwrap_or_default();
        let is_lead = matches!(lead, "----" | "*   " | "**  " | "*** " | "****") && line.get(4..5) == Some(" ");
        if !is_lead {
            // The rest of a broken line, or the text of a panic.
            let name = lines.last().map_or("", |last: &Line| last.name);
            lines.push(Line { name, lead: "    ", seconds, text: line });
            continue;
        }
        let rest = &line[5..];
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let text = if name.len() < 5 { text.get(5 - name.len()..).unwrap_or_default() } else { text };
        if name == "dT" {
            seconds = text.trim();
            continue;
        }
        lines.push(Line { name, lead, seconds, text });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
**** dT    0.001
*    top   TEST x.vtc starting
**   c1    === expect resp.status == 200
**** dT    1.250
---- c1    EXPECT resp.status (503) == \"200\" failed
---- c1    at line 12: expect resp.status == 200
**** v1    vsl|       1000 Begin           c sess 0 HTTP/1
panicked at somewhere
";

    fn ended(verdict: Verdict) -> Ended {
        Ended { verdict, seconds: 1.3, timed_out: false, how: "exit=2".to_owned() }
    }

    #[test]
    fn failure_is_reported_with_its_line_and_context() {
        let text = of("x.vtc", &ended(Verdict::Failed), LOG.as_bytes(), 1);
        assert!(text.starts_with("x.vtc: c1: EXPECT resp.status (503) == \"200\" failed\nx.vtc:12: expect"), "{text}");
        assert!(text.contains("**   c1     0.001 === expect") && text.contains("**** v1     1.250 vsl|"), "{text}");
        assert!(text.contains("panicked at somewhere"), "{text}");
        assert!(text.ends_with("#    top  TEST x.vtc FAILED (1.300) exit=2\n"), "{text}");
    }

    #[test]
    fn output_depends_on_the_verbosity() {
        assert_eq!(of("x.vtc", &ended(Verdict::Passed), LOG.as_bytes(), 1), "#    top  TEST x.vtc passed (1.300)\n");
        assert_eq!(of("x.vtc", &ended(Verdict::Passed), LOG.as_bytes(), 0), "");
        assert!(of("x.vtc", &ended(Verdict::Passed), LOG.as_bytes(), 2).starts_with(LOG));
        assert_eq!(of("x.vtc", &ended(Verdict::Failed), LOG.as_bytes(), 0).lines().count(), 1);
        let skipped = "*    top   SKIPPING test, lacking feature: root\n";
        let text = of("x.vtc", &ended(Verdict::Skipped), skipped.as_bytes(), 1);
        assert_eq!(text, "#    top  TEST x.vtc skipped (1.300), lacking feature: root\n");
        for log in ["", "\u{fffd}", "****", "----", "**** \n", "*** é", "----  x"] {
            of("x.vtc", &ended(Verdict::Failed), log.as_bytes(), 1);
        }
    }
}
