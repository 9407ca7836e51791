//! The display of `varnishstat`: status, a bar with the names of columns, the counters, a bar that
//! shows the selection, and the meaning of the selected counter. Compat: `varnishstat` has columns
//! and numbers at the positions of the stock 7.1 program.

use super::overview;
use super::samples::{MovingAverage, Point, Samples};
use super::view::{KEYS, LEVELS, Order, View};
use crate::screen::{BOLD, Canvas, PLAIN, REVERSED, help_lines};

/// Width of a column of numbers, including the blank before and the unit after it.
const COLUMN_WIDTH: usize = 14;
/// Names of the columns.
const COLUMNS: [&str; 6] = ["CURRENT", "CHANGE", "AVERAGE", "AVG_10", "AVG_100", "AVG_1000"];
/// Narrowest column of names.
const NAME_WIDTH_MIN: usize = 24;
/// Space at the start of the bars for marks that indicate further lines.
const MARK_WIDTH: usize = 4;
const STATUS_LINES: usize = 3;
const BAR_LINES: usize = 1;
const INFO_LINES: usize = 3;
/// Minimum number of counter lines; the explanation is dropped in their favour.
const POINT_LINES_MIN: usize = 3;
/// Columns for the hit rate, which is left out of windows that are not much wider.
const HIT_RATE_WIDTH: usize = 37;
const HIT_RATE_WINDOW_MIN: usize = 70;
/// Largest number shown in full; for larger ones the first digits are shown.
const NUMBER_MAX: u64 = 999_999_999_999;

/// Number of lines for counters in a window with `height` lines.
pub(super) fn visible_lines(height: usize) -> usize {
    let others = STATUS_LINES + 2 * BAR_LINES;
    match height.saturating_sub(others + INFO_LINES) {
        lines if lines >= POINT_LINES_MIN => lines,
        _ => height.saturating_sub(others),
    }
}

/// Draws the whole screen; `now` is a monotonic time in seconds.
pub(super) fn screen(samples: &Samples, view: &View, raw: bool, now: f64, canvas: &mut Canvas) {
    status(samples, view, now, canvas);
    let visible = visible_lines(canvas.height());
    let first = STATUS_LINES + BAR_LINES;
    if view.help.shown {
        view.help.draw(&help_lines(KEYS), canvas, first, visible);
        return;
    }
    if view.overview.is_shown {
        overview::draw(&view.overview.lines, view.overview.top, view.interval_seconds, STATUS_LINES, canvas);
        return;
    }
    let name_width = name_width(samples, view, canvas.width());
    bar_above(view, name_width, canvas);
    for (line, row) in view.rows.iter().enumerate().skip(view.top).take(visible) {
        let Some(point) = samples.points.get(*row) else { continue };
        counter(point, view, name_width, line == view.selected, first + line - view.top, canvas);
    }
    bar_below(samples, view, raw, visible, canvas);
    explanation(samples, view, first + visible + BAR_LINES, canvas);
}

/// Width of the column of names.
fn name_width(samples: &Samples, view: &View, width: usize) -> usize {
    let room = width.saturating_sub(COLUMNS.len() * COLUMN_WIDTH).max(NAME_WIDTH_MIN);
    if !view.keeps_together {
        return room;
    }
    let names = view.rows.iter().filter_map(|row| samples.points.get(*row));
    let longest = names.map(|point| point.name.chars().count()).max().unwrap_or(0);
    longest.clamp(NAME_WIDTH_MIN, room)
}

fn status(samples: &Samples, view: &View, now: f64, canvas: &mut Canvas) {
    for (line, (name, uptime)) in
        [("Uptime mgt:   ", samples.manager_uptime), ("Uptime child: ", samples.worker_uptime)].into_iter().enumerate()
    {
        canvas.put(0, line, name, PLAIN);
        match uptime {
            Some(seconds) => canvas.put(name.len(), line, &duration(seconds), PLAIN),
            None => canvas.put(name.len(), line, "  Not Running", REVERSED),
        }
    }
    if let Some(typed) = &view.typed {
        canvas.put(0, 2, &format!("Search: {typed}_"), BOLD);
    } else {
        canvas.put(0, 2, view.message(now).unwrap_or(invitation(view)), PLAIN);
    }
    if canvas.width() > HIT_RATE_WINDOW_MIN && !view.overview.is_shown {
        let column = canvas.width() - HIT_RATE_WIDTH;
        let [a, b, c] = samples.hit_rate.moving;
        let counts = format!("Hitrate n: {:8} {:8} {:8}", a.samples, b.samples, c.samples);
        canvas.put(column, 0, &counts, PLAIN);
        canvas.put(column, 1, &format!("   avg(n): {:8.4} {:8.4} {:8.4}", a.value, b.value, c.value), PLAIN);
    }
}

/// The keys to begin with.
fn invitation(view: &View) -> &'static str {
    match (view.overview.is_shown, view.keeps_together) {
        (true, _) => "Press <o> for all counters, <h> for help, <q> to quit",
        (false, true) => "Press <o> for the overview, <h> for help, <q> to quit",
        (false, false) => "Press <h> to toggle help screen",
    }
}

fn bar_above(view: &View, name_width: usize, canvas: &mut Canvas) {
    let line = STATUS_LINES;
    canvas.bar(line, REVERSED);
    if view.top > 0 {
        canvas.put(0, line, "^^^", REVERSED);
    }
    canvas.put(MARK_WIDTH, line, "NAME", REVERSED);
    for (index, name) in COLUMNS.iter().enumerate() {
        put_column(name_width, index, line, &format!(" {name:>12}"), REVERSED, canvas);
    }
}

/// Draws a text in a column of numbers, if the window is wide enough for the whole column.
fn put_column(
    name_width: usize,
    index: usize,
    line: usize,
    text: &str,
    style: ratatui_core::style::Style,
    canvas: &mut Canvas,
) {
    let start = name_width + index * COLUMN_WIDTH;
    if start + COLUMN_WIDTH <= canvas.width() {
        canvas.put(start, line, text, style);
    }
}

fn counter(point: &Point, view: &View, name_width: usize, is_selected: bool, line: usize, canvas: &mut Canvas) {
    let style = if is_selected { BOLD } else { PLAIN };
    let name = if point.name.chars().count() > name_width {
        format!("{}...", point.name.chars().take(name_width - 3).collect::<String>())
    } else {
        point.name.clone()
    };
    canvas.put(0, line, &name, style);
    let texts = match point.text.format.as_str() {
        "bitmap" => return bitmap(point, name_width, line, style, canvas),
        "duration" if view.scales => vec![duration(point.current)],
        "duration" => vec![whole(point.current)],
        "bytes" => columns(point, &|value| bytes(value, view.scales), view.scales && point.current > 1024),
        _ => columns(point, &|value| format!(" {value:12.2}"), false),
    };
    for (index, text) in texts.iter().enumerate() {
        put_column(name_width, index, line, text, style, canvas);
    }
}

/// The texts of all columns; the present value is scaled like the others only if `scaled` is set.
fn columns(point: &Point, text: &dyn Fn(f64) -> String, scaled: bool) -> Vec<String> {
    let current = if scaled { text(point.current as f64) } else { whole(point.current) };
    let nothing = || format!(" {:>12}", ".  ");
    let change = point.change.map_or_else(nothing, text);
    let average = point.average.filter(|average| *average != 0.0).map_or_else(nothing, text);
    let moving = point.moving.map(|MovingAverage { value, .. }| text(value));
    [current, change, average].into_iter().chain(moving).collect()
}

/// Shows the last 24 of 64 bits one by one, the others as a number.
fn bitmap(point: &Point, name_width: usize, line: usize, style: ratatui_core::style::Style, canvas: &mut Canvas) {
    let before = format!("   {:010x}", point.current >> 24 & 0xff_ffff_ffff);
    put_column(name_width, 0, line, &before, style, canvas);
    if name_width + 3 * COLUMN_WIDTH <= canvas.width() {
        let bits = (0..24).rev().map(|bit| if point.current >> bit & 1 == 1 { 'V' } else { '_' });
        canvas.put(name_width + 3 * COLUMN_WIDTH - 24, line, &bits.collect::<String>(), style);
    }
}

fn whole(number: u64) -> String {
    if number <= NUMBER_MAX {
        return format!(" {number:12}");
    }
    let mut start = number;
    while start > NUMBER_MAX / 1000 {
        start /= 1000;
    }
    format!(" {start:9}...")
}

fn bytes(mut value: f64, scales: bool) -> String {
    let mut unit = ' ';
    if scales {
        for next in " KMGTPEZY".chars() {
            unit = next;
            if value.abs() < 1024.0 {
                break;
            }
            value /= 1024.0;
        }
    }
    format!(" {value:12.2}{unit}")
}

/// Days, hours, minutes and seconds.
fn duration(seconds: u64) -> String {
    format!("{:4}+{:02}:{:02}:{:02}", seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

fn bar_below(samples: &Samples, view: &View, raw: bool, visible: usize, canvas: &mut Canvas) {
    let line = STATUS_LINES + BAR_LINES + visible;
    let count = view.rows.len();
    canvas.bar(line, REVERSED);
    if view.top + visible < count {
        canvas.put(0, line, "vvv", REVERSED);
    }
    if let Some(point) = view.point(samples) {
        canvas.put(MARK_WIDTH, line, &point.name, REVERSED);
    }
    let first = if count == 0 { 0 } else { view.top + 1 };
    let mut words = Vec::new();
    words.extend(view.paused.then(|| "PAUSED".to_owned()));
    words.extend(raw.then(|| "RAW".to_owned()));
    words.extend((!view.hides_unseen).then(|| "UNSEEN".to_owned()));
    words.extend(match view.order {
        Order::Section => None,
        Order::Name => Some("BY NAME".to_owned()),
        Order::Change => Some("BY CHANGE".to_owned()),
    });
    words.push(LEVELS[view.level].to_uppercase());
    words.push(format!("{first}-{}/{count}", count.min(view.top + visible)));
    canvas.put_before(canvas.width(), line, &format!(" {}", words.join("  ")), REVERSED);
}

fn explanation(samples: &Samples, view: &View, first: usize, canvas: &mut Canvas) {
    let Some(point) = view.point(samples) else { return };
    canvas.put(0, first, &format!("{}:", point.text.oneliner), PLAIN);
    let mut line = String::new();
    let mut at = first + 1;
    for word in point.text.docs.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() + MARK_WIDTH > canvas.width() {
            canvas.put(MARK_WIDTH, at, &line, PLAIN);
            line.clear();
            at += 1;
        }
        if at >= canvas.height() {
            return;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    canvas.put(MARK_WIDTH, at, &line, PLAIN);
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::look;
    use super::super::view::Action;
    use super::*;
    use crate::screen::drawn;
    use surface::program::Called;

    fn samples() -> Samples {
        let mut samples = Samples::new();
        for (at, step) in [(0.0, 0), (1.0, 1)] {
            let rows = [
                ("MAIN.uptime", "counter", "info", "duration", 9 + step),
                ("MAIN.cache_hit", "counter", "info", "integer", 50 + 30 * step),
                ("SMA.s0.g_bytes", "gauge", "info", "bytes", 3 << 20),
                ("SMA.s0.g_space", "gauge", "info", "bytes", u64::MAX),
                ("VBE.a.happy", "bitmap", "info", "bitmap", 0xff_0000_0000_0005),
                ("VBE.a.rather_long_name_of_a_backend.req", "counter", "info", "integer", 9_999_999_999_999),
            ];
            samples.take(look(1, &rows), at);
        }
        samples
    }

    fn picture(width: u16, height: u16, change: impl FnOnce(&mut View, &Samples)) -> Vec<String> {
        let (samples, mut view) = (samples(), View::new(Called::Stock));
        let visible = visible_lines(usize::from(height));
        view.arrange(&samples, visible);
        change(&mut view, &samples);
        drawn(width, height, |canvas| screen(&samples, &view, true, 0.0, canvas))
    }

    #[test]
    fn columns_stand_where_the_stock_program_has_them() {
        let lines = picture(120, 16, |_, _| {});
        let wanted = "\
Uptime mgt:      1+01:01:01                                                        Hitrate n:        0        0        0
Uptime child:    0+00:00:10                                                           avg(n):   0.0000   0.0000   0.0000
Press <h> to toggle help screen
    NAME                                  CURRENT        CHANGE       AVERAGE        AVG_10       AVG_100      AVG_1000
MAIN.uptime                            0+00:00:10
MAIN.cache_hit                                 80         30.00          8.00         30.00         30.00         30.00
SMA.s0.g_bytes                               3.00M         0.00           .            3.00M         3.00M         3.00M
SMA.s0.g_space                              16.00E         0.00           .           -1.00         -1.00         -1.00
VBE.a.happy                            00ff000000     _____________________V_V
VBE.a.rather_long_name_of_a_backe...   9999999...          0.00  999999999999.         0.00          0.00          0.00


    MAIN.uptime                                                                                         RAW  INFO  1-6/6
What MAIN.uptime is:
    More about it

";
        assert_eq!(lines, wanted.lines().collect::<Vec<_>>());
    }

    #[test]
    fn numbers_stay_next_to_the_names_in_a_wide_window() {
        let lines = picture(200, 16, |view, _| view.keeps_together = true);
        assert!(lines[3].ends_with("AVG_1000") && lines[3].chars().count() < 130, "{}", lines[3]);
        assert!(lines[2].starts_with("Press <o> for the overview"), "{}", lines[2]);
        let narrow = picture(80, 16, |view, _| view.keeps_together = true);
        assert!(narrow[3].ends_with("AVG_10"), "{}", narrow[3]);
    }

    #[test]
    fn bar_shows_the_chosen_settings() {
        let lines = picture(80, 14, |view, samples| {
            for action in [Action::Verbose, Action::Unseen, Action::Bottom, Action::Pause, Action::Order] {
                view.act(action, samples, 3, 40, 0.0);
            }
        });
        assert!(lines[3].starts_with("^^^ NAME"), "{}", lines[3]);
        assert!(lines[10].ends_with("PAUSED  RAW  UNSEEN  BY NAME  DIAG  4-6/6"), "{}", lines[10]);
        assert_eq!(lines[2], "Sorted by name.");
    }

    #[test]
    fn the_help_takes_the_place_of_the_counters() {
        let lines = picture(80, 24, |view, samples| view.act(Action::Help, samples, 16, 60, 0.0));
        assert!(lines.iter().any(|line| line.contains("one line up")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("MAIN.cache_hit")));
        let bottom = picture(80, 24, |view, samples| {
            let length = help_lines(KEYS).len();
            view.act(Action::Help, samples, 16, length, 0.0);
            view.act(Action::Bottom, samples, 16, length, 0.0);
        });
        assert!(bottom.iter().any(|line| line.contains("Decrease refresh interval.")), "{bottom:?}");
    }

    #[test]
    fn numbers_that_are_too_large_lose_digits_but_not_their_size() {
        assert_eq!(whole(NUMBER_MAX), " 999999999999");
        assert_eq!(whole(NUMBER_MAX + 1), " 1000000...".replace(' ', "   "));
        assert_eq!(whole(u64::MAX).len(), 13);
        assert_eq!(bytes(1536.0, true), "         1.50K");
        assert_eq!(bytes(-f64::MAX, true).chars().last(), Some('Y'));
        assert_eq!(duration(u64::MAX), "213503982334601+07:00:15");
    }

    #[test]
    fn no_window_is_too_small() {
        for width in (0..90).step_by(7) {
            for height in 0..14 {
                picture(width, height, |view, samples| {
                    view.act(Action::Bottom, samples, visible_lines(usize::from(height)), 60, 0.0);
                });
                picture(width, height, |view, samples| view.act(Action::Help, samples, 1, 60, 0.0));
            }
        }
    }
}
