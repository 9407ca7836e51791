//! bodyaccess: the client's request body, after `std.cache_req_body()` has read all of it.
//!
//! Compat: vmod_bodyaccess of the varnish-modules collection: the methods in which each function is
//! allowed, the texts of its errors, and −1 for a body that is not in memory.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use std::rc::Rc;
use surface::tag::Tag;
use surface::vcl::Method;
use surface::vmod::functions::bodyaccess::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::BodyaccessRematchReqBody => done(matches(context, arguments)),
        Function::BodyaccessHashReqBody => done(hash(context)),
        Function::BodyaccessLenReqBody => done(length(context)),
        Function::BodyaccessLogReqBody => done(log(context, arguments, scratch)),
    }
}

/// The result if there is no body.
const ERROR: Value = Value::Int(-1);

/// The body. If it is not in memory, logs an error.
fn body(context: &mut dyn VmodContext) -> Option<Rc<Vec<u8>>> {
    let body = context.cached_body();
    if body.is_none() {
        context.log(Tag::VCLError, b"Unbuffered req.body");
    }
    body
}

/// The body, if the task runs `method`; in other methods logs `complaint`.
fn body_in(context: &mut dyn VmodContext, method: Method, complaint: &str) -> Option<Rc<Vec<u8>>> {
    let body = body(context)?;
    if context.method() != method {
        context.log(Tag::VCLError, complaint.as_bytes());
        return None;
    }
    Some(body)
}

/// `bodyaccess.len_req_body()`
pub(crate) fn length(context: &mut dyn VmodContext) -> Value {
    match body_in(context, Method::Recv, "len_req_body can only be used in vcl_recv{}") {
        Some(body) => Value::Int(i64::try_from(body.len()).unwrap_or(i64::MAX)),
        None => ERROR,
    }
}

/// `bodyaccess.rematch_req_body()`
pub(crate) fn matches(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Value {
    let Some(body) = body_in(context, Method::Recv, "rematch_req_body can be used only in vcl_recv{}") else {
        return ERROR;
    };
    let regex = arguments.regex(0).and_then(|index| context.program().regex(index));
    match regex.map(|regex| regex.is_match(&body)) {
        Some(Ok(is_match)) => Value::Int(i64::from(is_match)),
        Some(Err(error)) => {
            context.log(Tag::VCLError, format!("Regexp matching failed: {}", error.0).as_bytes());
            ERROR
        }
        None => ERROR,
    }
}

/// `bodyaccess.hash_req_body()`: the bytes are hashed unchanged, without the separator of
/// `hash_data()`.
pub(crate) fn hash(context: &mut dyn VmodContext) -> Value {
    if let Some(body) = body_in(context, Method::Hash, "hash_req_body can only be used in vcl_hash{}") {
        context.hash_data(Some(&body));
    }
    Value::Void
}

/// `bodyaccess.log_req_body()`: `Debug` records with at most that many bytes after the prefix; 0 =
/// everything in one.
pub(crate) fn log(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let Some(body) = body(context) else { return Value::Void };
    let line_bytes = match usize::try_from(arguments.int(1)) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(bytes) => bytes,
    };
    let prefix = scratch.get(arguments.text(0));
    let mut record = Vec::new();
    for line in body.chunks(line_bytes) {
        record.clear();
        record.extend_from_slice(prefix);
        record.extend_from_slice(line);
        context.log(Tag::Debug, &record);
    }
    Value::Void
}
