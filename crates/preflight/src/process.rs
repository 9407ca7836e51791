//! The command line of a running varnishd, from `/proc`.

use crate::report::Place;
use crate::words::Word;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use surface::limits::{PREFLIGHT_FILE_BYTES_MAX, PREFLIGHT_WORDS_MAX};

/// The number of the manager process of a running varnishd.
///
/// # Errors
/// There is none, or there are several.
pub(crate) fn find() -> Result<u32, String> {
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32)> = numbers.filter_map(|number| Some((number, parent_of_varnishd(number)?))).collect();
    // A worker that has not taken another name yet is the child of one.
    let managers: Vec<u32> = all
        .iter()
        .filter(|(_, parent)| !all.iter().any(|(number, _)| number == parent))
        .map(|(number, _)| *number)
        .collect();
    match managers[..] {
        [] => Err("no varnishd runs here".to_owned()),
        [one] => Ok(one),
        _ => Err(format!("several varnishd run here: --pid {managers:?}")),
    }
}

/// The parent of a process, if that is a varnishd.
fn parent_of_varnishd(number: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name stands in parentheses, and may contain some.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let parent = tail.split_whitespace().nth(1)?.parse().ok()?;
    (name == "varnishd").then_some(parent)
}

/// The words behind the program's name.
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

    #[test]
    fn a_process_tells_its_words() {
        let own: Vec<_> = std::env::args_os().skip(1).collect();
        let found = words(std::process::id()).unwrap();
        assert_eq!(found.into_iter().map(|word| word.text).collect::<Vec<_>>(), own);
        assert!(words(u32::MAX).unwrap_err().starts_with("/proc/4294967295/cmdline: "));
    }
}
