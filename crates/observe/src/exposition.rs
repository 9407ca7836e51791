//! Families to text: the text format 0.0.4 of Prometheus, and OpenMetrics 1.0.
//!
//! *Invariant:* names come from tables or consist of letters, digits and `_`; help and label values
//! may hold any text and are escaped here, so that no value can end a line or begin a label.

use crate::family::Family;
use shm::histogram::{Example, Total};
use std::fmt::Write;
use surface::histogram::Scale;
use surface::limits::OBSERVE_LABEL_BYTES_MAX;
use surface::metric::MetricKind;

/// A text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// `text/plain; version=0.0.4`.
    Text,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Writes families; those without samples are left out.
pub(crate) fn render(families: &[Family], format: Format) -> String {
    let mut out = String::new();
    for family in families.iter().filter(|family| !family.is_empty()) {
        head(family, format, &mut out);
        for (values, value) in &family.samples {
            out.push_str(&family.name);
            write_labels(family, values, None, &mut out);
            let _ = writeln!(out, " {value}");
        }
        for (values, (scale, total)) in &family.histograms {
            write_histogram(family, values, *scale, total, format, &mut out);
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(family: &Family, format: Format, out: &mut String) {
    let (name, kind) = match (format, family.kind) {
        // OpenMetrics names a family without the suffix of its samples.
        (Format::OpenMetrics, MetricKind::Counter) => (without(&family.name, "_total"), "counter"),
        (Format::OpenMetrics, MetricKind::Info) => (without(&family.name, "_info"), "info"),
        (Format::Text, MetricKind::Counter) => (family.name.as_str(), "counter"),
        (_, MetricKind::Histogram) => (family.name.as_str(), "histogram"),
        (_, MetricKind::Gauge) | (Format::Text, MetricKind::Info) => (family.name.as_str(), "gauge"),
    };
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if let Some(unit) = family.unit().filter(|_| format == Format::OpenMetrics) {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = write!(out, "# HELP {name} ");
    // Text 0.0.4 knows no escaped quotation mark in a help text.
    escape(&family.help, format == Format::OpenMetrics, out);
    out.push('\n');
}

fn without<'a>(name: &'a str, suffix: &str) -> &'a str {
    name.strip_suffix(suffix).unwrap_or(name)
}

/// Writes the buckets, the number and the sum of a histogram; in OpenMetrics with the exemplars.
fn write_histogram(family: &Family, values: &[String], scale: Scale, total: &Total, format: Format, out: &mut String) {
    let mut count: u64 = 0;
    for (bucket, (of_bucket, example)) in total.buckets.iter().zip(&total.examples).enumerate() {
        count = count.wrapping_add(*of_bucket);
        let bound = scale.bound(bucket).map_or("+Inf".to_owned(), |bound| bound.to_string());
        let _ = write!(out, "{}_bucket", family.name);
        write_labels(family, values, Some(&bound), out);
        let _ = write!(out, " {count}");
        if let Some(Example { vxid, value, time }) = example
            && format == Format::OpenMetrics
        {
            let _ = write!(out, " # {{vxid=\"{vxid}\"}} {} {time:.3}", scale.base(*value));
        }
        out.push('\n');
    }
    for (suffix, value) in [("count", count.to_string()), ("sum", scale.base(total.sum).to_string())] {
        let _ = write!(out, "{}_{suffix}", family.name);
        write_labels(family, values, None, out);
        let _ = writeln!(out, " {value}");
    }
}

fn write_labels(family: &Family, values: &[String], bound: Option<&str>, out: &mut String) {
    let labels = family.labels.iter().copied().zip(values.iter().map(String::as_str));
    let mut is_empty = true;
    for (place, (name, value)) in labels.chain(bound.map(|bound| ("le", bound))).enumerate() {
        is_empty = false;
        out.push(if place == 0 { '{' } else { ',' });
        let _ = write!(out, "{name}=\"");
        escape(value, true, out);
        out.push('"');
    }
    if !is_empty {
        out.push('}');
    }
}

/// Writes text for a place where a line feed, a backslash and perhaps a quotation mark have a
/// meaning. Other control characters are replaced.
fn escape(text: &str, quotes: bool, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
}

/// The part of a label's value that is kept.
pub(crate) fn cut(value: &str) -> &str {
    let mut end = value.len().min(OBSERVE_LABEL_BYTES_MAX);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    &value[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Vec<Family> {
        let mut requests = Family::new("copal_x_requests_total", MetricKind::Counter, "Requests \"a\\b\"\nc");
        requests.add(&[("backend", "a\"b\\c\nd\u{1}é"), ("vcl", "boot")], 3);
        let mut bytes = Family::new("copal_x_bytes", MetricKind::Gauge, "Bytes in use");
        bytes.add(&[], 7);
        let mut info = Family::new("copal_build_info", MetricKind::Info, "Version");
        info.add(&[("version", "1")], 1);
        vec![requests, Family::new("copal_none", MetricKind::Gauge, "None"), bytes, info]
    }

    #[test]
    fn text_format_has_help_type_and_escaped_labels() {
        let expected = "# TYPE copal_x_requests_total counter
# HELP copal_x_requests_total Requests \"a\\\\b\"\\nc
copal_x_requests_total{backend=\"a\\\"b\\\\c\\nd\u{fffd}é\",vcl=\"boot\"} 3
# TYPE copal_x_bytes gauge
# HELP copal_x_bytes Bytes in use
copal_x_bytes 7
# TYPE copal_build_info gauge
# HELP copal_build_info Version
copal_build_info{version=\"1\"} 1
";
        assert_eq!(render(&families(), Format::Text), expected);
    }

    #[test]
    fn openmetrics_names_families_without_suffix_and_ends_with_eof() {
        let expected = "# TYPE copal_x_requests counter
# HELP copal_x_requests Requests \\\"a\\\\b\\\"\\nc
copal_x_requests_total{backend=\"a\\\"b\\\\c\\nd\u{fffd}é\",vcl=\"boot\"} 3
# TYPE copal_x_bytes gauge
# UNIT copal_x_bytes bytes
# HELP copal_x_bytes Bytes in use
copal_x_bytes 7
# TYPE copal_build info
# HELP copal_build Version
copal_build_info{version=\"1\"} 1
# EOF
";
        assert_eq!(render(&families(), Format::OpenMetrics), expected);
    }

    #[test]
    fn samples_with_equal_labels_are_one_series() {
        let mut family = Family::new("copal_x", MetricKind::Gauge, "X");
        family.add(&[("a", "1")], 2);
        family.add(&[("a", "1")], 3);
        assert!(render(&[family], Format::Text).ends_with("copal_x{a=\"1\"} 5\n"));
    }

    #[test]
    fn histograms_are_cumulative_and_have_exemplars_in_openmetrics_only() {
        let mut total = Total { sum: 30_000_500, ..Total::default() };
        (total.buckets[0], total.buckets[4], total.buckets[24]) = (2, 1, 1);
        total.examples[4] = Some(Example { vxid: 32770, value: 123_456, time: 1_700_000_000.25 });
        let mut family = Family::new("copal_x_seconds", MetricKind::Histogram, "X y");
        family.add_histogram(Scale::Seconds, &[("result", "hit")], &total);
        let text = render(&[family.clone()], Format::Text);
        let open = render(&[family], Format::OpenMetrics);
        for line in [
            "# TYPE copal_x_seconds histogram",
            "copal_x_seconds_bucket{result=\"hit\",le=\"0.00001\"} 2",
            "copal_x_seconds_bucket{result=\"hit\",le=\"83.88608\"} 3",
            "copal_x_seconds_bucket{result=\"hit\",le=\"+Inf\"} 4",
            "copal_x_seconds_count{result=\"hit\"} 4",
            "copal_x_seconds_sum{result=\"hit\"} 0.0300005",
        ] {
            assert!(
                text.lines().any(|found| found == line) && open.lines().any(|found| found == line),
                "{line}\n{open}"
            );
        }
        assert!(!text.contains(" # "));
        let exemplar = "{result=\"hit\",le=\"0.00016\"} 3 # {vxid=\"32770\"} 0.000123456 1700000000.250\n";
        assert!(open.contains(exemplar), "{open}");
    }

    #[test]
    fn long_label_values_are_cut_at_a_character() {
        let value = "é".repeat(OBSERVE_LABEL_BYTES_MAX);
        assert_eq!(cut(&value).len(), OBSERVE_LABEL_BYTES_MAX);
        assert_eq!(cut(&format!("x{value}")).len(), OBSERVE_LABEL_BYTES_MAX - 1);
        assert_eq!(cut("short"), "short");
    }
}
