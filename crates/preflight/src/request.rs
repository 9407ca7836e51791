//! The command line of `copal preflight`.

use std::ffi::OsString;
use std::path::PathBuf;

/// Parsed command line.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) help: bool,
    pub(crate) json: bool,
    pub(crate) problems: bool,
    pub(crate) unit: Option<String>,
    pub(crate) environment: Option<PathBuf>,
    pub(crate) running: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) vcls: Vec<String>,
    pub(crate) parameters: Option<PathBuf>,
    pub(crate) hitch: Option<PathBuf>,
    pub(crate) ncsa: Option<String>,
    pub(crate) root: Option<PathBuf>,
    pub(crate) arguments: Option<Vec<OsString>>,
}

/// Parses the command line.
///
/// # Errors
/// The fault of the command line.
pub(crate) fn parse(args: &[OsString]) -> Result<Request, String> {
    let mut request = Request::default();
    let (own, behind) = match args.iter().position(|argument| argument == "--") {
        Some(at) => (&args[..at], Some(args[at + 1..].to_vec())),
        None => (args, None),
    };
    request.arguments = behind;
    let mut parser = lexopt::Parser::from_args(own.iter().cloned());
    let wrong = |error: lexopt::Error| error.to_string();
    while let Some(argument) = parser.next().map_err(wrong)? {
        let option = match argument {
            lexopt::Arg::Value(word) => return Err(format!("unexpected word '{}'", word.to_string_lossy())),
            lexopt::Arg::Short(letter) => format!("-{letter}"),
            lexopt::Arg::Long(name) => name.to_owned(),
        };
        let mut value = || parser.value().map_err(wrong);
        let text = |value: OsString| value.into_string().map_err(|_| "an argument is no text".to_owned());
        match option.as_str() {
            "-h" | "help" => request.help = true,
            "json" => request.json = true,
            "problems" => request.problems = true,
            "running" => request.running = true,
            "unit" => request.unit = Some(text(value()?)?),
            "environment" => request.environment = Some(value()?.into()),
            "pid" => {
                let number = text(value()?)?;
                request.pid = Some(number.parse().map_err(|_| format!("--pid takes a number, not '{number}'"))?);
            }
            "vcl" => request.vcls.push(text(value()?)?),
            "params" => request.parameters = Some(value()?.into()),
            "hitch" => request.hitch = Some(value()?.into()),
            "ncsa" => request.ncsa = Some(text(value()?)?),
            // Paths below it are absolute for the daemon's parsers, even if the root is given as a
            // relative path.
            "root" => request.root = Some(absolute(value()?)?),
            _ => {
                let words = surface::program::program("preflight").options().filter_map(|row| row.word);
                let meant = surface::nearest::did_you_mean(&option, "--", words);
                return Err(format!("invalid option '{option}'{meant}"));
            }
        }
    }
    let lines = [request.unit.is_some(), request.environment.is_some(), request.running, request.pid.is_some()];
    let lines = lines.into_iter().filter(|is_given| *is_given).count() + usize::from(request.arguments.is_some());
    if lines > 1 {
        return Err("one of --unit, --environment, --running, --pid and -- at a time".to_owned());
    }
    Ok(request)
}

fn absolute(path: OsString) -> Result<PathBuf, String> {
    std::path::absolute(&path).map_err(|error| format!("--root {}: {error}", path.to_string_lossy()))
}

impl Request {
    /// True if no file or process is named, so the usual places are searched.
    pub(crate) fn names_nothing(&self) -> bool {
        self.unit.is_none()
            && self.environment.is_none()
            && !self.running
            && self.pid.is_none()
            && self.arguments.is_none()
            && self.vcls.is_empty()
            && self.parameters.is_none()
            && self.hitch.is_none()
            && self.ncsa.is_none()
    }
}
