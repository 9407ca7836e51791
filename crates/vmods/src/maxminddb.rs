//! maxminddb: the place of an address, from a database that `init_db()` names.
//!
//! Compat: libvmod-maxminddb: `-` for an unknown name, `0` for an unknown coordinate. Next file:
//! `geo.rs`.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::geo::{Found, with_database};
use std::sync::Arc;
use surface::vmod::functions::maxminddb::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::MaxminddbInitDb => init(context, arguments, scratch),
        Function::MaxminddbQueryContinent => query(context, arguments, scratch, "continent/code", "-"),
        Function::MaxminddbQueryCountry => query(context, arguments, scratch, "country/iso_code", "-"),
        Function::MaxminddbQueryState => query(context, arguments, scratch, "subdivisions/0/iso_code", "-"),
        Function::MaxminddbQueryCity => query(context, arguments, scratch, "city/names/en", "-"),
        Function::MaxminddbQueryPostalcode => query(context, arguments, scratch, "postal/code", "-"),
        Function::MaxminddbQueryLatitude => query(context, arguments, scratch, "location/latitude", "0"),
        Function::MaxminddbQueryLongitude => query(context, arguments, scratch, "location/longitude", "0"),
    }
}

/// `maxminddb.init_db()`: a failure if the database can't be read.
fn init(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let path = scratch.get(arguments.text(0)).to_vec();
    let files = Arc::clone(&context.shared().databases);
    if let Err(why) = files.check(&path, context.now()) {
        files.take_remarks(&path);
        return Err(Failure(format!("maxminddb.init_db(): {}: {why}", String::from_utf8_lossy(&path))));
    }
    context.instances().set_geo_database(path);
    done(Value::Void)
}

fn query(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
    path: &'static str,
    unknown: &'static str,
) -> Result<Called, Failure> {
    let address = arguments.ip(0).map(|(address, _)| address);
    let Some((file, address)) = context.instances().geo_database().zip(address) else {
        return done(Value::Text(scratch.put(unknown.as_bytes())));
    };
    with_database("maxminddb", context, scratch, file, move |_, scratch, content| {
        let found = content.ok().and_then(|database| database.find(address, path).ok());
        let shown = match found {
            // Coordinates have four decimals.
            Some(Found::Plain(text)) if unknown == "0" => {
                text.parse().map_or(text, |number: f64| format!("{number:.4}"))
            }
            Some(found) => found.shown(false),
            None => unknown.to_owned(),
        };
        Value::Text(scratch.put(shown.as_bytes()))
    })
}
