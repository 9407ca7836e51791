//! Work of VMODs on threads that may block: name lookups by the system's resolver, passwords, files
//! that may have been replaced.
//!
//! A client may choose the name, and the server that has to answer for it. So the worker runs few
//! lookups at a time, few wait for their turn, and all of them have a time limit. *Invariant:* a
//! lookup whose task no longer waits keeps its turn until its thread is free: each kind of work
//! never takes more threads than its turns from those that the event loops read files with.

use std::sync::Arc;
use std::time::Duration;
use surface::limits::{VMOD_LOOKUP_SECONDS_MAX, VMOD_LOOKUPS_MAX, VMOD_LOOKUPS_WAITING_MAX};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Reason why a name was not looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The wait queue is full.
    Full,
    /// The lookup took too long.
    TooLong,
    /// The worker ends.
    Ended,
}

impl Refusal {
    /// For the log.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Refusal::Full => "too many at once",
            Refusal::TooLong => "takes too long",
            Refusal::Ended => "was given up",
        }
    }
}

/// Permits shared by all event loops.
#[derive(Debug)]
pub(crate) struct Lookups {
    /// One permit for each lookup on a thread.
    turns: Arc<Semaphore>,
    /// One permit for each lookup on a thread or in the wait queue.
    places: Arc<Semaphore>,
}

impl Default for Lookups {
    fn default() -> Self {
        Lookups::new(VMOD_LOOKUPS_MAX, VMOD_LOOKUPS_WAITING_MAX)
    }
}

impl Lookups {
    /// Permits for work on `turns` threads, while `waiting` more wait.
    pub(crate) fn new(turns: usize, waiting: usize) -> Lookups {
        let semaphore = |places| Arc::new(Semaphore::new(places));
        Lookups { turns: semaphore(turns), places: semaphore(turns + waiting) }
    }

    /// Runs `work`, which may block for long, when its turn has come.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, Refusal>> + 'static {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let turns = Arc::clone(&self.turns);
        async move {
            let place = place.map_err(|_| Refusal::Full)?;
            let lookup = async move {
                let turn = turns.acquire_owned().await.map_err(|_| Refusal::Ended)?;
                let work = move || {
                    let _until_done = (place, turn);
                    work()
                };
                spawn_blocking(work).await.map_err(|_| Refusal::Ended)
            };
            timeout(Duration::from_secs(VMOD_LOOKUP_SECONDS_MAX), lookup).await.unwrap_or(Err(Refusal::TooLong))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use tokio::runtime::Builder;
    use tokio::task::{JoinSet, LocalSet, yield_now};
    use tokio::time::advance;

    /// A name server that answers only when signalled.
    fn silent_server() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
        let (tell, told) = channel();
        (tell, Arc::new(Mutex::new(told)))
    }

    #[test]
    fn silent_name_server_takes_few_threads_and_lookups_time_out() {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .max_blocking_threads(VMOD_LOOKUPS_MAX + 1)
            .build()
            .unwrap();
        let (tell, told) = silent_server();
        let lookups = Lookups::default();
        LocalSet::new().block_on(&runtime, async {
            let mut waiting = JoinSet::new();
            for _ in 0..2 * VMOD_LOOKUPS_MAX + VMOD_LOOKUPS_WAITING_MAX {
                let told = Arc::clone(&told);
                waiting.spawn_local(lookups.run(move || _ = told.lock().map(|told| told.recv())));
                // Each must have begun before time passes, and a turn of the loop polls only some.
                yield_now().await;
            }
            // A file is still read at once.
            assert_eq!(spawn_blocking(|| 7).await.unwrap(), 7);
            // The paused clock does not advance by itself while threads are at work.
            advance(Duration::from_secs(VMOD_LOOKUP_SECONDS_MAX)).await;
            let (mut full, mut too_long) = (0, 0);
            while let Some(result) = waiting.join_next().await {
                match result.unwrap() {
                    Err(Refusal::Full) => full += 1,
                    Err(Refusal::TooLong) => too_long += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((full, too_long), (VMOD_LOOKUPS_MAX, VMOD_LOOKUPS_MAX + VMOD_LOOKUPS_WAITING_MAX));
            // The threads still wait for the server, and keep their turns.
            assert_eq!(lookups.turns.available_permits(), 0);
            let late = tokio::task::spawn_local(lookups.run(|| 7));
            yield_now().await;
            advance(Duration::from_secs(VMOD_LOOKUP_SECONDS_MAX)).await;
            assert_eq!(late.await.unwrap(), Err(Refusal::TooLong));
            drop(tell);
            assert_eq!(lookups.run(|| 7).await, Ok(7));
        });
    }
}
