//! Limits of storages without a size in bytes: a share of the available memory, which follows its
//! changes.
//!
//! Control groups can be changed while processes run in them, and orchestrators do. So the kernel's
//! files are read at intervals ([`follow`]): a storage that has become too large evicts and gives
//! its memory back at once, without a new worker, and one that may become larger does, as far as
//! its arena's file is long. A file is sparse, so it is made for more than its first limit
//! (`memory::grows_to`).

use crate::arguments::Arguments;
use crate::life;
use crate::memory::{Kernel, Overhead, Size as Shown, storage_limits};
use crate::report::Level;
use crate::state::Manager;
use control::messages::Request;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Interval between reads of the kernel's files.
const LOOK: Duration = Duration::from_secs(2);

/// The limit of each storage's memory, in bytes; `file_bytes` = the length of each one's file
/// (`StorageFiles::bytes`).
#[must_use]
pub fn of(arguments: &Arguments, file_bytes: &[u64], work_directory: &Path, kernel: &Kernel) -> Vec<u64> {
    let usable = kernel.usable_within(arguments.memory_bytes);
    let storages = arguments.storages.cache.iter().zip(file_bytes);
    let given: Vec<_> = storages.map(|(storage, bytes)| storage.size.bytes_of(usable.bytes, *bytes)).collect();
    storage_limits(&given, usable, Overhead::of(work_directory, arguments.parameters.vsl_space))
}

/// Follows the available memory, without end.
pub async fn follow(manager: Rc<Manager>) {
    let kernel = Kernel::here();
    // Sizes in bytes do not depend on it.
    if manager.arguments.storages.cache.iter().all(|storage| storage.size.given_bytes().is_some()) {
        return;
    }
    loop {
        tokio::time::sleep(LOOK).await;
        let path = manager.directory.borrow().path().to_owned();
        let file_bytes = manager.memory.borrow().files().bytes();
        let next = of(&manager.arguments, &file_bytes, &path, &kernel);
        if next != *manager.storage_limits_bytes.borrow() && !manager.ending.get() {
            change(&manager, next, &kernel).await;
        }
    }
}

/// Gives the storages other limits.
async fn change(manager: &Rc<Manager>, next: Vec<u64>, kernel: &Kernel) {
    let _changes = manager.changes.lock().await;
    let before: u64 = manager.limits_now_bytes.borrow().iter().sum();
    // Storages that were shrunk for lack of memory may grow again: the amount of memory has
    // changed.
    manager.storage_limits_bytes.borrow_mut().clone_from(&next);
    manager.limits_now_bytes.borrow_mut().clone_from(&next);
    let mut now = next.clone();
    if let Some(worker) = manager.running_worker() {
        match worker.link.ask(Request::Limits(next.clone()), manager.reply_timeout()).await {
            Ok(reply) if reply.status == 200 => {
                let told: Vec<u64> = reply.body.split(' ').filter_map(|word| word.parse().ok()).collect();
                if told.len() == now.len() {
                    now = told;
                }
            }
            Ok(reply) => manager.say(Level::Error, format!("Child ({}) refused limits: {}", worker.pid, reply.body)),
            Err(error) => {
                let manager = manager.clone();
                tokio::task::spawn_local(async move { life::unresponsive(&manager, &worker, error).await });
            }
        }
    }
    let usable = kernel.usable_within(manager.arguments.memory_bytes);
    let (wanted, now): (u64, u64) = (next.iter().sum(), now.iter().sum());
    let verb = if now < before { "shrink" } else { "grow" };
    let (there_is, before) = (Shown(usable.bytes), Shown(before));
    let mut text = format!("There are {there_is} of memory now: storages {verb} from {before} to {}", Shown(now));
    if now < wanted {
        text.push_str(&format!("; {} only when the daemon is started anew", Shown(wanted)));
    }
    manager.say(Level::Warning, text);
}
