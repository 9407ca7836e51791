//! The display of `varnishhist`: hits are `|`, everything else is `#`, the scale below is
//! logarithmic.

use super::buckets::Buckets;
use super::profile::Unit;
use crate::live::LogFacts;
use crate::screen::{BOLD, Canvas, PLAIN};

/// Numbers that one mark may represent; beyond these any number is used.
const SCALES: &[u32] =
    &[1, 2, 3, 4, 5, 10, 15, 20, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000];
/// Lines between two labels of the vertical scale.
const LINES_PER_LABEL: usize = 5;
/// Lines that are not available to bars: the head, the axis, its labels.
const OTHER_LINES: usize = 3;

/// Facts about the histogram itself, for the head.
pub(super) struct Head<'a> {
    /// Seconds between two drawings.
    pub interval_seconds: f64,
    /// The log's time as text, and the speed factor, if time is simulated.
    pub bent: Option<(String, f64)>,
    /// Name of the displayed value.
    pub profile: &'a str,
    /// Explanation of signs and units, if they are explained.
    pub legend: Option<Legend>,
}

/// The displayed value.
pub(super) struct Legend {
    /// In words; empty if unknown.
    pub text: &'static str,
    pub unit: Option<Unit>,
}

/// Draws the whole screen.
pub(super) fn histogram(buckets: &Buckets, head: &Head, log: &LogFacts, canvas: &mut Canvas) {
    let (low, high) = buckets.powers();
    let powers = (high - low).max(1) as usize;
    let power_width = canvas.width() / powers;
    let height = canvas.height();
    let room = height.saturating_sub(OTHER_LINES);
    let columns = buckets.columns(power_width * powers);
    let tallest = columns.iter().map(|column| column.hits + column.others).max().unwrap_or(0).max(1);
    let scale = scale(tallest, room);
    let right = if log.ended { "EOF" } else { &log.identity };
    canvas.put_before(canvas.width().saturating_sub(1), 0, right, PLAIN);
    canvas.put(0, 0, &head_text(buckets, head, scale), PLAIN);
    match &head.legend {
        Some(_) if log.notice.is_empty() => canvas.put(0, 1, &legend_text(scale), PLAIN),
        _ => canvas.put(0, 1, &log.notice, BOLD),
    }
    if power_width == 0 || room == 0 {
        return;
    }
    for line in (LINES_PER_LABEL..height - 2).step_by(LINES_PER_LABEL) {
        canvas.put(0, height - 2 - line, &format!("{}_", line as u64 * u64::from(scale)), PLAIN);
    }
    let axis = format!("+{}", "-".repeat(power_width - 1)).repeat(powers);
    canvas.put(0, height - 2, &axis, PLAIN);
    for index in 0..powers {
        let label = power(low + index as i32, head.legend.as_ref().and_then(|legend| legend.unit));
        canvas.put(power_width * index, height - 1, &format!("|{label}"), PLAIN);
    }
    for (column, count) in columns.iter().enumerate() {
        let others = (count.others / scale) as usize;
        let all = ((count.others + count.hits) / scale) as usize;
        for line in 0..all.min(room) {
            canvas.put(column, height - OTHER_LINES - line, if line < others { "#" } else { "|" }, PLAIN);
        }
    }
}

fn head_text(buckets: &Buckets, head: &Head, scale: u32) -> String {
    let mut text = format!("1:{scale}, n = {}, d = {}", buckets.len(), head.interval_seconds);
    if let Some((time, factor)) = &head.bent {
        text.push_str(&format!(" @ {time} x {factor}"));
    }
    text.push_str(&format!("  {}", head.profile));
    if let Some(legend) = head.legend.as_ref().filter(|legend| !legend.text.is_empty()) {
        text.push_str(&format!(": {}", legend.text));
    }
    text
}

/// The meaning of the signs.
fn legend_text(scale: u32) -> String {
    let requests = if scale == 1 { "request" } else { "requests" };
    format!("| hits  # others, one mark for {scale} {requests}; n requests, drawn every d seconds")
}

/// A power of ten, with its unit.
fn power(exponent: i32, unit: Option<Unit>) -> String {
    let (prefixes, first, name) = match unit {
        Some(Unit::Seconds) => (["n", "µ", "m", "", "", "", ""], -9, "s"),
        Some(Unit::Bytes) => (["", "k", "M", "G", "T", "P", "E"], 0, "B"),
        None => return format!("1e{exponent}"),
    };
    let place = usize::try_from((exponent - first).div_euclid(3)).ok();
    match place.and_then(|place| prefixes.get(place)) {
        // There are no prefixes above seconds.
        Some(_) if unit == Some(Unit::Seconds) && (0..=5).contains(&exponent) => {
            format!("{} s", 10_i64.pow(exponent.unsigned_abs()))
        }
        Some(prefix) if unit == Some(Unit::Bytes) || exponent < 0 => {
            format!("{} {prefix}{name}", 10_i64.pow((exponent - first).rem_euclid(3).unsigned_abs()))
        }
        _ => format!("1e{exponent} {name}"),
    }
}

/// Number of values that one mark represents, so that the tallest column fits.
fn scale(tallest: u32, room: usize) -> u32 {
    let fits = |scale: u32| (tallest / scale) as usize <= room;
    SCALES.iter().copied().find(|scale| fits(*scale)).unwrap_or(tallest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::drawn;

    fn picture(width: u16, height: u16, values: &[(f64, bool)]) -> Vec<String> {
        let mut buckets = Buckets::new(0, 2);
        for (value, hit) in values {
            buckets.count(*value, *hit);
        }
        let head = Head { interval_seconds: 1.0, bent: None, profile: "size", legend: None };
        let log = LogFacts { identity: "host".to_owned(), ..LogFacts::default() };
        drawn(width, height, |canvas| histogram(&buckets, &head, &log, canvas))
    }

    #[test]
    fn hits_stand_on_misses() {
        let lines = picture(40, 9, &[(1.0, true), (1.0, false), (1.0, true), (10.0, false), (99.0, true)]);
        assert_eq!(
            lines,
            [
                "1:1, n = 5, d = 1  size            host",
                "",
                "5_",
                "",
                "|",
                "|",
                "#                   #                  |",
                "+-------------------+-------------------",
                "|1e0                |1e1",
            ]
        );
    }

    #[test]
    fn signs_and_units_are_explained_in_copals_own_program() {
        let buckets = Buckets::new(0, 2);
        let legend = Some(Legend { text: "bytes of response bodies", unit: Some(Unit::Bytes) });
        let head = Head { interval_seconds: 1.0, bent: None, profile: "size", legend };
        let log = LogFacts { identity: "host".to_owned(), ..LogFacts::default() };
        let lines = drawn(80, 9, |canvas| histogram(&buckets, &head, &log, canvas));
        assert!(lines[0].contains("size: bytes of response bodies"), "{lines:?}");
        assert_eq!(lines[1], "| hits  # others, one mark for 1 request; n requests, drawn every d seconds");
        assert!(lines[8].starts_with("|1 B") && lines[8].contains("|10 B"), "{lines:?}");
        let seconds = |exponent| power(exponent, Some(Unit::Seconds));
        assert_eq!([-6, -2, 0, 2, 9, -12].map(seconds), ["1 µs", "10 ms", "1 s", "100 s", "1e9 s", "1e-12 s"]);
        let bytes = |exponent| power(exponent, Some(Unit::Bytes));
        assert_eq!([0, 4, 8, 99, -3].map(bytes), ["1 B", "10 kB", "100 MB", "1e99 B", "1e-3 B"]);
    }

    #[test]
    fn a_tall_column_changes_the_scale() {
        let values = vec![(5.0, false); 23];
        let lines = picture(40, 8, &values);
        assert!(lines[0].starts_with("1:4, n = 23, d = 1"), "{lines:?}");
        let marks: usize = lines[1..6].iter().map(|line| line.matches('#').count()).sum();
        assert_eq!(marks, 5);
        assert_eq!(scale(5_000_000, 5), 5_000_000);
        assert_eq!(scale(7, 0), 10);
    }

    #[test]
    fn no_window_is_too_small() {
        for width in 0..6 {
            for height in 0..6 {
                picture(width, height, &[(5.0, true)]);
            }
        }
    }
}
