//! Lines in a frame, as SVG: shares over sizes on a logarithmic axis.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 48.0;
/// Room for the names beside the lines.
const LEGEND: f64 = 90.0;
/// Distinct for most eyes, on white and on dark.
const COLOURS: [&str; 6] = ["#888888", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00"];

/// Draws named lines of points: sizes (0 to 1, as parts of the whole) and shares (0 to 1).
pub fn draw(title: &str, lines: &[(&str, Vec<(f64, f64)>)]) -> String {
    let sizes: Vec<f64> = lines.iter().flat_map(|(_, line)| line.iter().map(|point| point.0)).collect();
    let (least, most) = (sizes.iter().copied().fold(1.0, f64::min), sizes.iter().copied().fold(0.0, f64::max));
    let across = |size: f64| {
        let place = (size / least).ln() / (most / least).ln().max(1e-9);
        MARGIN + place * (WIDTH - 2.0 * MARGIN - LEGEND)
    };
    let down = |share: f64| HEIGHT - MARGIN - share.clamp(0.0, 1.0) * (HEIGHT - 2.0 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    for step in 0..=5 {
        let share = f64::from(step) / 5.0;
        let (y, right) = (down(share), across(most));
        let _ = writeln!(text, "<path d=\"M{MARGIN} {y:.1}H{right:.1}\" stroke=\"#ddd\"/>");
        let _ = writeln!(text, "<text x=\"8\" y=\"{:.1}\">{:.0} %</text>", y + 4.0, share * 100.0);
    }
    if let Some((_, line)) = lines.first() {
        for (size, _) in line {
            let x = across(*size);
            let label = size * 100.0;
            let _ =
                writeln!(text, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label} %</text>", HEIGHT - 28.0);
        }
    }
    let _ = writeln!(
        text,
        "<text x=\"{MARGIN}\" y=\"{}\">size of the cache, in parts of all that is asked for; hits by requests</text>",
        HEIGHT - 8.0
    );
    let mut last_y = f64::INFINITY;
    let mut ends: Vec<(usize, f64)> =
        lines.iter().enumerate().map(|(at, (_, line))| (at, down(line.last().map_or(0.0, |point| point.1)))).collect();
    ends.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (at, (_, line)) in lines.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let points: String = line.iter().map(|(x, y)| format!("{:.1},{:.1} ", across(*x), down(*y))).collect();
        let _ = writeln!(text, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
    }
    for (at, y) in ends {
        // From the bottom up, one line of text apart.
        last_y = y.min(last_y - 14.0);
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            across(most) + 8.0,
            last_y + 4.0,
            escaped(lines[at].0)
        );
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

    #[test]
    fn lines_are_within_the_frame_and_names_are_text() {
        let svg = draw("a < b", &[("one", vec![(0.01, 0.0), (0.1, 1.0)]), ("two", vec![(0.01, 0.5), (0.1, 1.0)])]);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
        assert!(svg.contains("points=\"48.0,312.0 502.0,48.0 \""), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2);
    }
}
