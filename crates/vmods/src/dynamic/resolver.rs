//! dynamic.resolver: DNS settings of a `dynamic.director`. The servers are those of resolv.conf;
//! Copal's own resolver queries them. It honours the getdns settings that apply to it; settings for
//! unsupported features fail vcl_init.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use crate::directors::name_of;
use crate::instances::Instances;
use parking_lot::Mutex;
use surface::vmod::functions::dynamic::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Start of the blob that `.use()` returns; the object's number follows.
const MARK: &[u8; 16] = b"dynamic.resolver";

/// The limits of a resolver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Limits {
    /// The most lookups at once.
    pub(super) parallel: usize,
    /// Seconds for one lookup; `None` = only the worker's own limit.
    pub(super) lookup_timeout: Option<f64>,
}

/// The content of a resolver object.
struct Resolver {
    limits: Mutex<Limits>,
    /// Transports listed by `.add_transport()` that wait for `.set_transports()`.
    transports: Mutex<Vec<Vec<u8>>>,
}

impl Resolver {
    fn lists_udp(&self) -> bool {
        self.transports.lock().iter().any(|transport| transport == b"UDP")
    }
}

/// The limits of the resolver that a blob of `.use()` refers to.
pub(super) fn limits_of(instances: &Instances, blob: &[u8]) -> Option<Limits> {
    let number = u32::from_le_bytes(blob.strip_prefix(MARK)?.try_into().ok()?);
    Some(*instances.object::<Resolver>(Some(number))?.limits.lock())
}

/// The constructor.
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
) -> Result<Called, Failure> {
    let fault = |text: &str| Err(Failure(format!("dynamic.resolver(): {text}")));
    if !arguments.bool(0) {
        return fault("which servers to ask can only be taken from the system (set_from_os)");
    }
    let parallel = match usize::try_from(arguments.int(1)) {
        Ok(parallel @ 1..) => parallel,
        Ok(0) | Err(_) => return fault("parallel must be at least 1"),
    };
    let limits = Mutex::new(Limits { parallel, lookup_timeout: None });
    context.instances().keep_object(instance, Resolver { limits, transports: Mutex::default() });
    done(Value::Void)
}

/// `.use()`
pub(crate) fn use_blob(instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let start = scratch.begin();
    scratch.extend(MARK);
    scratch.extend(&instance.unwrap_or(u32::MAX).to_le_bytes());
    Value::Blob(scratch.end(start))
}

/// The methods that set something: true, or a failure that names the unsupported setting.
pub(crate) fn set(
    function: Function,
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let name = name_of(context, instance);
    let fault = |text: &str| Err(Failure(format!("{name}.{}(): {text}", function.name())));
    let Some(resolver) = context.instances().object::<Resolver>(instance) else { return fault("was never made") };
    match (function, scratch.get(arguments.text(0))) {
        (Function::DynamicResolverResolutionType, b"RECURSING") => {
            return fault("the servers of resolv.conf are asked, which look further themselves: use STUB");
        }
        (Function::DynamicResolverAddNamespace, b"NETBIOS" | b"MDNS" | b"NIS") => {
            return fault("the hosts file and DNS are asked; leave the resolver out to ask the system for more");
        }
        (Function::DynamicResolverAddTransport, b"TLS") => {
            return fault("DNS over TLS cannot be had: name a local forwarder in resolv.conf");
        }
        (Function::DynamicResolverAddTransport, transport) => resolver.transports.lock().push(transport.to_vec()),
        (Function::DynamicResolverClearTransports, _) => resolver.transports.lock().clear(),
        (Function::DynamicResolverSetTransports, _) if !resolver.lists_udp() => {
            return fault("UDP cannot be left out; TCP is used for answers that are too long for it");
        }
        (Function::DynamicResolverFollowRedirects, b"REDIRECTS_DO_NOT_FOLLOW") => {
            return fault("aliases are followed by the servers that are asked");
        }
        (Function::DynamicResolverTimeout, _) => match arguments.real(0) {
            seconds if seconds > 0.0 => resolver.limits.lock().lookup_timeout = Some(seconds),
            _ => return fault("must be above 0s"),
        },
        (Function::DynamicResolverOutstanding, _) => match usize::try_from(arguments.int(0)) {
            Ok(0) => {}
            Ok(most) => {
                let mut limits = resolver.limits.lock();
                limits.parallel = limits.parallel.min(most);
            }
            Err(_) => return fault("may not be negative"),
        },
        // This is the built-in behaviour: DNS and the hosts file, aliases followed, no connection
        // kept open.
        _ => {}
    }
    done(Value::Bool(true))
}
