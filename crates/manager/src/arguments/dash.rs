//! `-o dash=…` and its settings.
//!
//! *Invariant:* the dashboard listens on loopback only, unless `dash_insecure=on` is given: its
//! logins would cross the network in the clear.

use super::metrics::{MetricsAddress, parse};
use super::{ArgumentError, absolute};
use std::path::Path;
use surface::limits::OBSERVE_SOCKETS_MAX;
use surface::option::{
    DASH, DASH_CLIENTS, DASH_HOSTS, DASH_INSECURE, DASH_OPERATE, DASH_PORT, DASH_USERS, OBSERVE_DASH,
};

/// The dashboard of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DashArgument {
    /// Where it listens; empty = there is none.
    pub addresses: Vec<MetricsAddress>,
    /// Settings, as arguments of `copal observe`.
    pub settings: Vec<String>,
    /// It may change nothing.
    pub is_view_only: bool,
}

impl DashArgument {
    /// The arguments of `copal observe` if `sockets` of its sockets are for the dashboard.
    #[must_use]
    pub fn of_observe(&self, sockets: usize) -> Vec<String> {
        if sockets == 0 {
            return Vec::new();
        }
        let mut all = vec![OBSERVE_DASH.to_owned(), sockets.to_string()];
        all.extend_from_slice(&self.settings);
        all
    }
}

/// Takes the dashboard out of the `-o` of a command line.
///
/// # Errors
/// One line that names the wrong option.
pub fn take(options: &mut Vec<String>) -> Result<DashArgument, ArgumentError> {
    let mut dash = DashArgument::default();
    let mut is_insecure = false;
    let is_ours = |option: &mut String| {
        let key = option.split('=').next().unwrap_or_default();
        matches!(key, DASH | DASH_USERS | DASH_HOSTS | DASH_OPERATE | DASH_INSECURE | DASH_CLIENTS)
    };
    for option in options.extract_if(.., is_ours) {
        let (key, value) = option.split_once('=').unwrap_or((option.as_str(), ""));
        let mut set = |value: &str| dash.settings.extend([format!("--{}", key.replace('_', "-")), value.to_owned()]);
        let wrong = |why: &str| Err(ArgumentError::from(format!("-o {option}: {why}")));
        match (key, value) {
            (DASH, text) if text.starts_with("unix:") => return wrong("browsers need an address, not a path"),
            (DASH, text) => dash.addresses.push(parse(DASH, text, DASH_PORT)?),
            (DASH_USERS, "") => return wrong("a file is missing"),
            (DASH_USERS, file) => set(&absolute(Path::new(file)).to_string_lossy()),
            (DASH_HOSTS, names) => {
                let is_name = |name: &str| {
                    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
                };
                if !names.split(',').all(is_name) {
                    return wrong("it is not a list of names like cache.example.net, without ports");
                }
                set(names);
            }
            (DASH_OPERATE, "on") => dash.is_view_only = false,
            (DASH_OPERATE, "off") => {
                dash.is_view_only = true;
                set("off");
            }
            (DASH_OPERATE, _) => return wrong("it is neither on nor off"),
            (DASH_INSECURE, "on") => is_insecure = true,
            (DASH_INSECURE, _) => return wrong("it is not on"),
            (DASH_CLIENTS, "hash" | "show") => set(value),
            _ => return wrong("it is neither hash nor show"),
        }
    }
    if dash.addresses.is_empty() {
        let is_empty = dash.settings.is_empty() && !dash.is_view_only && !is_insecure;
        return if is_empty { Ok(dash) } else { Err("-o dash_users and the like need -o dash".into()) };
    }
    let mut addresses = dash.addresses.iter().flat_map(|one| &one.addresses);
    if !is_insecure && let Some(open) = addresses.find(|address| !address.ip().to_canonical().is_loopback()) {
        return Err(format!(
            "-o dash: {open} is not loopback, and passwords would cross the network in the clear. Listen on loopback behind a \
             proxy with TLS or a tunnel, or add -o dash_insecure=on."
        )
        .into());
    }
    let sockets: usize = dash.addresses.iter().map(|one| one.addresses.len()).sum();
    if sockets > OBSERVE_SOCKETS_MAX {
        return Err(format!("-o dash: {sockets} addresses are too many, {OBSERVE_SOCKETS_MAX} are allowed").into());
    }
    Ok(dash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(options: &[&str]) -> Result<(DashArgument, Vec<String>), String> {
        let mut options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        take(&mut options).map(|dash| (dash, options)).map_err(|error| error.text)
    }

    #[test]
    fn dashboard_is_off_unless_it_is_asked_for() {
        let (dash, others) = taken(&["acme=none"]).unwrap();
        assert_eq!((dash.of_observe(0), others), (vec![], vec!["acme=none".to_owned()]));
        for setting in ["dash_users=/x", "dash_operate=off", "dash_insecure=on", "dash_hosts=a"] {
            assert!(taken(&[setting]).unwrap_err().contains("need -o dash"), "{setting}");
        }
    }

    #[test]
    fn other_addresses_than_loopback_must_be_allowed_in_so_many_words() {
        for loopback in ["dash=127.0.0.1", "dash=127.0.0.1:1", "dash=[::1]:1"] {
            assert!(taken(&[loopback]).is_ok(), "{loopback}");
        }
        assert_eq!(taken(&["dash=127.0.0.1"]).unwrap().0.addresses[0].addresses, ["127.0.0.1:9132".parse().unwrap()]);
        for open in ["dash=:9132", "dash=0.0.0.0:1", "dash=192.0.2.1", "dash=[::]:1"] {
            assert!(taken(&[open]).unwrap_err().contains("dash_insecure=on"), "{open}");
            assert!(taken(&[open, "dash_insecure=on"]).is_ok(), "{open}");
        }
    }

    #[test]
    fn settings_are_checked_and_passed_on() {
        let (dash, _) =
            taken(&["dash=127.0.0.1:0", "dash_hosts=a.example,b", "dash_operate=off", "dash_users=/u"]).unwrap();
        assert!(dash.is_view_only);
        let expected = ["--dash", "1", "--dash-hosts", "a.example,b", "--dash-operate", "off", "--dash-users", "/u"];
        assert_eq!(dash.of_observe(1), expected);
        for wrong in [
            "dash=",
            "dash=unix:/x",
            "dash",
            "dash_users=",
            "dash_hosts=a:1",
            "dash_hosts=",
            "dash_hosts=*",
            "dash_operate=no",
            "dash_insecure=yes",
            "dash_clients=all",
        ] {
            assert!(taken(&["dash=127.0.0.1:0", wrong]).is_err(), "{wrong}");
        }
    }
}
