//! The document that a manager sends to its successor: [`Document`], and the descriptors that go
//! with it, in this order: memory files, pid files, sockets of listeners, sockets of the CLI,
//! sockets for metrics and the dashboard.
//!
//! It is JSON, since the two may be of different versions: unknown fields are ignored, and newer
//! fields have a default. A field that a later version cannot do without is a reason to raise
//! [`FORMAT`]. Settings of the command line are not included: the successor has the same arguments.
//! VCL is included as text, because programs have no stable format: the successor compiles it.
//! *Invariant:* received data is untrusted: [`Inheritance::open`] has checked everything before
//! anything is changed.

use crate::arguments::Arguments;
use crate::canary::{HandedCanary, Running, clock};
use crate::cli_connections::{CliListener, HeldCliListener};
use crate::compile::Job;
use crate::directory::WorkDirectory;
use crate::listeners::{HandedListener, Listener, check_handed};
use crate::memory_files::MemoryFiles;
use crate::metrics_sockets::MetricsSocket;
use crate::state::{ChildState, Manager};
use crate::storage_files::wanted;
use crate::tls;
use crate::tls::registry::{HandedTls, Registry};
use crate::vcl_files::VclFiles;
use crate::vcl_history::VclHistory;
use crate::vcl_table::{Kind, VclTable};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use surface::closed_set::VclState;
use surface::parameter::Parameters;
use surface::version::COPAL_VERSION;

/// The version of the document.
pub const FORMAT: u32 = 1;

/// Everything but the descriptors.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    format: u32,
    /// The version of the program that wrote it.
    version: String,
    work_directory: PathBuf,
    has_made_secret: bool,
    pid_files: Vec<PathBuf>,
    /// Names of the storages, in the order of their arenas.
    storages: Vec<String>,
    /// Limits of the storages; `None` = those of the command line.
    #[serde(default)]
    limits_bytes: Option<Vec<u64>>,
    listeners: Vec<HandedListener>,
    /// Paths of the sockets of the CLI; `None` for TCP.
    cli: Vec<Option<PathBuf>>,
    /// Paths of the sockets for metrics; `None` for TCP.
    #[serde(default)]
    metrics: Vec<Option<PathBuf>>,
    /// Number of the sockets for the dashboard.
    #[serde(default)]
    dash: usize,
    /// Parameters that were set after the start.
    parameters: Map<String, Value>,
    /// In order of loading.
    vcls: Vec<HandedVcl>,
    active: Option<String>,
    #[serde(default)]
    history: VclHistory,
    #[serde(default)]
    canary: Option<HandedCanary>,
    tls: HandedTls,
    /// A worker should run.
    is_serving: bool,
    #[serde(default)]
    exit_status: i32,
    #[serde(default)]
    panic: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HandedVcl {
    name: String,
    state: VclState,
    kind: HandedKind,
}

#[derive(Debug, Serialize, Deserialize)]
enum HandedKind {
    Program { source_name: String, files: VclFiles },
    Label(String),
}

impl Document {
    /// Describes the state of this manager.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn of(manager: &Manager) -> io::Result<(Document, Vec<OwnedFd>)> {
        let mut descriptors = manager.memory.borrow().handles()?;
        let directory = manager.directory.borrow();
        let (mut pid_files, mut listeners, mut cli) = (Vec::new(), Vec::new(), Vec::new());
        for (path, file) in directory.bequeath()? {
            pid_files.push(path);
            descriptors.push(file);
        }
        for listener in manager.listeners.borrow().iter() {
            let (handed, sockets) = listener.hand_over()?;
            listeners.push(handed);
            descriptors.extend(sockets);
        }
        for held in &manager.cli_sockets {
            cli.push(held.path.clone());
            descriptors.push(held.descriptor.try_clone()?);
        }
        let mut metrics = Vec::new();
        for socket in &manager.metrics {
            let (path, descriptor) = socket.hand_over()?;
            metrics.push(path);
            descriptors.push(descriptor);
        }
        for socket in &manager.dash {
            descriptors.push(socket.hand_over()?.1);
        }
        let vcls = manager.vcls.borrow();
        let is_shrunk = *manager.limits_now_bytes.borrow() != *manager.storage_limits_bytes.borrow();
        let document = Document {
            format: FORMAT,
            version: COPAL_VERSION.to_owned(),
            work_directory: directory.path().to_owned(),
            has_made_secret: directory.has_made_secret(),
            pid_files,
            storages: manager.arguments.storages.cache.iter().map(|storage| storage.name.clone()).collect(),
            limits_bytes: is_shrunk.then(|| manager.limits_now_bytes.borrow().clone()),
            listeners,
            cli,
            metrics,
            dash: manager.dash.len(),
            parameters: changed(&manager.arguments.parameters, &manager.parameters.borrow()),
            vcls: vcls
                .entries()
                .iter()
                .map(|entry| HandedVcl {
                    name: entry.name.clone(),
                    state: entry.state,
                    kind: match &entry.kind {
                        Kind::Label(target) => HandedKind::Label(target.clone()),
                        Kind::Program(loaded) => HandedKind::Program {
                            source_name: loaded.sources.first().map(|source| source.name.clone()).unwrap_or_default(),
                            files: loaded.files.clone(),
                        },
                    },
                })
                .collect(),
            active: vcls.active().map(str::to_owned),
            history: manager.history.borrow().clone(),
            canary: manager.trials.borrow().running.as_ref().map(|running| running.hand_over(clock())),
            tls: manager.tls.borrow().hand_over(),
            is_serving: manager.state.get() != ChildState::Stopped,
            exit_status: manager.exit_status.get(),
            panic: manager.panic.borrow().clone(),
        };
        Ok((document, descriptors))
    }
}

/// Checked state that a successor starts with.
#[derive(Debug)]
pub struct Inheritance {
    /// The work directory.
    pub directory: WorkDirectory,
    /// Memory that outlives workers, and files with their locks.
    pub memory: MemoryFiles,
    /// Limits of the storages, if they are not those of the command line.
    pub limits_bytes: Option<Vec<u64>>,
    /// Listeners, with their sockets.
    pub listeners: Vec<Listener>,
    /// The sockets of the CLI.
    pub cli_sockets: Vec<CliListener>,
    /// The sockets for metrics.
    pub metrics: Vec<MetricsSocket>,
    /// The sockets for the dashboard.
    pub dash: Vec<MetricsSocket>,
    /// Parameters.
    pub parameters: Parameters,
    /// VCLs, compiled.
    pub vcls: VclTable,
    /// Changes of the active VCL.
    pub history: VclHistory,
    /// The canary that runs.
    pub canary: Option<Running>,
    /// Certificates and keys.
    pub tls: Registry,
    /// A worker should run.
    pub is_serving: bool,
    /// Bits of the exit status.
    pub exit_status: i32,
    /// The last panic.
    pub panic: Option<String>,
    /// Items of the predecessor that do not exist here, for the log.
    pub remarks: Vec<String>,
}

impl Inheritance {
    /// Checks the received data against the command line, and opens it. Changes nothing outside
    /// this process.
    ///
    /// # Errors
    /// The item that cannot be taken over, in one line or with the report of the VCL compiler.
    pub fn open(bytes: &[u8], descriptors: Vec<OwnedFd>, arguments: &Arguments) -> Result<Inheritance, String> {
        let document = read(bytes)?;
        let storages: Vec<&String> = arguments.storages.cache.iter().map(|storage| &storage.name).collect();
        if document.storages.iter().ne(storages.iter().copied()) {
            return Err(format!("the storages are {}, and were {}", list(&storages), list(&document.storages)));
        }
        let own = document.work_directory.join("_.pid");
        if document.pid_files.iter().ne(std::iter::once(&own).chain(&arguments.pid_files)) {
            return Err(format!("the pid files were {:?}", document.pid_files));
        }
        check_handed(&document.listeners, &arguments.listeners)?;
        let mut descriptors = descriptors.into_iter();
        let wanted = wanted(&arguments.storages);
        let memory: Vec<OwnedFd> = descriptors.by_ref().take(MemoryFiles::handle_count(&wanted)).collect();
        let memory = MemoryFiles::take_over(memory, &wanted)?;
        let pid_files: Vec<(PathBuf, OwnedFd)> = document.pid_files.into_iter().zip(descriptors.by_ref()).collect();
        if pid_files.len() != arguments.pid_files.len() + 1 {
            return Err("there are too few descriptors".to_owned());
        }
        let listeners: Vec<Listener> =
            document.listeners.into_iter().map(|one| one.take_over(&mut descriptors)).collect::<Result<_, _>>()?;
        let mut cli_sockets = Vec::new();
        for path in document.cli {
            let descriptor = descriptors.next().ok_or("there are too few descriptors")?;
            cli_sockets.push(HeldCliListener { path, descriptor }.take_over()?);
        }
        let mut metrics = Vec::new();
        for path in document.metrics {
            let descriptor = descriptors.next().ok_or("there are too few descriptors")?;
            metrics.push(MetricsSocket::take_over(path, descriptor)?);
        }
        let mut dash = Vec::new();
        for _ in 0..document.dash {
            let descriptor = descriptors.next().ok_or("there are too few descriptors")?;
            dash.push(MetricsSocket::take_over(None, descriptor)?);
        }
        if descriptors.next().is_some() {
            return Err("there are too many descriptors".to_owned());
        }
        let (parameters, mut remarks) = with_changes(&arguments.parameters, document.parameters)?;
        let has_unix_socket = listeners.iter().any(|listener| listener.path().is_some());
        let mut vcls = compile(document.vcls, document.active, &parameters, arguments, has_unix_socket)?;
        let handed = document.canary;
        let is_handed = handed.is_some();
        let canary = handed.and_then(|handed| handed.take_over(&vcls, clock()));
        if is_handed && canary.is_none() {
            remarks.push("the canary cannot be continued".to_owned());
        }
        vcls.set_canary(canary.as_ref().map(|running| running.plan.name.as_str()));
        let mut registry = tls::open::frontends(arguments)?;
        registry.take_over(document.tls)?;
        ::tls::server::build(&registry.table())?;
        let limits_bytes = document.limits_bytes.filter(|limits| limits.len() == storages.len());
        let directory =
            WorkDirectory::inherit(document.work_directory, &arguments.jail, pid_files, document.has_made_secret)?;
        Ok(Inheritance {
            directory,
            memory,
            limits_bytes,
            listeners,
            cli_sockets,
            metrics,
            dash,
            parameters,
            vcls,
            history: document.history.checked(),
            canary,
            tls: registry,
            is_serving: document.is_serving,
            exit_status: document.exit_status,
            panic: document.panic,
            remarks,
        })
    }
}

/// The document, if this version understands it.
fn read(bytes: &[u8]) -> Result<Document, String> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
        version: String,
    }
    let damaged = |error: serde_json::Error| format!("what is handed over cannot be read: {error}");
    let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
    if head.format != FORMAT {
        let version = surface::legible::lines(head.version.as_bytes()).into_owned();
        return Err(format!(
            "Copal {version} hands over in format {}, and this Copal {COPAL_VERSION} understands format {FORMAT}: stop it and start it anew",
            head.format
        ));
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

fn list(names: &[impl AsRef<str>]) -> String {
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

fn fields(parameters: &Parameters) -> Map<String, Value> {
    match serde_json::to_value(parameters) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The parameters that have changed since the start.
fn changed(before: &Parameters, now: &Parameters) -> Map<String, Value> {
    let before = fields(before);
    fields(now).into_iter().filter(|(name, value)| before.get(name) != Some(value)).collect()
}

/// Parameters with the changes applied; and a remark for each parameter that no longer exists.
fn with_changes(given: &Parameters, changes: Map<String, Value>) -> Result<(Parameters, Vec<String>), String> {
    let (mut all, mut remarks) = (fields(given), Vec::new());
    for (name, value) in changes {
        match all.get_mut(&name) {
            Some(known) => *known = value,
            None => {
                let name = surface::legible::lines(name.as_bytes()).into_owned();
                remarks.push(format!("the parameter {name} was set, and this version has none of that name"));
            }
        }
    }
    let parameters = serde_json::from_value(Value::Object(all))
        .map_err(|error| format!("the parameters cannot be read: {error}"))?;
    Ok((parameters, remarks))
}

/// Compiles every VCL, in an order in which each finds the labels that it names.
fn compile(
    vcls: Vec<HandedVcl>,
    active: Option<String>,
    parameters: &Parameters,
    arguments: &Arguments,
    has_unix_socket: bool,
) -> Result<VclTable, String> {
    let mut table = VclTable::default();
    // A label may have been moved to a VCL that was loaded later: its target counts, not its age.
    let labels: Vec<String> =
        vcls.iter().filter(|vcl| matches!(vcl.kind, HandedKind::Label(_))).map(|vcl| vcl.name.clone()).collect();
    for vcl in vcls {
        match vcl.kind {
            HandedKind::Label(target) => table.set_label(&vcl.name, &target),
            HandedKind::Program { source_name, files } => {
                table.check_new(&vcl.name).map_err(|refusal| refusal.body)?;
                let job = Job::of_parameters(parameters, arguments, source_name, Vec::new());
                let done = job.again(files, labels.clone(), has_unix_socket).run(false);
                let done = done.map_err(|report| format!("the VCL {} cannot be compiled:\n{report}", vcl.name))?;
                table.add(&vcl.name, vcl.state, done.loaded);
            }
        }
    }
    table.check_whole().map_err(|name| format!("the VCL or label {name} is missing"))?;
    if let Some(active) = active {
        table.check_known(&active).map_err(|refusal| refusal.body)?;
        table.set_active(&active);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Parsed, parse};
    use crate::report::{LogFormat, Reporter};
    use crate::state::Parts;
    use crate::vcl_history::{Change, Used};
    use serde_json::json;
    use std::ffi::OsString;
    use surface::program::Called;

    fn arguments(folder: &tempfile::TempDir, options: &[&str]) -> Arguments {
        let path = folder.path().canonicalize().unwrap().join("v").display().to_string();
        let first = ["-F", "-j", "none", "-n", &path, "-b", "none", "-T", "none"];
        let line: Vec<OsString> = first.iter().chain(options).map(OsString::from).collect();
        match parse(Called::Stock, &line) {
            Ok(Parsed::Run(arguments)) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    fn manager(folder: &tempfile::TempDir) -> Manager {
        let arguments = arguments(folder, &["-s", "a=malloc,1m", "-a", "site=127.0.0.1:0"]);
        let reporter = Reporter::new(Called::Stock, false, LogFormat::Plain);
        reporter.disable_syslog();
        let parts = Parts {
            directory: WorkDirectory::open(&arguments.work_directory, &arguments.jail, &[]).unwrap(),
            listeners: crate::listeners::open(&arguments.listeners, 2, Vec::new(), std::time::Duration::ZERO).unwrap(),
            tls: tls::open::frontends(&arguments).unwrap(),
            acme: None,
            secret: None,
            storage_limits_bytes: vec![1 << 20],
            memory: MemoryFiles::create(1).unwrap(),
            cli_sockets: Vec::new(),
            metrics: Vec::new(),
            dash: Vec::new(),
            program: crate::program::Program::of_process(0, &[]),
        };
        let job = Job::of_parameters(&arguments.parameters, &arguments, "x".into(), arguments.vcls[0].text.clone());
        let loaded = job.run(false).unwrap().loaded;
        let manager = Manager::new(arguments, reporter, parts).unwrap();
        manager.vcls.borrow_mut().add("boot", VclState::Warm, loaded);
        manager.vcls.borrow_mut().set_label("way", "boot");
        manager.vcls.borrow_mut().set_active("way");
        let used = |name: &str| Used::named(&manager.vcls.borrow(), name);
        let (from, to) = (Some(used("boot")), used("way"));
        manager.history.borrow_mut().add(Change { at: 0.1 + 0.2, who: "t".into(), from, to, why: "u".into() });
        manager.parameters.borrow_mut().default_ttl = 0.1 + 0.2;
        manager
    }

    #[test]
    fn handover_document_restores_the_state() {
        let folder = tempfile::tempdir().unwrap();
        let manager = manager(&folder);
        let (document, descriptors) = Document::of(&manager).unwrap();
        let bytes = serde_json::to_vec(&document).unwrap();
        let inherited = Inheritance::open(&bytes, descriptors, &manager.arguments).unwrap();
        assert_eq!(inherited.parameters, *manager.parameters.borrow());
        assert_eq!(inherited.listeners[0].sockets().len(), 2);
        assert_eq!((inherited.vcls.active(), inherited.vcls.entries().len()), (Some("way"), 2));
        assert_eq!(inherited.vcls.entries()[0].state, VclState::Warm);
        assert_eq!(inherited.history, *manager.history.borrow());
        assert_eq!(inherited.history.before(1).unwrap().name, "boot");
        assert!(inherited.remarks.is_empty() && inherited.limits_bytes.is_none() && !inherited.is_serving);
    }

    #[test]
    fn inconsistent_documents_are_refused_and_unknown_fields_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let manager = manager(&folder);
        let open = |change: &dyn Fn(&mut Value, &mut Vec<OwnedFd>), options: &[&str]| {
            let (document, mut descriptors) = Document::of(&manager).unwrap();
            let mut document = serde_json::to_value(&document).unwrap();
            change(&mut document, &mut descriptors);
            let arguments = arguments(&folder, options);
            Inheritance::open(&serde_json::to_vec(&document).unwrap(), descriptors, &arguments)
        };
        let same = ["-s", "a=malloc,1m", "-a", "site=127.0.0.1:0"];
        let refused = |change: &dyn Fn(&mut Value, &mut Vec<OwnedFd>), said: &str| {
            let why = open(change, &same).unwrap_err();
            assert!(why.contains(said), "{said}: {why}");
        };
        let nothing = |_: &mut Value, _: &mut Vec<OwnedFd>| {};
        assert_eq!(
            open(&nothing, &["-s", "b=malloc", "-s", "a=malloc", "-a", "site=127.0.0.1:0"]).unwrap_err(),
            "the storages are b, a, and were a"
        );
        assert!(
            open(&nothing, &["-s", "a=malloc", "-a", "127.0.0.1:0"]).unwrap_err().contains("the listener a0 is not")
        );
        refused(&|_, descriptors| drop(descriptors.pop()), "the sockets of the listener site are not its own");
        refused(&|_, descriptors| drop(descriptors.drain(2..)), "2 memory files instead of 4");
        refused(&|_, descriptors| descriptors.push(descriptors[0].try_clone().unwrap()), "too many descriptors");
        refused(&|_, descriptors| descriptors.swap(0, 3), "is not the memory file copal-journal");
        refused(&|document, _| document["vcls"][0]["name"] = json!("other"), "the VCL or label boot is missing");
        refused(&|document, _| document["active"] = json!("gone"), "No VCL named gone known");
        refused(
            &|document, _| document["vcls"][0]["kind"]["Program"]["files"]["main"] = json!({"Text": "vcl 9;"}),
            "the VCL boot cannot be compiled:",
        );
        refused(&|document, _| document["parameters"] = json!({"default_ttl": "x"}), "the parameters cannot be read");
        refused(&|document, _| document["listeners"] = json!(7), "what is handed over cannot be read");
        let later = |document: &mut Value, _: &mut Vec<OwnedFd>| {
            document["of_a_later_version"] = json!([1]);
            document["parameters"]["of_a_later_version"] = json!(1);
        };
        let inherited = open(&later, &same).unwrap();
        let remark = "the parameter of_a_later_version was set, and this version has none of that name";
        assert_eq!(inherited.remarks, [remark]);
    }
}
