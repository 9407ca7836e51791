//! `varnishtop`: the most frequent records of the log.
//!
//! With `-1` once, from the present log; otherwise live on a full screen, with counts that decay.
//! Counting: `ranking/table.rs`; the screen: `ranking/draw.rs` and `live.rs`; finding and following
//! the log: `follow.rs`. Without a terminal, `-d` and `-r` have the effect of `-1`.

mod draw;
mod table;

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use shm::read::group::Grouping;
use shm::read::record::Record;
use shm::read::select::{Selection, Sides};
use shm::read::transaction::Transaction;
use surface::legible;

use surface::program::{Called, program};

use crate::Streams;
use crate::follow::{Follow, Sink, selection};
use crate::live::{Live, LogFacts, Response, View};
use crate::options::{self, Given};
use crate::screen::{Canvas, Help, Key, KeyRow, Possible, help_lines, key_row};
use crate::transactions::print::is_unsafe;
use table::Table;

/// Seconds over which counts decay unless `-p` is given.
const PERIOD_SECONDS: u32 = 60;
/// Interval at which the screen is drawn.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum Action {
    Help,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Redraw,
    Suspend,
    Quit,
}

static KEYS: &[KeyRow<Action>] = &[
    key_row(&[Key::Char('h'), Key::Char('?')], "<h> or <?>", Action::Help, &["Show or hide this page."]),
    key_row(&[Key::Up, Key::Char('k')], "<UP> or <k>", Action::Up, &["One line up."]),
    key_row(&[Key::Down, Key::Char('j')], "<DOWN> or <j>", Action::Down, &["One line down."]),
    key_row(
        &[Key::PageUp, Key::Char('b'), Key::Control('b')],
        "<PAGEUP>, <b> or <CTRL-B>",
        Action::PageUp,
        &["One page up."],
    ),
    key_row(
        &[Key::PageDown, Key::Char(' '), Key::Control('f')],
        "<PAGEDOWN>, <SPACE> or <CTRL-F>",
        Action::PageDown,
        &["One page down."],
    ),
    key_row(&[Key::Home, Key::Char('g')], "<HOME> or <g>", Action::Top, &["To the most frequent entry."]),
    key_row(&[Key::End, Key::Char('G')], "<END> or <G>", Action::Bottom, &["To the rarest entry."]),
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
    let mut given = match options::parse("top", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let is_terminal = streams.program && crate::screen::is_possible();
    let is_dumb = streams.program && crate::screen::possible() == Possible::Dumb;
    let once = given.has('1') || is_dumb || !is_terminal && (given.has('d') || given.has('r'));
    if once && !given.has('d') {
        given.options.push(('d', OsString::new()));
    }
    let prepared = prepare(&given, once || is_terminal, streams.called);
    let (mut follow, mut ranking) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    if once {
        let status = follow.run(&mut ranking, false, streams);
        return if status == 0 { i32::from(ranking.print(&mut *streams.output).is_err()) } else { status };
    }
    let mut live = Live::new(RankingView { ranking, help: Help::default(), top: 0 });
    follow.run(&mut live, false, streams)
}

fn prepare(given: &Given, can_show: bool, called: Called) -> Result<(Follow, Ranking), String> {
    let period = match given.last('p') {
        None => PERIOD_SECONDS,
        Some(text) => {
            let text = text.to_string_lossy();
            let number = match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => text.parse(),
            };
            number.ok().filter(|number| *number > 0).ok_or(format!("Syntax error, {text} is not a number"))?
        }
    };
    let all = [Grouping::Raw, Grouping::Vxid, Grouping::Request, Grouping::Session];
    let follow = Follow::from_options(given, &all)?;
    let ranking = Ranking {
        table: Table::new(f64::from(period)),
        selection: selection(given)?,
        sides: follow.sides,
        first_field: given.has('f'),
    };
    if !can_show {
        let name = program("top").name(called);
        return Err(format!("{name}: the output is no terminal; -1 prints the ranking once"));
    }
    Ok((follow, ranking))
}

/// Counts the selected records.
struct Ranking {
    table: Table,
    selection: Selection,
    /// Sides whose records are counted; by default both.
    sides: Option<Sides>,
    first_field: bool,
}

impl Ranking {
    fn take(&mut self, group: &[Transaction]) {
        for transaction in group {
            for record in transaction.records() {
                self.take_record(&record);
            }
        }
    }

    fn take_record(&mut self, record: &Record) {
        let Some(tag) = record.tag() else { return };
        let sided = self.sides.is_none_or(|sides| sides.shows_record(record));
        // Raw data from peers, and bytes that are not text, are not ranked.
        if tag.row().binary || is_unsafe(tag) || !sided || !self.selection.shows(record) {
            return;
        }
        let mut text = record.text();
        if self.first_field {
            let end = text.iter().position(|byte| *byte == b':' || byte.is_ascii_whitespace());
            text = &text[..end.unwrap_or(text.len())];
        }
        if !text.is_empty() {
            self.table.count(tag, text);
        }
    }

    fn print(&self, output: &mut dyn Write) -> io::Result<()> {
        for entry in self.table.ranking() {
            write!(output, "{:9.2} {} ", entry.count, entry.tag.name())?;
            writeln!(output, "{}", legible::line(entry.text))?;
        }
        output.flush()
    }
}

impl Sink for Ranking {
    fn group(&mut self, group: &[Transaction], _output: &mut dyn Write) -> io::Result<()> {
        self.take(group);
        Ok(())
    }
}

/// The ranking on a screen.
struct RankingView {
    ranking: Ranking,
    help: Help,
    /// Number of the entry in the first line.
    top: usize,
}

impl View for RankingView {
    fn take(&mut self, group: &[Transaction]) -> Option<Duration> {
        self.ranking.take(group);
        None
    }

    fn draw(&mut self, log: &LogFacts, canvas: &mut Canvas) {
        draw::head(self.ranking.table.len(), log, canvas);
        if self.help.shown {
            let visible = canvas.height().saturating_sub(draw::FIRST_LINE);
            self.help.draw(&help_lines(KEYS), canvas, draw::FIRST_LINE, visible);
            return;
        }
        let ranking = self.ranking.table.ranking();
        self.top = self.top.min(ranking.len().saturating_sub(1));
        draw::entries(&ranking, self.top, canvas);
    }

    fn press(&mut self, key: Key, lines: usize) -> Response {
        let Some(action) = KeyRow::find(KEYS, key) else { return Response::Unknown };
        let page = lines.saturating_sub(draw::FIRST_LINE).max(1);
        let by = match action {
            Action::Help => {
                self.help.toggle();
                0
            }
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -(page as isize),
            Action::PageDown => page as isize,
            Action::Top => isize::MIN,
            Action::Bottom => isize::MAX,
            Action::Redraw => return Response::Redraw,
            Action::Suspend => return Response::Suspend,
            Action::Quit => return Response::Quit,
        };
        if self.help.shown {
            self.help.scroll(by, page, help_lines(KEYS).len());
        } else {
            let last = self.ranking.table.len().saturating_sub(page);
            self.top = self.top.saturating_add_signed(by).min(last);
        }
        Response::Changed
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn pass(&mut self, time: Duration) {
        self.ranking.table.fade(time.as_secs_f64());
    }
}
