//! Parts of an installation, the order of their checks, and their connections.

use crate::daemon::{self, Judged};
use crate::environment::{self, Reader};
use crate::files::Root;
use crate::hitch;
use crate::ncsa;
use crate::parameters;
use crate::process;
use crate::report::{Place, Report};
use crate::request::Request;
use crate::unit;
use crate::vcl_files::{self, Surroundings};
use crate::words::{self, Dollars, Lined, Variables, Word};
use manager::arguments::listen::ListenAddress;
use manager::arguments::storage;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use surface::program::Called;

/// The unit of varnishd.
const UNIT: &str = "varnish.service";
/// The unit of varnishncsa.
const NCSA_UNIT: &str = "varnishncsa.service";
/// Default configuration file of hitch.
const HITCH: &str = "/etc/hitch/hitch.conf";
/// Files with variables for the daemon in an installation without a unit, the likeliest first.
const ENVIRONMENTS: &[&str] = &["/etc/default/varnish", "/etc/sysconfig/varnish", "/etc/varnish/varnish.params"];
/// The command line of Red Hat's packages with varnish.params.
const PARAMS_LINE: &str = "-f $VARNISH_VCL_CONF -a ${VARNISH_LISTEN_ADDRESS}:${VARNISH_LISTEN_PORT} \
                           -T ${VARNISH_ADMIN_LISTEN_ADDRESS}:${VARNISH_ADMIN_LISTEN_PORT} -S $VARNISH_SECRET_FILE \
                           -s $VARNISH_STORAGE $DAEMON_OPTS";

/// Checks everything.
///
/// # Errors
/// There is nothing to check.
pub(crate) fn examine(request: &Request, report: &mut Report) -> Result<(), String> {
    let root = Root(request.root.clone());
    let mut sources = Sources::of(request, &root);
    if sources.is_empty() {
        return Err("nothing was found to look at".to_owned());
    }
    let words = sources.words(&root, report)?;
    let mut judged = match &words {
        Some(words) => daemon::judge(words, &root, report),
        None => Judged { arguments: None, vcls: Vec::new(), words: Vec::new(), behind_proxy: Vec::new() },
    };
    if let Some(path) = &sources.hitch
        && let Some(found) = hitch::judge(path, &root, report)
    {
        next_to_hitch(&mut judged, &found, words.is_some(), &root, report);
    }
    examine_vcl(request, &root, &mut judged, report);
    if let Some(path) = sources.ncsa.take() {
        ncsa::judge(&path, &root, report);
    }
    if words.is_some() || sources.hitch.is_some() {
        report.command = std::iter::once("varnishd".to_owned()).chain(judged.words.iter().map(quoted)).collect();
    }
    Ok(())
}

/// A word in shell quotes.
fn quoted(word: &OsString) -> String {
    let text = word.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+,./:@%[]".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Files to check.
struct Sources {
    line: Option<Line>,
    hitch: Option<PathBuf>,
    ncsa: Option<PathBuf>,
    others: bool,
}

/// Source of the command line.
enum Line {
    Unit(PathBuf),
    MissingUnit(String),
    Environment(PathBuf),
    Running,
    Process(u32),
    Given(Vec<OsString>),
}

impl Sources {
    fn of(request: &Request, root: &Root) -> Sources {
        let line = if let Some(name) = &request.unit {
            Some(unit::find(root, name).map_or_else(|| Line::MissingUnit(name.clone()), Line::Unit))
        } else if let Some(path) = &request.environment {
            Some(Line::Environment(path.clone()))
        } else if request.running {
            Some(Line::Running)
        } else if let Some(number) = request.pid {
            Some(Line::Process(number))
        } else {
            request.arguments.clone().map(Line::Given)
        };
        let mut sources = Sources {
            line,
            hitch: request.hitch.clone(),
            ncsa: request.ncsa.as_ref().map(|name| unit::find(root, name).unwrap_or_else(|| PathBuf::from(name))),
            others: !request.vcls.is_empty() || request.parameters.is_some(),
        };
        if request.names_nothing() {
            let first = ENVIRONMENTS.iter().map(Path::new).find(|path| root.has(path));
            let environment = || first.map(|path| Line::Environment(path.to_owned()));
            sources.line = unit::find(root, UNIT).map(Line::Unit).or_else(environment);
            sources.ncsa = unit::find(root, NCSA_UNIT);
            sources.hitch = root.has(Path::new(HITCH)).then(|| PathBuf::from(HITCH));
        }
        sources
    }

    fn is_empty(&self) -> bool {
        self.line.is_none() && self.hitch.is_none() && self.ncsa.is_none() && !self.others
    }

    /// The words of the daemon's command line, if there is one.
    fn words(&self, root: &Root, report: &mut Report) -> Result<Option<Vec<Word>>, String> {
        let words = match &self.line {
            None => return Ok(None),
            Some(Line::MissingUnit(name)) => return Err(format!("{name}: no such unit")),
            Some(Line::Running) => process::words(process::find()?)?,
            Some(Line::Process(number)) => process::words(*number)?,
            Some(Line::Given(arguments)) => {
                let place = Place::new("command line", 0);
                arguments.iter().map(|text| Word { text: text.clone(), place: place.clone() }).collect()
            }
            Some(Line::Environment(path)) => of_environment(path, root, report)?,
            Some(Line::Unit(path)) => return of_unit(path, root, report),
        };
        if let Some(word) = words.first() {
            report.note_read(&word.place.file);
        }
        Ok(Some(words))
    }
}

fn of_unit(path: &Path, root: &Root, report: &mut Report) -> Result<Option<Vec<Word>>, String> {
    let unit = unit::read(root, path, report)?;
    let variables = unit.variables(root, report);
    let (program, mut words) = unit.command(&variables)?;
    unit.judge_commands(report);
    if !daemon::is_varnishd(&program.text) {
        let what = format!("{}: not varnishd, so what it starts was not looked at", program.shown());
        unit.judge(&[], report);
        report.changes(
            &program.place,
            what,
            "copal preflight --running, or -- with the arguments, looks at what it starts",
        );
        return Ok(None);
    }
    if Path::new(&program.text).ends_with("copal") && !words.is_empty() {
        words.remove(0);
    }
    report.works(&program.place, format!("ExecStart={}: a link of this name to copal is varnishd", program.shown()));
    unit.judge(&words, report);
    Ok(Some(words))
}

/// The command line of an init script with these variables.
fn of_environment(path: &Path, root: &Root, report: &mut Report) -> Result<Vec<Word>, String> {
    let text = root.text(path)?;
    let file = path.display().to_string();
    report.note_read(&file);
    let mut variables = Variables::new();
    for line in environment::read(&text, &file, Reader::Shell, &mut variables) {
        let place = Place::new(&file, line);
        report.changes(
            &place,
            "a command of the shell, which was not run",
            "copal preflight --running sees what comes of it",
        );
    }
    let is_of_params = variables.contains_key("VARNISH_VCL_CONF") && !mentions_vcl(&variables);
    let line = if is_of_params { PARAMS_LINE } else { "$DAEMON_OPTS" };
    if !is_of_params && !variables.contains_key("DAEMON_OPTS") {
        return Err(format!("{file} sets neither DAEMON_OPTS nor VARNISH_VCL_CONF"));
    }
    let line = Lined { file, letters: line.chars().map(|letter| (letter, 0)).collect() };
    words::split(&line, &variables, Dollars::Systemd)
}

/// True if DAEMON_OPTS is a whole command line rather than additional options.
fn mentions_vcl(variables: &Variables) -> bool {
    let options = variables.get("DAEMON_OPTS").map(Lined::text).unwrap_or_default();
    options.split_whitespace().any(|word| word.starts_with("-f") || word.starts_with("-b"))
}

/// Changes of the daemon's command line when it replaces hitch.
fn next_to_hitch(judged: &mut Judged, found: &hitch::Found, has_line: bool, root: &Root, report: &mut Report) {
    judged.words.extend([OsString::from("-A"), found.file.clone().into_os_string()]);
    let place = Place::new(&found.file.display().to_string(), 0);
    report.changes(&place, "hitch is needed no more: the daemon speaks TLS", format!("-A {}", found.file.display()));
    let port = |text: &str| text.rsplit_once(':').map(|(_, port)| port.trim_end_matches(']').to_owned());
    for (listener, place) in &judged.behind_proxy {
        let endpoint = listener.split(',').next().unwrap_or_default();
        if found.backend.as_deref().and_then(port) == port(endpoint) && port(endpoint).is_some() {
            report.changes(
                place,
                format!("-a {listener}: hitch spoke to this listener"),
                "drop it together with hitch",
            );
        }
    }
    if has_line && judged.arguments.is_some() {
        // The parser decides if the listeners fit together.
        let mut line: Vec<OsString> = ["-F", "-f", ""].map(OsString::from).to_vec();
        let mut words = judged.words.iter();
        while let Some(word) = words.next() {
            if word == "-a" {
                line.extend([word.clone(), words.next().cloned().unwrap_or_default()]);
            }
        }
        line.extend(["-A".into(), root.at(&found.file).into_os_string()]);
        if let Err(error) = manager::arguments::parse(Called::Stock, &line)
            && !root.is_elsewhere()
        {
            let message = error.text.trim().to_owned();
            report.blocks(
                &place,
                format!("together with the listeners of the command line: {message}"),
                "one address, one listener",
            );
        }
    }
}

/// Compiles all VCLs, with the storages, parameters and labels of the daemon.
fn examine_vcl(request: &Request, root: &Root, judged: &mut Judged, report: &mut Report) {
    let arguments = judged.arguments.as_deref();
    let mut values = arguments.map_or_else(|| manager::default_parameters(Called::Stock), |all| all.parameters.clone());
    let storages = match arguments {
        Some(all) => all.storages.names(),
        None => storage::parse(&[]).map(|all| all.names()).unwrap_or_default(),
    };
    if let Some(path) = &request.parameters {
        let file = path.display().to_string();
        match root.text(path) {
            Ok(text) => {
                report.note_read(&file);
                let options = parameters::judge(&text, &file, &storages, &mut values, report);
                judged.words.extend(options.iter().flat_map(|option| option.splitn(2, ' ')).map(OsString::from));
            }
            Err(why) => report.blocks(&Place::new(&file, 0), why, "the file must be there and readable"),
        }
    }
    let mut vcls = std::mem::take(&mut judged.vcls);
    let mut labels = Vec::new();
    if let Some((file, commands)) = arguments.and_then(|all| all.commands.as_ref()) {
        for (index, line) in String::from_utf8_lossy(commands).lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches('"')).collect();
            match words[..] {
                ["vcl.label", label, _] => labels.push(label.to_owned()),
                ["vcl.load", _, vcl, ..] => vcls.push((vcl.to_owned(), Place::new(file, index + 1))),
                _ => {}
            }
        }
    }
    let here = Place::new("command line", 0);
    vcls.extend(request.vcls.iter().map(|file| (absolute(file, root), here.clone())));
    let has_unix_socket =
        arguments.is_some_and(|all| all.listeners.iter().any(|one| matches!(one.address, ListenAddress::Unix { .. })));
    let around = Surroundings { root, parameters: &values, storages, labels, has_unix_socket };
    for (file, place) in &vcls {
        vcl_files::judge(file, place, &around, report);
    }
}

/// A file named in our arguments is relative to our directory, not to the daemon's.
fn absolute(file: &str, root: &Root) -> String {
    if root.is_elsewhere() {
        return file.to_owned();
    }
    std::path::absolute(file).map_or_else(|_| file.to_owned(), |path| path.display().to_string())
}
