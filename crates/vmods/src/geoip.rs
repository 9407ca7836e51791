//! geoip: the country of an address given as text.
//!
//! The VMOD of that name used databases of the first format, which are no longer published. Here it
//! reads the country database of GeoLite2 or GeoIP2 in a directory where its updater puts it.
//! Compat: libvmod-geoip: `Unknown` for an address without a country. Next file: `geo.rs`.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::geo::with_database;
use std::net::IpAddr;
use surface::vmod::functions::geoip::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::GeoipCountryCode => query(context, arguments, scratch, "country/iso_code"),
        Function::GeoipCountryName => query(context, arguments, scratch, "country/names/en"),
    }
}

/// Database of the updater: a symbolic link to another file works too.
const DATABASE: &[u8] = b"/usr/share/GeoIP/GeoLite2-Country.mmdb";
const UNKNOWN: &[u8] = b"Unknown";

fn query(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
    path: &'static str,
) -> Result<Called, Failure> {
    let text = String::from_utf8_lossy(scratch.get(arguments.text(0))).into_owned();
    let Ok(address) = text.parse::<IpAddr>() else { return done(Value::Text(scratch.put(UNKNOWN))) };
    with_database("geoip", context, scratch, DATABASE.to_vec(), move |_, scratch, content| {
        let found = content.ok().and_then(|database| database.find(address, path).ok());
        let shown = found.map_or(UNKNOWN.to_vec(), |found| found.shown(false).into_bytes());
        Value::Text(scratch.put(&shown))
    })
}
