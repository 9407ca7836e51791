//! tls: what was agreed in a TLS handshake: the client's, or in vcl_backend_response and vcl_backend_error that with the origin.
//!
//! Compat: the VMOD of the same name of Varnish 9; the functions about the client's certificate are ours. On a connection in clear
//! nothing is set.

use crate::context::VmodContext;
use surface::vcl::Method;
use vcl_run::tls::{ClientCertificate, TlsFacts};
use vcl_run::value::{Scratch, Text, Value};

fn facts(context: &dyn VmodContext) -> Option<&TlsFacts> {
    match context.method() {
        Method::BackendResponse | Method::BackendError => context.backend_tls(),
        _ => context.connection().and_then(|connection| connection.tls),
    }
}

/// A text among the facts.
pub(crate) fn text(
    context: &dyn VmodContext,
    scratch: &mut Scratch,
    pick: for<'a> fn(&'a TlsFacts) -> Option<&'a str>,
) -> Value {
    let text = facts(context).and_then(pick).filter(|text| !text.is_empty());
    Value::Text(text.map_or(Text::UNSET, |text| scratch.put(text.as_bytes())))
}

/// A text of the client's certificate.
pub(crate) fn of_certificate(
    context: &dyn VmodContext,
    scratch: &mut Scratch,
    pick: fn(&ClientCertificate) -> &String,
) -> Value {
    let text = facts(context).and_then(|facts| facts.client_certificate.as_deref()).map(pick);
    Value::Text(text.map_or(Text::UNSET, |text| scratch.put(text.as_bytes())))
}

/// `tls.is_tls()`
pub(crate) fn is_tls(context: &dyn VmodContext) -> Value {
    Value::Bool(facts(context).is_some())
}

/// `tls.is_resumed()`
pub(crate) fn is_resumed(context: &dyn VmodContext) -> Value {
    Value::Bool(facts(context).is_some_and(|facts| facts.is_resumed))
}

/// `tls.is_early()`
pub(crate) fn is_early(context: &dyn VmodContext) -> Value {
    Value::Bool(context.connection().is_some_and(|connection| connection.is_early))
}
