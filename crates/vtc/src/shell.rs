//! `shell`: runs a shell line and checks its output and exit status.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::arguments::Arguments;
use crate::journal::Journal;
use crate::lex::Word;
use crate::macros::find;
use crate::matching;
use crate::test::{Cancel, Outcome};

/// Most bytes of output that are examined.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// The expected result of a shell line.
#[derive(Default)]
struct Expected {
    /// `None`: any except 0.
    status: Option<i32>,
    text: Option<Word>,
    regex: Option<pcre2::bytes::Regex>,
}

/// Executes `shell [-err] [-exit N] [-expect TEXT | -match REGEX] LINE`.
///
/// # Errors
/// The test has failed or is over.
pub fn command(journal: &Journal, arguments: &mut Arguments, cancel: &Cancel) -> Outcome {
    let mut expected = Expected { status: Some(0), ..Expected::default() };
    let line = loop {
        let word = arguments.need("the command")?;
        match word.text().as_str() {
            "-err" => expected.status = None,
            "-exit" => {
                let status = arguments.number("the exit status")?;
                expected.status = Some(i32::try_from(status).unwrap_or(i32::MAX));
            }
            "-expect" => expected.text = Some(arguments.need("the text")?),
            "-match" => expected.regex = Some(matching::regex(journal, &arguments.need("the regex")?.bytes)?),
            _ => break word,
        }
    };
    if expected.text.is_some() && expected.regex.is_some() {
        return Err(journal.fail("Cannot use -expect with -match"));
    }
    run(journal, &line.bytes, &expected, cancel)
}

fn run(journal: &Journal, line: &[u8], expected: &Expected, cancel: &Cancel) -> Outcome {
    let line = [b"exec 2>&1 ; ", line].concat();
    journal.dump(4, "shell_cmd", &line);
    let cannot = |error: std::io::Error| journal.fail(format!("the shell cannot be run: {error}"));
    let (mut reader, writer) = std::io::pipe().map_err(cannot)?;
    let error_writer = writer.try_clone().map_err(cannot)?;
    let mut command = journal.test.shell(&line);
    // In its own process group, so that all of it can be ended.
    let child = command.stdout(writer).stderr(error_writer).process_group(0).spawn();
    // The command holds the other ends of the pipe.
    drop(command);
    let mut child = child.map_err(cannot)?;
    let mut output = Vec::new();
    let mut buffer = [0; 8192];
    let ended = loop {
        if let Err(stop) = cancel.readable(reader.as_fd(), None) {
            break Err(stop);
        }
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break Ok(()),
            Ok(count) if output.len() < OUTPUT_BYTES_MAX => output.extend_from_slice(&buffer[..count]),
            Ok(_) => {}
        }
    };
    if ended.is_err() {
        let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    }
    let status = child.wait().map_err(cannot)?;
    ended?;
    journal.dump(4, "shell_out", &output);
    // Compat: death by a signal counts as status 0.
    let code = status.code().unwrap_or(0);
    journal.log(4, format!("shell_status = 0x{code:04x}"));
    if let Some(signal) = status.signal() {
        journal.log(4, format!("shell_signal = {signal}"));
    }
    match expected.status {
        None if status.success() => return Err(journal.fail("shell did not fail as expected")),
        Some(wanted) if wanted != code => {
            return Err(journal.fail(format!("shell_exit not as expected: got 0x{code:04x} wanted 0x{wanted:04x}")));
        }
        _ => {}
    }
    if let Some(text) = &expected.text {
        if find(&output, &text.bytes).is_none() {
            return Err(journal.fail(format!("shell_expect not found: (\"{}\")", text.text())));
        }
        journal.log(4, "shell_expect found");
    }
    if let Some(regex) = &expected.regex {
        if !matching::occurs(regex, &output) {
            return Err(journal.fail(format!("shell_match failed: (\"{}\")", regex.as_str())));
        }
        journal.log(4, "shell_match succeeded");
    }
    Ok(())
}
