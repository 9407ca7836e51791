//! The control connection to one worker: requests in order, each with one reply, within a time
//! limit.
//!
//! Owner of the stream: one task. If a reply is late or broken the connection is closed, since the
//! next reply could not be distinguished from the late one; every waiting caller gets
//! [`LinkError`].

use cli_proto::response::Response;
use control::messages::{self, Request, Said, Step};
use std::time::Duration;
use surface::limits::WORKER_STEPS_MAX;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};

/// Reason for a missing reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The worker closed the connection, or sent something that is not a reply.
    Closed,
    /// The worker did not answer in time.
    Late,
}

/// A handle to the connection; clones share it.
#[derive(Clone, Debug)]
pub struct Link {
    requests: mpsc::UnboundedSender<PendingRequest>,
    step: watch::Receiver<Step>,
}

#[derive(Debug)]
struct PendingRequest {
    request: Request,
    timeout: Duration,
    answer: oneshot::Sender<Result<Response, LinkError>>,
}

impl Link {
    /// Takes over a connection. Must be called within a `LocalSet`.
    #[must_use]
    pub fn new(stream: UnixStream) -> Link {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (said, step) = watch::channel(Step::Surroundings);
        tokio::task::spawn_local(converse(stream, receiver, said));
        Link { requests: sender, step }
    }

    /// The step that the worker last reported.
    #[must_use]
    pub fn step(&self) -> Step {
        *self.step.borrow()
    }

    /// The same, to wait for the next one.
    #[must_use]
    pub fn steps(&self) -> watch::Receiver<Step> {
        self.step.clone()
    }

    /// Sends a request and waits for its reply. `timeout` counts from when the request's turn
    /// comes, or from the worker's last step since then.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn ask(&self, request: Request, timeout: Duration) -> Result<Response, LinkError> {
        let (answer, reply) = oneshot::channel();
        self.requests.send(PendingRequest { request, timeout, answer }).map_err(|_| LinkError::Closed)?;
        reply.await.unwrap_or(Err(LinkError::Closed))
    }
}

async fn converse(
    mut stream: UnixStream,
    mut requests: mpsc::UnboundedReceiver<PendingRequest>,
    step: watch::Sender<Step>,
) {
    while let Some(pending) = requests.recv().await {
        let result = exchange(&mut stream, &pending, &step).await;
        let broken = result.is_err();
        // The caller may have been dropped; the reply has been read anyway.
        let _ = pending.answer.send(result);
        if broken {
            return;
        }
    }
}

async fn exchange(
    stream: &mut UnixStream,
    pending: &PendingRequest,
    step: &watch::Sender<Step>,
) -> Result<Response, LinkError> {
    let sent = tokio::time::timeout(pending.timeout, messages::send(stream, &pending.request)).await;
    sent.map_err(|_| LinkError::Late)?.map_err(|_| LinkError::Closed)?;
    // A worker that makes progress gets more time, but not without limit.
    for _ in 0..=WORKER_STEPS_MAX {
        let said = tokio::time::timeout(pending.timeout, messages::receive(stream)).await;
        match said.map_err(|_| LinkError::Late)?.ok().flatten() {
            Some(Said::Step(next)) => _ = step.send_replace(next),
            Some(Said::Reply(reply)) => return Ok(reply),
            None => return Err(LinkError::Closed),
        }
    }
    Err(LinkError::Late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::LocalSet;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        LocalSet::new().block_on(&runtime, test);
    }

    #[test]
    fn replies_come_back_in_order() {
        run(async {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let link = Link::new(ours);
            let worker = async {
                for number in 0..2u8 {
                    assert_eq!(messages::receive::<Request>(&mut theirs).await.unwrap(), Some(Request::Ping));
                    let reply = Said::Reply(Response::ok(number.to_string()));
                    messages::send(&mut theirs, &reply).await.unwrap();
                }
            };
            let timeout = Duration::from_secs(5);
            let (first, second, ()) =
                tokio::join!(link.ask(Request::Ping, timeout), link.ask(Request::Ping, timeout), worker);
            assert_eq!((first, second), (Ok(Response::ok("0")), Ok(Response::ok("1"))));
        });
    }

    #[test]
    fn a_silent_worker_is_given_up() {
        run(async {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let link = Link::new(ours);
            assert_eq!(link.ask(Request::Ping, Duration::from_secs(5)).await, Err(LinkError::Late));
            assert_eq!(link.ask(Request::Ping, Duration::from_secs(5)).await, Err(LinkError::Closed));
        });
    }

    #[test]
    fn progressing_worker_is_awaited_and_its_last_step_is_reported() {
        run(async {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let link = Link::new(ours);
            let worker = async {
                for step in [Step::Storage(0), Step::Storage(1), Step::Bans, Step::Index] {
                    tokio::time::sleep(Duration::from_secs(4)).await;
                    messages::send(&mut theirs, &Said::Step(step)).await.unwrap();
                }
                drop(theirs);
            };
            let (reply, ()) = tokio::join!(link.ask(Request::Ping, Duration::from_secs(5)), worker);
            assert_eq!((reply, link.step()), (Err(LinkError::Closed), Step::Index));
        });
    }

    #[test]
    fn a_worker_that_gets_on_for_ever_is_given_up() {
        run(async {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let link = Link::new(ours);
            let worker = async { while messages::send(&mut theirs, &Said::Step(Step::Bans)).await.is_ok() {} };
            let (reply, ()) = tokio::join!(link.ask(Request::Ping, Duration::from_secs(5)), worker);
            assert_eq!(reply, Err(LinkError::Late));
        });
    }

    #[test]
    fn a_worker_that_is_gone_is_noticed_at_once() {
        run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            drop(theirs);
            assert_eq!(Link::new(ours).ask(Request::Ping, Duration::from_secs(5)).await, Err(LinkError::Closed));
        });
    }
}
