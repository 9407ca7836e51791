//! Tokio runtime of an event loop of the worker, the main thread's included.
//!
//! Blocking work (a disk, a name server) is done by threads that the runtime starts when it needs
//! them and ends when they have been idle for a while. If the system refuses a thread the runtime
//! panics, unless it has one left, which then does one job after the other. So each runtime has one
//! from the start on, and a job for it before it would end.

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

/// Idle time after which a thread ends.
const KEPT_ALIVE: Duration = Duration::from_secs(20);
/// Turns of a loop between two polls of its sockets.
const EVENT_INTERVAL: u32 = 61;

/// Makes a runtime for the calling thread.
///
/// # Errors
/// No descriptor for its poll, or no thread for blocking work.
pub fn build() -> io::Result<Runtime> {
    with_threads_kept(KEPT_ALIVE, || ())
}

/// `made` is called by each new thread.
fn with_threads_kept(kept_alive: Duration, made: impl Fn() + Send + Sync + 'static) -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .thread_name("blocking")
        .on_thread_start(made)
        .thread_keep_alive(kept_alive)
        .build()?;
    // The runtime would panic. A thread that has just ended leaves room for the next one.
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
    use std::time::Instant;
    use surface::limits::TEST_HANG_SECONDS;

    #[test]
    fn a_thread_for_what_blocks_outlives_its_idleness() {
        let (kept_alive, made) = (Duration::from_secs(2), Arc::new(AtomicU32::new(0)));
        let counter = Arc::clone(&made);
        let runtime = with_threads_kept(kept_alive, move || _ = counter.fetch_add(1, Relaxed)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
        runtime.block_on(async {
            loop {
                spawn_blocking(|| ()).await.unwrap();
                let at_first = made.load(Relaxed);
                assert!(at_first > 0);
                // Between two calls of the task that keeps the thread.
                tokio::time::sleep(kept_alive * 9 / 4).await;
                spawn_blocking(|| ()).await.unwrap();
                if made.load(Relaxed) == at_first {
                    return;
                }
                // A busy machine may be late. Without that task every round needs a new thread.
                assert!(Instant::now() < deadline, "every round needed another thread");
            }
        });
    }
}
