//! What `backend.list -p` adds to the row of a name that is looked up: its backends, and in JSON what its object was made
//! with. Compat: the elements that libvmod-dynamic shows.

use crate::backend::Backend;
use crate::dns_names;
use crate::health::health_word;
use crate::listing::cells;
use cli_proto::json;
use std::fmt::Write;
use std::sync::Arc;

/// Rows below the item's own.
pub(super) fn text(backends: &[Arc<Backend>], rows: &mut Vec<Vec<String>>) {
    rows.push(cells(&[""]));
    rows.push(cells(&["", "Backend", "Health"]));
    for backend in backends {
        rows.push(cells(&["", backend.name(), health_word(backend.is_healthy())]));
    }
    rows.push(cells(&[""]));
}

/// The elements of `probe_details`.
pub(super) fn json(item: &dns_names::item::Item, out: &mut String) {
    let Some((settings, backends)) = item.settings().zip(item.backends()) else { return };
    let text = |text: Option<&str>| json::string(text.unwrap_or(""));
    let seconds = |seconds: Option<f64>| format!("{:.2}", seconds.unwrap_or(-1.0));
    let fields = [
        ("port", json::string(&settings.port)),
        ("hosthdr", text(settings.host_header.as_deref())),
        ("share", json::string(if settings.is_shared_by_host { "HOST" } else { "DIRECTOR" })),
        ("probe", settings.probe.is_some().to_string()),
        ("whitelist", settings.allowed.is_some().to_string()),
        ("connect_timeout", seconds(settings.connect_timeout)),
        ("first_byte_timeout", seconds(settings.first_byte_timeout)),
        ("between_bytes_timeout", seconds(settings.between_bytes_timeout)),
        ("domain_usage_timeout", seconds(Some(settings.domain_usage_timeout))),
        ("first_lookup_timeout", seconds(Some(settings.first_lookup_timeout))),
        ("max_connections", settings.max_connections.to_string()),
        ("proxy_header", settings.proxy_header.to_string()),
        ("resolver", json::string(settings.source.name())),
        ("retry_after", seconds(Some(settings.retry_after))),
        ("via", text(settings.via.as_ref().map(|via| via.name.as_str()))),
        ("ttl_from", json::string(settings.ttl_from.word())),
        ("ttl", seconds(Some(settings.ttl))),
        ("keep", settings.keep.to_string()),
    ];
    out.push('\n');
    for (name, value) in fields {
        let _ = writeln!(out, "        \"{name}\": {value},");
    }
    let objects: Vec<String> = backends
        .iter()
        .map(|backend| {
            let (name, health) = (json::string(backend.name()), health_word(backend.is_healthy()));
            format!("          {name}: {{\n            \"health\": \"{health}\"\n          }}")
        })
        .collect();
    let _ = write!(out, "        \"backends\": {{\n{}\n        }}\n      ", objects.join(",\n"));
}
