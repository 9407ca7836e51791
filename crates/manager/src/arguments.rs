//! The command line of the daemon: every option of varnishd 7.1, with its messages.
//!
//! Parsing reads files (`-f`, `-S`, `-I`) and resolves names but leaves nothing open; its result is
//! complete. A mistake is one [`ArgumentError`]; the caller prints it and exits with status 2.

pub mod acme;
pub mod address;
pub mod dash;
pub mod dump;
mod error;
pub mod fleet;
pub mod jail;
pub mod listen;
mod log_layout;
pub mod metrics;
mod path;
pub mod storage;
pub mod tls_file;

use crate::default_parameters::default_parameters;
use crate::getopt::{self, Element};
use crate::report::LogFormat;
use crate::rights;
pub use crate::system_error::reason;
use acme::{AcmeArgument, Wanted};
use dash::DashArgument;
pub use error::ArgumentError;
use fleet::FleetArgument;
use jail::Jail;
use listen::ListenArgument;
use metrics::MetricsAddress;
pub(crate) use path::absolute;
use shm::layout::Layout;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use storage::Storages;
use surface::nearest::nearest;
use surface::option::{DAEMON, LOG_FORMATS, MEMORY_AUTO, letter};
use surface::parameter::{Parameters, value};
use surface::program::{Called, program};
use surface::version::VARNISH_BANNER;
use tls_file::TlsFile;
use vcl::{ReadFile, SystemFiles};

/// Way in which the daemon runs.
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
    /// No secret: the CLI does not authenticate.
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
    /// Command under which it was started.
    pub called: Called,
    /// Foreground or not.
    pub mode: Mode,
    /// `-a`, and the frontends of `-A`.
    pub listeners: Vec<ListenArgument>,
    /// `-o acme…`.
    pub acme: Option<AcmeArgument>,
    /// The certificates to order.
    pub certificates: Vec<Wanted>,
    /// `-o metrics`.
    pub metrics: Vec<MetricsAddress>,
    /// `-o dash` and its like.
    pub dash: DashArgument,
    /// `-o fleet` and its like.
    pub fleet: Option<FleetArgument>,
    /// `-o access-log`, checked.
    pub access_logs: Vec<String>,
    /// `-o vsl`.
    pub log_layout: Layout,
    /// `-o otlp` and its like, as arguments of `copal observe`.
    pub traces: Vec<String>,
    /// `-A`.
    pub tls_file: Option<TlsFile>,
    /// `-f` and `-b`; the last one becomes active.
    pub vcls: Vec<VclArgument>,
    /// `-b`, as written.
    pub backend: Option<String>,
    /// `-b` next to `-f`: the backend, in VCL, of every VCL that defines none.
    pub default_backend: Option<String>,
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
    /// `--memory`: limit of the total memory, in bytes; `None` = the available memory.
    pub memory_bytes: Option<u64>,
    /// `-h`, for the identification only.
    pub hasher: String,
}

/// Result of a parsed command line.
#[derive(Debug)]
pub enum Parsed {
    /// Run the daemon.
    Run(Box<Arguments>),
    /// Print this and exit.
    Print {
        /// The text to print on standard output.
        text: String,
        /// The exit status.
        status: i32,
    },
}

/// Parses a command line (without the program's name).
///
/// # Errors
/// The first mistake.
pub fn parse(called: Called, arguments: &[OsString]) -> Result<Parsed, ArgumentError> {
    parse_as(called, arguments, false)
}

/// The address in `-b http://host:port`, as users write it; other texts are left alone.
///
/// # Errors
/// A URL that says more than an address.
fn address_of_url(text: &str) -> Result<String, ArgumentError> {
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(text.to_owned()) };
    let address = rest.strip_suffix('/').unwrap_or(rest);
    if scheme.eq_ignore_ascii_case("https") {
        let host = address.split('/').next().unwrap_or_default();
        return Err(format!(
            "-b {text} asks for TLS to the origin, which needs a VCL: backend default {{ .host = \"{host}\"; .port = \"443\"; \
             .ssl = 1; }}"
        )
        .into());
    }
    if !scheme.eq_ignore_ascii_case("http") || address.is_empty() || address.contains(['/', '?', '#', '@']) {
        return Err(format!("-b {text} is a URL: -b takes the address of the origin, as -b 127.0.0.1:8080").into());
    }
    Ok(address.to_owned())
}

/// Parses the command line of a successor. It receives its VCLs from its predecessor, so the files
/// of `-f` and `-I` are not read: there are no `vcls` and no `commands`.
///
/// # Errors
/// The first mistake.
pub fn parse_as_successor(called: Called, arguments: &[OsString]) -> Result<Parsed, ArgumentError> {
    parse_as(called, arguments, true)
}

fn parse_as(called: Called, arguments: &[OsString], is_successor: bool) -> Result<Parsed, ArgumentError> {
    if arguments == ["--optstring"] {
        return Ok(Parsed::Print { text: format!("{}\n", letter::optstring()), status: 0 });
    }
    let elements = getopt::elements(arguments, &letter::optstring(), surface::option::DAEMON);
    if elements.contains(&Element::Option('?', None)) {
        // Compat: printing the usage exits with the status of wrong usage.
        return Ok(Parsed::Print { text: program("daemon").usage(called), status: 2 });
    }
    if elements.contains(&Element::Long("help", None)) {
        return Ok(Parsed::Print { text: program("daemon").usage(called), status: 0 });
    }
    if elements.contains(&Element::Long("version", None)) {
        return Ok(Parsed::Print { text: version(called), status: 0 });
    }
    if let Some(text) = information(called, &elements)? {
        return Ok(Parsed::Print { text, status: 0 });
    }
    let mut given = Given::collect(elements)?;
    if called == Called::Copal {
        given.backend = given.backend.map(|text| address_of_url(&text)).transpose()?;
    }
    given.check_conflicts(called)?;
    given.backend_text.clone_from(&given.backend);
    given.default_backend = match &given.backend {
        Some(backend) if !given.files.is_empty() => Some(vcl::backend_option(backend)),
        _ => None,
    };
    if is_successor {
        (given.files, given.backend, given.commands) = (Vec::new(), None, None);
    }
    given.complete(called).map(|arguments| Parsed::Run(Box::new(arguments)))
}

fn version(called: Called) -> String {
    let own = surface::version::COPAL_VERSION;
    match called {
        Called::Stock => format!(
            "varnishd ({VARNISH_BANNER})
Copal {own}
"
        ),
        Called::Copal => format!(
            "copal {own}
with the interfaces of {VARNISH_BANNER}
"
        ),
    }
}

/// `-V` and `-x`, which print something and exit.
fn information(called: Called, elements: &[Element]) -> Result<Option<String>, ArgumentError> {
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
            'V' => Ok(Some(version(called))),
            _ => dump::dump(called, &what).map(Some).ok_or_else(|| "Invalid -x argument".into()),
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
    backend_text: Option<String>,
    default_backend: Option<String>,
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
                Element::UnknownLong(name) => {
                    let near = nearest(&name, DAEMON.iter().map(|row| row.name));
                    let detail = near.map(|near| format!("did you mean --{near}?"));
                    return Err(ArgumentError::new(format!("invalid option -- '--{name}'")).with_detail(detail));
                }
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

    fn check_conflicts(&self, called: Called) -> Result<(), ArgumentError> {
        let has_vcl = self.backend.is_some() || !self.files.is_empty();
        if let Some(operand) = &self.operand {
            return Err(format!("Too many arguments ({operand}...)").into());
        }
        let are_apart = called == Called::Stock || self.files.iter().all(|file| file.is_empty());
        if are_apart && self.backend.is_some() && !self.files.is_empty() {
            return Err("Only one of -b or -f can be specified".into());
        }
        // The system reads a bare number as an IPv4 address: 8080 is 0.0.31.144.
        let is_bare = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(port) = self.backend.as_ref().filter(|text| called == Called::Copal && is_bare(text)) {
            return Err(format!("-b {port} has no host: a port of this machine is -b 127.0.0.1:{port}").into());
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

    fn complete(mut self, called: Called) -> Result<Arguments, ArgumentError> {
        if self.cli_listeners.iter().any(String::is_empty) {
            // This must not mean "any address": an unset variable in a start script must not open
            // the CLI to the world.
            return Err("Could not resolve -T argument to address\n\tName or service not known".into());
        }
        let jail = jail::parse(self.jail.as_deref())?;
        let hasher = check_hasher(self.hasher.as_deref().unwrap_or("critbit"))?;
        if let Some(waiter) = self.waiter.as_deref().filter(|waiter| !matches!(*waiter, "epoll" | "poll")) {
            return Err(format!("Unknown waiter method \"{waiter}\"").into());
        }
        let storages = storage::parse(&self.storages)?;
        let (listeners, tls_file) = parse_listeners(&self.listeners, self.tls_file.as_deref())?;
        let metrics = metrics::take(&mut self.options)?;
        let dash = dash::take(&mut self.options)?;
        let fleet = fleet::take(&mut self.options)?;
        let access_logs = metrics::take_access_logs(&mut self.options)?;
        let log_layout = log_layout::take(&mut self.options)?;
        let traces = metrics::take_traces(&mut self.options)?;
        let acme = acme::parse(&self.options)?;
        let of_listeners = listeners.iter().map(|listener| (listener.name.as_str(), &listener.acme[..]));
        let certificates = acme::wanted(acme.as_ref(), of_listeners)?;
        let (parameters, protected) = apply(called, &self.settings, &storages.names())?;
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
            called,
            mode,
            listeners,
            acme,
            certificates,
            metrics,
            dash,
            fleet,
            access_logs,
            log_layout,
            traces,
            tls_file,
            vcls,
            backend: self.backend_text,
            default_backend: self.default_backend,
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

/// The listeners of `-a` and of `-A`. Compat: without any `-a` there is the default one in addition
/// to those of `-A`.
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
    called: Called,
    settings: &[Setting],
    storages: &[String],
) -> Result<(Parameters, BTreeSet<String>), ArgumentError> {
    let defaults = default_parameters(called);
    let mut parameters = defaults.clone();
    let mut protected = BTreeSet::new();
    // Compat: `-r` protects against the options that follow it.
    for setting in settings {
        let (name, text) = match setting {
            Setting::Protect(names) => {
                for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
                    let row = value::row(name).ok_or_else(|| {
                        ArgumentError::of_part(format!("Unknown parameter {name}")).with_detail(meant(name))
                    })?;
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
            .map_err(|error| ArgumentError::of_part(error.text()).with_detail(error.unknown_name().and_then(meant)))?;
    }
    Ok((parameters, protected))
}

/// Question about the parameter that was probably meant.
fn meant(name: &str) -> Option<String> {
    value::nearest_name(name).map(|near| format!("did you mean {near}?"))
}

/// Reads the `-f` files, searching `vcl_path` and the current directory, or creates the VCL for
/// `-b`.
fn read_vcls(
    files: &[OsString],
    backend: Option<&str>,
    vcl_path: &str,
    jail: &Jail,
) -> Result<Vec<VclArgument>, ArgumentError> {
    if let Some(backend) = backend.filter(|_| files.is_empty()) {
        let text = format!("vcl 4.1;\n{}", vcl::backend_option(backend)).into_bytes();
        let source_name = vcl::BACKEND_OPTION_NAME.to_owned();
        return Ok(vec![VclArgument { name: "boot".to_owned(), source_name, text }]);
    }
    let files: Vec<&OsString> = files.iter().filter(|file| !file.is_empty()).collect();
    let mut vcls = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let here = std::env::current_dir().ok();
        let path = Path::new(file);
        let (source_name, text) = read_vcl(path, vcl_path, here.as_deref(), jail).map_err(|error| {
            let why = format!("Cannot read -f file '{}' ({})", getopt::text(file), reason(&error));
            let is_searched = error.kind() == io::ErrorKind::NotFound && !path.is_absolute();
            let detail = is_searched.then(|| format!("looked in {}", places(vcl_path, here.as_deref())));
            let why = closed_jail(&error, jail).map_or(why.clone(), |jail| format!("{why}\n\t{jail}"));
            ArgumentError::of_system(why).with_detail(detail)
        })?;
        let name = if files.len() == 1 { "boot".to_owned() } else { format!("boot{index}") };
        vcls.push(VclArgument { name, source_name, text });
    }
    Ok(vcls)
}

/// Explanation of a failed change of user, which is not a fault of the file: root without
/// capabilities, as in a container that drops them all.
fn closed_jail(error: &io::Error, jail: &Jail) -> Option<String> {
    let reader = jail.reader().filter(|_| error.raw_os_error() == Some(nix::errno::Errno::EPERM as i32))?;
    let user = reader.user;
    Some(format!("the jail may not become user {user} (CAP_SETUID, CAP_SETGID): -j none does without"))
}

/// The directories that are searched, for a message.
fn places(vcl_path: &str, here: Option<&Path>) -> String {
    let mut places: Vec<String> = vcl_path.split(':').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    places.extend(here.map(|here| format!("the current directory {}", here.display())));
    match places.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "no directory".to_owned(),
    }
}

/// Finds and reads a VCL file: in the directories of `vcl_path` and then in `here`, unless its path
/// is absolute. Returns its path and text. Compat: this is done with the rights of the jail's user,
/// at the start too.
///
/// # Errors
/// The reason why it cannot be read.
pub fn read_vcl(file: &Path, vcl_path: &str, here: Option<&Path>, jail: &Jail) -> io::Result<(String, Vec<u8>)> {
    rights::with(jail.reader(), || find_vcl(file, vcl_path, here))?
}

fn find_vcl(file: &Path, vcl_path: &str, here: Option<&Path>) -> io::Result<(String, Vec<u8>)> {
    let searched = vcl_path.split(':').filter(|part| !part.is_empty()).map(Path::new).chain(here);
    let mut candidates = searched.map(|part| part.join(file));
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
