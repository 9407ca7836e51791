//! The runtime that an event loop of the worker lives in, the main thread's included.
//!
//! What blocks (a disk, a name server) is done by threads that the runtime makes when it needs them and ends when they have had
//! nothing to do. Where the system gives no thread it panics, unless it has one left, which then does one thing after the other. So each
//! runtime has one from the start on, and something to do for it before it would end.

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

/// After so long without anything to do a thread ends.
const KEPT_ALIVE: Duration = Duration::from_secs(20);
/// Turns of a loop between two looks at its sockets.
const EVENT_INTERVAL: u32 = 61;

/// Makes a runtime for the calling thread.
///
/// # Errors
/// No descriptor for its poll, or no thread for what blocks.
pub fn build() -> io::Result<Runtime> {
    with_threads_kept(KEPT_ALIVE)
}

fn with_threads_kept(kept_alive: Duration) -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .thread_name("blocking")
        .thread_keep_alive(kept_alive)
        .build()?;
    // The runtime would panic. A thread that has just ended leaves room for the one that is wanted.
    let _ = std::thread::Builder::new().spawn(|| ())?.join();
    drop(runtime.spawn_blocking(|| ()));
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(kept_alive / 2).await;
            // It ends with the runtime.
            let _ = spawn_blocking(|| ()).await;
        }
    });
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_for_what_blocks_outlives_its_idleness() {
        let kept_alive = Duration::from_secs(2);
        let runtime = with_threads_kept(kept_alive).unwrap();
        let who = || spawn_blocking(|| std::thread::current().id());
        runtime.block_on(async {
            let first = who().await.unwrap();
            tokio::time::sleep(kept_alive * 5 / 2).await;
            assert_eq!(who().await.unwrap(), first);
        });
    }
}
