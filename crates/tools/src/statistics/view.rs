//! The user's selections on `varnishstat`'s screen, and the keys for them.
//!
//! *Invariant:* after [`View::arrange`] every row is one of the samples' points, and the selected
//! row, if there are any, is one of them and visible.

use super::overview::Line;
use super::samples::{Point, Samples};
use crate::screen::{Help, Key, KeyRow, key_row};
use surface::program::Called;

/// The levels of counters, from those of general use to those only for developers.
pub(super) const LEVELS: &[&str] = &["info", "diag", "debug"];
/// Step by which the interval is changed, in seconds; also its minimum.
const INTERVAL_STEP_SECONDS: f64 = 0.1;
/// The longest interval in seconds.
const INTERVAL_SECONDS_MAX: f64 = 3600.0;
/// Time for which a message stays, in seconds.
const MESSAGE_SECONDS: f64 = 1.25;
/// Longest search text, in characters.
const SEARCH_CHARACTERS_MAX: usize = 200;

/// The order of the counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// In the order of the server.
    Section,
    /// By name.
    Name,
    /// Largest change first.
    Change,
}

/// Action of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Help,
    Overview,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Search,
    SearchNext,
    SearchBack,
    Order,
    Unseen,
    Raw,
    Scale,
    Verbose,
    Quiet,
    Pause,
    Sample,
    Slower,
    Faster,
    Redraw,
    Suspend,
    Quit,
}

/// The keys, in the order of the help.
pub(super) static KEYS: &[KeyRow<Action>] = &[
    key_row(&[Key::Char('h'), Key::Char('?')], "<h> or <?>", Action::Help, &["Toggle this help screen."]),
    key_row(&[Key::Char('o')], "<o>", Action::Overview, &["Switch between the overview and the list of counters."]),
    key_row(&[Key::Up, Key::Char('k')], "<UP> or <k>", Action::Up, &["Navigate the counter list one line up."]),
    key_row(&[Key::Down, Key::Char('j')], "<DOWN> or <j>", Action::Down, &["Navigate the counter list one line down."]),
    key_row(
        &[Key::PageUp, Key::Char('b'), Key::Control('b')],
        "<PAGEUP> or <b> or <CTRL-B>",
        Action::PageUp,
        &["Navigate the counter list one page up."],
    ),
    key_row(
        &[Key::PageDown, Key::Char(' '), Key::Control('f')],
        "<PAGEDOWN> or <SPACE> or <CTRL-F>",
        Action::PageDown,
        &["Navigate the counter list one page down."],
    ),
    key_row(&[Key::Home, Key::Char('g')], "<HOME> or <g>", Action::Top, &["Go to the first counter."]),
    key_row(&[Key::End, Key::Char('G')], "<END> or <G>", Action::Bottom, &["Go to the last counter."]),
    key_row(&[Key::Char('/')], "</>", Action::Search, &["Search for a part of a name."]),
    key_row(&[Key::Char('n')], "<n>", Action::SearchNext, &["Go to the next counter that was searched for."]),
    key_row(&[Key::Char('N')], "<N>", Action::SearchBack, &["Go to the one before."]),
    key_row(&[Key::Char('s')], "<s>", Action::Order, &["Sort by section, by name, or by change, the fastest first."]),
    key_row(
        &[Key::Char('d')],
        "<d>",
        Action::Unseen,
        &["Show or hide unseen counters: those that were zero", "since this program started."],
    ),
    key_row(
        &[Key::Char('r')],
        "<r>",
        Action::Raw,
        &["Show gauges raw or adjusted. A gauge that falls below", "zero is a huge number; adjusted, it is zero."],
    ),
    key_row(&[Key::Char('e')], "<e>", Action::Scale, &["Show bytes and durations with units or as numbers."]),
    key_row(&[Key::Char('v')], "<v>", Action::Verbose, &["Show more: counters for diagnosis, then for debugging."]),
    key_row(&[Key::Char('V')], "<V>", Action::Quiet, &["Show less."]),
    key_row(&[Key::Char('p')], "<p>", Action::Pause, &["Pause, or go on."]),
    key_row(&[Key::Control('t')], "<CTRL-T>", Action::Sample, &["Sample now."]),
    key_row(&[Key::Control('l')], "<CTRL-L>", Action::Redraw, &["Draw the screen anew."]),
    key_row(&[Key::Control('z')], "<CTRL-Z>", Action::Suspend, &["Back to the shell for a while."]),
    key_row(
        &[Key::Char('q'), Key::Char('Q'), Key::Control('c'), Key::Control('q')],
        "<q> or <CTRL-C>",
        Action::Quit,
        &["Quit."],
    ),
    key_row(&[Key::Char('+')], "<+>", Action::Slower, &["Increase refresh interval."]),
    key_row(&[Key::Char('-')], "<->", Action::Faster, &["Decrease refresh interval."]),
];

/// The visible part and the user's settings.
pub(super) struct View {
    pub overview: Overview,
    /// True if the numbers stay next to the names in a wide window.
    pub keeps_together: bool,
    /// The rows, as indices of points.
    pub rows: Vec<usize>,
    /// The selected row.
    pub selected: usize,
    /// The first visible row.
    pub top: usize,
    /// Highest shown level: an index into [`LEVELS`].
    pub level: usize,
    pub hides_unseen: bool,
    /// True if bytes and durations are shown with units.
    pub scales: bool,
    pub order: Order,
    pub paused: bool,
    pub interval_seconds: f64,
    pub help: Help,
    /// The search text being typed.
    pub typed: Option<String>,
    sought: String,
    message: String,
    message_until: f64,
    /// The selected counter's name, to find it again.
    name: String,
}

/// The overview.
#[derive(Default)]
pub(super) struct Overview {
    /// True if it is shown instead of the list.
    pub is_shown: bool,
    pub lines: Vec<Line>,
    /// The first visible line.
    pub top: usize,
}

impl View {
    /// The initial view: `varnishstat` opens on the list, with the columns of the stock program.
    pub fn new(called: Called) -> View {
        View {
            overview: Overview { is_shown: called == Called::Copal, ..Overview::default() },
            keeps_together: called == Called::Copal,
            rows: Vec::new(),
            selected: 0,
            top: 0,
            level: 0,
            hides_unseen: true,
            scales: true,
            order: Order::Section,
            paused: false,
            interval_seconds: 1.0,
            help: Help::default(),
            typed: None,
            sought: String::new(),
            message: String::new(),
            message_until: 0.0,
            name: String::new(),
        }
    }

    /// Raises the level so that all of these points can be shown: they were requested by name.
    pub fn show_all_levels_of(&mut self, points: &[Point]) {
        self.level = points.iter().map(level).max().unwrap_or(0);
    }

    /// Arranges the rows; the selected counter stays selected and at its place on the screen.
    pub fn arrange(&mut self, samples: &Samples, visible: usize) {
        let line = self.selected.saturating_sub(self.top);
        let points = &samples.points;
        let is_row = |index: &usize| {
            let point = &points[*index];
            level(point) <= self.level && (point.seen || !self.hides_unseen)
        };
        self.rows = (0..points.len()).filter(is_row).collect();
        match self.order {
            Order::Section => {}
            Order::Name => self.rows.sort_by(|one, other| points[*one].name.cmp(&points[*other].name)),
            Order::Change => {
                let change = |index: &usize| points[*index].change.unwrap_or(0.0).abs();
                self.rows.sort_by(|one, other| change(other).total_cmp(&change(one)));
            }
        }
        // If the first row is visible, the view stays at the top when rows are inserted before it.
        if self.selected > 0
            && let Some(row) = self.rows.iter().position(|index| points[*index].name == self.name)
        {
            self.selected = row;
            self.top = row.saturating_sub(line);
        }
        self.select(self.selected, samples, visible);
    }

    /// Selects a row, or the last one if there are fewer, and scrolls to make it visible.
    fn select(&mut self, row: usize, samples: &Samples, visible: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
        let first = (self.selected + 1).saturating_sub(visible.max(1));
        let last = self.rows.len().saturating_sub(visible.max(1));
        self.top = self.top.min(last).clamp(first, self.selected);
        if let Some(point) = self.point(samples) {
            self.name.clone_from(&point.name);
        }
    }

    /// The selected counter.
    pub fn point<'a>(&self, samples: &'a Samples) -> Option<&'a Point> {
        samples.points.get(*self.rows.get(self.selected)?)
    }

    /// The message to show at this time, if any.
    pub fn message(&self, now: f64) -> Option<&str> {
        (now < self.message_until).then_some(self.message.as_str())
    }

    fn say(&mut self, message: String, now: f64) {
        self.message = message;
        self.message_until = now + MESSAGE_SECONDS;
    }

    /// Handles a key while text is typed. Returns false if none is being typed.
    pub fn type_key(&mut self, key: Key, samples: &Samples, visible: usize, now: f64) -> bool {
        let Some(typed) = &mut self.typed else { return false };
        match key {
            Key::Char(character) if typed.chars().count() < SEARCH_CHARACTERS_MAX => typed.push(character),
            Key::Backspace => {
                typed.pop();
            }
            Key::Enter => {
                let typed = self.typed.take().unwrap_or_default();
                if !typed.is_empty() {
                    self.sought = typed.to_lowercase();
                }
                self.search(true, samples, visible, now);
            }
            Key::Escape | Key::Control(_) => self.typed = None,
            _ => {}
        }
        true
    }

    /// Performs an action on the view. There are `visible` lines for counters, or for the help of
    /// `help_length` lines.
    pub fn act(&mut self, action: Action, samples: &Samples, visible: usize, help_length: usize, now: f64) {
        let page = visible.max(1);
        let by = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -(page as isize),
            Action::PageDown => page as isize,
            Action::Top => isize::MIN,
            Action::Bottom => isize::MAX,
            Action::Help => {
                self.help.toggle();
                return;
            }
            _ => 0,
        };
        if self.help.shown {
            self.help.scroll(by, visible, help_length);
            return;
        }
        if action == Action::Overview {
            self.overview.is_shown = !self.overview.is_shown;
            return;
        }
        if self.overview.is_shown && by != 0 {
            let last = self.overview.lines.len().saturating_sub(1);
            self.overview.top = self.overview.top.saturating_add_signed(by).min(last);
            return;
        }
        match action {
            Action::Search => self.typed = Some(String::new()),
            Action::SearchNext => self.search(true, samples, visible, now),
            Action::SearchBack => self.search(false, samples, visible, now),
            Action::Order => {
                let (order, text) = match self.order {
                    Order::Section => (Order::Name, "name"),
                    Order::Name => (Order::Change, "change"),
                    Order::Change => (Order::Section, "section"),
                };
                self.order = order;
                self.say(format!("Sorted by {text}."), now);
            }
            Action::Unseen => self.hides_unseen = !self.hides_unseen,
            Action::Scale => self.scales = !self.scales,
            Action::Verbose => self.level = (self.level + 1).min(LEVELS.len() - 1),
            Action::Quiet => self.level = self.level.saturating_sub(1),
            Action::Pause => self.paused = !self.paused,
            Action::Slower => self.set_interval(self.interval_seconds + INTERVAL_STEP_SECONDS, now),
            Action::Faster => self.set_interval(self.interval_seconds - INTERVAL_STEP_SECONDS, now),
            Action::PageUp | Action::PageDown => {
                // The page moves with the selection.
                let last = self.rows.len().saturating_sub(page);
                self.top = self.top.saturating_add_signed(by).min(last);
            }
            _ => {}
        }
        self.select(self.selected.saturating_add_signed(by), samples, visible);
        self.arrange(samples, visible);
    }

    fn set_interval(&mut self, seconds: f64, now: f64) {
        // Rounded to tenths, whatever the sum.
        let seconds = (seconds * 10.0).round() / 10.0;
        self.interval_seconds = seconds.clamp(INTERVAL_STEP_SECONDS, INTERVAL_SECONDS_MAX);
        self.say(format!("Refresh interval set to {:.1} seconds.", self.interval_seconds), now);
    }

    /// Selects the next or the previous row whose name contains the search text; at the end it
    /// wraps around.
    fn search(&mut self, forward: bool, samples: &Samples, visible: usize, now: f64) {
        if self.sought.is_empty() {
            self.say("Nothing to search for; </> takes a text.".to_owned(), now);
            return;
        }
        let count = self.rows.len();
        let step = |distance: usize| match forward {
            true => (self.selected + distance) % count,
            false => (self.selected + count - distance) % count,
        };
        let name = |row: usize| samples.points[self.rows[row]].name.to_lowercase();
        let found = (1..=count).map(step).find(|row| name(*row).contains(&self.sought));
        match found {
            Some(row) => self.select(row, samples, visible),
            None => self.say(format!("Not found: {}", self.sought), now),
        }
    }
}

/// The level of a counter as an index into [`LEVELS`]; an unknown level is for developers.
fn level(point: &Point) -> usize {
    LEVELS.iter().position(|level| *level == point.text.level).unwrap_or(LEVELS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::look;
    use super::*;

    const VISIBLE: usize = 3;

    fn samples() -> Samples {
        let mut samples = Samples::new();
        for (at, step) in [(0.0, 0), (1.0, 1)] {
            let rows = [
                ("MAIN.uptime", "counter", "info", "duration", 10 + step),
                ("MAIN.cache_hit", "counter", "info", "integer", 50 + 30 * step),
                ("MAIN.cache_miss", "counter", "info", "integer", 0),
                ("MAIN.hcb_lock", "counter", "debug", "integer", 7),
                ("MAIN.exp_mailed", "counter", "diag", "integer", 3),
                ("SMA.s0.g_bytes", "gauge", "info", "bytes", 4096),
                ("VBE.a.req", "counter", "info", "integer", 9 + 2 * step),
            ];
            samples.take(look(1, &rows), at);
        }
        samples
    }

    fn names(view: &View, samples: &Samples) -> Vec<String> {
        view.rows.iter().map(|index| samples.points[*index].name.clone()).collect()
    }

    fn selected(view: &View, samples: &Samples) -> String {
        view.point(samples).map(|point| point.name.clone()).unwrap_or_default()
    }

    fn act(view: &mut View, samples: &Samples, actions: &[Action]) {
        for action in actions {
            view.act(*action, samples, VISIBLE, 40, 0.0);
        }
    }

    #[test]
    fn at_first_only_counters_that_matter_and_move_are_shown() {
        let (samples, mut view) = (samples(), View::new(Called::Stock));
        view.arrange(&samples, VISIBLE);
        assert_eq!(names(&view, &samples), ["MAIN.uptime", "MAIN.cache_hit", "SMA.s0.g_bytes", "VBE.a.req"]);
        act(&mut view, &samples, &[Action::Verbose]);
        assert_eq!(view.rows.len(), 5);
        act(&mut view, &samples, &[Action::Verbose, Action::Verbose, Action::Unseen]);
        assert_eq!(view.rows.len(), 7);
        act(&mut view, &samples, &[Action::Quiet, Action::Quiet, Action::Quiet, Action::Unseen]);
        assert_eq!(view.rows.len(), 4);
        view.show_all_levels_of(&samples.points);
        assert_eq!(view.level, 2);
    }

    #[test]
    fn the_selection_stays_on_the_screen_and_on_its_counter() {
        let (samples, mut view) = (samples(), View::new(Called::Stock));
        view.arrange(&samples, VISIBLE);
        act(&mut view, &samples, &[Action::Bottom]);
        assert_eq!((view.selected, view.top, selected(&view, &samples).as_str()), (3, 1, "VBE.a.req"));
        act(&mut view, &samples, &[Action::Verbose, Action::Verbose, Action::Unseen]);
        assert_eq!((view.selected, view.top, selected(&view, &samples).as_str()), (6, 4, "VBE.a.req"));
        act(&mut view, &samples, &[Action::Up, Action::Up, Action::Up]);
        assert_eq!((view.selected, view.top), (3, 3));
        act(&mut view, &samples, &[Action::PageUp]);
        assert_eq!((view.selected, view.top), (0, 0));
        act(&mut view, &samples, &[Action::Up, Action::PageDown, Action::PageDown, Action::PageDown, Action::Down]);
        assert_eq!((view.selected, view.top), (6, 4));
        act(&mut view, &samples, &[Action::Top]);
        assert_eq!((view.selected, view.top), (0, 0));
    }

    #[test]
    fn a_search_goes_round() {
        let (samples, mut view) = (samples(), View::new(Called::Stock));
        view.arrange(&samples, VISIBLE);
        act(&mut view, &samples, &[Action::SearchNext]);
        assert!(view.message(0.1).is_some_and(|text| text.starts_with("Nothing to search for")));
        act(&mut view, &samples, &[Action::Search]);
        for key in [Key::Char('E'), Key::Char('x'), Key::Backspace, Key::Char('.'), Key::Enter] {
            assert!(view.type_key(key, &samples, VISIBLE, 0.0));
        }
        assert_eq!(selected(&view, &samples), "VBE.a.req");
        assert!(!view.type_key(Key::Char('q'), &samples, VISIBLE, 0.0));
        view.sought = "main".to_owned();
        act(&mut view, &samples, &[Action::SearchNext]);
        assert_eq!(selected(&view, &samples), "MAIN.uptime");
        act(&mut view, &samples, &[Action::SearchBack]);
        assert_eq!(selected(&view, &samples), "MAIN.cache_hit");
        view.sought = "nowhere".to_owned();
        act(&mut view, &samples, &[Action::SearchNext]);
        assert_eq!(
            (selected(&view, &samples).as_str(), view.message(1.0)),
            ("MAIN.cache_hit", Some("Not found: nowhere"))
        );
        assert_eq!(view.message(2.0), None);
    }

    #[test]
    fn rows_can_be_sorted() {
        let (samples, mut view) = (samples(), View::new(Called::Stock));
        view.arrange(&samples, VISIBLE);
        act(&mut view, &samples, &[Action::Order]);
        assert_eq!(names(&view, &samples)[..2], ["MAIN.cache_hit", "MAIN.uptime"]);
        act(&mut view, &samples, &[Action::Order]);
        assert_eq!(names(&view, &samples)[..2], ["MAIN.cache_hit", "VBE.a.req"]);
        act(&mut view, &samples, &[Action::Order]);
        assert_eq!(names(&view, &samples)[0], "MAIN.uptime");
    }

    #[test]
    fn the_interval_has_its_limits() {
        let (samples, mut view) = (samples(), View::new(Called::Stock));
        act(&mut view, &samples, &[Action::Slower]);
        assert_eq!(view.message(0.5), Some("Refresh interval set to 1.1 seconds."));
        act(&mut view, &samples, &[Action::Faster; 30]);
        assert_eq!(view.interval_seconds, 0.1);
    }

    #[test]
    fn without_counters_every_key_is_harmless() {
        let (nothing, mut view) = (Samples::new(), View::new(Called::Stock));
        view.sought = "a".to_owned();
        for row in KEYS {
            act(&mut view, &nothing, &[row.action, row.action]);
            view.type_key(Key::Escape, &nothing, 0, 0.0);
            view.act(row.action, &nothing, 0, 0, 0.0);
            view.arrange(&nothing, 0);
        }
        assert!(view.point(&nothing).is_none());
    }

    #[test]
    fn overview_is_the_first_screen_of_copal_and_one_key_away_in_varnishstat() {
        let samples = samples();
        for (called, is_first) in [(Called::Copal, true), (Called::Stock, false)] {
            let mut view = View::new(called);
            assert_eq!(view.overview.is_shown, is_first);
            act(&mut view, &samples, &[Action::Overview]);
            assert_eq!(view.overview.is_shown, !is_first);
        }
        let mut view = View::new(Called::Copal);
        view.overview.lines = super::super::overview::lines(&samples);
        act(&mut view, &samples, &[Action::Down, Action::Down, Action::Bottom]);
        assert_eq!((view.overview.top, view.selected), (view.overview.lines.len() - 1, 0));
        act(&mut view, &samples, &[Action::Top]);
        assert_eq!(view.overview.top, 0);
    }
}
