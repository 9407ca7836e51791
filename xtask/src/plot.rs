//! Lines in a frame, as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 48.0;
/// Room for the names next to the lines.
const LEGEND: f64 = 90.0;
/// Colours that most readers can distinguish, on white and on dark.
const COLOURS: [&str; 6] = ["#888888", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00"];
/// Numbers below the axis, if there are many points.
const LABELS_MAX: usize = 10;

/// A named line of points, from left to right.
pub type Line<'a> = (&'a str, Vec<(f64, f64)>);

/// The frame around the lines.
pub struct Frame<'a> {
    /// Text above.
    pub title: &'a str,
    /// Text below.
    pub below: &'a str,
    /// Equal steps to the right are equal factors.
    pub is_logarithmic: bool,
    /// The top; 0 is at the bottom.
    pub top: f64,
    /// A value to the left, as text.
    pub height: fn(f64) -> String,
    /// A value below, as text.
    pub place: fn(f64) -> String,
}

/// A round number that is not below the largest value.
pub fn round_top(lines: &[Line<'_>]) -> f64 {
    let most = lines.iter().flat_map(|(_, line)| line).map(|point| point.1).fold(0.0, f64::max);
    let unit = 10f64.powf(most.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * unit).find(|top| *top >= most).unwrap_or(most)
}

/// A count in short, such as `12k`.
pub fn short(number: f64) -> String {
    let (scaled, unit) = match number.abs() {
        n if n >= 1e9 => (number / 1e9, "G"),
        n if n >= 1e6 => (number / 1e6, "M"),
        n if n >= 1e3 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let text = format!("{scaled:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Draws the lines.
pub fn draw(frame: &Frame<'_>, lines: &[Line<'_>]) -> String {
    let places = || lines.iter().flat_map(|(_, line)| line.iter().map(|point| point.0));
    let (least, most) = (places().fold(f64::INFINITY, f64::min), places().fold(f64::NEG_INFINITY, f64::max));
    let across = |place: f64| {
        let share = match frame.is_logarithmic {
            true => (place / least).ln() / (most / least).ln().max(1e-9),
            false => (place - least) / (most - least).max(1e-9),
        };
        MARGIN + share * (WIDTH - 2.0 * MARGIN - LEGEND)
    };
    let down = |value: f64| HEIGHT - MARGIN - (value / frame.top.max(1e-9)).clamp(0.0, 1.0) * (HEIGHT - 2.0 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"14\">{}</text>\n",
        escaped(frame.title)
    );
    let right = if least.is_finite() { across(most) } else { WIDTH - MARGIN - LEGEND };
    for step in 0..=5 {
        let value = frame.top * f64::from(step) / 5.0;
        let y = down(value);
        let _ = writeln!(text, "<path d=\"M{MARGIN} {y:.1}H{right:.1}\" stroke=\"#ddd\"/>");
        let _ = writeln!(text, "<text x=\"4\" y=\"{:.1}\">{}</text>", y + 4.0, escaped(&(frame.height)(value)));
    }
    if let Some((_, line)) = lines.iter().max_by_key(|(_, line)| line.len()) {
        for (place, _) in line.iter().step_by(line.len().div_ceil(LABELS_MAX).max(1)) {
            let (x, y, label) = (across(*place), HEIGHT - 28.0, escaped(&(frame.place)(*place)));
            let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>");
        }
    }
    let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"{}\">{}</text>", HEIGHT - 8.0, escaped(frame.below));
    let mut ends: Vec<(usize, f64)> =
        lines.iter().enumerate().map(|(at, (_, line))| (at, down(line.last().map_or(0.0, |point| point.1)))).collect();
    ends.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (at, (_, line)) in lines.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let points: String = line.iter().map(|(x, y)| format!("{:.1},{:.1} ", across(*x), down(*y))).collect();
        let _ = writeln!(text, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
    }
    let mut last_y = f64::INFINITY;
    for (at, y) in ends {
        // From the bottom up, one line of text apart.
        last_y = y.min(last_y - 14.0);
        let colour = COLOURS[at % COLOURS.len()];
        let (x, y, name) = (right + 8.0, last_y + 4.0, escaped(lines[at].0));
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
    }
    text.push_str("</svg>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame<'_> =
        Frame { title: "a < b", below: "", is_logarithmic: true, top: 1.0, height: short, place: short };

    #[test]
    fn lines_are_within_the_frame_and_names_are_text() {
        let svg = draw(&FRAME, &[("one", vec![(0.01, 0.0), (0.1, 1.0)]), ("two", vec![(0.01, 0.5), (0.1, 1.0)])]);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
        assert!(svg.contains("points=\"48.0,312.0 502.0,48.0 \""), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(!draw(&FRAME, &[("none", Vec::new())]).contains("NaN"));
    }

    #[test]
    fn numbers_are_short_and_tops_round() {
        assert_eq!([0.0, 999.0, 1_500.0, 2e6].map(short), ["0", "999", "1.5k", "2M"]);
        assert_eq!(round_top(&[("a", vec![(1.0, 4_100.0), (2.0, 9.0)])]), 5_000.0);
    }
}
