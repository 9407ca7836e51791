//! ykey: purging by tags that VCL gives to responses.
//!
//! The tags are those of xkey: `add_key()` adds a line to the header `xkey` of the response, which
//! the cache reads and clients see; VCL may remove it in vcl_deliver. Compat: the calls of the VMOD
//! of that name that published VCL uses.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::header;
use semantics::Purge;
use surface::tag::Tag;
use surface::vcl::HttpObject;
use surface::vmod::functions::ykey::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::YkeyAddKey => {
            let key = scratch.get(arguments.text(0)).to_vec();
            add(context, &key, scratch)
        }
        Function::YkeyAddHeader => {
            let keys = with_blanks(&lines(context, arguments, scratch), scratch.get(arguments.text(1)));
            add(context, &keys, scratch)
        }
        Function::YkeyPurge | Function::YkeyPurgeKeys => {
            Ok(context.purge_tags(scratch.get(arguments.text(0)), kind(arguments.bool(1))))
        }
        Function::YkeyPurgeHeader => {
            let keys = with_blanks(&lines(context, arguments, scratch), scratch.get(arguments.text(1)));
            Ok(context.purge_tags(&keys, kind(arguments.bool(2))))
        }
    }
}

fn kind(is_soft: bool) -> Purge {
    if is_soft { Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 } } else { Purge::Hard }
}

/// All values of the header in the first argument, with a separator between.
fn lines(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Vec<u8> {
    let Some((http, name)) = arguments.header(0, context.program(), scratch) else { return Vec::new() };
    let separator = scratch.get(arguments.text(1)).to_vec();
    context.message(http).map_or(Vec::new(), |message| message.get_all(&name).collect::<Vec<_>>().join(&separator[..]))
}

/// The list with blanks instead of any of the separators.
fn with_blanks(list: &[u8], separators: &[u8]) -> Vec<u8> {
    list.iter().map(|byte| if separators.contains(byte) { b' ' } else { *byte }).collect()
}

/// Adds keys to the response of the fetch.
fn add(context: &mut dyn VmodContext, keys: &[u8], scratch: &Scratch) -> Result<Called, Failure> {
    if keys.trim_ascii().is_empty() {
        return done(Value::Void);
    }
    header::check(b"xkey", keys)?;
    let limit_bytes = context.task().room_bytes(scratch);
    let Some(message) = context.message_mut(HttpObject::Beresp) else {
        return Err(Failure("ykey: keys can only be added in vcl_backend_response{}".to_owned()));
    };
    if message.memory_bytes() + keys.len() + 6 > limit_bytes {
        return Err(Failure("ykey: Out of request memory (parameter request_memory_max)".to_owned()));
    }
    message.append(b"xkey", keys);
    context.log(Tag::BerespHeader, &[b"xkey: ", keys].concat());
    done(Value::Void)
}
