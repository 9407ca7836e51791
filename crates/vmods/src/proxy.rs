//! proxy: what the sender of a version 2 PROXY header says about the client besides its addresses.
//!
//! `proxy_protocol` knows where a value is among the elements.

use crate::context::VmodContext;
use proxy_protocol::element::{self, TLS, TLS_HEAD_BYTES};
use vcl_run::value::{Scratch, Text, Value};

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
