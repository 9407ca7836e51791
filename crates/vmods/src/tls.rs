//! tls: results of a TLS handshake: the client's, or in vcl_backend_response and vcl_backend_error
//! that with the origin.
//!
//! Compat: the VMOD of the same name of Varnish 9; the functions about the client's certificate are
//! Copal's own. On a connection without TLS nothing is set.

use crate::call::{Call, done};
use crate::context::VmodContext;
use surface::vcl::Method;
use surface::vmod::functions::tls::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::tls::{ClientCertificate, TlsFacts};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, scratch, .. } = call;
    match function {
        Function::TlsIsTls => done(is_tls(context)),
        Function::TlsVersion => done(text(context, scratch, |facts| Some(facts.version))),
        Function::TlsCipher => done(text(context, scratch, |facts| Some(facts.cipher))),
        Function::TlsAuthority => done(text(context, scratch, |facts| facts.server_name.as_deref())),
        Function::TlsAlpn => done(text(context, scratch, |facts| facts.alpn.as_deref())),
        Function::TlsCertSign => done(text(context, scratch, |facts| facts.certificate_signature.as_deref())),
        Function::TlsCertKey => done(text(context, scratch, |facts| facts.certificate_key.as_deref())),
        Function::TlsJa3 => done(text(context, scratch, |facts| facts.ja3.as_deref())),
        Function::TlsIsResumed => done(is_resumed(context)),
        Function::TlsIsEarly => done(is_early(context)),
        Function::TlsClientCertSubject => done(of_certificate(context, scratch, |one| &one.subject)),
        Function::TlsClientCertIssuer => done(of_certificate(context, scratch, |one| &one.issuer)),
        Function::TlsClientCertSerial => done(of_certificate(context, scratch, |one| &one.serial)),
        Function::TlsClientCertFingerprint => done(of_certificate(context, scratch, |one| &one.fingerprint)),
    }
}

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
