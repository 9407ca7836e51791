//! `copal dash`: the dashboard of a running server, in a browser.
//!
//! If the server serves a dashboard (`-o dash`), its CLI gives out an address that logs in once.
//! Otherwise this process serves one on loopback, with a token of its own, and sends operations
//! over the CLI, with the rights of its user.

use crate::dash::Cli;
use crate::listener::Listener;
use crate::service::{DashPort, Plan};
use rand::Rng as _;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use surface::program::{Called, program};
use tools::CliClient;

/// Exit status if serving is impossible.
const FAILURE: i32 = 1;
/// Exit status for a wrong command line, or without a server.
const NO_SERVER: i32 = 2;
/// Status of the CLI for success.
const DONE: u16 = 200;

#[derive(PartialEq, Debug, Default)]
struct Options {
    name: Option<OsString>,
    port: u16,
    opens: bool,
    is_view_only: bool,
}

/// Runs the program; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> i32 {
    let program = program("dash");
    let name = program.name(Called::Copal);
    let options = match parse(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", program.usage(Called::Copal));
            return 0;
        }
        Err(why) => {
            eprintln!("{name}: {why}; see {name} --help");
            return program.usage_status;
        }
    };
    match open(&options) {
        Ok(()) => 0,
        Err((status, why)) => {
            eprintln!("{name}: {}", surface::legible::lines(why.as_bytes()));
            status
        }
    }
}

/// `None`: help is wanted.
fn parse(arguments: &[OsString]) -> Result<Option<Options>, String> {
    let mut parser = lexopt::Parser::from_args(arguments.iter().cloned());
    let mut options = Options::default();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            lexopt::Arg::Short('n') => options.name = Some(parser.value().map_err(|error| error.to_string())?),
            lexopt::Arg::Long("port") => {
                let text = parser.value().map_err(|error| error.to_string())?;
                let port = text.to_str().and_then(|text| text.parse().ok());
                options.port = port.ok_or_else(|| format!("--port: '{}' is not a port", text.to_string_lossy()))?;
            }
            lexopt::Arg::Long("open") => options.opens = true,
            lexopt::Arg::Long("view") => options.is_view_only = true,
            lexopt::Arg::Short('h') | lexopt::Arg::Long("help") => return Ok(None),
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(Some(options))
}

fn open(options: &Options) -> Result<(), (i32, String)> {
    let directory = shm::read::vsm::work_directory(options.name.as_deref());
    // It proves the secret: a user who cannot read it gets no token.
    let mut client = CliClient::open(directory.as_os_str()).map_err(|why| (NO_SERVER, why))?;
    let has_own = match options.is_view_only {
        true => None,
        false => client.ask(&["dash.login".to_owned()]).ok().filter(|(status, _)| *status == DONE),
    };
    drop(client);
    match has_own {
        Some((_, text)) => {
            for address in text.lines() {
                println!("{address}");
            }
            show(options, text.lines().next().unwrap_or_default());
            Ok(())
        }
        None => serve(options, directory),
    }
}

/// Serves until a signal.
fn serve(options: &Options, directory: PathBuf) -> Result<(), (i32, String)> {
    let failed = |why: String| (FAILURE, why);
    let listeners = Listener::bind(&format!("127.0.0.1:{}", options.port));
    let listeners = listeners.map_err(|error| failed(format!("cannot listen on port {}: {error}", options.port)))?;
    let mut bytes = [0u8; 16];
    rand::rng().fill_bytes(&mut bytes);
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut plan = Plan::default();
    plan.dash.is_view_only = options.is_view_only;
    let prepared = plan.prepare().map_err(failed)?;
    let address = listeners.first().and_then(Listener::port).map(|port| format!("http://127.0.0.1:{port}/#t={token}"));
    let address = address.ok_or_else(|| failed("there is no socket".to_owned()))?;
    println!("{address}");
    let _ = io::stdout().flush();
    eprintln!("The address logs in once. Ctrl-C ends the dashboard.");
    show(options, &address);
    let operator = Box::new(Cli::new(directory.as_os_str(), &token));
    prepared.run(&directory, &[], Some(DashPort { listeners, operator }), None).map_err(failed)
}

/// Starts a browser, if it is wanted.
fn show(options: &Options, address: &str) {
    if !options.opens {
        return;
    }
    let browser = Command::new("xdg-open").arg(address).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    if let Err(error) = browser {
        eprintln!("xdg-open: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_names_a_server_and_a_port() {
        let parsed = |line: &[&str]| parse(&line.iter().map(OsString::from).collect::<Vec<_>>());
        let expected = Options { name: Some("/x".into()), port: 8080, opens: true, is_view_only: true };
        assert_eq!(parsed(&["-n", "/x", "--port", "8080", "--open", "--view"]), Ok(Some(expected)));
        assert_eq!(parsed(&[]), Ok(Some(Options::default())));
        assert_eq!(parsed(&["--help"]), Ok(None));
        for wrong in [&["--port"][..], &["--port", "x"], &["--port", "65536"], &["x"], &["-x"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
