//! Output of the results: tables, JSON, plots, and the page.

use super::rows::{Family, Row, Scene};
use crate::measure::Measured;
use crate::place::median;
use crate::plot::{Frame, Line, draw, round_top, short};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Columns, the floor first.
const SERVERS: [&str; 5] = ["floor", "copal", "varnish", "nginx", "haproxy"];
/// The page is written between these comments.
const MARKERS: [(&str, &str); 2] =
    [("<!-- bench: begin -->", "<!-- bench: end -->"), ("<!-- seeds: begin -->", "<!-- seeds: end -->")];

/// All measurements, by row and server.
#[derive(Default)]
pub struct Results {
    cells: BTreeMap<(String, String), Vec<Measured>>,
    missing: Vec<String>,
    failures: Vec<String>,
}

impl Results {
    /// Adds one measurement.
    pub fn add(&mut self, row: &Row, server: &str, outcome: Measured) {
        self.cells.entry((row.name.clone(), server.to_owned())).or_default().push(outcome);
    }

    /// Records the programs that are not installed.
    pub fn missing(&mut self, names: &[String]) {
        for name in names {
            if !self.missing.contains(name) {
                self.missing.push(name.clone());
            }
        }
    }

    /// Records an error.
    pub fn failed(&mut self, what: &str) {
        self.failures.push(what.to_owned());
    }

    fn median(&self, row: &Row, server: &str, value: impl Fn(&Measured) -> f64) -> Option<f64> {
        let cells = self.cells.get(&(row.name.clone(), server.to_owned()))?;
        median(cells.iter().map(value))
    }

    /// The largest value: memory that earlier rounds allocated does not grow again in later ones.
    fn most(&self, row: &Row, server: &str, value: impl Fn(&Measured) -> f64) -> Option<f64> {
        let cells = self.cells.get(&(row.name.clone(), server.to_owned()))?;
        cells.iter().map(value).max_by(f64::total_cmp)
    }
}

/// The report of a run.
pub struct Report {
    /// Markdown.
    pub text: String,
    json: Value,
    /// File name and text.
    plots: Vec<(String, String)>,
}

/// Times and counts as a cell.
fn cell(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

fn microseconds(value: f64) -> String {
    match value {
        us if us < 1_000.0 => format!("{us:.1} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

impl Report {
    /// The report of all results.
    pub fn new(scenes: &[Scene], results: &Results, memory: Option<(String, Value)>, arguments: &[String]) -> Report {
        let rows: Vec<&Row> = scenes.iter().flat_map(|scene| &scene.rows).collect();
        let servers: Vec<&str> = columns(results);
        let mut text = format!("`cargo xtask bench {}` on {}.\n\n", arguments.join(" "), machine());
        for missing in &results.missing {
            let _ = writeln!(text, "- {missing}: not installed");
        }
        for failure in &results.failures {
            let _ = writeln!(text, "- failed: {failure}");
        }
        let mut table = |title: &str, of: &dyn Fn(&Row, &str) -> String| {
            let _ = write!(text, "\n{title}\n\n| row | what |");
            servers.iter().for_each(|server| _ = write!(text, " {server} |"));
            let _ = write!(text, "\n| --- | --- |{}\n", " --- |".repeat(servers.len()));
            for row in &rows {
                let _ = write!(text, "| `{}` | {} |", row.name, row.title);
                servers.iter().for_each(|server| _ = write!(text, " {} |", of(row, server)));
                text.push('\n');
            }
        };
        table("CPU of the whole process tree a request; × is the ratio to the floor; medians", &|row, server| {
            let floor = results.median(row, "floor", |one| one.cpu).filter(|_| server != "floor");
            cell(results.median(row, server, |one| one.cpu), |cpu| match floor.filter(|floor| *floor > 0.0) {
                Some(floor) => format!("{:.2} ×", cpu / floor),
                None => microseconds(cpu),
            })
        });
        table("Answers a second (or handshakes), and how long 99 of 100 take at most", &|row, server| {
            let p99 = results.median(row, server, |one| one.p99);
            let rate = results.median(row, server, |one| one.per_second);
            let errors: u64 = results
                .cells
                .get(&(row.name.clone(), server.to_owned()))
                .into_iter()
                .flatten()
                .map(|one| one.errors + one.unsent)
                .sum();
            let errors = if errors > 0 { format!(", {errors} failed or not sent") } else { String::new() };
            cell(rate.zip(p99).map(|(rate, _)| rate), |rate| {
                format!("{}/s, {}{errors}", short(rate), microseconds(p99.unwrap_or(0.0)))
            })
        });
        for row in rows.iter().filter(|row| row.plan.idle > 0) {
            let _ = write!(text, "\nBytes resident for each of {} idle connections:", row.plan.idle);
            for server in &servers {
                if let Some(bytes) = results.most(row, server, |one| one.idle_bytes) {
                    let _ = write!(text, " {server} {bytes:.0};");
                }
            }
            text.push('\n');
        }
        let plots = drawn(&rows, results, &servers);
        for (file, _) in &plots {
            let _ = write!(text, "\n![{}](plots/{file})", file.trim_end_matches(".svg"));
        }
        text.push('\n');
        let mut json = json_of(&rows, results, &servers, arguments);
        if let Some((more, value)) = memory {
            text.push_str(&more);
            json["memory"] = value;
        }
        Report { text, json, plots }
    }

    /// Writes the files.
    pub fn write(&self, out: &Path, name: &str) -> Result<(), String> {
        std::fs::create_dir_all(out).map_err(|error| error.to_string())?;
        let json = serde_json::to_string_pretty(&self.json).map_err(|error| error.to_string())?;
        let files = [(format!("{name}.md"), &self.text), (format!("{name}.json"), &json)];
        for (name, text) in files.into_iter().chain(self.plots.iter().map(|(name, text)| (name.clone(), text))) {
            std::fs::write(out.join(&name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        println!("written: {0}/{name}.md, {0}/{name}.json, {1} plots", out.display(), self.plots.len());
        Ok(())
    }

    /// Puts the tables between the page's markers, and the plots into files next to it.
    pub fn write_page(&self, page: &Path, is_seeds: bool) -> Result<(), String> {
        let text = std::fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
        let text = between(&text, MARKERS[usize::from(is_seeds)], &self.text)?;
        std::fs::write(page, text).map_err(|error| format!("{}: {error}", page.display()))?;
        for (name, text) in &self.plots {
            let path = page.with_file_name("plots").join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        println!("written: {}", page.display());
        Ok(())
    }
}

/// The text with the part between two markers replaced.
fn between(text: &str, (begin, end): (&str, &str), new: &str) -> Result<String, String> {
    let missing = || format!("the page has no {begin} and {end} in this order");
    let (before, rest) = text.split_once(begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", new.trim()))
}

/// The servers that have results, in the order of columns.
fn columns(results: &Results) -> Vec<&str> {
    let has = |server: &str| results.cells.keys().any(|(_, name)| name == server);
    let mut columns: Vec<&str> = SERVERS.into_iter().filter(|server| has(server)).collect();
    for (_, name) in results.cells.keys() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    columns
}

/// Processor and kernel.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |(_, name)| name);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    format!("{cores} cores ({}), Linux {}", model.trim(), kernel.trim())
}

fn json_of(rows: &[&Row], results: &Results, servers: &[&str], arguments: &[String]) -> Value {
    let mut cells = Vec::new();
    for row in rows {
        for server in servers {
            let value = |of: fn(&Measured) -> f64| results.median(row, server, of);
            let Some(cpu) = value(|one| one.cpu) else { continue };
            let floor = results.median(row, "floor", |one| one.cpu).filter(|floor| *floor > 0.0);
            let measured = &results.cells[&(row.name.clone(), (*server).to_owned())];
            let notes: Vec<&String> = measured.iter().flat_map(|one| &one.notes).collect();
            cells.push(json!({
                "row": row.name, "what": row.title, "server": server, "cpu_us": cpu, "user_us": value(|one| one.user),
                "ratio": floor.map(|floor| cpu / floor), "per_second": value(|one| one.per_second),
                "p50_us": value(|one| one.p50), "p99_us": value(|one| one.p99),
                "bytes_per_second": value(|one| one.bytes_per_second),
                "idle_bytes": if row.plan.idle > 0 { results.most(row, server, |one| one.idle_bytes) } else { None },
                "requests": measured.iter().map(|one| one.requests).sum::<u64>(),
                "errors": measured.iter().map(|one| one.errors).sum::<u64>(),
                "unsent": measured.iter().map(|one| one.unsent).sum::<u64>(), "rounds": measured.len(), "notes": notes,
            }));
        }
    }
    json!({ "machine": machine(), "arguments": arguments, "rows": cells, "missing": results.missing, "failures": results.failures })
}

/// The plots of a family: the quantity on the horizontal axis.
const FAMILIES: [(Family, &str, &str); 4] = [
    (Family::Connections, "connections", "connections; hits of 1 KiB"),
    (Family::Bodies, "bodies", "bytes of the body; hits, 50 connections"),
    (Family::Objects, "objects", "objects among which hits are spread"),
    (Family::Loops, "loops", "loops; hits of 1 KiB"),
];

fn lines<'a>(
    rows: &[&Row],
    results: &Results,
    servers: &[&'a str],
    family: Family,
    value: fn(&Measured) -> f64,
) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for server in servers {
        let mut line: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|row| {
                let (_, place) = row.points.iter().find(|point| point.0 == family)?;
                Some((*place, results.median(row, server, value)?))
            })
            .collect();
        line.sort_by(|one, other| one.0.total_cmp(&other.0));
        if line.len() > 1 {
            lines.push((server, line));
        }
    }
    lines
}

/// A value: the end of the file's name, its title, the value, and its text.
type Drawn = (&'static str, &'static str, fn(&Measured) -> f64, fn(f64) -> String);

const VALUES: [Drawn; 2] = [
    ("throughput", "answers a second", |one| one.per_second, short),
    ("latency", "99th percentile of latency", |one| one.p99, microseconds),
];

/// The available plots.
fn drawn(rows: &[&Row], results: &Results, servers: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (family, name, below) in FAMILIES {
        for (what, title, value, height) in VALUES {
            let lines = lines(rows, results, servers, family, value);
            if !lines.is_empty() {
                let is_logarithmic = family != Family::Loops;
                let frame = Frame { title, below, is_logarithmic, top: round_top(&lines), height, place: short };
                all.push((format!("bench-{name}-{what}.svg"), draw(&frame, &lines)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::{QUICK, scenes};

    #[test]
    fn a_report_has_ratios_plots_and_what_is_missing() {
        let scenes = scenes(&QUICK);
        let mut results = Results::default();
        for row in scenes.iter().flat_map(|scene| &scene.rows).filter(|row| row.name.starts_with("hit-1k")) {
            for (server, cpu) in [("floor", 4.0), ("copal", 6.0), ("copal", 7.0), ("copal", 600.0)] {
                results.add(row, server, Measured { cpu, per_second: 1e4, p99: 2_500.0, ..Measured::default() });
            }
        }
        results.missing(&["lighttpd".to_owned(), "lighttpd".to_owned()]);
        let report = Report::new(&scenes, &results, None, &[]);
        assert!(
            report.text.contains("| `hit-1k` | hits, 1 KiB, 50 connections | 4.0 µs | 1.75 × |"),
            "{}",
            report.text
        );
        assert!(report.text.contains("| 10k/s, 2.5 ms | 10k/s, 2.5 ms |"), "{}", report.text);
        assert_eq!(report.text.matches("lighttpd: not installed").count(), 1);
        assert!(report.text.contains("plots/bench-connections-throughput.svg"));
        assert_eq!(report.plots.len(), 2, "connections only: one point is no line");
    }

    #[test]
    fn a_page_keeps_what_is_around_the_tables() {
        let page = "# Title\n<!-- bench: begin -->\nold\n<!-- bench: end -->\n## Mine\n";
        let new = between(page, MARKERS[0], "new\n").unwrap();
        assert_eq!(new, "# Title\n<!-- bench: begin -->\n\nnew\n\n<!-- bench: end -->\n## Mine\n");
        assert_eq!(between(&new, MARKERS[0], "new").unwrap(), new);
        assert!(between(page, MARKERS[1], "new").is_err());
    }
}
