//! `varnishadm`: one command from the command line, commands from a stream, or a dialogue at a terminal.
//!
//! This file has the options, single commands and streams of commands; the connection is in
//! `administration/connection.rs`; the dialogue in `administration/terminal.rs` and, for the Tab key,
//! `administration/completion.rs`. The protocol is that of `cli-proto`.

mod completion;
mod connection;
mod terminal;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use cli_proto::client::typed_line;
use cli_proto::request::{Request, RequestReader};
use cli_proto::response::Response;
use surface::legible;

use crate::Streams;
use crate::attach_timeout::AttachTimeout;
use crate::options::{self, Given};
use connection::CliConnection;

/// The letter that stands for `--strict`.
const STRICT: char = 'e';

/// Exit status when the server refused a command.
const REFUSED: i32 = 1;
/// Exit status when communication with the server is impossible.
const UNREACHABLE: i32 = 2;

/// How to upgrade a server that cannot be asked.
const WITHOUT_CLI: &str = "A server without a CLI (-T none) is upgraded by a signal: kill -USR2 PID, with the number in _.pid in its working directory.";

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("adm", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    match try_run(&given, streams) {
        Ok(status) => status,
        Err((status, message)) => {
            let _ = streams.output.flush();
            let _ = writeln!(streams.error, "{message}");
            status
        }
    }
}

/// Has a server followed by the program that is installed now; returns the exit status.
pub(crate) fn upgrade(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("upgrade", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let done = CliConnection::by_name(given.last('n'), None, AttachTimeout::default()).and_then(|mut connection| {
        // Requests in flight take their time; the server has its limits for all of it.
        connection.limit_replies(None);
        one_command(&mut connection, &["upgrade".to_owned()], false, streams)
    });
    done.unwrap_or_else(|(status, message)| {
        let _ = streams.output.flush();
        let _ = writeln!(streams.error, "{message}");
        if status == UNREACHABLE {
            let _ = writeln!(streams.error, "{WITHOUT_CLI}");
        }
        status
    })
}

type Failure = (i32, String);

fn try_run(given: &Given, streams: &mut Streams) -> Result<i32, Failure> {
    let timeout = match given.last('t') {
        None => AttachTimeout::default(),
        Some(text) => AttachTimeout::parse(text)
            .ok_or_else(|| (UNREACHABLE, format!("-t: Invalid argument: {}", text.to_string_lossy())))?,
    };
    if given.has('n') && (given.has('T') || given.has('S')) {
        return Err((REFUSED, "varnishadm: -n is mutually exclusive with -S and -T".to_owned()));
    }
    let mut connection = match given.last('T') {
        Some(address) => {
            let secret = given.last('S').map(PathBuf::from);
            CliConnection::open(&address.to_string_lossy(), secret.as_deref(), timeout)?
        }
        None => CliConnection::by_name(given.last('n'), given.last('S'), timeout)?,
    };
    if given.has('t') {
        let limit = timeout.0.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        connection.limit_replies(limit.filter(|limit| !limit.is_zero()));
    }
    if !given.rest.is_empty() {
        let words: Vec<_> = given.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        return one_command(&mut connection, &words, given.has('p'), streams);
    }
    if !given.has('p') && streams.program && io::stdin().is_terminal() {
        return terminal::converse(connection, streams.output);
    }
    pass(&mut connection, given.has('p'), given.has(STRICT), streams)
}

fn one_command(
    connection: &mut CliConnection,
    words: &[String],
    framed: bool,
    streams: &mut Streams,
) -> Result<i32, Failure> {
    if words.iter().all(|word| word.trim().is_empty()) {
        // The server ignores an empty line, and we would wait for its answer for ever.
        return Err((REFUSED, "varnishadm: the command is empty".to_owned()));
    }
    connection.send(typed_line(words).as_bytes())?;
    let response = connection.reply()?;
    print(&response, framed, streams)?;
    if response.is_ok() {
        return Ok(0);
    }
    Err((REFUSED, format!("Command failed with error code {}", response.status)))
}

/// Passes commands from one stream, and replies to another. With `strict`, a failing command ends this unless it is
/// marked with `-`.
fn pass(connection: &mut CliConnection, framed: bool, strict: bool, streams: &mut Streams) -> Result<i32, Failure> {
    let mut commands = RequestReader::new(surface::limits::CLI_COMMAND_BYTES_MAX);
    let mut bytes = vec![0; 1 << 16];
    let mut ended = false;
    while !ended {
        let count = streams.input.read(&mut bytes).unwrap_or(0);
        ended = count == 0;
        // A last line without a newline is a command too.
        let piece: &[u8] = if ended { b"\n" } else { &bytes[..count] };
        commands.push(piece);
        connection.send(piece)?;
        while let Some(request) = commands.next() {
            let response = match connection.reply() {
                Ok(response) => response,
                Err(failure) if strict => return Err(failure),
                Err(_) => return Ok(0),
            };
            print(&response, framed, streams)?;
            streams.output.flush().map_err(|_| (REFUSED, "Cannot write".to_owned()))?;
            if response.status == cli_proto::response::status::CLOSE {
                return Ok(0);
            }
            let may_fail = matches!(request, Request::Command(command) if command.may_fail);
            if strict && !response.is_ok() && !may_fail {
                return Err((REFUSED, format!("Command failed with error code {}", response.status)));
            }
        }
    }
    Ok(0)
}

/// Tells the user if the server truncated a reply to its parameter `cli_limit`.
fn tell_if_cut(response: &Response, output: &mut dyn io::Write) -> io::Result<()> {
    if response.status == cli_proto::response::status::TRUNCATED {
        writeln!(output, "[response was truncated]")?;
    }
    Ok(())
}

fn print(response: &Response, framed: bool, streams: &mut Streams) -> Result<(), Failure> {
    let written = if framed {
        write!(streams.output, "{:<3} {:<8}\n{}", response.status, response.body.len(), response.body)
    } else {
        writeln!(streams.output, "{}", legible::lines(response.body.as_bytes()))
            .and_then(|()| tell_if_cut(response, streams.output))
    };
    written.map_err(|_| (REFUSED, "Cannot write".to_owned()))
}
