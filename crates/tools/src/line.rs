//! `varnishncsa`: one line per client or backend request.
//!
//! The format's text → `line/format.rs`; facts from a transaction's records → `line/facts.rs`; the
//! line → `line/print.rs`, or `line/object.rs` for `--json` without a format; lines for other
//! programs → `line/maker.rs`.

mod facts;
mod format;
pub(crate) mod maker;
mod object;
mod print;
mod safety;
mod strftime;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};

use shm::read::group::Grouping;
use shm::read::select::Sides;
use shm::read::transaction::{Kind, Transaction};

use crate::Streams;
use crate::follow::{Follow, Sink, reason};
use crate::options::{self, Given};
use facts::Facts;
use format::Format;
use print::Escapes;

const DEFAULT_FORMAT: &str = "%h %l %u %t \"%r\" %s %b \"%{Referer}i\" \"%{User-agent}i\"";

/// The letter that represents `--json`.
const JSON: char = 'J';

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("ncsa", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let Prepared { mut follow, format, escapes, objects } = match prepare(&given) {
        Ok(prepared) => prepared,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    let default = Sides { client: true, backend: false, esi: false };
    let sides = *follow.sides.get_or_insert(default);
    let mut report = Report {
        format,
        sides,
        escapes,
        objects,
        whole_groups: follow.grouping == Grouping::Request,
        text: Vec::new(),
    };
    follow.run(&mut report, false, streams)
}

/// Checks a command line like [`run`], without running anything.
///
/// # Errors
/// The error message.
pub(crate) fn check(args: &[OsString]) -> Result<(), String> {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        input: &mut io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: surface::program::Called::Stock,
    };
    let parsed = options::parse("ncsa", args, &mut streams);
    match parsed {
        Ok(given) => prepare(&given).map(drop),
        Err(0) => Ok(()),
        Err(_) => Err(String::from_utf8_lossy(&error).lines().next().unwrap_or_default().to_owned()),
    }
}

/// The settings of a command line.
struct Prepared {
    follow: Follow,
    format: Format,
    escapes: Escapes,
    objects: bool,
}

fn prepare(given: &Given) -> Result<Prepared, String> {
    let escapes = match (given.has(JSON), given.has('j')) {
        (true, _) => Escapes::StrictJson,
        (false, true) => Escapes::Json,
        (false, false) => Escapes::Text,
    };
    let objects = escapes == Escapes::StrictJson && !given.has('F') && !given.has('f');
    let follow = Follow::from_options(given, &[Grouping::Vxid, Grouping::Request])?;
    let text = if objects { object::FORMAT.to_owned() } else { format_text(given)? };
    let format = Format::parse(&text, escapes.safety())?;
    if escapes == Escapes::StrictJson && !objects {
        object::check_template(&format)?;
    }
    Ok(Prepared { follow, format, escapes, objects })
}

fn format_text(given: &Given) -> Result<String, String> {
    let of = |letter: char| given.options.iter().filter(move |(found, _)| *found == letter);
    if of('F').count() + of('f').count() > 1 {
        return Err("Format already set".to_owned());
    }
    if let Some(text) = given.last('F') {
        return Ok(text.to_string_lossy().into_owned());
    }
    given.last('f').map_or_else(|| Ok(DEFAULT_FORMAT.to_owned()), read_format_file)
}

fn read_format_file(path: &OsStr) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("Can't open format file ({})", reason(&error)))?;
    match String::from_utf8_lossy(&bytes).split_inclusive('\n').next() {
        Some(line) => Ok(line.strip_suffix('\n').unwrap_or(line).to_owned()),
        None => Err("Empty format file".to_owned()),
    }
}

struct Report {
    format: Format,
    sides: Sides,
    escapes: Escapes,
    objects: bool,
    whole_groups: bool,
    text: Vec<u8>,
}

impl Sink for Report {
    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()> {
        for transaction in group {
            // A group is reported as a whole; sides only select among single transactions.
            let wanted = self.whole_groups || transaction.kind != Kind::Raw && self.sides.shows(transaction);
            if !wanted {
                continue;
            }
            let Some(facts) = Facts::gather(transaction, &self.format, self.escapes.safety()) else { continue };
            self.text.clear();
            if self.objects {
                object::line(&facts, &mut self.text);
            } else if !print::line(&self.format, &facts, self.escapes, &mut self.text) {
                continue;
            }
            self.text.push(b'\n');
            output.write_all(&self.text)?;
        }
        Ok(())
    }
}
