//! `copal vcl fmt`: formats texts in one style without changing their meaning.

use super::{USAGE_ERROR, difference, text_file, wrong};
use crate::Streams;
use std::ffi::OsString;
use surface::legible;
use vcl::SourceText;

pub(super) const HELP: &str = "\
Usage: copal vcl fmt [options] [FILE...]

Writes each file anew in one style: spaces, line ends and indentation change, tokens and comments do not. VCL of every
generation. - or no file is the standard input, which goes to the standard output. A text with an error is left alone.

  --check   change nothing; name the files that would change
  --diff    change nothing; show what would change
  --stdin   the standard input, as -

Exit status: 0 done, 1 an invalid text, or with --check one that would change, 2 wrong command line or unreadable file.
";

pub(super) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let (mut check, mut diff) = (false, false);
    let mut files: Vec<OsString> = Vec::new();
    for argument in args {
        match argument.to_str() {
            Some("--check") => check = true,
            Some("--diff") => diff = true,
            Some("--stdin") => files.push("-".into()),
            Some(option) if option.len() > 1 && option.starts_with('-') => {
                return wrong("fmt", &format!("invalid option '{option}'"), streams);
            }
            _ => files.push(argument.clone()),
        }
    }
    if files.is_empty() {
        files.push("-".into());
    }
    let mut status = 0;
    for file in &files {
        status = status.max(format_file(file, check, diff, streams));
    }
    status
}

fn format_file(file: &OsString, check: bool, diff: bool, streams: &mut Streams) -> i32 {
    let shown = if file == "-" { "<stdin>".to_owned() } else { file.to_string_lossy().into_owned() };
    let text = match text_file::read(file, streams.input) {
        Ok((_, text)) => text,
        Err(error) => {
            let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
            return USAGE_ERROR;
        }
    };
    let formatted = match vcl::format(&SourceText { name: &shown, text: &text }) {
        Ok(formatted) => formatted,
        Err(error) => {
            let _ = writeln!(streams.error, "{error}\n{shown}: left as it is");
            return 1;
        }
    };
    let same = formatted == text;
    if diff {
        let name = format!("{shown} (formatted)");
        let difference = difference::unified(&shown, &text, &name, &formatted);
        let _ = write!(streams.output, "{}", legible::lines(&difference));
    } else if check {
        if !same {
            let _ = writeln!(streams.output, "{}", legible::line(shown.as_bytes()));
        }
    } else if file == "-" {
        let _ = streams.output.write_all(&formatted);
    } else if !same && let Err(error) = text_file::replace(file, &formatted) {
        let _ = writeln!(streams.error, "{shown}: {}", text_file::reason(&error));
        return USAGE_ERROR;
    }
    i32::from(check && !same)
}
