//! Traces: finished requests as spans, sent to a collector with OTLP over HTTP.
//!
//! Tail sampling: the choice is made when a request has ended, so that all errors and slow requests
//! can be kept while of the others a share is. *Invariant:* the log reader never waits for the
//! collector. Next files: `trace/span.rs`, `trace/exporter.rs`, `trace/client.rs`.

mod client;
mod exporter;
mod span;

pub(crate) use exporter::Exporter;

use crate::log_reader::{Consumer, Fate};
use crate::totals::Totals;
use client::Client;
use exporter::Queue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use shm::read::transaction::Transaction;
use span::Trace;
use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::time::Duration;
use surface::metric::SpanDrop;
use surface::otlp::{Endpoint, Sample};

/// Time limit of a request to the collector, unless the environment has another.
const LIMIT: Duration = Duration::from_secs(10);

/// Traces as they were asked for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    /// The collector.
    pub endpoint: Endpoint,
    /// The traces that are sent.
    pub sample: Sample,
    /// Values of query arguments are sent.
    pub keeps_query: bool,
}

/// Everything that was read before the sandbox.
pub(crate) struct Prepared {
    settings: Settings,
    client: Client,
    resource: Resource,
}

impl Prepared {
    /// Looks up the name of the collector, and reads certificates and the environment.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn new(settings: &Settings, environment: impl Fn(&str) -> Option<String>) -> Result<Prepared, String> {
        let endpoint = settings.endpoint.clone();
        let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
        let addresses = match found {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                eprintln!("traces: {} has no address: {error}; spans are dropped", endpoint.host);
                Vec::new()
            }
        };
        let headers = headers(&environment("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default())?;
        let milliseconds = environment("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|text| text.parse().ok());
        let limit = milliseconds.map_or(LIMIT, Duration::from_millis).clamp(Duration::from_millis(1), 6 * LIMIT);
        let tls = match endpoint.is_tls {
            true => Some(tls(environment("OTEL_EXPORTER_OTLP_CERTIFICATE").as_deref())?),
            false => None,
        };
        let client = Client { endpoint, addresses, headers, tls, limit };
        let resource = resource(
            environment("OTEL_SERVICE_NAME").as_deref(),
            &environment("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default(),
        );
        Ok(Prepared { settings: settings.clone(), client, resource })
    }

    /// Starts the sender; returns it, and the consumer for the log reader.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(self, totals: &Arc<Totals>) -> std::io::Result<(Exporter, Source)> {
        let Prepared { settings, client, resource } = self;
        let (exporter, queue) = Exporter::start(client, resource, totals)?;
        Ok((exporter, Source { settings, queue, totals: Arc::clone(totals) }))
    }
}

/// Maker of the spans.
pub(crate) struct Source {
    settings: Settings,
    queue: Arc<Queue>,
    totals: Arc<Totals>,
}

impl Consumer for Source {
    fn transaction(&mut self, _: &Transaction, _: Fate) {}

    fn wants_groups(&self) -> bool {
        true
    }

    fn group(&mut self, group: &[Transaction]) {
        let Some(trace) = Trace::of(group, self.settings.keeps_query) else { return };
        if is_kept(&self.settings.sample, &trace) {
            self.totals.drop_spans(SpanDrop::Large, trace.cut);
            self.totals.drop_spans(SpanDrop::Queue, self.queue.put(trace.spans));
        }
    }
}

/// The choice for a trace. All processes that see a trace come to the same share of it, as the
/// choice depends on its id alone.
fn is_kept(sample: &Sample, trace: &Trace) -> bool {
    let is_slow = sample.slow_milliseconds.is_some_and(|limit| trace.nanoseconds >= limit.saturating_mul(1_000_000));
    let share = (trace.id as u64 >> 11) as f64 / (1u64 << 53) as f64;
    (trace.is_sampled && !sample.ignores_parent)
        || (sample.errors && trace.has_error)
        || is_slow
        || sample.reasons.iter().any(|wanted| trace.words.contains(wanted))
        || share < sample.ratio
}

/// Lines of a head from `key=value,key=value`, as the environment has them. Values are
/// percent-encoded. Source: OpenTelemetry, OTLP exporter configuration.
fn headers(text: &str) -> Result<String, String> {
    let mut lines = String::new();
    for (name, value) in pairs(text) {
        let is_plain = |text: &str| text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !is_name || !is_plain(&value) {
            return Err("OTEL_EXPORTER_OTLP_HEADERS is not like name=value,name=value".to_owned());
        }
        lines += &format!("{name}: {value}\r\n");
    }
    Ok(lines)
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), decoded(value.trim())))
}

/// Decodes `%2C` and the like.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The description of this service.
fn resource(service: Option<&str>, attributes: &str) -> Resource {
    let mut all: Vec<(String, String)> = pairs(attributes).collect();
    let name = service
        .map(str::to_owned)
        .or_else(|| all.iter().find(|(name, _)| name == "service.name").map(|it| it.1.clone()));
    all.retain(|(name, _)| name != "service.name");
    all.insert(0, ("service.name".to_owned(), name.unwrap_or_else(|| "copal".to_owned())));
    let attributes = all.into_iter().map(|(key, value)| KeyValue {
        key,
        value: Some(AnyValue { value: Some(Value::StringValue(value)) }),
        ..KeyValue::default()
    });
    Resource { attributes: attributes.collect(), ..Resource::default() }
}

/// TLS to a collector whose certificate has one of the system's issuers, or one of a file.
fn tls(file: Option<&str>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| format!("{file}: {error}"))?;
            roots.add_parsable_certificates(certificates.filter_map(Result::ok));
        }
        None => _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    }
    if roots.is_empty() {
        return Err("there is no issuer of certificates for the collector".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests;
