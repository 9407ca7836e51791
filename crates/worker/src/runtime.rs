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
    with_threads_kept(KEPT_ALIVE, || ())
}

/// `made` is called by each thread that is made.
fn with_threads_kept(kept_alive: Duration, made: impl Fn() + Send + Sync + 'static) -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .thread_name("blocking")
        .on_thread_start(made)
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn a_thread_for_what_blocks_outlives_its_idleness() {
        let (kept_alive, made) = (Duration::from_secs(2), Arc::new(AtomicU32::new(0)));
        let counter = Arc::clone(&made);
        let runtime = with_threads_kept(kept_alive, move || _ = counter.fetch_add(1, Relaxed)).unwrap();
        runtime.block_on(async {
            spawn_blocking(|| ()).await.unwrap();
            tokio::time::sleep(kept_alive / 4).await;
            let at_first = made.load(Relaxed);
            assert!(at_first > 0);
            // Between two of the things that it is given to do.
            tokio::time::sleep(kept_alive * 2).await;
            spawn_blocking(|| ()).await.unwrap();
            assert_eq!(made.load(Relaxed), at_first);
        });
    }
}
