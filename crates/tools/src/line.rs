//! `varnishncsa`: one line per client or backend request.
//!
//! The format's text → `line/format.rs`; what a transaction's records say → `line/facts.rs`; the line → `line/print.rs`.

mod facts;
mod format;
mod print;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};

use shm::read::group::{Grouping, Kind, Reason, Transaction};

use crate::Streams;
use crate::follow::{Follow, Sink, reason};
use crate::options::{Given, OptionRow, Program, option};
use facts::Facts;
use format::Format;

const DEFAULT_FORMAT: &str = "%h %l %u %t \"%r\" %s %b \"%{Referer}i\" \"%{User-agent}i\"";

const OPTIONS: &[OptionRow] = &[
    option('a', "", "Append to the output file"),
    option('b', "", "Backend requests"),
    option('c', "", "Client requests (default)"),
    option('C', "", "Ignore case in regular expressions"),
    option('d', "", "Report the log as it is, then exit"),
    option('D', "", "Run as a daemon"),
    option('E', "", "Client requests, ESI included"),
    option('F', "<format>", "Format of a line"),
    option('f', "<formatfile>", "File with the format of a line"),
    option('g', "<request|vxid>", "How to group (default: vxid)"),
    option('h', "", "This text"),
    option('j', "", "Escape as JSON does"),
    option('L', "<limit>", "Incomplete transactions to keep"),
    option('n', "<dir>", "Work directory of the server"),
    option('P', "<file>", "File for the process id"),
    option('Q', "<file>", "File with a query"),
    option('q', "<query>", "Query that a group must satisfy"),
    option('r', "<filename>", "Read a log file"),
    option('R', "<limit[/duration]>", "Limit the rate of groups"),
    option('t', "<seconds|off>", "How long to wait for a server"),
    option('V', "", "Version"),
    option('w', "<filename>", "Output file"),
];

const PROGRAM: Program =
    Program { name: "varnishncsa", options: OPTIONS, rest: "", usage_status: 1, stops_at_word: false };

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match PROGRAM.parse(args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let prepared = Follow::from_options(&given, &[Grouping::Vxid, Grouping::Request])
        .and_then(|follow| Ok((follow, Format::parse(&format_text(&given)?)?)));
    let (mut follow, format) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    let backend = given.has('b');
    let esi = given.has('E');
    let client = given.has('c') || esi || !backend;
    let mut report = Report {
        format,
        backend,
        client,
        esi,
        json: given.has('j'),
        whole_groups: follow.grouping == Grouping::Request,
        text: Vec::new(),
    };
    follow.run(&mut report, b"", streams)
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
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err("Empty format file".to_owned()),
    }
}

struct Report {
    format: Format,
    client: bool,
    backend: bool,
    esi: bool,
    json: bool,
    whole_groups: bool,
    text: Vec<u8>,
}

impl Sink for Report {
    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()> {
        for transaction in group {
            // A group is reported whole; the sides choose among single transactions only.
            let wanted = self.whole_groups
                || match transaction.kind {
                    Kind::Request => self.client && (self.esi || transaction.reason != Reason::Esi),
                    Kind::BackendRequest => self.backend,
                    Kind::Session | Kind::Unknown | Kind::Raw => false,
                };
            if !wanted {
                continue;
            }
            let Some(facts) = Facts::gather(transaction, &self.format) else { continue };
            // Bytes that are no request are not safe to show as JSON.
            if self.json && facts.is_garbage {
                continue;
            }
            self.text.clear();
            if !print::line(&self.format, &facts, self.json, &mut self.text) {
                continue;
            }
            self.text.push(b'\n');
            output.write_all(&self.text)?;
        }
        Ok(())
    }
}
