//! Run-time parameters: a list as `varnishadm param.show` prints it, lines of `param.set`, or
//! `name=value`.

use crate::daemon;
use crate::report::{Place, Report};
use surface::parameter::{Parameters, former, value};
use surface::program::Called;

/// Judges a list, sets valid values in `parameters`, and returns the options that set the same.
pub(crate) fn judge(
    text: &str,
    file: &str,
    storages: &[String],
    parameters: &mut Parameters,
    report: &mut Report,
) -> Vec<String> {
    let defaults = manager::default_parameters(Called::Stock);
    let mut options = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(Line { name, wanted, unit }) = read(line) else { continue };
        let place = Place::new(file, index + 1);
        let shown = format!("{name} {wanted}");
        if let Some(row) = former::find(name) {
            report.blocks(&place, format!("{shown}: no such parameter"), row.remedy());
            continue;
        }
        let is_seconds = value::row(name).is_some_and(|row| row.unit == "seconds");
        // Some times were milliseconds up to Varnish 3.
        let (wanted, is_converted) = match (unit, wanted.parse::<f64>()) {
            (Some("milliseconds" | "ms"), Ok(number)) if is_seconds => (format!("{}", number / 1000.0), true),
            _ => (wanted.to_owned(), false),
        };
        match value::set(parameters, &defaults, name, &wanted, storages) {
            Ok(()) => {
                let option = format!("-p {name}={wanted}");
                if is_converted {
                    report.changes(&place, format!("{shown} milliseconds: seconds are meant now"), option.as_str());
                } else {
                    daemon::parameter_set(report, &shown, name, &wanted, &place);
                }
                options.push(option);
            }
            Err(error) => {
                let remedy = match value::row(name) {
                    Some(_) => "give a value that param.show of Copal allows",
                    None => "drop it: no version of Varnish that is known has it",
                };
                report.blocks(&place, format!("{shown}: {}", error.text().trim()), remedy);
            }
        }
    }
    options
}

/// A line that sets a parameter.
struct Line<'a> {
    name: &'a str,
    wanted: &'a str,
    unit: Option<&'a str>,
}

/// `None` for lines that set nothing: comments, the lines of the long form, defaults.
fn read(line: &str) -> Option<Line<'_>> {
    if line.trim().is_empty() || line.starts_with([' ', '\t', '#']) {
        return None;
    }
    let line = line.trim();
    let line = line.strip_prefix("param.set").map_or(line, str::trim_start);
    let end = line.find(|letter: char| letter == '=' || letter.is_whitespace())?;
    let (name, rest) = (&line[..end], line[end..].trim_start_matches('=').trim());
    let rest = match rest.strip_suffix("(default)") {
        Some(_) => return None,
        None => rest,
    };
    let (wanted, unit) = match rest.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")) {
        Some((wanted, unit)) => (wanted.trim(), Some(unit)),
        None => (rest, None),
    };
    let wanted = wanted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(wanted);
    Some(Line { name, wanted, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_an_old_server_is_read() {
        let text = "thread_pools           8 []\ndefault_ttl 300 [seconds]\ngrace 10.000 [seconds] (default)\n\
                    thread_pool_add_delay 2 [milliseconds]\nsess_workspace 32768 [bytes]\nparam.set vcc_err_unref off\n\
                    feature=+http2\nfeatures 1\ndefault_grace x\n";
        let (mut parameters, mut report) = (Parameters::default(), Report::default());
        let options = judge(text, "f", &[], &mut parameters, &mut report);
        let expected =
            ["thread_pools=8", "default_ttl=300", "thread_pool_add_delay=0.002", "vcc_err_unref=off", "feature=+http2"];
        assert_eq!(options, expected.map(|option| format!("-p {option}")));
        assert_eq!((parameters.default_ttl, parameters.vcc_err_unref), (300.0, false));
        let mut text = Vec::new();
        report.write_text(&mut text, false).unwrap();
        let text = String::from_utf8(text).unwrap();
        for expected in [
            "f:1: thread_pools 8: accepted, and without effect",
            "f:2: default_ttl 300\n",
            "f:4: thread_pool_add_delay 2 milliseconds",
            "f:5: sess_workspace 32768: no such parameter\n      -> drop it: memory",
            "f:8: features 1: Unknown parameter \"features\".",
            "f:9: default_grace x: Invalid number (x)",
        ] {
            assert!(text.contains(expected), "{expected} in:\n{text}");
        }
        assert_eq!(report.status(), 2);
    }
}
