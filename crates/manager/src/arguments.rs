//! The command line of the daemon: every option of varnishd 7.1, with its messages.
//!
//! Parsing reads files (`-f`, `-S`, `-I`) and resolves names but leaves nothing open; its result is complete. A mistake
//! is one [`ArgumentError`]; the caller prints it and exits with status 2.

pub mod acme;
pub mod address;
pub mod dump;
pub mod jail;
pub mod listen;
pub mod storage;
pub mod tls_file;

use crate::getopt::{self, Element};
use crate::report::LogFormat;
use crate::rights;
pub use crate::system_error::reason;
use acme::{AcmeArgument, Wanted};
use address::HostPort;
use jail::Jail;
use listen::ListenArgument;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use storage::Storages;
use surface::eviction::EvictionPolicy;
use surface::option::{LOG_FORMATS, MEMORY_AUTO, letter};
use surface::parameter::{Parameters, feature, value};
use surface::program::program;
use surface::version::VARNISH_BANNER;
use tls_file::TlsFile;
use vcl::{ReadFile, SystemFiles};

/// As what the daemon was started. It decides the defaults of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `varnishd`: the habits of Varnish.
    Varnishd,
    /// `copal daemon`: RFC 9111.
    Copal,
}

impl Role {
    /// The default values of parameters.
    #[must_use]
    pub fn defaults(self) -> Parameters {
        let stock = Parameters::default();
        match self {
            Role::Varnishd => stock,
            Role::Copal => Parameters {
                http_policy: "rfc".to_owned(),
                eviction_policy: EvictionPolicy::S3Fifo.name().to_owned(),
                storage_placement: "tiers".to_owned(),
                feature: stock.feature | feature::HTTP2,
                backend_follow_dns: "system".to_owned(),
                backend_error_reasons: true,
                client_half_close: true,
                waiting_timeout: 300.0,
                ..stock
            },
        }
    }
}

/// How the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the background.
    Background,
    /// `-F`.
    Foreground,
    /// `-d`: in the foreground with a CLI on standard input; the worker waits for `start`.
    Debug,
    /// `-C`: compile, print and exit.
    Compile,
}

/// A VCL given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VclArgument {
    /// `boot`, `boot0`, …
    pub name: String,
    /// File name, or `<-b argument>`.
    pub source_name: String,
    /// The text.
    pub text: Vec<u8>,
}

/// `-S`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretArgument {
    /// Create one in the work directory.
    Generated,
    /// No secret: nobody is asked for one.
    None,
    /// This file.
    File(PathBuf),
}

/// `-T` or `-M`: an address for the CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliAddress {
    /// As written.
    pub text: String,
    /// The resolved addresses; empty when it is a path.
    pub addresses: Vec<SocketAddr>,
    /// The socket's path, absolute.
    pub path: Option<PathBuf>,
}

/// A complete command line.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// As what it was started.
    pub role: Role,
    /// Foreground or not.
    pub mode: Mode,
    /// `-a`, and the frontends of `-A`.
    pub listeners: Vec<ListenArgument>,
    /// `-o acme…`.
    pub acme: Option<AcmeArgument>,
    /// The certificates to order.
    pub certificates: Vec<Wanted>,
    /// `-A`.
    pub tls_file: Option<TlsFile>,
    /// `-f` and `-b`; the last one becomes active.
    pub vcls: Vec<VclArgument>,
    /// `-i`.
    pub identity: Option<String>,
    /// `-I`: name and content.
    pub commands: Option<(String, Vec<u8>)>,
    /// `-j`.
    pub jail: Jail,
    /// `-n`, absolute.
    pub work_directory: PathBuf,
    /// `-P`, absolute.
    pub pid_files: Vec<PathBuf>,
    /// Parameters after `-p`, `-t` and `-l`.
    pub parameters: Parameters,
    /// `-r`.
    pub protected: BTreeSet<String>,
    /// `-S`.
    pub secret: SecretArgument,
    /// `-s`.
    pub storages: Storages,
    /// `-T`, empty for `none`.
    pub cli_listeners: Vec<CliAddress>,
    /// `-M`.
    pub cli_masters: Vec<CliAddress>,
    /// `--log-format`.
    pub log_format: LogFormat,
    /// `--memory`: how much all of it may take, in bytes; `None` = what there is.
    pub memory_bytes: Option<u64>,
    /// `-h`, for the identification only.
    pub hasher: String,
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// To run.
    Run(Box<Arguments>),
    /// To print this and exit.
    Print {
        /// What to print on standard output.
        text: String,
        /// The exit status.
        status: i32,
    },
}

/// A mistake in the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The message after `Error:`, with the blank or newline that follows it.
    pub text: String,
}

impl ArgumentError {
    /// A message on one line, with a hint where to find help.
    pub fn new(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { text: format!(" {}\n(-? gives usage)", text.as_ref()) }
    }

    /// A message on one line that is not about options.
    pub fn of_start(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { text: format!(" {}", text.as_ref()) }
    }

    /// A message from another part: about a parameter or a VCL.
    pub fn of_part(text: impl AsRef<str>) -> ArgumentError {
        ArgumentError { text: format!("\n{}", text.as_ref()) }
    }
}

impl From<String> for ArgumentError {
    fn from(text: String) -> Self {
        ArgumentError::new(text)
    }
}

impl From<&str> for ArgumentError {
    fn from(text: &str) -> Self {
        ArgumentError::new(text)
    }
}

/// Parses a command line (without the program's name).
///
/// # Errors
/// The first mistake.
pub fn parse(role: Role, arguments: &[OsString]) -> Result<Parsed, ArgumentError> {
    parse_as(role, arguments, false)
}

/// The same for a successor. It has its VCLs from its predecessor, so the files of `-f` and `-I` are not read: there are no
/// `vcls` and no `commands`.
///
/// # Errors
/// The first mistake.
pub fn parse_as_successor(role: Role, arguments: &[OsString]) -> Result<Parsed, ArgumentError> {
    parse_as(role, arguments, true)
}

fn parse_as(role: Role, arguments: &[OsString], is_successor: bool) -> Result<Parsed, ArgumentError> {
    if arguments == ["--optstring"] {
        return Ok(Parsed::Print { text: format!("{}\n", letter::optstring()), status: 0 });
    }
    let elements = getopt::elements(arguments, &letter::optstring(), surface::option::DAEMON);
    if elements.contains(&Element::Option('?', None)) {
        // Compat: printing the usage exits with the status of wrong usage.
        return Ok(Parsed::Print { text: program("daemon").usage(), status: 2 });
    }
    if elements.contains(&Element::Long("help", None)) {
        return Ok(Parsed::Print { text: program("daemon").usage(), status: 0 });
    }
    if elements.contains(&Element::Long("version", None)) {
        return Ok(Parsed::Print { text: version(), status: 0 });
    }
    if let Some(text) = information(role, &elements)? {
        return Ok(Parsed::Print { text, status: 0 });
    }
    let mut given = Given::collect(elements)?;
    given.check_conflicts()?;
    if is_successor {
        (given.files, given.backend, given.commands) = (Vec::new(), None, None);
    }
    given.complete(role).map(|arguments| Parsed::Run(Box::new(arguments)))
}

fn version() -> String {
    format!("varnishd ({VARNISH_BANNER})\nCopal {}\n", surface::version::COPAL_VERSION)
}

/// `-V` and `-x`, which print something and exit.
fn information(role: Role, elements: &[Element]) -> Result<Option<String>, ArgumentError> {
    for (index, element) in elements.iter().enumerate() {
        let Element::Option(letter @ ('V' | 'x'), value) = element else {
            continue;
        };
        if index > 0 {
            return Err(format!("-{letter} must be the first argument").into());
        }
        if elements.len() > 1 {
            return Err(format!("Too many arguments for -{letter}").into());
        }
        let what = value.as_deref().map(getopt::text).unwrap_or_default();
        return match letter {
            'V' => Ok(Some(version())),
            _ => dump::dump(role, &what).map(Some).ok_or_else(|| "Invalid -x argument".into()),
        };
    }
    Ok(None)
}

/// Options as given, not yet interpreted.
#[derive(Default)]
struct Given {
    compile: bool,
    debug: bool,
    foreground: bool,
    backend: Option<String>,
    files: Vec<OsString>,
    commands: Option<OsString>,
    identity: Option<String>,
    jail: Option<String>,
    work_directory: Option<OsString>,
    options: Vec<String>,
    pid_files: Vec<PathBuf>,
    secret: Option<OsString>,
    listeners: Vec<String>,
    tls_file: Option<OsString>,
    storages: Vec<String>,
    cli_listeners: Vec<String>,
    cli_masters: Vec<String>,
    hasher: Option<String>,
    waiter: Option<String>,
    settings: Vec<Setting>,
    operand: Option<String>,
    log_format: LogFormat,
    memory_bytes: Option<u64>,
}

/// Options that change parameters, in order.
enum Setting {
    Set(String, String),
    Protect(String),
}

impl Given {
    fn collect(elements: Vec<Element>) -> Result<Given, ArgumentError> {
        let mut given = Given::default();
        for element in elements {
            let (letter, value) = match element {
                Element::Option(letter, value) => (letter, value.unwrap_or_default()),
                Element::Operand(operand) => {
                    given.operand.get_or_insert(getopt::text(&operand));
                    continue;
                }
                Element::Long("log-format", value) => {
                    let name = value.as_deref().map(getopt::text).unwrap_or_default();
                    given.log_format = LogFormat::from_name(&name)
                        .ok_or_else(|| format!("--log-format is one of {}, not '{name}'", LOG_FORMATS.join(", ")))?;
                    continue;
                }
                Element::Long("memory", value) => {
                    let text = value.as_deref().map(getopt::text).unwrap_or_default();
                    given.memory_bytes = match text.as_str() {
                        MEMORY_AUTO => None,
                        _ => Some(value::parse_bytes(&text).map_err(|why| format!("--memory {text}: {why}"))?),
                    };
                    continue;
                }
                Element::Long(..) => continue,
                Element::UnknownLong(name) => return Err(format!("invalid option -- '--{name}'").into()),
                Element::IncompleteLong(name) => {
                    return Err(format!("option requires an argument -- '--{name}'").into());
                }
                Element::Unknown(letter) => return Err(unknown_letter(letter).into()),
                Element::Incomplete(letter) => {
                    return Err(format!("option requires an argument -- '{letter}'").into());
                }
            };
            let text = getopt::text(&value);
            match letter {
                'a' => given.listeners.push(text),
                'A' if given.tls_file.is_some() => return Err("Only one -A allowed".into()),
                'A' => given.tls_file = Some(value),
                'b' => given.backend = Some(text),
                'C' => given.compile = true,
                'd' => given.debug = true,
                'f' => given.files.push(value),
                'F' => given.foreground = true,
                'h' => given.hasher = Some(text),
                'i' => given.identity = Some(text),
                'I' if given.commands.is_some() => return Err("\tOnly one -I allowed".into()),
                'I' => given.commands = Some(value),
                'j' => given.jail = Some(text),
                'l' => given.settings.push(Setting::Set("vsl_space".to_owned(), text)),
                'M' => given.cli_masters.push(text),
                'n' => given.work_directory = Some(value),
                'o' => given.options.push(text),
                'P' => given.pid_files.push(PathBuf::from(value)),
                'p' => {
                    let (name, value) = text.split_once('=').ok_or("\t-p lacks '='")?;
                    given.settings.push(Setting::Set(name.to_owned(), value.to_owned()));
                }
                'r' => given.settings.push(Setting::Protect(text)),
                'S' => given.secret = Some(value),
                's' => given.storages.push(text),
                'T' => given.cli_listeners.push(text),
                't' => given.settings.push(Setting::Set("default_ttl".to_owned(), text)),
                'W' => given.waiter = Some(text),
                _ => {}
            }
        }
        Ok(given)
    }

    fn check_conflicts(&self) -> Result<(), ArgumentError> {
        let has_vcl = self.backend.is_some() || !self.files.is_empty();
        if let Some(operand) = &self.operand {
            return Err(format!("Too many arguments ({operand}...)").into());
        }
        if self.backend.is_some() && !self.files.is_empty() {
            return Err("Only one of -b or -f can be specified".into());
        }
        if self.debug && self.foreground {
            return Err("Only one of -d or -F can be specified".into());
        }
        if self.compile && !has_vcl {
            return Err("-C needs either -b <backend> or -f <vcl_file>".into());
        }
        if self.compile && self.debug {
            return Err("-d makes no sense with -C".into());
        }
        if self.compile && self.foreground {
            return Err("-F makes no sense with -C".into());
        }
        if !self.debug && !has_vcl {
            return Err("Neither -b nor -f given. (use -f '' to override)".into());
        }
        Ok(())
    }

    fn complete(self, role: Role) -> Result<Arguments, ArgumentError> {
        if self.cli_listeners.iter().any(String::is_empty) {
            // This must not mean "any address": an unset variable in a start script must not open the CLI to the world.
            return Err("Could not resolve -T argument to address\n\tName or service not known".into());
        }
        let jail = jail::parse(self.jail.as_deref())?;
        let hasher = check_hasher(self.hasher.as_deref().unwrap_or("critbit"))?;
        if let Some(waiter) = self.waiter.as_deref().filter(|waiter| !matches!(*waiter, "epoll" | "poll")) {
            return Err(format!("Unknown waiter method \"{waiter}\"").into());
        }
        let storages = storage::parse(&self.storages)?;
        let (listeners, tls_file) = parse_listeners(&self.listeners, self.tls_file.as_deref())?;
        let acme = acme::parse(&self.options)?;
        let of_listeners = listeners.iter().map(|listener| (listener.name.as_str(), &listener.acme[..]));
        let certificates = acme::wanted(acme.as_ref(), of_listeners)?;
        let (parameters, protected) = apply(role, &self.settings, &storages.names())?;
        let vcls = read_vcls(&self.files, self.backend.as_deref(), &parameters.vcl_path, &jail)?;
        let commands = match &self.commands {
            None => None,
            Some(name) => {
                let shown = getopt::text(name);
                let content = fs::read(name).map_err(|error| format!("\tCan't open {shown}: {}", reason(&error)))?;
                Some((shown, content))
            }
        };
        let secret = match self.secret {
            None => SecretArgument::Generated,
            Some(name) if name == "none" => SecretArgument::None,
            Some(name) => {
                let path = absolute(Path::new(&name));
                // Read, not just opened: a directory can be opened too.
                fs::File::open(&path)
                    .and_then(|mut file| file.read(&mut [0; 1]))
                    .map_err(|error| format!("Cannot open -S file ({}): {}", path.display(), reason(&error)))?;
                SecretArgument::File(path)
            }
        };
        let mode = match (self.compile, self.debug, self.foreground) {
            (true, ..) => Mode::Compile,
            (_, true, _) => Mode::Debug,
            (.., true) => Mode::Foreground,
            _ => Mode::Background,
        };
        Ok(Arguments {
            role,
            mode,
            listeners,
            acme,
            certificates,
            tls_file,
            vcls,
            identity: self.identity,
            commands,
            jail,
            work_directory: shm::place::of_server(self.work_directory.as_deref()),
            pid_files: self.pid_files.iter().map(|path| absolute(path)).collect(),
            parameters,
            protected,
            secret,
            storages,
            cli_listeners: parse_cli_listeners(&self.cli_listeners)?,
            cli_masters: parse_cli_masters(&self.cli_masters)?,
            log_format: self.log_format,
            memory_bytes: self.memory_bytes,
            hasher,
        })
    }
}

fn unknown_letter(letter: char) -> String {
    let message = format!("invalid option -- '{letter}'");
    match letter::former(letter) {
        Some(row) => format!("{message}\n\t-{letter} is of {}; {}", row.of, row.instead),
        None => message,
    }
}

fn check_hasher(text: &str) -> Result<String, ArgumentError> {
    let (kind, options) = match text.split_once(',') {
        Some((kind, options)) => (kind, Some(options)),
        None => (text, None),
    };
    match (kind, options) {
        ("", None) => Err("-h argument is empty".into()),
        ("critbit" | "classic" | "simple" | "simple_list", None) | ("classic", Some(_)) => Ok(kind.to_owned()),
        ("critbit" | "simple" | "simple_list", Some(_)) => {
            Err(format!("Hash method \"{kind}\" takes no arguments").into())
        }
        _ => Err(format!("Unknown hash method \"{kind}\"").into()),
    }
}

/// The listeners of `-a` and of `-A`. Compat: without any `-a` there is the default one beside those of `-A`.
fn parse_listeners(
    texts: &[String],
    tls_file: Option<&OsStr>,
) -> Result<(Vec<ListenArgument>, Option<TlsFile>), ArgumentError> {
    let mut unnamed = 0;
    let mut listeners: Vec<ListenArgument> =
        texts.iter().map(|text| listen::parse(text, &mut unnamed)).collect::<Result<_, _>>()?;
    let Some(path) = tls_file else {
        listen::check_distinct(&listeners)?;
        return Ok((listeners, None));
    };
    let default = listeners.is_empty().then(|| listen::parse(listen::DEFAULT_ADDRESS, &mut unnamed)).transpose()?;
    let file = tls_file::read(Path::new(path), &mut unnamed).map_err(ArgumentError::of_start)?;
    let of_file = file.frontends.iter().map(|frontend| frontend.listener.clone());
    listeners.extend(of_file);
    if let Some(default) = default {
        let together = [std::slice::from_ref(&default), listeners.as_slice()].concat();
        if listen::check_distinct(&together).is_ok() {
            listeners.insert(0, default);
        }
    }
    listen::check_distinct(&listeners)?;
    Ok((listeners, Some(file)))
}

fn apply(
    role: Role,
    settings: &[Setting],
    storages: &[String],
) -> Result<(Parameters, BTreeSet<String>), ArgumentError> {
    let defaults = role.defaults();
    let mut parameters = defaults.clone();
    let mut protected = BTreeSet::new();
    // Compat: `-r` protects against what stands behind it.
    for setting in settings {
        let (name, text) = match setting {
            Setting::Protect(names) => {
                for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
                    let row =
                        value::row(name).ok_or_else(|| ArgumentError::of_part(format!("Unknown parameter {name}")))?;
                    protected.insert(row.name.to_owned());
                }
                continue;
            }
            Setting::Set(name, text) => (name, text),
        };
        if protected.contains(name) {
            return Err(ArgumentError::of_part(format!("parameter \"{name}\" is protected.")));
        }
        value::set(&mut parameters, &defaults, name, text, storages)
            .map_err(|error| ArgumentError::of_part(error.text()))?;
    }
    Ok((parameters, protected))
}

/// Reads the `-f` files, searching `vcl_path`, or creates the VCL for `-b`.
fn read_vcls(
    files: &[OsString],
    backend: Option<&str>,
    vcl_path: &str,
    jail: &Jail,
) -> Result<Vec<VclArgument>, ArgumentError> {
    if let Some(backend) = backend {
        let text = backend_vcl(backend).into_bytes();
        return Ok(vec![VclArgument { name: "boot".to_owned(), source_name: "<-b argument>".to_owned(), text }]);
    }
    let files: Vec<&OsString> = files.iter().filter(|file| !file.is_empty()).collect();
    let mut vcls = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let (source_name, text) = read_vcl(Path::new(file), vcl_path, jail).map_err(|error| {
            ArgumentError::new(format!("Cannot read -f file '{}' ({})", getopt::text(file), reason(&error)))
        })?;
        let name = if files.len() == 1 { "boot".to_owned() } else { format!("boot{index}") };
        vcls.push(VclArgument { name, source_name, text });
    }
    Ok(vcls)
}

/// Finds and reads a VCL file: in the directories of `vcl_path`, unless its path is absolute. Returns its path and text.
/// Compat: this is done with the rights of the jail's user, at the start too.
///
/// # Errors
/// Why it can't be read.
pub fn read_vcl(file: &Path, vcl_path: &str, jail: &Jail) -> io::Result<(String, Vec<u8>)> {
    rights::with(jail.reader(), || find_vcl(file, vcl_path))?
}

fn find_vcl(file: &Path, vcl_path: &str) -> io::Result<(String, Vec<u8>)> {
    let mut candidates = vcl_path.split(':').filter(|part| !part.is_empty()).map(|part| Path::new(part).join(file));
    let path = if file.is_absolute() {
        file.to_owned()
    } else {
        candidates
            .find(|candidate| candidate.is_file())
            .ok_or_else(|| io::Error::from_raw_os_error(nix::errno::Errno::ENOENT as i32))?
    };
    let text = SystemFiles.read(&path)?;
    Ok((path.to_string_lossy().into_owned(), text))
}

/// The VCL that `-b` stands for.
fn backend_vcl(backend: &str) -> String {
    let quoted = |text: &str| text.replace(['"', '\n'], "");
    if backend.eq_ignore_ascii_case("none") {
        return "vcl 4.1;\n\nbackend default none;\n".to_owned();
    }
    if backend.starts_with('/') {
        return format!("vcl 4.1;\nbackend default {{\n    .path = \"{}\";\n}}\n", quoted(backend));
    }
    let HostPort { host, port } = address::split(backend);
    let port = port.map(|port| format!("    .port = \"{}\";\n", quoted(&port))).unwrap_or_default();
    let host = quoted(&host.unwrap_or_default());
    format!("vcl 4.1;\nbackend default {{\n    .host = \"{host}\";\n{port}}}\n")
}

/// The path from the root; as it is if there is no working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn parse_cli_listeners(texts: &[String]) -> Result<Vec<CliAddress>, ArgumentError> {
    let default = ["localhost:0".to_owned()];
    let texts = if texts.is_empty() { &default[..] } else { texts };
    let wanted = texts.iter().filter(|text| *text != "none");
    wanted.map(|text| cli_address(text, 'T')).collect()
}

fn parse_cli_masters(texts: &[String]) -> Result<Vec<CliAddress>, ArgumentError> {
    texts.iter().map(|text| cli_address(text, 'M')).collect()
}

fn cli_address(text: &str, letter: char) -> Result<CliAddress, ArgumentError> {
    if text.starts_with('/') {
        let path = Some(PathBuf::from(text));
        return Ok(CliAddress { text: text.to_owned(), addresses: Vec::new(), path });
    }
    let addresses = address::resolve(&address::split(text), 0)
        .map_err(|reason| format!("Could not resolve -{letter} argument to address\n\t{reason}"))?;
    if letter == 'M' && addresses.iter().any(|address| address.port() == 0) {
        return Err(format!("Could not resolve -M argument to address\n\t{text} has no port").into());
    }
    Ok(CliAddress { text: text.to_owned(), addresses, path: None })
}

#[cfg(test)]
mod tests;
