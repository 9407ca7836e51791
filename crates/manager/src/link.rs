//! The control connection to one worker: requests in order, each with one reply in time.
//!
//! Owner of the stream: one task. When a reply is late or broken the connection is given up, since the next reply could
//! not be told from the late one; whoever waits gets [`LinkError`].

use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use worker::control::{self, Reply, Request};

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The worker closed the connection, or sent what is no reply.
    Closed,
    /// The worker did not answer in time.
    Late,
}

/// A handle to the connection; clones share it.
#[derive(Clone, Debug)]
pub struct Link(mpsc::UnboundedSender<Question>);

#[derive(Debug)]
struct Question {
    request: Request,
    patience: Duration,
    answer: oneshot::Sender<Result<Reply, LinkError>>,
}

impl Link {
    /// Takes over a connection. Must be called within a `LocalSet`.
    #[must_use]
    pub fn new(stream: UnixStream) -> Link {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::task::spawn_local(converse(stream, receiver));
        Link(sender)
    }

    /// Sends a request and waits for its reply, up to `patience` from when its turn comes.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn ask(&self, request: Request, patience: Duration) -> Result<Reply, LinkError> {
        let (answer, reply) = oneshot::channel();
        self.0.send(Question { request, patience, answer }).map_err(|_| LinkError::Closed)?;
        reply.await.unwrap_or(Err(LinkError::Closed))
    }
}

async fn converse(mut stream: UnixStream, mut questions: mpsc::UnboundedReceiver<Question>) {
    while let Some(question) = questions.recv().await {
        let result = tokio::time::timeout(question.patience, exchange(&mut stream, &question.request)).await;
        let result = result.unwrap_or(Err(LinkError::Late));
        let broken = result.is_err();
        // The one who asked may have gone away; the reply was read all the same.
        let _ = question.answer.send(result);
        if broken {
            return;
        }
    }
}

async fn exchange(stream: &mut UnixStream, request: &Request) -> Result<Reply, LinkError> {
    control::send(stream, request).await.map_err(|_| LinkError::Closed)?;
    control::receive(stream).await.ok().flatten().ok_or(LinkError::Closed)
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
                    assert_eq!(control::receive::<Request>(&mut theirs).await.unwrap(), Some(Request::Ping));
                    control::send(&mut theirs, &Reply::ok(number.to_string())).await.unwrap();
                }
            };
            let patience = Duration::from_secs(5);
            let (first, second, ()) =
                tokio::join!(link.ask(Request::Ping, patience), link.ask(Request::Ping, patience), worker);
            assert_eq!((first, second), (Ok(Reply::ok("0")), Ok(Reply::ok("1"))));
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
    fn a_worker_that_is_gone_is_noticed_at_once() {
        run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            drop(theirs);
            assert_eq!(Link::new(ours).ask(Request::Ping, Duration::from_secs(5)).await, Err(LinkError::Closed));
        });
    }
}
