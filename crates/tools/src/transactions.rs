//! `varnishlog`: the log, by transaction.
//!
//! Selection of records: `shm::read::select`; output: `transactions/print.rs`, with `--json`
//! `transactions/object.rs`; everything else, from attaching to daemon mode, is common to the log
//! tools: `follow.rs`.

mod object;
pub(crate) mod print;

use std::ffi::OsString;
use std::io::{self, Write};

use shm::layout::Layout;
use shm::read::file::write_records;
use shm::read::group::Grouping;
use shm::read::record::{Record, record_words};
use shm::read::select::{Selection, Sides};
use shm::read::transaction::{Kind, Transaction};
use surface::tag::Tag;

use crate::Streams;
use crate::follow::{Follow, Sink, selection};
use crate::options;

/// The letter that represents `--json`.
const JSON: char = 'J';

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("log", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let all = [Grouping::Raw, Grouping::Vxid, Grouping::Request, Grouping::Session];
    let prepared = Follow::from_options(&given, &all).and_then(|follow| {
        let mut selection = selection(&given)?;
        if follow.grouping == Grouping::Raw && given.has('R') && selection.is_restricted() {
            return Err("-R may not be used with -i, -I, -x or -X in -g raw".to_owned());
        }
        let form = match (given.has(JSON), follow.writes && !given.has('A')) {
            (true, _) => Form::Objects,
            (false, true) => Form::Binary,
            (false, false) => Form::Text,
        };
        if form == Form::Binary {
            // Without these records the file could not be grouped again.
            selection.include_tags(&[Tag::Begin, Tag::Link, Tag::End]);
        }
        Ok((follow, selection, form))
    });
    let (mut follow, selection, form) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            return 1;
        }
    };
    let sides = follow.sides;
    let whole_groups = matches!(follow.grouping, Grouping::Request | Grouping::Session);
    let (verbose, layout) = (given.has('v'), Layout::default());
    let mut report = Report { selection, sides, verbose, form, layout, whole_groups, text: Vec::new() };
    follow.run(&mut report, form == Form::Binary, streams)
}

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Binary,
    Objects,
}

struct Report {
    selection: Selection,
    /// The selection by `-b`, `-c` and `-E`; without any of them everything is shown.
    ///
    /// Compat: with both `-b` and `-c` the stock 7.1 program shows headers without records; here
    /// both sides are shown.
    sides: Option<Sides>,
    verbose: bool,
    form: Form,
    /// The layout of the records in a log file.
    layout: Layout,
    whole_groups: bool,
    text: Vec<u8>,
}

impl Report {
    fn shows(&self, transaction: &Transaction, record: &Record) -> bool {
        // A raw transaction is a single record, with a side of its own.
        let sided = transaction.kind != Kind::Raw || self.sides.is_none_or(|sides| sides.shows_record(record));
        sided && self.selection.shows(record)
    }
}

impl Sink for Report {
    fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()> {
        let shown = group.iter().filter(|transaction| self.sides.is_none_or(|sides| sides.shows(transaction)));
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        match self.form {
            Form::Binary => {
                for transaction in shown {
                    self.write_selected(transaction, output)?;
                }
            }
            Form::Objects => {
                let shows = |transaction: &Transaction, record: &Record| self.shows(transaction, record);
                let shown: Vec<&Transaction> = shown.collect();
                if self.whole_groups {
                    object::group(&shown, &shows, &mut text);
                } else {
                    shown.iter().for_each(|transaction| object::line(transaction, &shows, &mut text));
                }
            }
            Form::Text => {
                for transaction in shown {
                    print::header(transaction, self.verbose, &mut text);
                    for record in transaction.records().filter(|record| self.shows(transaction, record)) {
                        print::record(transaction, &record, self.verbose, &mut text);
                    }
                }
                if group.first().is_some_and(|first| first.level > 0) && !text.is_empty() {
                    text.push(b'\n');
                }
            }
        }
        self.text = text;
        output.write_all(&self.text)
    }
}

impl Report {
    fn write_selected(&self, transaction: &Transaction, output: &mut dyn Write) -> io::Result<()> {
        let mut rest = transaction.words();
        for record in transaction.records() {
            let Some(words) = rest.first().map(|first| record_words(*first)) else { break };
            let (words, tail) = rest.split_at(words);
            rest = tail;
            if self.shows(transaction, &record) {
                write_records(output, self.layout, words)?;
            }
        }
        Ok(())
    }
}
