//! The settings of a `dynamic.director` object, or of the `dns` director of an old dialect.

use crate::backend::Backend;
use crate::dns_names::resolve::Source;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use vcl_run::acl::AclIndex;
use vcl_run::program::{BackendDefinition, Endpoint, ProbeDefinition};
use vcl_run::value::DirectorId;

/// Shortest time between two lookups of a name, seconds, regardless of settings and answers.
pub const LOOKUP_INTERVAL_MIN: f64 = 0.1;
/// Longest such time, seconds.
const LOOKUP_INTERVAL_MAX: f64 = 366.0 * 86_400.0;

/// The time to live that is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TtlFrom {
    /// The object's.
    Configuration,
    /// The answer's, or else the object's.
    Dns,
    /// The shorter of the two.
    Minimum,
    /// The longer of the two.
    Maximum,
}

impl TtlFrom {
    /// The word in VCL and lists.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TtlFrom::Configuration => "cfg",
            TtlFrom::Dns => "dns",
            TtlFrom::Minimum => "min",
            TtlFrom::Maximum => "max",
        }
    }

    /// The value of a word; unknown words mean `cfg`.
    #[must_use]
    pub fn parse(word: &[u8]) -> TtlFrom {
        match word {
            b"dns" => TtlFrom::Dns,
            b"min" => TtlFrom::Minimum,
            b"max" => TtlFrom::Maximum,
            _ => TtlFrom::Configuration,
        }
    }
}

/// The backend through which connections are made, with a PROXY header that contains the
/// destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Via {
    /// Its VCL name.
    pub name: String,
    /// Its address.
    pub endpoint: Endpoint,
}

/// The object that looks up names, for the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaker {
    /// The VMOD.
    Vmod,
    /// A `director … dns` block.
    Block,
}

impl Speaker {
    /// Its name in the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Speaker::Vmod => "vmod-dynamic",
            Speaker::Block => "dns-director",
        }
    }
}

/// A backend with its own definition, which is used when its address is found.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// Its id.
    pub id: DirectorId,
    /// The backend.
    pub backend: Arc<Backend>,
}

impl Fixed {
    /// True if it is at that address, on any port.
    pub(crate) fn is_at(&self, address: IpAddr) -> bool {
        let is_it = |own: &Option<SocketAddr>| own.is_some_and(|own| own.ip() == address);
        match &self.backend.definition().endpoint {
            Endpoint::Ip { v4, v6 } => is_it(v4) || is_it(v6),
            Endpoint::Unix(_) | Endpoint::None => false,
        }
    }
}

/// The settings of a `dynamic.director` object. Times in seconds.
#[derive(Clone, Debug)]
pub struct MakerSettings {
    /// VCL name of the object.
    pub name: String,
    /// Port unless `.backend()` names one: a number or the name of a service.
    pub port: String,
    /// `Host` header for requests without one, and for probes.
    pub host_header: Option<String>,
    /// Backends belong to one host name instead of all names with the same address.
    pub is_shared_by_host: bool,
    /// The probe definition for all its backends.
    pub probe: Option<ProbeDefinition>,
    /// The addresses that may be used; `None` = all.
    pub allowed: Option<Arc<AclIndex>>,
    /// Time between lookups.
    pub ttl: f64,
    /// Connect timeout of the backends; `None` = the parameter.
    pub connect_timeout: Option<f64>,
    /// First byte timeout of the backends; `None` = the parameter.
    pub first_byte_timeout: Option<f64>,
    /// Between bytes timeout of the backends; `None` = the parameter.
    pub between_bytes_timeout: Option<f64>,
    /// Time after which an unused name is dropped.
    pub domain_usage_timeout: f64,
    /// Longest wait for the first lookup.
    pub first_lookup_timeout: f64,
    /// Maximum number of connections for each backend; 0 = no limit.
    pub max_connections: u32,
    /// PROXY header version, 0 = none.
    pub proxy_header: u8,
    /// The service that resolves names.
    pub source: Source,
    /// Maximum number of concurrent lookups for this object; `None` = only the worker's own limit.
    pub parallel: Option<usize>,
    /// Maximum time of a lookup; `None` = only the worker's own limit.
    pub lookup_timeout: Option<f64>,
    /// The time to live that is used.
    pub ttl_from: TtlFrom,
    /// Time between lookups after a failed one.
    pub retry_after: f64,
    /// The backend through which connections are made.
    pub via: Option<Via>,
    /// Number of lookups for which a backend is kept although its address is no longer in the
    /// answer.
    pub keep: u32,
    /// The name in the PROXY header for `via`, unless `.backend()` gives one; empty = none.
    pub authority: Option<String>,
    /// The object that looks up names, for the log.
    pub speaker: Speaker,
    /// For a `dns` director: backends that are used when their address is found.
    pub fixed: Vec<Fixed>,
}

impl MakerSettings {
    /// The default settings of an object with that name.
    #[must_use]
    pub fn of(name: &str) -> MakerSettings {
        MakerSettings {
            name: name.to_owned(),
            port: "http".to_owned(),
            host_header: None,
            is_shared_by_host: false,
            probe: None,
            allowed: None,
            ttl: 3600.0,
            connect_timeout: None,
            first_byte_timeout: None,
            between_bytes_timeout: None,
            domain_usage_timeout: 7200.0,
            first_lookup_timeout: 10.0,
            max_connections: 0,
            proxy_header: 0,
            source: Source::System,
            parallel: None,
            lookup_timeout: None,
            ttl_from: TtlFrom::Configuration,
            retry_after: 30.0,
            via: None,
            keep: 0,
            authority: None,
            speaker: Speaker::Vmod,
            fixed: Vec::new(),
        }
    }

    /// Seconds until the next lookup, after an answer with that time to live.
    pub(crate) fn interval(&self, answered: Option<f64>) -> f64 {
        let seconds = match (self.ttl_from, answered.filter(|ttl| *ttl > 0.0)) {
            (TtlFrom::Configuration, _) | (_, None) => self.ttl,
            (TtlFrom::Dns, Some(answered)) => answered,
            (TtlFrom::Minimum, Some(answered)) => answered.min(self.ttl),
            (TtlFrom::Maximum, Some(answered)) => answered.max(self.ttl),
        };
        bounded(seconds)
    }

    /// Seconds until the next lookup after a failed one.
    pub(crate) fn retry_interval(&self) -> f64 {
        bounded(self.retry_after)
    }

    /// True if an address may be used.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        self.allowed.as_ref().is_none_or(|acl| acl.find(address).matched)
    }

    /// The definition of a backend, without its name and address.
    pub(crate) fn definition(&self, host_header: String) -> BackendDefinition {
        BackendDefinition {
            host_header,
            connect_timeout: self.connect_timeout,
            first_byte_timeout: self.first_byte_timeout,
            between_bytes_timeout: self.between_bytes_timeout,
            max_connections: self.max_connections,
            proxy_header: self.proxy_header,
            ..BackendDefinition::new("", Endpoint::None)
        }
    }
}

fn bounded(seconds: f64) -> f64 {
    if seconds.is_nan() { LOOKUP_INTERVAL_MAX } else { seconds.clamp(LOOKUP_INTERVAL_MIN, LOOKUP_INTERVAL_MAX) }
}
