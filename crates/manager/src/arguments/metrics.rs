//! `-o metrics=…` and `-o access-log=…`: the work of `copal observe`.

use super::address::{resolve, split};
use super::{ArgumentError, absolute};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use surface::access_log::AccessLog;
use surface::limits::{ACCESS_LOGS_MAX, OBSERVE_SOCKETS_MAX};
use surface::option::{ACCESS_LOG, METRICS, METRICS_PORT, OTLP, OTLP_QUERY, OTLP_SAMPLE};
use surface::otlp::{ENDPOINT_OF_ENVIRONMENT, Endpoint, QUERY_KEEP, Sample};

/// An address for metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsAddress {
    /// As written.
    pub text: String,
    /// The resolved addresses; empty when it is a path.
    pub addresses: Vec<SocketAddr>,
    /// The socket's path, absolute.
    pub path: Option<PathBuf>,
}

/// Takes the metrics addresses out of the `-o` of a command line.
///
/// # Errors
/// One line that names the wrong option.
pub fn take(options: &mut Vec<String>) -> Result<Vec<MetricsAddress>, ArgumentError> {
    let mut addresses = Vec::new();
    let mut others = Vec::new();
    for option in options.drain(..) {
        match option.split_once('=') {
            Some((METRICS, text)) => addresses.push(parse(METRICS, text, METRICS_PORT)?),
            _ => others.push(option),
        }
    }
    *options = others;
    let sockets: usize = addresses.iter().map(|address| address.addresses.len().max(1)).sum();
    if sockets > OBSERVE_SOCKETS_MAX {
        return Err(format!("-o metrics: {sockets} addresses are too many, {OBSERVE_SOCKETS_MAX} are allowed").into());
    }
    Ok(addresses)
}

/// Takes the access logs out of the `-o` of a command line.
///
/// # Errors
/// One line that names the wrong option.
pub fn take_access_logs(options: &mut Vec<String>) -> Result<Vec<String>, ArgumentError> {
    let is_log = |option: &mut String| matches!(option.split_once('='), Some((ACCESS_LOG, _)));
    let logs: Vec<String> =
        options.extract_if(.., is_log).map(|option| option[ACCESS_LOG.len() + 1..].to_owned()).collect();
    for text in &logs {
        AccessLog::parse(text).map_err(|why| format!("-o access-log={text}: {why}"))?;
    }
    if logs.len() > ACCESS_LOGS_MAX {
        return Err(format!("-o access-log: at most {ACCESS_LOGS_MAX} are allowed").into());
    }
    Ok(logs)
}

/// Takes the options for traces out of the `-o` of a command line: the arguments of `copal
/// observe`.
///
/// # Errors
/// One line that names the wrong option.
pub fn take_traces(options: &mut Vec<String>) -> Result<Vec<String>, ArgumentError> {
    let mut arguments = Vec::new();
    let mut has_collector = false;
    let is_ours = |option: &mut String| matches!(option.split_once('='), Some((OTLP | OTLP_SAMPLE | OTLP_QUERY, _)));
    for option in options.extract_if(.., is_ours) {
        let (key, value) = option.split_once('=').unwrap_or_default();
        let checked = match key {
            OTLP_SAMPLE => Sample::parse(value).map(drop),
            OTLP_QUERY if value == QUERY_KEEP => Ok(()),
            OTLP_QUERY => Err(format!("it is not {QUERY_KEEP}")),
            _ => {
                has_collector = true;
                let is_elsewhere = value == ENDPOINT_OF_ENVIRONMENT;
                if is_elsewhere { Ok(()) } else { Endpoint::parse(value).map(drop) }
            }
        };
        checked.map_err(|why| format!("-o {option}: {why}"))?;
        arguments.extend([format!("--{}", key.replace('_', "-")), value.to_owned()]);
    }
    if !arguments.is_empty() && !has_collector {
        return Err("-o otlp_sample and -o otlp_query need -o otlp".into());
    }
    Ok(arguments)
}

/// The address of the option `key`.
///
/// # Errors
/// One line that names the option.
pub(super) fn parse(key: &str, text: &str, port: u16) -> Result<MetricsAddress, String> {
    let address = |addresses, path| MetricsAddress { text: text.to_owned(), addresses, path };
    match text.strip_prefix("unix:") {
        Some("") => Err(format!("-o {key}=unix: lacks a path")),
        Some(path) => Ok(address(Vec::new(), Some(absolute(Path::new(path))))),
        None if text.is_empty() => {
            // An unset variable in a start script must not open the metrics to the world.
            Err(format!("-o {key} needs an address"))
        }
        None => match resolve(&split(text), port) {
            Ok(addresses) => Ok(address(addresses, None)),
            Err(why) => Err(format!("Could not resolve -o {key}={text}: {why}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(options: &[&str]) -> Result<(Vec<MetricsAddress>, Vec<String>), ArgumentError> {
        let mut options = options.iter().map(|option| (*option).to_owned()).collect();
        let taken = take(&mut options)?;
        Ok((taken, options))
    }

    #[test]
    fn metrics_addresses_are_separated_from_other_options() {
        let (metrics, others) = taken(&["acme=none", "metrics=127.0.0.1", "metrics=unix:/run/m"]).unwrap();
        assert_eq!(others, ["acme=none"]);
        assert_eq!(metrics[0].addresses, ["127.0.0.1:9131".parse().unwrap()]);
        assert_eq!(metrics[1].path, Some("/run/m".into()));
        assert_eq!(taken(&["metrics=:1"]).unwrap().0[0].addresses.len(), 2);
    }

    #[test]
    fn access_logs_are_separated_and_checked() {
        let taken = |option: &str| {
            let mut options = vec!["acme=none".to_owned(), option.to_owned()];
            take_access_logs(&mut options).map(|logs| (logs, options))
        };
        let expected = (vec!["/x,format=%s %b".to_owned()], vec!["acme=none".to_owned()]);
        assert_eq!(taken("access-log=/x,format=%s %b").unwrap(), expected);
        assert!(taken("access-log=x").unwrap_err().text.contains("absolute path"));
    }

    #[test]
    fn options_of_traces_are_checked_and_passed_on() {
        let taken = |options: &[&str]| {
            let mut options = options.iter().map(|option| (*option).to_owned()).collect();
            take_traces(&mut options)
        };
        let arguments = taken(&["otlp=http://127.0.0.1:1", "acme=none", "otlp_sample=1"]).unwrap();
        assert_eq!(arguments, ["--otlp", "http://127.0.0.1:1", "--otlp-sample", "1"]);
        assert_eq!(taken(&["otlp=env"]).unwrap(), ["--otlp", "env"]);
        for wrong in ["otlp=x", "otlp_sample=2", "otlp_sample=1", "otlp_query=drop"] {
            assert!(taken(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_metrics_addresses_are_refused() {
        for wrong in ["metrics=", "metrics=unix:", "metrics=127.0.0.1:no-such-service"] {
            assert!(taken(&[wrong]).is_err(), "{wrong}");
        }
        let many = vec!["metrics=127.0.0.1"; OBSERVE_SOCKETS_MAX + 1];
        assert!(taken(&many).unwrap_err().text.contains("too many"));
    }
}
