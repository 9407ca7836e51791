//! The threads that read and write the link to the manager.

use crate::queue::Queue;
use fleet::link::{self, ToAgent, ToManager};
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::thread;
use tokio::sync::mpsc::{Receiver, channel};

/// Messages of the manager that wait for the machine.
const MESSAGES: usize = 64;

/// Starts the threads. The receiver ends when the manager is gone, or has sent other bytes.
///
/// # Errors
/// There are too many threads or descriptors.
pub(crate) fn begin(socket: UnixStream) -> io::Result<(Queue<ToManager>, Receiver<ToAgent>)> {
    let (sender, messages) = channel(MESSAGES);
    let mut writing = socket.try_clone()?;
    let mut reading = BufReader::new(socket);
    thread::Builder::new().name("link".to_owned()).spawn(move || {
        loop {
            match link::read(&mut reading) {
                Ok(Some(message)) => {
                    if sender.blocking_send(message).is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => return eprintln!("the manager cannot be understood: {error}"),
            }
        }
    })?;
    let (queue, mut answers) = Queue::new();
    thread::Builder::new().name("answers".to_owned()).spawn(move || {
        while let Some(message) = answers.blocking_recv() {
            if link::write(&mut writing, &message).is_err() {
                return;
            }
        }
    })?;
    Ok((queue, messages))
}
