//! proxy: data about the client in a version 2 PROXY header besides its addresses.
//!
//! The position of a value among the elements is determined by `proxy_protocol`.

use crate::call::{Call, done};
use crate::context::VmodContext;
use proxy_protocol::element::{self, TLS, TLS_HEAD_BYTES};
use surface::vmod::functions::proxy::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, scratch, .. } = call;
    match function {
        Function::ProxyAlpn => done(text(context, scratch, element::ALPN)),
        Function::ProxyAuthority => done(text(context, scratch, element::AUTHORITY)),
        Function::ProxyIsSsl => done(flag(context, element::OVER_TLS)),
        Function::ProxyClientHasCertSess => done(flag(context, element::CERTIFICATE_IN_SESSION)),
        Function::ProxyClientHasCertConn => done(flag(context, element::CERTIFICATE_ON_CONNECTION)),
        Function::ProxySslVerifyResult => done(verify_result(context)),
        Function::ProxySslVersion => done(text(context, scratch, element::TLS_VERSION)),
        Function::ProxyClientCertCn => done(text(context, scratch, element::COMMON_NAME)),
        Function::ProxySslCipher => done(text(context, scratch, element::CIPHER)),
        Function::ProxyCertSign => done(text(context, scratch, element::SIGNATURE_ALGORITHM)),
        Function::ProxyCertKey => done(text(context, scratch, element::KEY_ALGORITHM)),
    }
}

fn value(context: &dyn VmodContext, wanted: u8) -> Option<&[u8]> {
    context.connection().and_then(|connection| element::find(connection.proxy_elements, wanted))
}

/// A text, up to the first NUL.
pub(crate) fn text(context: &mut dyn VmodContext, scratch: &mut Scratch, wanted: u8) -> Value {
    let bytes = value(context, wanted).and_then(|bytes| bytes.split(|byte| *byte == 0).next());
    Value::Text(bytes.map_or(Text::UNSET, |bytes| scratch.put(bytes)))
}

/// A flag of the TLS element.
pub(crate) fn flag(context: &mut dyn VmodContext, wanted: u8) -> Value {
    let flags = value(context, TLS).and_then(|value| value.first());
    Value::Bool(flags.is_some_and(|flags| flags & wanted == wanted))
}

/// `proxy.ssl_verify_result()`
pub(crate) fn verify_result(context: &mut dyn VmodContext) -> Value {
    let number = value(context, TLS).and_then(|value| value.get(1..TLS_HEAD_BYTES)?.try_into().ok());
    Value::Int(number.map_or(0, |bytes| i64::from(u32::from_be_bytes(bytes))))
}
