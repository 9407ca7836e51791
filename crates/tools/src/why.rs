//! `copal why`: explains in plain words why a request was a hit, a miss, a pass or an error.
//!
//! The reasons were recorded where the decisions were made (`surface::reason`). This tool finds the
//! request in the log and reports them, with other facts from the log: the line of VCL, the origin
//! of the TTL, the behaviour of the backend. Collecting the facts: `why/account.rs`,
//! `why/neighbours.rs`; presenting them: `why/tell.rs` on a `why/page.rs`, `why/object.rs`.
//!
//! *Invariant*: untrusted text is shown as `surface::legible` spells it, and cookie values are
//! never shown.

mod account;
mod address;
mod causes;
mod cookies;
mod handling;
mod lifetime;
mod near_miss;
mod neighbours;
mod object;
mod page;
mod source;
mod tell;

use crate::Streams;
use crate::follow::{Follow, Sink};
use crate::options::{self, Given};
use account::Account;
use address::Wanted;
use causes::Causes;
use neighbours::Neighbours;
use shm::read::group::Grouping;
use shm::read::transaction::{Kind, Transaction};
use std::ffi::OsString;
use std::io::{self, Write};
use surface::program::program;

/// The row of this tool.
const PART: &str = "why";
/// Exit status if nothing matched.
const NOT_FOUND: i32 = 1;
/// Exit status for a wrong command line.
const USAGE_ERROR: i32 = 2;

struct Options {
    wanted: Wanted,
    follow: bool,
    count: Option<usize>,
    json: bool,
    given: Given,
}

fn read(given: &Given) -> Result<Options, String> {
    let follow = given.has('f');
    let count = match given.last('k') {
        None => None,
        Some(text) => {
            let count = text.to_str().and_then(|text| text.parse().ok()).filter(|count| *count > 0);
            Some(count.ok_or_else(|| format!("-k: '{}' is no number", text.to_string_lossy()))?)
        }
    };
    let mut source = Given { options: vec![('g', "request".into())], rest: Vec::new() };
    source.options.extend(given.options.iter().filter(|(letter, _)| matches!(letter, 'n' | 'r' | 't')).cloned());
    if !follow {
        source.options.push(('d', OsString::new()));
    }
    let words: Vec<String> = given.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(Options { wanted: Wanted::parse(&words)?, follow, count, json: given.has('J'), given: source })
}

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse(PART, args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let options = match read(&given) {
        Ok(options) => options,
        Err(text) => return options::wrong(program(PART), &text, streams),
    };
    let mut follow = match Follow::from_options(&options.given, &[Grouping::Request]) {
        Ok(follow) => follow,
        Err(text) => {
            let _ = writeln!(streams.error, "copal why: {text}");
            return USAGE_ERROR;
        }
    };
    let mut finder = Finder::new(options, streams.program && crate::screen::has_colors());
    let status = follow.run(&mut finder, false, streams);
    if status != 0 && !finder.is_satisfied() {
        return USAGE_ERROR;
    }
    if !finder.options.follow && (finder.found.is_empty() || finder.options.wanted == Wanted::All) {
        finder.find_refused(streams);
    }
    if finder.found.is_empty() && !finder.by_address.is_empty() {
        let _ = writeln!(streams.error, "copal why: no request says that host; those for any host with this path:");
        finder.found = std::mem::take(&mut finder.by_address);
    }
    let kept = finder.options.count.unwrap_or(usize::MAX);
    let skipped = finder.found.len().saturating_sub(kept);
    let found = std::mem::take(&mut finder.found);
    for mut account in found.into_iter().skip(skipped) {
        account.near = finder.known.of(&account);
        if finder.tell(&account, streams.output).is_err() {
            return USAGE_ERROR;
        }
        finder.told += 1;
    }
    if finder.told > 0 {
        return 0;
    }
    let _ = writeln!(
        streams.error,
        "copal why: no such request in the log, which keeps the latest only (parameter vsl_space); make it now, or wait for \
         it with --follow"
    );
    NOT_FOUND
}

/// The explanations of the requests in a group.
pub(crate) fn explain(group: &[Transaction]) -> Vec<String> {
    let accounts = Account::all_of(group);
    accounts.iter().map(|account| tell::plain(account, &mut Causes::default()).finish(false)).collect()
}

/// Receives the groups of the log, one for each request.
struct Finder {
    options: Options,
    /// Requests to report at the end; empty if requests are reported immediately.
    found: Vec<Account>,
    /// Requests to report if nothing was found: requests for other hosts that match the server's
    /// address.
    by_address: Vec<Account>,
    /// Earlier contents of the cache.
    known: Neighbours,
    told: usize,
    /// Advice that has been printed.
    causes: Causes,
    /// True if the output shows colors.
    has_colors: bool,
}

impl Finder {
    fn new(options: Options, has_colors: bool) -> Finder {
        Finder {
            options,
            found: Vec::new(),
            by_address: Vec::new(),
            known: Neighbours::default(),
            told: 0,
            causes: Causes::default(),
            has_colors,
        }
    }

    fn tell(&mut self, account: &Account, output: &mut dyn Write) -> io::Result<()> {
        if self.options.json {
            writeln!(output, "{}", object::line(account))
        } else {
            let page = tell::plain(account, &mut self.causes);
            output.write_all(page.finish(self.has_colors).as_bytes())
        }
    }

    /// Searches for input that was too large to become a request: its reason is a record of its
    /// session, which is not in a group.
    fn find_refused(&mut self, streams: &mut Streams) {
        let mut given = Given { options: self.options.given.options.clone(), rest: Vec::new() };
        // A pipe has already been read.
        if given.last('r').is_some_and(|file| file == "-") {
            return;
        }
        given.options.retain(|(letter, _)| *letter != 'g');
        given.options.push(('g', "raw".into()));
        let Ok(mut follow) = Follow::from_options(&given, &[Grouping::Raw]) else { return };
        let mut refused = Refused(Vec::new());
        follow.run(&mut refused, false, streams);
        self.found.extend(refused.0.into_iter().filter(|account| self.options.wanted.is(account)));
    }

    fn is_satisfied(&self) -> bool {
        self.options.follow && self.options.count.is_some_and(|count| self.told >= count)
    }
}

impl Sink for Finder {
    fn group(&mut self, group: &[Transaction], output: &mut dyn Write) -> io::Result<()> {
        if !group.iter().any(|transaction| transaction.kind == Kind::Request) {
            return Ok(());
        }
        Account::all_of(group).into_iter().try_for_each(|account| self.take(account, output))
    }
}

impl Finder {
    /// Takes one request: stores it for the end, or reports it now, if it matches.
    fn take(&mut self, mut account: Account, output: &mut dyn Write) -> io::Result<()> {
        self.known.note(&account);
        if !self.options.wanted.is(&account) {
            if !self.options.follow && self.options.wanted.is_by_address(&account) {
                self.by_address.push(account);
            }
            return Ok(());
        }
        if !self.options.follow {
            self.found.push(account);
            return Ok(());
        }
        account.near = self.known.of(&account);
        self.tell(&account, output)?;
        output.flush()?;
        self.told += 1;
        if self.is_satisfied() {
            // Stops following the log, as if the output had been closed.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

/// Receives single records: the reasons of sessions that ended before a request was complete.
struct Refused(Vec<Account>);

impl Sink for Refused {
    fn group(&mut self, group: &[Transaction], _output: &mut dyn Write) -> io::Result<()> {
        self.0.extend(group.iter().filter_map(Account::of_refused));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_command_lines_get_one_line() {
        for (args, expected) in [
            (vec!["-k", "x"], "-k: 'x' is no number"),
            (vec!["/a", "/b"], "one URL or XID at a time"),
            (vec!["--what"], "--what"),
        ] {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let (mut output, mut error) = (Vec::new(), Vec::new());
            let mut streams = Streams {
                input: &mut &b""[..],
                output: &mut output,
                error: &mut error,
                program: false,
                called: surface::program::Called::Copal,
            };
            assert_eq!(run(&args, &mut streams), USAGE_ERROR);
            let said = String::from_utf8(error).unwrap();
            assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
        }
    }
}
