//! The dialogue at a terminal: a line editor with history, completion, colours, and here-documents
//! over several lines.
//!
//! The output for a command is that of the stock program: the status, then the reply. The history
//! is a file in the user's home, of limited length; it does not matter if the home is not writable.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

use cli_proto::request::{Request, RequestReader};
use cli_proto::response::{Response, status};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use surface::legible;
use surface::limits::{CLI_COMMAND_BYTES_MAX, CLI_HISTORY_LINES_MAX};

use super::completion::{self, Kind};
use super::connection::CliConnection;
use super::{Failure, REFUSED};

const PROMPT: &str = "varnish> ";
/// File name in the user's home.
const HISTORY_FILE: &str = ".varnishadm_history";

/// Runs the dialogue until the user or the server ends it.
pub(super) fn converse(connection: CliConnection, output: &mut dyn Write) -> Result<i32, Failure> {
    let broken = |_| (REFUSED, "Cannot write".to_owned());
    let colours = Colours::of_terminal();
    let banner = connection.banner.clone();
    let connection = Rc::new(RefCell::new(connection));
    let mut editor = editor(LineHelper { connection: Rc::clone(&connection), colours })
        .map_err(|error| (REFUSED, format!("Cannot use the terminal: {error}")))?;
    let history =
        std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(HISTORY_FILE));
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    let banner = legible::lines(banner.as_bytes());
    write!(output, "{}\n{banner}\n", colours.status(status::OK)).map_err(broken)?;
    loop {
        output.flush().map_err(broken)?;
        let text = match editor.readline(PROMPT) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(_) => return Ok(0),
        };
        if text.trim().is_empty() {
            continue;
        }
        if editor.add_history_entry(&text).unwrap_or(false)
            && let Some(path) = &history
        {
            let _ = editor.append_history(path);
        }
        let mut connection = connection.borrow_mut();
        for _ in 0..send(&mut connection, &text)? {
            let response = connection.reply()?;
            show(&response, colours, output).map_err(broken)?;
            if response.status == status::CLOSE {
                output.flush().map_err(broken)?;
                return Ok(0);
            }
        }
    }
}

/// Sends the typed text; returns the number of its commands.
fn send(connection: &mut CliConnection, text: &str) -> Result<usize, Failure> {
    let mut commands = RequestReader::new(CLI_COMMAND_BYTES_MAX);
    let lines = format!("{text}\n");
    commands.push(lines.as_bytes());
    let mut count = 0;
    while let Some(request) = commands.next() {
        if request == Request::TooLong {
            return Err((REFUSED, "The command is too long".to_owned()));
        }
        count += 1;
    }
    connection.send(lines.as_bytes())?;
    Ok(count)
}

fn show(response: &Response, colours: Colours, output: &mut dyn Write) -> std::io::Result<()> {
    writeln!(output, "{}", colours.status(response.status))?;
    if !response.body.is_empty() {
        writeln!(output, "{}", legible::lines(response.body.as_bytes()))?;
    }
    super::tell_if_cut(response, output)
}

fn editor(assistant: LineHelper) -> rustyline::Result<Editor<LineHelper, FileHistory>> {
    let colours = if assistant.colours.on { ColorMode::Enabled } else { ColorMode::Disabled };
    let config = Config::builder()
        .max_history_size(CLI_HISTORY_LINES_MAX)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(colours)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(assistant));
    Ok(editor)
}

/// Colours, if any.
#[derive(Clone, Copy)]
struct Colours {
    on: bool,
}

impl Colours {
    /// Coloured if the terminal shows colours and `NO_COLOR` is not set.
    fn of_terminal() -> Colours {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Colours { on: std::io::stdout().is_terminal() && !refused && !dumb }
    }

    /// The line above a reply.
    fn status(self, status: u16) -> String {
        let line = format!("{status:<3}        ");
        let colour = match status {
            200 => "32",
            201 => "33",
            _ => "31",
        };
        self.paint(&line, colour).into_owned()
    }

    fn paint<'a>(self, text: &'a str, colour: &str) -> Cow<'a, str> {
        if self.on && !text.is_empty() { format!("\x1b[{colour}m{text}\x1b[0m").into() } else { text.into() }
    }
}

/// Help while a line is typed.
struct LineHelper {
    connection: Rc<RefCell<CliConnection>>,
    colours: Colours,
}

impl LineHelper {
    /// The server's names of one kind; empty if it does not answer.
    fn ask(&self, kind: Kind) -> Vec<String> {
        let Ok(mut connection) = self.connection.try_borrow_mut() else { return Vec::new() };
        let reply = connection.send(kind.question().as_bytes()).and_then(|()| connection.reply());
        match reply {
            Ok(response) if response.is_ok() => kind.names(&response.body),
            _ => Vec::new(),
        }
    }
}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or_default();
        let (start, words) = completion::candidates(typed, |kind| self.ask(kind));
        Ok((start, words.into_iter().map(|(display, replacement)| Pair { display, replacement }).collect()))
    }
}

impl Hinter for LineHelper {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, _: &Context) -> Option<String> {
        if position == line.len() { completion::hint(line) } else { None }
    }
}

impl Highlighter for LineHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        let end = line.find(char::is_whitespace).unwrap_or(line.len());
        let (verb, rest) = line.split_at(end);
        let known = surface::cli::command(verb.strip_prefix('-').unwrap_or(verb)).is_some();
        match known {
            true => format!("{}{rest}", self.colours.paint(verb, "1")).into(),
            false => line.into(),
        }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        self.colours.paint(prompt, "36")
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        self.colours.paint(hint, "2")
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

impl Validator for LineHelper {
    /// A here-document continues to its last line.
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let mut commands = RequestReader::new(CLI_COMMAND_BYTES_MAX);
        commands.push(context.input().as_bytes());
        commands.push(b"\n");
        while commands.next().is_some() {}
        Ok(if commands.is_partial() { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Helper for LineHelper {}
