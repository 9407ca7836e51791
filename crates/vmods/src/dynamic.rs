//! dynamic: the VCL methods for backends by name. The names and their lookups are in
//! `backend::dns_names`.
//!
//! From its first use on, a name is looked up in the background. On the backend side `.backend()`
//! waits for the first lookup, so that the VCL after it sees the backends; on the client's side it
//! does not: a fetch waits when it resolves the director, a hit never waits. With a `resolver`, DNS
//! is queried directly, otherwise the system's resolver. Compat: libvmod-dynamic; a fetch never
//! waits for a connection, so wait_limit and wait_timeout of Varnish 7.6 are refused. Next file:
//! `dynamic/resolver.rs`.

pub(crate) mod resolver;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::{Finish, VmodContext};
use crate::directors::name_of;
use backend::dns_names::maker::Maker;
use backend::dns_names::resolve::Source;
use backend::dns_names::settings::{MakerSettings, Speaker, TtlFrom, Via};
use std::sync::Arc;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method};
use surface::vmod::functions::dynamic::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::line;
use vcl_run::program::Endpoint;
use vcl_run::value::{DirectorId, Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::DynamicDirector => create(context, instance, arguments, scratch),
        Function::DynamicDirectorBackend => backend(context, instance, arguments, scratch),
        Function::DynamicDirectorService => service(context, instance, arguments, scratch),
        Function::DynamicDirectorDebug => done(debug(context, instance, arguments)),
        Function::DynamicResolver => resolver::create(context, instance, arguments),
        Function::DynamicResolverUse => done(resolver::use_blob(instance, scratch)),
        Function::DynamicResolverResolutionType
        | Function::DynamicResolverClearNamespaces
        | Function::DynamicResolverAddNamespace
        | Function::DynamicResolverSetNamespaces
        | Function::DynamicResolverClearTransports
        | Function::DynamicResolverAddTransport
        | Function::DynamicResolverSetTransports
        | Function::DynamicResolverIdleTimeout
        | Function::DynamicResolverOutstanding
        | Function::DynamicResolverTimeout
        | Function::DynamicResolverFollowRedirects => resolver::set(function, context, instance, arguments, scratch),
    }
}

/// A host, port or authority is cut after this many bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// The text of an argument; `None` if it was left out or is unset.
fn text_at(arguments: Arguments<'_>, place: usize, scratch: &Scratch) -> Option<String> {
    let text = arguments.text(place);
    // Anything longer is not a name, so it need not be copied completely.
    let bytes = scratch.get(text);
    text.is_set().then(|| String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_BYTES_MAX)]).into_owned())
}

/// A timeout; `None` if the object sets none.
fn timeout_at(arguments: Arguments<'_>, place: usize) -> Option<f64> {
    Some(arguments.real(place)).filter(|seconds| *seconds > 0.0)
}

/// The constructor of `dynamic.director`.
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let fault = |text: &str| Failure(format!("dynamic.director(): {text}"));
    let settings = settings(context, instance, arguments, scratch).map_err(|text| fault(&text))?;
    match instance {
        Some(instance) if context.directors().dns_names().make(instance, settings) => done(Value::Void),
        _ => Err(fault("cannot be made twice")),
    }
}

fn settings(
    context: &dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<MakerSettings, String> {
    let port = text_at(arguments, 0, scratch).filter(|port| !port.is_empty()).ok_or("port may not be empty")?;
    let positive = |place, name: &str| match arguments.real(place) {
        seconds if seconds > 0.0 => Ok(seconds),
        _ => Err(format!("{name} may not be 0s or less")),
    };
    let blob = scratch.get(arguments.text(13));
    let limits = resolver::limits_of(context.instances(), blob);
    let source = match limits {
        Some(_) => Source::Dns,
        None if blob.is_empty() => Source::System,
        None => return Err("invalid resolver argument".to_owned()),
    };
    if arguments.real(19) >= 0.0 || arguments.int(20) != 0 {
        return Err("wait_timeout and wait_limit are not for here: no fetch waits for a connection".to_owned());
    }
    let ttl_from = TtlFrom::parse(scratch.get(arguments.text(14)));
    if source == Source::System && ttl_from != TtlFrom::Configuration {
        return Err(format!("ttl_from = {} only valid with resolver", ttl_from.word()));
    }
    let via = match arguments.backend(16) {
        None => None,
        Some(id) => {
            let backend = context.directors().any_backend(id).ok_or("via must be a backend")?;
            let endpoint = backend.definition().endpoint.clone();
            Some(Via { name: backend.name().to_owned(), endpoint }).filter(|via| via.endpoint != Endpoint::None)
        }
    };
    let program = context.program();
    let probe = match arguments.value(3) {
        Value::Probe(Some(index)) => program.program().probes.get(index as usize).cloned(),
        _ => None,
    };
    let allowed = match arguments.value(4) {
        Value::Acl(Some(index)) => program.acl(index).cloned().map(Arc::new),
        _ => None,
    };
    let share = scratch.get(arguments.text(2));
    Ok(MakerSettings {
        name: name_of(context, instance),
        port,
        host_header: text_at(arguments, 1, scratch).filter(|header| !header.is_empty()),
        is_shared_by_host: share == b"HOST" || (share != b"DIRECTOR" && via.is_some()),
        probe,
        allowed,
        ttl: positive(5, "ttl")?,
        connect_timeout: timeout_at(arguments, 6),
        first_byte_timeout: timeout_at(arguments, 7),
        between_bytes_timeout: timeout_at(arguments, 8),
        domain_usage_timeout: positive(9, "domain_usage_timeout")?,
        first_lookup_timeout: positive(10, "first_lookup_timeout")?,
        max_connections: u32::try_from(arguments.int(11)).map_err(|_| "max_connections may not be negative")?,
        proxy_header: match arguments.int(12) {
            version @ 0..=2 => version as u8,
            _ => return Err("proxy_header must be 0, 1 or 2".to_owned()),
        },
        source,
        parallel: limits.map(|limits| limits.parallel),
        lookup_timeout: limits.and_then(|limits| limits.lookup_timeout),
        ttl_from,
        retry_after: arguments.real(15),
        via,
        keep: match arguments.int(17) {
            keep @ 0.. => u32::try_from(keep).unwrap_or(u32::MAX),
            _ => return Err("keep may not be negative".to_owned()),
        },
        authority: text_at(arguments, 18, scratch),
        speaker: Speaker::Vmod,
        fixed: Vec::new(),
    })
}

/// The object with that instance number.
fn maker_of(context: &dyn VmodContext, instance: Option<u32>) -> Option<Arc<Maker>> {
    context.directors().dns_names().maker(instance?)
}

/// True if the call waits for a first lookup: on the backend side and in vcl_pipe, where a fetch
/// follows.
fn waits(context: &dyn VmodContext) -> bool {
    let is_before_fetch = match context.method() {
        Method::Pipe
        | Method::BackendFetch
        | Method::BackendRefresh
        | Method::BackendResponse
        | Method::BackendError => true,
        Method::Recv
        | Method::Pass
        | Method::Hash
        | Method::Purge
        | Method::Miss
        | Method::Hit
        | Method::Deliver
        | Method::Synth
        | Method::Init
        | Method::Fini => false,
    };
    is_before_fetch && context.can_wait()
}

/// Returns a name, after its first lookup if the task waits for that.
fn hand_out(
    context: &mut dyn VmodContext,
    id: DirectorId,
    is_new: bool,
    ready: impl Future<Output = ()> + 'static,
) -> Result<Called, Failure> {
    if !is_new || !waits(context) {
        return done(Value::Backend(Some(id)));
    }
    context.wait(Box::pin(async move {
        ready.await;
        let finish: Finish = Box::new(move |_, _| Ok(Value::Backend(Some(id))));
        finish
    }));
    Ok(Called::Wait)
}

/// The `Host` header of the backend request, else of the client's request.
fn host_header(context: &mut dyn VmodContext) -> Option<String> {
    [HttpObject::Bereq, HttpObject::Req].into_iter().find_map(|http| {
        let host = context.message(http)?.get("Host")?;
        let host = &host[..host.len().min(TEXT_BYTES_MAX)];
        (!host.is_empty()).then(|| String::from_utf8_lossy(host).into_owned())
    })
}

/// `.backend()`
pub(crate) fn backend(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let given = text_at(arguments, 0, scratch).filter(|host| !host.is_empty());
    let Some((maker, host)) = maker_of(context, instance).zip(given.or_else(|| host_header(context))) else {
        return done(Value::Backend(None));
    };
    let port = text_at(arguments, 1, scratch).filter(|port| !port.is_empty());
    let authority = text_at(arguments, 2, scratch);
    // The host may become the Host header of the backend request.
    for (what, text) in [("host", Some(&host)), ("port", port.as_ref()), ("authority", authority.as_ref())] {
        line::check_word(&format!("{what} for dynamic"), text.map_or(b"", |text| text.as_bytes()))?;
    }
    let names = Arc::clone(context.directors().dns_names());
    let Some(domain) = names.domain(&maker, &host, port.as_deref(), authority.as_deref(), context.now()) else {
        context.log(Tag::VCLError, b"dynamic: host or port is too long to be looked up");
        return done(Value::Backend(None));
    };
    let (id, is_new) = (domain.id(), domain.is_new());
    hand_out(context, id, is_new, async move { domain.ready().await })
}

/// `.service()`
pub(crate) fn service(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let Some(maker) = maker_of(context, instance) else { return done(Value::Backend(None)) };
    if maker.settings().source == Source::System {
        return Err(Failure(format!("{}.service(): only valid with resolver", name_of(context, instance))));
    }
    let name = text_at(arguments, 0, scratch).unwrap_or_default();
    line::check_word("service for dynamic", name.as_bytes())?;
    let names = Arc::clone(context.directors().dns_names());
    let Some(service) = names.service(&maker, &name, context.now()) else {
        context.log(Tag::VCLError, b"dynamic: service is empty or too long to be looked up");
        return done(Value::Backend(None));
    };
    let (id, is_new) = (service.id(), service.is_new());
    hand_out(context, id, is_new, async move { service.ready().await })
}

/// `.debug()`
pub(crate) fn debug(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>) -> Value {
    if let Some(maker) = maker_of(context, instance) {
        maker.set_debugged(arguments.bool(0));
    }
    Value::Void
}
