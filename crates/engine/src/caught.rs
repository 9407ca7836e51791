//! Containment of panics: a panic costs only the request in which it happened, not the worker.
//!
//! *Invariant:* a panic in a request or fetch costs that request, not the worker.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// Runs a future to its end. If it panics, the error is the panic's text. The future stays with the
/// caller: moved here, it would reserve its memory twice in the future that waits for it.
///
/// After a panic, everything that the future had borrowed may be in any state: the caller must
/// discard it.
pub(crate) async fn caught<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, String> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panic) => Poll::Ready(Err(text(panic.as_ref()))),
    })
    .await
}

fn text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "panic without a text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    #[tokio::test]
    async fn a_panic_becomes_its_text_and_a_result_stays_itself() {
        assert_eq!(caught(pin!(async { 7 })).await, Ok(7));
        let number = 9;
        let result: Result<(), String> = caught(pin!(async { panic!("number {number}") })).await;
        assert_eq!(result, Err("number 9".to_owned()));
    }
}
