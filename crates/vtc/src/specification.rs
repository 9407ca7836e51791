//! Interpreter of a script, or of the script in a block: command after command, on behalf of an
//! actor.
//!
//! The [`Actor`] (a client, a server, a tunnel, the test itself) defines the commands; those that
//! work everywhere are here: `barrier`, `delay`, `loop`, `shell`, `include`, `filewrite`.
//!
//! *Invariant:* when a test has failed or ended, no further command is started.

use std::io::Write;

use surface::test_script;

pub use crate::arguments::{Arguments, parse_number};
use crate::journal::{Journal, Place};
use crate::lex::{Command, Script};
use crate::test::{Cancel, Outcome};
use crate::{barrier, shell};

/// Deepest nesting of `loop` and `include`.
const NESTING_MAX: u32 = 64;
/// Largest file that may be included, in bytes.
const INCLUDE_BYTES_MAX: u64 = 16 << 20;

/// Executes the commands of a script.
pub trait Actor {
    /// Executes a command; false if there is no such command here.
    ///
    /// # Errors
    /// The test has failed, or is over.
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool>;

    /// Stops this actor's thread.
    fn cancel(&self) -> &Cancel;
}

/// Runs a script; returns early, and successfully, when the test ends.
///
/// # Errors
/// A command has failed, or the thread must stop.
pub fn run(journal: &Journal, text: &[u8], first_line: u32, actor: &mut dyn Actor) -> Outcome {
    run_nested(journal, text, first_line, actor, 0)
}

fn run_nested(journal: &Journal, text: &[u8], first_line: u32, actor: &mut dyn Actor, depth: u32) -> Outcome {
    if depth > NESTING_MAX {
        return Err(journal.fail(format!("more than {NESTING_MAX} scripts within each other")));
    }
    let outer = journal.place();
    for cut in Script::new(text, first_line) {
        if journal.test.is_stopping() {
            return Err(journal.test.stop_reason());
        }
        if journal.test.is_over() {
            break;
        }
        let Command { mut words, line, source } = cut.map_err(|error| {
            journal.set_place(Place { line: error.line, source: String::new() });
            journal.fail(format!("Syntax error: {}", error.message))
        })?;
        let cut_source: String = source.chars().take(60).collect();
        let dots = if cut_source.len() < source.len() { "..." } else { "" };
        journal.log(2, format!("=== {cut_source}{dots}"));
        journal.set_place(Place { line, source });
        for word in &mut words {
            word.bytes = journal.expand(&word.bytes)?;
        }
        let name = words.remove(0).text();
        let mut arguments = Arguments::new(words, journal.clone(), name.clone());
        if name == "loop" {
            let count = arguments.number("the count")?;
            let block = arguments.need("the block")?;
            arguments.end()?;
            for round in 0..count {
                if journal.test.is_over() {
                    break;
                }
                journal.log(4, format!("Loop #{round}"));
                run_nested(journal, &block.bytes, block.line, actor, depth + 1)?;
            }
        } else if name == "include" {
            include(journal, &mut arguments, actor, depth)?;
        } else if !actor.command(journal, &name, &mut arguments)? && !everywhere(journal, &name, &mut arguments, actor)?
        {
            return Err(unknown(journal, &name));
        }
    }
    journal.set_place(outer);
    Ok(())
}

/// Executes commands that work everywhere; false if it is not one of them.
fn everywhere(journal: &Journal, name: &str, arguments: &mut Arguments, actor: &dyn Actor) -> Outcome<bool> {
    match name {
        "barrier" => barrier::command(journal, arguments, actor.cancel())?,
        "delay" => {
            let time = arguments.seconds("the time")?;
            arguments.end()?;
            journal.log(3, format!("delaying {} second(s)", time.as_secs_f64()));
            actor.cancel().sleep(time)?;
        }
        "shell" => shell::command(journal, arguments, actor.cancel())?,
        "filewrite" => file_write(journal, arguments)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn include(journal: &Journal, arguments: &mut Arguments, actor: &mut dyn Actor, depth: u32) -> Outcome {
    let mut name = Some(arguments.text("the file")?);
    while let Some(path) = name {
        let failed = |reason: &str| Err(journal.fail(format!("include: cannot read {path}: {reason}")));
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > INCLUDE_BYTES_MAX => return failed("it is too large"),
            Ok(metadata) if !metadata.is_file() => return failed("it is no file"),
            Ok(_) => {}
            Err(error) => return failed(&error.to_string()),
        }
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => return failed(&error.to_string()),
        };
        journal.log(3, format!("include {path}"));
        run_nested(journal, &text, 1, actor, depth + 1)?;
        name = arguments.next().map(|word| word.text());
    }
    Ok(())
}

fn file_write(journal: &Journal, arguments: &mut Arguments) -> Outcome {
    let mut path = arguments.text("the file")?;
    let append = path == "-a";
    if append {
        path = arguments.text("the file")?;
    }
    let mut bytes = Vec::new();
    while let Some(word) = arguments.next() {
        bytes.extend_from_slice(&word.bytes);
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true).append(append).truncate(!append);
    let written = options.open(&path).and_then(|mut file| file.write_all(&bytes));
    written.map_err(|error| journal.fail(format!("filewrite: cannot write {path}: {error}")))
}

/// The failure for an unknown command; mentions the place where it exists, if any.
fn unknown(journal: &Journal, name: &str) -> crate::test::Stop {
    let elsewhere = test_script::COMMANDS.iter().find(|row| row.name == name);
    let hint = elsewhere.map_or(String::new(), |row| format!(" (there is one in {})", row.place.text()));
    journal.fail(format!("Unknown command: \"{name}\"{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(parse_number("10"), Some(10));
        assert_eq!(parse_number("0x40"), Some(64));
        assert_eq!(parse_number("010"), Some(8));
        assert_eq!(parse_number("0"), Some(0));
        for wrong in ["", "x", "1x", "-1", "0x"] {
            assert_eq!(parse_number(wrong), None, "{wrong}");
        }
    }
}
