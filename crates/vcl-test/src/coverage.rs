//! Lines of the VCL that the cases ran: as text, and in the format of lcov.

use crate::facts::Line;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use surface::legible;
use vcl_run::program::Program;

/// Number of runs by line, for each source but the built-in VCL. Sources have the names of their
/// files, so that cases compiled with other parameters count together.
#[derive(Default)]
pub(crate) struct Coverage {
    files: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl Coverage {
    /// Adds the lines that can run.
    pub(crate) fn add_program(&mut self, program: &Program) {
        for point in &program.points {
            if let Some(name) = source(program, point.source) {
                self.files.entry(name.to_owned()).or_default().entry(point.line).or_default();
            }
        }
    }

    /// Counts lines that ran.
    pub(crate) fn count(&mut self, program: &Program, lines: &[Line]) {
        for &(number, line) in lines {
            if let Some(name) = source(program, number) {
                *self.files.entry(name.to_owned()).or_default().entry(line).or_default() += 1;
            }
        }
    }

    /// A line for each file: how much of it ran, and the lines that did not.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (name, lines) in &self.files {
            let ran = lines.values().filter(|count| **count > 0).count();
            let percent = (ran * 100).checked_div(lines.len()).unwrap_or(100);
            let missed: Vec<u32> = lines.iter().filter(|(_, count)| **count == 0).map(|(line, _)| *line).collect();
            let _ = write!(out, "{}: {ran} of {} lines ({percent} %)", legible::line(name.as_bytes()), lines.len());
            let _ = match missed.is_empty() {
                true => writeln!(out),
                false => writeln!(out, "; not run: {}", ranges(&missed)),
            };
        }
        out
    }

    /// The format of lcov's tracefiles.
    pub(crate) fn lcov(&self) -> String {
        let mut out = String::new();
        for (name, lines) in &self.files {
            let _ = writeln!(out, "TN:\nSF:{}", legible::line(name.as_bytes()));
            for (line, count) in lines {
                let _ = writeln!(out, "DA:{line},{count}");
            }
            let ran = lines.values().filter(|count| **count > 0).count();
            let _ = writeln!(out, "LF:{}\nLH:{ran}\nend_of_record", lines.len());
        }
        out
    }
}

/// The name of a source; `None` for the built-in VCL.
fn source(program: &Program, number: u32) -> Option<&str> {
    let name = program.sources.get(number as usize)?.name.as_str();
    (!name.starts_with("<builtin")).then_some(name)
}

/// `3, 7-9`
fn ranges(lines: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &line in lines {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => parts.push((line, line)),
        }
    }
    let shown = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_lines_are_a_range() {
        assert_eq!(ranges(&[3, 7, 8, 9, 11]), "3, 7-9, 11");
        assert_eq!(ranges(&[]), "");
    }
}
