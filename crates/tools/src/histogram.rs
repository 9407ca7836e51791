//! `varnishhist`: durations or sizes of the last requests, as a histogram.
//!
//! Selection of the values: `histogram/profile.rs`; counting: `histogram/buckets.rs`; the picture:
//! `histogram/draw.rs`; the screen: `live.rs`; finding and following the log: `follow.rs`. Without
//! a terminal, `-d` and `-r` print the picture once.

mod buckets;
mod draw;
mod profile;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::time::{Duration, Instant};

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use shm::read::group::Grouping;
use shm::read::query::nth_field;
use shm::read::select::Sides;
use shm::read::transaction::{Reason, Transaction};
use surface::tag::Tag;

use surface::program::{Called, program};

use crate::Streams;
use crate::follow::{Follow, Sink};
use crate::live::{Live, LogFacts, Response, View};
use crate::options::{self, Given};
use crate::screen::{Canvas, Help, Key, KeyRow, Possible, help_lines, key_row};
use crate::transactions::print::is_unsafe;
use buckets::Buckets;
use profile::{PROFILES, Profile, Side};

/// Seconds between two drawings: shortest and longest.
const INTERVAL_SECONDS: (f64, f64) = (0.001, 1_000_000.0);
/// Options of this tool alone, whatever their meaning in other tools.
const OWN_OPTIONS: &[char] = &['B', 'm', 'M', 'p', 'P'];
/// Columns and lines of a printed picture.
const PRINTED_SIZE: (u16, u16) = (80, 24);

#[derive(Clone, Copy)]
enum Action {
    Help,
    Power(u32),
    Faster,
    Slower,
    BendFaster,
    BendSlower,
    Redraw,
    Suspend,
    Quit,
}

static KEYS: &[KeyRow<Action>] = &[
    key_row(&[Key::Char('h'), Key::Char('?')], "<h> or <?>", Action::Help, &["Show or hide this page."]),
    key_row(&[Key::Char('0')], "<0> to <9>", Action::Power(0), &["Draw every 1, 2, 4 … 512 seconds."]),
    key_row(&[Key::Char('+')], "<+>", Action::Faster, &["Draw twice as often."]),
    key_row(&[Key::Char('-')], "<->", Action::Slower, &["Draw half as often."]),
    key_row(&[Key::Char('>')], "<>>", Action::BendFaster, &["Bend time: twice as fast."]),
    key_row(&[Key::Char('<')], "<<>", Action::BendSlower, &["Bend time: half as fast."]),
    key_row(&[Key::Control('l'), Key::Control('t')], "<CTRL-L> or <CTRL-T>", Action::Redraw, &["Draw anew."]),
    key_row(&[Key::Control('z')], "<CTRL-Z>", Action::Suspend, &["Back to the shell for a while."]),
    key_row(
        &[Key::Char('q'), Key::Char('Q'), Key::Control('c'), Key::Control('q')],
        "<q>, <CTRL-C> or <CTRL-Q>",
        Action::Quit,
        &["Quit."],
    ),
];

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let mut given = match options::parse("hist", args, streams) {
        Ok(given) => given,
        Err(status) => {
            if args.iter().any(|word| word == "-h" || word == "--help") {
                let _ = streams.output.write_all(profile_help().as_bytes());
            }
            return status;
        }
    };
    let is_terminal = streams.program && crate::screen::is_possible();
    let is_dumb = streams.program && crate::screen::possible() == Possible::Dumb;
    if is_dumb {
        let name = program("hist").name(streams.called);
        let _ = writeln!(streams.error, "{name}: no screen on a dumb terminal (TERM): the log as it is, as with -d");
    }
    let printed = !is_terminal && (is_dumb || given.has('d') || given.has('r'));
    if printed && !given.has('d') {
        given.options.push(('d', OsString::new()));
    }
    let (mut follow, histogram) = match prepare(&given, is_terminal || printed, streams.called) {
        Ok(prepared) => prepared,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    if !printed {
        return follow.run(&mut Live::new(histogram), false, streams);
    }
    let mut printed = Printed { histogram, log: LogFacts::default() };
    let status = follow.run(&mut printed, false, streams);
    if status == 0 { i32::from(printed.print(&mut *streams.output).is_err()) } else { status }
}

fn profile_help() -> String {
    let rows = PROFILES.iter().map(|row| format!("  {:<15} {}\n", row.name, row.text));
    format!("\nProfiles:\n{}", rows.collect::<String>())
}

fn prepare(given: &Given, can_show: bool, called: Called) -> Result<(Follow, Histogram), String> {
    let mut profile = Profile::default();
    let mut interval = 1.0;
    let mut simulated_time = None;
    for (letter, argument) in &given.options {
        let text = argument.to_string_lossy();
        match letter {
            'P' => profile = Profile::parse(&text)?,
            'p' => interval = seconds(&text).ok_or(format!("-p: invalid '{text}'"))?,
            'B' => simulated_time = Some(factor(&text)?),
            _ => {}
        }
    }
    let power = |letter: char, default: i32| match given.last(letter).map(OsStr::to_string_lossy) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("-{letter}: '{text}' is not a power of ten")),
    };
    profile = Profile { low: power('m', profile.low)?, high: power('M', profile.high)?, ..profile };
    let profile = profile.check().map_err(|()| "-m, -M: the upper edge must be above the lower one".to_owned())?;
    let mut follow =
        Follow::from_options(&given.without(OWN_OPTIONS), &[Grouping::Vxid, Grouping::Request]).map_err(|message| {
            match message.strip_prefix("Invalid grouping mode") {
                Some(_) => format!("{message} (only vxid and request are supported)"),
                None => message,
            }
        })?;
    if !can_show {
        let name = program("hist").name(called);
        return Err(format!("{name}: the output is no terminal; -d draws the log as it is"));
    }
    let side = profile.side;
    follow.sides =
        Some(Sides { client: side != Side::Backend, backend: side == Side::Backend, esi: side == Side::Esi });
    let histogram = Histogram {
        buckets: Buckets::new(profile.low, profile.high),
        profile,
        interval_seconds: interval,
        simulated_time: simulated_time.map(SimulatedTime::new),
        log_seconds: 0.0,
        help: Help::default(),
        has_legend: called == Called::Copal,
    };
    Ok((follow, histogram))
}

fn seconds(text: &str) -> Option<f64> {
    let (shortest, longest) = INTERVAL_SECONDS;
    text.parse().ok().filter(|seconds: &f64| (shortest..=longest).contains(seconds))
}

/// Compat: the stock program's words, which scripts look for.
fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().unwrap_or(0.0);
    let reason = if factor < 0.0 {
        "being able to bend time does not mean we can make it go backwards"
    } else if factor.is_finite() && factor > 0.0 {
        return Ok(factor);
    } else {
        "being able to bend time does not mean we can stop it"
    };
    Err(format!("-B: {reason} (invalid factor '{text}')"))
}

/// The histogram and its data.
struct Histogram {
    profile: Profile,
    buckets: Buckets,
    interval_seconds: f64,
    simulated_time: Option<SimulatedTime>,
    /// The latest time in the log.
    log_seconds: f64,
    help: Help,
    /// True if signs and units are explained; `varnishhist` does not.
    has_legend: bool,
}

/// Simulated time: since `started`, when the log's time was `log_start`, it runs faster than real
/// time by `factor`.
struct SimulatedTime {
    factor: f64,
    started: Instant,
    log_start: Option<f64>,
}

impl SimulatedTime {
    fn new(factor: f64) -> SimulatedTime {
        SimulatedTime { factor, started: Instant::now(), log_start: None }
    }

    /// Time until the log's time is `log_seconds`.
    fn delay(&mut self, log_seconds: f64) -> Option<Duration> {
        let log_start = *self.log_start.get_or_insert(log_seconds);
        let due = (log_seconds - log_start) / self.factor;
        Duration::try_from_secs_f64(due).ok()?.checked_sub(self.started.elapsed())
    }
}

impl Histogram {
    /// Counts one transaction; those of ESI, and those that are restarted or retried, are not
    /// counted.
    fn take_transaction(&mut self, transaction: &Transaction) {
        if transaction.reason == Reason::Esi {
            return;
        }
        let (mut hit, mut found, mut time) = (false, None, None);
        for record in transaction.records() {
            let Some(tag) = record.tag() else { continue };
            if tag.row().binary || is_unsafe(tag) {
                continue;
            }
            match tag {
                Tag::Hit => hit = true,
                Tag::VCLReturn if matches!(record.text(), b"restart" | b"retry") => return,
                Tag::Timestamp => time = nth_field(record.text(), 2),
                _ => {}
            }
            found = self.profile.value(&record).or(found);
        }
        let Some(value) = found else { return };
        self.buckets.count(value, hit);
        let time = time.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        if let Some(time) = time.filter(|time: &f64| time.is_finite()) {
            self.log_seconds = self.log_seconds.max(time);
        }
    }

    fn draw(&self, log: &LogFacts, canvas: &mut Canvas) {
        let bent = self
            .simulated_time
            .as_ref()
            .map(|simulated_time| (semantics::date::text(self.log_seconds), simulated_time.factor));
        let head = draw::Head {
            interval_seconds: self.interval_seconds,
            bent,
            profile: &self.profile.name,
            legend: self.has_legend.then_some(draw::Legend { text: self.profile.text, unit: self.profile.unit }),
        };
        draw::histogram(&self.buckets, &head, log, canvas);
    }

    fn bend_by(&mut self, factor: f64) {
        // The first key press starts the simulation at normal speed.
        let factor = self
            .simulated_time
            .as_ref()
            .map_or(1.0, |simulated_time| (simulated_time.factor * factor).clamp(1e-9, 1e9));
        let log_start = (self.log_seconds > 0.0).then_some(self.log_seconds);
        self.simulated_time = Some(SimulatedTime { log_start, ..SimulatedTime::new(factor) });
    }
}

impl View for Histogram {
    fn take(&mut self, group: &[Transaction]) -> Option<Duration> {
        for transaction in group {
            self.take_transaction(transaction);
        }
        let log_seconds = self.log_seconds;
        self.simulated_time.as_mut().filter(|_| log_seconds > 0.0)?.delay(log_seconds)
    }

    fn draw(&mut self, log: &LogFacts, canvas: &mut Canvas) {
        if self.help.shown {
            self.help.draw(&help_lines(KEYS), canvas, 0, canvas.height());
        } else {
            Histogram::draw(self, log, canvas);
        }
    }

    fn press(&mut self, key: Key, lines: usize) -> Response {
        let action = match key {
            Key::Char(digit @ '0'..='9') => Action::Power(u32::from(digit) - u32::from('0')),
            Key::Down if self.help.shown => {
                self.help.scroll(1, lines, help_lines(KEYS).len());
                return Response::Changed;
            }
            Key::Up if self.help.shown => {
                self.help.scroll(-1, lines, help_lines(KEYS).len());
                return Response::Changed;
            }
            key => match KeyRow::find(KEYS, key) {
                Some(action) => action,
                None => return Response::Unknown,
            },
        };
        let (shortest, longest) = INTERVAL_SECONDS;
        match action {
            Action::Help => self.help.toggle(),
            Action::Power(power) => self.interval_seconds = f64::from(1u32 << power.min(9)),
            Action::Faster => self.interval_seconds = (self.interval_seconds / 2.0).max(shortest),
            Action::Slower => self.interval_seconds = (self.interval_seconds * 2.0).min(longest),
            Action::BendFaster => self.bend_by(2.0),
            Action::BendSlower => self.bend_by(0.5),
            Action::Redraw => return Response::Redraw,
            Action::Suspend => return Response::Suspend,
            Action::Quit => return Response::Quit,
        }
        Response::Changed
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval_seconds)
    }
}

/// The histogram printed without a screen.
struct Printed {
    histogram: Histogram,
    log: LogFacts,
}

impl Sink for Printed {
    fn group(&mut self, group: &[Transaction], _output: &mut dyn Write) -> io::Result<()> {
        for transaction in group {
            self.histogram.take_transaction(transaction);
        }
        Ok(())
    }
}

impl Printed {
    fn print(&mut self, output: &mut dyn Write) -> io::Result<()> {
        self.log.ended = true;
        let (columns, lines) = PRINTED_SIZE;
        let mut cells = Buffer::empty(Rect::new(0, 0, columns, lines));
        self.histogram.draw(&self.log, &mut Canvas::new(&mut cells));
        for line in 0..lines {
            let text: String = (0..columns).map(|column| cells[(column, line)].symbol()).collect();
            writeln!(output, "{}", text.trim_end())?;
        }
        output.flush()
    }
}
