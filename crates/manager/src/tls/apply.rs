//! Changes of the active TLS state: [`change`].
//!
//! A change is made on a copy of the registry; the resulting table is tried here and sent to the
//! worker, and only if both succeed does the copy become the registry. So an unusable certificate
//! changes nothing, even if no worker runs.
//!
//! *Invariant:* the TLS configuration changes as a whole: a changed copy is kept only after the
//! worker has accepted its table. A connection keeps the table that it began with.

use crate::life;
use crate::state::Manager;
use crate::tls::registry::Registry;
use control::messages::Request;
use std::rc::Rc;

/// Changes the active state: waits until no worker is starting or stopping, applies `change` to the
/// registry, and sends the result to the worker. Existing connections continue unchanged.
///
/// # Errors
/// The error of `change`, or the reason why the result cannot be served. Then everything is as
/// before.
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
                // The next worker begins with the previous active state.
                let manager = manager.clone();
                tokio::task::spawn_local(async move { life::unresponsive(&manager, &worker, error).await });
                return Err(text);
            }
        }
    }
    *manager.tls.borrow_mut() = changed;
    Ok(result)
}

/// Changes the staged state, which is not sent to the worker.
///
/// # Errors
/// The error of `change`. Then everything is as before.
pub async fn stage<R>(
    manager: &Rc<Manager>,
    change: impl FnOnce(&mut Registry) -> Result<R, String>,
) -> Result<R, String> {
    // A change of the active state works on a copy: nothing may be staged meanwhile.
    let _changes = manager.changes.lock().await;
    let mut changed = manager.tls.borrow().clone();
    let result = change(&mut changed)?;
    *manager.tls.borrow_mut() = changed;
    Ok(result)
}
