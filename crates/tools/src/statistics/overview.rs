//! The first screen of `copal stat`: the numbers that an operator looks at, in one column of labels
//! and four of values, which fit 80 columns and stay together in a wide window.
//!
//! `varnishstat` opens on its list of counters. What a server does not publish is left out.

use surface::quantity::{hit_percent, size};

use super::samples::{Point, Samples};
use crate::screen::{BOLD, Canvas, PLAIN, REVERSED};

/// Width of the labels.
const LABEL_WIDTH: usize = 27;
/// Width of a column of values.
const VALUE_WIDTH: usize = 13;
/// Marks of a bar.
const BAR_WIDTH: usize = 20;

/// A line of the overview.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Title(&'static str),
    /// A label and its values: now, over ten and a hundred samples, since the start of the worker.
    Values {
        label: String,
        values: [String; 4],
        is_alarm: bool,
    },
    /// A label and a text.
    Text {
        label: String,
        text: String,
        is_alarm: bool,
    },
}

/// Names of the columns for samples of this interval.
fn columns(interval_seconds: f64) -> [String; 4] {
    let over = |samples: f64| {
        let seconds = samples * interval_seconds;
        if seconds < 120.0 { format!("over {seconds:.0} s") } else { format!("over {:.0} min", seconds / 60.0) }
    };
    ["now".to_owned(), over(10.0), over(100.0), "since start".to_owned()]
}

/// Draws the column names and `lines` from line `first` of the window on.
pub(super) fn draw(lines: &[Line], top: usize, interval_seconds: f64, first: usize, canvas: &mut Canvas) {
    canvas.bar(first, REVERSED);
    values("", &columns(interval_seconds), REVERSED, first, canvas);
    for (line, content) in lines.iter().skip(top).enumerate() {
        let line = first + 1 + line;
        match content {
            Line::Title(title) => canvas.put(0, line, title, BOLD),
            Line::Values { label, values: texts, is_alarm } => {
                values(label, texts, if *is_alarm { BOLD } else { PLAIN }, line, canvas);
            }
            Line::Text { label, text, is_alarm } => {
                let style = if *is_alarm { BOLD } else { PLAIN };
                canvas.put(0, line, &label_text(label), style);
                canvas.put(LABEL_WIDTH + 1, line, text, style);
            }
        }
    }
}

fn values(label: &str, texts: &[String; 4], style: ratatui_core::style::Style, line: usize, canvas: &mut Canvas) {
    canvas.put(0, line, &label_text(label), style);
    for (index, text) in texts.iter().enumerate() {
        canvas.put(LABEL_WIDTH + index * VALUE_WIDTH, line, &format!("{text:>VALUE_WIDTH$}"), style);
    }
}

/// A label, cut to its width.
fn label_text(label: &str) -> String {
    let label = format!("  {label}");
    if label.chars().count() <= LABEL_WIDTH {
        return label;
    }
    label.chars().take(LABEL_WIDTH - 3).chain("...".chars()).collect()
}

/// The lines of a server.
pub(super) fn lines(samples: &Samples) -> Vec<Line> {
    let mut lines = vec![Line::Title("Clients")];
    lines.extend(rate("requests a second", &["MAIN.client_req"], samples, false));
    lines.push(hit_ratio(samples));
    lines.extend(rate("passed a second", &["MAIN.s_pass"], samples, false));
    lines.extend(sent(samples));
    lines.push(Line::Title("Errors a second"));
    lines.extend(rate("origin failed", &["MAIN.fetch_failed"], samples, true));
    lines.extend(rate("request refused", REFUSALS, samples, true));
    lines.extend(rate("VCL failed", &["MAIN.vcl_fail"], samples, true));
    lines.push(Line::Title("Memory"));
    lines.extend(memory(samples));
    lines.push(Line::Title("Origins: requests a second"));
    lines.extend(rate("all", &["MAIN.backend_req"], samples, false));
    lines.extend(backends(samples));
    lines
}

/// Counters of requests that were refused: unreadable, or one too many.
const REFUSALS: &[&str] = &[
    "MAIN.client_req_400",
    "MAIN.client_req_417",
    "MAIN.req_dropped",
    "MAIN.req_refused",
    "MAIN.sess_dropped",
    "MAIN.waiting_refused",
    "MAIN.waiting_timeout",
    "MAIN.h3_refused",
];

fn point<'a>(samples: &'a Samples, name: &str) -> Option<&'a Point> {
    samples.points.iter().find(|point| point.name == name)
}

/// The sum of counters, by second; `None` if the server has none of them.
fn sum(names: &[&str], samples: &Samples) -> Option<[f64; 4]> {
    let found: Vec<&Point> = names.iter().filter_map(|name| point(samples, name)).collect();
    let add = |value: &dyn Fn(&Point) -> f64| found.iter().map(|point| value(point)).sum();
    (!found.is_empty()).then(|| {
        [
            add(&|point| point.change.unwrap_or(0.0)),
            add(&|point| point.moving[0].value),
            add(&|point| point.moving[1].value),
            add(&|point| point.average.unwrap_or(0.0)),
        ]
    })
}

fn rate(label: &str, names: &[&str], samples: &Samples, is_error: bool) -> Option<Line> {
    let sums = sum(names, samples)?;
    let is_alarm = is_error && sums[0] > 0.0;
    Some(Line::Values { label: label.to_owned(), values: sums.map(|value| format!("{value:.1}")), is_alarm })
}

fn sent(samples: &Samples) -> Option<Line> {
    let sums = sum(&["MAIN.s_resp_hdrbytes", "MAIN.s_resp_bodybytes"], samples)?;
    let values = sums.map(|bytes| size(bytes.max(0.0) as u64));
    Some(Line::Values { label: "sent a second".to_owned(), values, is_alarm: false })
}

fn hit_ratio(samples: &Samples) -> Line {
    let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} %"));
    let [ten, hundred, _] =
        samples.hit_rate.moving.map(|average| (average.samples > 0).then_some(100.0 * average.value));
    let start = samples.hit_rate.counts().and_then(|counts| hit_percent(counts.hits, counts.misses));
    let values = [samples.hit_rate.now, ten, hundred, start].map(percent);
    Line::Values { label: "hit ratio".to_owned(), values, is_alarm: false }
}

/// A line for each storage with its limit, and for the requests in progress.
fn memory(samples: &Samples) -> Vec<Line> {
    let mut lines = Vec::new();
    for used in samples.points.iter().filter(|point| point.name.ends_with(".g_bytes")) {
        let Some(name) = used.name.strip_suffix(".g_bytes") else { continue };
        let free = point(samples, &format!("{name}.g_space")).map_or(0, |free| free.current);
        let label = name.split_once('.').map_or(name, |(_, storage)| storage);
        lines.push(text(
            label,
            if free == 0 && label == "Transient" { size(used.current) } else { part(used.current, free) },
        ));
    }
    if let Some(held) = point(samples, "MAIN.req_bytes") {
        lines.push(text("requests in progress", size(held.current)));
    }
    if let Some(objects) = point(samples, "MAIN.n_object") {
        let evicted = sum(&["MAIN.n_lru_nuked"], samples).map_or(0.0, |sums| sums[0]);
        lines.push(text("objects", format!("{}, {evicted:.1} evicted a second", objects.current)));
    }
    lines
}

fn text(label: &str, text: String) -> Line {
    Line::Text { label: label.to_owned(), text, is_alarm: false }
}

/// A part of a whole, in numbers and as a bar.
fn part(used: u64, free: u64) -> String {
    let whole = used.saturating_add(free);
    let share = used as f64 / whole.max(1) as f64;
    let marks = ((share * BAR_WIDTH as f64).round() as usize).min(BAR_WIDTH);
    let bar = format!("{}{}", "#".repeat(marks), ".".repeat(BAR_WIDTH - marks));
    format!("[{bar}] {:.1} %, {} of {}", 100.0 * share, size(used), size(whole))
}

/// A line for each backend: those that are sick come first.
fn backends(samples: &Samples) -> Vec<Line> {
    let names = samples.points.iter().filter_map(|point| point.name.strip_prefix("VBE.")?.strip_suffix(".req"));
    let mut lines: Vec<Line> = names.filter_map(|name| backend(name, samples)).collect();
    lines.sort_by_key(|line| !matches!(line, Line::Values { is_alarm: true, .. }));
    lines
}

fn backend(name: &str, samples: &Samples) -> Option<Line> {
    let sums = sum(&[&format!("VBE.{name}.req")], samples)?;
    let is_sick = point(samples, &format!("VBE.{name}.healthy")).is_some_and(|healthy| healthy.current == 0);
    let label = if is_sick { format!("SICK {name}") } else { name.to_owned() };
    Some(Line::Values { label, values: sums.map(|value| format!("{value:.1}")), is_alarm: is_sick })
}

#[cfg(test)]
mod tests {
    use super::super::CacheCounts;
    use super::super::samples::tests::look;
    use super::*;
    use crate::screen::drawn;

    fn samples() -> Samples {
        let mut samples = Samples::new();
        for (at, step) in [(0.0, 0), (1.0, 1)] {
            let rows = [
                ("MAIN.client_req", "counter", "info", "integer", 50 + 40 * step),
                ("MAIN.s_resp_bodybytes", "counter", "info", "bytes", 100 + step * 2048),
                ("MAIN.fetch_failed", "counter", "info", "integer", 2 * step),
                ("MAIN.backend_req", "counter", "info", "integer", 10 + 5 * step),
                ("MAIN.n_object", "gauge", "info", "integer", 7),
                ("SMA.s0.g_bytes", "gauge", "info", "bytes", 16 << 20),
                ("SMA.s0.g_space", "gauge", "info", "bytes", 48 << 20),
                ("SMA.Transient.g_bytes", "gauge", "info", "bytes", 1 << 10),
                ("VBE.boot.one.req", "counter", "info", "integer", 10 + 5 * step),
                ("VBE.boot.one.healthy", "gauge", "info", "integer", 1),
                ("VBE.boot.two.req", "counter", "info", "integer", 0),
                ("VBE.boot.two.healthy", "gauge", "info", "integer", 0),
            ];
            let mut look = look(1, &rows);
            look.cache = Some(CacheCounts { section: 1, hits: 30 + 30 * step, misses: 30 + 10 * step });
            samples.take(look, at);
        }
        samples
    }

    #[test]
    fn numbers_of_an_operator_fit_a_window_of_eighty_columns() {
        let lines = lines(&samples());
        let wanted = "                                     now    over 10 s   over 100 s  since start
Clients
  requests a second                 40.0         40.0         40.0          9.0
  hit ratio                       75.0 %       75.0 %       75.0 %       60.0 %
  sent a second                    2 KiB        2 KiB        2 KiB    214 bytes
Errors a second
  origin failed                      2.0          2.0          2.0          0.2
Memory
  s0                        [#####...............] 25.0 %, 16 MiB of 64 MiB
  Transient                 1 KiB
  objects                   7, 0.0 evicted a second
Origins: requests a second
  all                                5.0          5.0          5.0          1.5
  SICK boot.two                      0.0          0.0          0.0          0.0
  boot.one                           5.0          5.0          5.0          1.5";
        let wide = drawn(200, 15, |canvas| draw(&lines, 0, 1.0, 0, canvas));
        assert_eq!(drawn(80, 15, |canvas| draw(&lines, 0, 1.0, 0, canvas)), wanted.lines().collect::<Vec<_>>());
        assert_eq!(wide, wanted.lines().collect::<Vec<_>>(), "columns stay together");
    }

    #[test]
    fn server_without_counters_and_small_windows_are_harmless() {
        let nothing = lines(&Samples::new());
        assert!(nothing.iter().any(|line| matches!(line, Line::Values { label, .. } if label == "hit ratio")));
        for (width, height) in [(0, 0), (1, 1), (30, 3)] {
            drawn(width, height, |canvas| draw(&lines(&samples()), 9, 0.1, 2, canvas));
        }
        assert_eq!(columns(60.0)[1..3], ["over 10 min", "over 100 min"]);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(label_text("a_backend_with_a_rather_long_name").chars().count(), LABEL_WIDTH);
    }
}
