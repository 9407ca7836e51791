//! debug.dyn and debug.dyn_uds: backends that VCL replaces at run time. Each call makes a new
//! backend, even if nothing changes.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::{Finish, VmodContext};
use crate::directors::{create as create_director, director_of};
use backend::{Backend, DirectorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use vcl_run::host::{Called, Failure};
use vcl_run::program::{BackendDefinition, Endpoint};
use vcl_run::value::{Scratch, Value};

/// `new x = debug.dyn()`
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    if arguments.text(0).is_empty() || arguments.text(1).is_empty() {
        return Err(Failure("Missing dynamic backend address or port".to_owned()));
    }
    create_director(context, instance, DirectorKind::Dynamic(backend::director::kind::dynamic::Dynamic::new()))?;
    replace(context, instance, arguments, scratch)
}

/// `.refresh()` of a dyn
pub(crate) fn replace(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let text = |place| String::from_utf8_lossy(scratch.get(arguments.text(place))).into_owned();
    let (host, port) = (text(0), text(1));
    let probe = match arguments.value(2) {
        Value::Probe(probe) => probe,
        _ => None,
    };
    let numeric = host.parse().ok().zip(port.parse().ok()).map(|(ip, port)| SocketAddr::new(ip, port));
    if numeric.is_some() || !context.can_wait() {
        let found = numeric.or_else(|| resolve(&host, &port));
        return put(context, instance, &host, &port, found, probe).map(Called::Value);
    }
    let (asked_host, asked_port) = (host.clone(), port.clone());
    context.wait(Box::pin(async move {
        let found = tokio::task::spawn_blocking(move || resolve(&asked_host, &asked_port)).await.ok().flatten();
        let finish: Finish = Box::new(move |context, _| put(context, instance, &host, &port, found, probe));
        finish
    }));
    Ok(Called::Wait)
}

/// The first address of a name. Blocking.
fn resolve(host: &str, port: &str) -> Option<SocketAddr> {
    (host, port.parse::<u16>().ok()?).to_socket_addrs().ok()?.next()
}

fn put(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    host: &str,
    port: &str,
    found: Option<SocketAddr>,
    probe: Option<u32>,
) -> Result<Value, Failure> {
    let address = found.ok_or_else(|| Failure(format!("debug.dyn: {host} {port} is no address")))?;
    let endpoint = match address {
        SocketAddr::V4(_) => Endpoint::Ip { v4: Some(address), v6: None },
        SocketAddr::V6(_) => Endpoint::Ip { v4: None, v6: Some(address) },
    };
    install(context, instance, definition(host, port, host, endpoint, probe))
}

fn definition(host: &str, port: &str, host_header: &str, endpoint: Endpoint, probe: Option<u32>) -> BackendDefinition {
    BackendDefinition {
        host: host.to_owned(),
        port: port.to_owned(),
        host_header: host_header.to_owned(),
        probe,
        ..BackendDefinition::new("", endpoint)
    }
}

fn install(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    mut definition: BackendDefinition,
) -> Result<Value, Failure> {
    let unknown = || Failure("debug: the backend was never made".to_owned());
    let id = director_of(context, instance).ok_or_else(unknown)?;
    let directors = context.directors();
    definition.name = directors.name(id).into_owned();
    let probes = &context.program().program().probes;
    let probe = definition.probe.and_then(|index| probes.get(index as usize));
    let backend = Backend::new(directors.vcl_name(), definition.clone(), probe, context.now());
    directors.dynamic(id).ok_or_else(unknown)?.replace(backend);
    Ok(Value::Void)
}

/// `new x = debug.dyn_uds()`
pub(crate) fn create_unix(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    checked_path(arguments, scratch)?;
    create_director(context, instance, DirectorKind::Dynamic(backend::director::kind::dynamic::Dynamic::new()))?;
    replace_unix(context, instance, arguments, scratch)
}

/// `.refresh()` of a dyn_uds
pub(crate) fn replace_unix(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let path = checked_path(arguments, scratch)?;
    let definition = definition("", "", "localhost", Endpoint::Unix(path), None);
    done(install(context, instance, definition)?)
}

/// The path of an existing socket.
fn checked_path(arguments: Arguments<'_>, scratch: &Scratch) -> Result<PathBuf, Failure> {
    let text = arguments.text(0);
    if !text.is_set() {
        return Err(Failure("path is NULL".to_owned()));
    }
    let path = String::from_utf8_lossy(scratch.get(text)).into_owned();
    if !path.starts_with('/') {
        return Err(Failure(format!("path must be an absolute path: {path}")));
    }
    match std::fs::metadata(&path) {
        Err(error) => Err(Failure(format!("Cannot stat path {path}: {error}"))),
        Ok(metadata) if !metadata.file_type().is_socket() => Err(Failure(format!("{path} is not a socket"))),
        Ok(_) => Ok(PathBuf::from(path)),
    }
}

/// `.backend()`
pub(crate) fn backend(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    let id = director_of(context, instance).map(|id| context.directors().current_id(id));
    Value::Backend(id.filter(|id| context.directors().exists(*id)))
}
