//! The command line of a running varnishd, from `/proc`.

use crate::report::Place;
use crate::words::Word;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use surface::limits::{PREFLIGHT_FILE_BYTES_MAX, PREFLIGHT_WORDS_MAX};

/// The number of the manager process of a running varnishd.
///
/// A Copal that runs on the same machine is not a candidate, though its manager has the same name.
///
/// # Errors
/// There is none, or there are several.
pub(crate) fn find() -> Result<u32, String> {
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    choose(&numbers.filter_map(varnishd).collect::<Vec<_>>())
}

/// A process that is called varnishd.
struct Candidate {
    number: u32,
    parent: u32,
    is_copal: bool,
}

fn choose(all: &[Candidate]) -> Result<u32, String> {
    // A worker that has not changed its name yet is the child of one.
    let is_worker = |one: &Candidate| all.iter().any(|other| other.number == one.parent);
    let (copals, managers): (Vec<&Candidate>, Vec<_>) =
        all.iter().filter(|one| !is_worker(one)).partition(|one| one.is_copal);
    let list = |of: &[&Candidate]| of.iter().map(|one| one.number.to_string()).collect::<Vec<_>>().join(", ");
    match managers[..] {
        [] if copals.is_empty() => Err("no varnishd runs here".to_owned()),
        [] => Err(format!("no varnishd runs here but Copal's own; --pid looks at one all the same: {}", list(&copals))),
        [one] => Ok(one.number),
        _ => Err(format!("several varnishd run here; choose one with --pid: {}", list(&managers))),
    }
}

/// Facts about a process that is called varnishd.
fn varnishd(number: u32) -> Option<Candidate> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name is in parentheses, and may contain some.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let parent = tail.split_whitespace().nth(1)?.parse().ok()?;
    (name == "varnishd").then(|| Candidate { number, parent, is_copal: is_copal(number) })
}

/// True if the program file of a process is called copal, through any link. False if we may not
/// read that.
fn is_copal(number: u32) -> bool {
    let Ok(program) = fs::read_link(format!("/proc/{number}/exe")) else { return false };
    // The program file of a server that was reinstalled since has this suffix.
    let name = program.file_name().unwrap_or_default().as_bytes();
    name.strip_suffix(b" (deleted)").unwrap_or(name) == b"copal"
}

/// The words after the program's name.
///
/// # Errors
/// The process has gone, or has no command line.
pub(crate) fn words(number: u32) -> Result<Vec<Word>, String> {
    let file = format!("/proc/{number}/cmdline");
    let mut bytes = Vec::new();
    let read = File::open(&file).and_then(|file| file.take(PREFLIGHT_FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| format!("{file}: {}", manager::arguments::reason(&error)))?;
    let Some(text) = bytes.strip_suffix(b"\0").filter(|text| !text.is_empty()) else {
        return Err(format!("{file}: empty"));
    };
    let words = text.split(|byte| *byte == 0).skip(1).take(PREFLIGHT_WORDS_MAX);
    Ok(words.map(|word| Word { text: OsString::from_vec(word.to_vec()), place: Place::new(&file, 0) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(number: u32, parent: u32, is_copal: bool) -> Candidate {
        Candidate { number, parent, is_copal }
    }

    #[test]
    fn copal_next_to_varnish_is_not_examined() {
        let both = [candidate(10, 1, false), candidate(11, 10, false), candidate(20, 1, true)];
        assert_eq!(choose(&both), Ok(10));
        let own = choose(&[candidate(20, 1, true)]).unwrap_err();
        assert_eq!(own, "no varnishd runs here but Copal's own; --pid looks at one all the same: 20");
    }

    #[test]
    fn of_several_servers_one_has_to_be_chosen() {
        assert_eq!(choose(&[]).unwrap_err(), "no varnishd runs here");
        let two = choose(&[candidate(10, 1, false), candidate(30, 1, false), candidate(31, 30, false)]).unwrap_err();
        assert_eq!(two, "several varnishd run here; choose one with --pid: 10, 30");
    }

    #[test]
    fn command_line_of_a_process_is_read() {
        let own: Vec<_> = std::env::args_os().skip(1).collect();
        let found = words(std::process::id()).unwrap();
        assert_eq!(found.into_iter().map(|word| word.text).collect::<Vec<_>>(), own);
        assert!(words(u32::MAX).unwrap_err().starts_with("/proc/4294967295/cmdline: "));
    }
}
