//! `varnishlog`: the log, by transaction.
//!
//! Which records are shown: `transactions/select.rs`; how they look: `transactions/print.rs`; everything else, from
//! attaching to daemon mode, is common to the log's tools: `follow.rs`.

mod print;
mod select;

use std::ffi::OsString;
use std::io::{self, Write};

use shm::read::file::{FILE_HEAD, write_records};
use shm::read::group::{Grouping, Transaction};
use surface::tag::Tag;

use crate::Streams;
use crate::follow::{Follow, Sink};
use crate::options::{OptionRow, Program, option};
use select::{Selection, Sides};

const OPTIONS: &[OptionRow] = &[
    option('a', "", "Append to the output file"),
    option('A', "", "Write text into the output file"),
    option('b', "", "Only backend transactions"),
    option('c', "", "Only client transactions"),
    option('C', "", "Ignore case in regular expressions"),
    option('d', "", "Report the log as it is, then exit"),
    option('D', "", "Run as a daemon"),
    option('E', "", "Client transactions, ESI included"),
    option('g', "<session|request|vxid|raw>", "How to group (default: vxid)"),
    option('h', "", "This text"),
    option('i', "<taglist>", "Include tags"),
    option('I', "<[taglist:]regex>", "Include by regular expression"),
    option('k', "<num>", "Exit after this many groups"),
    option('L', "<limit>", "Incomplete transactions to keep"),
    option('n', "<dir>", "Work directory of the server"),
    option('P', "<file>", "File for the process id"),
    option('Q', "<file>", "File with a query"),
    option('q', "<query>", "Query that a group must satisfy"),
    option('r', "<filename>", "Read a log file"),
    option('R', "<limit[/duration]>", "Limit the rate of groups"),
    option('t', "<seconds|off>", "How long to wait for a server"),
    option('T', "<seconds>", "How long to wait for the end of a transaction"),
    option('u', "", "Write every group at once"),
    option('v', "", "Number on every line"),
    option('V', "", "Version"),
    option('w', "<filename>", "Output file"),
    option('x', "<taglist>", "Exclude tags"),
    option('X', "<[taglist:]regex>", "Exclude by regular expression"),
];

const PROGRAM: Program =
    Program { name: "varnishlog", options: OPTIONS, rest: "", usage_status: 1, stops_at_word: false };

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match PROGRAM.parse(args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let all = [Grouping::Raw, Grouping::Vxid, Grouping::Request, Grouping::Session];
    let prepared = Follow::from_options(&given, &all).and_then(|follow| {
        let selection = Selection::from_options(&given)?;
        if follow.grouping == Grouping::Raw && given.has('R') && selection.is_restricted() {
            return Err("-R may not be used with -i, -I, -x or -X in -g raw".to_owned());
        }
        Ok((follow, selection))
    });
    let (mut follow, selection) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    let sides = Sides { client: given.has('c') || given.has('E'), backend: given.has('b'), esi: given.has('E') };
    let binary = follow.write_to.is_some() && !given.has('A');
    let head: &'static [u8] = if binary { FILE_HEAD } else { b"" };
    let mut report = Report { selection, sides, verbose: given.has('v'), binary, text: Vec::new() };
    follow.run(&mut report, head, streams)
}

struct Report {
    selection: Selection,
    sides: Sides,
    verbose: bool,
    binary: bool,
    text: Vec<u8>,
}

impl Sink for Report {
    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()> {
        let shown = group.iter().filter(|transaction| self.sides.shows(transaction));
        if self.binary {
            for transaction in shown {
                write_selected(transaction, &self.selection, &self.sides, output)?;
            }
            return Ok(());
        }
        self.text.clear();
        for transaction in shown {
            print::header(transaction, self.verbose, &mut self.text);
            for record in transaction.records() {
                if self.sides.shows_record(transaction, &record) && self.selection.shows(&record) {
                    print::record(transaction, &record, self.verbose, &mut self.text);
                }
            }
        }
        if group.first().is_some_and(|first| first.level > 0) && !self.text.is_empty() {
            self.text.push(b'\n');
        }
        output.write_all(&self.text)
    }
}

fn write_selected(
    transaction: &Transaction,
    selection: &Selection,
    sides: &Sides,
    output: &mut dyn Write,
) -> io::Result<()> {
    let mut rest = transaction.words();
    for record in transaction.records() {
        let (words, tail) = rest.split_at(2 + record.payload.len().div_ceil(4));
        rest = tail;
        // Without these the file could not be grouped again.
        let structure = matches!(record.tag(), Some(Tag::Begin | Tag::Link | Tag::End));
        if sides.shows_record(transaction, &record) && (structure || selection.shows(&record)) {
            write_records(output, words)?;
        }
    }
    Ok(())
}
