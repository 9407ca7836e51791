//! The command line of `copal replay`, and its exit status.

use super::limits::Limits;
use super::report::{Form, Report};
use super::session::{Job, Prepared, Sources, collect, in_thread};
use super::summary::Summary;
use crate::command::{read_vcl, setting, words_of};
use crate::program::{Settings, compile};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use surface::legible;
use surface::program::program;
use tools::Streams;
use tools::options::{self, Given};

/// The row of this tool.
const PART: &str = "replay";
/// Exit status without differences.
pub(super) const SAME: i32 = 0;
/// Exit status for differences within the limits.
pub(super) const DIFFERS: i32 = 1;
/// Exit status if a limit was passed.
pub(super) const PASSED: i32 = 2;
/// Exit status if nothing follows from the replay.
pub(super) const UNUSABLE: i32 = 3;
/// Size of the cache, unless `--cache-size` says otherwise, in bytes.
pub(super) const CACHE_BYTES: u64 = 256 << 20;

struct Command {
    recording: OsString,
    new: OsString,
    /// `None` = compare with the recording.
    old: Option<OsString>,
    limits: Limits,
    form: Form,
    cache_bytes: u64,
    is_warm: bool,
    settings: Settings,
}

/// Runs the tool; returns the exit status.
pub(super) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse(PART, args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let command = match read(given) {
        Ok(command) => command,
        Err(text) => return options::wrong(program(PART), &text, streams),
    };
    match prepare(&command).and_then(|job| in_thread(job, streams)) {
        Ok(summary) => report_to(&summary, command.old.is_some(), &command.limits, command.form, streams),
        Err(text) => {
            let _ = writeln!(streams.error, "{}", legible::lines(text.trim_end().as_bytes()));
            UNUSABLE
        }
    }
}

fn read(given: Given) -> Result<Command, String> {
    let [recording] = <[OsString; 1]>::try_from(given.rest).map_err(|_| "which recording?")?;
    let mut new = None;
    let mut command = Command {
        recording,
        new: OsString::new(),
        old: None,
        limits: Limits::default(),
        form: Form::Text,
        cache_bytes: CACHE_BYTES,
        is_warm: false,
        settings: Settings::default(),
    };
    for (letter, argument) in given.options {
        match letter {
            'v' => new = Some(argument),
            'a' => command.old = Some(argument).filter(|file| file != "recorded"),
            'l' => command.limits.add(&words_of(argument)?)?,
            'J' => command.form = Form::Json,
            'M' => command.form = Form::Markdown,
            'S' => command.cache_bytes = size(&words_of(argument)?)?,
            'w' => command.is_warm = true,
            _ => setting(&mut command.settings, letter, argument)?,
        }
    }
    command.new = new.ok_or("which VCL? (--vcl)")?;
    Ok(command)
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &*text[digits.len()..].to_ascii_lowercase() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => 0,
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|bytes| *bytes >= 1 << 20).ok_or_else(|| format!("--cache-size: '{text}' is not a size such as 256m"))
}

fn prepare(command: &Command) -> Result<Job, String> {
    let parameters = command.settings.parameters(&[])?;
    let prepared = |file: &OsStr| {
        let (name, text) = read_vcl(file)?;
        let program = compile(&name, &text, &command.settings, &parameters).map_err(|error| error.text)?;
        Ok::<_, String>(Prepared { program, parameters: parameters.clone() })
    };
    let new = prepared(&command.new)?;
    let old = command.old.as_deref().map(prepared).transpose()?;
    let name = Path::new(&command.recording).display();
    let named = |error: String| format!("{name}: {}", error.split(" (os error").next().unwrap_or_default());
    let file = File::open(&command.recording).map_err(|error| named(error.to_string()))?;
    collect(file, Sources { old, new }, command.cache_bytes, command.is_warm).map_err(named)
}

/// Writes the report; returns the exit status.
pub(super) fn report_to(summary: &Summary, has_old: bool, limits: &Limits, form: Form, streams: &mut Streams) -> i32 {
    let fault = summary.fault();
    let passed = if fault.is_some() { Vec::new() } else { limits.passed(summary) };
    let status = match (&fault, passed.is_empty(), summary.differing) {
        (Some(_), _, _) => UNUSABLE,
        (None, false, _) => PASSED,
        (None, true, 0) => SAME,
        (None, true, _) => DIFFERS,
    };
    let report = Report { summary, has_old, passed: &passed, fault: fault.as_deref(), status };
    let _ = streams.output.write_all(report.write(form).as_bytes());
    status
}
