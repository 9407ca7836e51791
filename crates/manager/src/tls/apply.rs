//! Changes what TLS is served with: [`change`].
//!
//! A change is made on a copy of the registry; the table that comes of it is tried here and given to the worker, and only if both work
//! does the copy become the registry. So a certificate that cannot be used changes nothing, whether a worker runs or not.

use crate::life;
use crate::state::Manager;
use crate::tls::registry::Registry;
use std::rc::Rc;
use worker::control::Request;

/// Changes what is active: waits until no worker is starting or stopping, applies `change` to the registry, and tells the worker.
/// Connections that exist go on as they are.
///
/// # Errors
/// What `change` says, or why the result cannot be served. Then everything is as before.
pub async fn change<R>(
    manager: &Rc<Manager>,
    change: impl FnOnce(&mut Registry) -> Result<R, String>,
) -> Result<R, String> {
    let _changes = manager.changes.lock().await;
    let mut changed = manager.tls.borrow().clone();
    let result = change(&mut changed)?;
    let table = changed.table();
    tls::server::build(&table)?;
    if let Some(worker) = manager.running_worker() {
        match worker.link.ask(Request::Tls(Box::new(table)), manager.reply_timeout()).await {
            Ok(reply) if reply.status == 200 => {}
            Ok(reply) => return Err(reply.body),
            Err(error) => {
                let text = life::link_text(error).to_owned();
                // The next worker begins with what was active before.
                let manager = manager.clone();
                tokio::task::spawn_local(async move { life::unresponsive(&manager, &worker, error).await });
                return Err(text);
            }
        }
    }
    *manager.tls.borrow_mut() = changed;
    Ok(result)
}

/// Changes what is staged, which nobody needs to be told of.
///
/// # Errors
/// What `change` says. Then everything is as before.
pub async fn stage<R>(
    manager: &Rc<Manager>,
    change: impl FnOnce(&mut Registry) -> Result<R, String>,
) -> Result<R, String> {
    // A change of what is active works on a copy: nothing may be staged meanwhile.
    let _changes = manager.changes.lock().await;
    let mut changed = manager.tls.borrow().clone();
    let result = change(&mut changed)?;
    *manager.tls.borrow_mut() = changed;
    Ok(result)
}
