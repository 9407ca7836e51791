//! The manager that takes over: [`Successor`].

use super::document::Inheritance;
use super::talk::{Said, Told};
use super::{DESCRIPTOR, leave, passing};
use crate::arguments::Arguments;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;
use tokio::net::UnixStream;
use worker::control;

/// Exit status of a successor that gives up.
const FAILED: i32 = 2;

/// How often the predecessor hears that we are alive; more often than the shortest `cli_timeout` that makes sense.
const SIGN_OF_LIFE: Duration = Duration::from_millis(250);

/// The connection to the predecessor.
#[derive(Debug)]
pub struct Successor(StdUnixStream);

impl Successor {
    /// Claims the inherited connection.
    ///
    /// # Errors
    /// There is none: nobody but a manager starts a successor.
    pub fn claim() -> io::Result<Successor> {
        Ok(Successor(StdUnixStream::from(net::inheritance::inherited(DESCRIPTOR)?)))
    }

    /// Receives everything, and checks it. Changes nothing outside this process.
    ///
    /// # Errors
    /// Why it cannot be taken over.
    pub fn receive(&self, arguments: &Arguments, patience: Duration) -> Result<Inheritance, String> {
        let received = self.0.set_read_timeout(Some(patience)).and_then(|()| passing::receive(&self.0));
        let (bytes, descriptors) = received.map_err(|error| format!("nothing was handed over: {error}"))?;
        Inheritance::open(&bytes, descriptors, arguments)
    }

    /// Says that everything is checked, and waits until it is our turn: the predecessor says so, or is dead. There is no limit: it waits for
    /// the end of requests in flight.
    ///
    /// # Errors
    /// It says something else.
    pub async fn wait(self) -> Result<Heir, String> {
        let stream = self.0.set_nonblocking(true).and_then(|()| UnixStream::from_std(self.0));
        let mut stream = stream.map_err(|error| error.to_string())?;
        let _ = control::send(&mut stream, &Said::Ready).await;
        match control::receive::<Told>(&mut stream).await {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(format!("the predecessor: {error}")),
            Ok(Some(Told::Go)) | Ok(None) | Err(_) => Ok(Heir(stream)),
        }
    }

    /// Tells the predecessor why nothing comes of it, and ends this process.
    pub fn give_up(&self, why: &str) -> ! {
        let _ = control::send_now(&self.0, &Said::Failed(why.trim().to_owned()));
        leave(FAILED)
    }
}

/// A successor whose turn it is.
#[derive(Debug)]
pub struct Heir(UnixStream);

impl Heir {
    /// Does the work, and says now and then that it is being done.
    pub async fn while_working<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(SIGN_OF_LIFE) => {
                    let _ = control::send(&mut self.0, &Said::Working).await;
                }
            }
        }
    }

    /// Says that we serve. A predecessor that is dead does not mind.
    pub async fn serves(mut self) {
        let _ = control::send(&mut self.0, &Said::Serving).await;
    }

    /// Tells the predecessor why nothing comes of it, and ends this process, and its worker with it.
    pub async fn give_up(mut self, why: &str) -> ! {
        let _ = control::send(&mut self.0, &Said::Failed(why.trim().to_owned())).await;
        leave(FAILED)
    }
}
