//! Everything that this process does, from its command line to its end: the sockets that it serves,
//! the access logs that it writes, the traces that it sends.
//!
//! [`Plan::prepare`] reads what only the starting user may read, and checks it; nothing runs before
//! [`Prepared::run`], which is called in the sandbox. HUP opens the files again; INT and TERM end
//! the process after the queues are written. *Invariant:* signals are blocked before the first
//! thread is started, so that only the thread that waits for them receives them.

use crate::access_log;
use crate::collector::Collector;
use crate::connection::Shared;
use crate::dash::{self, Clients, Dash, Feed, Operator, Requests, Users};
use crate::listener::Listener;
use crate::log_reader::{Consumer, LogReader};
use crate::server;
use crate::trace;
use nix::sys::signal::{SigSet, Signal};
use std::ffi::OsString;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use surface::access_log::{AccessLog, Destination};
use surface::limits::{ACCESS_LOGS_MAX, OBSERVE_SECONDS_MAX};
use surface::otlp::{ENDPOINT_OF_ENVIRONMENT, ENDPOINT_VARIABLE, Endpoint, QUERY_KEEP, Sample};

/// Files that a local time depends on.
const TIME_ZONES: [&str; 2] = ["/etc/localtime", "/usr/share/zoneinfo"];

/// Work of this process, apart from its sockets.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct Plan {
    /// Access logs.
    pub access_logs: Vec<AccessLog>,
    /// The collector of traces.
    pub collector: Option<Endpoint>,
    /// The traces that are sent.
    pub sample: Sample,
    /// Values of query arguments are sent.
    pub keeps_query: bool,
    /// The dashboard.
    pub dash: DashPlan,
}

/// Settings of the dashboard as they were asked for.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct DashPlan {
    /// Number of its sockets among those of a manager; 0 = no dashboard.
    pub sockets: usize,
    users: Option<PathBuf>,
    hosts: Vec<String>,
    /// No user may change anything.
    pub is_view_only: bool,
    clients: Clients,
}

/// Sockets of the dashboard, and its way to the server.
pub(crate) struct DashPort {
    pub listeners: Vec<Listener>,
    pub operator: Box<dyn Operator>,
}

impl Plan {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.access_logs.is_empty() && self.collector.is_none()
    }

    /// Takes an option if it is one of the plan. Returns false if it is another one.
    ///
    /// # Errors
    /// The value is wrong.
    pub fn take(&mut self, option: &str, value: impl FnOnce() -> Result<OsString, String>) -> Result<bool, String> {
        match option {
            "access-log" => {
                let text = value()?.to_string_lossy().into_owned();
                self.access_logs.push(AccessLog::parse(&text).map_err(|why| format!("--access-log={text}: {why}"))?);
                if self.access_logs.len() > ACCESS_LOGS_MAX {
                    return Err(format!("at most {ACCESS_LOGS_MAX} access logs are allowed"));
                }
            }
            "otlp" => self.collector = Some(endpoint(&value()?.to_string_lossy())?),
            "otlp-sample" => {
                let text = value()?;
                self.sample = Sample::parse(&text.to_string_lossy()).map_err(|why| format!("--otlp-sample: {why}"))?;
            }
            "dash" => {
                let text = value()?;
                let sockets = text.to_str().and_then(|text| text.parse().ok());
                self.dash.sockets = sockets.ok_or("--dash: this is not a number of sockets")?;
            }
            "dash-users" => self.dash.users = Some(PathBuf::from(value()?)),
            "dash-hosts" => {
                let text = value()?.to_string_lossy().to_ascii_lowercase();
                self.dash.hosts = text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            }
            "dash-operate" => self.dash.is_view_only = value()? == *"off",
            "dash-clients" => {
                self.dash.clients = match value()?.to_str() {
                    Some("hash") => Clients::Hash,
                    Some("show") => Clients::Show,
                    _ => return Err("--dash-clients is hash or show".to_owned()),
                };
            }
            "otlp-query" => self.keeps_query = value()?.to_string_lossy() == QUERY_KEEP,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The directories in which files are written.
    pub fn writable(&self) -> Vec<PathBuf> {
        let files = self.access_logs.iter().filter_map(|log| match &log.destination {
            Destination::File(path) => Path::new(path).parent(),
            Destination::Stdout | Destination::Stderr | Destination::Syslog(..) | Destination::Datagram(_) => None,
        });
        files.map(Path::to_owned).collect()
    }

    /// The ports to which connections are opened.
    pub fn ports(&self) -> Vec<u16> {
        self.collector.iter().map(|endpoint| endpoint.port).collect()
    }

    /// The files that are read after the start.
    pub fn readable(&self) -> Vec<PathBuf> {
        TIME_ZONES.iter().map(PathBuf::from).collect()
    }

    /// Checks the plan, and reads its files.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn prepare(&self) -> Result<Prepared, String> {
        let access_logs = self.access_logs.iter().map(access_log::Prepared::new).collect::<Result<_, _>>()?;
        let trace = self.collector.as_ref().map(|endpoint| {
            let settings = trace::Settings {
                endpoint: endpoint.clone(),
                sample: self.sample.clone(),
                keeps_query: self.keeps_query,
            };
            trace::Prepared::new(&settings, |name| std::env::var(name).ok())
        });
        let users = match &self.dash.users {
            Some(path) => Users::read(path).map_err(|why| format!("-o dash_users={}: {why}", path.display()))?,
            None => Users::default(),
        };
        let dash = dash::Settings {
            hosts: self.dash.hosts.clone(),
            users,
            is_view_only: self.dash.is_view_only,
            clients: self.dash.clients,
        };
        Ok(Prepared { access_logs, trace: trace.transpose()?, dash })
    }
}

/// A plan that was checked.
pub(crate) struct Prepared {
    access_logs: Vec<access_log::Prepared>,
    trace: Option<trace::Prepared>,
    dash: dash::Settings,
}

/// The collector of an option or of the environment.
fn endpoint(text: &str) -> Result<Endpoint, String> {
    if text != ENDPOINT_OF_ENVIRONMENT {
        return Endpoint::parse(text).map_err(|why| format!("--otlp: {why}"));
    }
    let url = std::env::var(ENDPOINT_VARIABLE).map_err(|_| format!("{ENDPOINT_VARIABLE} is not set"))?;
    Endpoint::parse(&url).map_err(|why| format!("{ENDPOINT_VARIABLE}: {why}"))
}

impl Prepared {
    /// Works until `parent` is closed at its other end, or a signal ends it.
    ///
    /// # Errors
    /// Work is impossible, with the reason.
    pub fn run(
        self,
        work_directory: &Path,
        listeners: &[Listener],
        dash: Option<DashPort>,
        parent: Option<BorrowedFd<'_>>,
    ) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let mut signals = SigSet::empty();
        [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].into_iter().for_each(|signal| signals.add(signal));
        signals.thread_block().map_err(|error| error.to_string())?;
        let limit = Duration::from_secs(OBSERVE_SECONDS_MAX);
        let shared = Arc::new(Shared::new(Collector::new(work_directory), limit));
        let (mut writers, mut consumers) = (Vec::new(), Vec::<Box<dyn Consumer>>::new());
        for log in self.access_logs {
            let (writer, source) = log.start(&shared.totals)?;
            writers.push(writer);
            consumers.push(Box::new(source));
        }
        let mut exporter = None;
        if let Some(trace) = self.trace {
            let (sender, source) = trace.start(&shared.totals).map_err(text)?;
            exporter = Some(sender);
            consumers.push(Box::new(source));
        }
        let port = dash;
        let mut dash = None;
        if let Some(DashPort { listeners, operator }) = port {
            let requests = Arc::new(Mutex::new(Requests::default()));
            consumers.push(Box::new(dash::Source::new(&requests, self.dash.clients)));
            let feed = Feed::start(work_directory, &requests, &shared.totals).map_err(text)?;
            dash = Some((listeners, Arc::new(Dash::new(self.dash, &feed, &requests, operator))));
        }
        let writers = Arc::new(writers);
        let (end, ended) = UnixStream::pair().map_err(text)?;
        let of_signals = Arc::downgrade(&writers);
        // It lives as long as the process.
        let wait = move || {
            while let Ok(signal) = signals.wait() {
                if signal != Signal::SIGHUP {
                    let _ = end.shutdown(Shutdown::Both);
                } else if let Some(writers) = of_signals.upgrade() {
                    writers.iter().for_each(access_log::Writer::reopen);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(text)?;
        let reader = match consumers.is_empty() {
            true => None,
            false => Some(LogReader::start(work_directory, consumers, &shared.totals).map_err(text)?),
        };
        if let Some((listeners, dash)) = dash {
            // It ends with the process.
            let serve = move || server::serve(&listeners, &dash, &[]);
            thread::Builder::new().name("dash".to_owned()).spawn(serve).map_err(text)?;
        }
        let ends: Vec<BorrowedFd<'_>> = parent.into_iter().chain([ended.as_fd()]).collect();
        let served = server::serve(listeners, &shared, &ends).map_err(text);
        // First the rest of the log, then the queues.
        drop(reader);
        drop(writers);
        drop(exporter);
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_files_are_writable_and_nothing_else() {
        let mut plan = Plan::default();
        for log in ["/var/log/copal/a.log", "stdout", "syslog", "unix:/run/x"] {
            assert_eq!(plan.take("access-log", || Ok(OsString::from(log))), Ok(true));
        }
        assert_eq!(plan.writable(), [PathBuf::from("/var/log/copal")]);
        assert_eq!(plan.take("metrics", || Err("not read".to_owned())), Ok(false));
        assert!(plan.take("access-log", || Ok(OsString::from("x"))).unwrap_err().contains("absolute path"));
    }
}
