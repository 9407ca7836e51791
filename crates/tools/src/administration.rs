//! `varnishadm`: one command from the command line, commands from a stream, or a dialogue at a
//! terminal.
//!
//! This file has the options, single commands and streams of commands; the connection is in
//! `administration/connection.rs`; the dialogue in `administration/terminal.rs` and, for the Tab
//! key, `administration/completion.rs`. The protocol is that of `cli-proto`.

pub(crate) mod client;
mod completion;
mod connection;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cli_proto::client::typed_line;
use cli_proto::request::{Request, RequestReader};
use cli_proto::response::Response;
use surface::legible;
use surface::program::{Called, program};

use crate::Streams;
use crate::attach_timeout::AttachTimeout;
use crate::options::{self, Given};
use connection::CliConnection;

/// The letter that represents `--strict`.
const STRICT: char = 'e';

/// Exit status if the server refused a command.
const REFUSED: i32 = 1;
/// Exit status if communication with the server is impossible.
const UNREACHABLE: i32 = 2;

/// Advice for the upgrade of a server without a CLI.
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

/// Replaces a running server by the program that is installed now; returns the exit status.
pub(crate) fn upgrade(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("upgrade", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let done = CliConnection::by_name(given.last('n'), None, AttachTimeout::default(), streams.called).and_then(
        |mut connection| {
            // Requests in flight take time; the server has its limits for all of it.
            connection.limit_replies(None);
            one_command(&mut connection, &["upgrade".to_owned()], false, streams)
        },
    );
    done.unwrap_or_else(|(status, message)| {
        let _ = streams.output.flush();
        let _ = writeln!(streams.error, "{message}");
        if status == UNREACHABLE {
            let _ = writeln!(streams.error, "{WITHOUT_CLI}");
        }
        status
    })
}

/// Lines of `copal status` that come from the server's CLI; `None` without one.
pub(crate) fn facts(name: Option<&OsStr>) -> Option<Vec<String>> {
    let mut connection = CliConnection::by_name(name, None, AttachTimeout(Some(1.0)), Called::Copal).ok()?;
    connection.limit_replies(Some(FACTS_PATIENCE));
    let mut ask = |command: &str| {
        connection.send(format!("{command}\n").as_bytes()).ok()?;
        connection.reply().ok().filter(Response::is_ok).map(|reply| reply.body)
    };
    let mut lines = Vec::new();
    if ask("status").is_some_and(|text| text.contains("stopped")) {
        lines.push("  worker      stopped by a command; to start it: copal adm start".to_owned());
    }
    if let Some(worker) =
        ask("pid").as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Worker:")))
    {
        lines.push(format!("  worker      process {}", worker.trim()));
    }
    if let Some(text) = ask("debug.listen_address") {
        let shown: Vec<String> = text.lines().filter_map(address_shown).collect();
        lines.push(format!("  listens on  {}", shown.join(", ")));
    }
    if let Some(text) = ask("vcl.list") {
        let active = text.lines().find_map(|line| line.strip_prefix("active")?.split_whitespace().last());
        lines.push(format!("  VCL         {}", active.unwrap_or("none")));
    }
    Some(lines)
}

/// Time limit for each reply that [`facts`] waits for.
const FACTS_PATIENCE: Duration = Duration::from_secs(5);

/// An address of `debug.listen_address` (name, host, port) as `-a` takes it; the port is `-` for a
/// socket with a path.
fn address_shown(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let (host, port) = (words.next()?, words.next()?);
    Some(match (host, port) {
        (path, "-") => path.to_owned(),
        (host, port) if host.contains(':') => format!("[{host}]:{port}"),
        (host, port) => format!("{host}:{port}"),
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
        let name = program("adm").name(streams.called);
        return Err((REFUSED, format!("{name}: -n is mutually exclusive with -S and -T")));
    }
    let mut connection = match given.last('T') {
        Some(address) => {
            let secret = given.last('S').map(PathBuf::from);
            CliConnection::open(&address.to_string_lossy(), secret.as_deref(), timeout)?
        }
        None => CliConnection::by_name(given.last('n'), given.last('S'), timeout, streams.called)?,
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
        // The server ignores an empty line, and the tool would wait for its answer forever.
        return Err((REFUSED, format!("{}: the command is empty", program("adm").name(streams.called))));
    }
    connection.send(typed_line(words).as_bytes())?;
    let mut response = connection.reply()?;
    if streams.called == Called::Copal
        && let Some(words) = with_file_here(words, &response, std::env::current_dir().ok().as_deref())
    {
        connection.send(typed_line(&words).as_bytes())?;
        response = connection.reply()?;
    }
    if streams.called == Called::Copal && !framed && response.is_ok() && response.body.is_empty() {
        let done = done(words).map_or(String::new(), |text| text + "\n");
        write!(streams.output, "{}", legible::lines(done.as_bytes()))
            .map_err(|_| (REFUSED, "Cannot write".to_owned()))?;
        return Ok(0);
    }
    print(&response, framed, streams)?;
    if response.is_ok() {
        return Ok(0);
    }
    Err((REFUSED, format!("Command failed with error code {}", response.status)))
}

/// Text for a command whose successful reply is empty; `None` where nothing needs to be said.
fn done(words: &[String]) -> Option<String> {
    let [verb, name, ..] = words else { return None };
    let is_load = verb == "vcl.load" || verb == "vcl.inline";
    is_load.then(|| format!("VCL '{name}' is loaded; vcl.use {name} makes it the active one"))
}

/// The same `vcl.load` with the path of a file in the directory `here`, after the server did not
/// find the file in its `vcl_path`.
fn with_file_here(words: &[String], response: &Response, here: Option<&Path>) -> Option<Vec<String>> {
    let [verb, name, file, rest @ ..] = words else { return None };
    let is_missing = response.body.contains(&format!("Cannot read file '{file}' (No such file or directory"));
    if verb != "vcl.load" || response.is_ok() || !is_missing || Path::new(file).is_absolute() {
        return None;
    }
    let path = here?.join(file);
    let path = path.is_file().then(|| path.to_str().map(str::to_owned))??;
    Some([&[verb.clone(), name.clone(), path], rest].concat())
}

/// Passes commands from one stream, and replies to another. With `strict`, a failing command ends
/// this unless it is marked with `-`.
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

/// Warns the user if the server truncated a reply to its parameter `cli_limit`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_the_server_does_not_find_is_named_by_its_path_if_it_is_here() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("site.vcl"), "").unwrap();
        let refused = |file: &str| {
            let text = format!("Message from VCC-compiler:\nCannot read file '{file}' (No such file or directory)\n");
            Response::new(cli_proto::response::status::PARAMETER, text)
        };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let again = |line: &str, file: &str| with_file_here(&words(line), &refused(file), Some(folder.path()));
        let path = folder.path().join("site.vcl").display().to_string();
        assert_eq!(again("vcl.load v2 site.vcl warm", "site.vcl"), Some(words(&format!("vcl.load v2 {path} warm"))));
        assert_eq!(again("vcl.load v2 other.vcl", "other.vcl"), None);
        assert_eq!(again("vcl.load v2 site.vcl", "part.vcl"), None, "another file is missing");
        assert_eq!(again("vcl.inline v2 site.vcl", "site.vcl"), None);
    }

    #[test]
    fn listening_addresses_are_shown_as_the_option_takes_them() {
        for (line, shown) in [
            ("a0 127.0.0.1 80", Some("127.0.0.1:80")),
            ("a0 ::1 80", Some("[::1]:80")),
            ("x /run/s -", Some("/run/s")),
            ("", None),
        ] {
            assert_eq!(address_shown(line).as_deref(), shown, "{line}");
        }
    }
}
