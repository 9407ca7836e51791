//! The manager that takes over: [`Successor`].

use super::document::Inheritance;
use super::talk::{Said, Told};
use super::{DESCRIPTOR, leave, passing};
use crate::arguments::Arguments;
use control::messages;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;
use tokio::net::UnixStream;

/// Exit status of a successor that gives up.
const FAILED: i32 = 2;

/// Interval between signs of life to the predecessor; shorter than the shortest sensible
/// `cli_timeout`.
const SIGN_OF_LIFE: Duration = Duration::from_millis(250);

/// The connection to the predecessor.
#[derive(Debug)]
pub struct Successor(StdUnixStream);

impl Successor {
    /// Claims the inherited connection.
    ///
    /// # Errors
    /// There is no inherited socket: only a manager starts a successor.
    pub fn claim() -> io::Result<Successor> {
        Ok(Successor(StdUnixStream::from(control::inheritance::inherited(DESCRIPTOR)?)))
    }

    /// Receives everything, and checks it. Changes nothing outside this process.
    ///
    /// # Errors
    /// The reason why it cannot be taken over.
    pub fn receive(&self, arguments: &Arguments, patience: Duration) -> Result<Inheritance, String> {
        let received = self.0.set_read_timeout(Some(patience)).and_then(|()| passing::receive(&self.0));
        let (bytes, descriptors) = received.map_err(|error| format!("nothing was handed over: {error}"))?;
        Inheritance::open(&bytes, descriptors, arguments)
    }

    /// Reports that everything is checked, and waits for its turn: until the predecessor sends
    /// "go", or is dead. There is no limit: it waits for the end of requests in flight.
    ///
    /// # Errors
    /// It sends another message.
    pub async fn wait(self) -> Result<SuccessorConnection, String> {
        let stream = self.0.set_nonblocking(true).and_then(|()| UnixStream::from_std(self.0));
        let mut stream = stream.map_err(|error| error.to_string())?;
        let _ = messages::send(&mut stream, &Said::Ready).await;
        match messages::receive::<Told>(&mut stream).await {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(format!("the predecessor: {error}")),
            Ok(Some(Told::Go)) | Ok(None) | Err(_) => Ok(SuccessorConnection(stream)),
        }
    }

    /// Reports the reason for giving up to the predecessor, and ends this process.
    pub fn give_up(&self, why: &str) -> ! {
        let _ = messages::send_now(&self.0, &Said::Failed(why.trim().to_owned()));
        leave(FAILED)
    }
}

/// A successor whose turn it is.
#[derive(Debug)]
pub struct SuccessorConnection(UnixStream);

impl SuccessorConnection {
    /// Does the work, and reports progress at intervals.
    pub async fn while_working<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(SIGN_OF_LIFE) => {
                    let _ = messages::send(&mut self.0, &Said::Working).await;
                }
            }
        }
    }

    /// Reports that we serve. The predecessor may be dead.
    pub async fn serves(mut self) {
        let _ = messages::send(&mut self.0, &Said::Serving).await;
    }

    /// Reports the reason for giving up to the predecessor, and ends this process, and its worker
    /// with it.
    pub async fn give_up(mut self, why: &str) -> ! {
        let _ = messages::send(&mut self.0, &Said::Failed(why.trim().to_owned())).await;
        leave(FAILED)
    }
}
