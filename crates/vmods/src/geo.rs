//! Databases of addresses in the MaxMind DB format, for the VMODs geoip2, maxminddb and geoip.
//!
//! A database is held in memory and read again once it was replaced; until then, and if the new one
//! is damaged, the last one is used. Next file: `geo/database.rs`.

mod database;

pub(crate) use database::{Database, Found, Missing};

use crate::context::{Finish, VmodContext};
use crate::remarks::log_remarks;
use crate::watched::Content;
use std::sync::Arc;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls `then` with the database, after a wait if the file was never read.
pub(crate) fn with_database(
    vmod: &'static str,
    context: &mut dyn VmodContext,
    scratch: &mut Scratch,
    path: Vec<u8>,
    then: impl FnOnce(&mut dyn VmodContext, &mut Scratch, Content<Database>) -> Value + 'static,
) -> Result<Called, Failure> {
    let (files, now) = (Arc::clone(&context.shared().databases), context.now());
    let settle = move |context: &mut dyn VmodContext, scratch: &mut Scratch, path: &[u8], content| {
        let remarks = context.shared().databases.take_remarks(path);
        log_remarks(context, vmod, path, remarks);
        then(context, scratch, content)
    };
    let can_wait = context.can_wait();
    if let Some(content) = files.current(&path, now, can_wait) {
        return Ok(Called::Value(settle(context, scratch, &path, content)));
    }
    if !can_wait {
        let content = files.check(&path, now);
        return Ok(Called::Value(settle(context, scratch, &path, content)));
    }
    let reads = Arc::clone(&context.shared().file_reads);
    context.wait(Box::pin(async move {
        let content = files.check_later(&reads, path.clone(), now).await;
        let finish: Finish = Box::new(move |context, scratch| Ok(settle(context, scratch, &path, content)));
        finish
    }));
    Ok(Called::Wait)
}
