//! A time limit that costs nothing as long as it is not reached.
//!
//! Arming a timer for every read and write would be most of the cost of a hit. So the timer of a
//! connection is moved only when it fires too early, and polled only if it has, or another task
//! waits for it. *Invariant:* the timer is armed for `due` or earlier.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep_until};

/// The longest meaningful limit; anything longer counts as no limit.
const FOREVER: Duration = Duration::from_secs(20 * 365 * 86_400);

/// A parameter in seconds as a duration: negative values become 0, values too large become
/// `FOREVER`.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(FOREVER).min(FOREVER)
}

/// A limit that is often set and rarely reached.
pub(crate) struct Deadline {
    due: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    /// The task to wake when it fires.
    waiter: Option<Waker>,
}

impl Deadline {
    /// A limit without a timer.
    pub(crate) fn new() -> Deadline {
        Deadline { due: Instant::now() + FOREVER, timer: None, waiter: None }
    }

    /// Moves the limit.
    pub(crate) fn set(&mut self, due: Instant) {
        self.due = due;
    }

    /// Ready once the limit is reached. Otherwise the task is woken at that time, or earlier, in
    /// which case it must poll again.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let due = self.due;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() > due {
            timer.as_mut().reset(due);
        } else if !timer.is_elapsed() && self.waiter.as_ref().is_some_and(|waiter| waiter.will_wake(context.waker())) {
            return Poll::Pending;
        }
        // A task that has used up its budget does not get through to the timer.
        self.waiter = has_budget_remaining().then(|| context.waker().clone());
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test(start_paused = true)]
    async fn a_limit_moved_later_and_earlier_is_kept_to_the_moment() {
        let start = Instant::now();
        let mut deadline = Deadline::new();
        deadline.set(start + Duration::from_secs(1));
        assert!(poll_fn(|context| Poll::Ready(deadline.poll(context))).await.is_pending());
        deadline.set(start + Duration::from_secs(5));
        poll_fn(|context| deadline.poll(context)).await;
        assert_eq!(start.elapsed().as_secs(), 5);
        deadline.set(start + Duration::from_secs(60));
        assert!(poll_fn(|context| Poll::Ready(deadline.poll(context))).await.is_pending());
        deadline.set(start + Duration::from_secs(7));
        poll_fn(|context| deadline.poll(context)).await;
        assert_eq!(start.elapsed().as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn last_task_to_wait_is_woken_at_the_deadline() {
        struct Woken(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Woken {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let waiters = [(); 2].map(|()| std::sync::Arc::new(Woken(false.into())));
        let is_woken = |index: usize| waiters[index].0.load(std::sync::atomic::Ordering::Relaxed);
        let mut deadline = Deadline::new();
        for (seconds, waiter) in [(5, 0), (9, 0), (9, 1), (9, 1)] {
            deadline.set(Instant::now() + Duration::from_secs(seconds));
            assert!(deadline.poll(&mut Context::from_waker(&waiters[waiter].clone().into())).is_pending());
        }
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!((is_woken(0), is_woken(1)), (false, true), "too early, so that it is moved");
        let waker = waiters[1].clone().into();
        assert!(deadline.poll(&mut Context::from_waker(&waker)).is_pending());
        waiters[1].0.store(false, std::sync::atomic::Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!is_woken(1));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(is_woken(1) && deadline.poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn task_without_budget_is_still_woken() {
        let mut deadline = Deadline::new();
        deadline.set(Instant::now() + Duration::from_secs(1));
        poll_fn(|context| {
            // Runs once, when there is no timer yet.
            while deadline.timer.is_none() && has_budget_remaining() {
                let _ = std::pin::pin!(tokio::task::coop::consume_budget()).poll(context);
            }
            deadline.poll(context)
        })
        .await;
        assert!(deadline.waiter.is_some());
    }

    #[test]
    fn absurd_durations_are_bounded() {
        assert_eq!(duration(-1.0), Duration::ZERO);
        assert_eq!(duration(f64::INFINITY), FOREVER);
        assert_eq!(duration(f64::NAN), Duration::ZERO);
        assert_eq!(duration(0.5), Duration::from_millis(500));
    }
}
