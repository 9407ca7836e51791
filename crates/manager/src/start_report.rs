//! The lines with which `copal daemon` reports its start: what it serves, and how to stop it.
//!
//! At most [`LINES_MAX`] lines, in the foreground and in the background. `varnishd` reports
//! nothing.

use crate::arguments::Mode;
use crate::listeners::Listener;
use crate::state::Manager;
use std::path::Path;
use surface::parameter::debug;
use surface::program::Called;
use surface::quantity::size;
use surface::version::COPAL_VERSION;

/// Number of lines at most.
#[cfg(test)]
const LINES_MAX: usize = 6;
/// Number of items that a line lists.
const LISTED_MAX: usize = 4;

/// The report, without a newline at its end; `None` where there is none.
#[must_use]
pub fn of(manager: &Manager) -> Option<String> {
    let arguments = &manager.arguments;
    if arguments.called == Called::Stock || arguments.mode == Mode::Debug || manager.debug(debug::VTC_MODE) {
        return None;
    }
    let serves = if manager.running_worker().is_some() { "serves" } else { "waits for a VCL" };
    let listeners = manager.listeners.borrow();
    let directory = manager.directory.borrow().path().to_owned();
    let is_default = directory == shm::place::of_reader(None);
    Some(text(&Facts {
        serves,
        process: std::process::id(),
        listeners: listeners.iter().map(listener).collect(),
        metrics: arguments.metrics.iter().map(|address| address.text.clone()).collect(),
        dash: arguments.dash.addresses.iter().map(|address| address.text.clone()).collect(),
        vcl: vcl(manager),
        storages: storages(manager),
        directory: &directory,
        is_default,
        has_terminal: arguments.mode == Mode::Foreground,
    }))
}

/// Content of the report.
struct Facts<'a> {
    serves: &'static str,
    process: u32,
    listeners: Vec<String>,
    /// Addresses of `-o metrics`.
    metrics: Vec<String>,
    /// Addresses of `-o dash`.
    dash: Vec<String>,
    /// Title and text.
    vcl: (&'static str, String),
    storages: Vec<String>,
    directory: &'a Path,
    is_default: bool,
    has_terminal: bool,
}

fn text(facts: &Facts<'_>) -> String {
    let directory = facts.directory.display();
    let named = if facts.is_default { String::new() } else { format!(" -n {directory}") };
    let terminal = if facts.has_terminal { "Ctrl-C, or: " } else { "" };
    let also = |what: &str, addresses: &[String]| match addresses {
        [] => String::new(),
        addresses => format!("; {what} on {}", listed(addresses.to_vec())),
    };
    let (metrics, dash) = (also("metrics", &facts.metrics), also("dashboard", &facts.dash));
    let (title, vcl) = &facts.vcl;
    [
        format!("Copal {COPAL_VERSION} {}: process {}", facts.serves, facts.process),
        format!("  listens on  {}{metrics}{dash}", listed(facts.listeners.clone())),
        format!("  {title:<10}  {vcl}"),
        format!("  storage     {}", listed(facts.storages.clone())),
        format!("  directory   {directory}"),
        format!("  to stop it  {terminal}copal stop{named}"),
    ]
    .join("\n")
}

/// Items in one line, each of them once.
fn listed(mut items: Vec<String>) -> String {
    items.dedup();
    let more = items.len().saturating_sub(LISTED_MAX);
    items.truncate(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if items.is_empty() { "nothing".to_owned() } else { items.join(", ") + &more }
}

fn listener(listener: &Listener) -> String {
    let address = match (listener.path(), listener.ip_address()) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(address)) if address.ip().is_unspecified() => format!(":{}", address.port()),
        (None, Some(address)) => address.to_string(),
        (None, None) => listener.endpoint.clone(),
    };
    let redirect = listener.redirect_port.map(|_| "redirects to https");
    let traits = [
        listener.tls.then_some("https"),
        (!listener.datagram_sockets().is_empty()).then_some("HTTP/3"),
        listener.proxy.then_some("PROXY"),
        redirect,
    ];
    let traits: Vec<&str> = traits.into_iter().flatten().collect();
    if traits.is_empty() { address } else { format!("{address} ({})", traits.join(", ")) }
}

fn vcl(manager: &Manager) -> (&'static str, String) {
    let table = manager.vcls.borrow();
    let backend = manager.arguments.backend.as_deref();
    let source = table.active().and_then(|name| {
        let loaded = table.program(name)?;
        Some(loaded.sources.first()?.name.clone())
    });
    match (source, backend) {
        (None, _) => ("VCL", "none: copal adm vcl.load NAME FILE, then vcl.use NAME, then start".to_owned()),
        (Some(source), Some(backend)) if source == vcl::BACKEND_OPTION_NAME => ("backend", backend.to_owned()),
        (Some(source), Some(backend)) => ("VCL", format!("{source}, backend {backend}")),
        (Some(source), None) => ("VCL", source),
    }
}

fn storages(manager: &Manager) -> Vec<String> {
    let cache = &manager.arguments.storages.cache;
    let limits = manager.storage_limits_bytes.borrow();
    let item = |(index, storage): (usize, &crate::arguments::storage::StorageArgument)| {
        let memory = limits.get(index).map(|bytes| size(*bytes)).unwrap_or_default();
        let text = match &storage.file {
            Some(file) => format!("{} in {}", file.size_text, file.path.display()),
            None => format!("{memory} in memory"),
        };
        if cache.len() == 1 { text } else { format!("{}: {text}", storage.name) }
    };
    cache.iter().enumerate().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_six_lines_at_most_and_names_what_is_needed_to_stop() {
        let mut facts = Facts {
            serves: "serves",
            process: 7,
            listeners: [":80", ":80", ":443 (https, HTTP/3)"].map(str::to_owned).to_vec(),
            metrics: Vec::new(),
            dash: Vec::new(),
            vcl: ("backend", "127.0.0.1:8080".to_owned()),
            storages: vec!["256 MiB in memory".to_owned()],
            directory: Path::new("/tmp/copal-1000/varnishd"),
            is_default: true,
            has_terminal: false,
        };
        let expected = format!(
            "Copal {COPAL_VERSION} serves: process 7\n  listens on  :80, :443 (https, HTTP/3)\n  backend     127.0.0.1:8080\n  \
             storage     256 MiB in memory\n  directory   /tmp/copal-1000/varnishd\n  to stop it  copal stop"
        );
        assert_eq!(text(&facts), expected);
        facts.listeners = (0..100).map(|port| format!(":{port}")).collect();
        (facts.is_default, facts.has_terminal) = (false, true);
        facts.metrics = vec!["127.0.0.1:9131".to_owned()];
        facts.dash = vec!["127.0.0.1:9132".to_owned()];
        let many = text(&facts);
        assert!(many.contains("; metrics on 127.0.0.1:9131; dashboard on 127.0.0.1:9132\n"), "{many}");
        assert!(many.lines().count() <= LINES_MAX && many.contains(":3 and 96 more"), "{many}");
        assert!(many.ends_with("Ctrl-C, or: copal stop -n /tmp/copal-1000/varnishd"), "{many}");
    }
}
