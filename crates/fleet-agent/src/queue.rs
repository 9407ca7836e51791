//! A queue to a thread that must not be waited for: messages beyond its channel are kept here.
//!
//! Its owner reads less while [`Queue::waiting`] is long, which bounds it.

use std::collections::VecDeque;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Messages in the channel itself.
const CHANNEL: usize = 256;

/// The thread is gone.
#[derive(Debug)]
pub(crate) struct Gone;

/// A queue to a thread.
pub(crate) struct Queue<T> {
    sender: Sender<T>,
    waiting: VecDeque<T>,
}

impl<T> Queue<T> {
    /// A queue, and the end for the thread.
    pub(crate) fn new() -> (Queue<T>, Receiver<T>) {
        let (sender, receiver) = channel(CHANNEL);
        (Queue { sender, waiting: VecDeque::new() }, receiver)
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, message: T) {
        self.waiting.push_back(message);
    }

    /// Messages that the channel has not taken.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Moves messages into the channel: waits for one, and does not end while there is none. May be
    /// dropped at any time.
    pub(crate) async fn advance(&mut self) -> Result<(), Gone> {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        let mut permit = self.sender.reserve().await.map_err(|_| Gone)?;
        while let Some(message) = self.waiting.pop_front() {
            permit.send(message);
            match self.sender.try_reserve() {
                Ok(next) => permit = next,
                Err(_) => break,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_and_end_of_the_thread_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut queue, mut receiver) = Queue::new();
        (0..CHANNEL + 10).for_each(|message| queue.push(message));
        runtime.block_on(queue.advance()).unwrap();
        assert_eq!(queue.waiting(), 10);
        for message in 0..CHANNEL {
            assert_eq!(receiver.try_recv(), Ok(message));
        }
        runtime.block_on(queue.advance()).unwrap();
        assert_eq!((queue.waiting(), receiver.len()), (0, 10));
        drop(receiver);
        queue.push(1);
        assert!(runtime.block_on(queue.advance()).is_err());
    }
}
