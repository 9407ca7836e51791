//! The loop of `varnishstat`'s screen: samples at intervals, keys in between. It outlives the
//! server: while there is none the status shows that, and a new one is picked up automatically.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::samples::Samples;
use super::view::{Action, KEYS, View};
use super::{Report, draw, overview};
use crate::screen::{Key, KeyRow, Screen, ScreenEvent, help_lines};
use crate::signals::Signals;
use surface::program::Called;

/// Longest wait before the screen is redrawn, so that messages disappear.
const REDRAW: Duration = Duration::from_millis(500);

/// Shows the counters until the user quits.
///
/// # Errors
/// The terminal's error.
pub(super) fn run(report: &mut Report, called: Called, signals: &Arc<Signals>) -> io::Result<()> {
    let mut screen = Screen::enter(signals)?;
    let started = Instant::now();
    let mut samples = Samples::new();
    let mut view = View::new(called);
    view.overview.is_shown &= report.is_whole;
    let mut sampled_at = None;
    let mut level_is_due = report.includes;
    loop {
        let now = started.elapsed().as_secs_f64();
        let visible = draw::visible_lines(screen.height());
        let is_due = sampled_at.is_none_or(|at| !view.paused && now - at >= view.interval_seconds);
        if is_due {
            samples.take(report.look(), now);
            if level_is_due && !samples.points.is_empty() {
                view.show_all_levels_of(&samples.points);
                level_is_due = false;
            }
            view.overview.lines = overview::lines(&samples);
            sampled_at = Some(now);
        }
        view.arrange(&samples, visible);
        screen.draw(|canvas| draw::screen(&samples, &view, report.raw, now, canvas))?;
        let left = sampled_at.map_or(0.0, |at| at + view.interval_seconds - now);
        let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::ZERO);
        match screen.wait(if view.paused { REDRAW } else { left.min(REDRAW) }) {
            ScreenEvent::Stop => return Ok(()),
            ScreenEvent::Resized | ScreenEvent::Nothing => {}
            ScreenEvent::Key(key) => {
                let now = started.elapsed().as_secs_f64();
                if is_interrupt(key) || !view.type_key(key, &samples, visible, now) {
                    match KeyRow::find(KEYS, key) {
                        None => screen.ring()?,
                        Some(Action::Quit) => return Ok(()),
                        Some(Action::Suspend) => screen.suspend()?,
                        Some(Action::Redraw) => screen.forget(),
                        Some(Action::Raw) => report.raw = !report.raw,
                        Some(Action::Sample) => sampled_at = None,
                        Some(action) => view.act(action, &samples, visible, help_lines(KEYS).len(), now),
                    }
                }
            }
        }
    }
}

/// True for the key that always ends the program.
fn is_interrupt(key: Key) -> bool {
    key == Key::Control('c')
}
