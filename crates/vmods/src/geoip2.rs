//! geoip2: values for addresses from a database in the MaxMind DB format.
//!
//! Compat: libvmod-geoip2 1.3: paths, the text of values, the empty string for nothing, and the
//! records of lookups. A database that can't be read fails vcl_init. Next file: `geo.rs`.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::geo::{Missing, with_database};
use std::sync::Arc;
use surface::tag::Tag;
use surface::vmod::functions::geoip2::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::Geoip2 => create(context, instance, arguments, scratch),
        Function::Geoip2Lookup => lookup(context, instance, arguments, scratch),
    }
}

/// The path of an object's database.
struct Path(Vec<u8>);

fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let path = scratch.get(arguments.text(0)).to_vec();
    let files = Arc::clone(&context.shared().databases);
    if let Err(why) = files.check(&path, context.now()) {
        files.take_remarks(&path);
        return Err(Failure(format!("geoip2.geoip2(): {}: {why}", String::from_utf8_lossy(&path))));
    }
    context.instances().keep_object(instance, Path(path));
    done(Value::Void)
}

fn lookup(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let path = String::from_utf8_lossy(scratch.get(arguments.text(0))).into_owned();
    let (address, json) = (arguments.ip(1).map(|(address, _)| address), arguments.bool(2));
    let Some(Path(file)) = context.instances().object::<Path>(instance) else { return done(Value::Text(Text::EMPTY)) };
    let file = file.clone();
    with_database("geoip2", context, scratch, file, move |context, scratch, content| {
        let (Ok(database), Some(address)) = (content, address) else { return Value::Text(Text::EMPTY) };
        let why = match database.find(address, &path) {
            Ok(found) => return Value::Text(scratch.put(found.shown(json).as_bytes())),
            Err(why) => why,
        };
        let (tag, text) = match why {
            Missing::Path => (Tag::Error, format!("geoip2.lookup: Invalid or missing path ({path})")),
            Missing::Address => (Tag::Debug, format!("geoip2.lookup: No entry for this IP address ({address})")),
            Missing::Data => (Tag::Debug, format!("geoip2.lookup: No data for this path ({path})")),
            Missing::Kind => (Tag::Error, format!("geoip2.lookup: Unsupported data type ({path})")),
        };
        context.log(tag, text.as_bytes());
        Value::Text(Text::EMPTY)
    })
}
